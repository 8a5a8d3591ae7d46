"""SciPy's own `scipy.special`, with the functions of it that would not ask a Tensor.

>>> import tapegrad.compat.autograd.scipy.special as special, numpy as np
>>> from tapegrad.compat.autograd import grad
>>> grad(special.logsumexp)(np.zeros(2)), grad(special.gammaln)(1.0)
(array([0.5, 0.5]), -0.5772156649015329)
"""

import importlib as _importlib
from typing import Any as _Any

import numpy as _np

from tapegrad.tensor import Tensor as _Tensor


def __getattr__(name: str) -> _Any:
    return getattr(_importlib.import_module("scipy.special"), name)


def __dir__() -> list[str]:
    return dir(_importlib.import_module("scipy.special"))


def logsumexp(x: _Any, axis: _Any = None, b: _Any = None, keepdims: bool = False) -> _Any:
    """The logarithm of the sum of exponentials, weighted by `b`.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.scipy.special import logsumexp
    >>> logsumexp(np.zeros((2, 3)), axis=1)
    array([1.09861229, 1.09861229])
    """
    if not isinstance(x, _Tensor) and not isinstance(b, _Tensor):
        return __getattr__("logsumexp")(x, axis=axis, b=b, keepdims=keepdims)
    top = _np.max(x.detach() if isinstance(x, _Tensor) else x, axis=axis, keepdims=True)
    terms = _np.exp(x - top)
    total = _np.sum(terms if b is None else b * terms, axis=axis, keepdims=True)
    found = _np.log(total) + top
    return found if keepdims else _np.squeeze(found, axis=axis)


__all__ = ["logsumexp"]
