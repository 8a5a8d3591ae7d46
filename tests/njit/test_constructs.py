"""What Numba's language offers, one function each: loops, branches, arrays, tuples, calls."""

import math
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import njit

from tests.njit.cases import A1, A2, A40, B1, IDX, collected_in, name_of
from tests.njit.checking import check

pytestmark = pytest.mark.tapegrad_only("no other library has this")

CASES = []
case = collected_in(CASES)


@case(A1, IDX)
def gather_scatter(x, idx):
    y = np.zeros(7)
    for k in range(len(idx)):
        y[idx[k]] += x[k] * x[idx[k]]
    s = 0.0
    for k in range(7):
        s += y[k] ** 3
    return s


@case(A1)
def early_return(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i]
        if s > 2.0:
            return s * x[i]
    return s


@case(A2)
def nested_break_continue(a):
    s = 1.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] < -1.0:
                continue
            if a[i, j] > 0.9:
                break
            s = s * (1.0 + 0.1 * a[i, j]) + a[i, j] * a[i, j]
        if s > 50.0:
            break
    return s


@case(A2)
def views(a):
    s = 0.0
    for i in range(a.shape[0]):
        row = a[i]
        for j in range(1, len(row)):
            s += row[j] * row[j - 1] * a[i, -1]
    col = a[:, 2]
    part = a[1:3, ::2]
    return s + col[0] * col[-1] + part[1, 1] ** 2


@case(A1)
def inplace_arg(x):
    for i in range(1, len(x)):
        x[i] = x[i] * x[i - 1] + math.sin(x[i])
    return x[-1] + x[2] * x[3]


@case(A1, B1)
def array_result(x, y):
    out = np.empty(len(x))
    for i in range(len(x)):
        out[i] = x[i] * y[i] + (out[i - 1] if i > 0 else 0.0)
    return np.sum(out * out)


@case(A1)
def alloc_in_loop(x):
    s = 0.0
    for i in range(5):
        t = np.zeros(3)
        for j in range(3):
            t[j] = x[i] * x[j] + s
        s = s + t[0] * t[1] * t[2] * 0.1
    return s


@case(2.0, 0.7)
def while_scalar(x, y):
    n = 0
    while x * x + y * y < 1e4 and n < 15:
        x, y = x * 1.1 - y * 0.3, y * x * 0.2 + 1.0
        n += 1
    return x * y + n


@njit
def helper(a, k):
    s = 0.0
    for i in range(k, len(a)):
        s += a[i] * a[i]
    return math.sqrt(s), a[k] * s


@case(A1)
def calls(x):
    total = 0.0
    for k in range(len(x)):
        r, q = helper(x, k)
        total += r * q
    return total


@case(A1)
def iterate(x):
    s = 1.0
    for v in x:
        s = s * v + math.cos(s)
    return s


@case(A1)
def maximum(x):
    m = -np.inf
    k = -1
    for i in range(len(x)):
        if x[i] > m:
            m = x[i]
            k = i
    return m * x[(k + 1) % len(x)] + max(x[0], x[1]) * min(x[2], x[3]) * abs(x[4])


@case(1.3)
def integers(x):
    s = 0.0
    k = 10
    while k != 1:
        if k % 2 == 0:
            k = k // 2
        else:
            k = 3 * k + 1
        s += x**2 / k
    return s


@case(A1)
def local_table(x):
    order = np.zeros(7, np.int64)
    for i in range(7):
        order[i] = (3 * i + 1) % 7
    s = 0.0
    for i in range(7):
        j = order[order[i]]
        s += x[j] * x[i] ** 2
        order[i] = j
    return s


@case(A1)
def ternaries(x):
    s = 0.0
    for i in range(len(x)):
        t = x[i] if x[i] > 0 else -2.0 * x[i] * x[i]
        u = t if t < 1.0 else 1.0 + math.log(t)
        s += u * t
    return s


