"""Which values of a few elements are taken apart: where it pays, and where it does not."""

from collections import Counter

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.passes import scalar_replacement_cost
from tapegrad.compiler.passes.scalar_replacement import scalarized
from tapegrad.compiler.schedule.fusion import Schedule
from tests.compiler.graphs import graph, names, passed

pytestmark = pytest.mark.tapegrad_only("about this project")

LINE = np.array([3.0, -1.0, 0.5])


def chain(x, count=20, name="mul"):
    return graph(x, *[(name, (k, k)) for k in range(count)])


def nests(f, *args):
    """The domains of the nests of a program."""
    return {nest.domain for nest in Schedule(tg.jit(f).lower(*args).graph).nests if nest}


def test_many_operations_on_few_elements_are_taken_apart():
    before = chain(np.array([1.0, 0.5]))
    assert Counter(names(scalarized(before)))["mul"] == 40


@pytest.mark.parametrize(
    "before",
    [
        chain(LINE, count=scalar_replacement_cost.MANY - 1),
        chain(np.ones(scalar_replacement_cost.MOST_ELEMENTS + 1)),
        chain(np.ones(scalar_replacement_cost.SCALAR_MOST + 1)),  # as vectors they are quicker
        chain(np.ones(())),
        chain(np.ones((0, 2))),
    ],
    ids=["too few", "too long", "vectors", "numbers", "empty"],
)
def test_what_it_does_not_pay_for_stays(before):
    assert scalarized(before) is before


def test_vectors_whose_elements_are_moved_about_are_taken_apart():
    rows = []
    for k in range(0, 32, 4):
        tail, head = {"index": (slice(1, None),)}, {"index": (slice(0, 1),)}
        rows += [
            ("getitem", (k,), tail), ("getitem", (k,), head), ("cat", (k + 1, k + 2), {"dim": 0}),
            ("mul", (k + 3, k)),
        ]  # fmt: skip
    x = np.ones(scalar_replacement_cost.MOST_ELEMENTS)
    assert "cat" not in names(passed(scalarized, graph(x, *rows), x))


def test_what_is_handed_over_to_products_of_matrices_stays():
    rows = [
        row for k in range(20) for row in (("matmul", (0, k and 2 * k)), ("add", (2 * k + 1, 0)))
    ]
    before = graph(np.eye(2), *rows)
    assert scalarized(before) is before


def pendulum(y, steps=5):
    for _ in range(steps):
        k = np.stack([y[1], -np.sin(y[0])])
        y = y + 0.1 * np.stack([(y + 0.05 * k)[1], -np.sin((y + 0.05 * k)[0])])
    return np.sum(y * y)


def test_a_small_state_in_a_loop_of_python_becomes_straight_code():
    y = np.array([0.5, 0.1])
    derivative = tg.value_and_grad(pendulum)
    assert nests(derivative, y) == {()}
    value, gradient = tg.jit(derivative)(y)
    wanted, other = derivative(y)
    assert value == pytest.approx(wanted, rel=1e-14)
    np.testing.assert_allclose(gradient, other, rtol=1e-13)


def test_states_that_are_collected_are_stored_where_they_go():
    def f(y):
        seen = []
        for _ in range(30):
            y = y + 0.1 * np.stack([y[1], -y[0]])
            seen.append(y)
        return np.stack(seen)

    y = np.array([0.5, 0.1])
    assert nests(f, y) == {()}
    np.testing.assert_allclose(tg.jit(f)(y), f(y), rtol=1e-14)


def test_large_arrays_beside_small_ones_keep_their_loops():
    def f(y, w):
        for _ in range(10):
            y = y + 0.1 * np.stack([y[1], -y[0]])
        return np.sum(np.sin(w * y[0]) * y[1])

    y, w = np.array([0.5, 0.1]), np.linspace(0.0, 1.0, 100)
    assert nests(tg.grad(f), y, w) == {(), (100,)}
    np.testing.assert_allclose(tg.jit(tg.grad(f))(y, w), tg.grad(f)(y, w), rtol=1e-12)


def test_bodies_of_loops_are_taken_apart_too():
    def step(_, y):
        for _ in range(4):
            y = y + 0.1 * np.stack([y[1], -np.sin(y[0])])
        return y

    def f(y):
        return np.sum(tg.fori_loop(0, 5, step, y))

    y = np.array([0.5, 0.1])
    value, gradient = tg.jit(tg.value_and_grad(f))(y)
    wanted, other = tg.value_and_grad(f)(y)
    assert value == pytest.approx(wanted, rel=1e-14)
    np.testing.assert_allclose(gradient, other, rtol=1e-13)
