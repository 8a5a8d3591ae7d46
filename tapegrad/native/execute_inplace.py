"""Elementwise operations in place on a small Tensor, and their records.

Nothing is written before it is sure that the change can be made and recorded, and that no exception
of arithmetic came about: until then Python can begin anew.  A change is counted before it is made,
by a function in Python: what came in between is looked for once more, and nothing comes after.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call0, call1, call3, i4, i8
from tapegrad.kernels.sweep.sweep_abi import SINGLE, WRITEABLE
from tapegrad.native.abi import AUX as LINE_AUX
from tapegrad.native.abi import BITS as LINE_BITS
from tapegrad.native.abi import (
    CALL,
    CHANGED,
    COPY,
    DICT_SIZE,
    ENTRY,
    LEARN_PAIR,
    LOCK,
    LOOP,
    NARROW_STEPS,
    NEXT,
    NONE,
    PAIRS,
    SHAPE,
    STEPS,
    T_EXTRA,
    T_HOME,
    T_POS,
    TRUTH,
    UNLOCK,
    WORD,
)
from tapegrad.native.abi import MORE as LINE_MORE
from tapegrad.native.append import code_of, is_full, reads_of, write
from tapegrad.native.pyobjects import (
    ARRAY_BASE,
    ARRAY_DATA,
    ARRAY_SHAPE,
    FLAGS,
    KIND,
    LEAST,
    NARROW_SIZE,
    NDIM,
    OPERAND,
    PLACE,
    REFUSED,
    SECOND_CLASS,
    THING,
    VALUES,
    count_of,
    decref,
    floats_of,
    incref,
    line_of_shapes,
    next_of,
    number,
    put,
    recording,
    stays,
    tuple_of,
)
from tapegrad.native.ufunc_loops import compute
from tapegrad.tape.tape import SAVES
from tapegrad.tape.tape import SCALAR as AS_SCALAR

MOST = 1024  # elements; of more NumPy's loops write at once where these go by a copy


@typed
def changeable(frame, tape, listening, first):
    """Whether a Tensor is no view, and where changes are recorded no leaf that requires grad."""
    thing, array = i8(i8(first)[THING]), i8(first)[VALUES]
    home, extra = thing[frame[T_HOME]], thing[frame[T_EXTRA]]
    if home != frame[NONE] and home != tape:
        return 0
    if i4(array + FLAGS)[0] & WRITEABLE == 0 or i8(array)[ARRAY_BASE] != 0:
        return 0
    if listening == 0:
        return 1
    if i8(first)[PLACE] < 0:
        return 0
    return 0 if extra != 0 and call1(frame[DICT_SIZE], extra) != 0 else 1


@typed
def apart(first, second):
    """Whether an operand is sure to share no memory with a Tensor that is no view."""
    other = i8(second)[VALUES]
    return 1 if other != i8(first)[VALUES] and i8(other)[ARRAY_BASE] == 0 else 0


@typed
def may_change(frame, tape, listening, first, second):
    """Whether a small Tensor may be changed, and recorded, without a detour."""
    if i8(first)[THING] == 0 or count_of(i8(first)[VALUES]) > MOST:
        return 0
    if not changeable(frame, tape, listening, first):
        return 0
    if listening == 0:
        return 1
    if second != 0 and not apart(first, second):
        return 0
    return 0 if is_full(frame, tape) else 1


@typed
def copy(to, source, nbytes):
    """Copy some numbers, which take four bytes or eight."""
    for k in range(nbytes >> 2):
        i4(to)[k] = i4(source)[k]


@typed
def copied(frame, array, itemsize):
    """A new array with the elements of another, or 0 with an exception set."""
    result = floats_of(frame, itemsize, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE])
    if result == 0:
        return 0
    to, source, nbytes = i8(result)[ARRAY_DATA], i8(array)[ARRAY_DATA], itemsize * count_of(array)
    if count_of(array) < LEAST:
        copy(to, source, nbytes)
    else:  # other threads need not wait for that
        state = call0(frame[UNLOCK])
        call3(frame[COPY], to, source, nbytes)
        call1(frame[LOCK], state)
    return result


@typed
def counted(frame, array):
    """Count a change of an array's memory; 0 with an exception set."""
    given = tuple_of(frame, 1, array, 0, 0, 0, 0)
    if given == 0:
        return 0
    done = call3(frame[CALL], frame[CHANGED], given, 0)
    decref(frame, given)
    if done == 0:
        return 0
    decref(frame, done)
    return 1


@typed
def move(frame, tape, tensor, word, p, q, r, shape, aux, entry):
    """Record a change, and give the Tensor its new place; 0 with an exception set."""
    before, home = i8(tensor)[frame[T_POS]], i8(tensor)[frame[T_HOME]]
    done = write(frame, tape, tensor, word, p, q, r, shape, aux, entry)
    if i8(tensor)[frame[T_POS]] != before:
        decref(frame, before)
    if home != tape:
        put(frame, tensor, frame[T_HOME], tape)
        decref(frame, home)
    return done


