"""Results that lie side by side in every row, which are turned in registers."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.codegen import transpose
from tapegrad.compiler.ir.loop_nest import collapsed
from tapegrad.compiler.schedule.fusion import Schedule

pytestmark = pytest.mark.tapegrad_only("compiled functions are not PyTorch's")

RNG = np.random.default_rng(3)
N = transpose.ROWS


def runs(f, *args):
    """How many columns each run of a program has."""
    nests = [n for n in Schedule(tg.jit(f).lower(*args).graph).nests if n is not None]
    return [len(run) for nest in nests for run in transpose.columns(collapsed(nest))]


def agrees(f, *args):
    got, want = tg.jit(f)(*args), f(*args)
    if not isinstance(want, tuple):
        got, want = (got,), (want,)
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-13)
        assert x.dtype == y.dtype


def powers(count):
    def f(x):
        return np.stack([x * (k + 1) + k for k in range(count)], 1)

    return f


@pytest.mark.parametrize("rows", [N, N + 1, N + 7, 4 * N + 3])
@pytest.mark.parametrize("count", [4, 7, 8, 9, 16, 30])
def test_any_number_of_rows_and_columns(rows, count):
    x = RNG.normal(size=rows)
    assert runs(powers(count), x) == [count]
    agrees(powers(count), x)


def test_few_columns_and_few_rows_are_left():
    assert runs(powers(3), RNG.normal(size=N)) == []
    assert runs(powers(8), RNG.normal(size=N - 1)) == []


def test_what_is_read_may_lie_anywhere():
    a, b = RNG.normal(size=(N + 5, 3)), RNG.normal(size=(11, 4))
    k = RNG.integers(-11, 11, N + 5)

    def f(a, b, k, scale):
        found = b[k]
        parts = [a[:, 0] * found[:, 1], a[:, 2] + found[:, 3], scale * found[:, 0], a[:, 1] * scale]
        return np.stack([*parts, np.sin(parts[0]), np.ones(N + 5), a[::-1, 0] + 1.0], 1)

    assert runs(f, a, b, k, 1.5) == [7]
    agrees(f, a, b, k, 1.5)


def test_two_runs_and_others_beside_them():
    x = RNG.normal(size=N + 3)

    def f(x):
        return powers(5)(x), np.exp(x), np.stack([x * x, x + 1.0, x], 1), powers(6)(-x), x > 0.0

    assert runs(f, x) == []  # a result of one byte is left to others
    agrees(f, x)


def test_two_runs():
    x = RNG.normal(size=N + 3)

    def f(x):
        return powers(5)(x), np.exp(x), np.stack([x * x, x + 1.0, x], 1), powers(6)(-x)

    assert sorted(runs(f, x)) == [5, 6]
    agrees(f, x)


def test_integers_and_conditions():
    x, k = RNG.normal(size=N + 2), RNG.integers(-9, 9, N + 2)

    def f(x, k):
        y = np.where(k > x, k, -k)
        return np.stack([y, y * k, y + 7, k - y], 1)

    assert runs(f, x, k) == [4]
    agrees(f, x, k)


def test_an_argument_out_of_the_ordinary():
    x = RNG.normal(size=N + 2)
    x[[5, -1]] = 1e300, np.inf
    with np.errstate(all="ignore"):
        agrees(lambda x: np.stack([np.sin(x), np.cos(x), np.tan(x), x * x, x - 1.0], 1), x)


def test_several_threads():
    x = RNG.normal(size=200_003)
    f = lambda x: np.stack([x * x, np.sin(x), x + 1.0, x * 3.0, np.cos(x), x], 1)
    assert runs(f, x) == [6]
    before = tg.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            tg.set_num_threads(threads)
            found.append(tg.jit(f)(x))
    finally:
        tg.set_num_threads(before)
    np.testing.assert_allclose(found[0], f(x), rtol=1e-13, atol=1e-15)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_the_blocks_of_a_jacobian():
    a = RNG.normal(size=(N + 1, 3))

    def blocks(a):
        rows = []
        for which in range(2):
            total = lambda x, y, z, which=which: np.sum((x * y, y * np.exp(z) * x)[which])
            rows += tg.grad(total, argnums=(0, 1, 2))(*a.T)
        return np.stack(rows, 1).reshape(-1, 2, 3)

    assert runs(blocks, a) == [6]
    np.testing.assert_allclose(tg.jit(blocks)(a), blocks(a), rtol=1e-12)
