"""The fast path of rows of one matrix, or a batch of them, and of the parts of their results.

`decomposed` computes what `dispatch.run` would, and writes the same records; what follows from an
operation, its parameters and the shape of its operand is worked out once (`_Plan`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.dispatch.dispatch import resolve, run
from tapegrad.dispatch.record_layout import layout_of
from tapegrad.ops.core import Op
from tapegrad.ops.factorizations import part
from tapegrad.tape.shape_table import LARGE
from tapegrad.tape.tape import (
    DROP_FLOOR,
    DTYPE_BITS,
    GENERAL,
    MODE_FAST,
    SAVES,
    Tape,
    current,
)
from tapegrad.tensor import F4, F8, Tensor, placed

Index = tuple[Any, ...]
Parts = Callable[[int], tuple[Index, ...]]  # by the number of rows of the operand
KNOWN = 1024


class _Record(NamedTuple):
    """What the record of a part holds, and the index of the part."""

    at: Index
    word: int
    aux: int
    entry: Any


class _Plan(NamedTuple):
    """The record of the whole, which operand and result it keeps, and those of the parts."""

    word: int
    aux: int
    keeps_x: bool
    keeps_y: bool
    tail: Any
    parts: tuple[_Record, ...]


_plans: dict[Any, _Plan] = {}


def factored(op: Op, x: Tensor, params: dict[str, Any]) -> Tensor:
    """`dispatch.run` of one operand."""
    found = _recorded(op, x, params, None)
    return run(op, (x,), params) if found is None else found[0]


def decomposed(op: Op, x: Tensor, params: dict[str, Any], parts: Parts) -> list[Tensor]:
    """The parts of a result; imaginary parts are not taken off."""
    found = _recorded(op, x, params, parts)
    if found is not None:
        return found
    whole = run(op, (x,), params)
    return [run(part, (whole,), {"index": index}) for index in parts(x._a.shape[-2])]


def _recorded(
    op: Op, x: Tensor, params: dict[str, Any], parts: Parts | None
) -> list[Tensor] | None:
    """The result, or its parts; None where the general path has to be taken."""
    tape = current.tape
    if type(x) is not Tensor or tape.mode != MODE_FAST or tape.inference:
        return None
    home = x._home
    if home is not None and home is not tape:
        resolve(x, tape)
    p, a = x._pos, x._a
    kind = getattr(a, "dtype", None)
    if not p or type(a) is not np.ndarray or (kind is not F8 and kind is not F4):
        return None
    if a.ndim > 2 and not a.flags.c_contiguous:
        return None
    if tape.debt > DROP_FLOOR:
        tape.drop_tail()
    try:
        y = np.asarray(op.forward(a, **params))
    except (ValueError, TypeError):  # the general path says it
        return None
    key = (op, a.shape, kind.char, y.flags.c_contiguous, parts, *params.values())
    plan = _plans.get(key)
    if plan is None:
        plan = _new_plan(op, a, y, params, parts)
        if len(_plans) >= KNOWN:
            _plans.clear()
        _plans[key] = plan
    entry = (a if plan.keeps_x else None, y if plan.keeps_y else None, plan.tail)
    token = _append(tape, y, p, plan.word, plan.aux, entry, (x,))
    if parts is None:
        return [placed(y, tape, token)]
    found = []
    for index, word, aux, kept in plan.parts:
        r = np.array(y[index])
        found.append(placed(r, tape, _append(tape, r, token, word, aux, kept, ())))
    return found


def _append(
    tape: Tape, y: np.ndarray, place: int, word: int, aux: int, entry: Any, operands: Any
) -> int:
    if y.size > LARGE:
        tape.add_debt(y.nbytes)
    return tape.append(word, (place,), y.shape, aux, entry, operands)


def _new_plan(op: Op, a: np.ndarray, y: np.ndarray, params: Any, parts: Parts | None) -> _Plan:
    keeps_x, keeps_y = op.saves[0]
    word, aux = _word(op, a, y, params)
    word |= SAVES if keeps_x or keeps_y else 0
    records = []
    for index in parts(a.shape[-2]) if parts else ():
        taken = {"index": index}
        entry = (None, None, (taken, ((y.shape, y.dtype),)))
        records.append(_Record(index, *_word(part, y, np.array(y[index]), taken), entry))
    tail = (params, ((a.shape, a.dtype),))
    return _Plan(word, aux, keeps_x, keeps_y, tail, tuple(records))


def _word(op: Op, x: np.ndarray, y: np.ndarray, params: Any) -> tuple[int, int]:
    bits, aux = layout_of(op, [x], y, params) or (GENERAL, 0)
    return op.code | DTYPE_BITS[y.dtype] | bits, aux
