"""Joining Tensors to one and taking one apart into views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.dtypes import result_type
from tapegrad.dispatch.call_plans import join_plan
from tapegrad.dispatch.dispatch import resolve, run
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.record_layout import layout_of
from tapegrad.dispatch.views import MultiViewRequest, make_view, view_of
from tapegrad.functions.arguments import as_input, has_dims, numpy_names, one_dim
from tapegrad.functions.method_decorators import axis_view_method, method
from tapegrad.functions.shapes import reshape, unsqueeze
from tapegrad.native.abi import MOST_OPERANDS, CallPlan
from tapegrad.ops import shape as s
from tapegrad.ops.core import Op
from tapegrad.tape.record_format import DTYPE_BITS
from tapegrad.tape.shape_table import LARGE, Shape
from tapegrad.tape.tape import MODE_FAST, current
from tapegrad.tensor import Tensor, placed, tensor_of, wrap


@numpy_names
def cat(tensors: Any, dim: int = 0) -> Tensor:
    """Tensors one after the other along a dimension.

    >>> import tapegrad as tg
    >>> tg.cat([tg.ones(1), tg.zeros(1)])
    tensor([1., 0.])
    """
    found = _joined_natively(s.cat, tensors, dim)
    if found is not None:
        return found
    parts = _parts(tensors, "cat", ValueError)
    found = _joined(s.cat, parts, dim)
    if found is not None:
        return found
    shaped = [x for x in parts if x._a.shape != (0,)] or parts[:1]
    d = one_dim(dim, shaped[0]._a.ndim, "cat")
    first = shaped[0]._a.shape
    for x in shaped:
        if not first or x._a.ndim != len(first):
            raise RuntimeError(
                "`cat`: all Tensors need the same number of dimensions (at least one), got the "
                f"shapes {[y._a.shape for y in parts]}"
            )
        if any(i != d and n != m for i, (n, m) in enumerate(zip(first, x._a.shape, strict=True))):
            raise RuntimeError(
                f"`cat`: sizes must agree except in dimension {dim}, got the shapes "
                f"{[y._a.shape for y in parts]}"
            )
    kept = {id(x) for x in shaped}
    alike = zip(parts, _one_type(parts), strict=True)  # what is left out has its say in the type
    return run(s.cat, tuple(y for x, y in alike if id(x) in kept), {"dim": d})


concat = concatenate = cat
COMPLEX = (np.dtype(np.complex128), np.dtype(np.complex64))


@numpy_names
def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Tensors of one shape along a new dimension.

    >>> import tapegrad as tg
    >>> tg.stack([tg.ones(2), tg.zeros(2)])
    tensor([[1., 1.],
            [0., 0.]])
    """
    found = _joined_natively(s.stack, tensors, dim)
    if found is not None:
        return found
    parts = _parts(tensors, "stack")
    found = _joined(s.stack, parts, dim)
    if found is not None:
        return found
    if any(x._a.shape != parts[0]._a.shape for x in parts):
        raise RuntimeError(
            f"`stack`: all Tensors need the same shape, got {[x._a.shape for x in parts]}"
        )
    return run(
        s.stack, tuple(_one_type(parts)), {"dim": one_dim(dim, parts[0]._a.ndim + 1, "stack")}
    )


def stacked(nested: Any) -> Tensor:
    """Tensors and numbers in lists, however deep, as NumPy makes one array of arrays there."""
    if isinstance(nested, (list, tuple)):
        return stack([stacked(part) for part in nested])
    return tensor_of(nested, "")


def _joined_natively(op: Op, tensors: Any, dim: Any) -> Tensor | None:
    """`cat` or `stack` of a few small Tensors in compiled code, if this has come before."""
    compiled, kind = native_calls.planned, tensors.__class__
    if compiled is None or (kind is not tuple and kind is not list) or dim.__class__ is not int:
        return None
    key = (op, dim, *[getattr(x, "_s", None) for x in tensors])
    plan = _plans.get(_key_of_complex(op, dim, tensors) if -1 in key[2:] else key)
    return None if plan is None or plan.native is None else compiled(plan.native, *tensors)


def _key_of_complex(op: Op, dim: int, tensors: Any) -> Any:
    """The key of a call whose operands are all of one complex type; None for others."""
    kind = getattr(getattr(tensors[0], "_a", None), "dtype", None)
    if kind not in COMPLEX:
        return None
    shapes = [x._a.shape for x in tensors if type(x) is Tensor and x._a.dtype is kind]
    return (op, dim, kind, *shapes) if len(shapes) == len(tensors) else None


