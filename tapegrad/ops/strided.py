"""Views of memory by strides, and chains of views through which a base is changed in place.

An adjoint goes back through them as one view, or by the number of each element (`places`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_ASSIGN, KIND_VIEW
from tapegrad.ops.core import Op, linear
from tapegrad.ops.elementwise import where as where_
from tapegrad.ops.index import HOLE, index, unindex
from tapegrad.ops.shape import reshape, strided, view_as_complex, view_as_real
from tapegrad.tape import versions
from tapegrad.tape.shape_table import Shape


def _as_strided(x: Any, *, size: Shape, stride: Shape, offset: int, layout: Any) -> Any:
    owner, step = versions.root(x), x.itemsize
    flat = owner if owner.flags.c_contiguous else owner.ravel("K")
    view = strided(flat, size, tuple([s * step for s in stride]), offset * step)
    if not x.flags.writeable:
        view.flags.writeable = False  # though its owner may be
    return view


def strided_map(size: Shape, stride: Shape, offset: int, layout: Any) -> Any:
    """For each element of a strided view, which element of the input (C order) it is."""
    shape, strides, start = layout
    index = offset + sum(
        np.arange(n).reshape((-1,) + (1,) * (len(size) - i - 1)) * s
        for i, (n, s) in enumerate(zip(size, stride, strict=True))
    )
    place = start + sum(
        np.arange(n).reshape((-1,) + (1,) * (len(shape) - i - 1)) * s
        for i, (n, s) in enumerate(zip(shape, strides, strict=True))
    )
    index, place = np.broadcast_to(index, size), np.broadcast_to(place, shape)
    where = np.full(max(int(place.max(initial=0)), int(index.max(initial=0))) + 1, -1)
    where[place] = np.arange(place.size).reshape(place.shape)
    return where[index]


def _c_strides(shape: Shape) -> Shape:
    """The steps, in elements, of an array in C order."""
    steps = [1]
    for n in shape[:0:-1]:
        steps.append(steps[-1] * n)
    return tuple(steps[::-1])[len(steps) - len(shape) :]


def distinct(size: Shape, stride: Shape) -> bool:
    """Whether no two elements of a strided view share a place (as far as this is easily seen)."""
    reach = 0
    for s, n in sorted((s, n) for s, n in zip(stride, size, strict=True) if n > 1):
        if s <= reach:
            return False
        reach += s * (n - 1)
    return min(size, default=1) > 0


def _unstride(g: Any, *, shape: Shape, size: Shape, stride: Shape, offset: int, layout: Any) -> Any:
    count = int(np.prod(shape))
    if count and distinct(size, stride) and layout[:2] == (shape, _c_strides(shape)):
        # Every place is read once, from memory in C order: the view of the adjoint can be written.
        start = layout[2]
        low = min(offset, start)
        last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        out = np.zeros(max(last + 1, start + count) - low, g.dtype)
        steps = tuple(s * g.itemsize for s in stride)
        np.lib.stride_tricks.as_strided(out[offset - low :], size, steps)[...] = g
        return out[start - low : start - low + count].reshape(shape)
    where = strided_map(size, stride, offset, layout)
    inside = where >= 0  # memory of the storage that the input itself does not show
    return _totals(where[inside], g[inside], int(np.prod(shape))).reshape(shape).astype(g.dtype)


def _totals(where: Any, g: Any, count: int) -> Any:
    if g.dtype.kind == "c":
        return _totals(where, g.real, count) + 1j * _totals(where, g.imag, count)
    return np.bincount(where, g, count)


def _restride(x: Any, *, size: Shape, stride: Shape, offset: int, layout: Any) -> Any:
    where = strided_map(size, stride, offset, layout)
    return np.where(where >= 0, x.ravel()[where], np.zeros((), x.dtype))


def lies(x: Any, layout: Any) -> bool:
    """Whether an array lies in its storage as `as_strided` was told that its operand does."""
    shape, strides, start = layout
    if x.shape != shape or (x.size and versions.offset(x) != start):
        return False
    found = zip(shape, x.strides, strides, strict=True)
    return not x.size or all(n == 1 or have == step * x.itemsize for n, have, step in found)


def follow(x: Any, chain: Any, *, reading: bool = False) -> Any:
    """The view of an array that a chain of view operations leads to.

    None if the array lies otherwise than that which the chain was made for: `as_strided` needs
    the same memory, and what `reshape` has to copy serves for `reading` only.
    """
    for op, params in chain:
        if op is as_strided and not lies(np.asarray(x), params["layout"]):
            return None
        seen = op(x, **params)
        if op is reshape and not reading and x.size and not np.may_share_memory(seen, x):
            return None
        x = seen
    return x


def places(shape: Shape, chain: Any) -> Any:
    """Which element of an array, in C order, each of a view is; -1: it is none of them."""
    found = np.arange(math.prod(shape)).reshape(shape)
    for op, params in chain:
        if op is as_strided:
            where = strided_map(**params)
            found = np.where(where >= 0, found.ravel()[where], -1) if found.size else where
        else:
            found = op(found, **params)
    return found


def _parted(chain: Any) -> int:
    """Where a chain first sees complex numbers as pairs, or pairs as complex numbers; else -1."""
    return next((k for k, (op, _) in enumerate(chain) if op.moves == "parts"), -1)


def _replay(base: Any, *, chain: Any) -> Any:
    seen = follow(base, chain, reading=True)
    if seen is not None:
        return seen
    if (k := _parted(chain)) >= 0:
        pairs = chain[k][0](_replay(base, chain=chain[:k]))
        return _replay(pairs, chain=chain[k + 1 :])
    where = places(base.shape, chain)
    return np.where(where >= 0, base.ravel()[where], np.zeros((), base.dtype))


def _overwritten(base: Any, value: Any, chain: Any) -> Any:
    out = np.array(base)  # not base.copy(): what has no dimensions may be a NumPy scalar
    seen = follow(out, chain)
    if seen is not None:
        seen[...] = value
        return out
    if (k := _parted(chain)) >= 0:
        pairs = chain[k][0](_replay(base, chain=chain[:k]))
        pairs = _overwritten(pairs, value, chain[k + 1 :])
        return _overwritten(base, _pairs_back(chain[k][0], pairs), chain[:k])
    out = np.array(base, order="C")
    where = places(out.shape, chain)
    inside = where >= 0
    out.reshape(-1)[where[inside]] = np.broadcast_to(value, where.shape)[inside]
    return out


def overlaps(chain: Any) -> bool:
    """Whether a chain of views may show one element several times."""
    return any(op.moves in ("broadcast", "sliding", "storage") for op, _ in chain)


def _pairs_back(op: Op, seen: Any) -> Any:
    """What an operation that sees pairs as numbers, or numbers as pairs, was given."""
    return (view_as_complex if op is view_as_real else view_as_real)(seen)


def _only_view(g: Any, *, shape: Shape, chain: Any) -> Any:
    if (k := _parted(chain)) >= 0:
        op, seen = chain[k][0], places(shape, chain[:k]).shape
        inner = (*seen, 2) if op is view_as_real else seen[:-1]
        pairs = _only_view(g, shape=inner, chain=chain[k + 1 :])
        return _only_view(_pairs_back(chain[k][0], pairs), shape=shape, chain=chain[:k])
    out = np.zeros(shape, g.dtype)
    seen = None if overlaps(chain) else follow(out, chain)
    if seen is None:
        where = places(shape, chain)
        inside = where >= 0
        np.add.at(out.reshape(-1), where[inside], g[inside])
    else:
        seen[...] = g
    return out


# -- decompositions --------------------------------------------------------------------------------


def _gathered(x: Any, where: Any) -> Any:
    """The elements of these numbers, zero for those below 0."""
    found = index(reshape(x, shape=(-1,)), np.maximum(where, 0), plan=(HOLE,))
    return found if (where >= 0).all() else where_(where >= 0, found, np.zeros((), x.dtype))


def _scattered(g: Any, where: Any, shape: Shape) -> Any:
    flat = unindex(g, where, shape=(math.prod(shape),), plan=(HOLE,))
    return reshape(flat, shape=shape)


def _restride_form(x: Any, *, size: Shape, stride: Shape, offset: int, layout: Any) -> Any:
    return _gathered(x, strided_map(size, stride, offset, layout))


def _as_strided_form(x: Any, *, size: Shape, stride: Shape, offset: int, layout: Any) -> Any:
    where = strided_map(size, stride, offset, layout)
    return None if (where < 0).any() else _gathered(x, where)  # memory that `x` does not show


def _unstride_form(
    g: Any, *, shape: Shape, size: Shape, stride: Shape, offset: int, layout: Any
) -> Any:
    where = strided_map(size, stride, offset, layout)
    g = where_(where >= 0, g, np.zeros((), g.dtype))
    return _scattered(g, np.maximum(where, 0), shape)


def _only_view_form(g: Any, *, shape: Shape, chain: Any) -> Any:
    if not overlaps(chain):
        return None  # it is written to the place where it lies
    where = places(shape, chain)
    return None if (where < 0).any() else _scattered(g, np.ascontiguousarray(where), shape)


# fmt: off
as_strided = linear(
    "as_strided", _as_strided, view=True, moves="storage", sweep=KIND_VIEW, window=_as_strided,
    x=lambda g, x_spec, size, stride, offset, layout:
        unstride(g, shape=x_spec.shape, size=size, stride=stride, offset=offset, layout=layout),
    decomposition=_as_strided_form, kinds="fib",
)
unstride: Op = linear(
    "unstride", _unstride, decomposition=_unstride_form, kinds="fib",
    x=lambda g, size, stride, offset, layout:
        restride(g, size=size, stride=stride, offset=offset, layout=layout),
)
restride: Op = linear(
    "restride", _restride, decomposition=_restride_form, kinds="fib",
    x=lambda g, x_spec, size, stride, offset, layout:
        unstride(g, shape=x_spec.shape, size=size, stride=stride, offset=offset, layout=layout),
)
# In-place changes through views: the chain of view operations leads from the base to the view.
replay = linear(
    "replay", _replay, x=lambda g, x_spec, chain: only_view(g, shape=x_spec.shape, chain=chain),
    grad_name="AsStrided", moves="chain", sweep=KIND_VIEW, window=follow,
)
only_view: Op = linear(
    "only_view", _only_view, x=lambda g, chain: replay(g, chain=chain),
    grad_name="AsStridedBackward", moves="pad", decomposition=_only_view_form, kinds="fib",
)
write_view = linear("write_view",
    lambda base, value, *, chain: _overwritten(base, value, chain),
    base=lambda g, chain: zero_view(g, chain=chain),
                    value=lambda g, chain: replay(g, chain=chain), grad_name="CopySlices",
                    moves="update", sweep=KIND_ASSIGN,
                    window=lambda x, chain: None if overlaps(chain) else follow(x, chain))
zero_view: Op = linear("zero_view",
    lambda g, *, chain: _overwritten(g, 0, chain),
    x=lambda g, chain: zero_view(g, chain=chain),
                       moves="update")
# fmt: on
