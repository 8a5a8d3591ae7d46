"""Large arrays along dimensions by loops that are made of an operation's row (`axis_codegen`).

Rows and strips of columns are shared among threads; of a few long rows each pass over one is.
Results are None where NumPy's forward, or the rule on whole arrays, does it.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from tapegrad.kernels.large.launching import SHORT, Array, blocks, by_parts, known
from tapegrad.ops import axis_layout
from tapegrad.ops.core import Op
from tapegrad.ops.reduce import remaining
from tapegrad.parallel import large_elementwise
from tapegrad.parallel.large_elementwise import address, launch


class Plan(NamedTuple):
    """How loops go over arrays of one shape."""

    outer: int
    n: int
    inner: int
    extra: int
    by_row: list[int]  # bytes from one row to the next, of each array
    steps: list[int]  # from one element to the next
    loop: Any  # for rows, or for columns


def forward(op: Op, x: Array, **params: Any) -> Any:
    """The result of an operation that has a decomposition."""
    plan = _plan(op, False, x.shape, x.itemsize, tuple(params.items())) if known(x) else None
    if plan is None:
        return None
    shape = x.shape
    if op.axis == "reduce":
        shape = remaining(shape, params["dim"], params["keepdim"])
    y = np.empty(shape, x.dtype)
    _run(op, False, plan, [address(x), address(y)], x.dtype)
    return y


def adjoint(op: Op, g: Array, x: Any, y: Any, params: dict[str, Any]) -> Any:
    """The adjoint of the operand; x and y are None where the rule does not read them."""
    like = y if x is None and op.axis == "keep" else x
    if not known(like) or g.dtype != like.dtype:
        return None
    plan = _plan(op, True, like.shape, like.itemsize, tuple(params.items()))
    if plan is None:
        return None
    out = np.empty(like.shape, like.dtype)
    arrays = [None if a is None else np.ascontiguousarray(a) for a in (g, x, y)]
    at = [0 if a is None else address(a) for a in arrays]
    _run(op, True, plan, [*at, address(out)], like.dtype)
    return out


def lengths(shape: tuple[int, ...], params: dict[str, Any]) -> tuple[int, int, int] | None:
    """Outer, reduced and inner length, where rows or columns are long enough for a loop."""
    found = blocks(shape, params["dim"]) if axis_layout.extra(params) >= 0 else None
    if found is None:
        return None
    _, n, inner = found
    return found if (n if inner == 1 else inner) >= SHORT else None


@lru_cache(4096)
def _plan(op: Op, back: bool, shape: tuple[int, ...], size: int, given: Any) -> Plan | None:
    from tapegrad.kernels.codegen import axis_codegen, kernel_table

    params = dict(given)
    found = lengths(shape, params) if not back or axis_codegen.has_adjoint(op) else None
    if found is None:
        return None
    outer, n, inner = found
    keep = op.axis == "keep"
    each = [keep, True, keep, True] if back else [True, keep]
    by_row = [*[size * inner * (n if e else 1) for e in each], 0, 0, 0]
    steps = [*[size if e or inner > 1 else 0 for e in each], 0, 0, 0]
    layout: axis_codegen.Layout = "row" if inner == 1 else "columns"
    loop = partial(kernel_table.large_axis_loop, op, back, layout, "f8" if size == 8 else "f4")
    return Plan(outer, n, inner, axis_layout.extra(params), by_row, steps, loop)


def _run(op: Op, back: bool, plan: Plan, at: list[int], dtype: np.dtype[Any]) -> None:
    """Fill the last of the arrays that a loop takes."""
    outer, n, inner, extra, by_row, steps, loop = plan
    at.append(extra)
    if inner > 1:
        launch(loop(), outer, inner, [*at, n, inner], by_row, steps, weight=n)
    elif outer >= large_elementwise.get_num_threads() or n < 2 * large_elementwise.SPLIT:
        launch(loop(), outer, n, at, by_row)
    else:
        for row in range(outer):
            here = [a + row * step for a, step in zip(at, by_row)]
            _run_passes(op, back, plan, here, dtype)


def _run_passes(op: Op, back: bool, plan: Plan, at: list[int], dtype: np.dtype[Any]) -> None:
    """Share each pass over one row among threads; the next knows what all parts were reduced to."""
    from tapegrad.kernels.codegen import axis_codegen

    n, steps, each = plan.n, plan.steps, plan.steps[len(at) - 2]
    passes = axis_codegen.reductions(op, back)
    reduced: list[Any] = [n]
    for k in range(len(passes) + 1):
        kernel, given = plan.loop(k), np.array(reduced, dtype)
        if k == len(passes):
            launch(kernel, 1, n if each else 1, [*at, address(given)], [], steps)
        else:
            here = [*at, address(given)]
            parts = by_parts(kernel, n, here, steps[: len(here)], len(passes[k]), dtype)
            reduced += [ufunc.reduce(part) for ufunc, part in zip(passes[k], parts.T)]
