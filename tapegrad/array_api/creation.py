"""New Tensors, by the standard's arguments.

>>> from tapegrad import array_api as xp
>>> xp.full((2,), 3.0), xp.arange(3)
(tensor([3., 3.]), tensor([0, 1, 2]))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.base.devices import check_device
from tapegrad.base.dtypes import get_default_dtype, to_numpy
from tapegrad.functions import creation
from tapegrad.functions.arguments import holds_tensor
from tapegrad.functions.creation import from_dlpack, from_numpy
from tapegrad.functions.joining import stack
from tapegrad.functions.shapes import clone, to
from tapegrad.tensor import Tensor

Shape = int | Sequence[int]


def _made(array: np.ndarray, device: Any) -> Tensor:
    check_device(device)
    return from_numpy(array)


def _kind(dtype: Any, otherwise: np.dtype[Any] | None = None) -> np.dtype[Any]:
    if dtype is not None:
        return to_numpy(dtype)
    return get_default_dtype().numpy if otherwise is None else otherwise


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """The Tensor of numbers, arrays, Tensors or lists of them; a Tensor keeps its history.

    It shares memory where it can, unless `copy`; with ``copy=False`` it does so or raises.

    >>> from tapegrad import array_api as xp
    >>> x = xp.ones(2).requires_grad_()
    >>> xp.asarray([x, x]).requires_grad
    True
    """
    check_device(device)
    found = _tensor_of(obj, dtype)
    shares = found is obj or (isinstance(obj, np.ndarray) and np.shares_memory(found._a, obj))
    if copy is False and not shares:
        raise ValueError("`asarray` cannot make this a Tensor without a copy: leave out `copy`")
    return clone(found) if copy and shares else found


def _tensor_of(obj: Any, dtype: Any) -> Tensor:
    if isinstance(obj, Tensor):
        return obj if dtype is None or obj.dtype == dtype else to(obj, dtype)
    if isinstance(obj, (list, tuple)) and holds_tensor(obj):
        return _tensor_of(stack([_tensor_of(part, dtype) for part in obj]), dtype)
    if hasattr(obj, "__array__") or hasattr(obj, "__buffer__") or hasattr(obj, "__dlpack__"):
        obj = np.asarray(obj)
    return creation.as_tensor(obj, dtype)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """Numbers from `start` (or 0) to `stop`, which is left out, in steps.

    >>> from tapegrad import array_api as xp
    >>> xp.arange(1, 4)
    tensor([1, 2, 3])
    """
    first, last = (0, start) if stop is None else (start, stop)
    whole = all(isinstance(part, int) for part in (first, last, step))
    kind = _kind(dtype, np.dtype(np.int64) if whole else None)
    return _made(np.arange(first, last, step, dtype=kind), device)


def empty(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor whose elements are not set.

    >>> from tapegrad import array_api as xp
    >>> xp.empty((2, 3)).shape
    tapegrad.Size([2, 3])
    """
    return _made(np.empty(shape, _kind(dtype)), device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor of the shape and type of another, whose elements are not set.

    >>> from tapegrad import array_api as xp
    >>> xp.empty_like(xp.ones(2)).shape
    tapegrad.Size([2])
    """
    return _made(np.empty(x.shape, _kind(dtype, x._a.dtype)), device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """Ones on the k-th diagonal, zeros elsewhere.

    >>> from tapegrad import array_api as xp
    >>> xp.eye(2, k=1)
    tensor([[0., 1.],
            [0., 0.]])
    """
    return _made(np.eye(n_rows, n_cols, k, _kind(dtype)), device)


def full(shape: Shape, fill_value: complex, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor of one number.

    >>> from tapegrad import array_api as xp
    >>> xp.full(2, True)
    tensor([True, True])
    """
    check_device(device)
    return creation.full(shape, fill_value, dtype=dtype)


def full_like(
    x: Tensor, /, fill_value: complex, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """A Tensor of one number, in the shape and type of another.

    >>> from tapegrad import array_api as xp
    >>> xp.full_like(xp.ones(2), 7)
    tensor([7., 7.])
    """
    check_device(device)
    return creation.full_like(x, fill_value, dtype=dtype)


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: Any = None, device: Any = None,
    endpoint: bool = True,
) -> Tensor:  # fmt: skip
    """`num` numbers at equal distances from `start` to `stop`, which may be left out.

    >>> from tapegrad import array_api as xp
    >>> xp.linspace(0, 1, 2, endpoint=False)
    tensor([0.0000, 0.5000])
    """
    usual = get_default_dtype().numpy
    if np.iscomplexobj(start) or np.iscomplexobj(stop):
        usual = np.result_type(usual, np.complex64)
    kind = _kind(dtype, usual)
    return _made(np.linspace(start, stop, num, dtype=kind, endpoint=endpoint), device)


def ones(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor of ones.

    >>> from tapegrad import array_api as xp
    >>> xp.ones(2)
    tensor([1., 1.])
    """
    return _made(np.ones(shape, _kind(dtype)), device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones in the shape and type of another Tensor.

    >>> from tapegrad import array_api as xp
    >>> xp.ones_like(xp.zeros(2))
    tensor([1., 1.])
    """
    return _made(np.ones(x.shape, _kind(dtype, x._a.dtype)), device)


def zeros(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor of zeros.

    >>> from tapegrad import array_api as xp
    >>> xp.zeros(2)
    tensor([0., 0.])
    """
    return _made(np.zeros(shape, _kind(dtype)), device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros in the shape and type of another Tensor.

    >>> from tapegrad import array_api as xp
    >>> xp.zeros_like(xp.ones(2))
    tensor([0., 0.])
    """
    return _made(np.zeros(x.shape, _kind(dtype, x._a.dtype)), device)


__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip
