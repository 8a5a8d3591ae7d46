"""Pickling and copying of what transforms, `jit` and custom rules return."""

import copy
import inspect
import multiprocessing
import operator
import pickle

import numpy as np
import pytest
from numba import cloudpickle, njit

import tapegrad as tg
from tapegrad.compat import autograd as hips
from tapegrad.transforms.pytree import flatten

pytestmark = pytest.mark.tapegrad_only("functions of functions")

X = np.array([0.5, 1.0, 2.0])


def wave(x):
    return np.sum(np.sin(x) * x)


def waves(x):
    return np.sin(x) * x


@tg.jit
def jitted(x):
    return np.sum(np.cos(x))


@tg.jit(static_argnums=1, fastmath=True)
def power(x, n):
    return np.sum(x**n)


@tg.checkpoint
def layer(x):
    return np.sum(np.tanh(x))


@tg.custom_vjp
def clipped(x):
    return np.sum(x * x)


clipped.defvjp(lambda x: (np.sum(x * x), x), lambda x, g: (3.0 * g * x,))


@tg.custom_jvp
def doubled(x):
    return np.sum(x * x)


@doubled.defjvp
def rule(primals, tangents):
    return doubled(*primals), 5.0 * np.sum(tangents[0] * primals[0])


def summed(x):
    return (tg.sin(x) * x).sum()


class Model:
    """A callable with state."""

    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x):
        return np.sum(x * x) * self.weight

    @tg.jit
    def scaled(self, x):
        return np.sum(x * 2.0)


