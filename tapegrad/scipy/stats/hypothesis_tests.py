"""Correlations and tests of hypotheses, with SciPy's arguments: the statistic and its p-value.

>>> import numpy as np, tapegrad as tg
>>> x = np.array([1.0, 2.0, 3.0])
>>> round(tg.scipy.stats.pearsonr(tg.tensor([1.0, 2.0, 4.0]), x).statistic.item(), 4)
0.982
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.numpy_face.common import floating, tensor
from tapegrad.scipy.either import for_tensors
from tapegrad.scipy.stats.continuous import beta
from tapegrad.scipy.stats.continuous import t as student
from tapegrad.scipy.stats.sample_statistics import samples, sem

_own = for_tensors("scipy.stats")


class _Significance(NamedTuple):
    statistic: Any
    pvalue: Any


class SignificanceResult(_Significance):
    """A statistic, and how probable one as extreme is under the null hypothesis."""

    df: Any = None  # the degrees of freedom of a t-test


class _Line(NamedTuple):
    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any


class LinregressResult(_Line):
    """A line through points, its correlation, its p-value, and the errors of its two numbers."""

    intercept_stderr: Any = None


def _significance(statistic: Any, null: Any, alternative: str, name: str) -> SignificanceResult:
    """A statistic that is distributed symmetrically about 0, with its p-value."""
    if alternative not in ("two-sided", "less", "greater"):
        raise ValueError(
            f"`scipy.stats.{name}`: alternative is 'two-sided', 'less' or 'greater', got "
            f"{alternative!r}"
        )
    if alternative == "two-sided":
        pvalue = 2 * null.sf(np.abs(statistic))
    else:
        pvalue = null.cdf(statistic) if alternative == "less" else null.sf(statistic)
    return SignificanceResult(statistic, pvalue)


def _t_test(statistic: Any, df: Any, alternative: str, name: str) -> SignificanceResult:
    found = _significance(statistic, student(df), alternative, name)
    found.df = df
    return found


def _correlation(x: Any, y: Any, axis: int) -> Any:
    x, y = (t - np.mean(t, axis, keepdims=True) for t in (x, y))
    sizes = [np.sqrt(np.sum(t**2, axis)) for t in (x, y)]
    return np.sum(x * y, axis) / (sizes[0] * sizes[1])


@_own
def pearsonr(
    x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: int = 0
) -> SignificanceResult:
    """The correlation of two samples, and the p-value of independent normal ones.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.pearsonr(tg.tensor([1.0, 2.0, 3.0]), [1.0, 3.0, 2.0]).statistic
    tensor(0.5000)
    """
    if method is not None:
        raise TypeError(
            "`scipy.stats.pearsonr` of Tensors has the exact p-value alone, no `method`"
        )
    a, axis, n = samples(x, axis, "propagate", "pearsonr")
    b = floating(tensor(y))
    null = beta(n / 2 - 1, n / 2 - 1, -1, 2)
    return _significance(_correlation(a, b, axis), null, alternative, "pearsonr")


@_own
def linregress(
    x: Any, y: Any, alternative: str = "two-sided", *, axis: int = 0,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> LinregressResult:  # fmt: skip
    """The line of least squares through points.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.linregress([0.0, 1.0, 2.0], tg.tensor([1.0, 3.0, 5.0])).slope
    tensor(2.)
    """
    a, axis, n = samples(x, axis, nan_policy, "linregress")
    b = floating(tensor(y))
    mean, other = np.mean(a, axis, keepdims=True), np.mean(b, axis, keepdims=True)
    width = np.sum((a - mean) ** 2, axis, keepdims=True)
    slope = np.sum((a - mean) * (b - other), axis, keepdims=True) / width
    left = np.sum((b - other - slope * (a - mean)) ** 2, axis, keepdims=True)
    error = np.sqrt(left / (n - 2) / width)
    pvalue = _significance(slope / error, student(n - 2), alternative, "linregress").pvalue
    r = np.expand_dims(_correlation(a, b, axis), axis)
    end = error * np.sqrt(width / n + mean**2)
    found = (slope, other - slope * mean, r, pvalue, error, end)
    *line, end = (t if keepdims else np.squeeze(t, axis) for t in found)
    result = LinregressResult(*line)
    result.intercept_stderr = end
    return result


@_own
def ttest_1samp(
    a: Any, popmean: Any, axis: int | None = 0, nan_policy: str = "propagate",
    alternative: str = "two-sided", *, keepdims: bool = False,
) -> SignificanceResult:  # fmt: skip
    """Student's statistic of a mean, and its p-value.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.ttest_1samp(tg.tensor([1.0, 3.0]), 1.0).statistic
    tensor(1.)
    """
    t, axis, n = samples(a, axis, nan_policy, "ttest_1samp")
    statistic = (np.mean(t, axis, keepdims=True) - popmean) / sem(t, axis, keepdims=True)
    statistic = statistic if keepdims else np.squeeze(statistic, axis)
    return _t_test(statistic, n - 1, alternative, "ttest_1samp")


@_own
def ttest_rel(
    a: Any, b: Any, axis: int | None = 0, nan_policy: str = "propagate",
    alternative: str = "two-sided", *, keepdims: bool = False,
) -> SignificanceResult:  # fmt: skip
    """Student's statistic of the mean difference of two samples of pairs, and its p-value.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.ttest_rel(tg.tensor([2.0, 6.0]), [1.0, 3.0]).statistic
    tensor(2.)
    """
    pairs = floating(tensor(a)) - floating(tensor(b))
    return ttest_1samp(pairs, 0.0, axis, nan_policy, alternative, keepdims=keepdims)


@_own
def ttest_ind(
    a: Any, b: Any, *, axis: int | None = 0, equal_var: bool = True,
    nan_policy: str = "propagate", alternative: str = "two-sided", trim: float = 0,
    method: Any = None, keepdims: bool = False,
) -> SignificanceResult:  # fmt: skip
    """Student's statistic of the difference of two means, or Welch's, and its p-value.

    >>> import tapegrad as tg
    >>> tg.scipy.stats.ttest_ind(tg.tensor([2.0, 4.0]), [0.0, 2.0]).statistic
    tensor(1.4142)
    """
    if trim or method is not None:
        raise TypeError("`scipy.stats.ttest_ind` of Tensors has no `trim` and no `method`")
    x, along, n = samples(a, axis, nan_policy, "ttest_ind")
    y, _, m = samples(b, axis, nan_policy, "ttest_ind")
    how: dict[str, Any] = {"axis": along, "keepdims": keepdims}
    v, w = (np.var(t, ddof=1, **how) for t in (x, y))
    if equal_var:
        df: Any = n + m - 2
        error = np.sqrt(((n - 1) * v + (m - 1) * w) / df * (1 / n + 1 / m))
    else:
        v, w = v / n, w / m
        df = (v + w) ** 2 / (v**2 / (n - 1) + w**2 / (m - 1))
        error = np.sqrt(v + w)
    statistic = (np.mean(x, **how) - np.mean(y, **how)) / error
    return _t_test(statistic, df, alternative, "ttest_ind")
