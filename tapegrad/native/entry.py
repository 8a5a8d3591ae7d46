"""The entry of native operations on small Tensors, from the call to the record.

CPython calls `call` for an operator or a method (`native.install` sees to that), with the
interpreter's lock held throughout.  It reads Tensors and the tape where CPython keeps their slots,
computes by the loops of NumPy's ufuncs, and leaves behind what `dispatch.fast_path` would.
Whatever is out of the ordinary is refused before anything has changed, and goes to the operation's
function in Python.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call1, call3, call4, f4, f8, i4, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED, ALIGNED_IN_C_ORDER, SINGLE
from tapegrad.native.abi import (
    ALONG,
    AUX,
    BITS,
    BOOL,
    CALL,
    CHANGING,
    DIVIDES,
    FROM_LONG,
    LEARN_PAIR,
    LEARN_PRODUCT,
    LEARN_TOTAL,
    LOOP,
    MATMUL,
    MORE,
    MOVING,
    NARROW_LINE,
    NARROW_PRODUCT_DATA,
    NARROW_PRODUCT_LOOP,
    NARROW_STEPS,
    NARROW_SUM_DATA,
    NARROW_SUM_LOOP,
    NARROW_SUM_START,
    NARROW_ZERO,
    NO_NUMBER,
    NONE,
    OTHERWISE,
    PAIRS,
    PRODUCT_DATA,
    PRODUCT_LOOP,
    PRODUCTS,
    ROW,
    ROWS,
    SHAPE,
    STEPS,
    SUM_DATA,
    SUM_LOOP,
    SUM_START,
    T_SHAPE,
    THREE,
    TOTAL,
    TOTALS,
    TRUTH,
    VIEWED,
    WORD,
    ZERO,
)
from tapegrad.native.append import completed, kept
from tapegrad.native.execute_axis import along
from tapegrad.native.execute_index import moved
from tapegrad.native.execute_inplace import change
from tapegrad.native.execute_ternary import three
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_SHAPE,
    FIRST_CLASS,
    KIND,
    LARGE_SIZE,
    NARROW_SIZE,
    NDIM,
    OPERAND,
    PLACE,
    REFUSED,
    SECOND_CLASS,
    STRIDES,
    THING,
    VALUES,
    array_of,
    count_of,
    decref,
    floats_of,
    incref,
    let_go,
    line_of,
    line_of_shapes,
    next_of,
    number,
    operands,
    recording,
    tape_of_thread,
    tuple_of,
    unexceptional,
)
from tapegrad.native.to_large import large
from tapegrad.native.ufunc_loops import compute
from tapegrad.native.view_ops import viewed
from tapegrad.tape.tape import NARROW, SAVES
from tapegrad.tape.tape import SCALAR as AS_SCALAR


@typed
def elementwise(frame, tape, row_at, first, second, itemsize):
    """An elementwise operation of one operand or two."""
    record = recording(frame, tape)
    if record == REFUSED:
        return REFUSED
    like, shape, bits, length = first, i8(first)[KIND], 0, 0
    places = i8(first)[PLACE]
    if second != 0:
        other = i8(second)[KIND]
        places |= i8(second)[PLACE]
        if shape == other:
            if i8(first)[THING] == 0:
                like = second
        elif other == 0:
            bits = AS_SCALAR << SECOND_CLASS
        elif shape == 0:
            bits = AS_SCALAR << FIRST_CLASS
            like = second
            shape = other
        else:
            line = line_of_shapes(frame, frame[PAIRS], frame[LEARN_PAIR], first, second, itemsize)
            if line == 0 or line == REFUSED:
                return line
            shape, bits, length = i8(line)[SHAPE], i8(line)[BITS], i8(line)[AUX]
            if shape < 0:
                return REFUSED
            if i8(line)[MORE] != 0:
                like = second
    truth = i8(row_at)[TRUTH]
    array = i8(like)[VALUES]
    ndim, lengths = i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE]
    if truth:
        result = array_of(frame, frame[BOOL], ndim, lengths)
    else:
        result = floats_of(frame, itemsize, ndim, lengths)
    if result == 0:
        return 0
    if not compute(frame, row_at, first, second, result, bits, length, itemsize):
        decref(frame, result)
        return REFUSED
    tracked = 1 if record and places != 0 and not truth else 0
    shape_at = frame[NO_NUMBER] if truth else i8(i8(like)[THING])[frame[T_SHAPE]]
    incref(shape_at)
    entry, token = frame[NONE], next_of(frame, tape)
    if tracked:
        entry = kept(frame, row_at, first, second, result)
    else:
        incref(entry)
    word = (i8(row_at)[WORD] | bits) & ~(SAVES if entry == frame[NONE] else 0)
    word |= SINGLE if itemsize == NARROW_SIZE else 0
    return completed(
        frame, tape, tracked, first, second, 0, word, shape, length, shape_at, entry, result, token
    )


@typed
def multiplied(frame, a, b, itemsize):
    """The product of two arrays; 0 with an exception set, or REFUSED: one of arithmetic came about.

    NumPy's loop takes the lengths of one product and the steps along each dimension; a vector has
    one row, or one column.
    """
    lengths, size, paces = room_i8(2), room_i8(4), room_i8(9)
    of_a, of_b, at_a, at_b = i8(a)[ARRAY_SHAPE], i8(b)[ARRAY_SHAPE], i8(a)[STRIDES], i8(b)[STRIDES]
    rows, columns, ndim = 1, 1, 0
    for k in range(9):
        paces[k] = 0
    inner = i8(of_b)[0]
    paces[4], paces[5] = i8(at_a)[i4(a + NDIM)[0] - 1], i8(at_b)[0]
    if i4(a + NDIM)[0] == 2:
        rows = lengths[ndim] = i8(of_a)[0]
        paces[3] = i8(at_a)[0]
        ndim += 1
    if i4(b + NDIM)[0] == 2:
        columns = lengths[ndim] = i8(of_b)[1]
        paces[6] = i8(at_b)[1]
        ndim += 1
    if rows * inner * columns == 0:
        return REFUSED
    result = floats_of(frame, itemsize, ndim, address(lengths))
    if result == 0:
        return 0
    paces[7], paces[8] = itemsize * columns, itemsize
    size[0], size[1], size[2], size[3] = 1, rows, inner, columns
    arguments = room_i8(3)
    arguments[0], arguments[1] = i8(a)[ARRAY_DATA], i8(b)[ARRAY_DATA]
    arguments[2] = i8(result)[ARRAY_DATA]
    loop, loop_data = frame[PRODUCT_LOOP], frame[PRODUCT_DATA]
    if itemsize == NARROW_SIZE:
        loop, loop_data = frame[NARROW_PRODUCT_LOOP], frame[NARROW_PRODUCT_DATA]
    call4(loop, address(arguments), address(size), address(paces), loop_data)
    return unexceptional(frame, result)


@typed
def product(frame, tape, row_at, first, second, itemsize):
    """The product of two matrices or vectors."""
    record = recording(frame, tape)
    if record == REFUSED or i8(first)[THING] == 0 or i8(second)[THING] == 0:
        return REFUSED
    line = line_of_shapes(frame, frame[PRODUCTS], frame[LEARN_PRODUCT], first, second, itemsize)
    if line == 0 or line == REFUSED:
        return line
    shape, word = i8(line)[SHAPE], i8(row_at)[WORD] | i8(line)[BITS]
    if shape < 0:
        return REFUSED
    aux, static = i8(line)[AUX], i8(line)[MORE]
    a, b = i8(first)[VALUES], i8(second)[VALUES]
    result = multiplied(frame, a, b, itemsize)
    if result == 0 or result == REFUSED:
        return result
    p, q = i8(first)[PLACE], i8(second)[PLACE]
    tracked = 1 if record and (p != 0 or q != 0) else 0
    entry, token = frame[NONE], next_of(frame, tape)
    if tracked:
        left, right = a if q != 0 else frame[NONE], b if p != 0 else frame[NONE]
        entry = tuple_of(frame, 4, left, right, frame[NONE], static, 0)
    else:
        incref(entry)
    narrow = itemsize == NARROW_SIZE
    word |= SINGLE if narrow else 0
    shape_at = call1(frame[FROM_LONG], NARROW - shape if narrow else shape)
    return completed(
        frame, tape, tracked, first, second, 0, word, shape, aux, shape_at, entry, result, token
    )


@typed
def total(frame, tape, row_at, code, first, itemsize):
    """The sum, or the mean, of all elements."""
    record = recording(frame, tape)
    array, narrow = i8(first)[VALUES], itemsize == NARROW_SIZE
    count = count_of(array)
    if record == REFUSED or count == 0:
        return REFUSED
    code_at = call1(frame[FROM_LONG], code)
    if code_at == 0:
        return 0
    shape_at = i8(i8(first)[THING])[frame[T_SHAPE]]
    kind = i8(first)[KIND] | (NARROW_LINE if narrow else 0)
    line = line_of(frame, frame[TOTALS], frame[LEARN_TOTAL], code, kind, code_at, shape_at)
    decref(frame, code_at)
    if line == 0 or line == REFUSED:
        return line
    result = floats_of(frame, itemsize, 0, 0)
    if result == 0:
        return 0
    arguments, paces, size = room_i8(3), room_i8(3), room_i8(1)
    at = i8(result)[ARRAY_DATA]
    arguments[0], arguments[1], arguments[2] = at, i8(array)[ARRAY_DATA], at
    paces[0], paces[1], paces[2] = 0, itemsize, 0
    size[0] = count
    if narrow:
        i4(at)[0] = frame[NARROW_SUM_START]
        loop, loop_data = frame[NARROW_SUM_LOOP], frame[NARROW_SUM_DATA]
    else:
        i8(at)[0] = frame[SUM_START]
        loop, loop_data = frame[SUM_LOOP], frame[SUM_DATA]
    call4(loop, address(arguments), address(size), address(paces), loop_data)
    if i8(row_at)[DIVIDES]:
        if narrow:
            f4(at)[0] /= count
        else:
            f8(at)[0] /= count
    if unexceptional(frame, result) == REFUSED:
        return REFUSED
    tracked = 1 if record and i8(first)[PLACE] != 0 else 0
    entry = i8(line)[MORE] if tracked else frame[NONE]
    incref(entry)
    number_at = frame[NARROW_ZERO if narrow else ZERO]
    incref(number_at)
    return completed(
        frame, tape, tracked, first, 0, 0, i8(line)[BITS], 0, i8(line)[AUX], number_at, entry,
        result, next_of(frame, tape),
    )  # fmt: skip


@typed
def otherwise(frame, row_at, count, a, b, c):
    """Hand a call over to the operation's function in Python."""
    arguments = tuple_of(frame, count, a, b, c, 0, 0)
    if arguments == 0:
        return 0
    found = call3(frame[CALL], i8(row_at)[OTHERWISE], arguments, 0)
    decref(frame, arguments)
    return found


