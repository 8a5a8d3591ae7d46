"""Lists of tuples in which numbers of several types stand, and the functions of `heapq`."""

import heapq
import math
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from numba.typed import List

import tapegrad as tg
from tests.njit.cases import A1, A40, collected_in, name_of
from tests.njit.checking import check

pytestmark = pytest.mark.tapegrad_only("no other library has this")

CASES = []
case = collected_in(CASES)
STARTS = np.repeat(np.arange(8), 5)
ENDS = (STARTS * 3 + np.tile(np.arange(1, 6), 8)) % 8


class Event(NamedTuple):
    """What happens at a time."""

    at: float
    which: int
    on: bool


@case(STARTS, ENDS, np.abs(A40) + 0.1, 8)
def shortest_paths(starts, ends, lengths, n):
    distance, waiting = np.full(n, np.inf), [(0.0, 0)]
    distance[0] = 0.0
    while len(waiting) > 0:
        d, u = heapq.heappop(waiting)
        if d > distance[u]:
            continue
        for e in range(len(starts)):
            v = ends[e]
            if starts[e] == u and d + lengths[e] < distance[v]:
                distance[v] = d + lengths[e]
                heapq.heappush(waiting, (distance[v], v))
    return np.sum(distance**2)


@case(1.0 + 0.3 * np.abs(A40).reshape(5, 8))
def fast_marching(slowness):
    n, m = slowness.shape
    arrival, waiting = np.full((n, m), np.inf), [(0.0, (0, 0))]
    while waiting:
        t, (i, j) = heapq.heappop(waiting)
        if t >= arrival[i, j]:
            continue
        arrival[i, j] = t
        for a, b in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if 0 <= a < n and 0 <= b < m and arrival[a, b] == np.inf:
                heapq.heappush(waiting, (t + 0.5 * (slowness[i, j] + slowness[a, b]), (a, b)))
    return np.sum(arrival**2)


@case(A1)
def codes(weights):
    heap, total, n = [(w * w, k) for k, w in enumerate(weights)], 0.0, len(weights)
    heapq.heapify(heap)
    while len(heap) > 1:
        (a, i), (b, j) = heapq.heappop(heap), heapq.heappop(heap)
        total += (a + b) * (i + 2 * j)
        heapq.heappush(heap, (a + b, n))
        n += 1
    return total


@case(A40, compiled=True)
def events_in_order(x):
    events, s = List(), 0.0
    events.append(Event(x[0], 0, True))
    while len(events) > 0:
        event = heapq.heappop(events)
        s += math.sin(event.at) * x[event.which] * (2.0 if event.on else 1.0)
        if event.which < 30:
            later = event.at + 0.3 + x[event.which] ** 2
            heapq.heappush(events, Event(later, event.which + 3, not event.on))
            if event.which % 6 == 0:
                heapq.heappush(events, Event(later + x[5] ** 2, event.which + 7, True))
    return s


@case(A40)
def heaps_of_numbers(x):
    heap, rest = [0.5], list(x)
    for v in x:
        heapq.heappush(heap, v * v)
    heapq.heapify(rest)
    s = heapq.heapreplace(rest, x[0] * x[1]) * rest[1] * rest[-1]
    for k in range(20):
        s += (k + 1) * heapq.heappop(heap)
    return s + heap[0] * heap[3]


@case(A1)
def last_one_of_a_heap(x):
    heap = [(x[0], 1)]
    v, k = heapq.heappop(heap)
    heapq.heappush(heap, (v * x[1], k))
    return heap[0][0] * len(heap)


@case(A1, np.array([5, 3, 6, 1, 4, 0, 2]))
def heaps_without_a_float(x, ranks):
    heap, s = [(np.int64(9), np.int64(0))], 0.0
    for k, rank in enumerate(ranks):
        heapq.heappush(heap, (rank, k))
    while len(heap) > 1:
        rank, k = heapq.heappop(heap)
        s = (s + x[k]) * x[rank]
    return s


@case(A1, 0.7)
def rows_that_are_sorted(x, t):
    rows = [(k % 3, v * t, k > 4) for k, v in enumerate(x)]
    rows.sort()
    s = 0.0
    for i, (k, v, late) in enumerate(rows):
        s += i * v * v * (k + 1) if late else i * v
    return s


@case(A40[:8], 0.7)
def parts_that_wait(x, t):
    waiting, s = [(0, len(x), 1.0)], 0.0
    while waiting:
        low, high, weight = waiting.pop()
        if high - low == 1:
            s += weight * x[low] ** 2
            continue
        middle = (low + high) // 2
        waiting.append((low, middle, weight * t))
        waiting.append((middle, high, weight * (1.0 - t)))
    return s


@case(A1 + 1j * A1[::-1])
def complex_numbers_in_rows(z):
    rows, s = [(z[0], np.float32(0.5))], 0.0
    for k in range(1, len(z)):
        rows.append((z[k] * z[k - 1], np.float32(k)))
    while rows:
        v, k = rows.pop()
        s += abs(v) * k
    return s


@pytest.mark.parametrize(("f", "args", "options"), CASES, ids=name_of)
def test_derivatives_are_those_of_differences(f, args, options):
    check(f, args, **options)


def test_equal_elements_leave_a_heap_in_the_order_of_heapq():
    @njit
    def weighted(x):
        heap, s = [x[0]], 0.0
        for v in x[1:]:
            heapq.heappush(heap, v)
        for k in range(len(x)):
            s += k * heapq.heappop(heap)
        return s

    class Numbered(float):
        """An element that knows where it comes from."""

    x = np.array([2.0, 1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 1.0, 3.0])
    heap, expected = [], np.empty(len(x))
    for k, v in enumerate(x):
        number = Numbered(v)
        number.place = k
        heapq.heappush(heap, number)
    for k in range(len(x)):
        expected[heapq.heappop(heap).place] = k
    np.testing.assert_array_equal(tg.grad(weighted)(x), expected)


@njit
def pushed(heap, x, k):
    heapq.heappush(heap, (x, k))


def test_heaps_that_a_function_is_given_are_refused():
    @njit
    def hands_on(x):
        heap = [(x, 1)]
        pushed(heap, x * x, 2)
        return heap[0][0]

    match = r"`hands_on`, line .*: a list of Tuple\(float64, int64\): hold these in arrays"
    with pytest.raises(NotImplementedError, match=match):
        tg.grad(hands_on)(0.5)


def test_heaps_that_are_left_to_numba_give_the_same_each_time():
    f = next(f for f, _, _ in CASES if f.__name__ == "heaps_without_a_float")
    ranks = np.array([5, 3, 6, 1, 4, 0, 2])
    np.testing.assert_allclose(tg.jacobian(f)(A1, ranks), tg.grad(f)(A1, ranks), rtol=1e-14)


def test_an_empty_heap_raises():
    @njit
    def popped(x):
        heap = [(x, 1)]
        heapq.heappop(heap)
        return heapq.heappop(heap)[0]

    with pytest.raises(IndexError, match="pop from empty list"):
        tg.grad(popped)(1.0)


def test_integers_that_no_float_equals_are_refused():
    @njit
    def kept(x, n):
        rows = [(x, 1)]
        rows.append((x * x, n))
        return rows[1][0] * (rows[1][1] % 7)

    assert tg.grad(kept)(3.0, 2**53) == 6.0 * (2**53 % 7)
    with pytest.raises(RuntimeError, match=r"integers beyond 2\*\*53 have no place in lists of t"):
        tg.grad(kept)(3.0, 2**53 + 1)
