"""Operations that lay elements out anew: repeated, rolled round, or with a border.

`reps` has one number per dimension, `widths` one pair (before, after), neither negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_JOIN, KIND_VIEW
from tapegrad.ops.core import REAL, Op, custom, linear
from tapegrad.ops.index import at
from tapegrad.ops.reduce import sum as sum_
from tapegrad.ops.shape import cat, clone, expand, getitem, reshape, unsqueeze
from tapegrad.tape.shape_table import Shape

Widths = tuple[tuple[int, int], ...]


def _side_by_side(shape: Shape, reps: Shape) -> Shape:
    """The shape with the repeats of each dimension before it."""
    return tuple(n for pair in zip(reps, shape, strict=True) for n in pair)


def _repeat(x: Any, *, reps: Shape) -> Any:
    if x.ndim and x.shape[-1] == 1 and not any(r != 1 for r in reps[:-1]):
        return np.repeat(x, reps[-1], axis=-1)  # in half of the time
    out = np.empty([n * r for n, r in zip(x.shape, reps, strict=True)], x.dtype)
    parts = out.reshape(_side_by_side(x.shape, reps))
    parts[...] = np.expand_dims(x, tuple(range(0, 2 * x.ndim, 2)))
    return out


def _seen_repeated(x: np.ndarray, *, reps: Shape) -> np.ndarray:
    """What `_repeat` copies, as a view."""
    around = np.expand_dims(x, tuple(range(0, 2 * x.ndim, 2)))
    return np.broadcast_to(around, _side_by_side(x.shape, reps))


def _repeat_vjp(g: Any, x_spec: Any, reps: Shape) -> Any:
    shape: list[int] = []  # without what is 1, so that sums are over neighbours
    dims: list[int] = []
    for n, r in zip(x_spec.shape, reps, strict=True):
        if r != 1:
            dims.append(len(shape))
        shape += [size for size in (r, n) if size != 1]
    parts = reshape(g, shape=tuple(shape))
    total = sum_(parts, dim=tuple(dims), keepdim=False) if dims else parts
    return reshape(total, shape=x_spec.shape)


def _inside(shape: Shape, widths: Widths) -> tuple[slice, ...]:
    return tuple(slice(a, a + n) for n, (a, _) in zip(shape, widths, strict=True))


def _pad(x: Any, *, widths: Widths, value: Any) -> Any:
    shape = [n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)]
    out = np.full(shape, value, x.dtype)
    out[_inside(x.shape, widths)] = x
    return out


def _roll(x: Any, *, shifts: Shape, dims: Shape) -> Any:
    if x.size > 4096:
        return np.roll(x, shifts, dims)
    for shift, dim in zip(shifts, dims, strict=True):  # of few elements in half of its time
        n = x.shape[dim]
        split = n - shift % n if n else 0
        if split < n:
            before = (slice(None),) * dim
            x = np.concatenate((x[(*before, slice(split, n))], x[(*before, slice(split))]), dim)
    return np.array(x)  # in C order, and not the operand


def _within(y: np.ndarray, *, widths: Widths, value: Any) -> np.ndarray:
    """Where the operand of `_pad` lies in the result."""
    inside = [slice(a, n - b) for n, (a, b) in zip(y.shape, widths, strict=True)]
    index: Any = (*inside, ...)  # without the dots a number, not a view, if there is no dimension
    found: np.ndarray = y[index]
    return found


def _repeat_form(x: Any, *, reps: Shape) -> Any:
    around = unsqueeze(x, dims=tuple(range(0, 2 * len(reps), 2)))
    whole = tuple([n * k for n, k in zip(x.shape, reps, strict=True)])
    return reshape(expand(around, shape=_side_by_side(x.shape, reps)), shape=whole)


def _roll_form(x: Any, *, shifts: Shape, dims: Shape) -> Any:
    for shift, dim in zip(shifts, dims, strict=True):
        n = x.shape[dim]
        if shift % n:
            low = getitem(x, index=at(dim, slice(0, n - shift % n)))
            high = getitem(x, index=at(dim, slice(n - shift % n, n)))
            x = cat(high, low, dim=dim)
    return clone(x)


# fmt: off
repeat = linear("repeat", _repeat, x=_repeat_vjp, decomposition=_repeat_form, kinds="fib",
                sweep=KIND_VIEW, window=_seen_repeated)
roll: Op = linear(
    "roll", _roll,
    x=lambda g, shifts, dims: roll(g, shifts=tuple(-n for n in shifts), dims=dims),
    decomposition=_roll_form, kinds="fib",
)
# Not linear, for its border may be anything; its derivative reads no values all the same.
pad = custom(
    "pad", _pad, complex=REAL, grad_name="ConstantPadNd", moves="pad",
    x=lambda g, x_spec, widths: getitem(g, index=(*_inside(x_spec.shape, widths), ...)),
    sweep=KIND_JOIN, window=_within,
)
# fmt: on
