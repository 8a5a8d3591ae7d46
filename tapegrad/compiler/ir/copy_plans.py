"""Plan concatenations, paddings and assignments as copies into parts of a result.

Each is a list of copies into a fresh buffer, made in order: a number, or the values of a record,
over a window of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tapegrad.compiler.ir.buffers import Place, follow
from tapegrad.compiler.ir.graph import Graph, Node
from tapegrad.compiler.ir.loop_nest import ADD, SET
from tapegrad.ops import shape as s
from tapegrad.ops import strided
from tapegrad.ops.core import Op
from tapegrad.ops.index import assign
from tapegrad.ops.tiling import pad

ADDED = "added"  # the name of the record: operands are a base (or none) and the parts
LARGE = 1 << 10  # elements of a result from which on none may be written twice
Plan = list[tuple[int | float, Place, str]]


class Sum:
    """The operation that adds parts to a base, or to zeros, in place of an `Op`."""

    name = ADDED
    kind = ADDED
    moves, reduces, scans, lapack = "pad", "", "", False

    def __repr__(self) -> str:
        return ADDED


SUM = Sum()


def _at(out: Place, index: Any) -> Place:
    found = follow(out, ((s.getitem, {"index": index}),))
    assert found is not None
    return found


def _cat(graph: Graph, node: Node, out: Place) -> Plan:
    dim, start = node.params["dim"], 0
    plan: Plan = []
    for a in node.args:
        stop = start + graph.nodes[a].shape[dim]
        part = (slice(None),) * dim + (slice(start, stop),)
        plan.append((a, _at(out, part), SET))
        start = stop
    return plan


def _stack(graph: Graph, node: Node, out: Place) -> Plan:
    before = (slice(None),) * node.params["dim"]
    return [(a, _at(out, (*before, k)), SET) for k, a in enumerate(node.args)]


def _within(source: int, part: Place, out: Place, around: float) -> Plan:
    """The plan of a padding: a part of the result, and a fill value around it.

    In a large result that is not written where the part lies, if it is one dimension's ends.
    """
    outside = [out]
    if prod(out.shape) >= LARGE and part.strides == out.strides:
        other = [d for d, n in enumerate(out.shape) if n != part.shape[d]]
        if len(other) == 1:
            before = (slice(None),) * other[0]
            first = (part.offset - out.offset) // out.strides[other[0]]
            last = first + part.shape[other[0]]
            ends = [_at(out, (*before, end)) for end in (slice(first), slice(last, None))]
            outside = [end for end in ends if 0 not in end.shape]
    return [*[(around, place, SET) for place in outside], (source, part, SET)]


def _embed(graph: Graph, node: Node, out: Place) -> Plan:
    return _within(node.args[0], _at(out, node.params["index"]), out, 0.0)


def _pad(graph: Graph, node: Node, out: Place) -> Plan:
    (source,) = node.args
    inside = tuple(
        [
            slice(before, before + n)
            for n, (before, _) in zip(graph.nodes[source].shape, node.params["widths"], strict=True)
        ]
    )
    return _within(source, _at(out, inside), out, float(node.params["value"]))


def _diagonal_embed(graph: Graph, node: Node, out: Place) -> Plan:
    params = {k: v for k, v in node.params.items() if k != "shape"}
    found = follow(out, ((s.diagonal, params),))
    assert found is not None
    return [(0.0, out, SET), (node.args[0], found, SET)]


def _assign(graph: Graph, node: Node, out: Place) -> Plan:
    base, value = node.args
    return [(base, out, SET), (value, _at(out, node.params["index"]), SET)]


def _write_view(graph: Graph, node: Node, out: Place) -> Plan | None:
    base, value = node.args
    found = _single(out, node.params["chain"])
    return None if found is None else [(base, out, SET), (value, found, SET)]


def _zero_view(graph: Graph, node: Node, out: Place) -> Plan | None:
    found = _single(out, node.params["chain"])
    return None if found is None else [(node.args[0], out, SET), (0.0, found, SET)]


def _only_view(graph: Graph, node: Node, out: Place) -> Plan | None:
    found = _single(out, node.params["chain"])
    return None if found is None else _within(node.args[0], found, out, 0.0)


def _single(out: Place, chain: Any) -> Place | None:
    """The window at the end of a chain, in which no element is seen twice."""
    if strided.overlaps(chain):
        return None
    return follow(out, chain)


def _added(graph: Graph, node: Node, out: Place) -> Plan:
    args, based = node.args, node.params["based"]
    plan: Plan = [(args[0] if based else 0.0, out, SET)]
    for a, index in zip(args[based:], node.params["indices"], strict=True):
        plan.append((a, _at(out, index), ADD))
    return plan


PLANS: dict[Op | Sum | None, Callable[[Graph, Node, Place], Plan | None]] = {
    s.cat: _cat, s.stack: _stack, s.embed: _embed, pad: _pad, s.diagonal_embed: _diagonal_embed,
    assign: _assign, strided.write_view: _write_view, strided.zero_view: _zero_view,
    strided.only_view: _only_view,
    SUM: _added,
}  # fmt: skip
