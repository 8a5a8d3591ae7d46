"""`scipy.special` for Tensors: its ufuncs take them; what is no ufunc is here.

>>> import tapegrad as tg
>>> x = tg.tensor([0.0, 0.0], requires_grad=True)
>>> tg.scipy.special.logsumexp(x).backward(); x.grad
tensor([0.5000, 0.5000])
>>> tg.scipy.special.expit(x)
tensor([0.5000, 0.5000], grad_fn=<SigmoidBackward0>)
"""

from typing import Any as _Any

import numpy as _np

from tapegrad.functions import axis as _axis
from tapegrad.functions.shapes import reshape as _reshape
from tapegrad.functions.special import mvlgamma as _mvlgamma
from tapegrad.functions.special import polygamma as _polygamma
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.tensor import Tensor

__all__ = ["log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax"]


@_for_tensors("scipy.special")
def softmax(x: Tensor, axis: int | None = None) -> Tensor:
    """Exponentials as shares of their sum, along an axis, or of all elements.

    >>> import tapegrad as tg
    >>> tg.scipy.special.softmax(tg.zeros(2, 2))
    tensor([[0.2500, 0.2500],
            [0.2500, 0.2500]])
    """
    return _along(_axis.softmax, x, axis)


@_for_tensors("scipy.special")
def log_softmax(x: Tensor, axis: int | None = None) -> Tensor:
    """The logarithms of `softmax`.

    >>> import tapegrad as tg
    >>> tg.scipy.special.log_softmax(tg.zeros(1))
    tensor([0.])
    """
    return _along(_axis.log_softmax, x, axis)


def _along(function: _Any, x: Tensor, axis: int | None) -> Tensor:
    found: Tensor
    if axis is None:
        found = _reshape(function(_reshape(x, (-1,)), 0), x._a.shape)
    else:
        found = function(x, axis)
    return found


@_for_tensors("scipy.special")
def logsumexp(
    x: _Any, axis: _Any = None, b: _Any = None, keepdims: bool = False, return_sign: bool = False
) -> _Any:
    """The logarithm of the sum of exponentials, weighted by `b`; of its size, and its sign.

    >>> import numpy as np
    >>> from tapegrad.scipy.special import logsumexp
    >>> logsumexp(np.zeros((2, 3)), axis=1)
    array([1.09861229, 1.09861229])
    """
    top = _np.max(x.detach() if isinstance(x, Tensor) else x, axis=axis, keepdims=True)
    terms = _np.exp(x - top)
    total = _np.sum(terms if b is None else b * terms, axis=axis, keepdims=True)
    found = _np.log(abs(total) if return_sign else total) + top
    if return_sign:
        both = found, _np.sign(total)
        return both if keepdims else tuple(_np.squeeze(part, axis=axis) for part in both)
    return found if keepdims else _np.squeeze(found, axis=axis)


@_for_tensors("scipy.special")
def polygamma(n: _Any, x: _Any) -> _Any:
    """The derivatives of `digamma`.

    >>> from tapegrad.scipy.special import polygamma
    >>> float(polygamma(0, 1.0))
    -0.5772156649015329
    """
    return (
        _polygamma(int(n), x)
        if isinstance(x, Tensor)
        else _theirs("scipy.special", "polygamma")(n, x)
    )


@_for_tensors("scipy.special")
def multigammaln(a: _Any, d: int) -> _Any:
    """The logarithm of the multivariate gamma function.

    >>> from tapegrad import grad
    >>> from tapegrad.scipy.special import multigammaln
    >>> grad(multigammaln)(3.0, 1) == grad(lambda a: multigammaln(a, 1))(3.0)
    True
    """
    return (
        _mvlgamma(a, d) if isinstance(a, Tensor) else _theirs("scipy.special", "multigammaln")(a, d)
    )


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.special", name)
