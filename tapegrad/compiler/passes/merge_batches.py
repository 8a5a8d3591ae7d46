"""Merge sums over a batch of matrix products into one product.

The gradient of a matrix that a whole batch was multiplied by is such a sum.
"""

from __future__ import annotations

import math

from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.ops import shape as s

PRODUCTS = frozenset(("matmul", "product"))


def with_whole_batches(graph: Graph) -> Graph:
    """Replace ``sum over b of a[b].mT @ g[b]`` by one product of two matrices."""
    if not any(map(_is_sum, graph.nodes)):
        return graph
    uses = graph.uses()
    builder = Builder(graph)
    for position, node in enumerate(graph.nodes):
        if _is_sum(node) and uses[node.args[0]] == 1:
            found = _whole(builder, graph, graph.nodes[node.args[0]], node)
            if found is not None:
                builder.where[position] = found
                continue
        builder.copy(position)
    return builder.done()


def _is_sum(node: Node) -> bool:
    return node.name == "sum_to" and len(node.shape) == 2


def _whole(builder: Builder, graph: Graph, product: Node, node: Node) -> int | None:
    """The product equal to a sum of products, if that is over the whole batch."""
    if product.name not in PRODUCTS or product.shape[-2:] != node.shape:
        return None
    left, right = [graph.nodes[a] for a in product.args]
    batch = product.shape[:-2]
    rank = len(left.shape)
    if left.shape[:-2] != batch or right.shape[:-2] != batch or left.name != "permute":
        return None
    if left.params["dims"] != (*range(rank - 2), rank - 1, rank - 2):
        return None
    rows, columns = node.shape
    inner = math.prod(batch) * left.shape[-1]

    def flat(position: int, width: int) -> int:
        shape, dtype = (inner, width), graph.nodes[position].dtype
        args = (builder.where[position],)
        return builder.add(Node(s.reshape, args, {"shape": shape}, shape, dtype))

    tall = flat(left.args[0], rows)
    turned = Node(s.permute, (tall,), {"dims": (1, 0)}, (rows, inner), left.dtype)
    args = (builder.add(turned), flat(product.args[1], columns))
    return builder.add(Node(product.op, args, {}, node.shape, node.dtype))
