"""Elements that occur keep their gradient, where PyTorch has none."""

import numpy as np
import pytest

import tapegrad


def test_the_gradient_goes_to_the_first_of_equal_elements():
    x = tapegrad.tensor([3.0, 1.0, 3.0, 2.0], requires_grad=True)
    values = tapegrad.unique(x)
    (values * tapegrad.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert values.tolist() == [1.0, 2.0, 3.0]
    assert x.grad.tolist() == [100.0, 1.0, 0.0, 10.0]


def test_so_with_slices_and_with_what_stands_side_by_side():
    x = tapegrad.tensor([[1.0, 2.0], [1.0, 2.0], [0.0, 5.0]], requires_grad=True)
    tapegrad.unique(x, dim=0)[1].sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    y = tapegrad.tensor([2.0, 2.0, 3.0], requires_grad=True)
    y.unique_consecutive(return_counts=True)[0].sum().backward()
    assert y.grad.tolist() == [1.0, 0.0, 1.0]


def test_in_forward_mode_too():
    x, way = np.array([3.0, 1.0, 3.0, 2.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    for f in (tapegrad.unique, lambda t: tapegrad.unique(t, return_inverse=True)[0]):
        assert tapegrad.jvp(f, (x,), (way,))[1].tolist() == [10.0, 1000.0, 1.0]
    assert tapegrad.jvp(tapegrad.unique_consecutive, (x,), (way,))[1].tolist() == way.tolist()


def test_what_depends_on_the_values_is_no_function_of_examples():
    for name in ("unique", "unique_consecutive"):
        message = f"`{name}` under `vmap` finds another number of elements in each example"
        with pytest.raises(RuntimeError, match=message):
            tapegrad.vmap(getattr(tapegrad, name))(np.ones((2, 3)))


def test_isin_under_transforms():
    def f(x):
        return tapegrad.isin(x, tapegrad.tensor([1.0, 2.0]), invert=True)

    x = np.array([[1.0, 3.0], [4.0, 2.0]])
    expected = [[False, True], [True, False]]
    assert tapegrad.vmap(f)(x).tolist() == expected
    assert tapegrad.jit(f)(x).tolist() == expected
