"""Convolution along some dimensions, as autograd has it.

>>> import numpy as np
>>> from tapegrad.compat.autograd import grad
>>> from tapegrad.compat.autograd.scipy.signal import convolve
>>> grad(lambda a: np.sum(convolve(a, np.array([1.0, 2.0]))))(np.ones(3))
array([3., 3., 3.])
"""

from tapegrad.scipy.convolution import convolve

__all__ = ["convolve"]
