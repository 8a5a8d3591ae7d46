"""Cache the plans of calls that compiled code carries out alone: see `native.abi.Plan`.

What follows from an operation, its parameters and the shapes of its operands is worked out once,
when a call has come a few times; then compiled code does the whole: the array, the Tensor, the
record.  Until then, and for everything else, it is the general path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.dispatch.operand_layout import address
from tapegrad.dispatch.record_layout import layout_of
from tapegrad.kernels.sweep.sweep_abi import ROOM
from tapegrad.native.abi import FORM, JOIN, MOST_DIMENSIONS, CallPlan, FormCall, Plan
from tapegrad.ops.core import Op
from tapegrad.tape.record_format import DTYPE_BITS, GENERAL, SAVES
from tapegrad.tape.shape_table import shapes
from tapegrad.tensor import number as short_of

TIMES = 8  # calls until a plan is made, if its loop is on disk
MANY = 200  # calls until it is compiled in the background, and between looks whether it is there
KNOWN = 4096

Key = tuple[Any, ...]  # the operation, shapes and parameters
plans: dict[Key, CallPlan] = {}
_calls: dict[Key, int] = {}
_room: list[np.ndarray] = []  # which all forms share: their loops keep the interpreter's lock


def count_call(key: Key) -> int:
    """How often a call has come, this time included."""
    times = _calls.get(key, 0) + 1
    if len(_calls) >= KNOWN:
        _calls.clear()
    _calls[key] = times
    return times


def is_due(times: int) -> bool:
    """Whether a call makes its plan, if the loop is there: an early one, or later now and then."""
    return times == TIMES or times % MANY == 0


def add_plan(key: Key, plan: CallPlan) -> None:
    """Have compiled code carry out a call from now on."""
    if len(plans) >= KNOWN:
        plans.clear()
    plans[key] = plan


def call_plan(
    op: Op, y: np.ndarray, layout: tuple[int, int], extra: Any, reads: Sequence[int],
    tail: Sequence[int] = (), **fields: int | None,
) -> CallPlan:  # fmt: skip
    """The plan of a call whose result is like `y`, and whose record saves `extra` behind values.

    A field that is None says where the tail begins, words that the loops read.
    """
    words: np.ndarray = np.zeros(Plan.SIZE + y.ndim + len(tail), np.int64)
    at, short = address(words), short_of(y)
    tail_at = at + 8 * (Plan.SIZE + y.ndim)
    for shape, _ in extra[1]:
        shapes.number(shape)  # of complex operands native code looks up the numbers
    given: dict[str, int | Sequence[int]] = {
        **dict.fromkeys(Plan.fields, 0),
        "itemsize": y.itemsize,
        **{name: tail_at if value is None else value for name, value in fields.items()},
        "ndim": y.ndim, "lengths": at + 8 * Plan.SIZE,
        "own_lengths": (0,) * MOST_DIMENSIONS, "short": id(short), "shape": shapes.number(y.shape),
        "word": op.code | DTYPE_BITS.get(y.dtype, 0) | SAVES | layout[0], "aux": layout[1],
        "reads": (*reads, 0, 0)[:3], "extra": id(extra),
    }  # fmt: skip
    words[:] = *Plan.words(**given), *y.shape, *tail
    return CallPlan(plan_at=at, words=words, keeps=(short, extra))


def form_plan(
    op: Op, arrays: Sequence[np.ndarray], y: np.ndarray, params: dict[str, Any], table: np.ndarray,
    **fields: int,
) -> CallPlan:  # fmt: skip
    """The plan of a form of small arrays, whose loop takes a table."""
    if not _room:
        _room.append(np.empty(ROOM, np.uint8))
    call = {name: fields.pop(name) for name in ("units", "unsure")}
    tail = FormCall.words(form=address(table), room=address(_room[0]), **call)
    layout = layout_of(op, list(arrays), y, params) or (GENERAL, 0)
    extra = params, tuple([(a.shape, a.dtype) for a in arrays])
    reads = [sum(1 << k for k, read in enumerate(row[: len(arrays)]) if read) for row in op.saves]
    return call_plan(
        op, y, layout, extra, reads, tail, operands=len(arrays), value=len(arrays) - 1, loops=FORM,
        rows=None, **fields,
    )  # fmt: skip


def join_plan(
    op: Op, arrays: Sequence[np.ndarray], y: np.ndarray, layout: tuple[int, int],
    params: dict[str, Any], rows: int = 1,
) -> CallPlan:  # fmt: skip
    """The plan of a join in so many rows, or of a copy in C order."""
    extra, like = (params, tuple([(a.shape, a.dtype) for a in arrays])), arrays[0].dtype
    return call_plan(
        op, y, layout, extra, (0,), operands=len(arrays), loops=JOIN, rows=rows,
        itemsize=like.itemsize, dtype=0 if y.dtype is like else id(y.dtype),
    )  # fmt: skip
