"""Convolutions over one, two and three dimensions, and patches of images.

The input is (batch, channels, *size), or one example without the batch.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tapegrad.dispatch.convolution_plans import remember, run_planned
from tapegrad.dispatch.dispatch import run
from tapegrad.functions.arguments import as_input
from tapegrad.functions.shapes import reshape, squeeze, unsqueeze
from tapegrad.functions.tiling import pad
from tapegrad.ops import convolution as c
from tapegrad.ops.convolution import Geometry, Sizes
from tapegrad.tensor import Tensor

Whole = int | tuple[int, ...]


def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Whole = 1,
    padding: str | Whole = 0, dilation: Whole = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The convolution of signals with filters (out channels, channels / groups, length).

    As in all of machine learning the filters are not turned round.

    >>> import tapegrad as tg
    >>> tg.nn.functional.conv1d(tg.tensor([[1.0, 2.0, 4.0]]), tg.tensor([[[-1.0, 1.0]]]))
    tensor([[1., 2.]])
    """
    return _convolved("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Whole = 1,
    padding: str | Whole = 0, dilation: Whole = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The convolution of images with filters (out channels, channels / groups, height, width).

    `padding` is a number of zeros around the image, "valid" (none), or "same", by which the
    result has the size of the image.

    >>> import tapegrad as tg
    >>> tg.nn.functional.conv2d(tg.ones(1, 3, 3), tg.ones(1, 1, 3, 3), padding="same")
    tensor([[[4., 6., 4.],
             [6., 9., 6.],
             [4., 6., 4.]]])
    """
    return _convolved("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Whole = 1,
    padding: str | Whole = 0, dilation: Whole = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The convolution of volumes with filters (out channels, channels / groups, *size).

    >>> import tapegrad as tg
    >>> tg.nn.functional.conv3d(tg.ones(1, 2, 2, 2), tg.ones(1, 1, 2, 2, 2))
    tensor([[[[8.]]]])
    """
    return _convolved("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Whole = 1,
    padding: Whole = 0, output_padding: Whole = 0, groups: int = 1, dilation: Whole = 1,
) -> Tensor:  # fmt: skip
    """The transpose of `conv1d`, with filters (channels, out channels / groups, length).

    >>> import tapegrad as tg
    >>> F = tg.nn.functional
    >>> F.conv_transpose1d(tg.tensor([[1.0, 2.0]]), tg.tensor([[[1.0, 1.0]]]), stride=2)
    tensor([[1., 1., 2., 2.]])
    """
    more = stride, padding, output_padding, groups, dilation
    return _transposed("conv_transpose1d", 1, input, weight, bias, *more)


def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Whole = 1,
    padding: Whole = 0, output_padding: Whole = 0, groups: int = 1, dilation: Whole = 1,
) -> Tensor:  # fmt: skip
    """The transpose of `conv2d`, with filters (channels, out channels / groups, height, width).

    Images of several sizes give one size under a `stride`; `output_padding` is added to the least.

    >>> import tapegrad as tg
    >>> tg.nn.functional.conv_transpose2d(tg.ones(1, 2, 2), tg.ones(1, 1, 2, 2))
    tensor([[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]])
    """
    more = stride, padding, output_padding, groups, dilation
    return _transposed("conv_transpose2d", 2, input, weight, bias, *more)


def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Whole = 1,
    padding: Whole = 0, output_padding: Whole = 0, groups: int = 1, dilation: Whole = 1,
) -> Tensor:  # fmt: skip
    """The transpose of `conv3d`, with filters (channels, out channels / groups, *size).

    >>> import tapegrad as tg
    >>> F = tg.nn.functional
    >>> F.conv_transpose3d(tg.ones(1, 1, 1, 1), tg.ones(1, 1, 1, 1, 2))
    tensor([[[[1., 1.]]]])
    """
    more = stride, padding, output_padding, groups, dilation
    return _transposed("conv_transpose3d", 3, input, weight, bias, *more)


def unfold(
    input: Tensor, kernel_size: Whole, dilation: Whole = 1, padding: Whole = 0, stride: Whole = 1
) -> Tensor:
    """The patches of images as columns, (batch, channels * size of a patch, places).

    >>> import tapegrad as tg
    >>> tg.nn.functional.unfold(tg.arange(4.0).reshape(1, 2, 2), (1, 2))
    tensor([[0., 2.],
            [1., 3.]])
    """
    x, batched = _as_batch("unfold", as_input(input, "unfold"), 2)
    kernel, at = _blocks("unfold", kernel_size, dilation, padding, stride)
    if not all(x._a.shape[1:]):
        raise RuntimeError(
            f"`unfold` takes images that have elements, got the shape {input._a.shape}"
        )
    places = _places(x._a.shape[2:], kernel, at)
    if min(places) < 1:
        raise RuntimeError(
            f"`unfold`: patches of {_spanned(kernel, at)} do not fit into images of "
            f"{x._a.shape[2:]} with a padding of {at.padding}"
        )
    out = run(c.im2col, (x,), {"kernel": kernel, "places": places, "geometry": at})
    return out if batched else squeeze(out, 0)


