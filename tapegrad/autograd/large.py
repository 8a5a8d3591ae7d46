"""The adjoint step of large elementwise records: one compiled pass per input, on all threads."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad import parallel
from tapegrad.kernels import layout
from tapegrad.ops.core import ELEMENTWISE, by_code
from tapegrad.tape import CLASS_SHIFT, CODE_MASK, FLAT, GENERAL, SCALAR, WORD

if TYPE_CHECKING:
    from tapegrad.autograd.sweep import Sweep


def step(sweep: Sweep, index: int, g: np.ndarray) -> bool:
    """Do one record by kernels; False when it is not of the kind that they can do."""
    if g.size <= layout.SMALL:
        return False
    tape = sweep.tape
    word = int(tape.words()[index, WORD])
    op = by_code[word & CODE_MASK]
    if word & GENERAL or op.kind is not ELEMENTWISE:
        return False
    count = len(op.inputs)
    how = [(word >> CLASS_SHIFT[i]) & 3 for i in range(count)]
    codes = tape.inputs(index)[:count]
    wanted = [bool(code) and sweep._wanted(code) for code in codes]
    # An input that is one number gets a sum: NumPy's pairwise one is better and as fast.
    if any(h not in (FLAT, SCALAR) for h in how) or any(
        w and h == SCALAR for w, h in zip(wanted, how, strict=True)
    ):
        return False
    entry = tape.keep[index] or (None,) * (count + 1)
    scalars = sum(1 << i for i, h in enumerate(how) if h == SCALAR)
    if all(s == 0 for s in g.strides):
        scalars |= 8
    elif not g.flags.c_contiguous:
        g = np.ascontiguousarray(g)
    if any(v is not None and not v.flags.c_contiguous for v in entry):
        return False
    dtype = "f8" if g.dtype.itemsize == 8 else "f4"
    from tapegrad.kernels import table

    kernels = [
        table.callable_adjoint(op, k, dtype, scalars) if w else None for k, w in enumerate(wanted)
    ]
    if any(w and kernel is None for w, kernel in zip(wanted, kernels, strict=True)):
        return False
    for k in range(count):
        if wanted[k]:
            _apply(sweep, codes[k], kernels[k], op, k, g, entry, scalars)
    return True


def _apply(
    sweep: Sweep, code: int, kernel: Any, op: Any, k: int, g: Any, entry: Any, scalars: int
) -> None:
    key = code if code < 0 else sweep.tape.index(code)
    formula = op.formulas[k]
    if not formula.reads and not scalars & 8 and formula.function() == 1:
        sweep._add(key, g)  # handed on as it is
        return
    held = sweep.values.get(key)
    accumulate = (
        held is not None
        and held.base is None
        and held.flags.c_contiguous
        and getrefcount(held) == 3
    )
    out = held if accumulate else np.empty(g.shape, g.dtype)
    assert out is not None
    names = [(g, scalars >> 3 & 1)]
    names += [(entry[i], scalars >> i & 1) for i in range(len(op.inputs))]
    starts = [0 if v is None else parallel.address(v) for v, _ in names]
    steps = [0 if v is None or fixed else v.itemsize for v, fixed in names]
    y = entry[-1]
    starts += [0] * (4 - len(starts)) + [0 if y is None else parallel.address(y)]
    steps += [0] * (4 - len(steps)) + [0 if y is None else y.itemsize]
    target, itemsize = parallel.address(out), out.itemsize

    def work(start: int, stop: int) -> None:
        at = [s + start * step for s, step in zip(starts, steps, strict=True)]
        kernel(stop - start, int(accumulate), at[0], target + start * itemsize, *at[1:])

    parallel.split(out.size, work)
    if not accumulate:
        sweep._add(key, out)
