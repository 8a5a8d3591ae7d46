"""Special functions of SciPy's that PyTorch has not, with their partial derivatives.

They answer to SciPy's own ufuncs (`numpy_face/ufuncs.py`), and have no other public name.
"""

from __future__ import annotations

import math
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
from tapegrad.ops.special import digamma

ORDERS = (range(1, 4), POSITIVE)


def _none_in(name: str, argument: str) -> NotImplementedYet:
    return NotImplementedYet(
        f"`scipy.special.{name}` has no derivative in its {argument}: give it a number, or "
        "`t.detach()`"
    )


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """That of the beta distribution."""
    return exp((a - 1) * log(x) + (b - 1) * log1p(-x) - betaln(a, b))


def _expn_slope(n: Any, x: Any) -> Any:
    return where(eq(n, 0), -exp(-x) * (1 + x) / (x * x), -expn(n - 1, x))


# fmt: off
gamma = elementwise("gamma", Lazy("gamma"), x=lambda x, y: y * digamma(x), domain=POSITIVE,
                    ordered=True, to_float=True,
                    singular="The derivative is NaN at 0 and at negative whole numbers.")
rgamma = elementwise("rgamma", Lazy("rgamma"), x=lambda x, y: -y * digamma(x), domain=POSITIVE,
                     ordered=True, to_float=True,
                     singular="The derivative is NaN at 0 and at negative whole numbers.")
loggamma = elementwise("loggamma", Lazy("loggamma"), x=lambda x: digamma(x), domain=POSITIVE,
                       ordered=True, to_float=True, singular="It is NaN below 0.")
gammasgn = elementwise("gammasgn", Lazy("gammasgn"), x=lambda: 0, domain=POSITIVE, to_float=True)
beta = elementwise("beta", Lazy("beta"), domain=POSITIVE, to_float=True,
                   a=lambda a, b, y: y * (digamma(a) - digamma(a + b)),
                   b=lambda a, b, y: y * (digamma(b) - digamma(a + b)))
betaln: Op = elementwise("betaln", Lazy("betaln"), domain=POSITIVE, to_float=True,
                         a=lambda a, b: digamma(a) - digamma(a + b),
                         b=lambda a, b: digamma(b) - digamma(a + b))
betainc = elementwise("betainc", Lazy("betainc"), domain=(POSITIVE, POSITIVE, (0.1, 0.9)),
                      a=_none_in("betainc", "parameters"), b=_none_in("betainc", "parameters"),
                      x=_beta_density, to_float=True)
betaincc = elementwise("betaincc", Lazy("betaincc"), domain=(POSITIVE, POSITIVE, (0.1, 0.9)),
                       a=_none_in("betaincc", "parameters"), b=_none_in("betaincc", "parameters"),
                       x=lambda a, b, x: -_beta_density(a, b, x), to_float=True)
binom = elementwise("binom", Lazy("binom"), domain=((3.0, 5.0), POSITIVE), to_float=True,
                    n=lambda n, k, y: y * (digamma(n + 1) - digamma(n - k + 1)),
                    k=lambda n, k, y: y * (digamma(n - k + 1) - digamma(k + 1)))
poch = elementwise("poch", Lazy("poch"), domain=POSITIVE, to_float=True,
                   z=lambda z, m, y: y * (digamma(z + m) - digamma(z)),
                   m=lambda z, m, y: y * digamma(z + m))
rel_entr = elementwise("rel_entr", Lazy("rel_entr"), domain=POSITIVE, to_float=True,
                       a=lambda a, b: log(a / b) + 1, b=lambda a, b: -a / b,
                       singular="d/da is -infinite where a is 0.")
kl_div = elementwise("kl_div", Lazy("kl_div"), domain=POSITIVE, to_float=True,
                     a=lambda a, b: log(a / b), b=lambda a, b: 1 - a / b,
                     singular="d/da is -infinite where a is 0.")
