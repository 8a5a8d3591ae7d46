"""Adjoints of elementwise operations: one kernel call, or one per row of what is broadcast.

Also how large operands are, and where kernels stand, which the whole sweep asks.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call8, i4, i8
from tapegrad.kernels.sweep.arena import count_of, data, give_back, in_c_order, saved
from tapegrad.kernels.sweep.matmul_adjoints import factor_size
from tapegrad.kernels.sweep.sweep_abi import (
    ALIGNED,
    ALIGNED_IN_C_ORDER,
    FIELD_MASK,
    KIND_ASSIGN,
    KIND_AXIS,
    KIND_JOIN,
    KIND_MATMUL,
    KIND_MEAN,
    KIND_PARTS,
    KIND_PICK,
    KIND_PUT,
    KIND_SELECT,
    KIND_SOLVE,
    KIND_SUM,
    KIND_TRIANGLE,
    KIND_VIEW,
    PLACE_BITS,
    REAL,
)
from tapegrad.kernels.sweep.view_adjoints import clear, row_count, row_length, row_start
from tapegrad.tape.record_format import (
    AUX,
    BROADCAST,
    CODE_MASK,
    COLUMN,
    COMPLEX_SHIFT,
    DTYPE_SHIFT,
    INPUTS_SHIFT,
    MIXED,
    ROW,
    SCALAR,
    WORD,
)

COMPLEX = 1 << COMPLEX_SHIFT


@typed
def kernel_at(word, k, scalars):
    """Where the address of the kernel for operand k stands among KERNELS."""
    at = (((word & CODE_MASK) * 2 + ((word >> DTYPE_SHIFT) & 1)) * 3 + k) * 8 + scalars
    if word & MIXED:
        at += ((word >> COMPLEX_SHIFT & 1) | (word >> INPUTS_SHIFT & 7) << 1) * REAL
    return at


@typed
def size_of_part(word):
    """The bytes of a real number, or of each part of a complex one."""
    return 4 if (word >> DTYPE_SHIFT) & 1 else 8


@typed
def size_of_result(word):
    """The bytes of a number of the result."""
    return size_of_part(word) << (word >> COMPLEX_SHIFT & 1)


@typed
def size_of_operand(word, kind, k):
    """The bytes of a number of operand k."""
    if kind >= KIND_SUM and kind != KIND_PARTS:
        return size_of_result(word)
    return size_of_part(word) << (word >> INPUTS_SHIFT + k & 1)


@typed
def place_size(kind, n, aux, k):
    """How many elements an input has."""
    if kind == KIND_PICK or kind == KIND_SELECT:
        return aux & FIELD_MASK
    if k == 0 or kind == KIND_TRIANGLE:
        return n
    if kind == KIND_PUT:
        return aux & FIELD_MASK
    return aux >> PLACE_BITS if kind == KIND_ASSIGN else 1


@typed
def input_size(frame, kind, word, n, aux, k):
    """How many elements an input has, from how it is broadcast or seen."""
    if kind == KIND_VIEW:
        return i8(frame.views)[aux]
    if kind == KIND_JOIN:
        return i8(frame.views)[i8(frame.views)[aux + k]]
    if kind == KIND_PARTS:
        return n << 1 if word & COMPLEX else n >> 1
    if kind == KIND_SUM or kind == KIND_MEAN:
        return aux
    if kind == KIND_AXIS:
        return aux & FIELD_MASK
    if KIND_PICK <= kind <= KIND_TRIANGLE:
        return place_size(kind, n, aux, k)
    if kind == KIND_MATMUL:
        return factor_size(aux, k)
    if kind >= KIND_SOLVE:
        return 0  # it was small when it was recorded
    if word & BROADCAST:
        return i8(frame.views)[i8(frame.views)[aux + k]]
    how = (word >> (16 + 2 * k)) & 3
    if how == SCALAR:
        return 1
    if how == ROW:
        return aux
    if how == COLUMN:
        return n // aux
    return n


@typed
def pattern(word):
    """Which operands a kernel reads as one scalar per row."""
    bits = 0
    for k in range(3):
        how = (word >> (16 + 2 * k)) & 3
        if how == SCALAR or how == COLUMN:
            bits |= 1 << k
    return bits


@typed
def lies_in_c_order(frame, header):
    """Whether the elements of an array stand one after the other."""
    return i4(header + frame.array_flags)[0] & ALIGNED_IN_C_ORDER == ALIGNED_IN_C_ORDER


@typed
def readable(frame, index, kind):
    """Whether a kernel can read the kept values, or a copy of what lies in another order than C's,
    which `frame.unordered` says.
    """
    frame.unordered = 0
    if i8(frame.keep)[index] == frame.nothing or kind >= KIND_SUM:
        return True
    for k in range(kind + 1):
        header = saved(frame, index, k)
        if header != frame.nothing and not lies_in_c_order(frame, header):
            frame.unordered = 1
            if i4(header + frame.array_flags)[0] & ALIGNED == 0:
                return False
    return True


@typed
def ordered_value(frame, index, k, itemsize):
    """Where the k-th kept value of a record begins, or a copy in C order; or 0."""
    header = saved(frame, index, k)
    if header == frame.nothing:
        return 0
    if frame.unordered and not lies_in_c_order(frame, header):
        return in_c_order(frame, header, itemsize)
    return data(frame, header)


@typed
def give_back_value(frame, index, k, at, itemsize):
    """Put the buffer of a copy on a free list."""
    if at:
        header = saved(frame, index, k)
        if at != data(frame, header):
            give_back(frame, at, count_of(frame, header) * itemsize)


@typed
def row_step(how, length, itemsize):
    """How far an operand moves from one row of the result, of some length, to the next."""
    if how == SCALAR or how == ROW:
        return 0
    if how == COLUMN:
        return itemsize
    return length * itemsize


@typed
def over_rows(frame, record, k, g, out, a, b, c, y):
    """One kernel call per innermost row, where the table of strides says how operands lie."""
    views, aux, word = i8(frame.views), record[AUX], record[WORD]
    kernel = i8(frame.kernels)[kernel_at(word, k, pattern(word))]
    into = i8(frame.views + 8 * views[aux + k])
    inner = row_length(into)
    step = inner * size_of_result(word)
    size_a = 1 if word & CODE_MASK == frame.choice else size_of_operand(word, 0, 0)
    size_b, size_c = size_of_operand(word, 0, 1), size_of_operand(word, 0, 2)
    size_out = size_of_operand(word, 0, k)
    for r in range(row_count(into)):
        at_a, at_b, at_c = 0, 0, 0
        if a:
            at_a = a + size_a * row_start(i8(frame.views + 8 * views[aux]), r)
        if b:
            at_b = b + size_b * row_start(i8(frame.views + 8 * views[aux + 1]), r)
        if c:
            at_c = c + size_c * row_start(i8(frame.views + 8 * views[aux + 2]), r)
        to = out + size_out * row_start(into, r)
        call8(kernel, inner, 1, g + r * step, to, at_a, at_b, at_c, y + r * step if y else 0)


@typed
def in_rows(frame, record, k, g, n, out, fresh, a, b, c, y):
    """One kernel call, or one per row when an operand is a row or a column of the result."""
    word, length, accumulate = record[WORD], record[AUX], 0 if fresh else 1
    kernel = i8(frame.kernels)[kernel_at(word, k, pattern(word))]
    if length == 0:
        call8(kernel, n, accumulate, g, out, a, b, c, y)
        return
    step = length * size_of_result(word)
    size_a = 1 if word & CODE_MASK == frame.choice else size_of_operand(word, 0, 0)
    step_a = row_step((word >> 16) & 3, length, size_a)
    step_b = row_step((word >> 18) & 3, length, size_of_operand(word, 0, 1))
    step_c = row_step((word >> 20) & 3, length, size_of_operand(word, 0, 2))
    step_out = row_step((word >> (16 + 2 * k)) & 3, length, size_of_operand(word, 0, k))
    for _ in range(n // length):
        call8(kernel, length, accumulate, g, out, a, b, c, y)
        g += step
        out += step_out
        a += step_a if a else 0
        b += step_b if b else 0
        c += step_c if c else 0
        y += step if y else 0
        if step_out == 0:
            accumulate = 1


@typed
def elementwise(frame, record, index, k, g, n, out, fresh):
    """Hand an adjoint on to an operand of an elementwise operation."""
    word, aux = record[WORD], record[AUX]
    a, b, c, y = 0, 0, 0, 0
    size_a = 1 if word & CODE_MASK == frame.choice else size_of_operand(word, 0, 0)
    size_b, size_c = size_of_operand(word, 0, 1), size_of_operand(word, 0, 2)
    size_y, count = size_of_result(word), 0
    if i8(frame.keep)[index] != frame.nothing:
        count = i8(frame.kinds)[word & CODE_MASK]  # how many operands the operation has
        a = ordered_value(frame, index, 0, size_a)
        if count > 1:
            b = ordered_value(frame, index, 1, size_b)
        if count > 2:
            c = ordered_value(frame, index, 2, size_c)
        y = ordered_value(frame, index, count, size_y)
    if fresh and (n == 0 or word & BROADCAST):  # not every number will be written
        clear(out, input_size(frame, 0, word, n, aux, k) * size_of_operand(word, 0, k))
    if word & BROADCAST:
        over_rows(frame, record, k, g, out, a, b, c, y)
    else:
        in_rows(frame, record, k, g, n, out, fresh, a, b, c, y)
    if frame.unordered:
        give_back_value(frame, index, 0, a, size_a)
        give_back_value(frame, index, 1, b, size_b)
        give_back_value(frame, index, 2, c, size_c)
        give_back_value(frame, index, count, y, size_y)
