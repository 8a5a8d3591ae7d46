"""Plan a call of an elementwise operation, a sum or a product of matrices: see `abi.Plan`.

Each function fills the plan and returns 1; 0 with an exception set, or REFUSED.
"""

from tapegrad.kernels.memory import address, i4, i8
from tapegrad.kernels.sweep.sweep_abi import SINGLE, SMALL
from tapegrad.native.abi import (
    ALONE,
    BY_PYTHON,
    BY_UFUNC,
    C16_TYPE,
    F4_TYPE,
    F8_TYPE,
    GEMM,
    IN_PLACE,
    KERNEL,
    KEY_BITS,
    MIDDLE,
    MOST_DIMENSIONS,
    NUMBER,
    OF_F4,
    OF_F8,
    SHAPE_LINES,
    SUM,
    UFUNC,
    UNKNOWN,
    LargeRow,
    OpRow,
    ShapeLine,
    UfuncLoop,
)
from tapegrad.native.operands import LARGE, is_strided, learnt_shape, same_shape
from tapegrad.native.pyobjects import (
    ARRAY_SHAPE,
    C16_SIZE,
    F4_SIZE,
    F8_SIZE,
    FIRST_CLASS,
    I8_SIZE,
    LARGE_COUNT,
    NDIM,
    REFUSED,
    SECOND_CLASS,
    count_of,
    itemsize_of,
    shape_number,
    tell_python,
    typed,
)
from tapegrad.tape.record_format import BROADCAST, CODE_MASK, DTYPE_SHIFT, GENERAL, INPUTS_SHIFT
from tapegrad.tape.record_format import SCALAR as AS_SCALAR

COMPLEX = C16_TYPE << DTYPE_SHIFT
TWO_THREADS = 1 << 17  # elements from which two may be at work: twice `large_elementwise.SPLIT`


@typed
def line_of(frame, lines, learn, one, two, dtype):
    """The line of two numbers in a table; 0 with an exception set, or REFUSED.

    Then Python has filled it, and what was read before may be another by now.
    """
    key = two | dtype << KEY_BITS
    pair = (one << 32 | key) + 1
    line = address(ShapeLine(lines)[(one * 31 + key) & (SHAPE_LINES - 1)])
    if ShapeLine(line).key == pair:
        return line
    return REFUSED if tell_python(frame, learn, 3, one, two, dtype) else 0


@typed
def result_like(plan, row_at, array, itemsize):
    """Plan a result of an array's shape, and a record with the formulas of an operation."""
    row = OpRow(row_at)
    plan.itemsize = 1 if row.is_boolean else itemsize
    plan.ndim, plan.lengths = i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE]
    for k in range(plan.operands):
        plan.reads[k] = row.reads[k]
    return 0


@typed
def word_of(row_at, bits, itemsize):
    """The word of a record of an operation on Tensors whose elements take so many bytes."""
    dtype = SINGLE if itemsize == F4_SIZE else COMPLEX if itemsize == C16_SIZE else 0
    return OpRow(row_at).word | bits | dtype


@typed
def for_threads(frame, count):
    """Whether several threads may compute so many elements: then Python divides the work."""
    return 1 if i8(frame.threads)[0] != 1 and count >= TWO_THREADS else 0


@typed
def like_the_result(row_at, count, operands):
    """The first Tensor that has dimensions, or any; REFUSED if there is none but a condition."""
    found = REFUSED
    for k in range(OpRow(row_at).has_condition, count):
        better = found == REFUSED or i4(operands[found].array + NDIM)[0] == 0
        if operands[k].tensor != 0 and better:
            found = k
    return found


@typed
def one_number(count, operands, like):
    """Which operands are one number where the result is more (bits), or REFUSED."""
    whole, found = operands[like].array, 0
    elements = count_of(whole)
    for k in range(count):
        if i4(operands[k].array + NDIM)[0] == 0:
            found |= (1 if elements != 1 else 0) << k
        elif not same_shape(operands[k].array, whole):
            return REFUSED
    return found if elements else REFUSED


@typed
def large_loop(frame, code, scalars, is_f4):
    """By what an operation on large arrays is computed (see `LargeRow`); 0 with an exception set.

    The first call goes by Python, for what was read may be another once that has learnt.
    """
    row = LargeRow(frame.large_rows)[code]
    if row.python_calls > 0:
        row.python_calls -= 1
        return BY_PYTHON
    known = row.kernels_f4 if is_f4 else row.kernels
    if known[scalars] != UNKNOWN:
        return known[scalars]
    return BY_PYTHON if tell_python(frame, frame.learn_large, 3, code, scalars, is_f4) else 0


