"""The derivatives of loops and branches: a loop the other way round, a branch over the same arms.

The adjoint of a loop goes through the trips in the opposite order.  It reads the carries with which
each trip began, which the loop keeps only where this asks for them, runs the body on them once more
and sweeps it in reverse.  Its own carries are the adjoints of the carries, and the sums of what the
trips contribute to what is the same in all of them.  As it is made by the same means as any loop,
it has a derivative too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.backward import swept
from tapegrad.compiler.cells import Owner
from tapegrad.compiler.control import (
    append_branch,
    append_loop,
    closed,
    first_entry,
    inlined,
    opened,
    take,
)
from tapegrad.compiler.graph import Node
from tapegrad.compiler.region import BRANCH, LOOP, TAKE, Bundle, Repeat, Sub, graphs_of
from tapegrad.compiler.trace import Trace, Untraceable, traced
from tapegrad.ops import elementwise as e
from tapegrad.tensor import Tensor

Found = list[tuple[int, Any]]
Wanted = Callable[[int], bool]


def _floating(trace: Trace, position: int) -> bool:
    return trace.nodes[position].dtype.kind in "fc"


def _refuse(node: Node) -> None:
    """Let Python run what has a `backward` in it that only the trace of the body could call."""
    if any(sub.pulled for sub in graphs_of(node)):
        raise Untraceable


def pull_take(trace: Trace, position: int, g: Any, wanted: Wanted) -> Found:
    """A result's adjoint is a part of that of the loop or branch."""
    node = trace.nodes[position]
    terms = g.parts[0] if isinstance(g, Bundle) else [g]
    return [(node.args[0], Bundle({node.params["k"]: terms}))]


def pull_branch(trace: Trace, position: int, g: Bundle, wanted: Wanted) -> Found:
    """A branch over the sweeps of the arms."""
    node = trace.nodes[position]
    _refuse(node)
    arms: tuple[Sub, ...] = node.params["arms"]
    args = node.args[1:]
    targets = [k for k, a in enumerate(args) if _floating(trace, a) and wanted(a)]
    weights = {k: trace.position(_sum(terms)) for k, terms in g.parts.items()}
    given = (*args, *weights.values())
    owner = Owner(trace, "cond", len(given), lazy=True)
    graphs = []
    for arm in arms:
        with opened(owner) as inner:
            entered = [inner.entrance(k, trace.values[a]) for k, a in enumerate(given)]
            outputs = inlined(inner, arm, dict(enumerate(entered)))
            roots: list[Tensor] = [traced(inner, outputs[k]) for k in weights]
            found = swept(
                inner, roots, [traced(inner, p) for p in entered[len(args) :]],
                [traced(inner, entered[k]) for k in targets],
            )  # fmt: skip
            graphs.append(closed(inner, found))
    where = append_branch(trace, graphs, (node.args[0], *given, *owner.brought))
    return [(args[k], traced(trace, take(trace, where, i))) for i, k in enumerate(targets)]


class _Reversed(NamedTuple):
    """What the adjoint of a loop is made of, as positions in the trace or numbers of operands."""

    form: Repeat
    inits: tuple[int, ...]
    rows: tuple[int, ...]
    rest: tuple[int, ...]
    carries: list[int]  # the numbers of the carries that have an adjoint
    lines: list[int]  # of the rows whose adjoint is wanted
    shared: list[int]  # of the rest
    weights: dict[int, int]  # the adjoint of each result, where it lies


def pull_loop(trace: Trace, position: int, g: Bundle, wanted: Wanted) -> Found:
    """A loop in the opposite order over the sweeps of the body."""
    node = trace.nodes[position]
    _refuse(node)
    form: Repeat = node.params["form"]
    inits, rows, rest = form.split(node.args)
    parts = _Reversed(
        form, inits, rows, rest,
        [k for k, a in enumerate(inits) if _floating(trace, a)],
        [k for k, a in enumerate(rows) if _floating(trace, a) and wanted(a)],
        [k for k, a in enumerate(rest) if _floating(trace, a) and wanted(a)],
        {k: _added(trace, form, position, k, terms) for k, terms in g.parts.items()},
    )  # fmt: skip
    where = _append(trace, position, parts)
    found = []
    numbers = [(inits, parts.carries), (rest, parts.shared), (rows, parts.lines)]
    k = 0
    for operands, chosen in numbers:
        for i in chosen:
            if wanted(operands[i]):
                adjoint = traced(trace, take(trace, where, k))
                unknown = operands is rows and form.trips is None
                found.append((operands[i], Bundle({0: [adjoint]}) if unknown else adjoint))
            k += 1
    return found


