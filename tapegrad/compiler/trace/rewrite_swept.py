"""Rewrite what a gradient goes back through before it is taken: loops, and contractions.

The sweep of a loop of Python that is re-rolled is one of its body: so a gradient is traced once,
not once for each trip.  That of a contraction follows the order that was chosen for it.  The trace
gets what is new behind what it has.  Tensors of the records that were rewritten stand for the new
ones from then on; the records themselves are left to be eliminated.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from tapegrad.compiler.ir import reroll
from tapegrad.compiler.ir.contraction_order import contracted, may_contract
from tapegrad.compiler.ir.graph import Graph, Node, Rewritten
from tapegrad.compiler.ir.reroll import rerolled
from tapegrad.compiler.ir.store_forwarding import may_forward
from tapegrad.compiler.trace.trace import Trace

Rewrite = Callable[[Graph, Container[int]], Rewritten]


def rewritten(trace: Trace, roots: dict[int, Any], targets: set[int]) -> dict[int, Any]:
    """The roots of a sweep down to some targets, once what is on the way is rewritten."""
    roots = _by(rerolled, _is_long, trace, roots, targets)
    return _by(contracted, may_contract, trace, roots, targets)


def _is_long(nodes: list[Node]) -> bool:
    return len(nodes) > reroll.SAVED or may_forward(nodes)


def _by(
    rewrite: Rewrite, may: Callable[[list[Node]], bool], trace: Trace, roots: dict[int, Any],
    targets: set[int],
) -> dict[int, Any]:  # fmt: skip
    """The roots after one rewrite, which there `may` be."""
    top = max(roots)
    since = max([p for p in (*targets, *trace.followed) if p <= top], default=top) + 1
    if not may(trace.nodes[since : top + 1]) or any(since <= p <= top for p in trace.pulls):
        return roots
    window = _Window(trace, since, top, [p for p in roots if p >= since])
    found = rewrite(window.graph, window.blocked)
    trace.notes = list(found.graph.notes)
    if not found.where:
        return roots
    origin = window.origin
    places = _appended(trace, origin, found)
    moved = {origin[k]: places[q] for k, q in found.where.items() if places[q] != origin[k]}
    trace.moved = {p: moved.get(q, q) for p, q in trace.moved.items()} | moved
    trace.guards = [g._replace(position=moved.get(g.position, g.position)) for g in trace.guards]
    return {moved.get(p, p): g for p, g in roots.items()}


class _Window:
    """The records of a trace from one to another as a graph; `origin` are their positions there.

    In front of them stands what is before: all of it, or of much what they read.
    """

    def __init__(self, trace: Trace, since: int, top: int, roots: list[int]) -> None:
        nodes = trace.nodes
        inside = nodes[since : top + 1]
        before: Sequence[int] = range(since)
        if since > len(inside):
            before = sorted({a for node in inside for a in node.args if a < since})
        self.origin = [*before, *range(since, top + 1)]
        shift = len(before) - since
        made = [
            nodes[p] if nodes[p].value is not None else _outside(k, nodes[p])
            for k, p in enumerate(before)
        ]
        if shift:
            where = dict(zip(before, range(len(before)), strict=True))
            for node in inside:
                args = tuple([a + shift if a >= since else where[a] for a in node.args])
                made.append(node.on(args) if args else node)
        else:
            made += inside
        guards = [
            g._replace(position=g.position + shift)
            for g in trace.guards
            if since <= g.position <= top
        ]
        outputs = tuple([p + shift for p in roots])
        self.graph = Graph(made, (), outputs, tuple(guards), tuple(trace.notes))
        blocked = trace.blocked
        self.blocked = {k for k, p in enumerate(self.origin) if p in blocked} if blocked else set()


def _outside(k: int, node: Node) -> Node:
    """What stands for a record of before."""
    return Node(None, (), {"k": k}, node.shape, node.dtype)


def _appended(trace: Trace, origin: list[int], found: Rewritten) -> list[int]:
    """Append to a trace what a graph made of it has more; where the graph's records are then."""
    known: dict[int, int] = {}
    for its, after in found.where.items():
        known.setdefault(after, origin[its])  # the first: others are forwarded to it
    places: list[int] = []
    for position, node in enumerate(found.graph.nodes):
        args = tuple([places[a] for a in node.args])
        old = known.get(position)
        if old is not None:
            before = trace.nodes[old]
            if node.op is None or (before.op is node.op and before.args == args):
                places.append(old)
                continue
        at = trace.append(node.on(args), node.value)
        if position in found.blocked:
            trace.blocked.add(at)
        places.append(at)
    return places
