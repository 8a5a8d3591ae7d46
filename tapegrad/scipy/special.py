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
from tapegrad.numpy_face.common import bad_option as _bad_option
from tapegrad.numpy_face.common import floating as _floating
from tapegrad.numpy_face.common import operand as _operand
from tapegrad.numpy_face.common import tensor as _tensor
from tapegrad.ops import scipy_bessel as _rows
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.tensor import Tensor

__all__ = [
    "comb", "factorial", "log_softmax", "logsumexp", "multigammaln", "perm", "polygamma", "softmax",
    "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn",
]  # fmt: skip


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


def _counted(ufunc: str, counts: _Any, N: _Any, k: _Any) -> _Any:
    """A number of ways to choose, of `counts`; there is none to choose more than there are."""
    found = _theirs("scipy.special", ufunc)(*counts)
    return _np.where((k <= N) & (N >= 0) & (k >= 0), found, 0.0)


@_for_tensors("scipy.special")
def comb(N: _Any, k: _Any, *, exact: bool = False, repetition: bool = False) -> _Any:
    """The number of ways to choose k of N things, with or without repetition.

    >>> import tapegrad as tg
    >>> tg.scipy.special.comb(tg.tensor(4.0), 2)
    tensor(6.)
    """
    if exact:
        raise _bad_option("scipy.special.comb", "exact")
    N, k = _operand(N), _operand(k)
    if repetition:
        return _np.where((k == 0) & (N >= 0), 1.0, comb(_tensor(N + k - 1), k))
    return _counted("binom", (N, k), N, k)


@_for_tensors("scipy.special")
def perm(N: _Any, k: _Any, exact: bool = False) -> _Any:
    """The number of ways to line up k of N things.

    >>> import tapegrad as tg
    >>> tg.scipy.special.perm(tg.tensor(4.0), 2)
    tensor(12.)
    """
    if exact:
        raise _bad_option("scipy.special.perm", "exact")
    N, k = _operand(N), _operand(k)
    return _counted("poch", (N - k + 1, k), N, k)


@_for_tensors("scipy.special")
def factorial(n: _Any, exact: bool = False, extend: str = "zero") -> _Any:
    """The product of all whole numbers up to n; between them it is the gamma function of n + 1.

    >>> import tapegrad as tg
    >>> tg.scipy.special.factorial(tg.tensor([-1.0, 0.0, 4.0]))
    tensor([ 0.,  1., 24.])
    """
    if exact:
        raise _bad_option("scipy.special.factorial", "exact")
    if extend != "zero":
        raise _bad_option("scipy.special.factorial", "extend")
    below = n < 0
    found = _theirs("scipy.special", "gamma")(_np.where(below, 0, n) + 1)
    return _np.where(below, 0.0, found)


def _spherical(row: _Any, slope: _Any, n: _Any, z: _Any, derivative: bool) -> _Any:
    """A spherical Bessel function, or its derivative; the order in the type of the argument."""
    place = _floating(_tensor(z))
    order = _tensor(n).to(place.dtype)
    return slope(row, order, place) if derivative else row(order, place)


@_for_tensors("scipy.special")
def spherical_jn(n: _Any, z: _Any, derivative: bool = False) -> _Any:
    """The spherical Bessel function of the first kind of order n, or its derivative.

    >>> import tapegrad as tg
    >>> tg.scipy.special.spherical_jn(1, tg.tensor(2.0))
    tensor(0.4354)
    """
    return _spherical(_rows.spherical_jn, _rows.spherical_slope, n, z, derivative)


@_for_tensors("scipy.special")
def spherical_yn(n: _Any, z: _Any, derivative: bool = False) -> _Any:
    """The spherical Bessel function of the second kind of order n, or its derivative.

    >>> import tapegrad as tg
    >>> tg.scipy.special.spherical_yn(1, tg.tensor(2.0))
    tensor(-0.3506)
    """
    return _spherical(_rows.spherical_yn, _rows.spherical_slope, n, z, derivative)


@_for_tensors("scipy.special")
def spherical_in(n: _Any, z: _Any, derivative: bool = False) -> _Any:
    """The modified spherical Bessel function of the first kind of order n, or its derivative.

    >>> import tapegrad as tg
    >>> tg.scipy.special.spherical_in(1, tg.tensor(2.0))
    tensor(0.9744)
    """
    return _spherical(_rows.spherical_in, _rows.modified_spherical_slope, n, z, derivative)


@_for_tensors("scipy.special")
def spherical_kn(n: _Any, z: _Any, derivative: bool = False) -> _Any:
    """The modified spherical Bessel function of the second kind of order n, or its derivative.

    >>> import tapegrad as tg
    >>> tg.scipy.special.spherical_kn(1, tg.tensor(2.0))
    tensor(0.1594)
    """
    found = _spherical(_rows.spherical_kn, _rows.modified_spherical_slope, n, z, derivative)
    return -found if derivative else found


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.special", name)
