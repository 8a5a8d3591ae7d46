"""Special functions of SciPy's that PyTorch has not, with their partial derivatives.

They answer to SciPy's own ufuncs (`numpy_face/ufuncs.py`), and have no other public name.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from tapegrad.ops.core import NotImplementedYet, Op, elementwise
from tapegrad.ops.elementwise import (
    POSITIVE,
    TWO_OVER_ROOT_PI,
    Lazy,
    eq,
    exp,
    log,
    log1p,
    sign,
    where,
)
from tapegrad.ops.special import digamma, gamma_density, lgamma

ORDERS = (range(1, 4), POSITIVE)


def _none_in(name: str, argument: str) -> NotImplementedYet:
    return NotImplementedYet(
        f"`scipy.special.{name}` has no derivative in its {argument}: give it a number, or "
        "`t.detach()`"
    )


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """That of the beta distribution."""
    return exp((a - 1) * log(x) + (b - 1) * log1p(-x) - betaln(a, b))


def _t_density(df: Any, t: Any) -> Any:
    """That of Student's distribution."""
    half = (df + 1) / 2
    scale = lgamma(half) - lgamma(df / 2) - 0.5 * log(math.pi * df)
    return exp(scale - half * log1p(t * t / df))


def _expn_slope(n: Any, x: Any) -> Any:
    return where(eq(n, 0), -exp(-x) * (1 + x) / (x * x), -expn(n - 1, x))


scipy_row = partial(elementwise, to_float=True, in_c=True)

# fmt: off
gamma = scipy_row("gamma", Lazy("gamma"), x=lambda x, y: y * digamma(x), domain=POSITIVE,
                  ordered=True,
                  singular="The derivative is NaN at 0 and at negative whole numbers.")
rgamma = scipy_row("rgamma", Lazy("rgamma"), x=lambda x, y: -y * digamma(x), domain=POSITIVE,
                   ordered=True,
                   singular="The derivative is NaN at 0 and at negative whole numbers.")
loggamma = scipy_row("loggamma", Lazy("loggamma"), x=lambda x: digamma(x), domain=POSITIVE,
                     ordered=True, singular="It is NaN below 0.")
gammasgn = scipy_row("gammasgn", Lazy("gammasgn"), x=lambda: 0, domain=POSITIVE)
beta = scipy_row("beta", Lazy("beta"), domain=POSITIVE,
                 a=lambda a, b, y: y * (digamma(a) - digamma(a + b)),
                 b=lambda a, b, y: y * (digamma(b) - digamma(a + b)))
betaln: Op = scipy_row("betaln", Lazy("betaln"), domain=POSITIVE,
                       a=lambda a, b: digamma(a) - digamma(a + b),
                       b=lambda a, b: digamma(b) - digamma(a + b))
betainc = scipy_row("betainc", Lazy("betainc"), domain=(POSITIVE, POSITIVE, (0.1, 0.9)),
                    a=_none_in("betainc", "parameters"), b=_none_in("betainc", "parameters"),
                    x=_beta_density)
betaincc = scipy_row("betaincc", Lazy("betaincc"), domain=(POSITIVE, POSITIVE, (0.1, 0.9)),
                     a=_none_in("betaincc", "parameters"), b=_none_in("betaincc", "parameters"),
                     x=lambda a, b, x: -_beta_density(a, b, x))
betaincinv = scipy_row("betaincinv", Lazy("betaincinv"), domain=(POSITIVE, POSITIVE, (0.1, 0.9)),
                       a=_none_in("betaincinv", "parameters"),
                       b=_none_in("betaincinv", "parameters"),
                       q=lambda a, b, y: 1 / _beta_density(a, b, y))
gammaincinv = scipy_row("gammaincinv", Lazy("gammaincinv"), domain=(range(1, 4), (0.1, 0.9)),
                        a=_none_in("gammaincinv", "parameter"),
                        q=lambda a, y: 1 / gamma_density(a, y))
gammainccinv = scipy_row("gammainccinv", Lazy("gammainccinv"), domain=(range(1, 4), (0.1, 0.9)),
                         a=_none_in("gammainccinv", "parameter"),
                         q=lambda a, y: -1 / gamma_density(a, y))
stdtr = scipy_row("stdtr", Lazy("stdtr"), domain=(range(1, 4), (-2.0, 2.0)),
                  df=_none_in("stdtr", "degrees of freedom"), t=_t_density)
stdtrit = scipy_row("stdtrit", Lazy("stdtrit"), domain=(range(1, 4), (0.1, 0.9)),
                    df=_none_in("stdtrit", "degrees of freedom"),
                    q=lambda df, y: 1 / _t_density(df, y))
