"""Branches and loops: run by Python, and compiled as one branch or loop of the program."""

import functools
import subprocess
import sys
import time

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("tapegrad's own branches and loops")

X = np.array([0.5, 1.5, -2.3])
WEIGHTS = np.array([1.0, 2.0, 3.0])


def summed(f):
    return lambda *args: np.sum(f(*args) * 1.0)


def second(f):
    """A product with the Hessian, in the first argument."""

    def product(x, *rest):
        return tg.grad(lambda x: np.sum(tg.grad(f)(x, *rest) * WEIGHTS))(x)

    return product


def same(f, reference, *args, orders=3, compiled=None):
    """Values, gradients and products with Hessians, compiled and not, are those of a reference.

    `compiled` are the arguments of the compiled function, where they differ.
    """
    given = args if compiled is None else compiled
    for transform in (lambda f: f, tg.grad, second)[:orders]:
        want = transform(reference)(*args)
        np.testing.assert_allclose(transform(f)(*args), want, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(tg.jit(transform(f))(*given), want, rtol=1e-9, atol=1e-12)


def loops_of(f, *args):
    """The lines of the compiled tape that are loops."""
    tape = tg.jit(f).lower(*args).as_text()
    return [line for line in tape.splitlines() if line.split()[1] == "loop"]


# -- branches --------------------------------------------------------------------------------------


def test_cond_takes_the_arm_of_the_moment():
    f = tg.jit(lambda x: tg.cond(x > 0, lambda x: x**2, lambda x: -x, x))
    assert (f(3.0), f(-3.0)) == (9.0, 3.0)
    assert f.cache_info().traces == 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cond_derivatives(sign):
    def f(x):
        return tg.cond(
            np.sum(x) > 0,
            lambda x, s: np.sum(np.sin(x) * s),
            lambda x, s: np.sum(x**3) + s,
            x, np.cos(x[0]),
        )  # fmt: skip

    def reference(x):
        if float(tg.stop_gradient(np.sum(x))) > 0:
            return np.sum(np.sin(x) * np.cos(x[0]))
        return np.sum(x**3) + np.cos(x[0])

    same(f, reference, sign * np.array([0.3, 0.7, 1.1]))


def test_cond_reads_what_it_closes_over_in_the_arm_alone():
    def f(x):
        return tg.cond(x[0] > 0, lambda: np.sum(np.log(x)), lambda: np.sum(x) * 2.0)

    text = tg.jit(f).lower(X)
    assert "log" not in str(text).split("branch")[0]
    for x in (np.abs(X), -np.abs(X)):
        same(f, f, x, orders=2)


SWITCHED = [np.sin, np.exp, lambda x: x * x * x]
SLOPES = [np.cos, np.exp, lambda x: 3 * x * x]


@pytest.mark.parametrize("k", [-1, 0, 1, 2, 5])
def test_switch_takes_one_of_several_functions(k):
    f = lambda x, k: tg.switch(k, SWITCHED, x)
    x, at = np.array([0.5, 1.5]), np.clip(k, 0, 2)
    np.testing.assert_array_equal(f(x, k), SWITCHED[at](x))
    same = lambda found, wanted: np.testing.assert_allclose(found, wanted, rtol=1e-14)
    g = tg.grad(lambda x, k: f(x, k).sum())
    for slope in (g, tg.jit(g), lambda x, k: tg.vmap(g)(x, np.array([k, k]))):
        same(slope(x, k), SLOPES[at](x))
    same(tg.jvp(lambda x: f(x, k), (x,), (np.ones(2),))[1], SLOPES[at](x))


def test_switch_in_a_loop_and_under_a_map():
    ks = np.array([0, 2, 1])
    chain = lambda x: tg.scan(lambda c, k: (tg.switch(k, SWITCHED, c), c), x, ks)[0]
    assert chain(0.5) == np.exp(np.sin(0.5) ** 3)
    bend = 3 * np.sin(0.5) ** 2 * np.cos(0.5) * chain(0.5)
    for slope in (tg.grad(chain), tg.jit(tg.grad(chain)), tg.jacfwd(chain)):
        np.testing.assert_allclose(slope(0.5), bend, rtol=1e-14)
    found = tg.jit(tg.vmap(lambda k, x: tg.switch(k, SWITCHED, x)))(ks, np.ones(3))
    np.testing.assert_allclose(found, [np.sin(1.0), 1.0, np.e], rtol=1e-14)


def test_switch_says_what_it_takes():
    with pytest.raises(TypeError, match="the index must be an integer"):
        tg.switch(1.0, SWITCHED, 2.0)
    with pytest.raises(ValueError, match="at least one function"):
        tg.switch(0, [], 2.0)
    with pytest.raises(TypeError, match="`switch`"):
        tg.switch(0, [np.sin, 3.0], 2.0)


def test_no_derivative_passes_into_the_other_arm():
    f = lambda x: tg.cond(x > 0, lambda: np.sqrt(x), lambda: x * 2.0)
    assert tg.jit(tg.grad(f))(-1.0) == 2.0
    np.testing.assert_array_equal(tg.vmap(tg.grad(f))(np.array([0.25, 0.0])), [1.0, 2.0])


def test_cond_of_pytrees_and_static_values():
    def f(x, flag):
        return tg.cond(
            flag,
            lambda d, n: {"a": d["x"] * n, "b": None},
            lambda d, n: {"a": d["x"] + n, "b": None},
            {"x": x}, 3,
        )  # fmt: skip

    for flag in (True, False):
        found = tg.jit(f)(X, np.bool_(flag))
        np.testing.assert_array_equal(found["a"], f(X, flag)["a"])
        assert found["b"] is None


def test_cond_under_a_map_chooses_for_each_example():
    f = tg.vmap(lambda x: tg.cond(x > 0, lambda x: np.log(x), lambda x: -x, x))
    want = [np.log(0.5), np.log(1.5), 2.3]
    np.testing.assert_allclose(f(X), want)
    np.testing.assert_allclose(tg.jit(f)(X), want)


# -- loops -----------------------------------------------------------------------------------------


def power(x, n):
    return tg.fori_loop(0, n, lambda i, y: y * np.sum(x * x) * 0.3 + i * x[0], x[1])


def unrolled_power(x, n):
    y = x[1]
    for i in range(n):
        y = y * np.sum(x * x) * 0.3 + i * x[0]
    return y


@pytest.mark.parametrize("n", [0, 1, 5])
def test_fori_loop(n):
    same(power, unrolled_power, X, n)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_fori_loop_whose_bounds_a_call_brings(n):
    same(power, unrolled_power, X, n, compiled=(X, np.int64(n)))


def test_one_program_serves_every_number_of_trips():
    f = tg.jit(tg.grad(power))
    for n in range(6):
        np.testing.assert_allclose(f(X, np.int64(n)), tg.grad(unrolled_power)(X, n))
    assert f.cache_info().traces == 1


def test_fori_loop_from_another_lower_bound():
    f = lambda x, a, b: tg.fori_loop(a, b, lambda i, y: y + i * x, 0.0)
    assert tg.jit(f)(2.0, 3, 6) == tg.jit(f)(2.0, np.int64(3), np.int64(6)) == f(2.0, 3, 6) == 24.0
    assert tg.jit(f)(2.0, np.int64(6), np.int64(3)) == f(2.0, 6, 3) == 0.0


def newton(a):
    return tg.while_loop(lambda x: abs(x * x - a) > 1e-13, lambda x: 0.5 * (x + a / x), a)


@pytest.mark.parametrize("a", [1.5, 2.0, 9.0, 1e6])
def test_while_loop_differentiates_in_reverse(a):
    root = tg.jit(newton)(a)
    assert root == newton(a)
    assert root == pytest.approx(np.sqrt(a))
    for f in (tg.grad(newton), tg.grad(tg.grad(newton)), tg.grad(tg.grad(tg.grad(newton)))):
        assert tg.jit(f)(a) == pytest.approx(f(a), rel=1e-9, abs=1e-12)
    assert tg.jit(tg.grad(newton))(a) == pytest.approx(0.5 / np.sqrt(a), rel=1e-6)


def test_one_program_serves_every_length_of_a_while_loop():
    f = tg.jit(tg.value_and_grad(lambda x, n: tg.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))[1]))  # fmt: skip
    for n in (0, 1, 3, 63, 64, 65, 200, 1000):
        x = 1.001
        value, slope = f(x, np.int64(n))
        assert value == pytest.approx(x**n)
        assert slope == pytest.approx(n * x ** (n - 1))
    assert f.cache_info().traces == 1


