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


# What selects one place: all say the same, and all make views.
SELECTING = {
    "Tensor": lambda tg, i: tg.tensor(i),
    "Tensor of int32": lambda tg, i: tg.tensor(i, dtype=tg.int32),
    "number of NumPy": lambda tg, i: np.int64(i),
    "array of NumPy": lambda tg, i: np.array(i),
}
AROUND = {
    "alone": lambda i: i,
    "in a tuple": lambda i: (i,),
    "before a slice": lambda i: (i, slice(1, 3)),
    "after ...": lambda i: (..., i),
    "after None": lambda i: (None, i),
    "beside a number": lambda i: (0, i),
    "twice": lambda i: (i, slice(None), i),
}


@pytest.mark.parametrize("kind", SELECTING)
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("i", [1, -1])
def test_one_place_is_a_view_whatever_says_it(tg, kind, around, i):
    key, plain = AROUND[around](SELECTING[kind](tg, i)), AROUND[around](i)
    values = np.arange(24.0).reshape(2, 3, 4)
    for write in (lambda y: y[key].mul_(5), lambda y: y.__setitem__(key, y[key] * 5)):
        x = tg.tensor(values, requires_grad=True)
        y = x * 2
        write(y)
        (y * y).sum().backward()
        factor = np.full(values.shape, 2.0)
        factor[plain] = 10.0
        np.testing.assert_array_equal(y.detach().numpy(), values * factor)
        np.testing.assert_array_equal(x.grad.numpy(), 2 * values * factor**2)
    base = tg.tensor(values)
    assert base[key]._base is base
    assert base[key].shape == values[plain].shape


def test_a_place_beside_an_index_array_makes_a_copy(tg):
    x = tg.zeros(2, 3)
    x[tg.tensor(1), [0, 2]].add_(1)
    x[tg.tensor(True)].add_(1)
    assert x.sum() == 0


def test_a_place_out_of_range_is_an_index_error(tg):
    for key in (tg.tensor(3), np.array(-4), (tg.tensor(0), tg.tensor(3))):
        with pytest.raises(IndexError):
            tg.zeros(3)[key]
        with pytest.raises(IndexError):
            tg.zeros(3)[key] = 1.0


@pytest.mark.tapegrad_only("transforms of its own")
def test_one_place_is_a_view_under_transforms(tg):
    place = tg.tensor(1)

    def f(x):
        y = x * 1.0
        y[None][:, place].mul_(5)  # `y[place]` would be a number: see test_numbers.py
        return y

    x = np.arange(3.0)
    jitted = tg.jit(f)
    np.testing.assert_array_equal(jitted(x), [0.0, 5.0, 2.0])
    for transformed in (
        lambda x: tg.jvp(f, (x,), (x,))[1],
        lambda x: tg.vmap(f)(x[None])[0],
        lambda x: tg.vmap(lambda x: tg.jvp(f, (x,), (x,))[1])(x[None])[0],
    ):
        np.testing.assert_array_equal(transformed(x), [0.0, 5.0, 2.0])
    place.fill_(2)
    np.testing.assert_array_equal(jitted(x), [0.0, 1.0, 10.0])


@pytest.mark.tapegrad_only("NumPy's rule")
def test_under_a_transform_an_array_of_numpys_without_dimensions_makes_a_copy(tg):
    def f(x):
        y = x * 1.0
        v = y[np.array(1)]
        v *= 5
        w = y[np.argmax(y[:, 0])]
        w *= 3
        return y

    x = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(tg.jvp(f, (x,), (x,))[0], f(x))


BYTES = {
    "tensor": lambda tg, values: tg.tensor(values, dtype=tg.uint8),
    "array": lambda tg, values: np.array(values, np.uint8),
}


@pytest.mark.parametrize("made", BYTES.values(), ids=BYTES)
def test_an_index_of_bytes_is_a_mask(tg, made):
    x, y = tg.arange(3.0), tg.arange(6.0).reshape(2, 3)
    mask = made(tg, [1, 0, 2])
    for read, expected in (
        (lambda: x[mask], [0.0, 2.0]),
        (lambda: y[0, mask], [0.0, 2.0]),
        (lambda: y[:, mask], [[0.0, 2.0], [3.0, 5.0]]),
        (lambda: y[made(tg, [0, 1]), tg.tensor([2])], [5.0]),
    ):
        with pytest.warns(UserWarning, match="uint8"):
            assert read().tolist() == expected
    with pytest.warns(UserWarning, match="uint8"), pytest.raises(IndexError, match="mask"):
        x[made(tg, [1, 0])]


