"""Call users' rules from a compiled sweep.

The compiled sweep stops at the record of such a function.  Here its adjoint becomes an array, the
rule is called, what it hands on is added to the adjoints of the inputs, and the compiled sweep goes
on.  CPython's lock is held, but not while the compiled sweep runs.
"""

from tapegrad.kernels.memory import address, call0, call1, call2, call3, i4, i8, room_i8
from tapegrad.kernels.sweep.arena import add_numbers, cell_of, give_back, take
from tapegrad.kernels.sweep.sweep_abi import (
    ALIGNED_IN_C_ORDER,
    RESUME,
    SINGLE,
    SMALL,
    WANTS_RULE,
    SweepFrame,
)
from tapegrad.native.abi import Frame, RuleContext
from tapegrad.native.accumulate import copy
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_SHAPE,
    COUNT,
    F4_SIZE,
    F8_SIZE,
    FLAGS,
    ITEMS,
    LIST_ITEMS,
    TYPE,
    count_of,
    decref,
    floats_of,
    incref,
    int_value,
    set_slot,
    typed,
)
from tapegrad.tape.record_format import FIELDS, SAVES, SHAPE, SPENT, WORD

DIMENSIONS = 64  # the most that NumPy has
INPUTS = 3  # for whose adjoints the compiled sweep has made sure that there is room
# What a sweep brings along: the tape, whether an input is wanted, what outputs collect, and the
# method that does by itself what is done here for small arrays.


@typed
def refresh(frame, sweep_at, tape):
    """Note where the records and their places stand, which Python code may have moved."""
    sweep = SweepFrame(sweep_at)
    sweep.records = int_value(frame, i8(tape)[frame.tape_address])
    sweep.shift = int_value(frame, i8(tape)[frame.tape_shift])
    sweep.old = int_value(frame, i8(tape)[frame.tape_old_at])
    sweep.old_count = i8(i8(i8(tape)[frame.tape_old])[ARRAY_SHAPE])[0]
    return sweep.records + sweep.cursor * FIELDS * 8


@typed
def take_adjoint(frame, sweep_at, record):
    """A new array with the adjoint of the record at the cursor; 0 with an exception set."""
    sweep, lengths = SweepFrame(sweep_at), room_i8(DIMENSIONS)
    shape = i8(i8(i8(frame.shape_list)[LIST_ITEMS])[record[SHAPE]])
    for k in range(shape[COUNT]):
        lengths[k] = int_value(frame, shape[ITEMS + k])
    is_f4 = record[WORD] & SINGLE != 0
    itemsize = F4_SIZE if is_f4 else F8_SIZE
    array = floats_of(frame, itemsize, shape[COUNT], address(lengths))
    if array == 0:
        return 0
    count, cell = count_of(array), i8(sweep.adjoints + 8 * sweep.cursor)
    copy(i8(array)[ARRAY_DATA], cell[0] & ~1, count, is_f4)
    if cell[0] & 1 == 0:
        give_back(sweep, cell[0], count * itemsize)
    cell[0] = 0
    return array


@typed
def call_rule(frame, context, entry, index_at, g):
    """What the rule of a record hands on: a new reference, or 0 with an exception set."""
    rule = call2(frame.PyObject_GetAttr, entry, frame.attr_pull)
    if rule == 0:
        return 0
    arguments, found = call1(frame.PyTuple_New, 6), 0
    if arguments != 0:
        set_slot(frame, arguments, ITEMS, i8(context)[ITEMS + RuleContext.tape])
        set_slot(frame, arguments, ITEMS + 1, index_at)
        set_slot(frame, arguments, ITEMS + 2, g)
        set_slot(frame, arguments, ITEMS + 3, i8(context)[ITEMS + RuleContext.wanted])
        set_slot(frame, arguments, ITEMS + 4, frame.false)
        set_slot(frame, arguments, ITEMS + 5, i8(context)[ITEMS + RuleContext.scratch])
        found = call3(frame.PyObject_Call, rule, arguments, 0)
        decref(frame, arguments)
    decref(frame, rule)
    return found


