"""Operations that write into their first operand: ``x.add_(y)``, ``x[i] = y``, ``x.zero_()``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.base.dtypes import category, fitted
from tapegrad.base.native_arrays import native_array
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.index_plans import run_planned, simple_index
from tapegrad.dispatch.inplace import overlaps, overwrite, put_and_plan, run_inplace, written
from tapegrad.dispatch.layout_history import same_elements
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.dispatch.op_functions import as_operand
from tapegrad.dispatch.views import make_view
from tapegrad.functions import indexing, masking, rounding, shapes
from tapegrad.functions.arguments import Indices, Operand, as_input, holds_tensor, one_dim
from tapegrad.functions.arithmetic import clamping, numerator, scaled
from tapegrad.functions.joining import stacked
from tapegrad.functions.masked_elements import MaskedElements, behind_mask, merged, spread
from tapegrad.functions.method_decorators import method
from tapegrad.functions.mixed_indexing import with_stacks
from tapegrad.ops import elementwise as e
from tapegrad.ops import index as ix
from tapegrad.ops import shape as s
from tapegrad.ops.core import Op, by_code
from tapegrad.ops.reduce import cumsum
from tapegrad.ops.scan import cumprod
from tapegrad.tensor import COPY, Tensor, View, wrap


def of_row(op: Op) -> Any:
    """The in-place form of a row that says it has one."""
    function: Any
    if len(op.inputs) == 1:
        function = lambda self: run_inplace(op, (self,), {}, self)
    elif op.paired:
        function = lambda self, other: run_inplace(op, (self, as_operand(other)), {}, self)
    else:
        function = written(op)
    function.__name__ = function.__qualname__ = f"{op.name}_"
    function.__doc__ = f"`{op.name}` in place."
    return function


OF_ROWS: dict[str, Any] = {
    f"{name}_": function
    for op in by_code
    if op.inplace
    for function in [of_row(op)]
    for name in op.names
}
iadd, isub, idiv = written(e.add), written(e.sub), written(e.div)


def augmented(change: Any, plain: Any, op: Op | None = None) -> Any:
    """The operator ``x += y`` of `change`, or the quicker one of an operation.

    Inside of a transform what has no dimensions stands for a number of NumPy's, which cannot be
    changed: there the name gets another one, and who else holds the number keeps what it was.
    A view without dimensions, as `y[0, ...]` is, is an array to NumPy, too, and is written into.
    """

    def anew(target: Tensor, other: Any) -> Tensor | None:
        home = target._home
        if type(home) is not View or home.frozen != COPY:  # which `x[i] += y` puts back itself
            number = not target._a.ndim and numpys()
            if not number or (type(home) is View and home.base is not None):
                return None
        # Of a copy: views may still write into the target, whose value the record keeps.
        made: Tensor = plain(run(s.clone, (target,), {}), other)
        return made

    def function(target: Tensor, other: Any) -> Tensor:
        found = anew(target, other)
        return change(target, other) if found is None else found

    return function if op is None else written(op, anew)


@method
def add_(self: Tensor, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """`add` in place."""
    return iadd(self, scaled("add", alpha, other, self))


@method
def sub_(self: Tensor, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """`sub` in place."""
    return isub(self, scaled("sub", alpha, other, self))


@method
def sign_(self: Tensor) -> Tensor:
    """`sign` in place."""
    return run_inplace(s.clone if self._a.dtype.kind == "b" else e.sign, (self,), {}, self)


@method
def heaviside_(self: Tensor, values: Operand) -> Tensor:
    """`heaviside` in place."""
    return copy_(self, rounding.heaviside(self, values))


@method
def div_(self: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """`div` in place."""
    if rounding_mode == "floor":
        return run_inplace(e.floor_divide, (self, as_operand(other)), {}, self)
    if rounding_mode is not None:
        raise RuntimeError(f"`div_`: rounding_mode is None or 'floor', got {rounding_mode!r}")
    return idiv(self, other)


@method
def pow_(self: Tensor, exponent: Operand) -> Tensor:
    """`pow` in place."""
    known = {2: e.square, 3: e.cube, 0.5: e.sqrt, -1: e.reciprocal}
    if isinstance(exponent, (int, float)) and exponent in known and self._a.dtype.kind == "f":
        return run_inplace(known[exponent], (self,), {}, self)
    return run_inplace(e.pow, (self, as_operand(exponent)), {}, self)


@method
def clamp_(self: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """`clamp` in place."""
    if min is None and max is None:
        raise RuntimeError("`clamp_` needs at least one of `min` and `max`")
    op, bounds = clamping(min, max)
    return run_inplace(op, (self, *bounds), {}, self)


@method
def round_(self: Tensor, *, decimals: int = 0) -> Tensor:
    """`round` in place."""
    if decimals or self._a.dtype.kind in "biu":
        return copy_(self, rounding.round(self, decimals=decimals))
    return run_inplace(e.round, (self,), {}, self)


@method
def nan_to_num_(
    self: Tensor, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """`nan_to_num` in place."""
    if self._a.dtype.kind in "biu":
        return self
    if self._a.dtype.kind == "c":
        return copy_(self, rounding.nan_to_num(self, nan, posinf, neginf))
    finite, other = rounding.replacement(self, nan or 0.0, posinf, neginf)
    return run_inplace(e.where, (finite, self, other), {}, self)


@method
def addcmul_(self: Tensor, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """`addcmul` in place."""
    factor = scaled("addcmul", value, tensor1, self, tensor2)
    return run_inplace(e.addcmul, (self, as_operand(factor), as_operand(tensor2)), {}, self)


@method
def addcdiv_(self: Tensor, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """`addcdiv` in place."""
    top = numerator(value, tensor1, tensor2, self)
    return run_inplace(e.addcdiv, (self, as_operand(top), as_operand(tensor2)), {}, self)


@method
def lerp_(self: Tensor, end: Operand, weight: Operand) -> Tensor:
    """`lerp` in place."""
    return run_inplace(e.lerp, (self, as_operand(end), as_operand(weight)), {}, self)


def _value(value: Any, name: str) -> Any:
    """What is written somewhere: a Tensor, or an array of what else was given."""
    if isinstance(value, Tensor):
        return value
    number = isinstance(value, (bool, int, float, complex))  # which may be too large for int64
    return np.asarray(value) if number else native_array(value, name)


def _assign(self: Tensor, value: Any, index: Any, name: str, how: Any = ()) -> Tensor:
    """Write a value at an index; `how` says the index in a way that can be a key of a dict."""
    found = run_planned(ix.assign, self, None, value, how, True)
    if found is not None:
        return found
    shape = self._a[index].shape if self._a.size else np.empty(self._a.shape)[index].shape
    v = _value(value, name)
    given = v._a if isinstance(v, Tensor) else v
    if given.dtype != self._a.dtype:
        v = _cast(v, self, name)
    extra = given.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in given.shape[:extra]):
        squeezed = given.shape[extra:]

        v = (
            run(s.reshape, (v,), {"shape": squeezed})
            if isinstance(v, Tensor)
            else v.reshape(squeezed)
        )
        given = v._a if isinstance(v, Tensor) else v
    if index != (...,) and type(self) is Tensor and overlaps(self._a):  # not all of it is written
        part = make_view(s.getitem, self, {"index": index}, self._a[index])
        _assign(part, v, (...,), name)
        return self
    try:
        fits = np.broadcast_shapes(given.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise RuntimeError(
            f"a value of shape {given.shape} cannot be broadcast to the place of shape {shape} "
            "that it is assigned to"
        )
    return put_and_plan(
        ix.assign, (self, v), {"index": index}, self, value=value, how=how, name=name
    )


def _cast(v: Any, target: Tensor, name: str = "x[...] = value") -> Any:
    """A value in the type of what it is written into; complex numbers do not fit into real ones."""
    kind = target._a.dtype
    given = v._a.dtype if isinstance(v, Tensor) else v.dtype
    if category(given) == 3 and category(kind) < 3:
        raise RuntimeError(f"complex values cannot be written into a Tensor of {target.dtype}")
    if isinstance(v, Tensor):
        return run(s.to, (v,), {"dtype": kind})
    return v.astype(kind) if v.ndim else fitted(v, kind, name)


def _chosen(v: Any, target: Tensor) -> Tensor:
    """A value for places that index arrays name, which takes no fractions away from it."""
    if not isinstance(v, Tensor):
        return wrap(v if v.dtype == target._a.dtype else _cast(v, target))
    if v._a.dtype == target._a.dtype:
        return v
    if category(v._a.dtype) > category(target._a.dtype):
        raise RuntimeError(
            f"assignment by index arrays: values of {v.dtype} cannot be put into a Tensor of "
            f"{target.dtype}: convert them with `.to`"
        )
    return _cast(v, target)  # type: ignore[no-any-return]


def _stands_at(view: Tensor, target: Tensor, index: Any) -> bool:
    """Whether a Tensor is the view at an index, as after ``target[index] += x``."""
    home, whole = view._home, target._home
    base = target
    if isinstance(whole, View):
        if whole.frozen or whole.base is None:
            return False
        base = whole.base
    if not isinstance(home, View) or home.base is not base or home.frozen:
        return False
    return same_elements(target._a[index], view._a)


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value``."""
    if isinstance(value, (list, tuple)) and holds_tensor(value):
        value = stacked(value)
    key = with_stacks(key)
    masked = behind_mask(key, self)
    if masked is not None:
        mask, rest = masked
        part = self[rest] if rest else self
        if isinstance(value, MaskedElements) or np.ndim(value):
            copy_(part, merged(part, mask, value))
        else:
            masked_fill_(part, spread(mask, part), value)
        return
    if type(key) is Tensor:
        key = indexing.places_of(key, self)
    simple = simple_index(key)
    if simple is not None:
        if (
            type(value) is Tensor
            and type(value._home) is View
            and _stands_at(value, self, simple[0])
        ):
            return
        if run_planned(ix.assign, self, None, value, simple[1], True) is not None:
            return
    elif type(key) is Tensor and run_planned(ix.index_put, self, key, value, 0, True) is not None:
        return
    target = self
    plan, arrays, self = indexing.parsed(key, self)
    how = ... if simple is None or self is not target else simple[1]
    try:
        if not arrays:
            index = (*plan, ...) if Ellipsis not in plan else plan
            _assign(self, value, index, "x[...] = value", how)
            return
        v = _chosen(_value(value, "x[...] = value"), self)
        v = shapes.without_front(v, ix.place_rank(self, plan, arrays))
        put_and_plan(
            ix.index_put,
            (self, v, *arrays),
            {"plan": plan, "accumulate": False},
            self,
            index=key if len(arrays) == 1 and arrays[0] is key else ...,
            value=value,
            how=0,
        )
    except IndexError as problem:
        raise IndexError(f"index of a Tensor of shape {self._a.shape}: {problem}") from None
    except ValueError as problem:
        raise RuntimeError(f"assignment to a Tensor of shape {self._a.shape}: {problem}") from None


