"""Discrete Fourier transforms: of complex numbers, of real ones, and to real ones.

`dims` are the dimensions that are transformed; along the last of them a transform of real numbers
has the half of the frequencies that says all (``half``).  `scale` divides by the number ``n`` of
elements, by its root (``ortho``), or by nothing (````).  A transform without its factor is a
symmetric matrix, so its adjoint is the transform the other way with the same factor.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_FOURIER
from tapegrad.ops import fourier_forms
from tapegrad.ops.complex_parts import real
from tapegrad.ops.core import OWN, Op, linear
from tapegrad.ops.elementwise import mul
from tapegrad.ops.large import large
from tapegrad.tape.shape_table import Shape

FORWARD = {"": "backward", "ortho": "ortho", "n": "forward"}  # the names of NumPy and SciPy
BACKWARD = {"": "forward", "ortho": "ortho", "n": "backward"}
DIVISIONS = {"": 0, "ortho": 1, "n": 2}  # their numbers in SciPy's loops

# NumPy's loops along one dimension; `np.fft` asks much before it calls them. They have no public
# name, and neither have SciPy's along several.
loops: Any = getattr(np.fft, "_pocketfft_umath", None)


@cache
def _scipy() -> tuple[Any, Any]:
    """`scipy.fft` and its loops, None where they are elsewhere."""
    import scipy.fft

    return scipy.fft, getattr(getattr(scipy.fft, "_pocketfft", None), "pypocketfft", None)


@lru_cache(4096)
def plan(name: str, n: int, dim: int, scale: str, kind: np.dtype[Any]) -> tuple[Any, ...]:
    """A loop of NumPy over n elements each, what it multiplies by, its axes, the result's type."""
    real = np.dtype(kind.char.lower())
    divisor = {"": 1, "ortho": np.sqrt(n, dtype=real), "n": n}[scale]
    factor = np.asarray(np.reciprocal(divisor, dtype=real))
    if name == "rfft":
        name = "rfft_n_odd" if n % 2 else "rfft_n_even"
    result = real if name == "irfft" else np.result_type(real, np.complex64)
    return getattr(loops, name), factor, [(dim,), (), (dim,)], result


def _along_one(name: str, x: Any, n: int, dim: int, scale: str) -> Any:
    """The function of `np.fft` of that name; of half the frequencies n says how many there are."""
    if loops is None or x.dtype.char not in "dDfF":
        norm = (BACKWARD if name[0] == "i" else FORWARD)[scale]
        return getattr(np.fft, name)(x, n, axis=dim, norm=norm)
    loop, factor, axes, kind = plan(name, n, dim, scale, x.dtype)
    size = n // 2 + 1 if name == "rfft" else n
    if size == x.shape[dim]:
        y = np.empty_like(x, kind)
    elif x.ndim == 1:
        y = np.empty(size, kind)
    else:
        y = np.empty_like(x, kind, shape=(*x.shape[:dim], size, *x.shape[dim + 1 :]))
    return loop(x, factor, axes=axes, out=y)


def _c2c(x: Any, *, dims: Shape, scale: str, forward: bool) -> Any:
    if not dims:
        return x.copy()
    if len(dims) == 1:
        return _along_one("fft" if forward else "ifft", x, x.shape[dims[0]], dims[0], scale)
    library, fast = _scipy()
    if fast is not None:
        return fast.c2c(x, dims, forward, DIVISIONS[scale])
    transform, norms = (library.fftn, FORWARD) if forward else (library.ifftn, BACKWARD)
    return transform(x, axes=dims, norm=norms[scale])


def _r2c(x: Any, *, dims: Shape, scale: str, half: bool) -> Any:
    if not half:  # NumPy would compute float32 in double precision
        x = x.astype(np.result_type(x.dtype, np.complex64))
        return _c2c(x, dims=dims, scale=scale, forward=True)
    if len(dims) == 1:
        return _along_one("rfft", x, x.shape[dims[0]], dims[0], scale)
    library, fast = _scipy()
    if fast is not None:
        return fast.r2c(x, dims, True, DIVISIONS[scale])
    return library.rfftn(x, axes=dims, norm=FORWARD[scale])


