"""What has no derivative is left to Numba: dictionaries, text, records, sets, random numbers."""

from enum import IntEnum

import numba
import numpy as np
import pytest
from numba import njit
from numba.core.runtime import _nrt_python, rtsys
from numba.typed import Dict, List

import tapegrad as tg
from tapegrad.njit import marshalling
from tests.njit.cases import A1, collected_in, name_of
from tests.njit.checking import difference

pytestmark = pytest.mark.tapegrad_only("no other library has this")

CASES = []
case = collected_in(CASES)
LARGE = np.linspace(1.0, 2.0, 200_000)


def dict_of(**entries):
    found = Dict()
    for key, value in entries.items():
        found[key] = value
    return found


RATES = dict_of(a=2.0, b=3.0)
WEIGHTS = dict_of(w=A1[:3].copy(), v=np.array([4.0, 5.0, 6.0]))
COLUMNS = dict_of(a=np.arange(6.0).reshape(3, 2)[:, 1])  # no array in C order
PARTS = np.array(
    [(1.5, 2, True, (1.0, 2.0)), (2.5, 4, False, (3.0, 0.5))],
    [("weight", float), ("n", "i4"), ("on", "?"), ("at", float, 2)],
)
ALIGNED = np.array([(1.5, 2), (2.5, 4)], [("weight", float), ("n", "i8")])
Shape = np.dtype([("inner", [("a", float)]), ("b", "f4")])


@case(0.7, RATES)
def entries_of_a_dictionary(x, rates):
    s = rates["a"] * x * x if "c" not in rates else x
    for key, rate in rates.items():
        s += rate * x * len(key)
    for rate in rates.values():
        s += rate * x**3
    for i, key in enumerate(rates):
        s += rates[key] * x * i
    return s + rates.get("b", 0.0) * x + rates.get("z", 0.25) * len(rates) * x


@case(A1[:3], WEIGHTS)
def arrays_in_a_dictionary(x, weights):
    w, s = weights["w"], 0.0
    for i in range(len(x)):
        s += w[i] * x[i] ** 2 + weights["v"][i] * x[i]
    return s * np.sum(weights["v"][1:])


@case(0.7, 5)
def dictionaries_that_are_made(x, n):
    counts = Dict.empty(numba.types.int64, numba.types.float64)
    named = {"first": 1.0, "second": 2.0}
    for i in range(n):
        counts[i % 3] = counts.get(i % 3, 0.5) + i
        named["third"] = named["first"] * i
    del counts[0]
    s = named["third"] * x
    for k, v in counts.items():
        s += x**k * v
    found = counts.pop(1)
    return s * found * len(counts)


@case(0.7, RATES)
def dictionaries_that_are_written(x, rates):
    rates["a"] = 5.0
    rates["new"] = rates["b"] * 2.0
    return len(rates) * rates["a"] * x + rates["new"] * x * x


@case(0.7)
def values_that_may_be_missing(x):
    found = {1: 2.0, 2: 0.5}
    one, none = found.get(1), found.get(7)
    if one is not None and none is None:
        return x * one * x
    return x


@case(0.7, COLUMNS)
def arrays_that_may_be_missing(x, columns):
    found, none = columns.get("a"), columns.get("b")
    if found is not None and none is None:
        return np.sum(found) * x * found[1]
    return x * x


@case(0.7, "cubic")
def text_that_chooses(x, how):
    if how == "square":
        return x * x
    if how.startswith("cu") and how[1] != "x":
        return x**3
    return x


@case(-0.7, 3)
def text_that_is_made(x, n):
    kind = "square" if x < 0 else "line"
    text = ""
    for i in range(n):
        text += kind[i] + str(i)
    s = 0.0
    for letter in text:
        if letter.isdigit():
            s += x * x
    return s * len(text) if kind == "square" and "q1" in text else x


@njit
def named(x, names=("a", "bcd"), k=-1):
    s = len(names[k]) * x
    for name in names:
        s += len(name) * x * x
    return s


@case(0.7, RATES, 1)
def text_in_tuples(x, rates, k):
    names, s = ("a", "b", "zero"), 0.0
    for i, name in enumerate(names):
        s += rates.get(name, 0.5) * x**i
    for name, other, factor in zip(names[:2], ("b", "a"), (2.0, 3.0)):
        s += rates[name] * rates[other] ** 2 * factor * x
    pair = (names[k], x) + ("four", 4)
    best, most = "", 0.0
    for name, value in (("a", x), ("bc", 2.0 * x), ("d", 0.1)):
        if value > most:
            best, most = name, value
    s += len(best) * most * len(pair[0]) * pair[1] + len(pair[2])
    return s * named(x) * named(x, ("bcd", "e", "fg"), k)


