"""NumPy and SciPy as they are: nothing compiled, nothing differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Names:
    """NumPy's functions, and SciPy's where NumPy has none."""

    def __init__(self) -> None:
        from scipy import special

        self.sigmoid, self.erf = special.expit, special.erf

    def softplus(self, x: Any) -> Any:
        """The logarithm of 1 + exp(x)."""
        return np.logaddexp(x, 0.0)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class Scipy:
    """NumPy and SciPy."""

    ad = None
    most_scalars = float("inf")

    def __init__(self, name: str, module: Any) -> None:
        self.name, self.version, self.xp = name, module.__version__, Names()

    def set_threads(self, count: int) -> None:
        """Do nothing: elementwise functions use one."""

    def array(self, x: Any) -> Any:
        return x

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return f
