"""Adjoints of large elementwise records: one fused pass per input, on all threads.

Elementwise records go through kernels generated from their formulas, for any broadcasting that two
dimensions describe, operations along dimensions through loops generated from their rules.
Everything else is left to the rule on whole arrays.
"""

from __future__ import annotations

import math
from sys import getrefcount
from typing import Any

import numpy as np

from tapegrad.autograd.adjoints import Adjoints
from tapegrad.autograd.pullback import Saved
from tapegrad.base.compile_stages import NotCompiled
from tapegrad.base.reference_counts import expected_count
from tapegrad.kernels.broadcast_plan import Grid, core, grid
from tapegrad.kernels.sweep import sweep_abi
from tapegrad.ops.core import ELEMENTWISE, Formula, Op, by_code
from tapegrad.ops.elementwise import squared_difference
from tapegrad.ops.shape import getitem, sum_to
from tapegrad.parallel.large_elementwise import (
    ROW_OF_PASSES,
    address,
    call_rows,
    launch,
    row_steps,
    split,
)
from tapegrad.tape.record_format import CODE_MASK, LISTED

# The places of a grid: three operands, the adjoint, the result, the adjoints of the operands.
G, Y, OUT = 3, 4, 5
OURS = expected_count(variables=2, holders=1)  # references to an adjoint that the sweep holds
GROUP = 64  # rows that are added up in one go, at least


def step(adjoints: Adjoints, index: int, word: int, g: np.ndarray) -> bool:
    """Do one record, of this word, by kernels; False if they do not support it."""
    if word & LISTED or g.dtype.char not in "df":
        return False
    tape = adjoints.tape
    op = by_code[word & CODE_MASK]
    if op.name == "mse_loss":
        saved = Saved(tape, index, False)
        shape, dtype = saved.spec(0)
        size = math.prod(shape)
        if size <= sweep_abi.SMALL:
            return False
        scale = 1 / size if saved.params["mean"] else 1.0
        g = np.broadcast_to(np.asarray(g * scale, dtype), shape)
        op = squared_difference
        wanted = [k for k, code in enumerate(saved.codes) if code and adjoints.wanted(code)]
        return _elementwise(adjoints, op, saved, wanted, g)
    if op.kind is ELEMENTWISE:
        if g.size <= sweep_abi.SMALL:
            return False
        saved = Saved(tape, index, False)
        wanted = [k for k, code in enumerate(saved.codes) if code and adjoints.wanted(code)]
        return _elementwise(adjoints, op, saved, wanted, g)
    if op is getitem:
        return _part(adjoints, Saved(tape, index, False), g)
    if not op.axis:
        return False
    saved = Saved(tape, index, False)
    from tapegrad.kernels.large import softmax_and_norms

    try:
        found = softmax_and_norms.adjoint(op, g, saved.entry[0], saved.entry[-1], saved.params)
    except NotCompiled:
        return False
    if found is None:
        return False
    _hand_on(adjoints, saved.codes[0], found)
    return True


def _part(adjoints: Adjoints, saved: Saved, g: np.ndarray) -> bool:
    """Add the adjoint of a part where it stands, if there is an adjoint of the whole already: rows
    of `unbind` would each make one.
    """
    code = saved.codes[0]
    key = code if code < 0 else adjoints.tape.index(code)
    adjoint = adjoints.in_arena(key, saved.spec(0))
    if adjoint is None:
        adjoint = adjoints.values.get(key)
        if adjoint is None or not _is_ours(adjoint):
            return False
    adjoint[saved.params["index"]] += g
    return True


def _is_ours(adjoint: np.ndarray) -> bool:
    """Whether an adjoint that the sweep holds, and a variable of the caller, may be written."""
    if adjoint.base is not None or getrefcount(adjoint) > OURS:
        return False
    return adjoint.flags.c_contiguous and adjoint.flags.writeable


def _hand_on(adjoints: Adjoints, code: int, found: Any) -> None:
    adjoints.add(code if code < 0 else adjoints.tape.index(code), found)


def _passes(op: Op, k: int) -> bool:
    """Whether the adjoint of an operand is that of the result, as of a summand."""
    formula = op.formulas[k]
    return isinstance(formula, Formula) and not formula.reads and formula.function() == 1


def _elementwise(
    adjoints: Adjoints, op: Op, saved: Saved, wanted: list[int], g: np.ndarray
) -> bool:
    codes, specs = saved.codes, {k: saved.spec(k) for k in wanted}
    if any(specs[k].dtype != g.dtype for k in wanted):
        return False
    if all(_passes(op, k) for k in wanted):
        for k in wanted:
            _hand_on(adjoints, codes[k], sum_to(g, shape=specs[k].shape))
        return True
    values = _values(op, saved.entry, wanted, g)
    if values is None:
        return False
    shapes = [g.shape if value is None else value.shape for value in values] + [g.shape] * 3
    for k in wanted:
        shapes[OUT + k] = specs[k].shape
    plan = grid(tuple(shapes), g.shape)
    if plan is None or (plan.rows > 1 and plan.n < ROW_OF_PASSES):
        return False
    if not (plan.fixed(Y) if len(op.inputs) == 4 else plan.whole(Y)):
        return False
    kernels = _pullbacks(op, wanted, plan, values)
    if kernels is None:
        return False
    for k in wanted:
        if _passes(op, k):
            _hand_on(adjoints, codes[k], sum_to(g, shape=shapes[OUT + k]))
        elif plan.whole(OUT + k):
            _whole(adjoints, codes[k], kernels[k], plan, values, shapes[OUT + k])
        else:
            found = _reduced(kernels[k], plan, values, OUT + k)
            _hand_on(adjoints, codes[k], found.reshape(shapes[OUT + k]))
    return True


