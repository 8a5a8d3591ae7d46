"""Operations that move elements and compute nothing: all linear, most of them views.

Parameters arrive normalised: dimensions are not negative, shapes are complete, an index is a tuple
of slices, integers and None.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.core import Op, linear
from tapegrad.ops.large import large
from tapegrad.tape import versions
from tapegrad.tape.shape_table import Shape


def _sum_to(x: Any, *, shape: Shape) -> Any:
    """Add up the dimensions along which an array of `shape` would be broadcast to that of `x`."""
    if x.shape == shape:
        return x
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        extra + i for i, n in enumerate(shape) if n == 1 and x.shape[extra + i] != 1
    )
    return np.add.reduce(x, axis=axes).reshape(shape)


def strided(x: Any, shape: Shape, strides: Shape, offset: int = 0) -> Any:
    """The memory of an array, from `offset` bytes on, with any shape and strides in bytes."""
    if type(x) is np.ndarray and x.flags.c_contiguous and x.size:
        return np.ndarray(shape, x.dtype, x, offset, strides)  # a tenth of the time
    flat = x.reshape(-1)[offset // x.itemsize :] if offset else x
    return np.lib.stride_tricks.as_strided(flat, shape, strides)


def _unsqueeze(x: Any, *, dims: Shape) -> Any:
    shape = list(x.shape)
    for d in dims:
        shape.insert(d, 1)
    return x.reshape(shape)


def _expand(x: Any, *, shape: Shape) -> Any:
    return strided(x, shape, expanded_strides(x.shape, x.strides, shape))


def expanded_strides(given: Shape, strides: Shape, shape: Shape) -> Shape:
    """The strides of an array when it is broadcast to a shape."""
    extra = len(shape) - len(given)
    steps = zip(strides, given, shape[extra:], strict=True)
    kept = [s if n == m else 0 for s, n, m in steps]
    return (*(0,) * extra, *kept)


def _embed(g: Any, *, shape: Shape, index: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    out[index] = g
    return out


def _flip(x: Any, *, dims: Shape) -> Any:
    return np.flip(x, dims).copy()


def _unfold(x: Any, *, dim: int, size: int, step: int) -> Any:
    shape, strides = [*x.shape, size], [*x.strides, x.strides[dim]]
    shape[dim] = (shape[dim] - size) // step + 1
    strides[dim] *= step
    return strided(x, tuple(shape), tuple(strides))


def _fold(g: Any, *, shape: Shape, dim: int, size: int, step: int) -> Any:
    out = np.zeros(shape, g.dtype)
    windows = g.shape[dim]
    for k in range(size):
        at = (slice(None),) * dim + (slice(k, k + (windows - 1) * step + 1, step),)
        out[at] += g[..., k]
    return out


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
    out = np.bincount(where[inside], g[inside], int(np.prod(shape)))
    return out.reshape(shape).astype(g.dtype)


def _restride(x: Any, *, size: Shape, stride: Shape, offset: int, layout: Any) -> Any:
    where = strided_map(size, stride, offset, layout)
    return np.where(where >= 0, x.ravel()[where], np.zeros((), x.dtype))


def _cat(*xs: Any, dim: int) -> Any:
    return np.concatenate(xs, dim)


def _split_off(g: Any, k: int, specs: Any, dim: int) -> Any:
    start = sum(s.shape[dim] for s in specs[:k])
    stop = start + specs[k].shape[dim]
    return getitem(g, index=(slice(None),) * dim + (slice(start, stop),))


def _stack(*xs: Any, dim: int) -> Any:
    return np.stack(xs, dim)


def diagonal_of(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal, which may be written if its array may."""
    view = x.diagonal(offset, dim1, dim2)
    if x.flags.writeable:
        view.flags.writeable = True
    return view


