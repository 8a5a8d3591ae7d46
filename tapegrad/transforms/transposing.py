"""Tangents by transposition: a vector-Jacobian product is linear in its weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import enable_grad, no_grad
from tapegrad.functions import complex_parts
from tapegrad.lift.gradient_targets import variables
from tapegrad.lift.lifted_tensor import Lifted, constant, pull, zeros_like
from tapegrad.ops.elementwise import is_complex
from tapegrad.tensor import Tensor

Gradients = Callable[[list[Tensor]], list[Tensor | None]]

PROBES = 1.0, 1e6  # one of them shows clipping, above or below a bound


def transposed(
    gradients: Gradients, values: list[Tensor], slopes: list[Tensor], name: str
) -> list[Tensor]:
    """The tangents of some values, from a rule for gradients and the tangents of the inputs.

    They are taken at zero weights first.  A rule that iterates until it is exact enough may do
    nothing there, and is linear elsewhere: so where that fails, or nobody knows, at others.
    """
    linear: bool | None = None
    for size in (0.0, PROBES[0]):
        starts = [constant(_probe(y, size), y) if size else zeros_like(y) for y in values]
        with enable_grad(), variables(starts) as weights:
            pairs = _pairs(gradients(weights), slopes)
            found = pull([b for b, _ in pairs], [t for _, t in pairs], weights, recorded=True)
        with no_grad():
            linear = _linear(gradients, found, slopes)
        if linear:
            break
    if linear is False:
        raise RuntimeError(
            f"the rule of {name} is not linear in the gradient that it is given (it clips or "
            "rescales it, or detaches it), so it has no tangents in forward mode: use reverse mode "
            "(`grad`, `jacrev`, `vhp`), or say with `custom_jvp` what the tangents are"
        )
    return found


def _pairs(back: list[Tensor | None], slopes: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return [(b, t) for b, t in zip(back, slopes, strict=True) if b is not None]


def _linear(gradients: Gradients, found: list[Tensor], slopes: list[Tensor]) -> bool | None:
    """Whether a rule is linear: its derivative is the rule itself.  None if the values are unknown.

    Those that are not finite prove nothing.
    """
    is_f8 = all(np.finfo(y._a.dtype).bits == 64 for y in (*found, *slopes))
    known = True
    for size in PROBES:
        weights = [constant(_probe(y, size), y) for y in found]
        products = [_inner(a, b) for a, b in _pairs(gradients(weights), slopes)]
        products += [-_inner(w, y) for w, y in zip(weights, found, strict=True)]
        difference = _size(sum(p.sum() for p in products))
        bound = sum(_size(p.abs().sum()) for p in products)
        if np.isfinite(bound) and difference > (1e-6 if is_f8 else 1e-2) * bound:
            return False
        known = known and not np.isnan(bound)
    return True if known else None


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """The products whose sum is the inner product, of complex numbers that of their parts."""
    return complex_parts.real(complex_parts.conj(a) * b) if is_complex(a) else a * b


def _probe(y: Tensor, size: float) -> np.ndarray:
    """Weights of both signs."""
    numbers: np.ndarray = size * np.cos(np.arange(1.0, y._a.size + 1))
    return numbers.astype(y._a.dtype).reshape(y._a.shape)


def _size(t: Any) -> float:
    """The largest magnitude of a value in any example; NaN in a loop that is traced."""
    while isinstance(t, Lifted):
        at = t._lift.at
        if at.traces:
            known = at.peek(t)
            return math.nan if known is None else float(np.max(np.abs(known), initial=0.0))
        t = t.parts()[0]
    return float(np.max(np.abs(t._a), initial=0.0)) if isinstance(t, Tensor) else 0.0
