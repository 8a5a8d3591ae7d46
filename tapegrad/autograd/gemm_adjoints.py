"""Adjoints of matrix products too large for the compiled sweep, by BLAS directly.

The rule in `ops.linalg` does the same for any number of dimensions; for matrices and vectors this
step saves its views.
"""

from __future__ import annotations

from math import isnan

import numpy as np

from tapegrad.autograd.adjoints import Adjoints
from tapegrad.ops.linalg import matmul, product

CODE = matmul.code


def step(adjoints: Adjoints, index: int, g: np.ndarray) -> bool:
    """Hand the adjoint of ``a @ b`` on to matrices and vectors; False: it is another product."""
    if g.dtype.kind == "c":  # whose operands would have to be conjugated
        return False
    tape = adjoints.tape
    row = tape.words()[index].tolist()
    entry = tape.keep[index]
    (sa, _), (sb, _) = entry[3][1]
    if len(sa) > 2 or len(sb) > 2:
        return False
    found: list[tuple[int, np.ndarray]] = []
    for code, left in ((row[1], True), (row[2], False)):
        if code and adjoints.wanted(code):
            if left:
                out = _outer(g, entry[1]) if len(sb) == 1 else _dot(g, entry[1].T)
            else:
                out = _outer(entry[0], g) if len(sa) == 1 else _dot(entry[0].T, g)
            if out is None:
                return False
            found.append((code, out))
    for code, out in found:
        adjoints.give(code if code < 0 else tape.index(code), out)
    return True


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """A product of matrices and vectors; None where it may differ from the strong one."""
    out: np.ndarray = a.dot(b)
    flat = out.ravel()
    return None if isnan(flat.dot(flat)) else out


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The strong product of vectors, or of a number and a vector."""
    out: np.ndarray = product.forward(a.reshape(-1, 1), b.reshape(1, -1))
    return out.reshape(a.shape + b.shape)
