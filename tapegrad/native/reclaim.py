"""Free values saved by unreferenced records at the tape's end, and check for room."""

from tapegrad.kernels.memory import address, call1, i8, room_i8
from tapegrad.native.append import is_full, set_number
from tapegrad.native.pyobjects import (
    ITEMS,
    LIST_ITEMS,
    REFERENCES,
    decref,
    incref,
    int_value,
    typed,
)
from tapegrad.tape.debts import DROP_FLOOR
from tapegrad.tape.record_format import COMPLEX_SHIFT, RELEASED, SHAPE, SHARES, SPENT, STRIDE
from tapegrad.tape.record_format import WORD as TAPE_WORD

MANY = 64  # records at a time
FOUND = 65  # words: these, and one more


@typed
def abandoned(frame, tape, count, found_at):
    """The newest records of the tail that nobody holds and that keep something yet.

    Writes where these stand, from the newest on; returns how many they are, at most MANY.  The word
    after the last says how far down the tail goes.
    """
    tail = i8(tape)[frame.tape_tail]
    first, end = int_value(frame, i8(tail)[ITEMS]), int_value(frame, i8(tail)[ITEMS + 1])
    tokens = i8(i8(i8(tape)[frame.tape_tokens])[LIST_ITEMS])
    index, n = count, 0
    while index > 0:
        if index == end:
            index = first
            end = -1
        elif i8(tokens[index - 1])[REFERENCES] > 1 or n == MANY:
            break
        else:
            index -= 1
            i8(found_at)[n] = index
            n += 1
    i8(found_at)[n] = index
    return n


@typed
def dropped(frame, tape, found_at, n):
    """Take from records what they keep, which stands in place of their numbers then.

    Returns by how much less is owed.
    """
    entries = i8(i8(i8(tape)[frame.tape_keep])[LIST_ITEMS])
    records = int_value(frame, i8(tape)[frame.tape_address])
    sizes = i8(i8(frame.sizes_at)[0])
    less = 0
    for k in range(n):
        index = i8(found_at)[k]
        record = i8(records + index * STRIDE)
        record[TAPE_WORD] |= RELEASED | SPENT
        if record[TAPE_WORD] & SHARES == 0:
            less += 8 * sizes[record[SHAPE]] << (record[TAPE_WORD] >> COMPLEX_SHIFT & 1)
        i8(found_at)[k] = entries[index]
        incref(frame.none)
        entries[index] = frame.none
    return less


@typed
def is_crowded(frame, tape):
    """Whether values that nobody needs are to be freed."""
    if int_value(frame, i8(tape)[frame.tape_debt]) <= DROP_FLOOR:
        return 0
    return 1 if int_value(frame, i8(tape)[frame.tape_sweeping]) == 0 else 0


@typed
def drop_some(frame, tape):
    """Free the values of some records; 0 with an exception set, MANY: there may be more."""
    if not is_crowded(frame, tape):
        return 1
    tail = call1(frame.PyTuple_New, 2)  # first: this may run code of the user
    if tail == 0:
        return 0
    found = room_i8(FOUND)
    count = int_value(frame, i8(tape)[frame.tape_used])
    n = abandoned(frame, tape, count, address(found))
    if n == 0:
        decref(frame, tail)
        return 1
    i8(tail)[ITEMS] = call1(frame.PyLong_FromLongLong, found[n])
    i8(tail)[ITEMS + 1] = call1(frame.PyLong_FromLongLong, count)
    if i8(tail)[ITEMS] == 0 or i8(tail)[ITEMS + 1] == 0:
        decref(frame, tail)
        return 0
    debt = int_value(frame, i8(tape)[frame.tape_debt]) - dropped(frame, tape, address(found), n)
    before = i8(tape)[frame.tape_tail]
    i8(tape)[frame.tape_tail] = tail
    decref(frame, before)
    done = set_number(frame, tape, frame.tape_debt, debt if debt > 0 else 0)
    done &= set_number(frame, tape, frame.tape_next, int_value(frame, i8(tape)[frame.tape_next]))
    for k in range(n):  # last: freeing values may run code of the user
        decref(frame, found[k])
    return MANY if done and n == MANY else done


@typed
def drop_tail(frame, tape):
    """What `Tape.drop_tail` does; 0 with an exception set."""
    done = drop_some(frame, tape)
    while done == MANY:
        done = drop_some(frame, tape)
    return done


@typed
def has_room(frame, tape, nbytes):
    """Whether a record of a large result can be written without reclaiming."""
    debt = int_value(frame, i8(tape)[frame.tape_debt]) + nbytes
    if is_full(frame, tape):
        return 0
    return 1 if debt <= int_value(frame, i8(tape)[frame.tape_debt_limit]) else 0
