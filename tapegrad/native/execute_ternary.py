"""Elementwise operations of three operands, and their records.

Each operand has the shape of the result, or is one number.  The loops are the library's own.
"""

from tapegrad.kernels.memory import address, call8, i4, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED_IN_C_ORDER, SINGLE
from tapegrad.native.abi import OPERAND_TRIPLE, TERNARY, UNREAD, Operand, OpRow
from tapegrad.native.append import new_tensor
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_SHAPE,
    F4_SIZE,
    FIRST_CLASS,
    FLAGS,
    LARGE_F8,
    NDIM,
    REFUSED,
    TYPE,
    check_exceptions,
    count_of,
    decref,
    floats_of,
    hold_next,
    incref,
    int_value,
    on_tape,
    read_operands,
    recording,
    same_shape,
    tuple_of,
    typed,
)
from tapegrad.native.to_large import large
from tapegrad.tape.tape import SAVES
from tapegrad.tape.tape import SCALAR as AS_SCALAR


@typed
def read_index(frame, tape, obj, dtype, into):
    """Read a Tensor of truth values or places, a constant; 0 if it is none for this path."""
    found = Operand(into)
    found.tensor, found.array = UNREAD, 0
    if i8(obj)[TYPE] != frame.tensor_type or not on_tape(frame, tape, obj):
        return 0
    array = i8(obj)[frame.t_a]
    flags = i4(array + FLAGS)[0]
    if i8(array)[ARRAY_DTYPE] != dtype or flags & ALIGNED_IN_C_ORDER != ALIGNED_IN_C_ORDER:
        return 0
    found.array, found.shape = array, 0
    found.position = int_value(frame, i8(obj)[frame.t_pos])
    found.tensor = obj
    return 1 if found.position == 0 else 0


@typed
def pattern(like, three_at):
    """Which operands are one number where the result is more (bits), or REFUSED."""
    whole = Operand(like).array
    count, found = count_of(whole), 0
    for k in range(3):
        array = Operand(three_at)[k].array
        if i4(array + NDIM)[0] == 0:
            found |= (1 if count != 1 else 0) << k
        elif not same_shape(array, whole):
            return REFUSED
    return found if count else REFUSED


@typed
def computed(frame, row_at, three_at, like, scalars, itemsize):
    """The result; 0 with an exception set, or REFUSED."""
    row = OpRow(row_at)
    loop = row.ternary_f4[scalars] if itemsize == F4_SIZE else row.ternary[scalars]
    if loop == 0:
        return REFUSED
    whole, three = Operand(like).array, Operand(three_at)
    result = floats_of(frame, itemsize, i4(whole + NDIM)[0], i8(whole)[ARRAY_SHAPE])
    if result == 0:
        return 0
    a, b, c = (
        three.array,
        three[1].array,
        three[2].array,
    )
    call8(
        loop, count_of(whole), i8(result)[ARRAY_DATA], i8(a)[ARRAY_DATA], i8(b)[ARRAY_DATA],
        i8(c)[ARRAY_DATA], 0, 0, 0,
    )  # fmt: skip
    return check_exceptions(frame, result)


@typed
def saved_values(frame, row_at, three_at, result):
    """What the record keeps: None, if the formulas of what is tracked read nothing."""
    row, three = OpRow(row_at), Operand(three_at)
    reads = 0
    for k in range(3):
        if three[k].position != 0:
            reads |= row.reads[k]
    if reads == 0:
        incref(frame.none)
        return frame.none
    a = three.array if reads & 1 else frame.none
    b = three[1].array if reads & 2 else frame.none
    c = three[2].array if reads & 4 else frame.none
    return tuple_of(frame, 4, a, b, c, result if reads & 8 else frame.none, 0)


@typed
def one_like_the_result(row_at, three_at):
    """The first Tensor that has dimensions, or any; 0 if there is none but a condition."""
    found = 0
    for k in range(1 if OpRow(row_at).has_condition else 0, 3):
        one = address(Operand(three_at)[k])
        if Operand(one).tensor != 0 and (found == 0 or i4(Operand(found).array + NDIM)[0] == 0):
            found = one
    return found


@typed
def finish_ternary(frame, tape, tracked, row_at, three_at, like, scalars, shape, result):
    """The Tensor of a result, which it takes over; see `append.new_tensor`."""
    bits, entry, token = 0, frame.none, hold_next(frame, tape)
    for k in range(3):
        bits |= (AS_SCALAR if scalars >> k & 1 else 0) << FIRST_CLASS + 2 * k
    if tracked:
        entry = saved_values(frame, row_at, three_at, result)
    else:
        incref(entry)
    shape_at = i8(Operand(like).tensor)[frame.t_s]
    incref(shape_at)
    second, third = address(Operand(three_at)[1]), address(Operand(three_at)[2])
    word = (OpRow(row_at).word | bits) & ~(SAVES if entry == frame.none else 0)
    word |= SINGLE if i8(result)[ARRAY_DTYPE] == frame.float32 else 0
    return new_tensor(
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
        places |= Operand(three_at)[k].position
    return 1 if places != 0 else 0


@typed
def ternary_op(frame, tape, row_at, code, three_at, itemsize):
    """The Tensor of a result; 0 with an exception set, or REFUSED."""
    record = recording(frame, tape)
    like = one_like_the_result(row_at, three_at)
    if record == REFUSED or like == 0:
        return REFUSED
    if itemsize == LARGE_F8:
        return large(frame, TERNARY, code, three_at, like, like)
    scalars = pattern(like, three_at)
    if scalars == REFUSED:
        return REFUSED
    result = computed(frame, row_at, three_at, like, scalars, itemsize)
    if result == 0 or result == REFUSED:
        return result
    tracked = 1 if record and tracks(three_at) else 0
    shape = Operand(like).shape
    return finish_ternary(frame, tape, tracked, row_at, three_at, like, scalars, shape, result)


@typed
def ternary(frame, tape, row_at, code, given_at):
    """An operation on three Python objects: a new reference, 0 or REFUSED.

    The arrays are held until it is done.
    """
    three_at, found = address(room_i8(OPERAND_TRIPLE)), REFUSED
    three = Operand(three_at)
    begin = 1 if OpRow(row_at).has_condition else 0
    if begin and not read_index(frame, tape, i8(given_at)[0], frame.bool_dtype, three_at):
        return REFUSED
    itemsize = read_operands(frame, tape, given_at, begin, 3, three_at, ALIGNED_IN_C_ORDER)
    for k in range(3):
        if three[k].tensor > UNREAD:
            incref(three[k].array)
    if itemsize:
        found = ternary_op(frame, tape, row_at, code, three_at, itemsize)
    for k in range(3):
        if three[k].array != 0:
            decref(frame, three[k].array)
    return found
