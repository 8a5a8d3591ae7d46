"""Loops over one row of n elements that no rule says: plain sums, scans, copies, indexing.

Each takes n and up to seven addresses or counts; `kernel_table.loop` compiles it for the type in
question and `large_elementwise.launch` calls it for every row.  A sum is kept in partial sums, so
that LLVM computes it in vectors; these join the sum of a block, which joins that of a group of
blocks: few additions stand between an element and the total, as in a pairwise sum.
"""

from numba import float64 as T
from numba import float64 as double

from tapegrad.kernels.flags import helper
from tapegrad.kernels.memory import f8 as pointer
from tapegrad.kernels.memory import i8, times_f8
from tapegrad.kernels.memory import plus_f8 as plus

zero = T(0.0)
one = T(1.0)
double_zero = double(0.0)
BLOCK, GROUP = 1024, 1 << 16


def add_up(n, x_at, out_at, p3, p4, p5, p6, p7):
    """The sum."""
    x = pointer(x_at)
    total = zero
    for first in range(0, n, GROUP):
        last = min(first + GROUP, n)
        group = zero
        for start in range(first, last, BLOCK):
            part = zero
            for i in range(start, min(start + BLOCK, last)):
                part = plus(part, x[i])
            group += part
        total += group
    pointer(out_at)[0] = total
    return 0


def add_pairs_up(n, x_at, out_at, p3, p4, p5, p6, p7):
    """The sum of n pairs, which is that of complex numbers."""
    x, out = pointer(x_at), pointer(out_at)
    real = imag = zero
    for first in range(0, n, GROUP):
        last = min(first + GROUP, n)
        group_r = group_i = zero
        for start in range(first, last, BLOCK):
            r = i = zero
            for k in range(start, min(start + BLOCK, last)):
                r = plus(r, x[2 * k])
                i = plus(i, x[2 * k + 1])
            group_r += r
            group_i += i
        real += group_r
        imag += group_i
    out[0] = real
    out[1] = imag
    return 0


def add_four_up(n, x_at, step, out_at, p4, p5, p6, p7):
    """The sums of four rows, `step` bytes apart: what ends one sum overlaps with the others."""
    x0, x1 = pointer(x_at), pointer(x_at + step)
    x2, x3 = pointer(x_at + 2 * step), pointer(x_at + 3 * step)
    out = pointer(out_at)
    s0 = s1 = s2 = s3 = zero
    for start in range(0, n, BLOCK):
        t0 = t1 = t2 = t3 = zero
        for i in range(start, min(start + BLOCK, n)):
            t0 = plus(t0, x0[i])
            t1 = plus(t1, x1[i])
            t2 = plus(t2, x2[i])
            t3 = plus(t3, x3[i])
        s0 += t0
        s1 += t1
        s2 += t2
        s3 += t3
    out[0] = s0
    out[1] = s1
    out[2] = s2
    out[3] = s3
    return 0


def multiply_up(n, x_at, out_at, p3, p4, p5, p6, p7):
    """The product, of float32 in float64: each rounding is a relative error of the whole."""
    x = pointer(x_at)
    total = 1.0
    for i in range(n):
        total = times_f8(total, x[i])
    pointer(out_at)[0] = total
    return 0


def distance_up(n, a_at, b_at, out_at, p4, p5, p6, p7):
    """The sum of the squared differences of two rows."""
    a, b = pointer(a_at), pointer(b_at)
    total = zero
    for first in range(0, n, GROUP):
        last = min(first + GROUP, n)
        group = zero
        for start in range(first, last, BLOCK):
            part = zero
            for i in range(start, min(start + BLOCK, last)):
                d = a[i] - b[i]
                part = plus(part, d * d)
            group += part
        total += group
    pointer(out_at)[0] = total
    return 0


