"""Fourier transforms of real and imaginary parts, by transforms of both as the planes of an array.

Compiled programs compute `fft_planes`, which knows sizes of small factors.  Of others a convolution
makes transforms of such a size (Bluestein's algorithm), and even numbers of real elements are half
as many complex ones.
"""

from __future__ import annotations

import math
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tapegrad.ops.core import Op, custom
from tapegrad.ops.shape import cat, flip, getitem, stack
from tapegrad.ops.tiling import pad
from tapegrad.tape.shape_table import Shape

RADICES = (4, 2, 3, 5, 7, 11, 13)
PI = np.longdouble("3.14159265358979323846264338327950288")
Parts = tuple[Any, Any]


@cache
def factors(n: int) -> tuple[int, ...]:
    """The small factors of a size, none where it has another one.

    >>> from tapegrad.ops.fourier_forms import factors
    >>> factors(360), factors(34)
    ((4, 2, 3, 3, 5), ())
    """
    found = []
    for radix in RADICES:
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return tuple(found) if n == 1 else ()


def roots_of_unity(k: Any, n: int) -> np.ndarray:
    """The powers k of the n-th root of unity, to the last bit: angles are below an eighth turn.

    >>> from tapegrad.ops.fourier_forms import roots_of_unity
    >>> roots_of_unity([0, 1, 2, 3], 4).tolist(), roots_of_unity(1, 3).real.item()
    ([(1+0j), 1j, (-1+0j), -1j], -0.5)
    """
    quarter, rest = np.divmod(4 * (np.asarray(k) % n), n)
    steep = 2 * rest > n
    angles = np.where(steep, n - rest, rest) * (PI / (2 * n))
    x, y = np.cos(angles).astype(float), np.sin(angles).astype(float)
    x, y = np.where(steep, y, x), np.where(steep, x, y)
    re = np.choose(quarter, [x, -y, -x, y])
    return re + 1j * np.choose(quarter, [y, x, -y, -x])


def _fft_planes(x: Any, *, dims: Shape) -> Any:
    plane, dim = dims
    re, im = (x.take(k, plane) for k in range(2))
    y = np.fft.fft(re + 1j * im, axis=dim - (plane < dim))
    return np.stack([y.real, y.imag], plane).astype(x.dtype)


def _fft_planes_vjp(g: Any, dims: Shape) -> Any:
    plane = dims[:1]
    return flip(fft_planes(flip(g, dims=plane), dims=dims), dims=plane)


# Of the numbers whose parts lie along the first of two dimensions, along the second of these.
fft_planes: Op = custom("fft_planes", _fft_planes, x=_fft_planes_vjp, ordered=True)


def c2c(re: Any, im: Any, *, dims: Shape, scale: str, forward: bool) -> Parts:
    """The parts of the transform of complex numbers."""
    if not forward:  # exchanged parts are those of i times the conjugate
        im, re = c2c(im, re, dims=dims, scale=scale, forward=True)
        return re, im
    planes = stack(re, im, dim=0)
    for dim in dims:
        planes = _along(planes, dim + 1)
    found = _split(planes)
    factor = factor_of(prod([re.shape[d] for d in dims]), scale)
    return found if factor == 1.0 else (found[0] * factor, found[1] * factor)