@method
def copy_(self: Tensor, src: Operand, non_blocking: bool = False) -> Tensor:
    """Write the elements of another Tensor here, or a number; gradients flow to it."""
    if src.__class__ is Tensor and overwrite(self, src):
        return self
    one = isinstance(src, (bool, int, float, complex))
    return _assign(self, src if one else as_input(src, "copy_"), (...,), "copy_")


@method
def fill_(self: Tensor, value: Operand) -> Tensor:
    """Write one number everywhere."""
    if value.__class__ is float and overwrite(self, value):
        return self
    v = value if isinstance(value, Tensor) else np.asarray(as_operand(value))
    if (v._a if isinstance(v, Tensor) else v).ndim:
        raise RuntimeError("`fill_` fills with one number, got a value with dimensions")
    return _assign(self, value if type(value) in (int, float) else v, (...,), "fill_")


@method
def zero_(self: Tensor) -> Tensor:
    """Write zeros everywhere."""
    if overwrite(self, 0.0):
        return self
    zero = np.zeros((), self._a.dtype) if self._s == -1 else 0.0
    return _assign(self, zero, (...,), "zero_")


@method
def masked_fill_(self: Tensor, mask: Tensor | np.ndarray, value: Operand) -> Tensor:
    """`masked_fill` in place."""
    found = run_planned(ix.masked_fill, self, mask, value, None, True)
    if found is not None:
        return found
    args = masking.fill_parts(self, mask, value)
    return put_and_plan(ix.masked_fill, args, {}, self, index=mask, value=value)


