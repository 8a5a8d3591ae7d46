"""The reverse sweep over the records of a trace, which appends records itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tapegrad.autograd.pullback import Values, fit
from tapegrad.base.call_site import user_place
from tapegrad.compiler.ir.control_ops import REGION, Bundle
from tapegrad.compiler.trace import control_vjp
from tapegrad.compiler.trace.rewrite_swept import rewritten
from tapegrad.compiler.trace.trace import Trace
from tapegrad.compiler.trace.trace_redirect import redirected
from tapegrad.lift.lifted_tensor import zeros_like
from tapegrad.ops import elementwise as e
from tapegrad.ops.core import Spec
from tapegrad.tensor import Tensor


def swept(
    trace: Trace, roots: list[Tensor], weights: list[Any], inputs: list[Tensor]
) -> list[Tensor]:
    """Trace the gradients of weighted roots."""
    targets = [trace.position(x) for x in inputs]
    adjoints: dict[int, Any] = {}
    for root, weight in zip(roots, weights, strict=True):
        position = trace.position(root)
        shape, dtype = trace.nodes[position].spec
        if dtype.kind not in "fc":
            continue
        if weight is None:
            weight = trace.fixed(np.ones(shape, dtype))
        _accumulate(adjoints, position, weight)
    if adjoints:
        before, trace.line = trace.line, trace.line or user_place()
        try:
            adjoints = rewritten(trace, adjoints, set(targets))
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
    leads = _leading(trace, adjoints, targets)
    wanted = leads.__contains__
    known: dict[int, Tensor] = {}
    parts: dict[int, dict[int, Tensor]] = {}
    for position in sorted(leads, reverse=True):
        if not (position in adjoints or position in parts):
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
            found = _contributions(trace, position, g, wanted, known)
        for a, more in found:
            _accumulate(adjoints, a, more)


def _leading(trace: Trace, roots: Iterable[int], targets: set[int]) -> set[int]:
    """The records from which gradients pass from a root to a target."""
    feeding, live, bottom = trace.feeding, set(roots), min(targets)
    todo = list(live)
    while todo:
        for a in feeding(todo.pop()):
            if a >= bottom and a not in live:
                live.add(a)
                todo.append(a)
    found: set[int] = set()
    for position in sorted(live):
        if position in targets or not found.isdisjoint(feeding(position)):
            found.add(position)
    return found


def _contributions(
    trace: Trace, position: int, g: Any, wanted: Callable[[int], bool], known: dict[int, Tensor]
) -> list[tuple[int, Any]]:
    """The contributions of a record to the adjoints of its operands."""
    node = trace.nodes[position]
    op = node.op
    if op is None:
        return []
    if op.kind is REGION:
        return control_vjp.PULLS[op](swept, trace, position, g, wanted)
    values = _Traced(trace, position, known)
    moving, last = op.moving, len(op.moving) - 1
    return [
        (a, values.adjoint(k, g))
        for k, a in enumerate(node.args)
        if wanted(a) and moving[k if k < last else last] and trace.nodes[a].dtype.kind in "fc"
    ]


class _Traced(Values):
    """The values of a record as Traced Tensors, which are made where a formula reads them."""

    __slots__ = ("known", "node", "position", "trace")

    def __init__(self, trace: Trace, position: int, known: dict[int, Tensor]) -> None:
        node = self.node = trace.nodes[position]
        assert node.op is not None
        self.op, self.params, self.shared = node.op, node.params, None
        self.trace, self.position = trace, position
        self.known = known  # those of all records that were made

    def count(self) -> int:
        """The number of operands."""
        return len(self.node.args)

    def value(self, k: int) -> Tensor:
        """The value of operand k."""
        return self._tensor(self.node.args[k])

    def result(self) -> Tensor:
        """The result."""
        return self._tensor(self.position)

    def spec(self, k: int) -> Spec:
        """Shape and dtype of operand k (k = -1: the result)."""
        return self.node.spec if k < 0 else self.trace.nodes[self.node.args[k]].spec

    def complex_adjoint(self, g: Any) -> bool:
        """Whether the adjoint of the result is complex."""
        return self.node.dtype.kind == "c"

    def fitted(self, found: Any, k: int) -> Any:
        """Undo broadcasting and casting of a contribution to the adjoint of operand k."""
        like = getattr(getattr(found, "_lift", None), "node", None)
        node = self.trace.nodes[self.node.args[k]]
        if like is not None and like.shape == node.shape and like.dtype is node.dtype:
            return found
        return fit(found, node.spec)

    def _tensor(self, position: int) -> Tensor:
        found = self.known.get(position)
        if found is None:
            found = self.known[position] = self.trace.tensor(position)
        return found
