"""Append what a sweep over records like these has appended: a gradient in a loop of Python.

The rules of a sweep run Python for each record, several times as long as it takes to append one.
Over the same operations they give the same records, on other operands: the first sweep over such
records is noted, what the second one appends becomes a template, and the others append copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.compiler.ir.control_ops import REGION
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.ir.repeats import static
from tapegrad.compiler.trace.trace import Trace
from tapegrad.compiler.trace.traced_storage import TracedStorage
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.tape.tape import current

MOST = 8  # sweeps over other numbers of records that a trace remembers
Adjoints = dict[int, Any]


class Sweep:
    """A sweep from one root down to targets, over the records that lead there, in order.

    `appended` are the positions of what it appended, and `found` those of its targets' adjoints; of
    one that is only noted there are none.
    """

    __slots__ = ("appended", "found", "leads", "root", "targets", "weight")

    def __init__(self, leads: list[int], root: int, weight: int, targets: set[int]) -> None:
        self.leads, self.root, self.weight, self.targets = leads, root, weight, targets
        self.appended = range(0)
        self.found: dict[int, int] = {}


class _Known(dict[Any, int]):
    """The equal records of a trace during a sweep, and whether it met one that it does not sweep.

    That would not be equal the next time.
    """

    def __init__(self, before: dict[Any, int], own: set[int]) -> None:
        self.before, self.own, self.others = before, own, False

    def get(self, key: Any, default: Any = None) -> Any:
        found = super().get(key)
        if found is None and (found := self.before.get(key)) is not None:
            self.others |= found not in self.own
        return found


def swept_like(
    trace: Trace, adjoints: Adjoints, targets: set[int], leads: set[int], run: Callable[[], None]
) -> None:
    """Sweep, from and to `adjoints`: by `run`, or by copying what an earlier sweep has appended."""
    sweep = _sweep_of(trace, adjoints, targets, leads)
    if sweep is None:
        run()
        return
    key = len(leads), len(targets)
    before = trace.sweeps.get(key)
    where = None if before is None else _counterparts(trace, before, sweep)
    if before is None or where is None:
        run()
        if len(trace.sweeps) >= MOST:
            trace.sweeps.clear()
        trace.sweeps[key] = sweep
    elif before.found:
        _copy(trace, before, where)
        adjoints.clear()
        adjoints |= {where[t]: trace.tensor(where[p]) for t, p in before.found.items()}
    elif _noted(trace, adjoints, sweep, run):
        trace.sweeps[key] = sweep


def _sweep_of(trace: Trace, adjoints: Adjoints, targets: set[int], leads: set[int]) -> Sweep | None:
    """The sweep that is to come, if it can be repeated: nothing but rules of operations runs."""
    levels = current.tape.levels
    if len(adjoints) != 1 or trace.moved or trace.pulls or trace.inside is not None:
        return None
    ((root, g),) = adjoints.items()
    weight = _place(trace, g)
    if weight is None or root in targets or not levels or levels[-1] is not trace:
        return None
    nodes = trace.nodes
    if nodes[weight].value is None or any(
        getattr(nodes[p].op, "kind", "") is REGION for p in leads
    ):
        return None
    return Sweep(sorted(leads), root, weight, targets)


def _place(trace: Trace, t: Any) -> int | None:
    """The record of a Tensor of a trace that shows all of its memory, as it was made."""
    lift = getattr(t, "_lift", None)
    if type(lift) is not TracedStorage or lift.at is not trace or lift.version:
        return None
    return lift.position


def _counterparts(trace: Trace, before: Sweep, sweep: Sweep) -> dict[int, int] | None:
    """Where what one sweep goes over and reads is in another one; None if they differ."""
    nodes, blocked = trace.nodes, trace.blocked
    where = dict(zip(before.leads, sweep.leads, strict=True))
    own = set(sweep.leads)
    if where.get(before.root) != sweep.root or before.weight != sweep.weight:
        return None
    if {where[t] for t in before.targets if t in where} != sweep.targets & own:
        return None
    for p, q in zip(before.leads, sweep.leads, strict=True):
        a, b = nodes[p], nodes[q]
        if not _alike(a, b) or (p in blocked) != (q in blocked):
            return None
        for x, y in zip(a.args, b.args, strict=True):
            known = where.get(x)
            if known is None:
                if y in own or (x != y and not _same_outside(nodes[x], nodes[y])):
                    return None
                where[x] = y
            elif known != y:
                return None
    return where


def _same_outside(a: Node, b: Node) -> bool:
    """Whether rules do the same on two operands from elsewhere; of constants they know values."""
    return a.spec == b.spec and a.value is None and b.value is None


def _alike(a: Node, b: Node) -> bool:
    """Whether two records differ in their operands alone."""
    return (
        a.op is b.op
        and a.shape == b.shape
        and a.dtype is b.dtype
        and len(a.args) == len(b.args)
        and (a.params is b.params or static(a.params) == static(b.params))
    )


def _noted(trace: Trace, adjoints: Adjoints, sweep: Sweep, run: Callable[[], None]) -> bool:
    """Run a sweep and note what it appends; whether all of it can be copied."""
    known, guards, first = trace.known, len(trace.guards), len(trace.nodes)
    own = {*sweep.leads}
    watched = trace.known = _Known(known, own)
    try:
        run()
    finally:
        known.update(watched)
        trace.known = known
    sweep.appended = range(first, len(trace.nodes))
    for t in sweep.targets & adjoints.keys():
        place = _place(trace, adjoints[t])
        if place is None or place in sweep.found.values():
            return False
        sweep.found[t] = place
    read = own.union(*[trace.nodes[p].args for p in sweep.leads], sweep.appended)
    return (
        not watched.others
        and len(trace.guards) == guards
        and trace.blocked.isdisjoint(sweep.appended)
        and all(_is_copied(trace, p, read) for p in sweep.appended)
        and all(p in read for p in sweep.found.values())
    )


def _is_copied(trace: Trace, position: int, read: set[int]) -> bool:
    """Whether a record can be appended again, on what corresponds to its operands."""
    node, nodes = trace.nodes[position], trace.nodes
    if node.op is None or node.op.kind is REGION or position in trace.pulls:
        return False
    if position in trace.strided and not node.op.view:
        return False
    return all(a in read or nodes[a].value is not None for a in node.args)


def _copy(trace: Trace, before: Sweep, where: dict[int, int]) -> None:
    """Append what a sweep has appended, on other operands; adds to `where`."""
    known = trace.known
    for position in before.appended:
        node = trace.nodes[position]
        args = tuple([where.get(a, a) for a in node.args])
        op = node.op
        key = None if op is None or op.kind is not ELEMENTWISE or node.params else (op, args)
        found = None if key is None else known.get(key)
        if found is None:
            found = trace.append(node.on(args), None)
            if position in trace.strided:
                trace.strided.add(found)
            if key is not None:
                known[key] = found
        where[position] = found
