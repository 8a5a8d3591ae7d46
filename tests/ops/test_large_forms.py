"""What reductions and searches do with many elements is what they do with few."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops import order, reduce

pytestmark = pytest.mark.tapegrad_only("about thresholds of the library")
RNG = np.random.default_rng(5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("columns", [2, 3, 8, 9])
@pytest.mark.parametrize("keepdim", [False, True])
def test_few_columns_of_many_rows(dtype, columns, keepdim):
    x = RNG.standard_normal((1, 3000, columns)).astype(dtype)
    x[0, 7, 1] = np.nan
    near = {"rtol": 1e-5 if dtype is np.float32 else 1e-13, "atol": 1e-5}
    for op in ("sum", "prod", "mean", "amax", "amin", "logsumexp", "std"):
        if dtype is np.complex128 and op not in ("sum", "prod", "mean"):
            continue
        more = {"correction": 1} if op == "std" else {}
        row = getattr(reduce, op)
        found = row.forward(x, dim=(2,), keepdim=keepdim, **more)
        parts = [row.forward(r, dim=(1,), keepdim=keepdim, **more) for r in np.split(x[0], 30)]
        assert found.dtype == parts[0].dtype
        np.testing.assert_allclose(found[0], np.concatenate(parts), **near)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("kind", ["distinct", "ties", "NaN", "NaN at the end", "inf", "integers"])
@pytest.mark.parametrize("n", [20_000, 20_480])
def test_the_best_of_many(kind, largest, n):
    x = RNG.standard_normal(n)
    if kind == "ties":
        x = np.round(x * 20)
    elif kind == "integers":
        x = np.round(x * 1000).astype(np.int64)
    elif kind.startswith("NaN"):
        x[-3 if kind == "NaN at the end" else 700] = np.nan
    elif kind == "inf":
        x[[5, 6, 17_000]] = np.inf, -np.inf, np.inf
    for k in (1, 7, 100):
        signed = -x if largest else x
        if kind.startswith("NaN"):  # it counts as the largest
            signed = np.where(np.isnan(x), -np.inf if largest else np.inf, signed)
        expected = np.argsort(signed, kind="stable")[:k]
        for line in (x, x[None]):
            found = order._topk(line, k=k, largest=largest)
            assert found.shape == (*line.shape[:-1], k)
            np.testing.assert_array_equal(found.ravel(), expected)


@pytest.mark.parametrize("change", [None, ("zero", 0.0), ("huge", 1e300), ("inf", np.inf)], ids=str)
def test_gradients_of_long_products(change):
    x = RNG.uniform(0.9, 1.1, 3000)
    if change:
        x[[4, 1000]] = change[1]
    t = tg.tensor(x, requires_grad=True)
    with np.errstate(all="ignore"):
        tg.prod(t).backward()
        left, right = (np.concatenate([[1.0], np.cumprod(y)[:-1]]) for y in (x, x[::-1]))
        np.testing.assert_allclose(t.grad, left * right[::-1], rtol=1e-10)


def test_places_of_running_extrema_along_rows():
    x = np.round(RNG.standard_normal((40, 500)) * 3)
    x[3, 100] = np.nan
    for largest in (True, False):
        found = order._argcummax(x, dim=1, largest=largest)
        other = order._argcummax(np.ascontiguousarray(x.T), dim=0, largest=largest).T
        np.testing.assert_array_equal(found, other)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("special", [None, np.nan, np.inf, -np.inf])
def test_the_best_of_each_row(special, largest):
    x = np.round(RNG.standard_normal((30, 200)) * 8)
    if special is not None:
        x[2, [3, 50]] = special
    for k in (1, 5, 17):
        found = order._topk(x, k=k, largest=largest)
        signed = -x if largest else x
        if special is np.nan:
            signed = np.where(np.isnan(x), -np.inf if largest else np.inf, signed)
        np.testing.assert_array_equal(found, np.argsort(signed, axis=1, kind="stable")[:, :k])
