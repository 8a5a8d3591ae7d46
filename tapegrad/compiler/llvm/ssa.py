"""LLVM text of straight-line code: values under Python's operators, in SSA form.

`Operand` carries Python's operators, and the functions below are the primitives of
`kernels.simd`: each writes one instruction.  So the sources of `vmath` and the forms of
`rule_codegen` run on operands as they run on numbers.  An instruction of the same text as an
earlier one of its block is that one.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tapegrad.kernels import simd_tables
from tapegrad.kernels.polynomial import polynomial

FLOATS = {"double": "f64", "float": "f32"}
# Two numbers of NumPy's bool add up by `or` and are multiplied by `and`.
_WORDS: dict[str, dict[str, str | None]] = {
    "+": {"double": "fadd", "float": "fadd", "i1": "or", "int": "add"},
    "-": {"double": "fsub", "float": "fsub", "i1": None, "int": "sub"},
    "*": {"double": "fmul", "float": "fmul", "i1": "and", "int": "mul"},
    "/": {"double": "fdiv", "float": "fdiv"},
    "%": {"double": "frem", "float": "frem", "i64": "srem", "i32": "srem"},
    "//": {"i64": "sdiv", "i32": "sdiv"},
    "&": {"double": None, "float": None, "int": "and"},
    "|": {"double": None, "float": None, "int": "or"},
    "^": {"double": None, "float": None, "int": "xor"},
    "<<": {"i64": "shl", "i32": "shl"},
    ">>": {"i64": "ashr", "i32": "ashr"},
}
_ORDERED = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
_SIGNED = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}
_UNSIGNED = {"<": "ult", "<=": "ule", ">": "ugt", ">=": "uge", "==": "eq", "!=": "ne"}


class Value:
    """A name or a literal of LLVM text, and its type.

    >>> from tapegrad.compiler.llvm.ssa import Value
    >>> Value("%x", "double")
    double %x
    """

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: str) -> None:
        self.name = name
        self.type = type

    def __repr__(self) -> str:
        return f"{self.type} {self.name}"


def literal(value: Any, type: str) -> Value:
    """A constant, to the last bit.

    >>> from tapegrad.compiler.llvm.ssa import literal
    >>> literal(0.5, "double"), literal(-3, "i64"), literal(True, "i1")
    (double 0x3FE0000000000000, i64 -3, i1 true)
    """
    if type in FLOATS:
        x = float(value)
        if type == "float":  # written as the double of the same value
            x = struct.unpack("f", struct.pack("f", x))[0]
        digits = struct.unpack("<Q", struct.pack("<d", x))[0] if x == x else 0x7FF8 << 48
        return Value(f"0x{digits:016X}", type)
    if type == "i1":
        return Value("true" if value else "false", type)
    return Value(str(int(value)), type)


class Block:
    """Straight-line code; its lines name their results `%<prefix>0`, `%<prefix>1`, ..."""

    def __init__(self, prefix: str = "v") -> None:
        self.lines: list[str] = []
        self.used: set[str] = set()  # functions that are called: `elementary.definitions`
        self.prefix = prefix
        self._count = 0
        self._known: dict[str, Value] = {}

    def emit(self, type: str, text: str) -> Value:
        """Append an instruction; its result has a fresh name."""
        value = Value(f"%{self.prefix}{self._count}", type)
        self._count += 1
        self.lines.append(f"{value.name} = {text}")
        return value

    def share(self, type: str, text: str) -> Value:
        """The result of an instruction without effects, appended if it is not there yet."""
        value = self._known.get(text)
        if value is None:
            value = self._known[text] = self.emit(type, text)
        return value

    def forget(self) -> None:
        """Start anew with sharing: what was computed so far may not reach what follows."""
        self._known.clear()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Share nothing with what follows that is computed meanwhile."""
        known = dict(self._known)
        yield
        self._known = known

    def call(self, function: str, result: str, args: Sequence[Value]) -> Value:
        """The result of a function without effects."""
        self.used.add(function)
        operands = ", ".join(f"{a.type} {a.name}" for a in args)
        return self.share(result, f"call {result} @{function}({operands})")

    def decide(self, condition: Value) -> bool:
        """Which way a branch of the traced function goes."""
        raise TypeError(f"straight-line code has no branch, got one on {condition}: use `select`.")


