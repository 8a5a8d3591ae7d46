"""Adjoints of the factors of a product of two matrices or vectors, by BLAS."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call_gemm, f4, f8, i4, i8, u1
from tapegrad.kernels.sweep.arena import (
    all_finite,
    data,
    finite_f4,
    give_back,
    saved,
    stride,
    widened,
)
from tapegrad.kernels.sweep.view_adjoints import clear
from tapegrad.tape.tape import AUX


@typed
def blas_order(s0, s1, rows, cols):
    """How BLAS can read a matrix: 1 by rows, 2 by columns, 0 not at all (its rows overlap, say)."""
    if s1 == 1 and (s0 >= cols or rows == 1):
        return 1
    if s0 == 1 and (s1 >= rows or cols == 1):
        return 2
    return 0


@typed
def gemm(frame, is_f4, first_turned, second_turned, m, n, k, a, lda, b, ldb, fresh, c, ldc):
    """c[n, m] (+)= op(b)[n, k] op(a)[k, m] in C order: BLAS's own columns are our rows."""
    block = frame.gemm_arguments
    words = i8(block)
    sizes = i4(block + 13 * 8)
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5] = m, n, k, lda, ldb, ldc
    if is_f4:
        f4(block + 16 * 8)[0], f4(block + 17 * 8)[0] = 1.0, 0.0 if fresh else 1.0
    else:
        f8(block + 16 * 8)[0], f8(block + 17 * 8)[0] = 1.0, 0.0 if fresh else 1.0
    letters = u1(block + 18 * 8)
    letters[0] = 84 if first_turned else 78  # "T" or "N"
    letters[1] = 84 if second_turned else 78
    at = block + 13 * 8
    words[0], words[1] = block + 18 * 8, block + 18 * 8 + 1
    words[2], words[3], words[4] = at, at + 4, at + 8
    words[5] = block + 16 * 8
    words[6], words[7], words[8], words[9] = a, at + 12, b, at + 16
    words[10] = block + 17 * 8
    words[11], words[12] = c, at + 20
    call_gemm(frame.gemm_f4 if is_f4 else frame.gemm, block)


@typed
def by_blas(frame, is_f4, k, at, s0, s1, g, out, m, inner, cols, fresh):
    """Add the adjoint of a factor by BLAS; False where that cannot read the other, at `at`.

    Nor may a number in that be infinite or NaN, for a zero of g contributes zero.
    """
    rows, width = inner if k == 0 else m, cols if k == 0 else inner
    order = blas_order(s0, s1, rows, width)
    if order == 0:
        return False
    if is_f4:
        if not (finite_f4(at, s0, s1, rows, width) if order == 1
                else finite_f4(at, s1, s0, width, rows)):  # fmt: skip
            return False
    elif not all_finite(at, s0, s1, rows, width):
        return False
    pace = max(s0, width) if order == 1 else max(s1, rows)
    if k == 0:
        gemm(
            frame, is_f4, order == 1, False, inner, m, cols, at, pace, g, cols, fresh, out, inner
        )  # fmt: skip
    else:
        gemm(
            frame, is_f4, False, order == 1, cols, inner, m, g, cols, at, pace, fresh, out, cols
        )  # fmt: skip
    return True


@typed
def left_adjoint(at, s0, s1, g, out, m, inner, cols, fresh):
    """out[m, inner] += g[m, cols] @ b[inner, cols]^T; a zero of g contributes zero."""
    b = f8(at)
    adjoint, target = f8(g), f8(out)
    if fresh:
        clear(out, m * inner * 8)
    for i in range(m):
        for c in range(cols):
            weight = adjoint[i * cols + c]
            if weight != 0.0:
                for k in range(inner):
                    target[i * inner + k] += weight * b[k * s0 + c * s1]


@typed
def right_adjoint(at, s0, s1, g, out, m, inner, cols, fresh):
    """out[inner, cols] += a[m, inner]^T @ g[m, cols]; a zero of g contributes zero."""
    a = f8(at)
    adjoint, target = f8(g), f8(out)
    if fresh:
        clear(out, inner * cols * 8)
    for i in range(m):
        for k in range(inner):
            weight = a[i * s0 + k * s1]
            for c in range(cols):
                value = adjoint[i * cols + c]
                product = weight * value
                target[k * cols + c] += product if value != 0.0 else 0.0


@typed
def strides(frame, record, index, k, is_f4):
    """How far rows and columns of the other factor than k are apart, in elements."""
    aux = record[AUX]
    m, inner, cols = aux & 0xFFFFF, (aux >> 20) & 0xFFFFF, aux >> 40
    header, shift = saved(frame, index, 1 - k), 2 if is_f4 else 3
    s0, s1 = stride(header, frame, 0, shift), stride(header, frame, 1, shift)
    if k == 0 and cols == 1:  # a vector, or a single column: its one stride is that along `inner`
        s1 = 1
    if k == 1 and m == 1:
        s0 = inner * s1
    return s0, s1


@typed
def factor_by_blas(frame, record, index, k, g, out, fresh, is_f4):
    """Add the adjoint of one factor of a matrix product, if BLAS can do it."""
    aux, at = record[AUX], data(frame, saved(frame, index, 1 - k))
    m, inner, cols = aux & 0xFFFFF, (aux >> 20) & 0xFFFFF, aux >> 40
    s0, s1 = strides(frame, record, index, k, is_f4)
    return by_blas(frame, is_f4, k, at, s0, s1, g, out, m, inner, cols, fresh)


@typed
def factor(frame, record, index, k, g, out, fresh, is_f4):
    """`factor_by_blas` without BLAS, in float64; `is_f4`: saved values are float32."""
    aux, at = record[AUX], data(frame, saved(frame, index, 1 - k))
    m, inner, cols = aux & 0xFFFFF, (aux >> 20) & 0xFFFFF, aux >> 40
    rows, width = inner if k == 0 else m, cols if k == 0 else inner
    s0, s1 = strides(frame, record, index, k, is_f4)
    if is_f4:
        at = widened(frame, at, rows, width, s0, s1)
        s0, s1 = width, 1
    if k == 0:
        left_adjoint(at, s0, s1, g, out, m, inner, cols, fresh)
    else:
        right_adjoint(at, s0, s1, g, out, m, inner, cols, fresh)
    if is_f4:
        give_back(frame, at, rows * width * 8)
