"""Orthogonal polynomials of whole degrees; PyTorch has no derivatives of them.

The derivative of a Gegenbauer polynomial, or of a Laguerre polynomial, is one of the next order
and of the degree below, that of a Hermite polynomial one of its own kind: all orders exist.  Those
of a negative degree are 0, which ends the series.  The degree arrives as a whole number, whatever
its type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.ops.core import NotDifferentiable, Op, elementwise
from tapegrad.ops.elementwise import REAL, Lazy

DEGREE = NotDifferentiable("the degree of a polynomial is a whole number")
DOMAIN = (REAL, range(5))
ROOT_TWO = math.sqrt(2.0)


def _of_scipy(name: str) -> Callable[..., Any]:
    """The forward of polynomials that SciPy has, as a function of x, of degrees, of an order."""
    ufunc = Lazy(name)

    def forward(x: Any, n: Any, *order: Any) -> Any:
        degree = np.asarray(n).astype(np.int64)
        with np.errstate(all="ignore"):
            y = np.asarray(ufunc(degree, *order, x), x.dtype)
        return np.where(degree < 0, np.zeros((), y.dtype), y) if (degree < 0).any() else y

    return forward


_he = _of_scipy("eval_hermitenorm")


# fmt: off
chebyshev_polynomial_t = elementwise(
    "chebyshev_polynomial_t", _of_scipy("eval_chebyt"),
    x=lambda x, n: n * chebyshev_polynomial_u(x, n - 1), n=DEGREE, domain=DOMAIN, to_float=True,
)
chebyshev_polynomial_u: Op = elementwise(
    "chebyshev_polynomial_u", _of_scipy("eval_chebyu"),
    x=lambda x, n: 2 * gegenbauer(x, n - 1, 2), n=DEGREE, domain=DOMAIN, to_float=True,
)
legendre_polynomial_p = elementwise(
    "legendre_polynomial_p", _of_scipy("eval_legendre"),
    x=lambda x, n: gegenbauer(x, n - 1, 1.5), n=DEGREE, domain=DOMAIN, to_float=True,
)
gegenbauer: Op = elementwise(
    "gegenbauer", _of_scipy("eval_gegenbauer"),
    x=lambda x, n, order: 2 * order * gegenbauer(x, n - 1, order + 1),
    n=DEGREE, order=DEGREE, domain=(*DOMAIN, range(1, 3)), to_float=True,
)
jacobi: Op = elementwise(
    "jacobi", _of_scipy("eval_jacobi"),
    x=lambda x, n, a, b: (n + a + b + 1) / 2 * jacobi(x, n - 1, a + 1, b + 1),
    n=DEGREE, a=DEGREE, b=DEGREE, domain=(*DOMAIN, range(1, 3), range(3)), to_float=True,
)
laguerre_polynomial_l = elementwise(
    "laguerre_polynomial_l", _of_scipy("eval_laguerre"),
    x=lambda x, n: -laguerre(x, n - 1, 1), n=DEGREE, domain=DOMAIN, to_float=True,
)
laguerre: Op = elementwise(
    "laguerre", _of_scipy("eval_genlaguerre"),
    x=lambda x, n, order: -laguerre(x, n - 1, order + 1),
    n=DEGREE, order=DEGREE, domain=(*DOMAIN, range(3)), to_float=True,
)
hermite_polynomial_he: Op = elementwise(
    "hermite_polynomial_he", _he, x=lambda x, n: n * hermite_polynomial_he(x, n - 1),
    n=DEGREE, domain=DOMAIN, to_float=True,
)
hermite_polynomial_h: Op = elementwise(
    "hermite_polynomial_h",
    lambda x, n: np.asarray(_he(ROOT_TWO * x, n) * np.exp2(0.5 * n), x.dtype),
    x=lambda x, n: 2 * n * hermite_polynomial_h(x, n - 1),
    n=DEGREE, domain=DOMAIN, to_float=True,
)
# fmt: on
