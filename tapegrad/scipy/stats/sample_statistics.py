"""Statistics of samples, with SciPy's arguments.

>>> import numpy as np, tapegrad as tg
>>> tg.grad(tg.scipy.stats.gmean)(np.array([1.0, 4.0]))
array([1.  , 0.25])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.numpy_face.common import floating, tensor
from tapegrad.scipy.either import for_tensors, theirs
from tapegrad.tensor import Tensor

_own = for_tensors("scipy.stats")


def samples(x: Any, axis: int | None, nan_policy: str, name: str) -> tuple[Any, int, int]:
    """Numbers, the axis along which they are a sample, and how many there are in one."""
    if nan_policy != "propagate":
        raise TypeError(
            f"`scipy.stats.{name}` of Tensors has the nan_policy 'propagate', got {nan_policy!r}"
        )
    t = floating(tensor(x))
    if axis is None:
        t, axis = t.reshape(-1), 0
    return t, axis, t.shape[axis]


def _moment(t: Tensor, order: float, axis: int, keepdims: bool, center: Any = None) -> Any:
    if center is None:
        center = np.mean(t, axis, keepdims=True)
    return np.mean((t - center) ** order, axis, keepdims=keepdims)


@_own
def moment(
    a: Any, order: Any = 1, axis: int | None = 0, nan_policy: str = "propagate", *,
    center: Any = None, keepdims: bool = False,
) -> Any:  # fmt: skip
    """The central moment of an order, or those of several; the one about `center`.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.moment(tg.tensor([1.0, 3.0]), 2)
    tensor(1.)
    """
    t, axis, _ = samples(a, axis, nan_policy, "moment")
    if isinstance(order, Sequence | np.ndarray):
        return np.stack([_moment(t, int(k), axis, keepdims, center) for k in order])
    return _moment(t, order, axis, keepdims, center)


@_own
def skew(
    a: Any, axis: int | None = 0, bias: bool = True, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The third central moment over the variance to 3/2, or its estimate without `bias`.

    >>> import tapegrad as tg
    >>> round(tg.scipy.stats.skew(tg.tensor([0.0, 0.0, 3.0])).item(), 4)
    0.7071
    """
    t, axis, n = samples(a, axis, nan_policy, "skew")
    found = _moment(t, 3, axis, keepdims) / _moment(t, 2, axis, keepdims) ** 1.5
    return found if bias or n <= 2 else found * ((n * (n - 1)) ** 0.5 / (n - 2))


@_own
def kurtosis(
    a: Any, axis: int | None = 0, fisher: bool = True, bias: bool = True,
    nan_policy: str = "propagate", *, keepdims: bool = False,
) -> Any:  # fmt: skip
    """The fourth central moment over the variance squared, less the normal's 3 unless `fisher`.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.kurtosis(tg.tensor([0.0, 2.0]), fisher=False)
    tensor(1.)
    """
    t, axis, n = samples(a, axis, nan_policy, "kurtosis")
    found = _moment(t, 4, axis, keepdims) / _moment(t, 2, axis, keepdims) ** 2
    if not bias and n > 3:
        found = ((n**2 - 1) * found - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3
    return found - 3 if fisher else found


@_own
def zscore(a: Any, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """How many standard deviations each number lies above the mean.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.zscore(tg.tensor([1.0, 3.0]))
    tensor([-1.,  1.])
    """
    return zmap(a, a, axis, ddof, nan_policy)


@_own
def zmap(
    scores: Any, compare: Any, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate"
) -> Any:
    """How many standard deviations of a sample each of some numbers lies above its mean.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.zmap(tg.tensor([4.0]), [1.0, 3.0])
    tensor([2.])
    """
    t, along, _ = samples(compare, axis, nan_policy, "zmap")
    how: dict[str, Any] = {"axis": along, "keepdims": axis is not None}
    return (tensor(scores) - np.mean(t, **how)) / np.std(t, ddof=ddof, **how)


@_own
def sem(
    a: Any, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The standard error of the mean.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.sem(tg.tensor([1.0, 3.0]))
    tensor(1.)
    """
    t, axis, n = samples(a, axis, nan_policy, "sem")
    return np.std(t, axis, ddof=ddof, keepdims=keepdims) / n**0.5


@_own
def variation(
    a: Any, axis: int | None = 0, nan_policy: str = "propagate", ddof: int = 0, *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The standard deviation over the mean.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.variation(tg.tensor([1.0, 3.0]))
    tensor(0.5000)
    """
    t, axis, _ = samples(a, axis, nan_policy, "variation")
    return np.std(t, axis, ddof=ddof, keepdims=keepdims) / np.mean(t, axis, keepdims=keepdims)


def _average(t: Any, axis: int, weights: Any, keepdims: bool) -> Any:
    how: dict[str, Any] = {"keepdims": keepdims, "weights": weights}
    return np.average(t, axis, **how)


@_own
def gmean(
    a: Any, axis: int | None = 0, dtype: Any = None, weights: Any = None, *,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """The geometric mean.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.gmean(tg.tensor([1.0, 4.0]))
    tensor(2.)
    """
    t, axis, _ = samples(a, axis, nan_policy, "gmean")
    t = t if dtype is None else t.astype(dtype)
    return np.exp(_average(np.log(t), axis, weights, keepdims))


@_own
def hmean(
    a: Any, axis: int | None = 0, dtype: Any = None, *, weights: Any = None,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """The harmonic mean.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.hmean(tg.tensor([1.0, 3.0]))
    tensor(1.5000)
    """
    t, axis, _ = samples(a, axis, nan_policy, "hmean")
    t = t if dtype is None else t.astype(dtype)
    return 1.0 / _average(1.0 / t, axis, weights, keepdims)


@_own
def iqr(
    x: Any, axis: Any = None, rng: tuple[float, float] = (25, 75), scale: Any = 1.0,
    nan_policy: str = "propagate", interpolation: str = "linear", keepdims: bool = False,
) -> Any:  # fmt: skip
    """The range between two percentiles: of the middle half of the numbers.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.iqr(tg.tensor([0.0, 1.0, 2.0, 3.0, 4.0]))
    tensor(2.)
    """
    t = samples(x, 0, nan_policy, "iqr")[0]
    if isinstance(scale, str):
        scale = 2 * 2**0.5 * float(theirs("scipy.special", "erfinv")(0.5))  # 'normal'
    how: dict[str, Any] = {"axis": axis, "method": interpolation, "keepdims": keepdims}
    low, high = (np.percentile(t, p, **how) for p in rng)
    return (high - low) / scale


@_own
def entropy(
    pk: Any, qk: Any = None, base: float | None = None, axis: int = 0, *,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """The entropy of probabilities, or their divergence from others; both are made to sum to 1.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.entropy(tg.tensor([2.0, 2.0]), base=2)
    tensor(1.)
    """
    p, axis, _ = samples(pk, axis, nan_policy, "entropy")
    p = p / np.sum(p, axis, keepdims=True)
    if qk is None:
        each = theirs("scipy.special", "entr")(p)  # SciPy's ufuncs take Tensors
    else:
        q = floating(tensor(qk))
        each = theirs("scipy.special", "rel_entr")(p, q / np.sum(q, axis, keepdims=True))
    found = np.sum(each, axis, keepdims=keepdims)
    return found if base is None else found / np.log(base)
