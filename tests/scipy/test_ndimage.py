"""Filters and interpolation of images: values of SciPy's, derivatives, transforms."""

import numpy as np
import pytest
import scipy.ndimage

import tapegrad as tg
from tests.scipy.test_names import alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

rng = np.random.default_rng(0)
X, V, W = rng.standard_normal((4, 5)), rng.standard_normal(7), rng.standard_normal((3, 2))
CUBE, TURN = rng.standard_normal((3, 2, 4)), np.array([[0.8, 0.3], [-0.2, 1.1]])
MODES = [
    "reflect", "grid-mirror", "mirror", "nearest", "wrap", "grid-wrap", "constant", "grid-constant",
]  # fmt: skip
# Each with SciPy's arguments, and what it is given.
FILTERS = {
    "correlate1d": (lambda lib, x, v: lib.correlate1d(x, v, 0, origin=-1), X, V[:4]),
    "convolve1d": (lambda lib, x, v: lib.convolve1d(x, v, origin=1), X, V[:4]),
    "correlate": (lambda lib, x, w: lib.correlate(x, w, mode="nearest"), X, W),
    "correlate along two axes": (lambda lib, x, w: lib.correlate(x, w, axes=(1, 0)), X, W),
    "convolve": (lambda lib, x, w: lib.convolve(x, w, mode="wrap", origin=(1, 0)), X, W),
    "convolve along an axis": (lambda lib, x, v: lib.convolve(x, v, axes=(0,)), X, V[:2]),
    "uniform_filter": (lambda lib, x: lib.uniform_filter(x, (3, 1), mode=["mirror", "wrap"]), X),
    "uniform_filter1d": (lambda lib, x: lib.uniform_filter1d(x, 4, 0, origin=-1), X),
    "gaussian_filter": (lambda lib, x: lib.gaussian_filter(x, (0.5, 0.7), mode="constant"), X),
    "gaussian_filter of slopes": (lambda lib, x: lib.gaussian_filter(x, 0.6, (0, 1)), X),
    "gaussian_filter along an axis": (lambda lib, x: lib.gaussian_filter(x, 0.6, axes=1), X),
    "gaussian_filter1d": (lambda lib, x: lib.gaussian_filter1d(x, 1.3, 0, 3, radius=2), X),
    "sobel": (lambda lib, x: lib.sobel(x, 0), X),
    "prewitt": (lambda lib, x: lib.prewitt(x, mode="nearest"), X),
    "laplace": (lambda lib, x: lib.laplace(x, axes=0), X),
    "gaussian_laplace": (lambda lib, x: lib.gaussian_laplace(x, 0.5), X),
    "gaussian_gradient_magnitude": (lambda lib, x: lib.gaussian_gradient_magnitude(x, 0.5), X),
    "shift": (lambda lib, x: lib.shift(x, (0.3, -0.6), mode="nearest"), X),
    "zoom": (lambda lib, x: lib.zoom(x, (1.5, 0.6), order=1), X),
    "affine_transform": (
        lambda lib, x, m, s: lib.affine_transform(x, m, s, mode="mirror"),
        X,
        TURN,
        V[:2],
    ),
    "affine_transform by a diagonal": (
        lambda lib, x, d: lib.affine_transform(x, d, 0.31, (3, 8), order=2),
        X,
        TURN[0],
    ),
    "rotate": (lambda lib, x: lib.rotate(x, 33.0), X),
    "rotate within planes": (lambda lib, x: lib.rotate(x, 20.0, (0, 2), order=1), CUBE),
    "median_filter": (lambda lib, x: lib.median_filter(x, 3), X),
    "median_filter of a line": (lambda lib, v: lib.median_filter(v, 4), V),
    "rank_filter": (lambda lib, x: lib.rank_filter(x, -2, (2, 4), origin=(0, -1)), X),
    "percentile_filter": (
        lambda lib, x: lib.percentile_filter(x, -30, footprint=[[1, 0, 1], [0, 1, 0]]),
        X,
    ),
    "minimum_filter": (lambda lib, x: lib.minimum_filter(x, 3, axes=1), X),
    "maximum_filter": (lambda lib, x: lib.maximum_filter(x, (3, 2), mode=["wrap", "mirror"]), X),
    "minimum_filter1d": (lambda lib, x: lib.minimum_filter1d(x, 4, 0), X),
    "maximum_filter1d": (lambda lib, x: lib.maximum_filter1d(x, 3, origin=-1), X),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name):
    call, *arrays = FILTERS[name]
    same("ndimage", call, *arrays)
    alike_in_transforms("ndimage", call, *arrays)


