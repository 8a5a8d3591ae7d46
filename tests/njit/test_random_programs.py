"""Random programs: forward mode, reverse mode, second derivatives, differences.

TAPEGRAD_TRIALS says how many, TAPEGRAD_FIRST which is the first.
"""

import os

import pytest

from tests.njit.random_checks import check_programs, report

pytestmark = pytest.mark.tapegrad_only("no other library has this")
TRIALS, FIRST = (
    int(os.environ.get("TAPEGRAD_TRIALS", "500")),
    int(os.environ.get("TAPEGRAD_FIRST", "0")),
)
CHUNK = 25


@pytest.mark.parametrize("start", range(FIRST, FIRST + TRIALS, CHUNK))
def test_random_programs(start):
    for seed, error in check_programs(range(start, start + CHUNK)):
        if error is not None:
            pytest.fail(report(seed, error))