@case(0.7)
def text_in_tuples_of_a_list(x):
    named, s = [(1.0, "a"), (2.0, "bc")], 0.0
    named.append((3.0, "def"))
    for weight, name in named:
        s += weight * len(name) * x * x
    return s * named[1][0]


@case(A1[:3])
def letters_of_a_constant(x):
    s, places = 0.0, List()
    for i, letter in enumerate("abcab"):
        if letter == "a":
            s += x[i % 3] * x[0]
        elif letter == "c":
            s *= x[2]
            places.append(i)
    for letter in "xy":
        s += x[1] ** len(places) if letter == "y" else x[places[0] - 1] ** 3
    return s


@case(0.7, PARTS)
def records(x, parts):
    s = 0.0
    for i in range(len(parts)):
        if parts[i].on:
            s += parts[i].weight * x
        s += parts[i]["n"] * x * x + parts[i].at[1] * x
    for part in parts:
        s += part.weight * x**3
    mine = parts.copy()
    mine[0].weight = 3.0 - parts[0].weight
    s += np.copy(mine[:2])[0].weight * x
    return s * parts.shape[0] + x * parts[-1].at[0]


@case(0.7, ALIGNED[1], ALIGNED)
def fields(x, one, all_of):
    all_of[0].weight = 7.0
    return one.weight * x * x + np.sum(all_of.weight) * x + np.sum(all_of["n"][1:]) * x**3


@case(0.7, (RATES, "b", 2.0, PARTS[0]))
def tuples_of_these(x, given):
    rates, key, factor, part = given
    return rates[key] * x * factor * part.n


@case(0.7, List([1.0, 2.0, 3.0]))
def typed_lists(x, values):
    s = 0.0
    for v in values:
        s += v * x * x
    values.append(4.0)
    return s * len(values) * values[-1]


@case(0.7)
def sets(x):
    seen = {1, 2}
    for k in range(4):
        seen.add(k % 3)
    s = 0.0
    for k in seen:
        s += x**k
    return s * len(seen)


@case(A1[:2])
def functions_that_only_numba_has(x):
    q, r = np.linalg.qr(np.array(((1.0, 2.0), (3.0, 4.0))))
    places = np.array([3.0, 1.0, 2.0])
    return (
        q[0, 0] * x[0] ** 2 + r[1, 1] * x[1] + np.quantile(places, 0.3) * (2j * x.size).imag * x[0]
    )


@case(0.7)
def arrays_from_outside_that_are_large(x):
    return x * x * LARGE[-1] + x * np.sum(LARGE)


@case(0.7, np.array([1.0, 2.0, 4.0]))
def arrays_that_a_call_overwrites(x, a):
    s = a[0] * x
    a[:] = np.flip(np.sort(a))
    np.fill_diagonal(a.reshape(1, 3), 9.0)
    return s + a[0] * x * x + a[1] * x


@njit
def rate_of(rates, key, default=1.0):
    if key in rates:
        return rates[key]
    return default


@case(0.7, RATES)
def functions_that_take_these(x, rates):
    return x * rate_of(rates, "a") * rate_of(rates, "z") * rate_of(rates, "y", 3.0) * x


@njit
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@njit
def guarded(values, key):
    try:
        return values[key]
    except Exception:
        return -1.0


@case(0.7, RATES)
def functions_that_are_left_as_one(x, rates):
    return x ** factorial(3) * guarded(rates, "a") + guarded(rates, "z") * x


@case(0.7, 3)
def messages(x, k):
    if k > 3:
        raise ValueError(f"{k} is too large")
    return x * x


@pytest.mark.parametrize(("f", "args", "options"), CASES, ids=name_of)
def test_derivatives_are_those_of_differences(f, args, options):
    before = marshalling.copied(args)
    along = [np.ones(np.shape(args[0]))[()]]

    def primal(x):
        return f(x, *marshalling.copied(args[1:]))

    value, gradient = tg.value_and_grad(f)(*args)
    slope = difference(primal, args[:1], along)
    assert value == pytest.approx(primal(args[0]), rel=1e-14)
    assert np.sum(gradient * along[0]) == pytest.approx(slope, rel=1e-7)
    if not any(isinstance(x, np.ndarray) and x.dtype == float for x in args[1:]):
        _, tangent = tg.jvp(f, args, (along[0], *[None] * (len(args) - 1)))
        assert tangent == pytest.approx(slope, rel=1e-7)
    for x, y in zip(args, before, strict=True):  # what it writes, it writes into copies
        assert str(x) == str(y)