@pytest.mark.parametrize("mode", MODES)
def test_borders(mode):
    how = {"mode": mode, "cval": 2.0}
    for call in (
        lambda lib, x, v, w: lib.correlate1d(v, x[0], **how),
        lambda lib, x, v, w: lib.convolve1d(v, x[:, 0], origin=-1, **how),
        lambda lib, x, v, w: lib.convolve(x, w, **how),
        lambda lib, x, v, w: lib.gaussian_filter(x, 2.0, **how),
        lambda lib, x, v, w: lib.sobel(x, **how),
        lambda lib, x, v, w: lib.laplace(x, **how),
        lambda lib, x, v, w: lib.median_filter(x, 3, **how),
        lambda lib, x, v, w: lib.rank_filter(v, 1, 4, origin=1, **how),
    ):
        same("ndimage", call, X, V, W, orders=0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", range(6))
def test_interpolation(order, mode):
    how = {"order": order, "mode": mode, "cval": 2.0}
    # Within the image, around it and far away; at elements and between these.
    far = np.stack(np.meshgrid(np.arange(-9.0, 14), np.arange(-12.0, 17)))
    for places in (rng.uniform(0.1, 2.9, (2, 9)), rng.uniform(-9, 17, (2, 50)), far):
        same("ndimage", lambda lib, x: lib.map_coordinates(x, places, **how), X, orders=0)  # noqa: B023
    same("ndimage", lambda lib, x: lib.shift(x, (0.3, -1.6), **how), X, orders=0)
    same("ndimage", lambda lib, x: lib.zoom(x, (1.7, 0.6), **how), X, orders=0)
    same("ndimage", lambda lib, x: lib.affine_transform(x, TURN, (0.3, -0.7), **how), X, orders=0)
    same("ndimage", lambda lib, x: lib.affine_transform(x, TURN[0], 0.31, **how), X, orders=0)
    for angle, whole in ((33.0, True), (90, True), (-120.0, False)):
        same("ndimage", lambda lib, x: lib.rotate(x, angle, reshape=whole, **how), X, orders=0)  # noqa: B023
    same("ndimage", lambda lib, x: lib.map_coordinates(x, far[:1, 0], **how), V[:1], orders=0)
    places = np.array([[0.3, 2.7, 1.6, -1.4, 4.3], [0.2, 3.6, 1.7, 2.4, -3.7]])
    for orders, at in ((2, places[:, :3]), (1, places)):
        same("ndimage", lambda lib, x: lib.map_coordinates(x, at, **how), X, orders=orders)  # noqa: B023
        if order:
            call = lambda lib, x, at: lib.map_coordinates(x, at, **how)
            same("ndimage", call, X, at, orders=orders)
    if order:
        alike_in_transforms("ndimage", lambda lib, x, at: lib.map_coordinates(x, at, **how), X, at)


def test_a_shift_has_a_derivative():
    def f(s):
        return np.sum(tg.scipy.ndimage.shift(tg.tensor(V), s, mode="mirror") ** 3)

    step = (f(0.3 + 1e-6) - f(0.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose(tg.grad(f)(0.3), step, rtol=1e-7)
    np.testing.assert_allclose(tg.jit(tg.grad(f))(0.3), step, rtol=1e-7)


def test_an_angle_has_a_derivative():
    def f(angle, whole=False):
        return np.sum(tg.scipy.ndimage.rotate(tg.tensor(X), angle, reshape=whole) ** 2)

    step = (f(33.0 + 1e-4) - f(33.0 - 1e-4)) / 2e-4
    np.testing.assert_allclose(tg.grad(f)(33.0), step, rtol=1e-6)
    np.testing.assert_allclose(tg.jit(tg.grad(f))(33.0), step, rtol=1e-6)
    step = (f(33.0 + 1e-4, True) - f(33.0 - 1e-4, True)) / 2e-4
    np.testing.assert_allclose(tg.grad(f)(33.0, True), step, rtol=1e-6)
    with pytest.raises(RuntimeError, match=r"`scipy.ndimage.rotate`: .*`reshape=False`"):
        tg.vmap(lambda angle: f(angle, True))(np.array([10.0, 20.0]))


def test_windows_of_nothing_are_refused():
    t, lib = tg.tensor(X), tg.scipy.ndimage
    for wrong in (
        lambda: lib.median_filter(t), lambda: lib.rank_filter(t, 9, 3),
        lambda: lib.percentile_filter(t, 101, 3), lambda: lib.median_filter(t, footprint=[1, 0]),
        lambda: lib.maximum_filter(t, footprint=np.zeros((2, 2))),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"`scipy\.ndimage\."):
            wrong()
    for wrong in (
        lambda: lib.median_filter(t, 3, origin=2), lambda: lib.rotate(t, 3.0, (1, 1)),
        lambda: lib.affine_transform(t, np.eye(4)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"`scipy\.ndimage\."):
            wrong()


def test_a_width_has_a_derivative():
    def f(s):
        return np.sum(tg.scipy.ndimage.gaussian_filter(tg.tensor(X), s, (0, 1)) ** 2)

    step = (f(0.6 + 1e-6) - f(0.6 - 1e-6)) / 2e-6
    np.testing.assert_allclose(tg.grad(f)(0.6), step, rtol=1e-7)
    slope = tg.jit(tg.grad(f))
    for width in (0.6, 0.58, 0.61):  # which reach as far
        np.testing.assert_allclose(slope(width), tg.grad(f)(width), rtol=1e-12)
    assert slope.cache_info().traces == 1


def test_under_vmap_widths_need_a_radius():
    lib, widths = tg.scipy.ndimage, np.array([0.5, 0.7])
    found = tg.vmap(lambda s: lib.gaussian_filter1d(X, s, radius=2))(widths)
    for k, s in enumerate(widths):
        np.testing.assert_allclose(found[k], scipy.ndimage.gaussian_filter1d(X, s, radius=2))
    with pytest.raises(RuntimeError, match=r"`scipy.ndimage.gaussian_filter1d`: .*`radius=`"):
        tg.vmap(lambda s: lib.gaussian_filter1d(X, s))(widths)


def test_single_precision_stays():
    t = tg.tensor(X, dtype=tg.float32, requires_grad=True)
    lib = tg.scipy.ndimage
    for found in (
        lib.gaussian_filter(t, 1.0), lib.convolve(t, W), lib.uniform_filter(t), lib.laplace(t),
        lib.map_coordinates(t, X[:2]), lib.shift(t, 0.5, order=1, cval=1.0), lib.zoom(t, 2),
    ):  # fmt: skip
        assert found.dtype == tg.float32


def test_of_arrays_they_are_scipys():
    found = tg.scipy.ndimage.gaussian_filter(X, 1.0)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, scipy.ndimage.gaussian_filter(X, 1.0))
    assert tg.scipy.ndimage.label is scipy.ndimage.label


def test_what_is_not_there_is_refused():
    t, lib = tg.tensor(X, requires_grad=True), tg.scipy.ndimage
    for call, error, words in [
        (lambda: lib.sobel(t, output=X), TypeError, "`scipy.ndimage.sobel` .* `output=`"),
        (lambda: lib.laplace(tg.tensor([1, 2])), TypeError, "takes real numbers, got .*int64"),
        (lambda: lib.laplace(t, mode="round"), ValueError, "one of .*'mirror'.* got 'round'"),
        (lambda: lib.laplace(t, mode=["wrap"]), ValueError, "`mode` has 1 entries for 2 axes"),
        (lambda: lib.correlate1d(t, W), ValueError, r"a vector, got the shape \(3, 2\)"),
        (lambda: lib.correlate(t, V), ValueError, r"each of 2 axes, got the shape \(7,\)"),
        (lambda: lib.convolve1d(t, V, origin=5), ValueError, "lies outside of a window of 7"),
        (lambda: lib.gaussian_filter1d(t, 1.0, order=-1), ValueError, "from 0, got -1 and 4"),
        (lambda: lib.shift(t, 1, order=6), TypeError, "orders 0 to 5, got 6"),
        (lambda: lib.shift(t, [1, 2, 3]), ValueError, "each of 2 axes, got 3"),
        (lambda: lib.zoom(t, 2, grid_mode=True), TypeError, "no `grid_mode`"),
        (lambda: lib.map_coordinates(t, X), ValueError, "a row for each of 2 axes"),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            call()
