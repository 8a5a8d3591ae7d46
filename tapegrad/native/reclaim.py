"""Free values saved by unreferenced records at the tape's end, and check for room."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call1, i8, room_i8
from tapegrad.native.abi import (
    ADDRESS,
    DEBT,
    DEBT_LIMIT,
    FROM_LONG,
    KEEP,
    NEW_TUPLE,
    NEXT,
    NONE,
    SIZES_AT,
    SWEEPING,
    TAIL,
    TOKENS,
    USED,
)
from tapegrad.native.append import exchange_number, is_full
from tapegrad.native.pyobjects import ITEMS, LIST_ITEMS, REFERENCES, REFUSED, decref, incref, number
from tapegrad.tape.tape import DROP_FLOOR, RELEASED, SHAPE, SPENT, STRIDE
from tapegrad.tape.tape import WORD as TAPE_WORD

MANY = 64  # records at a time; `Tape.drop_tail` takes any number
FOUND = 65  # words: these, and one more


@typed
def abandoned(frame, tape, count, found_at):
    """The records of the tail that nobody holds and that keep something yet.

    Writes where these stand, from the newest on; returns how many they are, or REFUSED: too many.
    The word after the last says how far down the tail goes.
    """
    tail = i8(tape)[frame[TAIL]]
    first, end = number(frame, i8(tail)[ITEMS]), number(frame, i8(tail)[ITEMS + 1])
    tokens = i8(i8(i8(tape)[frame[TOKENS]])[LIST_ITEMS])
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
    return REFUSED if n == MANY else n


@typed
def dropped(frame, tape, found_at, n):
    """Take from records what they keep, which stands in place of their numbers then.

    Returns by how much less is owed.
    """
    entries = i8(i8(i8(tape)[frame[KEEP]])[LIST_ITEMS])
    records = number(frame, i8(tape)[frame[ADDRESS]])
    sizes = i8(i8(frame[SIZES_AT])[0])
    less = 0
    for k in range(n):
        index = i8(found_at)[k]
        record = i8(records + index * STRIDE)
        record[TAPE_WORD] |= RELEASED | SPENT
        less += 8 * sizes[record[SHAPE]]
        i8(found_at)[k] = entries[index]
        incref(frame[NONE])
        entries[index] = frame[NONE]
    return less


@typed
def drop_tail(frame, tape):
    """What `Tape.drop_tail` does; 0 with an exception set, or REFUSED: it has to do it."""
    owed = number(frame, i8(tape)[frame[DEBT]])
    if owed <= DROP_FLOOR or number(frame, i8(tape)[frame[SWEEPING]]) != 0:
        return 1
    tail = call1(frame[NEW_TUPLE], 2)  # first: this may run code of the user
    if tail == 0:
        return 0
    found = room_i8(FOUND)
    count = number(frame, i8(tape)[frame[USED]])
    n = abandoned(frame, tape, count, address(found))
    if n <= 0:
        decref(frame, tail)
        return 1 if n == 0 else REFUSED
    i8(tail)[ITEMS] = call1(frame[FROM_LONG], found[n])
    i8(tail)[ITEMS + 1] = call1(frame[FROM_LONG], count)
    if i8(tail)[ITEMS] == 0 or i8(tail)[ITEMS + 1] == 0:
        decref(frame, tail)
        return 0
    debt = number(frame, i8(tape)[frame[DEBT]]) - dropped(frame, tape, address(found), n)
    before = i8(tape)[frame[TAIL]]
    i8(tape)[frame[TAIL]] = tail
    decref(frame, before)
    done = exchange_number(frame, tape, frame[DEBT], debt if debt > 0 else 0)
    done &= exchange_number(frame, tape, frame[NEXT], number(frame, i8(tape)[frame[NEXT]]))
    for k in range(n):  # last: freeing values may run code of the user
        decref(frame, found[k])
    return done


@typed
def has_room(frame, tape, nbytes):
    """Whether a record of a large result can be written without reclaiming."""
    debt = number(frame, i8(tape)[frame[DEBT]]) + nbytes
    if is_full(frame, tape):
        return 0
    return 1 if debt <= number(frame, i8(tape)[frame[DEBT_LIMIT]]) else 0
