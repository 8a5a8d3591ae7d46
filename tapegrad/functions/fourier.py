"""Discrete Fourier transforms under PyTorch's names; `tapegrad.fft` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.base.dtypes import get_default_dtype
from tapegrad.base.size import only_ints
from tapegrad.dispatch.call_plans import add_plan, call_plan, count_call, form_plan, is_due, plans
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.fourier_adjoint_plans import row_loop
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.operand_layout import address
from tapegrad.dispatch.record_layout import layout_of
from tapegrad.functions.arguments import as_input, as_type, numpy_names, one_dim
from tapegrad.functions.complex_parts import conj
from tapegrad.functions.creation import as_tensor
from tapegrad.functions.shapes import narrow
from tapegrad.functions.tiling import roll
from tapegrad.kernels.sweep.sweep_abi import ROOM
from tapegrad.native.abi import TRANSFORM, CallPlan, RowTransform
from tapegrad.ops import fourier as f
from tapegrad.ops.core import Op
from tapegrad.ops.tiling import pad
from tapegrad.tape.record_format import GENERAL
from tapegrad.tensor import SHORT, Tensor

Sizes = Sequence[int] | None
Dims = Sequence[int] | None
LAST_TWO = (-2, -1)
_SCALES = {  # of a transform from the signal to frequencies, and of one back
    True: {None: "", "backward": "", "ortho": "ortho", "forward": "n"},
    False: {None: "n", "backward": "n", "ortho": "ortho", "forward": ""},
}


@numpy_names
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along a dimension.

    `n` is how many elements are taken, or filled up with zeros; `norm` says which way is divided
    by it: ``"backward"``, ``"forward"``, or both by its root, ``"ortho"``.

    >>> import tapegrad as tg
    >>> tg.fft.fft(tg.tensor([1.0, 0.0, -1.0, 0.0])).abs()
    tensor([0., 2., 0., 2.])
    """
    return _complex(input, _one(n), (dim,), norm, "fft", forward=True)


@numpy_names
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `fft`.

    >>> import tapegrad as tg
    >>> tg.fft.ifft(tg.tensor([0.0, 2.0, 0.0, 2.0])).real
    tensor([ 1.,  0., -1.,  0.])
    """
    return _complex(input, _one(n), (dim,), norm, "ifft", forward=False)


@numpy_names
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The half of the transform of real numbers that says all.

    >>> import tapegrad as tg
    >>> tg.fft.rfft(tg.tensor([1.0, 0.0, -1.0, 0.0])).abs()
    tensor([0., 2., 0.])
    """
    return _to_half(input, _one(n), (dim,), norm, "rfft", forward=True)


