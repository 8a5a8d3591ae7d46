"""`checkpoint` around transforms and inside of them."""

import gc
import tracemalloc

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.tape.tape import Tape, current

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

X = np.array([1.0, 2.0, 3.0])


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("inner", [tg.jacrev, tg.jacfwd, tg.jacobian])
def test_around_whole_matrices(inner):
    f = tg.checkpoint(lambda q: inner(lambda z: z**3)(q))
    same(f(X), np.diag(3 * X**2))
    third = np.zeros((3, 3, 3))
    np.einsum("iii->i", third)[:] = 6 * X
    same(tg.jacrev(f)(X), third)
    same(tg.jacfwd(f)(X), third)


def test_around_maps():
    same(tg.checkpoint(lambda q: tg.vmap(tg.grad(lambda s: s**3))(q))(X), 3 * X**2)
    f = tg.checkpoint(lambda q: tg.vmap(tg.hessian(lambda s: s**3))(q))
    same(tg.jacfwd(f)(X), 6 * np.eye(3))
    same(tg.jacrev(f)(X), 6 * np.eye(3))


def test_swept_after_the_transform_has_ended():
    for f in (
        tg.checkpoint(np.sin),
        lambda x: tg.checkpoint(lambda: np.sin(x))(),
        lambda x: tg.checkpoint(lambda y: tg.vmap(tg.grad(lambda s: -np.cos(s)))(y))(x),
        lambda x: tg.checkpoint(lambda: tg.vmap(tg.grad(lambda s: -np.cos(s)))(x))(),
    ):
        pullback = tg.vjp(f, X)[1]
        same(pullback(X)[0], np.cos(X) * X)
        same(pullback(X)[0], np.cos(X) * X)
        same(tg.linearize(f, X)[1](X), np.cos(X) * X)
        same(tg.vmap(pullback)(np.eye(3))[0], np.diag(np.cos(X)))


def test_inside_of_maps_and_of_forward_mode():
    f = lambda s: np.sin(s * s)
    over = (
        lambda h: lambda q: tg.vmap(h)(q).sum(),
        lambda h: lambda q: tg.jvp(h, (q,), (q,))[1].sum(),
        lambda h: lambda q: tg.jacfwd(h)(q).sum(),
    )
    for within in over:
        for outer in (tg.grad, tg.hessian):
            same(outer(within(tg.checkpoint(f)))(X), outer(within(f))(X))


def test_what_was_changed_in_place_cannot_be_computed_again():
    x = tg.tensor(X, requires_grad=True)
    w = tg.tensor(X)
    y = tg.checkpoint(lambda a: np.sin(a * w))(x * 1.0).sum()
    y.backward(retain_graph=True)
    same(x.grad, np.cos(X * X) * X)
    y = tg.checkpoint(np.sin)(v := x * w)
    v.mul_(2.0)
    with pytest.raises(RuntimeError, match=r"read has been modified by an inplace operation"):
        y.sum().backward()


def test_what_the_function_changes_itself():
    def f(x):
        y = np.exp(x)
        y.mul_(2.0)
        return y

    x = tg.tensor(X, requires_grad=True)
    with pytest.raises(RuntimeError, match="that was saved has been modified by an inplace"):
        tg.checkpoint(f)(x).sum().backward()


# -- memory ----------------------------------------------------------------------------------------

SIZE = 1 << 15  # elements of an array below
SEGMENTS, ROUNDS = 8, 5


def segment(x):
    for _ in range(ROUNDS):
        x = tg.sin(x)
        x = x * 1.25
    return x


def many(f):
    def total(x):
        for _ in range(SEGMENTS):
            x = f(x)
        return x.sum()

    return total


def by_backward(f, x):
    leaf = tg.tensor(x, requires_grad=True)
    f(leaf).backward()
    return leaf.grad.numpy()


def by_autograd(f, x):
    leaf = tg.tensor(x, requires_grad=True)
    y = f(leaf)
    tg.autograd.grad(y, leaf, retain_graph=True)
    return tg.autograd.grad(y, leaf)[0].numpy()


def by_pullback(f, x):
    pullback = tg.vjp(f, x)[1]
    found = pullback(1.0)[0]
    del pullback
    current.tape.reclaim()  # what nobody holds, as the next large operations would
    return found


def recorded(f, x):
    leaf = tg.tensor(x, requires_grad=True)
    return tg.autograd.grad(f(leaf), leaf, create_graph=True)[0].detach().numpy()


GRADIENTS = {
    "backward": by_backward,
    "autograd.grad": by_autograd,
    "grad": lambda f, x: tg.grad(f)(x),
    "value_and_grad": lambda f, x: tg.value_and_grad(f)(x)[1],
    "vjp": by_pullback,
}


def arrays_of(work):
    """What some work returns; the most arrays that lived meanwhile; those that are left."""
    others, current.tape = current.tape, Tape()  # what other tests left on theirs is not counted
    try:
        work()  # what is compiled or cached once is there from now on
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        found = work()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        current.tape = others
    return found, (peak - before) / (8 * SIZE), (after - before) / (8 * SIZE)


