"""The ufuncs of `scipy.special` that are rows of their own, and those that are made of some."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.op_functions import binary, unary
from tapegrad.functions import arithmetic as a
from tapegrad.functions import elementwise as ew
from tapegrad.functions import rounding
from tapegrad.functions.complex_parts import complex as complex_of
from tapegrad.functions.complex_parts import imag, real
from tapegrad.functions.special import logit
from tapegrad.numpy_face.common import floating, operand, tensor
from tapegrad.ops import bessel, scipy_bessel, scipy_distributions, scipy_elliptic, scipy_special
from tapegrad.ops import elementwise as e
from tapegrad.ops.core import Op
from tapegrad.tensor import Tensor

Function = Callable[..., Any]


def _of_row(op: Op) -> Function:
    """The function of a row that has no public name but SciPy's."""
    if len(op.inputs) < 3:
        return unary(op) if len(op.inputs) == 1 else binary(op)
    return lambda *args: run(op, tuple(map(operand, args)), {})


def _each(*ops: Op) -> Callable[[Any], tuple[Tensor, ...]]:
    """The function of one argument that has the results of several rows."""
    functions = [unary(op) for op in ops]
    return lambda x: tuple([f(x) for f in functions])


def _lambertw(z: Any, k: Any, tol: Any) -> Tensor:
    if not np.isin(k, (0, -1)).all():
        raise ValueError(
            f"`scipy.special.lambertw` of a Tensor has the real branches 0 and -1, got {k}"
        )
    return _of_branch(z, np.asarray(k, tensor(z)._a.dtype))


def _of_trials(op: Op) -> Function:
    """A distribution function of the number of successes, of trials, and of their chance."""
    of = _of_row(op)

    def function(k: Any, n: Any, p: Any) -> Any:
        k, n = operand(k) // 1, operand(n) // 1
        return of(k + 1, n - k, p)

    return function


def _of_failures(op: Op) -> Function:
    """One of the number of failures before so many successes, and of their chance."""
    of = _of_row(op)
    return lambda k, n, p: of(operand(n) // 1, operand(k) // 1 + 1, p)


def _ellipj(u: Any, m: Any) -> tuple[Any, ...]:
    """Jacobi's sn, cn and dn, and the amplitude that they are functions of."""
    amplitude = _jacobi_amplitude(u, m)
    s, c = ew.sin(amplitude), ew.cos(amplitude)
    return s, c, ew.sqrt(c * c + (1 - m) * s * s), amplitude


def _wofz(z: Any) -> Tensor:
    """Faddeeva's function, whose parts are Voigt's profile and the dispersion."""
    t = floating(tensor(z))
    x, y = (real(t), imag(t)) if t._a.dtype.kind == "c" else (t, 0.0)
    scale = math.sqrt(math.pi)
    return complex_of(*[scale * part(x, math.sqrt(0.5), y) for part in _PARTS_OF_VOIGT])


def _hankel(sign: int) -> Function:
    """Hankel's functions of a positive number: J + iY and J - iY."""

    def function(v: Any, x: Any) -> Tensor:
        parts = _jv(v, x), sign * _yv(v, x)
        return complex_of(*parts)

    return function


_of_branch = binary(scipy_special.lambertw)
_jacobi_amplitude = binary(scipy_elliptic.jacobi_amplitude)
_jv, _yv = binary(scipy_bessel.jv), binary(scipy_bessel.yv)
_PARTS_OF_VOIGT = _of_row(scipy_special.voigt_profile), _of_row(scipy_special.voigt_dispersion)
_gammaincinv, _gammainccinv = (
    binary(op) for op in (scipy_special.gammaincinv, scipy_special.gammainccinv)
)
_ROWS = (
    *scipy_special.ROWS, *scipy_bessel.ROWS, *scipy_distributions.ROWS, *scipy_elliptic.ROWS,
)  # fmt: skip
# By the name of the ufunc.
SPECIAL_UFUNCS: dict[str, Function] = {op.name: _of_row(op) for op in _ROWS} | {
    "digamma": ew.digamma, "logit": logit, "log_expit": lambda x: ew.neg(a.softplus(ew.neg(x))),
    "exp2": ew.exp2, "expm1": ew.expm1, "log1p": ew.log1p, "cbrt": unary(e.cbrt), "zeta": ew.zeta,
    "gammaln": ew.lgamma, "lambertw": _lambertw, "ellipj": _ellipj, "round": rounding.round,
    "wofz": _wofz, "hankel1": _hankel(1), "hankel2": _hankel(-1),
    "bdtr": _of_trials(scipy_special.betaincc), "bdtrc": _of_trials(scipy_special.betainc),
    "bdtri": _of_trials(scipy_special.betainccinv),
    "nbdtr": _of_failures(scipy_special.betainc), "nbdtrc": _of_failures(scipy_special.betaincc),
    "nbdtri": _of_failures(scipy_special.betaincinv),
    "pdtri": lambda k, p: _gammainccinv(operand(k) // 1 + 1, p),
    "gdtrix": lambda a, b, p: _gammaincinv(b, p) / a,
    "sici": _each(scipy_special.sine_integral, scipy_special.cosine_integral),
    "fresnel": _each(scipy_special.fresnel_sine, scipy_special.fresnel_cosine),
    "shichi": _each(
        scipy_bessel.hyperbolic_sine_integral, scipy_bessel.hyperbolic_cosine_integral
    ),
    "airy": _each(
        bessel.airy_ai, bessel.airy_ai_slope, scipy_bessel.airy_bi, scipy_bessel.airy_bi_slope
    ),
}  # fmt: skip
