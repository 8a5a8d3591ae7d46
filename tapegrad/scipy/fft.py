"""`scipy.fft` for Tensors.

>>> import tapegrad as tg
>>> x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (tg.scipy.fft.rfft(x).abs() ** 2).sum().backward(); x.grad
tensor([ 9., 12., 15.])
"""

import math as _math
from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

import numpy as _np

from tapegrad.dispatch.dispatch import run as _run
from tapegrad.functions import fourier as _fourier
from tapegrad.functions.elementwise import mul as _mul
from tapegrad.functions.fourier import LAST_TWO as _LAST_TWO
from tapegrad.functions.fourier import resized as _resized
from tapegrad.numpy_face.common import floating as _floating
from tapegrad.ops.fourier import sines as _sines
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.tensor import Tensor, tensor_of

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftn", "fftshift", "hfft", "hfft2", "hfftn",
    "idct", "idctn", "idst", "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2",
    "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip


def _along_one(function: _Callable[..., Tensor]) -> _Callable[..., _Any]:
    """A transform with SciPy's arguments; how it is computed (`workers`) has no effect."""

    def transform(
        x: _Any, n: int | None = None, axis: int = -1, norm: str | None = None,
        overwrite_x: bool = False, workers: int | None = None, *, plan: object = None,
    ) -> _Any:  # fmt: skip
        return function(tensor_of(x, f"scipy.fft.{function.__name__}"), n, axis, norm)

    return _named(transform, function.__name__)


def _along_several(function: _Callable[..., Tensor], default: _Any) -> _Callable[..., _Any]:
    """The same along several dimensions."""

    def transform(
        x: _Any, s: _Any = None, axes: _Any = default, norm: str | None = None,
        overwrite_x: bool = False, workers: int | None = None, *, plan: object = None,
    ) -> _Any:  # fmt: skip
        return function(tensor_of(x, f"scipy.fft.{function.__name__}"), s, axes, norm)

    return _named(transform, function.__name__)


def _named(transform: _Callable[..., _Any], name: str) -> _Callable[..., _Any]:
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`tapegrad.fft.{name}` with SciPy's arguments."
    return _for_tensors("scipy.fft")(transform)


fft, ifft = _along_one(_fourier.fft), _along_one(_fourier.ifft)
rfft, irfft = _along_one(_fourier.rfft), _along_one(_fourier.irfft)
hfft, ihfft = _along_one(_fourier.hfft), _along_one(_fourier.ihfft)
fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = (
    _along_several(getattr(_fourier, name), _LAST_TWO)
    for name in ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2")
)
fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = (
    _along_several(getattr(_fourier, name), None)
    for name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
)


@_for_tensors("scipy.fft")
def fftshift(x: Tensor, axes: int | _Sequence[int] | None = None) -> Tensor:
    """`tapegrad.fft.fftshift` with SciPy's arguments."""
    return _fourier.fftshift(x, axes)


@_for_tensors("scipy.fft")
def ifftshift(x: Tensor, axes: int | _Sequence[int] | None = None) -> Tensor:
    """`tapegrad.fft.ifftshift` with SciPy's arguments."""
    return _fourier.ifftshift(x, axes)


def _real_transform(name: str) -> _Callable[..., _Any]:
    """A cosine or sine transform along one dimension."""
    kind, inverse = name.lstrip("i"), name.startswith("i")

    def transform(
        x: _Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
        overwrite_x: bool = False, workers: int | None = None, orthogonalize: bool | None = None,
    ) -> _Any:  # fmt: skip
        sizes = None if n is None else (n,)
        t, dims = _resized(_floating(tensor_of(x, name)), sizes, (axis,), name)
        return _transformed(t, kind, type, dims[0], norm, orthogonalize, inverse, name)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`scipy.fft.{name}` along a dimension, of every type and `norm`."
    return _for_tensors("scipy.fft")(transform)


def _real_transforms(name: str) -> _Callable[..., _Any]:
    """The same along several dimensions."""
    kind, inverse = name.lstrip("i")[:-1], name.startswith("i")

    def transform(
        x: _Any, type: int = 2, s: _Any = None, axes: _Any = None, norm: str | None = None,
        overwrite_x: bool = False, workers: int | None = None, *, orthogonalize: bool | None = None,
    ) -> _Any:  # fmt: skip
        t, dims = _resized(_floating(tensor_of(x, name)), s, axes, name)
        for dim in dims:
            t = _transformed(t, kind, type, dim, norm, orthogonalize, inverse, name)
        return t

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`scipy.fft.{name}`: along several dimensions, one after the other."
    return _for_tensors("scipy.fft")(transform)


def _transformed(
    x: Tensor, kind: str, number: int, dim: int, norm: str | None, orthogonalize: bool | None,
    inverse: bool, name: str,
) -> Tensor:  # fmt: skip
    """Weights at the ends, the transform, weights at the ends, and one factor for all."""
    if number not in (1, 2, 3, 4) or norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"`scipy.fft.{name}`: no type {number!r} with the norm {norm!r}")
    size, forward = x._a.shape[dim], number
    if inverse:
        number = {1: 1, 2: 3, 3: 2, 4: 4}[number]
    # What a transform and its inverse multiply by together.
    whole = 2.0 * (size if forward != 1 else size - 1 if kind == "dct" else size + 1)
    root = _math.sqrt(0.5)
    weighted = norm == "ortho" if orthogonalize is None else orthogonalize
    ends: tuple[int, ...] = (0,) if kind == "dct" else (-1,)
    before, after = 1.0, 1.0
    if weighted and (number != 1 or kind == "dct"):
        if number == 1:
            ends, before, after = (0, -1), 1 / root, root
        elif number == 2:
            after = root
        elif number == 3:
            before = 1 / root
    divided = {"ortho": _math.sqrt(whole), "forward": whole if not inverse else 1.0}.get(
        norm or "", whole if inverse else 1.0
    )
    x = _weighted(x, ends, before, dim)
    found: Tensor = _run(_sines, (x,), {"kind": f"{kind}{number}", "dim": dim})
    found = _weighted(found, ends, after, dim)
    return found if divided == 1.0 else _mul(found, 1 / divided)


def _weighted(x: Tensor, ends: tuple[int, ...], weight: float, dim: int) -> Tensor:
    if weight == 1.0:
        return x
    shape = [1] * x._a.ndim
    shape[dim] = x._a.shape[dim]
    weights = _np.ones(x._a.shape[dim], x._a.dtype)
    weights[list(ends)] = weight
    return _mul(x, tensor_of(weights.reshape(shape), ""))


dct, idct, dst, idst = map(_real_transform, ("dct", "idct", "dst", "idst"))
dctn, idctn, dstn, idstn = map(_real_transforms, ("dctn", "idctn", "dstn", "idstn"))


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.fft", name)