@pytest.mark.parametrize("way", GRADIENTS)
def test_one_segment_at_a_time_is_kept(way):
    x = np.linspace(0.1, 0.9, SIZE)
    expected, plain, _ = arrays_of(lambda: GRADIENTS[way](many(segment), x))
    found, peak, left = arrays_of(lambda: GRADIENTS[way](many(tg.checkpoint(segment)), x))
    np.testing.assert_array_equal(found, expected)
    assert plain > SEGMENTS * ROUNDS
    # The inputs of the segments, what one keeps, and a few arrays that are being computed.
    assert peak < SEGMENTS + ROUNDS + 8
    assert left < 3


def test_of_nested_segments_the_outer_keep_the_inputs_of_the_inner():
    x = np.linspace(0.1, 0.9, SIZE)
    inner = tg.checkpoint(segment)

    def block(x):
        for _ in range(SEGMENTS):
            x = inner(x)
        return x

    flat, nested = many(block), many(tg.checkpoint(block))
    expected, most, _ = arrays_of(lambda: by_backward(flat, x))
    found, peak, left = arrays_of(lambda: by_backward(nested, x))
    np.testing.assert_array_equal(found, expected)
    assert most > SEGMENTS**2
    assert peak < 2 * SEGMENTS + ROUNDS + 10
    assert left < 3


def test_what_a_sweep_does_not_ask_for_is_let_go_of():
    x = tg.tensor(np.linspace(0.1, 0.9, SIZE), requires_grad=True)

    def two(x):
        y = x
        for _ in range(20):
            y = tg.exp(-y)
        return tg.sin(x), y

    def one_of_two():
        first, second = tg.checkpoint(two)(x)
        return tg.autograd.grad(first.sum(), x, retain_graph=True)[0], first, second

    assert arrays_of(one_of_two)[2] < 5


def test_a_recorded_sweep_and_what_follows():
    f = tg.checkpoint(segment)
    x = tg.tensor(X, requires_grad=True)
    for g in (segment, f, tg.checkpoint(f)):
        (first,) = tg.autograd.grad(g(g(x)).sum(), x, create_graph=True)
        (second,) = tg.autograd.grad((first * first).sum(), x)
        if g is segment:
            expected = first, second
        same((first.detach(), second), [t.detach() for t in expected])
    same(recorded(many(f), X), by_backward(many(segment), X))


def test_the_records_of_a_second_run_are_gone():
    tape = current.tape
    x = tg.tensor(X, requires_grad=True)
    y = tg.checkpoint(lambda a: tg.sin(a) * tg.exp(a))(x).sum()
    count = len(tape)
    y.backward()
    assert len(tape) == count


def test_what_the_second_run_leaves_outside_can_be_differentiated():
    kept = []

    def f(x):
        kept.append(np.sin(x))
        return np.exp(kept[-1])

    x = tg.tensor(X, requires_grad=True)
    tg.checkpoint(f)(x).sum().backward()
    _, again = kept
    same(tg.autograd.grad(again.sum(), x)[0], np.cos(X))


def test_a_second_run_that_raises():
    calls = []

    def f(x):
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("not twice")
        return np.sin(np.sin(x))

    x = tg.tensor(X, requires_grad=True)
    y = tg.checkpoint(f)(x).sum()
    with pytest.raises(ValueError, match="not twice"):
        y.backward()
    y.backward()
    same(x.grad, np.cos(np.sin(X)) * np.cos(X))


def test_derivatives_that_the_function_takes_itself():
    def f(x):
        (g,) = tg.autograd.grad(tg.sin(x).sum(), x, create_graph=True)
        return g * x

    for g in (tg.checkpoint(f), tg.checkpoint(tg.checkpoint(f))):
        x = tg.tensor(X, requires_grad=True)
        g(x * 1.0).sum().backward()
        same(x.grad, np.cos(X) - X * np.sin(X))


def test_a_function_that_reads_what_it_saved_twice():
    class Square(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] + g * ctx.saved_tensors[0]

    runs = []

    def f(x):
        runs.append(1)
        return tg.sin(Square.apply(x))

    x = tg.tensor(X, requires_grad=True)
    tg.checkpoint(f)(x).sum().backward()
    same(x.grad, np.cos(X * X) * 2 * X)
    assert len(runs) == 2


@pytest.mark.parametrize(
    "draw",
    [
        lambda: tg.rand(3),
        lambda: tg.randn(3),
        lambda: np.random.rand(3),
        lambda: np.full(3, np.random.normal()),
        lambda: np.random.normal(size=3),
    ],
)
@pytest.mark.parametrize("before", [0, 1])
def test_random_numbers_are_the_same_in_the_second_run(draw, before):
    np.random.seed(0)
    np.random.normal(size=before)  # of a pair of normal numbers, so that the other is at hand
    masks = []

    def dropout(x):
        masks.append(draw())
        return x * masks[-1] * x

    x = tg.tensor(X, requires_grad=True)
    y = tg.checkpoint(dropout)(x).sum()
    between = np.asarray(draw())
    y.backward()
    same(x.grad, 2 * X * np.asarray(masks[0]))
    same(np.asarray(masks[1]), np.asarray(masks[0]))
    assert not np.array_equal(np.asarray(draw()), between)  # the numbers go on where they were


@pytest.mark.parametrize("before", [0, 1])
def test_a_function_that_draws_nothing_does_not_move_random_numbers(before):
    np.random.seed(0)
    np.random.normal(size=before)
    x = tg.tensor(X, requires_grad=True)
    y = tg.checkpoint(tg.sin)(x).sum()
    y.backward()
    found = np.random.normal(size=3)
    np.random.seed(0)
    same(np.random.normal(size=before + 3)[before:], found)