class Operand:
    """A value in a block, with Python's operators; a number beside it takes its type."""

    __slots__ = ("block", "value")
    __hash__ = None  # type: ignore[assignment]  # `==` gives code

    def __init__(self, block: Block, value: Value) -> None:
        self.block = block
        self.value = value

    @property
    def type(self) -> str:
        """The LLVM type."""
        return self.value.type

    def __bool__(self) -> bool:
        return self.block.decide(self.value)

    def __neg__(self) -> Operand:
        if self.type in FLOATS:
            return self._write(self.type, f"fneg {self.value}")
        return 0 - self

    def __add__(self, other: Any) -> Operand:
        return self._two("+", self, other)

    def __radd__(self, other: Any) -> Operand:
        return self._two("+", other, self)

    def __sub__(self, other: Any) -> Operand:
        return self._two("-", self, other)

    def __rsub__(self, other: Any) -> Operand:
        return self._two("-", other, self)

    def __mul__(self, other: Any) -> Operand:
        return self._two("*", self, other)

    def __rmul__(self, other: Any) -> Operand:
        return self._two("*", other, self)

    def __truediv__(self, other: Any) -> Operand:
        return self._two("/", self, other)

    def __rtruediv__(self, other: Any) -> Operand:
        return self._two("/", other, self)

    def __and__(self, other: Any) -> Operand:
        return self._two("&", self, other)

    def __or__(self, other: Any) -> Operand:
        return self._two("|", self, other)

    def __xor__(self, other: Any) -> Operand:
        return self._two("^", self, other)

    def __lshift__(self, other: Any) -> Operand:
        return self._two("<<", self, other)

    def __rshift__(self, other: Any) -> Operand:
        return self._two(">>", self, other)

    def __lt__(self, other: Any) -> Operand:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Operand:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Operand:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Operand:
        return self._compare(">=", other)

    def __eq__(self, other: object) -> Operand:  # type: ignore[override]  # code, not a bool
        return self._compare("==", other)

    def __ne__(self, other: object) -> Operand:  # type: ignore[override]  # code, not a bool
        return self._compare("!=", other)

    def _write(self, type: str, text: str) -> Operand:
        return Operand(self.block, self.block.share(type, text))

    def _two(self, sign: str, a: Any, b: Any) -> Operand:
        words = _WORDS[sign]
        word = words.get(self.type, words.get("int"))
        if word is None:
            raise TypeError(f"`{sign}` is not defined for {self.type}")
        return self._write(self.type, f"{word} {self.type} {self._name(a)}, {self._name(b)}")

    def _name(self, x: Any) -> str:
        if isinstance(x, Operand):
            if x.type != self.type:
                raise TypeError(f"operands have different types: {self.value} and {x.value}")
            return x.value.name
        return literal(x, self.type).name

    def _compare(self, sign: str, other: Any) -> Operand:
        if self.type in FLOATS:
            word = "fcmp " + _ORDERED[sign]
        else:
            word = "icmp " + (_UNSIGNED if self.type == "i1" else _SIGNED)[sign]
        names = f"{self.value.name}, {self._name(other)}"
        return self._write("i1", f"{word} {self.type} {names}")


def _call(name: str, *args: Any) -> Operand:
    """An intrinsic over operands of one type, which is its result's too."""
    first = next(x for x in args if isinstance(x, Operand))
    kind = first.type
    values = [Value(first._name(x), kind) for x in args]
    return Operand(first.block, first.block.call(f"{name}.{FLOATS[kind]}", kind, values))


def fma(a: Any, b: Any, c: Any) -> Operand:
    """The fused a * b + c, rounded once."""
    return _call("llvm.fma", a, b, c)


def select(condition: Operand, a: Any, b: Any, kind: str = "double") -> Operand:
    """`a if condition else b` with both sides computed; of two numbers the kind has to be said."""
    like = next((x for x in (a, b) if isinstance(x, Operand)), None)
    kind = kind if like is None else like.type
    a, b = (x.value if isinstance(x, Operand) else literal(x, kind) for x in (a, b))
    if a.type != b.type:
        raise TypeError(f"`select` takes two values of one type, got {a} and {b}")
    return condition._write(kind, f"select {condition.value}, {a}, {b}")


def bits(x: Operand) -> Operand:
    """The bit pattern of a float as an integer of its size."""
    kind = "i64" if x.type == "double" else "i32"
    return x._write(kind, f"bitcast {x.value} to {kind}")


def from_bits(b: Operand) -> Operand:
    """The float with bit pattern `b`."""
    kind = "double" if b.type == "i64" else "float"
    return b._write(kind, f"bitcast {b.value} to {kind}")


def magnitude(x: Operand) -> Operand:
    """|x|; of an integer too, where the lowest one stays itself."""
    if x.type in FLOATS:
        return _call("llvm.fabs", x)
    return x if x.type == "i1" else select(x < 0, -x, x)


