"""Elementwise operations: a NumPy ufunc each, and its partial derivatives.

Conventions at singular points are PyTorch's: ``abs'(0) = 0``, ``relu'(0) = 0``, a tie of maximum
and minimum gives half to each side, ``clamp`` passes the gradient at its bounds, ``d/da a**b`` is 0
where ``b == 0``, ``d/db a**b`` is 0 where ``a == 0`` and ``b >= 0``.  Rounding has the derivative
0 everywhere, ``frac`` 1.  ``hypot`` has none (NaN) at the origin, nor has ``logaddexp`` where both
are the same infinity.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.core import NotDifferentiable, Op, elementwise


class Lazy:
    """A SciPy ufunc that is imported when it is first called."""

    __slots__ = ("name", "ufunc")

    def __init__(self, name: str) -> None:
        self.name = name
        self.ufunc: Any = None

    def load(self) -> Any:
        """The ufunc itself."""
        if self.ufunc is None:
            import scipy.special

            self.ufunc = getattr(scipy.special, self.name)
        return self.ufunc

    def __call__(self, *args: Any, **options: Any) -> Any:
        ufunc = self.ufunc or self.load()
        return ufunc(*args, **options)


class Composed:
    """A forward of a few ufuncs, one after the other, each but the first into the same result.

    A step names its operands: ``a`` and ``b``, the result so far ``y``, and the number ``0``.
    """

    __slots__ = ("steps", "zero")

    def __init__(self, *steps: tuple[np.ufunc, str]) -> None:
        self.steps = steps
        self.zero = any("0" in names for _, names in steps)

    def __call__(self, *args: Any, out: Any = None) -> Any:
        values = dict(zip("ab", args, strict=False))
        if self.zero:
            values["0"] = _zero(args[0])
        y: Any = ...
        for ufunc, names in self.steps:
            y = values["y"] = ufunc(*[values[name] for name in names], out=y)
        return y


def _where(condition: Any, a: Any, b: Any, out: Any = None) -> Any:
    return np.asarray(np.where(condition, a, b))


def _strong(a: Any, b: Any, out: Any = None) -> Any:
    product = np.multiply(a, b, out=...)
    if math.isnan(np.vdot(product, product)):  # perhaps of a zero and an infinity
        with np.errstate(all="ignore"):
            return np.where(a == 0, np.zeros((), a.dtype), a * b)
    return product


def _exact(w: Any, d: Any, out: Any = None) -> Any:
    product = np.multiply(w, d, out=...)
    if math.isnan(np.vdot(product, product)):
        with np.errstate(all="ignore"):
            return np.where((w == 0) | (d == 0), np.zeros((), w.dtype), w * d)
    return product


def _zero(x: Any) -> Any:
    return np.zeros((), x.dtype)


def _addcmul(a: Any, b: Any, c: Any, out: Any = None) -> Any:
    return np.asarray(a + b * c)


def _addcdiv(a: Any, b: Any, c: Any, out: Any = None) -> Any:
    return np.asarray(a + b / c)


def _addcmul_scaled(a: Any, b: Any, c: Any, value: Any, out: Any = None) -> Any:
    return np.asarray(a + value * b * c)


def _addcdiv_scaled(a: Any, b: Any, c: Any, value: Any, out: Any = None) -> Any:
    return np.asarray(a + value * b / c)


def _lerp(a: Any, b: Any, c: Any, out: Any = None) -> Any:
    return np.asarray(a + c * (b - a))


def _per_square(part: Any, a: Any, b: Any) -> Any:
    square = a * a + b * b
    return where(eq(square, 0), 0.0, part / square)


SELECTS = NotDifferentiable("a condition selects, it has no derivative")
SCALES = NotDifferentiable("`value` is a number: multiply by a Tensor to differentiate in it")
COMPARES = NotDifferentiable("a comparison is constant almost everywhere")
TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
LN_2, LN_10 = math.log(2.0), math.log(10.0)
POSITIVE, UNIT, REAL = (0.1, 2.0), (-0.9, 0.9), (-2.0, 2.0)

# fmt: off
# The strong product: an adjoint that is exactly zero contributes exactly zero, whatever the factor.
strong = elementwise("strong", _strong, a=lambda b: b, b=lambda a: a, grad_name="Mul", exact=("b",))
# The same with both factors adjoints: either zero makes it zero.
exact = elementwise(
    "exact", _exact, a=lambda b: b,
    b=lambda a: a, grad_name="Mul", exact=("a", "b"),
)

eq = elementwise("eq", np.equal, a=COMPARES, b=COMPARES)
ne = elementwise("ne", np.not_equal, a=COMPARES, b=COMPARES)
lt = elementwise("lt", np.less, a=COMPARES, b=COMPARES)
le = elementwise("le", np.less_equal, a=COMPARES, b=COMPARES)
gt = elementwise("gt", np.greater, a=COMPARES, b=COMPARES)
ge = elementwise("ge", np.greater_equal, a=COMPARES, b=COMPARES)

add = elementwise("add", np.add, a=lambda: 1, b=lambda: 1)
sub = elementwise("sub", np.subtract, a=lambda: 1, b=lambda: -1)
mul = elementwise("mul", np.multiply, a=lambda b: b, b=lambda a: a)
# As in PyTorch a quotient is not read by its rule, so that it may be changed in place.
div = elementwise(
    "div", np.true_divide, a=lambda b: 1 / b,
    b=lambda a, b: -(a / b) / b, domain=POSITIVE,
)
neg = elementwise("neg", np.negative, x=lambda: -1)
# b * a**(b-1), but exactly 0 where b is 0; a**b * log(a), but exactly 0 where a is 0 and b >= 0.
pow: Op = elementwise(
    "pow", np.power, domain=POSITIVE, a=lambda a, b: where(eq(b, 0), 0, b * pow(a, b - 1)),
    b=lambda a, b, y: where(mul(eq(a, 0), ge(b, 0)), 0, y * log(a)),
)
floor_divide = elementwise(
    "floor_divide", np.floor_divide, a=lambda: 0, b=lambda: 0, domain=POSITIVE,
)
remainder = elementwise(
    "remainder", np.remainder, domain=POSITIVE, a=lambda: 1, b=lambda a, b: -floor(a / b),
)
fmod = elementwise(
    "fmod", np.fmod, domain=POSITIVE, a=lambda: 1, b=lambda a, b: -trunc(a / b),
)
floor: Op = elementwise("floor", np.floor, x=lambda: 0)
ceil = elementwise("ceil", np.ceil, x=lambda: 0)
trunc: Op = elementwise("trunc", np.trunc, x=lambda: 0)
round = elementwise("round", np.rint, x=lambda: 0)
frac = elementwise("frac", Composed((np.trunc, "a"), (np.subtract, "ay")), x=lambda: 1)
sign = elementwise("sign", np.sign, x=lambda: 0)
abs = elementwise("abs", np.absolute, x=lambda x: sign(x))
square = elementwise("square", np.square, x=lambda x: 2 * x, grad_name="Pow")
reciprocal = elementwise("reciprocal", np.reciprocal, x=lambda y: -y * y, domain=POSITIVE)

exp = elementwise("exp", np.exp, x=lambda y: y)
log: Op = elementwise("log", np.log, x=lambda x: 1 / x, domain=POSITIVE)
log2 = elementwise("log2", np.log2, x=lambda x: 1 / (LN_2 * x), domain=POSITIVE)
log10 = elementwise("log10", np.log10, x=lambda x: 1 / (LN_10 * x), domain=POSITIVE)
exp2 = elementwise("exp2", np.exp2, x=lambda y: LN_2 * y)
log1p = elementwise("log1p", np.log1p, x=lambda x: 1 / (1 + x), domain=UNIT)
expm1 = elementwise("expm1", np.expm1, x=lambda y: 1 + y)
sqrt = elementwise("sqrt", np.sqrt, x=lambda y: 0.5 / y, domain=POSITIVE)
cube = elementwise(
    "cube", Composed((np.multiply, "aa"), (np.multiply, "ya")),
    x=lambda x: 3 * (x * x), grad_name="Pow",
)
cbrt = elementwise("cbrt", np.cbrt, x=lambda y: 1 / (3 * (y * y)), domain=POSITIVE)
rsqrt = elementwise("rsqrt", Composed((np.sqrt, "a"), (np.reciprocal, "y")),
                    x=lambda y: -0.5 * (y * y * y), domain=POSITIVE)
sin = elementwise("sin", np.sin, x=lambda x: cos(x))
cos: Op = elementwise("cos", np.cos, x=lambda x: -sin(x))
tan = elementwise("tan", np.tan, x=lambda y: 1 + y * y, domain=UNIT)
asin = elementwise("asin", np.arcsin, x=lambda x: 1 / sqrt(1 - x * x), domain=UNIT)
acos = elementwise("acos", np.arccos, x=lambda x: -1 / sqrt(1 - x * x), domain=UNIT)
atan = elementwise("atan", np.arctan, x=lambda x: 1 / (1 + x * x))
sinh = elementwise("sinh", np.sinh, x=lambda x: cosh(x))
cosh: Op = elementwise("cosh", np.cosh, x=lambda x: sinh(x))
tanh = elementwise("tanh", np.tanh, x=lambda y: 1 - y * y)
atan2 = elementwise("atan2", np.arctan2, a=lambda a, b: _per_square(b, a, b),  # 0 at the origin
                    b=lambda a, b: -_per_square(a, a, b), domain=POSITIVE)
asinh = elementwise("asinh", np.arcsinh, x=lambda x: 1 / sqrt(x * x + 1))
acosh = elementwise("acosh", np.arccosh, x=lambda x: 1 / sqrt(x * x - 1), domain=(1.1, 3.0))
atanh = elementwise("atanh", np.arctanh, x=lambda x: 1 / (1 - x * x), domain=UNIT)
hypot = elementwise("hypot", np.hypot, a=lambda a, y: a / y, b=lambda b, y: b / y)
sigmoid = elementwise("sigmoid", Lazy("expit"), x=lambda y: y * (1 - y))
softplus = elementwise("softplus", Composed((np.logaddexp, "a0")), x=lambda x: sigmoid(x))
logaddexp = elementwise(
    "logaddexp", np.logaddexp, a=lambda a, b: sigmoid(a - b), b=lambda a, b: sigmoid(b - a),
)
relu = elementwise("relu", Composed((np.maximum, "a0")), x=lambda y: where(gt(y, 0), 1, 0))
erf = elementwise("erf", Lazy("erf"), x=lambda x: TWO_OVER_ROOT_PI * exp(-x * x))
erfc = elementwise("erfc", Lazy("erfc"), x=lambda x: -TWO_OVER_ROOT_PI * exp(-x * x))

minimum = elementwise(
    "minimum", np.minimum, a=lambda a, b: where(lt(a, b), 1, where(eq(a, b), 0.5, 0)),
    b=lambda a, b: where(lt(b, a), 1, where(eq(a, b), 0.5, 0)),
)
maximum = elementwise(
    "maximum", np.maximum, a=lambda a, b: where(gt(a, b), 1, where(eq(a, b), 0.5, 0)),
    b=lambda a, b: where(gt(b, a), 1, where(eq(a, b), 0.5, 0)),
)
# Clamping against fixed bounds is not a maximum: the gradient passes at the bound.
clamp_min = elementwise("clamp_min", np.maximum, x=lambda x, lo: where(ge(x, lo), 1, 0),
                        lo=lambda x, lo: where(lt(x, lo), 1, 0), grad_name="Clamp")
clamp_max = elementwise("clamp_max", np.minimum, x=lambda x, hi: where(le(x, hi), 1, 0),
                        hi=lambda x, hi: where(gt(x, hi), 1, 0), grad_name="Clamp")
clamp = elementwise(
    "clamp", lambda x, lo, hi, out=None: np.minimum(np.maximum(x, lo), hi, out=...),
    x=lambda x, lo, hi: where(mul(ge(x, lo), le(x, hi)), 1, 0),
    lo=lambda x, lo, hi: where(mul(lt(x, lo), lt(lo, hi)), 1, 0),
    hi=lambda x, lo, hi: where(gt(x, hi), 1, where(lt(hi, lo), 1, 0)),
)
where: Op = elementwise(
    "where", _where, condition=SELECTS, a=lambda condition: where(condition, 1, 0),
    b=lambda condition: where(condition, 0, 1), jointly_linear=True,
)
addcmul = elementwise("addcmul", _addcmul, a=lambda: 1, b=lambda c: c, c=lambda b: b)
addcdiv = elementwise("addcdiv", _addcdiv, a=lambda: 1, b=lambda c: 1 / c,
                      c=lambda b, c: -b / (c * c), domain=POSITIVE)
# The last of four operands is handed to kernels where the result is elsewhere: it is not read here.
addcmul_scaled = elementwise(
    "addcmul_scaled", _addcmul_scaled, a=lambda: 1, b=lambda c, value: value * c,
    c=lambda b, value: value * b, value=SCALES, grad_name="Addcmul",
)
addcdiv_scaled = elementwise(
    "addcdiv_scaled", _addcdiv_scaled, a=lambda: 1, b=lambda c, value: value / c,
    c=lambda b, c, value: -(value * b) / (c * c), value=SCALES, grad_name="Addcdiv",
    domain=POSITIVE,
)
squared_difference = elementwise(
    "squared_difference", Composed((np.subtract, "ab"), (np.square, "y")),
    a=lambda a, b: 2 * (a - b), b=lambda a, b: 2 * (b - a), grad_name="MseLoss",
)
lerp = elementwise("lerp", _lerp, a=lambda c: 1 - c, b=lambda c: c, c=lambda a, b: b - a)
# fmt: on
