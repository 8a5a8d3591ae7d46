"""Convolutions over any number of dimensions, their two transposes, and patches of images.

With images x of shape (n, c, *size), filters w of (o, c / groups, *kernel) and outputs v of
(n, o, *places) all three are one form that is linear in each of them, summed over what it names::

    v[n, o, p] * w[o, c, k] * x[n, c of o's group, stride * p + dilation * k - padding]

where x is zero outside.  Leaving v out is the convolution, leaving x out its transpose, leaving w
out the gradient of the filters: the derivatives of each are the other two.  What is left out takes
its `size` along the dimensions from the parameters.  Loops of `kernels.large.direct_convolution`
compute them; where these do not serve, each is a product of matrices, one of which has the patch of
x below each place as a column.

A derivative is `exact`: a factor that is exactly zero contributes exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_CONVOLUTION
from tapegrad.ops.core import ANALYTIC, Op, custom, linear
from tapegrad.ops.large import found, large
from tapegrad.ops.linalg import matmul, product, transposed
from tapegrad.ops.reduce import sum as sum_
from tapegrad.ops.shape import clone, embed, fold, getitem, permute, reshape, unfold
from tapegrad.ops.tiling import pad

Sizes = tuple[int, ...]
CHUNK = 1 << 19  # elements of patches that are made at a time


class Geometry(NamedTuple):
    """Where the windows lie: one number per dimension each, and the groups of channels."""

    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int = 1

    def extent(self, kernel: Sizes, places: Sizes) -> Sizes:
        """What the windows cover of the padded image."""
        return tuple([
            s * (p - 1) + d * (k - 1) + 1 if p and k else 0
            for s, d, k, p in zip(self.stride, self.dilation, kernel, places, strict=True)
        ])  # fmt: skip


def _padded(x: Any, extent: Sizes, padding: Sizes) -> Any:
    """The part of an image that windows cover, with zeros around it."""
    have = x.shape[2:]
    if have == extent and not any(padding):
        return np.ascontiguousarray(x)
    out = np.zeros(x.shape[:2] + extent, x.dtype)
    inside: Any = [max(min(n, m - p), 0) for n, m, p in zip(have, extent, padding, strict=True)]
    to: Any = tuple([slice(p, p + n) for n, p in zip(inside, padding, strict=True)])
    out[(..., *to)] = x[(..., *[slice(n) for n in inside])]
    return out


def _windows(x: Any, kernel: Sizes, places: Sizes, at: Geometry) -> Any:
    """A view (n, c, *kernel, *places) of the patches of images."""
    whole = _padded(x, at.extent(kernel, places), at.padding)
    n, c, *steps = whole.strides
    strides = (
        n,
        c,
        *[d * b for d, b in zip(at.dilation, steps, strict=True)],
        *[s * b for s, b in zip(at.stride, steps, strict=True)],
    )
    return np.ndarray(x.shape[:2] + kernel + places, x.dtype, whole, 0, strides)


def _chunks(n: int, elements: int) -> Iterator[slice]:
    """Slices of so many images, whose patches have so many elements in each."""
    step = max(CHUNK // max(elements, 1), 1)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def _convolved(x: Any, w: Any, size: Sizes, at: Geometry) -> Any:
    n, kernel, rows = len(x), w.shape[2:], len(w) // at.groups
    matrices = w.reshape(at.groups, rows, prod(w.shape[1:]))
    windows = _windows(x, kernel, size, at)
    y = np.empty((n, len(w), *size), x.dtype)
    places = prod(size)
    for part in _chunks(n, matrices.shape[2] * at.groups * places):
        columns = np.ascontiguousarray(windows[part])
        shape = (len(columns), at.groups)
        columns = columns.reshape(*shape, matrices.shape[2], places)
        np.matmul(matrices, columns, out=y[part].reshape(*shape, rows, places))
    return y


def _spread(v: Any, w: Any, size: Sizes, at: Geometry) -> Any:
    n, places, rows = len(v), v.shape[2:], len(w) // at.groups
    matrices = w.reshape(at.groups, rows, prod(w.shape[1:])).swapaxes(1, 2)
    channels = w.shape[1] * at.groups
    x = np.empty((n, channels, *size), v.dtype)
    for part in _chunks(n, at.groups * matrices.shape[1] * prod(places)):
        columns = np.matmul(matrices, v[part].reshape(-1, at.groups, rows, prod(places)))
        columns = columns.reshape(-1, channels, *w.shape[2:], *places)
        x[part] = _added(columns, size, at)
    return x


def _added(patches: Any, size: Sizes, at: Geometry) -> Any:
    """Images of a size that patches are added up to."""
    d = len(size)
    kernel, places = patches.shape[2 : 2 + d], patches.shape[2 + d :]
    whole = [
        max(m, p + n) for m, p, n in zip(at.extent(kernel, places), at.padding, size, strict=True)
    ]
    out = np.zeros((*patches.shape[:2], *whole), patches.dtype)
    if patches.size:
        for k in np.ndindex(kernel):
            below: Any = [
                slice(i * e, i * e + s * (p - 1) + 1, s)
                for i, e, s, p in zip(k, at.dilation, at.stride, places, strict=True)
            ]
            out[(..., *below)] += patches[(slice(None), slice(None), *k)]
    inside: Any = [slice(p, p + n) for p, n in zip(at.padding, size, strict=True)]
    return out[(..., *inside)]


def _correlated(v: Any, x: Any, size: Sizes, at: Geometry) -> Any:
    n, o, places = len(v), v.shape[1], prod(v.shape[2:])
    rows, inner = o // at.groups, x.shape[1] // at.groups * prod(size)
    windows = _windows(x, size, v.shape[2:], at)
    d = len(size)
    order = (*range(1, 2 + d), 0, *range(2 + d, 2 + 2 * d))  # the places of all images last
    total = np.zeros((at.groups, rows, inner), v.dtype)
    for part in _chunks(n, at.groups * inner * places):
        columns = np.ascontiguousarray(windows[part].transpose(order))
        columns = columns.reshape(at.groups, inner, -1)
        outputs = np.ascontiguousarray(np.swapaxes(v[part].reshape(-1, o, places), 0, 1))
        total += np.matmul(outputs.reshape(at.groups, rows, -1), columns.swapaxes(1, 2))
    return total.reshape(o, x.shape[1] // at.groups, *size)


Form = Callable[[Any, Any, Sizes, Geometry], Any]


def _forward(loop: str, plain: Form, zeros: bool = True) -> Any:
    """A forward by a compiled loop, which may multiply by `zeros` that the form does not have."""
    form, quiet = [large(f"direct_convolution.{loop}", f, 1) for f in (plain, _quiet(plain))]

    def forward(a: Any, b: Any, *, size: Sizes, geometry: Geometry, exact: bool) -> Any:
        if not (exact or zeros):
            return form(a, b, size, geometry)
        out = quiet(a, b, size, geometry)
        square = np.vdot(out, out)
        if square == square or _finite(a, b):  # else it is NaN
            return out
        if exact:
            return _quiet(_exact)(lambda p, q: form(p, q, size, geometry), a, b)
        return _quiet(plain)(a, b, size, geometry)

    forward.loop = form.loop  # type: ignore[attr-defined]
    return forward


def _quiet(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function without NumPy's warnings; what the loops compute warns of nothing anyway."""

    def called(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return f(*args)

    return called


def _finite(*arrays: Any) -> bool:
    return all(np.isfinite(x).all() for x in arrays)


def _exact(form: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """A form of two arrays in which zero times infinity is zero, as is zero times NaN.

    The terms that are infinite or NaN are counted, by the form of ones; the others are added.
    A complex number has no sign: each such term of complex numbers is NaN.
    """

    def count(*pairs: tuple[Any, Any]) -> Any:
        return np.sum([form(p.astype(a.dtype), q.astype(a.dtype)) for p, q in pairs], axis=0) > 0

    inf, finite_a, finite_b = np.inf, np.isfinite(a), np.isfinite(b)
    rest = form(np.where(finite_a, a, 0), np.where(finite_b, b, 0))
    if a.dtype.kind == "c":
        wild = count((~finite_a, b != 0), (a != 0, ~finite_b))
        return np.where(wild, complex(np.nan, np.nan), rest).astype(a.dtype)
    up = count((a == inf, b > 0), (a == -inf, b < 0), (a > 0, b == inf), (a < 0, b == -inf))
    down = count((a == inf, b < 0), (a == -inf, b > 0), (a < 0, b == inf), (a > 0, b == -inf))
    wrong = count((np.isnan(a), b != 0), (a != 0, np.isnan(b))) | (up & down)
    rest = np.where(up, inf, np.where(down, -inf, rest))
    return np.where(wrong, np.nan, rest).astype(a.dtype)


def _im2col(x: Any, *, kernel: Sizes, places: Sizes, geometry: Geometry) -> Any:
    columns = np.ascontiguousarray(_windows(x, kernel, places, geometry))
    return columns.reshape(len(x), x.shape[1] * prod(kernel), prod(places))


def _col2im(x: Any, *, size: Sizes, kernel: Sizes, places: Sizes, geometry: Geometry) -> Any:
    count = prod(kernel)
    patches = x.reshape(len(x), x.shape[1] // count if count else 0, *kernel, *places)
    return np.ascontiguousarray(_added(patches, size, geometry))


def _along(ndim: int, dim: int, part: slice) -> tuple[slice, ...]:
    return tuple([part if d == dim else slice(None) for d in range(ndim)])


def _im2col_form(x: Any, *, kernel: Sizes, places: Sizes, geometry: Geometry) -> Any:
    dims, extent = len(kernel), geometry.extent(kernel, places)
    widths = [
        (p, max(m - p - n, 0))
        for n, m, p in zip(x.shape[2:], extent, geometry.padding, strict=True)
    ]
    x = pad(x, widths=((0, 0), (0, 0), *widths), value=0.0)
    x = getitem(x, index=(slice(None), slice(None), *[slice(0, m) for m in extent]))
    for i, (d, k, step) in enumerate(zip(geometry.dilation, kernel, geometry.stride, strict=True)):
        x = unfold(x, dim=2 + i, size=d * (k - 1) + 1, step=step)
        x = getitem(x, index=_along(len(x.shape), len(x.shape) - 1, slice(None, None, d)))
    order = (0, 1, *range(2 + dims, 2 + 2 * dims), *range(2, 2 + dims))
    shape = (x.shape[0], x.shape[1] * prod(kernel), prod(places))
    return reshape(permute(x, dims=order), shape=shape)


def _col2im_form(x: Any, *, size: Sizes, kernel: Sizes, places: Sizes, geometry: Geometry) -> Any:
    dims, extent = len(kernel), geometry.extent(kernel, places)
    shape = (x.shape[0], x.shape[1] // prod(kernel), *kernel, *places)
    order = (0, 1, *range(2 + dims, 2 + 2 * dims), *range(2, 2 + dims))
    x = permute(reshape(x, shape=shape), dims=order)
    for i in reversed(range(dims)):
        d, k, step = geometry.dilation[i], kernel[i], geometry.stride[i]
        whole, last = d * (k - 1) + 1, len(x.shape) - 1
        index = _along(last + 1, last, slice(None, None, d))
        x = embed(x, shape=(*x.shape[:-1], whole), index=index)
        around = (*x.shape[: 2 + i], extent[i], *x.shape[3 + i : -1])
        x = fold(x, shape=around, dim=2 + i, size=whole, step=step)
    widths = [
        (0, max(p + n - m, 0)) for n, m, p in zip(size, extent, geometry.padding, strict=True)
    ]
    x = pad(x, widths=((0, 0), (0, 0), *widths), value=0.0)
    inside = [slice(p, p + n) for n, p in zip(size, geometry.padding, strict=True)]
    return clone(getitem(x, index=(slice(None), slice(None), *inside)))


# In terms of patches, where the loops do not serve.


def _convolution_form(x: Any, w: Any, *, size: Sizes, geometry: Geometry, exact: bool) -> Any:
    if _served("convolution", x, w, size, geometry):
        return None
    columns = _columns(x, w.shape[2:], size, geometry)
    rows = _product(_matrices(w, geometry), columns, exact)
    return reshape(rows, shape=(x.shape[0], w.shape[0], *size))


def _transposed_form(v: Any, w: Any, *, size: Sizes, geometry: Geometry, exact: bool) -> Any:
    if _served("transposed", v, w, size, geometry):
        return None
    kernel, places = w.shape[2:], v.shape[2:]
    columns = _product(transposed(_matrices(w, geometry)), _outputs(v, geometry), exact)
    rows = prod(w.shape[1:]) * geometry.groups
    columns = reshape(columns, shape=(v.shape[0], rows, prod(places)))
    return col2im(columns, size=size, kernel=kernel, places=places, geometry=geometry)


def _correlation_form(v: Any, x: Any, *, size: Sizes, geometry: Geometry, exact: bool) -> Any:
    if _served("correlation", v, x, size, geometry):
        return None
    columns = _columns(x, size, v.shape[2:], geometry)
    each = _product(_outputs(v, geometry), transposed(columns), exact)
    total = sum_(each, dim=(0,), keepdim=False)
    return reshape(total, shape=(v.shape[1], x.shape[1] // geometry.groups, *size))


def _served(form: str, a: Any, b: Any, size: Sizes, at: Geometry) -> bool:
    """Whether the loops compute a form of two arrays."""
    plan = found("direct_convolution.plan")
    return plan(form, a.shape, b.shape, size, at, a._a.dtype.char, 1) is not None


def _product(a: Any, b: Any, exact: bool) -> Any:
    return product(a, b) if exact else matmul(a, b)


def _columns(x: Any, kernel: Sizes, places: Sizes, at: Geometry) -> Any:
    """The patches of the channels of each group, as columns."""
    columns = im2col(x, kernel=kernel, places=places, geometry=at)
    n, rows, count = columns.shape
    return reshape(columns, shape=(n, at.groups, rows // at.groups, count))


def _outputs(v: Any, at: Geometry) -> Any:
    """The outputs of each group as rows."""
    n, o, *places = v.shape
    return reshape(v, shape=(n, at.groups, o // at.groups, prod(places)))


def _matrices(w: Any, at: Geometry) -> Any:
    """The filters of each group as rows."""
    return reshape(w, shape=(at.groups, w.shape[0] // at.groups, prod(w.shape[1:])))


# fmt: off
convolution: Op = custom(
    "convolution", _forward("convolution", _convolved, zeros=False), multilinear=True,
    complex=ANALYTIC, sweep=KIND_CONVOLUTION, decomposition=_convolution_form,
    x=lambda g, w, x_spec, geometry:
        convolution_input(g, w, size=x_spec.shape[2:], geometry=geometry, exact=True),
    w=lambda g, x, w_spec, geometry:
        convolution_weight(g, x, size=w_spec.shape[2:], geometry=geometry, exact=True),
)
convolution_input: Op = custom(
    "convolution_input", _forward("transposed", _spread), multilinear=True, grad_name="Convolution",
    complex=ANALYTIC, sweep=KIND_CONVOLUTION, decomposition=_transposed_form,
    v=lambda g, w, v_spec, geometry:
        convolution(g, w, size=v_spec.shape[2:], geometry=geometry, exact=True),
    w=lambda g, v, w_spec, geometry:
        convolution_weight(v, g, size=w_spec.shape[2:], geometry=geometry, exact=True),
)
convolution_weight: Op = custom(
    "convolution_weight", _forward("correlation", _correlated), multilinear=True,
    grad_name="Convolution", complex=ANALYTIC, sweep=KIND_CONVOLUTION,
    decomposition=_correlation_form,
    v=lambda g, x, v_spec, geometry:
        convolution(x, g, size=v_spec.shape[2:], geometry=geometry, exact=True),
    x=lambda g, v, x_spec, geometry:
        convolution_input(v, g, size=x_spec.shape[2:], geometry=geometry, exact=True),
)
# The patches of each image as columns, (n, c * kernel, places), and what they add up to.
im2col: Op = linear(
    "im2col", _im2col, grad_name="Im2Col", decomposition=_im2col_form,
    x=lambda g, x_spec, kernel, places, geometry:
        col2im(g, size=x_spec.shape[2:], kernel=kernel, places=places, geometry=geometry),
)
col2im: Op = linear(
    "col2im", _col2im, grad_name="Col2Im", decomposition=_col2im_form,
    x=lambda g, kernel, places, geometry:
        im2col(g, kernel=kernel, places=places, geometry=geometry),
)
# fmt: on
