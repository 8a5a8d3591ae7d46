"""Elementwise functions that take more than operands: `alpha`, `rounding_mode`, conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np

from tapegrad.base.dtypes import dtype as DType
from tapegrad.base.dtypes import of_numpy
from tapegrad.base.dtypes import result_type as _result_type
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.op_functions import as_operand, binary, ternary, unary
from tapegrad.functions.arguments import Operand, as_input, plain_number, same_and_large
from tapegrad.functions.elementwise import (
    abs,
    eq,
    floor_divide,
    ge,
    gt,
    isfinite,
    isnan,
    le,
    logical_and,
    logical_or,
    lt,
    mul,
    ne,
    reciprocal,
    remainder,
    rsqrt,
    sqrt,
    square,
)
from tapegrad.functions.method_decorators import method
from tapegrad.ops import elementwise as e
from tapegrad.ops.core import Op
from tapegrad.ops.shape import clone
from tapegrad.tensor import Tensor, wrap

for _two in (e.strong, e.exact, e.clamp_min, e.clamp_max):  # derivatives are made of products
    binary(_two)
for _three in (e.where, e.clamp, e.lerp, e.addcmul, e.addcdiv):
    ternary(_three)
_add = binary(e.add)
_sub = binary(e.sub)
_div = binary(e.div)
_pow = binary(e.pow)
_softplus = unary(e.softplus)
_cube = unary(e.cube)
_sign = unary(e.sign)
_trunc = unary(e.trunc)


@method
def sign(input: Operand) -> Tensor:
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
    if name in ("add", "sub", "rsub") and kind.kind in "biu" and not isinstance(factor, int):
        raise RuntimeError(f"`{name}`: for integers `alpha` must be an integer, got {factor}")
    return mul(other, np.asarray(factor).astype(kind))


@method
def add(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """The sum ``input + alpha * other``.

    >>> import tapegrad as tg
    >>> tg.add(tg.tensor(1.0), tg.tensor(2.0), alpha=10)
    tensor(21.)
    """
    return _add(input, scaled("add", alpha, other, input))


@method
def sub(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """The difference ``input - alpha * other``.

    >>> import tapegrad as tg
    >>> tg.sub(tg.tensor(3.0), tg.tensor(1.0))
    tensor(2.)
    """
    return _sub(input, scaled("sub", alpha, other, input))


subtract = method(sub, "subtract")


def rsub(input: Tensor, other: Operand, alpha: Operand = 1) -> Tensor:
    """The difference the other way round: ``other - alpha * input``.

    >>> import tapegrad as tg
    >>> tg.rsub(tg.tensor(1.0), 3.0)
    tensor(2.)
    """
    return _sub(other, scaled("rsub", alpha, input, other))


@method
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
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


divide = true_divide = method(div, "divide", "true_divide")


def quotient_and_rest(x: Operand, y: Operand) -> tuple[Tensor, Tensor]:
    """The quotient rounded down, and what it leaves: ``divmod`` of NumPy's arrays."""
    return floor_divide(x, y), remainder(x, y)


_EXACT_POWERS: dict[Any, Callable[[Any], Tensor] | None] = {
    2: square, 3: _cube, 1: None, 0.5: sqrt, -1: reciprocal, -0.5: rsqrt,
}  # fmt: skip


@method
def pow(input: Operand, exponent: Operand) -> Tensor:
    """`input` to the power of `exponent`.

    >>> import tapegrad as tg
    >>> tg.pow(tg.tensor(3.0), 2)
    tensor(9.)
    """
    kind: Any = type(exponent)
    if (kind is int or kind is float) and isinstance(input, Tensor) and input._a.dtype.kind == "f":
        function = _EXACT_POWERS.get(exponent)
        if function is not None:
            return function(input)
    elif kind is int and isinstance(input, Tensor) and input._a.dtype.kind == "i":
        if exponent in (2, 3):  # products are compiled for integers, and powers are not
            return square(input) if exponent == 2 else _cube(input)
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
        return e.where.entry_point(condition, input, other)
    c = as_input(condition, "where")
    if input is None and other is None:
        return tuple(wrap(i) for i in np.nonzero(c._a if c._a.ndim else c._a.reshape(1)))
    if c._a.dtype.kind != "b":
        raise RuntimeError(f"`where`: the condition must be boolean, got {c.dtype}")
    return e.where.entry_point(c, input, other)


