"""Elementwise operations: a NumPy ufunc each, and its partial derivatives.

Conventions at singular points are PyTorch's; each row says its own (`singular`).
"""

from __future__ import annotations

import math
from functools import wraps
from typing import Any

import numpy as np

from tapegrad.ops.core import ANALYTIC, OWN, NotDifferentiable, Op, elementwise
from tapegrad.ops.large import large


class Lazy:
    """A SciPy ufunc that is imported when it is first called.

    One that does not know complex numbers may come with a function that does.
    """

    __slots__ = ("name", "of_complex", "ufunc")

    def __init__(self, name: str, of_complex: Any = None) -> None:
        self.name = name
        self.of_complex = of_complex
        self.ufunc: Any = None

    def load(self) -> Any:
        """The ufunc itself."""
        if self.ufunc is None:
            import scipy.special

            self.ufunc = getattr(scipy.special, self.name)
        return self.ufunc

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self.of_complex is not None and args[0].dtype.kind == "c":
            return np.asarray(self.of_complex(*args))
        ufunc = self.ufunc or self.load()
        return ufunc(*args, **options)


class Composed:
    """A forward of one or two ufuncs, the second into the result of the first.

    A step names its operands: ``a`` and ``b``, the result so far ``y``, and the number ``0``.
    """

    __slots__ = ("steps", "zero")

    def __init__(self, *steps: tuple[np.ufunc, str]) -> None:
        self.steps = steps
        self.zero = any("0" in names for _, names in steps)

    def __call__(self, *args: Any) -> Any:
        values = dict(zip("ab", args, strict=False))
        if self.zero:
            values["0"] = _zero(args[0])
        y: Any = ...
        for ufunc, names in self.steps:
            y = values["y"] = ufunc(*[values[name] for name in names], out=y)
        return y


@wraps(np.logaddexp, assigned=())
def added_exponents(a: Any, b: Any) -> Any:
    """log(exp(a) + exp(b)); of complex numbers by the larger real part.

    >>> import numpy as np
    >>> from tapegrad.ops.elementwise import added_exponents
    >>> added_exponents(np.array(1j), np.array(-900.0)).item()
    1j
    """
    if a.dtype.kind != "c" and b.dtype.kind != "c":
        return np.logaddexp(a, b, out=...)
    above = a.real > b.real
    top, low = np.where(above, a, b), np.where(above, b, a)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(top.real == -np.inf, top, top + np.log1p(np.exp(low - top))))


def _where(condition: Any, a: Any, b: Any) -> Any:
    return np.asarray(np.where(condition, a, b))


def _strong(a: Any, b: Any) -> Any:
    product = np.multiply(a, b, out=...)
    if _has_nan(product):  # perhaps of a zero and an infinity
        with np.errstate(all="ignore"):
            return np.where(a == 0, np.zeros((), a.dtype), a * b)
    return product


def _exact(w: Any, d: Any) -> Any:
    product = np.multiply(w, d, out=...)
    if _has_nan(product):
        with np.errstate(all="ignore"):
            return np.where((w == 0) | (d == 0), np.zeros((), w.dtype), w * d)
    return product


def _has_nan(x: Any) -> bool:
    return math.isnan(np.vdot(x, x).real)


def is_complex(x: Any) -> bool:
    """Whether an array, a Tensor or a number is complex."""
    dtype = getattr(getattr(x, "_a", x), "dtype", None)
    return isinstance(x, complex) if dtype is None else dtype.kind == "c"


def unit(x: Any) -> Any:
    """A complex number divided by its absolute value; 0 at 0."""
    size = abs(x)
    return x / (size + eq(size, 0))


def _grows(a: Any, b: Any) -> Any:
    """Whether a ** b is 0 where a is: the real part of b is not negative."""
    if is_complex(b):
        b = getattr(b, "real", b)
    return mul(eq(a, 0), ge(b, 0))


def _log_as(a: Any, y: Any) -> Any:
    """The logarithm of a base; where the power is complex, that of a negative one is, too."""
    return log(a + 0j) if is_complex(y) else log(a)


def _acosh_root(x: Any) -> Any:
    """The root of x² - 1; that of complex numbers on the branch of the inverse cosine."""
    return sqrt(x - 1) * sqrt(x + 1) if is_complex(x) else sqrt(x * x - 1)


def _angle(x: Any) -> Any:
    if x.dtype.kind == "c":
        return np.asarray(np.arctan2(x.imag, x.real))
    return np.where(np.isnan(x), x, np.where(x < 0, x.dtype.type(np.pi), x.dtype.type(0)))


def _angle_partial(x: Any) -> Any:
    """Of z it is iz / |z|², by which an adjoint that is real is multiplied."""
    if not is_complex(x):
        return 0
    size = abs(x)
    return mul(unit(x), 1j) / (size + eq(size, 0))


