"""SciPy's optimizers with exact derivatives, over arrays, numbers and pytrees of them.

SciPy is loaded when the first of these functions is called.  This package imports `transforms`.

>>> import numpy as np, tapegrad as tg
>>> def loss(p):
...     return np.sum((p["slope"] * np.arange(3.0) + p["offset"] - np.array([1.0, 3.0, 5.0])) ** 2)
>>> found = tg.optimize.minimize(loss, {"slope": 0.0, "offset": 0.0})
>>> {name: round(value, 4) for name, value in found.x.items()}
{'slope': 2.0, 'offset': 1.0}
"""

from tapegrad.base.public_names import dir_of
from tapegrad.optimize.minimizing import minimize
from tapegrad.optimize.residuals import least_squares

__all__ = ["least_squares", "minimize"]
__dir__ = dir_of(globals())
