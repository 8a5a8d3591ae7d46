"""`scipy.special` for Tensors: its ufuncs take them; what is no ufunc is here.

>>> import tapegrad as tg
>>> x = tg.tensor([0.0, 0.0], requires_grad=True)
>>> tg.scipy.special.logsumexp(x).backward(); x.grad
tensor([0.5000, 0.5000])
>>> tg.scipy.special.expit(x)
tensor([0.5000, 0.5000], grad_fn=<SigmoidBackward0>)
"""

from typing import Any as _Any

from tapegrad.compat.autograd.scipy.special import logsumexp, multigammaln, polygamma
from tapegrad.functions import axis as _axis
from tapegrad.functions.shapes import reshape as _reshape
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


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.special", name)