@numpy_names
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`; `n` is the number of results, 2 * (size - 1) if it is not given.

    >>> import tapegrad as tg
    >>> tg.fft.irfft(tg.tensor([0.0, 2.0, 0.0]))
    tensor([ 1.,  0., -1.,  0.])
    """
    return _from_half(input, _one(n), (dim,), norm, "irfft", forward=False)


@numpy_names
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The real transform of a signal whose other half is the conjugate of this one.

    >>> import tapegrad as tg
    >>> tg.fft.hfft(tg.tensor([1.0, 2.0, 1.0]))
    tensor([ 6.,  0., -2.,  0.])
    """
    return _from_half(input, _one(n), (dim,), norm, "hfft", forward=True)


@numpy_names
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft`.

    >>> import tapegrad as tg
    >>> tg.fft.ihfft(tg.tensor([6.0, 0.0, -2.0, 0.0])).real
    tensor([1., 2., 1.])
    """
    return _to_half(input, _one(n), (dim,), norm, "ihfft", forward=False)


@numpy_names
def fft2(
    input: Tensor, s: Sizes = None, dim: Sequence[int] = LAST_TWO, norm: str | None = None
) -> Tensor:
    """The transform along two dimensions.

    >>> import tapegrad as tg
    >>> tg.fft.fft2(tg.ones(2, 2)).real
    tensor([[4., 0.],
            [0., 0.]])
    """
    return _complex(input, s, dim, norm, "fft2", forward=True)


@numpy_names
def ifft2(
    input: Tensor, s: Sizes = None, dim: Sequence[int] = LAST_TWO, norm: str | None = None
) -> Tensor:
    """The inverse of `fft2`.

    >>> import tapegrad as tg
    >>> tg.fft.ifft2(tg.ones(2, 2)).real
    tensor([[1., 0.],
            [0., 0.]])
    """
    return _complex(input, s, dim, norm, "ifft2", forward=False)


@numpy_names
def rfft2(
    input: Tensor, s: Sizes = None, dim: Sequence[int] = LAST_TWO, norm: str | None = None
) -> Tensor:
    """The half of `fft2` of real numbers that says all.

    >>> import tapegrad as tg
    >>> tg.fft.rfft2(tg.ones(4, 4)).shape
    tapegrad.Size([4, 3])
    """
    return _to_half(input, s, dim, norm, "rfft2", forward=True)


@numpy_names
def irfft2(
    input: Tensor, s: Sizes = None, dim: Sequence[int] = LAST_TWO, norm: str | None = None
) -> Tensor:
    """The inverse of `rfft2`.

    >>> import tapegrad as tg
    >>> tg.fft.irfft2(tg.ones(4, 3)).shape
    tapegrad.Size([4, 4])
    """
    return _from_half(input, s, dim, norm, "irfft2", forward=False)


@numpy_names
def hfft2(
    input: Tensor, s: Sizes = None, dim: Sequence[int] = LAST_TWO, norm: str | None = None
) -> Tensor:
    """`hfft` along two dimensions.

    >>> import tapegrad as tg
    >>> tg.fft.hfft2(tg.ones(4, 3)).shape
    tapegrad.Size([4, 4])
    """
    return _from_half(input, s, dim, norm, "hfft2", forward=True)


@numpy_names
def ihfft2(
    input: Tensor, s: Sizes = None, dim: Sequence[int] = LAST_TWO, norm: str | None = None
) -> Tensor:
    """The inverse of `hfft2`.

    >>> import tapegrad as tg
    >>> tg.fft.ihfft2(tg.ones(4, 4)).shape
    tapegrad.Size([4, 3])
    """
    return _to_half(input, s, dim, norm, "ihfft2", forward=False)


@numpy_names
def fftn(input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The transform along several dimensions, all if none are given.

    >>> import tapegrad as tg
    >>> tg.fft.fftn(tg.ones(2, 2)).real
    tensor([[4., 0.],
            [0., 0.]])
    """
    return _complex(input, s, dim, norm, "fftn", forward=True)


