"""The storage behind Traced Tensors, which holds a record of some trace.

Loops and branches have inner traces; here it is decided what these may change of an outer one.
"""

from __future__ import annotations

from tapegrad.base.call_site import user_line
from tapegrad.compiler.trace.trace import Trace
from tapegrad.tensor import Chain


class TracedStorage:
    """The content of a piece of memory: a record, another one after each in-place change."""

    __slots__ = ("at", "content", "frozen", "made", "version")

    def __init__(self, at: Trace, content: int, frozen: bool) -> None:
        self.at = at
        self.frozen = frozen  # the caller's
        self.content = self.made = content
        self.version = 0

    def move(self, inner: Trace) -> None:
        """Give it to an inner trace."""
        self.content = self.made = inner.position(self.at.tensor(self.content))
        self.at = inner
        self.version += 1


class Parts:
    """What a Traced Tensor stands for: a view (or all) of a piece of memory."""

    __slots__ = ("cell", "chain", "position", "version", "where")

    def __init__(self, cell: TracedStorage, chain: Chain, position: int, above: int = 0) -> None:
        self.cell = cell
        self.chain = chain
        self.position = position
        self.version = cell.version
        self.where = cell.at.line or user_line(above)

    @property
    def at(self) -> Trace:
        """The trace that the memory belongs to."""
        return self.cell.at

    def fresh(self) -> bool:
        """Whether this memory was made in the function of the loop or branch being traced."""
        inner = self.at
        while inner.inside is not None:
            inner = inner.inside
        if inner is self.at:
            return True
        assert inner.owner is not None
        return self.cell.made >= inner.owner.marks[self.at]


def outside(name: str) -> RuntimeError:
    """The error of a loop or branch that changes what it does not own."""
    return RuntimeError(
        f"under `tapegrad.jit`, a function given to `{name}` changes a Tensor in place that "
        "was made outside of it: pass it in and return the changed one"
    )