def test_words_of_a_result_that_is_added_up():
    @njit
    def total(x, slopes):
        s = 0.0
        for part in slopes:
            s += slopes[part][0] * x * x + slopes[part][1]
        return s

    slopes = dict_of(a=(1.0, 2.0), b=(3.0, 4.0))
    assert tg.grad(total)(2.0, slopes) == 16.0
    assert tg.hessian(total)(2.0, slopes) == 8.0


def test_exceptions_of_what_numba_runs_reach_the_caller():
    @njit
    def looks_up(x, rates):
        return x * rates["c"]

    with pytest.raises(KeyError):
        tg.grad(looks_up)(0.5, RATES)
    with pytest.raises(ValueError, match="4 is too large"):
        tg.grad(njit(messages))(0.5, 4)
    assert tg.grad(looks_up)(0.5, dict_of(c=2.0)) == 2.0


@njit
def seeded(k):
    np.random.seed(k)


@njit
def walk(x, n):
    s = x
    for _ in range(n):
        s += 0.1 * x * s * np.random.normal()
    return s


@njit
def draws(n):
    return np.random.random(n)


def test_random_numbers_are_drawn_once():
    step = 1e-6
    found = []
    for h in (-step, step):
        seeded(3)
        found.append(walk(0.7 + h, 20))
    seeded(3)
    value, slope = tg.value_and_grad(walk)(0.7, 20)
    following = draws(3)
    assert slope == pytest.approx((found[1] - found[0]) / (2 * step), rel=1e-7)
    seeded(3)
    assert value == walk(0.7, 20)
    np.testing.assert_array_equal(following, draws(3))
    assert tg.explain(walk, 0.7, 20).stack_bytes == 2 * 8 * 20
    generators = [np.random.default_rng(0) for _ in range(2)]
    scaled = njit(lambda x, rng: x * x * rng.normal())
    assert tg.grad(scaled)(0.5, generators[0]) == generators[1].normal()
    assert generators[0].random() == generators[1].random()


@njit
def noisy(x, scale, rng):
    noise = np.random.normal(0.0, 1.0, 3)
    noise *= scale
    more = rng.standard_normal((2, 3)).T
    for i in range(3):
        more[i, 0] = more[i, 1] * scale + x[i] * noise[i]
    window = np.hamming(3)
    window[1] = scale
    return np.sum(more[:, 0] * window)


def test_what_has_a_derivative_is_written_into_arrays_that_numba_makes():
    x, scale = np.array([0.5, -1.0, 2.0]), 1.5

    def of(x, scale):
        seeded(3)
        return noisy(x, scale, np.random.default_rng(0))

    seeded(3)
    slopes = tg.grad(noisy, (0, 1))(x, scale, np.random.default_rng(0))
    along = np.ones(3), 1.0
    wanted = difference(of, (x, scale), along)
    assert np.sum(slopes[0]) + slopes[1] == pytest.approx(wanted, rel=1e-8)


def test_random_numbers_are_drawn_once_where_a_derivative_is_nan():
    @njit
    def nowhere(x):
        return np.sqrt(x) * np.random.random()

    seeded(3)
    assert np.isnan(tg.grad(nowhere)(-1.0))
    following = draws(2)
    seeded(3)
    draws(1)
    np.testing.assert_array_equal(following, draws(2))


def test_transforms_that_run_a_function_again_refuse_random_numbers():
    for transform in (tg.jacobian, tg.hessian):
        with pytest.raises(NotImplementedError, match="draw random numbers before"):
            transform(walk)(0.7, 3)
    with pytest.raises(NotImplementedError, match=r"line \d+ of `walk` may give something else"):
        tg.vjp(walk, 0.7, 3)
    with pytest.raises(NotImplementedError, match="draw random numbers before"):
        walk(tg.tensor(0.7), 3)
    with pytest.raises(NotImplementedError, match="twice, which may draw other random numbers"):
        tg.grad(walk, inplace=True)(0.7, 3)


def test_print_prints(capfd):
    @njit
    def shown(x):
        print("x is", x)
        return x * x

    assert tg.grad(shown)(0.5) == 1.0
    assert capfd.readouterr().out == "x is 0.5\n"


@njit
def mixed(x, rates, how, parts, given):
    return rates["a"] * x * x * len(how) + parts[1].weight * x + given[0]["b"] * x


