"""SciPy's own `scipy.linalg`, with rules for what NumPy does not have.

>>> import numpy as np
>>> import tapegrad.compat.autograd.scipy.linalg as linalg
>>> from tapegrad.compat.autograd import grad
>>> grad(lambda a: np.trace(linalg.sqrtm(a)))(4.0 * np.eye(2))
array([[0.25, 0.  ],
       [0.  , 0.25]])
"""

from __future__ import annotations

import importlib
from typing import Any

from tapegrad.scipy.linalg import solve_banded, solve_sylvester, solve_triangular, sqrtm


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("scipy.linalg"), name)


def __dir__() -> list[str]:
    return dir(importlib.import_module("scipy.linalg"))


__all__ = ["solve_banded", "solve_sylvester", "solve_triangular", "sqrtm"]
