"""Calls of functions that Numba compiles with Tensors, in the midst of other code."""

import gc
import math
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from numba import jit, njit
from numba.core.errors import TypingError

import tapegrad as tg
from tapegrad.njit.recorded_call import RecordedCall

pytestmark = pytest.mark.tapegrad_only("no other library has this")


@njit
def waves(x, k):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = math.sin(x[i]) * k + x[i] * x[(i + 1) % len(x)]
    return y


def waves_of_arrays(x, k):
    return np.sin(x) * k + x * np.roll(x, -1)


@njit(["float64(float64[:])", "float64(float64)"])
def declared(x):
    return np.sum(np.square(x) * np.full(1, 2.0))


@njit("float64(UniTuple(float64, 2), int64)")
def declared_pair(p, n):
    return p[0] * p[1] ** n


def test_functions_of_declared_types():
    """One record as any other; what else is of other types stays refused, as Numba does it."""
    x = tg.tensor([0.5, -1.0], requires_grad=True)
    (declared(np.sin(x)) + declared_pair((x[0], x[1]), 2)).backward()
    wanted = 4.0 * np.sin(x.detach()) * np.cos(x.detach()) + tg.tensor([1.0, -1.0])
    np.testing.assert_allclose(x.grad, wanted)
    for f in (tg.grad(declared), tg.jit(tg.grad(declared)), tg.grad(lambda x: declared(x))):
        np.testing.assert_array_equal(f(x.detach()), [2.0, -4.0])
    assert declared(3) == 18.0  # converted, as declared types are
    for wrong in ("text", np.ones((2, 2))):
        with pytest.raises(TypeError, match="No matching definition"):
            declared(wrong)
    assert len(declared.signatures) == 2


@njit
def several(x, n):
    return x.sum(), x * x[0], n + 1, x[0] > 0


@njit
def square_in_place(x, out):
    for i in range(len(x)):
        x[i] *= x[i]
        out[i] = x[i]
    return x.sum()


@njit
def product(a, b=2.0):
    return a * a * b


class Point(NamedTuple):
    a: float
    b: np.ndarray


@njit
def of_structures(p, q, flag=None):
    return p.a * p.b.sum() + q[0] ** q[1]


def model(f):
    return lambda x: tg.sin(f(x * 2.0, 3.0)).sum()


X = tg.tensor([0.3, 1.2, -0.7])
V = tg.tensor([1.0, 2.0, -1.0])
BATCH = tg.tensor(np.random.default_rng(0).normal(size=(4, 3)))


def swept(f, x):
    x = x.clone().requires_grad_()
    f(x).backward()
    return x.grad


def swept_twice(f, x):
    x = x.clone().requires_grad_()
    (g,) = tg.autograd.grad(f(x), x, create_graph=True)
    (g * V).sum().backward()
    return x.grad


TRANSFORMS = {
    "value": lambda f: f(X),
    "backward": lambda f: swept(f, X),
    "create_graph": lambda f: swept_twice(f, X),
    "grad": lambda f: tg.grad(f)(X),
    "jvp": lambda f: tg.jvp(f, (X,), (V,))[1],
    "linearize": lambda f: tg.linearize(f, X)[1](V),
    "hvp": lambda f: tg.hvp(f)(X, V),
    "hessian": lambda f: tg.hessian(f)(X),
    "jacrev of grad": lambda f: tg.jacrev(tg.grad(f))(X),
    "jacfwd of grad": lambda f: tg.jacfwd(tg.grad(f))(X),
    "grad of jvp": lambda f: tg.grad(lambda x: tg.jvp(f, (x,), (V,))[1])(X),
    "vmap": lambda f: tg.vmap(f)(BATCH),
    "vmap of grad": lambda f: tg.vmap(tg.grad(f))(BATCH),
    "vmap of hessian": lambda f: tg.vmap(tg.hessian(f))(BATCH),
    "grad of vmap": lambda f: tg.grad(lambda xs: tg.vmap(f)(xs).sum())(BATCH),
    "jit": lambda f: tg.jit(f)(X),
    "jit of grad": lambda f: tg.jit(tg.grad(f))(X),
    "grad of jit": lambda f: tg.grad(tg.jit(f))(X),
    "jit of hessian": lambda f: tg.jit(tg.hessian(f))(X),
    "jit of jvp": lambda f: tg.jit(lambda x: tg.jvp(f, (x,), (V,))[1])(X),
    "jit of vmap of grad": lambda f: tg.jit(tg.vmap(tg.grad(f)))(BATCH),
    "vmap of jit": lambda f: tg.vmap(tg.jit(f))(BATCH),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_agree_with_the_same_model_of_array_functions(name):
    found, expected = (TRANSFORMS[name](model(f)) for f in (waves, waves_of_arrays))
    assert isinstance(found, tg.Tensor)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12, atol=1e-14)


