"""The storage behind Traced Tensors, which holds a record of some trace.

Loops and branches have inner traces; here it is decided what these may change of an outer one.
"""

from __future__ import annotations

from typing import ClassVar

from tapegrad.base.call_site import user_place
from tapegrad.compiler.trace.trace import Trace
from tapegrad.tensor import Chain


class TracedStorage:
    """A piece of memory: a record, another one after each in-place change.

    It is what a Traced Tensor that shows all of it stands for.
    """

    __slots__ = ("at", "frozen", "made", "node", "position", "version", "where")
    chain: ClassVar[Chain] = ()

    def __init__(self, at: Trace, position: int, frozen: bool) -> None:
        self.at = at
        self.frozen = frozen  # the caller's
        self.position = self.made = position
        self.node = at.nodes[position]  # what it is like
        self.version = 0
        self.where = at.line or user_place()

    @property
    def cell(self) -> TracedStorage:
        """The memory that this is all of."""
        return self

    def move(self, inner: Trace) -> None:
        """Give it to an inner trace."""
        self.position = self.made = inner.position(self.at.tensor(self.position))
        self.at = inner
        self.version += 1

    def fresh(self) -> bool:
        """Whether this memory was made in the function of the loop or branch being traced."""
        inner = self.at
        while inner.inside is not None:
            inner = inner.inside
        if inner is self.at:
            return True
        assert inner.owner is not None
        return self.made >= inner.owner.marks[self.at]


class TracedView:
    """What a Traced Tensor stands for that shows a view of a piece of memory."""

    __slots__ = ("cell", "chain", "node", "position", "version", "where")

    def __init__(
        self, cell: TracedStorage, chain: Chain, position: int, above: int = 0
    ) -> None:  # by so many callers of the library
        self.cell = cell
        self.chain = chain
        self.position = position
        self.node = cell.at.nodes[position]
        self.version = cell.version
        self.where = cell.at.line or user_place(above)

    @property
    def at(self) -> Trace:
        """The trace that the memory belongs to."""
        return self.cell.at


def outside(name: str) -> RuntimeError:
    """The error of a loop or branch that changes what it does not own."""
    return RuntimeError(
        f"under `tapegrad.jit`, a function given to `{name}` changes a Tensor in place that "
        "was made outside of it: pass it in and return the changed one"
    )
