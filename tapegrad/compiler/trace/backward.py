"""The reverse sweep over the records of a trace, which appends records itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.pullback import Given
from tapegrad.base.call_site import user_line
from tapegrad.compiler.ir.control_ops import REGION, Bundle
from tapegrad.compiler.trace import control_vjp
from tapegrad.compiler.trace.reroll_swept import with_loops
from tapegrad.compiler.trace.trace import Trace
from tapegrad.compiler.trace.trace_redirect import redirected
from tapegrad.lift.lifted_tensor import zeros_like
from tapegrad.ops import elementwise as e
from tapegrad.ops.core import Formula
from tapegrad.tensor import Tensor


def swept(
    trace: Trace, roots: list[Tensor], weights: list[Any], inputs: list[Tensor]
) -> list[Tensor]:
    """Trace the gradients of weighted roots."""
    targets = [trace.position(x) for x in inputs]
    adjoints: dict[int, Any] = {}
    for root, weight in zip(roots, weights, strict=True):
        if root._a.dtype.kind not in "fc":
            continue
        if weight is None:
            weight = trace.fixed(np.ones(root._a.shape, root._a.dtype))
        _accumulate(adjoints, trace.position(root), weight)
    if adjoints:
        before, trace.line = trace.line, trace.line or user_line()
        try:
            adjoints = with_loops(trace, adjoints, set(targets))
            _sweep(trace, adjoints, set(targets))
        finally:
            trace.line = before
    found = [adjoints.get(t) for t in targets]
    return [zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


def _accumulate(adjoints: dict[int, Any], position: int, g: Any) -> None:
    before = adjoints.get(position)
    if before is None:
        adjoints[position] = g
    else:
        adjoints[position] = before.plus(g) if isinstance(before, Bundle) else e.add(before, g)


def _sweep(trace: Trace, adjoints: dict[int, Any], targets: set[int]) -> None:
    """Sweep in reverse over the records between the targets and the roots."""
    top, bottom = max(adjoints), min(targets)
    leads = [False] * (top + 1 - bottom)
    for position in range(bottom, top + 1):
        leads[position - bottom] = position in targets or any(
            a >= bottom and leads[a - bottom] for a in trace.feeding(position)
        )

    def wanted(a: int) -> bool:
        return a >= bottom and leads[a - bottom]

    values: dict[int, Tensor] = {}

    def value(a: int) -> Tensor:
        found = values.get(a)
        if found is None:
            found = values[a] = trace.tensor(a)
        return found

    parts: dict[int, dict[int, Tensor]] = {}
    for position in range(top, bottom - 1, -1):
        if not leads[position - bottom] or not (position in adjoints or position in parts):
            continue
        g = adjoints.get(position) if position in targets else adjoints.pop(position, None)
        if position in trace.blocked:
            continue
        pull = trace.pulls.get(position)
        if pull is not None:
            with redirected(trace):
                found = list(pull.run(position, parts, g, wanted))
        else:
            assert g is not None
            found = _contributions(trace, position, g, wanted, value)
        for a, more in found:
            _accumulate(adjoints, a, more)


def _contributions(
    trace: Trace, position: int, g: Any, wanted: Callable[[int], bool],
    value: Callable[[int], Tensor],
) -> list[tuple[int, Any]]:  # fmt: skip
    """The contributions of a record to the adjoints of its operands."""
    node = trace.nodes[position]
    op = node.op
    if op is None:
        return []
    if op.kind is REGION:
        return control_vjp.PULLS[op](swept, trace, position, g, wanted)
    values = Given(op, [value(a) for a in node.args], value(position), node.params)
    last = len(op.formulas) - 1
    out = []
    for k, a in enumerate(node.args):
        if not wanted(a) or not isinstance(op.formulas[min(k, last)], Formula):
            continue
        if trace.nodes[a].dtype.kind not in "fc":
            continue
        out.append((a, values.adjoint(k, g)))
    return out
