"""The names of `autograd.builtins`: containers are Python's own, a Tensor passes for an array."""

import builtins
from typing import Any

import numpy as np

from tapegrad.tensor import Tensor

dict, list, tuple = builtins.dict, builtins.list, builtins.tuple


def isinstance(x: Any, kind: Any) -> bool:
    """Python's, but a Tensor is an array, and one without dimensions a float too.

    >>> import numpy as np, tapegrad as tg
    >>> isinstance(tg.ones(2), np.ndarray), isinstance(tg.tensor(1.0), float)
    (True, True)
    """
    if builtins.isinstance(x, kind):
        return True
    if not builtins.isinstance(x, Tensor):
        return False
    kinds = kind if builtins.isinstance(kind, builtins.tuple) else (kind,)
    return np.ndarray in kinds or (not x.ndim and float in kinds)


def type(x: Any) -> Any:
    """Python's, but the type of a Tensor is that of an array.

    >>> import tapegrad as tg
    >>> type(tg.ones(2))
    <class 'numpy.ndarray'>
    """
    return np.ndarray if builtins.isinstance(x, Tensor) else builtins.type(x)


__all__ = ["dict", "isinstance", "list", "tuple", "type"]
