"""Elementwise operations in place on a small Tensor, and their records.

Nothing is written before it is sure that the change can be made and recorded, and that no exception
of arithmetic came about: until then Python can begin anew.  A change is counted before it is made,
by a function in Python: what came in between is looked for once more, and nothing comes after.
"""

from tapegrad.kernels.memory import address, call0, call1, call3, i4, i8
from tapegrad.kernels.sweep.sweep_abi import SINGLE, WRITEABLE
from tapegrad.native.abi import Operand, OpRow, ShapeLine
from tapegrad.native.append import append_record, input_code, is_full, reads_of
from tapegrad.native.pyobjects import (
    ARRAY_BASE,
    ARRAY_DATA,
    ARRAY_SHAPE,
    F4_SIZE,
    FLAGS,
    LARGE_COUNT,
    NDIM,
    REFUSED,
    SECOND_CLASS,
    count_of,
    decref,
    floats_of,
    hold_next,
    incref,
    int_value,
    line_of_shapes,
    recording,
    set_slot,
    tuple_of,
    typed,
    unchanged,
)
from tapegrad.native.ufunc_loops import compute, has_loop
from tapegrad.tape.tape import SAVES
from tapegrad.tape.tape import SCALAR as AS_SCALAR

MOST = 1024  # elements; of more NumPy's loops write at once where these go by a copy


@typed
def changeable(frame, tape, listening, first):
    """Whether a Tensor is no view, and where changes are recorded no leaf that requires grad."""
    obj, array = i8(Operand(first).tensor), Operand(first).array
    home, extra = obj[frame.t_home], obj[frame.t_extra]
    if home != frame.none and home != tape:
        return 0
    if i4(array + FLAGS)[0] & WRITEABLE == 0 or i8(array)[ARRAY_BASE] != 0:
        return 0
    if listening == 0:
        return 1
    if Operand(first).position < 0:
        return 0
    return 0 if extra != 0 and call1(frame.PyDict_Size, extra) != 0 else 1


@typed
def disjoint(first, second):
    """Whether an operand is sure to share no memory with a Tensor that is no view."""
    other = Operand(second).array
    return 1 if other != Operand(first).array and i8(other)[ARRAY_BASE] == 0 else 0


@typed
def may_change(frame, tape, listening, first, second):
    """Whether a small Tensor may be changed, and recorded, without a detour."""
    if Operand(first).tensor == 0 or count_of(Operand(first).array) > MOST:
        return 0
    if not changeable(frame, tape, listening, first):
        return 0
    if listening == 0:
        return 1
    if second != 0 and not disjoint(first, second):
        return 0
    return 0 if is_full(frame, tape) else 1


@typed
def copy(to, source, nbytes):
    """Copy some numbers, which take four bytes or eight."""
    for k in range(nbytes >> 2):
        i4(to)[k] = i4(source)[k]


@typed
def copy_of(frame, array, itemsize):
    """A new array with the elements of another, or 0 with an exception set."""
    result = floats_of(frame, itemsize, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE])
    if result == 0:
        return 0
    to, source, nbytes = i8(result)[ARRAY_DATA], i8(array)[ARRAY_DATA], itemsize * count_of(array)
    if count_of(array) < LARGE_COUNT:
        copy(to, source, nbytes)
    else:  # other threads need not wait for that
        state = call0(frame.PyEval_SaveThread)
        call3(frame.memcpy, to, source, nbytes)
        call1(frame.PyEval_RestoreThread, state)
    return result


@typed
def bump_version(frame, array):
    """Count a change of an array's memory; 0 with an exception set."""
    given = tuple_of(frame, 1, array, 0, 0, 0, 0)
    if given == 0:
        return 0
    done = call3(frame.PyObject_Call, frame.bump_version, given, 0)
    decref(frame, given)
    if done == 0:
        return 0
    decref(frame, done)
    return 1


@typed
def record_change(frame, tape, tensor, word, p, q, r, shape, aux, entry):
    """Record a change, and give the Tensor its new place; 0 with an exception set."""
    before, home = i8(tensor)[frame.t_pos], i8(tensor)[frame.t_home]
    done = append_record(frame, tape, tensor, word, p, q, r, shape, aux, entry)
    if i8(tensor)[frame.t_pos] != before:
        decref(frame, before)
    if home != tape:
        set_slot(frame, tensor, frame.t_home, tape)
        decref(frame, home)
    return done


