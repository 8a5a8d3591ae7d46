"""Long sequences of records become few runs, which say what is in them."""

import pytest

from tapegrad.show.folding import LIMIT, runs

pytestmark = pytest.mark.tapegrad_only("about this project's pictures")


def covered(found):
    return [k for run in found for k in range(run.start, run.end)]


def test_few_records_stay_as_they_are():
    ops = ["mul"] * LIMIT
    assert [run.end - run.start for run in runs(ops)] == [1] * LIMIT


def test_what_repeats_is_one_run():
    ops = ["exp", *["sin", "mul", "add"] * 200, "sum"]
    found = runs(ops)
    assert covered(found) == list(range(len(ops)))
    assert [run.title(ops) for run in found] == ["exp", "sin, mul, add", "sum"]
    assert found[1].detail == "200 times, 600 records"


def test_what_does_not_repeat_is_joined_with_its_neighbours(rng):
    ops = [str(k) for k in rng.integers(0, 10**6, 1000)]
    found = runs(ops)
    assert covered(found) == list(range(len(ops)))
    assert len(found) <= LIMIT
    assert found[0].end - found[0].start == 1 == found[-1].end - found[-1].start
    assert found[LIMIT // 2].detail.endswith(" records")
    assert found[LIMIT // 2].title(ops).endswith(" more")


def test_some_stay_alone(rng):
    alone = {100, 101, 555}
    for ops in ([str(k) for k in rng.integers(0, 10**6, 1000)], ["sin", "mul"] * 500):
        found = runs(ops, alone)
        assert covered(found) == list(range(len(ops)))
        assert alone <= {run.start for run in found if run.end - run.start == 1}
