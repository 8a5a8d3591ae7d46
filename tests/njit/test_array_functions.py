"""Functions of `math` and NumPy, and operators, a few to each function."""

import math

import numpy as np
import pytest
from numba import njit

from tests.njit.cases import A1, A2, B1, B2, IDX, collected_in, name_of, rng
from tests.njit.checking import check

pytestmark = pytest.mark.tapegrad_only("no other library has this")

CASES = []
case = collected_in(CASES)


@case(A2, B2)
def matmul(a, b):
    c = a @ b
    d = np.dot(c.T, a)
    return np.sum(c) + np.sum(d * d)


@case(A2, A1[:5].copy())
def matvec(a, x):
    y = a @ x
    return np.dot(y, y) + np.sum(np.tanh(y))


@case(A2, B1[:5].copy())
def broadcast_expressions(a, b):
    c = a * b + 2.0
    d = np.exp(-a) * c - b / (1.0 + a * a)
    return np.sum(d * d) + np.mean(c)


@case(A2)
def shapes_from_tuples_and_names(a):
    shape = (5, 4)
    b = a.reshape(*shape) * 2.0 + a.reshape(*shape[:-1], 4)
    c = np.expand_dims(a, axis=-1) * np.swapaxes(b, axis1=0, axis2=1)[:, :, None]
    return np.sum(b * b) + np.sum(c * c)


@case(A2, B1[:4].copy())
def broadcast_columns(a, b):
    column = b.reshape((4, 1))
    c = a * column
    c += column
    return np.sum(c * c)


@case(A1)
def where_and_clip(x):
    y = np.where(x > 0.2, x * x, -x)
    return np.sum(np.clip(y, 0.1, 0.9) * x)


@case(0.3, A1[:2].copy())
def arrays_of_rows(a, x):
    c, s = np.cos(a), np.sin(a)
    turn = np.array([[c, -s], [s, c]])
    rows = [[a, 1.0], [x[0], x[1]]]
    return np.sum(turn @ x) + np.array(rows)[1, 0] * np.array([(c, s, 1.0), (s, s, c)])[1, 2]


@case(A2, A1)
def turned_views(a, x):
    swapped, back, ends = np.swapaxes(a, 0, 1), np.flip(a), np.flip(x)
    ends[0] = 2.0 * x[1]
    return np.sum(swapped[1] * swapped[2]) * back[0, 1] + np.sum(ends * x) + x[-1]


@case(A2, A1)
def views_with_dimensions_moved_and_added(a, x):
    row, deep, column = np.atleast_2d(x), np.atleast_3d(a), np.atleast_3d(x)[0]
    moved, back = np.moveaxis(deep, 2, 0), np.moveaxis(deep, 0, -1)
    return np.sum(np.atleast_1d(row[0]) * x) + moved[0, 1, 0] * back[2, 0, 1] + column[1, 0] ** 2


@case(A2, A1)
def all_elements_in_order(a, x):
    places = np.array([1, -1, 2])
    return np.cumsum(a)[7] * np.cumprod(a)[3] + np.sum(np.take(x, places)) * np.vdot(x, x)


@case(A2)
def covariances_of_rows(a):
    c, r = np.cov(a), np.corrcoef(a * a) * np.corrcoef(a[0], a[1] * a[2])[0, 1]
    return np.sum(c * c) + r[0, 1] * r[1, 2]


@case(A2)
def what_is_close(a):
    b = a * a
    b[0] = a[0] * (1 + 1e-7)
    return np.sum(np.where(np.isclose(a, b), a * b, b))


@case(A1)
def extremes_but_for_nan(x):
    y = x.copy()
    y[0] = y[3] = np.nan
    return np.nanmax(y) * np.nanmin(y) ** 2


@case(A2[:4, :4].copy())
def signed_logarithm(a):
    sign, size = np.linalg.slogdet(a)
    return sign * size * size


