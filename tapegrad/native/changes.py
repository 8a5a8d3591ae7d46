"""Change a Tensor in place: whether it may be, what counts the change, its record.

A change is counted before it is made, by a function in Python: what came in between is looked for
once more, and nothing comes after.
"""

from tapegrad.kernels.memory import address, call0, call1, call3, i4, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import WRITEABLE
from tapegrad.native.append import append_record, input_codes, is_full
from tapegrad.native.operands import (
    all_unchanged,
    disjoint,
    hold_arrays,
    release_arrays,
    storage_of,
)
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_SHAPE,
    F4_SIZE,
    F8_SIZE,
    FLAGS,
    LARGE_COUNT,
    NDIM,
    REFUSED,
    TYPE,
    array_of,
    call_python,
    count_of,
    decref,
    int_value,
    set_slot,
    typed,
)


@typed
def is_free_view(frame, recorded, tracked, home):
    """Whether a Tensor is a view, and its base has no history that a change would rewrite."""
    view = i8(home)
    if view[TYPE] != frame.view_type or view[frame.v_base] == frame.none:
        return 0
    base, frozen = view[frame.v_base], view[frame.v_frozen]
    if frozen != frame.empty_str and frozen != frame.no_grad:
        return 0
    if not recorded:
        return 1
    alone = i8(base)[TYPE] == frame.tensor_type and int_value(frame, i8(base)[frame.t_pos]) == 0
    return 1 if alone and not tracked else 0


@typed
def may_change(frame, tape, recorded, tracked, operands, plan):
    """Whether the first operand, no view that is recorded, and if changes are recorded no leaf that
    requires grad, may be changed by the others, with which it shares no memory.
    """
    array = operands.array
    if operands.tensor == 0:
        return 0
    home, extra = i8(operands.tensor)[frame.t_home], i8(operands.tensor)[frame.t_extra]
    if home != frame.none and home != tape and not is_free_view(frame, recorded, tracked, home):
        return 0
    if i4(array + FLAGS)[0] & WRITEABLE == 0 or storage_of(frame, array) == 0:
        return 0
    if recorded or plan.large:
        for k in range(1, plan.operands):
            if k != plan.index and not disjoint(frame, array, operands[k].array):
                return 0
    if not recorded:
        return 1
    if operands.position < 0 or (extra != 0 and call1(frame.PyDict_Size, extra) != 0):
        return 0
    return 0 if is_full(frame, tape) else 1


@typed
def copy(to, source, nbytes):
    """Copy some numbers, which take four bytes or eight."""
    for k in range(nbytes >> 2):
        i4(to)[k] = i4(source)[k]
    return 0


@typed
def copy_of(frame, array):
    """A new array with the elements of another of floats, or 0 with an exception set."""
    dtype, count = i8(array)[ARRAY_DTYPE], count_of(array)
    result = array_of(frame, dtype, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE], 0)
    if result == 0:
        return 0
    nbytes = count * (F4_SIZE if dtype == frame.float32 else F8_SIZE)
    to, source = i8(result)[ARRAY_DATA], i8(array)[ARRAY_DATA]
    if count < LARGE_COUNT:
        copy(to, source, nbytes)
    else:  # other threads need not wait for that
        state = call0(frame.PyEval_SaveThread)
        call3(frame.memcpy, to, source, nbytes)
        call1(frame.PyEval_RestoreThread, state)
    return result


@typed
def bump_version(frame, array):
    """Count a change of an array's memory; 0 with an exception set."""
    done = call_python(frame, frame.bump_version, 1, storage_of(frame, array), 0, 0)
    if done == 0:
        return 0
    decref(frame, done)
    return 1


@typed
def announce_change(frame, tape, token, count, operands):
    """Count a change of the first operand, which is about to be made; 0 with an exception set, or
    REFUSED: something has changed since `next` was the token, and Python begins anew.  It takes
    over the reference to that.
    """
    same, at = i8(tape)[frame.tape_next] == token, int_value(frame, token)
    decref(frame, token)
    if not same:
        return REFUSED
    hold_arrays(count, operands)
    done = bump_version(frame, operands.array)
    if done:
        same = int_value(frame, i8(tape)[frame.tape_next]) == at
        done = 1 if same and all_unchanged(frame, count, operands) else REFUSED
    release_arrays(frame, count, operands)
    return done


@typed
def append_change(frame, tape, operands, word, shape, plan, entry):
    """Record a change that is made, and give its Tensor the new place; 0 with an exception set."""
    codes, tensor = room_i8(3), operands.tensor
    if not input_codes(frame, tape, plan.operands, operands, address(codes)):
        return 0
    before, home = i8(tensor)[frame.t_pos], i8(tensor)[frame.t_home]
    done = append_record(frame, tape, tensor, word, address(codes), shape, plan.aux, entry)
    if i8(tensor)[frame.t_pos] != before:
        decref(frame, before)
    if home != tape:
        set_slot(frame, tensor, frame.t_home, tape)
        decref(frame, home)
    return done