def r2c(x: Any, *, dims: Shape, scale: str, half: bool) -> Parts:
    """The parts of the transform of real numbers."""
    *others, last = dims
    n = x.shape[last]
    if not half:
        return c2c(x, zeros(x), dims=dims, scale=scale, forward=True)
    if n % 2:
        re, im = c2c(x, zeros(x), dims=(last,), scale="", forward=True)
        re, im = (_part(part, last, slice(0, n // 2 + 1)) for part in (re, im))
    else:
        re, im = _from_halves(x, last)
    re, im = c2c(re, im, dims=tuple(others), scale="", forward=True) if others else (re, im)
    factor = factor_of(prod([x.shape[d] for d in dims]), scale)
    return (re, im) if factor == 1.0 else (re * factor, im * factor)


def c2r(re: Any, im: Any, *, dims: Shape, scale: str, size: int) -> Any:
    """The real numbers of which half the frequencies are given."""
    *others, last = dims
    if others:
        re, im = c2c(re, im, dims=tuple(others), scale="", forward=False)
    inner = (size - 1) // 2  # the frequencies whose conjugates are left out
    im = _padded(_part(im, last, slice(1, inner + 1)), last, 1, size // 2 - inner)
    if size % 2:
        mirrored = [flip(_part(part, last, slice(1, inner + 1)), dims=(last,)) for part in (re, im)]
        re, im = cat(re, mirrored[0], dim=last), cat(im, -mirrored[1], dim=last)
        found, _ = c2c(re, im, dims=(last,), scale="", forward=False)
    else:
        found = _to_halves(re, im, last, size)
    factor = factor_of(size * prod([re.shape[d] for d in others]), scale)
    return found if factor == 1.0 else found * factor


def sines(x: Any, *, kind: str, dim: int) -> Any:
    """SciPy's cosine and sine transforms, "dct2" being the cosine transform of type 2.

    A sine transform is the cosine transform with signs that alternate on one side, and the order
    turned round on the other, but for type 1.  None where there is none of one element.
    """
    n, number = x.shape[dim], kind[3]
    if number == "1":
        return None if kind == "dct1" and n == 1 else _mirrored(x, dim, odd=kind == "dst1")
    transform = {"2": _cosines, "3": _of_cosines, "4": _between}[number]
    if kind.startswith("dct"):
        return transform(x, dim)
    signs = _row(1.0 - 2.0 * (np.arange(n) % 2), x, dim)
    if number == "2":
        return flip(transform(x * signs, dim), dims=(dim,))
    return transform(flip(x, dims=(dim,)), dim) * signs


def _mirrored(x: Any, dim: int, *, odd: bool) -> Any:
    """Type 1: frequencies of what is mirrored at both ends, with its sign turned if it is odd."""
    if not odd:
        whole = cat(x, flip(_part(x, dim, slice(1, -1)), dims=(dim,)), dim=dim)
        return r2c(whole, dims=(dim,), scale="", half=True)[0]
    halves = [_padded(part, dim, 1, 0) for part in (x, -flip(x, dims=(dim,)))]
    _, im = r2c(cat(*halves, dim=dim), dims=(dim,), scale="", half=True)
    return -_part(im, dim, slice(1, -1))


def _cosines(x: Any, dim: int) -> Any:
    """Type 2: frequencies of the even elements and, backwards, the odd ones (Makhoul)."""
    n = x.shape[dim]
    even, odd = (_part(x, dim, slice(k, None, 2)) for k in range(2))
    order = cat(even, flip(odd, dims=(dim,)), dim=dim)
    z = r2c(order, dims=(dim,), scale="", half=True)
    phase = 2.0 * roots_of_unity(-np.arange(n // 2 + 1), 4 * n)
    re, im = _times(z, _rows(phase, x, dim))
    other = _part(im, dim, slice(1, (n + 1) // 2))
    return cat(re, -flip(other, dims=(dim,)), dim=dim)


def _of_cosines(x: Any, dim: int) -> Any:
    """Type 3, the way back."""
    n = x.shape[dim]
    first = _part(x, dim, slice(0, n // 2 + 1))
    other = _padded(flip(_part(x, dim, slice(n - n // 2, n)), dims=(dim,)), dim, 1, 0)
    phase = roots_of_unity(np.arange(n // 2 + 1), 4 * n)
    re, im = _times((first, -other), _rows(phase, x, dim))
    order = c2r(re, im, dims=(dim,), scale="", size=n)
    even, odd = _part(order, dim, slice(0, (n + 1) // 2)), _part(order, dim, slice((n + 1) // 2, n))
    return _alternating(even, flip(odd, dims=(dim,)), dim)


def _between(x: Any, dim: int) -> Any:
    """Type 4: of an even size, half as many complex numbers."""
    n = x.shape[dim]
    if n % 2:
        ahead = _rows(roots_of_unity(-np.arange(n), 4 * n), x, dim)
        re, im = (_padded(x * part, dim, 0, n) for part in ahead)
        re, im = (_part(z, dim, slice(0, n)) for z in _transformed((re, im), dim))
        phase = 2.0 * roots_of_unity(-2 * np.arange(n) - 1, 8 * n)
        return _times((re, im), _rows(phase, x, dim))[0]
    k = np.arange(n // 2)
    before, after = roots_of_unity(-4 * k - 1, 8 * n), 2.0 * roots_of_unity(-k, 2 * n)
    even, odd = (_part(x, dim, slice(k, None, 2)) for k in range(2))
    parts = _times((even, flip(odd, dims=(dim,))), _rows(before, x, dim))
    re, im = _times(_transformed(parts, dim), _rows(after, x, dim))
    return _alternating(re, -flip(im, dims=(dim,)), dim)


def _transformed(parts: Parts, dim: int) -> Parts:
    return c2c(*parts, dims=(dim,), scale="", forward=True)


def _alternating(even: Any, odd: Any, dim: int) -> Any:
    """Elements in turn from one and from the other, which may have one less."""
    count, less = even.shape[dim], odd.shape[dim] < even.shape[dim]
    pairs = stack(even, _padded(odd, dim, 0, 1) if less else odd, dim=dim + 1)
    whole = pairs.reshape((*even.shape[:dim], 2 * count, *even.shape[dim + 1 :]))
    return _part(whole, dim, slice(0, 2 * count - 1)) if less else whole


def _from_halves(x: Any, dim: int) -> Parts:
    """Half the frequencies of an even number of real elements, two of which make a complex one."""
    n = x.shape[dim]
    re, im = c2c(
        *(_part(x, dim, slice(k, None, 2)) for k in range(2)), dims=(dim,), scale="", forward=True
    )
    re, im = (cat(part, _part(part, dim, slice(0, 1)), dim=dim) for part in (re, im))
    other_re, other_im = (flip(part, dims=(dim,)) for part in (re, im))
    roots = 0.5 * roots_of_unity(np.arange(n // 2 + 1), n)
    cos, sin = _rows(roots, x, dim)
    sum_re, sum_im = re + other_re, im + other_im
    gap_re, gap_im = re - other_re, im - other_im
    return 0.5 * sum_re + sum_im * cos - gap_re * sin, 0.5 * gap_im - gap_re * cos - sum_im * sin


def _to_halves(re: Any, im: Any, dim: int, size: int) -> Any:
    """The even number of real elements of which half the frequencies are given."""
    half = size // 2
    other_re, other_im = (flip(_part(part, dim, slice(1, None)), dims=(dim,)) for part in (re, im))
    re, im = (_part(part, dim, slice(0, half)) for part in (re, im))
    roots = roots_of_unity(np.arange(half), size)
    cos, sin = _rows(roots, re, dim)
    sum_re, gap_im = re + other_re, im - other_im
    gap_re, sum_im = re - other_re, im + other_im
    even, odd = c2c(
        sum_re - (gap_re * sin + sum_im * cos), gap_im + (gap_re * cos - sum_im * sin),
        dims=(dim,), scale="", forward=False,
    )  # fmt: skip
    return _alternating(even, odd, dim)


def _along(planes: Any, dim: int) -> Any:
    n = planes.shape[dim]
    if factors(n):
        return fft_planes(planes, dims=(0, dim))
    return planes if n == 1 else _convolved(planes, dim)


def _convolved(planes: Any, dim: int) -> Any:
    """The transform of any size: 2 j k is j² + k² - (j - k)²."""
    n = planes.shape[dim]
    size = next(m for m in range(2 * n - 1, 4 * n) if factors(m) and m % 4 == 0)
    chirp = roots_of_unity(np.arange(n) ** 2, 2 * n)
    wave = np.pad(chirp, (0, size - n))
    wave[size - n + 1 :] = chirp[:0:-1]
    known = np.fft.fft(wave) / size
    re, im = _split(planes)
    down = _rows(chirp.conj(), re, dim - 1)
    re, im = (_padded(part, dim - 1, 0, size - n) for part in _times((re, im), down))
    given = _split(fft_planes(stack(re, im, dim=0), dims=(0, dim)))
    im, re = _times(given, _rows(known, re, dim - 1))  # exchanged, so that the way is back
    im, re = _split(fft_planes(stack(re, im, dim=0), dims=(0, dim)))
    re, im = (_part(part, dim - 1, slice(0, n)) for part in (re, im))
    return stack(*_times((re, im), down), dim=0)


def _split(planes: Any) -> Parts:
    re, im = (getitem(planes, index=(k,)) for k in range(2))
    return re, im


def _times(a: Parts, b: Parts) -> Parts:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _part(x: Any, dim: int, where: slice) -> Any:
    return getitem(x, index=(slice(None),) * dim + (where,))


def _padded(x: Any, dim: int, before: int, after: int) -> Any:
    widths = [(0, 0)] * x.ndim
    widths[dim] = before, after
    return pad(x, widths=tuple(widths), value=0.0)


def zeros(x: Any) -> np.ndarray:
    """Imaginary parts of real numbers."""
    return np.zeros(x.shape, x._a.dtype)


def _row(values: np.ndarray, x: Any, dim: int) -> np.ndarray:
    """Numbers along a dimension of an array, of its type."""
    return values.astype(x._a.dtype).reshape([-1 if d == dim else 1 for d in range(x.ndim)])


def _rows(values: np.ndarray, x: Any, dim: int) -> Parts:
    """The parts of complex numbers along a dimension of an array, of its type."""
    return _row(values.real, x, dim), _row(values.imag, x, dim)


def factor_of(count: int, scale: str) -> float:
    """What a transform of so many elements is multiplied by."""
    found = {"": 1.0, "ortho": 1.0 / math.sqrt(count), "n": 1.0 / count}
    return found[scale]
