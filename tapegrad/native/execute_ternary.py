"""Elementwise operations of three operands, and their records.

Each operand has the shape of the result, or is one number.  The loops are the library's own.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call8, i4, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED_IN_C_ORDER, SINGLE
from tapegrad.native.abi import (
    BOOL,
    CHOOSES,
    F4,
    NARROW_STEPS,
    NONE,
    READS,
    STEPS,
    T_ARRAY,
    T_POS,
    T_SHAPE,
    TENSOR,
    THREE,
    WORD,
)
from tapegrad.native.append import completed
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_SHAPE,
    FIRST_CLASS,
    FLAGS,
    KIND,
    LARGE_SIZE,
    NARROW_SIZE,
    NDIM,
    OPERAND,
    PLACE,
    REFUSED,
    THING,
    TYPE,
    UNREAD,
    VALUES,
    count_of,
    decref,
    floats_of,
    incref,
    next_of,
    number,
    operands,
    recording,
    same_shape,
    stands,
    tuple_of,
    unexceptional,
)
from tapegrad.native.to_large import large
from tapegrad.tape.tape import SAVES
from tapegrad.tape.tape import SCALAR as AS_SCALAR


@typed
def naming(frame, tape, thing, dtype, into):
    """Read a Tensor of truth values or places, a constant; 0 if it is none for this path."""
    found = i8(into)
    found[THING], found[VALUES] = UNREAD, 0
    if i8(thing)[TYPE] != frame[TENSOR] or not stands(frame, tape, thing):
        return 0
    array = i8(thing)[frame[T_ARRAY]]
    flags = i4(array + FLAGS)[0]
    if i8(array)[ARRAY_DTYPE] != dtype or flags & ALIGNED_IN_C_ORDER != ALIGNED_IN_C_ORDER:
        return 0
    found[VALUES], found[KIND] = array, 0
    found[PLACE] = number(frame, i8(thing)[frame[T_POS]])
    found[THING] = thing
    return 1 if found[PLACE] == 0 else 0


@typed
def pattern(like, three_at):
    """Which operands are one number where the result is more (bits), or REFUSED."""
    whole = i8(like)[VALUES]
    count, found = count_of(whole), 0
    for k in range(3):
        array = i8(three_at)[k * OPERAND + VALUES]
        if i4(array + NDIM)[0] == 0:
            found |= (1 if count != 1 else 0) << k
        elif not same_shape(array, whole):
            return REFUSED
    return found if count else REFUSED


@typed
def computed(frame, row_at, three_at, like, scalars, itemsize):
    """The result; 0 with an exception set, or REFUSED."""
    loop = i8(row_at)[(NARROW_STEPS if itemsize == NARROW_SIZE else STEPS) + scalars]
    if loop == 0:
        return REFUSED
    whole, three = i8(like)[VALUES], i8(three_at)
    result = floats_of(frame, itemsize, i4(whole + NDIM)[0], i8(whole)[ARRAY_SHAPE])
    if result == 0:
        return 0
    a, b, c = three[VALUES], three[OPERAND + VALUES], three[2 * OPERAND + VALUES]
    call8(
        loop, count_of(whole), i8(result)[ARRAY_DATA], i8(a)[ARRAY_DATA], i8(b)[ARRAY_DATA],
        i8(c)[ARRAY_DATA], 0, 0, 0,
    )  # fmt: skip
    return unexceptional(frame, result)


@typed
def kept(frame, row_at, three_at, result):
    """What the record keeps: None, if the formulas of what is tracked read nothing."""
    row, three = i8(row_at), i8(three_at)
    reads = 0
    for k in range(3):
        if three[k * OPERAND + PLACE] != 0:
            reads |= row[READS + k]
    if reads == 0:
        incref(frame[NONE])
        return frame[NONE]
    a = three[VALUES] if reads & 1 else frame[NONE]
    b = three[OPERAND + VALUES] if reads & 2 else frame[NONE]
    c = three[2 * OPERAND + VALUES] if reads & 4 else frame[NONE]
    return tuple_of(frame, 4, a, b, c, result if reads & 8 else frame[NONE], 0)


@typed
def one_like_the_result(row_at, three_at):
    """The first Tensor that has dimensions, or any; 0 if there is none but a condition."""
    found = 0
    for k in range(1 if i8(row_at)[CHOOSES] else 0, 3):
        one = three_at + 8 * OPERAND * k
        if i8(one)[THING] != 0 and (found == 0 or i4(i8(found)[VALUES] + NDIM)[0] == 0):
            found = one
    return found


@typed
def noted(frame, tape, tracked, row_at, three_at, like, scalars, shape, result):
    """The Tensor of a result, which it takes over; see `records.completed`."""
    bits, entry, token = 0, frame[NONE], next_of(frame, tape)
    for k in range(3):
        bits |= (AS_SCALAR if scalars >> k & 1 else 0) << FIRST_CLASS + 2 * k
    if tracked:
        entry = kept(frame, row_at, three_at, result)
    else:
        incref(entry)
    shape_at = i8(i8(like)[THING])[frame[T_SHAPE]]
    incref(shape_at)
    second, third = three_at + 8 * OPERAND, three_at + 16 * OPERAND
    word = (i8(row_at)[WORD] | bits) & ~(SAVES if entry == frame[NONE] else 0)
    word |= SINGLE if i8(result)[ARRAY_DTYPE] == frame[F4] else 0
    return completed(
        frame,
        tape,
        tracked,
        three_at,
        second,
        third,
        word,
        shape,
        0,
        shape_at,
        entry,
        result,
        token,
    )


@typed
def tracks(three_at):
    """Whether an operand is recorded."""
    places = 0
    for k in range(3):
        places |= i8(three_at)[k * OPERAND + PLACE]
    return 1 if places != 0 else 0


@typed
def of_three(frame, tape, row_at, code, three_at, itemsize):
    """The Tensor of a result; 0 with an exception set, or REFUSED."""
    record = recording(frame, tape)
    like = one_like_the_result(row_at, three_at)
    if record == REFUSED or like == 0:
        return REFUSED
    if itemsize == LARGE_SIZE:
        return large(frame, THREE, code, three_at, like, like)
    scalars = pattern(like, three_at)
    if scalars == REFUSED:
        return REFUSED
    result = computed(frame, row_at, three_at, like, scalars, itemsize)
    if result == 0 or result == REFUSED:
        return result
    tracked = 1 if record and tracks(three_at) else 0
    shape = i8(like)[KIND]
    return noted(frame, tape, tracked, row_at, three_at, like, scalars, shape, result)


@typed
def three(frame, tape, row_at, code, given_at):
    """An operation on three Python objects: a new reference, 0 or REFUSED.

    The arrays are held until it is done.
    """
    words = room_i8(12)
    three_at, found = address(words), REFUSED
    begin = 1 if i8(row_at)[CHOOSES] else 0
    if begin and not naming(frame, tape, i8(given_at)[0], frame[BOOL], three_at):
        return REFUSED
    itemsize = operands(frame, tape, given_at, begin, 3, three_at, ALIGNED_IN_C_ORDER)
    for k in range(3):
        if words[k * OPERAND + THING] > UNREAD:
            incref(words[k * OPERAND + VALUES])
    if itemsize:
        found = of_three(frame, tape, row_at, code, three_at, itemsize)
    for k in range(3):
        if words[k * OPERAND + VALUES] != 0:
            decref(frame, words[k * OPERAND + VALUES])
    return found