def add_columns(n, rows, step, x_at, out_at, p5, p6, p7):
    """The sum of some rows of n elements, `step` bytes apart."""
    out, x = pointer(out_at), pointer(x_at)
    for i in range(n):
        out[i] = x[i]
    for r in range(1, rows):  # one after the other: that is the order in which they lie in memory
        x = pointer(x_at + r * step)
        for i in range(n):
            out[i] += x[i]
    return 0


# -- running sums, in double precision: few bits of a million single ones would be right ----------

PART = 512  # four runs of so many elements go side by side, since each addition waits for the last


def running_sum(n, x_at, out_at, p3, p4, p5, p6, p7):
    """The sums of the elements so far."""
    x, out = pointer(x_at), pointer(out_at)
    carry = double_zero
    at = 0
    while at + 4 * PART <= n:
        a = b = c = d = double_zero
        for i in range(at, at + PART):
            a += x[i]
            b += x[i + PART]
            c += x[i + 2 * PART]
            d += x[i + 3 * PART]
            out[i] = a
            out[i + PART] = b
            out[i + 2 * PART] = c
            out[i + 3 * PART] = d
        second = carry + a
        third = second + b
        fourth = third + c
        for i in range(at, at + PART):
            out[i] += carry
            out[i + PART] += second
            out[i + 2 * PART] += third
            out[i + 3 * PART] += fourth
        carry = fourth + d
        at += 4 * PART
    while at < n:
        carry += x[at]
        out[at] = carry
        at += 1
    return 0


def running_product(n, x_at, out_at, p3, p4, p5, p6, p7):
    """The products of the elements so far."""
    x, out = pointer(x_at), pointer(out_at)
    product = double(1.0)
    for i in range(n):
        product *= x[i]
        out[i] = product
    return 0


def running_sum_back(n, x_at, out_at, p3, p4, p5, p6, p7):
    """The sums of the elements from here to the end."""
    x, out = pointer(x_at), pointer(out_at)
    carry = double_zero
    while n >= 4 * PART:
        at = n - PART
        a = b = c = d = double_zero
        for k in range(PART):
            i = at + PART - 1 - k
            a += x[i]
            b += x[i - PART]
            c += x[i - 2 * PART]
            d += x[i - 3 * PART]
            out[i] = a
            out[i - PART] = b
            out[i - 2 * PART] = c
            out[i - 3 * PART] = d
        second = carry + a
        third = second + b
        fourth = third + c
        for i in range(at, at + PART):
            out[i] += carry
            out[i - PART] += second
            out[i - 2 * PART] += third
            out[i - 3 * PART] += fourth
        carry = fourth + d
        n -= 4 * PART
    while n > 0:
        n -= 1
        carry += x[n]
        out[n] = carry
    return 0


def decay(n, a_at, b_at, out_at, p4, p5, p6, p7):
    """Each element of b plus a times the result before; a result of zero hands on zero."""
    a, b, out = pointer(a_at), pointer(b_at), pointer(out_at)
    s = double_zero
    for i in range(n):
        s = b[i] + (a[i] * s if s != double_zero else double_zero)
        out[i] = s
    return 0


def decay_back(n, a_at, b_at, out_at, p4, p5, p6, p7):
    """Each element of b plus the next a times the next result, from the end."""
    a, b, out = pointer(a_at), pointer(b_at), pointer(out_at)
    s = double_zero
    for k in range(n):
        i = n - 1 - k
        if k:
            s = a[i + 1] * s if s != double_zero else double_zero
        s += b[i]
        out[i] = s
    return 0


# -- places ----------------------------------------------------------------------------------------


@helper
def refused(n, index, size, flag_at):
    """Whether an index names a place that is not among the first `size`; it is noted as well."""
    low = high = 0
    for i in range(n):
        low = min(low, index[i])
        high = max(high, index[i])
    bad = low < 0 or high >= size
    if bad:
        i8(flag_at)[0] = 1
    return bad


def outside(n, index_at, size, flag_at, p4, p5, p6, p7):
    """Note whether an index names a place that is not among the first `size`."""
    refused(n, i8(index_at), size, flag_at)
    return 0


