"""The short road: elementwise operations on float64 Tensors, work counted in nanoseconds.

`unary` and `binary` build the public function of an operation.  When its operands are what they
mostly are (float64, small, of one shape or with one number, nobody listening) the function computes
and writes the record by itself; everything else goes the general road.  The few lines that append a
record are those of `Tape.append`; a call there would cost a fifth of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.ops.core import Formula, Op
from tapegrad.record import run
from tapegrad.tape import (
    CLASS_SHIFT,
    DTYPE_BITS,
    MODE_FAST,
    SAVES,
    SCALAR,
    STRIDE,
    current,
    pack_into,
)
from tapegrad.tensor import F8, Tensor, wrap

_new = Tensor.__new__
_constants: dict[float, np.ndarray] = {}
SCALAR_A, SCALAR_B = SCALAR << CLASS_SHIFT[0], SCALAR << CLASS_SHIFT[1]


def constant(value: float) -> np.ndarray:
    """A 0-d float64 array; the last few hundred are kept, for a loop uses the same ones again."""
    found = _constants.get(value) if value else None
    if found is None:
        found = np.array(value, F8)
        found.flags.writeable = False
        if value:
            if len(_constants) > 256:
                _constants.clear()
            _constants[value] = found
    return found


def as_operand(x: Any) -> Any:
    """An operand that the general road takes: a Tensor, an array or a number."""
    if isinstance(x, (Tensor, np.ndarray, bool, int, float, complex)):
        return x
    if isinstance(x, np.generic):
        return np.asarray(x)
    raise TypeError(
        f"an operand must be a Tensor, a NumPy array or a number, got {type(x).__name__}"
    )


def unary(op: Op) -> Callable[[Any], Tensor]:
    """The function `op(input)` for an elementwise operation of one operand."""
    ufunc = op.forward
    keeps_x, keeps_y = op.saves[0]
    keeps = keeps_x or keeps_y
    word = op.code | DTYPE_BITS[F8] | (SAVES if keeps else 0)

    def function(input: Any) -> Tensor:
        if type(input) is not Tensor:
            return run(op, (as_operand(input),), {})
        s = input._s
        p = input._pos
        tape = current.tape
        if (
            s < 0
            or (p > 0 and input._home is not tape)
            or (tape.mode != MODE_FAST and (p or tape.inference))
        ):
            return run(op, (input,), {})
        x = input._a
        r = ufunc(x, out=...)
        t = _new(Tensor)
        t._a = r
        t._s = s
        if not p:
            t._pos = 0
            t._home = None
            return t
        offset = tape.offset
        if offset == tape.end:
            offset = tape.make_room()
        if p < 0:
            p = tape.slots.get(p) or tape.slot(input)
        token = tape.next
        pack_into(tape.buffer, offset, word, p, 0, 0, s, 0)
        tape.offset = offset + STRIDE
        tape.next = token + 1
        tape.tokens.append(token)
        tape.keep.append((x if keeps_x else None, r if keeps_y else None) if keeps else None)
        t._pos = token
        t._home = tape
        return t

    return function


def binary(op: Op) -> Callable[[Any, Any], Tensor]:
    """The function `op(input, other)` for an elementwise operation of two operands."""
    if not all(isinstance(f, Formula) for f in op.formulas):
        return lambda input, other: run(op, (as_operand(input), as_operand(other)), {})
    ufunc = op.forward
    (aa, ab, ay), (ba, bb, by) = op.saves
    keeps = any((aa, ab, ay, ba, bb, by))
    plain = op.code | DTYPE_BITS[F8] | (SAVES if keeps else 0)
    number_a, number_b = plain | SCALAR_A, plain | SCALAR_B

    def function(input: Any, other: Any) -> Tensor:
        kind = type(other)
        if kind is Tensor:
            if type(input) is not Tensor:
                return from_left(input, other)
            b = other._a
            q = other._pos
            sb = other._s
        elif (kind is float or kind is int) and type(input) is Tensor:
            b = constant(float(other))
            q = sb = 0
        else:
            return run(op, (as_operand(input), as_operand(other)), {})
        p = input._pos
        s = input._s
        if s == sb:
            word = plain
        elif sb == 0:
            word = number_b
        elif s == 0:
            word = number_a
            s = sb
        else:
            s = -1
        tape = current.tape
        if (
            s < 0
            or sb < 0
            or (p > 0 and input._home is not tape)
            or (q > 0 and other._home is not tape)
            or (tape.mode != MODE_FAST and (p or q or tape.inference))
        ):
            return run(op, (input, as_operand(other)), {})
        a = input._a
        r = ufunc(a, b, out=...)
        t = _new(Tensor)
        t._a = r
        t._s = s
        if not (p or q):
            t._pos = 0
            t._home = None
            return t
        offset = tape.offset
        if offset == tape.end:
            offset = tape.make_room()
        if p < 0:
            p = tape.slots.get(p) or tape.slot(input)
        if q < 0:
            q = tape.slots.get(q) or tape.slot(other)
        token = tape.next
        pack_into(tape.buffer, offset, word, p, q, 0, s, 0)
        tape.offset = offset + STRIDE
        tape.next = token + 1
        tape.tokens.append(token)
        tape.keep.append(
            (
                a if (aa and p) or (ba and q) else None,
                b if (ab and p) or (bb and q) else None,
                r if (ay and p) or (by and q) else None,
            )
            if keeps
            else None
        )
        t._pos = token
        t._home = tape
        return t

    def from_left(input: Any, other: Tensor) -> Tensor:
        if (type(input) is float or type(input) is int) and other._s >= 0:
            number = wrap(constant(float(input)))
            return function(number, other)
        return run(op, (as_operand(input), other), {})

    return function
