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


CURVES = rng.standard_normal((4, 5))
FLAT = np.array([0.3, 0.3, 1.0, 0.2, -0.4, 0.5])
OUTLINES = {
    "pchip": lambda lib, y: lib.PchipInterpolator(X, y),
    "pchip of two": lambda lib, y: lib.PchipInterpolator(X[:2], y[:2]),
    "akima": lambda lib, y: lib.Akima1DInterpolator(X, y, extrapolate=True),
    "makima": lambda lib, y: lib.Akima1DInterpolator(X, y, method="makima", extrapolate=True),
    "akima of two": lambda lib, y: lib.Akima1DInterpolator(X[:2], y[:2], extrapolate=True),
    "hermite": lambda lib, y: lib.CubicHermiteSpline(X, y, y[::-1] ** 2),
    "cubic": lambda lib, y: lib.CubicSpline(X, y, bc_type="natural"),
    "linear spline": lambda lib, y: lib.make_interp_spline(X, y, k=1),
    "quintic spline": lambda lib, y: lib.make_interp_spline(X, y, k=5),
    "natural spline": lambda lib, y: lib.make_interp_spline(X, y, bc_type="natural"),
    "knots": lambda lib, y: lib.BSpline(np.linspace(0.0, 5.0, 9), y, 2),
    "repeated knots": lambda lib, y: lib.BSpline([0, 0, 0, 1.5, 1.5, 2, 4, 4, 4], y, 2),
}


@pytest.mark.parametrize("name", OUTLINES)
def test_curves_in_places_and_values(name):
    make = OUTLINES[name]
    for y in (Y, FLAT):
        same("interpolate", lambda lib, x, y: make(lib, y)(x), AT, y, orders=2 * (y is Y))
    alike_in_transforms("interpolate", lambda lib, x, y: make(lib, y)(x), AT, Y)
    same("interpolate", lambda lib, x: make(lib, FLAT)(x, 1), BEYOND)
    ends = (X[1] + 0.1, X[3])
    for about in (
        lambda lib, x, y: make(lib, y).derivative()(x),
        lambda lib, x, y: make(lib, y).antiderivative()(x),
        lambda lib, x, y: make(lib, y).integrate(*ends) + x[0, 0],
    ):
        same("interpolate", about, AT, Y, orders=1)
    same("interpolate", lambda lib, a, b: make(lib, Y).integrate(a, b), *ends, orders=1)


@pytest.mark.parametrize("name", OUTLINES)
def test_curves_through_values_in_single_precision(name):
    y = tg.tensor(Y, dtype=tg.float32, requires_grad=True)
    found = OUTLINES[name](tg.scipy.interpolate, y)(AT)
    wanted = OUTLINES[name](scipy.interpolate, Y)(AT)
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    found.sum().backward()
    assert y.grad.dtype == tg.float32


@pytest.mark.parametrize("name", ["PchipInterpolator", "Akima1DInterpolator", "make_interp_spline"])
def test_curves_along_an_axis(name):
    same("interpolate", lambda lib, x, y: getattr(lib, name)(X, y, axis=1)(x), AT, ROWS, orders=1)


def test_polynomials_between_breakpoints():
    holds(lambda lib, x, c: lib.PPoly(c, X)(x), AT, CURVES)
    same("interpolate", lambda lib, c: lib.PPoly(c, X, axis=1)(AT), np.stack([CURVES, -CURVES]))
    for times in (1, 2):
        holds(lambda lib, x, c: lib.PPoly(c, X).antiderivative(times)(x), AT, CURVES)  # noqa: B023
        holds(lambda lib, x, c: lib.PPoly(c, X).derivative(times)(x), AT, CURVES)  # noqa: B023
    same("interpolate", lambda lib, c: lib.PPoly(c, X).derivative(5)(AT), CURVES, orders=0)
    around = lambda lib, b, c: lib.PPoly(c, X, "periodic").integrate(X[0] - 1.3, b)
    same("interpolate", around, X[-1] + 9.0, CURVES, orders=1)
    cut = tg.scipy.interpolate.Akima1DInterpolator(X, tg.tensor(Y))(BEYOND)
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
    for one in (
        lambda lib: lib.make_interp_spline(X, Y, k=2)(AT), lambda lib: lib.BSpline(X, Y[:3], 2)(AT),
        lambda lib: lib.PchipInterpolator(X, ROWS, 1)(AT), lambda lib: lib.PPoly(CURVES, X)(AT, 1),
    ):  # fmt: skip
        assert type(one(tg.scipy.interpolate)) is np.ndarray
        np.testing.assert_array_equal(one(tg.scipy.interpolate), one(scipy.interpolate))
    assert tg.scipy.interpolate.lagrange is scipy.interpolate.lagrange