def fold(
    input: Tensor, output_size: Whole, kernel_size: Whole, dilation: Whole = 1,
    padding: Whole = 0, stride: Whole = 1,
) -> Tensor:  # fmt: skip
    """The transpose of `unfold`: images of a size that columns of patches are added up to.

    >>> import tapegrad as tg
    >>> tg.nn.functional.fold(tg.ones(2, 2), (1, 3), (1, 2))
    tensor([[[1., 2., 1.]]])
    """
    x, batched = _as_batch("fold", as_input(input, "fold"), 1)
    kernel, at = _blocks("fold", kernel_size, dilation, padding, stride)
    size = by_dimension("fold", "output_size", output_size, 2)
    rows, columns = x._a.shape[1:]
    if rows % prod(kernel):
        raise RuntimeError(
            f"`fold`: the length {rows} of the columns is no multiple of the {prod(kernel)} "
            f"elements of patches of {kernel}"
        )
    places = _places(size, kernel, at)
    if min(places) < 1 or prod(places) != columns:
        raise RuntimeError(
            f"`fold`: images of {size} have {places} patches of {kernel}, and not {columns}, as "
            "the last dimension of the input says"
        )
    params = {"size": size, "kernel": kernel, "places": places, "geometry": at}
    out = run(c.col2im, (x,), params)
    return out if batched else squeeze(out, 0)


# -- arguments in normal form ----------------------------------------------------------------------


