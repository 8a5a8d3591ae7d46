"""Elementwise operations on large Tensors, and their records.

What the general path does for one thread: memory that nobody needs is let go of before more is
asked for, the loop runs without the interpreter's lock, and the loops of the library's own say
nothing of exceptions of arithmetic.
"""

from tapegrad.kernels.memory import call0, call1, call2, call3, call8, f8, i4, i8
from tapegrad.native.abi import (
    BY_PYTHON,
    BY_UFUNC,
    PYTHON_CALLS,
    UNKNOWN,
    LargeRow,
    Operand,
    OpRow,
    ShapeLine,
)
from tapegrad.native.append import new_tensor, reads_of, saved_values
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_SHAPE,
    F8_SIZE,
    FIRST_CLASS,
    ITEMS,
    NDIM,
    REFUSED,
    SECOND_CLASS,
    array_of,
    count_of,
    decref,
    hold_next,
    incref,
    int_value,
    line_of,
    recording,
    same_shape,
    typed,
    unchanged,
)
from tapegrad.native.reclaim import drop_tail, has_room
from tapegrad.native.ufunc_loops import compute
from tapegrad.tape.tape import SAVES
from tapegrad.tape.tape import SCALAR as AS_SCALAR

FAILED = -2  # of what is a number else: an exception is set


@typed
def shape_of(frame, array):
    """The number of an array's shape: a new reference, 0 with an exception set, or REFUSED."""
    ndim = i4(array + NDIM)[0]
    key = call1(frame.PyTuple_New, ndim)
    if key == 0:
        return 0
    for k in range(ndim):
        i8(key)[ITEMS + k] = call1(frame.PyLong_FromLongLong, i8(i8(array)[ARRAY_SHAPE])[k])
        if i8(key)[ITEMS + k] == 0:
            decref(frame, key)
            return 0
    found = call2(frame.PyDict_GetItem, frame.shape_numbers, key)
    if found != 0:
        incref(found)
    decref(frame, key)
    return REFUSED if found == 0 else found


@typed
def large_shape(frame, array):
    """The number of an array's shape, FAILED with an exception set, or REFUSED: it has none."""
    found = shape_of(frame, array)
    if found == 0 or found == REFUSED:
        return FAILED if found == 0 else REFUSED
    shape = int_value(frame, found)
    decref(frame, found)
    return shape


@typed
def loop_of(frame, code, scalars):
    """By what an operation is computed (see `LargeRow`); 0 with an exception set.

    The first call goes by Python, for what was read may be another once that has learnt.
    """
    row = LargeRow(frame.large_rows)[code]
    if row.python_calls > 0:
        row.python_calls -= 1
        return BY_PYTHON
    if row.kernels[scalars] != UNKNOWN:
        return row.kernels[scalars]
    arguments = call1(frame.PyTuple_New, 2)
    if arguments == 0:
        return 0
    i8(arguments)[ITEMS] = call1(frame.PyLong_FromLongLong, code)
    i8(arguments)[ITEMS + 1] = call1(frame.PyLong_FromLongLong, scalars)
    done = 0
    if i8(arguments)[ITEMS] != 0 and i8(arguments)[ITEMS + 1] != 0:
        done = call3(frame.PyObject_Call, frame.learn_large, arguments, 0)
    decref(frame, arguments)
    if done == 0:
        return 0
    decref(frame, done)
    return BY_PYTHON


@typed
def call_unlocked(frame, loop, count, to, a, b, c):
    """Run a loop over memory without the interpreter's lock."""
    state = call0(frame.PyEval_SaveThread)
    call8(loop, count, to, a, b, c, 0, 0, 0)
    call1(frame.PyEval_RestoreThread, state)
    return 0


@typed
def ufunc_unlocked(frame, row_at, first, second, result, bits):
    """The same with NumPy's loops; 0 if an exception of arithmetic came about."""
    state = call0(frame.PyEval_SaveThread)
    call1(frame.feclearexcept, frame.fp_flags)
    found = compute(frame, row_at, first, second, result, bits, 0, F8_SIZE)
    call1(frame.PyEval_RestoreThread, state)
    return found


@typed
def computed(frame, code, row_at, loop, first, second, like, bits):
    """The result; 0 with an exception set, or REFUSED: one of arithmetic came about."""
    is_boolean, array = OpRow(row_at).is_boolean, Operand(like).array
    dtype = frame.bool_dtype if is_boolean else frame.float64
    result = array_of(frame, dtype, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE])
    if result == 0:
        return 0
    if loop != BY_UFUNC:
        a = i8(Operand(first).array)[ARRAY_DATA]
        b = i8(Operand(second).array)[ARRAY_DATA] if second != 0 else 0
        call_unlocked(frame, loop, count_of(result), i8(result)[ARRAY_DATA], a, b, 0)
    elif not ufunc_unlocked(frame, row_at, first, second, result, bits):
        LargeRow(frame.large_rows)[code].python_calls = PYTHON_CALLS
        decref(frame, result)
        return REFUSED
    return result


