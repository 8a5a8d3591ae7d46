"""Carry out a plan: compute the result, and record it.

Whatever is out of the ordinary is refused before anything has changed, and Python begins anew.
Large arrays are computed without the interpreter's lock: other threads, and the code that runs when
values are freed, may do anything to the operands' Tensors meanwhile.
"""

from tapegrad.kernels.memory import address, i8, room_i8
from tapegrad.native.abi import (
    MOST_DIMENSIONS,
    MOST_SAVED,
    PYTHON_CALLS,
    READS_RESULT,
    UFUNC,
    WRITE,
    LargeRow,
)
from tapegrad.native.append import new_tensor
from tapegrad.native.changes import announce_change, append_change, copy, copy_of, may_change
from tapegrad.native.element_loops import result_strides
from tapegrad.native.loops import run
from tapegrad.native.operands import all_unchanged, any_tracked, hold_arrays, release_arrays
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    F4_SIZE,
    REFUSED,
    array_of,
    call_python,
    count_of,
    decref,
    dtype_of,
    hold_next,
    incref,
    new_int,
    new_tuple,
    recording,
    shape_number,
    tell_python,
    typed,
)
from tapegrad.native.reclaim import drop_tail, has_room, is_crowded
from tapegrad.tape.record_format import CLASSES, CODE_MASK, F4_SHAPE, GENERAL, SAVES


@typed
def computed_in_python(frame, operands, plan):
    """The result by NumPy's function, which tells exceptions of arithmetic to whom it may concern;
    0 with an exception set, or REFUSED.
    """
    code, count = new_int(frame, plan.word & CODE_MASK), plan.operands
    if code == 0:
        return 0
    hold_arrays(count, operands)
    second = operands[1].array if count == 2 else frame.none
    result = call_python(frame, frame.compute, 3, code, operands.array, second)
    decref(frame, code)
    same = all_unchanged(frame, count, operands)
    release_arrays(frame, count, operands)
    if result != 0 and not same:
        decref(frame, result)
        return REFUSED
    return result


@typed
def computed(frame, operands, plan):
    """The result, a new array; 0 with an exception set, or REFUSED."""
    if plan.loops == WRITE:
        result = copy_of(frame, operands.array)
    else:
        dtype = frame.bool_dtype if plan.itemsize == 1 else dtype_of(frame, plan.itemsize)
        if plan.dtype != 0:
            dtype = plan.dtype
        strides, lies = room_i8(MOST_DIMENSIONS), 0
        if plan.strided and not plan.in_place:
            result_strides(operands, plan, address(strides))
            lies = address(strides)
        result = array_of(frame, dtype, plan.ndim, plan.lengths, lies)
    if result == 0:
        return 0
    found = run(frame, operands, plan, result)
    if plan.large:
        if found and plan.loops == UFUNC:
            LargeRow(frame.large_rows)[plan.word & CODE_MASK].python_calls = PYTHON_CALLS
        if not all_unchanged(frame, plan.operands, operands):
            found = REFUSED
    if not found:
        return result
    decref(frame, result)
    if plan.loops == UFUNC and not plan.large and plan.dtype != frame.int64:
        return computed_in_python(frame, operands, plan)
    return REFUSED  # so that integers divided by zero are an error


@typed
def reads_of(operands, plan):
    """Which values the formulas of the operands that are tracked read, as bits."""
    reads = 0
    for k in range(min(plan.operands, 3)):  # the formulas of a join of more read nothing
        if operands[k].position != 0:
            reads |= plan.reads[k]
    return reads


@typed
def saved_values(frame, operands, plan, reads, result):
    """What the record saves, a new reference: None, if the formulas read nothing.

    Of an operand that is changed, if they read it, a copy.
    """
    if reads == 0 and plan.extra == 0:
        entry = frame.none if plan.entry == 0 else plan.entry
        incref(entry)
        return entry
    items, count, before = room_i8(MOST_SAVED), plan.operands, 0
    for k in range(count):
        items[k] = operands[k].array if reads >> k & 1 else frame.none
    if plan.in_place and reads & 1:
        before = items[0] = copy_of(frame, operands.array)
        if before == 0:
            return 0
    items[count] = result if reads & READS_RESULT else frame.none
    items[count + 1] = plan.extra
    entry = new_tuple(frame, count + (1 if plan.extra == 0 else 2), address(items))
    if before != 0:
        decref(frame, before)
    return entry


