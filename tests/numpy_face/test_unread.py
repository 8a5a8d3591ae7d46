"""Questions about values under `jit` and `vmap`: answered by operations, or by a guard."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("transforms over arrays")

X = np.array([1.0, -2.0, np.inf, -np.inf, np.nan, 0.0, -0.0])
ROWS = np.stack([X, X[::-1]])

ANSWERS = {
    "nan_to_num": lambda x: tg.nan_to_num(x),
    "nan_to_num with numbers": lambda x: x.nan_to_num(5.0, 1.0, -1.0),
    "nan_to_num_": lambda x: (x * 1).nan_to_num_(posinf=7.0),
    "np.nan_to_num": lambda x: np.nan_to_num(x),
    "copysign": lambda x: np.copysign(x, x),
    "copysign of a number": lambda x: np.copysign(3.0, x),
    "isposinf": lambda x: np.isposinf(x),
    "isneginf": lambda x: np.isneginf(x),
    "isin": lambda x: np.isin(x, [1.0, 0.0]),
    "isin, inverted": lambda x: np.isin(x, np.array([[1.0], [np.nan]]), invert=True),
    "isreal": lambda x: np.isreal(x),
    "iscomplex": lambda x: np.iscomplex(x),
    "result_type": lambda x: x * (np.result_type(x, np.float32) == np.float64),
    "can_cast": lambda x: x * (1 + np.can_cast(x, np.float32)),
}


@pytest.mark.parametrize("name", list(ANSWERS))
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_answers_are_those_of_arrays(name, kind):
    f, rows = ANSWERS[name], ROWS.astype(kind)
    wanted = [np.asarray(f(tg.tensor(row))) for row in rows]
    for found in ([tg.jit(f)(row) for row in rows], tg.vmap(f)(rows), tg.jit(tg.vmap(f))(rows)):
        for a, b in zip(found, wanted, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
            if b.dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def test_replaced_values_have_no_gradient():
    slope = tg.jit(tg.grad(lambda x: (tg.nan_to_num(x, posinf=3.0, neginf=-3.0) ** 2).sum()))
    np.testing.assert_array_equal(slope(X), [2.0, -4.0, 0.0, 0.0, 0.0, 0.0, -0.0])


QUESTIONS = {
    "equal": lambda x, y: tg.equal(x, y),
    "allclose": lambda x, y: tg.allclose(x, y),
    "allclose, nan": lambda x, y: x.allclose(y, equal_nan=True),
    "np.allclose": lambda x, y: np.allclose(x, y, rtol=1e-3),
    "array_equal": lambda x, y: np.array_equal(x, y),
    "array_equal, nan": lambda x, y: np.array_equal(x, y, equal_nan=True),
    "array_equiv": lambda x, y: np.array_equiv(x[:1], y),
    "in": lambda x, y: 2.0 in x * y,
    "in, Tensor": lambda x, y: y[0] in x,
    "other shapes": lambda x, y: tg.equal(x, y[:1]) or np.array_equal(x, y[:1]),
}
PAIRS = [
    (np.array(a), np.array(b))
    for a, b in (
        ([1.0, 1.0], [1.0, 1.0]), ([1.0, 2.0], [1.0, 1.0]), ([1.0, 1.0 + 1e-6], [1.0, 1.0]),
        ([np.nan, 1.0], [np.nan, 1.0]), ([np.inf, 1.0], [np.inf, 1.0]),
        ([np.inf, 1.0], [1.0, 1.0]), ([2.0, 1.0], [1.0, np.inf]),
    )
]  # fmt: skip


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_truths_are_guards(name):
    ask = QUESTIONS[name]
    f = tg.jit(lambda x, y: x * 2 if ask(x, y) else y * 3)
    for x, y in PAIRS:
        truth = ask(tg.tensor(x), tg.tensor(y))
        assert type(truth) is bool
        np.testing.assert_array_equal(f(x, y), x * 2 if truth else y * 3)
    assert f.cache_info().traces <= 2
    if name != "other shapes":
        with pytest.raises(RuntimeError, match="can differ from example to example"):
            tg.vmap(lambda x, y: x * ask(x, y))(np.ones((2, 2)), np.ones((2, 2)))


def test_logdet_of_any_sign():
    many = np.stack([np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])])
    wanted = [tg.logdet(tg.tensor(a)).item() for a in many]
    for found in (tg.vmap(tg.logdet)(many), [tg.jit(tg.logdet)(a) for a in many]):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
    slope = tg.jit(tg.grad(tg.logdet))(many[0])
    np.testing.assert_allclose(slope, np.linalg.inv(many[0]).T, rtol=1e-12)


T = np.arange(6.0)

# What reads an index, or where parts begin: a list may hold it, too.
READ = {
    "insert": lambda i: np.insert(tg.tensor(T), i, 9.0),
    "insert at several": lambda i: np.insert(tg.tensor(T), [i, 1], 9.0),
    "delete": lambda i: np.delete(tg.tensor(T), [i]),
    "repeat": lambda i: np.repeat(tg.tensor(T), i),
    "repeat each": lambda i: np.repeat(tg.tensor(T), [i, 1, 1, 1, 1, 1]),
    "compress": lambda i: np.compress([i > 0, True], tg.tensor(T)),
    "extract": lambda i: np.extract([i > 0] * 6, tg.tensor(T)),
    "digitize": lambda i: np.digitize(tg.tensor(T), [i, 3]),
    "setdiff1d": lambda i: np.setdiff1d(tg.tensor(T), [i, 3]),
    "put": lambda i: np.put(tg.tensor(T), [i], 0.0),
    "reduceat": lambda i: np.add.reduceat(tg.tensor(T), [0, i]),
    "partition": lambda i: np.partition(tg.tensor(T), [i]),
    "apply_over_axes": lambda i: np.apply_over_axes(np.sum, tg.tensor(T), [i * 0]),
}


@pytest.mark.parametrize("name", list(READ))
def test_values_that_are_not_known_are_not_read(name):
    READ[name](tg.tensor(2))
    with pytest.raises(RuntimeError, match=r"`tapegrad.jit` are known when .* cannot read them"):
        tg.jit(READ[name])(np.array(2))
    with pytest.raises(RuntimeError, match=r"under `vmap` (differ|finds)"):
        tg.vmap(READ[name])(np.array([2, 2]))


def reduced(ufunc):
    def f(y, i, v):
        y = y * 1.0
        ufunc.at(y, (i, [0, 1, 1, 0]), v)
        ufunc.at(y, (slice(None), i[0]), v[0])
        return y

    return f


@pytest.mark.parametrize("ufunc", [np.multiply, np.maximum, np.minimum, np.add])
def test_what_comes_to_places_that_are_not_known_is_reduced(ufunc):
    y, v = np.cos(np.arange(6.0)).reshape(3, 2), np.array([0.5, 2.0, -3.0, 1.5])
    f, i = reduced(ufunc), np.array([0, 1, 1, 0])
    wanted, loss = f(y, i, v), lambda y, v, i: np.sum(f(y, i, v) ** 2)
    np.testing.assert_array_equal(tg.jit(f)(y, i, v), wanted)
    mapped = tg.jit(tg.vmap(f, in_axes=(None, 0, 0)))(y, np.stack([i, i]), np.stack([v, v]))
    np.testing.assert_array_equal(mapped[1], wanted)
    slope = tg.grad(loss, argnums=(0, 1))
    for a, b in zip(tg.jit(slope)(y, v, i), slope(y, v, i), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    step = 1e-6 * np.eye(4)
    central = [(loss(y, v + h, i) - loss(y, v - h, i)) / 2e-6 for h in step]
    np.testing.assert_allclose(slope(y, v, i)[1], central, rtol=1e-6)


def test_a_list_may_hold_a_place_that_is_not_known():
    def f(x, i):
        y = x * 1.0
        np.maximum.at(y, [0, i], 2.0)
        return y

    assert tg.jit(f)(np.zeros(4), 3).tolist() == [2.0, 0.0, 0.0, 2.0]
