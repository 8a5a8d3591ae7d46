"""SciPy's Bessel functions of any order and their kin, with their derivatives in the argument.

Each is made of its neighbours, so all orders of derivatives exist; there are none in the order of
the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.ops.core import NotDifferentiable, Op, elementwise
from tapegrad.ops.elementwise import POSITIVE, Lazy, cosh, pow, sign
from tapegrad.ops.elementwise import abs as abs_
from tapegrad.ops.scipy_special import gamma, none_in, part, scipy_row

ORDERS = (range(1, 4), POSITIVE)
WHOLE_ORDER = NotDifferentiable("the order of a spherical Bessel function is a whole number")


def _of_whole_order(name: str) -> Callable[..., Any]:
    """The forward of a spherical Bessel function, whose order arrives as any number."""
    function = Lazy(name)

    def forward(n: Any, x: Any) -> Any:
        found = function(np.asarray(n).astype(int), x)
        return np.asarray(found, np.result_type(x, np.float32))

    return forward


def _neighbours(row: Op, n: Any, x: Any) -> tuple[Any, Any]:
    """Those of the orders n - 1 and n + 1, by their shares; that below the order 0 has none."""
    whole = 2 * n + 1
    return n / whole * row(abs_(n - 1), x), (n + 1) / whole * row(n + 1, x)


def spherical_slope(row: Op, n: Any, x: Any) -> Any:
    """The derivative of a spherical Bessel function of the first or second kind."""
    below, above = _neighbours(row, n, x)
    return below - above


def modified_spherical_slope(row: Op, n: Any, x: Any) -> Any:
    """That of a modified one of the first kind; of the second kind, its negative."""
    below, above = _neighbours(row, n, x)
    return below + above


def _struve_term(v: Any, x: Any) -> Any:
    """What Struve's functions have beyond the recurrence of Bessel's."""
    return pow(x / 2, v) / (math.sqrt(math.pi) * gamma(v + 1.5))


# fmt: off
jv: Op = scipy_row("jv", Lazy("jv"), n=none_in("jv", "order"), domain=ORDERS,
                   ordered=True, x=lambda n, x: (jv(n - 1, x) - jv(n + 1, x)) / 2)
yv: Op = scipy_row("yv", Lazy("yv"), n=none_in("yv", "order"), domain=ORDERS,
                   ordered=True, x=lambda n, x: (yv(n - 1, x) - yv(n + 1, x)) / 2)
yn = scipy_row("yn", Lazy("yn"), n=none_in("yn", "order"), domain=ORDERS,
               x=lambda n, x: (yv(n - 1, x) - yv(n + 1, x)) / 2)
iv: Op = scipy_row("iv", Lazy("iv"), n=none_in("iv", "order"), domain=ORDERS,
                   ordered=True, x=lambda n, x: (iv(n - 1, x) + iv(n + 1, x)) / 2)
ive: Op = scipy_row("ive", Lazy("ive"), n=none_in("ive", "order"), domain=ORDERS, ordered=True,
                    x=lambda n, x, y: (ive(n - 1, x) + ive(n + 1, x)) / 2 - sign(x) * y)
kv: Op = scipy_row("kv", Lazy("kv"), n=none_in("kv", "order"), domain=ORDERS,
                   ordered=True, x=lambda n, x: -(kv(n - 1, x) + kv(n + 1, x)) / 2)
kve: Op = scipy_row("kve", Lazy("kve"), n=none_in("kve", "order"), domain=ORDERS, ordered=True,
                    x=lambda n, x, y: y - (kve(n - 1, x) + kve(n + 1, x)) / 2)
kn = scipy_row("kn", Lazy("kn"), n=none_in("kn", "order"), domain=ORDERS,
               x=lambda n, x: -(kv(n - 1, x) + kv(n + 1, x)) / 2)
jve: Op = scipy_row("jve", Lazy("jve"), n=none_in("jve", "order"), domain=ORDERS,
                    ordered=True, x=lambda n, x: (jve(n - 1, x) - jve(n + 1, x)) / 2)
yve: Op = scipy_row("yve", Lazy("yve"), n=none_in("yve", "order"), domain=ORDERS,
                    ordered=True, x=lambda n, x: (yve(n - 1, x) - yve(n + 1, x)) / 2)
struve: Op = scipy_row(
    "struve", Lazy("struve"), v=none_in("struve", "order"), domain=ORDERS,
    x=lambda v, x: (struve(v - 1, x) - struve(v + 1, x) + _struve_term(v, x)) / 2)
modstruve: Op = scipy_row(
    "modstruve", Lazy("modstruve"), v=none_in("modstruve", "order"), domain=ORDERS,
    x=lambda v, x: (modstruve(v - 1, x) + modstruve(v + 1, x) + _struve_term(v, x)) / 2)
spherical_jn: Op = elementwise(
    "spherical_jn", _of_whole_order("spherical_jn"), n=WHOLE_ORDER, domain=ORDERS, to_float=True,
    ordered=True, x=lambda n, x: spherical_slope(spherical_jn, n, x))
spherical_yn: Op = elementwise(
    "spherical_yn", _of_whole_order("spherical_yn"), n=WHOLE_ORDER, domain=ORDERS, to_float=True,
    ordered=True, x=lambda n, x: spherical_slope(spherical_yn, n, x),
    singular="It is -infinite at 0.")
spherical_in: Op = elementwise(
    "spherical_in", _of_whole_order("spherical_in"), n=WHOLE_ORDER, domain=ORDERS, to_float=True,
    ordered=True, x=lambda n, x: modified_spherical_slope(spherical_in, n, x))
spherical_kn: Op = elementwise(
    "spherical_kn", _of_whole_order("spherical_kn"), n=WHOLE_ORDER, domain=ORDERS, to_float=True,
    ordered=True, x=lambda n, x: -modified_spherical_slope(spherical_kn, n, x),
    singular="It is infinite at 0.")
ber = scipy_row("ber", Lazy("ber"), x=lambda x: berp(x))
bei = scipy_row("bei", Lazy("bei"), x=lambda x: beip(x))
berp: Op = scipy_row("berp", Lazy("berp"), x=lambda x, y: -bei(x) - y / x, domain=POSITIVE,
                     singular="The derivative is NaN at 0.")
beip: Op = scipy_row("beip", Lazy("beip"), x=lambda x, y: ber(x) - y / x, domain=POSITIVE,
                     singular="The derivative is NaN at 0.")
ker = scipy_row("ker", Lazy("ker"), x=lambda x: kerp(x), domain=POSITIVE)
kei = scipy_row("kei", Lazy("kei"), x=lambda x: keip(x), domain=POSITIVE)
kerp: Op = scipy_row("kerp", Lazy("kerp"), x=lambda x, y: -kei(x) - y / x, domain=POSITIVE)
keip: Op = scipy_row("keip", Lazy("keip"), x=lambda x, y: ker(x) - y / x, domain=POSITIVE)
airy_bi: Op = elementwise("airy_bi", part("airy", 2), x=lambda x: airy_bi_slope(x), ordered=True,
                          to_float=True)
airy_bi_slope: Op = elementwise("airy_bi_slope", part("airy", 3), x=lambda x: x * airy_bi(x),
                                ordered=True, to_float=True)
hyperbolic_sine_integral = elementwise(
    "hyperbolic_sine_integral", part("shichi", 0), x=lambda x: spherical_in(0, x), ordered=True,
    to_float=True)
hyperbolic_cosine_integral = elementwise(
    "hyperbolic_cosine_integral", part("shichi", 1), x=lambda x: cosh(x) / x, domain=POSITIVE,
    ordered=True, to_float=True, singular="It is -infinite at 0.")
ROWS = (
    jv, yv, yn, iv, ive, kv, kve, kn, jve, yve, struve, modstruve, ber, bei, berp, beip, ker, kei,
    kerp, keip,
)
# fmt: on
