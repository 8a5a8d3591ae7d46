"""Indexing, gathering, scattering, masks; reading here, writing in `inplace_methods`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, overload

import numpy as np

from tapegrad.base.abstract_array import everything
from tapegrad.base.call_site import SLICED
from tapegrad.base.dtypes import fitted
from tapegrad.base.native_arrays import native_array
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.index_plans import (
    chosen,
    flat_index,
    one_index,
    run_and_plan,
    run_planned,
    simple_index,
)
from tapegrad.dispatch.op_functions import as_operand
from tapegrad.dispatch.views import ViewRequest, view_of
from tapegrad.functions import shapes
from tapegrad.functions.arguments import (
    Indices,
    Operand,
    as_input,
    broadcast_but,
    index_array,
    one_dim,
)
from tapegrad.functions.arithmetic import add, where
from tapegrad.functions.elementwise import lt, mul
from tapegrad.functions.masked_elements import choose
from tapegrad.functions.method_decorators import axis_method, method
from tapegrad.functions.mixed_indexing import (
    byte_masks,
    numbers_first,
    of_bytes,
    protected,
    selected,
    taken,
    views,
    with_stacks,
)
from tapegrad.ops import index as i
from tapegrad.ops.index_layout import INT64
from tapegrad.ops.shape import alias, reshape
from tapegrad.ops.shape import getitem as _getitem
from tapegrad.tensor import Tensor, tensor_of, wrap

_MANY = frozenset((list, tuple, np.ndarray))


def parse(key: Any, x: Tensor) -> tuple[tuple[Any, ...], list[Tensor]]:
    """An index as a plan with holes and the index arrays that fill them.

    Masks become the arrays of their true places.
    """
    parts = key if isinstance(key, tuple) else (key,)
    plan: list[Any] = []
    arrays: list[Tensor] = []
    used = 0
    for part in parts:
        if part is None or part is Ellipsis:
            plan.append(part)
        elif isinstance(part, slice):
            plan.append(slice(*(_whole(edge) for edge in (part.start, part.stop, part.step))))
            used += 1
        elif views(part):
            plan.append(selected(part))
            used += 1
        else:
            used += _add_array(part, plan, arrays)
    if used > x._a.ndim:
        raise IndexError(f"too many indices ({used}) for a Tensor of shape {x._a.shape}")
    return tuple(plan), arrays


def _whole(edge: Any) -> Any:
    if not isinstance(edge, Tensor):
        return edge
    try:
        return int(edge)
    except RuntimeError as why:
        raise RuntimeError(SLICED) from why


def _add_array(part: Any, plan: list[Any], arrays: list[Tensor]) -> int:
    if isinstance(part, Tensor):
        array = part._a
    elif isinstance(part, (list, tuple, range, np.ndarray)):
        try:
            array = part if isinstance(part, np.ndarray) else np.asarray(part)
        except ValueError:
            raise IndexError(
                f"a {type(part).__name__} as an index is one array of integers: an index for each "
                "dimension is a tuple"
            ) from None
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(np.int64)
    else:
        raise IndexError(
            "an index is made of ints, slices, None, `...`, and integer or boolean Tensors, got "
            f"{type(part).__name__}"
        )
    if array.dtype.kind == "b" and array.ndim:
        for places in np.nonzero(tensor_of(part, "")._a):
            plan.append(i.HOLE)
            arrays.append(wrap(places))
        return array.ndim
    if array.dtype.kind not in "iu":
        raise IndexError(
            f"a Tensor used as an index must hold integers or booleans, got {array.dtype}"
        )
    plan.append(i.HOLE)
    arrays.append(tensor_of(part if isinstance(part, Tensor) else array, ""))
    return 1


def _truth(part: Any) -> bool:
    """Whether a part of an index is one truth value."""
    if isinstance(part, (bool, np.bool_)):
        return True
    array = part._a if isinstance(part, Tensor) else part
    return isinstance(array, np.ndarray) and array.dtype.kind == "b" and not array.ndim


def _without_truths(key: Any, x: Tensor) -> tuple[Any, Tensor]:
    """An index whose truth values are index arrays, for a view with a dimension more for each.

    A truth value takes no dimension, and gives one of one element, or of none if it is false.
    """
    parts = key if isinstance(key, tuple) else (key,)
    if not any(map(_truth, parts)):
        return key, x
    room: list[Any] = []  # the index that makes the new dimensions
    found: list[Any] = []
    for part in parts:
        if _truth(part):
            room.append(None)
            found.append(np.zeros(int(part), np.int64))
            continue
        found.append(part)
        if part is Ellipsis:
            room.append(part)
        elif part is not None:
            room += [slice(None)] * taken(part)
    return tuple(found), run(_getitem, (x,), {"index": tuple(room)})  # a view of a number, too


def _check_masks(key: Any, x: Tensor) -> None:
    parts = key if isinstance(key, tuple) else (key,)
    d = 0
    for part in parts:
        if part is None:
            continue
        if part is Ellipsis:
            return
        mask = (
            part._a if isinstance(part, Tensor) else part if isinstance(part, np.ndarray) else None
        )
        if mask is not None and mask.dtype.kind == "b":
            if mask.shape != x._a.shape[d : d + mask.ndim]:
                raise IndexError(
                    f"the shape of the mask {mask.shape} does not match the indexed Tensor of "
                    f"shape {x._a.shape} at dimension {d}"
                )
            d += mask.ndim
        else:
            d += 1


def _dots(key: Any) -> bool:
    """Whether an index has `...`, with which NumPy gives an array where it gives a number else."""
    return type(key) is tuple and any(part is Ellipsis for part in key)


@view_of
def getitem(input: Tensor, key: Any) -> Tensor | ViewRequest:
    """What stands at an index: a view for ints and slices, a copy for index arrays and masks."""
    if key.__class__ in _MANY:
        key = with_index_tensors(key)
    if key.__class__ is Tensor:
        key = places_of(key, input)
        found = run_planned(i.index, input, key, None)
        if found is not None:
            return found
    simple = simple_index(key)
    if simple is not None:
        index, said = simple
        try:
            r = input._a[index]
        except IndexError:
            pass  # which says what is wrong, below
        else:
            return ViewRequest(
                _getitem, input, {"index": index}, r, said, not (r.ndim or _dots(key))
            )
    masked = choose(input, key)
    if masked is not None:
        return masked  # type: ignore[return-value]
    alone = one_index(key, input._a.ndim)
    if alone is not None:
        try:
            return protected(chosen(input, *alone), key)
        except IndexError:
            pass  # likewise
    flat = flat_index(key, input)
    if flat is not None:
        rows = shapes.reshape(input, flat[0])
        found = run_planned(i.index, rows, flat[1], None)
        return chosen(rows, flat[1], 0) if found is None else found
    if type(key) is int:
        a = input._a
        if not a.ndim:
            raise IndexError("a 0-d Tensor cannot be indexed with a number: use `.item()`")
        raise IndexError(f"index {key} is out of range for dimension 0 of size {len(a)}")
    plan, arrays, input = parsed(key, input)
    try:
        if not arrays:
            element = not _dots(plan)
            if element:
                plan += (Ellipsis,)  # so that NumPy gives a view and never a scalar
            if all(part is Ellipsis or part == slice(None) for part in plan):
                r = input._a.view()
                return ViewRequest(alias, input, {}, r, (), element and not r.ndim)
            r = input._a[plan]
            return ViewRequest(_getitem, input, {"index": plan}, r, None, element and not r.ndim)
        return protected(run(i.index, (input, *arrays), {"plan": plan}), key)
    except IndexError as problem:
        raise IndexError(f"index of a Tensor of shape {input._a.shape}: {problem}") from None


def with_index_tensors(key: Any) -> Any:
    """An index in which lists of ints and of Tensors, and arrays of integers, are Tensors."""
    kind = key.__class__
    if kind is tuple and any(part.__class__ in _MANY for part in key):
        return tuple(map(with_index_tensors, key))
    if kind is np.ndarray and key.dtype is INT64 and key.ndim:
        return wrap(key.copy())
    if kind is list and all(type(k) is int for k in key):
        array = np.array(key)
        return wrap(array) if array.dtype is INT64 else key
    return with_stacks(key)


def places_of(key: Tensor, x: Tensor) -> Tensor | int:
    """A mask over the first dimension as the places where it holds; one place as a number.

    Any other key as it is.
    """
    mask = key._a
    if not mask.ndim:
        return selected(key) if views(key) and not of_bytes(key) else key
    if mask.dtype.char == "?" and mask.ndim == 1 and x._a.shape[:1] == mask.shape:
        return wrap(mask.nonzero()[0])
    return key


def parsed(key: Any, x: Tensor) -> tuple[tuple[Any, ...], list[Tensor], Tensor]:
    """An index as a plan and its arrays, and the view of the Tensor that they are meant for."""
    key, x = _without_truths(byte_masks(key), x)
    split = numbers_first(key)
    if split is not None:
        view, key = split
        x = getitem(x, view)
    _check_masks(key, x)
    return *parse(key, x), x


@axis_method
def index_select(input: Tensor, dim: int, index: Indices) -> Tensor:
    """The places along one dimension that an index names.

    >>> import tapegrad as tg
    >>> tg.index_select(tg.tensor([1.0, 2.0, 3.0]), 0, tg.tensor([2, 0]))
    tensor([3., 1.])
    """
    found = run_planned(i.select_rows, input, index, None, dim)
    if found is not None:
        return found
    x, k = as_input(input, "index_select"), index_array(index, "index_select")
    if k._a.ndim > 1:
        raise IndexError(f"`index_select`: the index must be a vector, got the shape {k._a.shape}")
    k = run(reshape, (k,), {"shape": (1,)}) if not k._a.ndim else k
    if not x._a.ndim:
        return run(
            i.index, (run(reshape, (x,), {"shape": (1,)}), wrap(k._a[0])), {"plan": (i.HOLE,)}
        )
    d = one_dim(dim, x._a.ndim, "index_select")
    _check_range(k._a, x._a.shape[d], "index_select", negative=False)
    return run_and_plan(i.select_rows, (x, k), {"dim": d}, index=k, how=dim)


def _check_range(index: np.ndarray, size: int, name: str, *, negative: bool) -> None:
    index = everything(index)
    from tapegrad.kernels.large.indexed_loops import inside

    if not inside(index, size):
        i.check_range(index, size, name, negative=negative)


@axis_method
def gather(input: Tensor, dim: int, index: Indices) -> Tensor:
    """For each place of `index`, the element of `input` that it names along `dim`.

    >>> import tapegrad as tg
    >>> tg.gather(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, tg.tensor([[1], [0]]))
    tensor([[2.],
            [3.]])
    """
    found = run_planned(i.gather, input, index, None, dim)
    if found is not None:
        return found
    x, k = as_input(input, "gather"), index_array(index, "gather")
    d = one_dim(dim, x._a.ndim, "gather")
    _check_gather(x._a.shape, k._a, d, "gather")
    return run_and_plan(i.gather, (x, k), {"dim": d}, index=k, how=dim)


@axis_method
def take_along_dim(input: Tensor, indices: Indices, dim: int | None = None) -> Tensor:
    """`gather`, with operands that are broadcast except along `dim`; flat without `dim`.

    Negative indices count from the end.

    >>> import tapegrad as tg
    >>> x = tg.tensor([[3.0, 1.0], [2.0, 4.0]])
    >>> tg.take_along_dim(x, x.argsort(1), 1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    x, k = as_input(input, "take_along_dim"), index_array(indices, "take_along_dim")
    if dim is None:
        x = run(reshape, (x,), {"shape": (x._a.size,)})
        k, dim = run(reshape, (k,), {"shape": (k._a.size,)}), 0
    if x._a.ndim != k._a.ndim:
        raise RuntimeError(
            "`take_along_dim`: Tensor and indices need as many dimensions, got the shapes "
            f"{x._a.shape} and {k._a.shape}"
        )
    d = one_dim(dim, x._a.ndim, "take_along_dim")
    if x._a.ndim:
        x, k = broadcast_but(d, x, k)
        found = run_planned(i.gather, x, k, None, d)  # that of indices none of which is negative
        if found is not None:
            return found
    size = x._a.shape[d] if x._a.ndim else 1
    _check_range(k._a, size, "take_along_dim", negative=True)
    if type(k._a) is not np.ndarray or not (k._a >= 0).all():
        k = where(lt(k, 0), add(k, size), k)
    return gather(x, d, k)


def _check_gather(shape: tuple[int, ...], index: np.ndarray, d: int, name: str) -> None:
    if max(index.ndim, 1) != max(len(shape), 1):
        raise RuntimeError(
            f"`{name}`: the index needs as many dimensions as the Tensor, got {index.shape} "
            f"for {shape}"
        )
    if any(n != d and a > b for n, (a, b) in enumerate(zip(index.shape, shape, strict=False))):
        raise RuntimeError(
            f"`{name}`: the index of shape {index.shape} is larger than the Tensor of shape "
            f"{shape} in a dimension other than {d}"
        )


def _scatter_parts(
    input: Any, dim: int, index: Any, src: Any, name: str
) -> tuple[Tensor, int, Tensor, Any]:
    x, k = as_input(input, name), index_array(index, name)
    d = one_dim(dim, x._a.ndim, name)
    _check_gather(x._a.shape, k._a, d, name)
    if x._a.ndim and not k._a.ndim:
        k = run(reshape, (k,), {"shape": (1,)})  # one place
    if not isinstance(src, Tensor):
        src = fitted(as_operand(src), x._a.dtype, name)
        return x, d, k, src
    if src._a.dtype != x._a.dtype:
        raise RuntimeError(
            f"`{name}`: source and Tensor must have one dtype, got {src.dtype} and {x.dtype}"
        )
    needed, have = k._a.shape or (1,), src._a.shape
    if have and (len(have) != len(needed) or any(a > b for a, b in zip(needed, have, strict=True))):
        raise RuntimeError(
            f"`{name}`: the source needs the dimensions of the index, {k._a.shape}, none "
            f"of them smaller; got the shape {have}"
        )
    if have and not k._a.ndim:
        src = src[(0,) * len(have)]
    return x, d, k, src


@axis_method
def scatter(
    input: Tensor,
    dim: int,
    index: Indices,
    src: Tensor | complex | None = None,
    *,
    value: complex | None = None,
    reduce: str | None = None,
) -> Tensor:
    """A copy in which the elements that `index` names along `dim` are taken from `src`.

    With `reduce` they are combined with those of `src`: "add", "multiply".

    >>> import tapegrad as tg
    >>> tg.scatter(tg.zeros(3), 0, tg.tensor([2]), tg.tensor([5.0]))
    tensor([0., 0., 5.])
    """
    source = value if src is None else src
    if reduce is not None:
        from tapegrad.functions.combined_scatter import combined

        return combined(*_scatter_parts(input, dim, index, source, "scatter"), reduce)
    found = run_planned(i.scatter, input, index, source, dim)
    if found is not None:
        return found
    x, d, k, s = _scatter_parts(input, dim, index, source, "scatter")
    return run_and_plan(i.scatter, (x, k, s), {"dim": d}, index=k, value=source, how=dim)


@axis_method
def scatter_add(input: Tensor, dim: int, index: Indices, src: Tensor | complex) -> Tensor:
    """A copy to which the elements of `src` are added at the places that `index` names.

    >>> import tapegrad as tg
    >>> tg.scatter_add(tg.zeros(2), 0, tg.tensor([0, 0]), tg.tensor([1.0, 2.0]))
    tensor([3., 0.])
    """
    found = run_planned(i.scatter_add, input, index, src, dim)
    if found is not None:
        return found
    x, d, k, s = _scatter_parts(input, dim, index, src, "scatter_add")
    return run_and_plan(i.scatter_add, (x, k, s), {"dim": d}, index=k, value=src, how=dim)


def index_add_parts(input: Any, dim: int, index: Any, source: Any, alpha: Any) -> Any:
    """Operands and parameters of `index_add`, checked."""
    x, s = as_input(input, "index_add"), as_input(source, "index_add")
    k = index_array(index, "index_add")
    d = one_dim(dim, x._a.ndim, "index_add")
    k = k if k._a.ndim else run(reshape, (k,), {"shape": (1,)})
    if k._a.ndim != 1:
        raise IndexError(f"`index_add`: the index must be a vector, got the shape {k._a.shape}")
    expected = (*x._a.shape[:d], len(k._a), *x._a.shape[d + 1 :])
    if s._a.shape != expected:
        raise RuntimeError(
            f"`index_add`: the source must have the shape {expected}, got {s._a.shape}"
        )
    if s._a.dtype != x._a.dtype:
        raise RuntimeError(
            f"`index_add`: source and Tensor must have one dtype, got {s.dtype} and {x.dtype}"
        )
    _check_range(k._a, x._a.shape[d], "index_add", negative=False)
    return (x, k, s if alpha == 1 else mul(s, alpha)), {"dim": d}


@axis_method
def index_add(
    input: Tensor, dim: int, index: Indices, source: Tensor | np.ndarray, *, alpha: Operand = 1
) -> Tensor:
    """A copy to which the slices of `source` are added at the places of `index`.

    >>> import tapegrad as tg
    >>> tg.index_add(tg.zeros(2), 0, tg.tensor([1, 1]), tg.tensor([1.0, 2.0]))
    tensor([0., 3.])
    """
    plain = alpha.__class__ is int and alpha == 1
    if plain and (found := run_planned(i.index_add, input, index, source, dim)) is not None:
        return found
    if not (x := as_input(input, "index_add"))._a.ndim:
        vector = index_add(_vector(x), dim, index, _vector(source), alpha=alpha)
        return run(reshape, (vector,), {"shape": ()})
    args, params = index_add_parts(x, dim, index, source, alpha)
    return run_and_plan(i.index_add, args, params, index=index, value=source, how=dim)


def _vector(x: Any) -> Any:
    """A 0-d Tensor as a vector of one element: a view; anything else as it is."""
    return run(reshape, (x,), {"shape": (1,)}) if isinstance(x, Tensor) and not x._a.ndim else x


def index_put_parts(input: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    """Operands and parameters of `index_put`, checked."""
    x = as_input(input, "index_put")
    key = byte_masks(tuple(indices))
    if any(part is None for part in key):
        key = tuple(slice(None) if part is None else part for part in key)
    _check_masks(key, x)
    plan, arrays = parse(key, x)
    value = values
    if not isinstance(values, Tensor):
        value = wrap(np.asarray(native_array(values, "index_put"), x._a.dtype))
    if value._a.dtype != x._a.dtype:
        raise RuntimeError(
            f"`index_put`: values and Tensor must have one dtype, got {value.dtype} and {x.dtype}"
        )
    value = shapes.without_front(value, i.place_rank(x, plan, arrays))
    return (x, value, *arrays), {"plan": plan, "accumulate": accumulate}


@method
def index_put(
    input: Tensor, indices: Sequence[Any], values: Indices, accumulate: bool = False
) -> Tensor:
    """A copy with values put (or added) at the places that index arrays name.

    >>> import tapegrad as tg
    >>> tg.index_put(tg.zeros(3), (tg.tensor([0, 2]),), tg.tensor(1.0))
    tensor([1., 0., 1.])
    """
    index, how = index_and_mode(indices, accumulate)
    found = run_planned(i.index_put, input, index, values, how)
    if found is not None:
        return found
    args, params = index_put_parts(input, indices, values, accumulate)
    with fitting(args):
        return run_and_plan(i.index_put, args, params, index=index, value=values, how=how)


def index_and_mode(indices: Any, accumulate: Any) -> tuple[Any, Any]:
    """The single index array of `index_put`, and `accumulate` as an int.

    `...` stands for what compiled code does not support.
    """
    one = type(indices) is tuple and len(indices) == 1 and indices[0].__class__ is Tensor
    index = indices[0] if one and indices[0]._a.dtype is INT64 else ...
    return index, int(accumulate) if type(accumulate) is bool else ...


@contextmanager
def fitting(args: Any) -> Iterator[None]:
    """Say in our words that values do not fit the places that index arrays name."""
    try:
        yield
    except ValueError:
        x, value, *arrays = (arg._a.shape for arg in args)
        raise RuntimeError(
            f"`index_put`: values of shape {value} do not broadcast to the places that indices of "
            f"the shapes {', '.join(map(str, arrays))} name in a Tensor of shape {x}"
        ) from None


@method
def take(input: Any, index: Any) -> Tensor:
    """Elements by their place in the flattened Tensor.

    >>> import tapegrad as tg
    >>> tg.take(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([0, 3]))
    tensor([1., 4.])
    """
    x = as_input(input, "take")
    flat = x if x._a.ndim == 1 else shapes.reshape(x, (x._a.size,))
    found = run_planned(i.index, flat, index, None)
    if found is not None:
        return found
    k = index_array(index, "take")
    _check_range(k._a, x._a.size, "take", negative=True)
    return run_and_plan(i.index, (flat, k), {"plan": (i.HOLE,)}, index=k)


@overload
def nonzero(input: Tensor, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(input: Tensor, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@method
def nonzero(input: Tensor, as_tuple: bool = False) -> Any:
    """The places of the elements that are not zero.

    >>> import tapegrad as tg
    >>> tg.nonzero(tg.tensor([0, 5]))
    tensor([[1]])
    """
    a = as_input(input, "nonzero")._a
    places = np.nonzero(a if a.ndim else a.reshape(1))
    if as_tuple:
        return tuple(wrap(p) for p in places)
    return wrap(np.stack(places, 1)[:, : a.ndim])


@method
def argwhere(input: Tensor) -> Tensor:
    """The places of the elements that are not zero, one a row.

    >>> import tapegrad as tg
    >>> tg.argwhere(tg.tensor([[0, 5], [7, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return nonzero(input)
