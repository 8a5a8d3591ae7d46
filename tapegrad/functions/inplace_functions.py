"""In-place forms as functions: ``tg.exp_(x)`` is ``x.exp_()``."""

from collections.abc import Callable

from tapegrad.functions.added_products import addmv_
from tapegrad.functions.complex_parts import conj_physical_
from tapegrad.functions.compositions import detach_, threshold_
from tapegrad.functions.exponents import ldexp_
from tapegrad.functions.inplace_methods import (
    OF_ROWS,
    clamp_,
    clip_,
    fill_,
    nan_to_num_,
    round_,
    zero_,
)
from tapegrad.functions.inplace_view_methods import as_strided_
from tapegrad.functions.special import logit_
from tapegrad.tensor import Tensor

__all__ = [
    "abs_", "acos_", "acosh_", "addmv_", "arccos_", "arccosh_", "arcsin_", "arcsinh_",
    "arctan_", "arctanh_", "as_strided_", "asin_", "asinh_", "atan_", "atanh_", "ceil_",
    "clamp_", "clip_", "conj_physical_", "cos_", "cosh_", "deg2rad_", "detach_", "erf_",
    "erfc_", "exp2_", "exp_", "expm1_", "fill_", "fix_", "floor_", "frac_", "gcd_", "i0_",
    "lcm_", "ldexp_", "log1p_", "log2_", "log10_", "log_", "logit_", "nan_to_num_", "neg_",
    "negative_", "rad2deg_", "reciprocal_", "relu_", "round_", "rsqrt_", "sigmoid_", "sin_",
    "sinc_", "sinh_", "sqrt_", "square_", "tan_", "tanh_", "threshold_", "trunc_", "xlogy_",
    "zero_",
]  # fmt: skip
Change = Callable[..., Tensor]
abs_: Change = OF_ROWS["abs_"]
acos_: Change = OF_ROWS["acos_"]
acosh_: Change = OF_ROWS["acosh_"]
arccos_: Change = OF_ROWS["arccos_"]
arccosh_: Change = OF_ROWS["arccosh_"]
arcsin_: Change = OF_ROWS["arcsin_"]
arcsinh_: Change = OF_ROWS["arcsinh_"]
arctan_: Change = OF_ROWS["arctan_"]
arctanh_: Change = OF_ROWS["arctanh_"]
asin_: Change = OF_ROWS["asin_"]
asinh_: Change = OF_ROWS["asinh_"]
atan_: Change = OF_ROWS["atan_"]
atanh_: Change = OF_ROWS["atanh_"]
ceil_: Change = OF_ROWS["ceil_"]
cos_: Change = OF_ROWS["cos_"]
cosh_: Change = OF_ROWS["cosh_"]
deg2rad_: Change = OF_ROWS["deg2rad_"]
erf_: Change = OF_ROWS["erf_"]
erfc_: Change = OF_ROWS["erfc_"]
exp2_: Change = OF_ROWS["exp2_"]
exp_: Change = OF_ROWS["exp_"]
expm1_: Change = OF_ROWS["expm1_"]
fix_: Change = OF_ROWS["fix_"]
floor_: Change = OF_ROWS["floor_"]
frac_: Change = OF_ROWS["frac_"]
gcd_: Change = OF_ROWS["gcd_"]
i0_: Change = OF_ROWS["i0_"]
lcm_: Change = OF_ROWS["lcm_"]
log10_: Change = OF_ROWS["log10_"]
log1p_: Change = OF_ROWS["log1p_"]
log2_: Change = OF_ROWS["log2_"]
log_: Change = OF_ROWS["log_"]
neg_: Change = OF_ROWS["neg_"]
negative_: Change = OF_ROWS["negative_"]
rad2deg_: Change = OF_ROWS["rad2deg_"]
reciprocal_: Change = OF_ROWS["reciprocal_"]
relu_: Change = OF_ROWS["relu_"]
rsqrt_: Change = OF_ROWS["rsqrt_"]
sigmoid_: Change = OF_ROWS["sigmoid_"]
sin_: Change = OF_ROWS["sin_"]
sinc_: Change = OF_ROWS["sinc_"]
sinh_: Change = OF_ROWS["sinh_"]
sqrt_: Change = OF_ROWS["sqrt_"]
square_: Change = OF_ROWS["square_"]
tan_: Change = OF_ROWS["tan_"]
tanh_: Change = OF_ROWS["tanh_"]
trunc_: Change = OF_ROWS["trunc_"]
xlogy_: Change = OF_ROWS["xlogy_"]
