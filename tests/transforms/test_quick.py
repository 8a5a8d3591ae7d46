"""The fast path of `grad`: one array of floats, one scalar, one call of the compiled sweep."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import engine
from tapegrad.tape.tape import Tape, current

pytestmark = pytest.mark.tapegrad_only("transforms are not PyTorch's")

X = np.array([0.5, -1.0, 2.0, 1.5])
SQUARE = np.outer(X, X) + 4.0 * np.eye(4)


class Cube(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


FUNCTIONS = {
    "product": lambda x: (x * x).sum(),
    "np.sum": lambda x: np.sum(x * x),
    "slices": lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2 * 100.0 + (1.0 - x[:-1]) ** 2),
    "elements": lambda x: x[0] * x[1] - np.sin(x[2]) * x[0],
    "matrices": lambda x: np.sum((SQUARE @ x) ** 2) + x @ x,
    "broadcast": lambda x: np.mean(np.tanh(x[:, None] - x[None, :]) ** 2),
    "joined": lambda x: np.sum(np.stack([x[0], x[3], x[1], x[1]]) ** 2),
    "reads it twice": lambda x: np.sum(x) * np.sum(np.exp(x)),
    "the argument's element": lambda x: x[2],
    "a view of what was computed": lambda x: (x * x)[1:2].reshape(()),
    "nothing of it": lambda x: np.sum(x - x) * 0.0,
    "python": lambda x: np.linalg.slogdet(SQUARE + np.diag(x))[1],
    "a Function": lambda x: Cube.apply(x).sum() * x[0],
    "large values": lambda x: np.sum(np.broadcast_to(x, (2000, 4)) ** 2),
    "more records than the tape has room for": lambda x: sum((x[0] * k for k in range(5000)), x[1]),
}


def at(f, x):
    """The gradient by `backward`, which takes another path."""
    t = tg.tensor(x, requires_grad=True)
    f(t).backward()
    return t.grad.numpy()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_gives_what_backward_gives(name):
    f = FUNCTIONS[name]
    expected = at(f, X)
    for _ in range(2):  # the first call may load kernels
        np.testing.assert_array_equal(tg.grad(f)(X), expected)
        value, found = tg.value_and_grad(f)(X)
        assert type(value) is float
        np.testing.assert_array_equal(found, expected)


def test_it_is_one_call_of_the_walk(monkeypatch):
    monkeypatch.setattr(current, "tape", Tape())  # on which nothing was kept beyond a transform
    tg.grad(FUNCTIONS["slices"])(X)  # loads kernels
    monkeypatch.setattr(engine, "Sweep", None)
    assert tg.grad(FUNCTIONS["slices"])(X).shape == X.shape
    assert tg.grad(lambda x: x * x)(3.0) == 6.0


def test_a_number_gives_a_float_and_an_array_without_dimensions_an_array():
    assert type(tg.grad(lambda x: x * x)(3.0)) is float
    found = tg.grad(lambda x: x * x)(np.array(3.0))
    assert type(found) is np.ndarray
    assert found.shape == ()
    assert found == 6.0


def test_gradients_of_two_calls_do_not_share_memory():
    g = tg.grad(FUNCTIONS["product"])
    first = g(X)
    kept = first.copy()
    g(2 * X)
    np.testing.assert_array_equal(first, kept)
    first += 1.0
    np.testing.assert_array_equal(g(X), kept)


def test_an_argument_that_the_value_does_not_depend_on_gets_zeros():
    w = tg.tensor(2.0, requires_grad=True)
    older = w * w
    np.testing.assert_array_equal(tg.grad(lambda x: w * 3.0)(X), np.zeros(4))
    np.testing.assert_array_equal(tg.grad(lambda x: older)(X), np.zeros(4))
    np.testing.assert_array_equal(tg.grad(lambda x: (x + 1.0, older)[1])(X), np.zeros(4))


def test_graphs_of_others_are_read_and_left_alone():
    w = tg.tensor(X, requires_grad=True)
    older = w * w
    for _ in range(2):
        np.testing.assert_array_equal(tg.grad(lambda x: (x * older * w).sum())(X), X**3)
    assert w.grad is None
    older.sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), 2 * X)


def test_a_released_graph_of_others_is_a_constant():
    w = tg.tensor(X, requires_grad=True)
    older = w * w
    older.sum().backward()
    np.testing.assert_array_equal(tg.grad(lambda x: (x * older).sum())(X), X**2)


def test_a_value_that_was_changed_after_it_was_saved_has_been_copied():
    def f(x):
        y = x * 1.0
        z = (y * y).sum()
        y.add_(1.0)
        return z

    for _ in range(2):
        np.testing.assert_array_equal(tg.grad(f)(X), 2 * X)


def test_a_hook_inside_the_function_is_called():
    seen = []

    def f(x):
        y = x * 2.0
        y.register_hook(lambda g: seen.append(g) or g * 10.0)
        return y.sum()

    for count in (1, 2):
        np.testing.assert_array_equal(tg.grad(f)(X), np.full(4, 20.0))
        assert len(seen) == count


def test_what_escapes_is_taken_off_the_tape():
    kept = []

    def f(x):
        kept.append(x * x)
        return kept[-1].sum()

    length = len(current.tape)
    tg.grad(f)(X)
    assert len(current.tape) == length
    assert current.tape.index(kept[0].position) < 0
    with pytest.raises(RuntimeError, match="ended: return it"):
        kept[0].sum()


def test_what_escapes_and_reads_more_is_released_and_keeps_no_values():
    w, kept = tg.tensor(X, requires_grad=True), []

    def f(x):
        kept.append(x * w)
        return kept[-1].sum()

    tg.grad(f)(X)
    length = len(current.tape)
    kept.clear()
    tg.grad(f)(X)
    assert len(current.tape) <= length + 2
    tape = current.tape
    assert tape.keep[tape.index(kept[0].position)] is None
    with pytest.raises(RuntimeError, match="second time"):
        kept[0].sum().backward()


def test_it_works_on_a_long_tape():
    w = tg.tensor(1.0, requires_grad=True)
    chain = [w * 1.0 for _ in range(1500)]
    for _ in range(3):
        np.testing.assert_array_equal(tg.grad(FUNCTIONS["product"])(X), 2 * X)
    chain[-1].backward()
    assert w.grad == 1.0


def test_a_sweep_within_a_sweep_has_memory_of_its_own():
    w = tg.tensor(X, requires_grad=True)
    y = w * 3.0
    found = []
    y.register_hook(lambda g: found.append(tg.grad(FUNCTIONS["product"])(X)))
    y.sum().backward()
    np.testing.assert_array_equal(found[0], 2 * X)
    np.testing.assert_array_equal(w.grad.numpy(), np.full(4, 3.0))


def test_a_sweep_of_many_leaves_after_a_quick_one():
    leaves = [tg.tensor(float(k), requires_grad=True) for k in range(400)]
    for _ in range(2):
        tg.grad(FUNCTIONS["slices"])(X)
        total = sum(t * t for t in leaves)
        np.testing.assert_array_equal(tg.grad(FUNCTIONS["slices"])(X), at(FUNCTIONS["slices"], X))
        total.backward()
    assert leaves[7].grad == 28.0
