"""Adjoints of what reads and writes chosen places: by index arrays, by masks, at a view.

How the places are counted stands in AUX, see `ops.index_layout`; views stand in the table of
strides.  The compiled sweep calls this as a kernel: graphs that have no such records need not wait
for it.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, f8, i8, room_f8, u1
from tapegrad.kernels.sweep.arena import count_of, data, give_back, saved, take
from tapegrad.kernels.sweep.sweep_abi import (
    EACH_BITS,
    FIELD,
    FIELD_MASK,
    INDEX_LAST,
    KEEPS_WRITTEN,
    KIND_ASSIGN,
    KIND_MASK,
    KIND_PICK,
    KIND_PUT,
    KIND_SELECT,
    KIND_TRIANGLE,
    LOWER,
    PLACE_BITS,
    SHARED,
    SweepFrame,
)
from tapegrad.kernels.sweep.view_adjoints import gather, row_count, row_length, row_pace, row_start

EACH_MASK = (1 << EACH_BITS) - 1
PLACE_MASK = (1 << PLACE_BITS) - 1


@typed
def chosen(frame, index, kind, aux):
    """The header of the array that names the places, or 0: no formula reads it."""
    header = saved(frame, index, 2 if kind == KIND_PUT and aux & INDEX_LAST else 1)
    return 0 if header == frame.nothing else header


@typed
def sound(frame, index, kind, aux, n):
    """Whether the places are still such as they were when the record was made."""
    if kind == KIND_ASSIGN or kind == KIND_TRIANGLE:
        return True
    header = chosen(frame, index, kind, aux)
    if header == 0:
        return kind == KIND_PUT  # to whose sums each adjoint passes as it is
    count = count_of(frame, header)
    if kind == KIND_SELECT:
        mask, true = u1(data(frame, header)), 0
        for i in range(count):
            true += 1 if mask[i] else 0
        return true == n
    size, places, good = (aux >> 2 * FIELD) & FIELD_MASK, i8(data(frame, header)), True
    if kind != KIND_MASK:
        for i in range(count):
            good &= -size <= places[i] < size
    return good


@typed
def blocks_of(aux, count):
    """How many blocks there are of which each index names a place in its own, or in all."""
    each = (aux >> 3 * FIELD) & EACH_MASK
    if aux & SHARED:
        return each
    return count // (each * ((aux >> FIELD) & FIELD_MASK)) if each else 1


@typed
def by_element(aux):
    """Whether indices name elements of blocks of their own, and not whole rows."""
    return (aux >> 3 * FIELD) & EACH_MASK != 0 and aux & SHARED == 0


@typed
def next_indices(aux, at):
    """Where the indices of a block begin, if those of the last one ended here."""
    return 0 if aux & SHARED else at


@typed
def start_of(aux, place, block, column):
    """Where what an index names begins: a row, or an element in a column of a block."""
    width, size = (aux >> FIELD) & FIELD_MASK, (aux >> 2 * FIELD) & FIELD_MASK
    if place < 0:
        place += size
    return (block * size + place) * width + column


@typed
def columns_of(aux):
    """How many indices stand beside each other: those of elements of rows that lie apart."""
    return (aux >> FIELD) & FIELD_MASK if by_element(aux) else 1


@typed
def length_of(aux):
    """How many elements each index names."""
    return 1 if by_element(aux) else (aux >> FIELD) & FIELD_MASK


@typed
def lines_of(aux, count):
    """How many lines of indices, each with as many as there are columns, a block has."""
    return count if aux & SHARED else count // (blocks_of(aux, count) * columns_of(aux))


@typed
def pick_elements(aux, places_at, count, source_at, to):
    """Read the elements that indices name, one after the other."""
    places, source, target = i8(places_at), f8(source_at), f8(to)
    lines, at, i = lines_of(aux, count), 0, 0
    for block in range(blocks_of(aux, count)):
        at = next_indices(aux, at)
        for k in range(lines):
            target[i + k] = source[start_of(aux, places[at + k], block, 0)]
        at, i = at + lines, i + lines


@typed
def pick(aux, places_at, count, source_at, to, pace, adds):
    """Read, or add up, the elements or rows that indices name; with a pace of 0 into one place."""
    places, source, target = i8(places_at), f8(source_at), f8(to)
    length = length_of(aux)
    lines, columns, at, i = lines_of(aux, count), columns_of(aux), 0, 0
    if length == 1 and columns == 1 and pace == 1 and not adds:
        pick_elements(aux, places_at, count, source_at, to)
        return
    for block in range(blocks_of(aux, count)):
        at = next_indices(aux, at)
        for _ in range(lines):
            for column in range(columns):
                start = start_of(aux, places[at], block, column)
                for j in range(length):
                    k, value = (i * length + j) * pace, source[start + j]
                    target[k] = target[k] + value if adds else value
                at, i = at + 1, i + 1


@typed
def ascend(places_at, count):
    """Whether indices rise, from none before the first place: then no two name the same one."""
    places = i8(places_at)
    for i in range(1, count):
        if places[i] <= places[i - 1]:
            return False
    return places[0] >= 0


@typed
def pick_last(aux, places_at, count, read_at, source_at, to, pace):
    """Add up what indices name, from the last to the first, each place once."""
    places, source, target, read = i8(places_at), f8(source_at), f8(to), u1(read_at)
    length, columns = length_of(aux), columns_of(aux)
    each = lines_of(aux, count) * columns
    for i in range(blocks_of(aux, count) * each - 1, -1, -1):
        at = i % each if aux & SHARED else i
        start = start_of(aux, places[at], i // each, i % columns)
        if read[start] == 0:
            read[start] = 1
            for j in range(length):
                target[(i * length + j) * pace] += source[start + j]


@typed
def scatter(aux, places_at, count, source_at, to, pace, adds):
    """Write, or add, elements or rows where indices say; with a pace of 0 one number."""
    places, source, target = i8(places_at), f8(source_at), f8(to)
    length = length_of(aux)
    lines, columns, at, i = lines_of(aux, count), columns_of(aux), 0, 0
    for block in range(blocks_of(aux, count)):
        at = next_indices(aux, at)
        for _ in range(lines):
            for column in range(columns):
                start = start_of(aux, places[at], block, column)
                for j in range(length):
                    value = source[(i * length + j) * pace]
                    target[start + j] = target[start + j] + value if adds else value
                at, i = at + 1, i + 1


@typed
def select_back(frame, header, g, out):
    """Add what a mask has selected where it was."""
    mask, source, target = u1(data(frame, header)), f8(g), f8(out)
    at = 0
    for i in range(count_of(frame, header)):
        if mask[i]:
            target[i] += source[at]
            at += 1


@typed
def cut(aux, count, to):
    """Write zeros below or above a diagonal."""
    target = f8(to)
    columns, rows = aux & FIELD_MASK, (aux >> FIELD) & FIELD_MASK
    diagonal, lower = ((aux >> 2 * FIELD) & FIELD_MASK) - rows, aux & LOWER
    for row in range(count // columns if count else 0):
        edge = row % rows + diagonal
        first = max(edge + 1, 0) if lower else 0
        last = columns if lower else min(edge, columns)
        for column in range(first, last):
            target[row * columns + column] = 0.0


@typed
def blank(frame, index, kind, aux, n, out):
    """Write zeros where the operation has written, or has left out, elements."""
    target = f8(out)
    if kind == KIND_ASSIGN:
        record = i8(frame.views + 8 * (aux & PLACE_MASK))
        inner, step = row_length(record), row_pace(record)
        for r in range(row_count(record)):
            at = row_start(record, r)
            for i in range(inner):
                target[at + i * step] = 0.0
        return
    if kind == KIND_TRIANGLE:
        cut(aux, n, out)
        return
    header = chosen(frame, index, kind, aux)
    if kind == KIND_MASK:
        mask = u1(data(frame, header))
        for i in range(n):
            target[i] = 0.0 if mask[i] else target[i]
        return
    zero = room_f8(1)
    zero[0] = 0.0
    scatter(aux, data(frame, header), count_of(frame, header), address(zero), out, 0, False)


@typed
def pass_on(frame, index, kind, aux, n, g, out):
    """Add the adjoint of what was written into: the result's, less what was overwritten."""
    into = take(frame, n * 8)
    source, target, total = f8(g), f8(into), f8(out)
    for i in range(n):
        target[i] = source[i]
    if kind != KIND_PUT or aux & KEEPS_WRITTEN == 0:
        blank(frame, index, kind, aux, n, into)
    for i in range(n):
        total[i] += target[i]
    give_back(frame, into, n * 8)


