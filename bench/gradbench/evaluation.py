"""What an eval is: an objective written once for every library, and the same by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numba
import numpy as np

from bench.problem import TooLong, Unsupported
from bench.sides import Numba
from bench.sides.side import Side

Input = Mapping[str, Any]
"""What GradBench sends: the JSON object of one evaluation."""
Call = Callable[[], Any]
Function = Callable[..., Any]

# The yard stick may add up in any order, as whoever writes a loop by hand for speed has it do.
FAST = {"reassoc", "contract", "nsz", "arcp"}
compiled = numba.njit(error_model="numpy", fastmath=FAST, cache=True)
# A function that calls itself crashes when Numba takes it from its cache.
compiled_anew = numba.njit(error_model="numpy", fastmath=FAST)


@dataclass(frozen=True, slots=True)
class Instance:
    """One input, read: arrays to differentiate in, other arrays, and what is no array."""

    inputs: tuple[np.ndarray, ...]
    data: tuple[np.ndarray, ...] = ()
    static: dict[str, Any] = field(default_factory=dict)


def gradient(ad: Any, xp: Any, objective: Function, count: int) -> Function:
    """Return the gradient of an objective in its first `count` arguments, as a tuple."""
    return ad.grad(objective, argnums=tuple(range(count)))


@dataclass(frozen=True, slots=True)
class Eval:
    """One problem of GradBench.

    Parameters
    ----------
    functions
        GradBench's names of the two functions, the primal first.
    objective
        Called as ``objective(xp, *inputs, *data, **static)``, where `xp` has NumPy's names.
    read, generate
        From GradBench's JSON to an instance; from a generator and sizes to such JSON.
    primal_by_hand, gradient_by_hand
        Both as one writes them for speed, called with the inputs, the data and what is static.
    derivative
        Makes the second function of the objective: called with the library's transforms, its
        names, the objective without `xp`, and how many arguments are inputs.
    shown
        From what each function returns, as NumPy arrays, and the JSON input, to JSON.
    standard, small
        The sizes that GradBench is usually run at, and sizes for tests.
    scalars
        How many scalar operations the objective is made of, if it is written over scalars.
    pilots
        Two smaller sizes, if a program without loops would be as long as there are data: what
        compilers take for these tells what they would take.
    length
        How long such a program is, in any unit.
    dense
        Whether the derivative is a Jacobian of many columns: its time is no multiple of the
        primal's that compares with a gradient's.
    """

    name: str
    functions: tuple[str, str]
    objective: Function
    read: Callable[[Input], Instance]
    generate: Callable[..., dict[str, Any]]
    primal_by_hand: Function
    gradient_by_hand: Function
    shown: tuple[Callable[[Any, Input], Any], Callable[[Any, Input], Any]]
    standard: dict[str, int]
    small: dict[str, int]
    derivative: Callable[..., Function] = gradient
    scalars: Callable[[Instance], int] = lambda _: 0
    pilots: tuple[dict[str, int], ...] = ()
    length: Callable[[Instance], int] = lambda _: 0
    dense: bool = False

    def bound(self, ad: Any, xp: Any, instance: Instance) -> tuple[Function, Function]:
        """Return the primal and its derivative in a library, as functions of arrays alone."""

        def primal(*arrays: Any) -> Any:
            return self.objective(xp, *arrays, **instance.static)

        return primal, self.derivative(ad, xp, primal, len(instance.inputs))

    def by_hand(self, instance: Instance) -> tuple[Call, Call]:
        """Return calls of the primal and its derivative as they were written by hand."""
        given = *instance.inputs, *instance.data, *instance.static.values()
        return partial(self.primal_by_hand, *given), partial(self.gradient_by_hand, *given)

    def ready(self, side: Side, instance: Instance) -> tuple[Call, Call]:
        """Return calls of both in a library, or raise `Unsupported`."""
        if isinstance(side, Numba):
            return self.by_hand(instance)
        if not hasattr(side.ad, "jvp"):
            raise Unsupported(f"{side.name} does not differentiate arrays")
        if self.scalars(instance) > side.most_scalars:
            raise TooLong("takes minutes to compile")
        arrays = [side.array(x) for x in (*instance.inputs, *instance.data)]
        primal, derivative = self.bound(side.ad, side.xp, instance)
        return partial(side.compile(primal), *arrays), partial(side.compile(derivative), *arrays)

    def instance(self, sizes: Mapping[str, int], seed: int) -> Instance:
        """Return an instance of these sizes: the same one for everyone."""
        return self.read(self.generate(np.random.default_rng(seed), **sizes))


def doubles(values: Any) -> np.ndarray:
    """Read numbers from JSON."""
    return np.array(values, dtype=np.float64)


def number(value: Any, given: Input) -> float:
    """Show a number."""
    return float(value)


def first(value: Any, given: Input) -> Any:
    """Show the only array of a tuple, flat."""
    return np.ravel(value[0]).tolist()


def as_numpy(result: Any) -> Any:
    """Return a result, an array or a tuple of them, with NumPy's arrays for the library's."""
    if isinstance(result, tuple | list):
        return tuple(as_numpy(part) for part in result)
    return np.asarray(result)


def largest_difference(got: Any, expected: Any) -> float:
    """Return how far two results are apart, relative to the greatest element of each array."""
    if isinstance(expected, tuple):
        return max(largest_difference(x, y) for x, y in zip(got, expected, strict=True))
    if got.shape != expected.shape:
        return math.inf
    scale = max(1.0, np.max(np.abs(expected), initial=0.0))
    error = float(np.max(np.abs(got - expected), initial=0.0) / scale)
    return math.inf if math.isnan(error) else error
