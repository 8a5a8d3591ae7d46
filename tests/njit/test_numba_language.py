"""NumPy's functions that Numba has in its own language, and what of Python its users write."""

import math

import numba
import numpy as np
import pytest
from numba import literal_unroll, njit

import tapegrad as tg
from tests.njit.cases import A1, A2, collected_in, name_of
from tests.njit.checking import check

pytestmark = pytest.mark.tapegrad_only("no other library has this")

CASES = []
case = collected_in(CASES)
UP = np.sort(A1)


@case(A1, UP)
def functions_that_numba_has_as_source(x, up):
    s = np.sum(np.diff(x) ** 2) + np.median(x) * np.ptp(x) + np.interp(0.1, up, x)
    s += np.average(x, weights=x * x) + np.trapezoid(x * x) + np.nansum(x) * np.nanmean(x)
    return s + np.sum(np.roll(x, 2) * x) + np.sum(np.repeat(x, 2)[3:7] * x[:4])


@case(A1, UP)
def places_that_numba_finds(x, up):
    k = np.searchsorted(up, 0.1, side="right") + np.count_nonzero(x > 0)
    return x[k % 7] * np.take(x, 2) + np.sum(np.kron(x, x)[::5]) + np.sum(np.convolve(x, up)[3:5])


@case(A2)
def triangles_and_joined_rows(a):
    b = np.vstack((a, a[:2] * 2.0))
    c = np.concatenate((a, a * a), axis=1)
    return np.sum(np.tril(b) * np.triu(b)) + np.sum(c[:, 3:7] ** 2) + c[1, 6]


@case(A1)
def stacked_and_appended(x):
    s = np.sum(np.stack((x, x * x), axis=1)[:, 1]) + np.column_stack((x, x * x))[2, 1] ** 2
    return s + np.sum(np.hstack((x, x * x))[3:9] ** 2) + np.append(x, x[0] * x[1])[-1]


@case(A2, np.array([2, 0, -1]))
def vectors_among_indices(a, places):
    some = a[0] > a[1]
    parts = np.sum(a[places, 1] * a[1, places]) + np.prod(a[:, places][2] + a[places, ::-2][2, 0])
    parts += np.sum(a[1:, some] ** 2) + np.sum(a[a[:, 1] > 0.0, 2])
    b = a.copy()
    b[1, places] = a[0, :3] * 2.0
    b[:, places] *= a[:, 1:4]
    b[places, 1:] = a[0, 1] * a[0, 2]
    b[places[:2]] += a[1]
    b[a[:, 0] > 0.0] = a[3] * a[3]
    c = np.stack((a, b))
    c[1, places[:2], 1:3] = c[0, 2:, :2]
    return parts + np.sum(b**3) + np.sum(c[:, places, 1] ** 2) + c[1, 0, 1] * c[1, 2, 2]


@case(A40 := np.random.default_rng(3).normal(size=40))
def sorted_by_values(x):
    places, y = np.argsort(x), np.sort(x)
    z = x * x
    z.sort()
    s = 0.0
    for i in range(len(x)):
        s += x[places[i]] * i + y[i] ** 2 * i + z[i] * y[i]
    return s


def test_equal_elements_are_sorted_as_numba_sorts_them():
    @njit
    def weighted(x, y):
        s = 0.0
        for i, k in enumerate(np.argsort(x)):
            s += y[k] * i**2
        return s

    x = np.floor(A40 * 3)
    check(weighted, (x, A40), differences=False, compiled=True)
    x[::7] = np.nan
    check(weighted, (x, A40), differences=False, compiled=True)


@case(A2)
def every_element(a):
    s = 0.0
    for v in a.T.flat:
        s = s * 0.5 + v * v
    for i, j in np.ndindex(a.shape):
        s = s * 0.5 + a[i, j] * j
    for (i, j), v in np.ndenumerate(a[:, ::2]):
        s = s * 0.5 + a[i, j] * v
    for v in np.nditer(a):
        s = s * 0.9 + v.item() ** 2
    a.flat[3] = s
    return s + a.flat[3] * a[0, 3]


@case(A1)
def slices_backwards(x):
    return np.sum(x[4:1:-1] * x[:3]) + np.sum(x[4::-2] ** 2) + np.sum(x[:-5:-1]) * np.sum(x[1:3:-1])


