"""Compiled Fourier transforms are NumPy's, of every size, along every dimension."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.fourier_forms import roots_of_unity

pytestmark = pytest.mark.tapegrad_only("how programs are compiled")

RNG = np.random.default_rng(7)
TOLERANCE = {"complex128": 1e-14, "complex64": 2e-6}


def numbers(shape, dtype=complex):
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


def agree(f, *args, dtype="complex128"):
    compiled = tg.jit(f)
    found, wanted = np.asarray(compiled(*args)), np.asarray(f(*args))
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    scale = max(np.abs(wanted).max(initial=0.0), 1e-30)
    np.testing.assert_allclose(found / scale, wanted / scale, atol=TOLERANCE[dtype])
    assert not compiled.lower(*args).callbacks


# One pass, several, all radices, vectors with and without a rest, and sizes with a large factor.
SIZES = [1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 16, 20, 26, 49, 64, 90, 128, 210, 17, 34, 127, 1009]


@pytest.mark.parametrize("n", SIZES)
def test_sizes(n):
    z = numbers(n)
    agree(lambda z: np.fft.fft(z * 1j), z)
    agree(lambda z: np.fft.ifft(z * 1j), z)
    agree(lambda x: np.fft.rfft(2 * x), z.real.copy())
    agree(lambda z: np.fft.irfft(z[: n // 2 + 1] * 1j, n), z)


# Columns that fit a vector or not, in one block, in several, and in these with a rest.
@pytest.mark.parametrize("shape", [(8, 3), (12, 64), (6, 65), (5, 128), (3, 16, 5), (4, 2, 9, 3)])
def test_dimensions(shape):
    z = numbers(shape)
    for axis in range(len(shape)):
        agree(lambda z, axis=axis: np.fft.fft(z * 1j, axis=axis), z)
        agree(lambda x, axis=axis: np.fft.rfft(2 * x, axis=axis), z.real.copy())
        agree(lambda z, axis=axis: np.fft.irfft(z * 1j, axis=axis), z)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_several_dimensions(norm):
    z = numbers((6, 10, 7))
    for name in ("fft2", "ifft2", "fftn", "ifftn"):
        agree(lambda z, name=name: getattr(np.fft, name)(z * 1j, norm=norm), z)
    agree(lambda x: np.fft.rfftn(2 * x, norm=norm), z.real.copy())
    agree(lambda z: np.fft.irfftn(z * 1j, norm=norm), z)
    agree(lambda z: np.fft.fft(z * 1j, 16, axis=1, norm=norm), z)


@pytest.mark.parametrize("n", [8, 30, 34, 256])
def test_single_precision(n):
    z = numbers((3, n), "complex64")
    for dim in range(2):
        agree(lambda z, dim=dim: tg.fft.fft(tg.as_tensor(z) * 1j, dim=dim), z, dtype="complex64")


@pytest.mark.parametrize("n", [8, 15, 34])
def test_gradients(n):
    weights = numbers(n)

    def through(z):
        spectrum = np.fft.fft(z) * weights
        return np.sum(np.abs(np.fft.ifft(spectrum * np.abs(spectrum))) ** 2)

    def real(x):
        return np.sum(np.fft.irfft(np.fft.rfft(x) * weights[: n // 2 + 1], n) ** 3)

    z = numbers(n)
    for f, x in ((through, z), (real, z.real.copy())):
        slope = tg.grad(f)
        np.testing.assert_allclose(tg.jit(slope)(x), slope(x), rtol=1e-10)
        tangent = tg.jit(lambda x, f=f: tg.jvp(f, (x,), (x,))[1])(x)
        np.testing.assert_allclose(tangent, tg.jvp(f, (x,), (x,))[1], rtol=1e-10)
    curvature = tg.hessian(real)
    np.testing.assert_allclose(tg.jit(curvature)(z.real), curvature(z.real), atol=1e-9)
    each = tg.vmap(lambda z: np.fft.fft(z * 1j))
    np.testing.assert_allclose(tg.jit(each)(numbers((4, n))).shape, (4, n))


def test_what_is_not_finite_stays_so():
    z = numbers(8)
    z[3] = np.inf
    with np.errstate(all="ignore"):
        assert not np.isfinite(tg.jit(lambda z: np.fft.fft(z * 1.0))(z)).any()


def test_roots_of_unity_are_exact_to_the_last_bit():
    found = roots_of_unity(np.arange(1536), 1536)
    assert [found[k] for k in (0, 384, 768, 1152, 512)] == [1, 1j, -1, -1j, found[1024].conj()]
    assert found[512].real == found[1024].real == -0.5
    np.testing.assert_array_equal(found[192].real, found[192].imag)
    exact = np.exp(2j * np.pi * np.arange(1536) / 1536)
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-15)


@pytest.mark.parametrize("n", [3, 6, 8, 12, 60, 64])
def test_the_other_frequencies_of_a_constant_are_zero(n):
    found = tg.jit(lambda z: np.fft.fft(z * 1.0))(np.full(n, 2.0 + 1j))
    assert not found[1:].any() if n < 60 else np.abs(found[1:]).max() < 1e-14