MIXED = (RATES, "abc", ALIGNED, (RATES, 1))


def test_nopython_code_hands_these_on():
    gradient, product = tg.grad(mixed), tg.hessian(mixed)

    @njit
    def both(x, rates, how, parts, given):
        return gradient.njit(x, rates, how, parts, given), product.njit(x, rates, how, parts, given)

    assert both(0.5, *MIXED) == (gradient(0.5, *MIXED), 12.0) == (11.5, 12.0)
    slope = tg.grad(njit(dictionaries_that_are_written))

    @njit
    def writes(x, rates):
        return slope.njit(x, rates)

    with pytest.raises(numba.TypingError, match="a function that writes into its argument, a Dict"):
        writes(0.5, RATES)


def test_calls_with_tensors_hand_these_on():
    x = tg.tensor(0.5, requires_grad=True)
    mixed(x, *MIXED).backward()
    assert x.grad.item() == 11.5
    jitted = tg.jit(tg.grad(lambda x: mixed(x, *MIXED)))
    assert jitted(tg.tensor(0.5)).item() == 11.5
    assert tg.vjp(mixed, 0.5, *MIXED)[1](2.0) == (23.0, None, None, None, None)
    with pytest.raises(NotImplementedError, match="writes into its argument `rates`"):
        njit(dictionaries_that_are_written)(x, RATES)


def test_references_are_given_back():
    @njit
    def leaves(x, n, rates):
        s = 0.0
        for i in range(n):
            d = {"a": 1.0 * i}
            text = "x" + str(i)
            if text == "x3" and n == 5:
                s += rates[text]
            s += d["a"] * x * len(text) * rates["a"]
        return s

    gradient = tg.grad(leaves)
    gradient(0.5, 4, RATES)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for _ in range(3):
            gradient(0.5, 4, RATES)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 3 * 4


def test_arrays_in_containers_are_kept_where_values_are_computed_alone():
    """What a trip makes is freed after it, unless a list or a dictionary has it."""

    @njit
    def multiples(x, k):
        values, entries = [k], {0: k}
        for i in range(1, 5):
            values.append(k * i)
            entries[i] = k * (10 * i)
        return x * values[1][0] + x * entries[3][1]

    k = np.array([1.0, 2.0])
    assert multiples(1.0, k) == tg.vjp(multiples, 1.0, k)[0] == 61.0
    assert tg.grad(multiples)(1.0, k) == 61.0


def test_containers_that_overlap_are_refused():
    @njit
    def writes(x, weights, w):
        w[0] = 2.0
        return x * weights["w"][0]

    with pytest.raises(ValueError, match="overlaps that of argument 1"):
        tg.grad(writes)(0.5, WEIGHTS, WEIGHTS["w"])

    @njit
    def copies(x, a, b):
        a["a"] = 4.0
        return x * b["a"]

    with pytest.raises(ValueError, match="overlaps that of argument 2"):
        tg.grad(copies)(0.5, RATES, RATES)
    assert tg.grad(copies)(0.5, RATES, RATES.copy()) == 2.0


def test_checkpoints_are_not_for_loops_that_call_numba():
    with pytest.raises(MemoryError, match="takes more than"):
        tg.grad(walk, max_memory=10_000)(0.7, 10_000)


def test_loops_on_threads_do_not_call_numba():
    @njit(parallel=True)
    def total(x, rates):
        s = 0.0
        for i in numba.prange(10):
            s += rates["a"] * x * i
        return s

    assert tg.grad(total)(0.5, RATES) == 90.0
    (loop,) = tg.explain(total, 0.5, RATES).prange
    assert loop.reason == "it calls what Numba alone compiles"


class Order(IntEnum):
    ONE = 1
    TWO = 2


class Oscillator:
    def __init__(self, stiffness, mass):
        self.stiffness, self.mass = stiffness, mass

    def energy(self, x):
        return 0.5 * self.stiffness * x * x / self.mass


def test_members_of_enumerations_are_numbers():
    @njit
    def power(x, order):
        return x * Order.TWO if order == Order.ONE else x * x * order

    assert tg.grad(power)(3.0, Order.ONE) == 2.0
    assert tg.grad(power)(3.0, Order.TWO) == 12.0


def test_objects_that_the_function_makes():
    fields = [("stiffness", numba.float64), ("mass", numba.float64)]
    made = numba.experimental.jitclass(fields)(Oscillator)

    @njit
    def energy(x):
        return made(2.0, 4.0).energy(x)

    assert tg.grad(energy)(3.0) == 1.5