def _joined(op: Op, parts: list[Tensor], dim: Any) -> Tensor | None:
    """`cat` or `stack` of small Tensors of one type by a fast path; None where it does not lead.

    What follows from their shapes is worked out once.
    """
    tape = current.tape
    if type(dim) is not int or tape.mode != MODE_FAST or tape.inference:
        return None
    recorded, kind = False, parts[0]._a.dtype
    for x in parts:
        if type(x) is not Tensor or x._a.dtype is not kind or (x._s == -1 and kind not in COMPLEX):
            return None
        if x._home is not None and x._home is not tape and not resolve(x, tape):
            return None
        recorded |= x._pos != 0
    key: Any = (op, dim, *[x._s for x in parts])
    if kind in COMPLEX:
        key = _key_of_complex(op, dim, parts)
    plan = _plans.get(key) or _plan(parts, key)
    if plan is None:
        return None
    word, shape, aux, entry, _ = plan
    r = np.empty(shape, kind)
    if op is s.cat:
        np.concatenate([x._a for x in parts], dim, out=r)
    elif dim:
        np.stack([x._a for x in parts], dim, out=r)
    else:
        for k, x in enumerate(parts):
            r[k] = x._a
    if not recorded:
        return wrap(r)
    if r.size > LARGE:
        tape.add_debt(r.nbytes)
    places = [x._pos for x in parts]
    return placed(r, tape, tape.append(word, places, shape, aux, entry, parts))


class _Plan(NamedTuple):
    """The word of a record, the shape of the whole, where the sweep finds how its parts lie, what
    the record keeps, and what compiled code does of it.
    """

    word: int
    shape: Shape
    aux: int
    entry: Any
    native: CallPlan | None


_plans: dict[Any, _Plan] = {}


def _plan(parts: list[Tensor], key: Any) -> _Plan | None:
    """The plan of a call; None for what is wrong, or nothing that the compiled sweep knows."""
    op, dim = key[:2]
    arrays = [x._a for x in parts]
    ndim = arrays[0].ndim + (op is s.stack)
    if not -ndim <= dim < ndim or any(a.shape == (0,) for a in arrays):
        return None  # `cat` leaves empty vectors out
    try:
        result = op.forward(*arrays, dim=dim % ndim)
    except ValueError:
        return None
    params = {"dim": dim % ndim}
    layout = layout_of(op, arrays, result, params)
    if layout is None:
        return None
    if len(_plans) > 4096:
        _plans.clear()
    kind = arrays[0].dtype
    specs = tuple([(a.shape, kind) for a in arrays])
    entry = (*(None,) * (len(arrays) + 1), (params, specs))
    word = op.code | DTYPE_BITS[kind] | layout[0]
    native = None
    if len(arrays) <= MOST_OPERANDS:
        rows = math.prod(result.shape[: dim % ndim]) or 1
        native = join_plan(op, arrays, result, layout, params, rows)
    _plans[key] = found = _Plan(word, result.shape, layout[1], entry, native)
    return found


def _at_least(n: int, tensors: Any, name: str) -> list[Tensor]:
    """The Tensors with at least n dimensions: a number becomes a vector, a vector a row."""
    parts = _parts(tensors, name)
    if n > 0:
        parts = [reshape(x, (1,)) if not x._a.ndim else x for x in parts]
    if n > 1:
        parts = [unsqueeze(x, 0) if x._a.ndim == 1 else x for x in parts]
    if n > 2:
        parts = [unsqueeze(x, 2) if x._a.ndim == 2 else x for x in parts]
    return parts


def hstack(tensors: Any) -> Tensor:
    """Tensors one after the other along the second dimension; vectors along their only one.

    >>> import tapegrad as tg
    >>> tg.hstack([tg.ones(1), tg.zeros(2)])
    tensor([1., 0., 0.])
    """
    parts = _at_least(1, tensors, "hstack")
    return cat(parts, 0 if parts[0]._a.ndim == 1 else 1)


def vstack(tensors: Any) -> Tensor:
    """Tensors one below the other; a vector is a row.

    >>> import tapegrad as tg
    >>> tg.vstack([tg.ones(2), tg.zeros(2)])
    tensor([[1., 1.],
            [0., 0.]])
    """
    return cat(_at_least(2, tensors, "vstack"), 0)