@case(A1, 2)
def steps_of_a_range_that_are_computed(x, n):
    s = 0.0
    for k in (1, n, -n):
        for i in range(3, 7 * k, k):
            s = s * 0.7 + x[i % 7] * i
    return s


@case(A2)
def dots_for_the_other_dimensions(a):
    b = np.empty((4, 5))
    b[...] = a
    b[..., 0] = 1.5
    return np.sum(b[..., 1] * a[2, ...][:4]) + np.sum(a[...] * b)


@case(A1, A2)
def writes_where_an_array_says(x, a):
    y = x * 1.5
    y[y > 0.6] = 0.5
    y[np.array([1, 1])] = x[:2]
    y[x < 0] += x[x < 0]
    a[a > 0.4] = x[0]
    return np.sum(y * x) + np.sum(a * a) + np.sum(y[~(x > 0.2)] ** 2)


@case(A1)
def arrays_of_tuples(x):
    return np.sum(np.array((x[0], x[1])) * np.array(((x[0], x[1]), (x[2], 1.0))))


@case(A1, np.array([250, 3, 255], np.uint8), np.int32(300), compiled=True)
def small_integers(x, small, k):
    s = x[0] * np.int8(k) + x[1] * np.uint8(k) + x[2] * np.uint16(k * k)
    for v in small:
        s += x[v % 7] * (v + v) * (v - small[0] > 3) + x[3] ** 2 * -v
    return s + np.sum(small) * x[4]


@case(A1, np.uint64(2**64 - 12345))
def large_unsigned_integers(x, n):
    state, s = np.uint64(88172645463325252), 0.0
    for _ in range(5):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        s += x[state % np.uint64(7)] ** 2 * (float(state) / 2.0**64)
        s += x[0] if state > n // np.uint64(2) else x[1] * (max(state, n) // np.uint64(3) / n)
    return s


@case(A1)
def powers_of_integers(x):
    s = 0.0
    for i in range(7):
        s += x[i] * 2**i + x[i] ** i * (i + 1) ** 2
    return s


@case(A1)
def logical_functions(x):
    s = np.sum(np.logical_and(x > -1, ~(x > 0.4)) * x) + np.sum(np.less(x, 0.3) * x * x)
    return s + np.logical_not(x[0] > 0) * x[1] + np.sum(np.logical_or(x > 1, x < 0) * x**3)


@case(A1)
def builtins_of_tuples_and_vectors(x):
    whole, rest = divmod(x[0] * 10.0, 3.0)
    s = max((x[0], x[1])) * min(x) + sum((x[0], x[1] * x[2], 2)) + max(x) * rest + whole
    return s + round(x[3], 1) * x[4]


@case(A2)
def other_shapes(a):
    b, c, flat = a.transpose(1, 0), np.transpose(a, (1, 0)), a.ravel()
    flat[3] = a[1, 1] * a[1, 2]
    d = a.reshape((-1, a.shape[0])) * np.expand_dims(a[0, :4], 0)
    s = b[3, 1] * c[2, 0] * a[0, 3] + np.sum(d) + a.astype(np.int64)[1, 1] * a[1, 1]
    return s + np.sum(np.clip(a, None, 0.5) * a.clip(-0.5, 0.5))


@njit
def by_mode(x, mode="linear"):
    return x if mode == "linear" else x * x


@case(0.7)
def text_as_an_argument(x):
    return by_mode(x) * by_mode(x, "square") + by_mode(x, mode="linear")


def smoothed(x, width):
    raise NotImplementedError


@numba.extending.overload(smoothed)
def _smoothed(x, width):
    def by_loops(x, width):
        out = np.zeros_like(x)
        for i in range(len(x) - width):
            for j in range(width):
                out[i] += x[i + j] / width
        return out

    return by_loops


@case(A1, compiled=True)
def functions_that_users_overload(x):
    return np.sum(smoothed(x, 3) ** 2)


@case(A40)
def lists_that_are_sorted(x):
    up, squares, values = sorted(x), sorted([v * v for v in x]), list(x)
    values.append(x[0] * x[1])
    values.sort()
    values.append(x[2])
    low, middle, high = sorted((x[4], x[1], x[3]))
    return up[0] * squares[3] + values[2] * values[40] * values[41] + low * middle - high


