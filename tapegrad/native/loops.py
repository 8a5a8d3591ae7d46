"""Run the loops of a plan: NumPy's of ufuncs, sums and products, and the library's kernels."""

from tapegrad.kernels.memory import (
    address,
    call0,
    call1,
    call3,
    call4,
    call8,
    f4,
    f8,
    i4,
    i8,
    room_i8,
)
from tapegrad.kernels.sweep.arena import copy_in_c_order, has_nan, matrix_at
from tapegrad.kernels.sweep.sweep_abi import ALIGNED_IN_C_ORDER, FIELD, FIELD_MASK
from tapegrad.native.abi import (
    FORM,
    GEMM,
    JOIN,
    KERNEL,
    PASSES,
    READ,
    ROWS,
    SUM,
    TRANSFORM,
    UFUNC,
    WRITE,
    FormCall,
    RowTransform,
)
from tapegrad.native.element_loops import run_kernel, run_ufunc
from tapegrad.native.index_loops import read_places, write_places
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_SHAPE,
    C16_SIZE,
    F4_SIZE,
    F8_SIZE,
    FLAGS,
    LOW_HALF,
    NDIM,
    STRIDES,
    count_of,
    decref,
    floats_of,
    typed,
)
from tapegrad.native.row_passes import run_passes
from tapegrad.tape.record_format import COMPLEX_INPUTS, INPUTS_SHIFT

ONE_COMPLEX = 1 << INPUTS_SHIFT  # in the word of a record: the first operand is
UNSURE = -1  # in place of exceptions: Python has to compute it


@typed
def run_sum(frame, operands, plan, result):
    """Add all elements up, and divide the sum if the mean is meant."""
    count, at, to = count_of(operands.array), i8(operands.array)[ARRAY_DATA], i8(result)[ARRAY_DATA]
    is_f4 = plan.itemsize == F4_SIZE
    if plan.loop != 0:
        call8(plan.loop, count, at, to, 0, 0, 0, 0, 0)
    else:
        arguments, paces, size = room_i8(3), room_i8(3), room_i8(1)
        arguments[0], arguments[1], arguments[2] = to, at, to
        along = i4(operands.array + NDIM)[0] == 1
        paces[1] = i8(i8(operands.array)[STRIDES])[0] if along else plan.itemsize
        size[0] = count
        if is_f4:
            i4(to)[0] = frame.sum_start_f4
        else:
            i8(to)[0] = frame.sum_start
        loop = frame.sum_loop_f4 if is_f4 else frame.sum_loop
        data = frame.sum_data_f4 if is_f4 else frame.sum_data
        call4(loop, address(arguments), address(size), address(paces), data)
    if plan.divisor:
        if is_f4:
            f4(to)[0] /= plan.divisor
        else:
            f8(to)[0] /= plan.divisor
    return 0


@typed
def run_gemm(frame, operands, plan, result):
    """Multiply matrices; a vector has one row, or one column.

    NumPy's loop takes how many products there are along one dimension of a batch, the lengths of
    one, and the steps along each dimension.
    """
    a, b, itemsize = operands.array, operands[1].array, plan.itemsize
    rows, columns, batch, along = i4(a + NDIM)[0] - 2, i4(b + NDIM)[0] - 2, 1, 1
    arguments, size, paces = room_i8(3), room_i8(4), room_i8(9)
    of_a, of_b, at_a, at_b = i8(a)[ARRAY_SHAPE], i8(b)[ARRAY_SHAPE], i8(a)[STRIDES], i8(b)[STRIDES]
    size[1], size[2], size[3] = 1, i8(of_b)[max(columns, 0)], 1
    paces[4], paces[5] = i8(at_a)[rows + 1], i8(at_b)[max(columns, 0)]
    if rows >= 0:
        size[1], paces[3] = i8(of_a)[rows], i8(at_a)[rows]
    if columns >= 0:
        size[3], paces[6] = i8(of_b)[columns + 1], i8(at_b)[columns + 1]
    for d in range(max(rows, columns)):
        along = i8(of_a if rows > columns else of_b)[d]
        batch *= along
    if columns <= 0 and i4(a + FLAGS)[0] & ALIGNED_IN_C_ORDER == ALIGNED_IN_C_ORDER:
        # Rows of one matrix.  A single row of each may have had any step.
        size[1], paces[3], batch, along = size[1] * batch, size[2] * itemsize, 1, 1
    each = itemsize * size[1] * size[3]
    paces[0] = i8(at_a)[rows - 1] if rows > 0 else 0
    paces[1] = i8(at_b)[columns - 1] if columns > 0 else 0
    paces[2], paces[7], paces[8] = each, itemsize * size[3], itemsize
    loop, data = frame.matmul_loop, frame.matmul_data
    if itemsize == F4_SIZE:
        loop, data = frame.matmul_loop_f4, frame.matmul_data_f4
    elif itemsize == C16_SIZE:
        loop, data = frame.matmul_loop_c16, frame.matmul_data_c16
    size[0] = along
    for first in range(0, batch, along):
        arguments[0] = matrix_at(i8(a)[ARRAY_DATA], of_a, at_a, rows + 2, first)
        arguments[1] = matrix_at(i8(b)[ARRAY_DATA], of_b, at_b, columns + 2, first)
        arguments[2] = i8(result)[ARRAY_DATA] + first * each
        call4(loop, address(arguments), address(size), address(paces), data)
    return 0


