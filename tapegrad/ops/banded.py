"""Systems of linear equations with a matrix in banded form, as LAPACK and SciPy store it.

Element ``(i, j)`` of the matrix stands at ``[above + i - j, j]``: a row for each diagonal, the
highest one first, in which the corners that no element fills are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegrad.ops.core import ANALYTIC, Op, custom
from tapegrad.ops.lu_factors import routine
from tapegrad.ops.reduce import sum as sum_
from tapegrad.ops.shape import embed, getitem, stack
from tapegrad.ops.solve import LinAlgError


def _banded_solve(ab: Any, b: Any, *, below: int, above: int) -> Any:
    batch = np.broadcast_shapes(ab.shape[:-2], b.shape[:-2])
    out = np.empty((*batch, *b.shape[-2:]), b.dtype)
    if not out.size:
        return out
    bands = np.broadcast_to(ab, (*batch, *ab.shape[-2:]))
    right = np.broadcast_to(b, out.shape)
    if below == above == 1 and b.shape[-2] > 1:
        solver = routine("gtsv", b.dtype)
        for at in np.ndindex(*batch):
            up, diagonal, down = bands[at]
            *_, out[at], info = solver(down[:-1], diagonal, up[1:], right[at])
            _check(info, ab)
        return out
    solver = routine("gbsv", b.dtype)
    room = np.zeros((2 * below + above + 1, ab.shape[-1]), b.dtype, order="F")
    for at in np.ndindex(*batch):
        room[below:] = bands[at]
        *_, out[at], info = solver(below, above, room, right[at])
        _check(info, ab)
    return out


def _check(info: int, ab: Any) -> None:
    if info > 0:
        raise LinAlgError(
            f"`linalg.solve_banded`: a matrix in banded form, of shape {ab.shape}, is singular: "
            "only matrices of full rank can be solved with"
        )


def _diagonals(below: int, above: int, n: int) -> Iterator[tuple[int, slice, slice]]:
    """Of each row of the banded form its place, and the rows and columns that its elements have."""
    for k, down in enumerate(range(-above, below + 1)):
        rows, columns = ((max(d, 0), min(n, n + d)) for d in (down, -down))
        if rows[0] < rows[1]:
            yield k, slice(*rows), slice(*columns)


def _rows(found: dict[int, Any], count: int, like: Any) -> Any:
    """The rows of a banded form; those without elements are zero."""
    zero = like * 0.0 if len(found) < count else None
    return stack(*[found.get(k, zero) for k in range(count)], dim=len(like.shape) - 1)


def transposed_bands(ab: Any, below: int, above: int) -> Any:
    """The transpose of a matrix, both in banded form."""
    *batch, _, n = ab.shape
    found = {}
    for k, rows, columns in _diagonals(above, below, n):
        piece = getitem(ab, index=(..., below + above - k, rows))
        found[k] = embed(piece, shape=(*batch, n), index=(..., columns))
    return _rows(found, below + above + 1, getitem(ab, index=(..., 0, slice(None))))


def _bands_of_product(v: Any, x: Any, below: int, above: int) -> Any:
    """The elements of ``v x^T`` that stand in the bands."""
    *batch, n, _ = x.shape
    found = {}
    for k, rows, columns in _diagonals(below, above, n):
        every = slice(None)
        pair = getitem(v, index=(..., rows, every)) * getitem(x, index=(..., columns, every))
        last = len(pair.shape) - 1
        piece = sum_(pair, dim=(last,), keepdim=False)
        found[k] = embed(piece, shape=(*batch, n), index=(..., columns))
    return _rows(found, below + above + 1, getitem(x, index=(..., 0)))


banded_solve: Op = custom(
    "banded_solve",
    _banded_solve,
    complex=ANALYTIC,
    ab=lambda g_b, y, below, above: -_bands_of_product(g_b, y, below, above),
    b=lambda g, ab, below, above: banded_solve(
        transposed_bands(ab, below, above), g, below=above, above=below
    ),
    grad_name="LinalgSolveBanded",
    lapack=True,
)
