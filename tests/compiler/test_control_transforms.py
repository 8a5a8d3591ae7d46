"""Maps and forward derivatives of compiled loops and branches: one loop each, of right values."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.ir.control_ops import graphs_of

pytestmark = pytest.mark.tapegrad_only("tapegrad's own branches and loops")

X = np.array([0.5, 1.5, -2.3])
V = np.array([1.0, -0.4, 0.7])
ROWS = np.cos(np.arange(12.0)).reshape(4, 3)


def plain(x):
    """A value for Python's own `while`."""
    return tg.stop_gradient(x)


def power(x, n=4):
    return tg.fori_loop(0, n, lambda i, y: y * np.sum(x * x) * 0.3 + i * x[0], x[1])


def unrolled_power(x, n=4):
    y = x[1]
    for i in range(n):
        y = y * np.sum(x * x) * 0.3 + i * x[0]
    return y


def counted_by_a_value(x):
    n = np.where(np.sum(x * x) > 5, 4, 2)
    return tg.fori_loop(0, n, lambda i, y: y * x[0] + np.sin(x[2]) * i, x[1])


def unrolled_counted(x):
    y = x[1]
    for i in range(4 if plain(np.sum(x * x)) > 5 else 2):
        y = y * x[0] + np.sin(x[2]) * i
    return y


def until(x):
    grown = lambda c: (c[0] * (1.1 + x[0] ** 2) + x, c[1] + 1, np.sum(c[0]) * x[1])
    last, n, total = tg.while_loop(lambda c: np.sum(c[0] ** 2) < 50, grown, (x, 0, 0.0))
    return np.sum(last * V) + n * x[2] + total


def unrolled_until(x):
    c, n, total = x, 0, 0.0
    while plain(np.sum(c**2)) < 50:
        c, n, total = c * (1.1 + x[0] ** 2) + x, n + 1, np.sum(c) * x[1]
    return np.sum(c * V) + n * x[2] + total


def swept_rows(x):
    def step(c, row):
        c = {"a": c["a"] * row[0] + x[1] * row, "n": c["n"] + 1}
        return c, (np.sum(c["a"] ** 2), x * row[1])

    last, (y, z) = tg.scan(step, {"a": x, "n": 0}, ROWS * x[2], reverse=True)
    return np.sum(last["a"]) * last["n"] + np.sum(y * ROWS[:, 0]) + np.sum(z * ROWS)


def unrolled_rows(x):
    a, total = x, 0.0
    for t in reversed(range(4)):
        row = ROWS[t] * x[2]
        a = a * row[0] + x[1] * row
        total = total + np.sum(a**2) * ROWS[t, 0] + np.sum(x * row[1] * ROWS[t])
    return np.sum(a) * 4 + total


def nested(x):
    def step(c, row):
        def inner(s):
            return s[0] + 1, s[1] * 1.7 + x[1] * 0.3

        n, c = tg.while_loop(lambda s: s[1] ** 2 < 3 + row[0], inner, (0, c))
        c = tg.cond(c > row[1], lambda: c * x[0], lambda: np.cos(c) * row[1])
        return c * 0.1 + row[1] * x[0], n * c

    last, found = tg.scan(step, x[2], ROWS)
    return last + np.sum(found)


def unrolled_nested(x):
    c, total = x[2], 0.0
    for row in ROWS:
        n = 0
        while plain(c) ** 2 < 3 + row[0]:
            n, c = n + 1, c * 1.7 + x[1] * 0.3
        c = c * x[0] if plain(c) > row[1] else np.cos(c) * row[1]
        total = total + n * c
        c = c * 0.1 + row[1] * x[0]
    return c + total


def branches(x):
    arms = (lambda a: np.sum(np.sin(a) * x), lambda a: a[0] ** 2), (lambda: x[0], lambda: x[1] * 2)
    return tg.cond(np.sum(x) > 0, *arms[0], x * x[1]) * tg.cond(x[2] > 0, *arms[1])


def chosen_branches(x):
    a = x * x[1]
    first = np.sum(np.sin(a) * x) if plain(np.sum(x)) > 0 else a[0] ** 2
    return first * (x[0] if plain(x[2]) > 0 else x[1] * 2)


def with_a_gradient(x):
    def trip(i, y):
        return y - 0.1 * tg.grad(lambda y: np.sum((y - x) ** 2 * y))(y)

    return np.sum(tg.fori_loop(0, 3, trip, x * 0.5) ** 2)


def unrolled_with_a_gradient(x):
    y = x * 0.5
    for _ in range(3):
        y = y - 0.1 * (3 * y**2 - 4 * x * y + x**2)
    return np.sum(y**2)