@typed
def small_loop(frame, row_at, code, scalars, itemsize):
    """By what an operation on small arrays is computed: by a kernel, if it is there, or BY_UFUNC.

    0 with an exception set, or REFUSED after Python has looked for the kernel.
    """
    row, is_f4 = OpRow(row_at), 1 if itemsize == F4_SIZE else 0
    known = row.kernels_f4 if is_f4 else row.kernels
    if known[scalars] > 0:
        return known[scalars]
    if known[scalars] < -1:
        known[scalars] += 1
        return BY_UFUNC
    return REFUSED if tell_python(frame, frame.learn_kernel, 3, code, scalars, is_f4) else 0


@typed
def plan_kernel(frame, row_at, code, operands, itemsize, plan):
    """Compute an operation whose operands have one shape, or are one number, by one kernel."""
    row, count = OpRow(row_at), plan.operands
    like = like_the_result(row_at, count, operands)
    scalars = one_number(count, operands, like) if like != REFUSED else REFUSED
    if scalars == REFUSED or (plan.in_place and (like != 0 or row.is_boolean)):
        return REFUSED
    if plan.strided and row.has_condition:
        return REFUSED
    for k in range(count):
        given = operands[k].tensor != 0 or i4(operands[k].array + NDIM)[0] != 0
        if row.numbers >> k & 1 and given:
            return REFUSED
    plan.loops = KERNEL
    if itemsize & LARGE:
        if for_threads(frame, count_of(operands[like].array)):
            return REFUSED
        itemsize, plan.large = itemsize & ~LARGE, 1
        scalars_in = scalars | (IN_PLACE if plan.in_place else 0)
        plan.loop = large_loop(frame, code, scalars_in, 1 if itemsize == F4_SIZE else 0)
    else:
        plan.loop = small_loop(frame, row_at, code, scalars, itemsize)
    if plan.loop == 0 or plan.loop == BY_PYTHON or plan.loop == REFUSED:
        return 0 if plan.loop == 0 else REFUSED
    if plan.loop == BY_UFUNC:
        plan.loops, plan.loop = UFUNC, address(row.loops_f4 if itemsize == F4_SIZE else row.loops)
        if UfuncLoop(plan.loop).function == 0:
            return REFUSED
    bits = 0
    for k in range(count):
        bits |= (AS_SCALAR if scalars >> k & 1 else 0) << FIRST_CLASS + 2 * k
    plan.word, plan.shape = word_of(row_at, bits, itemsize), operands[like].shape
    result_like(plan, row_at, operands[like].array, itemsize)
    plan.short = frame.minus_one if plan.large else i8(operands[like].tensor)[frame.t_s]
    return 1


@typed
def are_broadcast(operands):
    """Whether two operands with dimensions are of different shapes."""
    a, b = operands.array, operands[1].array
    return i4(a + NDIM)[0] != 0 and i4(b + NDIM)[0] != 0 and not same_shape(a, b)


@typed
def plan_large_broadcast(frame, row_at, code, operands, itemsize, plan):
    """Compute an operation of two operands that are broadcast to a large result by NumPy's loop."""
    row, is_f4 = OpRow(row_at), 1 if itemsize & F4_SIZE else 0
    loops = address(row.loops_f4 if is_f4 else row.loops)
    found = large_loop(frame, code, 0, is_f4)
    if found != BY_UFUNC:
        return REFUSED if found else 0
    one, two = learnt_shape(frame, operands.array), learnt_shape(frame, operands[1].array)
    if one == REFUSED or two == REFUSED or UfuncLoop(loops).function == 0:
        return REFUSED
    line_at = line_of(frame, frame.broadcasts, frame.learn_broadcast, one, two, is_f4)
    if line_at == 0 or line_at == REFUSED:
        return line_at
    line = ShapeLine(line_at)
    if line.shape < 0:
        return REFUSED
    elements, like, size = i8(i8(frame.sizes_at)[0])[line.shape], line.extra, itemsize & ~LARGE
    if plan.in_place and (like != 0 or row.is_boolean):
        return REFUSED
    if for_threads(frame, elements) or (elements < LARGE_COUNT and not plan.in_place):
        return REFUSED
    result_like(plan, row_at, operands[like if like <= 1 else 0].array, size)
    if like > 1:
        plan.ndim, plan.lengths = i8(like)[0], like + 8
    plan.loops, plan.loop, plan.large, plan.strided = UFUNC, loops, 1, 1
    plan.word, plan.shape, plan.extra = word_of(row_at, line.bits, size), line.shape, line.specs
    plan.aux, plan.short = line.aux, frame.minus_one
    return 1


