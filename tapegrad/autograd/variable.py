"""`Variable`: what a Tensor with history was called before every Tensor could have one."""

from __future__ import annotations

from typing import Any

from tapegrad.tensor import Tensor


class _Tensors(type):
    """The class of a class whose instances are Tensors."""

    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=_Tensors):
    """An old name, for programs that use it: a Tensor of the same memory, without history.

    New programs write `tensor.detach().requires_grad_()`, or nothing at all.

    >>> import tapegrad as tg
    >>> x = tg.autograd.Variable(tg.tensor([1.0, 2.0]), requires_grad=True)
    >>> isinstance(x, tg.Tensor), isinstance(x, tg.autograd.Variable)
    (True, True)
    """

    def __new__(cls, data: Any, requires_grad: bool = False) -> Any:
        """The Tensor."""
        if not isinstance(data, Tensor):
            raise TypeError(
                f"`Variable` takes a Tensor, got {type(data).__name__}: make one with "
                "`tapegrad.tensor`"
            )
        return data.detach().requires_grad_(requires_grad)
