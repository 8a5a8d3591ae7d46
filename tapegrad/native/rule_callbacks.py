"""Call users' rules from a compiled sweep.

The walk stops at the record of such a function.  Here its adjoint becomes an array, the rule is
called, what it hands on is added to the adjoints of the inputs, and the walk goes on.  CPython's
lock is held, but not while the walk runs.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call0, call1, call2, call3, i4, i8, room_i8
from tapegrad.kernels.sweep.arena import cell_of, give_back, take
from tapegrad.kernels.sweep.sweep_abi import (
    ADJOINTS,
    ALIGNED_IN_C_ORDER,
    CURSOR,
    OLD_COUNT,
    RECORDS,
    RESUME,
    RETAIN,
    SINGLE,
    SMALL,
    TASK,
    WANTS_RULE,
)
from tapegrad.kernels.sweep.sweep_abi import OLD as OLD_PLACES
from tapegrad.kernels.sweep.sweep_abi import SHIFT as PLACE_SHIFT
from tapegrad.native.abi import (
    ADDRESS,
    ARRAY,
    CALL,
    DICT_SIZE,
    F4,
    F8,
    FALSE,
    FROM_LONG,
    GET_ATTR,
    HOOKS,
    KEEP,
    LIST,
    LOCK,
    NEW_TUPLE,
    NONE,
    OLD,
    OLD_AT,
    PULL,
    SHAPE_LIST,
    SHIFT,
    UNLOCK,
)
from tapegrad.native.accumulate import add, copy
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_SHAPE,
    COUNT,
    FLAGS,
    ITEMS,
    LIST_ITEMS,
    NARROW_SIZE,
    TYPE,
    WIDE_SIZE,
    count_of,
    decref,
    floats_of,
    incref,
    number,
    put,
)
from tapegrad.tape.tape import FIELDS, SAVES, SHAPE, SPENT, WORD

DIMENSIONS = 64  # the most that NumPy has
INPUTS = 3  # for whose adjoints the walk has made sure that there is room
# What a sweep brings along: the tape, whether an input is wanted, what outputs collect, and the
# method that does by itself what is done here for small arrays.
TAPE, WANTED, SCRATCH, HAND_ON = range(ITEMS, ITEMS + 4)


@typed
def refresh(frame, sweep_at, tape):
    """Note where the records and their places stand, which Python code may have moved."""
    sweep = i8(sweep_at)
    sweep[RECORDS] = number(frame, i8(tape)[frame[ADDRESS]])
    sweep[PLACE_SHIFT] = number(frame, i8(tape)[frame[SHIFT]])
    sweep[OLD_PLACES] = number(frame, i8(tape)[frame[OLD_AT]])
    sweep[OLD_COUNT] = i8(i8(i8(tape)[frame[OLD]])[ARRAY_SHAPE])[0]
    return sweep[RECORDS] + sweep[CURSOR] * FIELDS * 8


@typed
def taken(frame, sweep_at, record):
    """A new array with the adjoint of the record at the cursor; 0 with an exception set."""
    sweep, lengths = i8(sweep_at), room_i8(DIMENSIONS)
    shape = i8(i8(i8(frame[SHAPE_LIST])[LIST_ITEMS])[record[SHAPE]])
    for k in range(shape[COUNT]):
        lengths[k] = number(frame, shape[ITEMS + k])
    narrow = record[WORD] & SINGLE != 0
    itemsize = NARROW_SIZE if narrow else WIDE_SIZE
    array = floats_of(frame, itemsize, shape[COUNT], address(lengths))
    if array == 0:
        return 0
    count, cell = count_of(array), i8(sweep[ADJOINTS] + 8 * sweep[CURSOR])
    copy(i8(array)[ARRAY_DATA], cell[0] & ~1, count, narrow)
    if cell[0] & 1 == 0:
        give_back(sweep, cell[0], count * itemsize)
    cell[0] = 0
    return array


@typed
def called(frame, held, entry, index_at, g):
    """What the rule of a record hands on: a new reference, or 0 with an exception set."""
    rule = call2(frame[GET_ATTR], entry, frame[PULL])
    if rule == 0:
        return 0
    arguments, found = call1(frame[NEW_TUPLE], 6), 0
    if arguments != 0:
        put(frame, arguments, ITEMS, i8(held)[TAPE])
        put(frame, arguments, ITEMS + 1, index_at)
        put(frame, arguments, ITEMS + 2, g)
        put(frame, arguments, ITEMS + 3, i8(held)[WANTED])
        put(frame, arguments, ITEMS + 4, frame[FALSE])
        put(frame, arguments, ITEMS + 5, i8(held)[SCRATCH])
        found = call3(frame[CALL], rule, arguments, 0)
        decref(frame, arguments)
    decref(frame, rule)
    return found


@typed
def simple(frame, found):
    """Whether what is handed on is a few small arrays of floats in C order."""
    if i8(found)[TYPE] != frame[LIST] or i8(found)[COUNT] > INPUTS:
        return 0
    for k in range(i8(found)[COUNT]):
        value = i8(i8(i8(found)[LIST_ITEMS])[k])[ITEMS + 1]
        if i8(value)[TYPE] != frame[ARRAY] or count_of(value) > SMALL:
            return 0
        dtype = i8(value)[ARRAY_DTYPE]
        if dtype != frame[F8] and dtype != frame[F4]:
            return 0
        if i4(value + FLAGS)[0] & ALIGNED_IN_C_ORDER != ALIGNED_IN_C_ORDER:
            return 0
    return 1


@typed
def handed_on(frame, sweep_at, found):
    """Add what is handed on to the adjoints of the inputs."""
    for k in range(i8(found)[COUNT]):
        pair = i8(i8(i8(found)[LIST_ITEMS])[k])
        value = pair[ITEMS + 1]
        narrow, count = i8(value)[ARRAY_DTYPE] == frame[F4], count_of(value)
        cell = i8(cell_of(i8(sweep_at), number(frame, pair[ITEMS])))
        if cell[0] == 0:
            cell[0] = take(i8(sweep_at), count * (NARROW_SIZE if narrow else WIDE_SIZE))
            copy(cell[0], i8(value)[ARRAY_DATA], count, narrow)
        else:
            add(cell[0] & ~1, i8(value)[ARRAY_DATA], count, narrow)


@typed
def let_go(frame, sweep_at, tape, record):
    """Let go of what the record at the cursor has saved, unless another sweep may want it."""
    sweep = i8(sweep_at)
    if (
        sweep[RETAIN]
        or record[WORD] & SAVES == 0
        or call1(frame[DICT_SIZE], i8(tape)[frame[HOOKS]])
    ):
        return
    record[WORD] |= SPENT
    place = i8(i8(i8(tape)[frame[KEEP]])[LIST_ITEMS] + 8 * sweep[CURSOR])
    entry = place[0]
    incref(frame[NONE])
    place[0] = frame[NONE]
    decref(frame, entry)


@typed
def python(frame, held, index_at, found):
    """Have Python hand on; 0 with an exception set."""
    arguments = call1(frame[NEW_TUPLE], 2)
    if arguments == 0:
        return 0
    put(frame, arguments, ITEMS, index_at)
    put(frame, arguments, ITEMS + 1, found)
    done = call3(frame[CALL], i8(held)[HAND_ON], arguments, 0)
    decref(frame, arguments)
    if done != 0:
        decref(frame, done)
    return done


@typed
def step(frame, sweep_at, held):
    """Do the record at the cursor; 0 with an exception set."""
    tape = i8(held)[TAPE]
    index_at = call1(frame[FROM_LONG], i8(sweep_at)[CURSOR])
    if index_at == 0:
        return 0
    g, found, done = taken(frame, sweep_at, i8(refresh(frame, sweep_at, tape))), 0, 0
    # What is held here cannot go before all is done: its end may run code of the user.
    entry = i8(i8(i8(tape)[frame[KEEP]])[LIST_ITEMS])[i8(sweep_at)[CURSOR]]
    incref(entry)
    if g != 0:
        found = called(frame, held, entry, index_at, g)
        decref(frame, g)
    if found != 0:
        record_at = refresh(frame, sweep_at, tape)
        if simple(frame, found):
            handed_on(frame, sweep_at, found)
            done = 1
        else:
            done = python(frame, held, index_at, found)
            record_at = refresh(frame, sweep_at, tape)
        if done != 0:
            let_go(frame, sweep_at, tape, i8(record_at))
        decref(frame, found)
    decref(frame, entry)
    decref(frame, index_at)
    return done


def resume(frame_at, sweep_at, walk, held):
    """Go on with a sweep that wants a rule; what it wants then, or 0 with an exception set."""
    frame, sweep = i8(frame_at), i8(sweep_at)
    status = WANTS_RULE
    while status == WANTS_RULE:
        if step(frame, sweep_at, held) == 0:
            return 0
        refresh(frame, sweep_at, i8(held)[TAPE])
        sweep[CURSOR] -= 1
        sweep[TASK] = RESUME
        state = call0(frame[UNLOCK])
        status = call1(walk, sweep_at)
        call1(frame[LOCK], state)
    return call1(frame[FROM_LONG], status)
