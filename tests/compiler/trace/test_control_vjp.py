"""Derivatives of the user's own within compiled loops and branches are traced like any other."""

import numpy as np
import pytest

import tapegrad as tg
from tests.compiler.test_jitted_transforms import Doubling

pytestmark = pytest.mark.tapegrad_only("tapegrad's own branches and loops")

X = np.array([0.5, 1.5, -0.8])
V = np.array([1.0, -0.4, 0.7])
ROWS = np.cos(np.arange(12.0)).reshape(4, 3)

# Each of these has a derivative that is not that of its value, which shows that it is asked.


@tg.custom_vjp
def doubled(x):
    return np.sin(x)


doubled.defvjp(lambda x: (np.sin(x), (x, np.cos(x))), lambda kept, g: (2.0 * g * kept[1],))


@tg.custom_jvp
def steep(x):
    return np.sin(x)


@steep.defjvp
def _(primals, tangents):
    return steep(*primals), 3.0 * tangents[0] * np.cos(primals[0])


class Kept(tg.autograd.Function):
    """sin, with the input saved, the result as an attribute and a number beside it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, factor):
        return tg.sin(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        ctx.slope = tg.cos(x)
        ctx.save_for_backward(x, output)
        ctx.save_for_forward(x, output)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * (ctx.factor * tg.cos(x) + 0.1 * y), None

    @staticmethod
    def jvp(ctx, t, _):
        x, y = ctx.saved_tensors
        return t * (ctx.factor * tg.cos(x) + 0.1 * y)


class Noted(tg.autograd.Function):
    """Two results; the backward reads a Tensor that is an attribute of the context."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.product = x * y
        ctx.save_for_backward(x)
        return ctx.product * 1.0, x + y

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return 2.0 * g * ctx.product + h, h * 3.0 + g * x


def noted(x):
    a, b = Noted.apply(x, np.cos(x))
    return a * b


OWN = {
    "custom_vjp": doubled,
    "custom_jvp": steep,
    "Function": lambda x: Kept.apply(x, 4.0),
    "several": noted,
}


def counted(own):
    return lambda x: np.sum(tg.fori_loop(0, 3, lambda i, y: own(y) * 0.7 + x, x))


def unrolled_counted(own):
    def f(x):
        y = x
        for _ in range(3):
            y = own(y) * 0.7 + x
        return np.sum(y)

    return f


def until(own):
    def f(x):
        trip = lambda c: (c[0] + 0.8 + 0.1 * np.sin(own(c[0] * x[1])), c[1] + own(x[0]) * own(c[0]))
        return tg.while_loop(lambda c: c[0] < 3.0, trip, (x[0], x[2]))[1]

    return f


def unrolled_until(own):
    def f(x):
        c, total = x[0], x[2]
        while tg.stop_gradient(c) < 3.0:
            c, total = c + 0.8 + 0.1 * np.sin(own(c * x[1])), total + own(x[0]) * own(c)
        return total

    return f


def nested(own):
    def f(x):
        def step(c, row):
            inner = lambda i, d: own(d * row) * own(c) + x * 0.1
            d = tg.fori_loop(0, 2, inner, c)
            d = tg.cond(row[0] > 0, lambda: own(d) * x[0], lambda: d * own(row * x))
            return c * 0.5 + d, np.sum(d)

        last, found = tg.scan(step, x, ROWS)
        return np.sum(last) + np.sum(found**2)

    return f


def unrolled_nested(own):
    def f(x):
        c, total = x, 0.0
        for row in ROWS:
            d = c
            for _ in range(2):
                d = own(d * row) * own(c) + x * 0.1
            d = own(d) * x[0] if row[0] > 0 else d * own(row * x)
            c, total = c * 0.5 + d, total + np.sum(d) ** 2
        return np.sum(c) + total

    return f


PROGRAMS = {
    "counted": (counted, unrolled_counted),
    "until": (until, unrolled_until),
    "nested": (nested, unrolled_nested),
}


def second(f):
    return lambda x: tg.grad(lambda x: np.sum(tg.grad(f)(x) * V))(x)


def third(f):
    return tg.grad(lambda x: np.sum(second(f)(x) * V))


TRANSFORMS = {"grad": tg.grad, "second": second, "third": third, "hessian": tg.hessian}
CASES = [(p, t) for p in PROGRAMS for t in TRANSFORMS if (p, t) != ("nested", "third")]


