"""Sylvester's equation, ``a x + x b = q``, by the method of Bartels and Stewart."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.core import ANALYTIC, Op, custom
from tapegrad.ops.linalg import product, transposed
from tapegrad.ops.lu_factors import routine
from tapegrad.ops.solve import LinAlgError


def _schur(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The triangular form ``t`` and the unitary ``v`` of ``a = v t v^H``."""
    if not np.isfinite(a).all():
        raise ValueError(f"`linalg.solve_sylvester`: a matrix of shape {a.shape} has NaN or inf")
    t, *_, v, _, info = routine("gees", a.dtype)(_all, a)
    if info:
        raise LinAlgError(
            f"`linalg.solve_sylvester`: LAPACK finds no eigenvalues of a matrix of shape {a.shape}"
        )
    return t, v


def _all(*eigenvalue: float) -> bool:
    """LAPACK asks which eigenvalues come first, where the order matters: here it does not."""
    return True


def _sylvester(a: Any, b: Any, q: Any) -> Any:
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in (a, b, q)))
    out = np.empty((*batch, *q.shape[-2:]), q.dtype)
    if not out.size:
        return out
    many_a, many_b, many_q = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, q))
    for at in np.ndindex(*batch):
        (r, u), (s, v) = _schur(many_a[at]), _schur(many_b[at])
        y, scale, _ = routine("trsyl", q.dtype)(r, s, u.conj().T @ many_q[at] @ v)
        out[at] = u @ (scale * y) @ v.conj().T
    return out


sylvester: Op = custom(
    "sylvester",
    _sylvester,
    complex=ANALYTIC,
    a=lambda g_q, y: -product(g_q, transposed(y)),
    b=lambda g_q, y: -product(transposed(y), g_q),
    q=lambda g, a, b: sylvester(transposed(a), transposed(b), g),
    grad_name="ScipyLinalgSolveSylvester",
    lapack=True,
)