@typed
def plan_elementwise(frame, row_at, operands, itemsize, plan):
    """Compute an operation of one operand or two by NumPy's loops, or by a kernel.

    One of integers has no record.
    """
    row, second, whole = OpRow(row_at), operands[1], itemsize == I8_SIZE
    loops = address(row.loops_f4 if itemsize == F4_SIZE else row.loops)
    if whole:
        loops, itemsize = address(row.loops_i8), F8_SIZE
        plan.dtype = 0 if row.is_boolean else frame.int64
    if UfuncLoop(loops).function == 0:
        if whole:
            return REFUSED
        return plan_kernel(frame, row_at, row.word & CODE_MASK, operands, itemsize, plan)
    like, bits, length, shape = 0, 0, 0, operands.shape
    lengths, specs, broadcast = 0, 0, 0
    if plan.operands == 2:
        if shape == second.shape:
            like = 1 if operands.tensor == 0 else 0
        elif second.shape == 0:
            bits = AS_SCALAR << SECOND_CLASS
        elif shape == 0:
            bits, like, shape = AS_SCALAR << FIRST_CLASS, 1, second.shape
        else:
            line_at = line_of(
                frame, frame.broadcasts, frame.learn_broadcast, shape, second.shape,
                1 if itemsize == F4_SIZE else 0,
            )  # fmt: skip
            if line_at == 0 or line_at == REFUSED:
                return line_at
            line = ShapeLine(line_at)
            shape, bits, length, like = line.shape, line.bits, line.aux, line.extra
            if shape < 0:
                return REFUSED
            if i8(i8(frame.sizes_at)[0])[shape] >= LARGE_COUNT:
                code = row.word & CODE_MASK
                return plan_large_broadcast(frame, row_at, code, operands, itemsize, plan)
            if like > 1:
                like, lengths = 0, like
            specs, broadcast = line.specs, 1
            plan.strided |= bits & (GENERAL | BROADCAST)
    if plan.in_place and (like or lengths or row.is_boolean):
        return REFUSED
    if bits and not broadcast and count_of(operands[like].array) == 1:
        bits = 0  # each is as large as the result
    scalar = row.scalar_loops & (OF_F4 if itemsize == F4_SIZE else OF_F8) and not broadcast
    if scalar and not whole and count_of(operands[like].array) >= MIDDLE:
        return plan_kernel(frame, row_at, row.word & CODE_MASK, operands, itemsize, plan)
    plan.loops, plan.loop = UFUNC, loops
    plan.word, plan.shape, plan.aux = word_of(row_at, bits, itemsize), shape, length
    result_like(plan, row_at, operands[like].array, itemsize)
    tensor, plan.extra = operands[like].tensor, specs
    plan.short = i8(tensor)[frame.t_s] if tensor != 0 else 0
    if lengths:
        plan.ndim, plan.lengths, plan.short = i8(lengths)[0], lengths + 8, 0
    if row.is_boolean or whole:
        plan.short = frame.minus_one
    return 1


@typed
def inputs_complex(frame, count, operands):
    """Which operands are complex, as bits."""
    found = 0
    for k in range(count):
        found |= (1 if itemsize_of(frame, operands[k].array) == C16_SIZE else 0) << k
    return found


@typed
def plan_complex(frame, row_at, operands, plan):
    """Compute an operation of one operand or two of complex128, of which one may be real.

    Its record saves beside values what the operands are like.
    """
    row, second, bits, like, two = OpRow(row_at), operands[1], 0, 0, ALONE
    loops, one = address(row.loops_c16), operands.shape if operands.tensor != 0 else NUMBER
    complex_ones, lengths = inputs_complex(frame, plan.operands, operands), 0
    if UfuncLoop(loops).function == 0 or plan.in_place:
        return REFUSED
    shape, learn = operands.shape, frame.learn_complex
    if plan.operands == 2:
        two = second.shape if second.tensor != 0 else NUMBER
        if operands.shape == second.shape:
            like = 1 if one == NUMBER else 0
        elif second.shape == 0:
            bits = AS_SCALAR << SECOND_CLASS
        elif operands.shape == 0:
            bits, like, shape = AS_SCALAR << FIRST_CLASS, 1, second.shape
        else:
            learn = frame.learn_broadcast
    line_at = line_of(frame, frame.broadcasts, learn, one, two, C16_TYPE | complex_ones << 2)
    if line_at == 0 or line_at == REFUSED:
        return line_at
    line = ShapeLine(line_at)
    if learn == frame.learn_broadcast:
        shape, bits, plan.aux, like = line.shape, line.bits, line.aux, line.extra
        if shape < 0:
            return REFUSED
        if like > 1:
            like, lengths = 0, like
        plan.strided |= bits & (GENERAL | BROADCAST)
    for k in range(plan.operands):
        if not complex_ones >> k & 1 and is_strided(operands[k].array):
            return REFUSED
    bits |= complex_ones << INPUTS_SHIFT
    plan.loops, plan.loop, plan.extra = UFUNC, loops, line.specs
    result_like(plan, row_at, operands[like].array, F8_SIZE if row.is_real else C16_SIZE)
    if lengths:
        plan.ndim, plan.lengths = i8(lengths)[0], lengths + 8
    elif count_of(operands[like].array) > SMALL >> 1:
        bits |= GENERAL  # too many bytes for the compiled sweep
    plan.word, plan.shape = row.word | bits, shape
    if not row.is_real:
        plan.word, plan.short = plan.word | COMPLEX, frame.minus_one
    return 1


