"""The entry of native operations on small Tensors, from the call to the record.

CPython calls `call` for an operator or a method (`native.install` sees to that), with the
interpreter's lock held throughout.  It reads Tensors and the tape where CPython keeps their slots,
computes by the loops of NumPy's ufuncs, and leaves behind what `dispatch.fast_path` would.
Whatever is out of the ordinary is refused before anything has changed, and goes to the operation's
function in Python.
"""

from tapegrad.kernels.memory import address, call1, call3, call4, f4, f8, i4, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED, ALIGNED_IN_C_ORDER, SINGLE
from tapegrad.native.abi import (
    AXIS,
    CHANGE,
    F4_KEY,
    INDEX,
    MATMUL,
    OPERAND_PAIR,
    REDUCTION,
    TERNARY,
    VIEW,
    Frame,
    Operand,
    OpRow,
    ShapeLine,
)
from tapegrad.native.append import new_tensor, saved_values
from tapegrad.native.execute_axis import axis_op
from tapegrad.native.execute_index import index_op
from tapegrad.native.execute_inplace import inplace
from tapegrad.native.execute_ternary import ternary
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_SHAPE,
    F4_SIZE,
    FIRST_CLASS,
    LARGE_F8,
    NDIM,
    REFUSED,
    SECOND_CLASS,
    STRIDES,
    array_of,
    check_exceptions,
    count_of,
    decref,
    floats_of,
    hold_next,
    incref,
    int_value,
    line_of,
    line_of_shapes,
    read_operands,
    recording,
    release_operands,
    tape_of_thread,
    tuple_of,
    typed,
)
from tapegrad.native.to_large import large
from tapegrad.native.ufunc_loops import compute, has_loop
from tapegrad.native.view_ops import view_op
from tapegrad.tape.tape import NARROW, SAVES
from tapegrad.tape.tape import SCALAR as AS_SCALAR


@typed
def elementwise(frame, tape, row_at, first, second, itemsize):
    """An elementwise operation of one operand or two."""
    record = recording(frame, tape)
    if record == REFUSED:
        return REFUSED
    like, shape, bits, length = first, Operand(first).shape, 0, 0
    places = Operand(first).position
    if second != 0:
        other = Operand(second).shape
        places |= Operand(second).position
        if shape == other:
            if Operand(first).tensor == 0:
                like = second
        elif other == 0:
            bits = AS_SCALAR << SECOND_CLASS
        elif shape == 0:
            bits = AS_SCALAR << FIRST_CLASS
            like = second
            shape = other
        else:
            line = line_of_shapes(
                frame, frame.broadcasts, frame.learn_broadcast, first, second, itemsize
            )
            if line == 0 or line == REFUSED:
                return line
            shape, bits, length = ShapeLine(line).shape, ShapeLine(line).bits, ShapeLine(line).aux
            if shape < 0:
                return REFUSED
            if ShapeLine(line).extra != 0:
                like = second
    is_boolean = OpRow(row_at).is_boolean
    array = Operand(like).array
    ndim, lengths = i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE]
    if is_boolean:
        result = array_of(frame, frame.bool_dtype, ndim, lengths)
    else:
        result = floats_of(frame, itemsize, ndim, lengths)
    if result == 0:
        return 0
    if not compute(frame, row_at, first, second, result, bits, length, itemsize):
        decref(frame, result)
        return REFUSED
    tracked = 1 if record and places != 0 and not is_boolean else 0
    shape_at = frame.minus_one if is_boolean else i8(Operand(like).tensor)[frame.t_s]
    incref(shape_at)
    entry, token = frame.none, hold_next(frame, tape)
    if tracked:
        entry = saved_values(frame, row_at, first, second, result)
    else:
        incref(entry)
    word = (OpRow(row_at).word | bits) & ~(SAVES if entry == frame.none else 0)
    word |= SINGLE if itemsize == F4_SIZE else 0
    return new_tensor(
        frame, tape, tracked, first, second, 0, word, shape, length, shape_at, entry, result, token
    )


@typed
def matmul_arrays(frame, a, b, itemsize):
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
    loop, loop_data = frame.matmul_loop, frame.matmul_data
    if itemsize == F4_SIZE:
        loop, loop_data = frame.matmul_loop_f4, frame.matmul_data_f4
    call4(loop, address(arguments), address(size), address(paces), loop_data)
    return check_exceptions(frame, result)


@typed
def matmul(frame, tape, row_at, first, second, itemsize):
    """The product of two matrices or vectors."""
    record = recording(frame, tape)
    if record == REFUSED or Operand(first).tensor == 0 or Operand(second).tensor == 0:
        return REFUSED
    line = line_of_shapes(frame, frame.matmuls, frame.learn_matmul, first, second, itemsize)
    if line == 0 or line == REFUSED:
        return line
    shape, word = ShapeLine(line).shape, OpRow(row_at).word | ShapeLine(line).bits
    if shape < 0:
        return REFUSED
    aux, static = ShapeLine(line).aux, ShapeLine(line).extra
    a, b = Operand(first).array, Operand(second).array
    result = matmul_arrays(frame, a, b, itemsize)
    if result == 0 or result == REFUSED:
        return result
    p, q = Operand(first).position, Operand(second).position
    tracked = 1 if record and (p != 0 or q != 0) else 0
    entry, token = frame.none, hold_next(frame, tape)
    if tracked:
        left, right = a if q != 0 else frame.none, b if p != 0 else frame.none
        entry = tuple_of(frame, 4, left, right, frame.none, static, 0)
    else:
        incref(entry)
    is_f4 = itemsize == F4_SIZE
    word |= SINGLE if is_f4 else 0
    shape_at = call1(frame.PyLong_FromLongLong, NARROW - shape if is_f4 else shape)
    return new_tensor(
        frame, tape, tracked, first, second, 0, word, shape, aux, shape_at, entry, result, token
    )


