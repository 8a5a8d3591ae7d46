"""Arrays of a compiled function that are computed from constants, and written into."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about programs")


CONSTANTS = {
    "roll": lambda x: np.roll(np.zeros_like(x), 1),
    "reshape": lambda x: (np.zeros_like(x) + 1.0).reshape(1, -1)[0],
    "diag": lambda x: np.diag(np.zeros_like(x))[0],
    "solve": lambda x: np.linalg.solve(np.eye(3), np.zeros_like(x)),
    "outer": lambda x: np.outer(np.ones(2), np.zeros_like(x))[0],
    "real": lambda x: np.fft.fft(np.zeros_like(x)).real,
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_what_was_computed_from_constants_is_written_into(name):
    def f(x):
        y = CONSTANTS[name](x)
        y[0] = x[1]
        y[1:] += x[:-1]
        return np.sum(y**2)

    x, compiled = np.array([0.5, -1.0, 2.0]), tg.jit(f)
    assert compiled(x) == pytest.approx(f(x))
    assert compiled.cache_info().traces == 1
    np.testing.assert_allclose(tg.jit(tg.grad(f))(x), tg.grad(f)(x), rtol=1e-12)


def test_views_from_outside_are_not_changed_by_a_program():
    view = tg.zeros(3).view(3)

    def f(x):
        view[0] = x[0]
        return np.sum(view)

    with pytest.raises(RuntimeError, match="changes a Tensor in place that was made outside"):
        tg.jit(f)(np.ones(2))


def test_long_histories_that_are_written_in_place():
    def trajectory(x):
        out, s = np.zeros_like(x, shape=1200), x[0]
        for i in range(1200):
            s = 0.9 * s + x[1]
            out[i] = s
        return np.sum(out**2)

    x = np.array([0.3, 0.9])
    assert tg.jit(trajectory)(x) == pytest.approx(trajectory(x), rel=1e-12)