@typed
def written(frame, index, kind, aux, n, g, out):
    """Add the adjoint of a value that was written, or of a number written everywhere there."""
    source, target = f8(g), f8(out)
    if kind == KIND_MASK:
        mask = u1(data(frame, chosen(frame, index, kind, aux)))
        for i in range(n):
            target[0] += source[i] if mask[i] else 0.0
        return
    if kind == KIND_ASSIGN:
        record = i8(frame.views + 8 * (aux & PLACE_MASK))
        if aux >> PLACE_BITS != 1:
            gather(record, g, out, False, False)
            return
        inner, step = row_length(record), row_pace(record)
        for r in range(row_count(record)):
            at = row_start(record, r)
            for i in range(inner):
                target[0] += source[at + i * step]
        return
    header = chosen(frame, index, kind, aux)
    places, count = data(frame, header), count_of(frame, header)
    pace = 0 if aux & FIELD_MASK == 1 else 1
    if aux & KEEPS_WRITTEN or count == 0 or ascend(places, count):
        pick(aux, places, count, g, out, pace, True)
        return
    room = take(frame, n)
    read = u1(room)
    for i in range(n):
        read[i] = 0
    pick_last(aux, places, count, room, g, out, pace)
    give_back(frame, room, n)


def placed(frame_at, index, kind, aux, k, n, g, out):
    """Add the contribution of a record to the adjoint of its k-th input.

    Where k is -1: whether the places are still such as they were when the record was made.
    """
    frame = SweepFrame(frame_at)
    if k < 0:
        return 1 if sound(frame, index, kind, aux, n) else 0
    if kind == KIND_PICK:
        header = chosen(frame, index, kind, aux)
        scatter(aux, data(frame, header), count_of(frame, header), g, out, 1, True)
    elif kind == KIND_SELECT:
        select_back(frame, chosen(frame, index, kind, aux), g, out)
    elif k == 0:
        pass_on(frame, index, kind, aux, n, g, out)
    else:
        written(frame, index, kind, aux, n, g, out)
    return 0