@numpy_names
def ifftn(input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `fftn`.

    >>> import tapegrad as tg
    >>> tg.fft.ifftn(tg.ones(2, 2)).real
    tensor([[1., 0.],
            [0., 0.]])
    """
    return _complex(input, s, dim, norm, "ifftn", forward=False)


@numpy_names
def rfftn(input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The half of `fftn` of real numbers that says all.

    >>> import tapegrad as tg
    >>> tg.fft.rfftn(tg.ones(2, 2, 4)).shape
    tapegrad.Size([2, 2, 3])
    """
    return _to_half(input, s, dim, norm, "rfftn", forward=True)


@numpy_names
def irfftn(input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`.

    >>> import tapegrad as tg
    >>> tg.fft.irfftn(tg.ones(2, 2, 3)).shape
    tapegrad.Size([2, 2, 4])
    """
    return _from_half(input, s, dim, norm, "irfftn", forward=False)


@numpy_names
def hfftn(input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """`hfft` along several dimensions.

    >>> import tapegrad as tg
    >>> tg.fft.hfftn(tg.ones(2, 2, 3)).shape
    tapegrad.Size([2, 2, 4])
    """
    return _from_half(input, s, dim, norm, "hfftn", forward=True)


@numpy_names
def ihfftn(input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `hfftn`.

    >>> import tapegrad as tg
    >>> tg.fft.ihfftn(tg.ones(2, 2, 4)).shape
    tapegrad.Size([2, 2, 3])
    """
    return _to_half(input, s, dim, norm, "ihfftn", forward=False)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of `fft` of `n` elements that are `d` apart.

    >>> import tapegrad as tg
    >>> tg.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _frequencies(np.fft.fftfreq(n, d), dtype, requires_grad)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of `rfft` of `n` elements that are `d` apart.

    >>> import tapegrad as tg
    >>> tg.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies(np.fft.rfftfreq(n, d), dtype, requires_grad)


def _frequencies(found: np.ndarray, dtype: Any, requires_grad: bool) -> Tensor:
    t = as_tensor(found, dtype=get_default_dtype() if dtype is None else dtype)
    return t.requires_grad_(requires_grad)


def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Move the frequency 0 to the middle.

    >>> import tapegrad as tg
    >>> tg.fft.fftshift(tg.tensor([0, 1, 2, -2, -1]))
    tensor([-2, -1,  0,  1,  2])
    """
    return _rolled(input, dim, "fftshift", lambda n: n // 2)


def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Move the frequency 0 from the middle back to the front.

    >>> import tapegrad as tg
    >>> tg.fft.ifftshift(tg.tensor([-2, -1, 0, 1, 2]))
    tensor([ 0,  1,  2, -2, -1])
    """
    return _rolled(input, dim, "ifftshift", lambda n: -(n // 2))


def _rolled(input: Tensor, dim: Any, name: str, by: Any) -> Tensor:
    x = as_input(input, name)
    dims = range(x._a.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [one_dim(d, x._a.ndim, name) for d in dims]
    return roll(x, [by(x._a.shape[d]) for d in dims], dims) if dims else x


# -- from arguments to operations ------------------------------------------------------------------


def _one(n: int | None) -> Sizes:
    return None if n is None else (n,)


def _complex(
    input: Tensor, sizes: Sizes, dim: Dims, norm: str | None, name: str, *, forward: bool
) -> Tensor:
    """A transform of complex numbers, and of real ones whole."""
    scale = _scale(norm, name, forward)
    x = _floating(input, name)
    x, dims = resized(x, sizes, dim, name)
    if forward and x._a.dtype.kind != "c" and dims:
        return _run(f.fft_r2c, x, {"dims": dims, "scale": scale, "half": False})
    x = _complex_type(x)
    return _run(f.fft_c2c, x, {"dims": dims, "scale": scale, "forward": forward})


def _to_half(
    input: Tensor, sizes: Sizes, dim: Dims, norm: str | None, name: str, *, forward: bool
) -> Tensor:
    """The half of a transform of real numbers, or of the transform back."""
    scale = _scale(norm, name, forward)
    x = _floating(input, name)
    if x._a.dtype.kind == "c":
        raise RuntimeError(f"`fft.{name}` takes a Tensor of real numbers, got {x.dtype}")
    x, dims = resized(x, sizes, dim, name)
    _some(dims, name)
    found = _run(f.fft_r2c, x, {"dims": dims, "scale": scale, "half": True})
    return found if forward else conj(found)


def _from_half(
    input: Tensor, sizes: Sizes, dim: Dims, norm: str | None, name: str, *, forward: bool
) -> Tensor:
    """Real numbers of the half of their transform, or of that of the transform back."""
    scale = _scale(norm, name, forward)
    x = _floating(input, name)
    dims = _dims(x, sizes, dim, name)
    _some(dims, name)
    size = 2 * (x._a.shape[dims[-1]] - 1) if sizes is None or sizes[-1] == -1 else sizes[-1]
    if size < 1:
        raise RuntimeError(f"`fft.{name}`: the number of results must be at least 1, got {size}")
    if sizes is not None or not x._a.size:
        given = [-1] * len(dims) if sizes is None else list(sizes)
        given[-1] = size // 2 + 1
        x, dims = resized(x, given, dims, name)
    x = _complex_type(x)
    if forward:
        x = conj(x)
    return _run(f.fft_c2r, x, {"dims": dims, "scale": scale, "size": size})


def _scale(norm: str | None, name: str, forward: bool) -> str:
    try:
        return _SCALES[forward][norm]
    except (KeyError, TypeError):
        raise RuntimeError(
            f"`fft.{name}`: norm is 'forward', 'backward', 'ortho' or None, got {norm!r}"
        ) from None


def _floating(input: Tensor, name: str) -> Tensor:
    x = input if type(input) is Tensor else as_input(input, f"fft.{name}")
    if x._a.dtype.kind in "biu":
        return as_type(x, get_default_dtype())
    if x._a.dtype.char == "e":
        raise RuntimeError(f"`fft.{name}` is not defined for {x.dtype}: use float32 or float64")
    return x


def _complex_type(x: Tensor) -> Tensor:
    kind = x._a.dtype
    return x if kind.kind == "c" else as_type(x, np.result_type(kind, np.complex64))


def _some(dims: tuple[int, ...], name: str) -> None:
    if not dims:
        raise RuntimeError(f"`fft.{name}` needs at least one dimension to transform along")


def _dims(x: Tensor, sizes: Sizes, dim: Dims, name: str) -> tuple[int, ...]:
    """The dimensions that are transformed."""
    ndim = x._a.ndim
    if dim is None:
        count = ndim if sizes is None else len(sizes)
        if count > ndim:
            raise RuntimeError(f"`fft.{name}`: {count} sizes were given for the shape {x._a.shape}")
        return tuple(range(ndim - count, ndim))
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    dims = (_distinct if only_ints(given) else _distinct.__wrapped__)(given, ndim, name)
    if sizes is not None and len(sizes) != len(dims):
        raise RuntimeError(
            f"`fft.{name}`: as many sizes as dimensions are needed, got {tuple(sizes)} for {dims}"
        )
    return dims


@lru_cache(1024)
def _distinct(given: tuple[Any, ...], ndim: int, name: str) -> tuple[int, ...]:
    """Dimensions in normal form, all different."""
    if not ndim and given:
        raise IndexError(f"`fft.{name}`: dimension {given[-1]} of a Tensor without dimensions")
    dims = tuple(one_dim(d, ndim, f"fft.{name}") for d in given)
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"`fft.{name}`: the dimensions must be distinct, got {given}")
    return dims


def resized(x: Tensor, sizes: Sizes, dim: Dims, name: str) -> tuple[Tensor, tuple[int, ...]]:
    """Take as many elements along each dimension as are asked for, or fill up with zeros."""
    dims = _dims(x, sizes, dim, name)
    if sizes is None and x._a.size:
        return x, dims
    widths = [(0, 0)] * x._a.ndim
    for d, n in zip(dims, sizes or (-1,) * len(dims), strict=True):
        have = x._a.shape[d]
        n = have if n == -1 else n
        if n < 1:
            raise RuntimeError(f"`fft.{name}`: the number of elements must be at least 1, got {n}")
        if n < have:
            x = narrow(x, d, 0, n)
        elif n > have:
            widths[d] = 0, n - have
    if any(after for _, after in widths):
        x = run(pad, (x,), {"widths": tuple(widths), "value": 0})
    return x, dims


def _run(op: Op, x: Tensor, params: dict[str, Any]) -> Tensor:
    """Run a transform, of what is small in compiled code, once it recurs."""
    compiled = native_calls.planned
    if compiled is None or type(x) is not Tensor:
        return run(op, (x,), params)
    key = (op, x._a.shape, x._a.dtype.char, *params.values())
    plan = plans.get(key)
    found = None if plan is None else compiled(plan, x)
    if found is None:
        found = run(op, (x,), params)
        if plan is None and is_due(count_call(key)):
            plan = _plan(op, x._a, found._a, params)
            if plan is not None:
                add_plan(key, plan)
    return found


def _plan(op: Op, x: np.ndarray, y: np.ndarray, params: dict[str, Any]) -> CallPlan | None:
    """The plan of a transform; None where there is no loop for it, or an array is large."""
    if x.dtype.char not in "dfD" or max(x.size, y.size) >= SHORT or not y.size:
        return None
    from tapegrad.kernels.large import fourier_transforms

    try:
        form, loop = fourier_transforms.form_of(op, x, params)
    except NotCompiled:
        return None
    if form is None:
        return _plan_of_rows(op, x, y, params)
    return _plan_of_lines(op, x, y, params, form, loop)


def _plan_of_lines(
    op: Op, x: np.ndarray, y: np.ndarray, params: dict[str, Any], form: Any, loop: Any
) -> CallPlan | None:
    """By the library's loops, which transform many lines, along several dimensions."""
    if form.room > ROOM:
        return None
    plan = form_plan(
        op, [x], y, params, form.words, loop=loop.address, units=form.units[0], unsure=0,
        itemsize=x.itemsize, dtype=id(y.dtype),
    )  # fmt: skip
    return plan._replace(keeps=(*plan.keeps, form, y.dtype))


def _plan_of_rows(op: Op, x: np.ndarray, y: np.ndarray, params: dict[str, Any]) -> CallPlan | None:
    """By NumPy's loop, of the last dimension."""
    found = row_loop(op, x, y, params)
    if found is None:
        return None
    words = RowTransform.words(
        data=found.data, factor=address(found.factor), length=x.shape[-1], itemsize=y.itemsize,
        result_length=y.shape[-1], widens=int(found.widens),
    )  # fmt: skip
    layout, extra = layout_of(op, [x], y, params) or (GENERAL, 0), (params, ((x.shape, x.dtype),))
    plan = call_plan(
        op, y, layout, extra, (0,), words, operands=1, loops=TRANSFORM, loop=found.loop,
        rows=None, itemsize=x.itemsize, dtype=id(found.kind),
    )  # fmt: skip
    return plan._replace(keeps=(*plan.keeps, found.factor, found.kind))
