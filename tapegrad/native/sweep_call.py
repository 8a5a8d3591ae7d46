"""Sweep from one small Tensor to leaves in one call: seed, compiled sweep, release, deliver.

CPython's lock is held all the while, so only sweeps of a few records are done here.
"""

from tapegrad.kernels.memory import address, call1, call2, f4, f8, i4, i8, room_i8
from tapegrad.kernels.sweep.reachability import find
from tapegrad.kernels.sweep.sweep_abi import (
    ALIGNED_IN_C_ORDER,
    BELOW,
    CHUNK,
    DONE,
    EVERY_LEAF,
    SMALL,
    SPENT_RECORD,
    START,
    UNUSED,
    SweepFrame,
)
from tapegrad.native.abi import Frame
from tapegrad.native.accumulate import copy, deliver
from tapegrad.native.append import set_number
from tapegrad.native.operands import is_current
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_SHAPE,
    COUNT,
    F4_SIZE,
    F8_SIZE,
    FLAGS,
    ITEMS,
    LIST_ITEMS,
    NDIM,
    REFUSED,
    TYPE,
    count_of,
    decref,
    floats_of,
    incref,
    int_value,
    new_int,
    new_tuple,
    tape_of_thread,
    typed,
)
from tapegrad.tape.record_format import F4_SHAPE
from tapegrad.tape.tape import MODE_FAST

# So many records are looked at, from the root down, and then so many, at most: above the lowest one
# that is not released there may be thousands that this root does not reach.
FIRST_LIMIT, LIMIT = 64, 1024
TARGETS = 16  # at most


@typed
def is_simple(frame, tape, root, weight):
    """Whether no sweep is under way, nothing is out of the ordinary on the tape, and the root a
    small Tensor of it, perhaps a current view, with a weight of the same shape and type.
    """
    slots = i8(root)
    if int_value(frame, i8(tape)[frame.tape_sweeping]) != 0:
        return 0
    if int_value(frame, i8(tape)[frame.tape_mode]) != MODE_FAST:
        return 0
    if i8(frame.by_code)[COUNT] != i8(frame.known_at)[0]:
        return 0
    if slots[TYPE] != frame.tensor_type:
        return 0
    position = int_value(frame, slots[frame.t_pos])
    if position <= 0 or not is_current(frame, tape, root, position):
        return 0
    if i8(weight)[TYPE] == frame.array_type:
        return 1
    short = int_value(frame, slots[frame.t_s])
    if short == -1:
        return 0
    if weight == frame.none:
        return 1 if short == 0 or short == F4_SHAPE else 0
    given = i8(weight)
    if given[TYPE] != frame.tensor_type or int_value(frame, given[frame.t_s]) != short:
        return 0
    array = given[frame.t_a]
    if i4(array + FLAGS)[0] & ALIGNED_IN_C_ORDER != ALIGNED_IN_C_ORDER:
        return 0
    return 1 if count_of(array) <= SMALL else 0


@typed
def new_seed(frame, root, weight):
    """A new array with the root's weight, 1 where there is none; 0 with an exception set."""
    if i8(weight)[TYPE] == frame.array_type:
        incref(weight)
        return weight
    like, is_f4 = i8(root)[frame.t_a], int_value(frame, i8(root)[frame.t_s]) < 0
    seed = floats_of(
        frame, F4_SIZE if is_f4 else F8_SIZE, i4(like + NDIM)[0], i8(like)[ARRAY_SHAPE]
    )
    if seed == 0:
        return 0
    data = i8(seed)[ARRAY_DATA]
    if weight != frame.none:
        copy(data, i8(i8(weight)[frame.t_a])[ARRAY_DATA], count_of(seed), is_f4)
    elif is_f4:
        f4(data)[0] = 1.0
    else:
        f8(data)[0] = 1.0
    return seed


@typed
def set_targets(frame, tape, sweep_at, inputs, codes_at):
    """Keep the sweep to what leads to some leaves, if not to all; 0: not all are leaves."""
    sweep = SweepFrame(sweep_at)
    sweep.strict, sweep.target_count = 0, EVERY_LEAF
    if inputs == frame.none:
        return 1
    count = i8(inputs)[COUNT]
    if count == 0 or count > TARGETS:
        return 0
    for k in range(count):
        leaf = i8(inputs)[ITEMS + k]
        if i8(leaf)[TYPE] != frame.tensor_type:
            return 0
        position, slots = i8(leaf)[frame.t_pos], i8(tape)[frame.tape_slots]
        code = call2(frame.PyDict_GetItem, slots, position)
        if code == 0 or call2(frame.PyDict_GetItem, frame.former, position) != 0:
            return 0
        i8(codes_at)[k] = int_value(frame, code)
    sweep.targets, sweep.target_count, sweep.strict = codes_at, count, count
    return 1


@typed
def set_up(frame, tape, sweep_at, index, low):
    """Write down what a sweep is about; 0: it is not for here."""
    sweep, things = SweepFrame(sweep_at), i8(tape)
    count = i8(things[frame.tape_leaves])[COUNT]
    lowest = int_value(frame, i8(i8(things[frame.tape_tokens])[LIST_ITEMS])[low])
    if count - low + index + 1 > sweep.capacity or sweep.arena_end - sweep.arena != CHUNK:
        return 0
    sweep.task, sweep.bottom, sweep.changed = START, 0, 0
    changed = int_value(frame, things[frame.tape_last_mutation])
    if changed > lowest:
        sweep.changed = max(changed - sweep.shift, sweep.old_count)
    sweep.records = int_value(frame, things[frame.tape_address])
    sweep.keep_at = things[frame.tape_keep] + 8 * LIST_ITEMS
    sweep.input_lists_at = things[frame.tape_input_lists] + 8 * LIST_ITEMS
    sweep.sizes, sweep.views = i8(frame.sizes_at)[0], i8(frame.strides_at)[0]
    sweep.leaves, sweep.low, sweep.cursor = count, low, index
    return 1


