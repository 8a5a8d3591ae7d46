"""The short road of one small system of equations, and of one determinant, in float64.

`solve` and `slogdet` compute what the general road of `tapegrad.record` would, and write the same
records, which the compiled walk understands.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tapegrad.kernels.layout import SYSTEM
from tapegrad.ops import determinant
from tapegrad.ops import solve as ops
from tapegrad.ops.core import Op
from tapegrad.ops.decompose import part
from tapegrad.record import place_of, resolve
from tapegrad.tape import DTYPE_BITS, LARGE, MODE_FAST, SAVES, Tape, current
from tapegrad.tensor import F8, Tensor, placed, wrap


def solve(a: Any, b: Any) -> Tensor | None:
    """The x of ``a @ x = b`` for two matrices; None where the general road has to be taken."""
    tape = current.tape
    if not (_square(tape, a) and _small(tape, b)) or b._a.ndim != 2 or len(a._a) != len(b._a):
        return None
    x, y = a._a, b._a
    r = ops.solve.forward(x, y)
    specs = ((x.shape, F8), (y.shape, F8))
    entry: Any = (x, None, r if a._pos else None, ({}, specs))
    return _recorded(tape, ops.solve, (a, b), r, len(x) | y.shape[1] << 20, entry)


def slogdet(a: Any) -> tuple[Tensor, Tensor] | None:
    """The sign of a determinant and its logarithm; None where the general road has to be taken."""
    tape = current.tape
    if not _square(tape, a) or _place(1) < 0:
        return None
    x = a._a
    r = determinant.slogdet.forward(x)
    entry: Any = (x, None, ({}, ((x.shape, F8),)))
    whole = _recorded(tape, determinant.slogdet, (a,), r, len(x), entry)
    return _half(tape, whole, 0), _half(tape, whole, 1)


def _half(tape: Tape, whole: Tensor, k: int) -> Tensor:
    """One of two numbers."""
    entry = (None, None, ({"index": (..., k)}, (((2,), F8),)))
    return _recorded(tape, part, (whole,), np.array(whole._a[k]), _place(k), entry)


@cache
def _place(k: int) -> int:
    """Where the walk finds how one of two numbers lies."""
    pair = np.zeros(2)
    return place_of(pair, pair[..., k])


def _small(tape: Tape, x: Any) -> bool:
    """Whether an operand is a float64 Tensor of modest size, and recording is as usual."""
    if type(x) is not Tensor or x._s < 0 or not 0 < x._a.size <= SYSTEM:
        return False
    home = x._home
    if home is not None and home is not tape:
        resolve(x, tape)
    return tape.mode == MODE_FAST and not tape.inference


def _square(tape: Tape, x: Any) -> bool:
    return _small(tape, x) and x._a.ndim == 2 and x._a.shape[0] == x._a.shape[1]


def _recorded(
    tape: Tape, op: Op, given: tuple[Tensor, ...], r: np.ndarray, aux: int, entry: Any
) -> Tensor:
    """The result as a Tensor, on the tape if an operand requires grad."""
    if not any(x._pos for x in given):
        return wrap(r)
    if r.size > LARGE:
        tape.owe(r.nbytes)
    if tape.offset == tape.end:
        tape.make_room()
    codes = tuple([p if (p := x._pos) >= 0 else tape.slot(x) for x in given])
    word = op.code | DTYPE_BITS[F8] | (0 if entry[0] is None else SAVES)
    return placed(r, tape, tape.append(word, codes, r.shape, aux, entry))