@case(A1, B1)
def swap_views(x, y):
    a, b = x.copy(), y.copy()
    for k in range(6):
        for i in range(7):
            b[i] = a[i] * b[i] * 0.5 + a[(i + k) % 7]
        if k % 2 == 0:
            a, b = b, a
    return np.sum(a * a) + b[3]


@case(A2)
def slice_assign(a):
    b = np.zeros((4, 5))
    b[1:3] = a[1:3] * a[2:4]
    b[0] = a[3]
    b[:, 1] += a[:, 0]
    b *= 2.0
    return np.sum(b * b * b)


@case(A1, 3)
def int_argument(x, n):
    s = 0.0
    for i in range(n):
        s += x[i] ** (i + 1)
    return s


@case((1.0, 2.0), A1)
def tuple_argument(p, x):
    a, b = p
    s = 0.0
    for i in range(len(x)):
        s += a * x[i] + b * x[i] ** 2
    return s * p[0]


@case(A1)
def triple_state(x):
    a, b, c = 0.1, 0.2, 0.3
    for i in range(len(x)):
        a, b, c = b * x[i], c + a * a, a - b * c
    return a + b * c


@case(A2)
def reverse_range(a):
    n = a.shape[0]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        s = a[i, 4]
        for j in range(i + 1, n):
            s -= a[i, j] * x[j]
        x[i] = s / (2.0 + a[i, i] ** 2)
    return x[0] + x[1] * x[2]


@case(A1)
def boolean_flags(x):
    found = False
    s = 0.0
    for i in range(len(x)):
        if not found and x[i] > 0.3:
            found = True
            s += x[i] ** 3
        elif found and x[i] < 0:
            s *= x[i]
        else:
            s += 1.0
    return s


@case(A1)
def while_break_in_for(x):
    s = 0.0
    for i in range(len(x)):
        t = abs(x[i]) + 0.1
        k = 0
        while True:
            t = t * t + 0.1
            k += 1
            if t > 3.0 or k > 4:
                break
            s += t
        s += t * k
    return s


@case(A40)
def gauss_seidel(x):
    for _ in range(3):
        for i in range(1, len(x) - 1):
            x[i] = 0.3 * x[i - 1] + 0.4 * x[i] * x[i] + 0.2 * x[i + 1]
    return np.sum(x * x)


@case(A40)
def stencil_swapped(x):
    u, v = x.copy(), x.copy()
    for _ in range(4):
        for i in range(1, len(x) - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] * u[i + 1] - 2.0 * u[i])
        u, v = v, u
    return np.sum(u * u * u)


@case(A40)
def halves(x):
    n = len(x) // 2
    for i in range(n):
        x[i] = x[i + n] * x[i] + x[n - 1 - i + n] * 0.5
    return np.sum(x * x)


@case(A40)
def shifted(x):
    for i in range(len(x) - 3):
        x[i] = x[i + 1] * x[i + 3] + x[i]
    return np.sum(x * x)


@case(A40)
def same_buffer(x):
    u = x
    v = x
    for _ in range(2):
        for i in range(1, len(x) - 1):
            v[i] = math.sin(u[i - 1]) * u[i + 1]
        u, v = v, u
    return np.sum(u * u)


@case(A40, 1.3)
def reductions(x, k):
    s = 0.0
    p = 0.0
    for i in range(1, len(x)):
        s += k * x[i] * x[i - 1]
        p = p * 0.5 + x[i] * s
    return s * p


@case(A1)
def enumerate_array(x):
    s = 0.0
    for i, v in enumerate(x):
        s += (i + 1) * v * v
    return s


@case(A1, B1)
def zip_arrays(x, y):
    s = 0.0
    for k, (a, b) in enumerate(zip(x, y[1:])):
        s += a * math.sin(b) * k
    return s


@case(A2)
def rows_in_a_loop(a):
    s = 0.0
    for row in a:
        s += row[0] * row[1] ** 2
    return s


