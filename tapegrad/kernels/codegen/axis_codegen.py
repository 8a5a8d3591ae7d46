"""Generate kernels along dimensions: a row's decomposition and its rule, run on symbols of a row.

A symbol is a value for each element of a row, or one for the whole row.  Reductions make the second
of the first, and each takes a pass over the row; those that do not wait for each other share one.
What is costly and wanted by two passes is kept where the result will stand.  One kernel does all
passes, of many rows if they are small; where few rows are long, there is a kernel for each pass.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

from tapegrad.kernels.codegen.rule_codegen import (
    Symbol,
    chain,
    header,
    indented,
    names_in,
    number,
    scalar_form,
)
from tapegrad.kernels.sweep.sweep_abi import DECIMAL_BITS
from tapegrad.ops.core import CUSTOM, Formula, Op, table

BY_HAND = {  # in `scan_loops`
    "clone", "cumprod", "cumprod_adjoint", "cumsum", "cumsum_adjoint", "logcumsumexp",
    "logcumsumexp_adjoint", "prod_adjoint",
}  # fmt: skip
Layout = Literal["small", "row", "columns"]
BLOCK, GROUP = 1024, 1 << 16  # elements of a long row that are added up before they join a total
STRIP = 128  # columns that are done side by side
COLUMNS = "for i in range(width):"
LOOPS = {
    "small": ["for j in range(n):", "    at = first + j * inner"],
    "row": ["for at in range(n):"],
    "columns": ["for j in range(rows):", "    " + COLUMNS, "        at = j * inner + strip + i"],
}
# A number that `axis_layout.packed_decimal` has packed.
DECIMAL = [
    "scale = 1.0",
    f"for _ in range(extra >> {DECIMAL_BITS}):",
    "    scale *= 10.0",
    f"eps = T((extra & {(1 << DECIMAL_BITS) - 1}) / scale)",
]
HERE = {"small": "o * inner + i", "row": "0", "columns": "strip + i"}


class Unknown(Exception):
    """An operation that has no form for the elements of a row."""


class RowSymbol(Symbol):
    """A symbol for each element of a row, or for the row (`each` says which)."""

    __slots__ = ("each", "reduces")

    def __init__(
        self, name: str, args: tuple[Any, ...] = (), each: bool | None = None, reduces: str = ""
    ) -> None:
        super().__init__(name, args)
        self.reduces = reduces
        self.each: bool = not reduces and any(_each(arg) for arg in args) if each is None else each

    @property
    def shape(self) -> tuple[RowSymbol]:
        """One dimension, of the length of a row."""
        return (RowSymbol("count", each=False),)

    @staticmethod
    def _tapegrad_run(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if op.decomposition is not None and "f" in op.kinds:
            return op.decomposition(*args, **params)
        if op.reduces and args[0].each:
            return RowSymbol(op.name, args, reduces=op.reduces)
        if op.moves in ("identity", "reshape", "broadcast"):
            return args[0]
        if not op.scalar:
            raise Unknown(op.name)
        plain = Symbol._tapegrad_run(op, args, params)
        return RowSymbol(plain.name, plain.args)

    def key(self) -> tuple[Any, ...]:
        """What is equal of symbols that are computed alike."""
        return self.name, *(arg.key() if isinstance(arg, RowSymbol) else arg for arg in self.args)


def _each(x: Any) -> bool:
    return isinstance(x, RowSymbol) and x.each


def _for_row(x: Any) -> bool:
    return isinstance(x, RowSymbol) and not x.each


class Rows:
    """The lines that compute an expression for one row, or for a strip of neighbouring columns.

    With `only` they are those of one pass, which finds in `known` what the passes before have
    reduced, and puts into `part` what it reduces itself.
    """

    def __init__(
        self, result: RowSymbol, loads: dict[str, bool], layout: Layout, only: int | None = None,
        dtype: str = "f8",
    ) -> None:  # fmt: skip
        self.loads = loads  # operands, and whether each has a value for every element
        self.layout = layout
        self.dtype = dtype
        self.here = HERE[layout]
        self.lines: list[str] = []
        self._names: dict[Any, str] = {}  # of values for the whole row
        self._kept: Any = None  # what stands where the result will
        self._reduced = 0
        passes = _passes(result)
        if result.each:
            self._kept = _costly_in_two(passes, result)
        for k, reductions in enumerate(passes):
            self._reduce(reductions, known=only is not None and k < only)
            if k == only:
                names = [self._names[x.key()] for x in reductions]
                self.lines += [f"part[{i}] = {name}" for i, name in enumerate(names)]
                return
        inner: list[str] = []
        value = self._write(result, inner, {})
        if result.each:
            self._loop([*inner, f"out[at] = {value}"])
        else:
            self._set(f"out[{self.here}]", value)

    def _set(self, target: str, text: str) -> None:
        """An assignment for the whole row."""
        line = f"{target} = {text}"
        self.lines += [COLUMNS, "    " + line] if self.layout == "columns" else [line]

    def _name(self, name: str) -> str:
        """What a value for the whole row is called; one for each column of a strip."""
        if self.layout != "columns":
            return name
        self.lines.append(f"{name} = room({STRIP})")
        return f"{name}[i]"

    def _loop(self, body: list[str], sums: Sequence[str] = ()) -> None:
        """A loop over the elements of a row; long sums are added up block by block."""
        if self.layout == "row" and sums:
            self.lines += [
                f"for begin in range(0, n, {GROUP}):",
                f"    end = min(begin + {GROUP}, n)",
                *[f"    {name}_group = zero" for name in sums],
                f"    for start in range(begin, end, {BLOCK}):",
                *[f"        {name}_block = zero" for name in sums],
                f"        for at in range(start, min(start + {BLOCK}, end)):",
                *indented(body, 3),
                *[f"        {name}_group += {name}_block" for name in sums],
                *[f"    {name} += {name}_group" for name in sums],
            ]
        else:
            head = LOOPS[self.layout]
            self.lines += [*head, *indented(body, 2 if self.layout == "columns" else 1)]

    def _reduce(self, reductions: list[RowSymbol], known: bool) -> None:
        inner: list[str] = []
        each: dict[Any, str] = {}
        ends, sums = [], []
        for symbol in reductions:
            op = table[symbol.reduces]
            value = self._write(symbol.args[0], inner, each)
            name = f"known[{self._reduced + 1}]" if known else self._name(f"r{self._reduced}")
            self._reduced += 1
            self._names[symbol.key()] = name
            if known:
                continue
            self._set(name, number(op.neutral))
            if op.name == "add" and self.layout == "row":
                sums.append(name)
                name += "_block"
            ends.append(f"{name} = {(op.combine or op.scalar).format(value, name)}")
        if self._kept in each:
            inner.append(f"out[at] = {each[self._kept]}")
            self._names[self._kept] = "out[at]"
        if not known:
            self._loop([*inner, *ends], sums)

    def _write(self, x: Any, inner: list[str], each: dict[Any, str]) -> str:
        """The name of a value, after the lines that compute it, inside of the loop or before."""
        if not isinstance(x, RowSymbol):
            return number(x)
        key = x.key()
        found = self._names.get(key) or each.get(key)
        if found is not None:
            return found
        if self.layout != "small" and x.name == "div" and x.each and _for_row(x.args[1]):
            each[key] = self._write(_by_factor(*x.args), inner, each)
            return each[key]
        if not x.args:
            if x.name not in self.loads:
                return x.name
            text = f"{x.name}[{'at' if x.each else self.here}]"
        else:
            form = chain(x.name, "none")[-1][0]
            text = form.format(*[self._write(arg, inner, each) for arg in x.args])
        if x.each:
            name = each[key] = f"e{len(self._names)}_{len(each)}"
            inner.append(f"{name} = {text}")
        else:
            name = self._names[key] = self._name(f"s{len(self._names)}")
            self._set(name, text)
        return name


def _by_factor(x: RowSymbol, divisor: RowSymbol) -> Symbol:
    """A quotient as a product, with a scale where the inverse of the divisor would overflow."""
    size = RowSymbol("abs", (1.0 / divisor,))
    scale = RowSymbol("where", (RowSymbol("lt", (size, math.inf)), 1.0, 2.0**64))
    return x * (1.0 / (divisor * scale)) * scale


def _subexpressions(x: Any) -> list[RowSymbol]:
    """A symbol and what it is made of, operands first."""
    if not isinstance(x, RowSymbol):
        return []
    return [s for arg in x.args for s in _subexpressions(arg)] + [x]


def _passes(result: RowSymbol) -> list[list[RowSymbol]]:
    """The reductions of each pass."""
    levels: dict[Any, int] = {}
    passes: list[list[RowSymbol]] = []
    for x in _subexpressions(result):
        if x.key() in levels:
            continue
        level = max((levels[a.key()] for a in x.args if isinstance(a, RowSymbol)), default=0)
        levels[x.key()] = level + bool(x.reduces)
        if x.reduces:
            passes += [[] for _ in range(level + 1 - len(passes))]
            passes[level].append(x)
    return passes


def _costly_in_two(passes: list[list[RowSymbol]], result: RowSymbol) -> Any:
    """The largest expression that calls a function and is wanted by two passes."""
    wanted: list[set[Any]] = []
    found: dict[Any, int] = {}
    for outputs in [*passes, [result]]:
        here: set[Any] = set()
        for output in outputs:
            for root in output.args if output.reduces else (output,):
                here |= _inside(root, found)
        wanted.append(here)
    twice = {k for i, a in enumerate(wanted) for b in wanted[i + 1 :] for k in a & b if found[k]}
    return max(twice, key=found.__getitem__, default=None)


def _inside(x: Any, sizes: dict[Any, int]) -> set[Any]:
    """The values for each element that a pass computes; `sizes` of those that call functions."""
    if not isinstance(x, RowSymbol) or x.reduces or not x.each:
        return set()
    below = [_inside(arg, sizes) for arg in x.args]
    key = x.key()
    calls = bool(x.args) and "vmath." in scalar_form(x.name)
    size = sum(sizes.get(arg.key(), 0) for arg in x.args if isinstance(arg, RowSymbol))
    sizes[key] = size + 1 if calls or size else 0
    return set().union({key}, *below)


# Static parameters along the one dimension of a row; there are loops for this norm alone.
PARAMETERS = {
    "dim": (0,),
    "keepdim": False,
    "p": 2.0,
    "correction": RowSymbol("correction", each=False),
    "eps": RowSymbol("eps", each=False),
}


def result(op: Op, x: RowSymbol) -> RowSymbol:
    """What an operation makes of a row."""
    params = {}
    if op.decomposition is not None:
        names = inspect.signature(op.decomposition).parameters
        params = {name: value for name, value in PARAMETERS.items() if name in names}
    found = RowSymbol._tapegrad_run(op, (x,), params)
    assert isinstance(found, RowSymbol)
    return found


def _expression(op: Op, adjoint: bool) -> tuple[RowSymbol, dict[str, bool]]:
    """What a kernel computes, and the arrays it reads: whether each has a value per element."""
    x = RowSymbol("x", each=True)
    found = result(op, x)
    if not adjoint:
        return found, {"x": True}
    (formula,) = op.formulas
    assert isinstance(formula, Formula)
    given = PARAMETERS | {"x": x, "x_spec": x}
    given |= {name: RowSymbol(name, each=found.each) for name in ("g", "y")}
    expression = formula.function(*[given[name] for name in formula.reads])
    return expression, {"g": found.each, "x": True, "y": found.each}


def has_adjoint(op: Op) -> bool:
    """Whether there is a kernel that hands the adjoint of the result on to the operand."""
    return bool(op.axis) and op.kind == CUSTOM and f"{op.name}_adjoint" not in BY_HAND


@cache
def reductions(op: Op, adjoint: bool) -> list[list[Any]]:
    """The ufuncs by which each pass over a row takes elements together."""
    passes = _passes(_expression(op, adjoint)[0])
    return [[table[x.reduces].forward for x in some] for some in passes]


@cache
def source(
    op: Op, adjoint: bool, layout: Layout = "small", dtype: str = "f8", only: int | None = None
) -> str:
    """The kernel that computes an operation along a dimension, or its adjoint, in C order.

    A kernel of small arrays takes `outer` blocks of n elements that are `inner` apart.  Of large
    ones it takes one row of n elements, or n columns of `rows` elements.
    """
    expression, loads = _expression(op, adjoint)
    lines = Rows(expression, loads, layout, only, dtype).lines
    arrays = [*loads, "out"]
    arguments = ["n", *[f"{name}_at" for name in arrays], "extra"]
    if layout == "small":
        arguments[1:1] = ["inner", "outer"]
        lines = [
            "for o in range(outer):",
            "    for i in range(inner):",
            "        first = o * n * inner + i",
            *indented(lines, 2),
        ]
    elif layout == "columns":
        arguments += ["rows", "inner"]
        lines = [f"for strip in range(0, n, {STRIP}):", f"    width = min({STRIP}, n - strip)",
                 *indented(lines)]  # fmt: skip
    elif only is not None:
        arguments += ["known_at", "part_at"]
        arrays += ["known", "part"]
    arguments += [f"unused_{i}" for i in range(8 - len(arguments))]
    length = "T(rows)" if layout == "columns" else "T(n)" if only is None else "known[0]"
    body = [
        *[f"{name} = pointer({name}_at)" for name in arrays],
        f"count, correction = {length}, T(extra)",
        *(DECIMAL if "eps" in names_in(expression) else []),
        *lines,
        "return 0",
    ]
    return header(dtype) + "\n".join([f"def kernel({', '.join(arguments)}):", *indented(body), ""])
