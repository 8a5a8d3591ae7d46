"""Generate kernels along dimensions: a row's decomposition and its rule, run on symbols of a row.

A symbol is a value for each element of a row, or one for the whole row.  Reductions make the second
of the first, and each takes a pass over the row; those that do not wait for each other share one.
What is costly and wanted by two passes is kept where the result will stand.
"""

from __future__ import annotations

import inspect
from typing import Any

from tapegrad.kernels.codegen.rule_codegen import (
    Symbol,
    chain,
    header,
    indented,
    number,
    scalar_form,
)
from tapegrad.ops.core import Formula, Op, table

BY_HAND = {"clone", "cumsum", "cumsum_adjoint", "prod_adjoint"}  # in `scan_loops`
FORWARD = "n, inner, outer, x_at, out_at, extra, unused_1, unused_2"
ADJOINT = "n, inner, outer, g_at, x_at, y_at, out_at, extra"
LOOP = ["for j in range(n):", "    at = first + j * inner"]


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


class Rows:
    """The lines that compute an expression for one row."""

    def __init__(self, result: RowSymbol, loads: dict[str, bool]) -> None:
        self.loads = loads  # operands, and whether each has a value for every element
        self.lines: list[str] = []
        self._names: dict[Any, str] = {}  # of values for the whole row
        self._kept: Any = None  # what stands where the result will
        passes = _passes(result)
        if result.each:
            self._kept = _costly_in_two(passes, result)
        for reductions in passes:
            self._reduce(reductions)
        if result.each:
            inner: list[str] = []
            value = self._write(result, inner, {})
            self.lines += [*LOOP, *indented([*inner, f"out[at] = {value}"])]
        else:
            self.lines.append(f"out[here] = {self._write(result, self.lines, {})}")

    def _reduce(self, reductions: list[RowSymbol]) -> None:
        inner: list[str] = []
        each: dict[Any, str] = {}
        ends = []
        for symbol in reductions:
            op = table[symbol.reduces]
            name = f"r{len(self._names)}"
            self.lines.append(f"{name} = {number(op.neutral)}")
            value = self._write(symbol.args[0], inner, each)
            step = "plus({1}, {0})" if op.name == "add" else op.scalar  # in any order
            ends.append(f"{name} = {step.format(value, name)}")
            self._names[symbol.key()] = name
        if self._kept in each:
            inner.append(f"out[at] = {each[self._kept]}")
            self._names[self._kept] = "out[at]"
        self.lines += [*LOOP, *indented([*inner, *ends])]

    def _write(self, x: Any, inner: list[str], each: dict[Any, str]) -> str:
        """The name of a value, after the lines that compute it, inside of the loop or before."""
        if not isinstance(x, RowSymbol):
            return number(x)
        key = x.key()
        found = self._names.get(key) or each.get(key)
        if found is not None:
            return found
        names, lines = (each, inner) if x.each else (self._names, self.lines)
        if not x.args:
            if x.name not in self.loads:
                return x.name
            text = f"{x.name}[{'at' if x.each else 'here'}]"
        else:
            form, _ = chain(x.name, "none")[-1]
            text = form.format(*[self._write(arg, inner, each) for arg in x.args])
        name = names[key] = f"{'e' if x.each else 's'}{len(self._names)}_{len(each)}"
        lines.append(f"{name} = {text}")
        return name


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


def forward_source(op: Op) -> str:
    """The kernel that computes an operation along a dimension, of float64 in C order."""
    rows = Rows(result(op, RowSymbol("x", each=True)), {"x": True})
    return _source(FORWARD, ("x", "out"), rows.lines)


def adjoint_source(op: Op) -> str:
    """The kernel that hands the adjoint of the result on to the operand."""
    (formula,) = op.formulas
    assert isinstance(formula, Formula)
    x = RowSymbol("x", each=True)
    each = result(op, x).each
    given = PARAMETERS | {"x": x, "x_spec": x}
    given |= {name: RowSymbol(name, each=each) for name in ("g", "y")}
    expression = formula.function(*[given[name] for name in formula.reads])
    rows = Rows(expression, {"x": True, "g": each, "y": each})
    return _source(ADJOINT, ("g", "x", "y", "out"), rows.lines)


def _source(arguments: str, arrays: tuple[str, ...], lines: list[str]) -> str:
    body = [
        *[f"{name} = pointer({name}_at)" for name in arrays],
        "count, correction = T(n), T(extra)",
        "for o in range(outer):",
        "    for i in range(inner):",
        "        first, here = o * n * inner + i, o * inner + i",
        *indented(lines, 2),
        "return 0",
    ]
    return header("f8") + f"def kernel({arguments}):\n" + "\n".join(indented(body)) + "\n"
