"""The cost model of scalar replacement: which values are small, and where it pays.

A *group* is a connected set of records of few elements.  What it exchanges with records that stay
arrays (a matrix product, a loop) is loaded and stored element by element, so it must be little.
More than three elements are quicker as vectors, unless they are permuted all the time: then each
operation would be a nest of its own.  And a group must be large enough to pay.
"""

from __future__ import annotations

from tapegrad.compiler.ir.buffers import WINDOWS
from tapegrad.compiler.ir.control_ops import REGION
from tapegrad.compiler.ir.graph import Graph, Node, adds_to_zeros
from tapegrad.compiler.ir.loop_nest import computes, supported
from tapegrad.compiler.llvm.scalar_ops import calls
from tapegrad.ops.core import Op
from tapegrad.ops.strided import overlaps

# How a record is scalarised.
KEPT, MAPPED, REDUCED, REINDEXED, SCATTERED, PRODUCT = (
    "kept", "mapped", "reduced", "reindexed", "scattered", "product",
)  # fmt: skip
MOST_ELEMENTS = 8  # elements up to which a value is scalarised
SCALAR_MOST = 3  # elements up to which nothing is gained by computing them as a vector
# Least ratio of records that move or read elements of longer values to operations on these.
MOSTLY_MOVES = 0.25
JOINED = 1 << 13  # elements up to which a join of such values is
FACTORS = 4  # multiplications up to which a matrix product is
MANY = 6  # array operations from which on it pays
FOREIGN = 0.25  # most elements exchanged with arrays per element computed

RENAMED = (*WINDOWS, "concat", "pad", "update")  # of `Op.moves`: they rename elements


def chosen(graph: Graph) -> list[str] | None:
    """How each record is scalarised; None if none is.

    A scalar computed from scalars is kept.
    """
    sizes = [node.size if node.shape else 1 for node in graph.nodes]
    if sum(1 < n <= MOST_ELEMENTS for n in sizes) < MANY:
        return None
    kinds: list[str] = []
    for node, size in zip(graph.nodes, sizes, strict=True):
        kinds.append(_kind(graph, node, size, sizes, kinds))
    groups = _Groups(graph, sizes, kinds)
    return groups.paying() if groups.work() >= MANY else None


def _kind(graph: Graph, node: Node, size: int, sizes: list[int], kinds: list[str]) -> str:
    """How a record could be scalarised."""
    alone = size == 1
    for a in node.args:
        n = sizes[a]
        if not n or (n > MOST_ELEMENTS and (kinds[a] == KEPT or node.moves not in RENAMED)):
            return KEPT
        alone = alone and n == 1
    most = JOINED if node.moves == "concat" else MOST_ELEMENTS
    if not 0 < size <= most or not isinstance(node.op, Op) or node.op.kind is REGION:
        return KEPT
    operands = [graph.nodes[a] for a in node.args]
    if alone and not node.shape and not any(x.shape for x in operands):
        return KEPT
    known = all(supported(x.dtype) for x in (node, *operands))
    return _known(node, operands) if known else KEPT


def _known(node: Node, operands: list[Node]) -> str:
    """How an operation on few elements is scalarised, if it can be."""
    name = node.name
    if computes(node, operands):
        return KEPT if node.size > SCALAR_MOST and calls(name) else MAPPED
    alike = all(x.dtype == node.dtype for x in operands)
    if node.reduces and alike and node.dtype.kind in "fi":
        return REDUCED
    if node.moves in RENAMED and alike:
        written = node.moves in ("pad", "update")
        return KEPT if written and overlaps(node.params.get("chain", ())) else REINDEXED
    if "gather" in node.moves or adds_to_zeros(node):
        first, *indices = operands
        known = first.dtype == node.dtype and all(x.value is not None for x in indices)
        return KEPT if not known else REINDEXED if "gather" in node.moves else SCATTERED
    if name in ("matmul", "product") and alike and node.dtype.kind == "f":
        return PRODUCT if node.size * operands[0].shape[-1] <= FACTORS else KEPT
    return KEPT


class _Groups:
    """The groups of a graph (union-find), their work, and what they exchange with arrays."""

    def __init__(self, graph: Graph, sizes: list[int], kinds: list[str]) -> None:
        self.graph, self.sizes, self.kinds = graph, sizes, kinds
        count = len(kinds)
        self.leader = list(range(count))
        self.operations = [0] * count
        self.elements = [0] * count
        self.foreign = [0] * count
        self.longer = [0] * count  # operations on more elements than `SCALAR_MOST`
        self.moves = [0] * count
        for k, node in enumerate(graph.nodes):
            if kinds[k] != KEPT:
                for a in node.args:
                    if kinds[a] != KEPT and sizes[k] + sizes[a] > 2:
                        self.leader[self._of(k)] = self._of(a)
        for k, node in enumerate(graph.nodes):
            if kinds[k] != KEPT:
                self._count(k, node)
        self._hand_over()
        self.pays = [self._pays(k) for k in range(count)]

    def _of(self, k: int) -> int:
        """The representative of a record's group."""
        leader = self.leader
        while leader[k] != k:
            leader[k] = leader[leader[k]]
            k = leader[k]
        return k

    def _count(self, k: int, node: Node) -> None:
        here, kind = self._of(k), self.kinds[k]
        most = max([self.sizes[k], *[self.sizes[a] for a in node.args]])
        if kind == REINDEXED:
            self.operations[here] += node.moves == "concat"
            self.moves[here] += node.moves not in WINDOWS or self.sizes[k] == 1
        elif most > 1:
            self.operations[here] += 1
            self.elements[here] += most
            self.longer[here] += most > SCALAR_MOST and kind != PRODUCT

    def _hand_over(self) -> None:
        """Count the elements exchanged with records that stay arrays."""
        seen: set[tuple[int, int]] = set()
        for k, node in enumerate(self.graph.nodes):
            kept = self.kinds[k] == KEPT
            for a in node.args:
                if (self.kinds[a] == KEPT) == kept or self.sizes[a] == 1:
                    continue
                group = self._of(a if kept else k)
                if self.graph.nodes[a].op is not None and (a, group) not in seen:
                    seen.add((a, group))
                    self.foreign[group] += min(self.sizes[a], MOST_ELEMENTS)

    def _pays(self, group: int) -> bool:
        """Whether scalarising a group, given by its representative, pays."""
        if self.moves[group] < MOSTLY_MOVES * self.longer[group]:
            return False
        return self.foreign[group] <= FOREIGN * self.elements[group]

    def paying(self) -> list[str]:
        """How each record is scalarised where that pays."""
        return [
            kind if kind == KEPT or self.pays[self._of(k)] else KEPT
            for k, kind in enumerate(self.kinds)
        ]

    def work(self) -> int:
        """The number of array operations that could be scalarised."""
        return sum(n for n, pays in zip(self.operations, self.pays, strict=True) if pays)