def test_differences():
    assert tg.autograd.gradcheck(lambda x: several(x, 1)[:2], (X.clone().requires_grad_(),))
    x, k = X.clone().requires_grad_(), tg.tensor(3.0, requires_grad=True)
    assert tg.autograd.gradcheck(waves, (x, k))
    assert tg.autograd.gradgradcheck(waves, (x, k))


def test_float32():
    x = X.to(tg.float32)
    value, gradient = tg.value_and_grad(model(waves))(x)
    assert value.dtype == gradient.dtype == tg.float32
    np.testing.assert_allclose(gradient.numpy(), tg.grad(model(waves))(X).numpy(), rtol=1e-5)
    assert tg.jit(tg.grad(model(waves)))(x).dtype == tg.float32


def test_results_come_back_in_their_form():
    x = X.clone().requires_grad_()
    total, scaled, number, positive = several(x, 3)
    assert total.requires_grad
    assert scaled.requires_grad
    assert not number.requires_grad
    assert total.shape == number.shape == ()
    assert number.dtype == tg.int64
    assert positive.dtype == tg.bool
    (total * scaled).sum().backward()
    expected = tg.grad(lambda x: (x.sum() * x * x[0]).sum())(X)
    np.testing.assert_allclose(x.grad.numpy(), expected.numpy())

    def mixed(x):
        total, scaled, number, _ = several(x, 3)
        return total * scaled.sum() * number

    gradient = tg.jit(tg.grad(mixed))(X)
    np.testing.assert_allclose(gradient.numpy(), 4 * expected.numpy())
    assert tg.vmap(lambda x: several(x, 3))(BATCH)[2].tolist() == [4] * 4

    @njit
    def structure(x):
        return Point(x[0], x), None

    point, nothing = structure(x)
    assert type(point) is Point
    assert nothing is None
    assert not np.shares_memory(point.b.detach().numpy(), x.detach().numpy())


def test_tensors_in_tuples():
    def f(x):
        return of_structures(Point(x[0], x), (x[1], 3))

    def expected(x):
        return x[0] * x.sum() + x[1] ** 3

    for transform in (tg.grad, tg.hessian, lambda f: tg.jit(tg.grad(f))):
        np.testing.assert_allclose(transform(f)(X).numpy(), transform(expected)(X).numpy())
    with pytest.raises(TypeError, match=r"got a list with Tensors as argument 1: pass a tuple"):
        waves(X, [X, X])


def test_what_requires_grad_decides():
    x = X.clone().requires_grad_()
    assert not waves(X, 3.0).requires_grad
    assert waves(x, 3.0).requires_grad
    with tg.no_grad():
        assert not waves(x, 3.0).requires_grad
    assert waves(X, tg.tensor(3.0, requires_grad=True)).requires_grad
    assert product(tg.tensor(3)).item() == 18
    np.testing.assert_array_equal(waves(x, 3.0).detach().numpy(), waves(X.numpy(), 3.0))