@typed
def reduction(frame, tape, row_at, code, first, itemsize):
    """The sum, or the mean, of all elements."""
    record = recording(frame, tape)
    array, is_f4 = Operand(first).array, itemsize == F4_SIZE
    count = count_of(array)
    if record == REFUSED or count == 0:
        return REFUSED
    code_at = call1(frame.PyLong_FromLongLong, code)
    if code_at == 0:
        return 0
    shape_at = i8(Operand(first).tensor)[frame.t_s]
    kind = Operand(first).shape | (F4_KEY if is_f4 else 0)
    line = line_of(frame, frame.reductions, frame.learn_reduction, code, kind, code_at, shape_at)
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
    if is_f4:
        i4(at)[0] = frame.sum_start_f4
        loop, loop_data = frame.sum_loop_f4, frame.sum_data_f4
    else:
        i8(at)[0] = frame.sum_start
        loop, loop_data = frame.sum_loop, frame.sum_data
    call4(loop, address(arguments), address(size), address(paces), loop_data)
    if OpRow(row_at).is_mean:
        if is_f4:
            f4(at)[0] /= count
        else:
            f8(at)[0] /= count
    if check_exceptions(frame, result) == REFUSED:
        return REFUSED
    tracked = 1 if record and Operand(first).position != 0 else 0
    entry = ShapeLine(line).extra if tracked else frame.none
    incref(entry)
    number_at = frame.zero_f4 if is_f4 else frame.zero
    incref(number_at)
    word, aux = ShapeLine(line).bits, ShapeLine(line).aux
    return new_tensor(
        frame, tape, tracked, first, 0, 0, word, 0, aux, number_at, entry, result,
        hold_next(frame, tape),
    )  # fmt: skip


@typed
def call_fallback(frame, row_at, count, a, b, c):
    """Hand a call over to the operation's function in Python."""
    arguments = tuple_of(frame, count, a, b, c, 0, 0)
    if arguments == 0:
        return 0
    found = call3(frame.PyObject_Call, OpRow(row_at).fallback, arguments, 0)
    decref(frame, arguments)
    return found


@typed
def or_none(frame, found):
    """What was found; None where it was refused, and Python has to see to it."""
    if found != REFUSED:
        return found
    incref(frame.none)
    return frame.none


@typed
def inplace_op(frame, tape, target, other, code):
    """An operation in place, named by its code: the target, 0, or None where it is refused."""
    count, given, found = 1 if other == frame.none else 2, room_i8(2), REFUSED
    given[0], given[1] = target, other
    first = address(room_i8(OPERAND_PAIR))
    second = address(Operand(first)[1]) if count == 2 else 0
    size = read_operands(frame, tape, address(given), 0, count, first, ALIGNED_IN_C_ORDER)
    if size == LARGE_F8 and Operand(first).shape < 0:
        found = large(frame, CHANGE, code, first, second, first)
    elif size != 0 and size != LARGE_F8 and Operand(first).tensor != 0:
        found = inplace(frame, tape, address(OpRow(frame.op_rows)[code]), first, second, size)
    release_operands(frame, 0, count, first)
    return or_none(frame, found)


def call(frame_at, kind, code, a, b):
    """An operation on Python objects (`b` is 0 where there is one): a new reference, or 0."""
    frame = Frame(frame_at)
    row_at = address(OpRow(frame.op_rows)[code])
    tape = tape_of_thread(frame)
    if tape == 0:
        return 0
    if kind == VIEW or kind == AXIS:
        given = i8(a)
        if kind == VIEW:
            return view_op(frame, tape, given[0], given[1], given[2])
        found = axis_op(frame, tape, given[0], given[1])
        return or_none(frame, found)
    if kind == INDEX:
        given = i8(a)
        found = index_op(frame, tape, given[0], given[1], given[2], given[3])
        return or_none(frame, found)
    if kind == CHANGE:
        given = i8(a)
        return inplace_op(frame, tape, given[0], given[1], int_value(frame, given[2]))
    if kind == TERNARY:
        given = i8(a)
        found = ternary(frame, tape, row_at, code, a)
        if found == REFUSED:
            return call_fallback(frame, row_at, 3, given[0], given[1], given[2])
        return found
    count, given, first = 1 if b == 0 else 2, room_i8(2), address(room_i8(OPERAND_PAIR))
    given[0], given[1] = a, b
    second = address(Operand(first)[1]) if b != 0 else 0
    flags, found = ALIGNED if kind == MATMUL else ALIGNED_IN_C_ORDER, REFUSED
    itemsize = read_operands(frame, tape, address(given), 0, count, first, flags)
    if itemsize == LARGE_F8:
        call_large = first if Operand(first).shape < 0 else second
        found = large(frame, kind, code, first, second, call_large)
    elif itemsize:
        if kind == MATMUL:
            found = matmul(frame, tape, row_at, first, second, itemsize)
        elif kind == REDUCTION:
            found = reduction(frame, tape, row_at, code, first, itemsize)
        elif has_loop(row_at, itemsize):
            found = elementwise(frame, tape, row_at, first, second, itemsize)
    release_operands(frame, 0, count, first)
    if found == REFUSED:
        return call_fallback(frame, row_at, count, a, b, 0)
    return found