@typed
def run_rows(plan, source, to):
    """Compute along a dimension."""
    n, inner = (plan.rows >> FIELD) & FIELD_MASK, (plan.rows >> 2 * FIELD) & FIELD_MASK
    outer = (plan.rows & FIELD_MASK) // (n * inner)
    call8(plan.loop, n, inner, outer, source, to, plan.rows >> 3 * FIELD, 0, 0)
    return 1


@typed
def run_form(operands, plan, result):
    """Compute a form; 0, if there are NaNs in it that Python has to look at."""
    call, to, a = FormCall(plan.rows), i8(result)[ARRAY_DATA], i8(operands.array)[ARRAY_DATA]
    b = i8(operands[1].array)[ARRAY_DATA] if plan.operands > 1 else 0
    call8(plan.loop, call.form, a, b, to, call.room, 0, call.units, 0)
    return 0 if call.unsure and has_nan(to, count_of(result), plan.itemsize) else 1


@typed
def run_join(frame, operands, plan, result):
    """Write operands one after the other, row by row."""
    to, itemsize, width = i8(result)[ARRAY_DATA], plan.itemsize, 0
    for k in range(plan.operands):
        width += count_of(operands[k].array) // max(plan.rows, 1) * itemsize
    for k in range(plan.operands):
        array = operands[k].array
        count, start = count_of(array) // max(plan.rows, 1), i8(array)[ARRAY_DATA]
        nbytes = count * itemsize
        is_ordered = i4(array + FLAGS)[0] & ALIGNED_IN_C_ORDER == ALIGNED_IN_C_ORDER
        for row in range(plan.rows):
            if not is_ordered:
                copy_in_c_order(
                    start, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE], i8(array)[STRIDES],
                    row * count, count, itemsize, to + row * width,
                )  # fmt: skip
            elif nbytes == F4_SIZE:
                i4(to + row * width)[0] = i4(start)[row]
            elif nbytes == F8_SIZE:
                i8(to + row * width)[0] = i8(start)[row]
            else:
                call3(frame.memcpy, to + row * width, start + row * nbytes, nbytes)
        to += nbytes
    return 0


@typed
def run_transform(operands, plan, result):
    """Transform rows; reals become complex numbers where the result will stand, if need be."""
    how, to, source = RowTransform(plan.rows), i8(result)[ARRAY_DATA], operands.array
    arguments, sizes, paces = room_i8(3), room_i8(3), room_i8(5)
    arguments[0], arguments[1], arguments[2] = i8(source)[ARRAY_DATA], how.factor, to
    paces[3], paces[4] = plan.itemsize, how.itemsize
    if how.widens:
        for k in range(count_of(source)):
            if plan.itemsize == F4_SIZE:
                f4(to)[2 * k], f4(to)[2 * k + 1] = f4(i8(source)[ARRAY_DATA])[k], 0.0
            else:
                f8(to)[2 * k], f8(to)[2 * k + 1] = f8(i8(source)[ARRAY_DATA])[k], 0.0
        arguments[0], paces[3] = to, how.itemsize
    sizes[0] = count_of(result) // how.result_length
    sizes[1], sizes[2] = how.length, how.result_length
    paces[0], paces[2] = how.length * paces[3], how.result_length * how.itemsize
    return call4(plan.loop, address(arguments), address(sizes), address(paces), how.data)


@typed
def run_in_f8(operands, plan, source, count, to):
    """Run a loop that there is in float64 alone; `source` is of the operand that it reads."""
    if plan.loops == ROWS:
        return run_rows(plan, source, to)
    if plan.loops == READ:
        return read_places(operands, plan, source, count, to)
    return write_places(operands, plan, source, count, to)


