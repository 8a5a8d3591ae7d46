"""Sink records to their only use.

A value that a single elementwise record reads is computed just before it: so the two share a loop,
even if the second has to wait for something else, and the first is never stored.
"""

from __future__ import annotations

from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.ops.core import ELEMENTWISE


def late(graph: Graph) -> Graph:
    """Reorder the graph so that values with a single use are computed just before it."""
    nodes = graph.nodes
    uses = [0] * len(nodes)
    readers = [-1] * len(nodes)
    for position, node in enumerate(nodes):
        for a in set(node.args) if len(node.args) > 1 else node.args:
            uses[a] += 1
            readers[a] = position
    for root in graph.roots():
        uses[root] += 2
    waits = [
        node.shape != () and uses[k] == 1 and _moves(node, nodes[readers[k]])
        for k, node in enumerate(nodes)
    ]
    if not any(waits):
        return graph
    builder = Builder(graph)
    builder.copy_all([
        k for position in range(len(nodes)) if not waits[position]
        for k in _before(nodes, waits, position)
    ])  # fmt: skip
    return builder.done()


def _moves(node: Node, reader: Node) -> bool:
    """Whether two records are elementwise over one domain of more than one element."""
    if node.op is None or reader.op is None:
        return False
    both = node.op.kind is ELEMENTWISE and reader.op.kind is ELEMENTWISE
    return both and node.shape == reader.shape


def _before(nodes: list[Node], waits: list[bool], position: int) -> list[int]:
    """A record, after those that were sunk to it."""
    found, todo = [], [position]
    while todo:
        at = todo.pop()
        found.append(at)
        for a in nodes[at].args:
            if waits[a] and a not in todo:  # which may be both operands
                todo.append(a)
    return sorted(found)
