"""Make the public function of an elementwise row: its name, its docstring, its fast path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.fast_path import as_operand, binary, unary
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class Unary(Protocol):
    """A function of one operand."""

    def __call__(self, input: Any) -> Tensor: ...


class Binary(Protocol):
    """A function of two operands."""

    def __call__(self, input: Any, other: Any) -> Tensor: ...


def of_one(op: Op, module: str) -> Unary:
    """The function of a row of one operand."""
    if op.kind == ELEMENTWISE:
        return cast(Unary, _documented(unary(op), op, module))

    def function(input: Any) -> Tensor:
        return run(op, (as_operand(input),), {})

    return _documented(function, op, module)


def of_two(op: Op, module: str) -> Binary:
    """The function of a row of two operands."""
    if op.kind == ELEMENTWISE:
        return cast(Binary, _documented(binary(op), op, module))

    def function(input: Any, other: Any) -> Tensor:
        return run(op, (as_operand(input), as_operand(other)), {})

    return _documented(function, op, module)


def _documented(function: F, op: Op, module: str) -> F:
    function.__name__ = function.__qualname__ = op.name
    function.__module__ = module
    call, answer = op.example
    function.__doc__ = (
        f"{op.doc}\n\n    >>> import tapegrad as tg\n    >>> {call}\n    {answer}\n    "
    )
    return function