def with_a_tangent(x):
    def trip(c, row):
        c = tg.jvp(lambda y: np.sin(y) * x[0], (c,), (row,))[1] + np.sum(tg.vmap(np.cos)(c * x))
        return c, np.sum(c * x)

    last, found = tg.scan(trip, x, ROWS)
    return np.sum(last) + np.sum(found**2)


def unrolled_with_a_tangent(x):
    c, total = x, 0.0
    for row in ROWS:
        c = np.cos(c) * x[0] * row + np.sum(np.cos(c * x))
        total = total + np.sum(c * x) ** 2
    return np.sum(c) + total


PROGRAMS = {
    "fori": (power, unrolled_power),
    "fori_counted": (counted_by_a_value, unrolled_counted),
    "while": (until, unrolled_until),
    "scan": (swept_rows, unrolled_rows),
    "nested": (nested, unrolled_nested),
    "cond": (branches, chosen_branches),
    "grad_inside": (with_a_gradient, unrolled_with_a_gradient),
    "jvp_inside": (with_a_tangent, unrolled_with_a_tangent),
}
POINTS = np.stack([X, -X, X[::-1], X * 0.4])


def each(f):
    """What a map does, example by example."""
    return lambda xs: np.stack([f(x) for x in xs])


# Functions of one point.
TRANSFORMS = {
    "jvp": lambda f: lambda x: np.stack(tg.jvp(f, (x,), (V,))),
    "jacfwd": tg.jacfwd,
    "jacrev": tg.jacrev,
    "hvp": lambda f: lambda x: tg.hvp(f)(x, V),
    "linearize": lambda f: lambda x: tg.linearize(f, x)[1](V),
    "hessian": tg.hessian,
    "forward_over_reverse": lambda f: tg.jacfwd(tg.grad(f)),
    "forward_over_forward": lambda f: tg.jacfwd(tg.jacfwd(f)),
    "reverse_over_forward": lambda f: tg.jacrev(tg.jacfwd(f)),
    "jvp_of_grad": lambda f: lambda x: tg.jvp(tg.grad(f), (x,), (V,))[1],
    "grad_of_jvp": lambda f: tg.grad(lambda x: tg.jvp(f, (x,), (V,))[1] * 2.0),
    "third": lambda f: tg.grad(lambda x: np.sum(tg.hvp(f)(x, V) * V)),
}
# Python's `while` cannot stand under the map of `jacfwd` once that maps over variables too.
REFERENCES = {
    "forward_over_reverse": tg.hessian,
    "forward_over_forward": tg.hessian,
    "reverse_over_forward": tg.hessian,
}
MAPS = {
    "vmap": lambda f: f,
    "of_grad": tg.grad,
    "of_jvp": lambda f: lambda x: tg.jvp(f, (x,), (V,))[1],
    "of_hessian": tg.hessian,
}


