"""Elementwise operations on large Tensors, and their records.

What the general path does for one thread: memory that nobody needs is let go of before more is
asked for, the loop runs without the interpreter's lock, and the loops of the library's own say
nothing of exceptions of arithmetic.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call0, call1, call2, call3, call8, f8, i4, i8
from tapegrad.native.abi import (
    AUX,
    BITS,
    BOOL,
    BY_PYTHON,
    BY_STEPS,
    CALL,
    CLEAR_EXCEPTIONS,
    DIVIDES,
    F8,
    FROM_LONG,
    GET_ITEM,
    LARGE,
    LARGE_ROW,
    LEARN_LARGE,
    LEARN_TOTAL,
    LOCK,
    MORE,
    NEW_TUPLE,
    NO_NUMBER,
    NONE,
    SERIOUS,
    SHAPE_NUMBERS,
    TOTALS,
    TRUTH,
    UNKNOWN,
    UNLOCK,
    WARINESS,
    WARY,
    WORD,
    ZERO,
)
from tapegrad.native.append import completed, kept, reads_of
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_SHAPE,
    FIRST_CLASS,
    ITEMS,
    KIND,
    NDIM,
    PLACE,
    REFUSED,
    SECOND_CLASS,
    VALUES,
    WIDE_SIZE,
    array_of,
    count_of,
    decref,
    incref,
    line_of,
    next_of,
    number,
    recording,
    same_shape,
    stays,
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
    key = call1(frame[NEW_TUPLE], ndim)
    if key == 0:
        return 0
    for k in range(ndim):
        i8(key)[ITEMS + k] = call1(frame[FROM_LONG], i8(i8(array)[ARRAY_SHAPE])[k])
        if i8(key)[ITEMS + k] == 0:
            decref(frame, key)
            return 0
    found = call2(frame[GET_ITEM], frame[SHAPE_NUMBERS], key)
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
    shape = number(frame, found)
    decref(frame, found)
    return shape


@typed
def loop_of(frame, code, scalars):
    """By what an operation is computed (see LARGE); 0 with an exception set.

    The first call goes by Python, for what was read may be another once that has learnt.
    """
    row = i8(frame[LARGE] + code * LARGE_ROW * 8)
    if row[WARY] > 0:
        row[WARY] -= 1
        return BY_PYTHON
    if row[scalars] != UNKNOWN:
        return row[scalars]
    arguments = call1(frame[NEW_TUPLE], 2)
    if arguments == 0:
        return 0
    i8(arguments)[ITEMS] = call1(frame[FROM_LONG], code)
    i8(arguments)[ITEMS + 1] = call1(frame[FROM_LONG], scalars)
    done = 0
    if i8(arguments)[ITEMS] != 0 and i8(arguments)[ITEMS + 1] != 0:
        done = call3(frame[CALL], frame[LEARN_LARGE], arguments, 0)
    decref(frame, arguments)
    if done == 0:
        return 0
    decref(frame, done)
    return BY_PYTHON


@typed
def unlocked(frame, loop, count, to, a, b, c):
    """Run a loop over memory without the interpreter's lock."""
    state = call0(frame[UNLOCK])
    call8(loop, count, to, a, b, c, 0, 0, 0)
    call1(frame[LOCK], state)
    return 0


@typed
def unlocked_steps(frame, row_at, first, second, result, bits):
    """The same with NumPy's loops; 0 if an exception of arithmetic came about."""
    state = call0(frame[UNLOCK])
    call1(frame[CLEAR_EXCEPTIONS], frame[SERIOUS])
    found = compute(frame, row_at, first, second, result, bits, 0, WIDE_SIZE)
    call1(frame[LOCK], state)
    return found


@typed
def computed(frame, code, row_at, loop, first, second, like, bits):
    """The result; 0 with an exception set, or REFUSED: one of arithmetic came about."""
    truth, array = i8(row_at)[TRUTH], i8(like)[VALUES]
    dtype = frame[BOOL] if truth else frame[F8]
    result = array_of(frame, dtype, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE])
    if result == 0:
        return 0
    if loop != BY_STEPS:
        a = i8(i8(first)[VALUES])[ARRAY_DATA]
        b = i8(i8(second)[VALUES])[ARRAY_DATA] if second != 0 else 0
        unlocked(frame, loop, count_of(result), i8(result)[ARRAY_DATA], a, b, 0)
    elif not unlocked_steps(frame, row_at, first, second, result, bits):
        i8(frame[LARGE] + code * LARGE_ROW * 8)[WARY] = WARINESS
        decref(frame, result)
        return REFUSED
    return result