@typed
def record(frame, tape, tracked, operands, plan, result):
    """The Tensor of a result, which it takes over; 0 with an exception set, or REFUSED."""
    word, shape, short, entry = plan.word, plan.shape, plan.short, frame.none
    if word & GENERAL:  # the rule knows from shapes how operands are broadcast
        word &= ~CLASSES
    if tracked and shape < 0:
        shape = shape_number(frame, result)
        if shape == REFUSED:
            decref(frame, result)
            return REFUSED
    token = hold_next(frame, tape)
    if tracked:
        reads = reads_of(operands, plan)
        word &= ~(0 if reads else SAVES)
        entry = saved_values(frame, operands, plan, reads, result)
    else:
        incref(entry)
    if short == 0:
        short = new_int(frame, F4_SHAPE - shape if plan.itemsize == F4_SIZE else shape)
    else:
        incref(short)
    return new_tensor(
        frame, tape, tracked, plan.operands, operands, word, shape, plan.aux, short, entry, result,
        token,
    )  # fmt: skip


@typed
def change(frame, tape, tracked, operands, plan, result):
    """Change the first operand: its Tensor, 0 with an exception set, or REFUSED.

    A small one becomes the result, which this takes over.  NumPy's loops over a large one write
    where they read, so that an exception of arithmetic comes too late to begin anew: Python then
    says what NumPy would.
    """
    target, entry, shape, found = operands.array, frame.none, operands.shape, 0
    if tracked and plan.large:
        shape = shape_number(frame, target)
        if shape == REFUSED:
            return REFUSED
    word, token = plan.word, hold_next(frame, tape)
    if tracked:
        reads = reads_of(operands, plan)
        word &= ~(0 if reads else SAVES)
        entry = saved_values(frame, operands, plan, reads, target)
    else:
        incref(entry)
    if entry != 0:
        done = announce_change(frame, tape, token, plan.operands, operands)
    else:
        decref(frame, token)
        done = 0
    if done == 1:
        if plan.large:
            found = run(frame, operands, plan, target)
        else:
            nbytes = plan.itemsize * count_of(target)
            copy(i8(target)[ARRAY_DATA], i8(result)[ARRAY_DATA], nbytes)
        if tracked:
            done = append_change(frame, tape, operands, word, shape, plan, entry)
    if entry != 0:
        decref(frame, entry)
    if result != 0:
        decref(frame, result)
    if done == 1 and found != 0:  # last: it may raise
        done = tell_python(frame, frame.warn_fp_flags, 2, plan.word & CODE_MASK, found, 0)
    if done != 1:
        return done
    incref(operands.tensor)
    return operands.tensor


@typed
def make_room(frame, tape, tracked, plan):
    """Free what nobody needs before a large result; 0 with an exception set, or REFUSED."""
    nbytes = plan.itemsize
    for k in range(plan.ndim):
        nbytes *= i8(plan.lengths)[k]
    done = drop_tail(frame, tape)
    return REFUSED if done == 1 and tracked and not has_room(frame, tape, nbytes) else done


@typed
def execute(frame, tape, operands, plan):
    """The Tensor that a plan gives, a new reference; 0 with an exception set, or REFUSED."""
    recorded = recording(frame, tape)
    if recorded == REFUSED:
        return REFUSED
    tracked = 0
    if plan.itemsize != 1 and plan.dtype != frame.int64 and any_tracked(plan.operands, operands):
        tracked = recorded
    if plan.in_place and not may_change(frame, tape, recorded, tracked, operands, plan):
        return REFUSED
    # Of a shape whose number is odd a result counts towards the debt.
    frees = plan.large or (tracked and plan.shape & 1 != 0 and is_crowded(frame, tape))
    by_others = frees or plan.in_place
    found, result = 1, 0
    if by_others:
        hold_arrays(plan.operands, operands)
        if not plan.in_place:
            found = make_room(frame, tape, tracked, plan)
            if found == 1 and not all_unchanged(frame, plan.operands, operands):
                found = REFUSED
    if found == 1 and not (plan.large and plan.in_place):
        found = result = computed(frame, operands, plan)
    if found != 0 and found != REFUSED:
        if plan.in_place:
            found = change(frame, tape, tracked, operands, plan, result)
        else:
            found = record(frame, tape, tracked, operands, plan, result)
    if by_others:
        release_arrays(frame, plan.operands, operands)
    return found
