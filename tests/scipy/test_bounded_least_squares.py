"""`nnls` and `lsq_linear`: SciPy's solutions, and their derivatives."""

import numpy as np
import pytest
import scipy.optimize

import tapegrad as tg
from tapegrad.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

M = np.array([[1.0, 2.0, 0.3], [0.5, -1.0, 1.0], [2.0, 0.1, 1.0], [0.3, 1.0, -1.0]])
B = np.array([1.0, 2.0, -0.5, 0.3])
BOUNDS = {
    "none": (-np.inf, np.inf),
    "from zero": (0.0, 1.0),
    "each": ([-1.0, -0.2, -1.0], [0.1, 0.2, 2.0]),
    "object": scipy.optimize.Bounds([-0.1] * 3, [0.5] * 3),
}


def in_all_modes(f, *given):
    leaves = tuple(tg.tensor(v, requires_grad=True) for v in given)
    assert gradcheck(f, leaves)
    assert gradgradcheck(f, leaves)
    slopes = tg.grad(lambda *x: np.sum(np.sin(f(*x))), tuple(range(len(given))))
    wanted = slopes(*given)
    batch = tg.vmap(slopes)(*[np.stack([0.9 * v, v]) for v in given])
    for a, b, c in zip(tg.jit(slopes)(*given), batch, wanted, strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(b[1], c, rtol=1e-9, atol=1e-12)


def test_solutions_without_negative_elements():
    x, norm = tg.scipy.optimize.nnls(tg.tensor(M), B)
    wanted = scipy.optimize.nnls(M, B)
    np.testing.assert_allclose(x, wanted[0], rtol=1e-12)
    np.testing.assert_allclose(norm, wanted[1], rtol=1e-12)
    assert x[0] == 0.0

    def both(A, b):
        x, norm = tg.scipy.optimize.nnls(A, b)
        return np.concatenate([x, norm[None]])

    in_all_modes(both, M, B)
    found, _ = tg.scipy.optimize.nnls(tg.tensor(M, dtype=tg.float32), tg.tensor(B.astype("f4")))
    assert found.dtype == tg.float32


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("method", ["trf", "bvls"])
def test_solutions_within_bounds(name, method):
    bounds = BOUNDS[name]

    def parts(A, b):
        found = tg.scipy.optimize.lsq_linear(A, b, bounds, method)
        return np.concatenate([found.x, found.fun, found.cost[None]])

    found = tg.scipy.optimize.lsq_linear(tg.tensor(M), B, bounds, method)
    wanted = scipy.optimize.lsq_linear(M, B, bounds, method)
    np.testing.assert_allclose(found.x, wanted.x, atol=1e-8)
    np.testing.assert_allclose(found.cost, wanted.cost, rtol=1e-8)
    assert found.active_mask.tolist() == wanted.active_mask.tolist()
    assert found.status == wanted.status
    in_all_modes(parts, M, B)


def test_bounds_have_derivatives():
    def solution(low, high):
        return tg.scipy.optimize.lsq_linear(M, B, ([low, -1.0, low], [0.1, high, 2.0])).x

    assert scipy.optimize.lsq_linear(M, B, ([-0.1, -1, -0.1], [0.1, 0.2, 2])).active_mask.any()
    in_all_modes(solution, np.array(-0.1), np.array(0.2))


def test_what_fits_not_together_is_refused():
    t = tg.tensor(B)
    for name in ("nnls", "lsq_linear"):
        f = getattr(tg.scipy.optimize, name)
        with pytest.raises(ValueError, match=rf"`scipy.optimize.{name}` .* \(3, 3\) and \(4,\)"):
            f(np.eye(3), t)
        assert type(f(M, B)) is type(getattr(scipy.optimize, name)(M, B))  # of arrays