erfcinv = elementwise("erfcinv", Lazy("erfcinv"), x=lambda y: -exp(y * y) / TWO_OVER_ROOT_PI,
                      domain=(0.1, 1.9), to_float=True,
                      singular="The derivative is infinite at 0 and 2, and NaN outside.")
erfi = elementwise("erfi", Lazy("erfi"), x=lambda x: TWO_OVER_ROOT_PI * exp(x * x),
                   ordered=True, to_float=True)
dawsn = elementwise("dawsn", Lazy("dawsn"), x=lambda x, y: 1 - 2 * x * y, ordered=True,
                    to_float=True)
exp10 = elementwise("exp10", Lazy("exp10"), x=lambda y: math.log(10.0) * y, to_float=True)
exp1 = elementwise("exp1", Lazy("exp1"), x=lambda x: -exp(-x) / x, domain=POSITIVE,
                   ordered=True, to_float=True, singular="It is infinite at 0.")
expi = elementwise("expi", Lazy("expi"), x=lambda x: exp(x) / x, domain=POSITIVE,
                   ordered=True, to_float=True, singular="It is -infinite at 0.")
expn: Op = elementwise("expn", Lazy("expn"), n=_none_in("expn", "order"), x=_expn_slope,
                       domain=ORDERS, to_float=True, singular="It is infinite at 0 for n < 2.")
jv: Op = elementwise("jv", Lazy("jv"), n=_none_in("jv", "order"), domain=ORDERS, to_float=True,
                     ordered=True, x=lambda n, x: (jv(n - 1, x) - jv(n + 1, x)) / 2)
yv: Op = elementwise("yv", Lazy("yv"), n=_none_in("yv", "order"), domain=ORDERS, to_float=True,
                     ordered=True, x=lambda n, x: (yv(n - 1, x) - yv(n + 1, x)) / 2)
yn = elementwise("yn", Lazy("yn"), n=_none_in("yn", "order"), domain=ORDERS, to_float=True,
                 x=lambda n, x: (yv(n - 1, x) - yv(n + 1, x)) / 2)
iv: Op = elementwise("iv", Lazy("iv"), n=_none_in("iv", "order"), domain=ORDERS, to_float=True,
                     ordered=True, x=lambda n, x: (iv(n - 1, x) + iv(n + 1, x)) / 2)
ive: Op = elementwise("ive", Lazy("ive"), n=_none_in("ive", "order"), domain=ORDERS,
                      to_float=True, ordered=True,
                      x=lambda n, x, y: (ive(n - 1, x) + ive(n + 1, x)) / 2 - sign(x) * y)
kv: Op = elementwise("kv", Lazy("kv"), n=_none_in("kv", "order"), domain=ORDERS, to_float=True,
                     ordered=True, x=lambda n, x: -(kv(n - 1, x) + kv(n + 1, x)) / 2)
kve: Op = elementwise("kve", Lazy("kve"), n=_none_in("kve", "order"), domain=ORDERS,
                      to_float=True, ordered=True,
                      x=lambda n, x, y: y - (kve(n - 1, x) + kve(n + 1, x)) / 2)
kn = elementwise("kn", Lazy("kn"), n=_none_in("kn", "order"), domain=ORDERS, to_float=True,
                 x=lambda n, x: -(kv(n - 1, x) + kv(n + 1, x)) / 2)
hyp1f1: Op = elementwise("hyp1f1", Lazy("hyp1f1"), domain=POSITIVE, to_float=True,
                         a=_none_in("hyp1f1", "parameters"), b=_none_in("hyp1f1", "parameters"),
                         x=lambda a, b, x: a / b * hyp1f1(a + 1, b + 1, x))
ROWS = (
    gamma, rgamma, loggamma, gammasgn, beta, betaln, betainc, betaincc, binom, poch, rel_entr,
    kl_div, erfcinv, erfi, dawsn, exp10, exp1, expi, expn, jv, yv, yn, iv, ive, kv, kve, kn, hyp1f1,
)
# fmt: on
