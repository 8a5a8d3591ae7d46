"""Compress Jacobians: compute directions together that no element depends on two of.

Curtis, Powell and Reid (1974) estimate sparse Jacobians so: directions that share no element are
added up and followed as one; which of them an element belongs to is known.  Of an elementwise
function one is left, of a stencil of three points three.  Here it is done with all that is linear
in the unit vectors of `jacfwd` or `jacrev`, up to where too many directions meet; what is computed
from there on has its rows scattered to their places.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.compiler.ir.sparsity import FEWER, Patterns, moves_alone, of_rows, patterns_of
from tapegrad.compiler.passes.dead_code import without_dead
from tapegrad.ops import index as i
from tapegrad.ops import shape as s
from tapegrad.ops.core import ELEMENTWISE, Op

# What it costs, in operations on one element, to begin a nest of loops; and to scatter an element
# that a loop would compute where it is read.
NEST, WRITTEN = 256, 4


def with_compressed_jacobians(graph: Graph) -> Graph:
    """Compute directions together that share no element of any value."""
    groups: dict[int, _Group] = {}
    patterns = patterns_of(graph)
    for position, pattern in patterns.of.items():
        node = graph.nodes[position]
        group = groups.setdefault(node.shape[0], _Group(node.shape[0]))
        pairs = zip(node.args, patterns.linear_in[position], strict=True)
        if group.members.keys() >= {a for a, linear in pairs if linear}:
            group.take(position, pattern)
    paying = [group for group in groups.values() if group.pays(graph, patterns.fixed)]
    return without_dead(_Compressed(graph, paying, patterns).done()) if paying else graph


class _Group:
    """Values of as many directions, and with which others each of these is computed."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.meet = np.zeros((count + 1, count + 1), bool)  # whether an element depends on both
        self.colors = np.ones(count + 1, np.int64)  # of directions, which count from 1
        self.colors[0] = 0
        self.members: dict[int, np.ndarray] = {}  # their patterns

    @property
    def left(self) -> int:
        """How many directions are left."""
        return int(self.colors.max())

    def take(self, position: int, pattern: np.ndarray) -> None:
        """Take up a value, unless too many directions would be left."""
        if not self._disjoint(pattern):
            meet = self.meet.copy()
            for own in pattern:
                meet[own[None], pattern] = True
            colors = _colored(meet)
            if int(colors.max()) * FEWER > self.count:
                return
            self.meet, self.colors = meet, colors
        self.members[position] = pattern

    def _disjoint(self, pattern: np.ndarray) -> bool:
        """Whether no element depends on two directions of a color."""
        colors = np.sort(self.colors[pattern], 0)
        return not ((colors[1:] == colors[:-1]) & (colors[1:] > 0)).any()

    def pays(self, graph: Graph, fixed: set[int]) -> bool:
        """Whether more is saved than it takes to scatter rows."""
        nodes, members = graph.nodes, self.members
        computed = [p for p in members if nodes[p].op is not None and not nodes[p].moves]
        saved = sum(nodes[p].size for p in computed) * (1 - self.left / self.count)
        read = dict.fromkeys(graph.roots(), 0)  # for what is scattered, how often it is written
        for position, node in enumerate(nodes):
            if position not in members and node.op is not None and not node.moves:
                in_loops = node.op.kind is ELEMENTWISE or bool(node.reduces)
                read |= {a: max(in_loops, read.get(a, 0)) for a in node.args}
        scattered = [p for p in read if p in members and p not in fixed]
        written = [p for p in scattered if read[p] and self.together(members[p]) is None]
        cost = NEST * (1 + len(scattered)) + WRITTEN * sum(nodes[p].size for p in written)
        return saved > cost

    def together(self, pattern: np.ndarray) -> tuple[slice, slice] | None:
        """The rows that differ from zero, all and those left; None unless they are whole."""
        flat = pattern.reshape(len(pattern), prod(pattern.shape[1:]))
        directions = np.sort(flat[:, 0])
        directions = directions[directions > 0]
        if not len(directions) or (flat != flat[:, :1]).any():
            return None
        colors = self.colors[directions]
        low, first, count = int(directions[0]) - 1, int(colors[0]) - 1, len(directions)
        rows = np.arange(1, count + 1)
        if (directions != rows + low).any() or (colors != rows + first).any():
            return None
        return slice(low, low + count), slice(first, first + count)

    def compressed(self, value: np.ndarray, pattern: np.ndarray) -> np.ndarray:
        """The sums of rows of a color."""
        found = np.zeros((self.left + 1, *value.shape[1:]), value.dtype)
        known = np.take_along_axis(value, np.maximum(pattern - 1, 0), 0)
        np.put_along_axis(found, self.colors[pattern], known, 0)
        return found[1:]

    def places(self, pattern: np.ndarray) -> np.ndarray:
        """Which element of the sums an element is, from 1 on, or 0: none."""
        size = prod(pattern.shape[1:])
        found = np.zeros((self.count + 1, *pattern.shape[1:]), np.int64)
        within = np.arange(size).reshape(pattern.shape[1:])
        np.put_along_axis(found, pattern, self.colors[pattern] * size + within - size + 1, 0)
        return found[1:]


