"""SciPy's own `scipy.special`; the functions that are no operations of ours have rules here.

>>> import tapegrad.compat.autograd.scipy.special as special, numpy as np
>>> from tapegrad.compat.autograd import grad
>>> grad(special.logsumexp)(np.zeros(2)), grad(special.gammaln)(1.0)
(array([0.5, 0.5]), -0.5772156649015329)
"""

import importlib as _importlib
import math as _math
from typing import Any as _Any

import numpy as _np

from tapegrad.compat.autograd.extend import Primitive as _Primitive
from tapegrad.compat.autograd.scipy._rules import elementwise as _elementwise
from tapegrad.functions.elementwise import digamma as psi
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


gamma = _elementwise("special.gamma", lambda y, x: y * psi(x))
rgamma = _elementwise("special.rgamma", lambda y, x: -y * psi(x))
gammasgn = _elementwise("special.gammasgn", lambda y, x: _np.zeros(_np.shape(x)))
beta = _elementwise(
    "special.beta",
    lambda y, a, b: y * (psi(a) - psi(a + b)),
    lambda y, a, b: y * (psi(b) - psi(a + b)),
)
betaln = _elementwise(
    "special.betaln", lambda y, a, b: psi(a) - psi(a + b), lambda y, a, b: psi(b) - psi(a + b)
)
betainc = _elementwise(
    "special.betainc", None, None,
    lambda y, a, b, x: _np.exp((a - 1) * _np.log(x) + (b - 1) * _np.log1p(-x) - betaln(a, b)),
)  # fmt: skip
jv: _Primitive = _elementwise("special.jv", None, lambda y, n, x: (jv(n - 1, x) - jv(n + 1, x)) / 2)
jn = jv
yv: _Primitive = _elementwise("special.yv", None, lambda y, n, x: (yv(n - 1, x) - yv(n + 1, x)) / 2)
yn = _elementwise("special.yn", None, lambda y, n, x: (yv(n - 1, x) - yv(n + 1, x)) / 2)
iv: _Primitive = _elementwise("special.iv", None, lambda y, n, x: (iv(n - 1, x) + iv(n + 1, x)) / 2)
ive: _Primitive = _elementwise(
    "special.ive", None, lambda y, n, x: (ive(n - 1, x) + ive(n + 1, x)) / 2 - y * _np.sign(x)
)
erfcinv = _elementwise("special.erfcinv", lambda y, x: -_math.sqrt(_math.pi) / 2 * _np.exp(y * y))

__all__ = [
    "beta", "betainc", "betaln", "erfcinv", "gamma", "gammasgn", "iv", "ive", "jn",
    "jv", "logsumexp", "multigammaln", "polygamma", "rgamma", "yn", "yv",
]  # fmt: skip
