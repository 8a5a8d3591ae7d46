"""NumPy's own `numpy.linalg`, whose `norm` takes lists of Tensors, too."""

from typing import Any as _Any

from numpy import linalg as _module

from tapegrad.compat.autograd.numpy import array as _array


def __getattr__(name: str) -> _Any:
    return getattr(_module, name)


def __dir__() -> list[str]:
    return dir(_module)


def norm(x: _Any, *args: _Any, **kwargs: _Any) -> _Any:
    """NumPy's.

    >>> import tapegrad.compat.autograd.numpy as np
    >>> from tapegrad.compat.autograd import grad
    >>> grad(lambda x: np.linalg.norm([x, x + 2.0]))(0.0)
    1.0
    """
    return _module.norm(_array(x) if isinstance(x, (list, tuple)) else x, *args, **kwargs)


__all__ = [name for name in dir(_module) if not name.startswith("_")]
