"""Adjoints of factorizations and inverses, for batches of small matrices.

Each function here is the rule of the row that it is named after (`ops.factorizations`, `ops.solve`,
`ops.lu`), over matrices by rows; there the formulas are derived.  All matrices of a batch are done
before anything is handed on: where a number is not finite the record is left to the rule, which
knows what a zero against an infinity gives.  The sweep calls these as kernels: graphs that have no
such records need not wait for them.
"""

from tapegrad.kernels.flags import helper, typed
from tapegrad.kernels.memory import f8, i8
from tapegrad.kernels.sweep.arena import all_finite, data, give_back, saved, take, wanted, widened
from tapegrad.kernels.sweep.reachability import input_at
from tapegrad.kernels.sweep.solve_adjoints import add_matrices, as_doubles, row_and_column
from tapegrad.kernels.sweep.sweep_abi import (
    FACTOR_BATCH,
    FACTOR_COLUMNS,
    FACTOR_FLAGS,
    FACTOR_ROWS,
    FACTOR_SIDE,
    SYSTEM,
    SweepFrame,
)
from tapegrad.tape.record_format import AUX, FIELDS, SHAPE

SQUARE = SYSTEM * 8  # bytes of the largest matrix
SIDE = (1 << FACTOR_SIDE) - 1


@typed
def times(out_at, a_at, a0, a1, b_at, b0, b1, rows, inner, cols):
    """A matrix product; both factors have strides, in elements."""
    out, a, b = f8(out_at), f8(a_at), f8(b_at)
    for i in range(rows):
        for j in range(cols):
            out[i * cols + j] = 0.0
        for p in range(inner):
            factor = a[i * a0 + p * a1]
            for j in range(cols):
                out[i * cols + j] += factor * b[p * b0 + j * b1]


@typed
def substitute(matrix_at, m0, m1, n, right_at, r0, r1, cols, upper, unit):
    """Solve with a triangular matrix in place; both have strides, in elements."""
    matrix, right = f8(matrix_at), f8(right_at)
    for step in range(n):
        i = n - 1 - step if upper else step
        first, last = (i + 1, n) if upper else (0, i)
        for k in range(first, last):
            factor = matrix[i * m0 + k * m1]
            for j in range(cols):
                right[i * r0 + j * r1] -= factor * right[k * r0 + j * r1]
        if not unit:
            for j in range(cols):
                right[i * r0 + j * r1] /= matrix[i * m0 + i * m1]


@typed
def mirror(at, n):
    """Put the mirror image of the lower triangle into the upper one."""
    a = f8(at)
    for i in range(n):
        for j in range(i):
            a[j * n + i] = a[i * n + j]


# -- the rules of one matrix: from g and y to out, with four matrices of room ----------------------


@helper
def of_inverse(g, y, out, room, m, n):
    """-yt g yt."""
    times(room, y, 1, n, g, n, 1, n, n, n)
    times(out, room, n, 1, y, 1, n, n, n, n)
    found = f8(out)
    for i in range(n * n):
        found[i] = -found[i]


@helper
def of_cholesky(g, y, out, room, m, n):
    """inv(yt) s inv(y), s being half the symmetric matrix of the lower triangle of yt g."""
    times(out, y, 1, n, g, n, 1, n, n, n)
    mirror(out, n)
    found = f8(out)
    for i in range(n * n):
        found[i] *= 0.5
    substitute(y, 1, n, n, out, n, 1, n, 1, 0)
    substitute(y, 1, n, n, out, 1, n, n, 1, 0)


@helper
def of_qr(g, y, out, room, m, n):
    """(gq + q s) inv(r).mT, s being symmetric with the lower triangle of r grt - gqt q."""
    r, gr, second = y + m * n * 8, g + m * n * 8, room + SQUARE
    times(room, r, n, 1, gr, 1, n, n, n, n)
    times(second, g, 1, n, y, n, 1, n, m, n)
    inner, less = f8(room), f8(second)
    for i in range(n * n):
        inner[i] -= less[i]
    mirror(room, n)
    times(out, y, n, 1, room, n, 1, m, n, n)
    found, gq = f8(out), f8(g)
    for i in range(m * n):
        found[i] += gq[i]
    substitute(r, n, 1, n, out, 1, n, m, 1, 0)


