"""NumPy itself, but for the functions that would not ask a Tensor: they make arrays of numbers.

>>> import tapegrad.compat.autograd.numpy as np
>>> from tapegrad.compat.autograd import grad
>>> grad(lambda x: np.sum(np.array([x, 2.0 * x]) ** 2))(1.0)
10.0
"""

import functools as _functools
from typing import Any as _Any

import numpy as _np

from tapegrad.functions import contractions as _contractions
from tapegrad.functions import shapes as _shapes
from tapegrad.functions.arguments import holds_tensor as _holds_tensor
from tapegrad.tensor import Tensor as _Tensor


def __getattr__(name: str) -> _Any:
    return getattr(_np, name)


def __dir__() -> list[str]:
    return dir(_np)


def array(A: _Any, dtype: _Any = None, **kwargs: _Any) -> _Any:
    """NumPy's, and Tensors put together if there are any in it.

    >>> import tapegrad.compat.autograd.numpy as np
    >>> from tapegrad.compat.autograd import jacobian
    >>> jacobian(lambda x: np.array([x[0], [3.0, x[1] * x[0]][1]]))(np.array([1.0, 2.0]))
    array([[1., 0.],
           [2., 1.]])
    """
    if not _holds_tensor(A):
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
    return array(a, dtype, **kwargs) if _holds_tensor(a) else _np.asarray(a, dtype, **kwargs)


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
    """An array, or a Tensor, of the shape of another one.

    >>> import tapegrad.compat.autograd.numpy as np
    >>> np.full_like(np.ones(2), 3.0)
    array([3., 3.])
    """
    if not isinstance(fill_value, _Tensor) and not isinstance(a, _Tensor):
        return _np.full_like(a, fill_value, dtype)
    return full(_np.shape(a), fill_value, dtype)


def where(condition: _Any, *args: _Any, **kwargs: _Any) -> _Any:
    """NumPy's, whose operands may be named `x` and `y`.

    >>> import tapegrad.compat.autograd.numpy as np
    >>> np.where([True, False], x=np.ones(2), y=np.zeros(2))
    array([1., 0.])
    """
    return _np.where(condition, *args, *[kwargs[name] for name in ("x", "y") if name in kwargs])


def make_diagonal(D: _Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> _Any:
    """Matrices with the elements along the last dimension on their diagonals.

    >>> import tapegrad.compat.autograd.numpy as np
    >>> np.make_diagonal(np.array([1.0, 2.0]), axis1=-1, axis2=-2)
    array([[1., 0.],
           [0., 2.]])
    """
    made: _Any = _contractions.diag_embed(D, offset, axis1, axis2)
    return made if isinstance(D, _Tensor) else made.numpy()


def _of_lists(name: str, operands: int = 1) -> _Any:
    """A function of NumPy's that takes lists of Tensors, too."""
    function = getattr(_np, name)

    @_functools.wraps(function)
    def of_lists(*args: _Any, **kwargs: _Any) -> _Any:
        given = [array(x) if k < operands and _holds_tensor(x) else x for k, x in enumerate(args)]
        return function(*given, **kwargs)

    return of_lists


_OF_ONE = (
    "amax amin any all argmax argmin argsort average clip cumprod cumsum diag diff max mean median "
    "min percentile prod ptp quantile sort std sum trapezoid var"
)
_OF_TWO = "append cross dot inner kron matmul outer"
globals().update({name: _of_lists(name) for name in _OF_ONE.split()})
globals().update({name: _of_lists(name, 2) for name in _OF_TWO.split()})

__all__ = [name for name in dir(_np) if not name.startswith("_")]