def _append(trace: Trace, position: int, parts: _Reversed) -> int:
    """Append the adjoint loop."""
    form = parts.form
    count: tuple[int, ...] = ()
    if form.counted:
        count = trace.nodes[position].args[:1]
    elif form.trips is None:
        count = (take(trace, position, form.counter),)
    specs = form.body.specs()
    begin = []
    for k in parts.carries:
        zeros = np.zeros(specs[k].shape, specs[k].dtype)
        begin.append(parts.weights[k] if k in parts.weights else trace.constant(zeros))
    for k in parts.shared:
        like = trace.nodes[parts.rest[k]]
        begin.append(trace.constant(np.zeros(like.shape, like.dtype)))
    stacked = {k: p for k, p in parts.weights.items() if k >= form.carries}
    entries = [take(trace, position, form.entry(k)) for k in range(form.carries)]
    lines = [*entries, *parts.rows, *stacked.values()]
    owner = Owner(trace, "a loop", len(begin) + len(lines) + len(parts.rest))
    with opened(owner) as inner:
        values = [trace.values[p] for p in begin]
        values += [first_entry(trace.values[p]) for p in lines]
        values += [trace.values[p] for p in parts.rest]
        at = [inner.entrance(k, v) for k, v in enumerate(values)]
        body = closed(inner, _body(inner, parts, at, list(stacked)))
    made = Repeat(body, None, len(begin), len(lines), form.trips, not form.backwards)
    return append_loop(trace, made, (*count, *begin, *lines, *parts.rest, *owner.brought))


def _body(inner: Trace, parts: _Reversed, at: list[int], stacked: list[int]) -> list[Tensor]:
    """One trip: the body once more, and the sweep over it."""
    form = parts.form
    n, n_shared = len(parts.carries), len(parts.shared)
    gs = [traced(inner, p) for p in at[:n]]
    sums = [traced(inner, p) for p in at[n : n + n_shared]]
    start = n + n_shared
    rows = start + form.carries
    ends = rows + form.rows
    rest = ends + len(stacked)
    # The body reads its carries, rows and the rest, in this order.
    operands = [*at[start:ends], *at[rest:]]
    outputs = inlined(inner, form.body, dict(enumerate(operands)))
    given = dict(zip(stacked, [traced(inner, p) for p in at[ends:rest]], strict=True))
    roots: list[Tensor] = [traced(inner, outputs[k]) for k in parts.carries]
    weights: list[Any] = list(gs)
    for k, g in given.items():
        if k < len(outputs):
            roots.append(traced(inner, outputs[k]))
            weights.append(g)
    targets = [
        *[operands[k] for k in parts.carries],
        *[operands[form.carries + form.rows + k] for k in parts.shared],
        *[operands[form.carries + k] for k in parts.lines],
    ]
    found = swept(inner, roots, weights, [traced(inner, p) for p in targets])
    back = []
    for k, adjoint in zip(parts.carries, found, strict=False):
        also = given.get(form.entry(k))
        back.append(adjoint if also is None else e.add(adjoint, also))
    sums = [e.add(s, adjoint) for s, adjoint in zip(sums, found[n : n + n_shared], strict=True)]
    return [*back, *sums, *found[n + n_shared :]]


def _sum(terms: list[Tensor]) -> Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = e.add(total, term)
    return total


def _added(trace: Trace, form: Repeat, position: int, k: int, terms: list[Tensor]) -> int:
    """The adjoint of one result of a loop."""
    if len(terms) == 1 or not form.unknown(k):
        return trace.position(_sum(terms))
    # Rows whose number is known only when the program runs are added up by a loop.
    args = [trace.position(t) for t in terms]
    count = trace.nodes[position].args[0] if form.counted else take(trace, position, form.counter)
    owner = Owner(trace, "a loop", len(args))
    with opened(owner) as inner:
        zeros = np.zeros(trace.nodes[args[0]].shape[1:], trace.nodes[args[0]].dtype)
        total = _sum([traced(inner, inner.entrance(i, zeros)) for i in range(len(args))])
        body = closed(inner, [total])
    where = append_loop(trace, Repeat(body, None, 0, len(args), None, False), (count, *args))
    return take(trace, where, 0)


LOOP.pull, BRANCH.pull, TAKE.pull = pull_loop, pull_branch, pull_take
