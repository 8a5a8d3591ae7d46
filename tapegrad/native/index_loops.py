"""Gather and scatter elements or rows of a small array.

The places are named by integers, by a mask, or by how a view lies.
"""

from tapegrad.kernels.memory import f8, i8, u1
from tapegrad.kernels.sweep.index_adjoints import cut, pick, scatter
from tapegrad.kernels.sweep.sweep_abi import (
    FIELD,
    FIELD_MASK,
    KEEPS_WRITTEN,
    KIND_ASSIGN,
    KIND_JOIN,
    KIND_MASK,
    KIND_PUT,
    KIND_SELECT,
    KIND_TRIANGLE,
    KIND_VIEW,
    PLACE_BITS,
)
from tapegrad.kernels.sweep.view_adjoints import (
    clear,
    gather,
    row_count,
    row_length,
    row_pace,
    row_start,
)
from tapegrad.native.pyobjects import ARRAY_DATA, F8_SIZE, count_of, typed


@typed
def in_bounds(plan, places_at, count):
    """Whether every index names a place."""
    places, good = i8(places_at), True
    size = (plan.aux >> 2 * FIELD) & FIELD_MASK
    least = -size if plan.counts_back else 0
    for i in range(count):
        good &= least <= places[i] < size
    return good


@typed
def assign(aux, row_at, source_at, to):
    """Write where a view lies, whose row in the table of strides this is."""
    source, target, record = f8(source_at), f8(to), i8(row_at)
    pace = 0 if aux >> PLACE_BITS == 1 else 1
    inner, step = row_length(record), row_pace(record)
    for r in range(row_count(record)):
        at = row_start(record, r)
        for i in range(inner):
            target[at + i * step] = source[(r * inner + i) * pace]


@typed
def fill(mask_at, count, source_at, to):
    """Write one number where a mask holds."""
    mask, target = u1(mask_at), f8(to)
    value = f8(source_at)[0]
    for i in range(count):
        target[i] = value if mask[i] else target[i]


@typed
def select(mask_at, count, source_at, to, most):
    """Read the elements where a mask holds; whether there are as many as there is room for."""
    mask, source, target = u1(mask_at), f8(source_at), f8(to)
    at = 0
    for i in range(count):
        if mask[i]:
            if at < most:
                target[at] = source[i]
            at += 1
    return 1 if at == most else 0


@typed
def read_places(operands, plan, source, count, to):
    """Fill a new array; 0 where an index names no place, or the mask is of another length."""
    if plan.loop == KIND_VIEW:
        gather(i8(plan.rows), source, to, True, False)
        return 1
    if plan.loop == KIND_JOIN:
        clear(to, count * F8_SIZE)
        assign(0, plan.rows, source, to)
        return 1
    index = operands[plan.index].array
    places, chosen = i8(index)[ARRAY_DATA], count_of(index)
    if plan.loop == KIND_SELECT:
        return select(places, chosen, source, to, count)
    if not in_bounds(plan, places, chosen):
        return 0
    pick(plan.aux, places, chosen, source, to, 1, False)
    return 1


@typed
def write_places(operands, plan, source, count, to):
    """Write into a copy of the first operand; 0 where an index names no place."""
    if plan.loop == KIND_TRIANGLE:
        cut(plan.aux, count, to)
        return 1
    if plan.loop == KIND_ASSIGN:
        assign(plan.aux, plan.rows, source, to)
        return 1
    index = operands[plan.index].array
    places, chosen = i8(index)[ARRAY_DATA], count_of(index)
    if plan.loop == KIND_MASK:
        fill(places, chosen, source, to)
        return 1
    if plan.loop == KIND_PUT and not in_bounds(plan, places, chosen):
        return 0
    pace, adds = 0 if plan.aux & FIELD_MASK == 1 else 1, plan.aux & KEEPS_WRITTEN != 0
    scatter(plan.aux, places, chosen, source, to, pace, adds)
    return 1
