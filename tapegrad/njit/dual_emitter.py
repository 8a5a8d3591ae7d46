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
from tapegrad.njit.emitter import ADDED, scalar_type
from tapegrad.njit.partials import is_row, partials
from tapegrad.njit.three_address_code import FLOATS, Call, Table
from tapegrad.njit.vector_emitter import VectorEmitter, is_vector

FLOATING = ("double", "float")
TANGENT = ADDED  # tangents are added up in any order, as adjoints are


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


def parts(x: Any) -> list[Any]:
    """The value of a dual number and its tangent, or what is none."""
    return [*x] if isinstance(x, Dual) else [x]


def _carries(kind: str) -> bool:
    """Whether values of a type can have tangents."""
    return kind in FLOATS or kind == "ptr"


class DualEmitter(VectorEmitter):
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
        if scalar_type(y) not in FLOATING or not any(tangents) or not is_row(name):
            return y
        values = dict(zip(OPERANDS, map(value_of, args))) | {"y": y}
        flags, total = self.flags, None
        for partial, dt in zip(partials(name), tangents):
            if dt is None or partial is None:
                continue
            # Where a partial is zero, the adjoint is zero as well, and reverse mode stops there.
            term = super().scaled(dt, partial._replace(product="exact"), values)
            self.flags = TANGENT
            total = term if total is None else super().apply("add", total, term)
        self.flags = flags
        return y if total is None else self._dual(y, total)

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
        return self._dual(y, super().select(condition, self._tangent(a), self._tangent(b)))

    def moved(self, pointer: Any, old: Any, new: Any) -> Any:
        """The pointers to the same place of a copy of an array, and of its tangents."""
        if not isinstance(pointer, Dual):
            return super().moved(pointer, value_of(old), value_of(new))
        return Dual(*map(super().moved, pointer, old, new))

    def address(self, pointer: Any) -> Any:
        """A pointer as a number."""
        return super().address(value_of(pointer))

    def _tangent(self, x: Any) -> Any:
        """The tangent of a value, zero if it has none."""
        t = tangent_of(x)
        return self.zero(scalar_type(value_of(x))) if t is None else t

    def _dual(self, value: Any, tangent: Any) -> Dual:
        """A dual number, whose tangent has lanes where the value has."""
        return Dual(value, self.splat(tangent) if is_vector(value) else tangent)

    def of_lanes(self, op: str, args: Sequence[Any], signs: Any) -> Any:
        """The number of each lane, whether it is a trip, or a sum with its tangent."""
        y = super().of_lanes(op, list(map(value_of, args)), signs)
        if op != "lane_sum" or not any(map(tangent_of, args)):
            return y
        start, valid, *terms = args
        moved = [self._tangent(start), valid, *map(self._tangent, terms)]
        return Dual(y, super().of_lanes(op, moved, signs))

    def over_lanes(self, g: Any) -> Any:
        """The sum over all lanes."""
        if not isinstance(g, Dual):
            return super().over_lanes(g)
        return Dual(super().over_lanes(g.value), super().over_lanes(g.tangent))

    # -- memory ------------------------------------------------------------------------------

    def at(self, pointer: Any, offset: Any, element: str) -> Any:
        """The pointer to an element."""
        y, t = super().at(value_of(pointer), offset, element), tangent_of(pointer)
        if t is None:
            return y
        moved = super().at(t, offset, element)
        if self._is_zeros(t) and not isinstance(moved, tuple):
            self.zeros.add(moved.name)
        return Dual(y, moved)

    def load(self, pointer: Any, offset: Any, element: str, scope: Any, lanes: bool = False) -> Any:
        """An element."""
        y = super().load(value_of(pointer), offset, element, scope, lanes)
        t = tangent_of(pointer)
        if t is None or element not in FLOATS or self._is_zeros(t):
            return y
        return Dual(y, super().load(t, offset, element, ("tangent", scope), lanes))

    def store(
        self, pointer: Any, offset: Any, x: Any, element: str, scope: Any, lanes: bool = False
    ) -> None:
        """Write an element."""
        super().store(value_of(pointer), offset, value_of(x), element, scope, lanes)
        t = tangent_of(pointer)
        if t is not None and element in FLOATS:
            super().store(t, offset, self._tangent(x), element, ("tangent", scope), lanes)

    def accumulate(
        self, pointer: Any, offset: Any, g: Any, element: str, scope: Any, lanes: bool = False
    ) -> None:
        """Add to an adjoint in memory, and to its tangent."""
        super().accumulate(value_of(pointer), offset, value_of(g), element, scope, lanes)
        t = tangent_of(pointer)
        if t is not None and tangent_of(g) is not None:
            super().accumulate(t, offset, g.tangent, element, ("tangent", scope), lanes)

    def _is_zeros(self, pointer: Any) -> bool:
        return not isinstance(pointer, tuple) and pointer.name in self.zeros

    def allocate(
        self, count: Any, element: str, zeroed: bool, otherwise: str, moves: bool = True
    ) -> Any:
        """New memory."""
        y = super().allocate(count, element, zeroed, otherwise)
        if element not in FLOATS or not moves:
            return y
        return Dual(y, super().allocate(count, element, True, otherwise))

    def add_into(self, to: Any, what: Any, count: Any, element: str) -> None:
        """Add numbers in memory to others; the adjoints that a sweep begins with are constants."""
        super().add_into(value_of(to), value_of(what), count, element)

    def call(self, call: Call, args: Sequence[Any], kind: str, raised: str, full: str) -> Any:
        """Call what another compiler has compiled: nothing moves there."""
        return super().call(call, list(map(value_of, args)), kind, raised, full)

    # -- variables, arguments and results ----------------------------------------------------

    def cell(self, kind: str, zeroed: bool = False, lanes: bool = False, moves: bool = True) -> Any:
        """A variable."""
        cell = super().cell(kind, zeroed, lanes)
        if moves and _carries(kind):
            return DualCell(cell, super().cell(kind, True, lanes))
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

    def argument(self, k: int, kind: str, moves: bool = True) -> Any:
        """A word of the arguments."""
        y = super().argument(k, kind)
        if moves and _carries(kind):
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

    def push(self, k: int, at: Any, column: int, x: Any, moves: bool = True) -> None:
        """Keep a value and its tangent."""
        y = value_of(x)
        super().push(k, at.value, 2 * column, y)
        if moves and scalar_type(y) in (*FLOATING, "ptr"):
            tangent = self._dual(y, self._tangent(x)).tangent
            super().push(k, at.tangent, 2 * column + 1, tangent)

    def pop(
        self, k: int, at: Any, column: int, kind: str, lanes: bool = False, moves: bool = True
    ) -> Any:
        """A value that was kept, and its tangent."""
        y = super().pop(k, at.value, 2 * column, kind, lanes)
        if not moves or not _carries(kind):
            return y
        return Dual(y, super().pop(k, at.tangent, 2 * column + 1, kind, lanes))

    def fetch(self, at: Any, count: Any) -> None:
        """Have so many words of a stack fetched, and their tangents."""
        for one in at:
            super().fetch(one, count)

    def slot(self, buffer: Any, capacity: Any, column: int, slot: Any, columns: int) -> Any:
        """The places of a value and its tangent."""
        at = super().slot
        return Dual(*[at(buffer, capacity, 2 * column + k, slot, 2 * columns) for k in (0, 1)])
