"""Joins and paddings that no program writes: loops read the pieces, box by box."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.ir.buffers import CONSTANT, INPUT, OUTPUT, SCRATCH
from tapegrad.compiler.ir.loop_nest import SET
from tapegrad.compiler.schedule.fusion import Schedule
from tapegrad.compiler.schedule.step_ir import Copy
from tapegrad.compiler.schedule.virtual_concat import LEAST

pytestmark = pytest.mark.tapegrad_only("compiled functions are not PyTorch's")

N = 3000
X = np.linspace(-1.0, 1.0, N)
Y = np.cos(7.0 * np.arange(N))
SQUARE = np.cos(3.0 * np.arange(200.0 * 210)).reshape(200, 210)


def schedule(f, *args):
    return Schedule(tg.jit(f).lower(*args).graph)


def large(made):
    """The buffers of more than a few elements that a program has for itself."""
    return [b for b in made.buffers if b.kind == SCRATCH and b.first >= 0 and b.size > 64]


def domains(made):
    return [nest.domain for nest in made.nests]


def same(f, *args):
    """Compiled as eager, bit for bit; returns the schedule."""
    found, wanted = tg.jit(f)(*args), f(*args)
    for a, b in zip(np.atleast_1d(found), np.atleast_1d(wanted), strict=True):
        np.testing.assert_array_equal(a, b)
    return schedule(f, *args)


def heat(u):
    p = np.pad(u, 1)
    return u + 0.1 * (p[2:] - 2.0 * u + p[:-2])


def walls(u):
    inside = u[2:] - 2.0 * u[1:-1] + u[:-2]
    return u + 0.1 * np.concatenate([np.zeros(1), inside, np.zeros(1)])


def periodic(u):
    return u + 0.1 * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1))


def ghosts(u):
    p = np.concatenate([u[:1], u, u[-1:]])
    return p[2:] - 2.0 * p[1:-1] + p[:-2]


@pytest.mark.parametrize("step", [heat, walls, periodic, ghosts])
def test_a_stencil_is_one_loop_with_ends(step):
    made = same(step, X)
    assert not large(made)
    assert domains(made) == [(1,), (N - 2,), (1,)]
    assert {load.buffer.kind for nest in made.nests for load in nest.loads} <= {INPUT}


@pytest.mark.parametrize("step", [heat, walls, periodic, ghosts])
def test_the_gradient_of_a_stencil_joins_nothing_either(step):
    def loss(u):
        return np.sum(step(u) ** 2)

    found = tg.jit(tg.grad(loss))(X)
    np.testing.assert_array_equal(found, tg.grad(loss)(X))
    made = schedule(tg.grad(loss), X)
    assert not any(isinstance(step, Copy) for step in made.steps)
    assert max(b.size for b in large(made)) <= N + 2


@pytest.mark.parametrize("steps", [2, 3])
def test_steps_in_a_row(steps):
    def run(u):
        for _ in range(steps):
            u = walls(heat(u))
        return u

    made = same(run, X)
    assert len(large(made)) == 2 * steps - 1  # what a step reads at other places lies somewhere

    def loss(u):
        return np.sum(run(u) ** 2)

    np.testing.assert_array_equal(tg.jit(tg.grad(loss))(X), tg.grad(loss)(X))
    # A sum that is read again is added up once: no nest adds up those of all later steps.
    assert max(len(nest.loads) for nest in schedule(tg.grad(loss), X).nests) <= 6


def test_a_loss_of_differences_needs_no_memory():
    def loss(x):
        return np.sum((x[1:] - x[:-1]) ** 2)

    made = schedule(tg.value_and_grad(loss), X)
    assert not large(made)
    assert domains(made) == [(N - 1,), (1,), (N - 2,), (1,)]
    np.testing.assert_array_equal(tg.jit(tg.grad(loss))(X), tg.grad(loss)(X))


def test_what_takes_long_is_stored_for_a_sum_of_paddings():
    def variation(x):
        d = x[1:] - x[:-1]
        return np.sum(np.sqrt(d * d + 1e-6))

    made = schedule(tg.value_and_grad(variation), X)
    assert len([b for b in large(made) if b.size == N - 1]) == 2
    stores = [s for nest in made.nests for s in nest.stores if s.place.buffer.kind == OUTPUT]
    assert [s.mode for s in stores].count(SET) == 3  # one for each box, and none is added to
    np.testing.assert_array_equal(tg.jit(tg.grad(variation))(X), tg.grad(variation)(X))


@pytest.mark.parametrize("dim", [0, 1])
def test_a_padding_of_a_matrix(dim):
    widths = [(2, 0), (0, 1)][:: 1 - 2 * dim]

    def f(u):
        return np.sum(np.pad(u, widths, constant_values=3.0) ** 2, dim)

    made = schedule(f, SQUARE)
    assert not [b for b in large(made) if b.size >= SQUARE.size]
    np.testing.assert_allclose(tg.jit(f)(SQUARE), f(SQUARE), rtol=1e-14)
    np.testing.assert_allclose(
        tg.jit(tg.grad(lambda u: np.sum(f(u))))(SQUARE), 2.0 * SQUARE, rtol=1e-14
    )


def test_five_points_of_a_matrix():
    def f(u):
        p = np.pad(u, 1)
        return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4.0 * u

    made = same(f, SQUARE)
    assert not large(made)
    assert sorted(domains(made))[-1] == (198, 208)
    assert len(made.nests) == 9

    def loss(u):
        return np.sum(f(u) ** 2)

    np.testing.assert_array_equal(tg.jit(tg.grad(loss))(SQUARE), tg.grad(loss)(SQUARE))


@pytest.mark.parametrize("join", [np.stack, np.concatenate])
def test_a_function_of_a_join_is_one_of_each_piece(join):
    def f(x, y):
        return np.exp(join([x, y])) * 2.0 + 1.0

    made = schedule(f, X, Y)
    assert not large(made)
    assert not any(isinstance(step, Copy) for step in made.steps)
    assert [int(np.prod(domain)) for domain in domains(made)] == [N, N]
    np.testing.assert_allclose(tg.jit(f)(X, Y), f(X, Y), rtol=1e-15)


def test_what_is_joined_alone_is_computed_in_its_box():
    def f(x, y):
        return np.concatenate([np.sin(x), y * y]) + 1.0

    made = schedule(f, X, Y)
    assert [[t.name for t in n.terms] for n in made.nests] == [
        ["sin", "constant", "add"],
        ["mul", "constant", "add"],
    ]
    assert not large(made)
    np.testing.assert_allclose(tg.jit(f)(X, Y), f(X, Y), rtol=1e-15)


def test_what_others_read_too_is_computed_once():
    def f(x, y):
        s = np.sin(x)
        return np.concatenate([s, y]) * 2.0, s + y

    made = schedule(f, X, Y)
    assert sum(t.name == "sin" for nest in made.nests for t in nest.terms) == 1
    for a, b in zip(tg.jit(f)(X, Y), f(X, Y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("sum_", [np.sum, np.prod, np.max, np.min])
def test_what_boxes_add_up_is_added_up(sum_):
    def f(x, y):
        return sum_(np.concatenate([x, y, x[:10]]))

    made = schedule(f, X, Y)
    assert not large(made)
    assert domains(made) == [(N,), (N,), (10,), (3,)]
    np.testing.assert_allclose(tg.jit(f)(X, Y), f(X, Y), rtol=1e-13, atol=1e-13)


def test_a_sum_along_what_is_cut_and_along_what_is_not():
    a = SQUARE[:, :100]

    def f(u, v):
        joined = np.concatenate([u, v * 3.0], 1) ** 2
        return np.sum(joined, 0), np.sum(joined, 1)

    for found, wanted in zip(tg.jit(f)(SQUARE, a), f(SQUARE, a), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
    assert not [b for b in large(schedule(f, SQUARE, a)) if b.size >= SQUARE.size]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_other_types(dtype):
    x, y = (X * 5).astype(dtype), (Y * 5).astype(dtype)

    def f(x, y):
        return np.where(np.concatenate([x, y]) > 0, np.concatenate([y, x]), np.roll(x, 3)[:1])

    found, wanted = tg.jit(f)(x, y), f(x, y)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_a_join_of_several_types():
    x, n = X.astype(np.float32), np.arange(N)
    np.testing.assert_array_equal(
        tg.jit(lambda x, n: np.concatenate([x, n]) * 2.0)(x, n), np.concatenate([x, n]) * 2.0
    )


def test_paddings_within_paddings_and_joins_within_joins():
    def f(x, y):
        p = np.pad(np.concatenate([np.pad(x, 2), y]), (3, 0), constant_values=1.0)
        return p[1:] * 0.5

    made = same(f, X, Y)
    assert not large(made)
    assert not any(isinstance(step, Copy) for step in made.steps)


def test_a_join_of_joins_that_is_wanted_is_written_once():
    def f(x, y):
        return np.concatenate([np.pad(x, 2), y])

    made = same(f, X, Y)
    assert not large(made)


def test_the_sign_of_a_padding_s_zero():
    def f(x):
        return np.pad(x, 1, constant_values=-0.0) * 1.5

    np.testing.assert_array_equal(np.signbit(tg.jit(f)(X)), np.signbit(f(X)))


def test_a_join_that_something_else_reads_lies_in_memory():
    w = np.ones((2 * N, 3))

    def f(x, y):
        joined = np.concatenate([x, y])
        return np.sum(np.sin(joined)) + np.sum(joined @ w)

    made = schedule(f, X, Y)
    assert [b.size for b in large(made)] == [2 * N]
    assert (2 * N,) in domains(made)  # and who needs no memory reads it there as a whole
    np.testing.assert_allclose(tg.jit(f)(X, Y), f(X, Y), rtol=1e-12)


def test_a_small_join_is_written():
    n = LEAST // 2 - 1
    made = schedule(lambda x, y: np.sin(np.concatenate([x, y])), X[:n], Y[:n])
    assert sum(isinstance(step, Copy) for step in made.steps) == 2
    assert domains(made)[-1] == (2 * n,)


def test_a_join_of_many_pieces_is_written():
    def f(x):
        return np.sum(np.sin(np.concatenate([x[k : k + 100] for k in range(0, N, 100)][::-1])))

    made = schedule(f, X)
    assert [b.size for b in large(made)] == [N]
    np.testing.assert_allclose(tg.jit(f)(X), f(X), rtol=1e-12, atol=1e-12)


def test_joins_that_would_cut_a_loop_too_often_are_written():
    places = range(100, 1000, 100)

    def f(x):
        return sum(np.concatenate([x[k:], x[:k]]) * float(k) for k in places)

    made = same(f, X)
    assert large(made)
    assert len(made.nests) < 60


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.reshape(100, -1),
        lambda t: t.reshape(-1),
        lambda t: t.reshape(-1)[5:].reshape(5, -1),
        lambda t: t.T,
        lambda t: t[:, None, 3:],
        lambda t: t[::-1, ::2],
        lambda t: t[7],
        lambda t: t[150:, -1],
        lambda t: np.diagonal(t),
        lambda t: np.broadcast_to(t, (2, 200, 420))[:, 1:],
        lambda t: tg.as_tensor(t).unfold(1, 3, 1),
    ],
)
def test_views_of_a_join(view):
    def f(u, v):
        return view(np.concatenate([u, v], 1)) * 2.0

    wanted = f(SQUARE, SQUARE.copy())
    np.testing.assert_array_equal(tg.jit(f)(SQUARE, SQUARE.copy()), np.asarray(wanted))


def test_picked_rows_are_joined():
    index = np.arange(N)[::-1].copy()

    def f(x, y, i):
        return np.concatenate([x[i], y]) * 2.0

    same(f, X, Y, index)


def test_a_guard_sees_what_boxes_computed():
    def f(x, y):
        total = np.sum(np.concatenate([x, y]) ** 2)
        return x * 2.0 if total > 1.0 else y

    f_ = tg.jit(f)
    np.testing.assert_array_equal(f_(X, Y), X * 2.0)
    np.testing.assert_array_equal(f_(X * 0.0, Y * 0.0), Y * 0.0)
    np.testing.assert_array_equal(f_(X, Y), X * 2.0)


def test_in_the_body_of_a_loop():
    def f(u):
        return tg.fori_loop(0, 5, lambda k, u: heat(u), u)

    wanted = X
    for _ in range(5):
        wanted = heat(wanted)
    np.testing.assert_array_equal(tg.jit(f)(X), wanted)


def test_several_threads():
    n = 1 << 18
    u = np.cos(np.arange(n))
    before = tg.get_num_threads()
    try:
        tg.set_num_threads(2)
        found = tg.jit(heat)(u)
        total = tg.jit(lambda u: np.sum(heat(u) ** 2))(u)
    finally:
        tg.set_num_threads(before)
    np.testing.assert_array_equal(found, heat(u))
    np.testing.assert_allclose(total, np.sum(heat(u) ** 2), rtol=1e-12)


def test_the_text_has_no_room_for_a_join():
    text = tg.jit(heat).lower(X).as_text()
    assert "aligned_alloc(i64 64" not in text
    assert CONSTANT not in {b.kind for b in schedule(heat, X).buffers}
