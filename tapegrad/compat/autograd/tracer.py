"""The names of `autograd.tracer` that programs use."""

from __future__ import annotations

from typing import Any

from tapegrad.compat.autograd.extend import notrace_primitive, primitive
from tapegrad.tensor import Tensor
from tapegrad.transforms.custom import stop_gradient


def isbox(x: Any) -> bool:
    """Whether a value is one that a derivative may follow.

    >>> from tapegrad.compat.autograd import grad
    >>> from tapegrad.compat.autograd.tracer import isbox
    >>> isbox(1.0), grad(lambda x: x * isbox(x))(1.0)
    (False, 1.0)
    """
    return isinstance(x, Tensor)


def getval(x: Any) -> Any:
    """A value that no derivative follows: a Tensor still, which is a constant.

    >>> from tapegrad.compat.autograd import grad
    >>> from tapegrad.compat.autograd.tracer import getval
    >>> grad(lambda x: x * getval(x))(3.0)
    3.0
    """
    return stop_gradient(x)


__all__ = ["getval", "isbox", "notrace_primitive", "primitive"]
