"""The storage behind Traced Tensors, which holds a record of some trace.

A loop or a branch has traces of its own within the one that it stands in; what they read and what
they may change of it is decided here.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import TYPE_CHECKING, Any

from tapegrad.tensor import Chain

if TYPE_CHECKING:
    from tapegrad.compiler.trace.trace import Trace


class Owner:
    """A loop or a branch whose functions are traced, each in a trace of its own.

    Records of the trace that it stands in become operands of it when one of its functions reads
    them: `brought`, behind the `fixed` operands that it has anyway.  What is computed from such
    records alone is computed once, before a loop; in an arm of a branch (`lazy`) it stays there.
    """

    __slots__ = ("brought", "fixed", "lazy", "marks", "name", "trace")

    def __init__(self, trace: Trace, name: str, fixed: int, *, lazy: bool = False) -> None:
        self.trace = trace
        self.name = name
        self.fixed = fixed
        self.lazy = lazy
        self.marks: dict[Trace, int] = {}  # how many records the traces had before the call
        self.brought: list[int] = []

    def bring(self, inner: Trace, position: int) -> int:
        """The record of an inner trace for one of the outer trace."""
        node = self.trace.nodes[position]
        if node.value is not None:
            return inner.constant(node.value)
        if position not in self.brought:
            self.brought.append(position)
        return inner.entrance(
            self.fixed + self.brought.index(position), self.trace.values[position]
        )


class TracedStorage:
    """What lies in a piece of memory: a record, another one after each change in place."""

    __slots__ = ("at", "content", "frozen", "made", "version")

    def __init__(self, at: Trace, content: int, frozen: bool) -> None:
        self.at = at
        self.frozen = frozen  # the caller's
        self.content = self.made = content
        self.version = 0

    def move(self, inner: Trace) -> None:
        """It belongs to an inner trace from now on."""
        self.content = self.made = inner.position(self.at.tensor(self.content))
        self.at = inner
        self.version += 1


class Parts:
    """What a Traced Tensor stands for: a view (or all) of a piece of memory."""

    __slots__ = ("cell", "chain", "position", "version", "where")

    def __init__(self, cell: TracedStorage, chain: Chain, position: int) -> None:
        self.cell = cell
        self.chain = chain
        self.position = position
        self.version = cell.version
        self.where = cell.at.line or line()

    @property
    def at(self) -> Trace:
        """The trace that the memory belongs to."""
        return self.cell.at

    def fresh(self) -> bool:
        """Whether this memory was made in the function of a loop or branch that is traced now."""
        inner = self.at
        while inner.inside is not None:
            inner = inner.inside
        if inner is self.at:
            return True
        assert inner.owner is not None
        return self.cell.made >= inner.owner.marks[self.at]


def outside(name: str) -> RuntimeError:
    """What is raised where a loop or branch changes what it does not own."""
    return RuntimeError(
        f"under `tapegrad.jit`, a function given to `{name}` changes a Tensor in place that "
        "was made outside of it: pass it in and return the changed one"
    )


_ours: dict[CodeType, bool] = {}  # whether code is the library's


def line() -> tuple[str, int]:
    """The line of the user's program that is being run."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        ours = _ours.get(code)
        if ours is None:
            name = frame.f_globals.get("__name__", "")
            ours = _ours[code] = name.partition(".")[0] == "tapegrad"
        if not ours:
            return code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "unknown", 0


LONG = 10_000  # records of a trace, after which a line says what takes so long
_said: set[tuple[str, int]] = set()


def announce_long() -> None:
    """Say, once for a line of the user's program, that a trace gets long, and what to write."""
    where = line()
    if where not in _said and sys.stderr is not None:
        _said.add(where)
        print(
            f"tapegrad: `jit` has met {LONG} operations, now at {':'.join(map(str, where))}, and "
            "goes on: a loop of Python is compiled trip by trip, which may take a while; write a "
            "long one as `tapegrad.scan` or `tapegrad.fori_loop`, which are compiled once",
            file=sys.stderr,
            flush=True,
        )
