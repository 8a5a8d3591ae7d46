"""The polynomials of `scipy.special`, which take the degree first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.functions import orthogonal_polynomials as functions
from tapegrad.numpy_face.common import operand, tensor, unsupported
from tapegrad.ops import orthogonal_polynomials as ops
from tapegrad.ops.core import Op
from tapegrad.tensor import Tensor


def _of_row(op: Op) -> Callable[..., Tensor]:
    """The function of a row that PyTorch has not."""
    return lambda *args: run(op, args, {})


# By the name of the ufunc: the function of x, of the degree, and of other parameters.
OF_DEGREE: dict[str, Callable[..., Any]] = {
    "eval_chebyt": functions.chebyshev_polynomial_t,
    "eval_chebyu": functions.chebyshev_polynomial_u,
    "eval_chebyc": lambda x, n: 2 * functions.chebyshev_polynomial_t(x / 2, n),
    "eval_chebys": lambda x, n: functions.chebyshev_polynomial_u(x / 2, n),
    "eval_sh_chebyt": functions.shifted_chebyshev_polynomial_t,
    "eval_sh_chebyu": functions.shifted_chebyshev_polynomial_u,
    "eval_hermite": functions.hermite_polynomial_h,
    "eval_hermitenorm": functions.hermite_polynomial_he,
    "eval_laguerre": functions.laguerre_polynomial_l,
    "eval_genlaguerre": _of_row(ops.laguerre),
    "eval_legendre": functions.legendre_polynomial_p,
    "eval_sh_legendre": lambda x, n: functions.legendre_polynomial_p(2 * x - 1, n),
    "eval_gegenbauer": _of_row(ops.gegenbauer),
    "eval_jacobi": _of_row(ops.jacobi),
}


def _as_scipy(name: str) -> Callable[..., Tensor]:
    """A polynomial with SciPy's arguments.

    SciPy's degrees are not whole numbers only, and have a derivative then, as parameters have: of
    such there is none here.
    """
    of = OF_DEGREE[name]

    def polynomial(*given: Any) -> Tensor:
        *constants, x = map(operand, given)
        known = [v._a if type(v) is Tensor and not v.requires_grad else v for v in constants]
        n = known[0]
        if any(isinstance(v, Tensor) for v in known) or np.any((n < 0) | (n != np.floor(n))):
            raise unsupported(f"scipy.special.{name}")
        found: Tensor = of(tensor(x), *map(tensor, known))
        return found

    return polynomial


POLYNOMIALS = {name: _as_scipy(name) for name in OF_DEGREE}
