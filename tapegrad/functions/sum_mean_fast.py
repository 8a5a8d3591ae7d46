"""The fast path of sums and means.

`total` computes what `dispatch.run` would, and writes the same record. What follows from a shape
and the dimensions is worked out once. The lines that append a record are those of `Tape.append`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.dispatch import axis_plans
from tapegrad.dispatch.dispatch import resolve
from tapegrad.dispatch.record_layout import classes
from tapegrad.functions.arguments import all_dims
from tapegrad.ops.core import Op
from tapegrad.ops.reduce import mean, remaining
from tapegrad.tape.shape_table import shapes
from tapegrad.tape.tape import DTYPE_BITS, F4_SHAPE, GENERAL, MODE_FAST, STRIDE, current, pack_into
from tapegrad.tensor import F4, F8, SHORT, Tensor

# Dimensions, or None for all of them; how many elements are added up; the number of the result's
# shape; the record's word and AUX; what it keeps.
Plan = tuple[Any, float, int, int, int, Any]
_plans: dict[Any, Plan] = {}
_new = Tensor.__new__
_add: Any = np.add.reduce
_array = np.array


def total(op: Op, x: Tensor, dim: Any, keepdim: bool) -> Tensor | None:
    """The sum or the mean of a Tensor; None where the general path has to be taken."""
    if type(x) is not Tensor:
        return None
    s, a = x._s, x._a
    kind = a.dtype
    is_complex = kind.char in "DF" and a.size < SHORT
    if kind is not F8 and kind is not F4 and not is_complex:
        return None
    large = s == -1 and not is_complex
    if s < 0:
        s = shapes.number(a.shape)
    if (
        dim is not None
        and type(dim) is not int
        and (type(dim) is not tuple or any(type(d) is not int for d in dim))
    ):
        return None
    tape = current.tape
    home = x._home
    if home is not None and home is not tape:
        resolve(x, tape)
    token = tape.next
    p = x._pos
    if tape.mode != MODE_FAST and (p or tape.inference):
        return None
    if large:
        call = op, axis_plans.large_key(x), dim, keepdim, None
        made = axis_plans.run_planned(x, call)
        if made is not None:
            return made
    key = op, s, dim, keepdim, kind.char
    axes, n, s, word, aux, entry = _plans.get(key) or _plan(*key)
    t = _new(Tensor)
    t._s = s if kind is F8 else F4_SHAPE - s if kind is F4 else -1
    if large:
        t._a = r = np.asarray(op.forward(a, **entry[2][0]))
        if r.size >= SHORT:
            t._s = -1
        axis_plans.remember(op, x, t, entry[2][0], call)
    elif axes is None:
        found = _add(a, None)
        t._a = _array(found / n if n else found)
    else:
        t._a = r = _add(a, axis=axes, keepdims=keepdim, out=...)
        if n:
            np.divide(r, n, out=r)
    if not p:
        t._pos = 0
        t._home = None
        return t
    if s & 1:
        tape.add_debt(8 * shapes.counts[s])
    if p < 0:
        p = tape.slots.get(p) or tape.slot(x)
    used = tape.used
    pack_into(tape.buffer, used * STRIDE, word, p, 0, 0, s, aux)
    if tape.next is not token or used == tape.capacity:
        tape.make_room()
        return total(op, x, dim, keepdim)
    tape.tokens[used] = token
    tape.keep[used] = entry
    tape.used = used + 1
    tape.next = token + 1
    t._pos = token
    t._home = tape
    return t


def planned(op: Op, s: int, is_f8: bool) -> tuple[int, int, Any]:
    """The word, AUX and what the record keeps of the sum or mean of everything."""
    key = op, s, None, False, "d" if is_f8 else "f"
    _, _, _, word, aux, entry = _plans.get(key) or _plan(*key)
    return word, aux, entry


def _plan(op: Op, s: int, dim: Any, keepdim: bool, char: str) -> Plan:
    shape = shapes.shapes[s]
    dims = all_dims(dim, len(shape), op.name)
    kept = remaining(shape, dims, keepdim=True)
    result = remaining(shape, dims, keepdim)
    kind = np.dtype(char)
    found = None if kind.kind == "c" else classes((kept,), shape)
    bits, aux = (GENERAL, 0) if found is None else (found[0], int(shapes.sizes[s]))
    n = (float(math.prod([shape[d] for d in dims])) or math.nan) if op is mean else 0.0
    entry = (None, None, ({"dim": dims, "keepdim": keepdim}, ((shape, kind),)))
    word = op.code | DTYPE_BITS[kind] | bits
    plan = (dims if result else None, n, shapes.number(result), word, aux, entry)
    if len(_plans) > 4096:
        _plans.clear()
    _plans[op, s, dim, keepdim, char] = plan
    return plan
