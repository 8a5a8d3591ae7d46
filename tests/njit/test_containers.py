"""What a function takes and holds: constants from outside, arguments, lists, tuples, functions."""

import math

import numpy as np
import pytest
from numba import float64, njit
from numba.typed import List

import tapegrad as tg
from tests.njit.cases import A1, A2, collected_in, name_of
from tests.njit.checking import check

pytestmark = pytest.mark.tapegrad_only("no other library has this")

CASES = []
case = collected_in(CASES)


OFFSET, SCALES = 0.25, (1.0, 2.0, 0.5)


@case(A1)
def constants_from_outside(x):
    s = OFFSET
    for i in range(3):
        s += SCALES[i] * x[i] ** 2
    return s * np.pi


TABLE, EDGES, PLACES = np.asfortranarray(A2), (A1[:4].copy(), A2[::2, 1:3]), np.array([3, 1, 2])
BUMPS = np.array([True, False, True])


@case(A1)
def arrays_from_outside(x):
    s = 0.0
    for i in range(3):
        row = TABLE[PLACES[i]] if BUMPS[i] else x[i:]
        s += row[1] * x[i] ** 2 + EDGES[0][i] * x[PLACES[i]] * EDGES[1][1, 0]
    return s + np.sum(TABLE[:, 1] * x[:4]) * np.sum(x * np.sum(TABLE.T[0]))


@case(A1)
def arrays_from_outside_as_indices(x):
    y = np.zeros(4)
    y[PLACES] = x[1] * x[PLACES]
    y[PLACES] += x[:3][BUMPS][1]
    return np.sum(y * A1[:4])


@njit
def horner(x, first, *others):
    s = first
    for c in others:
        s = s * x + c
    return s


FACTORS = np.array([2.0, 3.0])


@njit
def stretched(x, by=FACTORS, shift=None):
    return x * by[0] if shift is None else x * by[1] + shift


@case(0.7, (1.5, -0.2, 0.4))
def arguments_of_any_number(x, p):
    q = tuple(p)
    return horner(x, *p) * stretched(horner(p[0], x, p[2]), shift=p[1]) + horner(x, *q[1:])


@case(0.7)
def defaults_that_are_no_numbers(x):
    return stretched(x) * stretched(x, np.ones(1))


@njit
def length_of_all(values):
    return len(values + [1.0]) + 0.5 * values[-1]


@case(0.7, A1, 3, compiled=True)
def lists(x, a, n):
    values = [x, 2.0, a[0]]
    values[1] = x * a[2]
    part, places, s = values[1:] + [x], [2, 0, 1] * n, 0.0
    for v in values * 2:
        s += v * part[0] * length_of_all(values)
    for i, k in enumerate(places):
        s += part[k] ** 2 * i * values[-1]
    part[0] = 5.0
    zeros = [0.0] * len(a)
    for i in range(len(a)):
        zeros[i] = a[i] * values[places[i]]
    return s + zeros[3] * zeros[4] + values[1]


@case(A1, compiled=True)
def lists_that_grow(x):
    values = [v * v for v in x if v > 0]
    same = values
    for i in range(40):
        values.append(values[i % len(values)] * 0.9 + x[i % 5])
        if i % 3 == 2:
            last = values.pop()
            same[len(same) - 1] += last * values[0]
    s = 0.0
    for i, v in enumerate(same):
        s += v * i
    return s + len(values) * sum(same) + max(values) * values[-1]


@case(A1, compiled=True)
def lists_with_conditions(x):
    signed = [v * v if v > 0 else -2.0 * v for v in x]
    few = [v * w for v in x if v > 0 for w in signed if w > 0.5 and v < w]
    few += [sum([v * w for w in signed if w < v]) for v in x if v > 0.0]
    s = 0.0
    for i in range(3):
        if len([v for v in x if v > 0]) > 1:
            s += signed[i] * x[i]
    return s + sum(few) + max([v * w for v, w in zip(x, signed) if v > 0.0])


@case(A1)
def arrays_of_comprehensions(x):
    squares = np.array([v * v for v in x])
    some = np.array([v * x[0] for v in [w + 1.0 for w in x[1:4]]])
    ends = np.array([v * x[1] for v in (x[0], x[-1])])
    sums = np.array([np.sum(row) for row in x[:6].reshape(2, 3)])
    table = np.array([[x[i] * x[j] for i in range(2)] for j in range(1, 4)])
    back = np.array([complex(x[i], 2.0) for i in range(3, 0, -1)])
    total = np.sum(squares[1:4] * some) + np.prod(ends) + sums[0] * sums[1]
    return total + np.sum(table**2) + np.sum(back.imag * back.real) + table[2, 0]


@case(A1, compiled=True)
def queues(x):
    places, waiting, s = [0], [v * v for v in x], 0.0
    while places:
        k = places.pop(0)
        s += x[k] * waiting.pop(k % 2) * waiting[-1]
        waiting.append(s * 0.5)
        if k < 4:
            places.append(k + 2)
            places.append(k + 3)
        if not places or len(waiting) < 3:
            s *= 2.0
    return s + waiting.pop(-2) * waiting.pop(0) + waiting[0]


