"""Append what a sweep over records like these has appended: a gradient in a loop of Python.

The rules of a sweep run Python for each record, several times as long as it takes to append one.
Over the same operations they give the same records, on other operands: the first sweep over such
records is noted, what the second one appends becomes a template, and the others append copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tapegrad.compiler.ir.control_ops import REGION
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.ir.repeats import static
from tapegrad.compiler.trace.trace import Trace, announce_long
from tapegrad.compiler.trace.traced_storage import TracedStorage
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.tape.tape import current

MOST = 16  # keys of sweeps that a trace remembers
Adjoints = dict[int, Any]


class Sweep:
    """A sweep from one root down to targets, over the records that the root reaches, in order.

    `records` are these, whether gradients do not pass them, and what tells their parameters.
    `appended` are the positions of what it appended, and `found` those of its targets' adjoints; of
    one that is only noted there are none.
    """

    __slots__ = ("appended", "found", "live", "records", "root", "targets", "weight")

    def __init__(
        self, trace: Trace, live: list[int], root: int, weight: int, targets: set[int]
    ) -> None:
        self.live, self.root, self.weight, self.targets = live, root, weight, targets
        nodes = trace.nodes
        self.records = [(nodes[p], p in trace.blocked, static(nodes[p].params)) for p in live]
        self.appended = range(0)
        self.found: dict[int, int] = {}


class _Known(dict[Any, int]):
    """The equal records of an operation, and whether one was found that is not of its `own`.

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
    trace: Trace, adjoints: Adjoints, targets: set[int], run: Callable[[], None]
) -> None:
    """Sweep, from and to `adjoints`: by `run`, or by copying what an earlier sweep has appended."""
    weight = _weight(trace, adjoints, targets)
    if weight is None:
        run()
        return
    (root,), where, live = adjoints, None, []
    keys: list[Any] = [(root - min(targets), len(targets))]
    before = trace.sweeps.get(keys[0])
    if before is not None:  # most often all is at the same distance
        live = [p + root - before.root for p in before.live]
        where = _counterparts(trace, before, live, weight, targets)
    if where is None:
        nodes, found = trace.nodes, reached(trace, adjoints, min(targets))
        live = sorted([p for p in found if nodes[p].value is None])
        if any(getattr(nodes[p].op, "kind", "") is REGION for p in live):
            run()
            return
        keys.append((len(live), len(targets), "records"))
        before = trace.sweeps.get(keys[1])
        if before is not None:
            where = _counterparts(trace, before, live, weight, targets)
    sweep = None
    if before is None or where is None:
        run()
        sweep = Sweep(trace, live, root, weight, targets)
    elif before.found:
        append_again(trace, before.appended, where)
        adjoints.clear()
        adjoints |= {where[t]: trace.tensor(where[p]) for t, p in before.found.items()}
    else:
        noted = Sweep(trace, live, root, weight, targets)
        sweep = noted if _noted(trace, adjoints, noted, run) else None
    if sweep is not None:
        if len(trace.sweeps) >= MOST:
            trace.sweeps.clear()
        trace.sweeps |= dict.fromkeys(keys, sweep)


def _weight(trace: Trace, adjoints: Adjoints, targets: set[int]) -> int | None:
    """The record of the only root's weight, if nothing but rules of operations runs."""
    levels = current.tape.levels
    if len(adjoints) != 1 or trace.moved or trace.pulls or trace.inside is not None:
        return None
    ((root, g),) = adjoints.items()
    weight = _place(trace, g)
    if weight is None or root in targets or not levels or levels[-1] is not trace:
        return None
    return None if trace.nodes[weight].value is None else weight


def reached(trace: Trace, roots: Iterable[int], bottom: int) -> set[int]:
    """The records that roots depend on, down to some position."""
    feeding, live = trace.feeding, set(roots)
    todo = list(live)
    while todo:
        for a in feeding(todo.pop()):
            if a >= bottom and a not in live:
                live.add(a)
                todo.append(a)
    return live


def _place(trace: Trace, t: Any) -> int | None:
    """The record of a Tensor of a trace that shows all of its memory, as it was made."""
    lift = getattr(t, "_lift", None)
    if type(lift) is not TracedStorage or lift.at is not trace or lift.version:
        return None
    return lift.position


