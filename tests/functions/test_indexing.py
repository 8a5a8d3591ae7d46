"""Indices that NumPy takes: truth values, slices that go backwards, places named twice."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("PyTorch has no slices that go backwards")

A = np.arange(12.0).reshape(3, 4) - 5.0
W = np.cos(np.arange(200.0))
TRUTHS = {
    "True": True,
    "False": False,
    "np.True_": np.True_,
    "array": np.array(True),
    "None, True": (None, True),
    "True, None": (True, None),
    "0, True": (0, True),
    "True, 0": (True, 0),
    "..., True": (..., True),
    ":, True": (slice(None), True),
    "True, list": (True, [0, 1]),
    "True, False": (True, False),
    "mask, True": (A[:, 0] > -3, True),
}
BACKWARDS = {
    "rows": slice(None, None, -1),
    "columns": (slice(None), slice(None, None, -1)),
    "both, in steps": (slice(None, None, -2), slice(3, 0, -2)),
    "one": (slice(None, None, -1), 1),
    "last": (..., slice(None, None, -1)),
    "with an array": ([0, 2], slice(None, None, -1)),
    "nothing": slice(1, 2, -1),
}


@pytest.mark.parametrize("key", [*TRUTHS.values(), *BACKWARDS.values()],
                         ids=[*TRUTHS, *BACKWARDS])  # fmt: skip
def test_an_index_gives_what_numpy_gives(key):
    chosen = A[key]
    weights = W[: chosen.size].reshape(chosen.shape)
    expected = np.zeros_like(A)
    np.add.at(expected, key, 2 * A[key] * weights)
    f = lambda x: np.sum(x[key] ** 2 * weights)
    np.testing.assert_array_equal(tg.tensor(A)[key].numpy(), chosen)
    np.testing.assert_allclose(tg.grad(f)(A), expected)
    np.testing.assert_allclose(tg.jvp(f, (A,), (A,))[1], np.sum(expected * A))
    np.testing.assert_allclose(tg.vmap(tg.grad(f))(A[None]), expected[None])
    np.testing.assert_allclose(tg.hvp(f)(A, A), expected)


@pytest.mark.parametrize("key", [*TRUTHS.values(), *BACKWARDS.values()],
                         ids=[*TRUTHS, *BACKWARDS])  # fmt: skip
def test_an_assignment_writes_where_numpy_writes(key):
    changed = A * 2
    changed[key] = 3.0
    kept = np.where(changed == 3.0, 0.0, 2.0)

    def f(x):
        y = x * 2
        y[key] = 3.0
        return y

    y, back = tg.vjp(f, A)
    np.testing.assert_array_equal(y, changed)
    np.testing.assert_array_equal(back(np.ones_like(A))[0], kept)


def test_a_slice_that_goes_backwards_is_a_view():
    x = tg.tensor(A, requires_grad=True)
    y = x * 1
    y[::-1].mul_(tg.tensor([[1.0], [2.0], [3.0]]))
    (y * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * A * np.array([[9.0], [4.0], [1.0]]))


def test_a_truth_value_is_no_index_array():
    with pytest.raises(IndexError, match="must hold integers"):
        tg.index_put(tg.zeros(3), (tg.tensor(True),), tg.tensor(1.0))
    with pytest.raises(IndexError, match="too many indices"):
        tg.zeros(3)[True, 0, 0]


def test_a_list_is_one_array_of_an_index(tg):
    x = tg.zeros(3, 4)
    assert x[[0, 2]].shape == (2, 4)
    assert x[(slice(None), [0, 2])].shape == (3, 2)


@pytest.mark.tapegrad_only("PyTorch takes such a list for a tuple, and says that it will not")
def test_a_list_of_indices_is_refused(tg):
    for key in ([slice(None), [0, 2]], [[0, 1], [2]]):
        with pytest.raises(IndexError, match="tuple"):
            tg.zeros(3, 4)[key]


@pytest.mark.parametrize("shape", [(3, 2), (1, 2), (3, 1)])
@pytest.mark.parametrize("lowest", [0, -4])
def test_take_along_dim_is_numpys(shape, lowest):
    """Also at later calls, which go by a plan where no index is negative."""
    rng = np.random.default_rng(3)
    x = tg.tensor(A, requires_grad=True)
    for _ in range(12):
        index = rng.integers(lowest, 4, shape)
        found = tg.take_along_dim(x, tg.tensor(index), 1)
        full = np.broadcast_to(index, (3, shape[1]))
        np.testing.assert_array_equal(found.detach().numpy(), np.take_along_axis(A, full, 1))
        (g,) = tg.autograd.grad(found.sum(), x)
        expected = np.zeros((3, 4))
        np.add.at(expected, (np.arange(3)[:, None], full), 1.0)
        np.testing.assert_array_equal(g.numpy(), expected)


def test_take_along_dim_spreads_both_operands():
    x, index = tg.tensor(A[:1], requires_grad=True), tg.tensor([[0, 3], [1, -1]])
    found = tg.take_along_dim(x, index, 1)
    assert found.tolist() == [[-5.0, -2.0], [-4.0, -2.0]]
    assert tg.autograd.grad(found.sum(), x)[0].tolist() == [[1.0, 1.0, 0.0, 2.0]]
    with pytest.raises(RuntimeError, match=r"\(3, 4\) and \(2, 2\) do not broadcast except along"):
        tg.take_along_dim(tg.tensor(A), index, 1)


# Writes that name a place twice, the value v having three elements.
TWICE = {
    "vector": lambda y, v: y[0].__setitem__([1, 2, 1], v),
    "rows": lambda y, v: y.__setitem__([1, 2, 1], v[:, None] * np.ones(4)),
    "columns": lambda y, v: y.__setitem__((slice(None), [0, -4, 0]), v),
    "elements": lambda y, v: y.__setitem__(([0, 2, 0], [3, 1, 3]), v),
    "a number": lambda y, v: y.__setitem__([1, 1], v[1]),
    "known at run time": lambda y, v: y[1].__setitem__(np.argsort(v) // 2, v),
    "put": lambda y, v: np.put(y, [5, 0, -7], v),
    "put_along_axis": lambda y, v: np.put_along_axis(y, np.array([[0, 3, 0]] * 3), v[None], 1),
}


@pytest.mark.parametrize("name", TWICE)
def test_of_values_written_to_one_place_the_last_has_its_gradient(name):
    def f(v):
        y = np.zeros((3, 4)) + 0 * v[0]
        TWICE[name](y, v)
        return np.sum(W[:12].reshape(3, 4) * y)

    v = np.array([0.3, -0.2, 0.9])
    wanted = np.array([tg.jvp(f, (v,), (row,))[1] for row in np.eye(3)])
    np.testing.assert_allclose(
        wanted, [(f(v + 1e-6 * e) - f(v - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    )
    x = tg.tensor(v, requires_grad=True)
    f(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), wanted)
    slope = tg.grad(f)
    for found in (slope(v), tg.jit(slope)(v), tg.vmap(slope)(np.stack([v, v]))[1],
                  tg.autograd.grad(f(x), x, create_graph=True)[0].detach().numpy()):  # fmt: skip
        np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize(
    ("key", "shape"),
    [([0, 1], (1, 4)), (([0, 2], [1, 1]), (1, 2)), ([2], (1, 1, 4)), (A[:, 0] > -3, (1, 2, 4)),
     ((slice(None), [1]), (1, 3, 1)), ((0, [1, 2]), (1, 1, 2)), ((None, [0, 1]), (1, 1, 2, 4))],
)  # fmt: skip
def test_a_value_may_have_dimensions_of_one_element_in_front(key, shape):
    def f(v):
        y = np.zeros((3, 4)) + 0 * np.sum(v)
        y[key] = v
        return np.sum(W[:12].reshape(3, 4) * y**3)

    v = W[20 : 20 + int(np.prod(shape))].reshape(shape)
    slope = tg.grad(f)
    wanted = slope(v.reshape(shape[1:])).reshape(shape)
    x = tg.tensor(v, requires_grad=True)
    (recorded,) = tg.autograd.grad(f(x), x, create_graph=True)
    (twice,) = tg.autograd.grad((recorded**2).sum(), x)
    for found in (
        slope(v),
        tg.jit(slope)(v),
        tg.vmap(slope)(np.stack([v, v]))[1],
        recorded.detach(),
    ):
        np.testing.assert_allclose(found, wanted)
    np.testing.assert_allclose(tg.grad(lambda v: np.sum(slope(v) ** 2))(v), twice)


def test_writing_to_no_place_hands_on_zeros():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = tg.zeros(3)
    y[np.empty(0, int)] = x[:0]
    (y.sum() + x.sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 1.0])


SEVERAL = {
    "two": ([0, 2, 2, 1], [1, 3, 3, 0]),
    "of the first dimensions": ([0, 2], [3, 3]),
    "broadcast": ([[0], [2]], [1, 1, 3]),
    "a number first": (1, [3, 0, 3]),
    "a number last": ([2, 0, 2], 2),
    "three": ([0, 1], [1, 2], [4, 4]),
    "from the end": ([0, -1], [-4, 3]),
    "none": (np.zeros(0, int), np.zeros(0, int)),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("case", SEVERAL)
def test_several_index_arrays(case, dtype, rng):
    parts = [k if isinstance(k, int) else np.array(k) for k in SEVERAL[case]]
    values = rng.standard_normal((3, 4, 5)).astype(dtype)
    for base in (values, np.asfortranarray(values)):
        x = tg.from_numpy(base).requires_grad_()
        key = tuple(k if isinstance(k, int) else tg.tensor(k) for k in parts)
        for _ in range(25):  # the calls by a plan, too
            y = x[key]
            x.grad = None
            y.backward(tg.ones_like(y))
        expected = values[tuple(parts)]
        counts = np.zeros(values.shape, dtype)
        np.add.at(counts, tuple(parts), 1)
        assert y.tolist() == expected.tolist()
        assert tuple(y.shape) == expected.shape
        assert x.grad.tolist() == counts.tolist()


@pytest.mark.parametrize("dims", [2, 3])
def test_a_mask_of_several_dimensions(dims, rng):
    values = rng.standard_normal((3, 4, 5))
    mask = rng.random(values.shape[:dims]) > 0.4
    x = tg.tensor(values, requires_grad=True)
    for _ in range(25):
        y = x[tg.tensor(mask)]
        x.grad = None
        (y * y).sum().backward()
    assert y.tolist() == values[mask].tolist()
    chosen = mask.reshape(mask.shape + (1,) * (3 - dims))
    assert x.grad.tolist() == np.where(chosen, 2 * values, 0.0).tolist()


@pytest.mark.parametrize("key", [([0, 3], [0, 0]), ([0, 0], [0, 4]), ([0, -4], [0, 0])])
def test_several_index_arrays_beyond_the_end(key):
    x = tg.ones(3, 4, requires_grad=True)
    with pytest.raises(IndexError, match=r"out of (bounds|range)"):
        x[tuple(map(tg.tensor, key))]
    with pytest.raises(IndexError, match="broadcast"):
        x[tg.tensor([0, 1]), tg.tensor([0, 1, 2])]


def test_the_second_derivative_of_what_several_index_arrays_choose(rng):
    x = tg.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    rows, cols = tg.tensor([0, 2, 2]), tg.tensor([1, 3, 3])
    assert tg.autograd.gradgradcheck(lambda x: x[rows, cols] ** 3, (x,))


def test_masks_of_tensors_without_elements(tg):
    x = tg.ones(2, 10, 0, requires_grad=True)
    chosen = x[tg.ones(2, 10, dtype=tg.bool)]
    assert chosen.shape == (20, 0)
    chosen.sum().backward()
    assert x.grad.shape == (2, 10, 0)