def compare(f, *args, want):
    jitted = tg.jit(f)
    np.testing.assert_allclose(jitted(*args), want, rtol=1e-9, atol=1e-11)
    assert jitted.cache_info() == (1, 1, 0)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_derivatives(program, transform):
    f, reference = PROGRAMS[program]
    make = TRANSFORMS[transform]
    want = REFERENCES.get(transform, make)(reference)(X)
    compare(make(f), X, want=want)
    np.testing.assert_allclose(make(f)(X), want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("inner", MAPS)
def test_maps(program, inner):
    f, reference = PROGRAMS[program]
    make = MAPS[inner]
    compare(tg.vmap(make(f)), POINTS, want=each(make(reference))(POINTS))
    np.testing.assert_allclose(
        tg.vmap(make(f))(POINTS), each(make(reference))(POINTS), rtol=1e-9, atol=1e-11
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives_of_maps(program):
    f, reference = PROGRAMS[program]
    total = lambda f: lambda xs: np.sum(tg.vmap(f)(xs) ** 2)
    sums = lambda xs: sum(reference(x) ** 2 for x in xs)
    compare(tg.grad(total(f)), POINTS, want=tg.grad(sums)(POINTS))
    along = np.sin(np.arange(12.0)).reshape(4, 3)
    compare(
        lambda xs: tg.jvp(total(f), (xs,), (along,))[1],
        POINTS,
        want=tg.jvp(sums, (POINTS,), (along,))[1],
    )
    compare(lambda xs: tg.hvp(total(f))(xs, along), POINTS, want=tg.hvp(sums)(POINTS, along))


# -- of the size of one trip -----------------------------------------------------------------------


def recurrence(length):
    def f(x):
        step = lambda c, row: (np.tanh(c * x) + row[0], np.sum(c))
        last, found = tg.scan(step, x, np.resize(ROWS, (length, 3)))
        return np.sum(last) + tg.fori_loop(0, length, lambda i, y: np.sin(y) * x[0], found[0])

    return f


def records(graph):
    """How many records there are, in loops and branches too."""
    regions = [node for node in graph.nodes if node.name in ("loop", "branch")]
    inner = [sub.graph() for node in regions for sub in graphs_of(node)]
    return len(graph.nodes) + sum(map(records, inner))


SIZED = {**TRANSFORMS, **{"vmap_" + key: make for key, make in MAPS.items()}}


@pytest.mark.parametrize("transform", SIZED)
def test_programs_do_not_grow_with_the_number_of_trips(transform):
    def size(length):
        f = SIZED[transform](recurrence(length))
        g, x = (tg.vmap(f), POINTS) if transform.startswith("vmap") else (f, X)
        return records(tg.jit(g).lower(x).graph)

    assert size(5) == size(50)


def test_a_long_loop_is_traced_and_differentiated_forward_in_no_time():
    f = lambda x: tg.fori_loop(0, 300_000, lambda i, y: y + np.sin(y) * x, 0.1)
    value, slope = tg.jit(lambda x: tg.jvp(f, (x,), (1.0,)))(1e-6)
    want = tg.jit(tg.value_and_grad(f))(1e-6)
    assert (value, slope) == pytest.approx(want, rel=1e-9)


# -- what becomes of the carries -------------------------------------------------------------------


def carried(f, *args):
    """How many carries each loop of a compiled tape has."""
    tape = tg.jit(f).lower(*args).as_text().splitlines()
    return [int(line.split("carries=")[1].split(",")[0]) for line in tape if "carries=" in line]


def test_carries_without_a_tangent_get_none():
    def f(x):
        step = lambda i, c: (c[0] * x, c[1] * 0.5, c[2] + 1)
        a, b, n = tg.fori_loop(0, 5, step, (1.0, 3.0, 0))
        return a * b + n

    assert carried(f, 2.0) == [3]
    assert carried(lambda x: tg.jvp(f, (x,), (1.0,)), 2.0) == [4]


def test_carries_that_become_duals_or_batches_late():
    def f(x):
        step = lambda i, c: (c[0] * 0.5 + c[1], c[1] + c[2], c[2] + x[0])
        return tg.fori_loop(0, 6, step, (0.0, 0.0, 0.0))[0]

    def unrolled(x):
        a = b = c = 0.0
        for _ in range(6):
            a, b, c = a * 0.5 + b, b + c, c + x[0]
        return a

    compare(lambda x: tg.jvp(f, (x,), (V,))[1], X, want=tg.jvp(unrolled, (X,), (V,))[1])
    compare(tg.vmap(tg.grad(f)), POINTS, want=each(tg.grad(unrolled))(POINTS))


def test_lanes_that_are_done_stay_and_send_no_derivative_on():
    """A trip of a lane that is done is computed, on values that give NaN, and chosen by nobody."""
    f = lambda x: tg.while_loop(lambda c: c > 1.0, lambda c: np.sqrt(c - 1.0) * 1.2, x)

    def one_by_one(x):
        while plain(x) > 1.0:
            x = np.sqrt(x - 1.0) * 1.2
        return x

    xs = np.array([0.5, 1.2, 1.5, 3.7])
    for make in (lambda f: f, tg.grad, tg.hessian, lambda f: lambda x: tg.jvp(f, (x,), (1.0,))[1]):
        compare(tg.vmap(make(f)), xs, want=each(make(one_by_one))(xs))


def test_maps_over_the_bounds_of_a_loop():
    f = lambda a, b, x: tg.fori_loop(a, b, lambda i, y: y * x + i, 1.0)

    def unrolled(a, b, x):
        y = 1.0
        for i in range(a, b):
            y = y * x + i
        return y

    a, b, x = np.array([0, 2, 5, 1]), np.array([3, 2, 4, 7]), np.array([1.5, -0.5, 2.0, 0.3])
    want = np.stack([unrolled(*args) for args in zip(a, b, x, strict=True)])
    compare(tg.vmap(f), a, b, x, want=want)
    slopes = np.stack([tg.grad(unrolled, 2)(*args) for args in zip(a, b, x, strict=True)])
    compare(tg.vmap(tg.grad(f, 2)), a, b, x, want=slopes)


def test_a_condition_of_a_map_chooses_and_one_condition_branches():
    def f(x, flag):
        return tg.cond(flag, lambda: np.exp(x), lambda: x * 2.0)

    def steps(g, *args):
        return tg.jit(g).lower(*args).as_text()

    one = tg.vmap(f, in_axes=(0, None))
    assert "branch" in steps(one, X, np.bool_(True))
    compare(one, X, np.bool_(True), want=np.exp(X))
    compare(tg.vmap(tg.grad(f), in_axes=(0, None)), X, np.bool_(False), want=np.full(3, 2.0))
    assert "branch" not in steps(tg.vmap(f), X, X > 0)
    compare(tg.vmap(f), X, X > 0, want=np.where(X > 0, np.exp(X), X * 2.0))
    tangent = lambda x, flag: tg.jvp(lambda x: f(x, flag), (x,), (V,))[1]
    assert "branch" in steps(tangent, X, np.bool_(True))
    compare(tangent, X, np.bool_(True), want=np.exp(X) * V)


def test_arms_whose_results_differ_in_their_layers():
    f = lambda x: tg.cond(x[0] > 0, lambda: (np.sum(x), 1.0), lambda: (2.0, np.prod(x)))
    for x in (X, -X):
        want = (np.sum(V), 0.0) if x[0] > 0 else (0.0, tg.jvp(np.prod, (x,), (V,))[1])
        compare(lambda x: np.stack(tg.jvp(f, (x,), (V,))[1]), x, want=want)
    g = lambda x, a: tg.cond(a > 0, lambda: (x, a), lambda: (a, x * 2.0))
    mapped = tg.vmap(g, in_axes=(0, None))
    compare(lambda x: np.stack(mapped(x, 3.0)), X, want=[X, np.full(3, 3.0)])


def test_maps_within_maps_of_loops():
    def f(a, b):
        return tg.while_loop(lambda c: c < a, lambda c: c * b + 0.3, a * b)

    def one_by_one(a, b):
        c = a * b
        while plain(c) < a:
            c = c * b + 0.3
        return c

    a, b = np.array([1.0, 4.0, 9.0]), np.array([0.99, 1.1])
    table = tg.vmap(tg.vmap(f, in_axes=(None, 0)), in_axes=(0, None))
    compare(table, a, b, want=[[one_by_one(x, y) for y in b] for x in a])
    slopes = tg.vmap(tg.vmap(tg.grad(f), in_axes=(None, 0)), in_axes=(0, None))
    compare(slopes, a, b, want=[[tg.grad(one_by_one)(x, y) for y in b] for x in a])


def test_bodies_and_arms_may_change_what_they_are_given():
    def grown(c):
        c = tg.as_tensor(c)
        c += 1.0
        return c * 1.5

    def arm(a):
        a *= 2.0
        return a.sum()

    loop = lambda x: tg.while_loop(lambda c: c < 4.0, grown, x)
    branch = lambda x: tg.cond(x[0] > 0, arm, lambda a: (a + x).sum(), x * 1.0)
    for f in (tg.vmap(loop), tg.jit(tg.vmap(loop))):
        found = f(tg.tensor([3.5, 0.5, 5.0])).numpy()
        np.testing.assert_allclose(found, [4.5 * 1.5, (1.5 * 1.5 + 1.0) * 1.5, 5.0])
    for f in (tg.vmap(branch), tg.jit(tg.vmap(branch))):
        np.testing.assert_allclose(f(tg.tensor(POINTS)).numpy(), 2.0 * POINTS.sum(1))


def test_arms_that_both_run_may_not_change_what_lies_outside():
    def f(x):
        total = x * 1.0
        tg.cond(x[0] > 0, lambda: total.add_(1.0), lambda: total * 2.0)
        return total

    with pytest.raises(RuntimeError, match=r"given to `cond` changes a Tensor in place"):
        tg.jit(tg.vmap(f))(tg.tensor(POINTS))


def test_central_differences():
    for f in (power, until, nested):
        h = 1e-6
        want = (f(X + h * V) - f(X - h * V)) / (2 * h)
        found = tg.jit(lambda x: tg.jvp(f, (x,), (V,))[1])(X)  # noqa: B023 - traced at once
        assert found == pytest.approx(want, rel=1e-7)
        g = tg.jit(tg.grad(f))
        second = tg.jit(lambda x: tg.jvp(tg.grad(f), (x,), (V,))[1])(X)  # noqa: B023
        np.testing.assert_allclose(second, (g(X + h * V) - g(X - h * V)) / (2 * h), rtol=1e-5)
