"""Combine sums of paddings, as the gradients of many slices of one array make.

The adjoint of `x[i]` is zero except at `i`.  Summed one by one, the adjoints of n slices would cost
n times the whole array; here they become one record that starts with zeros (or with the terms that
are no padding) and adds each in its place.
"""

from __future__ import annotations

from typing import Any

from tapegrad.compiler.ir.copy_plans import SUM
from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.compiler.ir.loop_nest import supported
from tapegrad.ops.elementwise import add
from tapegrad.ops.shape import embed


def with_sums_of_parts(graph: Graph) -> Graph:
    """Replace each tree of additions over two or more paddings by one record."""
    if embed not in graph.ops():
        return graph
    uses = graph.uses()
    inner = _inner(graph, uses)
    sums: dict[int, tuple[list[int], list[int]]] = {}
    for position, node in enumerate(graph.nodes):
        if node.op is add and not inner[position] and supported(node.dtype):
            leaves = _leaves(graph, position, inner)
            parts = [k for k in leaves if uses[k] == 1 and _is_part(graph.nodes[k], node)]
            if len(parts) > 1:
                sums[position] = leaves, parts
    if not sums:
        return graph
    builder = Builder(graph)
    start = 0
    for position in sorted(sums):
        builder.copy_all(range(start, position))
        leaves, parts = sums[position]
        found = _sum(builder, graph, graph.nodes[position], leaves, set(parts))
        builder.where[position], start = found, position + 1
    builder.copy_all(range(start, len(graph.nodes)))
    return builder.done()


def _is_part(node: Node, whole: Node) -> bool:
    """Whether a value is a padding of the sum's shape; a smaller one is broadcast first."""
    return node.op is embed and node.spec == whole.spec


def _inner(graph: Graph, uses: list[int]) -> list[bool]:
    """The additions whose only use is another addition of the same shape."""
    inner = [False] * len(graph.nodes)
    for node in graph.nodes:
        if node.op is not add:
            continue
        for a in node.args:
            below = graph.nodes[a]
            if below.op is add and uses[a] == 1 and below.shape == node.shape:
                inner[a] = below.dtype == node.dtype
    return inner


def _leaves(graph: Graph, position: int, inner: list[bool]) -> list[int]:
    """The leaves of a tree of additions, from left to right."""
    found, todo = [], [position]
    while todo:
        at = todo.pop()
        if at == position or inner[at]:
            todo += reversed(graph.nodes[at].args)
        else:
            found.append(at)
    return found


def _sum(builder: Builder, graph: Graph, node: Node, leaves: list[int], parts: set[int]) -> int:
    base: int | None = None
    rest = [k for k in leaves if k not in parts]
    for k in rest:
        found = builder.where[k]
        if base is None:
            base = found
            if builder.nodes[found].spec != node.spec:
                return builder.add(builder.remapped(node))
        else:
            base = builder.add(Node(node.op, (base, found), {}, node.shape, node.dtype))
    args: list[int] = [] if base is None else [base]
    indices: list[Any] = []
    for k in leaves:
        if k in parts:
            padding = graph.nodes[k]
            args.append(builder.where[padding.args[0]])
            indices.append(padding.params["index"])
    params = {"based": base is not None, "indices": tuple(indices)}
    return builder.add(Node(SUM, tuple(args), params, node.shape, node.dtype))  # type: ignore[arg-type]
