"""Where elements stand and what is true of them: places, orders, counts.

These are constant almost everywhere and have no derivative; they are rows of the table because a
map has to shift their dimensions like any other's.  A single `dim` is an int, several are a tuple.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.core import NotDifferentiable, Op, custom

PLACES = NotDifferentiable("where an element stands is constant almost everywhere")
COUNTS = NotDifferentiable("what is true of elements is constant almost everywhere")


def _argsort(x: Any, *, dim: int, descending: bool) -> Any:
    """Equal elements keep their order; NaN counts as the largest."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    back = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return np.ascontiguousarray(np.flip(x.shape[dim] - 1 - back, dim))


def _truth(ufunc: Any) -> Any:
    def forward(x: Any, *, dim: tuple[int, ...], keepdim: bool) -> Any:
        kind = np.uint8 if x.dtype == np.uint8 else np.bool_  # PyTorch's one exception
        return np.asarray(ufunc.reduce(x.astype(bool), axis=dim, keepdims=keepdim), kind)

    return forward


argmax: Op = custom(
    "argmax", lambda x, *, dim, keepdim: np.argmax(x, axis=dim, keepdims=keepdim), x=PLACES
)
argmin: Op = custom(
    "argmin", lambda x, *, dim, keepdim: np.argmin(x, axis=dim, keepdims=keepdim), x=PLACES
)
argsort: Op = custom("argsort", _argsort, x=PLACES)
all: Op = custom("all", _truth(np.logical_and), x=COUNTS)
any: Op = custom("any", _truth(np.logical_or), x=COUNTS)
count_nonzero: Op = custom(
    "count_nonzero",
    lambda x, *, dim, keepdim: np.count_nonzero(x, axis=dim, keepdims=keepdim),
    x=COUNTS,
)
searchsorted: Op = custom(
    "searchsorted", lambda a, v, *, side: np.searchsorted(a, v, side), a=PLACES, v=PLACES
)
