"""Levels: the stack of open transforms that lift Tensors, from outermost to innermost.

A transform that lifts opens a level, numbered above every open one.  The open levels are in
`tape.levels`, which operations that make Tensors from data consult.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

from tapegrad.base.call_site import raise_cause
from tapegrad.ops.core import Op
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor

_numbers = itertools.count(1)


class Level:
    """An open transform: its number, and its batch size (None: no map).

    `name` is the transform that the user called.  `randomness` says what random numbers are under
    a map: the same for all examples, different ones, or an error.  `members` are the Tensors that
    are lifted here, where the end of the level has to find them.  `open` is known of what `level`
    opened.
    """

    __slots__ = ("members", "name", "number", "open", "randomness", "size", "thread")
    traces: ClassVar[bool] = False  # what is computed here is traced, see `tapegrad.compiler`

    def __init__(self, size: int | None = None, randomness: str = "same", name: str = "") -> None:
        self.name = name
        self.number: float = next(_numbers)
        self.size = size
        self.randomness = randomness
        self.thread = threading.get_ident()
        self.members: weakref.WeakSet[Tensor] | None = None
        self.open = False

    @staticmethod
    def seen_by(tensors: Sequence[Any]) -> _Levels:
        """Hide all levels except those at which some Tensors are lifted.

        An enclosing map must not batch a user's function or rule that computes one result for all
        examples, nor derivatives that it takes itself.  Traces stay: saved values may belong to
        them.
        """
        own = levels_of(tensors)
        return _Levels([at for at in current.tape.levels if at in own or at.traces])

    def quick(
        self, op: Op, args: tuple[Any, ...], params: dict[str, Any], above: int
    ) -> Tensor | None:
        """Trace an operation, at a level that traces, if all about it is seen at once."""
        raise NotImplementedError

    def note_created(self, t: Tensor) -> None:
        """Note a Tensor that was made here from data."""

    def batch(self, full: Tensor) -> Tensor:
        """The Tensor of which `full` holds the examples, at a level that maps."""
        raise NotImplementedError

    def all_of(self, t: Any) -> Tensor:
        """The examples of a Tensor at a level that maps."""
        raise NotImplementedError

    def follow(self, t: Tensor) -> Tensor:
        """A variable at a level that traces; `forget` ends it."""
        raise NotImplementedError

    def forget(self, t: Tensor) -> None:
        """End a variable."""
        raise NotImplementedError

    def depends(self, root: Tensor, x: Tensor) -> bool:
        """Whether a Tensor depends on another, both of a level that traces."""
        raise NotImplementedError

    def fixed(self, array: np.ndarray) -> Tensor:
        """A constant at a level that traces."""
        raise NotImplementedError

    def peek(self, t: Tensor) -> np.ndarray | None:
        """The value at a level that traces, if it is known already; no guard is set on it."""
        raise NotImplementedError

    def branch(self, *args: Any, **kwargs: Any) -> Any:
        """A branch at a level that traces."""
        raise NotImplementedError

    def both(self) -> AbstractContextManager[None]:
        """A context, at a level that traces, for the arms of a branch that both run."""
        raise NotImplementedError

    def loop(self, *args: Any, **kwargs: Any) -> Any:
        """A loop at a level that traces."""
        raise NotImplementedError

    def backward_only(self, since: Sequence[Tensor]) -> bool:
        """Whether a `Function` was traced after these variables of a level that traces."""
        raise NotImplementedError


class _Levels:
    """A context that replaces the open levels; no generator, which would restore them late."""

    def __init__(self, seen: list[Level]) -> None:
        self.seen = seen

    def __enter__(self) -> None:
        self.tape = current.tape
        self.before, self.tape.levels = self.tape.levels, self.seen

    def __exit__(self, *exception: object) -> None:
        self.tape.levels = self.before


class level:
    """Open a level until the end of the context."""

    def __init__(self, made: Level) -> None:
        self.made = made

    def __enter__(self) -> Level:
        self.levels = current.tape.levels
        self.made.open = True
        self.levels += [self.made]
        return self.made

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.made.open = False
        self.levels.remove(self.made)
        if isinstance(error, ValueError):
            raise_cause(error)


def put_above(inner: Level, outer: Level) -> None:
    """Open a level right above another one, below what else is open there."""
    levels = current.tape.levels
    higher = [at.number for at in levels if at.number > outer.number]
    if higher:
        inner.number = (outer.number + min(higher)) / 2
    levels.insert(sum(at.number < inner.number for at in levels), inner)


def below(at: Level, *, and_itself: bool = False, but: tuple[Level, ...] = ()) -> _Levels:
    """Hide a level (but with `and_itself`) and those above, for what runs on its parts.

    Levels in `but`, at which other values are lifted, stay visible.
    """
    end = at.number + and_itself
    return _Levels([o for o in current.tape.levels if o.number < end or o in but])


def levels_of(tensors: Iterable[Any]) -> tuple[Level, ...]:
    """The levels at which any of some Tensors is lifted."""
    found: list[Level] = []
    for t in tensors:
        if type(t) is not Tensor and isinstance(t, Tensor):
            found += (t._lift.at, *levels_of(t.parts()))  # type: ignore[attr-defined]
    return tuple(found)
