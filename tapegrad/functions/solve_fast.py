"""The fast path of one small system of equations.

`solve` computes what `dispatch.run` would, and writes the same records, which the compiled sweep
understands if they are of float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import resolve
from tapegrad.kernels.sweep.sweep_abi import SYSTEM
from tapegrad.ops import solve as ops
from tapegrad.ops.quiet_errstate import quietly
from tapegrad.ops.shape import squeeze, unsqueeze
from tapegrad.tape.record_format import DTYPE_BITS, SAVES
from tapegrad.tape.shape_table import LARGE
from tapegrad.tape.tape import MODE_FAST, Tape, current
from tapegrad.tensor import Tensor, placed, wrap


def solve(a: Any, b: Any) -> Tensor | None:
    """The x of ``a @ x = b``, b a matrix or a vector; None: the general path has to be taken."""
    tape = current.tape
    if not (_square(tape, a) and _small(tape, b)):
        return None
    x, y = a._a, b._a
    n = len(x)
    shape = y.shape
    dtype = x.dtype
    if not shape or shape[0] != n or len(shape) > 2 or y.dtype is not dtype:
        return None
    r = _solution(x, y)
    p, q = a._pos, b._pos
    if not (p or q):
        return wrap(r)
    if r.size > LARGE:
        tape.add_debt(r.nbytes)
    vector, bits = len(shape) == 1, DTYPE_BITS[dtype]
    columns = (n, 1) if vector else shape
    if vector and q:
        q = tape.append(_UNSQUEEZED | bits, (q,), columns, 0, _view(_LAST, y), (b,))
    specs = ((x.shape, dtype), (columns, dtype))
    kept = (r[:, None] if vector else r) if p else None
    entry: Any = (x, None, kept, ({}, specs))
    token = tape.append(_SOLVED | bits, (p, q), columns, n | columns[1] << 20, entry, (a, b))
    if vector:
        token = tape.append(_SQUEEZED | bits, (token,), shape, 0, _view(_LAST, r[:, None]))
    return placed(r, tape, token)


def _solution(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The solution of one system, for which `np.linalg` takes twice as long to look at it."""
    if _loops is not None:
        r: np.ndarray = quietly(_loops.solve1 if y.ndim == 1 else _loops.solve, x, y)
        first = r.item(0)
        if first == first:  # where there is no solution all of it is NaN
            return r
    return ops.solve.forward(x, y)  # type: ignore[no-any-return]


def _view(params: dict[str, Any], given: np.ndarray) -> Any:
    """What the record of a view keeps."""
    return None, None, (params, ((given.shape, given.dtype),))


_loops = ops.loops
_LAST = {"dims": (1,)}
_UNSQUEEZED, _SQUEEZED = unsqueeze.code, squeeze.code
_SOLVED = ops.solve.code | SAVES


def _small(tape: Tape, x: Any) -> bool:
    """Whether an operand is a real Tensor of modest size, and recording is as usual."""
    if type(x) is not Tensor or x._s == -1 or not 0 < x._a.size <= SYSTEM:
        return False
    home = x._home
    if home is not None and home is not tape and not resolve(x, tape):
        return False
    return tape.mode == MODE_FAST and not tape.inference


def _square(tape: Tape, x: Any) -> bool:
    return _small(tape, x) and x._a.ndim == 2 and x._a.shape[0] == x._a.shape[1]
