"""Exceptions that a function handles itself: each goes from where it is raised to its handler.

Numba marks where a `try` begins and ends.  In it every operation of the byte code is a block, at
whose end is a test whether the operation has raised; what stands between are copies, which the way
to the handler makes too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.unsafe import eh

from tapegrad.njit.numba_front.lapack_factors import LapackFactors
from tapegrad.njit.numba_front.objects import NumbaIR, ir, types
from tapegrad.njit.numba_front.typed_ir import TRY, TRYING
from tapegrad.njit.numba_front.writer import NOWHERE
from tapegrad.njit.three_address_code import CodeBlock, Constant, Unsupported

_COPIED = (ir.Var, ir.Const, ir.Global, ir.FreeVar, ir.Arg)
_RAISE = (ir.StaticTryRaise, ir.TryRaise, ir.DynamicTryRaise)


class Exceptions(LapackFactors):
    """Writes where exceptions go."""

    located: Callable[..., Unsupported]  # these are the translation's
    constant: Callable[..., None]
    copy_variable: Callable[..., None]
    labels: dict[int, CodeBlock]
    caught: int | None  # where those go that nothing here handles
    in_try: dict[int, bool]  # of blocks, at the beginning
    trying = False

    def find_tries(self) -> None:
        """Find the blocks that begin in a `try`."""
        self.caught, self.in_try = self.unwind, {}
        self.tests: set[str] = set()
        blocks = self.typed.blocks
        assigned = [s for b in blocks.values() for s in b.body if isinstance(s, ir.Assign)]
        if not any(isinstance(s.value, ir.Global) and _is_mark(s.value.value) for s in assigned):
            return
        self.tests = {s.target.name for s in assigned if self._marks(s) is eh.exception_check}
        pending = [(min(blocks), False)]
        while pending:
            k, inside = pending.pop()
            if k in self.in_try:
                if self.in_try[k] != inside and not self._ends_try(blocks[k].body):
                    raise self.located(Unsupported(TRY), blocks[k].body[0])
                continue
            self.in_try[k] = inside
            for s in blocks[k].body:
                mark = self._marks(s)
                if mark is eh.mark_try_block and inside:
                    raise self.located(Unsupported("`try` in another `try`"), s)
                inside = mark is eh.mark_try_block or (inside and mark is not eh.end_try_block)
            pending += [(target, inside) for target in blocks[k].body[-1].get_targets()]

    def _ends_try(self, body: list[NumbaIR]) -> bool:
        """Whether a block does nothing in the `try` that it may begin in."""
        marks = (self._marks(s) for s in body if not _is_idle(s))
        return next(marks, None) is eh.end_try_block

    def _marks(self, s: NumbaIR) -> Any:
        """The function by which a statement serves a `try`, if it does."""
        if not isinstance(s, ir.Assign) or getattr(s.value, "op", None) != "call":
            return None
        key = getattr(self.type(s.value.func), "typing_key", None)
        return key if _is_mark(key) else None

    def serves_try(self, s: NumbaIR) -> bool:
        """Whether a statement is one by which Numba has a `try`; it is written here."""
        mark = self._marks(s)
        if mark is eh.exception_match:
            self.assign(s.target, ([Constant(True, "i1")], types.boolean))
        elif mark is not None:
            self.trying = mark is eh.mark_try_block or (
                self.trying and mark is not eh.end_try_block
            )
        elif isinstance(s, ir.Branch) and s.cond.name in self.tests:
            self.current.end("jump", (), self.labels[s.falsebr].label)
        elif isinstance(s, _RAISE):
            if not isinstance(self.typed.blocks[self.at].body[-1], ir.Jump):  # to the handler
                self.raise_exception()
                self.current = self.code.block()  # nothing gets here
        else:
            return False
        return True

    def guard(self, body: list[NumbaIR], at: int) -> None:
        """Have what the next statement raises go to its handler."""
        s, last = body[at], body[-1]
        self.unwind = NOWHERE if self.trying else self.caught
        tested = isinstance(last, ir.Branch) and last.cond.name in self.tests
        if not (self.trying and tested) or _is_idle(s) or s is last or self._marks(s):
            return
        here, self.current = self.current, self.code.block()
        self.unwind = self.current.label
        lost = {s.target.name} if isinstance(s, ir.Assign) else set[str]()
        for x in body[at + 1 : -1]:
            if isinstance(x, ir.Del) or self._marks(x):
                continue
            if not _is_idle(x):
                raise self.located(Unsupported(TRY), s)
            if not isinstance(x.value, ir.Var):
                self.constant(x.target, x.value.value)
            elif x.value.name not in lost:
                self.copy_variable(x.value, x.target)
            elif x.target.name.startswith("$"):
                lost.add(x.target.name)
            else:
                raise self.located(Unsupported(TRY), s)
        self.current.end("jump", (), self.labels[last.truebr].label)
        self.current = here


def _is_idle(s: NumbaIR) -> bool:
    return isinstance(s, ir.Del) or (isinstance(s, ir.Assign) and isinstance(s.value, _COPIED))


def _is_mark(x: Any) -> bool:
    return getattr(x, "__module__", None) == TRYING
