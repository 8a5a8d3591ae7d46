"""Operations that put their operands into parts of their result: joins, paddings, assignments.

Each is a list of copies into a fresh buffer, made in order: a number, or the values of a record,
over a window of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.compiler.graph import Graph, Node
from tapegrad.compiler.place import Place, follow
from tapegrad.ops import shape as s

Plan = list[tuple[int | float, Place]]


def _at(out: Place, index: Any) -> Place:
    found = follow(out, ((s.getitem, {"index": index}),))
    assert found is not None
    return found


def _cat(graph: Graph, node: Node, out: Place) -> Plan:
    dim, start, plan = node.params["dim"], 0, []
    for a in node.args:
        stop = start + graph.nodes[a].shape[dim]
        plan.append((a, _at(out, (slice(None),) * dim + (slice(start, stop),))))
        start = stop
    return plan


def _stack(graph: Graph, node: Node, out: Place) -> Plan:
    before = (slice(None),) * node.params["dim"]
    return [(a, _at(out, (*before, k))) for k, a in enumerate(node.args)]


def _embed(graph: Graph, node: Node, out: Place) -> Plan:
    return [(0.0, out), (node.args[0], _at(out, node.params["index"]))]


def _diagonal_embed(graph: Graph, node: Node, out: Place) -> Plan:
    params = {k: v for k, v in node.params.items() if k != "shape"}
    found = follow(out, ((s.diagonal, params),))
    assert found is not None
    return [(0.0, out), (node.args[0], found)]


def _assign(graph: Graph, node: Node, out: Place) -> Plan:
    base, value = node.args
    return [(base, out), (value, _at(out, node.params["index"]))]


def _write_view(graph: Graph, node: Node, out: Place) -> Plan | None:
    base, value = node.args
    found = _single(out, node.params["chain"])
    return None if found is None else [(base, out), (value, found)]


def _zero_view(graph: Graph, node: Node, out: Place) -> Plan | None:
    found = _single(out, node.params["chain"])
    return None if found is None else [(node.args[0], out), (0.0, found)]


def _only_view(graph: Graph, node: Node, out: Place) -> Plan | None:
    found = _single(out, node.params["chain"])
    return None if found is None else [(0.0, out), (node.args[0], found)]


def _single(out: Place, chain: Any) -> Place | None:
    """The window at the end of a chain, in which no element is seen twice."""
    if any(op in (s.expand, s.unfold, s.as_strided) for op, _ in chain):
        return None
    return follow(out, chain)


WAYS: dict[str, Callable[[Graph, Node, Place], Plan | None]] = {
    "cat": _cat,
    "stack": _stack,
    "embed": _embed,
    "diagonal_embed": _diagonal_embed,
    "assign": _assign,
    "write_view": _write_view,
    "zero_view": _zero_view,
    "only_view": _only_view,
}
