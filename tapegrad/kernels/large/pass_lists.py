"""Describe work on a large array along dimensions as a list of passes for compiled code.

These are the loops that the other modules here call, with the arguments that they call them with,
for an operand and a result whose addresses are not known yet.  A pass calls a loop for each row,
and then divides the result.
"""

from __future__ import annotations

import struct
from typing import Any

from tapegrad.kernels.large.launching import GROUP, Array, known, loop
from tapegrad.kernels.large.softmax_and_norms import lengths
from tapegrad.native.abi import (
    ABSOLUTE,
    COPY,
    FROM_OPERAND,
    FROM_RESULT,
    Pass,
    PassArgument,
    PassList,
)
from tapegrad.ops import axis_layout
from tapegrad.ops.core import Op

Argument = tuple[int, int, int]  # of what it is an address, or a number; the number; its step


def passes(op: Op, x: Array, y: Array, params: dict[str, Any]) -> list[int]:
    """The words of a `PassList` for an operation on floats; [] where none is known."""
    if not known(x) or not y.flags.c_contiguous:
        return []
    if op.name == "clone":
        return _listed(x, _pass(COPY, 1, x.nbytes, []))
    dim = params["dim"]
    found = lengths(x.shape, params | {"dim": (dim,) if isinstance(dim, int) else dim})
    if found is None or found[2] != 1:
        return []
    rows, n = found[:2]
    if op.axis and op.decomposition is not None:
        from tapegrad.kernels.codegen import kernel_table

        kernel = kernel_table.large_axis_loop(op, False, "row", "f8" if x.itemsize == 8 else "f4")
        return _listed(x, _rows(kernel, rows, n, y, (ABSOLUTE, axis_layout.extra(params), 0)))
    if op.scans in ("add", "mul"):
        name = "running_sum" if op.scans == "add" else "running_product"
        return _listed(x, _rows(loop(name, x), rows, n, y))
    if op.name in ("sum", "mean"):
        by = float(x.dtype.type(n)) if op.name == "mean" else 1.0
        return _listed(x, _row_sums(x, y, rows, n, by))
    if op.name == "prod":
        return _listed(x, _rows(loop("multiply_up", x), rows, n, y), unsure=True)
    return []


def _listed(x: Array, found: list[int], unsure: bool = False) -> list[int]:
    count = len(found) // Pass.SIZE
    return PassList.words(count=count, elements=x.size, unsure=unsure) + found


def _rows(kernel: Any, rows: int, n: int, y: Array, *more: Argument, by: float = 1.0) -> list[int]:
    size = y.itemsize
    at = [(FROM_OPERAND, 0, size * n), (FROM_RESULT, 0, size * (y.size // rows)), *more]
    return _pass(kernel.address, rows, n, at, by)


def _row_sums(x: Array, y: Array, rows: int, n: int, by: float) -> list[int]:
    """The sums of all rows, divided by a number."""
    fours = rows // 4 if n <= GROUP else 0
    if fours < 4:
        return _rows(loop("add_up", x), rows, n, y, by=by)
    size, rest = x.itemsize, rows % 4
    step = size * n
    at = [(FROM_OPERAND, 0, 4 * step), (ABSOLUTE, step, 0), (FROM_RESULT, 0, 4 * size)]
    found = _pass(loop("add_four_up", x).address, fours, n, at, 1.0 if rest else by)
    if rest:
        at = [(FROM_OPERAND, 4 * fours * step, step), (FROM_RESULT, 4 * size * fours, size)]
        found += _pass(loop("add_up", x).address, rest, n, at, by)
    return found


def _pass(kernel: int, rows: int, n: int, at: list[Argument], by: float = 1.0) -> list[int]:
    none: Argument = (ABSOLUTE, 0, 0)
    given: list[int] = []
    for base, start, step in (*at, none, none, none)[:3]:
        given += PassArgument.words(base=base, start=start, step=step)
    divisor = struct.unpack("q", struct.pack("d", by))
    return Pass.words(kernel=kernel, rows=rows, length=n, arguments=given, divisor=divisor)