def copysign(x: Any, sign: Any) -> Operand:
    """|x| with the sign bit of `sign`."""
    return _call("llvm.copysign", x, sign)


def nearest(x: Operand) -> Operand:
    """The integer nearest to x, ties to even."""
    return _call("llvm.rint", x)


def root(x: Operand) -> Operand:
    """The square root."""
    return _call("llvm.sqrt", x)


def floor(x: Operand) -> Operand:
    """The largest whole number that is not above x; an integer is one."""
    return _call("llvm.floor", x) if x.type in FLOATS else x


def truncated_remainder(a: Operand, b: Operand) -> Operand:
    """libm's fmod."""
    return a._two("%", a, b)


def truncated(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """The quotient of integers, rounded to 0, and what it leaves; both are 0 where b is 0.

    A division by 0 traps, and so does that of the lowest integer by -1.
    """
    safe = select((b == 0) | (b == -1), 1, b)
    quotient = select(b == -1, -a, select(b == 0, 0, a._two("//", a, safe)))
    return quotient, a._two("%", a, safe)


def floored(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """The quotient of integers rounded down, and what it leaves, with the sign of b."""
    q, r = truncated(a, b)
    lower = (r != 0) & ((r < 0) != (b < 0))
    return select(lower, q - 1, q), select(lower, r + b, r)


def widen(x: Operand) -> Operand:
    """A float as a double."""
    return x if x.type == "double" else x._write("double", f"fpext {x.value} to double")


def narrow(y: Operand, like: Operand) -> Operand:
    """The double `y` rounded to a float if `like` is one."""
    if like.type != "float":
        return y
    return y._write("float", f"fptrunc {y.value} to float")


def F32(x: Any) -> Any:
    """A number of the operands' type."""
    return x


def singles(*numbers: float) -> tuple[float, ...]:
    """Coefficients of a polynomial of float32."""
    return numbers


def times_power_f4(p: Operand, t: Operand) -> Operand:
    """p * 2**n of float32, where n + 254 stands in the low bits of t; in two factors."""
    both = bits(t)
    half = (both << 22) & (0xFF << 23)
    for factor in half, (both << 23) - half:
        p = p * from_bits(factor)
    return p


class _Builder:
    """What `polynomial` writes with."""

    fma = staticmethod(fma)

    @staticmethod
    def fmul(a: Operand, b: Operand) -> Operand:
        return a * b


def horner(x: Operand, coefficients: Sequence[Any]) -> Operand:
    """A polynomial, lowest power first."""
    return Operand(x.block, polynomial(_Builder, x, coefficients).value)


def horner_select(
    condition: Operand, x: Operand, a: Sequence[float], b: Sequence[float]
) -> Operand:
    """`horner(x, a if condition else b)`: the coefficients are blended."""
    return horner(x, [select(condition, *pair) for pair in zip(a, b, strict=True)])


def inverse_root(x: Operand, rough: Operand) -> Operand:
    """x**(-1/2) to 2**-14 where vectors of it can be had at once, else what is given."""
    if not simd_tables.in_registers():
        return rough
    return Operand(x.block, x.block.call(simd_tables.ROOT, "double", [x.value, rough.value]))


def table(values: Sequence[float]) -> Callable[[Operand], Operand]:
    """A function that looks a number up by the low four bits of an i64."""
    name = simd_tables.name_of(values)
    TABLES[name] = tuple(values)

    def look(index: Operand) -> Operand:
        return Operand(index.block, index.block.call(name, "double", [index.value]))

    return look


def tables(powers: Sequence[Sequence[float]]) -> Callable[[Operand, Operand], Operand]:
    """A polynomial whose coefficients are looked up, lowest power first."""
    looks = [table(values) for values in powers]
    return lambda x, index: horner(x, [look(index) for look in looks])


TABLES: dict[str, tuple[float, ...]] = {}  # those that some function uses
LIBM = frozenset("sin cos tan asin acos atan atan2".split())


class Math:
    """The module `math` for numbers, and for operands LLVM's sqrt or the C library's functions."""

    def __getattr__(self, name: str) -> Any:
        of_numbers = getattr(math, name)
        if name != "sqrt" and name not in LIBM:
            return of_numbers

        def function(*args: Any) -> Any:
            first = next((x for x in args if isinstance(x, Operand)), None)
            if first is None:
                return of_numbers(*args)
            if name == "sqrt":
                return _call("llvm.sqrt", *args)
            symbol = name if first.type == "double" else name + "f"
            values = [x.value for x in args]
            return Operand(first.block, first.block.call(symbol, first.type, values))

        return function