def test_nested_loops_of_unknown_lengths():
    def f(x, n):
        def outer(i, c):
            def inner(d):
                return d[0] + 0.5, d[1] * x[0] * 1.1 + x[1] * np.sin(c)

            return tg.while_loop(lambda d: d[0] < 3.0 + x[2], inner, (x[2] * 0.0, c))[1]

        return tg.fori_loop(0, n, outer, x[1])

    def reference(x, n):
        c = x[1]
        for _ in range(n):
            d = 0.0, c
            while d[0] < 3.0 + X[2]:
                d = d[0] + 0.5, d[1] * x[0] * 1.1 + x[1] * np.sin(c)
            c = d[1]
        return c

    same(f, reference, X, 3)
    same(f, reference, X, 3, compiled=(X, np.int64(3)))


def test_a_third_derivative_adds_up_rows_of_unknown_number():
    f = lambda x, n: tg.fori_loop(0, n, lambda i, d: d * x[0] + x[1] * d * d * 0.1, x[1])
    third = second(lambda x, n: np.sum(second(f)(x, n)))
    want = third(X, 3)
    np.testing.assert_allclose(tg.jit(third)(X, 3), want)
    np.testing.assert_allclose(tg.jit(third)(X, np.int64(3)), want)


def test_a_branch_in_a_loop_and_a_loop_in_a_branch():
    def f(x):
        def trip(i, c):
            return tg.cond(c > 1.0, lambda c: c * 0.5, lambda c: c + np.sum(x**2) * 0.2, c)

        return tg.cond(
            x[0] > 0, lambda: tg.fori_loop(0, 6, trip, x[0]), lambda: tg.fori_loop(0, 2, trip, x[1])
        )

    for x in (X, -X):
        same(f, f, x)


