"""The ufuncs of NumPy, and those of `scipy.special` that have an operation here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapegrad.base.native_arrays import refuse_operand
from tapegrad.dispatch.op_functions import unary
from tapegrad.functions import arithmetic as a
from tapegrad.functions import elementwise as ew
from tapegrad.functions import products, rounding, shapes
from tapegrad.functions.complex_parts import conj, sgn
from tapegrad.functions.exponents import float_power, frexp, scaled_by_power
from tapegrad.functions.order_statistics import cummax, cummin
from tapegrad.functions.scans import logcumsumexp
from tapegrad.numpy_face import order, reductions, writing
from tapegrad.numpy_face.common import (
    CALLS,
    bad_option,
    floating,
    operand,
    promoted,
    special_name,
    tensor,
    title,
    unsupported,
)
from tapegrad.numpy_face.orthogonal_polynomials import POLYNOMIALS
from tapegrad.numpy_face.products import check_lengths, vecdot_
from tapegrad.numpy_face.special_ufuncs import SPECIAL_UFUNCS
from tapegrad.ops import elementwise as e
from tapegrad.ops.families import by_code
from tapegrad.ops.scatter_reduce import OF_UFUNC
from tapegrad.tensor import Tensor

KNOWN = (Tensor, np.ndarray, np.generic, bool, int, float, complex, list, tuple)


def _conjugate(x: Tensor) -> Tensor:
    """A new Tensor, where PyTorch gives back a real one."""
    return conj(x) if x._a.dtype.kind == "c" else shapes.clone(x)


def _sign(x: Any) -> Tensor:
    """To NumPy a complex number over its absolute value, too."""
    t = tensor(x)
    return sgn(t) if t._a.dtype.kind == "c" else a.sign(t)


def _heaviside(x: Any, y: Any) -> Tensor:
    return rounding.heaviside(floating(tensor(x)), y)


def _modf(x: Any) -> tuple[Tensor, Tensor]:
    """What follows the point, and what stands before it."""
    t = floating(tensor(x))
    return a.where(ew.isinf(t), 0.0, ew.frac(t)), ew.trunc(t)


def _ldexp(x: Any, i: Any) -> Tensor:
    return scaled_by_power(floating(tensor(x)), tensor(i))


def _frexp(x: Any) -> tuple[Tensor, Tensor]:
    mantissa, exponent = frexp(floating(tensor(x)))
    return mantissa, exponent


def _matvec(x: Any, y: Any) -> Tensor:
    matrix, vector = promoted(x, y)
    if matrix._a.ndim < 2:
        raise ValueError(f"`np.matvec` takes matrices first, got the shape {matrix._a.shape}")
    check_lengths("np.matvec", matrix, vector, -1, -1)
    return shapes.squeeze(products.matmul(matrix, shapes.unsqueeze(vector, -1)), -1)


def _vecmat(x: Any, y: Any) -> Tensor:
    vector, matrix = promoted(x, y)
    check_lengths("np.vecmat", vector, matrix, -1, -2)
    return shapes.squeeze(products.matmul(conj(shapes.unsqueeze(vector, -2)), matrix), -2)


# fmt: off
# A row that is a function by itself is NumPy's ufunc, or SciPy's, if that is its forward.
ROWS = {
    getattr(op.forward, "__wrapped__", op.forward): getattr(ew, op.name)
    for op in by_code if op.doc and not op.axis
}
TABLE: dict[Any, Any] = {f: own for f, own in ROWS.items() if isinstance(f, np.ufunc)} | {
    np.add: a._add, np.subtract: a._sub, np.true_divide: a._div, np.power: a.pow,
    np.float_power: float_power, np.positive: shapes.clone,
    np.divmod: a.quotient_and_rest,
    np.fabs: lambda x: ew.abs(floating(x)), np.sign: _sign,
    np.cbrt: unary(e.cbrt), np.conjugate: _conjugate, np.radians: ew.deg2rad,
    np.degrees: ew.rad2deg, np.rint: rounding.round, np.matmul: products.matmul, np.vecdot: vecdot_,
    np.matvec: _matvec, np.vecmat: _vecmat, np.heaviside: _heaviside, np.modf: _modf,
    np.ldexp: _ldexp, np.frexp: _frexp,
}
# By the name of the ufunc in `scipy.special`.
SPECIAL: dict[str, Any] = {f.name: own for f, own in ROWS.items() if isinstance(f, e.Lazy)}
SPECIAL |= SPECIAL_UFUNCS | POLYNOMIALS
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
    (np.maximum, "accumulate"): reductions.running_(cummax),
    (np.minimum, "accumulate"): reductions.running_(cummin),
    (np.logaddexp, "accumulate"): reductions.running_(logcumsumexp),
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
        entry = SPECIAL.get(special_name(ufunc) or "")
    if entry is not None:
        CALLS[ufunc] = entry
    function: Callable[..., Any] | None = entry
    return function


def call(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc in full: its first call, lists among the operands, options, other methods."""
    if method == "at" and isinstance(inputs[0], Tensor):
        if ufunc in writing.ADDING:
            return writing.add_at(*inputs, sign=writing.ADDING[ufunc])
        if ufunc in OF_UFUNC:
            return writing.reduce_at(*inputs, reduce=OF_UFUNC[ufunc])
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
        along = {"axis": options.pop("axis")} if function is vecdot_ and "axis" in options else {}
        dtype = options.pop("dtype", None)
        for option in options:
            raise bad_option(name, option)
        operands = [operand(x) for x in inputs]
        if dtype is not None:
            operands = [_in_type(x, np.dtype(dtype), name) for x in operands]
        if method == "outer":
            x, y = (tensor(x) for x in operands)
            operands = [shapes.reshape(x, (*x._a.shape, *(1,) * y._a.ndim)), y]
        return function(*operands, **along)
    handler = METHODS.get((ufunc, method))
    if method == "reduceat" and ufunc in OF_UFUNC:
        handler = partial(reductions.reduceat_, reduce=OF_UFUNC[ufunc], name=name)
    if handler is None or not isinstance(inputs[0], Tensor):
        raise unsupported(name)
    known = {"axis"} | ({"keepdims"} if method == "reduce" else set())
    if method != "reduceat" and ufunc in (np.add, np.multiply):
        known.add("dtype")
    if method == "reduce" and ufunc in COUNTING:
        known |= {"initial", "where"}
    for option in options.keys() - known:
        raise bad_option(name, option)
    axis = kwargs.get("axis", 0)
    if method == "accumulate" and axis is None:
        raise ValueError(f"`{name}` goes along one axis, got None")
    options.pop("axis", None)
    return handler(*inputs, axis=axis, **options)


