"""The Dirichlet distribution, with the functions of `scipy.stats.dirichlet`.

>>> import numpy as np
>>> import tapegrad.compat.autograd.scipy.stats.dirichlet as dirichlet
>>> from tapegrad.compat.autograd import grad
>>> grad(dirichlet.logpdf)(np.array([0.25, 0.75]), np.array([2.0, 4.0]))
array([4., 4.])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.compat.autograd.scipy import special
from tapegrad.compat.autograd.scipy._rules import composed, scipy


@composed("stats.dirichlet.logpdf")
def logpdf(x: Any, alpha: Any) -> Any:
    """The logarithm of the density; the parts that sum up to 1 lie along the first dimension.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.scipy.stats import dirichlet
    >>> float(dirichlet.logpdf(np.array([0.5, 0.5]), np.array([1.0, 1.0])))
    0.0
    """
    weights = (alpha - 1) * np.log(x).T
    total = special.gammaln(np.sum(alpha)) - np.sum(special.gammaln(alpha))
    return np.sum(weights, axis=-1) + total


@composed("stats.dirichlet.pdf")
def pdf(x: Any, alpha: Any) -> Any:
    """The density.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.scipy.stats import dirichlet
    >>> float(dirichlet.pdf(np.array([0.5, 0.5]), np.array([1.0, 1.0])))
    1.0
    """
    return np.exp(logpdf(x, alpha))


def rvs(alpha: Any, size: Any = 1, random_state: Any = None) -> Any:
    """Random numbers.

    >>> from tapegrad.compat.autograd.scipy.stats import dirichlet
    >>> dirichlet.rvs([1.0, 1.0]).shape
    (1, 2)
    """
    return scipy("stats.dirichlet.rvs")(alpha, size, random_state)


__all__ = ["logpdf", "pdf", "rvs"]