def test_a_byte_is_a_mask_of_no_dimensions(tg):
    x = tg.arange(3.0)
    assert x[tg.tensor(1, dtype=tg.uint8)].tolist() == [[0.0, 1.0, 2.0]]
    assert x[tg.tensor(0, dtype=tg.uint8)].shape == (0, 3)
    assert x[np.uint8(1)].item() == 1.0


def test_writing_where_bytes_hold(tg):
    x = tg.zeros(3)
    mask = tg.tensor([1, 0, 1], dtype=tg.uint8)
    with pytest.warns(UserWarning, match="uint8"):
        x[mask] = tg.tensor([5.0, 6.0])
    assert x.tolist() == [5.0, 0.0, 6.0]
    with pytest.warns(UserWarning, match="uint8"):
        x.index_put_((mask,), tg.tensor([1.0, 1.0]), accumulate=True)
    assert x.tolist() == [6.0, 0.0, 7.0]


@pytest.mark.tapegrad_only("transforms of functions of arrays are tapegrad's")
def test_for_a_function_of_arrays_bytes_are_positions(tg):
    index = np.array([1, 0, 1], np.uint8)
    expected = np.array([1.0, 2.0, 0.0])
    assert np.array_equal(tg.grad(lambda x: x[index].sum())(np.ones(3)), expected)
    assert np.array_equal(tg.jit(lambda x: x[index])(np.arange(3.0)), [1.0, 0.0, 1.0])
    with pytest.warns(UserWarning, match="uint8"):
        g = tg.func.grad(lambda x: x[tg.tensor(index)].sum())(tg.ones(3))
    assert g.tolist() == [1.0, 0.0, 1.0]


def written_at_once(y, i, x):
    y[i] += 1.0
    y[i] *= x[0]
    y[:, i] -= 2.0
    y[i, 0] += 3.0
    y[i, i] = x[0, 0]


def written_in_a_copy_of_its_own(y, i, x):
    row = y[i].copy()
    row[0] = 5.0
    row += 1.0
    y[1] += row * x[0]


def read_and_computed_with(y, i, x):
    row = y[i]
    twice = row * 2.0
    twice[0] = 1.0
    y[0] = twice * row


@pytest.mark.tapegrad_only("PyTorch's `vmap` knows no NumPy")
@pytest.mark.parametrize(
    "change", [written_at_once, written_in_a_copy_of_its_own, read_and_computed_with]
)
def test_parts_at_an_index_that_is_known_later(tg, change):
    def f(x):
        y = x.copy()
        change(y, np.argmax(y[:, 0]), x)
        return np.sum(y * y)

    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    wanted = tg.grad(f)(x)
    np.testing.assert_allclose(tg.jit(tg.grad(f))(x), wanted)
    np.testing.assert_allclose(tg.vmap(tg.grad(f))(x[None])[0], wanted)


@pytest.mark.tapegrad_only("PyTorch's `vmap` knows no NumPy")
@pytest.mark.parametrize(
    "change",
    [
        lambda y, i: y[i].__setitem__(1, 0.0),
        lambda y, i: y[:, i].fill(0.0),
        lambda y, i: y[i].sort(),
        lambda y, i: y[i].add_(1.0),
    ],
)
@pytest.mark.parametrize(
    "run", [lambda tg, f, x: tg.jit(f)(x), lambda tg, f, x: tg.vmap(f)(x[None])]
)
def test_changes_of_such_parts_would_be_lost(tg, change, run):
    def f(x):
        y = x.copy()
        change(y, np.argmax(y[:, 0]))
        return np.sum(y)

    with pytest.raises(RuntimeError, match=r"a part `x\[i\]` at an index that is known later"):
        run(tg, f, np.array([[1.0, 2.0], [3.0, 4.0]]))
