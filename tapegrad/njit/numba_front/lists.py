"""Lists: memory with a length, as an array in C order has them; and with room, if they grow."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tapegrad.njit.numba_front import array_library, order_library
from tapegrad.njit.numba_front.array_calls import name_of_method
from tapegrad.njit.numba_front.calls import Calls
from tapegrad.njit.numba_front.components import (
    ListOfRows,
    array_of,
    components,
    element_of,
    is_number,
)
from tapegrad.njit.numba_front.constant_lists import constant_lists
from tapegrad.njit.numba_front.growing_lists import COPYING, GROWING, GrowingLists, growing_lists
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.own_lists import makes_typed_list, own_lists
from tapegrad.njit.numba_front.subscripts import is_index
from tapegrad.njit.numba_front.writer import ONE, ZERO, Found, Operands, plain
from tapegrad.njit.three_address_code import Constant, Operand, Unsupported

SPARE = 8  # elements for which a list gets room beyond twice what it had


def width_of(t: NumbaType) -> int:
    """How many numbers an element of a list has in memory."""
    return len(components(t.dtype)) if isinstance(t, ListOfRows) else 1


class Lists(Calls):
    """Writes the code of what is done with lists."""

    growing = GrowingLists({}, {})

    def find_growing(self) -> None:
        """Find the lists that grow, each of which has one name, and those that never change."""
        self.typed.types = self.typed.types | constant_lists(self.typed)
        own = own_lists(self.typed)
        self.typed.types = self.typed.types | own
        self.elided |= own.keys()
        self.growing = growing_lists(self.typed)
        self.list_names = self.growing.names

    def assign(self, var: NumbaIR, found: Found) -> None:
        """Assign to a variable; a list that is made has no room to grow."""
        super().assign(var, found)
        if self.list_names.get(var.name) == var.name:
            self.copy(self.names(var)[1], self._room(var))

    def numbers_in(self, t: NumbaType, count: Operand) -> Operand:
        """How many numbers so many elements of a list have in memory."""
        return self.index("imul", count, Constant(width_of(t), "i64"))

    def load_item(self, ops: Operands, t: NumbaType, at: Operand) -> Found:
        """An element of a list."""
        if not isinstance(t, ListOfRows):
            return self.load(ops, array_of(t), at)
        found: Operands = []
        for (_, kind), place in zip(components(t.dtype), self._places(t, at)):
            found.append(self.to(self.load(ops, array_of(t), place)[0][0], kind))
        return found, t.dtype

    def _places(self, t: NumbaType, at: Operand) -> Operands:
        """Where the numbers of an element of a list of rows are."""
        first = self.numbers_in(t, at)
        return [self.index("iadd", first, Constant(k, "i64")) for k in range(width_of(t))]

    def store_item(self, ops: Operands, t: NumbaType, at: Operand, value: Found) -> None:
        """Write an element of a list."""
        if not isinstance(t, ListOfRows):
            self.store(ops, array_of(t), at, value)
            return
        array = array_of(t)
        for (_, kind), x, place in zip(components(t.dtype), value[0], self._places(t, at)):
            number = self.to(x, element_of(array))
            if kind == "i64":  # there are integers that no float equals
                self.require(self.emit("eq", [self.to(number, kind), x], "i1"))
            self.store(ops, array, place, ([number], array.dtype))

    def rows_of(self, ops: Operands, t: NumbaType) -> Found:
        """The elements of a list as the rows of a matrix."""
        width = Constant(width_of(t), "i64")
        return [ops[0], ops[1], width], types.Array(array_of(t).dtype, 2, "C")

    def _room(self, var: NumbaIR) -> str:
        """The name of how many elements a list has room for."""
        name = self.name_of(var, ".room")
        self.code.types[name] = "i64"
        return name

    def call(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """A call; that which makes a list of `numba.typed`."""
        f = self.type(e.func)
        if not isinstance(t, types.List) or not makes_typed_list(f):
            return super().call(e, t, target)
        if isinstance(f, types.BoundFunction) or not e.args:
            return self.allocated([ZERO], array_of(t), zeroed=False), t
        return self._list_of(self.known(e.args[0]), t)

    def _list_of(self, values: Found, t: NumbaType) -> Found:
        """A new list of the elements of a vector or a list."""
        ops, kind = values
        kind = array_of(kind) if isinstance(kind, types.List) else kind
        if kind.ndim != 1 or kind.dtype != t.dtype:
            raise Unsupported(f"a list of {t.dtype} that is made of {values[1]}")
        return self.inline(array_library.copied(kind), [(ops, kind)])[0], t

    def builtin(self, key: Any, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """A call of a function that Numba knows; those that make a list of values in memory."""
        if key is list and not e.args and isinstance(t, ListOfRows):
            return self.allocated([ZERO], array_of(t), zeroed=False), t
        if key not in COPYING or len(e.args) != 1 or e.kws:
            return super().builtin(key, e, t, target)
        ops, kind = self.known(e.args[0])
        kind = array_of(kind) if isinstance(kind, types.List) else kind
        if isinstance(kind, types.BaseTuple) and is_number(t.dtype):
            ops, kind = self.array_of_parts(e.args[0], array_of(t))
        if not isinstance(kind, types.Array) or kind.ndim != 1 or kind.dtype != t.dtype:
            return super().builtin(key, e, t, target)
        f = array_library.copied(kind) if key is list else order_library.ordered("sort", kind)
        return self.inline(f, [(ops, kind)])[0], t

    def method(self, f: NumbaType, e: NumbaIR, t: NumbaType) -> Found:
        """A method; those of lists that change them."""
        name = name_of_method(f)
        if isinstance(f.this, types.List) and name == "sort" and not e.args and not e.kws:
            ops, array = self.names(e.func), array_of(f.this)
            if isinstance(f.this, ListOfRows):
                self.inline(
                    order_library.sorted_rows(width_of(f.this)), [self.rows_of(ops, f.this)]
                )
            else:
                self.inline(order_library.ordered("sort_in_place", array), [(ops, array)])
            return [], t
        if not isinstance(f.this, types.List) or name not in GROWING:
            return super().method(f, e, t)
        array_of(f.this)  # refuses what is followed nowhere
        var = self.definitions[e.func.name].value
        if name == "extend":
            self.extend(var, self.known(e.args[0]))
            return [], t
        self.require_growth(var, name)
        if name == "append":
            self.append(var, f.this, (self.get(e.args[0], f.this.dtype), f.this.dtype))
            return [], t
        return self.pop(var, f.this, self.number(e.args[0], "i64") if e.args else None)

    def pop(self, var: NumbaIR, t: NumbaType, at: Operand | None) -> Found:
        """`a.pop()` and `a.pop(i)`, after which the rest stands one place before."""
        (pointer, count), array = self.names(var), array_of(t)
        last = self.index("isub", count, ONE)
        at = last if at is None else self.emit("wrap", [at, count], "i64")
        self.require(self.emit("ge", [at, ZERO], "i1"))
        self.require(self.emit("lt", [at, count], "i1"))
        taken = self.load_item([pointer], t, at)
        if at != last:
            f, place = array_library.closed_up(array), self.numbers_in(t, at)
            for k in range(width_of(t)):
                rest = self.index("isub", self.numbers_in(t, count), Constant(k, "i64"))
                self.inline(f, [([pointer, rest], array), ([place], types.int64)])
        self.copy(last, str(count))
        return taken

    def converted(self, var: NumbaIR, t: NumbaType) -> Found:
        """A number in another type; of a list whether something is in it."""
        if isinstance(self.type(var), types.List) and t == types.boolean:
            return [self.emit("ne", [self.length(self.names(var), self.type(var)), ZERO], "i1")], t
        return super().converted(var, t)

    def require_growth(self, var: NumbaIR, name: str) -> None:
        if var.name not in self.list_names:
            why = self.growing.refused.get(var.name, "of a caller")
            raise Unsupported(f"`{name}` of a list {why}: write into an array (`np.empty(n)`)")

    def append(self, var: NumbaIR, t: NumbaType, value: Found) -> None:
        """`a.append(b)`."""
        pointer, count = self.names(var)
        size = self.index("iadd", count, ONE)
        self._make_room(var, t, size)
        self.store_item([pointer, count], t, count, value)
        self.copy(size, str(count))

    def extend(self, var: NumbaIR, values: Found) -> Found:
        """`a += b` and `a.extend(b)`."""
        self.require_growth(var, "extend")
        t, (pointer, count) = self.type(var), self.names(var)
        array, (ops, kind) = array_of(t), values
        if isinstance(kind, types.List):
            kind = array_of(kind)
        if not isinstance(kind, types.Array) or kind.ndim != 1:
            raise Unsupported(f"`extend` by {kind}")
        more = self.shape(ops, kind)[0]
        size = self.index("iadd", count, more)
        self._make_room(var, t, size)
        place = self.pointer_to([pointer], array, count)
        disjoint: Found = ([Constant(False, "i1")], types.boolean)
        self.inline(
            array_library.assigned(array, kind), [([place, more], array), (ops, kind), disjoint]
        )
        self.copy(size, str(count))
        return self.names(var), t

    def _make_room(self, var: NumbaIR, t: NumbaType, need: Operand) -> None:
        """Have room for so many elements: more than twice as many, if it is too little."""
        (pointer, count), room, array = self.names(var), self._room(var), array_of(t)
        grow, on = self.code.block(), self.code.block()
        full = self.emit("lt", [room, need], "i1")
        self.current.end("branch", (full,), grow.label, on.label)
        self.current = grow
        size = self.index("iadd", self.index("iadd", need, need), Constant(SPARE, "i64"))
        made = self.allocated([self.numbers_in(t, size)], array, zeroed=False)
        filled = self.numbers_in(t, count)
        disjoint: Found = ([Constant(False, "i1")], types.boolean)
        parts: list[Found] = [([x, filled], array) for x in (made[0], pointer)]
        self.inline(array_library.assigned(array, array), [*parts, disjoint])
        self.copy(made[0], str(pointer))
        self.copy(size, room)
        self.current.end("jump", (), on.label)
        self.current = on

    def expr_build_list(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """`[a, b]`; of rows, which `np.array` alone reads, there is no list."""
        if isinstance(t, types.BaseTuple):
            return [x for item, part in zip(e.items, t) for x in self.get(item, part)], t
        if not is_number(t.dtype) and self._becomes_array(target):
            self.elided.add(target.name)
            return None
        count = Constant(len(e.items), "i64")
        pointer, _ = self.allocated([self.numbers_in(t, count)], array_of(t), zeroed=False)
        for k, item in enumerate(e.items):
            value = self.get(item, t.dtype), t.dtype
            self.store_item([pointer], t, Constant(k, "i64"), value)
        return [pointer, count], t

    def _becomes_array(self, target: NumbaIR) -> bool:
        """Whether nothing reads a variable but one call of `np.array`."""
        readers = [
            s for block in self.typed.blocks.values() for s in block.body
            if not isinstance(s, ir.Del) and any(v.name == target.name for v in s.list_vars())
            and getattr(s, "target", None) is not target
        ]  # fmt: skip
        call = getattr(readers[0], "value", None) if len(readers) == 1 else None
        if not isinstance(call, ir.Expr) or call.op != "call":
            return False
        return getattr(self.type(call.func), "typing_key", None) is np.array

    def list_place(self, ops: Operands, t: NumbaType, index: Any) -> Operand | None:
        """The offset of an element, which has to be there; None if the index is no number."""
        entries = self.entries(index, 1)
        if len(entries) != 1 or not is_index(entries[0]):
            return None
        at = self.element_offset(ops, array_of(t), entries)
        self.require(self.emit("ge", [at, ZERO], "i1"))
        self.require(self.emit("lt", [at, ops[1]], "i1"))
        return at

    def item(self, value: NumbaIR, index: Any, want: NumbaType) -> Found:
        """`value[index]`; a slice of a list is a copy."""
        base = self.type(value)
        if not isinstance(base, types.List):
            return super().item(value, index, want)
        ops, array = self.get(value), array_of(base)
        at = self.list_place(ops, base, index)
        if at is not None:
            return self.load_item(ops, base, at)
        view = self.subscript(ops, array, self.entries(index, 1))
        return self.inline(array_library.copied(view[1]), [view])[0], want

    def set_list_item(self, target: NumbaIR, index: Any, value: NumbaIR) -> None:
        """`a[i] = b`."""
        base, ops = self.type(target), self.get(target)
        at = self.list_place(ops, base, index)
        if at is None:
            raise Unsupported("an assignment to a slice of a list")
        self.store_item(ops, base, at, (self.get(value, base.dtype), base.dtype))

    def binary(self, f: Any, a: NumbaIR, b: NumbaIR, signature: Any, t: NumbaType) -> Found:
        """An operator; `a + b` and `a * n` of lists are new lists."""
        kinds = [types.unliteral(self.type(x)) for x in (a, b)]
        lists = [isinstance(k, types.List) for k in kinds]
        if not any(lists):
            return super().binary(f, a, b, signature, t)
        array = array_of(t) if isinstance(t, types.List) else None
        if array is None or not all(is_number(k) or listed for k, listed in zip(kinds, lists)):
            raise Unsupported(f"the operator `{plain(f).__name__}` on a list")
        given = [
            (self.get(x), array_of(k) if listed else k)
            for x, k, listed in zip((a, b), kinds, lists)
        ]
        if plain(f) is operator.mul:
            ordered = given if lists[0] else given[::-1]
            return self.inline(array_library.repeated(array), ordered)[0], t
        return self.inline(array_library.joined(array), given)[0], t

    def length(self, ops: Operands, t: NumbaType) -> Operand:
        """`len(...)`."""
        return ops[1] if isinstance(t, types.List) else super().length(ops, t)

    def parts_of(self, ops: Operands, t: NumbaType) -> Operands:
        """What an iterator holds of a value that is iterated over, and the count."""
        return [*ops, ops[1]] if isinstance(t, types.List) else super().parts_of(ops, t)

    def element(self, ops: Operands, t: NumbaType, k: Operand) -> Found:
        """What an iterator gives at a place."""
        if isinstance(t, types.ListIter):
            return self.load_item(ops, t.container, k)
        return super().element(ops, t, k)
