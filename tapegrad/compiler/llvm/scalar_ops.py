"""One elementwise operation as LLVM text: the forms of `rule_codegen` run on LLVM values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tapegrad.compiler.llvm import elementary, scipy_calls, ssa
from tapegrad.compiler.llvm.ssa import FLOATS, Block, Operand, Value, literal
from tapegrad.kernels.codegen.rule_codegen import Short, chain, scalar_form
from tapegrad.ops.core import table

__all__ = ["Code", "Value", "form", "literal", "promoted", "supports"]

RANK = {"i1": 0, "i32": 1, "i64": 2, "float": 3, "double": 4}
LOWEST = {"i64": -(2**63), "i32": -(2**31)}


def promoted(types: Sequence[str]) -> str:
    """NumPy's common type of arrays.

    >>> from tapegrad.compiler.llvm.scalar_ops import promoted
    >>> promoted(["float", "i64"]), promoted(["i1", "float"])
    ('double', 'float')
    """
    highest = max(types, key=RANK.__getitem__)
    if highest == "float" and ("i64" in types or "i32" in types):
        return "double"
    return highest


def supports(name: str, types: Sequence[str]) -> bool:
    """Whether `Code.apply` can compute an operation on operands of these types as NumPy does.

    >>> from tapegrad.compiler.llvm.scalar_ops import supports
    >>> supports("exp", ["double"]), supports("add", ["i64", "i32"]), supports("exp", ["i64"])
    (True, True, False)
    """
    if not scalar_form(name) and name not in scipy_calls.SCIPY:
        return False
    kind = promoted(types[1:] if name == "where" else types)
    if name == "both":
        return set(types) == {"i1"}
    return ("f" if kind in FLOATS else "b" if kind == "i1" else "i") in table[name].kinds


@cache
def calls(name: str) -> bool:
    """Whether an operation is a call of a function where code is long.

    >>> from tapegrad.compiler.llvm.scalar_ops import calls
    >>> calls("exp"), calls("mul")
    (True, False)
    """
    return name in scipy_calls.SCIPY or "vmath." in scalar_form(name)


@cache
def divides(name: str) -> bool:
    """Whether an operation is a division or a root, as slow as their vectors are wide."""
    form = scalar_form(name)
    return not calls(name) and ("/" in form or "math.sqrt" in form)


@cache
def cheap(name: str) -> bool:
    """Whether an operation takes less than to store a value and to read it again."""
    return name == "to" or not (calls(name) or divides(name) or not scalar_form(name))


class Code(Block):
    r"""Straight-line code of elementwise operations.

    Where `guarded` is true, functions that serve most arguments only are used, and `bad` gets an
    `i1` for each that says whether they were wrong: then all is to be done again by code that is
    not guarded.  `place` tells more of them apart: of each operation it takes the form at this
    place of its `chain`, the last one below 0, and `short` which forms a chain has.

    >>> from tapegrad.compiler.llvm.scalar_ops import Code
    >>> from tapegrad.compiler.llvm.ssa import Value
    >>> code = Code()
    >>> code.apply("addcmul", [Value("%a", "double"), Value("%b", "double"), Value("%c", "float")])
    double %v2
    >>> print("\n".join(code.lines))
    %v0 = fpext float %c to double
    %v1 = fmul double %b, %v0
    %v2 = fadd double %a, %v1
    """

    def __init__(self, prefix: str = "v", guarded: bool = False) -> None:
        super().__init__(prefix)
        self.place = 0 if guarded else -1
        self.short: Short = "none"
        self.bad: list[Value] = []

    def apply(self, name: str, args: Sequence[Value]) -> Value | None:
        """The result of an operation of the table, or None if it has no form for these types."""
        types = [x.type for x in args]
        if not supports(name, types):
            return None
        kind = promoted(types[1:] if name == "where" else types)
        kinds = ["i1" if name == "where" and i == 0 else kind for i in range(len(args))]
        values = [self.cast(x, t) for x, t in zip(args, kinds, strict=True)]
        operands = [Operand(self, x) for x in values]
        if name == "clamp" and kind not in FLOATS:
            lower, upper = _form(scalar_form("maximum")), _form(scalar_form("minimum"))
            return _value(upper(lower(operands[0], operands[1]), operands[2]))
        if kind[0] == "i" and name in table and table[name].integer_form:
            return form(table[name].integer_form, self, values)
        if name in scipy_calls.SCIPY:
            return scipy_calls.call(name, *operands).value
        links = chain(name, "none" if kind == "float" else self.short)
        chosen, test = links[min(self.place, len(links) - 1)]
        if test:
            self.bad.append(form(test, self, values))
        return form(chosen, self, values)

    def cast(self, value: Value, type: str) -> Value:
        """The value in another type, as NumPy's `astype` has it on this kind of machine."""
        old = value.type
        if old == type:
            return value
        if type == "i1":
            if old in FLOATS:
                return self.share("i1", f"fcmp une {value}, {literal(0, old).name}")
            return self.share("i1", f"icmp ne {value}, 0")
        if old in FLOATS:
            if type in FLOATS:
                word = "fpext" if type == "double" else "fptrunc"
                return self.share(type, f"{word} {value} to {type}")
            return self._to_integer(value, type)
        if type in FLOATS:
            word = "uitofp" if old == "i1" else "sitofp"
        elif old == "i1":
            word = "zext"
        else:
            word = "sext" if type == "i64" else "trunc"
        return self.share(type, f"{word} {value} to {type}")

    def _to_integer(self, value: Value, type: str) -> Value:
        """Rounded to zero; what has no place among the integers becomes the lowest of them."""
        bound = -float(LOWEST[type])
        x = ssa.widen(Operand(self, value))
        # Above the lowest less one, which a double tells from the lowest for i32 alone.
        inside = (x < bound) & (x >= -bound if type == "i64" else x > -bound - 1.0)
        whole = self.share(type, f"fptosi {value} to {type}")
        return ssa.select(inside, Operand(self, whole), LOWEST[type]).value


def _value(x: Operand) -> Value:
    return x.value


def form(written: str, block: Block, args: Sequence[Value]) -> Value:
    """The result of a form of `kernels.codegen.rule_codegen` in a block."""
    return _value(_form(written)(*[Operand(block, x) for x in args]))


@cache
def _form(form: str) -> Callable[..., Operand]:
    """A form as a function of operands, compiled once."""
    source = "lambda a=None, b=None, c=None, d=None: " + form.format("a", "b", "c", "d")
    function: Callable[..., Operand] = eval(source, _names())
    return function


@cache
def _names() -> dict[str, Any]:
    """What a form may speak of."""
    return {
        "vmath": _Calls(),
        "math": ssa.Math(),
        "abs": ssa.magnitude,
        "floor": ssa.floor,
        "select": ssa.select,
        "floored": ssa.floored,
        "truncated": ssa.truncated,
        "copysign": ssa.copysign,
        "width": lambda x: 64 if x.type == "i64" else 32,
        "zero": 0,
        "one": 1,
        "T": lambda x: x,  # a number of the operands' type
    }


class _Calls:
    """The functions of `vmath`, each as a call of its definition; of float32 those of `single`."""

    def __getattr__(self, name: str) -> Callable[..., Operand]:
        def call(first: Operand, *rest: Operand | float) -> Operand:
            chosen = elementary.of_type(name, first.type)
            defined = elementary.definition(chosen, first.type)
            function = elementary.symbol(chosen, first.type)
            values = [first.value]
            values += [x.value if isinstance(x, Operand) else literal(x, first.type) for x in rest]
            return Operand(first.block, first.block.call(function, defined.result, values))

        return call