@case(A40)
def distinct_elements(x):
    chosen = np.isin(x, x[3:7])
    s = np.sum(x[chosen] ** 2) + np.sum(np.where(np.signbit(x), x * x, x))
    return s + np.unique(x)[5] * np.partition(x, 4)[4] + np.sum(np.nan_to_num(x) ** 2)


@case(A1)
def the_least_so_far(x):
    best = None
    for v in x:
        if best is None or v < best:
            best = v * v - 1.0
    return 0.0 if best is None else best * np.sin(best) - best


@njit
def around_zero(x):
    for i in range(len(x) - 1):
        if x[i] * x[i + 1] < 0:
            return i, x[i : i + 2], x[i] - x[i + 1]
    return None


@case(A1)
def tuples_from_a_function_that_may_find_none(x):
    s, found, none = 0.0, around_zero(x), around_zero(x * x)
    if found is not None and none is None:
        k, pair, width = found
        s += k * pair[0] / width + pair[1]
    return s


@case(A1)
def arrays_that_may_be_none(x):
    y = None
    for v in x:
        if y is not None:
            y = y * v
        elif v > 0:
            y = x * 2.0
    if y is not None:
        return np.sum(y) + y[0] * y.shape[0]
    return x[0]


@case(0.7)
def results_that_may_be_none(x):
    if x < 0:
        return -x
    elif x > 0.5:
        return x * x
    return None


@case(A2[:, :4] * 0.5 + np.eye(4))
def powers_of_matrices(a):
    s = 0.0
    for n in range(-2, 6):
        p = np.linalg.matrix_power(a, n)
        s += np.sum(p * p) + p[0, 1] + np.trace(p @ a)
    return s


@numba.vectorize(["float64(float64, float64)"])
def softplus(x, sharpness):
    if sharpness * x > 20:
        return x
    return math.log1p(math.exp(sharpness * x)) / sharpness


@numba.vectorize
def leaky(x):
    return x if x > 0 else 0.01 * x


@case(A1, 1.3, compiled=True)
def ufuncs_that_users_write(x, b):
    y, out = softplus(x, b) * 2 + softplus(1, b), np.empty_like(x)
    softplus(x, y, out)
    s = 0.0
    for i in range(len(x)):
        s += softplus(y[i], 2.0) * leaky(x[i]) + out[i]
    return s * np.sum(leaky(x * 2))


@case(((A1[:3].copy(), 1.5), (A1[3:6].copy(), 0.5), (A1[4:].copy(), 2.0)), 1)
def arrays_of_a_tuple_by_their_number(balls, k):
    s = 0.0
    for i in range(len(balls)):
        ball = balls[(i + k) % len(balls)]
        s += np.sum(ball[0] ** 3) * (i + 1) * ball[1]
    for center, size in balls:
        s += center[k] ** 2 * size
    held = (balls[0][0].copy(), balls[1][0].copy())
    held[k][0] *= 2.0
    return s * held[k][0] * held[-k][1] + held[0][0]


@case(A1, 0.7)
def tuples_of_several_types(x, c):
    s = 0.0
    for v in literal_unroll((x[0], 2, c)):
        s += v * c
    return s * x[1]


@numba.experimental.jitclass([("stiffness", numba.float64), ("table", numba.float64[:])])
class Spring:
    def __init__(self, stiffness, table):
        self.stiffness = stiffness
        self.table = table

    def force(self, x, scale=1.0):
        return -self.stiffness * x * scale + self.table[1] * x**3


@case(np.stack((A2[:, :4], A2[:, 1:])), np.array([0, 2, 3]), np.array([[1, 3], [2, -1]]))
def several_vectors_as_indices(a, i, k):
    j = i[::-1]
    parts = np.sum(a[0, i, j] ** 2) + np.sum(a[:, j, i] ** 3) + np.sum(a[1, k, i[:2]] * a[0][k, k])
    b = a[0].copy()
    b[i, j] = a[1, j, i] * 2.0
    b[j, i] += a[0, 0, :3]
    b[k] *= a[1, 2]
    c = np.stack((a[1], b))
    c[:, i, j] = c[:, j, i] * b[0, 1]
    c[0, k, 0] = a[0, k, k[0]]
    return parts + np.sum(b**3) + np.sum(c * c * c)


@numba.stencil
def product_of_neighbours(a):
    return a[0, -1] * a[1, 0] - math.sin(a[0, 0])


@njit
def _doubled(x):
    return 2.0 * x


