"""Filters of `scipy.ndimage`: sums over windows of an image that is continued at its borders.

>>> import tapegrad as tg
>>> x = tg.tensor([0.0, 0.0, 1.0, 0.0], requires_grad=True)
>>> tg.scipy.ndimage.uniform_filter(x, 3)[1].backward(); x.grad
tensor([0.3333, 0.3333, 0.3333, 0.0000])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.functions.arguments import all_dims, one_dim
from tapegrad.functions.elementwise import sqrt
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import clone, flip, movedim, to
from tapegrad.functions.strided_views import unfold
from tapegrad.numpy_face.common import tensor
from tapegrad.numpy_face.padding import pad_
from tapegrad.scipy.convolution import convolve as windows
from tapegrad.scipy.either import for_tensors
from tapegrad.tensor import Tensor

_own = for_tensors("scipy.ndimage")
# NumPy's names for what lies beyond a border.
PADDING = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge",
    "wrap": "wrap", "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip


def image_of(input: Any, output: Any, name: str) -> Tensor:
    """The image that a function was given, of real numbers."""
    if output is not None:
        raise TypeError(
            f"`scipy.ndimage.{name}` of Tensors does not take `output=`: use what is returned"
        )
    t = tensor(input)
    if t._a.dtype.kind != "f":
        raise TypeError(
            f"`scipy.ndimage.{name}` of Tensors takes real numbers, got {t.dtype}: convert them "
            "with `.to(tapegrad.float64)`"
        )
    return t


def beyond(mode: Any, name: str) -> str:
    """NumPy's name of a mode."""
    if not isinstance(mode, str) or mode not in PADDING:
        raise ValueError(
            f"`scipy.ndimage.{name}`: a mode is one of {sorted(PADDING)}, got {mode!r}"
        )
    return PADDING[mode]


def for_each(value: Any, count: int, argument: str, name: str) -> list[Any]:
    """An argument of each axis."""
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"`scipy.ndimage.{name}`: `{argument}` has {len(value)} entries for {count} axes"
        )
    return list(value)


def continued(t: Tensor, sizes: Any, mode: str, cval: Any, origins: Any, name: str) -> Tensor:
    """The image with so much at its borders that windows of such sizes fit around each element."""
    widths = []
    for size, origin in zip(sizes, origins, strict=True):
        before = size // 2 + origin
        if not 0 <= before < max(size, 1):
            raise ValueError(
                f"`scipy.ndimage.{name}`: the origin {origin} lies outside of a window of {size}"
            )
        widths.append((before, size - 1 - before))
    how = beyond(mode, name)
    return pad_(t, widths, how, **({"constant_values": cval} if how == "constant" else {}))


def _along(
    t: Tensor, weights: Any, axis: int, mode: Any, cval: Any, origin: int, name: str
) -> Tensor:
    """The products of weights with a window around each element along one axis."""
    kernel = to(tensor(weights), dtype=t._a.dtype)
    d = one_dim(axis, t._a.ndim, f"scipy.ndimage.{name}")
    if kernel._a.ndim != 1 or not kernel._a.size:
        raise ValueError(
            f"`scipy.ndimage.{name}`: weights along an axis are a vector, got the shape "
            f"{kernel._a.shape}"
        )
    line = movedim(t, d, -1)
    rest = [1] * (t._a.ndim - 1)
    size = kernel._a.size
    whole = continued(line, [*rest, size], mode, cval, [*[0] * len(rest), origin], name)
    return movedim(matmul(unfold(whole, -1, size, 1), kernel), -1, d)


@_own
def correlate1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect",
    cval: Any = 0.0, origin: int = 0,
) -> Tensor:  # fmt: skip
    """The correlation with weights along one axis.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.correlate1d(tg.tensor([1.0, 2.0, 4.0]), [-1.0, 0.0, 1.0])
    tensor([1., 3., 2.])
    """
    t = image_of(input, output, "correlate1d")
    return _along(t, weights, axis, mode, cval, origin, "correlate1d")


@_own
def convolve1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect",
    cval: Any = 0.0, origin: int = 0,
) -> Tensor:  # fmt: skip
    """The convolution with weights along one axis.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.convolve1d(tg.tensor([1.0, 2.0, 4.0]), [-1.0, 0.0, 1.0])
    tensor([-1., -3., -2.])
    """
    t, kernel = image_of(input, output, "convolve1d"), tensor(weights)
    # A window of even size has its center on the other side.
    opposite = -origin - (kernel._a.size % 2 == 0)
    return _along(t, flip(kernel, (0,)), axis, mode, cval, opposite, "convolve1d")


