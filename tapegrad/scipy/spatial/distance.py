"""`scipy.spatial.distance` for Tensors: distances of real vectors, in pairs or all at once.

The distance of equal points has the derivative 0, as in `tapegrad.cdist`; differences are taken
before they are squared, as SciPy does it, so that near points are as exact as others.

>>> import tapegrad as tg
>>> x = tg.tensor([[0.0, 0.0], [1.0, 2.0]], requires_grad=True)
>>> tg.scipy.spatial.distance.cdist(x, [[3.0, 4.0]], "sqeuclidean").sum().backward(); x.grad
tensor([[-6., -8.],
        [-4., -4.]])
"""

from typing import Any as _Any

import numpy as _np

from tapegrad.functions import arithmetic as _ar
from tapegrad.functions import elementwise as _ew
from tapegrad.functions import reductions as _r
from tapegrad.functions.joining import cat as _cat
from tapegrad.functions.matrices import inv as _inv
from tapegrad.functions.products import matmul as _matmul
from tapegrad.functions.products import vecdot as _vecdot
from tapegrad.functions.shapes import reshape as _reshape
from tapegrad.functions.statistics import cov as _cov
from tapegrad.numpy_face.common import promoted as _promoted
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.tensor import Tensor

__all__ = [
    "braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation", "cosine",
    "euclidean", "jensenshannon", "mahalanobis", "minkowski", "pdist", "seuclidean", "sqeuclidean",
    "squareform",
]  # fmt: skip

_own = _for_tensors("scipy.spatial.distance")


# Each of two rows, along the last dimension.
def _minkowski(a: _Any, b: _Any, p: float = 2, w: _Any = None) -> _Any:
    difference = a - b
    if w is not None:
        difference = difference * (w if p == _np.inf else w ** (1 / p))
    return _r.norm(difference, p if difference._a.shape[-1] else 2, -1)


def _sqeuclidean(a: _Any, b: _Any, w: _Any = None) -> _Any:
    square = _ew.square(a - b)
    return _r.sum(square if w is None else square * w, -1)


def _canberra(a: _Any, b: _Any, w: _Any = None) -> _Any:
    size = _ew.abs(a) + _ew.abs(b)
    share = _ew.abs(a - b) / _ar.where(_ew.eq(size, 0), 1.0, size)
    return _r.sum(share if w is None else share * w, -1)


def _braycurtis(a: _Any, b: _Any, w: _Any = None) -> _Any:
    differing, total = _ew.abs(a - b), _ew.abs(a + b)
    if w is not None:
        differing, total = differing * w, total * w
    return _r.sum(differing, -1) / _r.sum(total, -1)


def _cosine(a: _Any, b: _Any, w: _Any = None) -> _Any:
    heavy = b if w is None else b * w
    sizes = _vecdot(a, a if w is None else a * w) * _vecdot(b, heavy)
    return 1 - _vecdot(a, heavy) / _ew.sqrt(sizes)


def _correlation(a: _Any, b: _Any, w: _Any = None) -> _Any:
    share = 1 / a._a.shape[-1] if w is None else w / _r.sum(w)
    a, b = (x - _r.sum(x * share, -1, keepdim=True) for x in (a, b))
    return _cosine(a, b, w)


def _mahalanobis(a: _Any, b: _Any, VI: _Any) -> _Any:
    difference, VI = _promoted(a - b, VI)
    return _root(_vecdot(_matmul(difference[..., None, :], VI)[..., 0, :], difference))


def _jensenshannon(p: _Any, q: _Any, base: float | None = None) -> _Any:
    p, q = (x / _r.sum(x, -1, keepdim=True) for x in (p, q))
    middle = (p + q) / 2
    one, other = (_ew.xlogy(x, x) - _ew.xlogy(x, middle) for x in (p, q))
    found = _r.sum(one + other, -1) / 2
    return _root(found if base is None else found / float(_np.log(base)))


def _root(x: _Any) -> _Any:
    """The square root, whose derivative at 0 is 0: there the points are equal."""
    some = _ew.gt(x, 0)
    return _ar.where(some, _ew.sqrt(_ar.where(some, x, 1.0)), 0.0)