@pytest.mark.parametrize("transform", [tg.grad, tg.value_and_grad, tg.hessian, tg.jit])
def test_what_writes_into_its_arguments_is_refused(transform):
    """The caller would read the old values: `out` below."""

    @njit
    def fill(out, x):
        for i in range(len(x)):
            out[i] = x[i] ** 2

    def f(x):
        out = np.zeros(3)
        fill(out, x)
        return (out + x).sum()

    with pytest.raises(NotImplementedError, match=r"`fill`.*writes into its argument `out`"):
        transform(f)(X)
    for x in (X, X.clone().requires_grad_()):
        with pytest.raises(NotImplementedError, match=r"let it write into an array that it makes"):
            square_in_place(x, np.zeros(3))

    @njit
    def filled(x):
        out = np.zeros(3)
        fill(out, x)
        return out

    assert tg.grad(lambda x: (filled(x) + x).sum())(X).numpy() == pytest.approx(2 * X.numpy() + 1)


def test_arrays_that_stand_for_an_argument_may_be_written():
    """What is made where an argument is left out, or in one branch, is no argument."""

    @njit
    def weighted(x, weights=None, padded=False):
        if weights is None:
            weights = np.ones_like(x)
        if padded:
            places = np.zeros(len(x) + 2)
            places[1:-1] = x
        else:
            places = x
        return np.sum(weights * places[: len(x)] ** 2)

    weights = np.array([1.0, 2.0, 3.0])
    for padded, factors in ((False, [2.0, 4.0, 6.0]), (True, [4.0, 6.0, 0.0])):
        x = X.clone().requires_grad_()
        weighted(x, weights, padded).backward()
        np.testing.assert_allclose(x.grad, factors * X.numpy())


def test_a_derivative_reads_what_the_call_has_read():
    table = np.arange(3.0)

    @njit
    def look_up(x, table):
        return x[0] * table[1]

    x = X.clone().requires_grad_()
    y = look_up(x, table)
    table[1] = 100.0
    y.backward()
    assert x.grad[0] == 1.0
    doubled = x * 2.0
    y = look_up(doubled, table)
    doubled.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_records_bear_the_name_of_the_function():
    x = X.clone().requires_grad_()
    assert waves(x, 3.0).tape[-1].op == "waves"


def test_keywords_and_defaults():
    x = tg.tensor(3.0, requires_grad=True)
    assert tg.autograd.grad(product(x), x)[0] == 12.0
    assert tg.autograd.grad(product(x, b=5.0), x)[0] == 30.0

    @njit
    def star(a, *rest):
        return a * rest[0].sum() + rest[1]

    np.testing.assert_array_equal(tg.grad(lambda x: star(2.0, x, 3.0))(X).numpy(), [2.0] * 3)


def test_loops_and_branches_of_compiled_programs():
    x = tg.tensor([1.5, 0.5])

    def scan(f):
        return lambda x: tg.scan(lambda c, v: (f(c, v), c), x[0], x)[0]

    def loop(f):
        return lambda x: tg.fori_loop(0, 3, lambda i, c: f(c, x[1]), x[0])

    def branch(f):
        return lambda x: tg.cond(x[0] > 0, lambda: f(x[0], x[1]), lambda: x[1])

    for around in (scan, loop, branch):
        found, expected = (
            tg.jit(tg.grad(around(f)))(x) for f in (product, lambda a, b=2.0: a * a * b)
        )
        np.testing.assert_allclose(found.numpy(), expected.numpy())


