"""Operations that move elements and compute nothing: all linear, most of them views.

Parameters arrive normalised: dimensions are not negative, shapes are complete, an index is a tuple
of slices, integers and None.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_CAST, KIND_JOIN, KIND_TRIANGLE, KIND_VIEW
from tapegrad.ops.core import OWN, Op, linear
from tapegrad.ops.elementwise import where
from tapegrad.ops.large import large
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


def _to(x: Any, *, dtype: Any) -> Any:
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    return x.astype(dtype)


def _unsqueeze(x: Any, *, dims: Shape) -> Any:
    shape = list(x.shape)
    for d in dims:
        shape.insert(d, 1)
    return x.reshape(shape)


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


def _view_as_complex(x: Any) -> Any:
    if x.size and x.strides[-1] != x.itemsize:
        x = np.ascontiguousarray(x)
    return x.view(np.result_type(x.dtype, np.complex64))[..., 0]


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


def _cat(*xs: Any, dim: int) -> Any:
    return np.concatenate(xs, dim)


def _split_off(g: Any, k: int, ends: Any, dim: int) -> Any:
    part = slice(ends[k - 1] if k else 0, ends[k])
    return getitem(g, index=(slice(None),) * dim + (part,))


def diagonal_of(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal, which may be written if its array may."""
    view = x.diagonal(offset, dim1, dim2)
    if x.flags.writeable:
        view.flags.writeable = True
    return view


def _diagonal_embed(g: Any, *, shape: Shape, offset: int, dim1: int, dim2: int) -> Any:
    out = np.zeros(shape, g.dtype)
    diagonal_of(out, offset, dim1, dim2)[...] = g
    return out


def _fold_form(g: Any, *, shape: Shape, dim: int, size: int, step: int) -> Any:
    stop = (g.shape[dim] - 1) * step + 1
    total = None
    for k in range(size):
        index = (slice(None),) * dim + (slice(k, k + stop, step),)
        part = embed(getitem(g, index=(..., k)), shape=shape, index=index)
        total = part if total is None else total + part
    return total


def _below(x: Any, diagonal: int) -> np.ndarray:
    """Where the elements of matrices lie on a diagonal or below it."""
    return np.tri(x.shape[-2], x.shape[-1], diagonal, dtype=bool)


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
    "to", _to,
    x=lambda g, x_spec: to(g, dtype=x_spec.dtype), grad_name="ToCopy", sweep=KIND_CAST,
)
alias = linear("alias", lambda x: x.view(), x=lambda g: g, view=True, moves="identity")
# Complex numbers are seen as pairs, and pairs as complex numbers.
view_as_real: Op = linear("view_as_real",
    lambda x: x[..., None].view(x.real.dtype),
    x=lambda g: view_as_complex(g),
                      complex=OWN, view=True, moves="parts")
view_as_complex: Op = linear("view_as_complex", _view_as_complex, x=lambda g: view_as_real(g),
                         complex=OWN, view=True, moves="parts")
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
expand = linear("expand",
    lambda x, *, shape: strided(x, shape, expanded_strides(x.shape, x.strides, shape)),
    x=lambda g, x_spec: sum_to(g, shape=x_spec.shape), view=True,
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
                  x=lambda g, dims: flip(g, dims=dims), moves="reverse", sweep=KIND_VIEW,
                  window=lambda x, dims: np.flip(x, dims))
unfold = linear(
    "unfold", _unfold, view=True, moves="sliding",
    x=lambda g, x_spec, dim, size, step: fold(g, shape=x_spec.shape, dim=dim, size=size, step=step),
)
fold: Op = linear(
    "fold", _fold, x=lambda g, dim, size, step: unfold(g, dim=dim, size=size, step=step),
    grad_name="UnfoldBackward", decomposition=_fold_form, kinds="fib",
)
cat = linear("cat", _cat, variadic=True, each=_split_off, moves="concat")
stack = linear("stack", lambda *xs, dim: np.stack(xs, dim), variadic=True, moves="concat",
               each=lambda g, k, dim: getitem(g, index=(slice(None),) * dim + (k,)))
diagonal = linear("diagonal",
    lambda x, *, offset, dim1, dim2: diagonal_of(x, offset, dim1, dim2),
    view=True, moves="strided",
                  x=lambda g, x_spec, offset, dim1, dim2: diagonal_embed(
                      g, shape=x_spec.shape, offset=offset, dim1=dim1, dim2=dim2))
diagonal_embed: Op = linear(
    "diagonal_embed", _diagonal_embed,
    x=lambda g, offset, dim1, dim2: diagonal(g, offset=offset, dim1=dim1, dim2=dim2), moves="pad",
    sweep=KIND_JOIN,
    window=lambda y, shape, offset, dim1, dim2: y.diagonal(offset, dim1, dim2),
)
tril: Op = linear(
    "tril", large("row_loops.tril", lambda x, *, diagonal: np.tril(x, diagonal)),
    x=lambda g, diagonal: tril(g, diagonal=diagonal),
    decomposition=lambda x, *, diagonal: where(_below(x, diagonal), x, np.zeros((), x.dtype)),
    kinds="fib",
    sweep=KIND_TRIANGLE,
)
triu: Op = linear(
    "triu", large("row_loops.triu", lambda x, *, diagonal: np.triu(x, diagonal)),
    x=lambda g, diagonal: triu(g, diagonal=diagonal),
    decomposition=lambda x, *, diagonal: where(_below(x, diagonal - 1), np.zeros((), x.dtype), x),
    kinds="fib",
    sweep=KIND_TRIANGLE,
)
# fmt: on