@typed
def plan_sum(frame, row_at, code, operands, itemsize, plan):
    """Compute the sum, or the mean, of all elements; those of a vector may be apart."""
    array, shape, is_f4 = operands.array, operands.shape, 1 if itemsize & F4_SIZE else 0
    elements = count_of(array)
    if plan.strided and i4(array + NDIM)[0] != 1:
        return REFUSED  # NumPy's order is that of the memory
    plan.loops, plan.itemsize = SUM, F4_SIZE if is_f4 else F8_SIZE
    if elements == 0:
        return REFUSED
    if itemsize & LARGE:
        if for_threads(frame, count_of(array)):
            return REFUSED
        plan.large, plan.loop = 1, large_loop(frame, code, 0, is_f4)
        if plan.loop == BY_UFUNC or plan.loop == BY_PYTHON or plan.loop == 0:
            return REFUSED if plan.loop != 0 else 0
        shape = shape_number(frame, array)
        if shape == REFUSED:
            return REFUSED
    line_at = line_of(frame, frame.reductions, frame.learn_reduction, code, shape, is_f4)
    if line_at == 0 or line_at == REFUSED:
        return line_at
    line = ShapeLine(line_at)
    plan.word, plan.aux, plan.entry = line.bits, line.aux, line.extra
    plan.short = frame.zero_f4 if is_f4 else frame.zero
    plan.divisor = elements if OpRow(row_at).is_mean else 0
    return 1


@typed
def plan_matmul(frame, row_at, operands, itemsize, plan):
    """Compute products of matrices or vectors."""
    second = operands[1]
    if itemsize & LARGE:
        return REFUSED
    dtype = F4_TYPE if itemsize == F4_SIZE else C16_TYPE if itemsize == C16_SIZE else F8_TYPE
    line_at = line_of(frame, frame.matmuls, frame.learn_matmul, operands.shape, second.shape, dtype)
    if line_at == 0 or line_at == REFUSED:
        return line_at
    line, a, b = ShapeLine(line_at), operands.array, second.array
    if line.shape < 0:
        return REFUSED
    rows, columns, lengths = i4(a + NDIM)[0] - 2, i4(b + NDIM)[0] - 2, plan.own_lengths
    many, ndim, elements = (a if rows > columns else b), 0, i8(i8(b)[ARRAY_SHAPE])[max(columns, 0)]
    if max(rows, columns) > MOST_DIMENSIONS - 2:
        return REFUSED
    for d in range(max(rows, columns)):
        lengths[ndim] = i8(i8(many)[ARRAY_SHAPE])[d]
        ndim += 1
    if rows >= 0:
        lengths[ndim] = i8(i8(a)[ARRAY_SHAPE])[rows]
        ndim += 1
    if columns >= 0:
        lengths[ndim] = i8(i8(b)[ARRAY_SHAPE])[columns + 1]
        ndim += 1
    for d in range(ndim):
        elements *= lengths[d]
    if elements == 0:
        return REFUSED
    plan.ndim = ndim
    plan.loops, plan.itemsize, plan.lengths = GEMM, itemsize, address(plan.own_lengths)
    plan.word, plan.shape, plan.aux = word_of(row_at, line.bits, itemsize), line.shape, line.aux
    plan.reads[0], plan.reads[1], plan.extra = 2, 1, line.extra
    plan.short = frame.minus_one if itemsize == C16_SIZE else 0
    return 1
