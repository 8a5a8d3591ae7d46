"""The incomplete gamma functions, and how quantiles move with the shapes of gamma and beta.

F being the distribution and p its density, a quantile x stays one where dx/da = -(dF/da) / p.  That
quotient neither over- nor underflows, it gives the derivatives of F in its parameters, of F's
inverse, and of samples (M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients,
NeurIPS 2018).  Both rows are free of scale: log(x) moves in one, log(x / (1 - x)) in the other.

dF/da is the integral over [0, x], or less that over [x, end], of the density times its logarithmic
derivative in a.  The side is the one on which this has one sign, so that nothing cancels.  Where
the density falls off slower than exp(-w) towards that side's end, the integral is its power series,
differentiated term by term (R. J. Moore, Algorithm AS 187, Applied Statistics 31, 1982; R. J. Boik,
J. F. Robison-Cox, J. Stat. Softw. 3, 1998); elsewhere it is computed in log(t) or log(t / (1 - t))
by Gauss and Legendre's rule, up to where the density is exp(-DROP) of that at x.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.ops.core import NotImplementedYet, Op, elementwise
from tapegrad.ops.elementwise import POSITIVE, Lazy, exp, gt, log, log1p, lt, mul, where
from tapegrad.ops.special import digamma, lgamma, xlogy

Array = Any  # of NumPy, float64
Profile = Callable[[Any], tuple[Any, Any]]

NODES, DROP = 64, 38.0
FIRST, DOUBLINGS, HALVINGS = 2.0**-26, 38, 3  # of the search for the interval of integration
CHUNK = 512  # elements that are integrated over together, at all nodes
TERMS = 4000  # of a series; beyond them stand only parameters near 0, and x near the end
CLOSE = 0.6  # x up to which the series of gamma goes, whose terms change sign soon above

_psi = Lazy("psi")


def _no_second(name: str) -> NotImplementedYet:
    return NotImplementedYet(
        f"the second derivative of the {name} distribution in its shape parameters is not "
        "implemented: only the first is, and the mixed ones with the variable"
    )


@functools.cache
def _nodes() -> tuple[Array, Array]:
    """The nodes on [0, 1] and their weights, each a column."""
    node, weight = np.polynomial.legendre.leggauss(NODES)
    return (0.5 + 0.5 * node)[:, None], (0.5 * weight)[:, None]


def _in_chunks(integral: Callable[..., Array]) -> Callable[..., Array]:
    """A function of vectors, a part of them at a time: what it computes stays in the cache."""

    def chunked(*operands: Array, side: float) -> Array:
        parts = [
            integral(*[x[start : start + CHUNK] for x in operands], side=side)
            for start in range(0, operands[0].size, CHUNK)
        ]
        return np.concatenate(parts)

    return chunked


def _integral(profile: Profile, size: int) -> Array:
    """The integral over w > 0 of what rises times exp(-what falls), which a profile gives at w."""
    ends = FIRST * 2.0 ** np.arange(DOUBLINGS + 1)[:, None]
    below = profile(ends)[1] < DROP
    below[-1] = False  # where nothing is large enough, the last one is taken
    end = ends[np.argmin(below, axis=0), 0]
    step = end / 4
    for _ in range(HALVINGS):
        end = np.where(profile(end - step)[1] >= DROP, end - step, end)
        step = step / 2
    node, weight = _nodes()
    rise, fall = profile(end * node)
    total: Array = np.sum(weight * rise * np.exp(-fall), axis=0)
    return end * total


def _series(first: Array, ratio: Callable[[int], Any], step: Callable[[int], Any]) -> Array:
    """The sum of terms, each times a weight; both are made of those before."""
    term, weight, total = np.ones_like(first), first, first
    for n in range(TERMS):
        term, weight = term * ratio(n), weight + step(n)
        part = term * weight
        total = total + part
        if not np.any(np.abs(part) > 1e-17 * np.abs(total)):
            break
    return total


def _psi_rise(a: Array, b: Array) -> Array:
    """By how much digamma rises from a to a + b; where a is large, its asymptotic series."""
    u, v = 1 / (a * a), 1 / ((a + b) * (a + b))
    small = (u - v) / 12 - (u**2 - v**2) / 120 + (u**3 - v**3) / 252 - (u**4 - v**4) / 240
    far = np.log1p(b / a) + 0.5 * (b / a) / (a + b) + small
    return np.where(a > 20, far, _psi(a + b) - _psi(a))


def _gamma_series(a: Array, x: Array) -> Array:
    first = np.log(x) - _psi(a + 1)
    return -_series(first, lambda n: x / (a + n + 1), lambda n: -1 / (a + n + 1)) / a


@_in_chunks
def _gamma_integral(a: Array, x: Array, *, side: float) -> Array:
    start, slope = np.log(x) - _psi(a), side * (x - a)

    def profile(w: Any) -> tuple[Any, Any]:
        return start + side * w, x * (np.expm1(side * w) - side * w) + slope * w

    return side * _integral(profile, x.size)


def _beta_left_series(a: Array, b: Array, x: Array, y: Array, log_x: Array) -> Array:
    whole, after = a + b, a + 1
    first = log_x - _psi(after) + _psi(whole)
    return -_series(first, lambda n: x * (whole + n) / (after + n),
                    lambda n: 1 / (whole + n) - 1 / (after + n)) / a  # fmt: skip


def _beta_right_series(a: Array, b: Array, x: Array, y: Array, log_x: Array) -> Array:
    whole, after = a + b, b + 1
    first = log_x + _psi_rise(a, b)
    return _series(first, lambda n: y * (whole + n) / (after + n), lambda n: 1 / (whole + n)) / b


@_in_chunks
def _beta_integral(a: Array, b: Array, x: Array, y: Array, log_x: Array, *, side: float) -> Array:
    start, slope = log_x + _psi_rise(a, b), side * (b * x - a * y)

    def profile(w: Any) -> tuple[Any, Any]:
        more = x * np.expm1(side * w)
        lift = np.where(more < -0.5, np.log(y + x * np.exp(side * w)), np.log1p(more))
        return start + side * w - lift, (a + b) * (lift - x * side * w) + slope * w

    return side * _integral(profile, x.size)


def _by_cases(operands: tuple[Any, ...], valid: Any, cases: list[tuple[Any, Any]]) -> Array:
    """For each element what the first case that holds makes of the operands there."""
    out = np.full(operands[0].shape, np.nan)
    left = valid
    for holds, function in cases:
        here = left & holds
        if here.any():
            out[here] = function(*[x[here] for x in operands])
        left = left & ~here
    return out


def _parameters(*operands: Any) -> tuple[list[Array], Any]:
    """The operands as float64, broadcast, and the type of the result."""
    kind = np.result_type(*operands)
    return list(np.broadcast_arrays(*[np.asarray(x, np.float64) for x in operands])), kind


def _gamma_log_slope(a: Any, x: Any) -> Any:
    (a, x), kind = _parameters(a, x)
    with np.errstate(all="ignore"):
        valid = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
        cases = [
            ((a < 1) & (x < CLOSE), _gamma_series),
            ((a >= 1) & (np.log(x) < _psi(a)), functools.partial(_gamma_integral, side=-1.0)),
            (True, functools.partial(_gamma_integral, side=1.0)),
        ]
        return _by_cases((a, x), valid, cases).astype(kind)


def _beta_slope(a: Array, b: Array, x: Array, y: Array) -> Array:
    """That of log(x / y) in a, y being 1 - x."""
    with np.errstate(all="ignore"):
        log_x = np.where(x < 0.5, np.log(x), np.log1p(-y))
        border = -_psi_rise(a, b)
        # From there to 1 / a above both sides do: of series, that in the smaller number is taken.
        border = np.where(a < 1, np.clip(-math.log(2.0), border, border + 0.5 / a), border)
        left = log_x < border
        valid = (a > 0) & (b > 0) & (x > 0) & (y > 0) & np.isfinite(a + b)
        cases = [
            (left & (a < 1), _beta_left_series),
            (left, functools.partial(_beta_integral, side=-1.0)),
            (b < 1, _beta_right_series),
            (True, functools.partial(_beta_integral, side=1.0)),
        ]
        return _by_cases((a, b, x, y, log_x), valid, cases)


def _beta_logit_slope_a(a: Any, b: Any, x: Any) -> Any:
    (a, b, x), kind = _parameters(a, b, x)
    return _beta_slope(a, b, x, 1 - x).astype(kind)


def _beta_logit_slope_b(a: Any, b: Any, x: Any) -> Any:
    (a, b, x), kind = _parameters(a, b, x)
    return -_beta_slope(b, a, 1 - x, x).astype(kind)


def _beta_bend(a: Any, b: Any, x: Any, y: Any, log_term: Any) -> Any:
    """The derivative in x of one of the slopes y, from that of the density's logarithm."""
    return (y * (b * x - a * (1 - x)) - log_term) / (x * (1 - x))


