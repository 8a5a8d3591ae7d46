"""Cache call plans of operations along dimensions of float64 Tensors.

What follows from an operation, its parameters and the operand's shape is worked out once, as a
`CallPlan`, when a call has come a few times; then compiled code does the whole: the array, the
Tensor, the record.  Until then, and for everything else, it is the general path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.base.size import only_ints
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.record_layout import address, layout_of
from tapegrad.kernels.large.pass_lists import passes
from tapegrad.native.abi import AxisPlan, CallPlan
from tapegrad.ops import axis_layout
from tapegrad.ops.core import Op
from tapegrad.tape.shape_table import shapes
from tapegrad.tape.tape import DTYPE_BITS, GENERAL, SAVES
from tapegrad.tensor import F8, SHORT, Tensor

TIMES = 8  # calls until a plan is made, if its loop is on disk
MANY = 200  # calls until it is compiled in the background, and between looks whether it is there
KNOWN = 4096


Key = tuple[Any, ...]
# From the operation and what its function was given: the Tensor and the parameters.
Arguments = Callable[[Op, Any, Any, bool, Any], tuple[Tensor, dict[str, Any]]]
_plans: dict[Key, CallPlan] = {}
_met: dict[Key, int] = {}
_numbers = frozenset((int, float, type(None)))


def along(
    op: Op, arguments: Arguments, x: Any, dim: Any, keepdim: bool = False, other: Any = None
) -> Tensor:
    """Run an operation along dimensions, in compiled code if this call has come before."""
    key, compiled = None, native_calls.axis
    if compiled is not None and x.__class__ is Tensor and _plain(dim, keepdim, other):
        s = x._s
        key = op, s if s >= 0 else x._a.shape, dim, keepdim, other
        plan = _plans.get(key)
        if plan is not None:
            made = compiled(x, plan)
            if made is not None:
                return made
    given, params = arguments(op, x, dim, keepdim, other)
    y = run(op, (given,), params)
    if key is not None and given is x and (x._s >= 0 or _large(x)):
        remember(op, x, y, params, key)
    return y


def again(x: Tensor, key: Key) -> Tensor | None:
    """What compiled code gives for a call that has come before, or None."""
    plan, compiled = _plans.get(key), native_calls.axis
    return None if plan is None or compiled is None else compiled(x, plan)


def _large(x: Tensor) -> bool:
    """Whether a Tensor that is none of the fast path's is so for its size alone."""
    return x._a.dtype is F8 and x._a.size >= SHORT


def _plain(dim: Any, keepdim: Any, other: Any) -> bool:
    """Whether what was given is made of ints, and of nothing that is only equal to one."""
    if keepdim.__class__ is not bool or other.__class__ not in _numbers:
        return False
    return dim.__class__ is int or dim is None or (dim.__class__ is tuple and only_ints(dim))


def remember(op: Op, x: Tensor, y: Tensor, params: dict[str, Any], key: Key) -> None:
    """Count a call, and make a plan when it has come often enough.

    Its operand is of the fast path, or would be but for its size.
    """
    times = _met.get(key, 0) + 1
    if len(_met) >= KNOWN:
        _met.clear()
    _met[key] = times
    if (times != TIMES and times % MANY) or (x._s >= 0 and y._s < 0):
        return
    if x._s < 0:
        if found := passes(op, x._a, y._a, params):
            general = layout_of(op, [x._a], y._a, params) or (GENERAL, 0)
            _know(key, _plan(op, x._a, y._a, params, general, passes=found))
        return
    rows = axis_layout.packed(x._a, y._a, params)
    layout = layout_of(op, [x._a], y._a, params)
    if not rows or layout is None:
        return
    from tapegrad.kernels.codegen import kernel_table

    loop = kernel_table.loop_along(op, asking=times >= MANY)
    if loop:
        _know(key, _plan(op, x._a, y._a, params, layout, loop, rows))


def _know(key: Key, plan: CallPlan) -> None:
    if len(_plans) >= KNOWN:
        _plans.clear()
    _plans[key] = plan


def _plan(
    op: Op, x: np.ndarray, y: np.ndarray, params: dict[str, Any], layout: tuple[int, int],
    loop: int = 0, rows: int = 0, passes: Sequence[int] = (),
) -> CallPlan:  # fmt: skip
    """A plan by a loop and how rows lie, or by passes."""
    (reads_operand, reads_result), (bits, aux) = op.saves[0], layout
    saves = SAVES if reads_operand or reads_result else 0
    number = shapes.number(y.shape)
    plan = AxisPlan.words(
        loop=loop, rows=rows, word=op.code | DTYPE_BITS[F8] | saves | bits, shape=number, aux=aux,
        reads_operand=reads_operand, reads_result=reads_result, ndim=y.ndim,
    )  # fmt: skip
    words = np.array([*plan, *y.shape, *passes], np.int64)
    short = number if y.size < SHORT else -1
    extra = params, ((x.shape, F8),)
    return CallPlan(short=short, extra=extra, words_at=address(words), words=words)
