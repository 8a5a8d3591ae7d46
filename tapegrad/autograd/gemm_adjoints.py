"""Adjoints of matrix products that the compiled sweep leaves, large or complex, by BLAS directly.

The rule in `ops.linalg` does the same for any number of dimensions; for matrices and vectors this
step saves its views.
"""

from __future__ import annotations

import numpy as np

from tapegrad.autograd.adjoints import Adjoints
from tapegrad.ops.linalg import matmul, product

CODE = matmul.code


def step(adjoints: Adjoints, index: int, g: np.ndarray) -> bool:
    """Hand the adjoint of ``a @ b`` on to matrices and vectors; False: it is another product."""
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
                b = entry[1].conj()
                out = _outer(g, b) if len(sb) == 1 else _dot(g, b.T)
            else:
                a = entry[0].conj()
                out = _outer(a, g) if len(sa) == 1 else _dot(a.T, g)
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
    total = flat.dot(flat)
    return None if total != total else out


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The strong product of vectors, or of a number and a vector."""
    out: np.ndarray = product.forward(a.reshape(-1, 1), b.reshape(1, -1))
    return out.reshape(a.shape + b.shape)
