"""Interpolation of `scipy.ndimage`, by splines of order 0 to 5.

>>> import numpy as np, tapegrad as tg
>>> image = tg.tensor([0.0, 1.0, 4.0])
>>> tg.grad(lambda at: tg.scipy.ndimage.map_coordinates(image, [[at]], order=1)[0])(1.5)
3.0
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tapegrad.functions.arguments import one_dim
from tapegrad.functions.arithmetic import where
from tapegrad.functions.elementwise import cos, deg2rad, floor, sin
from tapegrad.functions.joining import stack
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import movedim, to
from tapegrad.numpy_face.common import tensor
from tapegrad.numpy_face.padding import pad_
from tapegrad.scipy.either import for_tensors, theirs
from tapegrad.scipy.image_filters import beyond, image_of
from tapegrad.tensor import Tensor, wrap

_own = for_tensors("scipy.ndimage")
MARGIN = 12  # what SciPy adds at borders without a formula of their own for splines


@_own
def map_coordinates(
    input: Any, coordinates: Any, output: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True,
) -> Tensor:  # fmt: skip
    """What an image has at places between its elements, of which row k has the k-th coordinates.

    Order 0 takes the nearest element, 1 interpolates linearly, 2 to 5 by splines of that degree;
    the result is differentiable in the image, and from order 1 on in the coordinates.

    >>> import tapegrad as tg
    >>> image = tg.tensor([[0.0, 1.0], [2.0, 3.0]])
    >>> tg.scipy.ndimage.map_coordinates(image, [[0.5, 1.0], [0.5, 0.0]], order=1)
    tensor([1.5000, 2.0000])
    """
    name = "map_coordinates"
    t, places = image_of(input, output, name), tensor(coordinates)
    if places._a.dtype.kind not in "fiu" or places._a.ndim < 2 or len(places) != t._a.ndim:
        raise ValueError(
            f"`scipy.ndimage.{name}`: the coordinates are real, a row for each of {t._a.ndim} "
            f"axes, got the shape {places._a.shape} and {places.dtype}"
        )
    if places._a.dtype.kind != "f":
        places = to(places, dtype=np.dtype(float))
    return _interpolated(t, list(places), order, mode, cval, prefilter, name)


@_own
def shift(
    input: Any, shift: Any, output: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True,
) -> Tensor:  # fmt: skip
    """The image moved by `shift` elements, one number or one for each axis.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.shift(tg.tensor([1.0, 2.0, 4.0]), 0.5, order=1)
    tensor([0.0000, 1.5000, 3.0000])
    """
    t = image_of(input, output, "shift")
    by = _numbers(shift, t._a.ndim, "shift")
    places = [at - s for at, s in zip(_grid(t._a.shape, [1.0] * t._a.ndim), by, strict=True)]
    return _interpolated(t, places, order, mode, cval, prefilter, "shift")


@_own
def zoom(
    input: Any, zoom: Any, output: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True, *, grid_mode: bool = False,
) -> Tensor:  # fmt: skip
    """The image with `zoom` times as many elements, one number or one for each axis.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.zoom(tg.tensor([1.0, 3.0]), 1.5, order=1)
    tensor([1., 2., 3.])
    """
    t = image_of(input, output, "zoom")
    if grid_mode:
        raise TypeError("`scipy.ndimage.zoom` of Tensors has no `grid_mode`")
    by = [float(z) for z in _numbers(zoom, t._a.ndim, "zoom")]
    sizes = [round(n * z) for n, z in zip(t._a.shape, by, strict=True)]
    steps = [(n - 1) / (m - 1) if m > 1 else 1.0 for n, m in zip(t._a.shape, sizes, strict=True)]
    return _interpolated(t, _grid(sizes, steps), order, mode, cval, prefilter, "zoom")


@_own
def affine_transform(
    input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, output: Any = None,
    order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
) -> Tensor:  # fmt: skip
    """The image with at each element what it has at the place ``matrix @ element + offset``.

    A vector stands for a diagonal matrix; one column more holds the offsets, and with one row more
    the matrix is of homogeneous coordinates.  All of them have derivatives, from order 1 on.

    >>> import tapegrad as tg
    >>> half = tg.tensor([[0.5]])
    >>> tg.scipy.ndimage.affine_transform(tg.tensor([1.0, 2.0, 4.0]), half, order=1)
    tensor([1.0000, 1.5000, 2.0000])
    """
    name = "affine_transform"
    t, by = image_of(input, output, name), tensor(matrix)
    n, shape = t._a.ndim, by._a.shape
    if shape in ((n, n + 1), (n + 1, n + 1)):
        by, offset = by[:n, :n], by[:n, n]
    elif shape not in ((n,), (n, n)):
        raise ValueError(
            f"`scipy.ndimage.{name}`: the matrix of an image with {n} axes has the shape ({n},), "
            f"({n}, {n}), ({n}, {n + 1}) or ({n + 1}, {n + 1}), got {shape}"
        )
    sizes = t._a.shape if output_shape is None else tuple(int(k) for k in output_shape)
    grid, offsets = _grid(sizes, [1.0] * n), _numbers(offset, n, name)
    if by._a.ndim == 1:
        places = [at * by[k] + offsets[k] for k, at in enumerate(grid)]
    else:
        places = _moved(grid, by, offsets)
    return _interpolated(t, places, order, mode, cval, prefilter, name)


def _moved(grid: list[Any], by: Any, offsets: Sequence[Any]) -> list[Any]:
    """A matrix times coordinates, with offsets."""
    n = range(len(grid))
    return [sum((by[k][j] * grid[j] for j in n), offsets[k]) for k in n]


@_own
def rotate(
    input: Any, angle: Any, axes: Any = (1, 0), reshape: bool = True, output: Any = None,
    order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
) -> Tensor:  # fmt: skip
    """The image turned by an angle, in degrees, in the plane of two axes.

    With `reshape` the result is large enough for all of the image.  The angle has a derivative
    from order 1 on.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.rotate(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), 90, order=1)
    tensor([[2., 4.],
            [1., 3.]])
    """
    t = image_of(input, output, "rotate")
    if len(axes) != 2:
        raise ValueError(f"`scipy.ndimage.rotate`: two axes are turned, got {axes!r}")
    plane = sorted(one_dim(d, t._a.ndim, "scipy.ndimage.rotate") for d in axes)
    if plane[0] == plane[1]:
        raise ValueError(f"`scipy.ndimage.rotate`: the two axes differ, got {axes!r}")
    c, s = _on_circle(angle)
    rotation = ((c, s), (-s, c))
    sizes = inner = np.array([t._a.shape[d] for d in plane])
    if reshape:
        fixed = _on_circle(_known(angle))
        corners = np.array([fixed, (-fixed[1], fixed[0])]) @ [
            [0, 0, inner[0], inner[0]], [0, inner[1], 0, inner[1]]
        ]  # fmt: skip
        sizes = (np.ptp(corners, axis=1) + 0.5).astype(int)
    grid = _grid(sizes.tolist(), [1.0, 1.0])
    ours, theirs = (sizes - 1) / 2, (inner - 1) / 2
    centered = [at - middle for at, middle in zip(grid, ours, strict=True)]
    places = _moved(centered, rotation, theirs.tolist())
    rest = movedim(t, tuple(plane), (-2, -1))
    images = rest.reshape(-1, *inner.tolist())
    how = (order, mode, cval, prefilter, "rotate")
    turned = stack([_interpolated(image, places, *how) for image in images])
    found = turned.reshape(*rest._a.shape[:-2], *sizes.tolist())
    return movedim(found, (-2, -1), tuple(plane))


def _on_circle(angle: Any) -> tuple[Any, Any]:
    """The cosine and the sine of an angle in degrees, which are exact for right ones."""
    if isinstance(angle, Tensor):
        return cos(deg2rad(angle)), sin(deg2rad(angle))
    special = importlib.import_module("scipy.special")
    return special.cosdg(angle), special.sindg(angle)


def _known(angle: Any) -> float:
    """The number that an angle is, on which the shape of a turned image depends."""
    try:
        return float(angle.detach()) if isinstance(angle, Tensor) else float(angle)
    except RuntimeError as problem:
        raise RuntimeError(
            "`scipy.ndimage.rotate`: the shape of the result depends on the angle, whose value is "
            "not known here: pass `reshape=False`"
        ) from problem


def _numbers(given: Any, ndim: int, name: str) -> list[Any]:
    """One number for each axis."""
    if not np.ndim(given):
        return [given] * ndim
    if len(given) != ndim:
        raise ValueError(
            f"`scipy.ndimage.{name}`: one number, or one for each of {ndim} axes, got {len(given)}"
        )
    return list(given)


def _grid(sizes: Sequence[int], steps: Sequence[float]) -> list[Any]:
    """Of each axis the coordinates, to be broadcast."""
    lines = [np.arange(n) * step for n, step in zip(sizes, steps, strict=True)]
    return list(np.meshgrid(*lines, indexing="ij"))


def _interpolated(
    t: Tensor, places: list[Any], order: int, mode: str, cval: Any, prefilter: bool, name: str
) -> Tensor:
    if order not in range(6):
        raise TypeError(f"`scipy.ndimage.{name}` has the orders 0 to 5, got {order!r}")
    how = beyond(mode, name)
    dtype = t._a.dtype
    margin = 0
    if order > 1 and prefilter:
        if mode in ("nearest", "grid-constant"):
            margin = MARGIN
            t = pad_(t, margin, how, **({"constant_values": cval} if how == "constant" else {}))
        for d, n in enumerate(t._a.shape):
            t = _coefficients(t, d, n, order, mode)
    shape = t._a.shape
    inside: Any = True
    axes = []
    for place, n in zip(places, shape, strict=True):
        x = tensor(place) + float(margin)
        if mode == "constant":
            inside = inside & (x >= 0) & (x <= n - 1)
        axes.append(_neighbours(_brought_back(x, n, mode), n, order, mode))
    flat, found = t.reshape(-1), None
    for corner in product(*axes):
        index, weight, there = 0, None, None
        for (at, share, known), n in zip(corner, shape, strict=True):
            index = index * n + at
            share = None if share is None else to(share, dtype=dtype)
            weight = share if weight is None or share is None else weight * share
            there = known if there is None or known is None else there & known
        value = flat[index]
        value = value if there is None else where(there, value, wrap(np.asarray(cval, dtype)))
        value = value if weight is None else value * weight
        found = value if found is None else found + value
    assert found is not None
    if mode == "constant":
        found = where(inside, found, wrap(np.asarray(cval, dtype)))
    return found


def _coefficients(t: Tensor, d: int, n: int, order: int, mode: str) -> Tensor:
    """Those of the spline through the elements along an axis, which are linear in them."""
    if n < 2:
        return t
    matrix = theirs("scipy.ndimage", "spline_filter1d")(np.eye(n), order, 0, mode=mode)
    return movedim(matmul(movedim(t, d, -1), wrap(matrix.T.astype(t._a.dtype))), -1, d)


def _brought_back(x: Tensor, n: int, mode: str) -> Tensor:
    """Coordinates within the image, at which it has what it is continued with at these."""
    if n == 1 and mode not in ("nearest", "constant", "grid-constant"):
        return x * 0
    if mode == "mirror":
        x = x % (2 * n - 2)
        return where(x > n - 1, 2 * n - 2 - x, x)
    if mode in ("reflect", "grid-mirror"):
        x = (x + 0.5) % (2 * n)
        return where(x > n, 2 * n - x, x) - 0.5
    if mode == "grid-wrap":
        return x % n
    if mode == "wrap":  # the last element is the first one again
        rest = x % (n - 1)
        rest = where((x < 0) & (rest == 0), n - 1 + rest, rest)
        return where((x < 0) | (x > n - 1), rest, x)
    return x


def _neighbours(x: Tensor, n: int, order: int, mode: str) -> list[tuple[Any, Any, Any]]:
    """The elements around coordinates: their indices, their weights, and whether they are there."""
    near = x if order % 2 else x + 0.5
    first = floor(near.detach())
    shares = _splines(near - first, order) if order else [None]
    first = to(first, dtype=np.dtype(np.int64)) - order // 2
    places = [first + k for k in range(len(shares))]
    found = []
    for at, share in zip(places, shares, strict=True):
        known = (at >= 0) & (at < n) if mode == "grid-constant" else None
        found.append((_folded(at, n, mode), share, known))
    return found


def _splines(u: Tensor, order: int) -> list[Any]:
    """The B-splines of a degree that are not zero so far behind a knot, by that of one less."""
    found: list[Any] = [1 - u, u]
    for d in range(2, order + 1):
        rising = [(u + (d - k)) / d * found[k - 1] for k in range(1, d + 1)]
        falling = [(k + 1 - u) / d * found[k] for k in range(d)]
        inner = [a + b for a, b in zip(rising[:-1], falling[1:], strict=True)]
        found = [falling[0], *inner, rising[-1]]
    return found


def _folded(at: Tensor, n: int, mode: str) -> Tensor:
    """Indices of elements that are there."""
    if n == 1:
        return at * 0
    if mode == "grid-wrap":
        return at % n
    if mode in ("reflect", "grid-mirror"):
        at = at % (2 * n)
        return where(at >= n, 2 * n - 1 - at, at)
    if mode in ("nearest", "grid-constant"):
        return at.clip(0, n - 1)
    at = at % (2 * n - 2)
    return where(at >= n, 2 * n - 2 - at, at)
