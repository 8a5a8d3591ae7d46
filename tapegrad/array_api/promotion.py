"""Operands in the type that the standard promotes them to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.base.dtypes import promote_types
from tapegrad.functions.shapes import to
from tapegrad.tensor import Tensor

Pair = Callable[[Any, Any], Tensor]


def same_type(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands in one type, if both are Tensors.

    The standard looks at types alone; PyTorch leaves a Tensor of fewer dimensions out.
    """
    if isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1._a.dtype is not x2._a.dtype:
        kind = promote_types(x1.dtype, x2.dtype)
        return to(x1, kind), to(x2, kind)
    return x1, x2


def of_two(function: Callable[..., Any], name: str) -> Pair:
    """A function of two operands, which are promoted as the standard does it."""

    def promoted(x1: Any, x2: Any, /) -> Tensor:
        found: Tensor = function(*same_type(x1, x2))
        return found

    promoted.__name__ = promoted.__qualname__ = name
    promoted.__doc__ = f"`tapegrad.{function.__name__}`, with the standard's promotion of types."
    return promoted


def on_tensors(function: Any) -> Callable[..., Any]:
    """NumPy's function itself, which has the standard's arguments and records on Tensors."""
    found: Callable[..., Any] = function
    return found