@helper
def of_eigh(g, y, out, room, m, n):
    """v (skew(vt gv) / 2 gaps + diag(gw)) vt; vectors and values lie side by side."""
    width, second = n + 1, room + SQUARE
    times(room, y, 1, width, g, width, 1, n, n, n)
    inner, core, values, slopes = f8(room), f8(second), f8(y), f8(g)
    for i in range(n):
        for j in range(n):
            skew = inner[i * n + j] - inner[j * n + i]
            gap = values[j * width + n] - values[i * width + n]
            core[i * n + j] = 0.5 * skew / gap if skew != 0.0 else 0.0
        core[i * n + i] = slopes[i * width + n]
    times(room, y, width, 1, second, n, 1, n, n, n)
    times(out, room, n, 1, y, 1, width, n, n, n)


@helper
def of_svd(g, y, out, room, m, n):
    """U over the singular values over V: see `ops.factorizations`."""
    k = min(m, n)
    v, gv, second = y + (m + 1) * k * 8, g + (m + 1) * k * 8, room + SQUARE
    sizes, slopes = f8(y + m * k * 8), f8(g + m * k * 8)
    third, fourth = second + SQUARE, second + 2 * SQUARE
    times(room, y, 1, k, g, k, 1, k, m, k)
    times(second, v, 1, k, gv, k, 1, k, n, k)
    ugu, vgv, core = f8(room), f8(second), f8(third)
    for i in range(k):
        for j in range(k):
            left, right = ugu[i * k + j] - ugu[j * k + i], vgv[i * k + j] - vgv[j * k + i]
            total = left * sizes[j] + right * sizes[i]
            gap = (sizes[j] - sizes[i]) * (sizes[i] + sizes[j])
            core[i * k + j] = total / gap if total != 0.0 else 0.0
        core[i * k + i] = slopes[i]
    times(fourth, y, k, 1, third, k, 1, m, k, k)  # U times what is between U and V
    if m > n:
        times(third, y, k, 1, room, k, 1, m, k, k)
        outside, part, whole = f8(third), f8(g), f8(fourth)
        for i in range(m):
            for j in range(k):
                beyond = part[i * k + j] - outside[i * k + j]
                whole[i * k + j] += beyond / sizes[j] if beyond != 0.0 else 0.0
    times(out, fourth, k, 1, v, 1, k, m, k, n)
    if n > m:
        times(third, v, k, 1, second, k, 1, n, k, k)
        outside, part = f8(third), f8(gv)
        for i in range(n):
            for j in range(k):
                beyond = part[i * k + j] - outside[i * k + j]
                outside[i * k + j] = beyond / sizes[j] if beyond != 0.0 else 0.0
        times(fourth, y, k, 1, third, 1, k, m, k, n)
        found, more = f8(out), f8(fourth)
        for i in range(m * n):
            found[i] += more[i]


@helper
def of_lu(g, y, out, room, m, n):
    """inv(lt) f inv(ut) with the rows put back; factors and exchanges lie side by side."""
    width = n + 1
    found, factor, slope = f8(out), f8(y), f8(g)
    for i in range(n):
        for j in range(n):
            total = 0.0
            if j < i:  # of lt times the lower triangle of g
                total = slope[i * width + j]
                for p in range(i + 1, n):
                    total += factor[p * width + i] * slope[p * width + j]
            else:  # of the upper triangle of g times ut
                for p in range(j, n):
                    total += slope[i * width + p] * factor[j * width + p]
            found[i * n + j] = total
    substitute(y, width, 1, n, out, 1, n, n, 1, 0)
    substitute(y, 1, width, n, out, n, 1, n, 1, 1)
    for step in range(n):
        i = n - 1 - step
        there = int(factor[i * width + n]) - 1
        if there != i:
            for j in range(n):
                kept = found[i * n + j]
                found[i * n + j] = found[there * n + j]
                found[there * n + j] = kept


# -- the records -----------------------------------------------------------------------------------


@helper
def hand_on(frame_at, index, g, rule, itemsize):
    """Hand on the adjoint of a record of one input; 0, and nothing, if its rule has to."""
    frame = SweepFrame(frame_at)
    record = i8(frame.records + index * FIELDS * 8)
    code = input_at(frame, record, 0)
    if not wanted(frame, code):
        return 1
    aux = record[AUX]
    m, n = (aux >> FACTOR_ROWS) & SIDE, (aux >> FACTOR_COLUMNS) & SIDE
    batch = aux >> FACTOR_BATCH
    size = i8(frame.sizes)[record[SHAPE]]
    step, y = size // batch * 8, data(frame, saved(frame, index, 1))
    if itemsize == 4:
        g, y = widened(frame, g, 1, size, 0, 1), widened(frame, y, 1, size, 0, 1)
    count = batch * m * n
    out, room = take(frame, count * 8), take(frame, 4 * SQUARE)
    for i in range(batch):
        rule(g + i * step, y + i * step, out + i * m * n * 8, room, m, n)
    good = all_finite(out, n, 1, batch * m, n)
    if good:
        add_matrices(frame, code, out, count, itemsize)
    give_back(frame, out, count * 8)
    give_back(frame, room, 4 * SQUARE)
    if itemsize == 4:
        give_back(frame, g, size * 8)
        give_back(frame, y, size * 8)
    return 1 if good else 0


