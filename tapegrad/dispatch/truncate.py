"""Truncate the tape to a mark taken before a transform, unless newer records are in use."""

from __future__ import annotations

import sys
from sys import getrefcount

from tapegrad.tape.record_format import IN0, LISTED, SHAPE, WORD
from tapegrad.tape.tape import UNHELD, Ended, Mark, Tape
from tapegrad.tensor import Tensor


def truncate(
    tape: Tape, mark: Mark, name: str, own: Tensor | None = None, sweeping: int = 0, since: int = 0
) -> bool:
    """Forget the records and leaves since a mark, unless they are in use.

    A function of plain arrays leaves nothing behind then.  Positions are not used again.  What is
    still referenced, but depends on variables alone, has `escaped`: computing with it is an error
    that names the transform (`name`).  `own` is known to be a variable, which spares the short path
    of a gradient a look.  Leaves with keys below `since` are older than what has ended.
    """
    tokens, count, leaves, inputs = mark
    if tape.escaped:
        tape.forget_escaped()
    if tokens is not tape.tokens or tape.sweeping != sweeping:
        return False
    before, used = tape.next, tape.used
    newest = tokens[count:used]
    if not newest:
        return True
    if (tape.hooks or tape.traces) and max(*tape.hooks, *tape.traces, 0) >= newest[0]:
        return False
    if max(map(getrefcount, newest)) > UNHELD and not _mark_all(tape, newest, leaves, inputs, name):
        return False
    dropped, forgotten = tape.keep[count:used], tape.leaves[leaves:]
    for leaf in forgotten:  # before the slot is another leaf's
        tape.slots.pop(leaf._pos, None)
        if leaf is own or (-leaf._pos >= since and _varies(leaf)):
            leaf._home = Ended(name)
    old, old_at = tape.old, tape.old_at
    if len(old) != count:
        old, old_at = tape.places(count)
    nothing = [None] * (used - count)
    if tape.next is not before:  # and so it stays to the end
        return False
    tokens[count:used] = nothing
    tape.keep[count:used] = nothing
    tape.used = count
    del tape.leaves[leaves:]
    if tape.input_lists:
        del tape.input_lists[inputs:]
    if not count:
        tape.debt = 0
    tape.old, tape.old_at = old, old_at
    tape.shift = before - count
    tape.floor = count if count < tape.floor else tape.floor
    tape.tail = (0, 0)
    tape.next = before - 1 + 1
    del newest, dropped, forgotten  # last: freeing values may run code of the user
    return True


def truncate_in_sweep(tape: Tape, mark: Mark, name: str, since: int) -> None:
    """`truncate` records made while a sweep goes on below the mark.

    The records stay if one of them is referenced.
    """
    newest = tape.tokens[mark[1] : tape.used]
    if not newest or max(map(getrefcount, newest)) > UNHELD:
        return
    for table in (tape.hooks, tape.traces):
        for position in [p for p in table if p >= newest[0]]:
            del table[position]
    del newest
    truncate(tape, mark, name, sweeping=tape.sweeping, since=since)


def mark_escaped(tape: Tape, since: int, name: str, roots: list[Tensor]) -> None:
    """Mark positions from `since` on that are still referenced as escaped; their records stay.

    What the roots stand on is held for the transform itself, and so is what a Function saved.
    """
    first = max(tape.index(since) if since < tape.next else len(tape), 0)
    used = tape.used
    entries = tape.keep[first:used]
    if any(hasattr(entry, "pull") for entry in entries):
        return
    own = set()
    for root in roots:
        t: Tensor | None = root
        while t is not None:
            own.add(t._pos)
            t = t._base
    escaped = [p for p in _referenced(tape.tokens[first:used]) if p not in own]
    if escaped:
        tape.escaped |= dict.fromkeys(escaped, name)
        tape.set_mode()


def _referenced(newest: list[int]) -> list[int]:
    """The newest positions with references beside those of the tape and of this list."""
    counts = map(getrefcount, newest)
    return [newest[i] for i, references in enumerate(counts) if references > UNHELD]


def _mark_all(tape: Tape, newest: list[int], leaves: int, inputs: int, name: str) -> bool:
    """Mark the newest records that are referenced as escaped; False: they are still needed."""
    if sys.exception() is not None or not _closed(tape, newest, leaves, inputs):
        return False  # a traceback holds everything
    tape.escaped |= dict.fromkeys(_referenced(newest), name)
    tape.set_mode()
    return True


def _closed(tape: Tape, newest: list[int], leaves: int, inputs: int) -> bool:
    """Whether the newest records read nothing but each other and variables.

    If records move meanwhile nothing is known, and the answer is no.
    """
    before, known = tape.next, [*tape.leaves]
    words = tape.words()[-len(newest) :]
    inline = words[(words[:, WORD] & LISTED) == 0, IN0:SHAPE]
    codes = {*inline.ravel().tolist(), *tape.input_lists[inputs:]}
    first = newest[0]
    closed = all(
        code >= first if code > 0 else -len(known) <= code < -leaves and _varies(known[-code - 1])
        for code in codes - {0}
    )
    return closed and tape.next is before


def _varies(leaf: Tensor) -> bool:
    """Whether a leaf is a variable of an ended transform, not of the user."""
    extra = getattr(leaf, "_extra", None)  # which a leaf of the user has
    return extra is None or extra.get("followed") is False
