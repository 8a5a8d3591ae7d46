"""Change a part of a small Tensor in place, as `y[i] += x` does: compute the new values, and write
them where the part stands.

Both are calls by a plan in compiled code.  The general way records the operation on the part, a
write into the base, and the part anew, all in Python.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.dispatch.index_plans import simple_index
from tapegrad.dispatch.layout_history import same_elements
from tapegrad.ops.core import Op
from tapegrad.ops.shape import getitem
from tapegrad.tape import versions
from tapegrad.tape.tape import MODE_FAST, Tape, current
from tapegrad.tensor import Tensor, View, place, placed, wrap

_numbers = frozenset((int, float))


class Part(NamedTuple):
    """What is written where: a value into a Tensor at an index; `how` can be a key of a dict."""

    base: Tensor
    value: Tensor
    index: Any
    how: Any


def changed_part(op: Op, args: tuple[Any, ...], target: Tensor) -> Part | None:
    """Run an elementwise operation whose result is to be written into its first operand, `target`,
    if that is what an index shows of another Tensor with a history; None: it is not.
    """
    home, tape = target._home, current.tape
    if type(home) is not View or len(home.chain) != 1 or home.chain[0][0] is not getitem:
        return None
    base = home.base
    if type(base) is not Tensor or base._s == -1 or base._pos < 0 or home.frozen or home.several:
        return None
    if type(base._a) is not np.ndarray or type(target._a) is not np.ndarray:  # of a trace
        return None
    if tape.mode != MODE_FAST or tape.escaped or not target._a.flags.writeable:
        return None
    if place(target) and not base._pos:  # the base was detached
        return None
    others = args[1:]
    if not all(map(_fits, others, (target,) * len(others))):
        return None
    index = home.chain[0][1]["index"]
    simple = simple_index(index)
    if simple is None or not _shows(base._a, index, target._a):
        return None
    made = op.entry_point(*_unaliased(op, args, target, tape))
    if made._s != target._s or not made._pos:  # the general way tells what does not fit
        return None
    return Part(base, made, index, simple[1])


def _shows(whole: np.ndarray, index: Any, part: np.ndarray) -> bool:
    """Whether an index still shows the part, and no element of the base stands in two places: it
    may have got another shape since.
    """
    try:
        return whole.flags.c_contiguous and same_elements(whole[index], part)
    except IndexError:
        return False


def _fits(other: Any, target: Tensor) -> bool:
    """Whether an operand is a number, or a small Tensor that is broadcast to the part.

    Neither is it a leaf that is about to be overwritten.
    """
    if type(other) is not Tensor:
        return type(other) in _numbers
    a, b = other._a, target._a
    if other._s == -1 or a.dtype is not b.dtype or a.shape != b.shape[b.ndim - a.ndim :]:
        return False
    return other._pos >= 0 or versions.memory(a) is not versions.memory(b)


def _unaliased(op: Op, args: tuple[Any, ...], target: Tensor, tape: Tape) -> list[Any]:
    """The operands; of those that a formula will read and that are about to be overwritten copies
    that have the same place on the tape.
    """
    found = list(args)
    if not op.keeps:
        return found
    tracked = [type(x) is Tensor and place(x) != 0 for x in args]
    memory = versions.memory(target._a)
    for k, x in enumerate(args):
        read = any(on and saves[k] for on, saves in zip(tracked, op.saves, strict=True))
        if read and type(x) is Tensor and versions.memory(x._a) is memory:
            copy = x._a.copy()
            found[k] = placed(copy, tape, x._pos) if tracked[k] else wrap(copy)
    return found