def test_transforms_of_the_function_itself_take_tensors():
    @njit
    def f(x, k):
        return (np.sin(x) * k).sum() + x[0] ** 3

    def expected(x, k):
        return (np.sin(x) * k).sum() + x[0] ** 3

    k = tg.tensor(3.0)
    names = ("grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "hessian")
    for transform in [getattr(tg, name) for name in names]:
        for args in ((X, 3.0), (X, k), (X.numpy(), k)):
            found, wanted = transform(f)(*args), transform(expected)(*args)
            np.testing.assert_allclose(np.asarray(found[-1]), np.asarray(wanted[-1]))
        found = tg.jit(transform(f))(X.numpy(), 3.0)[-1]
        np.testing.assert_allclose(found, wanted[-1])
        assert isinstance(transform(f)(X.numpy(), k=3.0)[-1], np.ndarray | float)
    tangents = tg.jvp(f, (X, 3.0), (V, 1.0)), tg.jvp(expected, (X, 3.0), (V, 1.0))
    assert tangents[0][1].item() == pytest.approx(tangents[1][1].item())
    assert tg.linearize(f, X, 3.0)[1](V, 1.0).item() == pytest.approx(tangents[1][1].item())
    np.testing.assert_allclose(tg.vjp(f, X, 3.0)[1](1.0)[0].numpy(), tg.grad(f)(X, 3.0).numpy())
    cubes = njit(lambda x: (x**3).sum())
    np.testing.assert_allclose(tg.hvp(cubes)(X, V).numpy(), (6 * X * V).numpy())
    again = tg.grad(lambda x: (tg.grad(f)(x, 3.0) * V).sum())(X)
    np.testing.assert_allclose(again.numpy(), (tg.hessian(f)(X, 3.0) @ V).numpy())
    mapped = tg.vmap(tg.grad(f), (0, None))(BATCH, 3.0)
    np.testing.assert_allclose(mapped[1].numpy(), tg.grad(f)(BATCH[1].numpy(), 3.0))


def test_no_examples():
    found = tg.vmap(tg.grad(model(waves)))(tg.zeros(0, 3))
    assert found.shape == (0, 3)


def test_linear_in_weights():
    def f(w):
        return (tg.vjp(lambda x: waves(x, 3.0), X)[1](w)[0] * V).sum()

    expected = tg.jvp(lambda x: waves_of_arrays(x, 3.0), (X,), (V,))[1]
    np.testing.assert_allclose(tg.grad(f)(X).numpy(), expected.numpy())


def test_calls_without_tensors_go_as_ever():
    @njit
    def f(x):
        return x[0] * 2.0

    assert f(np.ones(2)) == 2.0
    before = f.signatures
    assert f(X.clone().requires_grad_()).item() == 0.6
    assert f(np.ones(2)) == 2.0
    assert type(f(np.ones(2))) is float
    assert f.signatures == before
    assert f(np.ones(2, np.float32)) == 2.0
    with pytest.raises(TypingError, match="Cannot determine Numba type"):
        f(object())
    again = pickle.loads(pickle.dumps(product))
    assert again(3.0) == 18.0

    @jit(forceobj=True)
    def of_objects(x):
        return x * 2.0

    assert of_objects(X)[1] == 2.4


def test_nothing_keeps_a_function_alive():
    @njit
    def f(x):
        return x[0] * 2.0

    f(X.clone().requires_grad_()).backward()
    found = weakref.ref(f)
    del f
    gc.collect()
    assert found() is None


@njit
def of_many(p, x, flag, n):
    a, y = p
    for _ in range(n):
        a = a * 1.5
    return a * x.sum() if flag else a, y * x, n * 2, flag


def test_compiled_programs_call_no_python(monkeypatch):
    def f(x, a, flag, n):
        total, y, doubled, again = of_many((a, x * 2.0), x, flag, n)
        return total + (y * doubled).sum() + 0.0 * again

    args = X, tg.tensor(2.0), tg.tensor(True), tg.tensor(3)
    compiled = tg.jit(tg.value_and_grad(f, (0, 1)))
    single = tg.jit(tg.value_and_grad(lambda x: model(waves)(x)))
    found, values = compiled(*args), single(X.to(tg.float32))

    def fails(*args):
        raise AssertionError("Python was called")

    with monkeypatch.context() as m:
        m.setattr(RecordedCall, "value", fails)
        m.setattr(RecordedCall, "gradients", fails)
        for k in (1, 2):
            found, values = compiled(k * args[0], *args[1:]), single(X.to(tg.float32) * k)
    value, gradients = tg.value_and_grad(f, (0, 1))(2 * args[0], *args[1:])
    assert found[0].item() == pytest.approx(value.item())
    for g, expected in zip(found[1], gradients, strict=True):
        np.testing.assert_allclose(g.numpy(), expected.numpy())
    expected = tg.grad(model(waves_of_arrays))(2 * X)
    np.testing.assert_allclose(values[1].numpy(), expected.numpy(), rtol=1e-5)
    assert values[1].dtype == tg.float32


def test_a_zero_stays_zero_in_compiled_programs():
    @njit
    def distance(x):
        return math.sqrt(x[0] * x[0]) * x[1], x[1]

    def f(x):
        return distance(x)[1] * 2.0 + 0.0 * distance(x)[0]

    x = tg.zeros(2)
    np.testing.assert_array_equal(tg.grad(f)(x).numpy(), tg.jit(tg.grad(f))(x).numpy())
    assert not tg.jit(tg.grad(f))(x).isnan().any()


def test_two_threads_in_a_compiled_program():
    gradient = tg.jit(tg.grad(model(waves)))
    xs = [X * (k + 1) for k in range(16)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(gradient, xs))
    for x, g in zip(xs, found, strict=True):
        np.testing.assert_allclose(g.numpy(), tg.grad(model(waves_of_arrays))(x).numpy())


def test_exceptions_are_the_callers():
    @njit
    def positive(x):
        if x[0] < 0:
            raise ValueError("negative")
        return x[0]

    for f in (positive, tg.jit(lambda x: positive(x) * 2.0)):
        f(tg.ones(2))
        with pytest.raises(ValueError, match="negative"):
            f(-tg.ones(2))


def test_shapes_that_depend_on_values():
    @njit
    def ones(x):
        n = 0
        for v in x:
            n += v > 0
        return np.ones(n) * x[0]

    assert ones(X).shape == (2,)
    assert ones(tg.abs(X)).shape == (3,)
    f = tg.jit(lambda x: ones(x).sum())
    f(X)
    with pytest.raises(RuntimeError, match=r"`ones` returned an array of shape \(3,\)"):
        f(tg.abs(X))
    with pytest.raises(RuntimeError, match="shapes must not depend on values"):
        tg.vmap(ones)(BATCH)


def test_what_is_refused():
    @njit
    def looked_up(x):
        return {1: x[0]}[1]

    with pytest.raises(NotImplementedError, match=r"`looked_up`.*a dictionary: use arrays"):
        looked_up(X)

    @njit
    def reads():
        return X

    with pytest.raises(TypeError, match="reads a Tensor that it was not given"):
        reads()

    @njit
    def scales(a):
        return a * X

    only = r"Tensor \(which compiled code takes only as an argument"
    with pytest.raises(TypingError, match=rf"mul\(float64, {only}"):
        scales(2.0)
    with pytest.raises(TypeError, match=r"No matching definition .* array\(float64, 1d, C\)"):
        njit("float64(float64)")(lambda a: a)(X)
    third = tg.grad(tg.grad(tg.grad(lambda a: product(a, a))))
    with pytest.raises(NotImplementedError, match="a third derivative of `product`"):
        third(tg.tensor(2.0))
    inner = lambda a: tg.jvp(lambda a: product(a), (a,), (a,))[1]
    with pytest.raises(NotImplementedError, match="forward derivative of `product`"):
        tg.jvp(inner, (tg.tensor(2.0),), (tg.tensor(1.0),))


def test_two_threads():
    @njit
    def f(x, k):
        return waves(x, k).sum()

    xs = [X * (k + 1) for k in range(8)]
    gradient = tg.grad(lambda x: f(x, 3.0) * 1.0)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(gradient, xs))
    for x, g in zip(xs, found, strict=True):
        expected = tg.grad(lambda x: waves_of_arrays(x, 3.0).sum())(x)
        np.testing.assert_allclose(g.numpy(), expected.numpy())


def test_forward_mode_past_a_function_among_the_arguments():
    square = njit(lambda x: x * x)

    @njit
    def f(x, inner, y):
        return inner(x) * y

    along_y = tg.jvp(lambda x, y: f(x, square, y), (3.0, 2.0), (0.0, 1.0))
    assert along_y == (18.0, 9.0)
    assert tg.hvp(lambda p: f(p[0], square, p[1]))((3.0, 2.0), (1.0, 1.0)) == (10.0, 6.0)
