"""Copy, pickle and format Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.dispatch.dispatch import run
from tapegrad.ops.shape import alias, clone
from tapegrad.tape.copy_on_use import own
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, place, tensor_of


def _followed(t: Tensor) -> bool:
    """Whether a transform that is under way follows this Tensor."""
    return type(t) is not Tensor or bool(current.tape.depth and place(t))


def copied(self: Tensor) -> Tensor:
    """A Tensor that shares memory: a leaf of its own, or what a transform follows on."""
    if _followed(self):
        return run(alias, (self,), {})
    own(self)
    return _rebuild(*reduced(self)[1])


def deeply_copied(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A Tensor with memory of its own: a leaf, or what a transform follows on."""
    if _followed(self):
        return run(clone, (self,), {})
    if not self.is_leaf:
        raise RuntimeError(
            f"`copy.deepcopy` takes a leaf, and this Tensor of shape {self._a.shape} was computed: "
            "use `t.detach()` for its value, or `t.clone()` to go on from it"
        )
    result = _rebuild(self._a.copy(order="K"), self.requires_grad)
    if self.grad is not None:
        from copy import deepcopy

        result._grad = deepcopy(self.grad, memo)
    return result


def reduced(self: Tensor) -> tuple[Any, ...]:
    """How `pickle` makes the Tensor again."""
    if _followed(self):
        raise RuntimeError(
            "a Tensor cannot be pickled inside a transform, which would lose sight of it: use "
            "`t.clone()` for a copy, and pickle what the transformed function returns"
        )
    if not self.is_leaf:
        raise RuntimeError(
            f"a leaf can be pickled or copied, and this Tensor of shape {self._a.shape} was "
            "computed: use `t.detach()` for its value"
        )
    return _rebuild, (self._a, self.requires_grad)


def _rebuild(array: np.ndarray, requires_grad: bool) -> Tensor:
    t = tensor_of(array, "")  # its dtype is an object of its own
    return t.requires_grad_() if requires_grad else t


def formatted(self: Tensor, spec: str) -> str:
    """The text of a Tensor; of one element as that of a number."""
    if self._a.ndim:
        return object.__format__(self, spec) if spec else repr(self)
    shown = self._a
    if type(shown) is AbstractArray:  # a text loses no gradient, so none is in the way
        return format(shown.owner.detach().item(), spec) if spec else repr(self)
    return format(shown.item(), spec) if spec or type(self) is Tensor else repr(self)
