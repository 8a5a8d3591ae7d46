"""The adjoint step of matrix products that are too large for the walk: straight to BLAS.

The rule in `ops.linalg` says the same for any number of dimensions; for the two that are met most
this step saves its views.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from tapegrad.ops.core import table

if TYPE_CHECKING:
    from tapegrad.autograd.sweep import Sweep

CODE = table["matmul"].code


def step(sweep: Sweep, index: int, g: np.ndarray) -> bool:
    """Hand the adjoint of ``a @ b`` on to two matrices; False when it is another product."""
    tape = sweep.tape
    row = tape.words()[index].tolist()
    entry = tape.keep[index]
    (sa, _), (sb, _) = entry[3][1]
    if len(sa) != 2 or len(sb) != 2:
        return False
    found: list[tuple[int, np.ndarray]] = []
    for code, left in ((row[1], True), (row[2], False)):
        if code and sweep._wanted(code):
            out = g.dot(entry[1].T) if left else entry[0].T.dot(g)
            flat = out.ravel()
            if isnan(flat.dot(flat)):  # perhaps a zero against an infinity: the rule knows
                return False
            found.append((code, out))
    for code, out in found:
        sweep.give(code if code < 0 else tape.index(code), out)
    return True
