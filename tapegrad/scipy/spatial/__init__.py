"""`scipy.spatial` for Tensors: distances between points.

>>> import tapegrad as tg
>>> x = tg.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
>>> tg.scipy.spatial.distance_matrix(x, [[0.0, 0.0]])
tensor([[0.],
        [5.]], grad_fn=<LinalgVectorNormBackward0>)
"""

import importlib as _importlib
from typing import Any as _Any

from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.spatial.distance import cdist as _cdist
from tapegrad.tensor import Tensor

__all__ = ["distance", "distance_matrix"]


@_for_tensors("scipy.spatial")
def distance_matrix(x: _Any, y: _Any, p: float = 2, threshold: int = 1_000_000) -> Tensor:
    """The distances in the p-norm of each point of `x` from each of `y`.

    >>> import tapegrad as tg
    >>> tg.scipy.spatial.distance_matrix(tg.tensor([[0.0, 0.0]]), [[3.0, 4.0]], p=1)
    tensor([[7.]])
    """
    return _cdist(x, y, "minkowski", p=p)


def __getattr__(name: str) -> _Any:
    if name == "distance":
        return _importlib.import_module("tapegrad.scipy.spatial.distance")
    return _theirs("scipy.spatial", name)
