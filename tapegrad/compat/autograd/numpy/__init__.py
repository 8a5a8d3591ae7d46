"""NumPy itself, but for the functions that would not ask a Tensor: they make arrays of numbers.

>>> import tapegrad.compat.autograd.numpy as np
>>> from tapegrad.compat.autograd import grad
>>> grad(lambda x: np.sum(np.array([x, 2.0 * x]) ** 2))(1.0)
10.0
"""

from typing import Any as _Any

import numpy as _np

from tapegrad.functions import shapes as _shapes
from tapegrad.tensor import Tensor as _Tensor


def __getattr__(name: str) -> _Any:
    return getattr(_np, name)


def __dir__() -> list[str]:
    return dir(_np)


def _has_tensor(x: _Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_has_tensor, x))
    return isinstance(x, _Tensor)


def array(A: _Any, dtype: _Any = None, **kwargs: _Any) -> _Any:
    """NumPy's, and Tensors put together if there are any in it.

    >>> import tapegrad.compat.autograd.numpy as np
    >>> from tapegrad.compat.autograd import jacobian
    >>> jacobian(lambda x: np.array([x[0], [3.0, x[1] * x[0]][1]]))(np.array([1.0, 2.0]))
    array([[1., 0.],
           [2., 1.]])
    """
    if not _has_tensor(A):
        return _np.array(A, dtype, **kwargs)
    least = kwargs.pop("ndmin", 0)
    kwargs.pop("copy", None)
    if kwargs:
        raise TypeError(f"`array` of what is differentiated takes no {sorted(kwargs)}")
    made: _Any = (
        _shapes.clone(A) if isinstance(A, _Tensor) else _np.stack([array(part) for part in A])
    )
    if dtype is not None:
        made = _np.astype(made, dtype)
    missing = max(least - made.ndim, 0)
    return _shapes.reshape(made, (1,) * missing + tuple(made.shape)) if missing else made


def asarray(a: _Any, dtype: _Any = None, **kwargs: _Any) -> _Any:
    """NumPy's, or a Tensor as it is.

    >>> import tapegrad.compat.autograd.numpy as np
    >>> from tapegrad.compat.autograd import grad
    >>> grad(lambda x: np.sum(np.asarray(x)))(np.ones(2))
    array([1., 1.])
    """
    if isinstance(a, _Tensor) and dtype is None:
        return a
    return array(a, dtype, **kwargs) if _has_tensor(a) else _np.asarray(a, dtype, **kwargs)


asanyarray = ascontiguousarray = asarray


def full(shape: _Any, fill_value: _Any, dtype: _Any = None) -> _Any:
    """NumPy's, or a Tensor spread over a shape.

    >>> import tapegrad.compat.autograd.numpy as np
    >>> from tapegrad.compat.autograd import grad
    >>> grad(lambda x: np.sum(np.full((2, 3), x)))(1.0)
    6.0
    """
    if not isinstance(fill_value, _Tensor):
        return _np.full(shape, fill_value, dtype)
    return array(_np.broadcast_to(fill_value, shape), dtype)


def full_like(a: _Any, fill_value: _Any, dtype: _Any = None) -> _Any:
    """An array, or a _Tensor, of the shape of another one.

    >>> import tapegrad.compat.autograd.numpy as np
    >>> np.full_like(np.ones(2), 3.0)
    array([3., 3.])
    """
    if not isinstance(fill_value, _Tensor) and not isinstance(a, _Tensor):
        return _np.full_like(a, fill_value, dtype)
    return full(_np.shape(a), fill_value, dtype)


__all__ = [name for name in dir(_np) if not name.startswith("_")]