@case(A1)
def until_all_are_close(x):
    y, counts = x.copy(), np.histogram(x, 3)[0]
    for _ in range(60):
        z = 0.5 * np.cos(y) + 0.1 * x
        if np.allclose(z, y, 1e-13, 1e-13):
            break
        y = z
    return np.sum(y * y) * counts[0]


@case(A1)
def rounded(x):
    y = np.round(x) + np.around(x, 1) + 1.0
    return np.sum(y * x) + np.round(x[0]) * x[1] + np.round(x[2], 1) * x[3]


@case(A1)
def statistics(x):
    return np.var(x) * np.std(x) + np.prod(x[:3]) + np.max(x) * np.min(x) + x[np.argmax(x)]


@case(A1[:3].copy(), B1[:3].copy())
def cross(x, y):
    z = np.cross(x, y)
    return np.sum(np.cross(z, x) * y) if np.any(z) and not (z > 9.0).all() else 0.0


@case(A1[:3].copy())
def cross_with_lists_and_tuples(x):
    z = np.cross([0, 0, 1], x * x) + np.cross((x[0], x[1], 1.0), x)
    return np.sum(z * np.cross(x, [0.5, x[2], 2.0]))


@case(A2, rng.normal(size=(3, 4, 2)))
def reductions_along_an_axis(a, b):
    rows = np.sum(a * a, 0) * a[np.argmin(a, axis=0)[1]] + a.sum(axis=-1)[2]
    s = 0.0
    for i, k in enumerate(b.argmax(1)[:, 0]):
        s += b[i, k, 0] ** 2
    return s * np.sum(rows * a.sum(0)) + np.sum(b.sum(1) * np.sum(b, axis=2)[0, 1]) + b[0, 0].sum(0)


SQUARE, SINGULAR = rng.normal(size=(4, 4)), np.outer(A1[:3], B1[:3]) + np.diag([1.0, 0.0, 0.0])


@case(SQUARE, A1[:4].copy(), B2[:4].copy())
def systems(a, x, b):
    y = np.linalg.solve(a, x)
    return np.sum(y * y * x) + np.sum(np.linalg.solve(a.T, b) * b)


@case(SQUARE, B2[:4].copy())
def inverses(a, b):
    return np.sum((np.linalg.inv(a) @ b) ** 2)


@case(SQUARE, SINGULAR)
def determinants(a, b):
    return np.linalg.det(a) ** 2 + np.linalg.det(b)


@case(SQUARE)
def cholesky(a):
    lower = np.linalg.cholesky(a @ a.T + np.eye(4))
    return np.sum(lower * a) + lower[3, 1] * lower[2, 2] ** 2


@case(SQUARE)
def eigenvectors(a):
    w, v = np.linalg.eigh(a)
    s = np.sum(w[:3] * v[0, 1:] ** 3) + v[1, 0]
    for _ in range(2):
        w, v = np.linalg.eigh(v * np.tanh(w) @ v.T + a)
        s += w[0] * v[1, 2] + np.linalg.eigvalsh(a.T[1:, 1:])[0]
    return s


@case(SQUARE, A2)
def orthogonal_factors(a, b):
    q, r = np.linalg.qr(a)
    s = np.sum(q[:, 1] ** 3) + np.sum(r**3)
    q, r = np.linalg.qr(b)
    wide, (q, r) = q[1, 2] * r[0, 4] + r[1, 1], np.linalg.qr(b.T)
    return s + wide * q[4, 2] + r[0, 3]


@case(SQUARE, A2)
def singular_vectors(a, b):
    u, s, v = np.linalg.svd(a)
    x = np.sum(s**3 * u[1]) * v[2, 1] + u[1, 2] * v[3, 0]
    u, s, v = np.linalg.svd(b, full_matrices=False)
    x += np.sum(v**3) * u[1, 2] * s[1]
    u, s, v = np.linalg.svd(b.T)
    return x + np.sum(u[:, :4] ** 3) * v[0, 1] * s[3]


