"""The short road of views: a Tensor that shares another's memory, with its record.

`see` writes what the general road of `tapegrad.record` would write, and asks nothing that a view
cannot answer yes to: there is one operand, its type stays, nothing is computed and no value kept.
The caller has made the array, which must share the operand's memory.  `see_all` makes the views of
one call, as `unbind` does.  The lines that append a record are those of `Tape.append`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tapegrad.ops.core import Op, table
from tapegrad.ops.shape import STRIDED, expand
from tapegrad.record import PASSES, classes, place_of, resolve, run
from tapegrad.tape import (
    DTYPE_BITS,
    GENERAL,
    MODE_FAST,
    STRIDE,
    Tape,
    current,
    pack_into,
    shapes,
)
from tapegrad.tensor import F8, NO_GRAD, SHORT, Chain, Tensor, View

Params = dict[str, Any]
_new = Tensor.__new__
_new_view = View.__new__
_numbers = shapes.ids
_words = {op: op.code | (0 if op.name in PASSES else GENERAL) for op in table.values() if op.view}
_spreads: dict[Any, tuple[int, int]] = {}  # of `expand`, by shapes: bits of the word, and AUX
_strided = frozenset(op for op in table.values() if op.name in STRIDED)


def see(op: Op, x: Tensor, params: Params, r: np.ndarray, place: int | None = None) -> Tensor:
    """The view `r` of a Tensor's array as a Tensor, recorded if it must be.

    `place` is where the walk finds how the view lies, if the caller knows it.
    """
    tape = current.tape
    home = x._home
    if home is not None and home is not tape:
        resolve(x, tape)
    p = x._pos
    if type(x) is not Tensor or (tape.mode != MODE_FAST and (tape.inference or (p and tape.mode))):
        return run(op, (x,), params)
    t = _new(Tensor)
    t._a = r
    dtype = r.dtype
    shape = r.shape
    s = _numbers.get(shape)
    if s is None:
        s = shapes.number(shape)
    t._s = s if dtype is F8 and r.size < SHORT else -1
    t._home = view = _new_view(View)
    view.tape = tape
    view.several = False
    if type(home) is not View:
        view.base = x
        view.chain = ((op, params),)
        view.stamp = p
        view.frozen = NO_GRAD if p and not tape.enabled else ""
    else:
        _above(view, home, ((op, params),), p, tape)
    if not p or not tape.mode:
        t._pos = 0
        return t
    word = _words[op]
    if dtype is not F8:
        word |= DTYPE_BITS[dtype]
    aux = 0
    given = x._a.shape
    if op is expand:
        bits, aux = _spreads.get((given, shape)) or _spread(given, shape)
        word |= bits
    elif op in _strided and dtype is F8:
        aux = place_of(x._a, r) if place is None else place
        if aux < 0:
            aux = 0
        else:
            word = op.code
    offset = tape.offset
    if offset == tape.end:
        offset = tape.make_room()
    if p < 0:
        p = tape.slots.get(p) or tape.slot(x)
    token = tape.next
    pack_into(tape.buffer, offset, word, p, 0, 0, s, aux)
    tape.offset = offset + STRIDE
    tape.next = token + 1
    tape.tokens.append(token)
    tape.keep.append((None, None, (params, ((given, dtype),))))
    t._pos = token
    return t


def _above(view: View, above: View, step: Chain, p: int, tape: Tape) -> None:
    """Fill in a view of a view."""
    base = above.base
    if base is None:
        view.base, view.chain, view.stamp, view.frozen = None, (), 0, above.frozen
        return
    view.base = base
    view.chain = above.chain + step
    view.stamp = base._pos
    view.frozen = NO_GRAD if p and not tape.enabled else above.frozen


def _spread(given: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, int]:
    if len(_spreads) > 4096:
        _spreads.clear()
    found = _spreads[given, shape] = classes((given,), shape) or (GENERAL, 0)
    return found


def see_all(op: Op, x: Tensor, pieces: Iterable[tuple[Params, np.ndarray]]) -> tuple[Tensor, ...]:
    """The views that one call makes: they know it, since none may be changed in place alone."""
    tape = current.tape
    home = x._home
    if home is not None and home is not tape:
        resolve(x, tape)
    p = x._pos
    if type(home) is View or tape.mode != MODE_FAST or type(x) is not Tensor:
        found = [see(op, x, params, r) for params, r in pieces]
        for t in found:
            if type(t._home) is View:
                t._home.several = True
        return tuple(found)
    found = []
    dtype = x._a.dtype
    specs = ((x._a.shape, dtype),)
    word = _words[op] | DTYPE_BITS[dtype] if p else 0
    short = dtype is F8
    if p:
        tape.make_room()
    code = (tape.slots.get(p) or tape.slot(x)) if p < 0 else p
    tokens, keep = tape.tokens, tape.keep
    for params, r in pieces:
        t = _new(Tensor)
        t._a = r
        shape = r.shape
        s = _numbers.get(shape)
        if s is None:
            s = shapes.number(shape)
        t._s = s if short and r.size < SHORT else -1
        t._home = view = _new_view(View)
        view.base = x
        view.chain = ((op, params),)
        view.tape = tape
        view.stamp = p
        view.several = True
        view.frozen = ""
        if p:
            offset = tape.offset
            if offset == tape.end:
                offset = tape.make_room()  # which numbers the leaves anew
                code = (tape.slots.get(p) or tape.slot(x)) if p < 0 else p
                tokens, keep = tape.tokens, tape.keep
            t._pos = token = tape.next
            place = place_of(x._a, r) if short and op in _strided else -1
            w, aux = (word, 0) if place < 0 else (op.code, place)
            pack_into(tape.buffer, offset, w, code, 0, 0, s, aux)
            tape.offset = offset + STRIDE
            tape.next = token + 1
            tokens.append(token)
            keep.append((None, None, (params, specs)))
        else:
            t._pos = 0
        found.append(t)
    return tuple(found)
