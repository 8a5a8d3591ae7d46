"""Forward mode: an emitter whose values carry tangents.

Over the forward sweep it writes a Jacobian-vector product, over both sweeps a Hessian-vector
product; the sweeps do not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

from tapegrad.compiler.llvm.ssa import Value as Handle
from tapegrad.kernels.codegen.rule_codegen import OPERANDS
from tapegrad.njit.emitter import Emitter
from tapegrad.njit.partials import is_row, partials
from tapegrad.njit.three_address_code import FLOATS, Table

FLOATING = ("double", "float")


class Dual(NamedTuple):
    """A value and its tangent; of a pointer, one to values and one to their tangents."""

    value: Handle
    tangent: Handle

    @property
    def type(self) -> str:
        """The LLVM type."""
        return self.value.type

    @property
    def name(self) -> str:
        """The value's name."""
        return self.value.name


class DualCell(NamedTuple):
    """A variable of a value, and one of its tangent."""

    value: Any
    tangent: Any


def value_of(x: Any) -> Any:
    """The value of a dual number, or what is none."""
    return x.value if isinstance(x, Dual) else x


def tangent_of(x: Any) -> Any:
    """The tangent of a dual number, or None."""
    return x.tangent if isinstance(x, Dual) else None


class DualEmitter(Emitter):
    """Writes one function on dual numbers.

    The tangents of inputs follow all inputs, those of outputs all outputs.
    """

    words = 2  # of a number or a pointer

    def __init__(self) -> None:
        super().__init__()
        self.zeros: set[str] = set()  # pointers to the tangents of tables

    # -- values ------------------------------------------------------------------------------

    def vanishes(self, g: Any) -> Any:
        """Whether an adjoint is zero, and stays so."""
        parts = [x for x in (value_of(g), tangent_of(g)) if x is not None]
        return reduce(lambda a, b: self.integer("band", [a, b]), map(super().vanishes, parts))

    def table(self, x: Table) -> Any:
        """The pointer to memory that never changes, and one to zeros."""
        y = super().table(x)
        if x.element not in FLOATS:
            return y
        zeros = super().table(Table(x.element, bytes(len(x.content))))
        self.zeros.add(zeros.name)
        return Dual(y, zeros)

    def apply(self, name: str, *args: Any) -> Any:
        """An operation of the table, with its tangent by the table's rules."""
        y = super().apply(name, *map(value_of, args))
        tangents = [tangent_of(a) for a in args]
        if y.type not in FLOATING or not any(tangents) or not is_row(name):
            return y
        values = dict(zip(OPERANDS, map(value_of, args))) | {"y": y}
        flags, total = self.flags, None
        for partial, dt in zip(partials(name), tangents):
            if dt is None or partial is None:
                continue
            term = super().scaled(dt, partial, values)
            total = term if total is None else super().apply("add", total, term)
        self.flags = flags
        return y if total is None else Dual(y, total)

    def integer(self, op: str, args: Sequence[Any], attribute: Any = None) -> Any:
        """An operation on integers or conditions."""
        return super().integer(op, list(map(value_of, args)), attribute)

    def cast(self, x: Any, kind: str) -> Any:
        """A number in another type."""
        y, t = super().cast(value_of(x), kind), tangent_of(x)
        return y if t is None or kind not in FLOATS else Dual(y, super().cast(t, kind))

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """One of two values."""
        y = super().select(condition, value_of(a), value_of(b))
        if tangent_of(a) is None and tangent_of(b) is None:
            return y
        return Dual(y, super().select(condition, self._tangent(a), self._tangent(b)))

    def address(self, pointer: Any) -> Any:
        """A pointer as a number."""
        return super().address(value_of(pointer))

    def _tangent(self, x: Any) -> Any:
        """The tangent of a value, zero if it has none."""
        t = tangent_of(x)
        return self.zero(value_of(x).type) if t is None else t

    # -- memory ------------------------------------------------------------------------------

    def at(self, pointer: Any, offset: Any, element: str) -> Any:
        """The pointer to an element."""
        y, t = super().at(value_of(pointer), offset, element), tangent_of(pointer)
        if t is None:
            return y
        moved = super().at(t, offset, element)
        if t.name in self.zeros:
            self.zeros.add(moved.name)
        return Dual(y, moved)

    def load(self, pointer: Any, offset: Any, element: str, scope: Any) -> Any:
        """An element."""
        y, t = self._load(value_of(pointer), offset, element, scope), tangent_of(pointer)
        if t is None or element not in FLOATS or t.name in self.zeros:
            return y
        return Dual(y, self._load(t, offset, element, ("tangent", scope)))

    def store(self, pointer: Any, offset: Any, x: Any, element: str, scope: Any) -> None:
        """Write an element."""
        self._store(value_of(pointer), offset, value_of(x), element, scope)
        t = tangent_of(pointer)
        if t is not None and element in FLOATS:
            self._store(t, offset, self._tangent(x), element, ("tangent", scope))

    def _load(self, pointer: Any, offset: Any, element: str, scope: Any) -> Any:
        return super().load_at(Emitter.at(self, pointer, offset, element), element, scope)

    def _store(self, pointer: Any, offset: Any, x: Any, element: str, scope: Any) -> None:
        super().store_at(Emitter.at(self, pointer, offset, element), x, element, scope)

    def allocate(self, count: Any, element: str, zeroed: bool, otherwise: str) -> Any:
        """New memory."""
        y = super().allocate(count, element, zeroed, otherwise)
        if element not in FLOATS:
            return y
        return Dual(y, super().allocate(count, element, True, otherwise))

    def add_into(self, to: Any, what: Any, count: Any, element: str) -> None:
        """Add numbers in memory to others; the adjoints that a sweep begins with are constants."""
        super().add_into(value_of(to), value_of(what), count, element)

    # -- variables, arguments and results ----------------------------------------------------

    def cell(self, kind: str, zeroed: bool = False) -> Any:
        """A variable."""
        cell = super().cell(kind, zeroed)
        if kind in FLOATS or kind == "ptr":
            return DualCell(cell, super().cell(kind, True))
        return cell

    def room(self, count: int, element: str) -> Any:
        """Memory for so many numbers and their tangents."""
        return Dual(super().room(count, element), super().room(count, element))

    def get(self, cell: Any) -> Any:
        """What a variable holds."""
        if isinstance(cell, DualCell):
            return Dual(super().get(cell.value), super().get(cell.tangent))
        return super().get(cell)

    def put(self, cell: Any, x: Any) -> None:
        """Assign to a variable."""
        if isinstance(cell, DualCell):
            super().put(cell.value, value_of(x))
            super().put(cell.tangent, self._tangent(x))
        else:
            super().put(cell, value_of(x))

    def argument(self, k: int, kind: str) -> Any:
        """A word of the arguments."""
        y = super().argument(k, kind)
        if kind in FLOATS or kind == "ptr":
            return Dual(y, super().argument(self.inputs + k, kind))
        return y

    def result(self, k: int, x: Any) -> None:
        """A word of the results."""
        super().result(k, value_of(x))
        if value_of(x).type in (*FLOATING, "ptr"):
            super().result(self.outputs + k, self._tangent(x))

    # -- stacks: a second set of columns for tangents ----------------------------------------

    def width(self, columns: int) -> int:
        """How many columns a stack has."""
        return 2 * columns

    def push(self, k: int, at: Any, column: int, x: Any) -> None:
        """Keep a value and its tangent."""
        super().push(k, at.value, 2 * column, value_of(x))
        if value_of(x).type in (*FLOATING, "ptr"):
            super().push(k, at.tangent, 2 * column + 1, self._tangent(x))

    def pop(self, k: int, at: Any, column: int, kind: str) -> Any:
        """A value that was kept, and its tangent."""
        y = super().pop(k, at.value, 2 * column, kind)
        if kind not in FLOATS and kind != "ptr":
            return y
        return Dual(y, super().pop(k, at.tangent, 2 * column + 1, kind))

    def slot(self, buffer: Any, capacity: Any, column: int, slot: Any) -> Any:
        """The places of a value and its tangent."""
        value = super().slot(buffer, capacity, 2 * column, slot)
        return Dual(value, super().slot(buffer, capacity, 2 * column + 1, slot))
