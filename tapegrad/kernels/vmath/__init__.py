"""Elementary functions of one double, written so that LLVM vectorises the loop that calls them.

Straight-line code: arithmetic, fma, bit casts and selects; no branch and no libm. Each
function takes a float64, or a float32, which is computed in float64 and rounded once (those of
`single` are computed in float32); integers become float64. Each is right for subnormals,
infinities, NaN, signed zeros and huge arguments, but for one limit: `sin`, `cos` and `tan` give NaN
beyond `TRIG_MAX`. A loop for any argument looks for one beyond it (a comparison, which vectorises)
and repeats with `sin_any`, `cos_any` or `tan_any`, which branch to libm and so run one element at a
time.

Largest error found in 40,000 or more random arguments over the whole range, in units of the last
place of the exact result (the tests hold the first three rows to 1, the others to 2, but
ndtr, log_ndtr and trigamma):

    exp 0.93      exp2 0.82      log 0.84   log2 0.96   log10 0.84  log1p 0.88
    sin 0.75      cos 0.74       asin 0.64  acos 0.60   atan 0.79   atan2 0.92
    cbrt 0.50     hypot 0.50
    sigmoid 1.57  softplus 1.44  tanh 1.58  sinh 1.57   cosh 1.15   expm1 1.11
    asinh 1.27    acosh 1.20     atanh 1.66 tan 1.77    power 0.90
    erf 1.37      erfc 1.89      erfinv 1.73 ndtr 2.39   trigamma 2.97 above 0, 5.26 below
    erfcx 1.76    log_ndtr 2.25  lgamma 2.92 above 0
    i0 5.10       i1 4.98        i0e 3.49   i1e 3.21

Kernels and `compiler.llvm.elementary` import from here; these modules import `simd` alone.

The functions called `_plain` take fewer instructions and serve ordinary arguments only;
`exp_is_rare` and its like tell which others there are. Their largest errors, found the same way:

    exp 0.76      log 0.63      log1p 0.75  sqrt 0.50
    sin 0.76      cos 0.74      tan 1.85    erf 1.61    power 0.91
    erfc 1.79     ndtr 2.17      erfinv 1.70

All but those of angles and `sqrt` look numbers up by four bits of an argument: where registers can
be permuted, that is one instruction for a vector (see `simd_tables`). An operation's forms stand in
its `chain` (see `rule_codegen`), where a loop goes from one to the next.

The polynomials are minimax fits: Remez exchange in 60-digit arithmetic of the function named above
each table, weighted so that the relative error of the final result is level, the coefficients
then rounded to double; lowest power first.
"""

from tapegrad.kernels.vmath.error_function import (
    erf,
    erfc,
    erfcx,
    erfinv,
    erfinv_is_rare,
    erfinv_plain,
    log_ndtr,
    ndtr,
)
from tapegrad.kernels.vmath.exponential import cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from tapegrad.kernels.vmath.fast_error_function import (
    erf_plain,
    erfc_is_rare,
    erfc_plain,
    ndtr_is_rare,
    ndtr_plain,
)
from tapegrad.kernels.vmath.fast_exponential import exp_is_rare, exp_plain, sqrt_is_rare, sqrt_plain
from tapegrad.kernels.vmath.fast_logarithm import (
    log1p_is_rare,
    log1p_plain,
    log_is_rare,
    log_plain,
    power_is_rare,
    power_plain,
)
from tapegrad.kernels.vmath.fast_trigonometric import angle_is_rare, cos_plain, sin_plain, tan_plain
from tapegrad.kernels.vmath.gamma_functions import lgamma, lgamma_any, trigamma
from tapegrad.kernels.vmath.inverse_hyperbolic import acosh, asinh, atanh
from tapegrad.kernels.vmath.inverse_trigonometric import acos, asin, atan, atan2
from tapegrad.kernels.vmath.logarithm import log, log1p, log2, log10, logaddexp, power, softplus
from tapegrad.kernels.vmath.modified_bessel import i0, i0e, i1, i1e
from tapegrad.kernels.vmath.modulo import (
    clamp,
    divides_late,
    floor_divide,
    floor_divide_any,
    fmod,
    fmod_any,
    remainder,
    remainder_any,
)
from tapegrad.kernels.vmath.roots import cbrt, hypot, rint
from tapegrad.kernels.vmath.trigonometric import (
    TRIG_MAX,
    angle_is_large,
    cos,
    cos_any,
    sin,
    sin_any,
    sinc,
    sinc_any,
    tan,
    tan_any,
)

__all__ = [
    "TRIG_MAX",
    "acos",
    "acosh",
    "angle_is_large",
    "angle_is_rare",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "clamp",
    "cos",
    "cos_any",
    "cos_plain",
    "cosh",
    "divides_late",
    "erf",
    "erf_plain",
    "erfc",
    "erfc_is_rare",
    "erfc_plain",
    "erfcx",
    "erfinv",
    "erfinv_is_rare",
    "erfinv_plain",
    "exp",
    "exp2",
    "exp_is_rare",
    "exp_plain",
    "expm1",
    "floor_divide",
    "floor_divide_any",
    "fmod",
    "fmod_any",
    "hypot",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "lgamma",
    "lgamma_any",
    "log",
    "log1p",
    "log1p_is_rare",
    "log1p_plain",
    "log2",
    "log10",
    "log_is_rare",
    "log_ndtr",
    "log_plain",
    "logaddexp",
    "ndtr",
    "ndtr_is_rare",
    "ndtr_plain",
    "power",
    "power_is_rare",
    "power_plain",
    "remainder",
    "remainder_any",
    "rint",
    "sigmoid",
    "sin",
    "sin_any",
    "sin_plain",
    "sinc",
    "sinc_any",
    "sinh",
    "softplus",
    "sqrt_is_rare",
    "sqrt_plain",
    "tan",
    "tan_any",
    "tan_plain",
    "tanh",
    "trigamma",
]
