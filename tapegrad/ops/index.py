"""Gathering and scattering by index arrays, by masks, and assignment to chosen places.

Index arrays are operands (they are positional, and their versions are watched), the plan that says
where they stand among slices is a parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import (
    KIND_ASSIGN,
    KIND_MASK,
    KIND_PICK,
    KIND_PUT,
    KIND_SELECT,
)
from tapegrad.ops.core import NotDifferentiable, Op, linear
from tapegrad.ops.elementwise import eq, where
from tapegrad.ops.large import SLOW_IN_NUMPY, large
from tapegrad.ops.shape import _sum_to, clone, embed, expand, getitem, sum_to, to
from tapegrad.tape.shape_table import Shape

SELECTS = NotDifferentiable("an index selects, it has no derivative")
MASKS = NotDifferentiable("a mask selects, it has no derivative")


def place(plan: Any, others: Any) -> Any:
    """The index that NumPy takes: the plan with its holes filled by the index arrays."""
    rest = iter(others)
    return tuple(next(rest) if part is HOLE else part for part in plan)


class _Hole:
    """Stands in a plan where an index array goes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[]"


HOLE = _Hole()


def place_rank(x: Any, plan: Any, indices: Any) -> int:
    """How many dimensions the places have that an index names."""
    gone = sum(part is HOLE or type(part) is int for part in plan)
    added = sum(part is None for part in plan)
    return int(max(k.ndim for k in indices) + x.ndim - gone + added)


def only_dimension(plan: Any, ndim: int) -> int | None:
    """Which dimension an index chooses from, if it takes those before it and behind it whole."""
    *before, last = plan
    if last is not HOLE:
        return None
    if len(before) == 1 and before[0] is Ellipsis:
        return ndim - 1
    whole = all(type(part) is slice and part == slice(None) for part in before)
    return len(before) if whole else None


def _index(x: Any, *others: Any, plan: Any) -> Any:
    if len(plan) > 1 and others[0].dtype.kind == "i":
        d = only_dimension(plan, x.ndim)
        if d is not None:
            return x.take(others[0], d)  # in C order, whereas an index turns its result
    return x[place(plan, others)]


