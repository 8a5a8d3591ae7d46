"""Covariances and correlations."""

from __future__ import annotations

from typing import Any

from tapegrad.base.dtypes import get_default_dtype
from tapegrad.functions import arithmetic as a
from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions.arguments import as_input
from tapegrad.functions.complex_parts import adjoint, imag, real
from tapegrad.functions.diagonals import diagonal
from tapegrad.functions.method_decorators import method
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import reshape, squeeze, to
from tapegrad.tensor import Tensor


def _weights(given: Any, n: int, name: str, which: str, kinds: str) -> Tensor:
    w = as_input(given, name)
    if n == 1 and not w._a.ndim:
        w = reshape(w, (1,))
    if w._a.shape != (n,) or w._a.dtype.kind not in kinds:
        accepted = "integers" if kinds == "iu" else "floating-point numbers"
        raise RuntimeError(
            f"`{name}`: {which} is a vector of {n} {accepted}, one for each observation, got "
            f"{w._a.dtype} of shape {w._a.shape}"
        )
    return w


@method
def cov(
    input: Tensor, *, correction: float = 1, fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The covariances of variables, of which each row holds the observations.

    `correction` is taken from the number of observations; `fweights` says how often each was made
    (integers), `aweights` how much it counts.

    >>> import tapegrad as tg
    >>> tg.cov(tg.tensor([[1.0, 3.0], [4.0, 0.0]]))
    tensor([[ 2., -4.],
            [-4.,  8.]])
    """
    x = as_input(input, "cov")
    if x._a.ndim > 2:
        raise RuntimeError(f"`cov` takes a vector or a matrix, got the shape {x._a.shape}")
    if x._a.dtype.kind not in "fc":
        x = to(x, dtype=get_default_dtype())
    if x._a.ndim < 2:
        x = reshape(x, (1, x._a.size))
    n, kind = x._a.shape[1], x._a.real.dtype
    weights: Tensor | None = None
    if fweights is not None:
        weights = to(_weights(fweights, n, "cov", "fweights", "iu"), dtype=kind)
    if aweights is None:
        total: Any = float(n) if weights is None else r.sum(weights)
        constraints: Any = correction
    else:
        w = to(_weights(aweights, n, "cov", "aweights", "f"), dtype=kind)
        weights = w if weights is None else ew.mul(weights, w)
        total = r.sum(weights)
        constraints = (
            correction if not correction else ew.mul(r.sum(ew.mul(weights, w)), correction) / total
        )
    if weights is None:
        centred = spread = a.sub(x, r.mean(x, 1, keepdim=True))
    else:
        middle = r.sum(ew.mul(x, weights), 1, keepdim=True)
        centred = a.sub(x, a.div(middle, total))
        spread = ew.mul(centred, weights)
    free = total - constraints
    free = a.clamp(free, min=0) if isinstance(free, Tensor) else max(free, 0.0)
    return squeeze(a.div(matmul(spread, adjoint(centred)), free))


@method
def corrcoef(input: Tensor) -> Tensor:
    """The coefficients of correlation of variables, of which each row holds the observations.

    >>> import tapegrad as tg
    >>> tg.corrcoef(tg.tensor([[1.0, 3.0, 2.0], [4.0, 0.0, 1.0]]))
    tensor([[ 1.0000, -0.9608],
            [-0.9608,  1.0000]])
    """
    if as_input(input, "corrcoef")._a.ndim > 2:
        raise RuntimeError(f"`corrcoef` takes a vector or a matrix, got the shape {input.shape}")
    return correlations(cov(input))


def correlations(covariances: Tensor) -> Tensor:
    """Covariances over the deviations of both variables, within -1 and 1."""
    if not covariances._a.ndim:
        return a.div(covariances, covariances)
    size = ew.sqrt(real(diagonal(covariances)))
    n = size._a.shape[0]
    found = a.div(a.div(covariances, reshape(size, (n, 1))), size)
    if found._a.dtype.kind == "c":
        return a.add(a.clamp(real(found), -1.0, 1.0), ew.mul(a.clamp(imag(found), -1.0, 1.0), 1j))
    return a.clamp(found, -1.0, 1.0)