def _zero(x: Any) -> Any:
    return np.zeros((), x.dtype)


def _per_square(part: Any, a: Any, b: Any) -> Any:
    square = a * a + b * b
    return where(eq(square, 0), 0.0, part / square)


SELECTS = NotDifferentiable("a condition selects, it has no derivative")
SCALES = NotDifferentiable("`value` is a number: multiply by a Tensor to differentiate in it")
COMPARES = NotDifferentiable("a comparison is constant almost everywhere")
WHOLE = NotDifferentiable("whole numbers have no derivative")
TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
LN_2, LN_10 = math.log(2.0), math.log(10.0)
POSITIVE, UNIT, REAL = (0.1, 2.0), (-0.9, 0.9), (-2.0, 2.0)
QUOTIENTS = (0.03, 0.6), (0.17, 3.4)  # well away from whole ones

# fmt: off
# The strong product: an adjoint that is exactly zero contributes exactly zero, whatever the factor.
strong = elementwise("strong", _strong,
                     a=lambda b: b, b=lambda a: a, grad_name="Mul", exact=("b",),
                     complex=ANALYTIC, scalar="select({0} != zero, {0} * {1}, zero)", loop="f8 f4")
# The same where either zero makes it zero: both factors are adjoints, or a derivative selects. What
# is not selected has no part in the result, however infinite an adjoint is (`sqrt(maximum(x, 0))`).
exact = elementwise(
    "exact", _exact, a=lambda b: b,
    b=lambda a: a, grad_name="Mul", exact=("a", "b"), complex=ANALYTIC,
    scalar="select({0} != zero, select({1} != zero, {0} * {1}, zero), zero)", loop="f8 f4",
)

eq = elementwise("eq", np.equal, a=COMPARES, b=COMPARES,
                 scalar="{0} == {1}", kinds="fib", inplace=True,
                 doc="Whether elements are equal.",
                 example=("tg.eq(tg.tensor(1.0), 1.0)", "tensor(True)"))
ne = elementwise("ne", np.not_equal, a=COMPARES, b=COMPARES,
                 scalar="{0} != {1}", kinds="fib", inplace=True,
                 aliases="not_equal", doc="Whether elements differ.",
                 example=("tg.ne(tg.tensor(1.0), 1.0)", "tensor(False)"))
lt = elementwise("lt", np.less, a=COMPARES, b=COMPARES,
                 scalar="{0} < {1}", kinds="fib", ordered=True, inplace=True,
                 aliases="less", doc="Whether elements are smaller.",
                 example=("tg.lt(tg.tensor(1.0), 2.0)", "tensor(True)"))
le = elementwise("le", np.less_equal, a=COMPARES, b=COMPARES,
                 scalar="{0} <= {1}", kinds="fib", ordered=True, inplace=True,
                 aliases="less_equal", doc="Whether elements are smaller or equal.",
                 example=("tg.le(tg.tensor(1.0), 1.0)", "tensor(True)"))
gt = elementwise("gt", np.greater, a=COMPARES, b=COMPARES,
                 scalar="{0} > {1}", kinds="fib", ordered=True, inplace=True,
                 aliases="greater", doc="Whether elements are larger.",
                 example=("tg.gt(tg.tensor(1.0), 2.0)", "tensor(False)"))
ge = elementwise("ge", np.greater_equal, a=COMPARES, b=COMPARES,
                 scalar="{0} >= {1}", kinds="fib", ordered=True, inplace=True,
                 aliases="greater_equal", doc="Whether elements are larger or equal.",
                 example=("tg.ge(tg.tensor(1.0), 1.0)", "tensor(True)"))

add = elementwise("add", np.add, a=lambda: 1, b=lambda: 1, neutral=0.0, combine="plus({0}, {1})",
                  complex=ANALYTIC, scalar="{0} + {1}", kinds="fib", loop="broadcast alike")
sub = elementwise("sub", np.subtract, a=lambda: 1, b=lambda: -1,
                  complex=ANALYTIC, scalar="{0} - {1}", kinds="fi", loop="broadcast alike")
mul = elementwise("mul", np.multiply, a=lambda b: b, b=lambda a: a, neutral=1.0, complex=ANALYTIC,
                  scalar="{0} * {1}", kinds="fib", inplace=True, loop="broadcast alike",
                  aliases="multiply", doc="The product of two Tensors or numbers.",
                  example=("tg.mul(tg.tensor(2.0), 3.0)", "tensor(6.)"))
