"""Find the `prange` loops whose trips threads can share, forward and back.

The trips hand nothing on to each other but sums, and write no element that another one reads or
writes.  Numba takes a programmer's word for that; here it has to follow from the indices, for the
reverse sweep adds to the adjoint of all that is read.  The adjoints of what the loop only reads are
added up by each thread on its own, unless each trip has elements of its own there, too.
"""

from __future__ import annotations

from tapegrad.njit.dependence_test import DependenceTest
from tapegrad.njit.three_address_code import FLOATS, PARALLEL
from tapegrad.njit.values import Function, Loop, SharedTrips, Value, dominates

ROOTS = ("alloc", "arg", "const", "call", "word")  # what pointers come from
ADDITIONS = ("add", "sub", "iadd", "isub")


def find_parallel_loops(function: Function) -> None:
    """Say for each `prange` loop that is in no other one how its trips are shared, or why not."""
    readers: dict[Value, list[Value]] = {}
    for v in function.all_values():
        for a in v.args:
            readers.setdefault(a, []).append(v)
    shared: set[Loop] = set()
    for loop in sorted(function.loops, key=lambda x: x.depth):
        if loop.parent in shared:
            shared.add(loop)
        elif is_prange(loop):
            found = _Candidate(function, loop, readers).shared()
            if isinstance(found, str):
                loop.sequential = found
            else:
                loop.shared = found
                shared.add(loop)


def is_prange(loop: Loop) -> bool:
    """Whether a loop is one that Numba would run on threads."""
    operands = loop.header.operands
    return bool(operands) and operands[0].attribute == PARALLEL


class _Candidate:
    """A loop, and what its trips have in common."""

    def __init__(self, function: Function, loop: Loop, readers: dict[Value, list[Value]]) -> None:
        self.function, self.loop, self.readers = function, loop, readers
        self.memory = DependenceTest(function, loop)
        self.inside = [v for b in loop.blocks for v in (*b.phis, *b.instructions)]

    def shared(self) -> SharedTrips | str:
        """How the trips are shared, or why they cannot be."""
        if self.loop.count is None:
            return "it is left before its last iteration"
        sums = [p for p in self.loop.header.phis if p is not self.loop.number]
        for p in sums:
            if not self._is_sum(p):
                return f"{_name(p)} is carried from iteration to iteration, and is no sum"
        for p in self.loop.exits[0].phis:
            if p.args[0] not in sums and self.loop.holds(p.args[0]):
                return f"{_name(p)} is read after the loop, and is no sum"
        if any(v.op == "call" for v in self.inside):
            return "it calls what Numba alone compiles"
        copied = list[Value]()
        by_class: dict[Value, list[Value]] = {}
        for v in sorted(self.inside, key=lambda v: v.id):
            if v.op in ("load", "store"):
                by_class.setdefault(self.function.alias_class(v.args[0]), []).append(v)
        for memory, accesses in by_class.items():
            found = self._array(memory, accesses)
            if isinstance(found, str):
                return found
            copied += [] if found is None else [found]
        return SharedTrips(tuple(sums), tuple(copied))

    def _array(self, memory: Value, accesses: list[Value]) -> Value | str | None:
        """The array whose adjoints each thread has to have its own of, if there is one."""
        of = self.function.alias_class
        known = (*self.function.parameters, *self.function.values)
        roots = [
            v for v in dict.fromkeys(known)
            if v.type == "ptr" and v.op in ROOTS and of(v) is memory
        ]  # fmt: skip
        if all(self.loop.holds(v) or v.op == "const" for v in roots):
            return None  # arrays of a trip's own, tables
        if self.memory.lie_apart(accesses):
            return None
        for v in accesses:
            if v.op == "store":
                line = "" if v.line is None else f" (line {v.line.line})"
                name = _name(v.args[0]) if v.args[0].name else "an array"
                return f"iterations may touch the same element of {name}{line}"
        if not any(v.type in FLOATS for v in accesses):
            return None
        if len(roots) > 1 or not dominates(roots[0].home, self.loop.preheader):
            return "it reads arrays that are told apart at run time"
        return roots[0]

    def _is_sum(self, phi: Value) -> bool:
        """Whether trips do nothing with a number but add to it."""
        members, pending = {phi}, [phi]
        while pending:
            for v in self.readers.get(pending.pop(), []):
                if self.loop.holds(v) and v not in members and v.op in (*ADDITIONS, "phi"):
                    members.add(v)
                    pending.append(v)
        return all(self._only_adds(v, members, v is phi) for v in members)

    def _only_adds(self, v: Value, members: set[Value], first: bool) -> bool:
        """Whether a partial sum is one, and nothing else is made of it."""
        own = [a in members for a in v.args]
        if v.op == "phi":
            made = sum(own) == (1 if first else len(own))
        else:
            made = own == [True, False] or (own == [False, True] and v.op in ("add", "iadd"))
        inside = [r for r in self.readers.get(v, []) if self.loop.holds(r)]
        decided = any(v in b.operands for b in self.loop.blocks)
        return made and not decided and members.issuperset(inside)


def _name(v: Value) -> str:
    """A value's name in the user's source."""
    return f"`{v.name}`" if v.name else "a value"