def test_what_is_not_there_is_refused():
    t, lib = tg.tensor(X, requires_grad=True), tg.scipy.interpolate
    outside = PLACES + 9.0
    for call, error, words in [
        (lambda: lib.CubicSpline(t, Y), TypeError, "points are not differentiated"),
        (lambda: lib.PchipInterpolator(t, Y), TypeError, "`scipy.interpolate.PchipInterpolator`: "),
        (lambda: lib.Akima1DInterpolator(X, t, method="x"), ValueError, "'makima', got 'x'"),
        (lambda: lib.make_interp_spline(X, t, bc_type=[1]), TypeError, "see `CubicSpline`"),
        (lambda: lib.RegularGridInterpolator(GRID, VALUES, "cubic"), TypeError, "got 'cubic'"),
        (lambda: lib.RegularGridInterpolator(GRID, t), ValueError, "of them for the shape"),
        (lambda: on_grid(lib, t), ValueError, "2 coordinates"),
        (lambda: on_grid(lib, tg.tensor(outside)), ValueError, "outside of the grid"),
        (lambda: scipy.interpolate.CubicSpline(X, Y)(t), RuntimeError, "`tapegrad.scipy.interpol"),
    ]:
        with pytest.raises(error, match=words):
            call()
    assert np.isnan(tg.jit(lib.RegularGridInterpolator(GRID, VALUES))(outside)).all()


SCATTERED, HEIGHTS = rng.random((9, 2)), rng.standard_normal((9, 3))
BETWEEN = rng.random((4, 2))


@pytest.mark.parametrize(
    "kernel",
    "linear thin_plate_spline cubic quintic multiquadric inverse_multiquadric inverse_quadratic "
    "gaussian".split(),
)
def test_radial_basis_functions(kernel):
    def surface(lib, x, y, d, **how):
        return lib.RBFInterpolator(y, d, kernel=kernel, epsilon=2.0, **how)(x)

    holds(surface, BETWEEN, SCATTERED, HEIGHTS)
    same("interpolate", lambda lib, d: surface(lib, BETWEEN, SCATTERED, d, degree=2), HEIGHTS[:, 0])
    same("interpolate", lambda lib, x: surface(lib, x, SCATTERED, HEIGHTS, smoothing=0.3), BETWEEN)
    at_points = tg.grad(lambda x: surface(tg.scipy.interpolate, x, SCATTERED, HEIGHTS).sum())
    assert np.isfinite(at_points(SCATTERED)).all()


def test_radial_basis_functions_refuse_what_makes_no_surface():
    make, d = tg.scipy.interpolate.RBFInterpolator, tg.tensor(HEIGHTS)
    for match, call in {
        "kernel is one of": lambda: make(SCATTERED, d, kernel="round"),
        "needs epsilon": lambda: make(SCATTERED, d, kernel="gaussian"),
        "a row of coordinates for each value": lambda: make(SCATTERED[:4], d),
        "at least 3 points": lambda: make(SCATTERED[:2], d[:2]),
        "rows of 2 coordinates": lambda: make(SCATTERED, d)(np.zeros((3, 1))),
    }.items():
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.raises(NotImplementedError, match="neighbors"):
        make(SCATTERED, d, neighbors=3)
    of_arrays = make(SCATTERED, HEIGHTS, neighbors=5)
    wanted = scipy.interpolate.RBFInterpolator(SCATTERED, HEIGHTS, neighbors=5)(BETWEEN)
    np.testing.assert_array_equal(of_arrays(BETWEEN), wanted)
    with pytest.raises(NotImplementedError, match="neighbors"):
        of_arrays(tg.tensor(BETWEEN))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_splines_under_the_names_of_fitpack(k):
    for nu in range(k):
        for ext in (0, 1, 3):
            holds(
                lambda lib, x, y, nu=nu, ext=ext: lib.splev(x, lib.splrep(X, y, k=k), nu, ext),
                BEYOND, Y,
            )  # fmt: skip
    holds(lambda lib, y: lib.splint(X[0] - 1.0, X[3] + 0.1, lib.splrep(X, y, k=k)), Y)
    holds(lambda lib, x, y: lib.InterpolatedUnivariateSpline(X, y, k=k)(x), AT, Y)
    holds(lambda lib, y: lib.InterpolatedUnivariateSpline(X, y, k=k).integral(1.0, 2.0), Y)
    holds(lambda lib, x: lib.InterpolatedUnivariateSpline(X, Y, k=k, ext=1)(x), BEYOND)


def test_smoothing_splines_are_refused():
    with pytest.raises(NotImplementedError, match="goes through all values"):
        tg.scipy.interpolate.splrep(X, tg.tensor(Y), s=1.0)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_values_on_a_grid(method):
    holds(lambda lib, v, p: lib.interpn(GRID, v, p, method), VALUES, PLACES)


def test_a_tuple_of_numbers_is_one_place():
    grid = ([0.0, 1.0, 2.0], [0.0, 1.0])
    values = np.array([[0.0, 1.0], [2.0, 4.0], [3.0, 9.0]])
    f = tg.scipy.interpolate.RegularGridInterpolator(grid, values)
    p = np.array([0.3, 0.4])
    assert np.shape(f((0.3, 0.4))) == ()
    value, gradient = tg.value_and_grad(lambda p: f((p[0], p[1])))(p)
    assert value == pytest.approx(f((0.3, 0.4)))
    h = 1e-6
    expected = [(f((0.3 + h, 0.4)) - f((0.3 - h, 0.4))), (f((0.3, 0.4 + h)) - f((0.3, 0.4 - h)))]
    np.testing.assert_allclose(gradient, np.array(expected) / (2 * h), rtol=1e-6)
    assert tg.jit(lambda p: f(p))(p).shape == f(p).shape == (1,)
