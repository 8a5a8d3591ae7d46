"""Write code for one typed function: names, casts, arithmetic of indices, the operators."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.core.typing.npydecl import NumpyRulesArrayOperator

from tapegrad.njit.numba_front.components import (
    COMPLEX,
    components,
    is_number,
    lengths,
    nothing,
    scalar,
    signed,
)
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.typed_ir import TRY, TypedFunction
from tapegrad.njit.partials import has_scalar_form
from tapegrad.njit.three_address_code import (
    FLOATS,
    Code,
    Constant,
    Instruction,
    Operand,
    Unsupported,
)
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.ops.families import table

Operands = list[Operand]
Found = tuple[Operands, NumbaType]  # the components of a value, and Numba's type of it
ZERO, ONE = Constant(0, "i64"), Constant(1, "i64")
NOWHERE = -1  # where no exception may be raised
POWERS = 64  # the largest constant exponent that is written as products
# `x += y` of numbers is `x + y`.
_PLAIN = {
    getattr(operator, f"i{f.__name__.strip('_')}"): f
    for f in NumpyRulesArrayOperator._op_map
    if hasattr(operator, f"i{f.__name__.strip('_')}")
}
UFUNCS = {f: getattr(np, name) for f, name in NumpyRulesArrayOperator._op_map.items()} | {
    operator.neg: np.negative, operator.pos: np.positive, operator.invert: np.invert,
}  # fmt: skip
_INTEGERS: dict[Any, str] = {
    operator.add: "iadd", operator.sub: "isub", operator.mul: "imul", operator.mod: "imod",
    operator.floordiv: "ifloordiv", operator.and_: "iand", operator.or_: "ior",
    operator.xor: "ixor", operator.lshift: "ishl", operator.rshift: "ishr",
}  # fmt: skip
_CONDITIONS: dict[Any, str] = {
    operator.and_: "band", operator.or_: "bor", operator.xor: "bxor",
}  # fmt: skip
COMPARISONS = {operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}
# Of signed integers: Numba tells LLVM that these do not overflow.
_OVERFLOWS = {operator.add, operator.sub, operator.mul}
_DIVISIONS = {operator.truediv, operator.floordiv, operator.mod}


def plain(f: Any) -> Any:
    """The operator of which another is the form in place."""
    return _PLAIN.get(f, f)


def row_of(f: Any) -> str | None:
    """The row of an operator, a ufunc, or a function of `math`, if there is one."""
    ufunc = UFUNCS.get(f, f)
    name = _rows().get(ufunc)
    if name is None and getattr(f, "__module__", "") in ("math", "builtins"):
        name = _rows().get(f.__name__)
    return name


_found: dict[Any, str] = {}


def _rows() -> dict[Any, str]:
    """Rows by the ufuncs that are their forwards, and by all their names."""
    if not _found:
        from tapegrad.ops import elementwise

        for name, op in table.items():
            if op.kind == ELEMENTWISE and has_scalar_form(name):
                forward = getattr(op.forward, "__wrapped__", op.forward)
                _found.setdefault(forward, name)
                for alias in op.names:
                    _found.setdefault(alias, name)
        _found[np.fabs] = _found["fabs"] = elementwise.abs.name
        _found[np.sign] = elementwise.sign.name
        _found[np.radians] = _found["radians"] = elementwise.deg2rad.name
        _found[np.degrees] = _found["degrees"] = elementwise.rad2deg.name
    return _found


class Writer:
    """Writes a function's code; `given` are the components of its arguments, `done` takes the
    result at each return.
    """

    def __init__(
        self, code: Code, typed: TypedFunction, given: list[Found],
        done: Callable[[Any, Found], None],
    ) -> None:  # fmt: skip
        self.code, self.typed, self.given, self.done = code, typed, given, done
        self.prefix = f"{typed.name}{code.fresh()}."
        self.current = code.block()
        self.present: dict[str, NumbaType] = {}  # by variables that may be None: of their values
        self.slices: dict[str, Any] = {}
        self.definitions: dict[str, Any] = {}
        self.list_names: dict[str, str] = {}  # of lists that grow: the one name of each
        self.elided: set[str] = (
            set()
        )  # what Numba cannot be given, as it is not there or another type

    # -- names and casts ---------------------------------------------------------------------

    def type(self, var: NumbaIR) -> NumbaType:
        """Numba's type of a variable."""
        return self.present.get(var.name) or self.typed.types[var.name]

    def emit(self, op: str, args: Sequence[Operand], type: str, attribute: Any = None) -> str:
        """Append an instruction; its result has a fresh name."""
        name = self.code.name(type)
        self.current.instructions.append(
            Instruction(op, tuple(args), name, type, attribute, self.code.line)
        )
        return name

    def effect(self, op: str, *args: Operand, attribute: Any = None) -> None:
        """Append an instruction without a result."""
        self.current.instructions.append(
            Instruction(op, args, None, None, attribute, self.code.line)
        )

    def copy(self, value: Operand, name: str) -> None:
        """Assign to a name."""
        kind = self.code.types[name]
        self.current.instructions.append(Instruction("copy", (value,), name, kind))

    def names(self, var: NumbaIR) -> Operands:
        """The components of a variable."""
        t = self.type(var)
        if isinstance(t, types.Literal) and isinstance(t.literal_value, bool | int):
            value = t.literal_value
            return [
                Constant(value, "i1") if isinstance(value, bool) else Constant(signed(value), "i64")
            ]
        found: Operands = []
        for suffix, kind in components(t):
            name = self.name_of(var, suffix)
            self.code.types[name] = kind
            found.append(name)
        return found

    def name_of(self, var: NumbaIR, suffix: str) -> str:
        """The name of a component of a variable."""
        return self.prefix + self.list_names.get(var.name, var.name) + suffix

    def get(self, var: NumbaIR, to: NumbaType | None = None) -> Operands:
        """The components of a variable, converted to another type if one is given."""
        return self.names(var) if to is None else self.cast(self.names(var), self.type(var), to)

    def number(self, var: NumbaIR, kind: str) -> Operand:
        """A variable that holds a number, as a type."""
        t = self.type(var)
        if scalar(t) is None:
            raise Unsupported(f"{t} as a number")
        return self.as_kind(self.get(var)[0], t, kind)

    def as_kind(self, x: Operand, t: NumbaType, kind: str) -> Operand:
        """A number of Numba's type `t` as a type."""
        large = types.unliteral(t) == types.uint64 and kind in FLOATS
        return self.float_of_unsigned(x, kind) if large else self.to(x, kind)

    def assign(self, var: NumbaIR, found: Found) -> None:
        """Assign to a variable."""
        ops, t = found
        target = self.type(var)
        for (suffix, kind), value in zip(
            components(target), self.cast(ops, t, target), strict=True
        ):
            name = self.name_of(var, suffix)
            self.code.types[name] = kind
            self.copy(value, name)

    def cast(self, ops: Operands, a: NumbaType, b: NumbaType) -> Operands:
        """The components of a value of type `a` as one of type `b`."""
        # Part by part: text that is a constant has no components, other text has.
        if isinstance(a, types.BaseTuple) and isinstance(b, types.BaseTuple) and len(a) == len(b):
            found: Operands = []
            rest = iter(ops)
            for x, y in zip(a, b):
                found += self.cast([next(rest) for _ in components(x)], x, y)
            return found
        a, b = types.unliteral(a), types.unliteral(b)
        if a == b:
            return ops
        if isinstance(b, types.Optional):
            if isinstance(a, types.Optional):
                return [ops[0], *self.cast(ops[1:], a.type, b.type)]
            some = not isinstance(a, types.NoneType)
            value = self.cast(ops, a, b.type) if some else nothing(b.type)
            return [Constant(some, "i1"), *value]
        if not ops:
            return ops
        if isinstance(a, types.Optional):
            self.require(ops[0])
            return self.cast(ops[1:], a.type, b)
        if isinstance(a, types.Array) and isinstance(b, types.Array) and a.ndim == b.ndim:
            if a.layout == "C" and b.layout == "F" and a.ndim > 1:
                raise Unsupported(f"a conversion of {a} to {b}")
            if a.dtype == b.dtype and a.layout == "C" != b.layout:
                return [*ops, *self.strides(ops, a)]
            if a.dtype == b.dtype and (a.layout != "C") == (b.layout != "C"):
                return ops
        if isinstance(a, types.List) and isinstance(b, types.List) and a.dtype == b.dtype:
            return ops
        if b in COMPLEX and is_number(a):
            (_, part), _ = components(b)
            if a in COMPLEX:
                return [self.to(x, part) for x in ops]
            return [self.as_kind(ops[0], a, part), Constant(0.0, part)]
        kind = scalar(b)
        if scalar(a) is None or kind is None:
            raise Unsupported(f"a conversion of {a} to {b}")
        if _narrows(a, b):
            return [self.truncated(self.to(ops[0], "i64"), b)]
        return [self.as_kind(ops[0], a, kind)]

    def to(self, x: Operand, kind: str) -> Operand:
        """A number in another type."""
        old = self.code.type_of(x)
        if old == kind:
            return x
        if isinstance(x, Constant):
            made = float if kind in FLOATS else bool if kind == "i1" else int
            return Constant(made(x.value), kind)
        if kind == "i1":
            return self.emit("ne", [x, Constant(0.0 if old in FLOATS else 0, old)], "i1")
        return self.emit("cast", [x], kind)

    # -- integers of other sizes -------------------------------------------------------------

    def truncated(self, x: Operand, t: NumbaType) -> Operand:
        """The low bits of an integer, as a signed or an unsigned one."""
        t = types.unliteral(t)
        if not isinstance(t, types.Integer) or t.bitwidth == 64:
            return x
        if not t.signed:
            return self.emit("iand", [x, Constant((1 << t.bitwidth) - 1, "i64")], "i64")
        rest = Constant(64 - t.bitwidth, "i64")
        return self.emit("ishr", [self.emit("ishl", [x, rest], "i64"), rest], "i64")

    def float_of_unsigned(self, x: Operand, kind: str) -> Operand:
        """An unsigned integer as a float: a large one by its half, whose last bit stays set."""
        half = self.emit("ior", [self.shifted(x, ONE), self.emit("iand", [x, ONE], "i64")], "i64")
        small, large = self.to(x, kind), self.to(half, kind)
        twice = self.emit("add", [large, large], kind)
        return self.chosen(self.emit("lt", [x, ZERO], "i1"), twice, small)

    def shifted(self, x: Operand, n: Operand) -> Operand:
        """An unsigned integer, shifted right."""
        ones = self.emit(
            "ishl", [Constant(-1, "i64"), self.index("isub", Constant(63, "i64"), n)], "i64"
        )
        mask = self.emit(
            "ixor", [self.emit("ishl", [ones, ONE], "i64"), Constant(-1, "i64")], "i64"
        )
        return self.emit("iand", [self.emit("ishr", [x, n], "i64"), mask], "i64")

    def compared(self, f: Any, x: Operand, y: Operand, kinds: Sequence[NumbaType]) -> Operand:
        """A comparison of integers of which one is unsigned: a negative one is the smaller."""
        least, name = Constant(-(1 << 63), "i64"), row_of(f)
        assert name is not None
        found: Operand = self.emit(
            name, [self.emit("ixor", [v, least], "i64") for v in (x, y)], "i1"
        )
        smaller = (operator.lt, operator.le, operator.ne), (operator.gt, operator.ge, operator.ne)
        for v, t, true in zip((x, y), kinds, smaller):
            if types.unliteral(t).signed:
                negative = self.emit("lt", [v, ZERO], "i1")
                found = self.chosen(negative, Constant(f in true, "i1"), found)
        return found

    def divided(self, x: Operand, y: Operand) -> tuple[Operand, Operand]:
        """The quotient of unsigned integers, and the rest."""
        half = self.emit("ifloordiv", [self.shifted(x, ONE), y], "i64")
        large = self.emit("lt", [y, ZERO], "i1")
        quotient = self.chosen(large, ZERO, self.emit("ishl", [half, ONE], "i64"))
        rest = self.emit("isub", [x, self.emit("imul", [quotient, y], "i64")], "i64")
        more = self.compared(operator.ge, rest, y, (types.uint64, types.uint64))
        return (
            self.emit("iadd", [quotient, self.chosen(more, ONE, ZERO)], "i64"),
            self.emit("isub", [rest, self.chosen(more, y, ZERO)], "i64"),
        )

    # -- indices -----------------------------------------------------------------------------

    def index(self, op: str, a: Operand, b: Operand) -> Operand:
        """A sum, difference or product of indices."""
        if isinstance(a, Constant) and isinstance(b, Constant):
            f = {"iadd": operator.add, "isub": operator.sub, "imul": operator.mul}[op]
            return Constant(f(a.value, b.value), "i64")
        if b == (ONE if op == "imul" else ZERO):
            return a
        if (op == "iadd" and a == ZERO) or (op == "imul" and a == ONE):
            return b
        return self.emit(op, [a, b], "i64", "nsw")

    def product(self, factors: Sequence[Operand]) -> Operand:
        """The product of lengths."""
        total: Operand = ONE
        for x in factors:
            total = self.index("imul", total, x)
        return total

    def shape(self, ops: Operands, t: NumbaType) -> Operands:
        """The lengths of an array's dimensions."""
        return lengths(ops, t)

    def strides(self, ops: Operands, t: NumbaType) -> Operands:
        """The strides of an array in elements."""
        shape = self.shape(ops, t)
        if t.layout != "C":
            return ops[1 + t.ndim :]
        found: Operands = []
        at: Operand = ONE
        for n in reversed(shape):
            found.append(at)
            at = self.index("imul", n, at)
        return found[::-1]

    def require(self, condition: Operand) -> None:
        """The primal raises, unless a condition holds."""
        if self.unwind is None:
            self.effect("require", condition)
            return
        after = self.code.block()
        self.current.end("branch", (condition,), after.label, self.handler)
        self.current = after

    unwind: int | None = None  # where exceptions go that are handled

    @property
    def handler(self) -> int:
        """The block that handles what is raised."""
        if self.unwind in (None, NOWHERE):
            raise Unsupported(TRY)
        return self.unwind

    def raise_exception(self) -> None:
        """End the block as the primal raises, unless the exception is handled."""
        if self.unwind is None:
            self.current.end("raise")
        else:
            self.current.end("jump", (), self.handler)

    # -- operators ---------------------------------------------------------------------------

    def constant_of(self, var: NumbaIR) -> Any:
        """The number that a variable is known to hold, or None."""
        t = self.type(var)
        if isinstance(t, types.Literal):
            return t.literal_value
        d = self.definitions.get(var.name)
        if isinstance(d, ir.Const | ir.Global | ir.FreeVar) and isinstance(d.value, int | float):
            return d.value
        return None

    def operation(self, f: Any, values: Operands, result: NumbaType) -> Found:
        """An operator of numbers; `result` is Numba's type of what it gives."""
        f = plain(f)
        kind = scalar(result)
        kinds = {self.code.type_of(x) for x in values}
        if f in COMPARISONS:
            common = next((k for k in ("f64", "f32", "i64", "i1") if k in kinds), "i64")
            if "f32" in kinds and "i64" in kinds:
                common = "f64"
            name = row_of(f)
            assert name is not None
            return [self.emit(name, [self.to(x, common) for x in values], "i1")], result
        if kind is None:
            raise Unsupported(f"the operator `{_sign(f)}` that gives {result}")
        values = [self.to(x, kind) for x in values]
        if kind in FLOATS:
            return [self.float_operation(f, values, kind)], result
        if kind == "i1":
            if f not in _CONDITIONS:
                raise Unsupported(f"the operator `{_sign(f)}` on booleans")
            return [self.emit(_CONDITIONS[f], values, "i1")], result
        return [self.integer_operation(f, values, result)], result

    def float_operation(self, f: Any, values: Operands, kind: str) -> Operand:
        """An operator of floats, by its row."""
        if f in _DIVISIONS and not self.typed.divides_as_numpy:
            self.nonzero(values[1])
        name = row_of(f)
        if name is None:
            raise Unsupported(f"the operator `{_sign(f)}` on floats")
        return self.emit(name, values, kind)

    def complex_operation(self, f: Any, x: Operands, y: Operands, result: NumbaType) -> Operands:
        """A sum, difference, product or comparison of complex numbers, by their parts."""
        kind = self.code.type_of(x[0])

        def of(f: Any, *values: Operand) -> Operand:
            return self.float_operation(f, [*values], kind)

        if f in (operator.add, operator.sub):
            return [of(f, *parts) for parts in zip(x, y)]
        if f is operator.mul:
            (a, b), (c, d) = x, y
            real = of(operator.sub, of(f, a, c), of(f, b, d))
            return [real, of(operator.add, of(f, a, d), of(f, b, c))]
        if f not in (operator.eq, operator.ne):
            raise Unsupported(f"the operator `{_sign(f)}` on complex numbers")
        (one,), (other,) = (self.operation(f, [*p], result)[0] for p in zip(x, y))
        return [self.emit("band" if f is operator.eq else "bor", [one, other], "i1")]

    def nonzero(self, divisor: Operand) -> None:
        """Numba raises where a divisor is zero."""
        zero = Constant(0, self.code.type_of(divisor))
        if isinstance(divisor, Constant) and divisor.value != 0:
            return
        self.require(self.emit("ne", [divisor, zero], "i1"))

    def integer_operation(self, f: Any, values: Operands, result: NumbaType) -> Operand:
        """An operator of integers."""
        if f not in _INTEGERS:
            raise Unsupported(f"the operator `{_sign(f)}` on integers")
        if f in _DIVISIONS and not self.typed.divides_as_numpy:
            self.nonzero(values[1])
        if types.unliteral(result).bitwidth < 64:
            raise Unsupported(f"arithmetic in {result}: use int64")
        if types.unliteral(result) == types.uint64:
            if f is operator.rshift:
                return self.shifted(*values)
            if f in (operator.floordiv, operator.mod):
                return self.divided(*values)[f is operator.mod]
        signed = types.unliteral(result).signed and f in _OVERFLOWS
        return self.emit(_INTEGERS[f], values, "i64", "nsw" if signed else None)

    def negative(self, x: Operand) -> Operand:
        """The negative of a float."""
        return self.float_operation(operator.neg, [x], self.code.type_of(x))

    def negatives(self, parts: Operands) -> Operands:
        """The negative of a complex number."""
        return [self.negative(x) for x in parts]

    def conjugate(self, given: Found) -> Operands:
        """The conjugate of a number."""
        ops, t = given
        return [ops[0], self.negative(ops[1])] if t in COMPLEX else ops

    def power(self, x: Operand, n: int) -> Operand:
        """A power whose exponent is known, by products."""
        kind = self.code.type_of(x)
        multiply = "mul" if kind in FLOATS else "imul"
        if n < 0:
            one = Constant(1.0, kind)
            if not self.typed.divides_as_numpy:
                self.nonzero(x)
            return self.emit(_divide(), [one, self.power(x, -n)], kind)
        if n == 0:
            return Constant(1.0 if kind in FLOATS else 1, kind)
        if n == 1:
            return x
        half = self.power(x, n // 2)
        square = self.emit(multiply, [half, half], kind)
        return self.emit(multiply, [square, x], kind) if n % 2 else square

    def chosen(self, condition: Operand, a: Operand, b: Operand) -> Operand:
        """One of two numbers of a type."""
        kind = self.code.type_of(a)
        if kind in FLOATS:
            return self.emit("where", [condition, a, b], kind)
        return self.emit("select", [condition, a, b], kind)


def _divide() -> str:
    name = row_of(operator.truediv)
    assert name is not None
    return name


def _narrows(a: NumbaType, b: NumbaType) -> bool:
    """Whether not every integer of the type `a` is one of the type `b`."""
    if not (isinstance(a, types.Integer) and isinstance(b, types.Integer)):
        return False
    return bool(b.bitwidth < min(a.bitwidth, 64) or (a.signed and not b.signed))


def _sign(f: Any) -> str:
    return getattr(f, "__name__", str(f))
