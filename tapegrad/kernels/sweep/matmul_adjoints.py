"""Adjoints of the factors of a product of two matrices or vectors, by BLAS."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call_gemm, f4, f8, i4, i8, u1
from tapegrad.kernels.sweep.arena import (
    all_finite,
    data,
    finite_f4,
    give_back,
    matrix_at,
    saved,
    stride,
    widened,
)
from tapegrad.kernels.sweep.sweep_abi import (
    ALIGNED_IN_C_ORDER,
    FIELD,
    FIELD_MASK,
    ONE_LEFT,
    ONE_RIGHT,
)
from tapegrad.kernels.sweep.view_adjoints import clear
from tapegrad.tape.record_format import AUX

TINY = 64  # multiplications for which BLAS takes longer to be called than loops to be done


@typed
def factor_size(aux, k):
    """How many elements a factor of a product has."""
    m, inner, cols = aux & FIELD_MASK, aux >> FIELD & FIELD_MASK, aux >> 2 * FIELD & FIELD_MASK
    batch = 1 if aux & (ONE_RIGHT if k else ONE_LEFT) else aux >> 3 * FIELD & FIELD_MASK
    return batch * inner * (cols if k else m)


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
def readable(is_f4, at, s0, s1, rows, width):
    """Whether BLAS can read a matrix and no number in it is infinite or NaN.

    A zero, of an adjoint or of a factor, contributes zero even beside such a number: the factor may
    be an adjoint itself, of a sweep that was recorded.
    """
    order = blas_order(s0, s1, rows, width)
    if order == 0:
        return False
    if not is_f4:
        return all_finite(at, s0, s1, rows, width)
    if order == 1:
        return finite_f4(at, s0, s1, rows, width)
    return finite_f4(at, s1, s0, width, rows)


@typed
def by_blas(frame, is_f4, k, at, s0, s1, g, out, m, inner, cols, fresh):
    """Add the adjoint of a factor, the other being the matrix at `at`, which is `readable`."""
    rows, width = inner if k == 0 else m, cols if k == 0 else inner
    order = blas_order(s0, s1, rows, width)
    pace = max(s0, width) if order == 1 else max(s1, rows)
    if k == 0:
        gemm(
            frame, is_f4, order == 1, False, inner, m, cols, at, pace, g, cols, fresh, out, inner
        )  # fmt: skip
    else:
        gemm(
            frame, is_f4, False, order == 1, cols, inner, m, g, cols, at, pace, fresh, out, cols
        )  # fmt: skip


@typed
def left_adjoint(at, s0, s1, g, out, m, inner, cols, fresh):
    """out[m, inner] += g[m, cols] @ b[inner, cols]^T; a zero of either contributes zero."""
    b = f8(at)
    adjoint, target = f8(g), f8(out)
    if fresh:
        clear(out, m * inner * 8)
    for i in range(m):
        for c in range(cols):
            weight = adjoint[i * cols + c]
            if weight != 0.0:
                for k in range(inner):
                    value = b[k * s0 + c * s1]
                    product = weight * value
                    target[i * inner + k] += product if value != 0.0 else 0.0


@typed
def right_adjoint(at, s0, s1, g, out, m, inner, cols, fresh):
    """out[inner, cols] += a[m, inner]^T @ g[m, cols]; a zero of either contributes zero."""
    a = f8(at)
    adjoint, target = f8(g), f8(out)
    if fresh:
        clear(out, inner * cols * 8)
    for i in range(m):
        for k in range(inner):
            weight = a[i * s0 + k * s1]
            if weight != 0.0:
                for c in range(cols):
                    value = adjoint[i * cols + c]
                    product = weight * value
                    target[k * cols + c] += product if value != 0.0 else 0.0


@typed
def strides(frame, header, m, inner, cols, k, shift):
    """How far rows and columns of the other factor than k are apart, in elements.

    An element takes `1 << shift` bytes.
    """
    first = max(i4(header + frame.array_strides - 16)[0] - 2, 0)
    s0, s1 = stride(header, frame, first, shift), stride(header, frame, first + 1, shift)
    if k == 0 and cols == 1:  # a vector, or a single column: its one stride is that along `inner`
        s1 = 1
    if k == 1 and m == 1:
        s0 = inner * s1
    return s0, s1


@typed
def matrix_of(frame, header, index):
    """The address of one matrix of a kept array."""
    place = header + frame.array_strides
    ndim, shape_at, strides_at = i4(place - 16)[0], i8(place - 8)[0], i8(place)[0]
    return matrix_at(data(frame, header), shape_at, strides_at, ndim, index)


@typed
def by_loops(frame, is_f4, k, at, s0, s1, g, out, m, inner, cols, fresh):
    """`by_blas` without BLAS, for any numbers; adjoints are of float64."""
    rows, width = inner if k == 0 else m, cols if k == 0 else inner
    if is_f4:
        at = widened(frame, at, rows, width, s0, s1)
        s0, s1 = width, 1
    if k == 0:
        left_adjoint(at, s0, s1, g, out, m, inner, cols, fresh)
    else:
        right_adjoint(at, s0, s1, g, out, m, inner, cols, fresh)
    if is_f4:
        give_back(frame, at, rows * width * 8)


@typed
def factor(frame, record, index, k, g, out, fresh, is_f4, blas):
    """Add the adjoint of one factor of a product of matrices, or of each product of a batch.

    With `blas` all is of one type, and False says that BLAS shall not do it.  Without it adjoints
    are of float64, and `is_f4` says that kept values are of float32.
    """
    aux, header = record[AUX], saved(frame, index, 1 - k)
    m, inner, cols = aux & FIELD_MASK, aux >> FIELD & FIELD_MASK, aux >> 2 * FIELD & FIELD_MASK
    batch, serves_all = aux >> 3 * FIELD & FIELD_MASK, aux & (ONE_RIGHT if k else ONE_LEFT)
    s0, s1 = strides(frame, header, m, inner, cols, k, 2 if is_f4 else 3)
    in_order = i4(header + frame.array_flags)[0] & ALIGNED_IN_C_ORDER == ALIGNED_IN_C_ORDER
    if aux & ONE_RIGHT and (k == 0 or in_order):
        m, batch = m * batch, 1  # rows of one matrix
        if k == 1:
            s0, s1 = inner, 1
    rows, width = inner if k == 0 else m, cols if k == 0 else inner
    if batch > 1 and m * inner * cols <= TINY and blas:
        if is_f4:
            return False
        blas = 0
    if blas:
        if not readable(is_f4, g, cols, 1, m * batch, cols):
            return False
        for i in range(batch):
            if not readable(is_f4, matrix_of(frame, header, i), s0, s1, rows, width):
                return False
    size = 4 if blas and is_f4 else 8
    step = 0 if serves_all else size * inner * (m if k == 0 else cols)
    for i in range(batch):
        at, begin = matrix_of(frame, header, i), fresh and (i == 0 or not serves_all)
        if blas:
            by_blas(frame, is_f4, k, at, s0, s1, g, out, m, inner, cols, begin)
        else:
            by_loops(frame, is_f4, k, at, s0, s1, g, out, m, inner, cols, begin)
        g += size * m * cols
        out += step
    return True