@typed
def kept(frame, row_at, first, second, itemsize):
    """What the record keeps: None, if the formulas of what is tracked read nothing.

    Of the target, if they read it, a copy; the result is the target itself.
    """
    reads, size = reads_of(row_at, first, second), i8(row_at)[ENTRY]
    if reads == 0:
        incref(frame[NONE])
        return frame[NONE]
    a, b, last = frame[NONE], frame[NONE], i8(first)[VALUES] if reads & 4 else frame[NONE]
    if reads & 1:
        a = copied(frame, i8(first)[VALUES], itemsize)
        if a == 0:
            return 0
    if reads & 2 and second != 0:
        b = i8(second)[VALUES]
    entry = tuple_of(frame, size, a, b if size > 2 else last, last, 0, 0)
    if reads & 1:
        decref(frame, a)
    return entry


@typed
def announced(frame, tape, token, count, operands_at):
    """Count a change of the first operand, which is about to be made; 0 with an exception set, or
    REFUSED: something has changed since `next` was the token, and Python begins anew.  It takes
    over the reference to that.
    """
    same, at = i8(tape)[frame[NEXT]] == token, number(frame, token)
    decref(frame, token)
    if not same:
        return REFUSED
    for k in range(count):
        incref(i8(operands_at)[k * OPERAND + VALUES])
    done = counted(frame, i8(operands_at)[VALUES])
    if done and number(frame, i8(tape)[frame[NEXT]]) != at:
        done = REFUSED
    for k in range(count):
        if done == 1 and not stays(frame, operands_at + 8 * OPERAND * k):
            done = REFUSED
        decref(frame, i8(operands_at)[k * OPERAND + VALUES])
    return done


@typed
def recorded(frame, tape, row_at, first, second, bits, length, itemsize, entry):
    """Record a change that is made; 0 with an exception set."""
    q = 0
    p = code_of(frame, tape, first)
    if second != 0:
        q = code_of(frame, tape, second)
        if q == 0 and i8(second)[PLACE] != 0:
            return 0
    word = (i8(row_at)[WORD] | bits) & ~(SAVES if entry == frame[NONE] else 0)
    word |= SINGLE if itemsize == NARROW_SIZE else 0
    return move(frame, tape, i8(first)[THING], word, p, q, 0, i8(first)[KIND], length, entry)


@typed
def change(frame, tape, row_at, first, second, itemsize):
    """An elementwise operation in place: the target, 0 with an exception set, or REFUSED."""
    row, listening = i8(row_at), recording(frame, tape)
    steps = NARROW_STEPS if itemsize == NARROW_SIZE else STEPS
    if listening == REFUSED or row[steps + LOOP] == 0 or row[TRUTH]:
        return REFUSED
    if not may_change(frame, tape, listening, first, second):
        return REFUSED
    one = i8(first)
    bits, length, places = 0, 0, one[PLACE]
    if second != 0:
        places |= i8(second)[PLACE]
        other = i8(second)[KIND]
        if other == 0 and one[KIND] != 0:
            bits = AS_SCALAR << SECOND_CLASS
        elif other != one[KIND]:
            if i8(second)[THING] == 0:
                return REFUSED
            line = line_of_shapes(frame, frame[PAIRS], frame[LEARN_PAIR], first, second, itemsize)
            if line == 0 or line == REFUSED:
                return line
            if i8(line)[SHAPE] != one[KIND] or i8(line)[LINE_MORE]:
                return REFUSED
            bits, length = i8(line)[LINE_BITS], i8(line)[LINE_AUX]
    array = one[VALUES]
    result = floats_of(frame, itemsize, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE])
    if result == 0:
        return 0
    if not compute(frame, row_at, first, second, result, bits, length, itemsize):
        decref(frame, result)
        return REFUSED
    tracked, entry, token = listening and places != 0, frame[NONE], next_of(frame, tape)
    if tracked:
        entry = kept(frame, row_at, first, second, itemsize)
    else:
        incref(entry)
    if entry == 0:
        decref(frame, token)
        decref(frame, result)
        return 0
    done = announced(frame, tape, token, 1 if second == 0 else 2, first)
    if done == 1:
        copy(i8(array)[ARRAY_DATA], i8(result)[ARRAY_DATA], itemsize * count_of(array))
        if tracked:
            done = recorded(frame, tape, row_at, first, second, bits, length, itemsize, entry)
    decref(frame, entry)
    decref(frame, result)
    if done != 1:
        return done
    incref(one[THING])
    return one[THING]
