"""Random programs, reverse against forward mode, with and without memory that is restored.

TAPEGRAD_TRIALS says how many, TAPEGRAD_FIRST which is the first.
"""

import functools
import os

import numpy as np
import pytest

from tapegrad.kernels import build
from tapegrad.njit.evaluation import Evaluator
from tests.njit.checking import copied, directions
from tests.njit.random_programs import program

pytestmark = pytest.mark.tapegrad_only("no other library has this")
TRIALS, FIRST = (
    int(os.environ.get("TAPEGRAD_TRIALS", "0")),
    int(os.environ.get("TAPEGRAD_FIRST", "0")),
)
CHUNK = 10


def check_quickly(seed):
    """Check a program; most of them unoptimised: what is tested is what LLVM is given."""
    with pytest.MonkeyPatch.context() as patch:
        if seed % 5:
            patch.setattr(build, "assembled", functools.partial(build.assembled, level=1))
        check_program(seed)


def jumps(f, args, expected):
    """Whether a comparison goes the other way if the last bits of the arguments change."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        near = [x if x is args[3] else x * (1 + 1e-15 * rng.normal(size=np.shape(x))) for x in args]
        if abs(f(*near) - expected) > 1e-9 * (1 + abs(expected)):
            return True
    return False


def check_program(seed):
    f, args = program(seed)
    along = directions(args, np.random.default_rng(seed))
    expected = f.py_func(*copied(args))
    evaluator = Evaluator(f, "grad")
    forward = evaluator.run(args, (), directions=along)
    if abs(forward.value - expected) > 1e-11 * (1 + abs(expected)):
        assert jumps(f.py_func, args, expected), (forward.value, expected)
        return
    for restores in (True, False):
        found = evaluator.run(args, (0, 1, 2), restores=restores)
        dot = sum(np.sum(g * d) for g, d in zip(found.gradients, along[:3], strict=True))
        size = max([1e-12, abs(forward.tangent), *(np.max(np.abs(g)) for g in found.gradients)])
        assert abs(found.value - expected) <= 1e-11 * (1 + abs(expected))
        assert abs(dot - forward.tangent) <= 1e-9 * size


@pytest.mark.parametrize("start", range(FIRST, FIRST + (TRIALS or 20), CHUNK))
def test_random_programs(start):
    for seed in range(start, start + CHUNK):
        check_quickly(seed)
