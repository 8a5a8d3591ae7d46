"""Hold the derivatives of random programs against each other and against differences."""

import functools
import gc
import math
import traceback

import numpy as np
import pytest
from numba.core.errors import TypingError

from tapegrad.kernels import build
from tapegrad.njit.evaluation import Evaluator
from tapegrad.njit.marshalling import kinds_of
from tests.njit.checking import copied, difference, directions, floats
from tests.njit.random_programs import SHORT_ONES, RandomProgram, program

STEPS = 1e-6, 1e-7, 1e-5, 1e-8  # of differences; within one of them may lie a jump


def check_programs(seeds):
    """Check programs; yields the number of each with what was raised, or None.

    Most of them are not optimised, for which LLVM takes ten times as long as for the rest: what is
    tested is what it is given.  Nothing is kept on disk, and garbage, of which each leaves much,
    is collected after the last one.
    """
    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TAPEGRAD_CACHE", "0")
            assembled = build.assembled
            for seed in seeds:
                level = 0 if seed % (50 if seed < SHORT_ONES else 20) else 3
                patch.setattr(build, "assembled", functools.partial(assembled, level=level))
                error, (f, args) = None, program(seed)
                try:
                    check_program(f, args, np.random.default_rng(seed))
                except Exception as raised:
                    if not (isinstance(raised, TypingError) and is_refused(f, args)):
                        error = raised
                yield seed, error
    finally:
        gc.enable()


def is_refused(f, args):
    """Whether Numba does not compile a program."""
    try:
        f.compile(kinds_of(args))
    except TypingError:
        return True
    return False


def report(seed, error):
    """The text of a program, and what was raised."""
    trace = "".join(traceback.format_exception(error))
    return f"# Program {seed}\n{RandomProgram(seed).source()}\n{trace}"


def jumps(f, args, expected, last_bits):
    """Whether a comparison goes the other way if last bits change, of arguments or of functions."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        near = varied(args, last_bits, rng)
        for arguments, mathematics in ((near, math), (args, Varied(last_bits, rng))):
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(f.__globals__, "math", mathematics)
                change = abs(f(*copied(arguments)) - expected)
            if change > 1e6 * last_bits * (1 + abs(expected)):
                return True
    return False


def varied(args, last_bits, rng):
    """Arguments whose last bits have changed."""
    chosen = floats(args)
    return [
        x * (1 + last_bits * rng.normal(size=np.shape(x))) if k in chosen else x
        for k, x in enumerate(copied(args))
    ]


class Varied:
    """Python's `math`, of which each result has other last bits each time."""

    def __init__(self, last_bits, rng):
        self.last_bits, self.rng = last_bits, rng

    def __getattr__(self, name):
        function = getattr(math, name)
        return lambda *args: function(*args) * (1 + self.last_bits * self.rng.normal())


def is_ill_conditioned(tangent, args, last_bits):
    """Whether the derivative is another one if last bits of the arguments change."""
    rng = np.random.default_rng(0)
    found = [tangent(varied(args, last_bits, rng)) for _ in range(10)]
    return np.ptp(found) > 1e-3 * np.max(np.abs(found))


def check_program(f, args, rng):
    """Check one program.

    Its value is Python's; forward mode, reverse mode with what is restored and without, and
    forward over reverse mode agree; differences agree with the first and second derivatives.
    """
    narrow = any(getattr(x, "dtype", None) == np.float32 for x in args)
    same, close, last_bits = (1e-5, 1e-4, 1e-7) if narrow else (1e-11, 1e-9, 1e-15)
    along, chosen = directions(args, rng), floats(args)
    tangents = [along[k] for k in chosen]
    try:
        expected = f.py_func(*copied(args))
    except ValueError:  # of an infinity, of which `math` has no sine and Numba's has
        expected = f(*copied(args))
    evaluator = Evaluator(f, "grad")
    forward = evaluator.run(args, (), directions=along)
    if not np.isfinite(expected):
        np.testing.assert_equal(forward.value, expected)
        return
    if abs(forward.value - expected) > same * (1 + abs(expected)):
        assert jumps(f.py_func, args, expected, last_bits), (forward.value, expected)
        return
    both = evaluator.run(args, chosen, directions=along)
    for found in (*(evaluator.run(args, chosen, restores=r) for r in (True, False)), both):
        assert abs(found.value - expected) <= same * (1 + abs(expected))
        slope = dot(found.gradients, tangents)
        assert abs(slope - forward.tangent) <= close * largest(forward.tangent, found.gradients)
    assert abs(both.tangent - forward.tangent) <= close * largest(forward.tangent, both.gradients)
    if narrow:
        return
    slopes = [difference(f.py_func, copied(args), along, step) for step in STEPS]
    # Where all derivatives are tiny, what differences say is the rounding of values.
    rounding = 4 * np.finfo(float).eps * abs(expected) / max(STEPS)
    allowed = 2e-5 * largest(forward.tangent, both.gradients) + rounding
    if min(abs(s - forward.tangent) for s in slopes) > allowed:
        tangent = lambda near: evaluator.run(near, (), directions=along).tangent
        assert is_ill_conditioned(tangent, args, last_bits), (slopes, forward.tangent)
        return
    weights = [rng.normal(size=np.shape(d)) for d in tangents]

    def weighted(*near):
        return dot(evaluator.run(near, chosen).gradients, weights)

    curvatures = [difference(weighted, args, along, step) for step in STEPS]
    curvature = dot(both.gradient_tangents, weights)
    allowed = 1e-4 * largest(curvature, both.gradient_tangents, both.gradients) + rounding
    assert min(abs(c - curvature) for c in curvatures) <= allowed, (curvatures, curvature)


def dot(arrays, weights):
    return sum(np.sum(x * w) for x, w in zip(arrays, weights, strict=True))


def largest(*numbers):
    """The largest absolute value of numbers and lists of arrays."""
    arrays = [x for part in numbers for x in (part if isinstance(part, list) else [part])]
    return max([1e-12, *(np.max(np.abs(x), initial=0.0) for x in arrays)])
