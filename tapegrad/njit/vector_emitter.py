"""Vectors of several trips: an emitter of which some values have one number in each lane.

Floats and conditions of all lanes are one vector.  Integers and pointers, which say where something
lies, are scalars of their own: code for memory has them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tapegrad.compiler.llvm import branching_vectors
from tapegrad.compiler.llvm.ssa import FLOATS as SUFFIX
from tapegrad.compiler.llvm.ssa import Value as Handle
from tapegrad.compiler.llvm.ssa import literal
from tapegrad.compiler.llvm.widen import has_vector_form, widened
from tapegrad.njit.emitter import ADDED, LLVM, SIZE, BlockCode, Emitter, scalar_type
from tapegrad.njit.three_address_code import FLOATS
from tapegrad.njit.values import LANES

IN_VECTORS = ("double", "float", "i1")


class Lanes(tuple[Any, ...]):
    """A number or a pointer, or a variable, for each lane."""

    __slots__ = ()

    @property
    def type(self) -> str:
        """The LLVM type of each."""
        return str(self[0].type)


class Row(NamedTuple):
    """Numbers or pointers of which each lane has the next one, if it is a trip.

    Lanes that are none have the `first`; `valid` says which are trips, lane by lane in `trips`.
    Pointers are to elements of a type.
    """

    first: Handle
    valid: Handle
    trips: tuple[Handle, ...]
    element: str = ""

    @property
    def type(self) -> str:
        """The LLVM type of each."""
        return self.first.type


def is_vector(x: Any) -> bool:
    """Whether a value has lanes."""
    return isinstance(x, Lanes | Row) or x.type[0] == "<"


def _on_vectors(function: str) -> bool:
    return function in branching_vectors.branching() or has_vector_form(function)


class VectorEmitter(Emitter):
    """Writes one function, some of whose loops are of vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: set[str] = set()  # that are called on vectors
        self.lanes = LANES
        self._pieces = 0

    # -- lanes -------------------------------------------------------------------------------

    def vector(self, type: str) -> str:
        """The type of vectors of a type."""
        return f"<{self.lanes} x {type}>"

    def splat(self, x: Any) -> Any:
        """A vector of one number; vectors are as they were."""
        if is_vector(x):
            return x
        kind = self.vector(x.type)
        if x.name[0] != "%":
            return Handle(f"splat ({x})", kind)
        share = self.current.share
        one = share(kind, f"insertelement {kind} poison, {x}, i64 0")
        return share(
            kind, f"shufflevector {one}, {kind} poison, <{self.lanes} x i32> zeroinitializer"
        )

    def split(self, x: Any) -> Sequence[Any]:
        """What is in each lane."""
        if isinstance(x, Lanes):
            return x
        if isinstance(x, Row):
            return self._lanes_of(x)
        if not is_vector(x):
            return [x] * self.lanes
        share, kind = self.current.share, scalar_type(x)
        return [share(kind, f"extractelement {x}, i64 {k}") for k in range(self.lanes)]

    def _lanes_of(self, row: Row) -> list[Any]:
        found = [row.first]
        for k in range(1, self.lanes):
            far = literal(k, "i64")
            if row.element:
                next = Emitter.at(self, row.first, far, row.element)
            else:
                next = Emitter.integer(self, "iadd", [row.first, far], "nsw")
            found.append(Emitter.select(self, row.trips[k], next, row.first))
        return found

    def joined(self, parts: Sequence[Any]) -> Any:
        """All lanes as one value."""
        kind = parts[0].type
        if kind not in IN_VECTORS:
            return Lanes(parts)
        found = Handle("poison", self.vector(kind))
        for k, x in enumerate(parts):
            found = self.current.share(found.type, f"insertelement {found}, {x}, i64 {k}")
        return found

    def _lane_by_lane(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        return self.joined([function(*one) for one in zip(*map(self.split, args))])

    def _widened(self, args: Sequence[Any], write: Callable[..., Any]) -> Any:
        """Code of one element, for vectors; None where there is none."""
        self._pieces += 1
        code = BlockCode(f"{self.current.prefix}p{self._pieces}_")
        code.flags = self.flags
        vectors = [x if x.name[0] != "%" else self.splat(x) for x in args]
        found = write(code, [Handle(x.name, scalar_type(x)) for x in vectors])
        if found is None or not all(map(_on_vectors, code.used)):
            return None
        self.functions |= code.used
        self.current.lines += [widened(line, self.lanes) for line in code.lines]
        if found.name[0] != "%":
            return self.splat(found)
        return Handle(found.name, self.vector(found.type))

    def over_lanes(self, g: Any) -> Any:
        """The sum over all lanes, in any order."""
        if not is_vector(g):
            return g
        kind = scalar_type(g)
        start = literal(-0.0, kind)
        name = f"llvm.vector.reduce.fadd.v{self.lanes}{SUFFIX[kind]}"
        self.declared.add(f"declare {kind} @{name}({kind}, {g.type})")
        return self.current.emit(kind, f"call {ADDED} {kind} @{name}({start}, {g})")

    def _all(self, condition: Any) -> Any:
        name = f"llvm.vector.reduce.and.v{self.lanes}i1"
        self.declared.add(f"declare i1 @{name}({condition.type})")
        return self.current.share("i1", f"call i1 @{name}({condition})")

    def of_lanes(self, op: str, args: Sequence[Any], signs: Any) -> Any:
        """The number of each lane; the trip in each, whether it is one; a sum, trip by trip."""
        if op == "lane":
            return Lanes([literal(k, "i64") for k in range(self.lanes)])
        if op == "lane_sum":
            return self._in_order(*args, signs=signs)
        valid = self._are_trips(*args)
        return valid if op == "lane_valid" else Row(args[0], valid, self._trips(*args))

    def _trips(self, first: Any, count: Any) -> tuple[Any, ...]:
        """Whether each lane is a trip."""
        lanes = [literal(k, "i64") for k in range(self.lanes)]
        numbers = [self.integer("iadd", [first, k], "nsw") for k in lanes]
        return tuple(self.apply("lt", x, count) for x in numbers)

    def _are_trips(self, first: Any, count: Any) -> Any:
        """Whether the lanes are trips, in one vector."""
        share, kind = self.current.share, self.vector("i64")
        lanes = ", ".join(f"i64 {k}" for k in range(self.lanes))
        numbers = share(kind, f"add nsw {self.splat(first)}, <{lanes}>")
        return share(self.vector("i1"), f"icmp slt {numbers}, {self.splat(count).name}")

    def _in_order(self, start: Any, valid: Any, *terms: Any, signs: Sequence[int]) -> Any:
        found, added = start, []
        for x, sign in zip(terms, signs):  # zeros that change no sum, by their signs
            zero = literal(-0.0 if sign > 0 else 0.0, scalar_type(x))
            added.append(self.split(self.select(valid, x, zero)))
        for k in range(self.lanes):
            for parts, sign in zip(added, signs):
                found = Emitter.apply(self, "add" if sign > 0 else "sub", found, parts[k])
        return found

    # -- values ------------------------------------------------------------------------------

    def apply(self, name: str, *args: Any) -> Any:
        """An operation of the table."""
        if not any(map(is_vector, args)):
            return super().apply(name, *args)
        found = None
        if not any(isinstance(x, Lanes | Row) for x in args):
            found = self._widened(args, lambda code, xs: code.apply(name, xs))
        if found is None:
            one = lambda *xs: Emitter.apply(self, name, *xs)
            return self._lane_by_lane(one, args)
        return found

    def require(self, condition: Any, otherwise: str) -> None:
        """Go on in a new block if a condition holds, in all lanes, else at a label."""
        super().require(self._all(condition) if is_vector(condition) else condition, otherwise)

    def vanishes(self, g: Any) -> Any:
        """Whether an adjoint is zero."""
        found = self.apply("eq", g, literal(0.0, scalar_type(g)))
        return self._all(found) if is_vector(found) else found

    def integer(self, op: str, args: Sequence[Any], attribute: Any = None) -> Any:
        """An operation on integers or conditions."""
        if not any(map(is_vector, args)):
            return super().integer(op, args, attribute)
        if isinstance(row := self._moved(op, args, attribute), Row):
            return row
        if any(isinstance(x, Lanes | Row) for x in args):
            one = lambda *xs: Emitter.integer(self, op, xs, attribute)
            return self._lane_by_lane(one, args)
        if op == "not":
            op, args = "bxor", [*args, literal(True, "i1")]
        return super().integer(op, list(map(self.splat, args)), attribute)

    def _moved(self, op: str, args: Sequence[Any], attribute: Any) -> Row | None:
        """Numbers of a row with something added that all lanes share."""
        a, *others = args if isinstance(args[0], Row) else reversed(args)
        if not isinstance(a, Row) or len(others) != 1 or is_vector(others[0]):
            return None
        if op == "imul" and others[0].name == "1":
            return a
        if op == "iadd" or (op == "isub" and a is args[0]):
            first = Emitter.integer(self, op, [a.first, others[0]], attribute)
            return a._replace(first=first)
        return None

    def cast(self, x: Any, kind: str) -> Any:
        """A number in another type."""
        if not is_vector(x):
            return super().cast(x, kind)
        if isinstance(x, Lanes | Row) or LLVM[kind] not in IN_VECTORS:
            return self._lane_by_lane(lambda one: Emitter.cast(self, one, kind), [x])
        if scalar_type(x) == LLVM[kind]:
            return x
        return self._widened([x], lambda code, xs: code.cast(xs[0], LLVM[kind]))

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """One of two values."""
        if not any(map(is_vector, (condition, a, b))):
            return super().select(condition, a, b)
        lanes = any(isinstance(x, Lanes | Row) for x in (a, b))
        if lanes or scalar_type(a) not in IN_VECTORS:
            return self._lane_by_lane(lambda *xs: Emitter.select(self, *xs), (condition, a, b))
        return super().select(condition, self.splat(a), self.splat(b))

    # -- memory ------------------------------------------------------------------------------

    def at(self, pointer: Any, offset: Any, element: str) -> Any:
        """The pointer to an element."""
        if not (is_vector(pointer) or is_vector(offset)):
            return super().at(pointer, offset, element)
        if isinstance(offset, Row) and not is_vector(pointer):
            return offset._replace(
                first=Emitter.at(self, pointer, offset.first, element), element=element
            )
        if isinstance(pointer, Row) and not is_vector(offset) and pointer.element == element:
            return pointer._replace(first=Emitter.at(self, pointer.first, offset, element))
        return self._lane_by_lane(lambda p, k: Emitter.at(self, p, k, element), (pointer, offset))

    def _places(self, pointer: Any, offset: Any, element: str, lanes: bool) -> Sequence[Any]:
        if not lanes:
            return self.split(VectorEmitter.at(self, pointer, offset, element))
        first = Emitter.at(self, pointer, offset, element)
        return [Emitter.at(self, first, literal(k, "i64"), element) for k in range(self.lanes)]

    def load(self, pointer: Any, offset: Any, element: str, scope: Any, lanes: bool = False) -> Any:
        """An element, or one for each lane."""
        if not (lanes or is_vector(pointer) or is_vector(offset)):
            return self.load_at(Emitter.at(self, pointer, offset, element), element, scope)
        if lanes and element in FLOATS:
            return self._load_vector(Emitter.at(self, pointer, offset, element), element, scope)
        if (row := self._row(pointer, offset, element, lanes)) is not None:
            return self._load_row(row, scope)
        places = self._places(pointer, offset, element, lanes)
        return self.joined([self.load_at(at, element, scope) for at in places])

    def _row(self, pointer: Any, offset: Any, element: str, lanes: bool) -> Row | None:
        """The places of floats one after another, if they are that."""
        if lanes or element not in FLOATS:
            return None
        at = VectorEmitter.at(self, pointer, offset, element)
        return at if isinstance(at, Row) and at.element == element else None

    def _load_row(self, row: Row, scope: Any) -> Any:
        """What lies there; lanes that are no trip have what the first one has."""
        x = self._masked("load", row, Handle("poison", self.vector(LLVM[row.element])), scope)
        share, none = self.current.share, f"<{self.lanes} x i32> zeroinitializer"
        first = share(x.type, f"shufflevector {x}, {x.type} poison, {none}")
        return share(x.type, f"select {row.valid}, {x}, {first}")

    def _masked(self, word: str, row: Row, x: Any, scope: Any) -> Any:
        """Load or store where lanes are trips."""
        kind = LLVM[row.element]
        name = f"llvm.masked.{word}.v{self.lanes}{SUFFIX[kind]}.p0"
        align, mask = f"i32 {SIZE[row.element]}", self.vector("i1")
        if word == "load":
            self.declared.add(f"declare {x.type} @{name}(ptr, i32, {mask}, {x.type})")
            text = f"call {x.type} @{name}({row.first}, {align}, {row.valid}, {x})"
            return self.current.emit(x.type, text + self._alias(scope))
        self.declared.add(f"declare void @{name}({x.type}, ptr, i32, {mask})")
        text = f"call void @{name}({x}, {row.first}, {align}, {row.valid})"
        self.line(text + self._alias(scope))
        return None

    def _load_vector(self, at: Any, element: str, scope: Any) -> Any:
        kind = self.vector(LLVM[element])
        return self.current.emit(kind, f"load {kind}, {at}, align 8{self._alias(scope)}")

    def store(
        self, pointer: Any, offset: Any, x: Any, element: str, scope: Any, lanes: bool = False
    ) -> None:
        """Write an element, or one for each lane."""
        if not (lanes or is_vector(pointer) or is_vector(offset)):
            self.store_at(Emitter.at(self, pointer, offset, element), x, element, scope)
        elif lanes and element in FLOATS:
            at = Emitter.at(self, pointer, offset, element)
            self.line(f"store {self.splat(x)}, {at}, align 8{self._alias(scope)}")
        elif (row := self._row(pointer, offset, element, lanes)) is not None:
            self._masked("store", row, self.splat(x), scope)
        else:
            places = self._places(pointer, offset, element, lanes)
            for at, part in zip(places, self.split(x)):
                self.store_at(at, part, element, scope)

    def accumulate(
        self, pointer: Any, offset: Any, g: Any, element: str, scope: Any, lanes: bool = False
    ) -> None:
        """Add to adjoints in memory; lanes may have the same."""
        if lanes or self._row(pointer, offset, element, lanes) is not None:
            super().accumulate(pointer, offset, g, element, scope, lanes)
        elif is_vector(pointer) or is_vector(offset):
            zero = literal(0, "i64")
            places = self._places(pointer, offset, element, lanes)
            for at, part in zip(places, self.split(g)):
                Emitter.accumulate(self, at, zero, part, element, scope)
        else:
            super().accumulate(pointer, offset, self.over_lanes(g), element, scope)

    # -- variables and stacks ----------------------------------------------------------------

    def cell(self, kind: str, zeroed: bool = False, lanes: bool = False, moves: bool = True) -> Any:
        """A variable, or one for each lane."""
        if not lanes:
            return Emitter.cell(self, kind, zeroed)
        if LLVM[kind] not in IN_VECTORS:
            return Lanes([Emitter.cell(self, kind, zeroed) for _ in range(self.lanes)])
        type = self.vector(LLVM[kind])
        return self._made(type, f"{type} zeroinitializer" if zeroed else "")

    def get(self, cell: Any) -> Any:
        """What a variable holds."""
        if isinstance(cell, Lanes):
            return Lanes([Emitter.get(self, one) for one in cell])
        return Emitter.get(self, cell)

    def put(self, cell: Any, x: Any) -> None:
        """Assign to a variable."""
        if isinstance(cell, Lanes):
            for one, part in zip(cell, self.split(x)):
                Emitter.put(self, one, part)
        else:
            Emitter.put(self, cell, self.splat(x) if cell[1][0] == "<" else x)

    def push(self, k: int, at: Any, column: int, x: Any, moves: bool = True) -> None:
        """Keep a value."""
        if isinstance(x, Lanes | Row):
            for j, part in enumerate(self.split(x)):
                place = self.current.share("ptr", f"getelementptr inbounds i64, {at}, i64 {j}")
                super().push(k, place, column, part)
        else:
            if x.type == self.vector("i1"):
                x = self.current.share(self.vector("i64"), f"zext {x} to {self.vector('i64')}")
            super().push(k, at, column, x)

    def pop(
        self, k: int, at: Any, column: int, kind: str, lanes: bool = False, moves: bool = True
    ) -> Any:
        """A value that was kept."""
        if not lanes:
            return super().pop(k, at, column, kind)
        if LLVM[kind] not in IN_VECTORS:
            share = self.current.share
            places = [
                share("ptr", f"getelementptr inbounds i64, {at}, i64 {j}")
                for j in range(self.lanes)
            ]
            return Lanes([Emitter.pop(self, k, p, column, kind) for p in places])
        type = self.vector("i64" if kind == "i1" else LLVM[kind])
        alias = self._alias(("stack", k, column))
        x = self.current.emit(type, f"load {type}, {at}, align 8{alias}")
        to = self.vector("i1")
        return self.current.emit(to, f"trunc {x} to {to}") if kind == "i1" else x

    def definitions(self, used: set[str]) -> str:
        """The functions that are called, on vectors too."""
        branching = branching_vectors.branching()
        offered = used & branching.keys()
        called = used | self.functions & branching.keys()
        texts = [branching_vectors.with_variants(super().definitions(called), offered)]
        by_width = {self.lanes: self.functions}
        width = branching_vectors.variant_width()
        by_width[width] = by_width.get(width, set()) | offered
        texts += [branching_vectors.definitions(names, n) for n, names in by_width.items() if names]
        return "\n".join(texts)