def _diagonal(x: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    return diagonal_of(x, offset, dim1, dim2)


def _diagonal_embed(g: Any, *, shape: Shape, offset: int, dim1: int, dim2: int) -> Any:
    out = np.zeros(shape, g.dtype)
    diagonal_of(out, offset, dim1, dim2)[...] = g
    return out


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


def _replay(base: Any, *, chain: Any) -> Any:
    seen = follow(base, chain, reading=True)
    if seen is not None:
        return seen
    where = places(base.shape, chain)
    return np.where(where >= 0, base.ravel()[where], np.zeros((), base.dtype))


def _overwritten(base: Any, value: Any, chain: Any) -> Any:
    out = np.array(base)  # not base.copy(): what has no dimensions may be a NumPy scalar
    seen = follow(out, chain)
    if seen is not None:
        seen[...] = value
        return out
    out = np.array(base, order="C")
    where = places(out.shape, chain)
    inside = where >= 0
    out.reshape(-1)[where[inside]] = np.broadcast_to(value, where.shape)[inside]
    return out


def _write_view(base: Any, value: Any, *, chain: Any) -> Any:
    return _overwritten(base, value, chain)


def _zero_view(g: Any, *, chain: Any) -> Any:
    return _overwritten(g, 0, chain)


def overlaps(chain: Any) -> bool:
    """Whether a chain of views may show one element several times."""
    return any(op.moves in ("broadcast", "sliding", "storage") for op, _ in chain)


def _only_view(g: Any, *, shape: Shape, chain: Any) -> Any:
    out = np.zeros(shape, g.dtype)
    seen = None if overlaps(chain) else follow(out, chain)
    if seen is None:
        where = places(shape, chain)
        inside = where >= 0
        np.add.at(out.reshape(-1), where[inside], g[inside])
    else:
        seen[...] = g
    return out


# Of `moves`: views whose elements all lie within their input, at fixed steps;
STRIDED = ("strided", "sliding")
# and what hands its adjoint on as it is, but for its shape.
PASSES = ("identity", "reshape", "broadcast")

# fmt: off
clone = linear("clone", large("row_loops.clone", lambda x: x.copy()),
               x=lambda g: g, moves="identity")
contiguous = linear(
    "contiguous", lambda x: np.ascontiguousarray(x).reshape(x.shape),
    x=lambda g: g, grad_name="Clone", moves="identity",
)
to: Op = linear(
    "to", lambda x, *, dtype: x.astype(dtype),
    x=lambda g, x_spec: to(g, dtype=x_spec.dtype), grad_name="ToCopy",
)
alias = linear("alias", lambda x: x.view(), x=lambda g: g, view=True, moves="identity")
reshape: Op = linear(
    "reshape", lambda x, *, shape: x.reshape(shape),
    x=lambda g, x_spec: reshape(g, shape=x_spec.shape), view=True, moves="reshape",
    grad_name="View",
)
squeeze = linear("squeeze", lambda x, *, dims: x.squeeze(dims),
                 x=lambda g, dims: unsqueeze(g, dims=dims), view=True, moves="reshape")
unsqueeze: Op = linear(
    "unsqueeze", _unsqueeze,
    x=lambda g, dims: squeeze(g, dims=dims), view=True, moves="reshape",
)
permute: Op = linear(
    "permute", lambda x, *, dims: x.transpose(dims),
    x=lambda g, dims: permute(g, dims=tuple(sorted(range(len(dims)), key=dims.__getitem__))),
    view=True, moves="strided",
)
expand = linear("expand", _expand, x=lambda g, x_spec: sum_to(g, shape=x_spec.shape), view=True,
                moves="broadcast")
sum_to: Op = linear(
    "sum_to", large("reduce_loops.sum_to", _sum_to),
    x=lambda g, x_spec: expand(g, shape=x_spec.shape), grad_name="Sum", reduces="add",
)
getitem = linear(
    "getitem", lambda x, *, index: x[index],
    x=lambda g, x_spec, index: embed(g, shape=x_spec.shape, index=index), view=True,
    moves="strided", grad_name="Slice",
)
embed: Op = linear(
    "embed", _embed, x=lambda g, index: getitem(g, index=index), grad_name="SliceBackward",
    moves="pad",
)
flip: Op = linear("flip", large("row_loops.flip", _flip),
                  x=lambda g, dims: flip(g, dims=dims), moves="reverse")
unfold = linear(
    "unfold", _unfold, view=True, moves="sliding",
    x=lambda g, x_spec, dim, size, step: fold(g, shape=x_spec.shape, dim=dim, size=size, step=step),
)
fold: Op = linear(
    "fold", _fold, x=lambda g, dim, size, step: unfold(g, dim=dim, size=size, step=step),
    grad_name="UnfoldBackward",
)
as_strided = linear(
    "as_strided", _as_strided, view=True, moves="storage",
    x=lambda g, x_spec, size, stride, offset, layout:
        unstride(g, shape=x_spec.shape, size=size, stride=stride, offset=offset, layout=layout),
)
unstride: Op = linear(
    "unstride", _unstride,
    x=lambda g, size, stride, offset, layout:
        restride(g, size=size, stride=stride, offset=offset, layout=layout),
)
restride: Op = linear(
    "restride", _restride,
    x=lambda g, x_spec, size, stride, offset, layout:
        unstride(g, shape=x_spec.shape, size=size, stride=stride, offset=offset, layout=layout),
)
cat = linear("cat", _cat, variadic=True, each=_split_off, moves="concat")
stack = linear("stack", _stack, variadic=True, moves="concat",
               each=lambda g, k, dim: getitem(g, index=(slice(None),) * dim + (k,)))
diagonal = linear("diagonal", _diagonal, view=True, moves="strided",
                  x=lambda g, x_spec, offset, dim1, dim2: diagonal_embed(
                      g, shape=x_spec.shape, offset=offset, dim1=dim1, dim2=dim2))
diagonal_embed: Op = linear(
    "diagonal_embed", _diagonal_embed,
    x=lambda g, offset, dim1, dim2: diagonal(g, offset=offset, dim1=dim1, dim2=dim2), moves="pad",
)
tril: Op = linear(
    "tril", large("row_loops.tril", lambda x, *, diagonal: np.tril(x, diagonal)),
    x=lambda g, diagonal: tril(g, diagonal=diagonal),
)
triu: Op = linear(
    "triu", large("row_loops.triu", lambda x, *, diagonal: np.triu(x, diagonal)),
    x=lambda g, diagonal: triu(g, diagonal=diagonal),
)
# In-place changes through views: the chain of view operations leads from the base to the view.
replay = linear(
    "replay", _replay, x=lambda g, x_spec, chain: only_view(g, shape=x_spec.shape, chain=chain),
    grad_name="AsStrided", moves="chain",
)
only_view: Op = linear(
    "only_view", _only_view, x=lambda g, chain: replay(g, chain=chain),
    grad_name="AsStridedBackward", moves="pad",
)
write_view = linear("write_view", _write_view, base=lambda g, chain: zero_view(g, chain=chain),
                    value=lambda g, chain: replay(g, chain=chain), grad_name="CopySlices",
                    moves="update")
zero_view: Op = linear("zero_view", _zero_view, x=lambda g, chain: zero_view(g, chain=chain),
                       moves="update")
# fmt: on