@typed
def is_simple(frame, found):
    """Whether what is handed on is a few small arrays of floats in C order."""
    if i8(found)[TYPE] != frame.list_type or i8(found)[COUNT] > INPUTS:
        return 0
    for k in range(i8(found)[COUNT]):
        value = i8(i8(i8(found)[LIST_ITEMS])[k])[ITEMS + 1]
        if i8(value)[TYPE] != frame.array_type or count_of(value) > SMALL:
            return 0
        dtype = i8(value)[ARRAY_DTYPE]
        if dtype != frame.float64 and dtype != frame.float32:
            return 0
        if i4(value + FLAGS)[0] & ALIGNED_IN_C_ORDER != ALIGNED_IN_C_ORDER:
            return 0
    return 1


@typed
def add_adjoints(frame, sweep_at, found):
    """Add what is handed on to the adjoints of the inputs."""
    for k in range(i8(found)[COUNT]):
        pair = i8(i8(i8(found)[LIST_ITEMS])[k])
        value = pair[ITEMS + 1]
        is_f4, count = i8(value)[ARRAY_DTYPE] == frame.float32, count_of(value)
        cell = i8(cell_of(SweepFrame(sweep_at), int_value(frame, pair[ITEMS])))
        if cell[0] == 0:
            cell[0] = take(SweepFrame(sweep_at), count * (F4_SIZE if is_f4 else F8_SIZE))
            copy(cell[0], i8(value)[ARRAY_DATA], count, is_f4)
        else:
            add_numbers(cell[0] & ~1, i8(value)[ARRAY_DATA], count, is_f4)


@typed
def release_saved(frame, sweep_at, tape, record):
    """Let go of what the record at the cursor has saved, unless another sweep may want it."""
    sweep = SweepFrame(sweep_at)
    if (
        sweep.retain
        or record[WORD] & SAVES == 0
        or call1(frame.PyDict_Size, i8(tape)[frame.tape_hooks])
    ):
        return
    record[WORD] |= SPENT
    place = i8(i8(i8(tape)[frame.tape_keep])[LIST_ITEMS] + 8 * sweep.cursor)
    entry = place[0]
    incref(frame.none)
    place[0] = frame.none
    decref(frame, entry)


@typed
def hand_on_in_python(frame, context, index_at, found):
    """Have Python hand on; 0 with an exception set."""
    arguments = call1(frame.PyTuple_New, 2)
    if arguments == 0:
        return 0
    set_slot(frame, arguments, ITEMS, index_at)
    set_slot(frame, arguments, ITEMS + 1, found)
    done = call3(frame.PyObject_Call, i8(context)[ITEMS + RuleContext.hand_on], arguments, 0)
    decref(frame, arguments)
    if done != 0:
        decref(frame, done)
    return done


@typed
def run_rule(frame, sweep_at, context):
    """Do the record at the cursor; 0 with an exception set."""
    tape = i8(context)[ITEMS + RuleContext.tape]
    index_at = call1(frame.PyLong_FromLongLong, SweepFrame(sweep_at).cursor)
    if index_at == 0:
        return 0
    g, found, done = take_adjoint(frame, sweep_at, i8(refresh(frame, sweep_at, tape))), 0, 0
    # What is held here cannot go before all is done: its end may run code of the user.
    entry = i8(i8(i8(tape)[frame.tape_keep])[LIST_ITEMS])[SweepFrame(sweep_at).cursor]
    incref(entry)
    if g != 0:
        found = call_rule(frame, context, entry, index_at, g)
        decref(frame, g)
    if found != 0:
        record_at = refresh(frame, sweep_at, tape)
        if is_simple(frame, found):
            add_adjoints(frame, sweep_at, found)
            done = 1
        else:
            done = hand_on_in_python(frame, context, index_at, found)
            record_at = refresh(frame, sweep_at, tape)
        if done != 0:
            release_saved(frame, sweep_at, tape, i8(record_at))
        decref(frame, found)
    decref(frame, entry)
    decref(frame, index_at)
    return done


def resume(frame_at, sweep_at, kernel, context):
    """Go on with a sweep that wants a rule; what it wants then, or 0 with an exception set."""
    frame, sweep = Frame(frame_at), SweepFrame(sweep_at)
    status = WANTS_RULE
    while status == WANTS_RULE:
        if run_rule(frame, sweep_at, context) == 0:
            return 0
        refresh(frame, sweep_at, i8(context)[ITEMS + RuleContext.tape])
        sweep.cursor -= 1
        sweep.task = RESUME
        state = call0(frame.PyEval_SaveThread)
        status = call1(kernel, sweep_at)
        call1(frame.PyEval_RestoreThread, state)
    return call1(frame.PyLong_FromLongLong, status)
