"""An inline cache of views: what view functions returned for a call, by its key."""

from __future__ import annotations

from array import array
from itertools import count
from typing import Any

import numpy as np

from tapegrad.dispatch.record_layout import address
from tapegrad.dispatch.views import (
    MultiViewRequest,
    ViewFn,
    ViewPlan,
    ViewRequest,
    multi_view_plan,
    shown,
    view_plan,
)
from tapegrad.native.abi import NUMBER, VIEW_LINE, VIEW_LINES
from tapegrad.tape.versions import root

MANY = VIEW_LINES  # things that may be held for all calls


class ViewCache:
    """The calls that compiled code answers alone; see `native.abi` for the lines."""

    def __init__(self) -> None:
        self.lines: np.ndarray = np.zeros((VIEW_LINES, VIEW_LINE), np.int64)
        self.held: dict[int, tuple[Any, ...]] = {}
        self.numbers = count(1)
        self.things = 0

    def learn(
        self, view_fn: ViewFn, args: tuple[Any, ...], named: dict[str, Any], told: np.ndarray
    ) -> Any:
        """What a view function makes, as Tensors; where it raises nothing is learnt.

        `told` are the number of the line and the words of the call.  The first argument is a
        Tensor.
        """
        made = view_fn(*args, **named)
        found = shown(made)
        a = args[0]._a
        views: list[tuple[ViewPlan, np.ndarray]] = []
        if isinstance(made, ViewRequest) and made.x is args[0] and root(made.r) is root(a):
            views = [(view_plan(made.op, a, made.params, made.r, made.key), made.r)]
        elif isinstance(made, MultiViewRequest) and len(found) <= MANY // 4:
            plans = multi_view_plan(a, made.key, made.indices).plans
            views = [(plan, t._a) for plan, t in zip(plans, found, strict=True)]
        line, *words = told.tolist()
        element = a.itemsize if isinstance(made, ViewRequest) and made.element else 0
        row = [len(words), *words, isinstance(made, MultiViewRequest), len(views), element]
        for plan, r in views:
            start = address(r) - address(a) if r.size else 0
            row += [plan.word, plan.shape, plan.aux, start, r.ndim, *r.shape, *r.strides]
        self._know(line, array("q", row), ((view_fn, *named), *[plan for plan, _ in views]))
        return found

    def _know(self, line: int, block: array[int], others: tuple[Any, ...]) -> None:
        """Have a line say what stands in a block, and hold that and what it names.

        Another thread may be here, too.  What is held is let go of by its number, which no other
        ever has, after the line that had it has another.
        """
        if self.things > MANY:
            self.forget()
        self.things += len(others)
        number = next(self.numbers)
        self.held[number] = held = (block, *others)
        before = int(self.lines[line, NUMBER])
        self.lines[line] = block.buffer_info()[0], id(held), number, 0
        self.held.pop(before, None)

    def forget(self) -> None:
        """Forget all calls.

        Line by line: NumPy lets go of the interpreter's lock to clear a whole table, and another
        thread's compiled code would find half a line.
        """
        numbers = self.lines[:, NUMBER].tolist()
        for line in self.lines:
            line[:] = 0
        self.things = 0
        for number in numbers:
            self.held.pop(number, None)