def test_large_carries_change_places():
    a = np.random.default_rng(0).normal(size=(12, 12)) * 0.2

    def f(x):
        last, rows = tg.scan(
            lambda c, _: (np.tanh(a @ c) + x[0], c[0] * x[1:2]), np.eye(12) * x[2], None, length=5
        )
        return np.sum(last * last) + np.sum(rows)

    def reference(x):
        c, total = np.eye(12) * x[2], 0.0
        for _ in range(5):
            c, y = np.tanh(a @ c) + x[0], c[0] * x[1:2]
            total = total + np.sum(y)
        return np.sum(c * c) + total

    same(f, reference, X)


# -- scans -----------------------------------------------------------------------------------------


def weigh(p, xs, reverse):
    def step(c, x):
        c = {"a": c["a"] * p["w"] + x["u"], "n": (c["n"][0] + 1, None)}
        return c, {"y": np.sum(c["a"]), "z": [x["u"] * c["a"], None]}

    return tg.scan(step, {"a": np.zeros(2), "n": (0, None)}, xs, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_of_pytrees(reverse):
    p, xs = {"w": np.array([0.5, 0.7])}, {"u": np.arange(8.0).reshape(4, 2)}
    (want, rows), (last, found) = (f(p, xs, reverse) for f in (weigh, tg.jit(weigh)))
    assert last["n"] == want["n"] == (4, None)
    np.testing.assert_allclose(last["a"], want["a"])
    np.testing.assert_allclose(found["y"], rows["y"])
    np.testing.assert_allclose(found["z"][0], rows["z"][0])

    a, y = np.zeros(2), [None] * 4
    for t in reversed(range(4)) if reverse else range(4):
        a = a * p["w"] + xs["u"][t]
        y[t] = np.sum(a)
    np.testing.assert_allclose(rows["y"], y)

    def loss(p, xs):
        last, found = weigh(p, xs, reverse)
        return np.sum(last["a"] ** 2) + np.sum(found["y"] ** 2) + np.sum(np.sin(found["z"][0]))

    gradient = tg.grad(loss, (0, 1))
    for got, want in zip(tg.jit(gradient)(p, xs), gradient(p, xs), strict=True):
        for key in want:
            np.testing.assert_allclose(got[key], want[key])


def test_scan_of_nothing():
    f = lambda xs: tg.scan(lambda c, x: (c + x, {"y": c * x}), 1.0, xs)
    for g in (f, tg.jit(f)):
        last, rows = g(np.zeros(0))
        assert last == 1.0
        assert rows["y"].shape == (0,)
    assert tg.jit(tg.grad(lambda xs: f(xs)[0]))(np.zeros(0)).shape == (0,)


def test_scan_reads_rows_that_do_not_lie_in_order():
    f = lambda xs: tg.scan(lambda c, x: (c * 0.5 + x[0] * x[2], c), 0.1, xs.T)[0]

    def reference(xs):
        c = 0.1
        for k in range(4):
            c = c * 0.5 + xs[0, k] * xs[2, k]
        return c

    xs = np.random.default_rng(1).normal(size=(3, 4))
    for transform in (lambda f: f, tg.grad):
        np.testing.assert_allclose(tg.jit(transform(f))(xs), transform(reference)(xs))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [1, 3, 4, 100])