row_stack = vstack


def dstack(tensors: Any) -> Tensor:
    """Tensors one behind the other, along the third dimension.

    >>> import tapegrad as tg
    >>> tg.dstack([tg.ones(2), tg.zeros(2)]).shape
    tapegrad.Size([1, 2, 2])
    """
    return cat(_at_least(3, tensors, "dstack"), 2)


def column_stack(tensors: Any) -> Tensor:
    """Tensors side by side; a vector is a column.

    >>> import tapegrad as tg
    >>> tg.column_stack([tg.ones(2), tg.zeros(2)])
    tensor([[1., 0.],
            [1., 0.]])
    """
    parts = _parts(tensors, "column_stack")
    return hstack([reshape(x, (x._a.size, 1)) if x._a.ndim < 2 else x for x in parts])


def _parts(tensors: Any, name: str, problem: type[Exception] = RuntimeError) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        raise TypeError(f"`{name}` takes a sequence of Tensors, got one Tensor")
    parts = [as_input(x, name) for x in tensors]
    if not parts:
        raise problem(f"`{name}` needs at least one Tensor")
    return parts


def _one_type(parts: list[Tensor]) -> list[Tensor]:
    if all(x._a.dtype == parts[0]._a.dtype for x in parts):
        return parts
    kind = result_type([x._a for x in parts])
    return [x if x._a.dtype == kind else run(s.to, (x,), {"dtype": kind}) for x in parts]


def _pieces(x: Tensor, d: int, edges: list[int], together: bool = True) -> MultiViewRequest:
    before = (slice(None),) * d
    indices = lambda: [(*before, slice(a, b)) for a, b in pairwise(edges)]
    return MultiViewRequest(x, (d, *edges), indices, together=together)


def _given(name: str, argument: str, other: Any) -> Any:
    """An argument under its other name; not to give it is an error."""
    if other is None:
        raise TypeError(f"`{name}` needs the argument `{argument}`")
    return other


@method
@view_of
def split(
    tensor: Tensor,
    split_size_or_sections: int | Sequence[int] | None = None,
    dim: int = 0,
    *,
    split_size: int | Sequence[int] | None = None,
) -> MultiViewRequest:
    """Pieces of a given size (or sizes) along a dimension; views.

    >>> import tapegrad as tg
    >>> [len(part) for part in tg.split(tg.arange(5), 2)]
    [2, 2, 1]
    """
    x = has_dims(as_input(tensor, "split"), "split")
    if split_size_or_sections is None:
        split_size_or_sections = _given("split", "split_size_or_sections", split_size)
    return _split(x, split_size_or_sections, dim)


def _split(x: Tensor, split_size_or_sections: Any, dim: int) -> MultiViewRequest:
    d = one_dim(dim, x._a.ndim, "split")
    n = x._a.shape[d]
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 0 or (size == 0 and n):
            raise RuntimeError(f"`split`: the size of a piece must be positive, got {size}")
        edges = [*range(0, n, size or 1), n] if n else [0, 0]
    else:
        sections = [int(k) for k in split_size_or_sections]
        if sum(sections) != n or any(k < 0 for k in sections):
            raise RuntimeError(
                f"`split`: the sizes {sections} must add up to {n}, the size of dimension {dim}"
            )
        edges = [0, *accumulate(sections)]
    return _pieces(x, d, edges)