@case(A2, A1[:4].copy())
def pseudoinverses(a, x):
    y = np.linalg.pinv(np.outer(x, x[:3] ** 2), rcond=1e-10)  # of rank 1
    return np.sum(np.linalg.pinv(a) ** 3) + np.sum(y**3) * y[0, 1]


@case(B2, A1[:5].copy(), A2)
def least_squares(a, b, c):
    x, left, rank, s = np.linalg.lstsq(a, b)
    return np.sum(x**3) + left[0] * s[1] + rank * np.linalg.lstsq(a, c.T, 1e-9)[0][1, 2]


@case(SQUARE + np.diag([9.0, 3.0, -3.0, -9.0]))
def general_eigenvectors(a):
    w, v = np.linalg.eig(a)
    return np.sum(w[1:] * v[0, 1:] ** 3) + v[1, 0] + np.linalg.eigvals(a.T)[1]


@case(SQUARE, B2)
def singular_values(a, b):
    s = np.linalg.cond(a) * np.linalg.norm(a[1:], 2) + np.linalg.norm(b, -2) + np.linalg.cond(b, -2)
    return s + np.linalg.cond(a, np.inf)


@case(SQUARE, A1, 2.5)
def norms(a, x, p):
    s = np.linalg.norm(a, 1) * np.linalg.norm(a, np.inf) + np.linalg.norm(a, -np.inf)
    for order in (0.0, 1.0, 2.0, 3.0, np.inf, -np.inf):
        s += np.linalg.norm(x, order) ** 2
    return s * np.linalg.norm(x, p) + np.linalg.norm(a, -1)


@case(SQUARE, A1[:4].copy())
def diagonals(a, x):
    b = np.diag(x) @ a + np.identity(4) * x[0]
    return np.trace(b) * np.sum(np.diag(b @ a) * x)


@case(A1, A2, IDX)
def arrays_as_indices(x, a, places):
    chosen = x[places] * x[places[::-1]]
    rows = a.T[places[:2] - 1]
    return np.sum(chosen**2) * np.sum(x[x > -0.1]) + np.sum(rows[0] * rows[1]) * sum(chosen)


@case(A2)
def arrays_in_fortran_order(a):
    b, c = np.exp(a.T).T, np.empty_like(a.T)
    for i in range(5):
        for j in range(4):
            c[i, j] = a[j, i] ** 2
    flat, d = (a.T * 2.0).T.ravel(), np.asfortranarray(np.asfortranarray(a))
    d[0, 0] *= np.asfortranarray(a[::2].T)[0, 1]
    return (
        np.sum(d * a)
        + np.asfortranarray(a[0])[1] * b[1, 3] * b[2, 0]
        + np.sum(b[1] * c.T[2]) * flat[3] * flat[7]
        + np.zeros_like(c).T[0, 1]
    )


@case(A2)
def copies_only_where_the_order_is_another(a):
    b = a.copy()
    whole, part = np.ascontiguousarray(b[0][::1]), np.ascontiguousarray(b[1][::2])
    whole[1] *= 3.0 * a[3, 3]
    part[1] *= a[0, 0]
    columns, rows = np.asfortranarray(b.T[::1]), np.asfortranarray(b[::1])
    columns[1, 1] *= a[2, 2]
    rows[2, 0] *= a[0, 1]
    np.real(b)[3, 0] *= 2.0
    return np.sum(b * a) + np.sum(part**2) + np.sum(rows**3) + columns[1, 2] * whole[1]


@case(0.7, 2.5)
def angles_and_factorials(x, y):
    whole = math.radians(x) + np.deg2rad(y) * np.radians(x) + math.degrees(x) * np.rad2deg(y)
    return whole * math.lgamma(y) + np.degrees(x * y)


@case(A1)
def cumulated(x):
    return np.sum(np.cumsum(x) * np.cumprod(x)) + np.linalg.norm(x)


