"""Elementwise functions under PyTorch's names; operators of the Tensor are these functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast, overload

import numpy as np

from tapegrad.base.dtypes import dtype as DType
from tapegrad.base.dtypes import of_numpy
from tapegrad.base.dtypes import result_type as _result_type
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.fast_path import as_operand, binary, ternary, unary
from tapegrad.functions.arguments import as_input, same_and_large
from tapegrad.ops import elementwise as e
from tapegrad.ops import logic
from tapegrad.ops.core import Op
from tapegrad.ops.shape import clone
from tapegrad.tensor import Tensor, wrap

F = TypeVar("F", bound=Callable[..., Tensor])


class Unary(Protocol):
    """A function of one operand."""

    def __call__(self, input: Any) -> Tensor: ...


class Binary(Protocol):
    """A function of two operands."""

    def __call__(self, input: Any, other: Any) -> Tensor: ...


def _documented(
    function: F, name: str, text: str, example: str, answer: str, module: str = __name__
) -> F:
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = (
        f"{text}\n\n    >>> import tapegrad as tg\n    >>> tg.{example}\n    {answer}\n    "
    )
    return function


def _unary(op: Op, text: str, example: str, answer: str, module: str = __name__) -> Unary:
    return cast(Unary, _documented(unary(op), op.name, text, example, answer, module))


def _binary(op: Op, text: str, example: str, answer: str, module: str = __name__) -> Binary:
    return cast(Binary, _documented(binary(op), op.name, text, example, answer, module))


for _two in (e.strong, e.exact, e.clamp_min, e.clamp_max):  # derivatives are made of products
    binary(_two)
for _three in (e.where, e.clamp, e.lerp, e.addcmul, e.addcdiv):
    ternary(_three)
_add = binary(e.add)
_sub = binary(e.sub)
mul = _binary(
    e.mul, "The product of two Tensors or numbers.", "mul(tg.tensor(2.0), 3.0)", "tensor(6.)"
)
_div = binary(e.div)
_pow = binary(e.pow)
atan2 = _binary(
    e.atan2,
    "The angle of the point (other, input).",
    "atan2(tg.tensor(0.0), tg.tensor(1.0))",
    "tensor(0.)",
)
hypot = _binary(
    e.hypot,
    "The length of the hypotenuse, sqrt(a * a + b * b) without overflow.",
    "hypot(tg.tensor(3.0), tg.tensor(4.0))",
    "tensor(5.)",
)
logaddexp = _binary(
    e.logaddexp,
    "log(exp(a) + exp(b)), without overflow.",
    "logaddexp(tg.tensor(1000.0), tg.tensor(1000.0))",
    "tensor(1000.6931)",
)
minimum = _binary(
    e.minimum,
    "The smaller of two, element by element.",
    "minimum(tg.tensor(1.0), tg.tensor(2.0))",
    "tensor(1.)",
)
maximum = _binary(
    e.maximum,
    "The larger of two, element by element.",
    "maximum(tg.tensor(1.0), tg.tensor(2.0))",
    "tensor(2.)",
)
floor_divide = _binary(
    e.floor_divide, "The quotient rounded down.", "floor_divide(tg.tensor(7.0), 2.0)", "tensor(3.)"
)
remainder = _binary(
    e.remainder,
    "What a division leaves, with the divisor's sign.",
    "remainder(tg.tensor(-7.0), 2.0)",
    "tensor(1.)",
)
eq = _binary(e.eq, "Whether elements are equal.", "eq(tg.tensor(1.0), 1.0)", "tensor(True)")
ne = _binary(e.ne, "Whether elements differ.", "ne(tg.tensor(1.0), 1.0)", "tensor(False)")
lt = _binary(e.lt, "Whether elements are smaller.", "lt(tg.tensor(1.0), 2.0)", "tensor(True)")
le = _binary(
    e.le, "Whether elements are smaller or equal.", "le(tg.tensor(1.0), 1.0)", "tensor(True)"
)
gt = _binary(e.gt, "Whether elements are larger.", "gt(tg.tensor(1.0), 2.0)", "tensor(False)")
ge = _binary(
    e.ge, "Whether elements are larger or equal.", "ge(tg.tensor(1.0), 1.0)", "tensor(True)"
)
neg = _unary(e.neg, "The negative.", "neg(tg.tensor(1.0))", "tensor(-1.)")
abs = _unary(e.abs, "The absolute value.", "abs(tg.tensor(-1.0))", "tensor(1.)")
floor = _unary(e.floor, "The largest whole number below.", "floor(tg.tensor(1.5))", "tensor(1.)")
square = _unary(e.square, "The square.", "square(tg.tensor(3.0))", "tensor(9.)")
reciprocal = _unary(
    e.reciprocal, "One divided by it.", "reciprocal(tg.tensor(4.0))", "tensor(0.2500)"
)
exp = _unary(e.exp, "The exponential.", "exp(tg.tensor(0.0))", "tensor(1.)")
log = _unary(e.log, "The natural logarithm.", "log(tg.tensor(1.0))", "tensor(0.)")
exp2 = _unary(e.exp2, "2 to the power of it.", "exp2(tg.tensor(3.0))", "tensor(8.)")
log2 = _unary(e.log2, "The logarithm to base 2.", "log2(tg.tensor(8.0))", "tensor(3.)")
log10 = _unary(e.log10, "The logarithm to base 10.", "log10(tg.tensor(1000.0))", "tensor(3.)")
log1p = _unary(e.log1p, "log(1 + x), exact near 0.", "log1p(tg.tensor(0.0))", "tensor(0.)")
expm1 = _unary(e.expm1, "exp(x) - 1, exact near 0.", "expm1(tg.tensor(0.0))", "tensor(0.)")
sqrt = _unary(e.sqrt, "The square root.", "sqrt(tg.tensor(4.0))", "tensor(2.)")
rsqrt = _unary(
    e.rsqrt, "One divided by the square root.", "rsqrt(tg.tensor(4.0))", "tensor(0.5000)"
)
sin = _unary(e.sin, "The sine.", "sin(tg.tensor(0.0))", "tensor(0.)")
cos = _unary(e.cos, "The cosine.", "cos(tg.tensor(0.0))", "tensor(1.)")
tan = _unary(e.tan, "The tangent.", "tan(tg.tensor(0.0))", "tensor(0.)")
asin = _unary(e.asin, "The inverse sine.", "asin(tg.tensor(0.0))", "tensor(0.)")
acos = _unary(e.acos, "The inverse cosine.", "acos(tg.tensor(1.0))", "tensor(0.)")
atan = _unary(e.atan, "The inverse tangent.", "atan(tg.tensor(0.0))", "tensor(0.)")
sinh = _unary(e.sinh, "The hyperbolic sine.", "sinh(tg.tensor(0.0))", "tensor(0.)")
cosh = _unary(e.cosh, "The hyperbolic cosine.", "cosh(tg.tensor(0.0))", "tensor(1.)")
tanh = _unary(e.tanh, "The hyperbolic tangent.", "tanh(tg.tensor(0.0))", "tensor(0.)")
asinh = _unary(e.asinh, "The inverse hyperbolic sine.", "asinh(tg.tensor(0.0))", "tensor(0.)")
acosh = _unary(e.acosh, "The inverse hyperbolic cosine.", "acosh(tg.tensor(1.0))", "tensor(0.)")
atanh = _unary(e.atanh, "The inverse hyperbolic tangent.", "atanh(tg.tensor(0.0))", "tensor(0.)")
sigmoid = _unary(e.sigmoid, "1 / (1 + exp(-x)).", "sigmoid(tg.tensor(0.0))", "tensor(0.5000)")
relu = _unary(e.relu, "max(x, 0).", "relu(tg.tensor(-1.0))", "tensor(0.)")
erf = _unary(e.erf, "The error function.", "erf(tg.tensor(0.0))", "tensor(0.)")
_softplus = unary(e.softplus)
_cube = unary(e.cube)
_sign = unary(e.sign)
_trunc = unary(e.trunc)


def sign(input: Any) -> Tensor:
    """The sign: -1, 0 or 1.

    >>> import tapegrad as tg
    >>> tg.sign(tg.tensor(-3.0))
    tensor(-1.)
    """
    if isinstance(input, Tensor) and input._a.dtype.kind == "b":
        return run(clone, (input,), {})
    return _sign(input)


def scaled(name: str, factor: Any, other: Any, *beside: Any) -> Any:
    """``factor * other``, for a sum with `beside`: the factor does not change the sum's type."""
    if isinstance(factor, Tensor):
        return mul(other, factor)
    if factor == 1 or (isinstance(other, Tensor) and other._a.dtype.kind in "fc"):
        return other if factor == 1 else mul(other, factor)
    kind = _result_type([x._a if isinstance(x, Tensor) else x for x in (other, *beside)])
    if name in ("add", "sub") and kind.kind in "biu" and not isinstance(factor, int):
        raise RuntimeError(f"`{name}`: for integers `alpha` must be an integer, got {factor}")
    return mul(other, np.asarray(factor).astype(kind))


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The sum ``input + alpha * other``.

    >>> import tapegrad as tg
    >>> tg.add(tg.tensor(1.0), tg.tensor(2.0), alpha=10)
    tensor(21.)
    """
    return _add(input, scaled("add", alpha, other, input))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The difference ``input - alpha * other``.

    >>> import tapegrad as tg
    >>> tg.sub(tg.tensor(3.0), tg.tensor(1.0))
    tensor(2.)
    """
    return _sub(input, scaled("sub", alpha, other, input))


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient; `rounding_mode` may be ``"floor"`` or ``"trunc"``.

    >>> import tapegrad as tg
    >>> tg.div(tg.tensor(7.0), 2.0, rounding_mode="floor")
    tensor(3.)
    """
    if rounding_mode is None:
        return _div(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        if result_type(input, other).numpy.kind in "iu":
            down = floor_divide(input, other)
            return _add(down, logical_and(lt(down, 0), ne(mul(down, other), input)))
        return _trunc(_div(input, other))
    raise RuntimeError(f"`div`: rounding_mode is None, 'floor' or 'trunc', got {rounding_mode!r}")


_EXACT_POWERS = {2: square, 3: _cube, 1: None, 0.5: sqrt, -1: reciprocal, -0.5: rsqrt}


def pow(input: Any, exponent: Any) -> Tensor:
    """`input` to the power of `exponent`.

    >>> import tapegrad as tg
    >>> tg.pow(tg.tensor(3.0), 2)
    tensor(9.)
    """
    kind = type(exponent)
    if (kind is int or kind is float) and isinstance(input, Tensor) and input._a.dtype.kind == "f":
        function = _EXACT_POWERS.get(exponent)
        if function is not None:
            return function(input)
    elif kind is bool and isinstance(input, Tensor) and input._a.dtype.kind == "b":
        return ge(input, exponent)  # which is the power, among booleans
    return _pow(input, exponent)


@overload
def where(condition: Any) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Any, input: Any, other: Any) -> Tensor: ...
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition holds, else `other`; the places themselves with one argument.

    >>> import tapegrad as tg
    >>> tg.where(tg.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    if input is not None and condition.__class__ is Tensor and condition._a.dtype.char == "?":
        return e.where.short(condition, input, other)
    c = as_input(condition, "where")
    if input is None and other is None:
        return tuple(wrap(i) for i in np.nonzero(c._a))
    if c._a.dtype.kind != "b":
        raise RuntimeError(f"`where`: the condition must be boolean, got {c.dtype}")
    return e.where.short(c, input, other)


def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """Values below `min` and above `max` are replaced by these; the gradient passes at the bounds.

    >>> import tapegrad as tg
    >>> tg.clamp(tg.tensor([-1.0, 0.5, 2.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("`clamp` needs at least one of `min` and `max`")
    op, bounds = clamping(min, max)
    return op.short(as_input(input, "clamp"), *bounds)  # type: ignore[no-any-return]


def clamping(low: Any, high: Any) -> tuple[Op, tuple[Any, ...]]:
    """The operation and the bounds of a `clamp`."""
    if high is None:
        return e.clamp_min, (as_operand(low),)
    if low is None:
        return e.clamp_max, (as_operand(high),)
    return e.clamp, (as_operand(low), as_operand(high))


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``; the identity above the threshold.

    >>> import tapegrad as tg
    >>> tg.nn.functional.softplus(tg.tensor(0.0))
    tensor(0.6931)
    """
    if beta == 1.0 and threshold == 20.0:
        return _softplus(input)
    inner = mul(input, float(beta))
    return where(gt(inner, threshold), input, _div(_softplus(inner), float(beta)))


def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``.

    >>> import tapegrad as tg
    >>> tg.addcmul(tg.tensor(1.0), tg.tensor(2.0), tg.tensor(3.0))
    tensor(7.)
    """
    if _in_one_pass(value, input, tensor1, tensor2):
        return run(e.addcmul_scaled, (input, tensor1, tensor2, value), {})
    factor = scaled("addcmul", value, tensor1, input, tensor2)
    return e.addcmul.short(input, factor, tensor2)  # type: ignore[no-any-return]


def _in_one_pass(value: Any, *operands: Any) -> bool:
    return value.__class__ in (int, float) and value != 1 and same_and_large(*operands)


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``.

    >>> import tapegrad as tg
    >>> tg.addcdiv(tg.tensor(1.0), tg.tensor(6.0), tg.tensor(3.0))
    tensor(3.)
    """
    if _in_one_pass(value, input, tensor1, tensor2):
        return run(e.addcdiv_scaled, (input, tensor1, tensor2, value), {})
    top = numerator(value, tensor1, tensor2, input)
    return e.addcdiv.short(input, top, tensor2)  # type: ignore[no-any-return]


def numerator(value: Any, tensor1: Any, tensor2: Any, input: Any) -> Any:
    """``value * tensor1`` for `addcdiv`, which does not divide integers by integers."""
    if result_type(tensor1, tensor2).numpy.kind in "biu":
        raise RuntimeError("`addcdiv` does not divide integers by integers: convert them to floats")
    return scaled("addcdiv", value, tensor1, input, tensor2)


def lerp(input: Any, end: Any, weight: Any) -> Tensor:
    """``input + weight * (end - input)``.

    >>> import tapegrad as tg
    >>> tg.lerp(tg.tensor(0.0), tg.tensor(10.0), 0.5)
    tensor(5.)
    """
    return e.lerp.short(input, end, weight)  # type: ignore[no-any-return]


def _of_one(op: Op, text: str, example: str, answer: str) -> Unary:
    def function(input: Any) -> Tensor:
        return run(op, (as_operand(input),), {})

    return _documented(function, op.name, text, example, answer)


def _of_two(op: Op, text: str, example: str, answer: str, name: str = "") -> Binary:
    def function(input: Any, other: Any) -> Tensor:
        return run(op, (as_operand(input), as_operand(other)), {})

    return _documented(function, name or op.name, text, example, answer)


logical_and = _of_two(
    logic.logical_and,
    "Whether both are true.",
    "logical_and(tg.tensor(True), tg.tensor(False))",
    "tensor(False)",
)
logical_or = _of_two(
    logic.logical_or,
    "Whether one is true.",
    "logical_or(tg.tensor(True), tg.tensor(False))",
    "tensor(True)",
)
logical_xor = _of_two(
    logic.logical_xor,
    "Whether exactly one is true.",
    "logical_xor(tg.tensor(True), tg.tensor(False))",
    "tensor(True)",
)
logical_not = _of_one(
    logic.logical_not, "The opposite.", "logical_not(tg.tensor(True))", "tensor(False)"
)
bitwise_and = _of_two(
    logic.bitwise_and,
    "And, bit by bit.",
    "bitwise_and(tg.tensor(6), tg.tensor(3))",
    "tensor(2)",
)
bitwise_or = _of_two(
    logic.bitwise_or,
    "Or, bit by bit.",
    "bitwise_or(tg.tensor(6), tg.tensor(3))",
    "tensor(7)",
)
bitwise_xor = _of_two(
    logic.bitwise_xor,
    "Exclusive or, bit by bit.",
    "bitwise_xor(tg.tensor(6), tg.tensor(3))",
    "tensor(5)",
)
bitwise_not = _of_one(
    logic.bitwise_not, "Every bit reversed.", "bitwise_not(tg.tensor(0))", "tensor(-1)"
)
bitwise_left_shift = _of_two(
    logic.left_shift,
    "Bits moved to the left.",
    "bitwise_left_shift(tg.tensor(1), tg.tensor(3))",
    "tensor(8)",
    "bitwise_left_shift",
)
bitwise_right_shift = _of_two(
    logic.right_shift,
    "Bits moved to the right.",
    "bitwise_right_shift(tg.tensor(8), tg.tensor(3))",
    "tensor(1)",
    "bitwise_right_shift",
)
isnan = _of_one(
    logic.isnan, "Whether elements are NaN.", "isnan(tg.tensor(float('nan')))", "tensor(True)"
)
isinf = _of_one(
    logic.isinf, "Whether elements are infinite.", "isinf(tg.tensor(1.0))", "tensor(False)"
)
isfinite = _of_one(
    logic.isfinite,
    "Whether elements are finite.",
    "isfinite(tg.tensor(1.0))",
    "tensor(True)",
)


def result_type(input: Any, other: Any) -> DType:
    """The type of the result of an operation on two operands.

    >>> import tapegrad as tg
    >>> tg.result_type(tg.tensor([1, 2]), 1.0)
    tapegrad.float64
    """
    operands = [x._a if isinstance(x, Tensor) else x for x in (input, other)]
    return of_numpy(_result_type(operands))


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two Tensors have the same shape and the same elements.

    >>> import tapegrad as tg
    >>> tg.equal(tg.ones(2), tg.ones(2))
    True
    """
    if type(input) is Tensor and type(other) is Tensor:
        return bool(np.array_equal(input._a, other._a))
    return input._a.shape == other._a.shape and all_equal(input, other)


def all_equal(x: Any, y: Any, equal_nan: bool = False) -> bool:
    """Whether all elements are equal; asked of a compiled program this is a guard."""
    same = eq(x, y)
    if equal_nan:
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return bool(same.all())


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements agree up to tolerances.

    >>> import tapegrad as tg
    >>> tg.allclose(tg.ones(2), tg.ones(2) + 1e-9)
    True
    """
    if type(input) is Tensor and type(other) is Tensor:
        return bool(np.allclose(input._a, other._a, rtol, atol, equal_nan))
    near = le(abs(sub(input, other)), add(mul(abs(other), rtol), atol))
    same = logical_or(logical_and(near, isfinite(other)), eq(input, other))
    if equal_nan:
        same = logical_or(same, logical_and(isnan(input), isnan(other)))
    return bool(same.all())
