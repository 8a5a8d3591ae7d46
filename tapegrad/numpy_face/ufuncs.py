"""The ufuncs of NumPy, and those of `scipy.special` that have an operation here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.base.native_arrays import refuse_operand
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.fast_path import unary
from tapegrad.functions import arithmetic as a
from tapegrad.functions import elementwise as ew
from tapegrad.functions import products, shapes
from tapegrad.functions.arguments import alike
from tapegrad.functions.complex_parts import conj
from tapegrad.numpy_face import order, reductions, writing
from tapegrad.numpy_face.common import (
    CALLS,
    bad_option,
    floating,
    named,
    operand,
    tensor,
    title,
    unsupported,
)
from tapegrad.numpy_face.products import check_lengths, vecdot_
from tapegrad.ops import elementwise as e
from tapegrad.ops import logic
from tapegrad.ops.core import by_code
from tapegrad.tensor import Tensor, wrap

KNOWN = (Tensor, np.ndarray, np.generic, bool, int, float, complex, list, tuple)


def _signbit(x: Any) -> Tensor:
    return run(logic.signbit, (x,), {})


def _conjugate(x: Tensor) -> Tensor:
    """A new Tensor, where PyTorch gives back a real one."""
    return conj(x) if x._a.dtype.kind == "c" else shapes.clone(x)


def _heaviside(x: Any, y: Any) -> Tensor:
    return tensor(named("heaviside", "np.heaviside")(floating(tensor(x)), y))


def _modf(x: Any) -> tuple[Tensor, Tensor]:
    """What follows the point, and what stands before it."""
    t = floating(tensor(x))
    whole = named("trunc", "np.modf")(t)
    return a.where(ew.isinf(t), 0.0, named("frac", "np.modf")(t)), whole


def _ldexp(x: Any, i: Any) -> Tensor:
    """Two powers of 2, so that neither is too large where their product is not."""
    t, power = floating(tensor(x)), tensor(i)
    half = ew.floor_divide(power, 2)
    kind = t._a.dtype
    first, second = (
        named("exp2", "np.ldexp")(shapes.to(k, kind)) for k in (half, a.sub(power, half))
    )
    return ew.mul(ew.mul(t, first), second)


def _frexp(x: Any) -> tuple[Tensor, Tensor]:
    t = floating(tensor(x))
    if isinstance(t._a, AbstractArray):
        power = _exponent(t.detach())
        return _ldexp(t, ew.neg(power)), power
    known = np.asarray(np.frexp(t._a)[1])
    return _ldexp(t, -known), wrap(known)


def _exponent(t: Tensor) -> Tensor:
    """The powers of 2 just above, for values that differ by example; a logarithm may round."""
    size = ew.abs(t)
    usual = ew.logical_and(ew.gt(size, 0), ew.isfinite(size))
    size = a.where(usual, size, 0.5)
    power = shapes.to(ew.floor(named("log2", "np.frexp")(size)), np.int32)
    for step in (1, -1):
        rest = _ldexp(size, ew.neg(power))
        off = ew.ge(rest, 1) if step == 1 else ew.lt(rest, 0.5)
        power = a.add(power, ew.mul(shapes.to(off, np.int32), step))
    return power


def _float_power(x: Any, y: Any) -> Tensor:
    base = tensor(x)
    return a.pow(shapes.to(base, np.result_type(base._a.dtype, np.float64)), y)


def _matvec(x: Any, y: Any) -> Tensor:
    matrix, vector = alike(x, y)
    if matrix._a.ndim < 2:
        raise ValueError(f"`np.matvec` takes matrices first, got the shape {matrix._a.shape}")
    check_lengths("np.matvec", matrix, vector, -1, -1)
    return shapes.squeeze(products.matmul(matrix, shapes.unsqueeze(vector, -1)), -1)


def _vecmat(x: Any, y: Any) -> Tensor:
    vector, matrix = alike(x, y)
    check_lengths("np.vecmat", vector, matrix, -1, -2)
    return shapes.squeeze(products.matmul(conj(shapes.unsqueeze(vector, -2)), matrix), -2)


# fmt: off
# A row that is a function by itself is NumPy's ufunc, or SciPy's, if that is its forward.
ROWS = {op.forward: getattr(ew, op.name) for op in by_code if op.doc and not op.axis}
# A name is one of tapegrad's public functions, looked up when it is first wanted.
TABLE: dict[Any, Any] = {f: own for f, own in ROWS.items() if isinstance(f, np.ufunc)} | {
    np.add: a._add, np.subtract: a._sub, np.true_divide: a._div, np.power: a.pow,
    np.float_power: _float_power, np.positive: shapes.clone,
    np.divmod: lambda x, y: (ew.floor_divide(x, y), ew.remainder(x, y)),
    np.fabs: lambda x: ew.abs(floating(x)), np.sign: a.sign,
    np.cbrt: unary(e.cbrt), np.conjugate: _conjugate, np.radians: ew.deg2rad,
    np.degrees: ew.rad2deg, np.rint: "round", np.matmul: products.matmul, np.vecdot: vecdot_,
    np.matvec: _matvec, np.vecmat: _vecmat, np.heaviside: _heaviside, np.modf: _modf,
    np.ldexp: _ldexp, np.frexp: _frexp, np.signbit: _signbit,
}
# By the name of the ufunc in `scipy.special`.
SPECIAL: dict[str, Any] = {f.name: own for f, own in ROWS.items() if isinstance(f, e.Lazy)} | {
    "digamma": ew.digamma, "logit": "logit", "log_expit": lambda x: ew.neg(a.softplus(ew.neg(x))),
    "exp2": ew.exp2, "expm1": ew.expm1, "log1p": ew.log1p, "cbrt": unary(e.cbrt),
}
# What the other methods of a ufunc are; an axis is the first one unless it is given.
METHODS: dict[tuple[Any, str], Any] = {
    (np.add, "reduce"): reductions.sum_,
    (np.multiply, "reduce"): reductions.prod_,
    (np.maximum, "reduce"): reductions.max_,
    (np.minimum, "reduce"): reductions.min_,
    (np.logical_and, "reduce"): order.all_,
    (np.logical_or, "reduce"): order.any_,
    (np.logaddexp, "reduce"): reductions.logsumexp_,
    (np.add, "accumulate"): reductions.cumsum_,
    (np.multiply, "accumulate"): reductions.cumprod_,
}
# fmt: on
COUNTING = {np.add, np.multiply, np.maximum, np.minimum}  # that know `initial` and `where`
DEFAULTS = {"where": True, "casting": "same_kind", "order": "K", "subok": True}


def find(ufunc: Any) -> Callable[..., Any] | None:
    """Our function for a ufunc."""
    found = CALLS.get(ufunc)
    if found is not None:
        return found
    entry = TABLE.get(ufunc)
    if entry is None:
        name = ufunc.__name__
        if getattr(sys.modules.get("scipy.special"), name, None) is not ufunc:
            return None
        entry = SPECIAL.get(name)
    if isinstance(entry, str):
        entry = named(entry, title(ufunc))
    if entry is not None:
        CALLS[ufunc] = entry
    function: Callable[..., Any] | None = entry
    return function


def call(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc in full: its first call, lists among the operands, options, other methods."""
    if method == "at" and ufunc in writing.ADDING and isinstance(inputs[0], Tensor):
        return writing.add_at(*inputs, sign=writing.ADDING[ufunc])
    for x in inputs:
        if not isinstance(x, KNOWN):
            return NotImplemented
        if isinstance(x, np.ndarray):
            refuse_operand(type(x))
    name = title(ufunc)
    if method != "__call__":
        name += f".{method}"
    options = {k: v for k, v in kwargs.items() if v is not None and v is not DEFAULTS.get(k)}
    if "out" in options:
        return _into(ufunc, method, name, inputs, options)
    if method in ("__call__", "outer"):
        function = find(ufunc)
        if function is None:
            raise unsupported(name)
        for option in options:
            raise bad_option(name, option)
        operands = [operand(x) for x in inputs]
        if method == "outer":
            x, y = (tensor(x) for x in operands)
            operands = [shapes.reshape(x, (*x._a.shape, *(1,) * y._a.ndim)), y]
        return function(*operands)
    handler = METHODS.get((ufunc, method))
    if handler is None or not isinstance(inputs[0], Tensor):
        raise unsupported(name)
    known = {"axis", "keepdims", "dtype"}
    if method == "reduce" and ufunc in COUNTING:
        known |= {"initial", "where"}
    for option in options.keys() - known:
        raise bad_option(name, option)
    axis = kwargs.get("axis", 0)
    if method == "accumulate" and axis is None:
        raise ValueError(f"`{name}` goes along one axis, got None")
    options.pop("axis", None)
    return handler(inputs[0], axis=axis, **options)


def _into(
    ufunc: Any, method: str, name: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """A result written into an array, as by `array += t`: right if there is no history to lose."""
    if any(isinstance(x, Tensor) for x in options["out"]):
        raise TypeError(
            f"`{name}`: `out=` cannot be a Tensor: use its own in-place methods, as in `t.add_(x)`"
        )
    if any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        raise TypeError(
            f"`{name}` into an array (`out=`, or `array += t`) would lose the history of a Tensor "
            "that requires grad: write `result = array + t`, or give it `t.detach().numpy()`"
        )
    # A Tensor that a transform follows refuses: an array would lose its tangent, or its examples.
    values = [x.numpy() if isinstance(x, Tensor) else x for x in inputs]
    return getattr(ufunc, method)(*values, **options)
