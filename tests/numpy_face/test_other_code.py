"""Code that was not written for Tensors: dtypes handed to NumPy, masked and sparse arrays."""

import numpy as np
import pytest
import scipy.sparse

import tapegrad as tg
from tapegrad.base.dtypes import NAMES

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")


@pytest.mark.parametrize("name", NAMES)
def test_numpy_takes_our_types(name):
    kind = NAMES[name]
    numpy = kind.numpy
    assert np.dtype(kind) == np.zeros(2, kind).dtype == np.ones(1).astype(kind).dtype == numpy
    assert (kind.kind, kind.char) == (numpy.kind, numpy.char)
    assert np.issubdtype(kind, numpy.type)
    assert np.result_type(kind) == numpy
    if kind.is_floating_point:
        assert np.finfo(kind).eps == np.finfo(numpy).eps


def test_a_function_written_for_arrays():
    def smoothed(x, steps):
        work = np.empty((steps, *x.shape), dtype=x.dtype)
        for k in range(steps):
            work[k] = k
        x = np.pad(x, 1, mode="edge")
        x = (x[:-2] + x[1:-1] + x[2:]) / 3
        return np.sum(np.where(x > 0.5, x, work.mean() * x) ** 2)

    values = np.array([0.1, 0.9, 0.4, 0.8])
    t = tg.tensor(values, requires_grad=True)
    assert smoothed(t, 3).item() == pytest.approx(smoothed(values, 3), rel=1e-15)
    assert tg.autograd.gradcheck(lambda t: smoothed(t, 3), (t,))
    assert tg.autograd.gradgradcheck(lambda t: smoothed(t, 3), (t,))


def test_arrays_that_are_not_numpys_own_refuse_history():
    t = tg.tensor([0.3, 0.6, 0.9], requires_grad=True)
    masked, sparse = np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]), scipy.sparse.eye(3)
    for product in (lambda t: masked * t, lambda t: sparse.multiply(t)):
        with pytest.raises(RuntimeError, match="detach"):
            product(t)
        assert not isinstance(product(t.detach()), tg.Tensor)
    assert (masked * t.detach()).mask.tolist() == [False, True, False]
    assert (sparse @ t.detach()).tolist() == [0.3, 0.6, 0.9]


def test_no_grad_and_second_order():
    x = tg.tensor([0.3, 0.6, 0.9], requires_grad=True)
    with tg.no_grad():
        assert not np.sin(x).requires_grad
        assert not np.sum(x).requires_grad

    def f(x):
        return np.sum(np.cbrt(x) * np.interp(x, [0, 1.0], [0, 2.0]) ** 2) + np.linalg.norm(
            np.convolve(x, x)
        )

    assert tg.autograd.gradgradcheck(f, (x,))


def test_cbrt():
    x = tg.tensor([-8.0, 0.0, 27.0], requires_grad=True)
    y = np.cbrt(x)
    assert y.tolist() == np.cbrt([-8.0, 0.0, 27.0]).tolist()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 / 12, np.inf, 1 / 27], rtol=1e-15)


def test_what_plotting_does():
    """Matplotlib's `plot`, `bar` and `fill_between` do this with what they are given."""
    x = tg.linspace(0, 1, 3)
    assert np.asarray(x**2, float).tolist() == [0.0, 0.25, 1.0]
    assert np.column_stack([x, x**2]).tolist() == [[0.0, 0.0], [0.5, 0.25], [1.0, 1.0]]
    *numbers, hatch = np.broadcast_arrays(np.atleast_1d(x), 0.8, np.array(None, object))
    assert [part.tolist() for part in numbers] == [[0.0, 0.5, 1.0], [0.8, 0.8, 0.8]]
    assert hatch.tolist() == [None, None, None]
    assert np.ma.masked_invalid(x).tolist() == [0.0, 0.5, 1.0]


def test_a_tensor_that_requires_grad_says_how_to_be_plotted():
    x = tg.linspace(0, 1, 3, requires_grad=True)
    for plotted in (x, x**2):
        with pytest.raises(RuntimeError, match=r"`t\.detach\(\)"):
            np.asarray(plotted, float)
    assert np.asarray((x**2).detach(), float).tolist() == [0.0, 0.25, 1.0]