# As in PyTorch a quotient is not read by its rule, so that it may be changed in place.
div = elementwise(
    "div", np.true_divide, a=lambda b: 1 / b,
    b=lambda a, b: -(a / b) / b, domain=POSITIVE,
    complex=ANALYTIC, scalar="{0} / {1}", to_float=True, loop="broadcast alike",
)
neg = elementwise("neg", np.negative, x=lambda: -1,
                  complex=ANALYTIC, scalar="-{0}", kinds="fi", inplace=True, loop="alike",
                  aliases="negative", doc="The negative.",
                  example=("tg.neg(tg.tensor(1.0))", "tensor(-1.)"))
# b * a**(b-1), but exactly 0 where b is 0; a**b * log(a), but exactly 0 where a is 0 and b >= 0.
pow: Op = elementwise(
    "pow", np.power, domain=POSITIVE, a=lambda a, b: where(eq(b, 0), 0, b * pow(a, b - 1)),
    b=lambda a, b, y: where(_grows(a, b), 0, y * _log_as(a, y)), complex=ANALYTIC,
    scalar="vmath.power({0}, {1})", loop="svml", rare="vmath.power_is_rare({0}, {1})", vmath="many",
    singular="d/da is 0 where b is 0; d/db is 0 where a is 0 and b is not negative.",
)
floor_divide = elementwise(
    "floor_divide", np.floor_divide, a=lambda: 0, b=lambda: 0, domain=POSITIVE,
    scalar="vmath.floor_divide({0}, {1})", kinds="fi", integer_form="floored({0}, {1})[0]",
    guard="vmath.divides_late({0}, {1})", vmath="few", inplace=True, loop="f8 f4 scalar",
    doc="The quotient rounded down.",
    example=("tg.floor_divide(tg.tensor(7.0), 2.0)", "tensor(3.)"),
)
remainder = elementwise(
    "remainder", np.remainder, domain=QUOTIENTS, a=lambda: 1, b=lambda a, b: -floor(a / b),
    scalar="vmath.remainder({0}, {1})", kinds="fi", integer_form="floored({0}, {1})[1]",
    guard="vmath.divides_late({0}, {1})", vmath="few", inplace=True, loop="f8 f4 scalar",
    doc="What a division leaves, with the divisor's sign.",
    example=("tg.remainder(tg.tensor(-7.0), 2.0)", "tensor(1.)"),
)
fmod = elementwise(
    "fmod", np.fmod, domain=QUOTIENTS, a=lambda: 1, b=lambda a, b: -trunc(a / b),
    scalar="vmath.fmod({0}, {1})", kinds="fi", integer_form="truncated({0}, {1})[1]",
    guard="vmath.divides_late({0}, {1})", vmath="few", ordered=True, inplace=True,
    loop="f8 f4 scalar",
    doc="What a division leaves, with the dividend's sign.",
    example=("tg.fmod(tg.tensor(-7.0), 2.0)", "tensor(-1.)"),
)
floor: Op = elementwise("floor", np.floor, x=lambda: 0,
                        scalar="floor({0})", kinds="fi", inplace=True, loop="alike",
                        doc="The largest whole number below.",
                        example=("tg.floor(tg.tensor(1.5))", "tensor(1.)"),
                        singular="The derivative is 0 everywhere.")
ceil = elementwise("ceil", np.ceil, x=lambda: 0,
                   scalar="-floor(-{0})", kinds="fi", ordered=True, inplace=True, loop="alike",
                   doc="The smallest whole number above.",
                   example=("tg.ceil(tg.tensor(1.5))", "tensor(2.)"),
                   singular="The derivative is 0 everywhere.")
trunc: Op = elementwise("trunc", np.trunc, x=lambda: 0,
                        scalar="select({0} < zero, -floor(-{0}), floor({0}))", kinds="fi",
                        ordered=True, inplace=True, loop="alike",
                        aliases="fix", doc="The whole number next towards 0.",
                        example=("tg.trunc(tg.tensor(-1.5))", "tensor(-1.)"),
                        singular="The derivative is 0 everywhere.")
round = elementwise("round", np.rint, x=lambda: 0, scalar="vmath.rint({0})", vmath="few",
                    singular="The derivative is 0 everywhere.")
frac = elementwise("frac", Composed((np.trunc, "a"), (np.subtract, "ay")), x=lambda: 1,
                   scalar="{0} - select({0} < zero, -floor(-{0}), floor({0}))", kinds="fi",
                   ordered=True, inplace=True, loop="f8 f4",
                   doc="What `trunc` takes away.",
                   example=("tg.frac(tg.tensor(-1.5))", "tensor(-0.5000)"),
                   singular="The derivative is 1 everywhere.")
sign = elementwise("sign", np.sign, x=lambda: 0,
                   scalar="select({0} > zero, one, select({0} < zero, -one, {0} + zero))",
                   kinds="fi", ordered=True, loop="f8 f4",
                   singular="The derivative is 0 everywhere.")
