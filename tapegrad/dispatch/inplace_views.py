"""Run view operations in place (`t_`, `squeeze_`, `as_strided_`).

They touch no element.  The Tensor gets the record of the view operation, and the view's array; the
chain of a view grows by one step, and its base stays as it is.
"""

from __future__ import annotations

from typing import Any

from tapegrad.dispatch.dispatch import check_open, note_line, resolve, retain_anew, write_step
from tapegrad.dispatch.inplace import check_history, check_view
from tapegrad.dispatch.layout_history import note_layout, shown_of
from tapegrad.dispatch.views import ViewRequest
from tapegrad.ops.core import Op
from tapegrad.ops.strided import as_strided
from tapegrad.tape import versions
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, View, noted, number, renew


def apply_view(t: Tensor, request: ViewRequest, name: str) -> Tensor:
    """Make a Tensor show what a view of it would."""
    op, seen, params, r = request[:4]
    if seen is not t:
        raise TypeError(f"`{name}` changes a Tensor, got {type(t).__name__}")
    tape = current.tape
    if type(t) is Tensor and t._home is not None and t._home is not tape:
        resolve(t, tape)
    if type(t) is not Tensor:
        t._apply_view(op, params, name)
        return t
    if tape.escaped:
        check_open(t, tape)
    check_inplace_view(t, name)
    old, home, short = t._pos, t._home, number(r)
    if old > 0:  # under `no_grad` too: the record of another shape would not be this Tensor's
        source, read = shown_of(t, params) if op is as_strided else (t, params)
        token = write_step(tape, op, (source,), r, read)
        if tape.anomaly is not None:
            note_line(tape, token)
    elif old < 0:
        renew(t)
    new = token if old > 0 else t._pos
    if not isinstance(home, View):
        note_layout(t, old, new)
    elif home.base is not None:
        home = stepped(home, op, params)
    t._pos, t._a, t._s, t._home = new, r, short, home  # nothing comes in between
    if old > 0:
        retain_anew(t)
    if r.flags.writeable:  # versions of borrowed memory are counted by its owner
        versions.bump(versions.root(r))
    return t


def check_inplace_view(t: Tensor, name: str) -> None:
    """Refuse to reshape in place what cannot be changed in place either."""
    tape = current.tape
    check_view(name, t, tape, bool(tape.mode and t._pos))
    check_history(name, t, tape)
    lent = t._pos < 0 and not t._a.flags.writeable
    if lent or noted(t, "followed") is not None:
        raise RuntimeError(
            f"`{name}`: this Tensor (shape {t._a.shape}) is what a transform differentiates in, "
            "and cannot be reshaped in place: use the operation that returns a new Tensor"
        )


def stepped(home: View, op: Op, params: dict[str, Any]) -> View:
    """Extend a view's chain by one step."""
    found = View(home.base, (*home.chain, (op, params)), home.tape, frozen=home.frozen)
    found.stamp, found.several = home.stamp, home.several
    return found
