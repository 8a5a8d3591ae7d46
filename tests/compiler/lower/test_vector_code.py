"""What nests compute when they are interpreted."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.codegen.vector_interpreter import CHUNK
from tapegrad.compiler.lower.lower import Module
from tests.compiler.programs import TIERS, tier

pytestmark = pytest.mark.tapegrad_only("about the compiler")
RNG = np.random.default_rng(0)
SIZES = (1, 7, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5)

PROGRAMS = {
    "elementwise": lambda x: np.sin(x) * x + 0.5,
    "stored and read": lambda x: (np.sin(x), np.sin(x) * np.cos(x)),
    "constants after temporaries": lambda x: (x * x + x) * 3.0 + (x - 2.0) * (x * 7.0),
    "total": lambda x: np.sum(x * x),
    "greatest": lambda x: (np.max(x), np.min(x * 2)),
    "product": lambda x: np.prod(1 + x / 1000),
    "over rows": lambda x: np.sum(np.sin(x), -1),
    "over columns": lambda x: np.sum(np.sin(x), 0),
    "greatest of columns": lambda x: np.max(x * x, 0),
    "a row for all": lambda x: x - np.mean(x, 0),
    "a column for all": lambda x: np.exp(x - np.max(x, -1, keepdims=True)),
    "comparisons": lambda x: np.where(x > 0.1, x * 2, -x),
    "of two types": lambda x: (x > 0) * x + (np.round(x) == 0),
    "normalised": lambda x: np.exp(x) / np.sum(np.exp(x), -1, keepdims=True),
}


def arrays():
    for n in SIZES:
        yield RNG.normal(size=n)
        yield RNG.normal(size=(3, n))
        yield RNG.normal(size=(n, 2))
    yield RNG.normal(size=(2, 3, 4, 5))
    yield RNG.normal(size=(3, 2, CHUNK + 9)).astype(np.float32)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_without_compiling(name):
    f = PROGRAMS[name]
    jitted = tg.jit(f)
    for x in arrays():
        with tier("interpreted"):
            found = jitted(x)
        wanted = f(x)
        rtol = 1e-12 if x.dtype == np.float64 else 1e-4
        pairs = [y if isinstance(y, tuple) else (y,) for y in (found, wanted)]
        for a, b in zip(*pairs, strict=True):
            np.testing.assert_allclose(a, b, rtol, rtol, err_msg=f"{x.shape}")


def test_reductions_over_dimensions_that_are_apart_start_from_zero():
    """Several times: what one run leaves in memory is where the next one may begin."""
    f = tg.jit(lambda x: (np.sum(np.sin(x), (1, 3)), np.max(x * x, (0, 3)), np.sin(x)))
    for _ in range(3):
        x = RNG.normal(size=(3, 2, 5, 9))
        with tier("interpreted"):
            sums, greatest, _ = f(x)
        np.testing.assert_allclose(sums, np.sin(x).sum((1, 3)), rtol=1e-12)
        np.testing.assert_allclose(greatest, (x * x).max((0, 3)), rtol=1e-12)
        del sums, greatest


def test_transposed_and_gathered_operands_are_compiled():
    x, rows = RNG.normal(size=(40, 30)), np.array([3, 1, 1])
    for f in (lambda x: np.sin(x.T + 1) * x[:30, :30].sum(), lambda x: np.exp(x[rows]) * 2):
        with tier("interpreted"):
            np.testing.assert_allclose(tg.jit(f)(x), f(x), rtol=1e-12)


def test_both_tiers_agree_to_the_last_places():
    """The operations are the same in the same order, but that sums are done in another one."""

    def f(x):
        return np.exp(-x * x) * np.sin(x) / (1 + x * x), np.tanh(x) ** 3, np.sqrt(x * x + 1)

    x = RNG.normal(size=1000)
    results = []
    for name in TIERS:
        with tier(name):
            results.append(tg.jit(f)(x))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_max_ulp(a, b, 4)


def test_nests_in_a_row_are_one_call():
    f = tg.jit(lambda x: np.sum(np.sin(x) * x) + np.sum(np.exp(x), 0))
    graph = f.lower(np.ones(50)).graph
    with tier("interpreted"):
        text = Module(graph, tiered=True).lower().text
    assert text.count("call void @tapegrad_interpret") == 1


def test_special_functions_are_called_by_pointer():
    x = np.linspace(0.5, 3.0, 20)
    with tier("interpreted"):
        found = tg.jit(lambda x: tg.special.digamma(x) * tg.special.gammaln(x))(x)
    wanted = tg.special.digamma(tg.tensor(x)) * tg.special.gammaln(tg.tensor(x))
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-12)