@typed
def finished(frame, tape, tracked, row_at, first, second, bits, result):
    """The Tensor of an elementwise result, which it takes over; see `records.completed`."""
    word, shape, entry = i8(row_at)[WORD] | bits, 0, frame[NONE]
    if not stays(frame, first) or (second != 0 and not stays(frame, second)):
        decref(frame, result)
        return REFUSED
    token = next_of(frame, tape)
    if tracked:
        shape = large_shape(frame, result)
        if shape < 0:
            decref(frame, token)
            decref(frame, result)
            return 0 if shape == FAILED else REFUSED
    if tracked and reads_of(row_at, first, second) != 0:
        entry = kept(frame, row_at, first, second, result)
    else:
        incref(entry)
        word &= ~SAVES
    incref(frame[NO_NUMBER])
    return completed(
        frame, tape, tracked, first, second, 0, word, shape, 0, frame[NO_NUMBER], entry, result,
        token,
    )  # fmt: skip


@typed
def ready(frame, tape, loop, tracked, nbytes):
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
    like, bits, scalars, places = first, 0, 0, i8(first)[PLACE]
    if second != 0:
        places |= i8(second)[PLACE]
        if i8(second)[KIND] == 0:
            scalars, bits = 2, AS_SCALAR << SECOND_CLASS
        elif i8(first)[KIND] == 0:
            scalars, bits, like = 1, AS_SCALAR << FIRST_CLASS, second
        elif not same_shape(i8(first)[VALUES], i8(second)[VALUES]):
            return REFUSED
    loop = loop_of(frame, code, scalars)
    tracked = 1 if record and places != 0 and not i8(row_at)[TRUTH] else 0
    done = ready(frame, tape, loop, tracked, 8 * count_of(i8(like)[VALUES]))
    if done != 1:
        return done
    result = computed(frame, code, row_at, loop, first, second, like, bits)
    if result == 0 or result == REFUSED:
        return result
    return finished(frame, tape, tracked, row_at, first, second, bits, result)


@typed
def total_line(frame, code, array):
    """The line of the sum or the mean of everything of a shape; 0 or REFUSED."""
    shape_at = shape_of(frame, array)
    if shape_at == 0 or shape_at == REFUSED:
        return shape_at
    line, code_at = 0, call1(frame[FROM_LONG], code)
    if code_at != 0:
        shape = number(frame, shape_at)
        line = line_of(frame, frame[TOTALS], frame[LEARN_TOTAL], code, shape, code_at, shape_at)
        decref(frame, code_at)
    decref(frame, shape_at)
    return line


@typed
def total(frame, tape, row_at, code, first):
    """The sum, or the mean, of all elements."""
    record, loop = recording(frame, tape), loop_of(frame, code, 0)
    if record == REFUSED or loop == BY_STEPS or loop == BY_PYTHON:
        return REFUSED
    array = i8(first)[VALUES]
    line = total_line(frame, code, array) if loop != 0 else 0
    if line == 0 or line == REFUSED:
        return line
    tracked = 1 if record and i8(first)[PLACE] != 0 else 0
    if tracked and not has_room(frame, tape, 0):
        return REFUSED
    word, aux = i8(line)[BITS], i8(line)[AUX]
    entry = i8(line)[MORE] if tracked else frame[NONE]
    incref(entry)  # the line may be that of another shape soon
    result = array_of(frame, frame[F8], 0, 0)
    if result == 0:
        decref(frame, entry)
        return 0
    count, to = count_of(array), i8(result)[ARRAY_DATA]
    unlocked(frame, loop, count, i8(array)[ARRAY_DATA], to, 0, 0)
    if i8(row_at)[DIVIDES]:
        f8(to)[0] /= count
    if not stays(frame, first):
        decref(frame, entry)
        decref(frame, result)
        return REFUSED
    incref(frame[ZERO])
    return completed(
        frame, tape, tracked, first, 0, 0, word, 0, aux, frame[ZERO], entry, result,
        next_of(frame, tape),
    )  # fmt: skip