def _colored(meet: np.ndarray) -> np.ndarray:
    """The least color, from 1 on, that no earlier direction has which a direction meets."""
    colors = np.zeros(len(meet), np.int64)
    for d in range(1, len(meet)):
        taken = np.zeros(d + 1, bool)
        taken[0] = True
        taken[colors[:d][meet[d, :d]]] = True
        colors[d] = np.argmin(taken)
    return colors


# -- the graph of fewer directions ---------------------------------------------------------------


class _Scattered(NamedTuple):
    """A value as elements of another one: which ones, from 1 on; 0 is zero."""

    source: int
    places: np.ndarray


class _Compressed(Builder):
    """Computes the directions that are left, and scatters their rows where others are read."""

    def __init__(self, graph: Graph, groups: list[_Group], patterns: Patterns) -> None:
        super().__init__(graph)
        self.linear_in = patterns.linear_in
        self.group = {p: group for group in groups for p in group.members}
        self.rows: dict[int, int] = {}  # of records of the old graph, the rows that are left
        self.scattered: dict[int, _Scattered] = {}
        for position, node in enumerate(graph.nodes):
            if position in self.group:
                self._compress(position, node)
            if position in patterns.fixed:  # of which no rows are scattered
                self.copy(position)
            elif position not in self.group and not self._move(position, node):
                for a in node.args:
                    self._whole(a)
                self.copy(position)
        for root in graph.roots():
            self._whole(root)

    def _compress(self, position: int, node: Node) -> None:
        """Compute the rows that are left of a record."""
        group = self.group[position]
        made = of_rows(node, group.left)
        if node.value is not None:
            made.value = group.compressed(node.value, group.members[position])
        else:
            args = []
            for a, linear in zip(node.args, self.linear_in[position], strict=True):
                if linear:
                    args.append(self.rows[a])
                else:
                    self._whole(a)
                    args.append(self.where[a])
            made.args = tuple(args)
        self.rows[position] = self.add(made)

    def _move(self, position: int, node: Node) -> bool:
        """Move the places of what is scattered rather than its elements."""
        if not moves_alone(node) or len(node.args) != 1 or node.args[0] in self.where:
            return False
        assert node.op is not None
        found = self._scatter(node.args[0])
        places = np.asarray(node.op.forward(found.places, **node.params))
        self.scattered[position] = found._replace(places=places)
        return True

    def _scatter(self, position: int) -> _Scattered:
        if position not in self.scattered:
            group = self.group[position]
            places = group.places(group.members[position])
            self.scattered[position] = _Scattered(self.rows[position], places)
        return self.scattered[position]

    def _whole(self, position: int) -> None:
        """Have all rows of a value."""
        if position in self.where:
            return
        node, group, at = self.graph.nodes[position], self.group.get(position), None
        if group is not None and (rows := group.together(group.members[position])) is not None:
            at = self._embedded(node, self.rows[position], *rows)
        self.where[position] = self._written(node, self._scatter(position)) if at is None else at

    def _embedded(self, node: Node, source: int, rows: slice, left: slice) -> int:
        """Rows among zeros."""
        shape = (left.stop - left.start, *node.shape[1:])
        part = Node(s.getitem, (source,), {"index": (left,)}, shape, node.dtype)
        params = {"index": (rows,), "shape": node.shape}
        return self.add(Node(s.embed, (self.add(part),), params, node.shape, node.dtype))

    def _written(self, node: Node, found: _Scattered) -> int:
        """The value as elements that are written into zeros."""
        source, places = self.nodes[found.source], found.places.reshape(-1)
        target = np.flatnonzero(places)
        at = self._flat(s.reshape, found.source, source.size, {"shape": (source.size,)})
        if not np.array_equal(places[target], np.arange(1, source.size + 1)):
            chosen = self._constant(places[target] - 1)
            at = self._flat(i.index, at, len(target), {"plan": (i.HOLE,)}, chosen)
        params = {"plan": (i.HOLE,), "shape": (node.size,)}
        at = self._flat(i.unindex, at, node.size, params, self._constant(target))
        return self.add(Node(s.reshape, (at,), {"shape": node.shape}, node.shape, node.dtype))

    def _flat(self, op: Op, at: int, size: int, params: dict[str, Any], *others: int) -> int:
        return self.add(Node(op, (at, *others), params, (size,), self.nodes[at].dtype))

    def _constant(self, value: np.ndarray) -> int:
        return self.add(Node(None, (), {}, value.shape, value.dtype, value))
