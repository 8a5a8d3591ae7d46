"""The compiled functions that are tried before Python does a call.

`native.install` fills the table; as long as an entry is None, Python does all calls of its kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.ops.core import Op
from tapegrad.tensor import Tensor


class NativeCalls:
    """Entry points into compiled code beside `Op.entry_point` and the Tensor's methods.

    One that returns None refuses the call, and Python does it.
    """

    __slots__ = (
        "accumulate", "change", "new_op", "planned", "record_call", "resume", "sweep", "view",
    )  # fmt: skip

    # of a view function, its arguments, and those with names: the Tensor or Tensors; in Python
    # `views.viewed`
    view: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
    # by a plan, of a Tensor; if the plan has places, at indices (or None) with what is written
    # there (or None)
    planned: Callable[..., Tensor | None] | None
    # in place, with two more operands (or None) and the operation's code
    change: Callable[[Tensor, Any, Any, int], Tensor | None] | None
    # a call of a function with a rule of its own: see `native.record_call`
    record_call: Callable[[int, Any, Any, Any, list[int], int], Any] | None
    # a sweep's gradients: see `native.accumulate`
    accumulate: Callable[[int, int, int, int], Any] | None
    # a sweep from one Tensor to leaves: see `native.sweep_call`
    sweep: Callable[[Any, Any, int, bool, tuple[Any, ...] | None], Any] | None
    # a sweep through users' rules: see `native.rule_callbacks`
    resume: Callable[[int, int, int], int] | None

    # told of an operation that has just got its `entry_point`
    new_op: Callable[[Op], None] | None

    def __init__(self) -> None:
        self.close()

    def close(self) -> None:
        """Have Python do all calls."""
        self.planned = self.change = self.new_op = None
        self.record_call = self.accumulate = self.sweep = self.resume = None


native_calls = NativeCalls()