_ROWS: dict[str, _Any] = {
    "euclidean": lambda a, b, w=None: _minkowski(a, b, 2, w),
    "sqeuclidean": _sqeuclidean,
    "cityblock": lambda a, b, w=None: _minkowski(a, b, 1, w),
    "chebyshev": lambda a, b, w=None: _minkowski(a, b, _np.inf, None if w is None else w > 0),
    "minkowski": _minkowski,
    "canberra": _canberra,
    "braycurtis": _braycurtis,
    "cosine": _cosine,
    "correlation": _correlation,
    "seuclidean": lambda a, b, V: _minkowski(a, b, 2, 1 / V),
    "mahalanobis": _mahalanobis,
    "jensenshannon": _jensenshannon,
}
_SHORT = {  # SciPy's
    **dict.fromkeys(("e", "eu", "euclid"), "euclidean"),
    **dict.fromkeys(("sqe", "sqeuclid"), "sqeuclidean"),
    **dict.fromkeys(("c", "cb", "cblock"), "cityblock"),
    **dict.fromkeys(("ch", "cheb", "cheby", "chebychev"), "chebyshev"),
    **dict.fromkeys(("m", "mi", "pnorm"), "minkowski"),
    **dict.fromkeys(("s", "se"), "seuclidean"),
    **dict.fromkeys(("mah", "mahal"), "mahalanobis"),
    "cos": "cosine", "co": "correlation", "js": "jensenshannon",
}  # fmt: skip


def _pairs(a: Tensor, b: Tensor, points: _Any, metric: _Any, kwargs: dict[str, _Any]) -> Tensor:
    """The distances of rows; `points` are all, from which a metric may take its scales."""
    found: Tensor
    name = getattr(metric, "__name__", metric) if callable(metric) else metric.lower()
    name = _SHORT.get(name, name)
    if name not in _ROWS and callable(metric):
        raise TypeError(
            "a metric of Tensors is a name: of a function of two rows take `tapegrad.vmap`, twice"
        )
    if name not in _ROWS:
        raise ValueError(f"metrics of Tensors are {', '.join(_ROWS)}; got {metric!r}")
    given = {k: _like(a, v) for k, v in kwargs.items() if v is not None}
    if name == "seuclidean" and "V" not in given:
        given["V"] = _r.var(points(), 0)
    elif name == "mahalanobis" and "VI" not in given:
        given["VI"] = _inv(_cov(points().T))
    found = _ROWS[name](a, b, **given)
    return found


def _like(x: Tensor, given: _Any) -> _Any:
    """A parameter, in the type of the points if it has elements."""
    if isinstance(given, (int, float)):
        return given
    return _promoted(x, given)[1]


def _matrix(x: Tensor, name: str) -> Tensor:
    if x._a.ndim != 2:
        raise ValueError(
            f"`scipy.spatial.distance.{name}` takes points as the rows of a matrix, got the shape "
            f"{x._a.shape}"
        )
    return x


def _two(u: _Any, v: _Any, name: str) -> tuple[Tensor, Tensor]:
    a, b = _promoted(u, v)
    if a._a.ndim != 1 or a._a.shape != b._a.shape:
        raise ValueError(
            f"`scipy.spatial.distance.{name}` takes two vectors of one length, got the shapes "
            f"{a._a.shape} and {b._a.shape}"
        )
    return a, b


def _of_two(u: _Any, v: _Any, name: str, **given: _Any) -> Tensor:
    a, b = _two(u, v, name)
    return _pairs(a, b, None, name, given)


@_own
def cdist(XA: _Any, XB: _Any, metric: _Any = "euclidean", **kwargs: _Any) -> Tensor:
    """The distances of each row of one matrix from each row of another.

    >>> import tapegrad as tg
    >>> x = tg.tensor([[0.0, 0.0], [3.0, 4.0]])
    >>> tg.scipy.spatial.distance.cdist(x, x, "cityblock")
    tensor([[0., 7.],
            [7., 0.]])
    """
    a, b = (_matrix(x, "cdist") for x in _promoted(XA, XB))
    if a._a.shape[1] != b._a.shape[1]:
        raise ValueError(
            "`scipy.spatial.distance.cdist` takes matrices with as many columns as each other, "
            f"got the shapes {a._a.shape} and {b._a.shape}"
        )
    return _pairs(a[:, None], b[None], lambda: _cat([a, b]), metric, kwargs)


