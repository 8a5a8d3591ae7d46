"""The number of each trip of a loop, and how many there are."""

from __future__ import annotations

from tapegrad.njit.ssa_form import resolve_operands
from tapegrad.njit.value_numbering import lower_bound
from tapegrad.njit.values import Function, Loop, Value


def count_trips(function: Function) -> None:
    """Find or make, for every loop, the counter of its trips, and their number at each exit."""
    for loop in function.loops:
        _find_counter(function, loop)
        if loop.trip is None:
            loop.trip = _made_counter(function, loop)
        for block in loop.exits:
            if loop.count is not None:
                loop.trips[block] = loop.count
            else:
                found = function.value("phi", [loop.trip], "i64", None, block)
                block.phis.append(found)
                loop.trips[block] = found
    for loop in function.loops:
        _express_by_trips(function, loop)
    resolve_operands(function)
    function.number_positions()


def _find_counter(function: Function, loop: Loop) -> None:
    """A counter from zero on that the header compares with a bound."""
    header = loop.header
    if header.terminator != "branch":
        return
    condition = header.operands[0]
    if condition.op != "lt" or condition.args[0].type != "i64":
        return
    counter, bound = condition.args
    if counter.op != "phi" or counter.home is not header or loop.holds(bound):
        return
    before = header.predecessors.index(loop.preheader)
    start, after = counter.args[before], counter.args[1 - before]
    if start.op != "const" or start.attribute != 0 or after.op != "iadd":
        return
    if after.args[0] is not counter or after.args[1].op != "const":
        return
    if after.args[1].attribute != 1:
        return
    loop.trip = counter
    leaving = [p for block in loop.exits for p in block.predecessors]
    if leaving == [header] and header.successors[1] in loop.exits:
        loop.count = _not_negative(function, loop, bound)


def _not_negative(function: Function, loop: Loop, bound: Value) -> Value:
    """A bound, or zero where it is negative, since there is no trip then."""
    least = lower_bound(bound)
    if least is not None and least >= 0:
        return bound
    zero = function.const(0, "i64")
    made = function.value("imax", [bound, zero], "i64", None, loop.preheader)
    loop.preheader.instructions.append(made)
    return made


def _made_counter(function: Function, loop: Loop) -> Value:
    header = loop.header
    counter = function.value("phi", [], "i64", None, header)
    one = function.const(1, "i64")
    after = function.value("iadd", [counter, one], "i64", "nsw", loop.latch)
    loop.latch.instructions.append(after)
    zero = function.const(0, "i64")
    counter.args = [zero if p is loop.preheader else after for p in header.predecessors]
    header.phis.append(counter)
    return counter


def _express_by_trips(function: Function, loop: Loop) -> None:
    """Compute integers that grow evenly from the number of the trip: no stack keeps them then."""
    header, trip = loop.header, loop.number
    before = header.predecessors.index(loop.preheader)
    made = []
    for phi in list(header.phis):
        after = phi.args[1 - before]
        if phi is trip or phi.type != "i64" or after.op != "iadd" or phi not in after.args:
            continue
        start, step = phi.args[before], after.args[after.args[0] is phi]
        if step is phi or loop.holds(step):
            continue
        growth = function.value("imul", [trip, step], "i64", None, header)
        phi.replaced = function.value("iadd", [start, growth], "i64", None, header)
        phi.replaced.name, phi.replaced.line = phi.name, phi.line
        header.phis.remove(phi)
        made += [growth, phi.replaced]
    header.instructions[:0] = made
