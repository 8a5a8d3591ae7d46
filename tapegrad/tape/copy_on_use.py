"""Memory that a gradient shares with the weights it was computed from, until one of them is used.

Where nothing but views lie between a leaf and `y.backward(w)`, the gradient consists of the weights
themselves.  It is to have memory of its own, for whoever changes `w` later means `w` alone; but
most weights are never looked at again.  So both are marked, and the first that an operation, a view
or NumPy asks for gets a copy of its own.  Optimizers and sweeps, which read alone, ask for none.
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import getrefcount
from typing import Any

import numpy as np

from tapegrad.base.reference_counts import expected_count
from tapegrad.tape.shape_table import LARGE

_HELD, _OWNED = expected_count(0, holders=1), expected_count(1, holders=1)


class Shared:
    """The `_home` of a Tensor without history whose memory another one shares."""

    __slots__ = ()


SHARED = Shared()


def can_share(t: Any) -> bool:
    """Whether nobody but a Tensor without history, or what is marked so, refers to its memory."""
    if t._pos or t._a.base is not None or t._a.size <= LARGE or not t._a.flags.c_contiguous:
        return False
    return t._home is SHARED or (t._home is None and getrefcount(t._a) <= _HELD)


def shares(part: np.ndarray, whole: np.ndarray) -> bool:
    """Whether a gradient consists of weights, or of so much of them that a copy saves nothing."""
    same = part is whole or part.base is whole
    return same and part.flags.c_contiguous and 2 * part.nbytes >= whole.nbytes


def share(weights: Any, gradients: Iterable[Any]) -> None:
    """Mark weights and the gradients that lie in their memory."""
    for g in gradients:
        if g is not None and g._a.base is weights._a and not g._pos and g._home is None:
            g._home = weights._home = SHARED


def own(t: Any) -> None:
    """Give a Tensor that is marked memory of its own."""
    if t._home is not SHARED:
        return
    t._home = None
    owner = t._a if t._a.base is None else t._a.base
    if getrefcount(owner) > _OWNED:
        t._a = t._a.copy()