abs = elementwise("abs", np.absolute, x=lambda x: unit(x) if is_complex(x) else sign(x),
                  complex=OWN,
                  scalar="abs({0})", kinds="fib", inplace=True, loop="alike",
                  aliases="absolute", doc="The absolute value.",
                  example=("tg.abs(tg.tensor(-1.0))", "tensor(1.)"),
                  singular="The derivative at 0 is 0.")
angle = elementwise(
    "angle", _angle, x=_angle_partial, complex=OWN, to_float=True,
    scalar="select({0} < zero, vmath.acos(copysign(one, {0})), select({0} == {0}, zero, {0}))",
    doc="The angle of a complex number; of a real one 0, or pi if it is negative.",
    example=("tg.angle(tg.tensor([1j, -1.0]))", "tensor([1.5708, 3.1416])"),
    singular="The derivative at 0 is 0.",
)
square = elementwise("square", np.square, x=lambda x: 2 * x, grad_name="Pow",
                     complex=ANALYTIC, scalar="{0} * {0}", kinds="fi", inplace=True, loop="alike",
                     doc="The square.",
                     example=("tg.square(tg.tensor(3.0))", "tensor(9.)"))
reciprocal = elementwise("reciprocal", np.reciprocal, x=lambda y: -y * y, domain=POSITIVE,
                         complex=ANALYTIC,
                         scalar="one / {0}", to_float=True, inplace=True, loop="f8 f4",
                         doc="One divided by it.",
                         example=("tg.reciprocal(tg.tensor(4.0))", "tensor(0.2500)"))

exp = elementwise("exp", np.exp, x=lambda y: y,
                  complex=ANALYTIC, scalar="vmath.exp({0})",
                  rare="vmath.exp_is_rare({0})", to_float=True, inplace=True, loop="f8 svml",
                  doc="The exponential.",
                  example=("tg.exp(tg.tensor(0.0))", "tensor(1.)"))
log: Op = elementwise("log", np.log, x=lambda x: 1 / x, domain=POSITIVE,
                      complex=ANALYTIC, scalar="vmath.log({0})",
                      rare="vmath.log_is_rare({0})", to_float=True, inplace=True, loop="f8 svml",
                      doc="The natural logarithm.",
                      example=("tg.log(tg.tensor(1.0))", "tensor(0.)"))
log2 = elementwise("log2", np.log2, x=lambda x: 1 / (LN_2 * x), domain=POSITIVE,
                   complex=ANALYTIC, scalar="vmath.log2({0})", loop="svml",
                   to_float=True, inplace=True,
                   doc="The logarithm to base 2.",
                   example=("tg.log2(tg.tensor(8.0))", "tensor(3.)"))
log10 = elementwise("log10", np.log10, x=lambda x: 1 / (LN_10 * x), domain=POSITIVE,
                    complex=ANALYTIC, scalar="vmath.log10({0})", loop="svml",
                    to_float=True, inplace=True,
                    doc="The logarithm to base 10.",
                    example=("tg.log10(tg.tensor(1000.0))", "tensor(3.)"))
exp2 = elementwise("exp2", np.exp2, x=lambda y: LN_2 * y,
                   complex=ANALYTIC, scalar="vmath.exp2({0})", loop="svml",
                   to_float=True, inplace=True,
                   doc="2 to the power of it.",
                   example=("tg.exp2(tg.tensor(3.0))", "tensor(8.)"))
log1p = elementwise("log1p", np.log1p, x=lambda x: 1 / (1 + x), domain=UNIT,
                    complex=ANALYTIC, scalar="vmath.log1p({0})", loop="f4 svml",
                    rare="vmath.log1p_is_rare({0})", vmath="many", to_float=True, inplace=True,
                    doc="log(1 + x), exact near 0.",
                    example=("tg.log1p(tg.tensor(0.0))", "tensor(0.)"))
expm1 = elementwise("expm1", np.expm1, x=lambda y: 1 + y, complex=ANALYTIC,
                    scalar="vmath.expm1({0})", to_float=True, inplace=True, loop="f8 f4 svml",
                    doc="exp(x) - 1, exact near 0.",
                    example=("tg.expm1(tg.tensor(0.0))", "tensor(0.)"))
sqrt = elementwise("sqrt", np.sqrt, x=lambda y: 0.5 / y, domain=POSITIVE,
                   complex=ANALYTIC, scalar="math.sqrt({0})",
                   rare="vmath.sqrt_is_rare({0})", vmath="untabled",
                   to_float=True, inplace=True, loop="f8 f4",
                   doc="The square root.",
                   example=("tg.sqrt(tg.tensor(4.0))", "tensor(2.)"))
cube = elementwise(
    "cube", Composed((np.multiply, "aa"), (np.multiply, "ya")),
    x=lambda x: 3 * (x * x), grad_name="Pow",
    complex=ANALYTIC, scalar="{0} * {0} * {0}", kinds="fi", loop="f8 f4",
)
cbrt = elementwise("cbrt", np.cbrt, x=lambda y: 1 / (3 * (y * y)), domain=POSITIVE,
                   scalar="vmath.cbrt({0})", loop="svml")
