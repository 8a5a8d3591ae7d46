"""Which values have so few elements that they are taken apart, and where that pays.

A *group* is what hangs together: records of few elements that read each other.  It is taken apart if
there is enough of it, and if it hands little over to what stays in arrays (a product of matrices, a
loop), for which elements are loaded and stored one by one.
"""

from __future__ import annotations

import math

import numpy as np

from tapegrad.compiler.graph import Graph, Node
from tapegrad.compiler.loops import computes, supported
from tapegrad.compiler.place import WINDOWS
from tapegrad.compiler.region import REGION
from tapegrad.compiler.scalars import calls
from tapegrad.ops.core import Op
from tapegrad.ops.shape import overlaps

# What becomes of a record.
KEPT, MAPPED, REDUCED, MOVED, SPREAD, PRODUCT = (
    "kept", "mapped", "reduced", "moved", "spread", "product",
)  # fmt: skip
FEW = 8  # elements of a value that is taken apart
LONE = 3  # elements up to which nothing is gained by computing them as a vector
STIRRED = 0.25  # records that move or read single elements of longer ones, by operations on them
JOINED = 1024  # elements of what is put together of such values
FACTORS = 8  # multiplications of a product of matrices that is taken apart
MANY = 12  # operations on arrays for which it is worth it
FOREIGN = 0.25  # elements loaded or stored for what stays, by elements computed

MOVES = WINDOWS.union(
    "cat stack embed pad diagonal_embed assign write_view zero_view only_view".split()
)
PICKS = frozenset(("index", "index_select", "gather"))  # by index arrays that are known
ADDS = frozenset(("unindex", "unselect", "ungather"))
JOINS = frozenset(("cat", "stack"))
REDUCES = frozenset(("sum", "sum_to", "prod", "amax", "amin"))


def chosen(graph: Graph) -> list[str] | None:
    """What becomes of each record; None if all stay as they are."""
    ways: list[str] = []
    for node in graph.nodes:
        ways.append(_way(graph, node, ways))
    groups = _Groups(graph, ways)
    found = [way if groups.pays(k) else KEPT for k, way in enumerate(ways)]
    return found if groups.work() >= MANY else None


def _way(graph: Graph, node: Node, ways: list[str]) -> str:
    """What could become of a record."""
    if not isinstance(node.op, Op) or node.op.kind is REGION:
        return KEPT
    operands = [graph.nodes[a] for a in node.args]
    for a, x in zip(node.args, operands, strict=True):
        if not x.size or (x.size > FEW and ways[a] == KEPT) or not supported(x.dtype):
            return KEPT
    most = JOINED if node.name in JOINS else FEW
    if not 0 < node.size <= most or not supported(node.dtype):
        return KEPT
    return _known(node, operands)


def _known(node: Node, operands: list[Node]) -> str:
    """How an operation on few elements is taken apart, if it can be."""
    name = node.name
    if computes(node, operands):
        return KEPT if node.size > LONE and calls(name) else MAPPED
    alike = all(x.dtype == node.dtype for x in operands)
    if name in REDUCES and alike and node.dtype.kind in "fi":
        return REDUCED
    if name in MOVES and alike:
        overlapping = name in ("write_view", "zero_view", "only_view") and overlaps(
            node.params["chain"]
        )
        return KEPT if overlapping else MOVED
    if name in PICKS or name in ADDS:
        first, *indices = operands
        known = first.dtype == node.dtype and all(x.value is not None for x in indices)
        return KEPT if not known else MOVED if name in PICKS else SPREAD
    if name in ("matmul", "product") and alike and node.dtype.kind == "f":
        return PRODUCT if node.size * operands[0].shape[-1] <= FACTORS else KEPT
    return KEPT


class _Groups:
    """The groups of a graph, what each computes, and what it hands over."""

    def __init__(self, graph: Graph, ways: list[str]) -> None:
        self.graph, self.ways = graph, ways
        count = len(ways)
        self.leader = list(range(count))
        self.operations = [0] * count
        self.elements = [0] * count
        self.foreign = [0] * count
        self.longer = [0] * count  # operations on more elements than `LONE`
        self.stirred = [0] * count
        for k, node in enumerate(graph.nodes):
            if ways[k] != KEPT:
                for a in node.args:
                    if ways[a] != KEPT and node.size + graph.nodes[a].size > 2:
                        self.leader[self._leader(k)] = self._leader(a)
        self._count()

    def _leader(self, k: int) -> int:
        leader = self.leader
        while leader[k] != k:
            leader[k] = leader[leader[k]]
            k = leader[k]
        return k

    def _count(self) -> None:
        nodes, ways = self.graph.nodes, self.ways
        seen: set[tuple[int, int]] = set()
        for k, node in enumerate(nodes):
            here = self._leader(k)
            most = max([node.size, *[nodes[a].size for a in node.args]], default=1)
            if ways[k] == MOVED:
                self.operations[here] += node.name in JOINS
                self.stirred[here] += node.name not in WINDOWS or node.size == 1
            elif ways[k] != KEPT and most > 1:
                self.operations[here] += 1
                self.elements[here] += most
                self.longer[here] += most > LONE
            for a in node.args:
                if (ways[a] == KEPT) == (ways[k] == KEPT) or nodes[a].op is None:
                    continue
                group = here if ways[a] == KEPT else self._leader(a)
                if nodes[a].size > 1 and (a, group) not in seen:
                    seen.add((a, group))
                    self.foreign[group] += min(nodes[a].size, FEW)

    def pays(self, k: int) -> bool:
        """Whether a record is taken apart."""
        if self.ways[k] == KEPT:
            return False
        group = self._leader(k)
        if self.stirred[group] < STIRRED * self.longer[group]:
            return False
        return self.foreign[group] <= FOREIGN * self.elements[group]

    def work(self) -> int:
        """How many operations on arrays are taken apart."""
        return sum(n for k, n in enumerate(self.operations) if self.leader[k] == k and self.pays(k))