@numba.stencil(cval=1.5, standard_indexing=("w",))
def weighted(a, b, w):
    if a[0] > 0:
        return w[0] * a[-1] + w[1] * b[2]
    return _doubled(a[1]) * b[0]


@numba.stencil("constant", neighborhood=((-2, 1),))
def mean_of_four(a):
    total = 0.0
    for k in range(-2, 2):
        total += a[k] * a[k]
    return total / 4


@case(A2)
def stencil_of_a_matrix(a):
    out = np.ones_like(a)
    for _ in range(3):
        product_of_neighbours(a, out=out)
        a = a + 0.1 * out
    return np.sum(product_of_neighbours(a.T) ** 2) + np.sum(product_of_neighbours(a[:, ::2]) ** 2)


@case(A1, np.append(UP, 0.3), np.array([0.3, -0.7]))
def stencils_of_vectors(x, y, w):
    nearby = numba.stencil(lambda a: a[-1] * a[1])
    return np.sum(weighted(x, y, w) ** 2) + np.sum(mean_of_four(x) ** 2) * np.sum(nearby(x) ** 2)


@njit
def _pairs(x, least):
    for i in range(len(x)):
        if x[i] < least:
            continue
        for j in range(i):
            yield i, x[i] * x[j]
            if j > 4:
                break


@njit
def _terms(x):
    term, k = 1.0, 0
    while True:
        yield term
        k += 1
        term *= x / k


@njit
def _early(x):
    for term in _terms(x):
        if abs(term) < 1e-3:
            return
        yield 2.0 * term


@case(A1, 0.3, compiled=True)
def generators(x, y):
    total, last, least = 0.0, 0.0, -1.0
    pairs = _pairs(x, least)
    least = 0.5
    for i, v in pairs:
        if v > 1.0:
            continue
        total += i * v * least
    for k in range(3):
        x = 1.1 * x
        for _, v in _pairs(x, 0.0):
            last = v * y
            if total > 9.0:
                break
            total += last
        else:
            total += k * y
    few = [v * y for v in _early(y)]
    for term in _terms(y * total):
        total += term * few[-1]
        if term < 1e-6:
            return total * last * len(few)
    return 0.0


def test_methods_of_a_users_class():
    @njit
    def oscillated(x, v, spring):
        for _ in range(20):
            v += 0.05 * spring.force(x, scale=2.0)
            x += 0.05 * v
        return x * x + v * v * spring.stiffness

    spring, step = Spring(2.0, np.array([1.0, 0.3])), 1e-6
    slopes = tg.grad(oscillated, (0, 1))(0.5, 0.1, spring)
    for slope, dx, dv in zip(slopes, (step, 0.0), (0.0, step), strict=True):
        near = [oscillated(0.5 + s * dx, 0.1 + s * dv, spring) for s in (1, -1)]
        assert slope == pytest.approx((near[0] - near[1]) / (2 * step), rel=1e-7)


def test_none_where_a_number_is_needed():
    @njit
    def found(x):
        if x > 0:
            return x * x
        return None

    @njit
    def doubled(x):
        return found(x) * 2.0

    assert tg.grad(doubled)(3.0) == 12.0
    with pytest.raises(TypeError, match="expected float64, got None"):
        tg.grad(doubled)(-3.0)
    with pytest.raises(TypeError, match="`hessian`: `found` returned None"):
        tg.hessian(found)(-3.0)
    with pytest.raises(TypeError, match="`found` returned None"):
        found(tg.tensor(-3.0))


@pytest.mark.parametrize(("f", "args", "options"), CASES, ids=name_of)
def test_language(f, args, options):
    check(f, args, **options)


def test_single_precision():
    x, up = A1.astype(np.float32), UP.astype(np.float32)
    for f, args, options in CASES:
        if args[0] is A1 and (len(args) == 1 or args[1] is UP):
            given = (x, up)[: len(args)]
            check(f, given, **options, differences=False, tolerance=2e-2)


@numba.njit(locals={"s": numba.float32})
def _rounded(x):
    s = x * 0.33
    return s * 0.3


def test_declared_types_of_variables_are_kept_to():
    value, slope = tg.value_and_grad(_rounded)(1.0)
    assert value == _rounded(1.0) != 0.33 * 0.3
    assert slope == pytest.approx(0.099, rel=1e-6)