@typed
def finish_elementwise(frame, tape, tracked, row_at, first, second, bits, result):
    """The Tensor of an elementwise result, which it takes over; see `append.new_tensor`."""
    word, shape, entry = OpRow(row_at).word | bits, 0, frame.none
    if not unchanged(frame, first) or (second != 0 and not unchanged(frame, second)):
        decref(frame, result)
        return REFUSED
    token = hold_next(frame, tape)
    if tracked:
        shape = large_shape(frame, result)
        if shape < 0:
            decref(frame, token)
            decref(frame, result)
            return 0 if shape == FAILED else REFUSED
    if tracked and reads_of(row_at, first, second) != 0:
        entry = saved_values(frame, row_at, first, second, result)
    else:
        incref(entry)
        word &= ~SAVES
    incref(frame.minus_one)
    return new_tensor(
        frame, tape, tracked, first, second, 0, word, shape, 0, frame.minus_one, entry, result,
        token,
    )  # fmt: skip


@typed
def make_ready(frame, tape, loop, tracked, nbytes):
    """1: a result of so many bytes can be computed, and recorded; 0 with an exception set, or
    REFUSED.
    """
    if loop == 0 or loop == BY_PYTHON:
        return REFUSED if loop != 0 else 0
    done = drop_tail(frame, tape)
    if done == 1 and tracked and not has_room(frame, tape, nbytes):
        return REFUSED
    return done


@typed
def elementwise(frame, tape, row_at, code, first, second):
    """An elementwise operation of one operand or two, of which one may be a number."""
    record = recording(frame, tape)
    if record == REFUSED:
        return REFUSED
    like, bits, scalars, places = first, 0, 0, Operand(first).position
    if second != 0:
        places |= Operand(second).position
        if Operand(second).shape == 0:
            scalars, bits = 2, AS_SCALAR << SECOND_CLASS
        elif Operand(first).shape == 0:
            scalars, bits, like = 1, AS_SCALAR << FIRST_CLASS, second
        elif not same_shape(Operand(first).array, Operand(second).array):
            return REFUSED
    loop = loop_of(frame, code, scalars)
    tracked = 1 if record and places != 0 and not OpRow(row_at).is_boolean else 0
    done = make_ready(frame, tape, loop, tracked, 8 * count_of(Operand(like).array))
    if done != 1:
        return done
    result = computed(frame, code, row_at, loop, first, second, like, bits)
    if result == 0 or result == REFUSED:
        return result
    return finish_elementwise(frame, tape, tracked, row_at, first, second, bits, result)


@typed
def reduction_line(frame, code, array):
    """The line of the sum or the mean of everything of a shape; 0 or REFUSED."""
    shape_at = shape_of(frame, array)
    if shape_at == 0 or shape_at == REFUSED:
        return shape_at
    line, code_at = 0, call1(frame.PyLong_FromLongLong, code)
    if code_at != 0:
        shape = int_value(frame, shape_at)
        line = line_of(
            frame, frame.reductions, frame.learn_reduction, code, shape, code_at, shape_at
        )
        decref(frame, code_at)
    decref(frame, shape_at)
    return line


@typed
def reduction(frame, tape, row_at, code, first):
    """The sum, or the mean, of all elements."""
    record, loop = recording(frame, tape), loop_of(frame, code, 0)
    if record == REFUSED or loop == BY_UFUNC or loop == BY_PYTHON:
        return REFUSED
    array = Operand(first).array
    line = reduction_line(frame, code, array) if loop != 0 else 0
    if line == 0 or line == REFUSED:
        return line
    tracked = 1 if record and Operand(first).position != 0 else 0
    if tracked and not has_room(frame, tape, 0):
        return REFUSED
    word, aux = ShapeLine(line).bits, ShapeLine(line).aux
    entry = ShapeLine(line).extra if tracked else frame.none
    incref(entry)  # the line may be that of another shape soon
    result = array_of(frame, frame.float64, 0, 0)
    if result == 0:
        decref(frame, entry)
        return 0
    count, to = count_of(array), i8(result)[ARRAY_DATA]
    call_unlocked(frame, loop, count, i8(array)[ARRAY_DATA], to, 0, 0)
    if OpRow(row_at).is_mean:
        f8(to)[0] /= count
    if not unchanged(frame, first):
        decref(frame, entry)
        decref(frame, result)
        return REFUSED
    incref(frame.zero)
    return new_tensor(
        frame, tape, tracked, first, 0, 0, word, 0, aux, frame.zero, entry, result,
        hold_next(frame, tape),
    )  # fmt: skip
