"""`checkpoint`: a function whose values are computed again for its derivative, not kept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tapegrad.autograd.grad_mode import enable_grad
from tapegrad.autograd.graph import saved_tensors_hooks
from tapegrad.lift.core import Lifted
from tapegrad.ops.core import Spec
from tapegrad.tape import Ended, current, leaf_keys
from tapegrad.tensor import Tensor, noted
from tapegrad.transforms.arguments import require_function
from tapegrad.transforms.pytree import flatten
from tapegrad.transforms.reverse import read_from_before

Watched = list[tuple[Tensor, int]]  # Tensors, and the versions that they had


class _Recomputed:
    """Saved values that are computed again when they are needed.

    While the function runs they are kept: derivatives that it takes itself, and has swept before it
    returns, ask for them.  When it runs again everything that it can see is as it was, whatever
    transforms have opened or ended since; else it would not do the same.
    """

    def __init__(self, run: Callable[[], Any], args: Any) -> None:
        tape = current.tape
        self.run = run
        self.levels = list(tape.levels)
        self.depth = tape.depth
        self.start = tape.next - 1 + 1  # not the object in the tape, whose references count
        self.time = leaf_keys()
        self.specs: list[Spec] = []
        self.values: Watched | None = []
        self.arguments = _versions(bare for x in flatten(args)[0] for bare in _bare(x))
        self.leaves: Watched = []

    def forget(self, t: Tensor) -> int:
        """Keep a number instead of a value."""
        self.specs.append(Spec(t._a.shape, t._a.dtype))
        if self.values is not None:
            self.values.append((t.detach(), t._version))
        return len(self.specs) - 1

    def complete(self) -> None:
        """The function has returned."""
        tape = current.tape
        codes = read_from_before(tape, self.start)
        self.leaves = _versions(tape.leaves[-code - 1] for code in codes if code < 0)
        self.values = None

    def remember(self, k: int) -> Tensor:
        """The value of a number."""
        if self.values is None:
            self.values = self._again()
        value, version = self.values[k]
        if value._version != version:
            raise RuntimeError(
                f"`checkpoint`: a value of shape {value._a.shape} that was saved has been modified "
                "by an inplace operation; use an operation that returns a new Tensor, or "
                "`clone()` before changing it"
            )
        return value

    def _again(self) -> Watched:
        for t, version in (*self.arguments, *self.leaves):
            if t._version != version:
                raise RuntimeError(
                    f"`checkpoint`: a Tensor of shape {t._a.shape} that the function read has been "
                    "modified by an inplace operation since, so its values cannot be computed "
                    "again; pass it `clone()`"
                )
        values: Watched = []

        def collect(t: Tensor) -> Tensor:
            values.append((t.detach(), t._version))
            return t

        with self._as_it_was(), enable_grad(), saved_tensors_hooks(collect, lambda t: t):
            self.run()
        if [Spec(t._a.shape, t._a.dtype) for t, _ in values] != self.specs:
            raise RuntimeError(
                "`checkpoint`: the function did other operations when it ran again; it must "
                "depend on its arguments alone"
            )
        return values

    @contextmanager
    def _as_it_was(self) -> Iterator[None]:
        """The transforms that the function saw are open, and their variables are followed."""
        tape = current.tape
        levels, depth, lost = tape.levels, tape.depth, tape.lost
        tape.levels, tape.depth, tape.lost = list(self.levels), self.depth, {}
        ended = [
            (t, t._home)
            for t in tape.leaves
            if (noted(t, "ended") or 0) > self.time > -t._pos  # it was followed then
        ]
        for t, home in ended:
            t.extra["followed"] = True
            if type(home) is Ended:
                t._home = None
        try:
            yield
        finally:
            for t, home in ended:
                t.extra["followed"] = False
                t._home = home
            tape.levels, tape.depth, tape.lost = levels, depth, lost | tape.lost
            tape.set_mode()


def _versions(tensors: Iterator[Tensor]) -> Watched:
    return [(t, t._version) for t in tensors]


def _bare(x: Any) -> list[Tensor]:
    """The Tensors with memory of their own that an argument stands for."""
    if isinstance(x, Lifted):
        return [] if x._lift.at.traces else [bare for part in x.parts() for bare in _bare(part)]
    return [x] if isinstance(x, Tensor) else []


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, which keeps no values for its derivative but computes them again.

    >>> import numpy as np, tapegrad as tg
    >>> tg.grad(lambda x: tg.checkpoint(lambda y: np.sin(np.sin(y)))(x))(0.0)
    1.0
    """
    require_function(f, "checkpoint")

    @functools.wraps(f, updated=())
    def recomputing(*args: Any, **kwargs: Any) -> Any:
        again = _Recomputed(lambda: f(*args, **kwargs), (args, kwargs))
        with saved_tensors_hooks(again.forget, again.remember):
            y = f(*args, **kwargs)
        again.complete()
        return y

    return recomputing