rsqrt = elementwise("rsqrt", Composed((np.sqrt, "a"), (np.reciprocal, "y")),
                    x=lambda y: -0.5 * (y * y * y), domain=POSITIVE, complex=ANALYTIC,
                    scalar="one / math.sqrt({0})", to_float=True, inplace=True, loop="f8 f4",
                    doc="One divided by the square root.",
                    example=("tg.rsqrt(tg.tensor(4.0))", "tensor(0.5000)"))
sin = elementwise("sin", np.sin, x=lambda x: cos(x),
                  complex=ANALYTIC, scalar="vmath.sin({0})",
                  guard="vmath.angle_is_large({0})", rare="vmath.angle_is_rare({0})",
                  vmath="untabled", to_float=True, inplace=True, loop="f8 scalar svml",
                  doc="The sine.",
                  example=("tg.sin(tg.tensor(0.0))", "tensor(0.)"))
cos: Op = elementwise("cos", np.cos, x=lambda x: -sin(x),
                      complex=ANALYTIC, scalar="vmath.cos({0})",
                      guard="vmath.angle_is_large({0})", rare="vmath.angle_is_rare({0})",
                      vmath="untabled", to_float=True, inplace=True, loop="f8 scalar svml",
                      doc="The cosine.",
                      example=("tg.cos(tg.tensor(0.0))", "tensor(1.)"))
tan = elementwise("tan", np.tan, x=lambda y: 1 + y * y, domain=UNIT,
                  complex=ANALYTIC, scalar="vmath.tan({0})",
                  guard="vmath.angle_is_large({0})", rare="vmath.angle_is_rare({0})",
                  vmath="untabled", to_float=True, inplace=True, loop="f8 f4 svml",
                  doc="The tangent.",
                  example=("tg.tan(tg.tensor(0.0))", "tensor(0.)"))
asin = elementwise("asin", np.arcsin, x=lambda x: 1 / sqrt(1 - x * x), domain=UNIT,
                   complex=ANALYTIC,
                   scalar="vmath.asin({0})", to_float=True, inplace=True, loop="f8 f4 svml",
                   aliases="arcsin", doc="The inverse sine.",
                   example=("tg.asin(tg.tensor(0.0))", "tensor(0.)"))
acos = elementwise("acos", np.arccos, x=lambda x: -1 / sqrt(1 - x * x), domain=UNIT,
                   complex=ANALYTIC,
                   scalar="vmath.acos({0})", to_float=True, inplace=True, loop="f8 f4 svml",
                   aliases="arccos", doc="The inverse cosine.",
                   example=("tg.acos(tg.tensor(1.0))", "tensor(0.)"))
atan = elementwise("atan", np.arctan, x=lambda x: 1 / (1 + x * x), complex=ANALYTIC,
                   scalar="vmath.atan({0})", to_float=True, inplace=True, loop="f8 f4 svml",
                   aliases="arctan", doc="The inverse tangent.",
                   example=("tg.atan(tg.tensor(0.0))", "tensor(0.)"))
sinh = elementwise("sinh", np.sinh, x=lambda x: cosh(x), complex=ANALYTIC,
                   scalar="vmath.sinh({0})", to_float=True, inplace=True, loop="f8 f4 svml",
                   doc="The hyperbolic sine.",
                   example=("tg.sinh(tg.tensor(0.0))", "tensor(0.)"))
cosh: Op = elementwise("cosh", np.cosh, x=lambda x: sinh(x), complex=ANALYTIC,
                       scalar="vmath.cosh({0})", to_float=True, inplace=True, loop="f8 f4 svml",
                       doc="The hyperbolic cosine.",
                       example=("tg.cosh(tg.tensor(0.0))", "tensor(1.)"))
tanh = elementwise("tanh", np.tanh, x=lambda y: 1 - y * y, complex=ANALYTIC,
                   scalar="vmath.tanh({0})", to_float=True, inplace=True, loop="f8 svml",
                   doc="The hyperbolic tangent.",
                   example=("tg.tanh(tg.tensor(0.0))", "tensor(0.)"))
deg2rad = elementwise("deg2rad", np.deg2rad, x=lambda: math.pi / 180, grad_name="Deg2Rad",
                      decomposition=lambda x: x * (math.pi / 180), to_float=True, ordered=True,
                      scalar="{0} * T(0.017453292519943295)", inplace=True,
                      doc="Degrees in radians.",
                      example=("tg.deg2rad(tg.tensor(180.0))", "tensor(3.1416)"))
