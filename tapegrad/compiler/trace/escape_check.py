"""Refuse in-place changes of captured Tensors, which a compiled program would not repeat.

A Tensor does not say whether it was captured.  It was if it is still referenced when the trace has
ended, unless the trace saw it being made.
"""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.reference_counts import expected_count
from tapegrad.tape import versions
from tapegrad.tensor import Tensor

# References to a Tensor that a tuple holds, or a view of it, and a variable.
HELD = expected_count(variables=1, holders=1)


class _Taken(NamedTuple):
    """A Tensor that became a Traced one, and its former state."""

    tensor: Tensor
    array: np.ndarray
    short: int


class EscapeCheck:
    """The untraced Tensors that a trace, with those of its loops and branches, has met."""

    __slots__ = ("_born", "_since", "_taken", "_views")

    def __init__(self) -> None:
        self._born: dict[int, weakref.ref[Tensor]] = {}
        self._taken: list[_Taken] = []
        self._views: list[tuple[weakref.ref[Tensor], np.ndarray, int]] = []
        self._since = versions.moment()

    def note_created(self, t: Tensor) -> None:
        """Note a Tensor that was made while tracing."""
        self._born[id(t)] = weakref.ref(t)

    def take(self, t: Tensor) -> None:
        """Note a Tensor that is about to become a Traced one."""
        if not self.is_ours(t):
            self._taken.append(_Taken(t, t._a, t._s))

    def take_view(self, t: Tensor) -> None:
        """Note a view that is about to become a Traced one, with its base, and is to go with it."""
        if not self.is_ours(t):
            self._views.append((weakref.ref(t), t._a, t._s))

    def is_ours(self, t: Tensor) -> bool:
        """Whether a Tensor, or that of which it is a view, was made while tracing."""
        base = t._base
        found = self._born.get(id(t if base is None else base))
        return found is not None and found() is (t if base is None else base)

    def give_back(self) -> None:
        """Restore their former state."""
        views = [(t(), array, short) for t, array, short in self._views]
        for t, array, short in (*self._taken, *views):
            if t is None:
                continue
            t.__class__ = Tensor
            t._a, t._pos, t._home, t._s = array, 0, None, short
            del t._lift
        self._taken.clear()
        self._views.clear()

    def check(self, captured: tuple[tuple[Tensor, int], ...], name: str) -> None:
        """Refuse a function that changed captured Tensors; `captured` is what it read.

        The Tensors must be referenced only by their users, this object and `captured`.
        """
        if not self._changed(captured):
            return
        gc.collect()  # a recursive function is a cycle that keeps what it uses alive
        if self._changed(captured):
            self.give_back()
            raise RuntimeError(
                f"`jit`: {name} changes a Tensor in place that was made outside of it, which a "
                "compiled program does not do: pass the Tensor as an argument and return the "
                "changed one"
            )

    def _changed(self, captured: tuple[tuple[Tensor, int], ...]) -> bool:
        if any(view() is not None for view, _, _ in self._views):
            return True
        return any(_kept(taken) for taken in self._taken) or any(
            versions.changed(versions.root(pair[0]._a)) > self._since
            and not self.is_ours(pair[0])
            and _kept(pair)
            for pair in captured
        )


def _kept(pair: Any) -> bool:
    """Whether there are references to a Tensor beside that of a tuple."""
    t = pair[0]
    if sys.getrefcount(t) > HELD + (type(t) is not Tensor):  # what it shows holds it too
        return True
    base = t._base
    return base is not None and sys.getrefcount(base) > HELD
