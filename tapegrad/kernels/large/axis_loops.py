"""Large arrays along dimensions by loops that are made of an operation's row (`axis_codegen`).

Rows and strips of columns are shared among threads; of a few long rows each pass over one is.
Results are None where NumPy's forward, or the rule on whole arrays, does it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.large.launching import SHORT, Array, blocks, by_parts, known
from tapegrad.ops import axis_layout
from tapegrad.ops.core import Op
from tapegrad.ops.reduce import remaining
from tapegrad.parallel import large_elementwise
from tapegrad.parallel.large_elementwise import address, launch


def forward(op: Op, x: Array, **params: Any) -> Any:
    """The result of an operation that has a decomposition."""
    found = placed(x, params)
    if found is None:
        return None
    shape = x.shape
    if op.axis == "reduce":
        shape = remaining(shape, params["dim"], params["keepdim"])
    y = np.empty(shape, x.dtype)
    _run(op, False, found, {"x": x, "out": y}, axis_layout.extra(params))
    return y


def adjoint(op: Op, g: Array, x: Any, y: Any, params: dict[str, Any]) -> Any:
    """The adjoint of the operand; x and y are None where the rule does not read them."""
    from tapegrad.kernels.codegen import axis_codegen

    like = y if x is None and op.axis == "keep" else x
    found = placed(like, params) if axis_codegen.has_adjoint(op) else None
    if found is None or g.dtype != like.dtype:
        return None
    out = np.empty(like.shape, like.dtype)
    given = {"g": g, "x": x, "y": y}
    arrays = {k: None if a is None else np.ascontiguousarray(a) for k, a in given.items()}
    _run(op, True, found, arrays | {"out": out}, axis_layout.extra(params))
    return out


def placed(x: Any, params: dict[str, Any]) -> tuple[int, int, int] | None:
    """Outer, reduced and inner length, where rows or columns are long enough for a loop."""
    if not known(x) or axis_layout.extra(params) < 0:
        return None
    found = blocks(x, params["dim"])
    if found is None:
        return None
    _, n, inner = found
    return found if (n if inner == 1 else inner) >= SHORT else None


def _run(
    op: Op, back: bool, lengths: tuple[int, int, int], arrays: dict[str, Any], extra: int
) -> None:
    """Fill the last of the arrays, those that a loop takes, which lie row by row or are None."""
    from tapegrad.kernels.codegen import kernel_table

    outer, n, inner = lengths
    dtype, size = ("f8", 8) if arrays["out"].itemsize == 8 else ("f4", 4)
    at = [0 if a is None else address(a) for a in arrays.values()]
    each = [a is not None and a.size == outer * n * inner for a in arrays.values()]
    by_row = [*[size * inner * (n if e else 1) for e in each], 0, 0, 0]
    at.append(extra)
    if inner > 1:
        kernel = kernel_table.axis_loop(op, back, "columns", dtype)
        steps = [*[size] * len(each), 0, 0, 0]
        launch(kernel, outer, inner, [*at, n, inner], by_row, steps, weight=n)
    elif outer >= large_elementwise.get_num_threads() or n < 2 * large_elementwise.SPLIT:
        launch(kernel_table.axis_loop(op, back, "row", dtype), outer, n, at, by_row)
    else:
        for row in range(outer):
            here = [a + row * step for a, step in zip(at, by_row)]
            _run_passes(op, back, n, here, [size if e else 0 for e in each], arrays["out"].dtype)


def _run_passes(
    op: Op, back: bool, n: int, at: list[int], steps: list[int], dtype: np.dtype[Any]
) -> None:
    """Share each pass over one row among threads; the next knows what all parts were reduced to."""
    from tapegrad.kernels.codegen import axis_codegen, kernel_table

    passes = axis_codegen.reductions(op, back)
    reduced: list[Any] = [n]
    for k in range(len(passes) + 1):
        name = "f8" if dtype.itemsize == 8 else "f4"
        kernel, given = kernel_table.axis_loop(op, back, "row", name, k), np.array(reduced, dtype)
        if k == len(passes):
            launch(kernel, 1, n if steps[-1] else 1, [*at, address(given)], [], [*steps, 0, 0])
        else:
            parts = by_parts(kernel, n, [*at, address(given)], steps, len(passes[k]), dtype)
            reduced += [ufunc.reduce(part) for ufunc, part in zip(passes[k], parts.T)]
