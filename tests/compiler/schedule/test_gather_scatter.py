"""Index arrays in compiled programs: what is out of range there is an error, as it is eagerly."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("how compiled programs index")

# Of a Tensor and of an index; those along a dimension take no index that counts from the end.
ALONG = {
    "gather": lambda x, i: tg.gather(x, 0, i),
    "gather_of_grad": tg.grad(lambda x, i: (tg.gather(x, 0, i) ** 2).sum()),
    "scatter": lambda x, i: tg.scatter(x, 0, i, x),
    "scatter_add": lambda x, i: tg.scatter_add(x, 0, i, x),
    "scatter_reduce": lambda x, i: tg.scatter_reduce(x, 0, i, x, "amax"),
    "index_select": lambda x, i: tg.index_select(x, 0, i[0]),
    "index_add": lambda x, i: tg.index_add(x, 0, i[0], x[:2]),
}
FROM_THE_END = {
    "index": lambda x, i: x[i],
    "index_put": lambda x, i: tg.index_put(x, (i[0],), x[0]),
    "take": tg.take,
    "take_along_dim": lambda x, i: tg.take_along_dim(x, i, 0),
}
X = np.arange(6.0).reshape(3, 2)


def ready(f, dtype=np.int64):
    """The function compiled for an index that fits, so that the program meets the others."""
    jitted = tg.jit(lambda x, i: f(x, i))
    fitting = np.array([[2, 0]], dtype)
    np.testing.assert_array_equal(jitted(X, fitting), of_tensors(f, fitting))
    return jitted


def of_tensors(f, index):
    return f(tg.tensor(X), tg.tensor(index)).numpy()


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("first", [-1, -3, -4, 3, 100])
@pytest.mark.parametrize("name", ALONG)
def test_no_index_along_a_dimension_counts_from_the_end(name, first, dtype):
    f, index = ALONG[name], np.array([[first, 0]], dtype)
    with pytest.raises((IndexError, RuntimeError), match="index out of range") as eager:
        of_tensors(f, index)
    jitted = ready(f, dtype)
    for _ in range(3):
        with pytest.raises(eager.type, match="index out of range") as found:
            jitted(X, index)
        assert str(found.value) == str(eager.value)
    assert jitted.cache_info().eager == 0


@pytest.mark.parametrize("name", FROM_THE_END)
def test_indices_that_count_from_the_end(name):
    f = FROM_THE_END[name]
    jitted = ready(f)
    for first in (-1, -3):
        index = np.array([[first, 0]])
        np.testing.assert_array_equal(jitted(X, index), of_tensors(f, index))
    assert jitted.cache_info() == (1, 1, 0)
    for first in (-7, 6):
        with pytest.raises((IndexError, RuntimeError), match="out of"):
            jitted(X, np.array([[first, 0]]))


def test_a_failure_is_told_in_nopython_code():
    import numba

    jitted = tg.jit(ALONG["gather"])

    @numba.njit
    def call(x, i):
        return jitted.njit(x, i)

    np.testing.assert_array_equal(call(X, np.array([[1, 0]])), [[2.0, 1.0]])
    with pytest.raises(RuntimeError, match="`gather`: index out of range"):
        call(X, np.array([[-1, 0]]))


MAPPED = {
    "index_select": lambda x, i: tg.index_select(x, 0, i),
    "index_add": lambda x, i: tg.index_add(x, 0, i, x[:2]),
    "gather": lambda x, i: tg.gather(x, 0, i),
    "gradient of index_select": tg.grad(lambda x, i: (tg.index_select(x, 0, i) ** 3).sum()),
}


@pytest.mark.parametrize("in_dims", [(0, 0), (None, 0)], ids=["arrays", "one array"])
@pytest.mark.parametrize("first", [-1, 3])
@pytest.mark.parametrize("name", MAPPED)
def test_an_index_for_each_example_does_not_count_from_the_end_either(name, first, in_dims):
    f = tg.vmap(MAPPED[name], in_dims)
    x = np.arange(1.0, 7.0).reshape(2, 3)[slice(None) if in_dims[0] == 0 else 0]
    fitting, index = np.array([[2, 0], [1, 1]]), np.array([[2, 0], [first, 1]])
    jitted = tg.jit(f)
    np.testing.assert_array_equal(jitted(x, fitting), f(x, fitting))
    with pytest.raises((IndexError, RuntimeError), match="index out of range") as eager:
        f(x, index)
    for _ in range(2):
        with pytest.raises(eager.type, match="index out of range") as found:
            jitted(x, index)
        assert str(found.value) == str(eager.value)
    np.testing.assert_array_equal(jitted(x, fitting[::-1]), f(x, fitting[::-1]))
    assert jitted.cache_info() == (1, 1, 0)


ADDED = {
    "index_add": lambda x, i, v: tg.index_add(x, 0, i, v),
    "scatter_add": lambda x, i, v: tg.scatter_add(x, 0, i, v),
    "index_put": lambda x, i, v: tg.index_put(x, (i,), v, accumulate=True),
}


@pytest.mark.parametrize("kind", ["?", "u1", "i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("name", ADDED)
def test_what_is_added_to_one_place_of_every_kind(name, kind):
    """Two truths added up are true, as NumPy's are; whole numbers go round."""
    f, index = ADDED[name], np.array([0, 3, 0, 1, 3, 3])
    x, v = np.array([0, 1, 1, 0, 200], kind), np.array([1, 1, 1, 1, 250, 0], kind)
    found = tg.jit(f)(x, index, v)
    wanted = f(tg.tensor(x), tg.tensor(index), tg.tensor(v)).numpy()
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
@pytest.mark.parametrize("how", ["prod", "amax", "amin"])
def test_products_and_extremes(how, dtype, rng):
    x = rng.normal(size=(5, 4), scale=3).round().astype(dtype)
    src = rng.normal(size=(3, 7), scale=3).round().astype(dtype)
    places = rng.integers(0, 4, (3, 7))
    if dtype[0] == "f":
        src[0, 0] = np.nan

    def f(x, places, src):
        found = tg.scatter_reduce(tg.as_tensor(x), 1, tg.as_tensor(places), src, how)
        return found, tg.scatter_reduce(x, 1, places, src, how, include_self=False)

    jitted = tg.jit(f)
    given = [tg.tensor(a) for a in (x, places, src)]
    for found, wanted in zip(jitted(x, places, src), f(*given), strict=True):
        np.testing.assert_array_equal(found, wanted.numpy())
        assert found.dtype == wanted.numpy().dtype
    assert not jitted.lower(x, places, src).callbacks
    if dtype == "f8":
        src[0, 0] = 0.0
        slopes = tg.grad(lambda x, s: (f(x, places, s)[0] ** 2).sum(), (0, 1))
        compiled = tg.jit(slopes)
        for found, wanted in zip(compiled(x, src), slopes(x, src), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13)
        assert not compiled.lower(x, src).callbacks


@pytest.mark.parametrize("how", ["prod", "amax"])
def test_one_place_that_is_repeated(how, rng):
    def f(x, src):
        places = tg.as_tensor(np.array([[1, 0, 1]])).expand(6, 3)
        return tg.scatter_reduce(tg.as_tensor(x), 0, places, src, how)

    x, src = rng.normal(size=(2, 3)), rng.normal(size=(6, 3))
    np.testing.assert_allclose(tg.jit(f)(x, src), f(x, tg.tensor(src)).numpy(), rtol=1e-14)