rad2deg = elementwise("rad2deg", np.rad2deg, x=lambda: 180 / math.pi, grad_name="Rad2Deg",
                      decomposition=lambda x: x * (180 / math.pi), to_float=True, ordered=True,
                      scalar="{0} * T(57.29577951308232)", inplace=True,
                      doc="Radians in degrees.",
                      example=("tg.rad2deg(tg.tensor(-1.0))", "tensor(-57.2958)"))
atan2 = elementwise("atan2", np.arctan2, a=lambda a, b: _per_square(b, a, b),  # 0 at the origin
                    b=lambda a, b: -_per_square(a, a, b), domain=POSITIVE,
                    scalar="vmath.atan2({0}, {1})", loop="svml",
                    to_float=True, inplace=True,
                    aliases="arctan2", doc="The angle of the point (other, input).",
                    example=("tg.atan2(tg.tensor(0.0), tg.tensor(1.0))", "tensor(0.)"),
                    singular="The derivative at the origin is 0.")
asinh = elementwise("asinh", np.arcsinh, x=lambda x: 1 / sqrt(x * x + 1),
                    complex=ANALYTIC, scalar="vmath.asinh({0})", loop="svml",
                    to_float=True, inplace=True,
                    aliases="arcsinh", doc="The inverse hyperbolic sine.",
                    example=("tg.asinh(tg.tensor(0.0))", "tensor(0.)"))
acosh = elementwise("acosh", np.arccosh, x=lambda x: 1 / _acosh_root(x), domain=(1.1, 3.0),
                    complex=ANALYTIC, scalar="vmath.acosh({0})", loop="svml",
                    to_float=True, inplace=True,
                    aliases="arccosh", doc="The inverse hyperbolic cosine.",
                    example=("tg.acosh(tg.tensor(1.0))", "tensor(0.)"))
atanh = elementwise("atanh", np.arctanh, x=lambda x: 1 / (1 - x * x), domain=UNIT, complex=ANALYTIC,
                    scalar="vmath.atanh({0})", to_float=True, inplace=True, loop="f8 svml",
                    aliases="arctanh", doc="The inverse hyperbolic tangent.",
                    example=("tg.atanh(tg.tensor(0.0))", "tensor(0.)"))
hypot = elementwise("hypot", np.hypot, a=lambda a, y: a / y, b=lambda b, y: b / y,
                    scalar="vmath.hypot({0}, {1})", to_float=True, inplace=True,
                    loop="f8 f4 scalar",
                    doc="The length of the hypotenuse, sqrt(a * a + b * b) without overflow.",
                    example=("tg.hypot(tg.tensor(3.0), tg.tensor(4.0))", "tensor(5.)"),
                    singular="There is no derivative (NaN) at the origin.")
sigmoid = elementwise("sigmoid", Lazy("expit", lambda x: 1 / (1 + np.exp(-x))),
                      x=lambda y: y * (1 - y), complex=ANALYTIC,
                      scalar="vmath.sigmoid({0})", to_float=True,
                      inplace=True, loop="f8 f4 scalar",
                      doc="1 / (1 + exp(-x)).",
                      example=("tg.sigmoid(tg.tensor(0.0))", "tensor(0.5000)"))
softplus = elementwise("softplus", Composed((np.logaddexp, "a0")), x=lambda x: sigmoid(x),
                       scalar="vmath.softplus({0})", to_float=True, ordered=True,
                       loop="f8 f4 scalar")
logaddexp = elementwise(
    "logaddexp", added_exponents, complex=ANALYTIC, a=lambda a, b: sigmoid(a - b),
    b=lambda a, b: sigmoid(b - a),
    scalar="vmath.logaddexp({0}, {1})", to_float=True, loop="f8 f4 scalar",
    doc="log(exp(a) + exp(b)), without overflow.",
    example=("tg.logaddexp(tg.tensor(1000.0), tg.tensor(1000.0))", "tensor(1000.6931)"),
    singular="There is no derivative (NaN) where both are the same infinity.",
)
logaddexp2 = elementwise(
    "logaddexp2", np.logaddexp2, a=lambda a, b: sigmoid(LN_2 * (a - b)),
    b=lambda a, b: sigmoid(LN_2 * (b - a)), to_float=True, ordered=True,
    decomposition=lambda a, b: logaddexp(LN_2 * a, LN_2 * b) * (1 / LN_2),
    doc="log2(2**a + 2**b), without overflow.",
    example=("tg.logaddexp2(tg.tensor(1000.0), tg.tensor(1000.0))", "tensor(1001.)"),
    singular="There is no derivative (NaN) where both are the same infinity.",
)
relu = elementwise("relu", Composed((np.maximum, "a0")), x=lambda y: where(gt(y, 0), 1, 0),
                   exact=("x",),
                   scalar="select(({0} > zero) | ({0} != {0}), {0}, zero)", kinds="fi",
                   ordered=True, inplace=True, loop="f8 f4",
                   doc="max(x, 0).",
                   example=("tg.relu(tg.tensor(-1.0))", "tensor(0.)"),
                   singular="The derivative at 0 is 0.")