def compare(f, *args, want):
    jitted = tg.jit(f)
    np.testing.assert_allclose(jitted(*args), want, rtol=1e-9, atol=1e-11)
    assert jitted.cache_info() == (1, 1, 0)


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize(("program", "transform"), CASES)
def test_reverse(own, program, transform):
    f, reference = (make(OWN[own]) for make in PROGRAMS[program])
    make = TRANSFORMS[transform]
    compare(make(f), X, want=make(reference)(X))
    assert tg.jit(make(f)).lower(X).callbacks == ()


FORWARD = {
    "jvp": lambda f: lambda x: tg.jvp(f, (x,), (V,))[1],
    "jvp_of_grad": lambda f: lambda x: tg.jvp(tg.grad(f), (x,), (V,))[1],
    "hvp": lambda f: lambda x: tg.hvp(f)(x, V),
    "vmap": lambda f: lambda x: tg.vmap(f)(tg.stack([x, x * 2.0])),
    "vmap_of_grad": lambda f: lambda x: tg.vmap(tg.grad(f))(tg.stack([x, x * 2.0])),
}


@pytest.mark.parametrize("own", ["custom_vjp", "custom_jvp", "Function"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("transform", FORWARD)
def test_forward_and_maps(own, program, transform):
    f, reference = (make(OWN[own]) for make in PROGRAMS[program])
    make = FORWARD[transform]
    if transform.startswith("vmap"):
        inner = tg.grad if transform.endswith("grad") else lambda f: f
        want = np.stack([inner(reference)(X), inner(reference)(X * 2.0)])
    else:
        want = make(reference)(X)
    compare(make(f), X, want=want)


def test_a_loop_with_a_rule_of_ones_own_is_one_loop():
    def tape(n):
        f = tg.grad(lambda x: tg.fori_loop(0, n, lambda i, y: doubled(y) * x, x))
        return tg.jit(f).lower(0.5).as_text().splitlines()

    assert len(tape(3)) == len(tape(300))
    assert sum("loop" in line for line in tape(3)) == 2


def test_a_rule_that_closes_over_values_of_the_trip_and_from_outside():
    def f(x):
        scale = tg.stop_gradient(np.cos(x[0]))

        def trip(c, row):
            shift = c * row[0]
            fixed = tg.stop_gradient(shift)

            @tg.custom_vjp
            def own(y):
                return y * fixed

            own.defvjp(lambda y: (y * fixed, None), lambda _, g: (g * fixed * 2.0 + scale,))
            return own(c * x) + own(x) * 0.5, np.sum(own(shift))

        last, found = tg.scan(trip, x, ROWS)
        return np.sum(last) + np.sum(found)

    def reference(x):
        scale, c, total = tg.stop_gradient(np.cos(x[0])), x, 0.0

        def own(y, shift):
            fixed = tg.stop_gradient(shift)

            @tg.custom_vjp
            def own(y):
                return y * fixed

            own.defvjp(lambda y: (y * fixed, None), lambda _, g: (g * fixed * 2.0 + scale,))
            return own(y)

        for row in ROWS:
            shift = c * row[0]
            c, total = own(c * x, shift) + own(x, shift) * 0.5, total + np.sum(own(shift, shift))
        return np.sum(c) + total

    compare(tg.grad(f), X, want=tg.grad(reference)(X))


def test_a_backward_that_differentiates_in_turn():
    class Deep(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.twice = x * 2.0
            return np.sin(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            slope = tg.grad(lambda y: np.sum(doubled(y) * ctx.twice))(x)
            return g * slope * ctx.twice

    def f(x):
        return np.sum(tg.fori_loop(0, 3, lambda i, y: Deep.apply(y) * 0.7 + x, x))

    def reference(x):
        y = x
        for _ in range(3):
            y = Deep.apply(y) * 0.7 + x
        return np.sum(y)

    for make in (tg.grad, second):
        compare(make(f), X, want=make(reference)(X))


def test_a_backward_that_reads_more_than_the_results_depend_on():
    class Straight(tg.autograd.Function):
        """A constant, whose gradient depends on the argument all the same."""

        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return tg.zeros_like(x)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    def f(x):
        trip = lambda c, row: ((c[0] * 0.5 + Straight.apply(c[0], row * c[1]), c[1] * x), None)
        last, _ = tg.scan(trip, (x, x * 2.0), ROWS)
        return np.sum(last[0])

    def reference(x):
        a, b = x, x * 2.0
        for row in ROWS:
            a, b = a * 0.5 + Straight.apply(a, row * b), b * x
        return np.sum(a)

    compare(tg.grad(f), X, want=tg.grad(reference)(X))


def test_a_backward_that_asks_for_values_is_left_to_python():
    class Asking(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 5.0 if x.sum() > 0 else g * 7.0

    f = lambda x: np.sum(tg.fori_loop(0, 2, lambda i, y: Asking.apply(y) - x, x))
    for x in (X, -X):
        np.testing.assert_allclose(tg.jit(tg.grad(f))(x), tg.grad(f)(x))


def test_once_differentiable_in_a_loop():
    class Once(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @tg.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    f = lambda x: np.sum(tg.fori_loop(0, 3, lambda i, y: Once.apply(y) * x, x))
    compare(tg.grad(f), X, want=tg.grad(f)(X))
    with pytest.raises(RuntimeError, match="once_differentiable"):
        tg.jit(second(f))(X)


def test_arms_copy_what_lies_outside_and_change_the_copy():
    def f(x):
        def arm():
            y = x.clone()
            first = y[:1]
            first += 1.0
            y.mul_(x)
            return y.sum()

        return tg.cond(x[0] > 0, arm, lambda: x.sum())

    for x in (X, -X):
        want = np.sum(x * x) + x[0] if x[0] > 0 else np.sum(x)
        assert tg.jit(f)(tg.tensor(x)).item() == pytest.approx(want)
        slope = (2 * x + [1.0, 0.0, 0.0]) if x[0] > 0 else np.ones(3)
        compare(tg.grad(f), tg.tensor(x), want=slope)
        compare(lambda x: tg.jvp(f, (x,), (V,))[1], x, want=slope @ V)


# -- changes in place ------------------------------------------------------------------------------


def changing(x, region):
    total = x * 1.0
    region(total)
    return (total * x).sum()


REGIONS = {
    "cond": lambda t: tg.cond(t[0] > 0, lambda: Doubling.apply(t), lambda: t * 1.0),
    "cond_in_loop": lambda t: tg.fori_loop(
        0, 2, lambda i, c: tg.cond(c[0] > 0, lambda: Doubling.apply(t) + c, lambda: c), t
    ),
    "fori_loop": lambda t: tg.fori_loop(0, 2, lambda i, c: c + Doubling.apply(t), t),
    "while_loop": lambda t: tg.while_loop(lambda c: c[0] < 3, lambda c: c + Doubling.apply(t), t),
}


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("transform", [lambda f: f, tg.grad])
def test_a_function_that_changes_what_lies_outside_is_refused(region, transform):
    f = transform(lambda x: changing(x, REGIONS[region]))
    with pytest.raises(
        RuntimeError, match=r"changes a Tensor in place that was made outside of it"
    ):
        tg.jit(f)(tg.tensor(X))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_function_that_changes_what_was_made_within(sign):
    def f(x):
        def arm():
            y = x * 1.0
            z = Doubling.apply(y)
            return np.sum(y * z)

        c = tg.cond(x[0] > 0, arm, lambda: np.sum(x))
        return tg.fori_loop(0, 3, lambda i, c: c * np.sum(Doubling.apply(x * c)), c)

    def reference(x):
        y = x * 1.0
        z = Doubling.apply(y)
        c = np.sum(y * z) if tg.stop_gradient(x)[0] > 0 else np.sum(x)
        for _ in range(3):
            c = c * np.sum(Doubling.apply(x * c))
        return c

    x = X * sign * 0.2
    compare(tg.grad(f), x, want=tg.grad(reference)(x))


def test_a_branch_whose_gradient_depends_on_the_condition_alone():
    f = lambda x: tg.cond(x[0] > 0, lambda x: x[0] * 2.0, lambda x: x[1], x)
    x = np.array([1.0, 2.0])
    assert np.array_equal(tg.jit(tg.hessian(f))(x), np.zeros((2, 2)))
    assert tg.jit(tg.grad(f))(-x).tolist() == [0.0, 1.0]