def _c2r(x: Any, *, dims: Shape, scale: str, size: int) -> Any:
    if len(dims) == 1:
        return _along_one("irfft", x, size, dims[0], scale)
    library, fast = _scipy()
    if fast is not None and x.dtype.kind == "c":
        return fast.c2r(x, dims, size, False, DIVISIONS[scale])
    sizes = [x.shape[d] for d in dims[:-1]] + [size]
    return library.irfftn(x, sizes, axes=dims, norm=BACKWARD[scale])


def inner_weights(g: Any, dims: Shape, size: int, factor: float) -> np.ndarray:
    """A factor for frequencies that stand for two, themselves and their conjugates, or 1."""
    shape = [1] * len(g.shape)
    shape[dims[-1]] = size // 2 + 1
    weights = np.full(size // 2 + 1, factor, g._a.real.dtype if hasattr(g, "_a") else g.real.dtype)
    weights[0] = 1.0
    if size % 2 == 0:
        weights[-1] = 1.0
    return weights.reshape(shape)


def _inner(g: Any, dims: Shape, size: int, factor: float) -> Any:
    return mul(g, inner_weights(g, dims, size, factor))


def _r2c_vjp(g: Any, x_spec: Any, dims: Shape, scale: str, half: bool) -> Any:
    if not half:
        return real(fft_c2c(g, dims=dims, scale=scale, forward=False))
    size = x_spec.shape[dims[-1]]
    return fft_c2r(_inner(g, dims, size, 0.5), dims=dims, scale=scale, size=size)


def _c2r_vjp(g: Any, dims: Shape, scale: str, size: int) -> Any:
    return _inner(fft_r2c(g, dims=dims, scale=scale, half=True), dims, size, 2.0)


# Small arrays, too, so that a call has the bits of later ones, which native code makes by a plan.
fft_c2c: Op = linear(
    "fft_c2c",
    large("fourier_transforms.c2c", _c2c, 0),
    x=lambda g, dims, scale, forward: fft_c2c(g, dims=dims, scale=scale, forward=not forward),
    complex=OWN, sweep=KIND_FOURIER,
)  # fmt: skip
fft_r2c: Op = linear("fft_r2c", large("fourier_transforms.r2c", _r2c, 0), x=_r2c_vjp,
                     complex=OWN, sweep=KIND_FOURIER)  # fmt: skip
fft_c2r: Op = linear("fft_c2r", large("fourier_transforms.c2r", _c2r, 0), x=_c2r_vjp,
                     complex=OWN, sweep=KIND_FOURIER)  # fmt: skip


def _sines(x: Any, *, kind: str, dim: int) -> Any:
    import scipy.fft

    return getattr(scipy.fft, kind[:3])(x, int(kind[3]), axis=dim)


def _sines_vjp(g: Any, kind: str, dim: int) -> Any:
    """The transposed transform: type 2 and type 3 are each other's, but for the ends' weights.

    Type 4 is symmetric, and so is type 1 of sines; type 1 of cosines with its columns weighted.
    """
    name, number = kind[:3], kind[3]
    if number == "4" or kind == "dst1":
        return sines(g, kind=kind, dim=dim)
    if kind == "dct1":
        less, more = (_at_ends(g, dim, (0, -1), 1.0, weight) for weight in (0.5, 2.0))
        return mul(sines(mul(g, less), kind=kind, dim=dim), more)
    end = (0 if name == "dct" else -1,)
    if number == "2":
        return sines(mul(g, _at_ends(g, dim, end, 2.0, 1.0)), kind=f"{name}3", dim=dim)
    return mul(sines(g, kind=f"{name}2", dim=dim), _at_ends(g, dim, end, 0.5, 1.0))


def _at_ends(g: Any, dim: int, ends: tuple[int, ...], there: float, rest: float) -> Any:
    """Weights along a dimension."""
    shape = [1] * len(g.shape)
    shape[dim] = g.shape[dim]
    weights = np.full(g.shape[dim], rest, g._a.dtype if hasattr(g, "_a") else g.dtype)
    weights[list(ends)] = there
    return weights.reshape(shape)


# SciPy's cosine and sine transforms, "dct2" being the cosine transform of type 2.
sines = linear("sines", _sines, x=_sines_vjp, decomposition=fourier_forms.sines)
