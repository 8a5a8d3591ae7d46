"""NumPy's statistics, polynomials and least squares against `jax.numpy`: values and gradients."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="compares with JAX: `make peers` installs it")

import jax.numpy as jnp  # noqa: E402

import tapegrad as tg  # noqa: E402

pytestmark = [
    pytest.mark.peer,
    pytest.mark.usefixtures("double_precision_of_jax"),
    pytest.mark.tapegrad_only("runs both libraries itself"),
]

M, V, C = (3, 5), (6,), (2, 3, 4)
GAPS = np.where(np.arange(24).reshape(C) % 5 == 1, np.nan, 0.0)
X = np.linspace(-1.0, 1.0, 6)
BIG = 3 * np.eye(6)
CASES = {
    "quantile": (lambda n, a: n.quantile(a, n.asarray([0.1, 0.6]), axis=1), C),
    "quantile place": (lambda n, a, q: n.quantile(a, n.square(n.tanh(q))), V, (2,)),
    "quantile midpoint": (lambda n, a: n.quantile(a, 0.3, axis=(0, 2), method="midpoint"), C),
    "quantile nearest": (lambda n, a: n.quantile(a, 0.3, method="nearest", keepdims=True), C),
    "percentile": (lambda n, a: n.percentile(a, 35.0, axis=0), M),
    "nanquantile": (lambda n, a: n.nanquantile(a + GAPS, 0.4, axis=2), C),
    "nanpercentile": (lambda n, a: n.nanpercentile(a + GAPS, 70.0), C),
    "nanmedian": (lambda n, a: n.nanmedian(a + GAPS, axis=1), C),
    "cov": (lambda n, a: n.cov(a), M),
    "cov of two": (lambda n, a, b: n.cov(a, b, ddof=0), V, V),
    "cov weights": (lambda n, a, w: n.cov(a, rowvar=False, aweights=n.exp(w)), M, (3,)),
    "corrcoef": (lambda n, a: n.corrcoef(a), M),
    "nanmax": (lambda n, a: n.nanmax(a + GAPS, axis=1), C),
    "nanmin": (lambda n, a: n.nanmin(a + GAPS), C),
    "nanvar": (lambda n, a: n.nanvar(a + GAPS, axis=2, ddof=1), C),
    "nanstd": (lambda n, a: n.nanstd(a + GAPS, axis=(0, 2)), C),
    "nancumsum": (lambda n, a: n.nancumsum(a + GAPS, axis=1), C),
    "polyadd": (lambda n, a, b: n.polyadd(a, b), V, (3,)),
    "polymul": (lambda n, a, b: n.polymul(a, b), V, (3,)),
    "polyder": (lambda n, a: n.polyder(a, 2), V),
    "polyint": (lambda n, a, k: n.polyint(a, 2, k), V, (2,)),
    "poly": (lambda n, a: n.poly(a), V),
    "polyfit": (lambda n, y: n.polyfit(n.asarray(X), y, 2), V),
    "polyfit points": (lambda n, x, y: n.polyfit(x + 3 * X, y, 2), V, V),
    "vander": (lambda n, a: n.vander(a, 4), V),
    "linspace": (lambda n, a, b: n.linspace(a, b, 5, axis=1), (2, 3), (3,)),
    "logspace": (lambda n, a, b: n.logspace(a, b, 4), (), V),
    "geomspace": (lambda n, a, b: n.geomspace(n.exp(a), n.exp(b), 4), (), V),
    "insert": (lambda n, a, v: n.insert(a, np.array([1, 3]), v, axis=1), M, (3, 2)),
    "unwrap": (lambda n, a: n.unwrap(a * 7), C),
    "heaviside": (lambda n, a, b: n.heaviside(a, b) + b, V, V),
    "lstsq": (lambda n, a, b: n.linalg.lstsq(a, b)[0], (6, 3), (6, 2)),
    "lstsq wide": (lambda n, a, b: n.linalg.lstsq(a, b)[0], (3, 6), (3,)),
    "lstsq of rank 1": (lambda n, a, b: n.linalg.lstsq(n.outer(a, a), b)[0], V, V),
    "cond": (lambda n, a: n.linalg.cond(a), (4, 3)),
    "tensorsolve": (
        lambda n, a, b: n.linalg.tensorsolve(a + BIG.reshape(2, 3, 6), b), (2, 3, 6), (2, 3),
    ),
    "tensorinv": (lambda n, a: n.linalg.tensorinv(a + BIG.reshape(2, 3, 6)), (2, 3, 6)),
    "apply_along_axis": (lambda n, a: n.apply_along_axis(n.linalg.norm, 1, a), C),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    function, *shapes = CASES[name]
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=shape) for shape in shapes]
    everything = tuple(range(len(arrays)))

    def total(n):
        def weighted(*xs):
            y = function(n, *xs)
            return (n.cos(y) * y).sum(), y

        return weighted

    (_, y), found = tg.value_and_grad(total(np), everything, has_aux=True)(*arrays)
    theirs = jax.jit(jax.value_and_grad(total(jnp), everything, has_aux=True))
    (_, wanted_y), wanted = theirs(*map(jnp.asarray, arrays))
    np.testing.assert_allclose(y, wanted_y, rtol=1e-10, atol=1e-12)
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-10)