erf = elementwise("erf", Lazy("erf"), x=lambda x: TWO_OVER_ROOT_PI * exp(-x * x),
                  scalar="vmath.erf({0})", rare="never", vmath="many",
                  to_float=True, inplace=True, loop="f8 f4 scalar",
                  doc="The error function.",
                  example=("tg.erf(tg.tensor(0.0))", "tensor(0.)"))
erfc = elementwise("erfc", Lazy("erfc"), x=lambda x: -TWO_OVER_ROOT_PI * exp(-x * x),
                   scalar="vmath.erfc({0})", rare="vmath.erfc_is_rare({0})", vmath="many",
                   to_float=True, inplace=True, loop="f8 f4 scalar",
                   doc="1 - erf(x), exact where that is small.",
                   example=("tg.erfc(tg.tensor(0.0))", "tensor(1.)"))

minimum = elementwise(
    "minimum", np.minimum, a=lambda a, b: where(lt(a, b), 1, where(eq(a, b), 0.5, 0)),
    b=lambda a, b: where(lt(b, a), 1, where(eq(a, b), 0.5, 0)), exact=("a", "b"),
    scalar="select(({0} < {1}) | ({0} != {0}), {0}, {1})", kinds="fib", ordered=True, loop="f8 f4",
    neutral=math.inf, combine="smaller({0}, {1})", doc="The smaller of two, element by element.",
    example=("tg.minimum(tg.tensor(1.0), tg.tensor(2.0))", "tensor(1.)"),
    singular="A tie gives half of the gradient to each side.",
)
maximum = elementwise(
    "maximum", np.maximum, a=lambda a, b: where(gt(a, b), 1, where(eq(a, b), 0.5, 0)),
    b=lambda a, b: where(gt(b, a), 1, where(eq(a, b), 0.5, 0)), exact=("a", "b"),
    scalar="select(({0} > {1}) | ({0} != {0}), {0}, {1})", kinds="fib", ordered=True, loop="f8 f4",
    neutral=-math.inf, combine="larger({0}, {1})", doc="The larger of two, element by element.",
    example=("tg.maximum(tg.tensor(1.0), tg.tensor(2.0))", "tensor(2.)"),
    singular="A tie gives half of the gradient to each side.",
)
fmin = elementwise(
    "fmin", np.fmin, a=lambda a, b: where(le(a, b), 1, where(eq(b, b), 0, 1)),
    b=lambda a, b: where(le(a, b), 0, where(eq(b, b), 1, 0)), exact=("a", "b"),
    scalar="select(({0} <= {1}) | ({1} != {1}), {0}, {1})", kinds="fib", ordered=True,
    doc="The smaller of two, element by element; the other one where one is NaN.",
    example=("tg.fmin(tg.tensor(1.0), tg.tensor(float('nan')))", "tensor(1.)"),
    singular="A tie gives the gradient to the first.",
)
fmax = elementwise(
    "fmax", np.fmax, a=lambda a, b: where(ge(a, b), 1, where(eq(b, b), 0, 1)),
    b=lambda a, b: where(ge(a, b), 0, where(eq(b, b), 1, 0)), exact=("a", "b"),
    scalar="select(({0} >= {1}) | ({1} != {1}), {0}, {1})", kinds="fib", ordered=True,
    doc="The larger of two, element by element; the other one where one is NaN.",
    example=("tg.fmax(tg.tensor(1.0), tg.tensor(float('nan')))", "tensor(1.)"),
    singular="A tie gives the gradient to the first.",
)
copysign = elementwise(
    "copysign", np.copysign, a=lambda a, y: where(eq(a, 0), 0, y / a), b=lambda: 0,
    scalar="copysign({0}, {1})", to_float=True, ordered=True, inplace=True,
    doc="The magnitude of the first with the sign of the second.",
    example=("tg.copysign(tg.tensor(1.0), tg.tensor(-0.0))", "tensor(-1.)"),
    singular="The derivative at 0 is 0.",
)
nextafter = elementwise(
    "nextafter", np.nextafter, a=lambda: 1, b=lambda: 0, ordered=True, inplace=True,
    doc="The next number that the type has after the first, towards the second.",
    example=("tg.nextafter(tg.tensor(1.0), tg.tensor(2.0)) == 1 + tg.finfo(tg.float64).eps",
             "tensor(True)"),
)
gcd = elementwise("gcd", np.gcd, a=WHOLE, b=WHOLE, domain=(range(-9, 9),) * 2, inplace=True,
                  doc="The greatest common divisor.",
                  example=("tg.gcd(tg.tensor(4), tg.tensor(6))", "tensor(2)"))
