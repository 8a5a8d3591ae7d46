"""Indices, masks, orders and truths under a map: as in a loop, and so are their derivatives."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.transforms.call_arguments import transforming

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

X = np.random.default_rng(0).normal(size=(3, 4))
I = np.array([[0, 1], [2, 3], [1, 3]])
CHOSEN = tg.tensor([True, False, True, True])


def cube(x):
    return np.einsum("i,j,k->ijk", x, x, x)


def changed(y, key, value):
    y[key] = value
    return y


def doubled_through_a_view(x):
    y = x.clone()
    y.unsqueeze(0).expand(1, 4)[0].mul_(2.0)
    y[:2].unfold(0, 2, 1).mul_(3.0)
    return y


# Functions of an example and of indices of its own.
PROGRAMS = {
    "take": lambda x, i: np.take(x, i),
    "take wrap": lambda x, i: np.take(x, i + 3, mode="wrap"),
    "take_along_axis": lambda x, i: np.take_along_axis(x, i - 4, 0),
    "index_select": lambda x, i: tg.index_select(np.outer(x, x), 1, i),
    "index_add": lambda x, i: tg.zeros(4, 4).index_add(1, i, np.outer(x, x[:2])),
    "gather": lambda x, i: tg.gather(x, 0, i),
    "pairs": lambda x, i: np.outer(x, x)[i, i - 4],
    "number and array apart": lambda x, i: cube(x)[0, :, i],
    "array and number apart": lambda x, i: cube(x)[i, :, 0],
    "arrays apart": lambda x, i: cube(x)[i, :, i[:, None]],
    "columns": lambda x, i: np.outer(x, x)[:, i],
    "new dimensions": lambda x, i: np.outer(x, x)[None, i, None, 1],
    "one array for all, apart": lambda x, i: cube(x)[0, :, np.array([0, -2])],
    "one array for all, new dimension": lambda x, i: np.outer(x, x)[1, None, np.array([0, 1])],
    "rows from the end": lambda x, i: cube(x)[..., i - 4, 1],
    "assignment": lambda x, i: changed(cube(x), (1, slice(None), i), x),
    "assignment of columns": lambda x, i: changed(
        np.outer(x, x), (slice(None), i), np.outer(x, x[:2])
    ),
    "assignment where": lambda x, i: changed(x.clone(), x > 0, x[0]),
    "masked_select": lambda x, i: tg.masked_select(x, CHOSEN),
    "mask": lambda x, i: np.outer(x, x)[CHOSEN],
    "masked_fill": lambda x, i: tg.masked_fill(np.outer(x, x), CHOSEN, x[1]),
    "views": lambda x, i: doubled_through_a_view(x),
    "max": lambda x, i: x.max(0),
    "min of rows": lambda x, i: np.outer(x, x).min(1, keepdim=True),
    "sort": lambda x, i: x.sort(descending=True),
    "sort of columns": lambda x, i: np.outer(x, x).sort(dim=0),
    "np.sort": lambda x, i: np.sort(x),
    "argsort": lambda x, i: np.argsort(x),
    "argmax": lambda x, i: x[x.argmax()],
    "argmin": lambda x, i: np.outer(x, x).argmin(keepdim=True),
    "np.argmax": lambda x, i: x[np.argmax(x)],
    "median": lambda x, i: np.median(x),
    "nanmean": lambda x, i: np.nanmean(np.where(x > 0, x, np.nan)),
    "all": lambda x, i: (x > 0).all(),
    "any": lambda x, i: np.any(np.outer(x, x) > 0, axis=1, keepdims=True),
    "all where": lambda x, i: np.all(x > 0, where=x < 1),
    "count_nonzero": lambda x, i: np.count_nonzero(x > 0) + (x < 0).count_nonzero(),
    "logic": lambda x, i: np.where((x > -1) & ~(x > 1) | np.isinf(x), x, 0.0),
    "searchsorted": lambda x, i: np.searchsorted(np.array([0.0, 1.0]), x),
    "interp": lambda x, i: np.interp(x, [0.0, 1.0], [2.0, 3.0]),
    "isclose": lambda x, i: np.isclose(x, 0.0, atol=0.2),
    "shape": lambda x, i: x * np.shape(x)[0] * np.size(x) * np.ndim(x),
}


def parts(found):
    return found if isinstance(found, tuple) else (found,)


def one_by_one(f, examples, indices):
    """What a loop gives: the parts of all results, each stacked."""
    with transforming():  # where indices follow NumPy, as in a map
        each = [
            parts(f(tg.tensor(x), tg.tensor(i))) for x, i in zip(examples, indices, strict=True)
        ]
        return [np.stack([t.numpy() for t in column]) for column in zip(*each, strict=True)]


def same(found, expected):
    for a, b in zip(parts(found), expected, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_map_is_a_loop(name):
    f = PROGRAMS[name]
    expected = one_by_one(f, X, I)
    same(tg.vmap(f)(X, I), expected)
    deeper = tg.vmap(lambda x: tg.vmap(f)(x, I))(np.stack([X, X]))
    same(tuple(t[1] for t in parts(deeper)), expected)
    across = tg.vmap(lambda i: tg.vmap(f, (0, None))(X, i))(I)
    same(tuple(t[2] for t in parts(across)), one_by_one(f, X, [I[2]] * 3))


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_a_map_are_those_of_a_loop(name):
    f = PROGRAMS[name]

    def square(x, i):
        return (1.0 * parts(f(x, i))[0] ** 2).sum() + x[0]

    expected = np.stack([tg.grad(square)(x, tg.tensor(i)) for x, i in zip(X, I, strict=True)])
    curves = np.stack([tg.hessian(square)(x, tg.tensor(i)) for x, i in zip(X, I, strict=True)])
    np.testing.assert_allclose(tg.grad(lambda x: tg.vmap(square)(x, I).sum())(X), expected)
    np.testing.assert_allclose(tg.vmap(tg.grad(square))(X, I), expected)
    np.testing.assert_allclose(tg.vmap(tg.jacfwd(square))(X, I), expected)
    np.testing.assert_allclose(tg.vmap(tg.hessian(square))(X, I), curves, atol=1e-12)


@pytest.mark.parametrize(
    "find",
    [
        lambda x: x.nonzero(),
        lambda x: np.nonzero(x),
        lambda x: np.flatnonzero(x),
        lambda x: np.where(x > 0),
        lambda x: np.argwhere(x > 0),
        lambda x: np.extract(x > 0, x),
    ],
)
def test_what_finds_another_number_in_each_example_says_why(find):
    said = r"finds another number of elements in each example|differs from example to example"
    with pytest.raises(RuntimeError, match=said):
        tg.vmap(find)(X)


def test_values_that_differ_are_not_read_as_one_array():
    with pytest.raises(RuntimeError, match=r"differ from example to example .*`packbits`"):
        tg.vmap(lambda x: np.packbits(x > 0))(X)


def test_an_index_out_of_range_in_one_example_is_refused():
    for find in (
        lambda x, i: x[i],
        lambda x, i: cube(x)[0, :, i],
        lambda x, i: np.take(x, i),
        lambda x, i: tg.gather(x, 0, i),
        lambda x, i: tg.index_select(x, 0, i),
    ):
        with pytest.raises((IndexError, RuntimeError), match=r"out of (range|bounds)"):
            tg.vmap(find)(X, I + np.array([[0], [0], [1]]))
