"""Scalar replacement: each element of a small array becomes a scalar of its own.

An operation on two elements is a loop nest like any other, and LLVM takes as long for it as for one
on two thousand.  Scalars are straight-line code, and moving elements (a slice, a transpose, a join)
just renames them.  `scalar_replacement_cost` says where it pays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.compiler.passes.scalar_replacement_cost import (
    KEPT,
    MAPPED,
    PRODUCT,
    REDUCED,
    REINDEXED,
    SCATTERED,
    chosen,
)
from tapegrad.ops import elementwise as e
from tapegrad.ops import shape as s
from tapegrad.ops.core import Op, table

Parts = list[int]  # the positions of the elements, in C order
# These fill with structural zeros: adding one costs nothing.
PADDING = frozenset(("embed", "only_view"))


def scalarized(graph: Graph) -> Graph:
    """Replace small arrays by scalars where that pays."""
    kinds = chosen(graph)
    return graph if kinds is None else _Scalarized(graph, kinds).done()


class _Scalarized:
    """Builds the new graph."""

    def __init__(self, graph: Graph, kinds: list[str]) -> None:
        self.graph = graph
        self.builder = Builder(graph)
        self.parts: dict[int, Parts] = {}  # of the records of the old graph
        self.zeros: dict[str, int] = {}  # structural zeros, by dtype
        self.nothing: set[int] = set()
        for position, (node, kind) in enumerate(zip(graph.nodes, kinds, strict=True)):
            if kind == KEPT:
                for a in node.args:
                    self._whole(a)
                self.builder.where[position] = self._kept(self.builder.remapped(node))
            else:
                self.parts[position] = _MADE[kind](self, node)

    def _kept(self, node: Node) -> int:
        found = None
        if not node.shape and not self.nothing.isdisjoint(node.args):
            found = self._of_nothing(node.name, node.args, node.dtype)
        return self.builder.add(node) if found is None else found

    def done(self) -> Graph:
        """The graph."""
        for position in (*self.graph.inputs, *self.graph.roots()):
            self._whole(position)
        return self.builder.done()

    # -- arrays and their elements -------------------------------------------------------------

    def _whole(self, position: int) -> None:
        """Stack a value from its elements, if that was not done."""
        where = self.builder.where
        if position in where:
            return
        node, parts = self.graph.nodes[position], self.parts[position]
        if not node.shape:
            where[position] = parts[0]
            return
        flat = (len(parts),)
        found = self.builder.add(Node(s.stack, tuple(parts), {"dim": 0}, flat, node.dtype))
        if node.shape != flat:
            shape = {"shape": node.shape}
            found = self.builder.add(Node(s.reshape, (found,), shape, node.shape, node.dtype))
        where[position] = found

    def _elements(self, position: int) -> Parts:
        """The elements of a value."""
        found = self.parts.get(position)
        if found is None:
            found = self.parts[position] = self._read(position)
        return found

    def _read(self, position: int) -> Parts:
        node, add = self.graph.nodes[position], self.builder.add
        if not node.shape:
            return [self.builder.where[position]]
        if node.value is not None:
            if node.uniform:
                return [self._number(node.value.flat[0], node.dtype)] * node.size
            return [self._number(x, node.dtype) for x in node.value.flat]
        at = (self.builder.where[position],)
        return [
            add(Node(s.getitem, at, {"index": index}, (), node.dtype))
            for index in np.ndindex(node.shape)
        ]

    def _number(self, value: Any, dtype: np.dtype[Any]) -> int:
        """A constant."""
        return self.builder.add(Node(None, (), {}, (), dtype, np.array(value, dtype)))

    def _absent(self, dtype: np.dtype[Any]) -> int:
        """A structural zero."""
        found = self.zeros.get(dtype.str)
        if found is None:
            found = self.zeros[dtype.str] = self._number(0, dtype)
            self.nothing.add(found)
        return found

    def _broadcast(self, position: int, shape: tuple[int, ...]) -> Parts:
        """The elements of a value, broadcast to a shape."""
        found, given = self._elements(position), self.graph.nodes[position].shape
        if given == shape:
            return found
        if len(found) == 1:
            return found * math.prod(shape)
        return np.broadcast_to(np.reshape(found, given), shape).ravel().tolist()

    # -- operations ----------------------------------------------------------------------------

    def _one(self, op: Op, args: Sequence[int], params: dict[str, Any], dtype: Any) -> int:
        """A scalar operation."""
        return self._kept(Node(op, tuple(args), params, (), dtype))

    def _of_nothing(self, name: str, args: Sequence[int], dtype: Any) -> int | None:
        """Fold an operation on structural zeros; None if it must be computed."""
        first, last = args[0], args[-1]
        if name == "exact" or (name in ("strong", "neg", "to") and first in self.nothing):
            return self._absent(dtype)
        if name == "add" and first in self.nothing:
            first, last = last, first
        if name in ("add", "sub") and last in self.nothing:
            return first if self.builder.nodes[first].dtype == dtype else None
        return None

    def _mapped(self, node: Node) -> Parts:
        assert node.op is not None
        each = [self._broadcast(a, node.shape) for a in node.args]
        return [
            self._one(node.op, args, node.params, node.dtype) for args in zip(*each, strict=True)
        ]

    def _combined(self, op: Op, parts: Sequence[int], dtype: Any) -> int:
        """Reduce scalars pairwise."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            rest = parts[-1:] if len(parts) % 2 else ()
            parts = [*[self._one(op, pair, {}, dtype) for pair in pairs], *rest]
        return parts[0]

    def _reduced(self, node: Node) -> Parts:
        (source,) = node.args
        shape = self.graph.nodes[source].shape
        rank = len(shape)
        if node.name == "sum_to":
            aligned = (*(1,) * (rank - len(node.shape)), *node.shape)
            dims = [d for d in range(rank) if aligned[d] == 1]
        else:
            dims = list(node.params["dim"])
        kept = [d for d in range(rank) if d not in dims]
        places = np.reshape(self._elements(source), shape).transpose(*kept, *dims)
        op = table[node.reduces]
        groups = places.reshape(node.size, -1).tolist()
        return [self._combined(op, group, node.dtype) for group in groups]

    def _reindexed(self, node: Node) -> Parts:
        """Run the forward on positions, counted from 1, to see where each element goes.

        A zero is no element.
        """
        given: list[Any] = []
        op, params = node.op, node.params
        for a in node.args:
            operand = self.graph.nodes[a]
            if given and "gather" in node.moves:
                given.append(operand.value)  # an index array
            else:
                given.append(np.reshape(self._elements(a), operand.shape) + 1)
        assert op is not None
        if node.name == "pad":
            outer = self._number(params["value"], node.dtype)
            params = {**params, "value": 0}
        elif node.name in PADDING:
            outer = self._absent(node.dtype)
        else:
            outer = self._number(0, node.dtype)
        found = np.asarray(op.forward(*given, **params)).ravel().tolist()
        return [k - 1 if k else outer for k in found]

    def _scattered(self, node: Node) -> Parts:
        """Scatter-add elements by index arrays."""
        source, *others = node.args
        assert node.op is not None
        parts, shape = self._elements(source), self.graph.nodes[source].shape
        indices = [self.graph.nodes[a].value for a in others]
        found = [self._absent(node.dtype)] * node.size
        for k, part in enumerate(parts):
            alone = np.zeros(len(parts))
            alone[k] = 1
            places = node.op.forward(alone.reshape(shape), *indices, **node.params)
            for j in np.flatnonzero(places):
                found[j] = self._one(e.add, (found[j], part), {}, node.dtype)
        return found

    def _product(self, node: Node) -> Parts:
        """A matrix product: rows times columns."""
        left, right = [np.reshape(self._elements(a), self.graph.nodes[a].shape) for a in node.args]
        left = left if left.ndim > 1 else left[None]
        right = right if right.ndim > 1 else right[:, None]
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        rows = np.broadcast_to(left, (*batch, *left.shape[-2:])).reshape(-1, *left.shape[-2:])
        right = np.broadcast_to(right, (*batch, *right.shape[-2:]))
        columns = right.reshape(-1, *right.shape[-2:]).transpose(0, 2, 1)
        times = e.exact if node.name == "product" else e.mul
        found = []
        for a, b in zip(rows.tolist(), columns.tolist(), strict=True):
            for row in a:
                for column in b:
                    pairs = zip(row, column, strict=True)
                    terms = [self._one(times, pair, {}, node.dtype) for pair in pairs]
                    found.append(self._combined(e.add, terms, node.dtype))
        return found


_MADE: dict[str, Callable[[_Scalarized, Node], Parts]] = {
    MAPPED: _Scalarized._mapped,
    REDUCED: _Scalarized._reduced,
    REINDEXED: _Scalarized._reindexed,
    SCATTERED: _Scalarized._scattered,
    PRODUCT: _Scalarized._product,
}
