"""Bessel functions of the orders 0 and 1, and the Airy function: SciPy's, with derivatives.

PyTorch has no derivatives of them.  Each is made of its neighbours, so all orders exist; where a
plain formula takes nearly equal numbers from each other, a power series stands in its place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.core import Op, elementwise
from tapegrad.ops.elementwise import POSITIVE, Lazy, cos, eq, lt, sin, where
from tapegrad.ops.elementwise import abs as abs_
from tapegrad.ops.special import I1, NEAR_I1, series

AT_ZERO = "It is infinite at 0, and NaN below."
# (sin(x) / x)' / x in powers of x*x, for |x| < 3/4:
NEAR_SPHERICAL = 0.75
SPHERICAL = tuple((-1.0) ** (k + 1) * (2 * k + 2) / math.factorial(2 * k + 3) for k in range(9))


def _spherical(x: Any) -> Any:
    with np.errstate(invalid="ignore"):
        y = np.divide(np.sin(x), x, out=np.ones_like(x), where=x != 0)
    y[np.isinf(x)] = 0
    return y


def _spherical_slope(x: Any, y: Any) -> Any:
    return where(lt(abs_(x), NEAR_SPHERICAL), x * series(x * x, SPHERICAL), (cos(x) - y) / x)


_airy = Lazy("airy")


# fmt: off
bessel_j0: Op = elementwise("bessel_j0", Lazy("j0"), x=lambda x: -bessel_j1(x),
                            to_float=True, in_c=True,
                            doc="The Bessel function of the first kind, order 0.",
                            namespace="special",
                            example=("tg.special.bessel_j0(tg.tensor(0.0))", "tensor(1.)"))
bessel_j1: Op = elementwise("bessel_j1", Lazy("j1"),
    x=lambda x, y: where(lt(abs_(x), NEAR_I1), series(-(x * x), I1), bessel_j0(x) - y / x),
                            to_float=True, in_c=True,
                            doc="The Bessel function of the first kind, order 1.",
                            namespace="special",
                            example=("tg.special.bessel_j1(tg.tensor(1.0))", "tensor(0.4401)"))
bessel_y0: Op = elementwise("bessel_y0", Lazy("y0"), x=lambda x: -bessel_y1(x),
                            domain=POSITIVE, to_float=True, in_c=True,
                            doc="The Bessel function of the second kind, order 0.",
                            namespace="special",
                            example=("tg.special.bessel_y0(tg.tensor(1.0))", "tensor(0.0883)"),
                            singular=AT_ZERO)
bessel_y1: Op = elementwise("bessel_y1", Lazy("y1"), x=lambda x, y: bessel_y0(x) - y / x,
                            domain=POSITIVE, to_float=True, in_c=True,
                            doc="The Bessel function of the second kind, order 1.",
                            namespace="special",
                            example=("tg.special.bessel_y1(tg.tensor(1.0))", "tensor(-0.7812)"),
                            singular=AT_ZERO)
modified_bessel_k0: Op = elementwise(
    "modified_bessel_k0", Lazy("k0"), x=lambda x: -modified_bessel_k1(x),
    domain=POSITIVE, to_float=True, in_c=True,
    doc="The modified Bessel function of the second kind, order 0.",
    namespace="special",
    example=("tg.special.modified_bessel_k0(tg.tensor(1.0))", "tensor(0.4210)"),
    singular=AT_ZERO,
)
modified_bessel_k1: Op = elementwise(
    "modified_bessel_k1", Lazy("k1"), x=lambda x, y: -modified_bessel_k0(x) - y / x,
    domain=POSITIVE, to_float=True, in_c=True,
    doc="The modified Bessel function of the second kind, order 1.",
    namespace="special",
    example=("tg.special.modified_bessel_k1(tg.tensor(1.0))", "tensor(0.6019)"),
    singular=AT_ZERO,
)
scaled_modified_bessel_k0: Op = elementwise(
    "scaled_modified_bessel_k0", Lazy("k0e"), x=lambda x, y: y - scaled_modified_bessel_k1(x),
    domain=POSITIVE, to_float=True, in_c=True,
    doc="`modified_bessel_k0`, times exp(x).",
    namespace="special",
    example=("tg.special.scaled_modified_bessel_k0(tg.tensor(1.0))", "tensor(1.1445)"),
    singular=AT_ZERO,
)
scaled_modified_bessel_k1: Op = elementwise(
    "scaled_modified_bessel_k1", Lazy("k1e"),
    x=lambda x, y: y - scaled_modified_bessel_k0(x) - y / x,
    domain=POSITIVE, to_float=True, in_c=True,
    doc="`modified_bessel_k1`, times exp(x).",
    namespace="special",
    example=("tg.special.scaled_modified_bessel_k1(tg.tensor(1.0))", "tensor(1.6362)"),
    singular=AT_ZERO,
)
spherical_bessel_j0 = elementwise(
    "spherical_bessel_j0", _spherical, x=_spherical_slope,
    to_float=True,
    decomposition=lambda x: where(eq(x, 0), 1.0, where(eq(abs_(x), math.inf), 0.0, sin(x) / x)),
    doc="The spherical Bessel function of the first kind, order 0: sin(x) / x; 1 at 0.",
    namespace="special",
    example=("tg.special.spherical_bessel_j0(tg.tensor(0.0))", "tensor(1.)"),
)
airy_ai: Op = elementwise("airy_ai",
    lambda x: np.asarray(_airy(x)[0]),
    x=lambda x: airy_ai_slope(x), to_float=True,
                          doc="The Airy function Ai, which solves y'' = x * y and falls to 0.",
                          namespace="special",
                          example=("tg.special.airy_ai(tg.tensor(0.0))", "tensor(0.3550)"))
airy_ai_slope: Op = elementwise("airy_ai_slope",
    lambda x: np.asarray(_airy(x)[1]),
    x=lambda x: x * airy_ai(x),
                                to_float=True)
# fmt: on
