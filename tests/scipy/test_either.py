"""Lists and tuples of Tensors and numbers as arrays among the arguments of `tapegrad.scipy`."""

import importlib

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import gradcheck

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

A, B = 1.3, 1.7
PLACES = np.arange(4.0)
IMAGE = np.arange(25.0).reshape(5, 5) ** 1.5


class Scipy:
    """SciPy's modules as attributes, whether they have been imported or not."""

    def __getattr__(self, name):
        return importlib.import_module(f"scipy.{name}")


# Each is called with SciPy or `tapegrad.scipy`, and two numbers or Tensors.
CALLS = {
    "odeint": lambda s, a, b: s.integrate.odeint(
        lambda y, t: [y[1], -y[0]], [a, 0.0], [0.0, b], rtol=1e-9, atol=1e-9
    ),
    "solve_ivp": lambda s, a, b: (
        s.integrate.solve_ivp(
            lambda t, y: (y[1], -b * y[0]), (0, 1), [a, b], t_eval=[0.5], rtol=1e-9, atol=1e-9
        ).y
    ),
    "trapezoid": lambda s, a, b: s.integrate.trapezoid([a, b, a * b], [0.0, a, a + b]),
    "simpson": lambda s, a, b: s.integrate.simpson((a, b, 1)),
    "norm": lambda s, a, b: s.stats.norm.logpdf([1.5, a], loc=[a, b], scale=(1.0, b)),
    "frozen": lambda s, a, b: s.stats.gamma([a, b]).ppf([0.2, 0.5]),
    "mean": lambda s, a, b: s.stats.norm.mean([a, b]),
    "multivariate_normal": lambda s, a, b: s.stats.multivariate_normal.logpdf(
        [0.3, 0.4], mean=[a, b], cov=[[2 + a, b], [b, 3]]
    ),
    "dirichlet": lambda s, a, b: s.stats.dirichlet.logpdf([0.3, 0.7], [a, b]),
    "zscore": lambda s, a, b: s.stats.zscore([a, b, a * b]),
    "CubicSpline": lambda s, a, b: s.interpolate.CubicSpline(PLACES, [a, b, 2.0, 1.0])([a, b]),
    "Pchip": lambda s, a, b: s.interpolate.PchipInterpolator(PLACES, [a, b, 2.0, 1.0])(1.5),
    "Hermite": lambda s, a, b: s.interpolate.CubicHermiteSpline([0.0, 9.0], [a, b], [b, 0.0])(a),
    "PPoly": lambda s, a, b: s.interpolate.PPoly([[a], [b]], [0.0, 9.0])([0.5, a]),
    "BSpline": lambda s, a, b: s.interpolate.BSpline([0, 0, 1, 2, 2], [a, b, 1.0], 1)(0.5),
    "splev": lambda s, a, b: s.interpolate.splev(
        [0.5, a], s.interpolate.splrep(PLACES, [a, b, 2.0, 1.0])
    ),
    "grid": lambda s, a, b: s.interpolate.RegularGridInterpolator(
        ([0, 2], [0, 2]), [[a, b], [1.0, b]]
    )([[0.5, a]]),
    "interpn": lambda s, a, b: s.interpolate.interpn((PLACES, PLACES), IMAGE[:4, :4], (a, b)),
    "radial": lambda s, a, b: s.interpolate.RBFInterpolator(PLACES[:, None], [a, b, 2.0, 1.0])(
        [[0.5], [1.5]]
    ),
    "shift": lambda s, a, b: s.ndimage.shift(IMAGE, [a / 3, b / 3]),
    "affine": lambda s, a, b: s.ndimage.affine_transform(IMAGE, [[a, 0.1], [0.2, b]], [a / 9, 0.0]),
    "softmax": lambda s, a, b: s.special.softmax([a, b]),
    "logsumexp": lambda s, a, b: s.special.logsumexp([[a, 2.0], [1, b]], b=[a, b]),
    "toeplitz": lambda s, a, b: s.linalg.toeplitz([a, b, 1.0], (0.0, b)),
    "block_diag": lambda s, a, b: s.linalg.block_diag([[a, b]], [[1.0]], a),
    "solve": lambda s, a, b: s.linalg.solve([[a, 0.5], [0.1, b]], (a, 1.0)),
    "cho_solve": lambda s, a, b: s.linalg.cho_solve(
        s.linalg.cho_factor([[a, 0.1], [0.1, b]]), [1.0, a]
    ),
    "lu_solve": lambda s, a, b: s.linalg.lu_solve(
        s.linalg.lu_factor([[a, 0.1], [0.1, b]]), [1.0, a]
    ),
    "solve_toeplitz": lambda s, a, b: s.linalg.solve_toeplitz(([a, 0.1], [0.0, b]), [1.0, a]),
    "solveh_banded": lambda s, a, b: s.linalg.solveh_banded([[0.0, 0.1], [b, a]], [1.0, a]),
    "lyapunov": lambda s, a, b: s.linalg.solve_continuous_lyapunov(
        [[a, 0.1], [0.1, b]], [[1.0, a], [0.0, b]]
    ),
    "riccati": lambda s, a, b: s.linalg.solve_continuous_are(
        [[a, 0.1], [0.1, b]], [[1.0], [b]], [[1.0, 0.0], [0.0, b]], [[a]]
    ),
    "polar": lambda s, a, b: s.linalg.polar([[a, 0.1], [0.3, b]])[0],
    "dct": lambda s, a, b: s.fft.dct([a, b, 1.0]),
    "cdist": lambda s, a, b: s.spatial.distance.cdist([[a, b]], [[1.0, 5.0]]),
    "convolve": lambda s, a, b: s.signal.convolve([a, b], [1.0, a]),
    "minimize": lambda s, a, b: (
        s.optimize.minimize(
            lambda x, p: (x[0] - p[0]) ** 2 + (x[1] - p[1]) ** 2, [a, b], args=([a, b],)
        ).x
    ),
    "root": lambda s, a, b: s.optimize.root(lambda x: [x[0] - a, x[1] * x[0] - b], [a, b]).x,
}


@pytest.mark.parametrize("name", CALLS)
def test_lists_of_tensors_are_arrays(name):
    call = CALLS[name]
    given = [tg.tensor(v, dtype=tg.float64, requires_grad=True) for v in (A, B)]
    found = call(tg.scipy, *given)
    np.testing.assert_allclose(found.detach(), call(Scipy(), A, B), rtol=1e-6, atol=1e-8)
    assert gradcheck(lambda a, b: call(tg.scipy, a, b), given, rtol=1e-3, atol=1e-5)
    slopes = tg.grad(lambda a, b: np.sum(np.sin(call(tg.scipy, a, b))), (0, 1))
    wanted = slopes(A, B)
    np.testing.assert_allclose(tg.jit(slopes)(A, B), wanted, rtol=1e-6, atol=1e-8)
    batch = tg.vmap(slopes)(np.array([B, A]), np.array([A, B]))
    np.testing.assert_allclose([part[1] for part in batch], wanted, rtol=1e-6, atol=1e-8)


def test_what_has_parts_stays_as_it_is():
    one = tg.ones(1)
    factor = tg.tensor([[2.0]])
    assert tg.scipy.linalg.cho_solve([factor, True], one) == 0.25
    # A column and a row, of one element each.
    assert tg.scipy.linalg.matmul_toeplitz((2 * one, one), one) == 2.0


def test_rows_of_different_lengths_are_refused():
    t = tg.tensor(1.0)
    with pytest.raises(RuntimeError, match="same shape"):
        tg.scipy.linalg.inv([[t, 2.0], [1.0]])
