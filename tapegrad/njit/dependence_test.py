"""Dependence test of a loop: whether each trip touches elements of an array of its own.

The place of an access is a polynomial in numbers of trips and in what the loop does not change.
Trips lie apart if the number of the trip goes on by more than the rest of the polynomial can reach:
by a row, if the rest stays within a row.  Indices are within bounds, as Numba takes them to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from tapegrad.njit.value_numbering import lower_bound
from tapegrad.njit.values import Function, Loop, Value

Monomial = tuple[int, ...]  # the values that are multiplied, in order
LARGEST = 64  # terms of a polynomial


class Polynomial(dict[Monomial, int]):
    """A sum of products of values, with the factor of each."""

    def __add__(self, other: Polynomial) -> Polynomial:
        found = Polynomial(self)
        for x, factor in other.items():
            found[x] = found.get(x, 0) + factor
        return Polynomial({x: factor for x, factor in found.items() if factor})

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        right = Polynomial({(): other}) if isinstance(other, int) else other
        found = Polynomial()
        for x, a in self.items():
            for y, b in right.items():
                found += Polynomial({tuple(sorted(x + y)): a * b})
        return found

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other * -1

    @property
    def constant(self) -> int | None:
        """The number that it is, if it is one."""
        return self.get((), 0) if set(self) <= {()} else None

    def split(self, divisor: Monomial) -> tuple[Polynomial, Polynomial]:
        """The quotient by a product of values, and the rest."""
        quotient, rest = Polynomial(), Polynomial()
        for x, factor in self.items():
            left = Counter(x)
            left.subtract(divisor)
            if min(left.values(), default=0) < 0:
                rest[x] = factor
            else:
                quotient[tuple(sorted(left.elements()))] = factor
        return quotient, rest


class DependenceTest:
    """The places that the trips of one loop read and write."""

    def __init__(self, function: Function, loop: Loop) -> None:
        self.function, self.loop = function, loop
        self.atoms: dict[int, Value] = {}
        self.counters = {x.number: x for x in function.loops if x.header in loop.blocks}

    def lie_apart(self, accesses: Iterable[Value]) -> bool:
        """Whether no trip touches an element that another one does."""
        places = [self._place(v) for v in accesses]
        roots = {root for root, _ in places}
        if len(roots) != 1 or any(map(self.loop.holds, roots)):
            return False
        split = [place.split((self.loop.number.id,)) for _, place in places]
        step, rests = split[0][0], [rest for _, rest in split]
        if any(other != step for other, _ in split) or not self._is_stride(step, roots.pop()):
            return False
        if all(a == b for a, b in pairwise(rests)) and self._is_fixed(rests[0]):
            return True
        begins = [self._begin(rest, step) for rest in rests]
        return any(
            self._is_fixed(begin) and all(self._stays_below(rest - begin, step) for rest in rests)
            for begin in begins
        )

    # -- places ------------------------------------------------------------------------------

    def _place(self, v: Value) -> tuple[Value, Polynomial]:
        """The array, and where in it an element lies."""
        pointer, place = v.args[0], self.polynomial(v.args[1])
        while pointer.op == "gep" and pointer.attribute == v.attribute:
            place += self.polynomial(pointer.args[1])
            pointer = pointer.args[0]
        return pointer, place

    def polynomial(self, v: Value) -> Polynomial:
        """An integer as a polynomial."""
        if v.op == "const" and v.type == "i64":
            return Polynomial({(): v.attribute} if v.attribute else {})
        if v.op in ("iadd", "isub", "imul"):
            a, b = map(self.polynomial, v.args)
            found = a + b if v.op == "iadd" else a - b if v.op == "isub" else a * b
            if len(found) <= LARGEST:
                return found
        self.atoms[v.id] = v
        return Polynomial({(v.id,): 1})

    # -- bounds ------------------------------------------------------------------------------

    def _is_stride(self, step: Polynomial, root: Value) -> bool:
        """Whether a step is not zero: a number, or the length of the array's rows."""
        if step.constant is not None:
            return step.constant != 0
        if len(step) != 1:
            return False
        ((x, factor),) = step.items()
        return factor > 0 and bool(self._size(root).split(x)[0])

    def _size(self, root: Value) -> Polynomial:
        """The number of an array's elements."""
        found = Polynomial({(): 1})
        for n in self.function.lengths_of(root):
            found *= self.polynomial(n)
        return found

    @staticmethod
    def _begin(rest: Polynomial, step: Polynomial) -> Polynomial:
        """Where a row may begin in which a place lies, in the first trip."""
        ((x, factor),) = step.items()
        whole, _ = rest.split(x)
        return Polynomial({(): rest.get((), 0)}) if x == () else whole * Polynomial({x: factor})

    def _is_fixed(self, p: Polynomial) -> bool:
        """Whether the loop does not change a polynomial."""
        return not any(self.loop.holds(self.atoms[k]) for x in p for k in x)

    def _stays_below(self, p: Polynomial, bound: Polynomial) -> bool:
        """Whether a polynomial is not negative and below a bound, if indices are within bounds."""
        if bound.constant is not None and bound.constant < 0:
            p, bound = p * -1, bound * -1
        if p.constant is not None:
            limit = bound.constant
            return p.constant >= 0 and (limit is None or p.constant < limit)
        if ((bound - p).constant or 0) > 0:
            return True
        if bound.constant is None and not p.split(next(iter(bound)))[0] and self._is_positive(p):
            return True  # indices of the row's dimensions
        for k in sorted({k for x in p for k in x}):
            count = self._count(self.atoms[k])
            factor, rest = p.split((k,))
            if count is None or len(factor) != 1:
                continue
            ((step, times),) = factor.items()
            whole, part = rest.split(step)
            if times != 1 or not self._is_positive(whole) or k in step:
                continue
            unit = Polynomial({step: 1})
            room = (bound - (count + whole) * unit).constant
            if room is not None and room >= 0 and (not part or self._stays_below(part, unit)):
                return True
        return False

    def _is_positive(self, p: Polynomial) -> bool:
        """Whether a polynomial is known not to be negative."""
        least = [lower_bound(self.atoms[k]) for x in p for k in x]
        return all(factor > 0 for factor in p.values()) and not any(
            b is None or b < 0 for b in least
        )

    def _count(self, v: Value) -> Polynomial | None:
        """The number above all that an integer from zero on is, if that is known."""
        if v.op == "wrap":
            return self.polynomial(v.args[1])
        loop = self.counters.get(v)
        if loop is None or loop is self.loop or loop.count is None:
            return None
        count = loop.count
        if count.op == "imax":  # zero at least: else there are no trips
            count = next((a for a in count.args if a.op != "const"), count)
        return self.polynomial(count)
