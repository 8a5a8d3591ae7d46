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


def ready(f):
    """The function compiled for an index that fits, so that the program meets the others."""
    jitted = tg.jit(lambda x, i: f(x, i))
    fitting = np.array([[2, 0]])
    np.testing.assert_array_equal(jitted(X, fitting), of_tensors(f, fitting))
    return jitted


def of_tensors(f, index):
    return f(tg.tensor(X), tg.tensor(index)).numpy()


@pytest.mark.parametrize("first", [-1, -3, -4, 3, 100])
@pytest.mark.parametrize("name", ALONG)
def test_no_index_along_a_dimension_counts_from_the_end(name, first):
    f, index = ALONG[name], np.array([[first, 0]])
    with pytest.raises((IndexError, RuntimeError), match="index out of range") as eager:
        of_tensors(f, index)
    jitted = ready(f)
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