def _in_type(x: Any, dtype: np.dtype[Any], name: str) -> Tensor:
    """An operand of a ufunc that is to compute in a type."""
    t = tensor(x)
    if dtype.kind not in "fc" or not np.can_cast(t._a.dtype, dtype, "same_kind"):
        raise bad_option(name, "dtype")
    return shapes.to(t, dtype=dtype)


def _into(
    ufunc: Any, method: str, name: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """A result written where `out=` says: into a Tensor, or as by `array += t` into an array."""
    out = options.pop("out")
    if all(x is None or isinstance(x, Tensor) for x in out):
        casting = options.pop("casting", "same_kind")
        where = options.pop("where", True) if method == "__call__" else True
        if any(isinstance(x, Tensor) for x in inputs):
            found = call(ufunc, method, inputs, options)
        else:
            found = getattr(ufunc, method)(*inputs, **options)
        return writing.into(out, found, name, casting, where, spread=method == "__call__")
    if any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        raise TypeError(
            f"`{name}` into an array (`out=`, or `array += t`) would lose the history of a Tensor "
            "that requires grad: write `result = array + t`, or give it a Tensor to write into, "
            "as `np.zeros_like(t)`, or `t.detach().numpy()`"
        )
    if any(isinstance(x, Tensor) for x in out):
        raise TypeError(f"`{name}`: `out=` is either Tensors or arrays, got both")
    # A Tensor that a transform follows refuses: an array would lose its tangent, or its examples.
    values = [x.numpy() if isinstance(x, Tensor) else x for x in inputs]
    return getattr(ufunc, method)(*values, out=out, **options)
