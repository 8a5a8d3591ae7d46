"""Elementwise functions: the library's, with the standard's promotion of types.

>>> from tapegrad import array_api as xp
>>> xp.add(xp.ones(1, dtype=xp.float32), xp.asarray(1.0)).dtype
tapegrad.float64
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.array_api.promotion import of_two, same_type
from tapegrad.functions import arithmetic
from tapegrad.functions import elementwise as ew
from tapegrad.functions.complex_parts import conj, imag, real, sgn
from tapegrad.functions.compositions import positive
from tapegrad.functions.elementwise import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_not,
    ceil,
    cos,
    cosh,
    exp,
    expm1,
    floor,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logical_not,
    neg,
    reciprocal,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)
from tapegrad.functions.rounding import round
from tapegrad.functions.shapes import to
from tapegrad.tensor import Tensor

bitwise_invert, negative, sign = bitwise_not, neg, sgn
add = of_two(arithmetic.add, "add")
atan2 = of_two(ew.atan2, "atan2")
bitwise_and = of_two(ew.bitwise_and, "bitwise_and")
bitwise_left_shift = of_two(ew.bitwise_left_shift, "bitwise_left_shift")
bitwise_or = of_two(ew.bitwise_or, "bitwise_or")
bitwise_right_shift = of_two(ew.bitwise_right_shift, "bitwise_right_shift")
bitwise_xor = of_two(ew.bitwise_xor, "bitwise_xor")
copysign = of_two(ew.copysign, "copysign")
divide = of_two(arithmetic.div, "divide")
equal = of_two(ew.eq, "equal")
floor_divide = of_two(ew.floor_divide, "floor_divide")
greater = of_two(ew.gt, "greater")
greater_equal = of_two(ew.ge, "greater_equal")
hypot = of_two(ew.hypot, "hypot")
less = of_two(ew.lt, "less")
less_equal = of_two(ew.le, "less_equal")
logaddexp = of_two(ew.logaddexp, "logaddexp")
logical_and = of_two(ew.logical_and, "logical_and")
logical_or = of_two(ew.logical_or, "logical_or")
logical_xor = of_two(ew.logical_xor, "logical_xor")
maximum = of_two(ew.maximum, "maximum")
minimum = of_two(ew.minimum, "minimum")
multiply = of_two(ew.mul, "multiply")
nextafter = of_two(ew.nextafter, "nextafter")
not_equal = of_two(ew.ne, "not_equal")
pow = of_two(arithmetic.pow, "pow")
remainder = of_two(ew.remainder, "remainder")
subtract = of_two(arithmetic.sub, "subtract")


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Each element, or the bound that it exceeds, in the type of `x`.

    >>> from tapegrad import array_api as xp
    >>> xp.clip(xp.arange(4), 1, 2)
    tensor([1, 1, 2, 2])
    """
    bounds = [bound if bound is None else same_type(x, bound)[1] for bound in (min, max)]
    return to(np.clip(x, *bounds), x.dtype)


__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]  # fmt: skip
