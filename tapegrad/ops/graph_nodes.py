"""Graph nodes: the records of the tape as PyTorch's `grad_fn` objects."""

from __future__ import annotations

from typing import Any

from tapegrad.ops.core import by_code
from tapegrad.tape.record_format import (
    BROADCAST,
    CLASS_SHIFT,
    CODE_MASK,
    SCALAR,
    SHAPE,
    SPENT,
    WORD,
)
from tapegrad.tape.records import Record
from tapegrad.tape.shape_table import shapes
from tapegrad.tape.tape import Leaf, Tape, current


class GradFn:
    """A light view of the record that made a Tensor: the type's name is that of the derivative.

    It is a function, too: of the adjoints of the results, it gives those of the inputs.

    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> type((x * x).grad_fn).__name__
    'MulBackward0'
    >>> (x * x).grad_fn.next_functions
    ((<AccumulateGrad>, 0), (<AccumulateGrad>, 0))
    >>> (3 * x).grad_fn(tg.tensor(1.0))
    (tensor(3.), None)
    """

    __slots__ = ("position", "tape", "variable")

    def __init__(self, tape: Tape, position: int, variable: Any = None) -> None:
        self.tape = tape
        self.position = position
        self.variable = variable

    def name(self) -> str:
        """The name of the derivative: ``MulBackward0``."""
        return type(self).__name__

    @property
    def record(self) -> Record:
        """The record itself."""
        return self.tape.record(self.tape.index(self.position))

    @property
    def next_functions(self) -> tuple[tuple[GradFn | None, int], ...]:
        """The records and leaves that this record read, in order.

        A number that was added or multiplied comes last, on whichever side it stood.
        """
        if self.variable is not None:
            return ()
        tape = self.tape
        index = tape.index(self.position)
        if index < 0:
            return ()
        found: list[tuple[GradFn | None, int]] = []
        for code in tape.inputs(index):
            if code > 0:
                found.append((node(tape, code), output(tape, code)))
            elif code < 0:
                found.append((node(tape, 0, tape.leaves[-code - 1]), 0))
            else:
                found.append((None, 0))
        entry = tape.keep[index]
        specs = getattr(entry, "specs", None)
        if specs is not None:  # of a Function, in which arguments that are no Tensors have no place
            return tuple([edge for edge, spec in zip(found, specs) if spec is not None])
        arity = getattr(entry, "arity", None)  # of a call by a rule: how many arguments it has
        word = int(tape.words()[index, WORD])
        op = by_code[word & CODE_MASK]
        if op.variadic:
            return tuple(found)
        found = found[: max(len(op.inputs) if arity is None else arity, 1)]
        if op.name in ("add", "mul") and found[0][0] is None:
            one = (word >> CLASS_SHIFT[0]) & 3 == SCALAR and not word & BROADCAST
            if one or shapes.counts[tape.words()[index, SHAPE]] == 1:
                found.reverse()
        return tuple(found)

    def __getattr__(self, name: str) -> Any:
        """What `ctx` of a Function has, and what an elementwise operation saved (`_saved_self`)."""
        if name.startswith("_saved_"):
            return self._read_saved(self, name)
        index = -1 if name.startswith("_") else self.tape.index(self.position)
        entry = self.tape.keep[index] if index >= 0 and self.variable is None else None
        context = getattr(entry, "context", None)
        if context is not None:
            return getattr(context, name)
        if name == "saved_tensors" and (index < 0 or self.tape.words()[index, WORD] & SPENT):
            raise self.released(name)
        raise AttributeError(
            f"{self!r} has no attribute `{name}`: that of a Function has those of its `ctx`, until "
            "a sweep has released it"
        )

    def released(self, name: str) -> RuntimeError:
        """The error for saved values that are gone."""
        return RuntimeError(
            f"`{name}` of {self!r}: a sweep has released them (as for backward a second time); "
            "pass `retain_graph=True` to the sweep"
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


_types: dict[str, type[GradFn]] = {}


def node(tape: Tape, position: int, variable: Any = None) -> GradFn:
    """The view of a record, or of what adds gradients to a leaf; it keeps the record alive."""
    name = "AccumulateGrad"
    if variable is None:
        index = tape.index(position)
        main = getattr(tape.keep[index], "main", 0) if index >= 0 else 0
        if main:  # of one of several outputs: the Function's own record
            position, index = main, tape.index(main)
        if index >= 0:  # the object by whose references the tape knows who is held
            position = tape.tokens[index]
        name = grad_name(tape, position)
    found = _types.get(name)
    if found is None:
        found = _types[name] = type(name, (GradFn,), {"__slots__": (), "__doc__": GradFn.__doc__})
    return found(tape, position, variable)


def leaf_node(leaf: Leaf) -> GradFn:
    """What adds gradients to a leaf."""
    return node(current.tape, 0, leaf)


def output(tape: Tape, position: int) -> int:
    """Which of its Function's several outputs a record is; else 0."""
    index = tape.index(position)
    return getattr(tape.keep[index], "j", 0) if index >= 0 else 0


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