def _values(op: Op, entry: Any, wanted: list[int], g: np.ndarray) -> list[Any] | None:
    """What the formulas read, each in its place, if a loop can read it."""
    values: list[Any] = [None] * 5
    values[G] = core(g)
    if not values[G].flags.c_contiguous:
        values[G] = np.ascontiguousarray(values[G])
    read = {name for k in wanted for name in op.formulas[k].reads}
    # Of four operands the last one, a number, stands where else the result does.
    for i, name in enumerate(op.inputs if len(op.inputs) == 4 else (*op.inputs, "y")):
        if name in read:
            value = entry[i] if entry is not None else None
            if type(value) is not np.ndarray:
                return None
            if value.dtype != g.dtype and not (name == "condition" and value.dtype.char == "?"):
                return None
            seen = core(value)
            if not seen.flags.c_contiguous:
                return None
            values[Y if name == "y" or i == 3 else i] = seen
    return values


def _pullbacks(op: Op, wanted: list[int], plan: Grid, values: list[Any]) -> dict[int, Any] | None:
    """The kernel of each operand, if there are all."""
    from tapegrad.kernels.codegen import kernel_table

    kernels, dtype = {}, "f8" if values[G].itemsize == 8 else "f4"
    for k in wanted:
        scalars = sum([plan.same_element[i] << i for i in range(5)])
        if values[k] is None:
            scalars = scalars & ~(1 << k) | plan.same_element[OUT + k] << k
        elif plan.same_element[k] != plan.same_element[OUT + k]:
            return None
        try:
            kernel = kernel_table.pullback(op, k, dtype, scalars)
        except NotCompiled:
            return None
        if kernel is None:
            return None
        kernels[k] = kernel
    return kernels


def _arguments(plan: Grid, values: list[Any]) -> tuple[list[int], list[int], list[int]]:
    """Arguments of an adjoint kernel after n (accumulate, g, out, a, b, c, y), and their steps."""
    at, by_row, by_element = [0, 0, 0], [0, 0, 0], [0, 0, 0]
    for i in (G, 0, 1, 2, Y):
        value = values[i]
        size = 0 if value is None else value.itemsize
        numbers = (
            0 if value is None else address(value),
            row_steps(plan, i, size),
            0 if plan.same_element[i] else size,
        )
        for row, number in zip((at, by_row, by_element), numbers):
            if i == G:
                row[1] = number
            else:
                row.append(number)
    return at, by_row, by_element


def _whole(
    adjoints: Adjoints, code: int, kernel: Any, plan: Grid, values: list[Any], shape: Any
) -> None:
    """An adjoint of the result's shape, accumulated in place if the array there is not shared."""
    key = code if code < 0 else adjoints.tape.index(code)
    adjoint = adjoints.values.get(key)
    accumulate = adjoint is not None and _is_ours(adjoint)
    g = values[G]
    out = adjoint if accumulate else np.empty(shape, g.dtype)
    assert out is not None
    at, by_row, by_element = _arguments(plan, values)
    at[0], at[2] = int(accumulate), address(out)
    by_row[2], by_element[2] = plan.n * out.itemsize, out.itemsize
    launch(kernel, plan.rows, plan.n, at, by_row, by_element)
    if not accumulate:
        adjoints.add(key, out)


def _reduced(kernel: Any, plan: Grid, values: list[Any], place: int) -> np.ndarray:
    """The adjoint of an operand that was broadcast: reduced over rows or columns."""
    dtype = values[G].dtype
    at, by_row, by_element = _arguments(plan, values)
    rows, n = plan.rows, plan.n
    if plan.same_element[place]:
        from tapegrad.kernels.large.launching import fold

        found = fold(kernel, rows, n, at, by_row, by_element, 2, dtype)
        down = plan.same_rows[place] or rows == 1
        return np.asarray(np.add.reduce(found, axis=None if down else 1))
    group = max(GROUP, int(rows**0.5))
    parts = np.zeros((-(-rows // group), n), dtype)
    at[0] = 1

    def some(start: int, stop: int) -> None:
        for i in range(start, stop):
            here = [a + i * group * step for a, step in zip(at, by_row)]
            here[2] = address(parts) + i * n * parts.itemsize
            call_rows(kernel, min(group, rows - i * group), n, here, by_row)

    split(len(parts), some, group * n)
    return np.asarray(parts[0] if len(parts) == 1 else np.add.reduce(parts, axis=0))
