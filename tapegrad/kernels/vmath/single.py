"""The functions of `vmath` for float32: those named here are computed in that type.

Vectors of float32 have twice as many elements, and shorter polynomials do; functions of `vmath`
compute in float64 and round once.  Largest error found in some million random arguments, in units
of the last place of the exact result (the tests hold them to a little more):

    exp 1.00      exp2 0.86     expm1 1.41    log 0.84      log2 1.25     log10 1.00
    log1p 1.47    softplus 1.71 sinh 1.62     cosh 1.42     tanh 1.32     sigmoid 2.40
    sin 1.56      cos 1.56      tan 2.92      asin 1.68     acos 1.14     atan 2.05
    atan2 1.52    power 0.53    erf 1.11      erfc 4.7      ndtr 4.9      erfinv 4.26

Angles beyond 2**19 are reduced in float64, by functions that branch.
"""

from tapegrad.kernels.vmath import *  # noqa: F403 - the others are those
from tapegrad.kernels.vmath.single_error_function import erf, erfc, erfinv, ndtr
from tapegrad.kernels.vmath.single_exponential import cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from tapegrad.kernels.vmath.single_logarithm import log, log1p, log2, log10, softplus
from tapegrad.kernels.vmath.single_power import power
from tapegrad.kernels.vmath.single_trigonometric import (
    acos,
    angle_is_large,
    asin,
    atan,
    atan2,
    cos,
    cos_any,
    sin,
    sin_any,
    tan,
    tan_any,
)

__all__ = [
    "acos",
    "angle_is_large",
    "asin",
    "atan",
    "atan2",
    "cos",
    "cos_any",
    "cosh",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "ndtr",
    "power",
    "sigmoid",
    "sin",
    "sin_any",
    "sinh",
    "softplus",
    "tan",
    "tan_any",
    "tanh",
]
