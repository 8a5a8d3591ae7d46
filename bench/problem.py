"""What a benchmark problem is: a function of arrays, written once for every library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

SEED = 20240229


class Unsupported(Exception):
    """A library's answer when it has no such operation or no gradient for it."""


class TooLong(Unsupported):
    """The same when it would take too long to compile; it says how long."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A function to differentiate and the arrays to do it at.

    Parameters
    ----------
    function
        Called as ``function(xp, inputs, data)``, where ``xp`` has PyTorch's names and the other
        two are lists of the library's own arrays. Its result may have any shape. With a
        `transform` the names are NumPy's, and the result is a scalar.
    inputs, data
        The arrays that gradients are asked for, and those that are constants.
    rate
        If given, one step ends with ``x -= rate * gradient`` for each input.
    gradient
        Whether the function has a gradient at all (a comparison has none).
    methods
        Whether the function calls methods that only PyTorch's tensors have.
    transform
        What is made of the function: "grad", "hessian", "hvp"; empty: `backward` is called.
    """

    name: str
    function: Callable[[Any, list[Any], list[Any]], Any]
    inputs: tuple[np.ndarray, ...]
    data: tuple[np.ndarray, ...] = ()
    rate: float | None = None
    gradient: bool = True
    methods: bool = False
    transform: str = ""

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The type that the function is computed in."""
        return self.inputs[0].dtype

    def astype(self, dtype: np.dtype[np.floating]) -> Problem:
        """Return the problem in another type of floats; indices and masks stay as they are."""
        inputs, data = (
            tuple(x.astype(dtype) if x.dtype.kind == "f" else x for x in xs)
            for xs in (self.inputs, self.data)
        )
        return replace(self, name=f"{self.name}, {dtype}", inputs=inputs, data=data)

    def weights(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the result's cotangent: one for a scalar, else the same draw for everyone."""
        kind = np.empty((), self.dtype).real.dtype
        if not shape:
            return np.ones((), kind)
        return np.random.default_rng(SEED).uniform(0.5, 1.5, shape).astype(kind)

    def vector(self) -> np.ndarray:
        """Return what a Hessian is multiplied by: the same draw for everyone."""
        return np.random.default_rng(SEED + 2).standard_normal(self.inputs[0].shape)
