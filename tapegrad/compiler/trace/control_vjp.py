"""The VJPs of control flow: a loop in reverse, a branch over the same arms.

The adjoint of a loop runs the trips in the opposite order.  It reads the carries at the start of
each trip, which the loop saves only if it has an adjoint, reruns the body on them and sweeps it in
reverse.  Its own carries are the adjoints of the carries, and accumulators of the contributions to
loop invariants.  As it is traced like any loop, it has a derivative too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.ir.control_ops import BRANCH, LOOP, TAKE, Bundle, Repeat, Sub
from tapegrad.compiler.trace.control_flow import Leaves, Lines, branch, inlined, repeated, take
from tapegrad.compiler.trace.trace import Trace, Wanted
from tapegrad.ops import elementwise as e
from tapegrad.tensor import Tensor

Found = list[tuple[int, Any]]
# Traces the gradients of weighted roots.
Sweep = Callable[[Trace, list[Tensor], list[Any], list[Tensor]], list[Tensor]]


def _floating(trace: Trace, position: int) -> bool:
    return trace.nodes[position].dtype.kind in "fc"


def pull_take(sweep: Sweep, trace: Trace, position: int, g: Any, wanted: Wanted) -> Found:
    """Hand the adjoint of a result to the loop or branch."""
    node = trace.nodes[position]
    terms = g.parts[0] if isinstance(g, Bundle) else [g]
    return [(node.args[0], Bundle({node.params["k"]: terms}))]


def pull_branch(sweep: Sweep, trace: Trace, position: int, g: Bundle, wanted: Wanted) -> Found:
    """Trace a branch over the sweeps of the arms."""
    node = trace.nodes[position]
    args = node.args[1:]
    targets = [k for k, a in enumerate(args) if _floating(trace, a) and wanted(a)]
    if not targets:  # the condition alone depends on what is differentiated in
        return []
    weights = {k: _sum(terms) for k, terms in g.parts.items()}

    def swept_arm(arm: Sub) -> Callable[[Leaves], Leaves]:
        def run(operands: Leaves) -> Leaves:
            inner = trace.inside
            assert inner is not None
            entered = [inner.position(x) for x in operands]
            outputs = inlined(inner, arm, dict(enumerate(entered)))
            roots: list[Tensor] = [inner.tensor(outputs[k]) for k in weights]
            inputs: list[Tensor] = [inner.tensor(entered[k]) for k in targets]
            return sweep(inner, roots, list(weights.values()), inputs)

        return run

    arms = [swept_arm(arm) for arm in node.params["arms"]]
    found = branch(trace, trace.tensor(node.args[0]), arms, [trace.tensor(a) for a in args])
    return [(args[k], adjoint) for k, adjoint in zip(targets, found, strict=True)]


class _Reversed(NamedTuple):
    """The parts of the adjoint of a loop, as positions in the trace or numbers of operands."""

    sweep: Sweep
    form: Repeat
    inits: tuple[int, ...]
    rows: tuple[int, ...]
    rest: tuple[int, ...]
    carries: list[int]  # the numbers of the carries that have an adjoint
    lines: list[int]  # of the rows that need an adjoint
    shared: list[int]  # positions of the loop invariants that need an adjoint
    weights: dict[int, Tensor]  # the adjoints of the last carries
    stacked: dict[int, Lines]  # those of per-trip outputs and saved carries


def pull_loop(sweep: Sweep, trace: Trace, position: int, g: Bundle, wanted: Wanted) -> Found:
    """Trace a loop in the opposite order over the sweeps of the body."""
    node = trace.nodes[position]
    form: Repeat = node.params["form"]
    inits, rows, rest = form.split(node.args)
    count: int | Tensor | None = form.trips
    if form.counted:
        count = trace.tensor(node.args[0])
    elif count is None:
        count = trace.tensor(take(trace, position, form.counter))
    parts = _Reversed(
        sweep, form, inits, rows, rest,
        [k for k, a in enumerate(inits) if _floating(trace, a)],
        [k for k, a in enumerate(rows) if _floating(trace, a) and wanted(a)],
        list(dict.fromkeys([a for a in rest if _floating(trace, a) and wanted(a)])),
        {k: _sum(terms) for k, terms in g.parts.items() if k < form.carries},
        {k: _added(trace, count, terms) for k, terms in g.parts.items() if k >= form.carries},
    )  # fmt: skip
    entries = [take(trace, position, form.entry(k)) for k in range(form.carries)]
    lines = [Lines(None, [trace.tensor(p)]) for p in (*entries, *rows)]
    last, outputs = repeated(
        trace, "a loop", lambda c, x: _trip(trace, parts, c, x), None, _begin(trace, parts),
        [*lines, *parts.stacked.values()], count, not form.backwards,
    )  # fmt: skip
    places = [*[inits[k] for k in parts.carries], *parts.shared]
    found: Found = [(a, x) for a, x in zip(places, last, strict=True) if wanted(a)]
    for k, x in zip(parts.lines, outputs, strict=True):
        found.append((rows[k], Bundle({0: [x]}) if form.trips is None else x.whole()))
    return found


def _begin(trace: Trace, parts: _Reversed) -> Leaves:
    """The initial carries of the adjoint loop: adjoints of the last carries, and accumulators."""
    known, inits = parts.weights, parts.inits
    found = [known[k] if k in known else _zeros(trace, inits[k]) for k in parts.carries]
    return [*found, *[_zeros(trace, p) for p in parts.shared]]


def _zeros(trace: Trace, like: int) -> Tensor:
    node = trace.nodes[like]
    return trace.fixed(np.zeros(node.shape, node.dtype))


def _trip(trace: Trace, parts: _Reversed, carry: Leaves, entries: Leaves) -> tuple[Leaves, Leaves]:
    """One trip: rerun the body, and sweep it."""
    inner, form = trace.inside, parts.form
    assert inner is not None
    given, also = entries[: form.carries + form.rows], entries[form.carries + form.rows :]
    # The body reads its carries, rows and the rest, in this order.
    operands = [inner.position(x) for x in given]
    operands += [inner.position(trace.tensor(p)) for p in parts.rest]
    outputs = inlined(inner, form.body, dict(enumerate(operands)))
    n, n_shared = len(parts.carries), len(parts.shared)
    more = dict(zip(parts.stacked, also, strict=True))
    numbers = [*parts.carries, *[k for k in more if k < len(outputs)]]
    weights = [*carry[:n], *[g for k, g in more.items() if k < len(outputs)]]
    targets = [
        *[operands[k] for k in parts.carries],
        *[inner.position(trace.tensor(p)) for p in parts.shared],
        *[operands[form.carries + k] for k in parts.lines],
    ]
    roots: list[Tensor] = [inner.tensor(outputs[k]) for k in numbers]
    found = parts.sweep(inner, roots, weights, [inner.tensor(p) for p in targets])
    for i, k in enumerate(parts.carries):
        if form.entry(k) in more:
            found[i] = e.add(found[i], more[form.entry(k)])
    for i in range(n, n + n_shared):
        found[i] = e.add(carry[i], found[i])
    return found[: n + n_shared], found[n + n_shared :]


def _sum(terms: list[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = e.add(total, term)
    return total


def _added(trace: Trace, count: int | Tensor | None, terms: list[Tensor | Lines]) -> Lines:
    """The adjoint of a per-trip output."""
    lines = [x for x in terms if isinstance(x, Lines)]
    if not lines:
        return Lines.of(_sum(terms))
    if len(lines) == 1:
        return lines[0]

    # Rows of a number known only at run time are summed by a loop.
    def body(_: Leaves, entries: Leaves) -> tuple[Leaves, Leaves]:
        return [], [_sum(entries)]

    return repeated(trace, "a loop", body, None, [], lines, count, backwards=False)[1][0]


PULLS: dict[Any, Callable[..., Found]] = {LOOP: pull_loop, BRANCH: pull_branch, TAKE: pull_take}
