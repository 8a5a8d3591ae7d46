"""An inline cache of views: what view functions returned for a call, by its key."""

from __future__ import annotations

import itertools
from array import array
from typing import Any

import numpy as np

from tapegrad.dispatch.operand_layout import address
from tapegrad.dispatch.views import (
    MultiViewRequest,
    ViewFn,
    ViewRequest,
    as_tensors,
    multi_view_plan,
    view_plan,
)
from tapegrad.native.abi import (
    TOGETHER,
    VIEW_LINES,
    CachedViews,
    ViewCall,
    ViewKey,
    ViewLine,
    ViewPlan,
    ViewRecord,
)
from tapegrad.tape.versions import root

MANY = VIEW_LINES  # objects that may be held for all calls


class ViewCache:
    """The calls that compiled code answers alone; see `native.abi` for the lines."""

    def __init__(self) -> None:
        self.lines: np.ndarray = np.zeros((VIEW_LINES, ViewLine.SIZE), np.int64)
        self.held: dict[int, CachedViews] = {}
        self.numbers = itertools.count(1)
        self.count = 0

    def learn(
        self, view_fn: ViewFn, args: tuple[Any, ...], named: dict[str, Any], key: np.ndarray
    ) -> Any:
        """What a view function makes, as Tensors; where it raises nothing is learnt.

        `key` are the number of the line and the words of the call.  The first argument is a
        Tensor.
        """
        made = view_fn(*args, **named)
        found = as_tensors(made)
        a = args[0]._a
        views: list[tuple[ViewPlan, np.ndarray]] = []
        if isinstance(made, ViewRequest):
            r = made.r
            if made.x is args[0] and root(r) is root(a) and r.dtype is a.dtype:
                views = [(view_plan(made.op, a, made.params, r, made.key), r)]
        elif isinstance(made, MultiViewRequest) and len(found) <= MANY // 4:
            multi = multi_view_plan(a, made.key, made.indices)
            views = [(plan, t._a) for plan, t in zip(multi.plans, found, strict=True)]
        line, *words = key.tolist()
        element = a.itemsize if isinstance(made, ViewRequest) and made.element else 0
        row = ViewKey.words(count=len(words)) + words
        several = 0
        if isinstance(made, MultiViewRequest):
            several = TOGETHER if made.together else 1
        row += ViewCall.words(several=several, count=len(views), itemsize=element)
        for plan, r in views:
            start = address(r) - address(a) if r.size else 0
            row += ViewRecord.words(
                word=plan.word, shape=plan.shape, aux=plan.aux, start=start, ndim=r.ndim
            )
            row += (*r.shape, *r.strides)
        plans = tuple([plan for plan, _ in views])
        self._know(line, CachedViews(key=array("q", row), names=(view_fn, *named), plans=plans))
        return found

    def _know(self, line: int, held: CachedViews) -> None:
        """Have a line say what was learnt, and hold what it names.

        Another thread may be here, too.  What is held is let go of by its number, which no other
        ever has, after the line that had it has another.
        """
        if self.count > MANY:
            self.forget()
        self.count += 1 + len(held.plans)
        number = next(self.numbers)
        self.held[number] = held
        before = int(self.lines[line, ViewLine.number])
        self.lines[line] = ViewLine.words(
            key=held.key.buffer_info()[0], held=id(held), number=number, last_hash=0
        )
        self.held.pop(before, None)

    def forget(self) -> None:
        """Forget all calls.

        Line by line: NumPy lets go of the interpreter's lock to clear a whole table, and another
        thread's compiled code would find half a line.
        """
        numbers = self.lines[:, ViewLine.number].tolist()
        for line in self.lines:
            line[:] = 0
        self.count = 0
        for number in numbers:
            self.held.pop(number, None)