@_own
def pdist(X: _Any, metric: _Any = "euclidean", **kwargs: _Any) -> Tensor:
    """The distances of each row from each that comes after it.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.pdist(tg.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    x = _matrix(_promoted(X)[0], "pdist")
    i, j = _np.triu_indices(x._a.shape[0], 1)
    return _pairs(x[i], x[j], lambda: x, metric, kwargs)


@_own
def squareform(X: _Any, force: str = "no", checks: bool = True) -> Tensor:
    """The matrix of the distances that `pdist` gives, or these from the matrix.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.squareform(tg.tensor([1.0, 2.0, 3.0]))
    tensor([[0., 1., 2.],
            [1., 0., 3.],
            [2., 3., 0.]])
    """
    x = _promoted(X)[0]
    if x._a.ndim == 2 and x._a.shape[0] == x._a.shape[1]:
        return x[_np.triu_indices(x._a.shape[0], 1)]
    n = int(_np.ceil(_np.sqrt(2 * x._a.size)))
    if x._a.ndim != 1 or n * (n - 1) != 2 * x._a.size:
        raise ValueError(
            "`scipy.spatial.distance.squareform` takes a square matrix, or a vector of as many "
            f"distances as some points have, got the shape {x._a.shape}"
        )
    n = max(n, 1)
    place = _np.full((n, n), x._a.size)  # that of a zero
    i, j = _np.triu_indices(n, 1)
    place[i, j] = place[j, i] = _np.arange(x._a.size)
    return _reshape(_cat([x, x.new_zeros(1)])[place.ravel()], (n, n))


@_own
def euclidean(u: _Any, v: _Any, w: _Any = None) -> Tensor:
    """The length of the difference of two vectors.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.euclidean(tg.tensor([0.0, 0.0]), [3.0, 4.0])
    tensor(5.)
    """
    return _of_two(u, v, "euclidean", w=w)


@_own
def sqeuclidean(u: _Any, v: _Any, w: _Any = None) -> Tensor:
    """The square of the length of the difference.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.sqeuclidean(tg.tensor([0.0, 0.0]), [3.0, 4.0])
    tensor(25.)
    """
    return _of_two(u, v, "sqeuclidean", w=w)


@_own
def cityblock(u: _Any, v: _Any, w: _Any = None) -> Tensor:
    """The sum of the differences without their signs.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.cityblock(tg.tensor([0.0, 0.0]), [3.0, -4.0])
    tensor(7.)
    """
    return _of_two(u, v, "cityblock", w=w)


@_own
def chebyshev(u: _Any, v: _Any, w: _Any = None) -> Tensor:
    """The greatest difference without its sign.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.chebyshev(tg.tensor([0.0, 0.0]), [3.0, -4.0])
    tensor(4.)
    """
    return _of_two(u, v, "chebyshev", w=w)


@_own
def minkowski(u: _Any, v: _Any, p: float = 2, w: _Any = None) -> Tensor:
    """The p-norm of the difference.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.minkowski(tg.tensor([0.0, 0.0]), [3.0, -4.0], p=1)
    tensor(7.)
    """
    return _of_two(u, v, "minkowski", p=p, w=w)


@_own
def canberra(u: _Any, v: _Any, w: _Any = None) -> Tensor:
    """The sum of the differences as shares of the sizes; the share of two zeros is 0.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.canberra(tg.tensor([1.0, 0.0]), [3.0, 0.0])
    tensor(0.5000)
    """
    return _of_two(u, v, "canberra", w=w)


@_own
def braycurtis(u: _Any, v: _Any, w: _Any = None) -> Tensor:
    """The sum of the differences as a share of the sum of both.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.braycurtis(tg.tensor([1.0, 0.0]), [3.0, 0.0])
    tensor(0.5000)
    """
    return _of_two(u, v, "braycurtis", w=w)


@_own
def cosine(u: _Any, v: _Any, w: _Any = None) -> Tensor:
    """One minus the cosine of the angle.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.cosine(tg.tensor([1.0, 0.0]), [0.0, 2.0])
    tensor(1.)
    """
    return _of_two(u, v, "cosine", w=w)


@_own
def correlation(u: _Any, v: _Any, w: _Any = None, centered: bool = True) -> Tensor:
    """One minus the correlation of the elements.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.correlation(tg.tensor([1.0, 3.0]), [2.0, 0.0])
    tensor(2.)
    """
    return _of_two(u, v, "correlation" if centered else "cosine", w=w)


@_own
def seuclidean(u: _Any, v: _Any, V: _Any) -> Tensor:
    """The length of the difference, of which each element has the variance that `V` says.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.seuclidean(tg.tensor([0.0]), [4.0], [4.0])
    tensor(2.)
    """
    return _of_two(u, v, "seuclidean", V=V)


@_own
def mahalanobis(u: _Any, v: _Any, VI: _Any) -> Tensor:
    """The length of the difference by the inverse of a covariance.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.mahalanobis(tg.tensor([0.0]), [4.0], [[0.25]])
    tensor(2.)
    """
    return _of_two(u, v, "mahalanobis", VI=VI)


@_own
def jensenshannon(p: _Any, q: _Any, base: float | None = None, **kwargs: _Any) -> Tensor:
    """The root of the Jensen-Shannon divergence of two distributions, which are normalized.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance.jensenshannon(tg.tensor([1.0, 0.0]), [0.0, 1.0], 2.0)
    tensor(1.)
    """
    if kwargs:
        raise TypeError(f"`jensenshannon` of Tensors takes vectors, without {', '.join(kwargs)}")
    return _of_two(p, q, "jensenshannon", base=base)


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.spatial.distance", name)
