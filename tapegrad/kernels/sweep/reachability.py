"""Passes over records alone: what is live, needed, reached, released."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import i8, u1
from tapegrad.kernels.sweep.sweep_abi import (
    BELOW,
    DONE,
    LEAF_REACHED,
    NEED_CAPTURE,
    NEED_INSIDE,
    SPENT_RECORD,
    UNUSED,
)
from tapegrad.tape.record_format import (
    FIELDS,
    GENERAL,
    IN0,
    IN1,
    LISTED,
    RELEASED,
    SAVES,
    SPENT,
    WORD,
)


@typed
def find(frame, position):
    """The index of the record at a position, or -1."""
    index = position - frame.shift
    count = frame.old_count
    if index >= count:
        return index
    old = i8(frame.old)
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if old[middle] < position:
            low = middle + 1
        else:
            high = middle
    if low < count and old[low] == position:
        return low
    return -1


@typed
def input_count(record):
    """How many inputs a record has."""
    return record[IN1] if record[WORD] & LISTED else 3


@typed
def input_at(frame, record, k):
    """The code of a record's k-th input."""
    if record[WORD] & LISTED:
        return i8(frame.input_lists)[record[IN0] + k]
    return record[IN0 + k]


@typed
def propagate(frame):
    """Liveness: what a live, unspent record reads is live."""
    reach = u1(frame.reach)
    for index in range(frame.cursor, -1, -1):
        if reach[index] == 0:
            continue
        record = i8(frame.records + index * FIELDS * 8)
        if record[WORD] & SPENT:
            continue
        for k in range(input_count(record)):
            code = input_at(frame, record, k)
            if code > 0:
                below = find(frame, code)
                if below >= 0:
                    reach[below] = 1
    return DONE


@typed
def needs(frame):
    """Upwards: a record is needed when it reads a target, or a needed record."""
    need = u1(frame.need)
    leaf_need = u1(frame.leaf_need)
    reach = u1(frame.reach)
    for index in range(frame.low, frame.cursor + 1):
        if reach[index] == 0:
            continue
        record = i8(frame.records + index * FIELDS * 8)
        inside = 0
        for k in range(input_count(record)):
            code = input_at(frame, record, k)
            if code < 0:
                inside |= leaf_need[-code - 1] & 1
            elif code > 0:
                below = find(frame, code)
                if below >= frame.low and need[below] != 0:
                    inside = 1
        if inside:
            need[index] |= NEED_INSIDE
    return DONE


@typed
def mark(frame, bounded, checked, lowest):
    """Downwards from the roots: which records the sweep will meet, and whether it may.

    `bounded`: only what is needed is met.  `checked`: what is met must have its saved values.
    With `frame.bottom` nothing below the lowest record is asked for.  No root stands below
    `lowest`, and once all is marked nothing below the lowest record met is looked at any more.
    """
    reach = u1(frame.reach)
    need = u1(frame.need)
    index = frame.cursor + 1
    while index > lowest:
        index -= 1
        if reach[index] == 0:
            continue
        if bounded and need[index] == 0:
            reach[index] = 0
            continue
        record = i8(frame.records + index * FIELDS * 8)
        if bounded and need[index] & NEED_INSIDE == 0:
            continue
        if record[WORD] & SPENT and checked:
            frame.detail = index
            return SPENT_RECORD
        for k in range(input_count(record)):
            code = input_at(frame, record, k)
            if code < 0 and bounded:
                u1(frame.leaf_need)[-code - 1] |= LEAF_REACHED
            if code > 0:
                below = find(frame, code)
                if below < frame.low:
                    if frame.bottom:
                        continue
                    frame.detail = index
                    if checked or frame.low > 0:
                        return BELOW if frame.low > 0 else SPENT_RECORD
                    continue
                reach[below] = 1
                lowest = min(lowest, below)
    frame.low = lowest
    return DONE


@typed
def reached(frame, code):
    """Whether the roots depend on a target."""
    if code < 0:
        return u1(frame.leaf_need)[-code - 1] & LEAF_REACHED != 0
    index = find(frame, code)
    return frame.low <= index <= frame.cursor and u1(frame.reach)[index] != 0


@typed
def mark_targets(frame):
    """Mark the targets themselves, on records and on leaves."""
    need = u1(frame.need)
    leaf_need = u1(frame.leaf_need)
    for index in range(frame.low, frame.cursor + 1):
        need[index] = 0
    for slot in range(frame.leaves):
        leaf_need[slot] = 0
    targets = i8(frame.targets)
    for i in range(frame.target_count):
        code = targets[i]
        if code < 0:
            leaf_need[-code - 1] = 1
        else:
            index = find(frame, code)
            if frame.low <= index <= frame.cursor:
                need[index] = NEED_CAPTURE


@typed
def locate(frame):
    """Where the adjoints and the marks of the records would begin if the lowest were the first."""
    low = frame.low
    frame.adjoints = frame.leaf_adjoints + 8 * (frame.leaves - low)
    frame.reach = frame.reach_at - low
    frame.need = 0 if frame.target_count < 0 else frame.need_at - low


@typed
def prepare(frame):
    """All marks of a sweep.  What leads to a target is looked for only among what is reached, and
    what is reached through records that lead to none is reached no other way that would count.
    """
    reach = u1(frame.reach)
    for index in range(frame.low, frame.cursor + 1):
        reach[index] = 0
    seeds = i8(frame.seeds)
    lowest = frame.cursor
    for i in range(frame.seed_count):
        reach[seeds[2 * i]] = 1
        lowest = min(lowest, seeds[2 * i])
    bounded = frame.need != 0
    if bounded:
        mark_targets(frame)
        status = mark(frame, False, False, lowest)
        if status != DONE:
            return status
        needs(frame)
    status = mark(frame, bounded, True, frame.low if bounded else lowest)
    if status != DONE:
        return status
    for i in range(frame.strict):
        if not reached(frame, i8(frame.targets)[i]):
            return UNUSED
    return DONE


@typed
def swept(frame, index):
    """Whether a sweep has handed the adjoint of this record on."""
    if u1(frame.reach)[index] == 0:
        return False
    return frame.need == 0 or u1(frame.need)[index] & NEED_INSIDE != 0


@typed
def outdated(frame):
    """Whether a record that will be swept, and is older than a change in place, kept values."""
    if frame.changed < 0:
        return True
    for index in range(frame.low, min(frame.changed, frame.cursor + 1)):
        record = i8(frame.records + index * FIELDS * 8)
        if record[WORD] & (SAVES | GENERAL) and swept(frame, index):
            return True
    return False


@typed
def release(frame):
    """Mark what was swept as released, and list, where the adjoints stood, the indices of records:
    when `EVERY` record was swept those that keep their static arguments, otherwise those that give
    values back.  Their number is left in `DETAIL`.
    """
    low, top = frame.low, frame.cursor
    every = True
    for index in range(low, top + 1):
        every = every and swept(frame, index)
    keep = i8(frame.keep)
    listed = i8(frame.adjoints + 8 * low)
    count = 0
    for index in range(low, top + 1):
        if not every and not swept(frame, index):
            continue
        record = i8(frame.records + index * FIELDS * 8)
        record[WORD] |= RELEASED
        saves = record[WORD] & SAVES != 0
        if saves:
            record[WORD] |= SPENT
        if saves != every and (saves or keep[index] != frame.nothing):
            listed[count] = index
            count += 1
    frame.every = every
    frame.detail = count
    return DONE
