"""Numba: the loops by hand, and NumPy code as Numba compiles it. It differentiates nothing."""

from __future__ import annotations

from typing import Any

import numpy as np


class Numba:
    """Numba's `njit`."""

    ad = None
    xp = np
    most_scalars = float("inf")

    def __init__(self, name: str, module: Any) -> None:
        self.name, self.version, self.compile = name, module.__version__, module.njit

    def set_threads(self, count: int) -> None:
        """Do nothing: what is compiled here uses one."""

    def array(self, x: Any) -> Any:
        return x
