"""Distances of `tapegrad.scipy.spatial` against SciPy's, with derivatives in every mode."""

import numpy as np
import pytest
import scipy.spatial.distance

import tapegrad as tg
from tests.scipy.test_names import alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

rng = np.random.default_rng(0)
X, Y, W = rng.uniform(0.1, 2.0, (4, 3)), rng.uniform(0.1, 2.0, (5, 3)), np.array([0.5, 2.0, 1.0])
INVERSE = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 3.0]])
# Metrics, and their parameters.
METRICS = {
    "euclidean": {"w": W}, "sqeuclidean": {"w": W}, "cityblock": {"w": W}, "chebyshev": {},
    "minkowski": {"p": 3, "w": W}, "canberra": {"w": W}, "braycurtis": {"w": W},
    "cosine": {"w": W}, "correlation": {"w": W}, "seuclidean": {"V": W},
    "mahalanobis": {"VI": INVERSE}, "jensenshannon": {},
}  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
def test_distances_of_rows(metric):
    for how in ({}, METRICS[metric]):

        def call(lib, x, y, how=how):
            return lib.distance.cdist(x, y, metric, **how), lib.distance.pdist(x, metric, **how)

        orders = 2 if metric != "chebyshev" else 1  # which is linear
        same("spatial", call, X, Y, orders=orders if metric != "cityblock" else 1)
        alike_in_transforms("spatial", call, X, Y)


@pytest.mark.parametrize("metric", METRICS)
def test_distances_of_two_vectors(metric):
    how = METRICS[metric]
    same("spatial", lambda lib, u, v: getattr(lib.distance, metric)(u, v, **how), X[0], Y[0])


def test_the_base_of_a_divergence():
    same("spatial", lambda lib, u, v: lib.distance.jensenshannon(u, v, 2.0), X[0], Y[0])


def test_metrics_by_other_names():
    for name in ("e", "Cityblock", "cheby", "cos", "js", "pnorm", scipy.spatial.distance.cosine):
        same("spatial", lambda lib, x, y: lib.distance.cdist(x, y, name), X, Y, orders=0)  # noqa: B023


def test_squareform():
    same("spatial", lambda lib, x: lib.distance.squareform(x), X.ravel()[:6])
    same("spatial", lambda lib, x: lib.distance.squareform(lib.distance.pdist(x)), X)
    there_and_back = lambda lib, x: lib.distance.squareform(lib.distance.squareform(x))
    same("spatial", there_and_back, X.ravel()[:10])
    same("spatial", lambda lib, x: lib.distance.squareform(x[:0]), X[0], orders=0)


@pytest.mark.parametrize("p", [1, 2, 3.5, np.inf])
def test_distance_matrix(p):
    same("spatial", lambda lib, x, y: lib.distance_matrix(x, y, p), X, Y, orders=1)


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis", "jensenshannon", "canberra"])
def test_equal_points_have_no_slope(metric):
    how = {"VI": INVERSE} if metric == "mahalanobis" else {}
    x = tg.tensor(X, requires_grad=True)
    tg.scipy.spatial.distance.cdist(x[:1], x[:1].detach(), metric, **how).sum().backward()
    assert not x.grad.any()


def test_a_gaussian_process_learns_its_lengths():
    def energy(lengths, lib):
        K = np.exp(-0.5 * lib.distance.cdist(X / lengths, X / lengths, "sqeuclidean")) + np.eye(4)
        return np.linalg.slogdet(K)[1] + np.sum(np.linalg.solve(K, X[:, 0]))

    slope, step = tg.jit(tg.grad(lambda v: energy(v, tg.scipy.spatial)))(W), 1e-6
    for k in range(3):
        ends = [energy(W + s * step * np.eye(3)[k], scipy.spatial) for s in (1, -1)]
        np.testing.assert_allclose(slope[k], (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_what_is_not_there_is_refused():
    t = tg.tensor(X, requires_grad=True)
    distance = tg.scipy.spatial.distance
    for call, error, words in [
        (lambda: distance.cdist(t, t, "hamming"), ValueError, "metrics of Tensors are euclidean"),
        (lambda: distance.cdist(t, t, max), TypeError, r"take `tapegrad\.vmap`"),
        (lambda: distance.cdist(t, t[:, :2]), ValueError, "as many columns"),
        (lambda: distance.pdist(t[0]), ValueError, "rows of a matrix"),
        (lambda: distance.euclidean(t, t), ValueError, "two vectors of one length"),
        (lambda: distance.squareform(t[0, :2]), ValueError, "some points have"),
        (lambda: scipy.spatial.distance.cdist(t, X), RuntimeError, r"tapegrad\.scipy\.spatial"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_single_precision_beside_a_matrix_in_double_precision():
    x = tg.tensor(X, dtype=tg.float32, requires_grad=True)
    found = tg.scipy.spatial.distance.cdist(x, Y, "mahalanobis", VI=INVERSE)
    wanted = scipy.spatial.distance.cdist(X, Y, "mahalanobis", VI=INVERSE)
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-5)
    found.sum().backward()
    assert x.grad.dtype == tg.float32
