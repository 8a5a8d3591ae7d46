"""Memory of which each trip of a loop has places of its own, that other trips leave alone.

`state[row, i]`, for the number `i` of the trip: what a trip reads and writes there, with whatever
rows, no other one does, as long as a row is no shorter than the loop.  That is known at run time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tapegrad.njit.values import Loop, Value


class OwnPlaces:
    """The memory of a class that a loop writes into, by what reads and writes it anywhere.

    It is `usable` where every access in the loop is to an element that is as far from the
    beginning of a row as the trip is from the first one.  `row` is the length of a row; None where
    there is one row alone.
    """

    def __init__(self, loop: Loop, accesses: Iterable[Value], varying: Collection[Value]) -> None:
        self.loop, self.varying = loop, varying
        self.accesses = [v for v in accesses if v.block in loop.blocks]
        self.stores = [v for v in self.accesses if v.op == "store"]
        self.row: Value | None = None
        self.usable = self._find()

    def _find(self) -> bool:
        places = [_place(v) for v in self.accesses]
        bases = {base for base, _ in places}
        if len(bases) != 1 or self.loop.holds(next(iter(bases))):
            return False
        rows = []
        for _, terms in places:
            moving = [t for t in terms if t in self.varying]
            if len(moving) != 1 or moving[0] is not self.loop.number:
                return False
            rows.append([t for t in terms if t is not self.loop.number])
        if all(set(row) == set(rows[0]) and self._stays(row) for row in rows):
            return True
        found = [f for f in _factors(rows[0] or rows[-1]) if not self.loop.holds(f)]
        self.row = next((f for f in found if all(_is_product(t, f) for r in rows for t in r)), None)
        return self.row is not None

    def _stays(self, row: list[Value]) -> bool:
        return not any(map(self.loop.holds, row))


def _place(access: Value) -> tuple[Value, list[Value]]:
    """The array of an access, and the terms of its index; differences are no terms."""
    pointer, offset = access.args[:2]
    terms = _terms(offset)
    while pointer.op == "gep" and pointer.attribute == access.attribute:
        terms += _terms(pointer.args[1])
        pointer = pointer.args[0]
    return pointer, terms


def _terms(v: Value) -> list[Value]:
    if v.op == "iadd":
        return [t for a in v.args for t in _terms(a)]
    if v.op == "imul":
        others = [a for a in v.args if not _is(a, 1)]
        if any(_is(a, 0) for a in v.args):
            return []
        if len(others) == 1:
            return _terms(others[0])
    return [] if _is(v, 0) else [v]


def _is(v: Value, x: int) -> bool:
    return v.op == "const" and bool(v.attribute == x)


def _factors(terms: list[Value]) -> list[Value]:
    """What a sum may be a multiple of."""
    found: list[Value] = []
    for v in terms[:1]:
        found += [f for a in v.args for f in (a, *_factors([a]))] if v.op == "imul" else [v]
    return [f for f in found if f.op != "const"]


def _is_product(v: Value, factor: Value) -> bool:
    return v is factor or (v.op == "imul" and any(_is_product(a, factor) for a in v.args))