@method
def index_add_(
    self: Tensor, dim: int, index: Indices, source: Tensor | np.ndarray, *, alpha: Operand = 1
) -> Tensor:
    """`index_add` in place."""
    plain = alpha.__class__ is int and alpha == 1
    if plain and (found := run_planned(ix.index_add, self, index, source, dim, True)) is not None:
        return found
    if not self._a.ndim:
        index_add_(indexing._vector(self), dim, index, indexing._vector(source), alpha=alpha)
        return self
    args, params = indexing.index_add_parts(self, dim, index, source, alpha)
    return put_and_plan(ix.index_add, args, params, self, index=index, value=source, how=dim)


@method
def index_put_(
    self: Tensor, indices: Sequence[Any], values: Indices, accumulate: bool = False
) -> Tensor:
    """`index_put` in place."""
    index, how = indexing.index_and_mode(indices, accumulate)
    found = run_planned(ix.index_put, self, index, values, how, True)
    if found is not None:
        return found
    args, params = indexing.index_put_parts(self, indices, values, accumulate)
    with indexing.fitting(args):
        return put_and_plan(ix.index_put, args, params, self, index=index, value=values, how=how)


@method
def scatter_(
    self: Tensor,
    dim: int,
    index: Indices,
    src: Tensor | complex | None = None,
    *,
    value: complex | None = None,
    reduce: str | None = None,
) -> Tensor:
    """`scatter` in place."""
    source = value if src is None else src
    if reduce is not None:
        before = run(s.clone, (self,), {})  # which the gradient reads
        return copy_(self, indexing.scatter(before, dim, index, source, reduce=reduce))
    found = run_planned(ix.scatter, self, index, source, dim, True)
    if found is not None:
        return found
    x, d, k, v = indexing._scatter_parts(self, dim, index, source, "scatter")
    return put_and_plan(ix.scatter, (x, k, v), {"dim": d}, self, index=k, value=source, how=dim)


