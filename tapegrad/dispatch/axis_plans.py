"""Plan calls of operations along dimensions: see `call_plans`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.base.size import only_ints
from tapegrad.dispatch import call_plans
from tapegrad.dispatch.call_plans import Key, add_plan, call_plan, count_call, is_due, plans
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.one_operand import run_one
from tapegrad.dispatch.record_layout import layout_of
from tapegrad.kernels.sweep.sweep_abi import KIND_MEAN, KIND_SUM
from tapegrad.native.abi import PASSES, READS_RESULT, ROWS, CallPlan
from tapegrad.ops import axis_layout
from tapegrad.ops.core import Op
from tapegrad.tape.record_format import GENERAL
from tapegrad.tensor import F4, F8, SHORT, Tensor

C16 = np.dtype(np.complex128)

# From the operation and what its function was given: the Tensor and the parameters.
Arguments = Callable[[Op, Any, Any, bool, Any], tuple[Tensor, dict[str, Any]]]
_numbers = frozenset((int, float, type(None)))


def run_axis(
    op: Op, arguments: Arguments, x: Any, dim: Any, keepdim: bool = False, other: Any = None
) -> Tensor:
    """Run an operation along dimensions, in compiled code if this call has come before."""
    key, compiled = None, native_calls.planned
    if compiled is not None and x.__class__ is Tensor and _plain(dim, keepdim, other):
        s = x._s
        key = op, large_key(x) if s == -1 else s, dim, keepdim, other
        plan = plans.get(key)
        if plan is not None:
            made = compiled(plan, x)
            if made is not None:
                return made
    given, params = arguments(op, x, dim, keepdim, other)
    y = run_one(op, given, params)
    if key is not None and given is x and (x._s != -1 or _large(x) or _of_pairs(op, x)):
        remember(op, x, y, params, key)
    return y


def run_planned(x: Tensor, key: Key) -> Tensor | None:
    """What compiled code gives for a call that has come before, or None."""
    plan, compiled = plans.get(key), native_calls.planned
    return None if plan is None or compiled is None else compiled(plan, x)


def _large(x: Tensor) -> bool:
    """Whether only its size keeps a Tensor off the fast path."""
    return x._a.dtype in (F8, F4) and x._a.size >= SHORT


def _of_pairs(op: Op, x: Tensor) -> bool:
    """Whether the loop over real numbers adds up real and imaginary parts side by side."""
    a = x._a
    return (
        a.dtype is C16
        and a.size < SHORT
        and a.flags.c_contiguous
        and (op.sweep == KIND_SUM or op.sweep == KIND_MEAN)
    )


def _pairs(x: np.ndarray) -> np.ndarray:
    """Complex numbers as real and imaginary parts along a last dimension."""
    return x[..., None].view(F8)


def large_key(x: Tensor) -> Key:
    """What stands in a key for a large Tensor."""
    return x._a.shape, x._a.dtype.char


def _plain(dim: Any, keepdim: Any, other: Any) -> bool:
    """Whether the parameters are exact ints, not values equal to them: they are part of the key."""
    if keepdim.__class__ is not bool or other.__class__ not in _numbers:
        return False
    return dim.__class__ is int or dim is None or (dim.__class__ is tuple and only_ints(dim))


def remember(op: Op, x: Tensor, y: Tensor, params: dict[str, Any], key: Key) -> None:
    """Count a call, and make a plan when it has recurred often enough.

    Its operand is eligible for the fast path, except perhaps for its size.
    """
    times = count_call(key)
    if not is_due(times) or (x._s != -1 and y._s == -1):
        return
    of_pairs = _of_pairs(op, x)
    layout = layout_of(op, [x._a], y._a, params) or (GENERAL, 0)
    if x._s == -1 and not of_pairs:
        from tapegrad.kernels.large.pass_lists import passes

        try:
            found = passes(op, x._a, y._a, params)
        except NotCompiled:
            return  # it is made when the call has recurred as often again
        if found:
            add_plan(
                key, _plan(op, x._a, y._a, params, layout, found, loops=PASSES, large=1, loop=None)
            )
        return
    arrays = (_pairs(x._a), _pairs(y._a)) if of_pairs else (x._a, y._a)
    rows = axis_layout.packed(*arrays, params)
    if not rows:
        return
    from tapegrad.kernels.codegen import kernel_table

    loop = kernel_table.small_axis_loop(op, asking=times >= call_plans.MANY)
    if loop:
        plan = _plan(op, x._a, y._a, params, layout, (), loops=ROWS, loop=loop, rows=rows)
        add_plan(key, plan)


def _plan(
    op: Op, x: np.ndarray, y: np.ndarray, params: dict[str, Any], layout: tuple[int, int],
    passes: Sequence[int], **loops: int | None,
) -> CallPlan:  # fmt: skip
    """A plan by a loop and how rows lie, or by passes."""
    reads_operand, reads_result = op.saves[0]
    reads = [reads_operand | READS_RESULT * reads_result]
    extra = params, ((x.shape, x.dtype),)
    return call_plan(op, y, layout, extra, reads, passes, operands=1, **loops)
