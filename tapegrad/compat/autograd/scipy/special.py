"""SciPy's own `scipy.special`, whose ufuncs take Tensors; what is no ufunc is here.

>>> import tapegrad.compat.autograd.scipy.special as special, numpy as np
>>> from tapegrad.compat.autograd import grad
>>> grad(special.logsumexp)(np.zeros(2)), grad(special.gammaln)(1.0)
(array([0.5, 0.5]), -0.5772156649015329)
"""

import importlib as _importlib
from typing import Any as _Any

from tapegrad.scipy.special import logsumexp, multigammaln, polygamma


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):  # Python's import asks for `__path__`, and SciPy is loaded when used
        raise AttributeError(name)
    return getattr(_importlib.import_module("scipy.special"), name)


def __dir__() -> list[str]:
    return dir(_importlib.import_module("scipy.special"))


__all__ = ["logsumexp", "multigammaln", "polygamma"]
