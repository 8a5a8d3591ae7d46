"""Forward what is stored in an array to where it is read: `y[k] = v`, and later `y[k]`.

A loop of Python that writes an array in place is a chain of records, each of which gives the whole
array anew.  A read of an entry that was written is the value itself; and an array most of whose
entries were written is the stack of these.  Then nothing reads the chain, and the loop can be
re-rolled as one that collects its results in a list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container
from itertools import product
from math import prod
from typing import Any

from tapegrad.compiler.ir.graph import Builder, Graph, Node, Rewritten
from tapegrad.ops.index import assign
from tapegrad.ops.shape import clone, expand, getitem, reshape, stack, to

MANY = 8  # records of a chain that pay for a pass
LARGEST = 1 << 14  # entries of an array that becomes a stack

Key = tuple[int, ...]


def forwarded(graph: Graph, blocked: Container[int] = ()) -> Rewritten:
    """Forward stores to loads; gradients do not pass the records that are `blocked`."""
    if not may_forward(graph.nodes):
        return Rewritten(graph, {}, blocked)
    writer = _Writer(graph, blocked)
    for position in range(len(graph.nodes)):
        writer.step(position)
    for position in graph.roots():
        writer.whole(position)
    where = writer.where
    return Rewritten(writer.done(), where, {where[p] for p in where if p in blocked})


def may_forward(nodes: list[Node]) -> bool:
    """Whether there is anything to look at."""
    return sum(node.op is assign for node in nodes) >= MANY


class _Chain:
    """The records that write one array in turn: what stood there before, and what each wrote."""

    def __init__(self, base: int, length: int) -> None:
        self.base = base
        self.length = length  # of the keys: how many numbers choose an entry
        self.last = 0
        self.stacked = 0  # how many there were when the array was last made of its entries
        self.entries: dict[Key, tuple[list[int], list[int]]] = {}

    def write(self, key: Key, value: int) -> int:
        """Note the value of an entry, a record of the old graph; returns the version."""
        self.last += 1
        versions, values = self.entries.setdefault(key, ([], []))
        versions.append(self.last)
        values.append(value)
        return self.last

    def read(self, key: Key, version: int) -> int | None:
        """The value of an entry at a version; None: that of the base."""
        found = self.entries.get(key)
        if found is None:
            return None
        k = bisect_right(found[0], version)
        return found[1][k - 1] if k else None


class _Writer(Builder):
    """Builds the graph in which entries are forwarded."""

    def __init__(self, graph: Graph, blocked: Container[int]) -> None:
        super().__init__(graph)
        self.blocked = blocked
        self.versions: dict[int, tuple[_Chain, int]] = {}
        self.made: dict[Any, int] = {}  # the records of entries, in the shape that they have there

    def step(self, position: int) -> None:
        """Append what a record becomes."""
        node = self.graph.nodes[position]
        if node.op is getitem and position not in self.blocked:
            found = self._read(node)
            if found is not None:
                self.where[position] = found
                return
        if node.op is clone and position not in self.blocked and node.args[0] in self.versions:
            self.versions[position] = self.versions[node.args[0]]  # which is about to be written
        elif node.op is not assign:
            for a in node.args:
                self.whole(a)
        self.copy(position)
        if node.op is assign and position not in self.blocked:
            self._write(position, node)

    def _write(self, position: int, node: Node) -> None:
        key = _numbers(node.params["index"], node.shape)
        if key is None or len(key[0]) == 0 or key[1]:
            return
        entry, _ = key
        array, value = node.args
        chain, version = self.versions.get(array, (None, 0))
        if chain is None or chain.last != version or chain.length != len(entry):
            chain = _Chain(array, len(entry))
        self.versions[position] = chain, chain.write(entry, value)

    def _read(self, node: Node) -> int | None:
        """The record of what a load reads, if it reads within an entry that was written."""
        array = node.args[0]
        key = _numbers(node.params["index"], self.graph.nodes[array].shape)
        if key is None or array not in self.versions:
            return None
        numbers, rest = key
        length = self.versions[array][0].length
        if len(numbers) < length:
            return None
        entry = self._entry(array, numbers[:length])
        if entry is None:
            return None
        left = (*numbers[length:], *rest)
        if not left:
            return entry
        return self.add(Node(getitem, (entry,), {"index": (*left, ...)}, node.shape, node.dtype))

    def _entry(self, array: int, key: Key) -> int | None:
        """The record of an entry of an array that is written."""
        nodes, whole = self.graph.nodes, self.graph.nodes[array]
        shape, at = whole.shape[len(key) :], array
        while True:
            chain, version = self.versions[at]
            if chain.length != len(key):
                return None
            value = chain.read(key, version)
            if value is not None:
                break
            at = chain.base
            if at not in self.versions:
                known = self.made.get((at, key))
                if known is None:
                    index = {"index": (*key, ...)}
                    node = Node(getitem, (self.where[at],), index, shape, whole.dtype)
                    known = self.made[at, key] = self.add(node)
                return known
        given, found = nodes[value], self.where[value]
        if given.dtype != whole.dtype:
            found = self._once(Node(to, (found,), {"dtype": whole.dtype}, given.shape, whole.dtype))
        if given.shape != shape:
            found = self._once(Node(expand, (found,), {"shape": shape}, shape, whole.dtype))
        return found

    def _once(self, node: Node) -> int:
        key = (node.op, node.args, node.shape, node.dtype)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = self.add(node)
        return found

    def whole(self, array: int) -> None:
        """Have an array that is read as a whole made of its entries, if most were written."""
        if array not in self.versions:
            return
        chain, version = self.versions[array]
        node = self.graph.nodes[array]
        sides = node.shape[: chain.length]
        total = prod(sides)
        written = version - chain.stacked
        if total > LARGEST or 2 * written < total or len(chain.entries) < MANY:
            return
        entries = []
        for key in product(*map(range, sides)):
            entry = self._entry(array, key)
            if entry is None:
                return
            entries.append(entry)
        chain.stacked = version
        shape = (total, *node.shape[chain.length :])
        found = self.add(Node(stack, tuple(entries), {"dim": 0}, shape, node.dtype))
        if len(sides) > 1:
            found = self.add(Node(reshape, (found,), {"shape": node.shape}, node.shape, node.dtype))
        self.where[array] = found


def _numbers(index: Any, shape: tuple[int, ...]) -> tuple[Key, tuple[Any, ...]] | None:
    """The numbers that an index begins with, from the front, and what follows them; None of another
    kind.
    """
    parts = list(index)
    if parts and parts[-1] is Ellipsis:
        parts.pop()
    found = []
    for part, length in zip(parts, shape, strict=False):
        if type(part) is not int:
            break
        found.append(part + length if part < 0 else part)
    rest = tuple(parts[len(found) :])
    if any(part is Ellipsis or part is None or not isinstance(part, (int, slice)) for part in rest):
        return None
    return tuple(found), rest
