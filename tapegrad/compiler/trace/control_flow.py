"""Trace loops and branches: each of their functions once, into a graph that they own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.ir.control_ops import (
    BRANCH,
    EMPTY,
    LOOP,
    REGION,
    TAKE,
    Repeat,
    Sub,
    result,
    result_spec,
)
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.trace.trace import Owner, Trace
from tapegrad.compiler.trace.trace_redirect import replace
from tapegrad.dispatch.dispatch import run
from tapegrad.lift.flatten import Layer, differs, heights, joined, layer_of, parts_of, together
from tapegrad.lift.gradient_targets import plain
from tapegrad.lift.levels import put_above
from tapegrad.ops.core import Spec
from tapegrad.ops.shape import permute
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor
from tapegrad.transforms.looping import chosen, copies

Leaves = list[Any]
Layers = list[Layer | None]
Body = Callable[[Leaves, Leaves], tuple[Leaves, Leaves]]


class opened:
    """Open a trace of one function of a loop or branch.

    Maps and derivatives within the trace that the record stands in go on within this one: its
    number lies below theirs.
    """

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.inner = type(owner.trace)(owner)

    def __enter__(self) -> Trace:
        outer: Trace | None = self.owner.trace
        assert outer is not None
        self.above, outer.inside = outer.inside, self.inner
        while outer is not None:
            self.owner.marks[outer] = len(outer.nodes)
            outer = outer.owner.trace if outer.owner is not None else None
        put_above(self.inner, self.owner.trace)
        return self.inner

    def __exit__(self, *exception: object) -> None:
        current.tape.levels.remove(self.inner)
        self.owner.trace.inside = self.above


def closed(inner: Trace, outputs: Sequence[Any]) -> Sub:
    """Close a trace into a graph for a record to own."""
    positions = tuple([inner.position(x) for x in outputs])
    inputs = {n.params["k"]: i for i, n in enumerate(inner.nodes) if n.name == "input"}
    blocked = frozenset(inner.blocked)
    return Sub(inner.nodes, inputs, positions, inner, blocked, pulled=inner.backward_only())


class Lines(NamedTuple):
    """A value for each trip of a loop: they lie along the first dimension of its bare parts."""

    layer: Layer | None
    parts: list[Tensor]

    @classmethod
    def of(cls, t: Tensor) -> Lines:
        """The entries of a Tensor."""
        layer = layer_of(t)
        parts = zip(parts_of(t, layer), heights(layer), strict=True)
        return cls(layer, [_turned(x, (n, *range(n))) for x, n in parts])

    def whole(self) -> Tensor:
        """The Tensor with these entries."""
        parts = zip(self.parts, heights(self.layer), strict=True)
        turned = [_turned(x, (*range(1, n + 1), 0)) for x, n in parts]
        return together(iter(turned), self.layer)


def _turned(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Permute the first dimensions."""
    if len(dims) == 1:
        return x
    return run(permute, (x,), {"dims": (*dims, *range(len(dims), x._a.ndim))})


def branch(
    at: Trace, pred: Tensor, arms: Sequence[Callable[[Leaves], Leaves]], operands: Leaves
) -> Leaves:
    """A branch: the first arm if the condition holds, else the second."""
    entering = [layer_of(x) for x in operands]
    given = _positions(at, operands, entering)
    layers: Layers | None = None
    while True:
        owner = Owner(at, "cond", len(given), lazy=True)
        graphs, before = [], layers
        for arm in arms:
            with opened(owner) as inner:
                found = arm(_entered(inner, 0, [at.value(p) for p in given], entering))
                own = [layer_of(x) for x in found]
                layers = own if layers is None else _joined(layers, own)
                before = layers if before is None else before
                graphs.append(closed(inner, _parts_of(found, layers)))
        assert layers is not None
        if layers == before:
            break
    where = append_branch(at, graphs, (at.position(pred), *given, *owner.brought))
    results = iter([at.tensor(take(at, where, k)) for k in range(len(graphs[0].outputs))])
    return [together(results, layer) for layer in layers]


@contextmanager
def both(at: Trace) -> Iterator[None]:
    """Forbid changes of captured memory while both arms of a branch are traced."""
    before, at.floor = at.floor, len(at.nodes)
    try:
        yield
    finally:
        at.floor = before


def loop(
    at: Trace, name: str, body: Body, until: Callable[[Leaves], Any] | None, inits: Leaves,
    rows: Leaves, trips: int | Tensor | None, backwards: bool,
) -> tuple[Leaves, Leaves]:  # fmt: skip
    """A loop; returns the last carries and the outputs of all trips."""
    lines = [Lines.of(x) for x in rows]
    last, outputs = repeated(at, name, body, until, inits, lines, trips, backwards)
    return last, [x.whole() for x in outputs]


