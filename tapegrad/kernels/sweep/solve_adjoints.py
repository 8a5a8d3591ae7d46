"""Adjoints of systems of linear equations and of determinants, for small matrices.

The adjoint of the right side of ``A x = b`` solves the system of the transpose, by elimination with
partial pivoting as LAPACK's.  Nothing is handed on where a pivot is zero or a number is not finite:
what a zero against an infinity gives only the rule knows.  The compiled sweep calls this as a
kernel: graphs that have no such records need not wait for it.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import f8, i4, i8
from tapegrad.kernels.sweep.arena import (
    all_finite,
    cell_of,
    data,
    give_back,
    saved,
    stride,
    take,
    wanted,
)
from tapegrad.kernels.sweep.reachability import input_at
from tapegrad.kernels.sweep.sweep_abi import KIND_SOLVE, SweepFrame
from tapegrad.kernels.sweep.view_adjoints import clear
from tapegrad.tape.tape import AUX, FIELDS


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
    """Solve in place, both matrices by rows; False where a pivot is zero or no number."""
    matrix, right = f8(matrix_at), f8(right_at)
    for c in range(n):
        pivot = c
        for r in range(c + 1, n):
            if abs(matrix[r * n + c]) > abs(matrix[pivot * n + c]):
                pivot = r
        if not abs(matrix[pivot * n + c]) > 0.0:
            return False
        if pivot != c:
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
    return True


@typed
def row_and_column(frame, header):
    """How far the rows and the columns of kept matrices are apart, in elements."""
    first = i4(header + frame.array_strides - 16)[0] - 2
    return stride(header, frame, first, 3), stride(header, frame, first + 1, 3)


@typed
def turned(frame, header, item, n, right, cols):
    """Solve with the transpose of one of several kept matrices, in place; whether it is finite."""
    at = take(frame, n * n * 8)
    matrix, source = f8(at), f8(data(frame, header) + item * n * n * 8)
    s0, s1 = row_and_column(frame, header)
    for i in range(n):
        for j in range(n):
            matrix[i * n + j] = source[j * s0 + i * s1]
    good = eliminate(at, n, right, cols)
    give_back(frame, at, n * n * 8)
    return good and all_finite(right, cols, 1, n, cols)


@typed
def room_for(frame, code, nbytes):
    """Where the adjoint of an input stands: zeros, if nothing has been added to it yet."""
    cell = i8(cell_of(frame, code))
    if cell[0] == 0:
        cell[0] = take(frame, nbytes)
        clear(cell[0], nbytes)
    return cell[0] & ~1


@typed
def add_matrices(frame, code, found, count):
    """Add so many numbers to the adjoint of an input."""
    out, more = f8(room_for(frame, code, count * 8)), f8(found)
    for i in range(count):
        out[i] += more[i]


@typed
def solution(frame, record, index, g):
    """Hand on the adjoint of ``solve(a, b)``: x = a^-T g to b, -x y^T to a."""
    aux = record[AUX]
    n, cols, batch = aux & 0xFFFFF, (aux >> 20) & 0xFFFFF, (aux >> 40) + 1
    count = batch * n * cols
    right = take(frame, count * 8)
    x, adjoint = f8(right), f8(g)
    for i in range(count):
        x[i] = adjoint[i]
    a, header, good = saved(frame, index, 0), saved(frame, index, 2), True
    for item in range(batch):
        at = right + item * n * cols * 8
        good = good and turned(frame, a, item, n, at, cols)
    code = input_at(frame, record, 0)
    if good and wanted(frame, code):
        s0, s1 = row_and_column(frame, header)
        for item in range(batch):
            good = good and all_finite(data(frame, header) + item * n * cols * 8, s0, s1, n, cols)
        if good:
            whole = room_for(frame, code, batch * n * n * 8)
            for item in range(batch):
                y = f8(data(frame, header) + item * n * cols * 8)
                x, out = f8(right + item * n * cols * 8), f8(whole + item * n * n * 8)
                for i in range(n):
                    for j in range(n):
                        total = 0.0
                        for c in range(cols):
                            total += x[i * cols + c] * y[j * s0 + c * s1]
                        out[i * n + j] -= total
    code = input_at(frame, record, 1)
    if good and wanted(frame, code):
        add_matrices(frame, code, right, count)
    give_back(frame, right, count * 8)
    return good


@typed
def logarithm(frame, record, index, g):
    """Hand on the adjoint of the logarithm of a determinant, the second of two: times a^-T."""
    aux, code = record[AUX], input_at(frame, record, 0)
    n, batch = aux & 0xFFFFF, (aux >> 40) + 1
    if not wanted(frame, code):
        return True
    right = take(frame, batch * n * n * 8)
    a, good = saved(frame, index, 0), True
    for item in range(batch):
        at = right + item * n * n * 8
        x = f8(at)
        for i in range(n):
            for j in range(n):
                x[i * n + j] = 1.0 if i == j else 0.0
        good = good and turned(frame, a, item, n, at, n)
    if good:
        out, x = f8(room_for(frame, code, batch * n * n * 8)), f8(right)
        for item in range(batch):
            weight = f8(g)[2 * item + 1]
            for i in range(item * n * n, (item + 1) * n * n):
                out[i] += weight * x[i]
    give_back(frame, right, batch * n * n * 8)
    return good


def system(frame_at, index, kind, g, p4, p5, p6, p7):
    """Hand on the adjoint of one record; 0, with nothing handed on, if the rule has to."""
    frame = SweepFrame(frame_at)
    record = i8(frame.records + index * FIELDS * 8)
    if kind == KIND_SOLVE:
        return 1 if solution(frame, record, index, g) else 0
    return 1 if logarithm(frame, record, index, g) else 0