gamma_log_slope: Op = elementwise(
    "gamma_log_slope",
    _gamma_log_slope,
    a=_no_second("gamma"),
    x=lambda a, x, y: (y * (x - a) - (log(x) - digamma(a))) / x,
    domain=POSITIVE,
    to_float=True,
)
beta_logit_slope_a: Op = elementwise(
    "beta_logit_slope_a",
    _beta_logit_slope_a,
    a=_no_second("beta"),
    b=_no_second("beta"),
    x=lambda a, b, x, y: _beta_bend(a, b, x, y, log(x) - digamma(a) + digamma(a + b)),
    domain=(POSITIVE, POSITIVE, (0.1, 0.9)),
    to_float=True,
)
beta_logit_slope_b: Op = elementwise(
    "beta_logit_slope_b",
    _beta_logit_slope_b,
    a=_no_second("beta"),
    b=_no_second("beta"),
    x=lambda a, b, x, y: _beta_bend(a, b, x, y, log1p(-x) - digamma(b) + digamma(a + b)),
    domain=(POSITIVE, POSITIVE, (0.1, 0.9)),
    to_float=True,
)


def gamma_density(a: Any, x: Any) -> Any:
    """That of the gamma distribution of shape a."""
    return exp(xlogy(a - 1, x) - x - lgamma(a))


def igammac_slope(a: Any, x: Any) -> Any:
    """That of `igammac` in a; at 0 and at infinity it is 0."""
    slope = gamma_log_slope(a, x) * exp(xlogy(a, x) - x - lgamma(a))
    return where(mul(gt(x, 0), lt(x, math.inf)), slope, 0.0)


# fmt: off
igamma = elementwise(
    "igamma", Lazy("gammainc"), a=lambda a, x: -igammac_slope(a, x), x=gamma_density,
    domain=POSITIVE, to_float=True, in_c=True, inplace=True,
    doc="The regularized lower incomplete gamma function.",
    example=("tg.igamma(tg.tensor(1.0), tg.tensor(1.0))", "tensor(0.6321)"),
)
igammac = elementwise(
    "igammac", Lazy("gammaincc"), a=igammac_slope,
    x=lambda a, x: -gamma_density(a, x),
    domain=POSITIVE, to_float=True, in_c=True, inplace=True,
    doc="The regularized upper incomplete gamma function: 1 - `igamma`.",
    example=("tg.igammac(tg.tensor(1.0), tg.tensor(1.0))", "tensor(0.3679)"),
)
# fmt: on