def _counterparts(
    trace: Trace, before: Sweep, live: list[int], weight: int, targets: set[int]
) -> dict[int, int] | None:
    """Where what one sweep goes over and reads is in another one; None if they differ."""
    nodes, blocked = trace.nodes, trace.blocked
    where = dict(zip(before.live, live, strict=True))
    bottom = min(targets)
    if before.weight != weight:
        return None
    if {where[t] for t in before.targets if t in where} != targets.intersection(live):
        return None
    for (a, stops, params), q in zip(before.records, live, strict=True):
        b = nodes[q]
        if (
            a.op is not b.op
            or (a.shape is not b.shape and a.shape != b.shape)
            or a.dtype is not b.dtype
            or (a.params is not b.params and params != static(b.params))
            or (q in blocked) is not stops
            or len(a.args) != len(b.args)
        ):
            return None
        for x, y in zip(a.args, b.args, strict=True):
            known = where.get(x)
            if known == y:
                continue
            if known is None:
                if y >= bottom and nodes[y].value is None:
                    return None
                if x != y and not _same_outside(nodes[x], nodes[y]):
                    return None
                where[x] = y
            else:
                return None
    return where


def _same_outside(a: Node, b: Node) -> bool:
    """Whether rules do the same on two operands from elsewhere; of constants they know values."""
    return a.spec == b.spec and a.value is None and b.value is None


def _noted(trace: Trace, adjoints: Adjoints, sweep: Sweep, run: Callable[[], None]) -> bool:
    """Run a sweep and note what it appends; whether all of it can be copied."""
    guards, first, own = len(trace.guards), len(trace.nodes), {*sweep.live}
    with watched(trace, own) as equal:
        run()
    sweep.appended = range(first, len(trace.nodes))
    for t in sweep.targets & adjoints.keys():
        place = _place(trace, adjoints[t])
        if place is None or place in sweep.found.values():
            return False
        sweep.found[t] = place
    read = own.union(*[trace.nodes[p].args for p in sweep.live], sweep.appended)
    return (
        not any(found.others for found in equal)
        and len(trace.guards) == guards
        and can_append_again(trace, sweep.appended, read)
        and all(p in read for p in sweep.found.values())
    )


@contextmanager
def watched(trace: Trace, own: set[int]) -> Iterator[list[_Known]]:
    """Watch meanwhile which equal records are found; the new ones are added to those known."""
    before, plans = trace.known, trace.plans
    seen = {op: _Known(found, own) for op, found in before.items()}
    trace.known, trace.plans = dict(seen), {}
    try:
        yield [*seen.values()]
    finally:
        for op, found in trace.known.items():
            before.setdefault(op, {}).update(found)
        trace.known, trace.plans = before, plans


def can_append_again(trace: Trace, positions: range, read: set[int]) -> bool:
    """Whether records can be appended again, on what corresponds to what they `read`."""
    nodes = trace.nodes
    for position in positions:
        op = nodes[position].op
        if op is None or op.kind is REGION or position in trace.pulls or position in trace.blocked:
            return False
        if not all(a in read or nodes[a].value is not None for a in nodes[position].args):
            return False
    return True


def append_again(trace: Trace, positions: range, where: dict[int, int]) -> None:
    """Append records once more, on the operands that `where` says; adds to it."""
    known, nodes, at = trace.known, trace.nodes, where.get
    first = len(nodes)
    for position in positions:
        node = nodes[position]
        op: Any = node.op
        args = tuple(map(at, node.args, node.args))
        same = None if op.kind is not ELEMENTWISE or node.params else known.setdefault(op, {})
        if same is not None and args in same:
            where[position] = same[args]
            continue
        made = node.on(args)
        nodes += (made,)  # nothing comes in between, as it might at a call
        trace.arrays += (None,)
        where[position] = end = len(nodes) - 1
        if same is not None:
            same[args] = end
        if position in trace.strided:
            trace.strided[end] = trace.strided[position]
    if first <= trace.long < len(nodes):
        announce_long()
