"""Least squares by LAPACK's four drivers.

The one array of the row has the solution (at least one column of it) over a row that begins with
the rank, and, of the drivers that find them, the singular values as a column below.

The derivative is that of ``pinv(a) @ b`` at constant rank (Golub and Pereyra 1973).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.ops.core import OWN, Op, custom
from tapegrad.ops.factorizations import columns, rows
from tapegrad.ops.linalg import adjoint, product
from tapegrad.ops.lu_factors import routine
from tapegrad.ops.solve import LinAlgError, not_converged, pinv

WITH_VALUES = ("gelsd", "gelss")


def layout(m: int, n: int, k: int, driver: str) -> tuple[int, int]:
    """The shape of the one array."""
    return n + 1 + (min(m, n) if driver in WITH_VALUES else 0), max(k, 1)


@lru_cache(256)
def work_lengths(driver: str, dtype: Any, m: int, n: int, k: int) -> tuple[int, ...]:
    """The lengths of LAPACK's work arrays."""
    *lengths, _ = routine(f"{driver}_lwork", dtype)(m, n, k, *[0.1] * (driver == "gelsy"))
    return tuple(int(np.real(length)) for length in lengths)


def _solved(a: Any, b: Any, rcond: float, driver: str) -> tuple[Any, int, Any]:
    """The solution, the rank and the singular values of one matrix."""
    (m, n), k = a.shape, b.shape[1]
    right = np.zeros((max(m, n), k), b.dtype, order="F")
    right[:m] = b
    room = work_lengths(driver, a.dtype, m, n, k)
    call = routine(driver, a.dtype)
    if driver == "gelsy":
        _, x, _, rank, info = call(a, right, np.zeros(n, np.int32), rcond, *room)
    elif driver == "gelsd":
        x, values, rank, info = call(a, right, *room, rcond)
    elif driver == "gelss":
        _, x, values, rank, _, info = call(a, right, rcond, *room)
    else:
        _, x, info = call(a, right, lwork=room[0])
        rank = min(m, n)
        if info > 0:
            raise LinAlgError(
                f"`linalg.lstsq`: a matrix of the shape {a.shape} has not full rank, which the "
                "driver 'gels' needs: use 'gelsy', 'gelsd' or 'gelss'"
            )
    if info > 0:
        raise not_converged("lstsq", a)
    return x[:n], rank, values if driver in WITH_VALUES else None


def _lstsq(a: Any, b: Any, *, rcond: float, driver: str) -> Any:
    (m, n), k = a.shape[-2:], b.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.zeros((*batch, *layout(m, n, k, driver)), b.dtype)
    if not (m and n and out.size):
        return out
    aa, bb = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    if not k:
        bb = np.zeros((*batch, m, 1), b.dtype)
    for at in np.ndindex(*batch):
        found, rank, values = _solved(aa[at], bb[at], rcond, driver)
        one = out[at]
        one[:n], one[n, 0] = found, rank
        if values is not None:
            one[n + 1 :, 0] = values
    return out


def _parts(g: Any, a: Any, b: Any, y: Any) -> tuple[Any, Any]:
    n, k = a.shape[-1], b.shape[-1]
    return columns(rows(g, 0, n), 0, k), columns(rows(y, 0, n), 0, k)


def _inverse(a: Any, rcond: float, driver: str) -> Any:
    return pinv(a, atol=0.0, rtol=0.0 if driver == "gels" else max(rcond, 0.0))


def _of_matrix(g: Any, a: Any, b: Any, y: Any, rcond: float, driver: str) -> Any:
    # dx = p da-terms of d(p) b, with p = pinv(a):
    # -p da x + p ph dah (b - a x) + (1 - p a) dah ph x
    gx, x = _parts(g, a, b, y)
    p = _inverse(a, rcond, driver)
    ph = adjoint(p)
    w = product(ph, gx)
    left = gx - product(adjoint(a), w)
    return (
        product(b - product(a, x), adjoint(product(p, w)))
        + product(product(ph, x), adjoint(left))
        - product(w, adjoint(x))
    )


def _of_right(g: Any, a: Any, b_spec: Any, rcond: float, driver: str) -> Any:
    gx = columns(rows(g, 0, a.shape[-1]), 0, b_spec.shape[-1])
    return product(adjoint(_inverse(a, rcond, driver)), gx)


lstsq: Op = custom(
    "lstsq", _lstsq, a=_of_matrix, b=_of_right, grad_name="LinalgLstsq", complex=OWN, lapack=True
)
