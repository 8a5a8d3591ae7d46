"""`ctx`: what `forward` and `backward` of a Function share."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.autograd.pullback import lift
from tapegrad.tape.tape import Ended, Tape
from tapegrad.tensor import Tensor, placed, wrap


class Context:
    """What `forward` and `backward` of a Function share, called `ctx`.

    `save_for_backward`, `save_for_forward`, `saved_tensors`, `needs_input_grad`, `mark_dirty`,
    `mark_non_differentiable` and `set_materialize_grads` are PyTorch's; any other attribute may be
    set freely.
    """

    needs_input_grad: tuple[bool, ...] = ()
    _to_save: tuple[Any, ...] = ()
    _for_forward: tuple[Any, ...] = ()
    _saved: tuple[Any, ...] = ()
    _dirty: tuple[Tensor, ...] = ()
    _constant: tuple[Tensor, ...] = ()
    _materialize = True
    _tape: Tape | None = None

    def needs(self, args: tuple[Any, ...]) -> bool:
        """Note which arguments require grad; whether any does."""
        self.needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        return True in self.needs_input_grad

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep Tensors (inputs, outputs or others) for `backward`; their versions are watched."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Say what `saved_tensors` are in `jvp`; without it there are none."""
        self._for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` changed in place."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for outputs without a gradient."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` was given."""
        tape = self._tape
        if tape is None:
            return self._to_save
        found = []
        for kind, where, value, reference in self._saved:
            if kind == "plain":
                found.append(value)
                continue
            t = None
            if kind == "tensor":
                t = reference()
            else:
                receive, packed = value
                value = receive(packed)._a
            if t is None or not _unmoved(t, where, value):
                t = lift_anywhere(tape, where, value)
            found.append(t)
        return tuple(found)


def _unmoved(t: Tensor, where: int | Tensor, array: np.ndarray) -> bool:
    """Whether a saved Tensor still has its position and value, so that it can be returned."""
    ended = type(t._home) is Ended  # the variable of a transform, which may not be used any more
    return t._a is array and (t is where or t._pos == where) and not ended


def lift_anywhere(tape: Tape, where: int | Tensor, array: np.ndarray) -> Tensor:
    """A Tensor at the position of a saved one; a constant if that record is gone."""
    if type(where) is int:
        index = tape.index(where) if where else -1
        return wrap(array) if index < 0 else placed(array, tape, tape.tokens[index])
    assert isinstance(where, Tensor)  # a leaf: the tape may have numbered it anew
    return lift(tape, tape.slot(where), array) if where._pos else wrap(array)