lcm = elementwise("lcm", np.lcm, a=WHOLE, b=WHOLE, domain=(range(-9, 9),) * 2, inplace=True,
                  doc="The least common multiple.",
                  example=("tg.lcm(tg.tensor(4), tg.tensor(6))", "tensor(12)"))
# Clamping against fixed bounds is not a maximum: the gradient passes at the bound.
clamp_min = elementwise("clamp_min", np.maximum, x=lambda x, lo: where(ge(x, lo), 1, 0),
                        lo=lambda x, lo: where(lt(x, lo), 1, 0), exact=("x", "lo"),
                        grad_name="Clamp",
                        scalar="select(({0} > {1}) | ({0} != {0}), {0}, {1})", kinds="fib",
                        ordered=True, loop="f8 f4",
                        singular="The gradient passes at the bound.")
clamp_max = elementwise("clamp_max", np.minimum, x=lambda x, hi: where(le(x, hi), 1, 0),
                        hi=lambda x, hi: where(gt(x, hi), 1, 0), exact=("x", "hi"),
                        grad_name="Clamp",
                        scalar="select(({0} < {1}) | ({0} != {0}), {0}, {1})", kinds="fib",
                        ordered=True, loop="f8 f4",
                        singular="The gradient passes at the bound.")
clamp = elementwise(
    "clamp", lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi, out=...),
    x=lambda x, lo, hi: where(mul(ge(x, lo), le(x, hi)), 1, 0),
    lo=lambda x, lo, hi: where(mul(lt(x, lo), lt(lo, hi)), 1, 0),
    hi=lambda x, lo, hi: where(gt(x, hi), 1, where(lt(hi, lo), 1, 0)), exact=("x", "lo", "hi"),
    scalar="vmath.clamp({0}, {1}, {2})", kinds="fi", ordered=True, loop="f8 f4",
    singular="The gradient passes at the bounds.",
)
where: Op = elementwise(
    "where", large("indexed_loops.where", _where),
    condition=SELECTS, domain=(bool, REAL, REAL), a=lambda condition: where(condition, 1, 0),
    b=lambda condition: where(condition, 0, 1), exact=("a", "b"), jointly_linear=True,
    complex=ANALYTIC, scalar="select({0}, {1}, {2})", kinds="fib", loop="f8 f4",
)
addcmul = elementwise("addcmul",
    lambda a, b, c: np.asarray(a + b * c),
    a=lambda: 1, b=lambda c: c, c=lambda b: b,
                      complex=ANALYTIC, scalar="{0} + {1} * {2}", kinds="fi", loop="f8 f4")
addcdiv = elementwise("addcdiv",
    lambda a, b, c: np.asarray(a + b / c),
    a=lambda: 1, b=lambda c: 1 / c,
                      c=lambda b, c: -b / (c * c), domain=POSITIVE,
                      complex=ANALYTIC, scalar="{0} + {1} / {2}", loop="f8 f4")
# The last of four operands is handed to kernels where the result is elsewhere: it is not read here.
addcmul_scaled = elementwise(
    "addcmul_scaled",
    lambda a, b, c, value: np.asarray(a + value * b * c),
    a=lambda: 1, b=lambda c, value: value * c,
    c=lambda b, value: value * b, value=SCALES, grad_name="Addcmul",
    complex=ANALYTIC, scalar="{0} + {3} * {1} * {2}", kinds="fi", loop="f8 f4",
)
addcdiv_scaled = elementwise(
    "addcdiv_scaled",
    lambda a, b, c, value: np.asarray(a + value * b / c),
    a=lambda: 1, b=lambda c, value: value / c,
    c=lambda b, c, value: -(value * b) / (c * c), value=SCALES, grad_name="Addcdiv",
    domain=POSITIVE,
    complex=ANALYTIC, scalar="{0} + {3} * {1} / {2}", loop="f8 f4",
)
squared_difference = elementwise(
    "squared_difference", Composed((np.subtract, "ab"), (np.square, "y")),
    a=lambda a, b: 2 * (a - b), b=lambda a, b: 2 * (b - a), grad_name="MseLoss",
    scalar="({0} - {1}) * ({0} - {1})", kinds="fi", ordered=True, loop="f8 f4",
)
lerp = elementwise("lerp",
    # From the nearer end, which is met exactly.
    lambda a, b, c: np.where(np.abs(c) < 0.5, a + c * (b - a), b - (b - a) * (1 - c)),
    a=lambda c: 1 - c, b=lambda c: c, c=lambda a, b: b - a, complex=ANALYTIC,
    scalar="select(abs({2}) < T(0.5), {0} + {2} * ({1} - {0}), {1} - ({1} - {0}) * (one - {2}))",
    kinds="fi", loop="f8 f4")
# fmt: on
