"""Making Tensors: from data and from numbers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.base.call_site import user_line
from tapegrad.base.devices import check_device
from tapegrad.base.dtypes import fitted, get_default_dtype, to_numpy
from tapegrad.base.native_arrays import in_native_form, native_array
from tapegrad.functions.arguments import Sizes, TypeLike, plain_number
from tapegrad.functions.method_decorators import method
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, fresh, place


def _new(array: np.ndarray) -> Tensor:
    t = fresh(array)
    for at in current.tape.levels:
        at.note_created(t)
    return t


def _finish(array: np.ndarray, requires_grad: bool) -> Tensor:
    t = _new(array)
    return t.requires_grad_() if requires_grad else t


def _element_type(data: Any) -> np.dtype[Any] | None:
    """The type that PyTorch gives to plain Python data; None for what has a type already."""
    if isinstance(data, (np.ndarray, np.generic)):
        return None
    array = np.asarray(data)
    if array.dtype.kind == "f" or array.size == 0:
        return get_default_dtype().numpy
    if array.dtype.kind == "c":
        return np.dtype(np.complex64 if get_default_dtype().itemsize < 8 else np.complex128)
    if array.dtype.kind in "iu":
        return np.dtype(np.int64)
    return None


def _plain(data: Any) -> Any:
    """Nested sequences may hold Tensors of one element."""
    if isinstance(data, (list, tuple)):
        return [_plain(part) for part in data]
    if isinstance(data, np.ndarray):
        return in_native_form(data, "tensor")
    return _unfollowed(data) if isinstance(data, Tensor) else data


def _unfollowed(t: Tensor) -> np.ndarray:
    """The array of a Tensor; a transform that follows it would lose the gradient."""
    if type(t) is not Tensor or (current.tape.depth and current.tape.enabled and place(t)):
        raise RuntimeError(
            "`tensor` copies values without their history, and a transform follows this one: use "
            "`tapegrad.stack` (or `np.stack`) to put Tensors together, `t.clone()` for a copy, or "
            "`tapegrad.stop_gradient(t)` where no gradient is wanted"
        )
    if t.requires_grad and current.tape.enabled:
        warnings.warn_explicit(
            "`tensor` copies the values of a Tensor that requires grad without its history: use "
            "`tapegrad.stack` to put Tensors together, `t.clone()` for a copy, or `t.detach()` "
            "where no gradient is wanted",
            UserWarning,
            *user_line(),
        )
    return t._a


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A new leaf with a copy of the data.

    >>> import tapegrad as tg
    >>> tg.tensor([1, 2]), tg.tensor([1.0, 2.0], requires_grad=True)
    (tensor([1, 2]), tensor([1., 2.], requires_grad=True))
    """
    check_device(device)
    if isinstance(data, Tensor):
        return _finish(
            np.array(_unfollowed(data), to_numpy(dtype) if dtype else None), requires_grad
        )
    plain = _plain(data)
    try:
        kind = to_numpy(dtype) if dtype is not None else _element_type(plain)
        try:
            array = np.array(plain, kind)
        except OverflowError:
            array = _wrapped(plain, kind)
    except (ValueError, TypeError) as problem:
        raise type(problem)(f"`tensor` cannot make a Tensor of this data: {problem}") from None
    if data is None:
        raise RuntimeError("`tensor` needs data, got None")
    if kind is None and type(plain) is not np.ndarray:
        array = in_native_form(array, "tensor")
    return _finish(array, requires_grad)


def _wrapped(plain: Any, kind: Any) -> np.ndarray:
    """Integers below zero in an unsigned type, which wrap around; others do not fit."""
    given = np.asarray(plain, object)
    top = int(np.iinfo(kind).max)
    if np.dtype(kind).kind != "u" or not all(-top <= n <= top for n in given.ravel()):
        raise RuntimeError(
            f"`tensor` got an integer that cannot be converted to {np.dtype(kind)} without overflow"
        )
    return np.asarray(given % (top + 1), kind)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor of the data, sharing memory where that is possible.

    >>> import tapegrad as tg
    >>> tg.as_tensor([1.0])
    tensor([1.])
    """
    check_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    if isinstance(data, np.ndarray):
        array = native_array(data, "as_tensor")
        return _new(array if dtype is None else array.astype(to_numpy(dtype), copy=False))
    return tensor(data, dtype=dtype)


asarray = as_tensor


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A Tensor that shares the memory of an array.

    >>> import numpy as np, tapegrad as tg
    >>> a = np.zeros(2); t = tg.from_numpy(a); a[0] = 5; t
    tensor([5., 0.])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"`from_numpy` takes a NumPy array, got {type(ndarray).__name__}")
    return _new(native_array(ndarray, "from_numpy", share=True))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A Tensor that shares the memory of an array of any library that exports DLPack.

    >>> import numpy as np, tapegrad as tg
    >>> tg.from_dlpack(np.ones(2))
    tensor([1., 1.])
    """
    check_device(device)
    array = np.from_dlpack(x, copy=copy)
    return _new(native_array(array if array.flags.writeable else array.copy(), "from_dlpack"))


