"""Hessian-vector products by two passes over the tape of a function.

The forward pass computes tangents of results, the reverse pass adjoints together with their
tangents (forward over reverse).  Nothing is recorded; the values are those that the tape saved for
the plain sweep.

The passes support elementwise operations, linear ones, and products, all in float64.  For a tape
with anything else on it they give up, and the transforms take the general path, by dual values.
"""

from __future__ import annotations

import math

import numpy as np

from tapegrad.autograd.hvp_codegen import composed
from tapegrad.ops.quiet_errstate import quietly
from tapegrad.tape.record_format import SHAPE
from tapegrad.tape.tape import Tape, current
from tapegrad.tensor import Tensor

VECTORS_MOST = 8  # vectors up to which the passes are run however large the arrays are


def leaf_products(
    root: Tensor, leaf: Tensor, since: int, vs: np.ndarray
) -> tuple[np.ndarray | None, bool]:
    """The Hessian of a scalar in one leaf, unread before a position, times vectors.

    None: only the general path supports the tape; and whether to try again later.
    """
    tape = current.tape
    if leaf._pos not in tape.slots:
        return np.zeros(np.shape(vs)), True
    tape.sweeping += 1  # excludes compaction
    try:
        low, top = tape.index(since), tape.index(root._pos)
        if low < 0 or tape.last_mutation > since or max(tape.hooks, default=0) >= since:
            return None, False
        if len(vs) > VECTORS_MOST and _large(tape, low):
            return None, False  # the general path computes products with many vectors at once
        product, later = composed(tape, low, top, tape.slots[leaf._pos], leaf._a.shape)
        if product is None:
            return None, later
        found = np.empty(vs.shape)
        keep = tape.keep[low : top + 1]
        for k, v in enumerate(vs):
            bent = quietly(product, tape, low, keep, v)
            found[k] = 0.0 if bent is None else bent
    finally:
        tape.sweeping -= 1
    # A zero that met an infinity is NaN here, and zero by the general way.
    good = math.isfinite(np.vdot(found, found)) or bool(np.isfinite(found).all())
    return (found, True) if good else (None, False)


def _large(tape: Tape, low: int) -> bool:
    """Whether a result that was recorded from an index on is large: its shape's number is odd."""
    return bool((tape.words()[low:, SHAPE] & 1).any())
