"""Re-roll the loops of Python that a gradient goes back through, before it is taken.

The sweep of a loop is one of its body: so a gradient is traced once, not once for each trip.  The
trace gets the loop behind what it has.  Tensors of the records that became a loop stand for its
results from then on; the records themselves are left to be eliminated.
"""

from __future__ import annotations

from typing import Any

from tapegrad.compiler.ir import reroll
from tapegrad.compiler.ir.control_ops import EMPTY, REGION, TAKE
from tapegrad.compiler.ir.graph import Graph
from tapegrad.compiler.ir.reroll import Rerolled, rerolled
from tapegrad.compiler.trace.trace import Trace


def with_loops(trace: Trace, roots: dict[int, Any], targets: set[int]) -> dict[int, Any]:
    """The roots of a sweep down to some targets, once loops on the way are re-rolled."""
    top = max(roots)
    since = max([p for p in (*targets, *trace.followed) if p <= top], default=top)
    if top - since < reroll.SAVED or any(since < p <= top for p in trace.pulls):
        return roots
    guards = tuple([g for g in trace.guards if g.position <= top])
    graph = Graph(trace.nodes[: top + 1], (), tuple(roots), guards, tuple(trace.notes))
    values: list[Any] = list(trace.values[: top + 1])
    for region, results in trace.regions.items():
        if region <= top:
            values[region] = results
    found = rerolled(graph, values, trace.blocked, since)
    trace.notes = list(found.graph.notes)
    if not found.where:
        return roots
    places = _appended(trace, found)
    where = {p: places[q] for p, q in found.where.items()}
    moved = {p: q for p, q in where.items() if p != q}
    trace.moved = {p: moved.get(q, q) for p, q in trace.moved.items()} | moved
    trace.guards = [g._replace(position=moved.get(g.position, g.position)) for g in trace.guards]
    return {where[p]: g for p, g in roots.items()}


def _appended(trace: Trace, found: Rerolled) -> list[int]:
    """Append to a trace what a graph made of it has more; where the graph's records are then."""
    assert found.values is not None
    origin = {new: old for old, new in found.where.items()}
    places: list[int] = []
    for position, (node, value) in enumerate(zip(found.graph.nodes, found.values, strict=True)):
        args = tuple([places[a] for a in node.args])
        old = origin.get(position)
        if old is not None:
            before = trace.nodes[old]
            if before.op is node.op and before.args == args and before.value is node.value:
                places.append(old)
                continue
        region = node.op is not None and node.op.kind is REGION and node.op is not TAKE
        at = trace.append(node.on(args), EMPTY if region else value)
        if region:
            trace.regions[at] = value
        if old in trace.blocked:
            trace.blocked.add(at)
        if old in trace.pending:
            trace.pending.add(at)
        places.append(at)
    return places