@case(A1, compiled=True)
def lists_made_again(x):
    s = 0.0
    for i in range(5):
        row = [x[i] * x[j] for j in range(i)]
        row += [x[i], x[0]]
        row.extend(x[2:4])
        row += row
        part = np.array(row)
        s += np.sum(part * part) * row[-1]
    return s


@case(A1, compiled=True)
def lists_of_places(x):
    found = []
    for i in range(len(x)):
        if x[i] > 0:
            found.append(i)
    s = 0.0
    while len(found) > 1:
        s += x[found.pop()] ** 3 * len(found)
    return s + x[found[0]]


@njit
def _through(x, layers):
    for k in range(len(layers)):
        w, b = layers[k]
        x = np.tanh(np.dot(w, x) + b)
    return x


@case(A1, A1[:3], A2[:3, :3].copy(), np.array([0.3, -0.1, 0.2]), compiled=True)
def lists_of_arrays_and_tuples(long, x, w, b):
    layers, rows = [(w, b), (w * w, x), (w + 1.0, b * x)], [x, b, long]
    same, total = rows, np.sum(np.array([row[0] * row[1] for row in rows]) ** 2)
    for row, other in zip(same, [b, x, x]):
        for i in range(len(row)):
            total += row[i] * other[i % 3] * row[0]
    for i, (matrix, vector) in enumerate(layers):
        total += np.sum(matrix * matrix) * i + vector[0]
    return total + np.sum(_through(x, layers) ** 2) + layers[-1][1][0] * rows[1][2]


@njit
def _norm_of(values):
    s = 0.0
    for v in values:
        s += v * v
    return math.sqrt(s)


@case(A1, compiled=True)
def lists_of_numba_typed(x):
    times, values = List([0.0]), List.empty_list(float64)
    values.append(x[0])
    same = values
    while times[-1] < 1.0:
        step = 0.05 + 0.1 * x[1] * x[1]
        same.append(values[-1] - step * x[2] * values[len(values) - 1])
        times.append(times[-1] + step)
    s = _norm_of(same) * max(times)
    for i, v in enumerate(values):
        s += i * v
    values[1] *= x[3]
    times.extend(values)
    last = times.pop()
    return s + sum(times) * last + (times.pop(2) if len(times) else x[4]) + List(x)[3]


@case(A1, compiled=True)
def lists_of_tuples_that_grow(x):
    points, steps = [(x[0], 1.0)], List()
    for i in range(len(x)):
        points.append((x[i], x[i] * x[i]))
        steps.append((0.1 * i, x[i - 1], x[0]))
    a, b = points[2]
    points[0], points[-2] = (a * b, x[1]), points[1]
    same, s = points, 0.0
    s += points.pop()[1] * same[-1][0] + points.pop(1)[0] * points[1][1]
    for i, (a, b) in enumerate(same):
        s += i * a * b
    for a, b, c in steps:
        s += a * b * c
    while points:
        a, b = same.pop()
        s += a * b * len(points) * steps[len(points)][1]
    return s


@case(1.3, compiled=True)
def lists_of_intervals(rate):
    waiting, total = [(0.0, 1.0 + 0.1 * rate, 1e-4)], 0.0
    while waiting:
        a, b, most = waiting.pop()
        left, middle, right = [math.exp(-rate * t) for t in (a, 0.5 * (a + b), b)]
        found = (b - a) * (left + 4.0 * middle + right) / 6.0
        if abs(found - (b - a) * middle) < most:
            total += found
        else:
            waiting.append((a, 0.5 * (a + b), 0.5 * most))
            waiting.append((0.5 * (a + b), b, 0.5 * most))
    return total


@case(0.7, (1.5, -0.2))
def tuples_compared(x, p):
    a = np.ones((2, 3))
    if a.shape == (2, 3) and p != (1.5, x) and p != (1.5, -0.2, 0.0):
        return x * p[1] if 3 in a.shape and 4 not in a.shape else x
    return x


@case(njit(lambda x, y: x * y * y), 0.7, 1.5, compiled=True)
def function_as_an_argument(f, x, y):
    return f(x, y) * f(y, x * x)


@pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")
def test_lists_of_numbers_among_the_arguments():
    @njit
    def chosen(x, places, weights):
        s = 0.0
        for k, w in zip(places, weights[0] + [0.5]):
            s += w * x[k] ** 2
        return s * len(places) + sum(weights[0]) * x[0] * weights[1]

    x, places, weights = A1[:3], [0, 2, -2], ([1.0, 2.0], 3.0)
    expected = [6.0 * x[0] + 9.0, 3.0 * x[1], 12.0 * x[2]]
    np.testing.assert_allclose(tg.grad(chosen)(x, places, weights), expected, rtol=1e-14)
    assert tg.jvp(chosen, (x, places, weights), (x, None, None))[1] == pytest.approx(expected @ x)
    t = tg.tensor(x, requires_grad=True)
    loss = chosen(t, places, weights)
    places[0] = 1
    loss.backward()
    np.testing.assert_allclose(t.grad.numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize(("f", "args", "options"), CASES, ids=name_of)
def test_arguments_and_containers(f, args, options):
    check(f, args, **options)
