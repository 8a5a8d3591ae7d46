"""Polynomials, whose coefficients stand with the highest power first, as in NumPy.

Zeros at the beginning are kept where NumPy cuts them off: a coefficient that is 0 has a derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions.joining import cat
from tapegrad.functions.matrices import inv
from tapegrad.functions.shapes import narrow, reshape, squeeze, to, unsqueeze
from tapegrad.functions.tiling import vander
from tapegrad.numpy_face.common import floating, handles, operand, tensor
from tapegrad.numpy_face.joining import at_least
from tapegrad.numpy_face.shapes import convolve_
from tapegrad.numpy_face.systems import lstsq_
from tapegrad.tensor import Tensor, wrap


@handles(np.polyval)
def _polyval(p: Any, x: Any) -> Tensor:
    """By Horner's rule."""
    coefficients, point = tensor(p), operand(x)
    found = ew.mul(tensor(point), 0)
    for k in range(coefficients._a.shape[0]):
        found = ar.add(ew.mul(found, point), coefficients[k])
    return found


def _coefficients(p: Any, name: str) -> Tensor:
    x = at_least(tensor(p), 1)
    if x._a.ndim != 1:
        raise ValueError(f"`{name}` takes vectors of coefficients, got the shape {x._a.shape}")
    return x


def _same_length(a1: Any, a2: Any, name: str) -> list[Tensor]:
    parts = [_coefficients(p, name) for p in (a1, a2)]
    n = max(x._a.size for x in parts)
    return [
        cat([wrap(np.zeros(n - x._a.size, x._a.dtype)), x]) if x._a.size < n else x for x in parts
    ]


handles(np.polyadd)(lambda a1, a2: ar.add(*_same_length(a1, a2, "np.polyadd")))
handles(np.polysub)(lambda a1, a2: ar.sub(*_same_length(a1, a2, "np.polysub")))
handles(np.polymul)(
    lambda a1, a2: convolve_(_coefficients(a1, "np.polymul"), _coefficients(a2, "np.polymul"))
)


@handles(np.polydiv)
def _polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """The quotient, and the remainder with as many coefficients as it can have."""
    left, by = (floating(_coefficients(p, "np.polydiv")) for p in (u, v))
    n = by._a.size - 1
    if left._a.size <= n:
        return wrap(np.zeros(1, left._a.dtype)), left
    first, rest = narrow(by, 0, 0, 1), narrow(by, 0, 1, n)
    found = []
    while (size := left._a.size - 1) >= n:
        factor = ar.div(narrow(left, 0, 0, 1), first)
        found.append(factor)
        over = ar.sub(narrow(left, 0, 1, n), ew.mul(factor, rest))
        left = cat([over, narrow(left, 0, n + 1, size - n)])
    return cat(found), left if n else wrap(np.zeros(1, left._a.dtype))


@handles(np.poly)
def _poly(seq_of_zeros: Any) -> Tensor:
    zeros = floating(at_least(tensor(seq_of_zeros), 1))
    if zeros._a.ndim != 1:
        raise TypeError(
            f"`np.poly` of a Tensor takes the zeros in a vector, got the shape {zeros._a.shape}: "
            "a matrix has complex eigenvalues"
        )
    one = wrap(np.ones(1, zeros._a.dtype))
    found = one
    for k in range(zeros._a.size):
        found = convolve_(found, cat([one, ew.neg(narrow(zeros, 0, k, 1))]))
    return found


def _times(m: Any, name: str) -> int:
    if m != int(m) or m < 0:
        raise ValueError(f"`{name}`: m is a whole number that is not negative, got {m}")
    return int(m)


@handles(np.polyder)
def _polyder(p: Any, m: int = 1) -> Tensor:
    x = _coefficients(p, "np.polyder")
    for _ in range(_times(m, "np.polyder")):
        n = max(x._a.size - 1, 0)
        x = ew.mul(narrow(x, 0, 0, n), wrap(np.arange(n, 0, -1)))
    return x


@handles(np.polyint)
def _polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    x = floating(_coefficients(p, "np.polyint"))
    times = _times(m, "np.polyint")
    constants = _coefficients(0 if k is None else k, "np.polyint")
    if constants._a.size == 1 and (times > 1 or k is None):
        constants = constants.expand(times)
    if constants._a.size < times:
        raise ValueError(
            f"`np.polyint`: k holds a constant for each of {times} integrations, got "
            f"{constants._a.size}"
        )
    for step in range(times):
        x = cat([ar.div(x, wrap(np.arange(x._a.size, 0, -1))), narrow(constants, 0, step, 1)])
    return x


@handles(np.vander)
def _vander(x: Any, N: Any = None, increasing: bool = False) -> Tensor:
    t = tensor(x)
    if t._a.ndim != 1:
        raise ValueError(f"`np.vander` takes a vector, got the shape {t._a.shape}")
    return vander(t, N, bool(increasing))


@handles(np.polyfit)
def _polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None,
    cov: Any = False,
) -> Any:  # fmt: skip
    """Least squares, the columns scaled to the length 1 before."""
    at, values, *given = [floating(tensor(t)) for t in (x, y, w) if t is not None]
    n, unit = at._a.size, np.finfo(at._a.dtype).eps
    kind = np.result_type(*[t._a.dtype for t in (at, values, *given)])
    real = np.finfo(kind).dtype
    at, *given = [to(t, dtype=kind if t._a.dtype.kind == "c" else real) for t in (at, *given)]
    if at._a.ndim != 1 or not n or values._a.ndim not in (1, 2) or values._a.shape[0] != n:
        raise TypeError(
            f"`np.polyfit` takes a vector of points and as many values, got the shapes "
            f"{at._a.shape} and {values._a.shape}"
        )
    if deg < 0:
        raise ValueError(f"`np.polyfit`: the degree must not be negative, got {deg}")
    powers, right = vander(at, int(deg) + 1), values
    for weights in given:
        if weights._a.shape != (n,):
            raise TypeError(f"`np.polyfit` takes {n} weights, got the shape {weights._a.shape}")
        weights = reshape(weights, (n, 1))
        powers = powers * weights
        right = right * (weights if values._a.ndim == 2 else squeeze(weights, 1))
    size = r.norm(powers if full else powers.detach(), 2, 0)  # the singular values depend on it
    scaled, limit = powers / size, n * unit if rcond is None else rcond
    found, left, rank, sizes = lstsq_(to(scaled, dtype=kind), to(right, dtype=kind), limit)
    found = found / (reshape(size, (-1, 1)) if values._a.ndim == 2 else size)
    if full:
        return found, left, rank, sizes, limit
    if not cov:
        return found
    spread = inv(scaled.T @ scaled) / (reshape(size, (-1, 1)) * size)
    spread = unsqueeze(spread, -1) if values._a.ndim == 2 else spread
    if cov == "unscaled":
        return found, spread
    if n <= deg + 1:
        raise ValueError(
            f"`np.polyfit`: {n} points leave nothing to estimate the covariance by, for "
            f"{deg + 1} coefficients: give more, or `cov='unscaled'`"
        )
    return found, spread * (left / (n - deg - 1))
