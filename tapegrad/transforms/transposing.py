"""Tangents from gradients: a vector-Jacobian product is linear in its weights, so it can be turned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import enable_grad, no_grad
from tapegrad.lift.core import Lifted, constant, pull, zeros_like
from tapegrad.lift.variable import variables
from tapegrad.tensor import Tensor

Gradients = Callable[[list[Tensor]], list[Tensor | None]]

PROBES = 1.0, 1e6  # what is cut off beyond some bound, or below it, shows in one of them


def transposed(
    gradients: Gradients, values: list[Tensor], slopes: list[Tensor], name: str
) -> list[Tensor]:
    """The tangents of some values, from a rule for gradients and the tangents of the inputs."""
    with enable_grad():
        with variables(map(zeros_like, values)) as weights:
            pairs = _pairs(gradients(weights), slopes)
            found = pull([b for b, _ in pairs], [t for _, t in pairs], weights, recorded=True)
    with no_grad():
        for size in PROBES:
            _check_linear(gradients, found, slopes, size, name)
    return found


def _pairs(back: list[Tensor | None], slopes: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return [(b, t) for b, t in zip(back, slopes, strict=True) if b is not None]


def _check_linear(
    gradients: Gradients, found: list[Tensor], slopes: list[Tensor], size: float, name: str
) -> None:
    """Refuse a rule whose derivative at zero weights is not the rule itself."""
    weights = [constant(_probe(y, size), y) for y in found]
    products = [a * b for a, b in _pairs(gradients(weights), slopes)]
    products += [-w * y for w, y in zip(weights, found, strict=True)]
    difference = _known(sum(p.sum() for p in products))
    bounds = [_known(p.abs().sum()) for p in products]
    if difference is None or any(b is None for b in bounds):
        return  # in a loop that is traced no value is known
    bound = max([float(np.max(b, initial=0.0)) for b in bounds], default=0.0)
    wide = all(y._a.dtype.itemsize == 8 for y in (*found, *slopes))
    # A value that is not finite says nothing.
    if np.isfinite(bound) and np.any(np.abs(difference) > (1e-6 if wide else 1e-2) * bound):
        raise RuntimeError(
            f"the rule of {name} is not linear in the gradient that it is given (it clips or "
            "rescales it, or detaches it), so it has no tangents in forward mode: use reverse mode "
            "(`grad`, `jacrev`, `vhp`), or say with `custom_jvp` what the tangents are"
        )


def _probe(y: Tensor, size: float) -> np.ndarray:
    """Weights of both signs."""
    numbers = size * np.cos(np.arange(1.0, y._a.size + 1))
    return numbers.reshape(y._a.shape).astype(y._a.dtype)


def _known(t: Any) -> np.ndarray | None:
    """The numbers of a value, of all examples, if they are known."""
    while isinstance(t, Lifted):
        if t._lift.at.traces:
            return t._lift.at.glimpse(t)  # type: ignore[no-any-return]
        t = t.parts()[0]
    return t._a if isinstance(t, Tensor) else np.zeros(())
