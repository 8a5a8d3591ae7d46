"""Sums of paddings: what becomes one record, and what is computed from it."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.passes import optimised
from tapegrad.compiler.passes.combine_pads import with_sums_of_parts
from tapegrad.compiler.passes.dead_code import without_dead
from tests.compiler.graphs import SPECIAL, executed, graph, names, passed, run, same_bits
from tests.compiler.passes.randoms import close, on_random_programs

pytestmark = pytest.mark.tapegrad_only("about this project")


def part(k, n):
    return ("embed", (k,), {"index": (slice(*n), ...), "shape": (4,)})


def test_paddings_that_are_added_up_become_one_record():
    a, b = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    before = graph(a, b, part(0, (0, 2)), part(1, (1, 3)), ("add", (2, 3)))
    after = without_dead(passed(with_sums_of_parts, before, a, b))
    assert names(after) == ["input", "input", "added"]


def test_what_is_no_padding_is_what_the_parts_are_added_to():
    a, x = np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    before = graph(
        a, x, part(0, (0, 2)), ("add", (2, 1)), part(0, (1, 3)), ("add", (3, 4)), ("add", (5, 1))
    )
    after = without_dead(passed(with_sums_of_parts, before, a, x))
    assert names(after).count("added") == 1
    assert "embed" not in names(after)


def test_a_padding_or_a_sum_that_is_asked_for_stays():
    a = np.array([1.0, 2.0])
    before = graph(
        a, part(0, (0, 2)), part(0, (1, 3)), ("add", (1, 2)), ("add", (3, 1)), outputs=(1, 3, 4)
    )
    passed(with_sums_of_parts, before, a)
    passed(optimised, before, a)


def test_one_padding_is_no_sum_of_several():
    a, x = np.array([1.0, 2.0]), np.arange(4.0)
    before = graph(a, x, part(0, (0, 2)), ("add", (2, 1)), ("add", (3, 1)))
    assert names(passed(with_sums_of_parts, before, a, x)) == names(before)


@pytest.mark.parametrize("name", ["mul", "sub", "maximum"])
def test_other_operations_on_paddings_stay(name):
    a = np.array([1.0, 2.0])
    before = graph(a, part(0, (0, 2)), part(0, (1, 3)), (name, (1, 2)))
    assert names(passed(with_sums_of_parts, before, a)) == names(before)


def test_a_sum_that_something_else_reads():
    a = np.array([1.0, 2.0])
    before = graph(a, part(0, (0, 2)), part(0, (1, 3)), ("add", (1, 2)), ("exp", (3,)))
    assert "embed" not in names(without_dead(passed(with_sums_of_parts, before, a)))


def test_paddings_that_are_broadcast_are_no_parts():
    a = np.array([1.0, 2.0])
    for wide in (np.arange(8.0).reshape(2, 4), np.arange(16.0).reshape(4, 4)):
        parts = [part(0, (0, 2)), part(0, (1, 3))]
        inside = graph(a, wide, *parts, ("add", (2, 3)), ("add", (4, 1)), ("neg", (5,)))
        outside = graph(a, wide, *parts, ("add", (1, 2)), ("add", (4, 3)), ("neg", (5,)))
        first = graph(a, wide, *parts, ("add", (3, 1)), ("add", (2, 4)), ("neg", (5,)))
        for before in (inside, outside, first):
            after = passed(with_sums_of_parts, before, a, wide)
            same_bits(executed(after, a, wide), run(before, a, wide))


def test_gradients_that_are_broadcast():
    def f(wide, v):
        first = tg.grad(lambda v: np.sum(np.sin(v[:2])))(v)
        return wide + first + tg.grad(lambda v: np.sum(np.sin(v[1:3])))(v)

    wide, v = np.arange(16.0).reshape(4, 4), np.linspace(0.1, 0.9, 4)
    np.testing.assert_allclose(tg.jit(f)(wide, v), f(wide, v), rtol=1e-14)


def test_bases_that_are_broadcast():
    a = np.array([1.0, 2.0])
    for base in (np.array(0.5), np.array([0.25])):
        parts = [part(0, (0, 2)), part(0, (1, 3))]
        inside = graph(a, base, *parts, ("add", (2, 3)), ("add", (4, 1)), ("neg", (5,)))
        outside = graph(a, base, *parts, ("add", (1, 2)), ("add", (4, 3)), ("neg", (5,)))
        for before in (inside, outside):
            after = passed(with_sums_of_parts, before, a, base)
            same_bits(executed(after, a, base), run(before, a, base))


def test_parts_that_lie_upon_each_other_and_special_values():
    a, x = SPECIAL[:4].copy(), SPECIAL[4:8].copy()
    whole = ("embed", (0,), {"index": (slice(None),), "shape": (4,)})
    before = graph(a, x, whole, part(1, (0, 4)), ("add", (2, 3)), ("add", (4, 1)), part(0, (0, 4)),
                   ("add", (5, 6)))  # fmt: skip
    passed(with_sums_of_parts, before, a, x)


def test_gradients_of_many_slices():
    f = lambda x: sum(np.sum(np.sin(x[k : k + 3]) * k) for k in range(5)) + np.sum(x * x)
    x = np.linspace(-1.0, 2.0, 8)
    found = tg.jit(tg.grad(f))(x)
    np.testing.assert_allclose(found, tg.grad(f)(x), rtol=1e-14)


test_random_programs = on_random_programs(with_sums_of_parts, alike=close)


def test_sums_of_complex_paddings_are_sums_of_their_parts():
    def roughness(z):
        return np.sum(np.abs(z[1:] - z[:-1]) ** 2) + np.abs(z[2])

    z = np.exp(1j * np.arange(40.0)) * np.linspace(0.5, 3.0, 40)  # too many for numbers
    slope = tg.grad(roughness)
    np.testing.assert_allclose(tg.jit(slope)(z), slope(z), rtol=1e-12)
    added = [node for node in tg.jit(slope).lower(z).graph.nodes if node.name == "added"]
    assert added
    assert all(node.dtype == float for node in added)