def repeated(
    at: Trace, name: str, body: Body, until: Callable[[Leaves], Any] | None, inits: Leaves,
    rows: list[Lines], trips: int | Tensor | None, backwards: bool,
) -> tuple[Leaves, list[Lines]]:  # fmt: skip
    """`loop`, with rows and outputs indexed by trip.

    A carry becomes a dual or a batch if a trip makes it one: the body is traced again until what
    goes in is of the same layers as what comes out.
    """
    layers = [layer_of(x) for x in inits]
    entries = [x.layer for x in rows]
    lines = [at.position(part) for x in rows for part in x.parts]
    while True:
        first = _positions(at, inits, layers)
        owner = Owner(at, name, len(first) + len(lines))
        values = [at.value(p) for p in first]
        condition, trip = None, body
        if until is not None:
            with opened(owner) as inner:
                goes_on = until(_entered(inner, 0, values, layers))
                if differs(goes_on):
                    trip = _while_it_goes_on(body, until)
                condition = closed(inner, [_any(plain(goes_on))])
        with opened(owner) as inner:
            carry = _entered(inner, 0, values, layers)
            given = [first_entry(at.value(p)) for p in lines]
            last, outputs = trip(carry, _entered(inner, len(first), given, entries))
            before, layers = layers, _joined(layers, [layer_of(x) for x in last])
            if layers == before:
                kept = [layer_of(x) for x in outputs]
                graph = closed(inner, [*_parts_of(last, layers), *_parts_of(outputs, kept)])
                break
    count = (at.position(plain(trips)),) if isinstance(trips, Tensor) else ()
    form = Repeat(
        graph, condition, len(first), len(lines), None if count else trips, backwards  # type: ignore[arg-type]
    )  # fmt: skip
    where = append_loop(at, form, (*count, *first, *lines, *owner.brought))
    taken = iter([at.tensor(take(at, where, k)) for k in range(len(graph.outputs))])
    return [together(taken, layer) for layer in layers], [
        Lines(layer, [next(taken) for _ in heights(layer)]) for layer in kept
    ]


def _while_it_goes_on(body: Body, until: Callable[[Leaves], Any]) -> Body:
    """A trip of a batched `while`: finished examples keep their carries."""

    def trip(carry: Leaves, entries: Leaves) -> tuple[Leaves, Leaves]:
        goes_on = until(carry)
        last, outputs = body(copies(carry), entries)
        return [chosen(goes_on, x, y) for x, y in zip(last, carry, strict=True)], outputs

    return trip


def _any(pred: Tensor) -> Tensor:
    return pred.any() if pred._a.ndim else pred


def _joined(a: Layers, b: Layers) -> Layers:
    return [joined(x, y) for x, y in zip(a, b, strict=True)]


def _parts_of(leaves: Leaves, layers: Layers) -> list[Tensor]:
    """The bare parts of some leaves."""
    return [part for x, layer in zip(leaves, layers, strict=True) for part in parts_of(x, layer)]


def _positions(at: Trace, leaves: Leaves, layers: Layers) -> list[int]:
    return [at.position(part) for part in _parts_of(leaves, layers)]


def _entered(inner: Trace, start: int, values: list[np.ndarray], layers: Layers) -> Leaves:
    """Leaves whose bare parts are inputs of a graph."""
    parts = iter([inner.tensor(inner.entrance(k, v)) for k, v in enumerate(values, start)])
    return [together(parts, layer) for layer in layers]


def first_entry(rows: np.ndarray) -> np.ndarray:
    """The value that stands for an entry while a body is traced."""
    return np.asarray(rows[0]) if len(rows) else np.zeros(rows.shape[1:], rows.dtype)


def append_loop(trace: Trace, form: Repeat, args: tuple[int, ...]) -> int:
    """Append the record of a loop, without operands that its graphs do not read."""
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
    """Append the record of a branch, without operands that no arm reads."""
    kept = sorted({k for arm in arms for k in arm.used()})
    numbers = {k: i for i, k in enumerate(kept)}
    graphs = tuple([arm.renumbered(numbers) for arm in arms])
    args = (args[0], *[args[1 + k] for k in kept])
    return _append(trace, Node(BRANCH, args, {"arms": graphs}, EMPTY.shape, EMPTY.dtype))


def _append(trace: Trace, node: Node) -> int:
    """Append a loop or a branch; a loop of an unknown number of trips is run for its shapes."""
    position = trace.append(node, None)
    if node.op is LOOP and node.params["form"].trips is None:
        trace.value(position)
    if not current.tape.enabled:
        trace.blocked.add(position)
    return position


def take(trace: Trace, region: int, k: int) -> int:
    """Append the record of one result."""
    spec = result_spec(trace.nodes[region], k)
    value = None
    if spec is None:
        value = result(trace.regions[region], k)
        spec = Spec(value.shape, value.dtype)
    return trace.append(Node(TAKE, (region,), {"k": k}, *spec), value)


def inlined(trace: Trace, sub: Sub, given: dict[int, int]) -> list[int]:
    """Inline a graph into a trace; returns the positions of its outputs."""
    where: dict[int, int] = {}
    live = sub.live()
    pulls = sub.origin.pulls if sub.origin is not None else {}  # of a loop that was re-rolled
    for position, node in enumerate(sub.nodes):
        if not live[position]:
            continue
        args = tuple([where[a] for a in node.args])
        if node.op is None:
            where[position] = _put(trace, node, given, alone=position in pulls)
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
    if sub.pulled:
        replace(trace, sub.origin, where)
    return [where[i] for i in sub.outputs]


def _put(trace: Trace, node: Node, given: dict[int, int], *, alone: bool) -> int:
    """An input or a constant, which may have to be a record of its own."""
    if node.value is None:
        return given[node.params["k"]]
    return trace.append(node, node.value) if alone else trace.constant(node.value)