TRANSFORMED = {
    "grad": tg.grad(wave),
    "grad of two": tg.grad(lambda x, y: np.sum(x * y), argnums=(0, 1)),
    "grad of grad": tg.grad(lambda x: np.sum(tg.grad(wave)(x))),
    "value_and_grad": tg.value_and_grad(wave, has_aux=False),
    "jacobian": tg.jacobian(waves),
    "jacrev": tg.jacrev(waves, strict=True),
    "jacfwd": tg.jacfwd(waves),
    "hessian": tg.hessian(wave),
    "vmap": tg.vmap(np.sin),
    "vmap along": tg.vmap(tg.grad(wave), in_axes=None, axis_size=2),
    "checkpoint": tg.grad(tg.checkpoint(wave)),
    "checkpoint by name": tg.grad(layer),
    "jit": tg.jit(wave),
    "jit by name": jitted,
    "jit of grad": tg.jit(tg.grad(wave)),
    "grad of jit": tg.grad(jitted),
    "vmap of jit": tg.vmap(tg.jit(waves)),
    "custom_vjp": tg.grad(clipped),
    "custom_jvp": tg.grad(doubled),
    "a callable": tg.grad(Model(3.0)),
    "jit of a callable": tg.jit(Model(3.0)),
    "hips grad": hips.grad(wave),
    "hips jacobian": hips.jacobian(waves),
}
LAMBDAS = "grad of two", "grad of grad"  # have no name by which pickle could find them
ARGUMENTS = {"grad of two": (X, X)}
COPIES = {
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
    "cloudpickle": lambda f: pickle.loads(cloudpickle.dumps(f)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


def same(found, expected):
    found, expected = flatten(found)[0], flatten(expected)[0]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize(
    ("name", "way"),
    [(f, way) for f in TRANSFORMED for way in COPIES if way != "pickle" or f not in LAMBDAS],
)
def test_a_copy_does_the_same(name, way):
    f = TRANSFORMED[name]
    args = ARGUMENTS.get(name, (X,))
    again = COPIES[way](f)
    same(again(*args), f(*args))
    assert getattr(again, "__name__", None) == getattr(f, "__name__", None)


@pytest.mark.parametrize("product", [tg.hvp, tg.vhp])
def test_products_with_the_hessian(product):
    f = product(wave)
    same(pickle.loads(pickle.dumps(f))(X, X), f(X, X))


@pytest.mark.parametrize("name", ["grad", "grad_and_value", "jacrev", "jacfwd", "hessian", "vmap"])
def test_torch_names(name):
    f = getattr(tg.func, name)(summed)
    x = tg.tensor(X)
    same(pickle.loads(pickle.dumps(f))(x), f(x))
    same(copy.deepcopy(f)(x), f(x))


def test_what_stands_under_its_name_is_found_there():
    for f in (jitted, power, layer, clipped, doubled):
        assert pickle.loads(pickle.dumps(f)) is f
        assert copy.copy(f) is f
    assert power(X, 2) == pickle.loads(pickle.dumps(power))(X, 2)


def test_options_are_kept():
    f = tg.jit(operator.mul, static_argnums=(1,), fastmath=True)
    again = pickle.loads(pickle.dumps(f))
    assert (again.statics, again.fastmath) == (f.statics, True)
    assert again(2.0, 3) == 6.0
    assert again is not f
    assert again.cache_info().traces == 1
    assert f.cache_info().traces == 0
    # Without static arguments compiled code can call a copy, too.
    assert njit(lambda g, x: g(x))(pickle.loads(pickle.dumps(tg.jit(wave))), X) == wave(X)


def test_deep_copies_have_a_state_of_their_own():
    for wrap in (tg.grad, tg.jit, tg.checkpoint, tg.custom_vjp):
        model = Model([2.0])
        f = wrap(model)
        deep = copy.deepcopy(f)
        inner = getattr(deep, "__wrapped__", None)
        assert isinstance(inner, Model)
        assert inner is not model
        assert inner.weight == [2.0]
        assert inner.weight is not model.weight


def test_methods():
    class Holder:
        slope = tg.grad(lambda self, x: self.weight * np.sum(x * x), argnums=1)
        weight = 2.0

    same(Holder().slope(X), 4 * X)
    model = Model(1.0)
    assert pickle.loads(pickle.dumps(model.scaled))(X) == model.scaled(X)
    assert pickle.loads(pickle.dumps(Model.scaled)) is Model.scaled


def test_closures_with_compiled_functions():
    f = tg.jit(lambda x: x * x)
    inner = f.njit

    def through(x):
        return njit(lambda v: inner(v) + 1.0)(x)

    again = pickle.loads(cloudpickle.dumps(through))
    assert again(3.0) == through(3.0) == 10.0
    slope = pickle.loads(cloudpickle.dumps(lambda x: tg.grad(f)(x)))
    assert slope(3.0) == 6.0


def test_a_decorated_function_of_the_program_itself(monkeypatch):
    """`__main__` is another module in another process: it must be found there, or taken along."""
    import __main__

    def main_only(x):
        return np.sum(x * 2.0)

    main_only.__module__, main_only.__qualname__ = "__main__", "main_only"
    f = tg.grad(main_only)
    monkeypatch.setattr(__main__, "main_only", f, raising=False)
    for dumps in (pickle.dumps, cloudpickle.dumps):
        same(pickle.loads(dumps(f))(X), np.full(3, 2.0))
    taken_along = cloudpickle.dumps(f)
    monkeypatch.delattr(__main__, "main_only")
    same(pickle.loads(taken_along)(X), np.full(3, 2.0))


def test_what_reads_a_tape_says_so():
    for name, f in (("vjp", tg.vjp(wave, X)[1]), ("linearize", tg.linearize(wave, X)[1])):
        with pytest.raises(TypeError, match=f"what `{name}` returned cannot be pickled"):
            pickle.dumps(f)
        assert copy.copy(f) is f
        assert copy.deepcopy([f]) == [f]
        assert repr(f) == f"<derivative of `{name}`>"


def test_what_it_looks_like():
    f = tg.grad(wave)
    assert repr(f) == "<transformed wave>"
    assert f.__name__ == "wave"
    assert f.__wrapped__ is wave
    assert list(inspect.signature(f).parameters) == ["x"]
    assert list(inspect.signature(tg.vjp(wave, X)[1]).parameters) == ["weights"]


@pytest.mark.parametrize("name", ["grad", "jit by name", "jit of grad", "checkpoint by name"])
def test_another_process(name):
    """Started anew: it has nothing but what is sent."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        same(pool.apply(TRANSFORMED[name], (X,)), TRANSFORMED[name](X))


def test_workers_of_joblib():
    """Which it starts anew, and to which its own cloudpickle sends what has no name."""
    joblib = pytest.importorskip("joblib", reason="`make distributed` installs it")
    size = 2.0
    local = tg.jit(lambda x: np.sum(jitted(x) * size))
    functions = [TRANSFORMED["grad"], TRANSFORMED["jit of grad"], tg.grad(local), local, power]
    arguments = [(X,)] * 4 + [(X, 2)]
    tasks = [joblib.delayed(f)(*args) for f, args in zip(functions, arguments, strict=True)]
    found = joblib.Parallel(n_jobs=2, backend="loky")(tasks)
    same(found, [f(*args) for f, args in zip(functions, arguments, strict=True)])
