"""SciPy's own `scipy.special`, with the functions of it that would not ask a Tensor.

>>> import tapegrad.compat.autograd.scipy.special as special, numpy as np
>>> from tapegrad.compat.autograd import grad
>>> grad(special.logsumexp)(np.zeros(2)), grad(special.gammaln)(1.0)
(array([0.5, 0.5]), -0.5772156649015329)
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tapegrad.tensor import Tensor


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("scipy.special"), name)


def __dir__() -> list[str]:
    return dir(importlib.import_module("scipy.special"))


def logsumexp(x: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    """The logarithm of the sum of exponentials, weighted by `b`.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.scipy.special import logsumexp
    >>> logsumexp(np.zeros((2, 3)), axis=1)
    array([1.09861229, 1.09861229])
    """
    if not isinstance(x, Tensor) and not isinstance(b, Tensor):
        return __getattr__("logsumexp")(x, axis=axis, b=b, keepdims=keepdims)
    top = np.max(x.detach() if isinstance(x, Tensor) else x, axis=axis, keepdims=True)
    terms = np.exp(x - top)
    total = np.sum(terms if b is None else b * terms, axis=axis, keepdims=True)
    found = np.log(total) + top
    return found if keepdims else np.squeeze(found, axis=axis)


__all__ = ["logsumexp"]
