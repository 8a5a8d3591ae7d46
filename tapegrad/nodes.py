"""`grad_fn`: records as PyTorch's users see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapegrad.ops.core import by_code
from tapegrad.tape import CODE_MASK, WORD, Record, Tape

if TYPE_CHECKING:
    from tapegrad.tensor import Tensor


class GradFn:
    """A light view of the record that made a Tensor.

    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> (x * x).grad_fn
    <MulBackward0>
    >>> (x * x).grad_fn.next_functions
    ((<AccumulateGrad>, 0), (<AccumulateGrad>, 0))
    """

    __slots__ = ("position", "tape", "variable")

    def __init__(self, tape: Tape, position: int, variable: Tensor | None = None) -> None:
        self.tape = tape
        self.position = position
        self.variable = variable

    def name(self) -> str:
        """The name of the derivative: ``MulBackward0``."""
        return (
            "AccumulateGrad" if self.variable is not None else grad_name(self.tape, self.position)
        )

    @property
    def record(self) -> Record:
        """The record itself."""
        return self.tape.record(self.tape.index(self.position))

    @property
    def next_functions(self) -> tuple[tuple[GradFn | None, int], ...]:
        """The records and leaves that this record read, in order."""
        if self.variable is not None:
            return ()
        index = self.tape.index(self.position)
        if index < 0:
            return ()
        found: list[tuple[GradFn | None, int]] = []
        for code in self.tape.inputs(index):
            if code > 0:
                found.append((GradFn(self.tape, code), 0))
            elif code < 0:
                found.append((GradFn(self.tape, 0, self.tape.leaves[-code - 1]), 0))
            else:
                found.append((None, 0))
        entry = self.tape.keep[index]
        specs = getattr(entry, "specs", None)  # a Function has one for each of its arguments
        op = by_code[int(self.tape.words()[index, WORD]) & CODE_MASK]
        count = len(op.inputs) if specs is None else len(specs)
        return tuple(found) if op.variadic else tuple(found[: max(count, 1)])

    def __getattr__(self, name: str) -> Any:
        """What `ctx` of a Function has (`saved_tensors`, and whatever `forward` set there)."""
        index = -1 if name.startswith("_") else self.tape.index(self.position)
        entry = self.tape.keep[index] if index >= 0 and self.variable is None else None
        main = getattr(entry, "main", 0)  # of one of several outputs: the Function's own record
        if main and self.tape.index(main) >= 0:
            entry = self.tape.keep[self.tape.index(main)]
        context = getattr(entry, "context", None)
        if context is not None:
            return getattr(context, name)
        raise AttributeError(
            f"{self!r} has no attribute `{name}`: that of a Function has those of its `ctx`, until "
            "a sweep has released it; for hooks use `register_hook` of the Tensor"
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GradFn)
            and (self.tape, self.position) == (other.tape, other.position)
            and self.variable is other.variable
        )

    def __hash__(self) -> int:
        return hash((id(self.tape), self.position, id(self.variable)))

    def __repr__(self) -> str:
        return f"<{self.name()}>"


def grad_name(tape: Tape, position: int) -> str:
    """The name that PyTorch's users know for the derivative of the record at a position."""
    index = tape.index(position)
    if index < 0:
        return "ReleasedBackward"
    entry = tape.keep[index]
    named = getattr(entry, "grad_name", None)
    if named is not None:
        return str(named)
    return by_code[int(tape.words()[index, WORD]) & CODE_MASK].grad_name