@typed
def saved_values(frame, row_at, first, second, itemsize):
    """What the record keeps: None, if the formulas of what is tracked read nothing.

    Of the target, if they read it, a copy; the result is the target itself.
    """
    reads, size = reads_of(row_at, first, second), OpRow(row_at).entry_size
    if reads == 0:
        incref(frame.none)
        return frame.none
    a, b, last = frame.none, frame.none, Operand(first).array if reads & 4 else frame.none
    if reads & 1:
        a = copy_of(frame, Operand(first).array, itemsize)
        if a == 0:
            return 0
    if reads & 2 and second != 0:
        b = Operand(second).array
    entry = tuple_of(frame, size, a, b if size > 2 else last, last, 0, 0)
    if reads & 1:
        decref(frame, a)
    return entry


@typed
def announce_change(frame, tape, token, count, operands_at):
    """Count a change of the first operand, which is about to be made; 0 with an exception set, or
    REFUSED: something has changed since `next` was the token, and Python begins anew.  It takes
    over the reference to that.
    """
    same, at = i8(tape)[frame.tape_next] == token, int_value(frame, token)
    decref(frame, token)
    if not same:
        return REFUSED
    for k in range(count):
        incref(Operand(operands_at)[k].array)
    done = bump_version(frame, Operand(operands_at).array)
    if done and int_value(frame, i8(tape)[frame.tape_next]) != at:
        done = REFUSED
    for k in range(count):
        if done == 1 and not unchanged(frame, address(Operand(operands_at)[k])):
            done = REFUSED
        decref(frame, Operand(operands_at)[k].array)
    return done


@typed
def append_change(frame, tape, row_at, first, second, bits, length, itemsize, entry):
    """Record a change that is made; 0 with an exception set."""
    q = 0
    p = input_code(frame, tape, first)
    if second != 0:
        q = input_code(frame, tape, second)
        if q == 0 and Operand(second).position != 0:
            return 0
    word = (OpRow(row_at).word | bits) & ~(SAVES if entry == frame.none else 0)
    word |= SINGLE if itemsize == F4_SIZE else 0
    return record_change(
        frame, tape, Operand(first).tensor, word, p, q, 0, Operand(first).shape, length, entry
    )


@typed
def inplace(frame, tape, row_at, first, second, itemsize):
    """An elementwise operation in place: the target, 0 with an exception set, or REFUSED."""
    row, listening = OpRow(row_at), recording(frame, tape)
    if listening == REFUSED or not has_loop(row_at, itemsize) or row.is_boolean:
        return REFUSED
    if not may_change(frame, tape, listening, first, second):
        return REFUSED
    one = Operand(first)
    bits, length, places = 0, 0, one.position
    if second != 0:
        places |= Operand(second).position
        other = Operand(second).shape
        if other == 0 and one.shape != 0:
            bits = AS_SCALAR << SECOND_CLASS
        elif other != one.shape:
            if Operand(second).tensor == 0:
                return REFUSED
            line = line_of_shapes(
                frame, frame.broadcasts, frame.learn_broadcast, first, second, itemsize
            )
            if line == 0 or line == REFUSED:
                return line
            if ShapeLine(line).shape != one.shape or ShapeLine(line).extra:
                return REFUSED
            bits, length = ShapeLine(line).bits, ShapeLine(line).aux
    array = one.array
    result = floats_of(frame, itemsize, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE])
    if result == 0:
        return 0
    if not compute(frame, row_at, first, second, result, bits, length, itemsize):
        decref(frame, result)
        return REFUSED
    tracked, entry, token = listening and places != 0, frame.none, hold_next(frame, tape)
    if tracked:
        entry = saved_values(frame, row_at, first, second, itemsize)
    else:
        incref(entry)
    if entry == 0:
        decref(frame, token)
        decref(frame, result)
        return 0
    done = announce_change(frame, tape, token, 1 if second == 0 else 2, first)
    if done == 1:
        copy(i8(array)[ARRAY_DATA], i8(result)[ARRAY_DATA], itemsize * count_of(array))
        if tracked:
            done = append_change(frame, tape, row_at, first, second, bits, length, itemsize, entry)
    decref(frame, entry)
    decref(frame, result)
    if done != 1:
        return done
    incref(one.tensor)
    return one.tensor