def inv_adjoint(frame_at, index, kind, g, itemsize, p5, p6, p7):
    """Of an inverse."""
    return hand_on(frame_at, index, g, of_inverse, itemsize)


def cholesky_adjoint(frame_at, index, kind, g, itemsize, p5, p6, p7):
    """Of Cholesky's factor."""
    return hand_on(frame_at, index, g, of_cholesky, itemsize)


def qr_adjoint(frame_at, index, kind, g, itemsize, p5, p6, p7):
    """Of an orthogonal and a triangular factor."""
    return hand_on(frame_at, index, g, of_qr, itemsize)


def eigh_adjoint(frame_at, index, kind, g, itemsize, p5, p6, p7):
    """Of the eigenvalues and eigenvectors of symmetric matrices."""
    return hand_on(frame_at, index, g, of_eigh, itemsize)


def svd_adjoint(frame_at, index, kind, g, itemsize, p5, p6, p7):
    """Of singular values and vectors."""
    return hand_on(frame_at, index, g, of_svd, itemsize)


def lu_adjoint(frame_at, index, kind, g, itemsize, p5, p6, p7):
    """Of the factors of elimination, of square matrices."""
    return hand_on(frame_at, index, g, of_lu, itemsize)


def solve_triangular_adjoint(frame_at, index, kind, g, itemsize, p5, p6, p7):
    """Of the solutions of triangular systems: x = inv(at) g to b, a triangle of -x yt to a."""
    frame = SweepFrame(frame_at)
    record = i8(frame.records + index * FIELDS * 8)
    aux = record[AUX]
    n, cols = (aux >> FACTOR_ROWS) & SIDE, (aux >> FACTOR_COLUMNS) & SIDE
    batch = aux >> FACTOR_BATCH
    upper, unit = (aux >> FACTOR_FLAGS) & 1, (aux >> FACTOR_FLAGS >> 1) & 1
    header = saved(frame, index, 0)
    a, y = data(frame, header), data(frame, saved(frame, index, 2))
    s0, s1 = row_and_column(frame, header, itemsize)
    count, matrices = batch * n * cols, batch * n * n
    right = as_doubles(frame, g, 1, count, 0, 1, itemsize)
    reads_y = itemsize == 4 and wanted(frame, input_at(frame, record, 0))  # else it is not kept
    if reads_y:
        y = widened(frame, y, 1, count, 0, 1)
    if itemsize == 4:
        if batch == 1:
            a, s0, s1 = widened(frame, a, n, n, s0, s1), n, 1
        else:  # matrices of a batch lie one after the other
            a = widened(frame, a, 1, matrices, 0, 1)
    for i in range(batch):
        at = right + i * n * cols * 8
        substitute(a + i * n * n * 8, s1, s0, n, at, cols, 1, cols, 1 - upper, unit)
    good = all_finite(right, cols, 1, batch * n, cols)
    code = input_at(frame, record, 0)
    if good and wanted(frame, code):
        out = take(frame, matrices * 8)
        for i in range(batch):
            at, here = i * n * cols * 8, f8(out + i * n * n * 8)
            times(out + i * n * n * 8, right + at, cols, 1, y + at, 1, cols, n, cols, n)
            for r in range(n):
                for c in range(n):
                    inside = c > r if upper else c < r
                    if inside or (c == r and not unit):
                        here[r * n + c] = -here[r * n + c]
                    else:
                        here[r * n + c] = 0.0
        good = all_finite(out, n, 1, batch * n, n)
        if good:
            add_matrices(frame, code, out, matrices, itemsize)
        give_back(frame, out, matrices * 8)
    code = input_at(frame, record, 1)
    if good and wanted(frame, code):
        add_matrices(frame, code, right, count, itemsize)
    give_back(frame, right, count * 8)
    if reads_y:
        give_back(frame, y, count * 8)
    if itemsize == 4:
        give_back(frame, a, matrices * 8)
    return 1 if good else 0
