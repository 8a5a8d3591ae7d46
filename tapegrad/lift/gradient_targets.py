"""The targets of a sweep: the variables to differentiate in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from tapegrad.dispatch.dispatch import run
from tapegrad.lift.levels import Level
from tapegrad.lift.lifted_tensor import Lifted
from tapegrad.ops.shape import alias, expand
from tapegrad.tape.tape import Tape, current, leaf_keys
from tapegrad.tensor import Tensor, noted, wrap


def variable(x: Tensor, levels: list[Level] | None = None) -> Tensor:
    """A fresh variable of the same value, as the only target of a sweep.

    Within maps (`levels`) it is one variable for each example: each gets a gradient of its own.
    """
    if levels is None:
        levels = [at for at in current.tape.levels if at.size is not None or at.traces]
    top = x._lift.at.number if isinstance(x, Lifted) else 0
    if levels and levels[-1].number > top:
        at = levels[-1]
        if at.traces:
            return at.follow(x)
        many = run(expand, (x,), {"shape": (at.size, *x._a.shape)})
        return at.batch(variable(many, levels[:-1]))
    if isinstance(x, Lifted):
        if x._lift.at.traces:
            return x._lift.at.follow(x)  # type: ignore[no-any-return]
        below = [at for at in levels if at.number < top]
        return x.varied(lambda part: variable(part, below))
    if x._pos:
        again = run(alias, (x,), {})
        if any(True for _ in followed_leaves(again)):
            again._a.flags.writeable = False  # a change in place would move it on the tape
            again.extra["followed"] = True
            return again
        # Else it would be taken for a constant, as are the variables of ended transforms.
    found = wrap(x._a).requires_grad_()
    found.extra["followed"] = True  # also by transforms within a user's rule
    return found


def maps_up_to(at: Level) -> list[Level]:
    """The open maps that a value at a level may be batched in: not inner ones."""
    return [
        one
        for one in current.tape.levels
        if (one.size is not None or one.traces) and one.number <= at.number
    ]


def forget(v: Tensor) -> None:
    """End a variable: what was computed from it is a constant from now on."""
    while isinstance(v, Lifted):
        if v._lift.at.traces:
            v._lift.at.forget(v)
            return
        v = v.parts()[0]
    if v._pos < 0:
        v.extra["followed"] = False
        v.extra["ended"] = leaf_keys()  # the time: leaves made before have smaller keys


class variables:
    """Variables of some values, until the context ends; the sweep must run within it."""

    def __init__(self, values: Iterable[Tensor], levels: list[Level] | None = None) -> None:
        self.made = [variable(x, levels) for x in values]

    def __enter__(self) -> list[Tensor]:
        return self.made

    def __exit__(self, *exception: object) -> None:
        for v in self.made:
            forget(v)


def plain(t: Any) -> Any:
    """The part of a value that is on the tape, or in a trace: all examples, and no tangents."""
    while isinstance(t, Lifted) and not t._lift.at.traces:
        t = t.parts()[0]
    return t


def depends(root: Tensor, x: Tensor) -> bool:
    """Whether a Tensor depends on another, by the tape or the trace."""
    if isinstance(x, Lifted):
        at = x._lift.at
        return isinstance(root, Lifted) and root._lift.at is at and at.depends(root, x)
    tape = current.tape
    if root._pos <= 0:
        return root._pos == x._pos and root._pos != 0
    goal = tape.slots.get(x._pos, 0) if x._pos < 0 else x._pos
    if not goal:  # a leaf that no record reads; 0 also stands for a constant
        return False
    return root._pos == goal or goal in ancestors(tape, root._pos)


def followed(leaf: Tensor) -> bool:
    """Whether a leaf can still be differentiated in: variables of ended transforms cannot."""
    return noted(leaf, "followed") is not False


def followed_leaves(t: Tensor, but: Collection[int] = ()) -> Iterator[Tensor]:
    """The followed leaves that a Tensor depends on, not through some codes."""
    if isinstance(t, Lifted):
        if not t._lift.at.traces:
            for part in t.parts():
                yield from followed_leaves(part, but)
    elif t._pos < 0:
        if followed(t):
            yield t
    elif t._pos:
        tape = current.tape
        for code in ancestors(tape, t._pos, but):
            if code < 0 and followed(tape.leaves[-code - 1]):
                yield tape.leaves[-code - 1]


def ancestors(tape: Tape, position: int, but: Collection[int] = ()) -> Iterator[int]:
    """The codes of the leaves and records that a record depends on, each once.

    What is in `but` is passed over, and so is what leads to the record through it alone.
    """
    seen, todo = {position}, [position]
    while todo:
        index = tape.index(todo.pop())
        for code in tape.inputs(index) if index >= 0 else ():
            if code and code not in but and code not in seen:
                yield code
                if code > 0:
                    seen.add(code)
                    todo.append(code)
