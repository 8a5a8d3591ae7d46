"""Gather rows before what is computed row by row, and scatter adjoints of rows after it.

Of `f(x)[rows]` only those rows of `f(x)` are computed, if nothing else reads the others and `rows`
is known.  The adjoint of such a gather is zero in all other rows, and so is what linear operations
make of it: they take its rows alone, and what is read of it as a whole is scattered at the end.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.ir.graph import Builder, Graph, Node, adds_to_zeros
from tapegrad.ops import index as i
from tapegrad.ops import shape as s
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.tape.shape_table import Shape

FEWER = 2  # a gather moves if it leaves one row of so many
LINE = 8  # and so many elements, which are read from memory together, anyway for one of them


class Rows(NamedTuple):
    """Some rows of arrays of a length, no two alike: as bytes, which compare quickly."""

    length: int
    numbers: bytes
    axis: int = 0  # 1: columns of a matrix

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.numbers) // 8


ALL = Rows(-1, b"")


class Choice(NamedTuple):
    """What a gather reads, or a scatter writes: rows, and its index into these alone."""

    rows: Rows
    within: Any  # of a slice the index, of an index array its replacement; None: all of the rows


class Zeros(NamedTuple):
    """Of some records the rows that may differ from zero; of which other zeros may be -0.0."""

    rows: dict[int, Rows]
    negative: set[int]


def with_early_gathers(graph: Graph) -> Graph:
    """Compute a few rows in place of all, where only those are read or differ from zero."""
    choices = _choices(graph)
    zeros = _zero_elsewhere(graph, choices)
    if not choices and not zeros.rows:
        return graph
    reads = _reads(graph, choices, zeros)
    fewer = any(
        rows is not ALL and rows is not None and node.op is not None and not _scatters(node)
        for node, (rows, _) in zip(graph.nodes, reads, strict=True)
    )
    return _Rewrite(graph, choices, zeros.rows, reads).done() if fewer else graph


# -- which rows --------------------------------------------------------------------------------


def _gathers(node: Node) -> bool:
    return node.name == "getitem" or node.moves == "gather"


def _scatters(node: Node) -> bool:
    return node.name == "embed" or (node.moves == "scatter add" and adds_to_zeros(node))


def _choices(graph: Graph) -> dict[int, Choice]:
    """What gathers and scatters name, where that is few rows and known."""
    of_rows = "gather", "scatter add"
    named = "getitem", "embed"
    ops = {o for o in graph.ops() if o.name in named or getattr(o, "moves", "") in of_rows}
    found: dict[int, Choice] = {}
    for position, node in enumerate(graph.nodes):
        if node.op in ops and (choice := _choice(graph, node)) is not None:
            found[position] = choice
    return found


def _choice(graph: Graph, node: Node) -> Choice | None:
    """The rows that a gather or a scatter names, if they are few and known."""
    if not _gathers(node) and not _scatters(node):
        return None
    shape = node.shape if _scatters(node) else graph.nodes[node.args[0]].shape
    if not shape:
        return None
    n = shape[0]
    within: Any = None
    if len(node.args) == 1:
        first, *others = node.params["index"] or (...,)
        if not isinstance(first, (int, slice)):
            return None
        sliced = isinstance(first, slice)
        numbers = np.arange(n)[first].reshape(-1)
        if not sliced or any(part is not ... and part != slice(None) for part in others):
            within = (slice(None) if sliced else 0, *others)
    else:
        value = graph.nodes[node.args[1]].value
        plan = node.params.get("plan", (i.HOLE,) if node.params.get("dim") == 0 else (...,))
        if value is None or value.dtype != np.int64 or plan[0] is not i.HOLE:
            return None
        if not ((-n <= value) & (value < n)).all():
            return None
        numbers, inverse = np.unique(value % n, return_inverse=True)
        if plan == (i.HOLE,) and value.shape == numbers.shape:
            numbers = value % n
        else:
            within = inverse.reshape(value.shape)
    rows = _if_fewer(shape, numbers)
    return None if rows is None else Choice(rows, within)


def _if_fewer(shape: Shape, numbers: np.ndarray) -> Rows | None:
    """Some rows of an array, if they are few."""
    steps = np.diff(numbers)
    share = 1 if (steps == steps[:1]).all() else LINE // max(1, prod(shape[1:]))
    if not 0 < numbers.size * max(FEWER, share) <= shape[0]:
        return None
    return Rows(shape[0], numbers.astype(np.int64).tobytes())


def _row_operands(graph: Graph, node: Node, rows: Rows) -> list[int]:
    """The operands of which a record reads some rows to compute those; none if it reads others."""
    shapes = [graph.nodes[a].shape for a in node.args]
    n, name, rank, params = rows.length, node.name, len(node.shape), node.params
    if node.op is None or node.shape[rows.axis : rows.axis + 1] != (n,):
        return []
    if rows.axis:
        return [0] if name == "permute" and params["dims"] == (1, 0) else []
    alike = [k for k, shape in enumerate(shapes) if len(shape) == rank and shape[0] == n]
    if node.op.kind is ELEMENTWISE or name in ("to", "expand"):
        return alike
    if name in ("matmul", "product"):
        deep = max(map(len, shapes))
        batched = [k for k in (0, 1) if len(shapes[k]) == deep and shapes[k][0] == n]
        return batched if deep > 2 else [0][: len(shapes[0]) - 1]
    separate = (
        name == "reshape"
        or (name == "permute" and params["dims"][0] == 0)
        or (name in ("getitem", "embed") and params["index"][:1] == (slice(None),))
        or (name == "sum_to" and alike == [0])
        or (node.reduces != "" and 0 not in params.get("dim", (0,)))
    )
    return [0] if separate and shapes[0][:1] == (n,) else []


def _zero_elsewhere(graph: Graph, choices: dict[int, Choice]) -> Zeros:
    """Of each record the rows that alone may differ from zero, if that is known."""
    zero: dict[int, Rows] = {}
    negative: set[int] = set()
    for position, node in enumerate(graph.nodes):
        if node.value is not None and node.value.ndim and node.dtype.kind == "f":  # of an adjoint
            others = tuple(range(1, node.value.ndim))
            rows = _if_fewer(node.shape, np.flatnonzero(node.value.any(axis=others)))
            flips = bool(np.signbit(node.value).any())
        elif position in choices and _scatters(node):
            rows, flips = choices[position].rows, False
        elif node.args and node.args[0] in zero:
            rows = zero[node.args[0]]
            kept = _keeps_zero(graph, node, zero) and _row_operands(graph, node, rows)[:1] == [0]
            rows = rows if kept else None
            flips = node.name in ("neg", "mul", "div") or not negative.isdisjoint(node.args)
            flips = flips and node.name not in ("strong", "product")
        else:
            continue
        if rows is not None:
            zero[position] = rows
            if flips:
                negative.add(position)
    return Zeros(zero, negative)


def _keeps_zero(graph: Graph, node: Node, zero: dict[int, Rows]) -> bool:
    """Whether a record computes zeros where its first operand is zero."""
    if node.name in ("mul", "div"):
        value = graph.nodes[node.args[1]].value
        finite = value is not None and np.isfinite(value).all()
        return bool(finite and (node.name == "mul" or np.all(value)))
    if node.name in ("strong", "product"):
        return True
    linear = node.name in ("neg", "add", "sub") or (
        isinstance(node.op, Op) and node.op.jointly_linear
    )
    return bool(linear) and all(zero.get(a) == zero[node.args[0]] for a in node.args)


def _summed(graph: Graph, node: Node, zero: dict[int, Rows]) -> tuple[Rows, ...]:
    """What a sum over rows, or a product that is one, reads of its operands."""
    rows = zero.get(node.args[-1]) if node.args else None
    if rows is None:
        return ()
    *others, source = [graph.nodes[a].shape for a in node.args]
    if node.name == "product" and len(others[0]) == 2 and len(source) <= 2:
        return (rows._replace(axis=1), rows)
    over = node.name == "sum" and 0 in node.params["dim"]
    fewer = len(node.shape) < len(source) or node.shape[:1] == (1,)
    return (rows,) if over or (node.name == "sum_to" and fewer) else ()


Reads = tuple[Rows | None, tuple[Rows, ...]]  # which rows of a record to compute, and from which


def _reads(graph: Graph, choices: dict[int, Choice], zeros: Zeros) -> list[Reads]:
    """What to compute of each record, `ALL` rows or some, and the rows of its operands for it."""
    wanted: list[Rows | None] = [None] * len(graph.nodes)
    found: list[Reads] = [(None, ())] * len(graph.nodes)
    for root in graph.roots():
        wanted[root] = ALL
    for position in range(len(graph.nodes) - 1, -1, -1):
        node, rows, zero = graph.nodes[position], wanted[position], zeros.rows.get(position)
        if rows is None:
            continue
        choice, args = choices.get(position), node.args
        summed = args and args[-1] in zeros.rows
        if rows is ALL and zero is None and choice is None and not summed:
            found[position] = ALL, (ALL,) * len(args)
            for a in args:
                wanted[a] = ALL
            continue
        if zero is not None and position not in zeros.negative:
            rows = zero
        reads = [ALL] * len(node.args)
        if choice is not None:
            rows = choice.rows if _scatters(node) else ALL
            if _gathers(node):
                reads[0] = choice.rows
        elif over := _summed(graph, node, zeros.rows):
            rows, reads = ALL, list(over)
        elif operands := _row_operands(graph, node, rows):
            for k in operands:
                reads[k] = rows._replace(axis=0)
        else:
            rows = ALL
        found[position] = rows, tuple(reads)
        for a, read in zip(node.args, reads, strict=True):
            wanted[a] = read if wanted[a] in (None, read) else ALL
    return found


# -- the graph of these ------------------------------------------------------------------------


class _Rewrite(Builder):
    """The graph that computes of each record the rows that are read."""

    def __init__(
        self, graph: Graph, choices: dict[int, Choice], zero: dict[int, Rows], reads: list[Reads]
    ) -> None:
        super().__init__(graph)
        self.zero = zero
        self.some: dict[tuple[int, Rows], int] = {}  # of records of the old graph, some rows
        for position, node in enumerate(graph.nodes):
            rows, given = reads[position]
            if rows is None and node.op is not None:
                continue
            args = tuple([self._of(a, read) for a, read in zip(node.args, given, strict=True)])
            choice = choices.get(position)
            if choice is None:
                at = self.add(_of_fewer(node.on(args), rows or ALL))
            else:
                at = self._within(node.on(args), choice)
            if rows in (None, ALL):
                self.where[position] = at
            else:
                assert rows is not None
                self.some[position, rows] = at
        for root in graph.roots():
            self._of(root, ALL)

    def _within(self, node: Node, choice: Choice) -> int:
        """A gather from, or a scatter to, the chosen rows alone."""
        if choice.within is None:
            return node.args[0]
        rows = choice.rows if _scatters(node) else ALL
        if len(node.args) == 1:
            params = {**node.params, "index": choice.within}
            node = Node(node.op, node.args, params, node.shape, node.dtype)
        else:
            node = node.on((node.args[0], self._constant(choice.within), *node.args[2:]))
        return self.add(_of_fewer(node, rows))

    def _of(self, position: int, rows: Rows) -> int:
        """Those rows of a record: computed, or gathered from all; or scattered to all."""
        node, zero = self.graph.nodes[position], self.zero.get(position)
        if rows == ALL:
            if position not in self.where:
                assert zero is not None
                at = self.some[position, zero]
                self.where[position] = self._moved(at, zero, node, s.embed, i.unindex)
            return self.where[position]
        if (position, rows) not in self.some:
            like = _of_fewer(Node(None, (), {}, node.shape, node.dtype), rows)
            at = self._moved(self._of(position, ALL), rows, like, s.getitem, i.index)
            self.some[position, rows] = at
        return self.some[position, rows]

    def _moved(self, at: int, rows: Rows, like: Node, sliced: Any, gathered: Any) -> int:
        """A gather or a scatter of rows: by a slice if they are evenly spaced."""
        numbers = np.frombuffer(rows.numbers, np.int64)
        step = int(numbers[1] - numbers[0]) if rows.size > 1 else 1
        even = step > 0 and bool((np.diff(numbers) == step).all())
        part: Any = slice(int(numbers[0]), int(numbers[-1]) + 1, step) if even else i.HOLE
        params = {"index" if even else "plan": (*(slice(None),) * rows.axis, part)}
        if sliced is s.embed:
            params["shape"] = like.shape
        args = (at,) if even else (at, self._constant(numbers))
        return self.add(Node(sliced if even else gathered, args, params, like.shape, like.dtype))

    def _constant(self, value: np.ndarray) -> int:
        return self.add(Node(None, (), {}, value.shape, value.dtype, value))


def _of_fewer(node: Node, rows: Rows) -> Node:
    """A record on some rows."""
    if rows == ALL:
        return node
    shape = (*node.shape[: rows.axis], rows.size, *node.shape[rows.axis + 1 :])
    params = {**node.params, "shape": shape} if "shape" in node.params else node.params
    return Node(node.op, node.args, params, shape, node.dtype)
