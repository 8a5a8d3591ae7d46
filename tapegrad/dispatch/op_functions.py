"""The public functions of elementwise operations, whole reductions and matrix products.

`unary`, `binary` and `matmul` build the public function of an operation, which calls its
`entry_point`.  That is a function that goes to `dispatch.run` at first; compiled code takes its
place once it is available (see `native.install`), and falls back to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.base.native_arrays import native_array, refuse_operand
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.dispatch.one_operand import recorded
from tapegrad.ops.core import NO_PARAMS, Op
from tapegrad.tape.tape import current
from tapegrad.tensor import F8, SHORT, Tensor

# The functions that only call an operation's entry point, and whether their operands are swapped.
public: dict[Callable[..., Any], tuple[Op, bool]] = {}
reductions: set[Op] = set()  # sums and means
constants: dict[float, np.ndarray] = {}
constants_f4: dict[float, np.ndarray] = {}


def constant(value: float) -> np.ndarray:
    """A 0-d float64 array, from a cache of the last few hundred: loops repeat constants."""
    found = constants.get(value) if value else None
    if found is None:
        found = np.array(value, F8)
        found.flags.writeable = False
        if value:
            if len(constants) > 256:
                constants.clear()
            constants[value] = found
    return found


def as_operand(x: Any) -> Any:
    """An operand for the general path: a Tensor, an array or a number; a list is an array."""
    if isinstance(x, (Tensor, bool, int, float, complex)) or type(x) is AbstractArray:
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        if type(x) is not np.ndarray and isinstance(x, np.ndarray):
            refuse_operand(type(x))
        return native_array(x, "")
    if isinstance(x, (list, tuple)) and numpys():
        array = np.asarray(x)
        if array.dtype.kind in "biufc":
            return array
    if hasattr(type(x), "to_numpy") and hasattr(x, "__array__"):  # a column of pandas, or polars
        return as_operand(x.to_numpy())
    raise TypeError(
        f"an operand must be a Tensor, a NumPy array or a number, got {type(x).__name__}"
    )


def general(op: Op, *given: Any) -> Tensor:
    """Run an elementwise operation on the general path, or have a trace record it."""
    found = traced(op, given, NO_PARAMS, 3)
    if found is not None:
        return found
    x = given[0]
    if len(given) == 1 and type(x) is Tensor and x._a.dtype.kind == "c" and x._a.size < SHORT:
        found = recorded(op, x, NO_PARAMS)
        if found is not None:
            return found
    try:
        operands = tuple([as_operand(x) for x in given])
    except TypeError:
        for x in given:
            if hasattr(x, "elementwise_op"):  # no operand, but it knows what to do
                made: Tensor = x.elementwise_op(op, given)
                return made
        if any(type(x).__module__.startswith("scipy.sparse") for x in given):
            from tapegrad.functions.sparse import with_scipys_matrix

            return with_scipys_matrix(op, given)  # type: ignore[no-any-return]
        raise
    return run(op, operands, {})


def traced(op: Op, given: tuple[Any, ...], params: dict[str, Any], above: int = 2) -> Tensor | None:
    """What an operation gives under a trace that records it at once, if it does.

    So many callers are the library's.
    """
    levels = current.tape.levels
    if not levels or not levels[-1].traces:
        return None
    found: Tensor | None = levels[-1].quick(op, given, params, above)
    return found


def _set_entry_point(op: Op, function: Callable[..., Any]) -> None:
    """Give an operation its entry point, which compiled code may take the place of."""
    op.entry_point = function
    if native_calls.new_op is not None:
        native_calls.new_op(op)


def unary(op: Op) -> Callable[[Any], Tensor]:
    """The function `op(input)` for an elementwise operation of one operand."""
    _set_entry_point(op, lambda input: general(op, input))

    def function(input: Any) -> Any:
        return op.entry_point(input)

    public[function] = op, False
    return function


def binary(op: Op) -> Callable[[Any, Any], Tensor]:
    """The function `op(input, other)` for an elementwise operation of two operands."""
    _set_entry_point(op, lambda input, other: general(op, input, other))
    return _of_two(op)


def ternary(op: Op) -> None:
    """Give an operation of three operands an entry."""
    _set_entry_point(op, lambda a, b, c: general(op, a, b, c))


def _of_two(op: Op) -> Callable[[Any, Any], Any]:
    def function(input: Any, other: Any) -> Any:
        return op.entry_point(input, other)

    public[function] = op, False
    return function


def whole(op: Op, function: Callable[[Tensor], Tensor]) -> None:
    """Say how a sum or mean of everything is made."""
    reductions.add(op)
    _set_entry_point(op, function)


def flipped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same with operands swapped, for a reflected operator."""

    def operator(self: Tensor, other: Any) -> Any:
        return function(other, self)

    if function in public:
        public[operator] = public[function][0], True
    return operator


def matmul(op: Op, otherwise: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """The function of products of matrices and vectors."""

    def product(input: Any, other: Any) -> Tensor:
        plain = type(other) is np.ndarray or (type(input) is Tensor and type(other) is Tensor)
        found = None if plain else traced(op, (input, other), NO_PARAMS)
        return otherwise(input, other) if found is None else found

    _set_entry_point(op, product)
    return _of_two(op)