def test_scan_that_keeps_some_carries(count, reverse):
    w, xs = np.array([0.7, 0.4]), np.linspace(-1.0, 1.0, 22).reshape(11, 2)

    def f(w, xs, **how):
        step = lambda c, x: (np.tanh(w * c + x), {"y": c * x})
        last, ys = tg.scan(step, np.zeros(2), xs, reverse=reverse, **how)
        return np.sum(last * last) + np.sum(ys["y"] ** 2 * np.arange(11.0)[:, None])

    few = functools.partial(f, checkpoint=count)
    for transform in (lambda f: tg.value_and_grad(f, (0, 1)), tg.hessian, tg.jacfwd):
        want = tg.ravel_pytree(transform(f)(w, xs))[0]
        for got in (transform(few)(w, xs), tg.jit(transform(few))(w, xs)):
            np.testing.assert_allclose(tg.ravel_pytree(got)[0], want, rtol=1e-13)


@pytest.mark.parametrize("count", [0, -1, 1.5, "3"])
def test_scan_keeps_a_number_of_carries(count):
    with pytest.raises(ValueError, match="`checkpoint` must be a positive integer"):
        tg.scan(lambda c, x: (c, x), 0.0, np.zeros(3), checkpoint=count)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells the peak of memory")
def test_a_scan_that_keeps_some_carries_takes_less_memory():
    code = """if True:
        import re, numpy as np, tapegrad as tg
        def f(x, **how):
            return tg.scan(lambda c, _: (np.sin(c) * x, None), x, None, 100_000, **how)[0].sum()
        for how in {"checkpoint": 300}, {}:
            tg.jit(tg.grad(lambda x: f(x, **how)))(np.ones(64))
            print(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    few, every = (1024 * int(line) for line in done.stdout.split())
    assert every - few > 40e6  # of 51e6


def cell(p, h, x):
    return np.tanh(p["W"] @ h + p["U"] @ x + p["b"])


def rnn(p, xs):
    def step(h, x):
        h = cell(p, h, x)
        return h, h

    return np.sum(tg.scan(step, np.zeros(4), xs)[1] ** 2)


def unrolled_rnn(p, xs):
    h, total = np.zeros(4), 0.0
    for t in range(len(xs)):
        h = cell(p, h, xs[t])
        total = total + np.sum(h**2)
    return total


def weights(steps):
    rng = np.random.default_rng(0)
    p = {
        "W": rng.normal(size=(4, 4)) / 2,
        "U": rng.normal(size=(4, 4)) / 2,
        "b": rng.normal(size=4),
    }
    return p, rng.normal(size=(steps, 4))


def test_recurrent_network():
    p, xs = weights(9)
    want, slopes = tg.value_and_grad(unrolled_rnn, (0, 1))(p, xs)
    for f in (tg.value_and_grad(rnn, (0, 1)), tg.jit(tg.value_and_grad(rnn, (0, 1)))):
        value, found = f(p, xs)
        assert value == pytest.approx(want)
        for key in p:
            np.testing.assert_allclose(found[0][key], slopes[0][key])
        np.testing.assert_allclose(found[1], slopes[1])


def test_the_program_does_not_grow_with_the_number_of_trips():
    texts = [tg.jit(tg.grad(rnn)).lower(*weights(n)).as_text("llvm") for n in (16, 160)]
    assert texts[0].count("\n") == texts[1].count("\n")


def test_many_trips_are_traced_in_no_time():
    f = lambda x: tg.fori_loop(0, 300_000, lambda i, y: y + np.sin(y) * x, 0.1)
    start = time.perf_counter()
    value, slope = tg.jit(tg.value_and_grad(f))(1e-6)
    assert time.perf_counter() - start < 10.0
    reach = lambda x: tg.jit(f)(x)
    assert value == reach(1e-6)
    assert slope == pytest.approx((reach(1.01e-6) - reach(0.99e-6)) / 2e-8, rel=1e-3)


def test_what_is_not_taken_is_not_computed():
    def f(x):
        def trip(c, _):
            return (c[0] * x[0], np.exp(c[1]), c[2] + 1.0), np.log(c[1])

        return tg.scan(trip, (x[1], x[2], 0.0), None, length=4)[0][0]

    (line,) = loops_of(f, X)
    assert "carries=1" in line
    assert tg.jit(f)(X) == pytest.approx(X[1] * X[0] ** 4)


def test_gradients_within_a_loop():
    def descend(x):
        def trip(i, y):
            return y - 0.1 * tg.grad(lambda y: np.sum((y - x) ** 2 * y))(y)

        return np.sum(tg.fori_loop(0, 3, trip, x * 0.5) ** 2)

    same(descend, descend, X)


def test_stop_gradient_within_a_loop():
    def f(x):
        return np.sum(tg.fori_loop(0, 3, lambda i, y: y * tg.stop_gradient(y) + x, x))

    def reference(x):
        y = x
        for _ in range(3):
            y = y * tg.stop_gradient(y) + x
        return np.sum(y)

    same(f, reference, X)


def test_a_call_back_into_python_within_a_loop():
    @tg.custom_vjp
    def cube(x):
        return tg.pure_callback(lambda array: array**3, x, x)

    cube.defvjp(lambda x: (cube(x), x), lambda x, g: (3 * g * x**2,))

    def f(x):
        return tg.fori_loop(0, 3, lambda i, y: y + cube(x * y)[2], 0.1)

    assert tg.jit(f).lower(X).callbacks == ("pure_callback",)
    same(f, f, X, orders=2)


def test_tensors_that_require_grad():
    x = tg.tensor(X, requires_grad=True)
    tg.jit(lambda x: power(x, 4))(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), tg.grad(unrolled_power)(X, 4))


def test_changes_in_place_within_a_loop():
    def f(x):
        def trip(i, c):
            z = x * 2.0
            first = z[:1]
            first += c[1]
            c = c.clone()
            c[1] = z[0] * 0.3
            return c + z * 0.1

        return tg.fori_loop(0, 4, trip, x).sum()

    x = tg.tensor(X)
    np.testing.assert_allclose(tg.jit(f)(x).item(), f(x).item())


def test_products_of_matrices_in_the_body():
    rng = np.random.default_rng(3)
    for n in (3, 24):  # a nest of its own, and BLAS
        w, b = rng.normal(size=(n, n)) / n, rng.normal(size=n)

        def f(w, b):
            return np.sum(tg.fori_loop(0, 4, lambda i, h: np.tanh(w @ h + b * i) @ w, w) ** 2)

        def reference(w, b):
            h = w
            for i in range(4):
                h = np.tanh(w @ h + b * i) @ w
            return np.sum(h**2)

        gradient = tg.grad(f, (0, 1))
        want = tg.grad(reference, (0, 1))(w, b)
        for found in (gradient(w, b), tg.jit(gradient)(w, b)):
            np.testing.assert_allclose(found[0], want[0], rtol=1e-9)
            np.testing.assert_allclose(found[1], want[1], rtol=1e-9)


def test_carries_of_integers_and_of_truth():
    def f(x):
        def trip(i, c):
            k, seen, total = c
            return (k + 2) % 3, np.where(x[k] > 1.0, True, seen), total * 0.9 + x[k] * i

        k, seen, total = tg.fori_loop(0, 5, trip, (1, False, x[0]))
        return np.where(seen, total, -total) + k * x[1]

    same(f, f, X)
    f = lambda x: tg.while_loop(lambda c: c[1], lambda c: (c[0] + 1, c[0] < x), (0, True))
    k, seen = tg.jit(f)(4.0)
    assert (k, seen) == (5, False)
    assert seen.dtype == bool


def test_loops_of_no_trips_within_loops():
    def f(x, n):
        def trip(c, row):
            inner = tg.fori_loop(0, n, lambda i, d: d * row[0], c)
            last, found = tg.scan(lambda d, r: (d * r, d), inner, row[:0])
            return tg.while_loop(lambda d: d > 1e9, lambda d: d * x[0], last) + x[1], np.sum(found)

        return tg.scan(trip, x[2], np.ones((3, 2)) * x[0])[0]

    want = tg.grad(lambda x: x[2] + 3.0 * x[1])(X)
    np.testing.assert_array_equal(tg.grad(f)(X, 0), want)
    np.testing.assert_array_equal(tg.jit(tg.grad(f))(X, 0), want)
    np.testing.assert_array_equal(tg.jit(tg.grad(f))(X, np.int64(0)), want)


def test_single_precision_stays():
    x = X.astype(np.float32)
    f = lambda x: np.sum(tg.fori_loop(0, 3, lambda i, c: np.sin(c * i) + x, x))
    np.testing.assert_allclose(tg.jit(f)(x), f(x), rtol=1e-6)
    slope = tg.jit(tg.grad(f))(x)
    assert slope.dtype == np.float32
    np.testing.assert_allclose(slope, tg.grad(f)(x), rtol=1e-6)


def test_python_may_read_what_a_long_loop_gives():
    """Tracing runs the first trips only; what Python asks for is computed to the end."""

    def f(x):
        total = tg.fori_loop(0, 100, lambda i, c: c + x[0], 0.0)
        k = tg.fori_loop(0, 7, lambda i, c: c - 1, 9)
        row = x[int(tg.stop_gradient(k))]  # of the first trips it would be out of range
        return row * 2.0 if total > 40.0 else -row

    g = tg.jit(f)
    assert (g(X), g(-X)) == (f(X), f(-X)) == (2 * X[2], X[2])
    assert g.cache_info().traces == 2
    np.testing.assert_array_equal(tg.jit(tg.grad(f))(X), [0.0, 0.0, 2.0])


def test_an_index_that_only_the_last_trip_brings_into_range():
    f = lambda x: x[tg.fori_loop(0, 7, lambda i, c: c - 1, 9)] ** 2
    np.testing.assert_array_equal(tg.jit(tg.grad(f))(X), tg.grad(f)(X))


@tg.custom_vjp
def doubled_slope(x):
    return np.sin(x)


doubled_slope.defvjp(lambda x: (np.sin(x), x), lambda x, g: (2.0 * g * np.cos(x),))


def test_derivatives_of_ones_own_within_loops_and_branches():
    loop = lambda x: np.sum(tg.fori_loop(0, 3, lambda i, y: doubled_slope(y) + x, x))
    branch = lambda x: np.sum(tg.cond(x[0] > 0, lambda: doubled_slope(x), lambda: x))
    for f in (loop, branch):
        np.testing.assert_allclose(tg.jit(f)(X), f(X))
        jitted = tg.jit(tg.grad(f))
        np.testing.assert_allclose(jitted(X), tg.grad(f)(X))
        assert jitted.cache_info() == (1, 1, 0)
    np.testing.assert_allclose(tg.grad(branch)(X), 2.0 * np.cos(X))