@method
def scatter_add_(self: Tensor, dim: int, index: Indices, src: Tensor | complex) -> Tensor:
    """`scatter_add` in place."""
    found = run_planned(ix.scatter_add, self, index, src, dim, True)
    if found is not None:
        return found
    x, d, k, v = indexing._scatter_parts(self, dim, index, src, "scatter_add")
    return put_and_plan(ix.scatter_add, (x, k, v), {"dim": d}, self, index=k, value=src, how=dim)


@method
def cumsum_(self: Tensor, dim: int) -> Tensor:
    """`cumsum` in place."""
    return run_inplace(cumsum, (self,), {"dim": one_dim(dim, self._a.ndim, "cumsum_")}, self)


@method
def cumprod_(self: Tensor, dim: int) -> Tensor:
    """`cumprod` in place."""
    return run_inplace(cumprod, (self,), {"dim": one_dim(dim, self._a.ndim, "cumprod_")}, self)


@method
def tril_(self: Tensor, diagonal: int = 0) -> Tensor:
    """`tril` in place."""
    found = run_planned(s.tril, self, None, None, diagonal, True)
    if found is not None:
        return found
    return put_and_plan(s.tril, (self,), {"diagonal": diagonal}, self, how=diagonal)


@method
def triu_(self: Tensor, diagonal: int = 0) -> Tensor:
    """`triu` in place."""
    found = run_planned(s.triu, self, None, None, diagonal, True)
    if found is not None:
        return found
    return put_and_plan(s.triu, (self,), {"diagonal": diagonal}, self, how=diagonal)


clip_ = method(clamp_, "clip_")
method(sub_, "subtract_")
method(div_, "divide_", "true_divide_")
