"""Describe work on a large array along dimensions as a list of passes for compiled code.

These are the loops that `reduce_loops` and `row_loops` call, with the arguments that they call
them with, for an operand and a result whose addresses are not known yet.  A pass calls a loop for
each row, and then divides the result, or takes its square root.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tapegrad.kernels.large.launching import GROUP, SHORT, Array, blocks, known, loop
from tapegrad.kernels.large.row_loops import along_rows
from tapegrad.native.abi import (
    ABSOLUTE,
    COPY,
    FROM_OPERAND,
    FROM_RESULT,
    Pass,
    PassArgument,
    PassList,
)
from tapegrad.ops import reduce as r
from tapegrad.ops.core import Op
from tapegrad.parallel.large_elementwise import address

_ROW_LOOPS = {
    r.softmax: "softmax", r.log_softmax: "log_softmax", r.logsumexp: "log_sum_exp",
    r.cumsum: "running_sum",
}  # fmt: skip
_NO_CENTRE = np.zeros(1)
Argument = tuple[int, int, int]  # of what it is an address, or a number; the number; its step


def passes(op: Op, x: Array, y: Array, params: dict[str, Any]) -> list[int]:
    """The words of a `PassList` for an operation on float64 arrays; [] where none is known."""
    if not known(x) or x.itemsize != 8 or not y.flags.c_contiguous:
        return []
    if op.name == "clone":
        return _listed(x, _pass(COPY, 1, x.size, []))
    dim = params["dim"]
    if op in _ROW_LOOPS:
        return _whole_rows(_ROW_LOOPS[op], x, y, dim)
    found = blocks(x, (dim,) if isinstance(dim, int) else dim)
    if found is None or found[2] != 1 or found[1] < SHORT:
        return []
    rows, n = found[:2]
    if op.name in ("sum", "mean"):
        return _listed(x, _row_sums(x, rows, n, n if op.name == "mean" else 1.0))
    if op.name == "prod":
        return _listed(x, _row_totals("multiply_up", x, rows, n), unsure=True)
    if op.name == "norm" and params["p"] == 2:
        centre = ABSOLUTE, address(_NO_CENTRE), 0
        return _listed(x, _row_totals("square_up", x, rows, n, centre, root=True))
    if op.name in ("var", "std"):
        centre, freedom = (FROM_RESULT, 0, 8), max(n - params["correction"], 0)
        squares = _row_totals("square_up", x, rows, n, centre, by=freedom, root=op.name == "std")
        return _listed(x, _row_sums(x, rows, n, n) + squares)
    return []


def _listed(x: Array, found: list[int], unsure: bool = False) -> list[int]:
    count = len(found) // Pass.SIZE
    return PassList.words(count=count, elements=x.size, unsure=unsure) + found


def _whole_rows(name: str, x: Array, y: Array, dim: Any) -> list[int]:
    dims = (dim,) if isinstance(dim, int) else dim
    found = along_rows(name, x, dims[0]) if len(dims) == 1 else None
    if found is None:
        return []
    kernel, rows, n = found
    at = [(FROM_OPERAND, 0, 8 * n), (FROM_RESULT, 0, 8 * y.size // rows)]
    return _listed(x, _pass(kernel.address, rows, n, at))


def _row_totals(
    name: str, x: Array, rows: int, n: int, *more: Argument, by: float = 1.0, root: bool = False
) -> list[int]:
    at = [(FROM_OPERAND, 0, 8 * n), *more, (FROM_RESULT, 0, 8)]
    return _pass(loop(name, x).address, rows, n, at, by, root)


def _row_sums(x: Array, rows: int, n: int, by: float) -> list[int]:
    """The sums of all rows, divided by a number."""
    fours = rows // 4 if n <= GROUP else 0
    if fours < 4:
        return _row_totals("add_up", x, rows, n, by=by)
    step, rest = 8 * n, rows % 4
    at = [(FROM_OPERAND, 0, 4 * step), (ABSOLUTE, step, 0), (FROM_RESULT, 0, 32)]
    found = _pass(loop("add_four_up", x).address, fours, n, at, 1.0 if rest else by)
    if rest:
        at = [(FROM_OPERAND, 4 * fours * step, step), (FROM_RESULT, 32 * fours, 8)]
        found += _pass(loop("add_up", x).address, rest, n, at, by)
    return found


def _pass(
    kernel: int, rows: int, n: int, at: list[Argument], by: float = 1.0, root: bool = False
) -> list[int]:
    none: Argument = (ABSOLUTE, 0, 0)
    given: list[int] = []
    for base, start, step in (*at, none, none, none)[:3]:
        given += PassArgument.words(base=base, start=start, step=step)
    divisor = struct.unpack("q", struct.pack("d", by))
    return Pass.words(
        kernel=kernel, rows=rows, length=n, arguments=given, divisor=divisor, root=root
    )
