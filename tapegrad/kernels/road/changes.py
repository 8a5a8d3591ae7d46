"""What is written into a Tensor that exists, with the record of the change.

Nothing is written before it is sure that the change can be made and recorded, and that no exception
of arithmetic came about: until then Python can begin anew.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.layout import SINGLE, WRITEABLE
from tapegrad.kernels.memory import call0, call1, call3, i4, i8
from tapegrad.kernels.road.frame import AUX as LINE_AUX
from tapegrad.kernels.road.frame import BITS as LINE_BITS
from tapegrad.kernels.road.frame import (
    CALL,
    CHANGED,
    COPY,
    DECREF,
    DICT_SIZE,
    END,
    ENTRY,
    INCREF,
    LEARN_PAIR,
    LOCK,
    LOOP,
    NARROW_STEPS,
    NEW_TUPLE,
    NONE,
    OFFSET,
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
from tapegrad.kernels.road.frame import MORE as LINE_MORE
from tapegrad.kernels.road.loops import compute
from tapegrad.kernels.road.objects import (
    ARRAY_BASE,
    ARRAY_DATA,
    ARRAY_SHAPE,
    FLAGS,
    ITEMS,
    KIND,
    LEAST,
    NARROW_SIZE,
    NDIM,
    PLACE,
    REFUSED,
    SECOND_CLASS,
    THING,
    VALUES,
    count_of,
    floats_of,
    line_of_shapes,
    number,
    put,
    recording,
)
from tapegrad.kernels.road.records import code_of, reads_of, write
from tapegrad.tape import SAVES
from tapegrad.tape import SCALAR as AS_SCALAR

MOST = 1024  # elements; of more NumPy's loops write at once where these go by a copy


@typed
def is_full(frame, tape):
    """Whether the tape has no room for a record."""
    return 1 if number(frame, i8(tape)[frame[OFFSET]]) == number(frame, i8(tape)[frame[END]]) else 0


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
    given = call1(frame[NEW_TUPLE], 1)
    if given == 0:
        return 0
    put(frame, given, ITEMS, array)
    done = call3(frame[CALL], frame[CHANGED], given, 0)
    call1(frame[DECREF], given)
    if done == 0:
        return 0
    call1(frame[DECREF], done)
    return 1


@typed
def move(frame, tape, tensor, word, p, q, r, shape, aux, entry):
    """Record a change, and give the Tensor its new place; 0 with an exception set."""
    before, home = i8(tensor)[frame[T_POS]], i8(tensor)[frame[T_HOME]]
    done = write(frame, tape, tensor, word, p, q, r, shape, aux, entry)
    if i8(tensor)[frame[T_POS]] != before:
        call1(frame[DECREF], before)
    if home != tape:
        put(frame, tensor, frame[T_HOME], tape)
        call1(frame[DECREF], home)
    return done


@typed
def kept(frame, row_at, first, second, itemsize):
    """What the record keeps: None, if the formulas of what is tracked read nothing.

    Of the target, if they read it, a copy; the result is the target itself.
    """
    reads, size = reads_of(row_at, first, second), i8(row_at)[ENTRY]
    if reads == 0:
        call1(frame[INCREF], frame[NONE])
        return frame[NONE]
    entry = call1(frame[NEW_TUPLE], size)
    if entry == 0:
        return 0
    if reads & 1:
        i8(entry)[ITEMS] = copied(frame, i8(first)[VALUES], itemsize)
        if i8(entry)[ITEMS] == 0:
            call1(frame[DECREF], entry)
            return 0
    else:
        put(frame, entry, ITEMS, frame[NONE])
    if second != 0:
        put(frame, entry, ITEMS + 1, i8(second)[VALUES] if reads & 2 else frame[NONE])
    put(frame, entry, ITEMS + size - 1, i8(first)[VALUES] if reads & 4 else frame[NONE])
    return entry


@typed
def recorded(frame, tape, row_at, first, second, result, bits, length, itemsize):
    """Write a result over the target and record that; 0 with an exception set."""
    one = i8(first)
    q = 0
    p = code_of(frame, tape, first)
    if second != 0:
        q = code_of(frame, tape, second)
        if q == 0 and i8(second)[PLACE] != 0:
            return 0
    entry = kept(frame, row_at, first, second, itemsize)
    if entry == 0:
        return 0
    word = (i8(row_at)[WORD] | bits) & ~(SAVES if entry == frame[NONE] else 0)
    word |= SINGLE if itemsize == NARROW_SIZE else 0
    copy(i8(one[VALUES])[ARRAY_DATA], i8(result)[ARRAY_DATA], itemsize * count_of(result))
    done = counted(frame, one[VALUES])
    if done:
        done = move(frame, tape, one[THING], word, p, q, 0, one[KIND], length, entry)
    call1(frame[DECREF], entry)
    return done


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
            if line == 0:
                return 0
            if i8(line)[SHAPE] != one[KIND] or i8(line)[LINE_MORE]:
                return REFUSED
            bits, length = i8(line)[LINE_BITS], i8(line)[LINE_AUX]
    array = one[VALUES]
    result = floats_of(frame, itemsize, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE])
    if result == 0:
        return 0
    if not compute(frame, row_at, first, second, result, bits, length, itemsize):
        call1(frame[DECREF], result)
        return REFUSED
    if listening and places != 0:
        done = recorded(frame, tape, row_at, first, second, result, bits, length, itemsize)
    else:
        copy(i8(array)[ARRAY_DATA], i8(result)[ARRAY_DATA], itemsize * count_of(array))
        done = counted(frame, array)
    call1(frame[DECREF], result)
    if done == 0:
        return 0
    call1(frame[INCREF], one[THING])
    return one[THING]
