"""The storage behind Traced Tensors, which holds a record of some trace.

Loops and branches have inner traces; here it is decided what these may change of an outer one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple
from weakref import ref

from tapegrad.base.call_site import user_place
from tapegrad.compiler.trace.trace import Parts, Trace, Wanted
from tapegrad.ops.shape import alias
from tapegrad.ops.strided import write_view
from tapegrad.tensor import Chain, Tensor


class TracedStorage:
    """A piece of memory: a record, another one after each in-place change.

    It is what a Traced Tensor that shows all of it stands for.
    """

    __slots__ = (
        "__weakref__", "at", "frozen", "made", "node", "position", "sharing", "version", "where",
    )  # fmt: skip
    chain: ClassVar[Chain] = ()
    sharing: list[Sharing]  # only where there is something

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

    def note_write(self, but: TracedStorage | None = None) -> None:
        """Show a write to whatever shares this memory and not its history."""
        self.version += 1
        for other, chain, within in getattr(self, "sharing", ()):
            cell = other()
            if cell is None or cell is but:
                continue
            if cell.at is not self.at:
                cell.move(self.at)
            at, before = self.at, cell.position
            if within:
                whole = before, self.position
                cell.position = at.record(write_view, whole, {"chain": chain})
            else:
                seen = self.position
                for op, params in chain:
                    seen = at.record(op, (seen,), params)
                cell.position = at.record(alias, (seen,), {})
            at.pulls[cell.position] = Unnoticed(before)
            cell.note_write(self)

    def detached(self, chain: Chain, position: int) -> TracedStorage:
        """A piece of memory with a history of its own that shows a view of this one."""
        found = TracedStorage(self.at, position, self.frozen)
        found.made = self.made
        found.sharing = [Sharing(ref(self), chain, within=True)]
        self.sharing = [*getattr(self, "sharing", ()), Sharing(ref(found), chain, within=False)]
        return found


class Sharing(NamedTuple):
    """Memory that is a view of other memory, or that `within` which it is one."""

    other: ref[TracedStorage]
    chain: Chain
    within: bool


class Unnoticed(NamedTuple):
    """The rule of a record of new elements under an old history."""

    before: int

    @property
    def operands(self) -> tuple[int, ...]:
        """The record that a sweep goes on to."""
        return (self.before,)

    def remapped(self, where: dict[int, int]) -> Unnoticed:
        """The same in a trace that inlined these records."""
        return Unnoticed(where[self.before])

    def run(
        self, position: int, parts: Parts, g: Tensor | None, wanted: Wanted
    ) -> Iterator[tuple[int, Tensor]]:
        """Hand the adjoint on."""
        if g is not None and wanted(self.before):
            yield self.before, g


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
