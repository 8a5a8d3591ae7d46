"""Permute a table before rows are gathered from it, rather than all the rows.

`jacfwd` computes directions first and returns them last.  If the end of the program gathers many
rows from a small table, the table is computed permuted: so a row's derivatives are adjacent where
they are read and where they are written, and the result is written once.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tapegrad.compiler.ir.copy_plans import ADDED
from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.ops import shape as s
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.ops.index import HOLE

LARGER = 2  # what is gathered has so many times as many elements as the table at least
ADJACENT = 8  # and rows are as long as a vector, once permuted
Dims = tuple[int, ...]


def with_early_permutes(graph: Graph) -> Graph:
    """Move permutations up, through elementwise records, before gathers from small tables."""
    if not any(op.name == "index" for op in graph.ops()):
        return graph
    uses = graph.uses()
    moved: dict[int, set[int]] = {}
    for position, node in enumerate(graph.nodes):
        if node.name == "permute" and uses[node.args[0]] == 1 and node.shape[-1:] >= (ADJACENT,):
            found = _above(graph, node, uses)
            if found is not None:
                moved[position] = found
    if not moved:
        return graph
    builder = Builder(graph)
    known: dict[tuple[int, Dims], int] = {}
    for position, node in enumerate(graph.nodes):
        if position in moved:
            dims = tuple(node.params["dims"])
            for k in sorted(moved[position]):
                if (k, dims) not in known:
                    known[k, dims] = _permuted(builder, graph, k, dims, known)
            builder.where[position] = known[node.args[0], dims]
        else:
            builder.copy(position)
    return builder.done()


def _above(graph: Graph, permute: Node, uses: list[int]) -> set[int] | None:
    """What is computed permuted: records up to gathers, and their tables; None if it does not pay.

    It does if all that has as many elements as the value comes from gathers of rows.
    """
    (position,) = permute.args
    found: set[int] = set()
    todo, size = [position], permute.size
    while todo:
        at = todo.pop()
        if at in found:
            continue
        found.add(at)
        node = graph.nodes[at]
        inside = {a for a in node.args if graph.nodes[a].size * LARGER > size}
        if node.op is None or node.shape != graph.nodes[position].shape:
            return None
        if _from_table(graph, node, permute.params["dims"][-1]):
            found.add(node.args[0])
        elif node.op.kind is ELEMENTWISE and inside:
            todo += inside
        else:
            return None
    readers = Counter(a for at in found for a in graph.nodes[at].args)
    large = [at for at in found if graph.nodes[at].size * LARGER > size and at != position]
    return found if all(uses[at] == readers[at] for at in large) else None


def _from_table(graph: Graph, node: Node, last: int) -> bool:
    """Whether rows, along `last`, are gathered from a smaller value that a loop computes."""
    if node.name != "index" or len(node.args) != 2 or len(graph.nodes[node.args[1]].shape) != 1:
        return False
    table, plan = graph.nodes[node.args[0]], node.params["plan"]
    computed = table.op is not None and table.op.kind in (ELEMENTWISE, ADDED)
    whole = all(part is HOLE or part == slice(None) for part in plan)
    rows = last >= len(plan) or plan[last] is not HOLE
    return computed and whole and rows and table.size * LARGER <= node.size


def _permuted(
    builder: Builder, graph: Graph, position: int, dims: Dims, known: dict[tuple[int, Dims], int]
) -> int:
    """A record on permuted operands: on those computed so, and on views of the others."""
    node = graph.nodes[position]
    shape = tuple([node.shape[d] for d in dims])
    if node.name != "index":
        args = [
            known[a, dims] if (a, dims) in known else _view(builder, graph.nodes[a], a, dims)
            for a in node.args
        ]
        params = node.params if node.name != ADDED else _places_permuted(node, dims)
        return builder.add(Node(node.op, tuple(args), params, shape, node.dtype))
    table, rows = node.args
    plan = (*node.params["plan"], *[slice(None)] * len(dims))
    params = {"plan": tuple([plan[d] for d in dims])}
    args = [known[table, dims], builder.where[rows]]
    return builder.add(Node(node.op, tuple(args), params, shape, node.dtype))


def _places_permuted(node: Node, dims: Dims) -> dict[str, Any]:
    """The parameters of a sum of parts, whose places are permuted."""
    indices = [_written_out(index, len(dims)) for index in node.params["indices"]]
    return {**node.params, "indices": tuple([tuple([x[d] for d in dims]) for x in indices])}


def _written_out(index: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    """A slice for each dimension."""
    given = [part for part in index if part is not Ellipsis]
    k = index.index(Ellipsis) if Ellipsis in index else len(index)
    return (*index[:k], *(slice(None),) * (rank - len(given)), *index[k + 1 :])


def _view(builder: Builder, node: Node, position: int, dims: Dims) -> int:
    """A view of an operand, which may have fewer dimensions, for the permuted domain."""
    at, missing = builder.where[position], len(dims) - len(node.shape)
    if not node.shape:
        return at
    shape = (*(1,) * missing, *node.shape)
    if missing:
        index: dict[str, Any] = {"index": (*(None,) * missing, Ellipsis)}
        at = builder.add(Node(s.getitem, (at,), index, shape, node.dtype))
    turned = tuple([shape[d] for d in dims])
    return builder.add(Node(s.permute, (at,), {"dims": dims}, turned, node.dtype))
