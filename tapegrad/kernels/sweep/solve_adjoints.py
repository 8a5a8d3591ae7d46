"""Adjoints of systems of linear equations and of determinants, for small matrices.

The adjoint of the right side of ``A x = b`` solves the system of the transpose, by elimination with
partial pivoting as LAPACK's.  Nothing is handed on where a pivot is zero or a number is not finite:
what a zero against an infinity gives only the rule knows.  The compiled sweep calls this as a
kernel: graphs that have no such records need not wait for it.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import f4, f8, i4, i8
from tapegrad.kernels.sweep.arena import (
    all_finite,
    cell_of,
    data,
    give_back,
    saved,
    stride,
    take,
    wanted,
    widened,
)
from tapegrad.kernels.sweep.reachability import input_at
from tapegrad.kernels.sweep.sweep_abi import KIND_SLOGDET, KIND_SOLVE, SweepFrame
from tapegrad.kernels.sweep.view_adjoints import clear
from tapegrad.tape.record_format import AUX, FIELDS


@typed
def swap(at, cols, r, s):
    """Exchange two rows of a matrix."""
    rows = f8(at)
    for j in range(cols):
        swapped = rows[r * cols + j]
        rows[r * cols + j] = rows[s * cols + j]
        rows[s * cols + j] = swapped


@typed
def eliminate(matrix_at, n, right_at, cols):
    """Solve in place, both matrices by rows; 0 where a pivot is zero or no number.

    Else it is the sign of the permutation of rows.
    """
    matrix, right, sign = f8(matrix_at), f8(right_at), 1
    for c in range(n):
        pivot = c
        for r in range(c + 1, n):
            if abs(matrix[r * n + c]) > abs(matrix[pivot * n + c]):
                pivot = r
        if not abs(matrix[pivot * n + c]) > 0.0:
            return 0
        if pivot != c:
            sign = -sign
            swap(matrix_at, n, c, pivot)
            swap(right_at, cols, c, pivot)
        for r in range(c + 1, n):
            factor = matrix[r * n + c] / matrix[c * n + c]
            for j in range(c + 1, n):
                matrix[r * n + j] -= factor * matrix[c * n + j]
            for j in range(cols):
                right[r * cols + j] -= factor * right[c * cols + j]
    for r in range(n - 1, -1, -1):
        for j in range(cols):
            left = right[r * cols + j]
            for k in range(r + 1, n):
                left -= matrix[r * n + k] * right[k * cols + j]
            right[r * cols + j] = left / matrix[r * n + r]
    return sign


@typed
def row_and_column(frame, header, itemsize):
    """How far the rows and the columns of kept matrices are apart, in elements."""
    first, shift = i4(header + frame.array_strides - 16)[0] - 2, 2 if itemsize == 4 else 3
    return stride(header, frame, first, shift), stride(header, frame, first + 1, shift)


@typed
def as_doubles(frame, at, rows, cols, s0, s1, itemsize):
    """A buffer with the numbers of a matrix as doubles, row after row."""
    if itemsize == 4:
        return widened(frame, at, rows, cols, s0, s1)
    room = take(frame, rows * cols * 8)
    source, target = f8(at), f8(room)
    for i in range(rows):
        for j in range(cols):
            target[i * cols + j] = source[i * s0 + j * s1]
    return room


@typed
def turned(frame, header, item, n, right, cols, itemsize):
    """Solve with the transpose of one of several kept matrices, in place; 0: it is not finite.

    Else it is the determinant.
    """
    s0, s1 = row_and_column(frame, header, itemsize)
    at = as_doubles(frame, data(frame, header) + item * n * n * itemsize, n, n, s1, s0, itemsize)
    determinant, matrix = 1.0 * eliminate(at, n, right, cols), f8(at)
    for i in range(n):
        determinant *= matrix[i * n + i]
    give_back(frame, at, n * n * 8)
    return determinant if all_finite(right, cols, 1, n, cols) else 0.0


@typed
def add_matrices(frame, code, found, count, itemsize):
    """Add so many doubles to the adjoint of an input."""
    cell = i8(cell_of(frame, code))
    if cell[0] == 0:
        cell[0] = take(frame, count * itemsize)
        clear(cell[0], count * itemsize)
    out, more, single = f8(cell[0] & ~1), f8(found), f4(cell[0] & ~1)
    if itemsize == 4:
        for i in range(count):
            single[i] += more[i]
    else:
        for i in range(count):
            out[i] += more[i]


@typed
def solution(frame, record, index, g, itemsize):
    """Hand on the adjoint of ``solve(a, b)``: x = a^-T g to b, -x y^T to a."""
    aux = record[AUX]
    n, cols, batch = aux & 0xFFFFF, (aux >> 20) & 0xFFFFF, (aux >> 40) + 1
    count = batch * n * cols
    right = as_doubles(frame, g, 1, count, 0, 1, itemsize)
    a, header, good = saved(frame, index, 0), saved(frame, index, 2), True
    for item in range(batch):
        at = right + item * n * cols * 8
        good = good and turned(frame, a, item, n, at, cols, itemsize) != 0.0
    code = input_at(frame, record, 0)
    if good and wanted(frame, code):
        s0, s1 = row_and_column(frame, header, itemsize)
        whole = take(frame, batch * n * n * 8)
        for item in range(batch):
            at = data(frame, header) + item * n * cols * itemsize
            at = as_doubles(frame, at, n, cols, s0, s1, itemsize)
            good = good and all_finite(at, cols, 1, n, cols)
            y, x, out = f8(at), f8(right + item * n * cols * 8), f8(whole + item * n * n * 8)
            for i in range(n):
                for j in range(n):
                    total = 0.0
                    for c in range(cols):
                        total += x[i * cols + c] * y[j * cols + c]
                    out[i * n + j] = -total
            give_back(frame, at, n * cols * 8)
        if good:
            add_matrices(frame, code, whole, batch * n * n, itemsize)
        give_back(frame, whole, batch * n * n * 8)
    code = input_at(frame, record, 1)
    if good and wanted(frame, code):
        add_matrices(frame, code, right, count, itemsize)
    give_back(frame, right, count * 8)
    return good


@typed
def determinant(frame, record, index, g, itemsize, is_logarithm):
    """Hand on the adjoint of a determinant, or of its logarithm, the second of two: times a^-T."""
    aux, code = record[AUX], input_at(frame, record, 0)
    n, batch = aux & 0xFFFFF, (aux >> 40) + 1
    if not wanted(frame, code):
        return True
    right = take(frame, batch * n * n * 8)
    weights = as_doubles(frame, g, 1, 2 * batch if is_logarithm else batch, 0, 1, itemsize)
    a, good = saved(frame, index, 0), True
    for item in range(batch):
        at = right + item * n * n * 8
        x = f8(at)
        for i in range(n):
            for j in range(n):
                x[i * n + j] = 1.0 if i == j else 0.0
        size = turned(frame, a, item, n, at, n, itemsize)
        good = good and size != 0.0
        weight = f8(weights)[2 * item + 1] if is_logarithm else f8(weights)[item] * size
        for i in range(n * n):
            x[i] *= weight
        good = good and all_finite(at, n, 1, n, n)
    if good:
        add_matrices(frame, code, right, batch * n * n, itemsize)
    give_back(frame, weights, (2 * batch if is_logarithm else batch) * 8)
    give_back(frame, right, batch * n * n * 8)
    return good


def system(frame_at, index, kind, g, itemsize, p5, p6, p7):
    """Hand on the adjoint of one record; 0, with nothing handed on, if the rule has to."""
    frame = SweepFrame(frame_at)
    record = i8(frame.records + index * FIELDS * 8)
    if kind == KIND_SOLVE:
        return 1 if solution(frame, record, index, g, itemsize) else 0
    return 1 if determinant(frame, record, index, g, itemsize, kind == KIND_SLOGDET) else 0