@method
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of the given sizes along a dimension; views.

    >>> import tapegrad as tg
    >>> [len(part) for part in tg.split_with_sizes(tg.arange(5), (1, 4))]
    [1, 4]
    """
    return split(input, tuple(split_sizes), dim)


@method
def unsafe_split(
    tensor: Tensor, split_size: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """The pieces of `split`, each a view by itself, which an in-place operation may change.

    >>> import tapegrad as tg
    >>> x = tg.ones(2, requires_grad=True).clone()
    >>> [part.mul_(2).item() for part in tg.unsafe_split(x, 1)]
    [2.0, 2.0]
    """
    return _each(
        _split(has_dims(as_input(tensor, "unsafe_split"), "unsafe_split"), split_size, dim)
    )


@method
def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """The pieces of `split_with_sizes`, each a view by itself: see `unsafe_split`.

    >>> import tapegrad as tg
    >>> [len(part) for part in tg.unsafe_split_with_sizes(tg.arange(5), (1, 4))]
    [1, 4]
    """
    return unsafe_split(input, tuple(split_sizes), dim)


@method
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """The pieces of `chunk`, each a view by itself: see `unsafe_split`.

    >>> import tapegrad as tg
    >>> [len(part) for part in tg.unsafe_chunk(tg.arange(5), 2)]
    [3, 2]
    """
    return _each(_chunk(input, chunks, dim))


def _each(views: MultiViewRequest) -> tuple[Tensor, ...]:
    """Views that do not know of each other."""
    x = views.x
    return tuple([make_view(s.getitem, x, {"index": i}, x._a[i]) for i in views.indices()])


@axis_view_method
@view_of
def chunk(input: Tensor, chunks: int, dim: int = 0) -> MultiViewRequest:
    """At most so many pieces of equal size (the last may be smaller); views.

    >>> import tapegrad as tg
    >>> [len(part) for part in tg.chunk(tg.arange(5), 2)]
    [3, 2]
    """
    return _chunk(input, chunks, dim)


def _chunk(input: Any, chunks: int, dim: int) -> MultiViewRequest:
    x = has_dims(as_input(input, "chunk"), "chunk")
    if chunks < 1:
        raise RuntimeError(f"`chunk` needs a positive number of chunks, got {chunks}")
    d = one_dim(dim, x._a.ndim, "chunk")
    n = x._a.shape[d]
    if not n:
        return _pieces(x, d, [0] * (chunks + 1))
    return _split(x, max(1, -(-n // chunks)), dim)


@axis_view_method
@view_of
def tensor_split(
    input: Tensor, indices_or_sections: int | Sequence[int] | Tensor | None = None, dim: int = 0, *,
    sections: int | None = None, indices: Sequence[int] | Tensor | None = None,
) -> MultiViewRequest:  # fmt: skip
    """Pieces between indices, or so many pieces of nearly equal size; views.

    >>> import tapegrad as tg
    >>> [len(part) for part in tg.tensor_split(tg.arange(5), 2)]
    [3, 2]
    """
    x = has_dims(as_input(input, "tensor_split"), "tensor_split")
    d = one_dim(dim, x._a.ndim, "tensor_split")
    n = x._a.shape[d]
    if indices_or_sections is None:
        given = sections if indices is None else indices
        indices_or_sections = _given("tensor_split", "indices_or_sections", given)
    if isinstance(indices_or_sections, Tensor):
        where = indices_or_sections._a
        if where.dtype.kind not in "iu" or where.ndim > 1:
            raise RuntimeError(
                "`tensor_split` takes a Tensor of one or no dimension that holds integers, got "
                f"{where.shape} and {indices_or_sections.dtype}"
            )
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        k = indices_or_sections
        if k < 1:
            raise RuntimeError(f"`tensor_split` needs a positive number of pieces, got {k}")
        size, more = divmod(n, k)  # the first so many pieces have one more
        edges = [i * size + min(i, more) for i in range(k + 1)]
        return _pieces(x, d, edges, together=False)
    inner = [min(max(int(i) + n if i < 0 else int(i), 0), n) for i in indices_or_sections]
    starts, stops = [0, *inner], [*inner, n]
    before = (slice(None),) * d
    places = [(*before, slice(a, max(a, b))) for a, b in zip(starts, stops, strict=True)]
    return MultiViewRequest(x, ("tensor_split", d, *inner), lambda: places, together=False)


@axis_view_method
@view_of
def unbind(input: Tensor, dim: int = 0) -> MultiViewRequest:
    """The slices along a dimension; views.

    >>> import tapegrad as tg
    >>> tg.unbind(tg.tensor([1, 2]))
    (tensor(1), tensor(2))
    """
    x = as_input(input, "unbind")
    if not x._a.ndim:
        raise IndexError("`unbind` cannot be applied to a 0-d Tensor")
    d = one_dim(dim, x._a.ndim, "unbind")
    before = (slice(None),) * d
    return MultiViewRequest(
        x,
        ("unbind", d),
        lambda: [(*before, i, ...) for i in range(x._a.shape[d])],
        (lambda a: list(np.moveaxis(a, d, 0) if d else a)) if x._a.ndim > 1 else None,
    )