def shape_of(given: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """A shape given as numbers, as one sequence, or by the name of `size`."""
    if size is not None:
        if given:
            raise TypeError(f"a shape was given twice: {given} and `size={size!r}`")
        given = (size,)
    size = given
    if len(size) == 1 and not isinstance(size[0], (int, np.integer)):
        first = size[0]
        size = tuple(first) if not isinstance(first, Tensor) else (int(first),)
    shape = tuple(int(n) for n in size)
    if any(n < 0 for n in shape):
        raise RuntimeError(f"a shape cannot have negative entries, got {shape}")
    return shape


def _kind(dtype: Any) -> np.dtype[Any]:
    return get_default_dtype().numpy if dtype is None else to_numpy(dtype)


def zeros(
    *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A Tensor of zeros.

    >>> import tapegrad as tg
    >>> tg.zeros(2)
    tensor([0., 0.])
    """
    check_device(device)
    return _finish(np.zeros(shape_of(sizes, size), _kind(dtype)), requires_grad)


def ones(
    *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A Tensor of ones.

    >>> import tapegrad as tg
    >>> tg.ones(2)
    tensor([1., 1.])
    """
    check_device(device)
    return _finish(np.ones(shape_of(sizes, size), _kind(dtype)), requires_grad)


def empty(
    *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A Tensor whose elements are whatever the memory holds.

    >>> import tapegrad as tg
    >>> tg.empty(2, 3).shape
    tapegrad.Size([2, 3])
    """
    check_device(device)
    return _finish(np.empty(shape_of(sizes, size), _kind(dtype)), requires_grad)


def full(
    size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A Tensor of one number.

    >>> import tapegrad as tg
    >>> tg.full((2,), 7)
    tensor([7, 7])
    """
    check_device(device)
    value = plain_number(fill_value, "full")
    kind = to_numpy(dtype) if dtype is not None else _element_type(value)
    return _finish(_filled(shape_of((size,)), value, kind, "full"), requires_grad)


def _filled(shape: Any, value: Any, kind: np.dtype[Any] | None, name: str) -> np.ndarray:
    array = isinstance(value, (np.ndarray, np.generic))
    number = in_native_form(value, name) if array else np.asarray(value)
    if kind is not None and not number.ndim and number.dtype.kind in "biufc":
        number = fitted(number, kind, name)
    return np.full(shape, number, kind)


def _like(maker: Any, input: Tensor, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    check_device(device)
    kind = to_numpy(dtype) if dtype else input._a.dtype
    return _finish(maker(input._a.shape, kind), requires_grad)


def zeros_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Zeros in the shape and type of another Tensor.

    >>> import tapegrad as tg
    >>> tg.zeros_like(tg.ones(2))
    tensor([0., 0.])
    """
    return _like(np.zeros, input, dtype, device, requires_grad)


def ones_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Ones in the shape and type of another Tensor.

    >>> import tapegrad as tg
    >>> tg.ones_like(tg.zeros(2))
    tensor([1., 1.])
    """
    return _like(np.ones, input, dtype, device, requires_grad)


def empty_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Unset memory in the shape and type of another Tensor.

    >>> import tapegrad as tg
    >>> tg.empty_like(tg.zeros(2)).shape
    tapegrad.Size([2])
    """
    return _like(np.empty, input, dtype, device, requires_grad)


def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """One number in the shape and type of another Tensor.

    >>> import tapegrad as tg
    >>> tg.full_like(tg.zeros(2), 3)
    tensor([3., 3.])
    """
    check_device(device)
    kind = to_numpy(dtype) if dtype else input._a.dtype
    value = plain_number(fill_value, "full_like")
    return _finish(_filled(input._a.shape, value, kind, "full_like"), requires_grad)


def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start` to `end` (left out) in steps.

    >>> import tapegrad as tg
    >>> tg.arange(3), tg.arange(0.0, 1.0, 0.5)
    (tensor([0, 1, 2]), tensor([0.0000, 0.5000]))
    """
    check_device(device)
    if end is None:
        start, end = None, start
    if end is None:
        raise TypeError("`arange` needs the argument `end`")
    start = 0 if start is None else start
    parts = [plain_number(x, "arange") for x in (start, end, step)]
    if parts[2] == 0 or (parts[1] - parts[0]) / parts[2] < 0:
        raise RuntimeError(f"`arange` cannot step from {parts[0]} to {parts[1]} by {parts[2]}")
    floats = any(isinstance(x, (float, np.floating)) for x in parts)
    kind = to_numpy(dtype) if dtype else (get_default_dtype().numpy if floats else np.int64)
    if np.dtype(kind).kind in "iu":
        return _finish(_whole_steps(parts[0], parts[1], parts[2], np.dtype(kind)), requires_grad)
    return _finish(np.arange(*parts, dtype=kind), requires_grad)


def _whole_steps(start: Any, end: Any, step: Any, kind: np.dtype[Any]) -> np.ndarray:
    """`arange` in integers: start and step lose their fractions, in int64 the end does too."""
    first, by = int(start), int(step)
    if kind == np.int64:
        if not by:
            raise ValueError(f"`arange` in int64 cannot step by {step}: it takes whole steps")
        count = -((first - int(end)) // by)
    else:
        count = math.ceil((end - start) / step)
    return (first + by * np.arange(max(count, 0))).astype(kind)


def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` numbers from `start` to `end`, both included.

    >>> import tapegrad as tg
    >>> tg.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    check_device(device)
    kind = _kind(dtype)
    start, end = (plain_number(x, "linspace") for x in (start, end))
    if kind.kind in "iu":
        return _finish(_whole_between(int(start), int(end), steps, kind), requires_grad)
    return _finish(np.linspace(float(start), float(end), steps, dtype=kind), requires_grad)


def _whole_between(start: int, end: int, steps: int, kind: np.dtype[Any]) -> np.ndarray:
    """`linspace` in integers: counted from the nearer end, without the fractions."""
    k = np.arange(steps)
    step = (end - start) / max(steps - 1, 1)
    near = np.where(k < steps // 2, start + step * k, end - step * (steps - 1 - k))
    return np.trunc(near if steps > 1 else np.full(steps, start)).astype(kind)


def eye(
    n: int, m: int | None = None, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The identity matrix.

    >>> import tapegrad as tg
    >>> tg.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_device(device)
    return _finish(np.eye(n, m, dtype=_kind(dtype)), requires_grad)


def scalar_tensor(
    s: complex | Tensor, *, dtype: TypeLike | None = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A Tensor without dimensions of one number, of the default type if none is given.

    >>> import tapegrad as tg
    >>> tg.scalar_tensor(3)
    tensor(3.)
    """
    number = plain_number(s, "scalar_tensor")
    if not isinstance(number, (bool, int, float, complex)):
        raise TypeError(f"`scalar_tensor` takes a number, got {type(s).__name__}")
    check_device(device)
    return _finish(fitted(number, _kind(dtype), "scalar_tensor"), requires_grad)


def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: TypeLike | None = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A Tensor with any strides, in elements, whose elements are not set.

    >>> import tapegrad as tg
    >>> tg.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    check_device(device)
    shape, steps = tuple(size), tuple(stride)
    if len(shape) != len(steps) or min((*shape, *steps), default=0) < 0:
        raise RuntimeError(f"`empty_strided`: size {shape} and stride {steps} do not fit together")
    kind = _kind(dtype)
    count = 1 + sum([(n - 1) * k for n, k in zip(shape, steps, strict=True)]) if all(shape) else 0
    memory = np.empty(count, kind)
    strides = tuple(k * kind.itemsize for k in steps)
    return _finish(np.ndarray(shape, kind, memory, 0, strides), requires_grad)


@method
def new_empty_strided(
    self: Tensor, size: Sequence[int], stride: Sequence[int], dtype: TypeLike | None = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`empty_strided` in the dtype of this Tensor."""
    kind = dtype or self.dtype
    return empty_strided(size, stride, dtype=kind, device=device, requires_grad=requires_grad)


@method
def new_zeros(
    self: Tensor, *sizes: Sizes, size: Sizes | None = None, dtype: TypeLike | None = None,
    device: object = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`zeros` in the dtype of this Tensor."""
    kind = dtype or self.dtype
    return zeros(*sizes, size=size, dtype=kind, device=device, requires_grad=requires_grad)


@method
def new_ones(
    self: Tensor, *sizes: Sizes, size: Sizes | None = None, dtype: TypeLike | None = None,
    device: object = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`ones` in the dtype of this Tensor."""
    kind = dtype or self.dtype
    return ones(*sizes, size=size, dtype=kind, device=device, requires_grad=requires_grad)


@method
def new_empty(
    self: Tensor, *sizes: Sizes, size: Sizes | None = None, dtype: TypeLike | None = None,
    device: object = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`empty` in the dtype of this Tensor."""
    kind = dtype or self.dtype
    return empty(*sizes, size=size, dtype=kind, device=device, requires_grad=requires_grad)


@method
def new_full(
    self: Tensor, size: Sizes, fill_value: Tensor | complex, dtype: TypeLike | None = None,
    device: object = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`full` in the dtype of this Tensor."""
    kind = dtype or self.dtype
    return full(size, fill_value, dtype=kind, device=device, requires_grad=requires_grad)


@method
def new_tensor(
    self: Tensor,
    data: Any,
    dtype: TypeLike | None = None,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """`tensor` in the dtype of this Tensor."""
    kind = dtype or self.dtype
    return tensor(data, dtype=kind, device=device, requires_grad=requires_grad)
