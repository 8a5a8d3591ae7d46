"""The Dirichlet distribution, as autograd has it: `tapegrad.scipy.stats.dirichlet`.

>>> import numpy as np
>>> import tapegrad.compat.autograd.scipy.stats.dirichlet as dirichlet
>>> from tapegrad.compat.autograd import grad
>>> grad(dirichlet.logpdf)(np.array([0.25, 0.75]), np.array([2.0, 4.0]))
array([4., 4.])
"""

from typing import Any as _Any

from tapegrad.scipy.stats import dirichlet as _dirichlet

logpdf = _dirichlet.logpdf
pdf = _dirichlet.pdf


def rvs(alpha: _Any, size: _Any = 1, random_state: _Any = None) -> _Any:
    """Random numbers, which SciPy draws.

    >>> from tapegrad.compat.autograd.scipy.stats import dirichlet
    >>> dirichlet.rvs([1.0, 1.0]).shape
    (1, 2)
    """
    return _dirichlet.rvs(alpha, size, random_state)


__all__ = ["logpdf", "pdf", "rvs"]