def copy(n, x_at, out_at, p3, p4, p5, p6, p7):
    """The elements as they are."""
    x, out = pointer(x_at), pointer(out_at)
    for i in range(n):
        out[i] = x[i]
    return 0


def fill(n, x_at, out_at, p3, p4, p5, p6, p7):
    """One number everywhere."""
    x, out = pointer(x_at)[0], pointer(out_at)
    for i in range(n):
        out[i] = x
    return 0


def backwards(n, x_at, out_at, p3, p4, p5, p6, p7):
    """The elements from the last to the first."""
    x, out = pointer(x_at), pointer(out_at)
    for i in range(n):
        out[i] = x[n - 1 - i]
    return 0


def gather(n, x_at, index_at, out_at, size, flag_at, p6, p7):
    """The elements of x that an index names; nothing where it names none, which is noted."""
    x, index, out = pointer(x_at), i8(index_at), pointer(out_at)
    if not refused(n, index, size, flag_at):
        for i in range(n):
            out[i] = x[index[i]]
    return 0


def choose(n, x_at, index_at, out_at, p4, p5, p6, p7):
    """The elements of x that an index names, which is known to name some."""
    x, index, out, whole = pointer(x_at), i8(index_at), pointer(out_at), n - n % 4
    for i in range(0, whole, 4):
        a, b, c, d = index[i], index[i + 1], index[i + 2], index[i + 3]
        out[i], out[i + 1], out[i + 2], out[i + 3] = x[a], x[b], x[c], x[d]
    for i in range(whole, n):
        out[i] = x[index[i]]
    return 0


@helper
def begin(size, x_at, out_at):
    """Copy a row, if there is one to be copied."""
    if x_at:
        x, out = pointer(x_at), pointer(out_at)
        for i in range(size):
            out[i] = x[i]


def scatter(n, source_at, index_at, out_at, x_at, size, flag_at, p7):
    """Write the elements of a source where an index says, to a copy of x if there is an x."""
    source, index, out = pointer(source_at), i8(index_at), pointer(out_at)
    if not refused(n, index, size, flag_at):
        begin(size, x_at, out_at)
        for i in range(n):
            out[index[i]] = source[i]
    return 0


def scatter_add(n, source_at, index_at, out_at, x_at, size, flag_at, p7):
    """Add the elements of a source where an index says, to a copy of x if there is an x."""
    source, index, out = pointer(source_at), i8(index_at), pointer(out_at)
    if not refused(n, index, size, flag_at):
        begin(size, x_at, out_at)
        for i in range(n):
            out[index[i]] += source[i]
    return 0


def scatter_zero(n, index_at, out_at, x_at, size, flag_at, p6, p7):
    """Write zero where an index says, to a copy of x."""
    index, out = i8(index_at), pointer(out_at)
    if not refused(n, index, size, flag_at):
        begin(size, x_at, out_at)
        for i in range(n):
            out[index[i]] = zero
    return 0


def add_rows(n, rows, step, x_at, index_at, out_at, p6, p7):
    """Add some rows to those that an index names; rows are `step` bytes apart."""
    index = i8(index_at)
    for r in range(rows):
        x, out = pointer(x_at + r * step), pointer(out_at + index[r] * step)
        for i in range(n):
            out[i] += x[i]
    return 0


def triangle(n, row, diagonal, upper, columns, x_at, out_at, p7):
    """Copy n rows of a matrix, the first being row `row`, with zeros on one side of a diagonal."""
    x, out = pointer(x_at), pointer(out_at)
    for r in range(n):
        edge = min(max(row + r + diagonal + (0 if upper else 1), 0), columns)
        base = r * columns
        for i in range(edge):
            out[base + i] = zero if upper else x[base + i]
        for i in range(edge, columns):
            out[base + i] = x[base + i] if upper else zero
    return 0
