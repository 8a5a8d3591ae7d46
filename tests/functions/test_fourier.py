"""Fourier transforms: values are NumPy's, gradients those of the matrix of the transform."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.base.compile_stages import NotCompiled
from tapegrad.dispatch import call_plans
from tapegrad.functions import fourier as functions
from tapegrad.kernels.large import fourier_transforms
from tapegrad.ops import fourier

RNG = np.random.default_rng(1)
X = RNG.normal(size=(4, 6))
Z = X + 1j * RNG.normal(size=(4, 6))
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
OF_REAL = {"rfft", "ihfft", "rfft2", "rfftn", "ihfftn"}


def given(name):
    return X if name in OF_REAL else Z


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 3, 5, 9])
@pytest.mark.parametrize("name", ONE)
def test_along_one_dimension(name, n, norm):
    x = given(name)
    for dim in (0, -1):
        expected = getattr(np.fft, name)(x, n, dim, norm)
        np.testing.assert_allclose(getattr(tg.fft, name)(tg.tensor(x), n, dim, norm)._a, expected)
        found = getattr(np.fft, name)(tg.tensor(x), n, axis=dim, norm=norm)
        np.testing.assert_allclose(found._a, expected)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("s", [None, (3, 8), (5, 5)])
@pytest.mark.parametrize("name", SEVERAL)
def test_along_several_dimensions(name, s, norm):
    x, axes = given(name), (0, 1)
    expected = getattr(np.fft, name)(x, s, axes, norm)
    np.testing.assert_allclose(getattr(tg.fft, name)(tg.tensor(x), s, axes, norm)._a, expected)
    np.testing.assert_allclose(getattr(np.fft, name)(tg.tensor(x), s, axes, norm)._a, expected)


@pytest.mark.parametrize("s", [None, (3, 8), (5, 5)])
def test_hermitian_along_several_dimensions(s):
    import scipy.fft

    for name, x in (("hfft2", Z), ("hfftn", Z), ("ihfft2", X), ("ihfftn", X)):
        expected = getattr(scipy.fft, name)(x, s, (0, 1), "ortho")
        found = getattr(tg.fft, name)(tg.tensor(x), s, (0, 1), "ortho")
        np.testing.assert_allclose(found._a, expected, atol=1e-14)


@pytest.mark.parametrize("name", [*ONE, *SEVERAL, "hfftn", "ihfftn"])
def test_gradients_are_differences(name):
    x = given(name)
    f = getattr(tg.fft, name)
    leaf = tg.tensor(x, requires_grad=True)
    y = f(leaf)
    weight = RNG.normal(size=y.shape)
    weight = tg.tensor(weight + 1j * weight[::-1] if y.is_complex() else weight)
    (found,) = tg.autograd.grad(y, leaf, weight)
    way = np.roll(x, 1, 1)
    slope = f(tg.tensor(way))._a  # it is linear
    expected = np.vdot(weight._a, slope).real
    np.testing.assert_allclose(np.vdot(found._a, way).real, expected)


def test_frequencies_and_shifts():
    for n in (4, 5):
        np.testing.assert_allclose(tg.fft.fftfreq(n, 0.5)._a, np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(tg.fft.rfftfreq(n, 0.5)._a, np.fft.rfftfreq(n, 0.5))
    for axes in (None, 0, (0, 1)):
        for name in ("fftshift", "ifftshift"):
            expected = getattr(np.fft, name)(X, axes)
            np.testing.assert_array_equal(getattr(tg.fft, name)(tg.tensor(X), axes)._a, expected)
            np.testing.assert_array_equal(getattr(np.fft, name)(tg.tensor(X), axes)._a, expected)


def test_types():
    assert tg.fft.fft(tg.tensor(X, dtype=tg.float32)).dtype == tg.complex64
    assert tg.fft.irfft(tg.tensor(Z, dtype=tg.complex64)).dtype == tg.float32
    assert tg.fft.fft(tg.arange(3)).dtype == tg.complex128
    assert tg.fft.rfft2(tg.tensor(X, dtype=tg.float32)).dtype == tg.complex64


def test_bad_input():
    x, z = tg.tensor(X), tg.tensor(Z)
    with pytest.raises(RuntimeError, match="takes a Tensor of real numbers"):
        tg.fft.rfft(z)
    with pytest.raises(RuntimeError, match="norm is 'forward'"):
        tg.fft.fft(x, norm="other")
    with pytest.raises(RuntimeError, match="at least 1"):
        tg.fft.fft(x, 0)
    with pytest.raises(RuntimeError, match="at least 1"):
        tg.fft.irfft(z[:, :1])
    with pytest.raises(RuntimeError, match="distinct"):
        tg.fft.fft2(x, dim=(1, -1))
    with pytest.raises(RuntimeError, match="as many sizes"):
        tg.fft.fftn(x, (3, 4), (0,))
    with pytest.raises(RuntimeError, match="3 sizes were given"):
        tg.fft.fftn(x, (3, 4, 5))
    with pytest.raises(IndexError):
        tg.fft.fft(x, dim=2)
    with pytest.raises(RuntimeError, match="not defined for"):
        tg.fft.fft(x.to(tg.float16))


def test_under_transforms():
    x = tg.tensor(X)
    both = tg.func.vmap(lambda v: tg.fft.rfft(v).abs())(x)
    np.testing.assert_allclose(both._a, np.abs(np.fft.rfft(X)))
    power = lambda v: (np.abs(np.fft.rfft(v)) ** 2).sum()
    matrix = np.fft.rfft(np.eye(6), axis=0)
    expected = 2 * (matrix.conj().T @ matrix).real
    np.testing.assert_allclose(tg.grad(power)(X[0]), expected @ X[0])
    np.testing.assert_allclose(tg.hessian(power)(X[0]), expected, atol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_without_the_loops_of_libraries(name, kind, monkeypatch):
    """The functions of NumPy and SciPy give the same, where their loops have other names."""
    x = tg.tensor((given(name) * kind(1)).astype("F" if kind is np.float32 else "D"))
    x = x.real if name in OF_REAL else x
    calls = [(x, norm) for norm in ("backward", "ortho", "forward")]
    by_loops = [getattr(tg.fft, name)(x, norm=norm)._a for x, norm in calls]
    scipy_fft, _ = fourier._scipy()
    monkeypatch.setattr(fourier, "loops", None)
    monkeypatch.setattr(fourier, "_scipy", lambda: (scipy_fft, None))
    for (x, norm), expected in zip(calls, by_loops, strict=True):
        found = getattr(tg.fft, name)(x, norm=norm)._a
        assert found.dtype == expected.dtype
        assert found.strides == expected.strides
        np.testing.assert_allclose(found, expected, rtol=0, atol=50 * np.finfo(kind).eps)


def test_dropped_results_leave_no_debt(monkeypatch):
    """A complex result owes 16 bytes for each element, and pays them back when it is dropped."""
    from tapegrad.tape.debts import DROP_FLOOR
    from tapegrad.tape.tape import Tape, current

    monkeypatch.setattr(current, "tape", Tape())  # without the records of other tests
    z = tg.tensor(Z[0, 0] * np.ones(4096), requires_grad=True)
    for _ in range(3 * DROP_FLOOR // z._a.nbytes):
        tg.fft.fft(z)
    assert current.tape.debt <= DROP_FLOOR


@pytest.mark.tapegrad_only("about when calls are compiled")
@pytest.mark.usefixtures("native", "fresh_tape")
def test_a_plan_is_made_when_its_loop_is_compiled(monkeypatch):
    """Transforms that recur while their loops are being compiled have a plan afterwards."""
    plans = {}
    monkeypatch.setattr(functions, "plans", plans)
    monkeypatch.setattr(functions, "add_plan", plans.__setitem__)
    x = tg.tensor(np.random.default_rng(0).standard_normal((7, 11)))

    def not_there(*_):
        raise NotCompiled("fourier")

    with monkeypatch.context() as while_compiling:
        while_compiling.setattr(fourier_transforms, "form_of", not_there)
        for _ in range(call_plans.MANY - 1):
            expected = tg.fft.fft(x, dim=0)
    assert not plans
    for _ in range(2):
        np.testing.assert_array_equal(tg.fft.fft(x, dim=0).numpy(), expected.numpy())
    assert len(plans) == 1
