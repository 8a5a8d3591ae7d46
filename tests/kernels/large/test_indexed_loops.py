"""Places chosen along the last dimension of large arrays."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels.large import indexed_loops as loops

SHAPES = [(200, 300), (7, 50, 60), (40_000,), (3, 1, 20_001)]


@pytest.mark.parametrize("dtype", "df")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_places_in_each_row(shape, dtype):
    rng = np.random.default_rng(0)
    x, m = rng.standard_normal(shape).astype(dtype), shape[-1]
    for n in (1, 3, m, m + 17):
        places = rng.integers(0, m, n)
        found = loops.select(x, places, dim=x.ndim - 1)
        np.testing.assert_array_equal(found, np.take(x, places, -1))
        assert found.flags.c_contiguous
        t = tg.tensor(x)
        np.testing.assert_array_equal(tg.index_select(t, -1, tg.tensor(places))._a, found)
        np.testing.assert_array_equal(t[..., places]._a, found)
        np.testing.assert_array_equal(t[..., places - m]._a, found)


def test_what_is_left_to_others():
    x = np.ones((200, 300))
    assert loops.select(x, np.array([0, 300]), dim=1) is None
    assert loops.select(x, np.array([-1]), dim=1) is None
    assert loops.select(x, np.array([0]), dim=0) is None
    assert loops.select(x.T, np.array([0]), dim=1) is None
    assert loops.select(x + 0j, np.array([0]), dim=1) is None
