"""Loops and branches in a trace: each of their functions is traced once, into a graph they own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tapegrad.compiler.cells import Owner
from tapegrad.compiler.graph import Node, reached
from tapegrad.compiler.region import (
    BRANCH,
    EMPTY,
    LOOP,
    REGION,
    TAKE,
    Repeat,
    Sub,
    result,
    run_region,
)
from tapegrad.compiler.trace import Trace, traced
from tapegrad.lift.core import Level
from tapegrad.tape import current
from tapegrad.tensor import Tensor
from tapegrad.transforms.looping import tracing_control

Leaves = list[Any]


@contextmanager
def opened(owner: Owner) -> Iterator[Trace]:
    """A trace of one function of a loop or branch, under way."""
    inner = Trace(owner)
    outer: Trace | None = owner.trace
    assert outer is not None
    above, outer.inside = outer.inside, inner
    while outer is not None:
        owner.marks[outer] = len(outer.nodes)
        outer = outer.owner.trace if outer.owner is not None else None
    current.tape.levels.append(inner)
    try:
        yield inner
    finally:
        current.tape.levels.remove(inner)
        owner.trace.inside = above


def closed(inner: Trace, outputs: Sequence[Any]) -> Sub:
    """What was traced, as a graph for a record to own."""
    positions = tuple([inner.position(x) for x in outputs])
    inputs = {n.params["k"]: i for i, n in enumerate(inner.nodes) if n.name == "input"}
    return Sub(inner.nodes, inputs, positions, frozenset(inner.blocked), bool(inner.pulls))


def branch(
    at: Level, pred: Tensor, arms: Sequence[Callable[[Leaves], Leaves]], operands: Leaves
) -> Leaves:
    """A branch: the first arm if the condition holds, else the second."""
    assert isinstance(at, Trace)
    given = [at.position(x) for x in operands]
    owner = Owner(at, "cond", len(given), lazy=True)
    graphs = []
    for arm in arms:
        with opened(owner) as inner:
            found = arm(_entered(inner, 0, [at.values[p] for p in given]))
            graphs.append(closed(inner, found))
    where = append_branch(at, graphs, (at.position(pred), *given, *owner.brought))
    return [traced(at, take(at, where, k)) for k in range(len(graphs[0].outputs))]


def loop(
    at: Level, name: str, body: Callable[[Leaves, Leaves], tuple[Leaves, Leaves]],
    until: Callable[[Leaves], Any] | None, inits: Leaves, rows: Leaves, trips: int | Tensor | None,
    backwards: bool,
) -> tuple[Leaves, Leaves]:  # fmt: skip
    """A loop; returns the last carries and the outputs of all trips."""
    assert isinstance(at, Trace)
    first = [at.position(x) for x in inits]
    lines = [at.position(x) for x in rows]
    owner = Owner(at, name, len(first) + len(lines))
    with opened(owner) as inner:
        carry = _entered(inner, 0, [at.values[p] for p in first])
        entries = _entered(inner, len(first), [first_entry(at.values[p]) for p in lines])
        last, outputs = body(carry, entries)
        graph = closed(inner, [*last, *outputs])
    condition = None
    if until is not None:
        with opened(owner) as inner:
            found = until(_entered(inner, 0, [at.values[p] for p in first]))
            condition = closed(inner, [found])
    count = (at.position(trips),) if isinstance(trips, Tensor) else ()
    form = Repeat(
        graph, condition, len(first), len(lines), None if count else trips, backwards  # type: ignore[arg-type]
    )  # fmt: skip
    where = append_loop(at, form, (*count, *first, *lines, *owner.brought))
    taken = [traced(at, take(at, where, k)) for k in range(len(graph.outputs))]
    return taken[: len(first)], taken[len(first) :]


def _entered(inner: Trace, start: int, values: list[np.ndarray]) -> Leaves:
    return [traced(inner, inner.entrance(k, v)) for k, v in enumerate(values, start)]


def first_entry(rows: np.ndarray) -> np.ndarray:
    """What a body is traced with in place of one entry."""
    return np.asarray(rows[0]) if len(rows) else np.zeros(rows.shape[1:], rows.dtype)


def append_loop(trace: Trace, form: Repeat, args: tuple[int, ...]) -> int:
    """Append the record of a loop, without the operands that none of its graphs reads."""
    inits, rows, rest = form.split(args)
    start, end = form.carries, form.carries + form.rows
    used = {k for sub in form.graphs() for k in sub.used()}
    kept = [*range(start), *sorted(k for k in used if k >= start)]
    numbers = {k: i for i, k in enumerate(kept)}
    operands = (*inits, *rows, *rest)
    form = form._replace(
        body=form.body.renumbered(numbers),
        until=None if form.until is None else form.until.renumbered(numbers),
        rows=sum(start <= k < end for k in kept),
    )
    args = (*args[: form.counted], *[operands[k] for k in kept])
    return _append(trace, Node(LOOP, args, {"form": form}, EMPTY.shape, EMPTY.dtype))


def append_branch(trace: Trace, arms: Sequence[Sub], args: tuple[int, ...]) -> int:
    """Append the record of a branch, without the operands that no arm reads."""
    kept = sorted({k for arm in arms for k in arm.used()})
    numbers = {k: i for i, k in enumerate(kept)}
    graphs = tuple([arm.renumbered(numbers) for arm in arms])
    args = (args[0], *[args[1 + k] for k in kept])
    return _append(trace, Node(BRANCH, args, {"arms": graphs}, EMPTY.shape, EMPTY.dtype))


def _append(trace: Trace, node: Node) -> int:
    assert node.op is not None
    cuts = trace.glance.cuts
    found = run_region(node.op, node.params, [trace.values[a] for a in node.args], trace.glance)
    position = trace.append(node, EMPTY)
    trace.regions[position] = found
    if trace.glance.cuts > cuts:
        trace.guessed.add(position)
    if not current.tape.enabled:
        trace.blocked.add(position)
    return position


def take(trace: Trace, region: int, k: int) -> int:
    """Append the record of one result."""
    value = result(trace.regions[region], k)
    return trace.append(Node(TAKE, (region,), {"k": k}, value.shape, value.dtype), value)


def inlined(trace: Trace, sub: Sub, given: dict[int, int]) -> list[int]:
    """Run a graph as records of a trace; returns the positions of its outputs."""
    where: dict[int, int] = {}
    live = reached(sub.graph(), sub.outputs)
    for position, node in enumerate(sub.nodes):
        if not live[position]:
            continue
        args = tuple([where[a] for a in node.args])
        if node.op is None:
            constant = node.value is not None
            where[position] = trace.constant(node.value) if constant else given[node.params["k"]]  # type: ignore[arg-type]
            continue
        if node.op is TAKE:
            made = take(trace, args[0], node.params["k"])
        elif node.op.kind is REGION:
            made = _append(trace, node.on(args))
        else:
            made = trace.record(node.op, args, node.params)
        where[position] = made
        if position in sub.blocked:
            trace.blocked.add(made)
    return [where[i] for i in sub.outputs]


tracing_control(branch, loop)
