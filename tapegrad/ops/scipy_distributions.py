"""Distribution functions of SciPy's, by the names of Cephes, with their partial derivatives.

Each is an incomplete gamma or beta function, of which `ops.incomplete` has the derivatives in the
parameters.  Numbers of events are whole, and have none.
"""

from __future__ import annotations

from typing import Any

from tapegrad.ops.core import NotDifferentiable
from tapegrad.ops.elementwise import POSITIVE, Lazy, floor, gt, where
from tapegrad.ops.incomplete import (
    beta_logit_slope_a,
    beta_logit_slope_b,
    gamma_density,
    gamma_log_slope,
    igammac_slope,
)
from tapegrad.ops.scipy_special import beta_density, betaincc_slope, scipy_row

COUNT = NotDifferentiable("a number of events is a whole number")
EVENTS, CHANCE = range(3), (0.1, 0.9)


def _poisson(k: Any, m: Any) -> Any:
    """The probability of so many events; of k that is no whole number, of the one below."""
    return gamma_density(floor(k) + 1, m)


def _odds(m: Any, n: Any, x: Any) -> Any:
    """The number of the beta distribution that x of the F distribution stands for."""
    return m * x / (m * x + n)


def _f_density(m: Any, n: Any, x: Any) -> Any:
    whole = m * x + n
    return beta_density(m / 2, n / 2, _odds(m, n, x)) * m * n / (whole * whole)


def _f_slope_m(m: Any, n: Any, x: Any) -> Any:
    """That of the F distribution in the degrees of freedom of its numerator."""
    shape = -betaincc_slope(beta_logit_slope_a, m / 2, n / 2, _odds(m, n, x)) / 2
    return shape + _f_density(m, n, x) * x / m


def _f_slope_n(m: Any, n: Any, x: Any) -> Any:
    """That in those of its denominator."""
    shape = -betaincc_slope(beta_logit_slope_b, m / 2, n / 2, _odds(m, n, x)) / 2
    return shape - _f_density(m, n, x) * x / n


def _quantile_slope(a: Any, z: Any) -> Any:
    """How the quantile z of a gamma distribution moves with its shape."""
    return where(gt(z, 0), z * gamma_log_slope(a, z), 0.0)


# fmt: off
chdtr = scipy_row("chdtr", Lazy("chdtr"), domain=POSITIVE,
                  v=lambda v, x: -igammac_slope(v / 2, x / 2) / 2,
                  x=lambda v, x: gamma_density(v / 2, x / 2) / 2)
chdtrc = scipy_row("chdtrc", Lazy("chdtrc"), domain=POSITIVE,
                   v=lambda v, x: igammac_slope(v / 2, x / 2) / 2,
                   x=lambda v, x: -gamma_density(v / 2, x / 2) / 2)
chdtri = scipy_row("chdtri", Lazy("chdtri"), domain=(POSITIVE, CHANCE),
                   v=lambda v, y: _quantile_slope(v / 2, y / 2),
                   p=lambda v, y: -2 / gamma_density(v / 2, y / 2))
gdtr = scipy_row("gdtr", Lazy("gdtr"), domain=POSITIVE,
                 a=lambda a, b, x: x * gamma_density(b, a * x),
                 b=lambda a, b, x: -igammac_slope(b, a * x),
                 x=lambda a, b, x: a * gamma_density(b, a * x))
gdtrc = scipy_row("gdtrc", Lazy("gdtrc"), domain=POSITIVE,
                  a=lambda a, b, x: -x * gamma_density(b, a * x),
                  b=lambda a, b, x: igammac_slope(b, a * x),
                  x=lambda a, b, x: -a * gamma_density(b, a * x))
pdtr = scipy_row("pdtr", Lazy("pdtr"), domain=(EVENTS, POSITIVE),
                 k=COUNT, m=lambda k, m: -_poisson(k, m))
pdtrc = scipy_row("pdtrc", Lazy("pdtrc"), domain=(EVENTS, POSITIVE), k=COUNT, m=_poisson)
fdtr = scipy_row("fdtr", Lazy("fdtr"), domain=POSITIVE, m=_f_slope_m, n=_f_slope_n, x=_f_density)
fdtrc = scipy_row("fdtrc", Lazy("fdtrc"), domain=POSITIVE,
                  m=lambda m, n, x: -_f_slope_m(m, n, x),
                  n=lambda m, n, x: -_f_slope_n(m, n, x), x=lambda m, n, x: -_f_density(m, n, x))
fdtri = scipy_row("fdtri", Lazy("fdtri"), domain=((2.0, 4.0), (2.0, 4.0), CHANCE),
                  m=lambda m, n, y: -_f_slope_m(m, n, y) / _f_density(m, n, y),
                  n=lambda m, n, y: -_f_slope_n(m, n, y) / _f_density(m, n, y),
                  p=lambda m, n, y: 1 / _f_density(m, n, y))
ROWS = (chdtr, chdtrc, chdtri, gdtr, gdtrc, pdtr, pdtrc, fdtr, fdtrc, fdtri)
# fmt: on
