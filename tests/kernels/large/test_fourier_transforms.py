"""The library's Fourier transforms compute what SciPy's do."""

import numpy as np
import pytest
import scipy.fft

import tapegrad as tg
from tapegrad.kernels.large import fourier_transforms as transforms
from tapegrad.ops import fourier
from tapegrad.parallel import large_elementwise

CLOSE = {"d": 2e-15, "f": 1e-6}  # of the greatest element
NORMS = {"": "backward", "ortho": "ortho", "n": "forward"}
LINES = [
    ((5, 7, 9), (0, 1, 2)),
    ((9, 7, 3), (1, 2)),
    ((4, 2), (1,)),
    ((100, 60), (0, 1)),
    ((3, 13, 11, 10), (0, 2)),
    ((6, 1000), (1,)),
    ((37, 32), (1,)),
    ((32, 37), (0,)),
    ((70, 26, 33), (1,)),
    ((3, 3), (0, 1)),
    ((2, 1, 3), (0, 2)),
]
LONG = [((512,), (0,)), ((1000,), (0,)), ((59049,), (0,)), ((5, 8192), (1,)), ((3, 4100), (0, 1))]


def given(shape, dtype):
    """Complex numbers of some precision."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return x.astype(np.result_type(dtype, np.complex64))


def check(found, expected, dtype):
    """Compare relative to the greatest element."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= CLOSE[dtype] * np.abs(expected).max()


@pytest.mark.parametrize("dtype", "df")
@pytest.mark.parametrize("scale", NORMS)
@pytest.mark.parametrize(("shape", "dims"), [*LINES, *LONG])
def test_complex_numbers(shape, dims, scale, dtype):
    x = given(shape, dtype)
    found = transforms.c2c(x, dims=dims, scale=scale, forward=True)
    if any(n == 37 or shape == (3, 4100) for n in (shape[d] for d in dims)):
        assert found is None
        return
    check(found, scipy.fft.fftn(x, axes=dims, norm=NORMS[scale]), dtype)
    back = {"": "forward", "ortho": "ortho", "n": "backward"}[scale]
    found = transforms.c2c(x, dims=dims, scale=scale, forward=False)
    check(found, scipy.fft.ifftn(x, axes=dims, norm=back), dtype)


@pytest.mark.parametrize("dtype", "df")
@pytest.mark.parametrize("forward", [True, False])
def test_complex_transforms_of_real_numbers(forward, dtype):
    x = given((2, 3, 4), dtype).real.copy()
    found = transforms.c2c(x, dims=(2, 1), scale="", forward=forward)
    expected = (scipy.fft.fftn if forward else scipy.fft.ifftn)(
        x, axes=(2, 1), norm="backward" if forward else "forward"
    )
    check(found, expected, dtype)


@pytest.mark.parametrize("dtype", "df")
@pytest.mark.parametrize(("shape", "dims"), [*LINES, *LONG[:-1]])
def test_real_numbers(shape, dims, dtype):
    x = given(shape, dtype).real.copy()
    found = transforms.r2c(x, dims=dims, scale="ortho", half=False)
    check(found, scipy.fft.fftn(x, axes=dims, norm="ortho"), dtype)
    found = transforms.r2c(x, dims=dims, scale="n", half=True)
    if (shape, dims) in LONG:  # of a single line they are left to others
        assert found is None
    else:
        check(found, scipy.fft.rfftn(x, axes=dims, norm="forward"), dtype)


@pytest.mark.parametrize("dtype", "df")
@pytest.mark.parametrize(("shape", "dims"), LINES)
def test_half_the_frequencies(shape, dims, dtype):
    for size in (2 * shape[dims[-1]] - 2, 2 * shape[dims[-1]] - 1):
        x = given(shape, dtype)
        sizes = [shape[d] for d in dims[:-1]] + [size]
        found = transforms.c2r(x, dims=dims, scale="n", size=size)
        if found is not None:
            check(found, scipy.fft.irfftn(x, sizes, axes=dims), dtype)
        else:
            assert max(size, *sizes) > 13


def test_what_is_left_to_others():
    x = given((4, 2, 17), "d")
    for a, dims in ((x, (2,)), (x[0], (1,)), (x[:, :0], (0,)), (x[:3, 0, 0], (0,)), (x, ())):
        assert transforms.c2c(a, dims=dims, scale="", forward=True) is None
    assert transforms.c2c(x.astype(">c16"), dims=(0,), scale="", forward=True) is None
    assert transforms.r2c(x.real.astype("e"), dims=(0,), scale="", half=True) is None


def test_strided_operands():
    x = given((33, 40), "d").T[::2]
    expected = scipy.fft.fft2(x)
    check(transforms.c2c(x, dims=(0, 1), scale="", forward=True), expected, "d")


def test_threads(monkeypatch):
    x = given((60, 64, 45), "d")
    one = transforms.c2c(x, dims=(0, 1, 2), scale="", forward=True)
    long = transforms.c2c(x.ravel(), dims=(0,), scale="", forward=True)
    threads = tg.get_num_threads()
    monkeypatch.setattr(large_elementwise, "SPLIT", 1 << 8)
    tg.set_num_threads(3)
    try:
        np.testing.assert_array_equal(
            transforms.c2c(x, dims=(0, 1, 2), scale="", forward=True), one
        )
        np.testing.assert_array_equal(
            transforms.c2c(x.ravel(), dims=(0,), scale="", forward=True), long
        )
    finally:
        tg.set_num_threads(threads)


def test_rows_name_them():
    assert fourier.fft_c2c.forward.loop == "fourier_transforms.c2c"
    x = tg.tensor(given((32, 48), "d"))
    check(tg.fft.fft2(x)._a, scipy.fft.fft2(x._a), "d")
