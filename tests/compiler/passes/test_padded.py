"""Sums of paddings: what becomes one record, and what is computed from it."""

import numpy as np
import pytest

from tapegrad.compiler.passes import optimised
from tapegrad.compiler.passes.dead import without_dead
from tapegrad.compiler.passes.padded import with_sums_of_parts
from tests.compiler.graphs import graph, names, passed
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


test_random_programs = on_random_programs(with_sums_of_parts, alike=close)