@_own
def correlate(
    input: Any, weights: Any, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Tensor:  # fmt: skip
    """The correlation of an image with weights of as many dimensions.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.correlate(tg.eye(2), tg.tensor([[1.0, 2.0]]))
    tensor([[3., 1.],
            [0., 2.]])
    """
    t = image_of(input, output, "correlate")
    return _windowed(t, tensor(weights), mode, cval, origin, axes, "correlate")


@_own
def convolve(
    input: Any, weights: Any, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Tensor:  # fmt: skip
    """The convolution of an image with weights of as many dimensions.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.convolve(tg.eye(2), tg.tensor([[1.0, 2.0]]))
    tensor([[2., 0.],
            [1., 3.]])
    """
    t, kernel = image_of(input, output, "convolve"), tensor(weights)
    origins = for_each(origin, kernel._a.ndim, "origin", "convolve")
    opposite = [-at - (size % 2 == 0) for at, size in zip(origins, kernel._a.shape, strict=True)]
    kernel = flip(kernel, tuple(range(kernel._a.ndim)))
    return _windowed(t, kernel, mode, cval, opposite, axes, "convolve")


def _windowed(
    t: Tensor, kernel: Tensor, mode: str, cval: Any, origin: Any, axes: Any, name: str
) -> Tensor:
    dims = all_dims(axes, t._a.ndim, "axes") if axes is not None else tuple(range(t._a.ndim))
    if kernel._a.ndim != len(dims) or not kernel._a.size:
        raise ValueError(
            f"`scipy.ndimage.{name}`: weights have a dimension for each of {len(dims)} axes, got "
            f"the shape {kernel._a.shape}"
        )
    origins, sizes = [0] * t._a.ndim, [1] * t._a.ndim
    given = for_each(origin, len(dims), "origin", name)
    for d, size, at in zip(dims, kernel._a.shape, given, strict=True):
        sizes[d], origins[d] = size, at
    order = np.argsort(dims).tolist()
    kernel = to(kernel, dtype=t._a.dtype).permute(order).reshape(sizes)
    whole = continued(t, sizes, mode, cval, origins, name)
    found: Tensor = windows(whole, flip(kernel, tuple(range(t._a.ndim))), mode="valid")
    return found


@_own
def uniform_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect",
    cval: Any = 0.0, origin: int = 0,
) -> Tensor:  # fmt: skip
    """The mean of a window of `size` elements along one axis.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.uniform_filter1d(tg.tensor([0.0, 3.0, 0.0, 0.0]), 3)
    tensor([1., 1., 1., 0.])
    """
    t = image_of(input, output, "uniform_filter1d")
    return _along(t, np.full(size, 1 / size), axis, mode, cval, origin, "uniform_filter1d")


@_own
def uniform_filter(
    input: Any, size: Any = 3, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of a window around each element.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.uniform_filter(tg.tensor([[0.0, 9.0, 0.0]]), 3)
    tensor([[3., 3., 3.]])
    """
    name = "uniform_filter"
    t = clone(image_of(input, output, name))
    dims = all_dims(axes, t._a.ndim, "axes") if axes is not None else tuple(range(t._a.ndim))
    each = [
        for_each(value, len(dims), key, name)
        for key, value in (("size", size), ("mode", mode), ("origin", origin))
    ]
    for d, n, how, at in zip(dims, *each, strict=True):
        if n > 1:
            t = _along(t, np.full(n, 1 / n), d, how, cval, at, name)
    return t


def _gaussian(sigma: Any, order: int, truncate: float, radius: Any, name: str) -> Any:
    """Weights of a derivative of the normal distribution; `sigma` may be a Tensor."""
    if radius is None:
        number = sigma.detach().double() if isinstance(sigma, Tensor) else float(sigma)
        try:
            radius = int(truncate * number + 0.5)
        except RuntimeError as problem:
            raise RuntimeError(
                f"`scipy.ndimage.{name}`: the number of weights depends on `sigma`, whose value is "
                "not known here: give it as `radius=`"
            ) from problem
    if order < 0 or radius < 0 or radius != int(radius):
        raise ValueError(
            f"`scipy.ndimage.{name}`: an order and a radius are whole numbers from 0, got {order} "
            f"and {radius}"
        )
    x = np.arange(-radius, radius + 1.0)
    phi = np.exp(-0.5 * (x / sigma) ** 2)
    phi = phi / np.sum(phi)
    # Each derivative is the density times a polynomial.
    factors: list[Any] = [1.0]
    for _ in range(order):
        slope = [k * c for k, c in enumerate(factors)][1:] + [0.0, 0.0]
        rest = [0.0, *[-c / (sigma * sigma) for c in factors]]
        factors = [a + b for a, b in zip(slope, rest, strict=True)]
    return phi * sum(c * (-x) ** k for k, c in enumerate(factors))


@_own
def gaussian_filter1d(
    input: Any, sigma: Any, axis: int = -1, order: int = 0, output: Any = None,
    mode: str = "reflect", cval: Any = 0.0, truncate: float = 4.0, *, radius: int | None = None,
) -> Tensor:  # fmt: skip
    """The convolution with a normal distribution, or a derivative of it, along one axis.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.gaussian_filter1d(tg.tensor([0.0, 1.0, 0.0]), 0.5)
    tensor([0.1067, 0.7866, 0.1067])
    """
    t = image_of(input, output, "gaussian_filter1d")
    weights = _gaussian(sigma, order, truncate, radius, "gaussian_filter1d")
    return _along(t, weights, axis, mode, cval, 0, "gaussian_filter1d")


@_own
def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, truncate: float = 4.0, *, radius: Any = None, axes: Any = None,
) -> Tensor:  # fmt: skip
    """The convolution with a normal distribution, or a derivative of it.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.gaussian_filter(tg.eye(2), 0.5)
    tensor([[0.8089, 0.1911],
            [0.1911, 0.8089]])
    """
    name = "gaussian_filter"
    t = clone(image_of(input, output, name))
    dims = all_dims(axes, t._a.ndim, "axes") if axes is not None else tuple(range(t._a.ndim))
    if isinstance(sigma, Tensor) and sigma._a.ndim:
        sigma = list(sigma)
    each = [
        for_each(value, len(dims), key, name)
        for key, value in (("sigma", sigma), ("order", order), ("mode", mode), ("radius", radius))
    ]
    for d, width, n, how, reach in zip(dims, *each, strict=True):
        if isinstance(width, Tensor) or width > 1e-15:
            t = _along(t, _gaussian(width, n, truncate, reach, name), d, how, cval, 0, name)
    return t


def _edges(
    input: Any, smoothing: list[float], axis: int, output: Any, mode: Any, cval: Any, name: str
) -> Tensor:
    t = image_of(input, output, name)
    d = one_dim(axis, t._a.ndim, f"scipy.ndimage.{name}")
    modes = for_each(mode, t._a.ndim, "mode", name)
    t = _along(t, [-1.0, 0.0, 1.0], d, modes[d], cval, 0, name)
    for k in range(t._a.ndim):
        if k != d:
            t = _along(t, smoothing, k, modes[k], cval, 0, name)
    return t


@_own
def sobel(
    input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Tensor:
    """Differences along one axis, smoothed along the others.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.sobel(tg.tensor([[1.0, 2.0, 4.0]]))
    tensor([[ 4., 12.,  8.]])
    """
    return _edges(input, [1.0, 2.0, 1.0], axis, output, mode, cval, "sobel")


@_own
def prewitt(
    input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Tensor:
    """Differences along one axis, added up over three along the others.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.prewitt(tg.tensor([[1.0, 2.0, 4.0]]))
    tensor([[3., 9., 6.]])
    """
    return _edges(input, [1.0, 1.0, 1.0], axis, output, mode, cval, "prewitt")


@_own
def laplace(
    input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None
) -> Tensor:
    """The sum of second differences along all axes.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.laplace(tg.tensor([0.0, 1.0, 0.0]))
    tensor([ 1., -2.,  1.])
    """
    t = image_of(input, output, "laplace")
    dims = all_dims(axes, t._a.ndim, "axes") if axes is not None else tuple(range(t._a.ndim))
    modes = for_each(mode, len(dims), "mode", "laplace")
    parts = [
        _along(t, [1.0, -2.0, 1.0], d, how, cval, 0, "laplace")
        for d, how in zip(dims, modes, strict=True)
    ]
    return sum(parts[1:], parts[0])


def _slopes(t: Tensor, sigma: Any, order: int, how: dict[str, Any]) -> list[Tensor]:
    """The derivatives of a smoothed image along each axis."""
    orders = order * np.eye(t._a.ndim, dtype=int)
    return [gaussian_filter(t, sigma, list(row), **how) for row in orders.tolist()]


@_own
def gaussian_laplace(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, **how: Any
) -> Tensor:
    """The sum of second derivatives of a normal distribution, convolved with an image.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.gaussian_laplace(tg.tensor([0.0, 1.0, 0.0]), 0.5)[1]
    tensor(-3.1463)
    """
    t = image_of(input, output, "gaussian_laplace")
    parts = _slopes(t, sigma, 2, {"mode": mode, "cval": cval, **how})
    return sum(parts[1:], parts[0])


@_own
def gaussian_gradient_magnitude(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, **how: Any
) -> Tensor:
    """The length of the gradient of a smoothed image.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.gaussian_gradient_magnitude(tg.tensor([0.0, 1.0, 0.0]), 0.5)[0]
    tensor(0.4237)
    """
    t = image_of(input, output, "gaussian_gradient_magnitude")
    parts = _slopes(t, sigma, 1, {"mode": mode, "cval": cval, **how})
    squares = [part * part for part in parts]
    return sqrt(sum(squares[1:], squares[0]))