@typed
def widened(frame, array, filled):
    """A new array of doubles, with the elements of one of float32 if `filled`; 0: no memory."""
    made = floats_of(frame, F8_SIZE, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE])
    if made == 0:
        call0(frame.PyErr_Clear)
        return 0
    source, target = f4(i8(array)[ARRAY_DATA]), f8(i8(made)[ARRAY_DATA])
    for i in range(count_of(array) if filled else 0):
        target[i] = source[i]
    return made


@typed
def run_in_f4(frame, operands, plan, source, result):
    """The same on float32, whose results are computed as doubles and rounded once."""
    source_f8, done = widened(frame, source, 1), 0
    result_f8 = widened(frame, result, 1 if plan.loops == WRITE else 0)
    if source_f8 != 0 and result_f8 != 0:
        at, count = i8(result_f8)[ARRAY_DATA], count_of(result)
        done = run_in_f8(operands, plan, i8(source_f8)[ARRAY_DATA], count, at)
        found, target = f8(at), f4(i8(result)[ARRAY_DATA])
        for i in range(count):
            target[i] = found[i]
    if source_f8 != 0:
        decref(frame, source_f8)
    if result_f8 != 0:
        decref(frame, result_f8)
    return done


@typed
def run_small(frame, operands, plan, result):
    """Compute along a dimension, or move elements, in small arrays; 0: Python has to."""
    source = operands[plan.value if plan.loops == WRITE else 0].array
    if plan.itemsize == F4_SIZE:
        return run_in_f4(frame, operands, plan, source, result)
    at, to = i8(source)[ARRAY_DATA], i8(result)[ARRAY_DATA]
    return run_in_f8(operands, plan, at, count_of(result), to)


@typed
def as_complex(frame, array):
    """A new array of complex numbers whose imaginary parts are zero; 0: no memory."""
    made = floats_of(frame, C16_SIZE, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE])
    if made == 0:
        call0(frame.PyErr_Clear)
        return 0
    source, target = f8(i8(array)[ARRAY_DATA]), f8(i8(made)[ARRAY_DATA])
    for i in range(count_of(array)):
        target[2 * i], target[2 * i + 1] = source[i], 0.0
    return made


@typed
def run_mixed(frame, operands, plan, result):
    """`run_ufunc` of two operands of which one, which lies in C order, is real; 0: no memory."""
    real = 1 if plan.word & ONE_COMPLEX else 0
    given = operands[real].array
    made = as_complex(frame, given)
    if made == 0:
        return 0
    operands[real].array = made
    run_ufunc(frame, operands, plan, result)
    operands[real].array = given
    decref(frame, made)
    return 1


@typed
def run(frame, operands, plan, result):
    """Compute the result; the exceptions that came about, or UNSURE: Python has to compute it.

    Of large arrays without the interpreter's lock, where the library's loops tell no exceptions.
    """
    loops, state, done, found = plan.loops, 0, 1, 0
    if loops == READ:
        return 0 if run_small(frame, operands, plan, result) else UNSURE
    if loops == FORM:
        return 0 if run_form(operands, plan, result) else UNSURE
    if plan.large:
        state = call0(frame.PyEval_SaveThread)
    if loops == UFUNC:
        if plan.large:
            call1(frame.feclearexcept, frame.fp_flags)
        complex_ones = plan.word & COMPLEX_INPUTS
        if plan.operands == 2 and (complex_ones == ONE_COMPLEX or complex_ones == 2 * ONE_COMPLEX):
            done = run_mixed(frame, operands, plan, result)
        else:
            run_ufunc(frame, operands, plan, result)
    elif loops == KERNEL:
        run_kernel(frame, operands, plan, result)
    elif loops == SUM:
        run_sum(frame, operands, plan, result)
    elif loops == GEMM:
        run_gemm(frame, operands, plan, result)
    elif loops == JOIN:
        run_join(frame, operands, plan, result)
    elif loops == TRANSFORM:
        run_transform(operands, plan, result)
    elif loops == PASSES:
        done = run_passes(frame, plan.loop, operands.array, result)
    else:
        done = run_small(frame, operands, plan, result)
    if loops == UFUNC or not plan.large:
        found = call1(frame.fetestexcept, frame.fp_flags) & LOW_HALF
    if plan.large:
        call1(frame.PyEval_RestoreThread, state)
    return found if done else UNSURE
