"""Lists whose length does not change: memory with a length, as an array in C order has them."""

from __future__ import annotations

import operator
from typing import Any

from tapegrad.njit.numba_front import array_library
from tapegrad.njit.numba_front.calls import Calls
from tapegrad.njit.numba_front.components import array_of, scalar
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, types
from tapegrad.njit.numba_front.subscripts import is_index
from tapegrad.njit.numba_front.writer import ZERO, Found, Operands, plain
from tapegrad.njit.three_address_code import Constant, Operand, Unsupported


class Lists(Calls):
    """Writes the code of what is done with lists."""

    def expr_build_list(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """`[a, b]`."""
        array = array_of(t)
        made = self.allocated([Constant(len(e.items), "i64")], array, zeroed=False)
        for k, item in enumerate(e.items):
            value = self.get(item, t.dtype), t.dtype
            self.store(made, array, Constant(k, "i64"), value)
        return made, t

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
            return self.load(ops, array, at)
        view = self.subscript(ops, array, self.entries(index, 1))
        return self.inline(array_library.copied(view[1]), [view])[0], want

    def set_list_item(self, target: NumbaIR, index: Any, value: NumbaIR) -> None:
        """`a[i] = b`."""
        base, ops = self.type(target), self.get(target)
        at = self.list_place(ops, base, index)
        if at is None:
            raise Unsupported("an assignment to a slice of a list")
        self.store(ops, array_of(base), at, (self.get(value, base.dtype), base.dtype))

    def binary(self, f: Any, a: NumbaIR, b: NumbaIR, signature: Any, t: NumbaType) -> Found:
        """An operator; `a + b` and `a * n` of lists are new lists."""
        kinds = [types.unliteral(self.type(x)) for x in (a, b)]
        lists = [isinstance(k, types.List) for k in kinds]
        if not any(lists):
            return super().binary(f, a, b, signature, t)
        array = array_of(t) if isinstance(t, types.List) else None
        if array is None or any(scalar(k) is None for k, listed in zip(kinds, lists) if not listed):
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
            return self.load(ops, array_of(t.container), k)
        return super().element(ops, t, k)
