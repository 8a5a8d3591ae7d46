"""Loops that are reversed from the first trip on, because their trips may come in any order.

LLVM tests at run time whether a distance in memory that it does not know is one, and makes vectors
of the loop then; but not whether it is minus one.  Where it knows, it makes vectors either way.
"""

from __future__ import annotations

from tapegrad.njit.reverse_plan import ReversePlan
from tapegrad.njit.values import Loop, Value


def goes_upwards(loop: Loop, plan: ReversePlan) -> bool:
    """Whether a loop is reversed from its first trip on."""
    accesses = [v for b in loop.blocks for v in b.instructions if v.op in ("load", "store")]
    return any(distance(v.args[1], loop) is None for v in accesses) and is_free(loop, plan)


def is_free(loop: Loop, plan: ReversePlan) -> bool:
    """Whether the reverse of a trip needs nothing of that of the next one.

    An innermost loop is meant that carries sums alone, overwrites nothing that has to be put back,
    writes with each store somewhere else in each trip, and reads nothing of what it writes.  What
    it looks up where an array says is added up in order.
    """
    if loop.count is None or any(b.loop is not loop for b in loop.blocks):
        return False
    header, inside = loop.header, [v for b in loop.blocks for v in b.instructions]
    if any(v.active or v.op == "store" for v in header.instructions):
        return False
    memory_of = plan.function.alias_class
    stores = [v for v in inside if plan.activity.stores_active(v)]
    written = {memory_of(s.args[0]) for s in stores}
    return (
        not any(v in plan.saved for v in inside)
        and len(written) == len(stores)
        and not any(v.op == "load" and memory_of(v.args[0]) in written for v in inside)
        and all(_goes_evenly(v.args[1], loop) for v in inside if v.op == "load" and v.active)
        and all(not loop.holds(s.args[0]) and distance(s.args[1], loop) for s in stores)
        and all(_is_sum(p, loop) for p in header.phis if p.active)
    )


def distance(v: Value, loop: Loop) -> int | None:
    """How far an index goes on in a trip of a loop, where that is a constant."""
    if v is loop.number:
        return 1
    if not loop.holds(v):
        return 0
    if v.op not in ("iadd", "isub", "imul"):
        return None
    a, b = (distance(x, loop) for x in v.args)
    if a is None or b is None:
        return None
    if v.op != "imul":
        return a + b if v.op == "iadd" else a - b
    if not (a or b):
        return 0
    x, factor = (a, v.args[1]) if a else (b, v.args[0])
    return x * int(factor.attribute) if factor.op == "const" else None


def _goes_evenly(index: Value, loop: Loop) -> bool:
    """Whether an index goes on by as much in each trip."""
    if index is loop.number or not loop.holds(index):
        return True
    even = index.op in ("iadd", "isub", "imul") and all(_goes_evenly(a, loop) for a in index.args)
    return even and (index.op != "imul" or 0 in [distance(a, loop) for a in index.args])


def _is_sum(phi: Value, loop: Loop) -> bool:
    """Whether nothing becomes of a number in a trip but that something is added to it."""
    after = phi.args[loop.header.predecessors.index(loop.latch)]
    now = phi
    while now is not after:
        readers = _readers(now, loop)
        if len(readers) != 1 or readers[0].op not in ("add", "sub", "lane_sum"):
            return False
        (reader,) = readers
        if reader.args.count(now) != 1 or (reader.op != "add" and reader.args[0] is not now):
            return False
        now = reader
    return _readers(after, loop) == [phi]


def _readers(v: Value, loop: Loop) -> list[Value]:
    """What hands an adjoint on to a value."""
    return [
        x for b in loop.blocks for x in (*b.phis, *b.instructions)
        if v in x.args and (x.active or x.op == "store")
    ]  # fmt: skip
