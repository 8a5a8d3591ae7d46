"""Adjoints of large reductions in one or two passes, beside their rules.

Each function takes the adjoint of the result, the operand, the result and the parameters, and gives
the adjoint of the operand, or None where only the rule can.  A test holds each to its rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.kernels.large.launching import SHORT, Array, blocks, known, loop, row_sums
from tapegrad.kernels.large.row_loops import along_rows
from tapegrad.ops import reduce as r
from tapegrad.ops.core import Op
from tapegrad.parallel.large_elementwise import address, launch

Params = dict[str, Any]


def _rows_of(x: Any, dim: tuple[int, ...]) -> tuple[int, int] | None:
    found = blocks(x, dim) if known(x) else None
    return None if found is None or found[2] != 1 or found[1] < SHORT else found[:2]


def _softmax(name: str) -> Callable[..., Any]:
    def pull(g: Array, x: Any, y: Array, params: Params) -> Any:
        found = along_rows(name, y, params["dim"][0]) if len(params["dim"]) == 1 else None
        if found is None:
            return None
        kernel, rows, n = found
        g, out = np.ascontiguousarray(g), np.empty_like(y)
        launch(kernel, rows, n, [address(g), address(y), address(out)], [n * y.itemsize] * 3)
        return out

    return pull


def _by_rows(
    name: str, x: Array, rows: int, n: int, before: list[Array], after: list[Array]
) -> Array:
    """Run a loop whose arguments are x, the result, and numbers, of which each row has one."""
    out = np.empty_like(x)
    size = x.itemsize
    arrays = [*before, x, *after, out]
    whole = [a is x or a is out for a in arrays]
    by_row = [n * size if w else size if a.size == rows else 0 for a, w in zip(arrays, whole)]
    by_element = [size if w else 0 for w in whole]
    numbers = [np.ascontiguousarray(a) for a in arrays]
    launch(loop(name, x), rows, n, [address(a) for a in numbers], by_row, by_element)
    return out


def _logsumexp(g: Array, x: Array, y: Array, params: Params) -> Any:
    found = _rows_of(x, params["dim"])
    return None if found is None else _by_rows("log_sum_exp_adjoint", x, *found, [g], [y])


def _extreme(g: Array, x: Array, y: Array, params: Params) -> Any:
    found = _rows_of(x, params["dim"])
    if found is None:
        return _extreme_in_columns(g, x, y, params)
    rows, n = found
    arrays = [np.ascontiguousarray(a) for a in (g, y)]
    out = np.empty_like(x)
    size = x.itemsize
    at = [address(arrays[0]), address(x), address(arrays[1]), address(out)]
    launch(loop("share", x), rows, n, at, [size, n * size, size, n * size])
    return out


def _extreme_in_columns(g: Array, x: Array, y: Array, params: Params) -> Any:
    found = blocks(x, params["dim"]) if known(x) else None
    if found is None or found[0] != 1 or found[2] < SHORT:
        return None
    _, rows, n = found
    g, y = [np.ascontiguousarray(a).reshape(n) for a in (g, y)]
    size = x.itemsize
    count, out = np.empty(n, x.dtype), np.empty_like(x)
    at = [rows, n * size, address(x), address(y), address(count)]
    launch(loop("count_in_columns", x), 1, n, at, [], [0, 0, size, size, size], weight=rows)
    if not count.all():  # NaN equals nothing
        return None
    part = g / count
    at = [rows, n * size, address(part), address(x), address(y), address(out)]
    steps = [0, 0, size, size, size, size]
    launch(loop("place_in_columns", x), 1, n, at, [], steps, weight=rows)
    return out


def _spread(g: Array, x: Array, params: Params) -> Any:
    found = _rows_of(x, params["dim"])
    if found is None:
        return None
    rows, n = found
    if n <= params["correction"]:
        return None
    centre = row_sums(x, rows, n) / x.dtype.type(n)
    scale = np.full(1, 1.0 / (n - params["correction"]), x.dtype)
    return _by_rows("deviate", x, rows, n, [g], [centre, scale])


def _var(g: Array, x: Array, y: Array, params: Params) -> Any:
    return _spread(g * x.dtype.type(2), x, params)


def _std(g: Array, x: Array, y: Array, params: Params) -> Any:
    with np.errstate(all="ignore"):
        return _spread(np.where(y == 0, x.dtype.type(0), g / y), x, params)


def _norm(g: Array, x: Array, y: Array, params: Params) -> Any:
    found = _rows_of(x, params["dim"]) if params["p"] == 2 else None
    if found is None or ((y != 0) & (y < 8 * np.finfo(y.dtype).tiny)).any():
        return None
    with np.errstate(all="ignore"):
        scale = np.where(y == 0, x.dtype.type(0), 1 / y)
    return _by_rows("deviate", x, *found, [g], [np.zeros(1, x.dtype), scale])


PULLBACKS: dict[Op, Callable[..., Any]] = {
    r.amax: _extreme, r.amin: _extreme, r.logsumexp: _logsumexp, r.norm: _norm, r.std: _std,
    r.log_softmax: _softmax("log_softmax_adjoint"), r.softmax: _softmax("softmax_adjoint"),
    r.var: _var,
}  # fmt: skip