@case(A1)
def array_of_no_elements(x):
    s = 1.0
    for v in x[7:]:
        s *= v
    for v in np.zeros(0):
        s += v
    return s * x[0]


@case(1.5, 0.3)
def loop_over_a_tuple(x, y):
    s = 0.0
    for v in (x, y, x * y):
        s += v * v * x
    return s


@case(A1, 3)
def tuple_at_a_place(x, n):
    t = (x[0], x[1] * x[2], x[3])
    s = 0.0
    for i in range(n):
        s += t[i] * t[i - 1]
    return s


class Pair(NamedTuple):
    a: float
    b: float


@case(A1)
def named_tuples(x):
    p = Pair(x[0] * x[1], x[2])
    return p.a * p.b + p[0]


@case(A1)
def slices_that_overlap(x):
    y = x.copy()
    y[1:] = y[:-1]
    y[:-2] = y[2:]
    y[::-1] = y
    return np.sum(y * y * x)


@case(A1, compiled=True)
def update_that_overlaps(x):
    y = x.copy()
    y[1:] += y[:-1]
    return np.sum(y * y)


@case(A1)
def backwards_slice(x):
    return np.sum(x[::-1] * x * x[0])


@case(A1)
def negative_indices(x):
    s = 0.0
    for i in range(-3, 3):
        s += x[i] * x[-1 - i] ** 2
    return s


@case((0.3, (1.2, A1)), 2.0)
def nested_tuples(p, y):
    a, (b, x) = p
    return a * b * y + x[0] * x[1] * a


@njit
def with_defaults(x, a=2.0, n=3):
    return x * a + n * x * x


@case(0.7)
def defaults_and_keywords(x):
    return with_defaults(x) + with_defaults(x, n=2) * with_defaults(x, 3.0, n=1)


@case(A1)
def several_returns(x):
    for i in range(len(x)):
        for j in range(i):
            if x[i] * x[j] > 0.4:
                return x[i] * x[j] ** 2
            if x[i] + x[j] < -2.0:
                return -x[j]
    return x[0]


@case(A1)
def unused_and_constant(x):
    y = x * 3.0
    z = np.zeros(3)
    z[0] = 2.0
    return x[0] * z[0] + len(y)


@case(0.7, 10)
def loop_that_does_not_run(x, n):
    s = x
    for i in range(n, 5):
        s = s * i
    while s > 1e9:
        s *= x
    return s * x


@case(A1.astype(np.float32), differences=False, tolerance=1e-4)
def single_precision(x):
    s = np.float32(0)
    for i in range(len(x)):
        s += x[i] * x[i]
    return float(s)


@case(A2)
def fortran_order(a):
    b = np.dot(a.T, a)
    return np.sum(b[1:3, ::2] * b[0:2, 1:4])


@case(A1, A2)
def strided_views(x, a):
    c = a[:, 1]
    c[::2] = x[:2]
    a[1::2, 1:4] *= 2.0
    return np.sum(a * a) + c[1]


@case(A1)
def stack_of_views(x):
    u = x[:3]
    s = 0.0
    for i in range(4):
        v = x[i : i + 3]
        s += u[0] * v[1] * v[2]
        u = v
    return s


@pytest.mark.parametrize(("f", "args", "options"), CASES, ids=name_of)
def test_construct(f, args, options):
    check(f, args, **options)


@pytest.mark.parametrize(("f", "args", "options"), CASES[::4], ids=name_of)
def test_construct_where_bounds_are_checked(f, args, options):
    checked = njit(boundscheck=True)(f.py_func)
    check(checked, args, **options)


def test_parallel_loops_run_as_one_thread():
    @njit(parallel=True)
    def total(x):
        s = 0.0
        for i in numba.prange(len(x)):
            s += x[i] ** 3
        return s

    check(total, (A1,))
