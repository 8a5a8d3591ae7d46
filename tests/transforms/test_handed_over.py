"""Arrays that transforms hand over belong to the caller alone."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about the NumPy face")


CONSTANT = np.arange(3.0)
HANDED_OVER = {
    "grad of a dot": lambda x, v: tg.grad(lambda x: np.dot(x, CONSTANT))(x),
    "grad of half the square": lambda x, v: tg.grad(lambda x: np.sum(x * x) / 2)(x),
    "grad of a sum, two arguments": lambda x, v: tg.grad(lambda x, y: np.sum(x + y), (0, 1))(x, v),
    "jvp of the identity": lambda x, v: tg.jvp(lambda x: x, (x,), (v,))[1],
    "jvp of the identity, twice": lambda x, v: tg.jvp(lambda x: (x, x), (x,), (v,))[1],
    "hvp of half the square": lambda x, v: tg.hvp(lambda x: np.sum(x * x) / 2)(x, v),
    "vjp of the identity": lambda x, v: tg.vjp(lambda x: x, x)[1](v),
    "linearize of the identity": lambda x, v: tg.linearize(lambda x: x, x)[1](v),
    "jacobian of a constant": lambda x, v: tg.jacrev(lambda x: CONSTANT)(x),
    "vmap of a constant": lambda x, v: tg.vmap(lambda x: CONSTANT)(x),
}


@pytest.mark.parametrize("case", HANDED_OVER)
def test_derivatives_may_be_written_into(case):
    """Nothing else may change with a derivative."""
    x, v = np.array([1.0, 2.0, 3.0]), np.ones(3)
    found = HANDED_OVER[case](x, v)
    arrays = [*found] if isinstance(found, tuple) else [found]
    for k, array in enumerate(arrays):
        others = [x, v, CONSTANT, *arrays[:k]]
        assert not any(np.shares_memory(array, other) for other in others)
        assert 0 not in array.strides
        assert array.flags.writeable