def _unindex(g: Any, *others: Any, shape: Shape, plan: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    where = place(plan, others)
    if len(where) == 1 and len(shape) == 1 and where[0].dtype.kind == "i" and g.dtype.kind == "f":
        flat = np.where(where[0] < 0, where[0] + shape[0], where[0])
        return np.bincount(flat.ravel(), g.ravel(), shape[0]).astype(g.dtype, copy=False)
    np.add.at(out, where, g)
    return out


def _put(out: Any, value: Any, *others: Any, plan: Any, accumulate: bool) -> None:
    where = place(plan, others)
    if accumulate:
        np.add.at(out, where, value)
    else:
        out[where] = value


def _set(out: Any, value: Any, *, index: Any) -> None:
    out[index] = value


def _assign(x: Any, value: Any, *, index: Any) -> Any:
    if index == (...,) and type(value) is float and value == 0.0:
        return np.zeros(x.shape, x.dtype)
    out = np.array(x)  # not x.copy(): an adjoint of no dimensions may be a NumPy scalar
    out[index] = value
    return out


def _cleared(g: Any, *others: Any, plan: Any) -> Any:
    out = g.copy()
    out[place(plan, others)] = 0
    return out


def at(dim: int, k: Any) -> Any:
    """The NumPy index that is `k` along one dimension and everything along those before it."""
    return (slice(None),) * dim + (k,)


def check_range(index: Any, size: int, name: str, *, negative: bool = False) -> None:
    """Refuse an index that names a place beyond a dimension."""
    if index.size and (index.max() >= size or index.min() < (-size if negative else 0)):
        raise (IndexError if name in ("index_select", "take", "index_add") else RuntimeError)(
            f"`{name}`: index out of range: an index in [{index.min()}, {index.max()}] for a "
            f"dimension of size {size}"
        )


def _grid(index: Any, dim: int) -> Any:
    """The NumPy index of `gather`: the index along `dim`, its own place along all others."""
    parts = []
    for d, n in enumerate(index.shape):
        shape = [1] * index.ndim
        shape[d] = n
        parts.append(index if d == dim else np.arange(n).reshape(shape))
    return tuple(parts)


def _gather(x: Any, index: Any, *, dim: int) -> Any:
    check_range(index, x.shape[dim] if x.ndim else 1, "gather")
    if not x.ndim:
        return np.full(index.shape, x, x.dtype)
    return x[_grid(index, dim)]


def _row(out: Any, index: Any) -> Any:
    """An array without dimensions as one of one element, if an index has a dimension: a view."""
    return out.reshape(1) if index.ndim and not out.ndim else out


def _put_along(out: Any, index: Any, src: Any, *, dim: int) -> None:
    check_range(index, out.shape[dim] if out.ndim else 1, "scatter")
    _row(out, index)[_grid(index, dim)] = (
        src[tuple(slice(n) for n in index.shape)] if src.ndim else src
    )


def _add_along(out: Any, index: Any, src: Any, *, dim: int) -> None:
    check_range(index, out.shape[dim] if out.ndim else 1, "scatter_add")
    if out.ndim == 1 and src.ndim and out.dtype.kind == "f":
        out += np.bincount(index, src[: len(index)], len(out)).astype(out.dtype, copy=False)
        return
    part = src[tuple(slice(n) for n in index.shape)] if src.ndim else src
    np.add.at(_row(out, index), _grid(index, dim), part)


def _scattered(g: Any, index: Any, *, dim: int) -> Any:
    out = np.array(g)
    _row(out, index)[_grid(index, dim)] = 0
    return out


def _ungather(g: Any, index: Any, *, shape: Shape, dim: int) -> Any:
    if not shape:
        return np.add.reduce(g, axis=None)
    out = np.zeros(shape, g.dtype)
    _add_along(out, index, g, dim=dim)
    return out


def _unselect(g: Any, index: Any, *, shape: Shape, dim: int) -> Any:
    out = np.zeros(shape, g.dtype)
    _add_rows(out, index, g, dim=dim)
    return out


def _add_rows(out: Any, index: Any, source: Any, *, dim: int) -> None:
    if out.ndim == 1 and out.dtype.kind == "f":
        out += np.bincount(index, source, len(out)).astype(out.dtype, copy=False)
    else:
        np.add.at(out, at(dim, index), source)


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return np.asarray(np.where(mask, value.astype(x.dtype, copy=False), x))


def _masked_select(x: Any, mask: Any) -> Any:
    shape = np.broadcast_shapes(x.shape, mask.shape)
    return np.broadcast_to(x, shape)[np.broadcast_to(mask, shape)]


def _masked_embed(g: Any, mask: Any, *, shape: Shape) -> Any:
    full = np.zeros(np.broadcast_shapes(shape, mask.shape), g.dtype)
    full[np.broadcast_to(mask, full.shape)] = g
    return _sum_to(full, shape=shape)


def _last_written(g: Any, read: Callable[[Any], Any], write: Callable[[Any, Any], Any]) -> Any:
    """The adjoint of values written to places: of a place that is named twice, the last one's."""
    taken = read(g)
    if type(taken) is np.ndarray:  # places that are known mostly differ
        written = write(np.zeros(g.shape, np.bool_), np.ones(taken.shape, np.bool_))
        if np.count_nonzero(written) == taken.size:
            return taken
    numbers = np.arange(math.prod(taken.shape)).reshape(taken.shape)
    last = read(write(np.zeros(g.shape, numbers.dtype), numbers))
    return where(eq(last, numbers), taken, 0.0)


def _are_distinct(indices: Any) -> bool:
    """Whether it is cheap to see that indices name no place twice: of one place, or rising ones."""
    count = math.prod(np.broadcast_shapes(*[k.shape for k in indices]))
    if count <= 1:
        return True
    return any(
        type(k) is np.ndarray and k.shape == (count,) and k[0] >= 0 and (k[1:] > k[:-1]).all()
        for k in indices
    )


def _value_put(g: Any, others: Any, plan: Any, accumulate: bool) -> Any:
    if accumulate or _are_distinct(others):
        return index(g, *others, plan=plan)
    return _last_written(
        g,
        lambda x: index(x, *others, plan=plan),
        lambda x, value: index_put(x, value, *others, plan=plan, accumulate=False),
    )


def _value_scattered(g: Any, index: Any, src_spec: Any, dim: int) -> Any:
    taken = _last_written(
        g, lambda x: gather(x, index, dim=dim), lambda x, value: scatter(x, index, value, dim=dim)
    )
    return _pad_src(taken, src_spec, index)


def _pad_src(taken: Any, src_spec: Any, index: Any) -> Any:
    """The adjoint of a source of which only the corner as large as the index was read."""
    if src_spec.shape == index.shape:
        return taken
    if not src_spec.shape:
        return sum_to(taken, shape=())
    return embed(taken, shape=src_spec.shape, index=tuple(slice(n) for n in index.shape))


add_rows = large("indexed_loops.add_rows", _add_rows)
put_along = large("indexed_loops.put_along", _put_along)
add_along = large("indexed_loops.add_along", _add_along)


def _on_a_copy(write: Callable[..., None]) -> Callable[..., Any]:
    def forward(x: Any, *args: Any, **params: Any) -> Any:
        out = clone.forward(x)
        write(out, *args, **params)
        return out

    return forward


# fmt: off
index = linear(
    "index", large("indexed_loops.index", _index), variadic=True,
    x=lambda g, x_spec, others, plan: unindex(g, *others, shape=x_spec.shape, plan=plan),
    others=SELECTS, moves="gather", sweep=KIND_PICK,
)
unindex: Op = linear(
    "unindex", large("indexed_loops.unindex", _unindex), variadic=True, grad_name="IndexBackward",
    x=lambda g, others, plan: index(g, *others, plan=plan), others=SELECTS, moves="scatter add",
)
index_put = linear(
    "index_put", _on_a_copy(_put), writes=_put, variadic=True,
    x=lambda g, others, plan, accumulate: g if accumulate else cleared(g, *others, plan=plan),
    value=lambda g, value_spec, others, plan, accumulate:
        sum_to(_value_put(g, others, plan, accumulate), shape=value_spec.shape),
    others=SELECTS, moves="scatter", sweep=KIND_PUT,
)
cleared: Op = linear(
    "cleared", _cleared, variadic=True, x=lambda g, others, plan: cleared(g, *others, plan=plan),
    others=SELECTS, grad_name="IndexPut", moves="scatter",
)
assign: Op = linear(
    "assign", _assign, writes=large("row_loops.assign", _set),
    x=lambda g, index: assign(g, 0.0, index=index),
    value=lambda g, value_spec, index: sum_to(getitem(g, index=index), shape=value_spec.shape),
    grad_name="CopySlices", moves="update", sweep=KIND_ASSIGN, window=lambda x, index: x[index],
)
gather = linear(
    "gather", large("indexed_loops.gather", _gather),
    x=lambda g, index, x_spec, dim: ungather(g, index, shape=x_spec.shape, dim=dim), index=SELECTS,
    moves="gather along", sweep=KIND_PICK,
)
ungather: Op = linear(
    "ungather", large("indexed_loops.ungather", _ungather, SLOW_IN_NUMPY),
    x=lambda g, index, dim: gather(g, index, dim=dim), index=SELECTS,
    grad_name="ScatterAdd", moves="scatter add along",
)
scatter = linear(
    "scatter", large("indexed_loops.scatter", _on_a_copy(put_along)), writes=put_along,
    x=lambda g, index, dim: scattered(g, index, dim=dim),
    index=SELECTS, src=lambda g, index, src_spec, dim: _value_scattered(g, index, src_spec, dim),
    moves="scatter along", sweep=KIND_PUT,
)
scattered: Op = linear(
    "scattered", large("indexed_loops.scattered", _scattered),
    x=lambda g, index, dim: scattered(g, index, dim=dim), index=SELECTS,
    grad_name="Scatter", moves="scatter along",
)
scatter_add = linear("scatter_add", large("indexed_loops.scatter_add", _on_a_copy(add_along)),
                     x=lambda g: g, index=SELECTS, writes=add_along, moves="scatter add along",
                     sweep=KIND_PUT,
                     src=lambda g, index, src_spec, dim:
                         _pad_src(gather(g, index, dim=dim), src_spec, index))
select_rows = linear(
    "index_select",
    large("indexed_loops.select", lambda x, index, *, dim: np.take(x, index, dim)),
    x=lambda g, index, x_spec, dim: unselect(g, index, shape=x_spec.shape, dim=dim), index=SELECTS,
    moves="gather", sweep=KIND_PICK,
)
unselect: Op = linear(
    "unselect", large("indexed_loops.unselect", _unselect),
    x=lambda g, index, dim: select_rows(g, index, dim=dim), index=SELECTS,
    grad_name="IndexAdd", moves="scatter add",
)
index_add = linear("index_add", _on_a_copy(add_rows), x=lambda g: g, index=SELECTS,
                   writes=add_rows, moves="scatter add", sweep=KIND_PUT,
                   source=lambda g, index, dim: select_rows(g, index, dim=dim))
masked_fill = linear(
    "masked_fill", large("indexed_loops.masked_fill", _masked_fill),
    x=lambda g, mask, x_spec: sum_to(where(mask, 0.0, g), shape=x_spec.shape), mask=MASKS,
    value=lambda g, mask: sum_to(where(mask, g, 0.0), shape=()),
    paired=True, decomposition=lambda x, mask, value: where(mask, to(value, dtype=x.dtype), x),
    kinds="fib", sweep=KIND_MASK,
)
masked_select = linear(
    "masked_select", _masked_select,
    x=lambda g, mask, x_spec: masked_embed(g, mask, shape=x_spec.shape), mask=MASKS,
    paired=True, sweep=KIND_SELECT,
)
masked_embed: Op = linear(
    "masked_embed", _masked_embed, grad_name="MaskedSelectBackward",
    x=lambda g, mask, shape:
        masked_select(expand(g, shape=np.broadcast_shapes(shape, mask.shape)), mask),
    mask=MASKS,
)
# fmt: on