@typed
def or_none(frame, found):
    """What was found; None where it was refused, and Python has to see to it."""
    if found != REFUSED:
        return found
    incref(frame[NONE])
    return frame[NONE]


@typed
def changing(frame, tape, target, other, code):
    """An operation in place, named by its code: the target, 0, or None where it is refused."""
    count, given, words = 1 if other == frame[NONE] else 2, room_i8(2), room_i8(8)
    given[0], given[1] = target, other
    first, found = address(words), REFUSED
    second = first + 8 * OPERAND if count == 2 else 0
    size = operands(frame, tape, address(given), 0, count, first, ALIGNED_IN_C_ORDER)
    if size == LARGE_SIZE and i8(first)[KIND] < 0:
        found = large(frame, CHANGING, code, first, second, first)
    elif size != 0 and size != LARGE_SIZE and i8(first)[THING] != 0:
        found = change(frame, tape, frame[ROWS] + code * ROW * 8, first, second, size)
    let_go(frame, 0, count, first)
    return or_none(frame, found)


def call(frame_at, kind, code, a, b):
    """An operation on Python objects (`b` is 0 where there is one): a new reference, or 0."""
    frame = i8(frame_at)
    row_at = frame[ROWS] + code * ROW * 8
    tape = tape_of_thread(frame)
    if tape == 0:
        return 0
    if kind == VIEWED or kind == ALONG:
        given = i8(a)
        if kind == VIEWED:
            return viewed(frame, tape, given[0], given[1], given[2])
        found = along(frame, tape, given[0], given[1])
        return or_none(frame, found)
    if kind == MOVING:
        given = i8(a)
        found = moved(frame, tape, given[0], given[1], given[2], given[3])
        return or_none(frame, found)
    if kind == CHANGING:
        given = i8(a)
        return changing(frame, tape, given[0], given[1], number(frame, given[2]))
    if kind == THREE:
        given = i8(a)
        found = three(frame, tape, row_at, code, a)
        if found == REFUSED:
            return otherwise(frame, row_at, 3, given[0], given[1], given[2])
        return found
    count, given, words = 1 if b == 0 else 2, room_i8(2), room_i8(8)
    given[0], given[1] = a, b
    first, second = address(words), address(words) + 8 * OPERAND if b != 0 else 0
    lies, found = ALIGNED if kind == MATMUL else ALIGNED_IN_C_ORDER, REFUSED
    itemsize = operands(frame, tape, address(given), 0, count, first, lies)
    if itemsize == LARGE_SIZE:
        wide = first if i8(first)[KIND] < 0 else second
        found = large(frame, kind, code, first, second, wide)
    elif itemsize:
        if kind == MATMUL:
            found = product(frame, tape, row_at, first, second, itemsize)
        elif kind == TOTAL:
            found = total(frame, tape, row_at, code, first, itemsize)
        elif i8(row_at)[(NARROW_STEPS if itemsize == NARROW_SIZE else STEPS) + LOOP] != 0:
            found = elementwise(frame, tape, row_at, first, second, itemsize)
    let_go(frame, 0, count, first)
    if found == REFUSED:
        return otherwise(frame, row_at, count, a, b, 0)
    return found
