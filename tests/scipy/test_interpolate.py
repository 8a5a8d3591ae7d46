"""Splines and grids: values of SciPy's, derivatives, transforms."""

import numpy as np
import pytest
import scipy.interpolate

import tapegrad as tg
from tests.scipy.test_names import alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

rng = np.random.default_rng(2)
X = np.cumsum(rng.uniform(0.5, 1.0, 6))
Y, ROWS = rng.standard_normal(6), rng.standard_normal((2, 6, 3))
AT = rng.uniform(X[0], X[-1], (2, 3))
BEYOND = np.array([X[0] - 0.3, X[2] + 0.1, X[-1] + 0.4])
GRID = (X[:3], np.array([0.0, 1.0, 3.0]))
PLACES = np.stack([rng.uniform(X[0], X[2], 4), rng.uniform(0.0, 3.0, 4)], -1)
VALUES = rng.standard_normal((3, 3))
ENDS = ["not-a-knot", "natural", "clamped", ((1, 0.5), (2, -0.3)), ("natural", (1, 0.4))]


def holds(call, *arrays):
    """What SciPy gives, with its derivatives, and the same under transforms."""
    same("interpolate", call, *arrays)
    alike_in_transforms("interpolate", call, *arrays)


@pytest.mark.parametrize("ends", ENDS)
def test_cubic_splines(ends):
    holds(lambda lib, x: lib.CubicSpline(X, Y, bc_type=ends)(x), AT)
    holds(lambda lib, x, y: lib.CubicSpline(X, y, bc_type=ends)(x), AT, Y)


@pytest.mark.parametrize("nu", range(5))
def test_derivatives_of_splines(nu):
    holds(lambda lib, x, y: lib.CubicSpline(X, y)(x, nu), AT, Y)


def test_splines_along_an_axis_and_beyond_their_ends():
    slope = np.ones((2, 3))
    holds(lambda lib, x, y: lib.CubicSpline(X, y, axis=1)(x), AT, ROWS)
    holds(lambda lib, y: lib.CubicSpline(X, y, 1, ((1, slope), "natural"))(X[1]), ROWS)
    holds(lambda lib, x, y: lib.CubicSpline(X, y)(x), BEYOND, Y)
    holds(lambda lib, x: lib.CubicSpline(X, Y, extrapolate=False)(x), AT)
    around = np.append(Y[:-1], Y[0])
    same(
        "interpolate", lambda lib, x, y: lib.CubicSpline(X, y, bc_type="periodic")(x), BEYOND,
        around, orders=0,
    )  # fmt: skip
    holds(lambda lib, x: lib.CubicSpline(X, around, bc_type="periodic")(x), BEYOND)
    cut = tg.scipy.interpolate.CubicSpline(X, Y, extrapolate=False)(tg.tensor(BEYOND))
    assert np.isnan(cut.numpy()).tolist() == [True, False, True]


def on_grid(lib, places, values=VALUES, axes=2, **how):
    return lib.RegularGridInterpolator(GRID[:axes], values, **how)(places)


def test_grids():
    holds(on_grid, PLACES, VALUES)
    holds(on_grid, PLACES[0])
    holds(lambda lib, p, v: on_grid(lib, p, v, axes=1), PLACES[:, :1], VALUES)
    holds(lambda lib, x, y: on_grid(lib, (x, y)), PLACES[:, 0], PLACES[:, 1])
    for fill in (None, 7.0):
        holds(
            lambda lib, p: on_grid(lib, p + 2.0, bounds_error=False, fill_value=fill),  # noqa: B023
            PLACES,
        )


def test_of_arrays_alone_they_are_scipys_numbers():
    spline = tg.scipy.interpolate.CubicSpline(X, ROWS, axis=1)
    wanted = scipy.interpolate.CubicSpline(X, ROWS, axis=1)(AT)
    assert type(spline(AT)) is np.ndarray
    np.testing.assert_array_equal(spline(AT), wanted)
    assert type(on_grid(tg.scipy.interpolate, PLACES)) is np.ndarray
    assert tg.scipy.interpolate.BSpline is scipy.interpolate.BSpline


def test_what_is_not_there_is_refused():
    t, lib = tg.tensor(X, requires_grad=True), tg.scipy.interpolate
    outside = PLACES + 9.0
    for call, error, words in [
        (lambda: lib.CubicSpline(t, Y), TypeError, "points are not differentiated"),
        (lambda: lib.RegularGridInterpolator(GRID, VALUES, "cubic"), TypeError, "got 'cubic'"),
        (lambda: lib.RegularGridInterpolator(GRID, t), ValueError, "of them for the shape"),
        (lambda: on_grid(lib, t), ValueError, "2 coordinates"),
        (lambda: on_grid(lib, tg.tensor(outside)), ValueError, "outside of the grid"),
        (lambda: scipy.interpolate.CubicSpline(X, Y)(t), RuntimeError, "`tapegrad.scipy.interpol"),
    ]:
        with pytest.raises(error, match=words):
            call()
    assert np.isnan(tg.jit(lib.RegularGridInterpolator(GRID, VALUES))(outside)).all()
