"""Adjoints of sums, views, joins and products of complex numbers, whose parts lie side by side.

The compiled sweep calls this as a kernel: graphs of real numbers need not wait for it.
"""

from tapegrad.kernels.flags import helper, typed
from tapegrad.kernels.memory import f4, f8, i8, room_f8
from tapegrad.kernels.sweep.arena import add_numbers, saved
from tapegrad.kernels.sweep.matmul_adjoints import matrix_of, strides
from tapegrad.kernels.sweep.sweep_abi import (
    FIELD,
    FIELD_MASK,
    KIND_JOIN,
    KIND_MATMUL,
    KIND_MEAN,
    KIND_PARTS,
    KIND_VIEW,
    ONE_LEFT,
    ONE_RIGHT,
    SweepFrame,
)
from tapegrad.kernels.sweep.view_adjoints import clear, row_count, row_length, row_pace, row_start
from tapegrad.tape.record_format import AUX, COMPLEX_SHIFT, DTYPE_SHIFT, FIELDS, ROW, SCALAR, WORD


@helper
def get(single, at, j):
    """A real number."""
    return float(f4(at)[j]) if single else f8(at)[j]


@helper
def add(single, at, j, x_re, x_im):
    """Add to the j-th complex number."""
    if single:
        f4(at)[2 * j] += x_re
        f4(at)[2 * j + 1] += x_im
    else:
        f8(at)[2 * j] += x_re
        f8(at)[2 * j + 1] += x_im
    return 0


@typed
def add_number(single, out, i, g, j):
    """Add the j-th complex number of an adjoint to the i-th of another."""
    add(single, out, i, get(single, g, 2 * j), get(single, g, 2 * j + 1))


@typed
def spread(record, kind, single, n, g, out):
    """The transpose of a sum, or of a mean: see `compiled_sweep.spread`."""
    how, total = (record[WORD] >> 16) & 3, record[AUX]
    row = total if how == SCALAR else n if how == ROW else total // n if n else 0
    scale = n / total if kind == KIND_MEAN and total else 1.0
    for r in range(total // row if row else 0):
        for i in range(row):
            j = 2 * (i if how == ROW else r)
            add(single, out, r * row + i, get(single, g, j) * scale, get(single, g, j + 1) * scale)


@typed
def dot(single, g, g_step, at, step, count, x):
    """The product of an adjoint and the conjugate of a factor, along a dimension of both.

    A zero of either contributes zero, whatever the other is.
    """
    x[0], x[1] = 0.0, 0.0
    for j in range(count):
        a, b = get(single, g, 2 * j * g_step), get(single, g, 2 * j * g_step + 1)
        c, d = get(single, at, 2 * j * step), get(single, at, 2 * j * step + 1)
        if (a != 0.0 or b != 0.0) and (c != 0.0 or d != 0.0):
            x[0] += a * c + b * d
            x[1] += b * c - a * d


@typed
def factor_of_one(k, single, g, at, s0, s1, m, inner, cols, out):
    """Add the adjoint of a factor of one product, the other factor standing at an address."""
    size, x = 8 if single else 16, room_f8(2)
    if k == 0:
        for i in range(m):
            for j in range(inner):
                dot(single, g + size * i * cols, 1, at + size * j * s0, s1, cols, x)
                add(single, out, i * inner + j, x[0], x[1])
    else:
        for i in range(inner):
            for j in range(cols):
                dot(single, g + size * j, cols, at + size * i * s1, s0, m, x)
                add(single, out, i * cols + j, x[0], x[1])


@typed
def factor(frame, record, index, k, single, g, out):
    """Add the adjoint of one factor of a product of matrices, or of each product of a batch."""
    aux, header, size = record[AUX], saved(frame, index, 1 - k), 8 if single else 16
    m, inner, cols = aux & FIELD_MASK, aux >> FIELD & FIELD_MASK, aux >> 2 * FIELD & FIELD_MASK
    serves_all = aux & (ONE_RIGHT if k else ONE_LEFT)
    s0, s1 = strides(frame, header, m, inner, cols, k, 3 if single else 4)
    for i in range(aux >> 3 * FIELD & FIELD_MASK):
        factor_of_one(k, single, g, matrix_of(frame, header, i), s0, s1, m, inner, cols, out)
        g += size * m * cols
        out += 0 if serves_all else size * inner * (m if k == 0 else cols)


@typed
def through_view(single, record, g, out, gathers):
    """The transpose of a view, from its row in the table of strides.

    With `gathers` that of a join, to a part of it: the elements that the view shows.
    """
    inner, step = row_length(record), row_pace(record)
    for r in range(row_count(record)):
        at = row_start(record, r)
        for i in range(inner):
            here, there = r * inner + i, at + i * step
            add_number(single, out, here if gathers else there, g, there if gathers else here)


def moved(frame_at, index, kind, k, g, out, size, n):
    """Add the contribution of a record to the adjoint of its k-th input.

    `size` bytes are to be cleared before, if there are any.
    """
    frame = SweepFrame(frame_at)
    record, views = i8(frame.records + index * FIELDS * 8), i8(frame.views)
    single = (record[WORD] >> DTYPE_SHIFT) & 1
    if size:
        clear(out, size)
    if kind == KIND_PARTS:
        add_numbers(out, g, n << (record[WORD] >> COMPLEX_SHIFT & 1), single)
    elif kind == KIND_VIEW:
        through_view(single, i8(frame.views + 8 * record[AUX]), g, out, False)
    elif kind == KIND_JOIN:
        through_view(single, i8(frame.views + 8 * views[record[AUX] + k]), g, out, True)
    elif kind == KIND_MATMUL:
        factor(frame, record, index, k, single, g, out)
    else:
        spread(record, kind, single, n, g, out)
    return 0