@method
def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Values below `min` and above `max` are replaced by these; the gradient passes at the bounds.

    >>> import tapegrad as tg
    >>> tg.clamp(tg.tensor([-1.0, 0.5, 2.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("`clamp` needs at least one of `min` and `max`")
    op, bounds = clamping(min, max)
    return op.entry_point(as_input(input, "clamp"), *bounds)  # type: ignore[no-any-return]


clip = method(clamp, "clip")


def clamping(low: Any, high: Any) -> tuple[Op, tuple[Any, ...]]:
    """The operation and the bounds of a `clamp`."""
    if high is None:
        return e.clamp_min, (as_operand(low),)
    if low is None:
        return e.clamp_max, (as_operand(high),)
    return e.clamp, (as_operand(low), as_operand(high))


def softplus(input: Any, beta: float | Tensor = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``; the identity above the threshold.

    >>> import tapegrad as tg
    >>> tg.nn.functional.softplus(tg.tensor(0.0))
    tensor(0.6931)
    """
    if not isinstance(beta, Tensor) and beta == 1.0 and threshold == 20.0:
        return _softplus(input)
    factor = float(plain_number(beta, "softplus"))
    inner = mul(input, factor)
    return where(gt(inner, threshold), input, _div(_softplus(inner), factor))


@method
def addcmul(input: Tensor, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``.

    >>> import tapegrad as tg
    >>> tg.addcmul(tg.tensor(1.0), tg.tensor(2.0), tg.tensor(3.0))
    tensor(7.)
    """
    if _in_one_pass(value, input, tensor1, tensor2):
        return run(e.addcmul_scaled, (input, tensor1, tensor2, value), {})
    factor = scaled("addcmul", value, tensor1, input, tensor2)
    return e.addcmul.entry_point(input, factor, tensor2)  # type: ignore[no-any-return]


def _in_one_pass(value: Any, *operands: Any) -> bool:
    return value.__class__ in (int, float) and value != 1 and same_and_large(*operands)


@method
def addcdiv(input: Tensor, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``.

    >>> import tapegrad as tg
    >>> tg.addcdiv(tg.tensor(1.0), tg.tensor(6.0), tg.tensor(3.0))
    tensor(3.)
    """
    if _in_one_pass(value, input, tensor1, tensor2):
        return run(e.addcdiv_scaled, (input, tensor1, tensor2, value), {})
    top = numerator(value, tensor1, tensor2, input)
    return e.addcdiv.entry_point(input, top, tensor2)  # type: ignore[no-any-return]


def numerator(value: Any, tensor1: Any, tensor2: Any, input: Any) -> Any:
    """``value * tensor1`` for `addcdiv`, which does not divide integers by integers."""
    floating = tensor2.__class__ is Tensor and tensor2._a.dtype.kind == "f"
    if not floating and result_type(tensor1, tensor2).numpy.kind in "biu":
        raise RuntimeError("`addcdiv` does not divide integers by integers: convert them to floats")
    return scaled("addcdiv", value, tensor1, input, tensor2)


@method
def lerp(input: Tensor, end: Operand, weight: Operand) -> Tensor:
    """``input + weight * (end - input)``.

    >>> import tapegrad as tg
    >>> tg.lerp(tg.tensor(0.0), tg.tensor(10.0), 0.5)
    tensor(5.)
    """
    return e.lerp.entry_point(input, end, weight)  # type: ignore[no-any-return]


def result_type(input: Any, other: Any) -> DType:
    """The type of the result of an operation on two operands.

    >>> import tapegrad as tg
    >>> tg.result_type(tg.tensor([1, 2]), 1.0)
    tapegrad.float64
    """
    operands = [x._a if isinstance(x, Tensor) else x for x in (input, other)]
    return of_numpy(_result_type(operands))


@method
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


@method
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements agree up to tolerances.

    >>> import tapegrad as tg
    >>> tg.allclose(tg.ones(2), tg.ones(2) + 1e-9)
    True
    """
    if type(input) is Tensor and type(other) is Tensor:
        try:
            return bool(np.allclose(input._a, other._a, rtol, atol, equal_nan))
        except ValueError:
            raise RuntimeError(
                f"`allclose`: the shapes {input._a.shape} and {other._a.shape} do not broadcast"
            ) from None
    return bool(near(input, other, rtol, atol, equal_nan).all())


def near(x: Any, y: Any, rtol: Any, atol: Any, equal_nan: bool) -> Tensor:
    """Whether elements agree up to tolerances, made of operations."""
    within = le(abs(sub(x, y)), add(mul(abs(y), rtol), atol))
    same = logical_or(logical_and(within, isfinite(y)), eq(x, y))
    return logical_or(same, logical_and(isnan(x), isnan(y))) if equal_nan else same


@method
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether elements agree up to tolerances: ``abs(x - y) <= atol + rtol * abs(y)``.

    >>> import tapegrad as tg
    >>> tg.isclose(tg.tensor([1.0, 2.0]), tg.tensor([1.0 + 1e-9, 3.0]))
    tensor([ True, False])
    """
    x, y = as_input(input, "isclose").detach(), as_input(other, "isclose").detach()
    if x._a.dtype != y._a.dtype:
        raise RuntimeError(f"`isclose` takes Tensors of one dtype, got {x.dtype} and {y.dtype}")
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"`isclose`: tolerances are not negative, got {rtol} and {atol}")
    if x._a.dtype.kind == "b":
        return eq(x, y)
    return near(x, y, rtol, atol, equal_nan)


def _infinite(input: Tensor, value: float, name: str) -> Tensor:
    x = as_input(input, name)
    if x._a.dtype.kind == "c":
        raise RuntimeError(f"`{name}` is not defined for {x.dtype}: complex numbers have no sign")
    return eq(x, value) if x._a.dtype.kind == "f" else ne(x, x)


@method
def isposinf(input: Tensor) -> Tensor:
    """Whether elements are infinite and positive.

    >>> import tapegrad as tg
    >>> tg.isposinf(tg.tensor([-tg.inf, tg.inf]))
    tensor([False,  True])
    """
    return _infinite(input, np.inf, "isposinf")


@method
def isneginf(input: Tensor) -> Tensor:
    """Whether elements are infinite and negative.

    >>> import tapegrad as tg
    >>> tg.isneginf(tg.tensor([-tg.inf, tg.inf]))
    tensor([ True, False])
    """
    return _infinite(input, -np.inf, "isneginf")