@case(1.3, 0.4)
def ranges(a, b):
    x = np.linspace(a, b, 5)
    y = np.arange(4) * a
    return np.sum(x * x) + np.sum(y * y) * b


@case(A1, B1)
def outer(x, y):
    return np.sum(np.outer(x, y) * np.outer(y, y))


@case(A2)
def shapes(a):
    b = a.T.copy().reshape(2, 10)
    return np.sum(b[0] * b[1]) + np.sum(a.ravel()[:10] * a.flatten()[10:])


@case(A2)
def filled(a):
    b = np.full((4, 5), a[0, 0])
    c = np.ones_like(a)
    c.fill(a[1, 1])
    b[:, 2] = a[2, 2]
    b[1] = 3.0
    return np.sum(b * c * a)


@case(0.7, 1.2)
def mathematics(x, y):
    s = math.sin(x) + math.cos(y) * math.tan(x) + math.exp(x) * math.log(y)
    s += math.sqrt(y) + math.atan2(x, y) + math.hypot(x, y) + math.log1p(x) + math.expm1(y)
    s += math.asin(x) + math.acos(x) + math.atan(y) + math.sinh(x) + math.cosh(y) + math.tanh(x)
    s += math.erf(x) + math.erfc(y) + math.log2(y) + math.log10(y) + math.copysign(x, -y)
    return s + math.asinh(x) + math.acosh(y) + math.atanh(x) + math.fabs(-x) + math.pow(x, y)


@case(0.7, 1.2)
def ufuncs_of_numbers(x, y):
    s = np.sin(x) * np.exp(y) + np.maximum(x, y) * np.minimum(x, y) + np.square(x) * np.cbrt(y)
    s += np.logaddexp(x, y) + np.exp2(x) + np.sign(x) * y + np.abs(-x) + np.arctan2(y, x)
    return s + np.power(x, y) + x**y + x**-2 + np.reciprocal(y) + np.fmax(x, y) * np.floor(3 * y)


@case(2.7, 1.2)
def remainders(x, y):
    return x % y + x // y * y + np.fmod(-x, y) * x + divide(7, 2) * x + (-7) // 2 * y + -7 % 3 * x


@njit
def divide(a, b):
    return a / b


@case(0.7)
def powers(x):
    s = x**0 + x**1 + x**2 + x**5 + x**0.5 + 2.0**x
    for i in range(4):
        s += x**i
    return s


@case(0.7, True, 3)
def booleans_and_integers(x, flag, n):
    s = x if flag else -x
    k = (n & 1) + (n | 4) * (n ^ 2) + (n << 2) + (n >> 1) - ~n + abs(-n) + min(n, 2)
    if (flag and x > 0) or n != 3:
        s *= k
    return s * x + float(n) + int(x * 10 + 0.3) * x


@case(0.7)
def classified(x):
    s = x
    if math.isnan(x) or math.isinf(x) or not np.isfinite(x):
        s = 0.0
    return s * x


@case(A1, B1, compiled=True)
def written_into_out(x, w):
    """An `out` takes the elements one by one, as in Numba; what it held is gone."""
    y = w.copy()
    z = np.sin(x, y)
    np.multiply(y[1:], y[:-1], y[1:])
    np.divide(z, 1.5, y)
    np.clip(np.add(x[0], w, np.empty_like(w)), -0.5, 0.5, z[:])
    low = np.zeros(len(x), np.bool_)
    np.less(x, w, low)
    return np.sum(y * x) + np.sum(x[low])


@case(A2, B2)
def products_into_out(a, b):
    c, d = np.ones((4, 3)), np.empty(3)
    np.dot(a, b, out=c)
    np.dot(c.T, a[:, 1].copy(), d)
    wide = np.empty((2, 3))
    np.exp(d, wide)
    return np.sum(c * c) + np.sum(wide * np.tanh(d))


@pytest.mark.parametrize(("f", "args", "options"), CASES, ids=name_of)
def test_functions(f, args, options):
    check(f, args, **options)
