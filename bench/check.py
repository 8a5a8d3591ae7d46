"""Nothing is timed that has not been checked: values, gradients and updates must agree."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bench.libraries import Library, Outcome, Run
from bench.problem import SEED, Problem, Unsupported

VALUE_TOLERANCE = 1e-10
GRADIENT_TOLERANCE = 1e-9
DIFFERENCE_TOLERANCE = 1e-5
NARROW_TOLERANCE = 1e-4  # of anything in float32
# Divided by the root of the number of elements, so that hardly any of them crosses a kink.
DIFFERENCE_STEP = 1e-6


class Disagreement(Exception):
    """Two computations of the same thing differ."""


def checked(problem: Problem, libraries: list[Library]) -> dict[str, Run]:
    """Return the problem ready in each library that supports it, after comparing them.

    Values are held to NumPy's where it has the operations, gradients to central differences of
    those values along one random direction, second derivatives to those of the gradients, and all
    libraries to the first.
    """
    runs: dict[str, Run] = {}
    outcomes: dict[str, Outcome] = {}
    for library in libraries:
        try:
            run = library.prepare(problem)
            outcomes[library.name] = run.outcome()
        except Unsupported:
            continue
        runs[library.name] = run
    if not outcomes:
        raise Unsupported(f"{problem.name}: no library has it")
    first, expected = next(iter(outcomes.items()))
    for name, outcome in outcomes.items():
        _hold(f"{problem.name}: {name}'s value and {first}'s", outcome.value, expected.value)
        rough = outcome.differences or expected.differences
        for field in ("gradients", "inputs"):
            got, want = getattr(outcome, field), getattr(expected, field)
            for i, (x, y) in enumerate(zip(got, want, strict=True)):
                label = f"{problem.name}: {field}[{i}] of {name} and of {first}"
                _hold(label, x, y, DIFFERENCE_TOLERANCE if rough else GRADIENT_TOLERANCE)
    if problem.transform in ("hessian", "hvp"):
        _against_gradients(problem, next(x for x in libraries if x.name == first), expected)
    else:
        _against_numpy(problem, first, expected)
    return runs


def _against_numpy(problem: Problem, name: str, outcome: Outcome) -> None:
    """Compare with NumPy's value and with differences of it, in float64."""
    if problem.methods:
        return
    least = NARROW_TOLERANCE if problem.dtype == np.float32 else 0.0
    problem = problem if problem.dtype == np.float64 else problem.astype(np.dtype(np.float64))
    try:
        value = _numpy_value(problem)
    except Unsupported:
        return
    _hold(f"{problem.name}: {name}'s value and NumPy's", outcome.value, value)
    if not problem.gradient:
        return
    rng = np.random.default_rng(SEED + 1)
    directions = [rng.standard_normal(x.shape) for x in problem.inputs]

    def along(t: float) -> np.ndarray:
        moved = tuple(x + t * d for x, d in zip(problem.inputs, directions))
        return _numpy_value(replace(problem, inputs=moved))

    weights = problem.weights(value.shape)
    step = DIFFERENCE_STEP / math.sqrt(max(x.size for x in problem.inputs))
    change = (along(step) - along(-step)) / (2 * step)
    difference = np.sum(weights * change)
    products = [g * d for g, d in zip(outcome.gradients, directions)]
    slope = sum(float(np.sum(p)) for p in products)
    # The sum may cancel: what it is a sum of says how exact it can be, and what the two values
    # are made of says how much of their rounding the division by the step brings out.
    scale = sum(float(np.linalg.norm(p)) for p in products)
    rounding = np.finfo(float).eps * float(np.sum(np.abs(weights * value))) / step
    tolerance = max(DIFFERENCE_TOLERANCE, least) * max(scale, abs(difference)) + rounding
    if not abs(slope - difference) <= tolerance:
        raise Disagreement(
            f"{problem.name}: slope {slope} by {name}'s gradient, {difference} by differences"
        )


def _against_gradients(problem: Problem, library: Library, outcome: Outcome) -> None:
    """Compare second derivatives along the vector with differences of the library's gradients."""
    (x,), v = problem.inputs, problem.vector()
    step = DIFFERENCE_STEP / math.sqrt(x.size)

    def along(t: float) -> np.ndarray:
        moved = replace(problem, inputs=(x + t * v,), transform="grad")
        return library.prepare(moved).outcome().gradients[0]

    (found,) = outcome.gradients
    change = (along(step) - along(-step)) / (2 * step)
    label = f"{problem.name}: {problem.transform} by {library.name} and by differences"
    slope = found @ v if problem.transform == "hessian" else found
    _hold(label, slope, change, DIFFERENCE_TOLERANCE)


def _numpy_value(problem: Problem) -> np.ndarray:
    if problem.transform:
        return np.asarray(problem.function(np, list(problem.inputs), list(problem.data)))
    import scipy.special

    from bench.numpy_names import NumpyNames

    xp = NumpyNames(np, scipy.special)
    return np.asarray(problem.function(xp, list(problem.inputs), list(problem.data)))


def _hold(
    label: str, got: np.ndarray, expected: np.ndarray, tolerance: float = VALUE_TOLERANCE
) -> None:
    """Raise unless two arrays have one shape and agree, relative to the greatest element."""
    if got.shape != expected.shape:
        raise Disagreement(f"{label} have the shapes {got.shape} and {expected.shape}")
    if not got.size:
        return
    if got.dtype in (np.float32, np.complex64):
        tolerance = max(tolerance, NARROW_TOLERANCE)
    kind = np.result_type(got.dtype, expected.dtype, np.float64)
    got, expected = got.astype(kind), expected.astype(kind)
    error = np.max(np.abs(got - expected))
    if not error <= tolerance * max(1.0, np.max(np.abs(expected))):
        raise Disagreement(f"{label} differ by {error}")
