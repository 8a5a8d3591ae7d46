"""SciPy's own `scipy.special`, whose ufuncs take Tensors; what is no ufunc is here.

>>> import tapegrad.compat.autograd.scipy.special as special, numpy as np
>>> from tapegrad.compat.autograd import grad
>>> grad(special.logsumexp)(np.zeros(2)), grad(special.gammaln)(1.0)
(array([0.5, 0.5]), -0.5772156649015329)
"""

import importlib as _importlib
from typing import Any as _Any

import numpy as _np

from tapegrad.functions.special import mvlgamma as _mvlgamma
from tapegrad.functions.special import polygamma as _polygamma
from tapegrad.tensor import Tensor as _Tensor


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):  # Python's import asks for `__path__`, and SciPy is loaded when used
        raise AttributeError(name)
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


def polygamma(n: _Any, x: _Any) -> _Any:
    """The derivatives of `digamma`.

    >>> from tapegrad.compat.autograd.scipy.special import polygamma
    >>> float(polygamma(0, 1.0))
    -0.5772156649015329
    """
    return _polygamma(int(n), x) if isinstance(x, _Tensor) else __getattr__("polygamma")(n, x)


def multigammaln(a: _Any, d: int) -> _Any:
    """The logarithm of the multivariate gamma function.

    >>> from tapegrad.compat.autograd import grad
    >>> from tapegrad.compat.autograd.scipy.special import multigammaln
    >>> grad(multigammaln)(3.0, 1) == grad(lambda a: multigammaln(a, 1))(3.0)
    True
    """
    return _mvlgamma(a, d) if isinstance(a, _Tensor) else __getattr__("multigammaln")(a, d)


__all__ = ["logsumexp", "multigammaln", "polygamma"]
