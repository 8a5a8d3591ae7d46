"""Derivatives with known values, computed in each of the ways that there are."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tapegrad as tg
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.native import install

LIMIT = 10  # seconds, for all checks together
TOLERANCE = 1e-12
POINT = np.array([0.0, 0.5, 1.0, 2.0])
SLOPE = np.sin(POINT) + POINT * np.cos(POINT)
CURVATURE = 2 * np.cos(POINT) - POINT * np.sin(POINT)


class Impossible(Exception):
    """A check that cannot be done here, which is no fault."""


def wave(x: Any) -> Any:
    """The function that is differentiated: its slope is `SLOPE`."""
    return np.sum(x * np.sin(x))


Results = list[tuple[Any, Any]]  # what was computed, and what it should be


def on_tape() -> Results:
    """By operations on Tensors and a sweep."""
    x = tg.tensor(POINT, requires_grad=True)
    (x * tg.sin(x)).sum().backward()
    assert x.grad is not None
    return [(x.grad.numpy(), SLOPE), (tg.grad(wave)(POINT), SLOPE)]


def second_order() -> Results:
    """By a recorded sweep."""
    return [(tg.hessian(wave)(POINT), np.diag(CURVATURE))]


def natively() -> Results:
    """By native code, which takes a call over when it has seen it some times."""
    if not install.possible():
        raise Impossible("there is no native code for this interpreter and machine")
    if not install.install(compiling=False):
        raise Impossible("not compiled yet: python -m tapegrad compile")
    found = [on_tape() for _ in range(20)]
    assert native_calls.sweep is not None
    return found[-1]


def compiled() -> Results:
    """By one compiled function for value and gradient."""
    value, gradient = tg.jit(tg.value_and_grad(wave))(POINT)
    return [(value, wave(POINT)), (gradient, SLOPE)]


def inside_njit() -> Results:
    """By the same, called from a function that Numba has compiled."""
    from tapegrad.kernels.flags import from_python

    slope = tg.jit(tg.grad(wave)).njit

    def through(x: Any) -> Any:
        return slope(x)

    return [(from_python(through)(POINT), SLOPE)]


CHECKS: dict[str, Callable[[], Results]] = {
    "a compiled gradient": compiled,
    "a compiled gradient inside @njit": inside_njit,
    "a gradient on the tape": on_tape,
    "a second derivative": second_order,
    "a gradient in native code": natively,
}


def check() -> int:
    """Do all checks, with a line each; returns 1 where one fails."""
    failed = 0
    for name, compute in CHECKS.items():
        print(f"{name}: ", end="", flush=True)
        started = time.perf_counter()
        fault = None
        try:
            fault = next(_faults(compute()), None)
        except Impossible as reason:
            print(reason)
            continue
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
        failed |= fault is not None
        print(f"FAILED: {fault}" if fault else f"right ({time.perf_counter() - started:.1f} s)")
    return int(failed)


def _faults(results: Results) -> Iterator[str]:
    for found, expected in results:
        if np.shape(found) != np.shape(expected):
            yield f"got the shape {np.shape(found)}, expected {np.shape(expected)}"
        elif not (error := np.max(np.abs(found - expected))) < TOLERANCE:
            yield f"differs from the known values by {error:.1e}"


def check_in_time() -> int:
    """`check` in a process of its own, which may crash, and is ended after some seconds."""
    command = [sys.executable, "-m", "tapegrad", "check"]
    try:
        code = subprocess.run(command, timeout=LIMIT).returncode
    except subprocess.TimeoutExpired:
        print(f"ended after {LIMIT} s: `python -m tapegrad check` takes the time that it needs")
        return 1
    if code not in (0, 1):
        print(f"FAILED: the process ended with {code}")
    return int(code != 0)
