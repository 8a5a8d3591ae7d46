"""Long straight code multiplies plainly, and does it again where a strong product was needed."""

import threading

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.schedule import speculative_products
from tapegrad.compiler.schedule.fusion import Schedule
from tapegrad.compiler.schedule.step_ir import Loop

pytestmark = pytest.mark.tapegrad_only("compiled functions are not PyTorch's")

X = np.linspace(0.5, 2.0, 12)


def guarded(x):
    """Quotients, roots and logarithms of what is positive; 12 numbers, one by one."""
    total = 0.0
    for k in range(12):
        y = x[k]
        safe = np.where(y > 0.0, np.log(y) * np.sqrt(y) + x[(k + 1) % 12] / y, 0.25 * y)
        total = total + safe * safe * x[(k + 5) % 12]
    return total * total


def loops(f, *args):
    steps = Schedule(tg.jit(f).lower(*args).graph).steps
    return [step for step in steps if isinstance(step, Loop)]


def names(f, *args):
    nests = Schedule(tg.jit(f).lower(*args).graph).nests
    return [t.name for n in nests if n is not None for t in n.terms]


def zeros_at(*places):
    x = X.copy()
    x[list(places)] = 0.0
    return x


def test_products_are_plain():
    nests = [n for n in Schedule(tg.jit(tg.grad(guarded)).lower(X).graph).nests if n is not None]
    counts = [[t.name for t in n.terms].count("strong") for n in nests]
    assert max(counts) < speculative_products.LEAST
    assert any(step.exact is not None for step in loops(tg.grad(guarded), X))


def test_few_products_stay_strong():
    f = lambda x: np.sin(x) * x * x
    assert "strong" in names(tg.grad(f), 0.5)


def test_an_element_that_an_index_picks():
    def f(x):
        y = np.sort(x)[1]
        for _ in range(40):
            y = np.cos(y) * y
        return y

    x = np.array([0.7, 0.2, 1.3])
    assert any(step.exact is not None for step in loops(tg.hvp(f), x, x))
    np.testing.assert_allclose(tg.jit(tg.grad(f))(x), tg.grad(f)(x), rtol=1e-12)
    np.testing.assert_allclose(tg.jit(tg.hvp(f))(x, X[:3]), tg.hvp(f)(x, X[:3]), rtol=1e-11)


@pytest.mark.parametrize(
    "x",
    [X, -X, zeros_at(0), zeros_at(3, 4, 11), zeros_at(*range(12)), zeros_at(2) - 0.7],
    ids=["none", "all negative", "one", "three", "all", "mixed"],
)
def test_a_zero_adjoint_of_what_is_not_finite(x):
    with np.errstate(all="ignore"):
        want = tg.grad(guarded)(x)
    assert np.isfinite(want).all()
    slope = tg.jit(tg.grad(guarded))
    for point in (X, x, X, x):
        with np.errstate(all="ignore"):
            want = tg.grad(guarded)(point)
        np.testing.assert_allclose(slope(point), want, rtol=1e-12, atol=1e-300)


def test_what_is_no_number_stays_none():
    x = X.copy()
    x[4] = np.nan
    with np.errstate(all="ignore"):
        want = tg.grad(guarded)(x)
    np.testing.assert_allclose(tg.jit(tg.grad(guarded))(x), want, rtol=1e-12)


def test_infinities_come_out_as_they_are():
    x = X.copy()
    x[1] = np.inf
    with np.errstate(all="ignore"):
        want = tg.grad(guarded)(x)
    np.testing.assert_allclose(tg.jit(tg.grad(guarded))(x), want, rtol=1e-12)


def test_constants_are_found_again():
    weights = np.linspace(1.0, 3.0, 2000)

    def f(x):
        total = 0.0
        for k in range(40):
            total = total + np.where(x[k] > 0.0, np.log(x[k]) * weights[37 * k], 0.0) * x[k]
        return total

    x = np.zeros(40)
    x[5] = 2.0
    with np.errstate(all="ignore"):
        want = tg.grad(f)(x)
    np.testing.assert_allclose(tg.jit(tg.grad(f))(x), want, rtol=1e-12)


def test_it_is_compiled_when_it_is_needed(monkeypatch):
    built = []
    assembled = speculative_products.build.assembled
    monkeypatch.setattr(
        speculative_products.build, "assembled", lambda *a: built.append(len(a)) or assembled(*a)
    )
    slope = tg.jit(tg.grad(guarded))
    slope(X)
    before = len(built)
    slope(zeros_at(1))
    once = len(built)
    assert once > before
    slope(zeros_at(2))
    assert len(built) == once


def test_where_it_cannot_be_compiled_an_error_says_so(monkeypatch):
    slope = tg.jit(tg.grad(guarded))
    want = slope(zeros_at(1))
    other = tg.jit(tg.grad(lambda x: guarded(x) * 2.0))
    other(X)

    def full(*args):
        raise MemoryError("full")

    with monkeypatch.context() as patch:
        patch.setattr(speculative_products.build, "assembled", full)
        with pytest.raises(MemoryError, match="full"):
            other(zeros_at(1))
    np.testing.assert_allclose(other(zeros_at(1)), 2.0 * want, rtol=1e-12)


def test_threads():
    slope = tg.jit(tg.grad(guarded))
    want = slope(zeros_at(1))
    found = []

    def run():
        found.extend(slope(zeros_at(1)) for _ in range(50))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200
    for x in found:
        np.testing.assert_array_equal(x, want)
