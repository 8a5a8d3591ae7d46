"""Make the public function of a row: its name, its docstring, its entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tapegrad.base.dtypes import get_default_dtype, result_type
from tapegrad.dispatch.axis_plans import run_axis
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.op_functions import as_operand, binary, unary
from tapegrad.functions.arguments import (
    Dim,
    Operand,
    TypeLike,
    all_dims,
    as_input,
    as_type,
    floating,
    numpy_names,
    one_dim,
    ordered,
)
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


if TYPE_CHECKING:
    from typing import Protocol

    class Unary(Protocol):
        """A function of one operand."""

        def __call__(self, input: Any) -> Tensor: ...

    class Binary(Protocol):
        """A function of two operands."""

        def __call__(self, input: Any, other: Any) -> Tensor: ...

    class Reduction(Protocol):
        """A function that gives one number for each row along dimensions."""

        def __call__(self, input: Any, dim: Dim, keepdim: bool = False) -> Tensor: ...

    class RowWise(Protocol):
        """A function along one dimension that gives one number for each element."""

        def __call__(self, input: Any, dim: int, *, dtype: Any = None) -> Tensor: ...


def of_one(op: Op, module: str) -> Unary:
    """The function of a row of one operand."""
    if op.kind == ELEMENTWISE:
        return cast("Unary", _documented(unary(op), op, module))

    def function(input: Tensor) -> Tensor:
        return run(op, (as_operand(input),), {})

    return _documented(function, op, module)


def of_two(op: Op, module: str) -> Binary:
    """The function of a row of two operands."""
    if op.kind == ELEMENTWISE:
        return cast("Binary", _documented(binary(op), op, module))

    def function(input: Tensor, other: Operand) -> Tensor:
        return run(op, promoted(as_operand(input), as_operand(other)), {})

    return _documented(function, op, module)


def promoted(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands; a 0-d Tensor takes the type of one with dimensions, as far as PyTorch says."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a._a.dtype == b._a.dtype:
        return a, b
    if bool(a._a.ndim) == bool(b._a.ndim):  # NumPy's rule is PyTorch's
        return a, b
    kind = result_type([a._a, b._a])
    return as_type(a, kind), as_type(b, kind)


def of_reduction(op: Op, module: str) -> Reduction:
    """The function of a row that reduces along dimensions."""

    def function(input: Tensor, dim: Dim, keepdim: bool = False) -> Tensor:
        return run_axis(op, _reduced, input, dim, keepdim)

    return numpy_names(_documented(function, op, module))


def of_rows(op: Op, module: str) -> RowWise:
    """The function of a row that keeps the shape of its operand."""

    def function(input: Tensor, dim: int, *, dtype: TypeLike | None = None) -> Tensor:
        return run_axis(op, _kept, as_type(as_input(input, op.name), dtype), dim)

    return numpy_names(_documented(function, op, module))


def _reduced(op: Op, input: Any, dim: Any, keepdim: bool, _: Any) -> tuple[Tensor, dict[str, Any]]:
    x = _checked(op, as_input(input, op.name))
    return x, {"dim": all_dims(dim, x._a.ndim, op.name), "keepdim": keepdim}


def _kept(op: Op, input: Tensor, dim: Any, *_: Any) -> tuple[Tensor, dict[str, Any]]:
    x = _checked(op, input)
    return x, {"dim": (one_dim(dim, x._a.ndim, op.name),)[: x._a.ndim]}


def _checked(op: Op, x: Tensor) -> Tensor:
    if op.to_float and x._a.dtype.kind in "biu":
        x = as_type(x, get_default_dtype())
    x = floating(x, op.name)
    return ordered(x, op.name) if op.ordered else x


def _documented(function: F, op: Op, module: str) -> F:
    function.__name__ = function.__qualname__ = op.name
    function.__module__ = module
    call, answer = op.example
    note = f"    {op.singular}\n\n" if op.singular else ""
    function.__doc__ = (
        f"{op.doc}\n\n{note}    >>> import tapegrad as tg\n    >>> {call}\n    {answer}\n    "
    )
    return function