binom = scipy_row("binom", Lazy("binom"), domain=((3.0, 5.0), POSITIVE),
                  n=lambda n, k, y: y * (digamma(n + 1) - digamma(n - k + 1)),
                  k=lambda n, k, y: y * (digamma(n - k + 1) - digamma(k + 1)))
poch = scipy_row("poch", Lazy("poch"), domain=POSITIVE,
                 z=lambda z, m, y: y * (digamma(z + m) - digamma(z)),
                 m=lambda z, m, y: y * digamma(z + m))
rel_entr = scipy_row("rel_entr", Lazy("rel_entr"), domain=POSITIVE,
                     a=lambda a, b: log(a / b) + 1, b=lambda a, b: -a / b,
                     singular="d/da is -infinite where a is 0.")
kl_div = scipy_row("kl_div", Lazy("kl_div"), domain=POSITIVE,
                   a=lambda a, b: log(a / b), b=lambda a, b: 1 - a / b,
                   singular="d/da is -infinite where a is 0.")
erfcinv = scipy_row("erfcinv", Lazy("erfcinv"), x=lambda y: -exp(y * y) / TWO_OVER_ROOT_PI,
                    domain=(0.1, 1.9),
                    singular="The derivative is infinite at 0 and 2, and NaN outside.")
erfi = scipy_row("erfi", Lazy("erfi"), x=lambda x: TWO_OVER_ROOT_PI * exp(x * x),
                 ordered=True)
dawsn = scipy_row("dawsn", Lazy("dawsn"), x=lambda x, y: 1 - 2 * x * y, ordered=True)
exp10 = scipy_row("exp10", Lazy("exp10"), x=lambda y: math.log(10.0) * y)
exp1 = scipy_row("exp1", Lazy("exp1"), x=lambda x: -exp(-x) / x, domain=POSITIVE,
                 ordered=True, singular="It is infinite at 0.")
expi = scipy_row("expi", Lazy("expi"), x=lambda x: exp(x) / x, domain=POSITIVE,
                 ordered=True, singular="It is -infinite at 0.")
expn: Op = scipy_row("expn", Lazy("expn"), n=_none_in("expn", "order"), x=_expn_slope,
                     domain=ORDERS, singular="It is infinite at 0 for n < 2.")
jv: Op = scipy_row("jv", Lazy("jv"), n=_none_in("jv", "order"), domain=ORDERS,
                   ordered=True, x=lambda n, x: (jv(n - 1, x) - jv(n + 1, x)) / 2)
yv: Op = scipy_row("yv", Lazy("yv"), n=_none_in("yv", "order"), domain=ORDERS,
                   ordered=True, x=lambda n, x: (yv(n - 1, x) - yv(n + 1, x)) / 2)
yn = scipy_row("yn", Lazy("yn"), n=_none_in("yn", "order"), domain=ORDERS,
               x=lambda n, x: (yv(n - 1, x) - yv(n + 1, x)) / 2)
iv: Op = scipy_row("iv", Lazy("iv"), n=_none_in("iv", "order"), domain=ORDERS,
                   ordered=True, x=lambda n, x: (iv(n - 1, x) + iv(n + 1, x)) / 2)
ive: Op = scipy_row("ive", Lazy("ive"), n=_none_in("ive", "order"), domain=ORDERS, ordered=True,
                    x=lambda n, x, y: (ive(n - 1, x) + ive(n + 1, x)) / 2 - sign(x) * y)
kv: Op = scipy_row("kv", Lazy("kv"), n=_none_in("kv", "order"), domain=ORDERS,
                   ordered=True, x=lambda n, x: -(kv(n - 1, x) + kv(n + 1, x)) / 2)
kve: Op = scipy_row("kve", Lazy("kve"), n=_none_in("kve", "order"), domain=ORDERS, ordered=True,
                    x=lambda n, x, y: y - (kve(n - 1, x) + kve(n + 1, x)) / 2)
kn = scipy_row("kn", Lazy("kn"), n=_none_in("kn", "order"), domain=ORDERS,
               x=lambda n, x: -(kv(n - 1, x) + kv(n + 1, x)) / 2)
hyp1f1: Op = scipy_row("hyp1f1", Lazy("hyp1f1"), domain=POSITIVE,
                       a=_none_in("hyp1f1", "parameters"), b=_none_in("hyp1f1", "parameters"),
                       x=lambda a, b, x: a / b * hyp1f1(a + 1, b + 1, x))
ROWS = (
    gamma, rgamma, loggamma, gammasgn, beta, betaln, betainc, betaincc, betaincinv, gammaincinv,
    gammainccinv, stdtr, stdtrit, binom, poch, rel_entr, kl_div, erfcinv, erfi, dawsn, exp10, exp1,
    expi, expn, jv, yv, yn, iv, ive, kv, kve, kn, hyp1f1,
)
# fmt: on
