"""Indices of numbers and index arrays: PyTorch's rule for Tensors, NumPy's inside of transforms."""

import numpy as np
import pytest

SHAPE = (2, 3, 4, 5)
A = np.arange(120.0).reshape(SHAPE)
ROWS = [1, 2]
# The index, the shape of the result, and the index of NumPy for what is left of the number.
MIXED = {
    "number, slice, list": ((0, slice(None), ROWS), (3, 2, 5), (slice(None), ROWS)),
    "slice, number, slice, list": (
        (slice(None), 1, slice(None), ROWS), (2, 4, 2), (slice(None), slice(None), ROWS)
    ),
    "number, ..., list": ((1, ..., ROWS), (3, 4, 2), (..., ROWS)),
    "number, None, list": ((1, None, ROWS), (1, 2, 4, 5), (None, ROWS)),
    "list, slice, number": ((slice(None), ROWS, slice(None), 1), (2, 2, 4), (slice(None), ROWS)),
    "number, slice, mask": (
        (0, slice(None), np.array([True, False, True, False])), (3, 2, 5),
        (slice(None), [0, 2]),
    ),
}  # fmt: skip
PLACES = {
    "number, slice, list": (0,),
    "slice, number, slice, list": (slice(None), 1),
    "number, ..., list": (1,),
    "number, None, list": (1,),
    "list, slice, number": (..., 1),
    "number, slice, mask": (0,),
}


@pytest.fixture(params=list(MIXED), ids=list(MIXED))
def mixed(request):
    key, shape, rest = MIXED[request.param]
    return key, shape, A[PLACES[request.param]], rest


def test_a_number_selects_before_an_array_chooses(tg, leaf, mixed):
    key, shape, left, rest = mixed
    x = leaf(A)
    y = x[key]
    assert tuple(y.shape) == shape
    np.testing.assert_array_equal(y.detach().numpy(), left[rest])
    (y * y).sum().backward()
    expected = np.zeros(SHAPE)
    np.add.at(expected.reshape(-1), left[rest].ravel().astype(int), 2 * left[rest].ravel())
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_an_assignment_follows_the_same_rule(tg, leaf, mixed):
    key, shape, left, rest = mixed
    value = leaf(np.random.default_rng(0).random(shape))
    x = leaf(A)
    y = x * 1
    y[key] = value
    np.testing.assert_array_equal(y[key].detach().numpy(), value.detach().numpy())
    y.sum().backward()
    np.testing.assert_array_equal(value.grad.numpy(), np.ones(shape))
    expected = np.ones(A.size)
    expected[left[rest].ravel().astype(int)] = 0
    np.testing.assert_array_equal(x.grad.numpy().ravel(), expected)


def test_a_tensor_without_dimensions_is_a_number(tg):
    x = tg.tensor(A)
    assert tuple(x[tg.tensor(0), :, tg.tensor(ROWS)].shape) == (3, 2, 5)
    assert tuple(x[:, tg.tensor(1), :, tg.tensor([[0], [1]])].shape) == (2, 4, 2, 1)


def test_arrays_apart_come_first_as_in_numpy(tg):
    x = tg.tensor(A)
    assert tuple(x[ROWS[:1], :, ROWS].shape) == (2, 3, 5)
    assert tuple(x[:, ROWS, 0, [0, 1]].shape) == (2, 2)
    assert tuple(x[0, ROWS, :, [0, 1]].shape) == (2, 4)


def test_torchs_transforms_follow_torch(tg):
    f = lambda x: x[0, :, ROWS]
    x = tg.tensor(A)
    assert tuple(tg.func.jacrev(f)(x).shape) == (3, 2, 5, *SHAPE)
    assert tuple(tg.func.vmap(f)(x[None]).shape) == (1, 3, 2, 5)


@pytest.mark.tapegrad_only("functions of arrays")
def test_transforms_of_functions_of_arrays_follow_numpy(tg, mixed):
    f = lambda x: x[mixed[0]]
    assert tg.vjp(f, A)[0].shape == tg.jit(f)(A).shape == f(A).shape
    assert tg.vmap(f)(A[None]).shape == (1, *f(A).shape)
    np.testing.assert_array_equal(tg.jit(f)(A), f(A))


@pytest.mark.tapegrad_only("PyTorch cannot tell such a number")
def test_a_number_that_differs_from_example_to_example_is_refused(tg):
    f = lambda x, k: x[k, :, ROWS]
    with pytest.raises(IndexError, match="index in two steps"):
        tg.func.vmap(f, in_dims=(None, 0))(tg.tensor(A), tg.tensor([0, 1]))
