"""All passes together, and what is compiled after them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.compiler import passes
from tests.compiler.graphs import SPECIAL, names, passed, traced
from tests.compiler.passes.randoms import close, derivative, on_random_programs
from tests.compiler.test_random_programs import near, points, profile, programs, shapes

pytestmark = pytest.mark.tapegrad_only("about this project")


def folded(x):
    """What a compiler with fast mathematics would get wrong."""
    return (
        x + 0.0, x - 0.0, 0.0 - x, x * 0.0, x * 1.0, x / 1.0, np.negative(-x), x - x, x / x,
        0.0 * x + 1.0, (x + 1.0) - 1.0, x * 2.0 / 2.0, x * x - x * x, x * 3.0 + 0.1, np.abs(x),
        np.sqrt(x * x), x == x, x != x, x < x, np.maximum(x, 0.0), np.minimum(x, x),
        np.where(x == 0, x, 0.0), np.floor(x), np.sign(x), np.exp(np.log(x)), 1.0 / (1.0 / x),
        x**2.0, x**0.5, x**1.0, x**0.0,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_compiled_code_keeps_signs_of_zeros_nan_and_infinities(kind):
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(kind)
    eager = [y.numpy() for y in folded(tg.tensor(x))]
    for found, wanted in zip(tg.jit(folded)(x), eager, strict=True):
        assert found.dtype == wanted.dtype
        if found.dtype.kind != "f":
            np.testing.assert_array_equal(found, wanted)
            continue
        np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(kind).eps)
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


def test_no_product_and_sum_is_contracted():
    """x * y rounds before z is taken off: fused, the error of the product would be left."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 1000))
    found = tg.jit(lambda x, y, z: x * y - z)(x, y, x * y)
    np.testing.assert_array_equal(found, np.zeros(1000))
    single = tg.jit(lambda x, y: x * y - y * x)
    np.testing.assert_array_equal(single(x, y), np.zeros(1000))


@pytest.mark.parametrize("f", [np.sqrt, np.log], ids=["sqrt", "log"])
def test_a_masked_nan_never_poisons_a_compiled_gradient(f):
    g = tg.jit(tg.grad(lambda x: np.sum(np.where(x > 0, f(x), 0.0))))
    np.testing.assert_array_equal(g(np.array([0.0, -1.0, -np.inf])), np.zeros(3))


# -- each of them can be left out --------------------------------------------------------------

# But the one without which there are records that stand for nothing: `pruned` leaves those.
EACH = (
    "scalarized", "expanded", "with_kept_values", "late", "pruned",
    "with_sums_of_parts", "simplified", "with_early_gathers", "with_contractions",
)  # fmt: skip
ROWS = np.sin(np.arange(12.0)).reshape(4, 3)
W = np.cos(np.arange(9.0)).reshape(3, 3)
POSES, WEIGHTS = np.cos(np.arange(576.0)).reshape(64, 3, 3), np.sin(np.arange(256.0))
WEIGHTS = WEIGHTS.reshape(64, 1, 4)


def moving(y):
    """Two elements that change places again and again."""
    for _ in range(6):
        y = y + 0.1 * np.stack([y[1], -np.sin(y[0])])
    return np.sum(y * y)


def looped(x):
    """A loop of which a part is taken, and what takes long in it."""
    (last, _), given = tg.scan(
        lambda c, row: ((np.tanh(W @ c[0] + row), np.exp(-c[1])), c[0]), (x, x), ROWS
    )
    return np.sum(last) + np.sum(given**2)


def weighted(x):
    """Sums of weighted products, through which no gradient goes."""
    with tg.no_grad():
        fixed = np.sum((POSES @ x.T) * WEIGHTS, axis=0)
    return np.sum(x.T * fixed)


PROBLEMS = {
    "moving": (moving, np.array([0.5, 0.1])),
    "batches": (lambda x: np.sum(np.tanh(x @ x[0, :3])), np.stack([ROWS, ROWS * 2.0])),
    "compound": (lambda x: np.std(x) + np.sum(np.mean(x, axis=0) ** 2), ROWS),
    "looped": (looped, W[0]),
    "waiting": (lambda x: np.sum(np.sin(x) * np.exp(x * np.sum(x))), ROWS * 0.1),
    "slices": (lambda x: sum(np.sum(np.sin(x[k:]) * k) for k in range(1, 4)), ROWS),
    "few": (lambda x: np.sum(np.tanh(x @ W)[2] ** 2), ROWS),
    "weighted": (weighted, ROWS),
    "known": (lambda x: np.sum(np.exp(np.ones(3)) * x * 1.0 + np.sin(x) * np.sin(x)), ROWS),
}


@pytest.fixture
def without(monkeypatch):
    """Leave out a pass."""
    return lambda name: monkeypatch.setattr(passes, name, lambda graph, *rest: graph)


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_program_without_a_pass_computes_the_same(problem, name, without):
    f, x = PROBLEMS[problem]
    f = tg.value_and_grad(f)
    wanted = tg.jit(f)(x)
    without(name)
    found = tg.jit(f)(x)
    for a, b, eager in zip(found, wanted, f(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(a, eager, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("scalarized", "moving"), ("expanded", "compound"),
        ("with_kept_values", "looped"), ("late", "waiting"), ("pruned", "looped"),
        ("with_sums_of_parts", "slices"), ("simplified", "known"), ("with_early_gathers", "few"),
        ("with_contractions", "weighted"),
    ],
)  # fmt: skip
def test_every_pass_takes_its_part(name, problem, without):
    f, x = PROBLEMS[problem]
    with_it = str(tg.jit(tg.grad(f)).lower(x))
    without(name)
    assert str(tg.jit(tg.grad(f)).lower(x)) != with_it


@pytest.mark.parametrize("name", EACH)
@profile(1)
@given(programs, shapes, st.integers(0, 1000))
def test_random_programs_without_a_pass(name, steps, shapes, seed):
    f = derivative(steps, len(shapes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, name, lambda graph, *rest: graph)
        compiled = tg.jit(f)
        for arrays in points(shapes, "float64", seed):
            value, gradients = compiled(*arrays)
            wanted, others = f(*arrays)
            near(value, wanted, "float64", 10)
            for g, other in zip(gradients, others, strict=True):
                near(g, other, "float64", 100)


def test_what_has_been_through_all_passes_stays_as_it_is():
    before = traced(tg.grad(looped), W[0])
    once = passed(passes.optimised, before, W[0], alike=close)
    assert names(passes.optimised(once)) == names(once)


test_random_programs = on_random_programs(passes.optimised, alike=close)
