"""Ordinary differential equations.

>>> import numpy as np
>>> from tapegrad.compat.autograd import grad
>>> from tapegrad.compat.autograd.scipy.integrate import odeint
>>> decay = lambda y, t, rate: -rate * y
>>> f = lambda rate: odeint(decay, np.ones(1), np.array([0.0, 1.0]), (rate,))[-1, 0]
>>> float(round(grad(f)(0.5), 4))
-0.6065
"""

from __future__ import annotations

import importlib
from typing import Any

from tapegrad.scipy.integrate import odeint


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("scipy.integrate"), name)


__all__ = ["odeint"]
