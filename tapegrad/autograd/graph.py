"""Hooks on what the tape saves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.tape import current
from tapegrad.tensor import Tensor

__all__ = ["saved_tensors_hooks"]


class saved_tensors_hooks:
    """Inside, every value that a record saves goes through `pack_hook`, and on use through
    `unpack_hook`.

    >>> import tapegrad as tg
    >>> x = tg.tensor(3.0, requires_grad=True)
    >>> with tg.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), tg.from_numpy):
    ...     y = x * x
    >>> y.backward(); x.grad
    tensor(6.)
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        tape = current.tape
        tape.saved_hooks.append(self.hooks)
        tape.set_mode()

    def __exit__(self, *exception: object) -> None:
        tape = current.tape
        tape.saved_hooks.pop()
        tape.set_mode()
