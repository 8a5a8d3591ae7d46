"""The fast path of one small system of equations, and of one determinant, in float64.

`solve` and `slogdet` compute what `dispatch.run` would, and write the same records,
which the compiled sweep understands.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import resolve
from tapegrad.dispatch.record_layout import place_of
from tapegrad.kernels.sweep.sweep_abi import SYSTEM
from tapegrad.ops import determinant
from tapegrad.ops import solve as ops
from tapegrad.ops.factorizations import part
from tapegrad.ops.quiet_errstate import quietly
from tapegrad.ops.shape import squeeze, unsqueeze
from tapegrad.tape.shape_table import LARGE
from tapegrad.tape.tape import DTYPE_BITS, MODE_FAST, SAVES, Tape, current
from tapegrad.tensor import F8, Tensor, placed, wrap


def solve(a: Any, b: Any) -> Tensor | None:
    """The x of ``a @ x = b``, b a matrix or a vector; None: the general path has to be taken."""
    tape = current.tape
    if not (_square(tape, a) and _small(tape, b)):
        return None
    x, y = a._a, b._a
    n = len(x)
    shape = y.shape
    if not shape or shape[0] != n or len(shape) > 2:
        return None
    r = _solution(x, y)
    p, q = a._pos, b._pos
    if not (p or q):
        return wrap(r)
    if r.size > LARGE:
        tape.add_debt(r.nbytes)
    vector = len(shape) == 1
    columns = (n, 1) if vector else shape
    if vector and q:
        q = tape.append(_UNSQUEEZED, (q,), columns, 0, _view(_LAST, shape), (b,))
    specs = ((x.shape, F8), (columns, F8))
    kept = (r[:, None] if vector else r) if p else None
    entry: Any = (x, None, kept, ({}, specs))
    token = tape.append(_SOLVED, (p, q), columns, n | columns[1] << 20, entry, (a, b))
    if vector:
        token = tape.append(_SQUEEZED, (token,), shape, 0, _view(_LAST, columns))
    return placed(r, tape, token)


def _solution(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The solution of one system, for which `np.linalg` takes twice as long to look at it."""
    if _loops is not None:
        r: np.ndarray = quietly(_loops.solve1 if y.ndim == 1 else _loops.solve, x, y)
        first = r.item(0)
        if first == first:  # where there is no solution all of it is NaN
            return r
    return ops.solve.forward(x, y)  # type: ignore[no-any-return]


def _sign_and_log(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if _loops is None:
        sign, log = determinant.slogdet.forward(x)
    else:
        sign, log = quietly(_loops.slogdet, x)
    return np.array(sign), np.array(log)


def slogdet(a: Any) -> tuple[Tensor, Tensor] | None:
    """The sign of a determinant and its logarithm; None where the general path has to be taken."""
    tape = current.tape
    if not _square(tape, a) or _place(1) < 0:
        return None
    x = a._a
    sign, log = _sign_and_log(x)
    p = a._pos
    if not p:
        return wrap(sign), wrap(log)
    entry: Any = (x, None, ({}, ((x.shape, F8),)))
    whole = tape.append(_DETERMINED, (p,), _PAIR, len(x), entry, (a,))
    return (
        placed(sign, tape, tape.append(_PART, (whole,), (), _place(0), _HALVES[0])),
        placed(log, tape, tape.append(_PART, (whole,), (), _place(1), _HALVES[1])),
    )


def _view(params: dict[str, Any], given: tuple[int, ...]) -> Any:
    """What the record of a view keeps."""
    return None, None, (params, ((given, F8),))


_loops = ops.loops
_PAIR = (2,)
_LAST = {"dims": (1,)}
_HALVES = [_view({"index": (..., k)}, _PAIR) for k in (0, 1)]
_PLAIN = DTYPE_BITS[F8]
_UNSQUEEZED, _SQUEEZED, _PART = (op.code | _PLAIN for op in (unsqueeze, squeeze, part))
_SOLVED, _DETERMINED = (op.code | _PLAIN | SAVES for op in (ops.solve, determinant.slogdet))


@cache
def _place(k: int) -> int:
    """Where the compiled sweep finds how one of two numbers lies."""
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
