"""What a transform leaves behind on the tape: nothing of its own, and nothing lost of others'."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.tape.tape import Tape, current

pytestmark = pytest.mark.tapegrad_only("transforms are not PyTorch's")


@pytest.fixture(autouse=True)
def _own_tape(monkeypatch):
    monkeypatch.setattr(current, "tape", Tape())


X = np.array([0.5, -1.0, 2.0])
CALLS = {
    "grad": lambda: tg.grad(lambda x, y: np.sum(x * y * x), argnums=(0, 1))(X, X),
    "value_and_grad": lambda: tg.value_and_grad(lambda d: np.sum(d["x"] ** 3))({"x": X}),
    "grad of grad": lambda: tg.grad(lambda x: tg.grad(lambda y: y**3)(x) ** 2)(2.0),
    "jvp": lambda: tg.jvp(lambda x: np.sin(x) * x[0], (X,), (X,)),
    "hvp": lambda: tg.hvp(lambda x: np.sum(x**3))(X, X),
    "jacrev": lambda: tg.jacrev(lambda x: np.sin(x) * x[0])(X),
    "jacfwd": lambda: tg.jacfwd(lambda x: np.sin(x) * x[0])(X),
    "hessian": lambda: tg.hessian(lambda x: np.sum(x**3))(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_transform_of_arrays_leaves_no_records(name):
    def lengths():
        CALLS[name]()
        return len(current.tape), len(current.tape.leaves)

    # In a thread, whose tape is new: a long one is not rewound, but reclaimed when it is full.
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lengths).result()
        assert [pool.submit(lengths).result() for _ in range(3)] == [first] * 3


def test_records_of_the_user_stay():
    w = tg.tensor(3.0, requires_grad=True)
    y = w * w
    tg.grad(lambda a, b: a * b, argnums=(0, 1))(2.0, 3.0)
    (y * w).backward()
    assert w.grad.item() == 27.0


def test_a_record_that_the_function_keeps_stays():
    w = tg.tensor(3.0, requires_grad=True)
    kept = []

    def f(a, b):
        kept.append(w * w)
        return a * b

    assert tg.grad(f, argnums=(0, 1))(2.0, 5.0) == (5.0, 2.0)
    kept[0].backward()
    assert w.grad.item() == 6.0


def test_a_value_that_depends_on_the_arguments_alone_is_a_number():
    value, _ = tg.value_and_grad(lambda a, b: a * b, argnums=(0, 1))(2.0, 5.0)
    assert type(value) is float


def test_aux_from_outside_keeps_its_history():
    w = tg.tensor(3.0, requires_grad=True)
    _, aux = tg.grad(lambda a: (a * a, (a, w * w)), has_aux=True)(2.0)
    assert type(aux[0]) is float
    aux[1].backward()
    assert w.grad.item() == 6.0


held = [].append  # the functions that are returned live on
KEEPING = {
    **{
        name: getattr(tg, name)
        for name in ("grad", "value_and_grad", "jacobian", "jacrev", "hessian")
    },
    "of several": lambda f: tg.grad(f, argnums=(0,)),
    "checkpoint": lambda f: tg.grad(tg.checkpoint(f)),
    "jacfwd": tg.jacfwd,
    "jvp": lambda f: lambda x: tg.jvp(f, (x,), (x,)),
    "hvp": lambda f: lambda x: tg.hvp(f)(x, x),
    "vmap": lambda f: lambda x: tg.vmap(f)(np.stack([x, x])),
    "vjp": lambda f: lambda x: held(tg.vjp(f, x)),
    "linearize": lambda f: lambda x: held(tg.linearize(f, x)),
}
USES = {
    "+": lambda t: t + 1,
    "a function of NumPy": np.sin,
    "sum": lambda t: t.sum(),
    "view": lambda t: t.reshape(-1),
    "in place": lambda t: t.mul_(2.0),
    "product": lambda t: t @ np.ones(3),
    "in another transform": lambda t: tg.grad(lambda z: np.sum(z * t))(X),
    "backward": lambda t: t.backward(tg.ones(3)),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", KEEPING)
def test_what_was_kept_instead_of_returned_is_not_a_constant(name, use):
    for keep in (lambda x: x * 2, lambda x: x, lambda x: x[:]):
        kept = []

        def f(x, keep=keep, kept=kept):
            kept.append(keep(x))
            return (x * x).sum()

        KEEPING[name](f)(X)
        with pytest.raises(
            RuntimeError, match=r"ended: return it|inside of a transform|`backward`"
        ):
            USES[use](kept[0])


@pytest.mark.parametrize("of", ["vjp", "linearize"])
def test_what_a_transform_returned_goes_on_where_something_was_kept(of):
    kept = []

    def f(x):
        kept.append(np.exp(x))
        return x, x[:2] * kept[-1][1:], kept[-1] * 1.0

    if of == "vjp":
        value, pullback = tg.vjp(f, X)
        weights = (X, X[:2], X)
        slope = lambda: pullback(weights)[0]
        nested = tg.grad(lambda x: np.sum(tg.vjp(f, x)[1](weights)[0] * X))(X)
    else:
        value, push = tg.linearize(f, X)
        slope = lambda: sum(np.sum(part) for part in push(X))
        nested = tg.grad(lambda x: sum(np.sum(p) for p in tg.linearize(f, x)[1](X)))(X)
    assert all(type(part) is np.ndarray for part in value)
    first = slope()
    with pytest.raises(RuntimeError, match=f"`tapegrad.{of}` and is used after that has ended"):
        kept[0] + 1
    np.testing.assert_array_equal(slope(), first)
    e = np.exp(X)
    if of == "vjp":
        expected = X + e * X
        expected[:2] += X[:2] * e[1:]
        expected[1:] += X[:2] * X[:2] * e[1:]
        np.testing.assert_allclose(first, expected)
    assert np.isfinite(nested).all()
    kept.clear()
    assert tg.grad(lambda x: np.sum(x * x))(X).tolist() == (2 * X).tolist()
    assert not current.tape.escaped


def test_what_was_kept_can_be_made_a_constant():
    kept = []

    def f(x):
        kept.extend([x * 2, tg.stop_gradient(x * 3)])
        return (x * x).sum(), x * 4

    _, aux = tg.grad(f, has_aux=True)(X)
    np.testing.assert_array_equal((tg.stop_gradient(kept[0]) + kept[1] + aux).numpy(), 9 * X)
    with tg.no_grad():
        np.testing.assert_array_equal((kept[0] + 0).numpy(), 2 * X)


def test_operations_are_short_again_when_nothing_is_kept_any_more():
    before, kept = current.tape.mode, []
    for _ in range(3):
        tg.grad(lambda x: kept.append(x * 2) or (x * x).sum())(X)
    assert len(current.tape.escaped) == 3
    kept.clear()
    tg.grad(lambda x: (x * x).sum())(X)
    assert not current.tape.escaped
    assert current.tape.mode == before


def test_an_error_inside_of_a_transform_ends_nothing():
    def f(x):
        y = (x * x).sum()
        raise ValueError(y.shape)

    with pytest.raises(ValueError, match="Size"):
        tg.grad(f)(X)
    assert not current.tape.escaped


def test_a_long_tape_is_rewound():
    w = tg.tensor(3.0, requires_grad=True)

    def lengths():
        held = []
        for _ in range(1500):
            held.append(w * 2)
            tg.grad(lambda x: (x * x).sum())(X)
        held[0].backward()
        held[-1].backward()
        return len(current.tape)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lengths).result() == 1500
    assert w.grad.item() == 4.0


def test_results_follow_the_arguments_and_not_what_else_is_read():
    w = tg.tensor(2.0, requires_grad=True)
    value, slopes = tg.value_and_grad(lambda x, y: w * x * y, (0, 1))(3.0, 2.0)
    assert (type(value), value, slopes) == (float, 12.0, (4.0, 6.0))
    value, slope = tg.value_and_grad(lambda x: (w * x * x).reshape(1)[0])(3.0)
    assert (type(value), value, slope) == (float, 18.0, 12.0)
    value, slope = tg.value_and_grad(lambda x: w * x * x)(tg.tensor(3.0))
    (value + slope).backward()
    assert w.grad.item() == 15.0


def test_an_adjoint_without_dimensions_that_is_added_up_in_python():
    """NumPy's sum of two arrays without dimensions is none: the sweep has read beside it."""

    def f(x):
        y = np.abs(x[1])
        return np.flip(y), y

    for found in tg.jacrev(f)(np.array([0.1, 0.5, 1.0])):
        np.testing.assert_array_equal(found, [0.0, 1.0, 0.0])
