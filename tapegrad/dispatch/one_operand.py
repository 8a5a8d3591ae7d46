"""The fast path of operations of one operand that native code does not do whole.

`recorded` computes what `dispatch.run` would, and writes the same record: what follows from the
operation, its parameters and the shape of its operand is worked out once (`_Plan`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.dispatch.dispatch import resolve, run
from tapegrad.dispatch.record_layout import layout_of
from tapegrad.ops.core import Op, Params
from tapegrad.tape.debts import DROP_FLOOR
from tapegrad.tape.record_format import DTYPE_BITS, GENERAL, SAVES
from tapegrad.tape.shape_table import LARGE
from tapegrad.tape.tape import MODE_FAST, current
from tapegrad.tensor import Tensor, placed

KNOWN = 4096


class _Plan(NamedTuple):
    """The word and AUX of a record, which operand and result it keeps, and what else."""

    word: int
    aux: int
    keeps_x: bool
    keeps_y: bool
    tail: Any


_plans: dict[Any, _Plan] = {}


def run_one(op: Op, x: Tensor, params: Params) -> Tensor:
    """`dispatch.run` of one operand."""
    found = recorded(op, x, params)
    return run(op, (x,), params) if found is None else found


def recorded(op: Op, x: Tensor, params: Params) -> Tensor | None:
    """The result, with its record; None where the general path has to be taken."""
    tape = current.tape
    if type(x) is not Tensor or tape.mode != MODE_FAST or tape.inference or not op.moving[0]:
        return None
    home = x._home
    if home is not None and home is not tape and not resolve(x, tape):
        return None
    p, a = x._pos, x._a
    if not p or type(a) is not np.ndarray or a.dtype.char not in ("dfDF" if op.complex else "df"):
        return None
    if tape.debt > DROP_FLOOR:
        tape.drop_tail()
    try:
        y = np.asarray(op.forward(a, **params))
    except (ValueError, TypeError):  # the general path says it
        return None
    orders = a.flags.c_contiguous, y.flags.c_contiguous
    key = op, a.shape, a.dtype.char, orders, *params.values()
    plan = _plans.get(key)
    if plan is None:
        keeps_x, keeps_y = op.saves[0]
        word, aux = record_word(op, a, y, params)
        word |= SAVES if keeps_x or keeps_y else 0
        plan = _Plan(word, aux, keeps_x, keeps_y, (params, ((a.shape, a.dtype),)))
        if len(_plans) >= KNOWN:
            _plans.clear()
        _plans[key] = plan
    if y.size > LARGE:
        tape.add_debt(y.nbytes)
    entry = a if plan.keeps_x else None, y if plan.keeps_y else None, plan.tail
    return placed(y, tape, tape.append(plan.word, (p,), y.shape, plan.aux, entry, (x,)))


def record_word(op: Op, x: np.ndarray, y: np.ndarray, params: Params) -> tuple[int, int]:
    """The word and AUX of a record that saves nothing."""
    bits, aux = layout_of(op, [x], y, params) or (GENERAL, 0)
    return op.code | DTYPE_BITS[y.dtype] | bits, aux