def by_dimension(name: str, which: str, given: Any, dims: int, least: int = 1) -> Sizes:
    """One number for each dimension, from one for all or from several."""
    if type(given) is int and given >= least:
        return (given,) * dims
    found = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in found):
        raise TypeError(f"`{name}`: {which} is an int or a tuple of ints, got {given!r}")
    if len(found) not in (1, dims):
        raise RuntimeError(
            f"`{name}`: {which} is one int, or {dims} for the dimensions, got {given!r}"
        )
    if min(found) < least:
        raise RuntimeError(f"`{name}`: {which} is at least {least}, got {given!r}")
    return tuple([int(n) for n in found]) * (dims // len(found))


def _blocks(name: str, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """The size of patches, and where they lie."""
    return by_dimension(name, "kernel_size", kernel, 2), Geometry(
        by_dimension(name, "stride", stride, 2),
        by_dimension(name, "padding", padding, 2, 0),
        by_dimension(name, "dilation", dilation, 2),
    )


def _as_batch(name: str, x: Tensor, dims: int) -> tuple[Tensor, bool]:
    """The input with a batch, and whether it had one."""
    ndim = x._a.ndim
    if ndim not in (dims + 1, dims + 2):
        kind = IndexError if name == "unfold" else RuntimeError
        raise kind(
            f"`{name}` takes a batch of {dims + 2} dimensions or an example of {dims + 1}, got "
            f"the shape {x._a.shape}"
        )
    return (x, True) if ndim == dims + 2 else (unsqueeze(x, 0), False)


def _spanned(kernel: Sizes, at: Geometry) -> Sizes:
    """What one window covers."""
    return tuple([d * (k - 1) + 1 for d, k in zip(at.dilation, kernel, strict=True)])


def _places(size: Sizes, kernel: Sizes, at: Geometry) -> Sizes:
    """How many windows there are along each dimension."""
    return tuple([
        (n + 2 * p - span) // s + 1
        for n, p, span, s in zip(size, at.padding, _spanned(kernel, at), at.stride, strict=True)
    ])  # fmt: skip


def _filters(name: str, dims: int, x: Tensor, weight: Any, groups: Any) -> Tensor:
    """The filters, which fit the groups and the type of the input."""
    w = as_input(weight, name)
    if w._a.ndim != dims + 2:
        raise RuntimeError(
            f"`{name}`: filters have {dims + 2} dimensions, got the shape {w._a.shape}"
        )
    if w._a.dtype != x._a.dtype:
        raise RuntimeError(
            f"`{name}`: the input is of {x.dtype} and the filters of {w.dtype}: convert one of them"
        )
    if not isinstance(groups, (int, np.integer)):
        raise TypeError(f"`{name}`: groups is an int, got {type(groups).__name__}")
    if groups < 1 or not len(w._a) or len(w._a) % groups:
        raise RuntimeError(
            f"`{name}`: filters of the shape {w._a.shape} do not fall into {groups} groups"
        )
    return w


def _plus_bias(name: str, out: Tensor, bias: Any, dims: int, batched: bool) -> Tensor:
    if bias is not None:
        b = as_input(bias, name)
        if b._a.shape != (out._a.shape[1],):
            raise RuntimeError(
                f"`{name}`: the bias has one number for each of {out._a.shape[1]} channels, got "
                f"the shape {b._a.shape}"
            )
        out = out + reshape(b, (-1, *[1] * dims))
    return out if batched else squeeze(out, 0)


def _convolved(
    name: str, dims: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any,
    dilation: Any, groups: Any,
) -> Tensor:  # fmt: skip
    how = dims, stride, padding, dilation, groups
    found = run_planned(c.convolution, input, weight, how)
    if found is not None:
        return _plus_bias(name, found, bias, dims, True)
    x, batched = _as_batch(name, as_input(input, name), dims)
    w = _filters(name, dims, x, weight, groups)
    given = [tuple(g) if type(g) is list else g for g in (stride, padding, dilation)]
    at, size, behind = _laid_out(name, dims, x._a.shape, w._a.shape, *given, groups)
    if behind is not None:
        x = pad(x, behind)
    params = {"size": size, "geometry": at, "exact": False}
    out = run(c.convolution, (x, w), params)
    if x is input and w is weight:
        remember(c.convolution, x, w, out, params, how)
    return _plus_bias(name, out, bias, dims, batched)


@lru_cache(256, typed=True)
def _laid_out(
    name: str, dims: int, images: Sizes, filters: Sizes, stride: Any, padding: Any, dilation: Any,
    groups: int,
) -> tuple[Geometry, Sizes, list[int] | None]:  # fmt: skip
    """How filters lie on images, the size of the result, and a border behind that these need."""
    steps = by_dimension(name, "stride", stride, dims)
    dilated = by_dimension(name, "dilation", dilation, dims)
    kernel, inner, behind = filters[2:], images[2:], None
    if images[1] != filters[1] * groups:
        raise RuntimeError(
            f"`{name}`: filters of the shape {filters} in {groups} groups take "
            f"{filters[1] * groups} channels, got the input {images}"
        )
    if padding == "same":
        if max(steps) > 1:
            raise RuntimeError(f"`{name}`: padding='same' needs the stride 1, got {stride}")
        whole = [d * (k - 1) for d, k in zip(dilated, kernel, strict=True)]
        padding = tuple([n // 2 for n in whole])
        if any(n % 2 for n in whole):  # one more behind than in front
            behind = [part for n in reversed(whole) for part in (0, n % 2)]
            inner = tuple([n + more % 2 for n, more in zip(inner, whole, strict=True)])
    elif isinstance(padding, str):
        if padding != "valid":
            raise RuntimeError(f"`{name}`: padding is 'same', 'valid' or a number, got {padding!r}")
        padding = 0
    at = Geometry(steps, by_dimension(name, "padding", padding, dims, 0), dilated, int(groups))
    size = _places(inner, kernel, at)
    if min(size) < 1 or not all(inner):
        raise RuntimeError(
            f"`{name}`: filters that cover {_spanned(kernel, at)} do not fit into the input "
            f"{images} with a padding of {at.padding}"
        )
    return at, size, behind


def _transposed(
    name: str, dims: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any,
    output_padding: Any, groups: Any, dilation: Any,
) -> Tensor:  # fmt: skip
    how = dims, stride, padding, output_padding, groups, dilation
    found = run_planned(c.convolution_input, input, weight, how)
    if found is not None:
        return _plus_bias(name, found, bias, dims, True)
    x, batched = _as_batch(name, as_input(input, name), dims)
    w = _filters(name, dims, x, weight, groups)
    at = Geometry(
        by_dimension(name, "stride", stride, dims),
        by_dimension(name, "padding", padding, dims, 0),
        by_dimension(name, "dilation", dilation, dims),
        int(groups),
    )
    more = by_dimension(name, "output_padding", output_padding, dims, 0)
    if x._a.shape[1] != len(w._a):
        raise RuntimeError(
            f"`{name}`: filters of the shape {w._a.shape} take {len(w._a)} channels, got the "
            f"input {x._a.shape}"
        )
    for which, shape in (("an input", x._a.shape[1:]), ("filters", w._a.shape)):
        if not all(shape):
            raise RuntimeError(f"`{name}`: {which} of the shape {shape} have no elements")
    if any(m >= max(s, d) for m, s, d in zip(more, at.stride, at.dilation, strict=True)):
        raise RuntimeError(
            f"`{name}`: output_padding must be below the stride or the dilation, got "
            f"{output_padding} for the stride {stride} and the dilation {dilation}"
        )
    span = _spanned(w._a.shape[2:], at)
    size = tuple([
        (n - 1) * s + k + m - 2 * p
        for n, s, k, m, p in zip(x._a.shape[2:], at.stride, span, more, at.padding, strict=True)
    ])  # fmt: skip
    if min(size) < 1:
        raise RuntimeError(
            f"`{name}`: a padding of {padding} leaves nothing of the input {x._a.shape}"
        )
    params = {"size": size, "geometry": at, "exact": False}
    out = run(c.convolution_input, (x, w), params)
    if x is input and w is weight:
        remember(c.convolution_input, x, w, out, params, how)
    return _plus_bias(name, out, bias, dims, batched)
