"""Statistics of samples, tests and kernel densities: SciPy's values, with derivatives."""

import numpy as np
import pytest
import scipy.stats

import tapegrad as tg
from tests.scipy.test_names import alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

rng = np.random.default_rng(5)
A, B = rng.uniform(0.5, 2.0, (5, 3)), rng.uniform(0.5, 2.0, (5, 3))
W = rng.uniform(0.5, 2.0, 5)
STATISTICS = {
    "moment": lambda lib, a: lib.moment(a, 3),
    "moment of several orders": lambda lib, a: lib.moment(a, [2, 3], axis=1, keepdims=True),
    "moment about a center": lambda lib, a: lib.moment(a, 2, center=0.5),
    "skew": lambda lib, a: lib.skew(a),
    "skew without bias": lambda lib, a: lib.skew(a, 1, bias=False, keepdims=True),
    "kurtosis": lambda lib, a: lib.kurtosis(a),
    "kurtosis without bias": lambda lib, a: lib.kurtosis(a, None, bias=False),
    "kurtosis of Pearson": lambda lib, a: lib.kurtosis(a, axis=1, fisher=False),
    "zscore": lambda lib, a: lib.zscore(a, axis=1, ddof=1),
    "zscore of all": lambda lib, a: lib.zscore(a, axis=None),
    "zmap": lambda lib, a: lib.zmap(a[1:], a),
    "sem": lambda lib, a: lib.sem(a, axis=None),
    "variation": lambda lib, a: lib.variation(a, ddof=1, keepdims=True),
    "gmean": lambda lib, a: lib.gmean(a[:, 0], weights=W),
    "gmean of all": lambda lib, a: lib.gmean(a, axis=None),
    "hmean": lambda lib, a: lib.hmean(a, keepdims=True),
    "hmean with weights": lambda lib, a: lib.hmean(a[:, 0], weights=W),
    "iqr": lambda lib, a: lib.iqr(a),
    "iqr along an axis": lambda lib, a: lib.iqr(a, 0, (20, 70), "normal", keepdims=True),
    "entropy": lambda lib, a: lib.entropy(a, base=2),
    "entropy along an axis": lambda lib, a: lib.entropy(a, axis=1, keepdims=True),
}
OF_TWO = {
    "divergence": lambda lib, a, b: lib.entropy(a, b),
    "pearsonr": lambda lib, a, b: tuple(lib.pearsonr(a, b)),
    "pearsonr, less": lambda lib, a, b: tuple(lib.pearsonr(a, b, alternative="less")),
    "linregress": lambda lib, a, b: tuple(lib.linregress(a[:, 0], b[:, 0])),
    "linregress, greater": lambda lib, a, b: lib.linregress(a[:, 0], b[:, 0], "greater").pvalue,
    "error of the intercept": lambda lib, a, b: lib.linregress(a[:, 0], b[:, 0]).intercept_stderr,
    "ttest_1samp": lambda lib, a, b: tuple(lib.ttest_1samp(a, b[0])),
    "ttest_1samp, less": lambda lib, a, b: lib.ttest_1samp(a, b[0], 0, alternative="less").pvalue,
    "ttest_rel": lambda lib, a, b: tuple(lib.ttest_rel(a, b, 1)),
    "ttest_ind": lambda lib, a, b: tuple(lib.ttest_ind(a, b[:4], keepdims=True)),
    "Welch": lambda lib, a, b: tuple(lib.ttest_ind(a, b, equal_var=False, axis=1)),
    "degrees of freedom": lambda lib, a, b: lib.ttest_ind(a, b, equal_var=False).df,
    "gaussian_kde": lambda lib, a, b: lib.gaussian_kde(a[:, 0])(b[:, 0]),
    "gaussian_kde, silverman": lambda lib, a, b: lib.gaussian_kde(a.T, "silverman").pdf(b.T),
    "gaussian_kde, weights": lambda lib, a, b: lib.gaussian_kde(a.T, 0.4, W).logpdf(b.T),
    "gaussian_kde at one place": lambda lib, a, b: lib.gaussian_kde(a.T)(b[0]),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name):
    same("stats", STATISTICS[name], A)
    alike_in_transforms("stats", STATISTICS[name], A)


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_samples(name):
    same("stats", OF_TWO[name], A, B, orders=1)
    alike_in_transforms("stats", OF_TWO[name], A, B)


def test_names_of_results_and_dtypes():
    t = tg.tensor(A[:, 0], dtype=tg.float32, requires_grad=True)
    stats = tg.scipy.stats
    for found in (stats.skew(t), stats.zscore(t), stats.gmean(t), stats.entropy(t)):
        assert found.dtype == tg.float32
    assert stats.pearsonr(t, B[:, 0].astype(np.float32)).statistic.dtype == tg.float32
    assert stats.linregress(t, t * 2).slope.item() == pytest.approx(2.0)
    assert stats.ttest_1samp(t, 1.0).df == 4
    kde = stats.gaussian_kde(A.T, weights=tg.tensor(W))
    assert kde.neff.item() == pytest.approx(scipy.stats.gaussian_kde(A.T, weights=W).neff)
    assert type(stats.skew(A)) is np.ndarray
    plain = stats.gaussian_kde(A.T)(B.T)
    assert type(plain) is np.ndarray
    np.testing.assert_allclose(plain, scipy.stats.gaussian_kde(A.T)(B.T), rtol=1e-12)


def test_what_is_not_there_is_refused():
    t, lib = tg.tensor(A), tg.scipy.stats
    for call, error, words in [
        (lambda: lib.skew(t, nan_policy="omit"), TypeError, "nan_policy 'propagate', got 'omit'"),
        (lambda: lib.pearsonr(t, t, alternative="x"), ValueError, "'two-sided', 'less' or"),
        (lambda: lib.pearsonr(t, t, method=1), TypeError, "the exact p-value alone"),
        (lambda: lib.ttest_ind(t, t, trim=0.1), TypeError, "no `trim`"),
        (lambda: lib.gaussian_kde(t.T, "x"), ValueError, "'scott', 'silverman', a number"),
        (
            lambda: scipy.stats.skew(tg.ones(3, requires_grad=True)),
            RuntimeError,
            r"use `tapegrad\.scipy\.stats\.skew`",
        ),
    ]:
        with pytest.raises(error, match=words):
            call()