@typed
def release(frame, tape, sweep_at, top):
    """What `sweep.drop` does: free the values of the records that were marked as released."""
    sweep = SweepFrame(sweep_at)
    listed, count, every, k = i8(sweep.adjoints + 8 * sweep.low), sweep.detail, sweep.every, 0
    done = set_number(frame, tape, frame.tape_next, int_value(frame, i8(tape)[frame.tape_next]))
    if every and sweep.low <= int_value(frame, i8(tape)[frame.tape_floor]) <= top:
        done &= set_number(frame, tape, frame.tape_floor, top + 1)
    for index in range(sweep.low, top + 1):
        is_listed = 1 if k < count and listed[k] == index else 0
        k += is_listed
        # Freeing a value may run code of the user, which may lengthen the list.
        entries = i8(i8(i8(tape)[frame.tape_keep])[LIST_ITEMS])
        entry = entries[index]
        if is_listed != every and entry != frame.none:
            incref(frame.none)
            entries[index] = frame.none
            decref(frame, entry)
    return done


@typed
def delivered(frame, tape, sweep_at, inputs):
    """See `accumulate.accumulate`, of the leaves that the sweep was for."""
    sweep = SweepFrame(sweep_at)
    if inputs != frame.none:
        at = inputs + 8 * ITEMS
        return deliver(frame, sweep.leaf_adjoints, at, sweep.targets, i8(inputs)[COUNT])
    # A list might move, and leaves may come.
    count, leaves = sweep.leaves, call1(frame.PyList_AsTuple, i8(tape)[frame.tape_leaves])
    if leaves == 0:
        return 0
    found = deliver(frame, sweep.leaf_adjoints, leaves + 8 * ITEMS, 0, count)
    decref(frame, leaves)
    return found


@typed
def handed_over(frame, status, index, low, seed):
    """What Python goes on from, see `sweep_call`; 0 with an exception set."""
    items, found = room_i8(4), 0
    items[0], items[1] = new_int(frame, status), new_int(frame, index)
    items[2], items[3] = new_int(frame, low), seed
    if items[0] != 0 and items[1] != 0 and items[2] != 0:
        found = new_tuple(frame, 4, address(items))
    for k in range(3):
        if items[k] != 0:
            decref(frame, items[k])
    return found


@typed
def run(frame, tape, sweep_at, root, inputs, seed):
    """The sweep, for which nothing was changed if it is refused: see `sweep_call`."""
    sweep, things, seeds, codes = SweepFrame(sweep_at), i8(tape), room_i8(2), room_i8(TARGETS)
    sweep.shift = int_value(frame, things[frame.tape_shift])
    sweep.old = int_value(frame, things[frame.tape_old_at])
    sweep.old_count = i8(i8(things[frame.tape_old])[ARRAY_SHAPE])[0]
    index = find(sweep, int_value(frame, i8(root)[frame.t_pos]))
    if index < 0 or index >= int_value(frame, things[frame.tape_used]):
        return REFUSED
    if not set_targets(frame, tape, sweep_at, inputs, address(codes)):
        return REFUSED
    floor = min(int_value(frame, things[frame.tape_floor]), index)
    low = max(floor, index - FIRST_LIMIT)
    if not set_up(frame, tape, sweep_at, index, low):
        return REFUSED
    seeds[0], seeds[1] = index, i8(seed)[ARRAY_DATA]
    sweep.seeds, sweep.seed_count = address(seeds), 1
    if not set_number(frame, tape, frame.tape_sweeping, 1):
        return 0
    status, found = call1(sweep.kernel, sweep_at), REFUSED
    if status == BELOW and low > floor:
        low = max(floor, index - LIMIT)
        if set_up(frame, tape, sweep_at, index, low):
            status = call1(sweep.kernel, sweep_at)
    if status != BELOW and status != SPENT_RECORD and status != UNUSED:
        if status != DONE:
            return handed_over(frame, status, index, low, seed)
        if not sweep.retain and not release(frame, tape, sweep_at, index):
            return 0
        found = delivered(frame, tape, sweep_at, inputs)
        if found == frame.false:
            decref(frame, found)
            return handed_over(frame, DONE, index, low, seed)
    if found != 0 and not set_number(frame, tape, frame.tape_sweeping, 0):
        return 0
    return found


def sweep_call(frame_at, kind, code, given, nothing):
    """A sweep from a Tensor, as CPython calls it.

    Given are the root; its weight, or None, or an array, which becomes the seed; the address of the
    sweep's frame; whether values are retained; and the leaves whose gradients are returned, as a
    tuple, or None: the gradients of all leaves are added to their `.grad`.  False: nothing is done.
    If `sweeping` is left at 1, what Python goes on from: status, index of the root, that of the
    lowest record that the sweep may meet, seed; or an exception.
    """
    frame, things, found = Frame(frame_at), i8(given), REFUSED
    root, weight, sweep_at = things[0], things[1], int_value(frame, things[2])
    tape = tape_of_thread(frame)
    if tape == 0:
        return 0
    if is_simple(frame, tape, root, weight):
        seed = new_seed(frame, root, weight)  # the collector may run here
        if seed == 0:
            return 0
        SweepFrame(sweep_at).retain = 1 if things[3] == frame.true else 0
        if is_simple(frame, tape, root, weight):
            found = run(frame, tape, sweep_at, root, things[4], seed)
        decref(frame, seed)
    if found == REFUSED:
        incref(frame.false)
        return frame.false
    return found
