"""An elementwise operation of three operands, with its record.

Each operand has the shape of the result, or is one number.  The loops are the library's own.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.layout import ALIGNED_IN_C_ORDER
from tapegrad.kernels.memory import address, call1, call8, i4, i8, room_i8
from tapegrad.kernels.road.frame import (
    BOOL,
    CHOOSES,
    DECREF,
    F8,
    INCREF,
    NEW_TUPLE,
    NONE,
    READS,
    STEPS,
    T_ARRAY,
    T_POS,
    T_SHAPE,
    TENSOR,
    WORD,
)
from tapegrad.kernels.road.objects import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_SHAPE,
    FIRST_CLASS,
    FLAGS,
    ITEMS,
    KIND,
    NDIM,
    PLACE,
    REFUSED,
    THING,
    TYPE,
    VALUES,
    array_of,
    count_of,
    number,
    operand,
    put,
    recording,
    stands,
    unexceptional,
)
from tapegrad.kernels.road.records import completed
from tapegrad.tape import SAVES
from tapegrad.tape import SCALAR as AS_SCALAR

SIZE = 4  # words that describe an operand


@typed
def naming(frame, tape, thing, dtype, into):
    """Read a Tensor of truth values or places, a constant; 0 if it is none for this road."""
    found = i8(into)
    found[THING] = 0
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
def same_shape(a, b):
    """Whether two arrays have one shape."""
    if i4(a + NDIM)[0] != i4(b + NDIM)[0]:
        return 0
    for k in range(i4(a + NDIM)[0]):
        if i8(i8(a)[ARRAY_SHAPE])[k] != i8(i8(b)[ARRAY_SHAPE])[k]:
            return 0
    return 1


@typed
def pattern(like, three_at):
    """Which operands are one number where the result is more (bits), or REFUSED."""
    whole = i8(like)[VALUES]
    count, found = count_of(whole), 0
    for k in range(3):
        array = i8(three_at)[k * SIZE + VALUES]
        if i4(array + NDIM)[0] == 0:
            found |= (1 if count != 1 else 0) << k
        elif not same_shape(array, whole):
            return REFUSED
    return found if count else REFUSED


@typed
def computed(frame, row_at, three_at, like, scalars):
    """The result; 0 with an exception set, or REFUSED."""
    loop = i8(row_at)[STEPS + scalars]
    if loop == 0:
        return REFUSED
    whole, three = i8(like)[VALUES], i8(three_at)
    result = array_of(frame, frame[F8], i4(whole + NDIM)[0], i8(whole)[ARRAY_SHAPE])
    if result == 0:
        return 0
    a, b, c = three[VALUES], three[SIZE + VALUES], three[2 * SIZE + VALUES]
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
        if three[k * SIZE + PLACE] != 0:
            reads |= row[READS + k]
    if reads == 0:
        call1(frame[INCREF], frame[NONE])
        return frame[NONE]
    entry = call1(frame[NEW_TUPLE], 4)
    if entry == 0:
        return 0
    for k in range(3):
        values = three[k * SIZE + VALUES]
        put(frame, entry, ITEMS + k, values if reads >> k & 1 else frame[NONE])
    put(frame, entry, ITEMS + 3, result if reads >> 3 & 1 else frame[NONE])
    return entry


@typed
def one_like_the_result(row_at, three_at):
    """The first Tensor that has dimensions, or any; 0 if there is none but a condition."""
    found = 0
    for k in range(1 if i8(row_at)[CHOOSES] else 0, 3):
        one = three_at + 8 * SIZE * k
        if i8(one)[THING] != 0 and (found == 0 or i4(i8(found)[VALUES] + NDIM)[0] == 0):
            found = one
    return found


@typed
def of_three(frame, tape, row_at, three_at):
    """The Tensor of a result; 0 with an exception set, or REFUSED."""
    record = recording(frame, tape)
    like = one_like_the_result(row_at, three_at)
    if record == REFUSED or like == 0:
        return REFUSED
    scalars = pattern(like, three_at)
    if scalars == REFUSED:
        return REFUSED
    result = computed(frame, row_at, three_at, like, scalars)
    if result == 0 or result == REFUSED:
        return result
    places, bits = 0, 0
    for k in range(3):
        places |= i8(three_at)[k * SIZE + PLACE]
        bits |= (AS_SCALAR if scalars >> k & 1 else 0) << FIRST_CLASS + 2 * k
    tracked = 1 if record and places != 0 else 0
    shape, shape_at = i8(like)[KIND], i8(i8(like)[THING])[frame[T_SHAPE]]
    entry = frame[NONE]
    if tracked:
        entry = kept(frame, row_at, three_at, result)
    else:
        call1(frame[INCREF], entry)
    call1(frame[INCREF], shape_at)
    second, third = three_at + 8 * SIZE, three_at + 16 * SIZE
    word = (i8(row_at)[WORD] | bits) & ~(SAVES if entry == frame[NONE] else 0)
    return completed(
        frame, tape, tracked, three_at, second, third, word, shape, 0, shape_at, entry, result
    )


@typed
def three(frame, tape, row_at, given_at):
    """An operation on three Python objects: a new reference, 0 or REFUSED."""
    words = room_i8(12)
    usable, found = 1, REFUSED
    for k in range(3):
        into = address(words) + 8 * SIZE * k
        i8(into)[THING], i8(into)[VALUES] = 1, 0
        if usable:
            if k == 0 and i8(row_at)[CHOOSES]:
                usable = naming(frame, tape, i8(given_at)[k], frame[BOOL], into)
            else:
                usable = operand(frame, tape, i8(given_at)[k], into, ALIGNED_IN_C_ORDER)
    if usable:
        found = of_three(frame, tape, row_at, address(words))
    for k in range(3):
        if words[k * SIZE + THING] == 0 and words[k * SIZE + VALUES] != 0:
            call1(frame[DECREF], words[k * SIZE + VALUES])
    return found
