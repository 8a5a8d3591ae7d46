"""Programs written for HIPS autograd: one body of code runs on it and on `tapegrad.compat`."""

import importlib
from types import SimpleNamespace

import numpy
import pytest

pytest.importorskip("autograd", reason="compares with HIPS autograd: `make peers` installs it")

pytestmark = [
    pytest.mark.peer,
    pytest.mark.tapegrad_only("runs both libraries itself"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Output seems independent"),
]


def library(name):
    lib = importlib.import_module(name)
    parts = {"np": "numpy", "npr": "numpy.random", "la": "numpy.linalg", "extend": "extend"}
    parts |= {"special": "scipy.special", "norm": "scipy.stats.norm", "misc": "misc.flatten"}
    parts |= {"test_util": "test_util", "builtins": "builtins",
              "optimizers": "misc.optimizers"}  # fmt: skip
    names = {key: getattr(lib, key) for key in dir(lib) if not key.startswith("_")}
    names |= {key: importlib.import_module(f"{name}.{path}") for key, path in parts.items()}
    return SimpleNamespace(**names)


PEER, OURS = library("autograd"), library("tapegrad.compat.autograd")
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


X = numpy.array([0.3, -1.2, 2.0])
M = numpy.array([[0.5, 1.0, -0.3], [2.0, -0.7, 0.1]])


def curve(ag):
    return lambda x: ag.np.sin(x) * ag.np.exp(-(x**2)) + x[0] * x[-1]


def energy(ag):
    return lambda x: ag.np.sum(ag.np.tanh(x) ** 2) + ag.np.prod(x)


# Optimizers


@case
def optimizers(ag):
    f = lambda p, i: ag.np.sum((p["w"] - X) ** 2 * (i + 1.0)) + ag.np.sin(p["b"])
    start = {"w": numpy.ones(3), "b": 0.5}
    for name in ("sgd", "rmsprop", "adam"):
        seen = []
        note = lambda p, i, g, seen=seen: seen.extend([p["w"], i, g["w"], g["b"]])
        run = getattr(ag.optimizers, name)
        found = run(ag.grad(f), start, note, num_iters=20, step_size=0.01)
        yield found["w"], found["b"], *seen
        yield run(ag.grad(lambda x, i: ag.np.sum(x**2)), X), run(ag.grad(f), start)["w"]


@case
def arrays_of_integers(ag):
    whole = numpy.array([1, 2, 3])
    f = lambda x, y: ag.np.sum(ag.np.sin(x) * y)
    yield ag.grad(f)(whole, X), ag.grad(f, 1)(X, whole), ag.value_and_grad(f)(whole, X)
    yield ag.jacobian(ag.np.sin)(whole), ag.elementwise_grad(ag.np.cos)(whole)
    yield ag.make_vjp(ag.np.exp)(whole)[0](X)


# Operators


@case
def grads(ag):
    f = lambda x, y: ag.np.sum(x * ag.np.cos(y))
    yield ag.grad(f)(X, 2.0), ag.grad(f, 1)(X, 2.0), ag.grad(f, argnum=-1)(X, X)
    yield ag.grad(f, (0, 1))(X, X), ag.grad(f, [1, 0])(X, X)
    yield ag.grad(lambda x, k=2.0: ag.np.sum(x**k))(X, k=3.0)
    yield ag.grad(lambda x: ag.np.reshape(x**2, (1, 1)))(3.0)  # one element is a scalar
    yield ag.grad(lambda x: ag.np.sum(x, keepdims=True))(X)
    yield ag.grad(lambda x: 1.0)(X), ag.grad(lambda x: ag.np.sum(X))(X)


@case
def grads_of_containers(ag):
    f = lambda p: ag.np.sum(p["w"] * p["more"][0]) ** 2 + p["more"][1][1]
    yield ag.grad(f)({"w": X, "more": [2.0, (X, 1.0)]})["w"]
    yield ag.grad(lambda p: ag.np.sum(p["w"] @ X + p["b"]))({"w": M, "b": X[:2]})
    yield ag.grad(lambda p: p[0] * ag.np.sum(p[1]))((2.0, X))
    yield ag.grad(lambda p: p[0] * ag.np.sum(p[1]))([2.0, X])
    yield ag.value_and_grad(lambda p: sum(ag.np.sum(w) ** 2 for w in p))([X, M])


@case
def values(ag):
    yield ag.value_and_grad(energy(ag))(X)
    yield ag.value_and_grad(lambda x, y: x * y**2, 1)(2.0, 3.0)
    yield ag.grad_and_aux(lambda x: (ag.np.sum(x**2), ag.np.sin(x)))(X)
    yield ag.grad_named(lambda x, y: x * y, "y")(2.0, 3.0)


@case
def jacobians(ag):
    yield ag.jacobian(curve(ag))(X), ag.jacobian(energy(ag))(X)
    yield ag.jacobian(lambda x: ag.np.outer(x, x))(X)
    yield ag.jacobian(lambda m: m @ X)(M), ag.jacobian(lambda a, m: a * ag.np.sin(m), 1)(2.0, M)
    yield ag.jacobian(lambda a: a * X)(2.0), ag.jacobian(lambda a: a**2)(3.0)


@case
def hessians(ag):
    yield ag.hessian(energy(ag))(X), ag.hessian(lambda m: ag.np.sum(m**3) * m[0, 0])(M)
    yield ag.hessian(lambda a, x: ag.np.sum(a * x**2), 1)(2.0, X)
    yield ag.hessian(curve(ag))(X)  # of a vector: out, in, in
    yield ag.hessian(lambda x: x**3)(2.0)
    yield ag.hessian_vector_product(energy(ag))(X, X**2)
    yield ag.hessian_vector_product(lambda a, m: a * ag.np.sum(m**3), 1)(2.0, M, M)
    yield ag.hessian_tensor_product(lambda m: ag.np.sum(m**3) * m[0, 0])(M, M)
    hvp, gradient = ag.make_hvp(energy(ag))(X)
    yield hvp(X), gradient


@case
def elementwise(ag):
    yield ag.elementwise_grad(ag.np.tanh)(X), ag.elementwise_grad(lambda x: x**3)(2.0)
    second = ag.elementwise_grad(ag.elementwise_grad(ag.np.tanh))
    yield second(X), ag.elementwise_grad(second)(X), second(M)
    yield ag.elementwise_grad(lambda a, x: a * x**2, 1)(2.0, X)
    yield ag.elementwise_grad(lambda x: ag.np.outer(x, x))(X)  # the sums of the columns
    yield ag.deriv(ag.np.sin)(X), ag.deriv(lambda x: ag.np.stack([x, x**2]))(3.0)


@case
def vjps_and_jvps(ag):
    vjp, y = ag.make_vjp(curve(ag))(X)
    yield vjp(numpy.ones(3)), vjp(X), y
    vjp, y = ag.make_vjp(lambda a, x: ag.np.sum(a * x), 1)(2.0, X)
    yield vjp(3.0), y
    vjp, y = ag.make_vjp(lambda a, x: a * x, (0, 1))(2.0, X)
    yield vjp(X), y
    vjp, y = ag.make_vjp(lambda d: ag.np.sin(d["x"]))({"x": X})
    yield vjp(X), y
    yield ag.make_jvp(curve(ag))(X)(numpy.ones(3)), ag.make_jvp(energy(ag))(X)(X)
    yield ag.make_jvp(lambda a, x: a * x, 1)(2.0, X)(X**2)
    yield ag.make_jvp(lambda a, x: a * x, argnum=(0, 1))(2.0, X)((1.0, X))
    yield ag.make_jvp(lambda x: 3.0)(X)(X)


@case
def products(ag):
    yield ag.tensor_jacobian_product(curve(ag))(X, X)
    yield ag.tensor_jacobian_product(lambda m: ag.np.sin(m))(M, M)
    yield ag.tensor_jacobian_product(lambda m: ag.np.sin(m))(M, M[:, 0])  # the first dimension
    yield ag.vector_jacobian_product(lambda a, x: a * x**2, 1)(2.0, X, X)
    yield ag.make_ggnvp(curve(ag))(X)(X)
    yield ag.make_ggnvp(curve(ag), lambda y: ag.np.sum(ag.np.cosh(y)))(X)(X)


@case
def nested(ag):
    f = lambda x, y: ag.np.sin(x * y) + x**2 * y
    yield ag.grad(ag.grad(f, 0), 1)(0.5, 2.0), ag.grad(ag.grad(ag.grad(f)))(0.5, 2.0)
    # perturbations are not confused
    yield ag.grad(lambda x: x * ag.grad(lambda y: x + y)(1.0))(1.0)
    yield ag.grad(lambda x: x * ag.grad(lambda y: x * y)(2.0))(3.0)
    yield (
        ag.jacobian(ag.grad(energy(ag)))(X),
        ag.grad(lambda x: ag.np.sum(ag.grad(energy(ag))(x)))(X),
    )
    yield ag.make_jvp(ag.grad(energy(ag)))(X)(X)
    yield ag.grad(lambda x: ag.np.sum(ag.make_jvp(curve(ag))(x)(X)[1]))(X)


@case
def checkpoints(ag):
    layer = ag.checkpoint(lambda x, w: ag.np.tanh(x * w))
    f = lambda x, w: ag.np.sum(layer(layer(x, w), w))
    yield ag.grad(f, (0, 1))(X, X**2), layer(X, 2.0)
    yield ag.grad(lambda x: ag.np.sum(ag.grad(f)(x, X)))(X)


# Functions with rules of one's own


def make_logsumexp(ag):
    @ag.extend.primitive
    def logsumexp(x):
        """A primitive sees arrays: what follows works on nothing else."""
        assert type(x) in (numpy.ndarray, float, numpy.float64)
        top = numpy.array(x).max()
        return top + numpy.log(sum(numpy.exp(numpy.asarray(x).ravel() - top)))

    ag.extend.defvjp(
        logsumexp, lambda ans, x: lambda g: ag.np.full(x.shape, g) * ag.np.exp(x - ans)
    )
    return logsumexp


@case
def primitives_backward(ag):
    f = make_logsumexp(ag)
    yield f(X), f.__name__, f.__doc__
    yield ag.grad(f)(X), ag.grad(lambda x: f(x**2) * x[0])(X), ag.value_and_grad(f)(M)
    yield ag.hessian(f)(X), ag.grad(lambda x: ag.np.sum(ag.grad(f)(x) ** 2))(X)
    yield ag.jacobian(lambda x: ag.np.array([f(x), f(2.0 * x)]))(X)


@case
def primitives_of_several_arguments(ag):
    seen = []

    @ag.extend.primitive
    def scaled(a, x, name, power=1.0):
        seen.append(name)
        return numpy.asarray(a * x**power)

    ag.extend.defvjp(
        scaled,
        lambda ans, a, x, name, power=1.0: lambda g: ag.np.sum(g * x**power),
        lambda ans, a, x, name, power=1.0: lambda g: g * a * power * x ** (power - 1.0),
        None,
    )
    f = lambda a, x: ag.np.sum(scaled(a, x, "name", power=2.0) ** 2)
    yield ag.grad(f)(2.0, X), ag.grad(f, 1)(2.0, X), ag.grad(f, (0, 1))(2.0, X)
    yield ag.grad(ag.grad(f), 0)(2.0, X), ag.jacobian(ag.grad(f), 1)(2.0, X)
    yield set(seen)


@case
def primitives_by_argnums(ag):
    @ag.extend.primitive
    def f(name, x, y, z):
        return x * y + numpy.floor(z)

    ag.extend.defvjp(
        f,
        lambda ans, name, x, y, z: lambda g: g * y,
        lambda ans, name, x, y, z: lambda g: g * x,
        None,
        argnums=(1, 2, 3),
    )
    ag.extend.defjvp(
        f,
        lambda g, ans, name, x, y, z: g * y,
        lambda g, ans, name, x, y, z: x * g,
        None,
        argnums=(1, 2, 3),
    )
    for k in (1, 2, 3):
        yield ag.grad(lambda *a: ag.np.sum(f(*a)), k)("name", X, X**2, X)
        yield ag.make_jvp(f, k)("name", X, X**2, X)(X**3)
    yield ag.make_jvp(f, (1, 2))("name", X, X**2, X)((X, X))
    g = lambda x: ag.np.sum(f("name", x, ag.np.sin(x), x))
    yield ag.grad(g)(X), ag.hessian(g)(X), ag.make_jvp(ag.grad(g))(X)(X)


@case
def primitives_forward(ag):
    @ag.extend.primitive
    def double(x):
        return 2.0 * numpy.asarray(x)

    ag.extend.defjvp(double, "same")

    @ag.extend.primitive
    def power(x, k):
        return x**k

    ag.extend.defjvp(power, lambda g, ans, x, k: g * k * power(x, k - 1))
    ag.extend.defvjp(power, lambda ans, x, k: lambda g: g * k * power(x, k - 1))
    yield ag.make_jvp(double)(X)(X**2), ag.make_jvp(lambda x: power(double(x), 3))(X)(X)
    yield ag.make_jvp(lambda x: ag.make_jvp(lambda y: power(y, 4))(x)(X)[1])(X)(X)
    yield ag.make_jvp(ag.grad(lambda x: ag.np.sum(power(x, 4))))(X)(X)
    yield ag.grad(lambda x: ag.np.sum(ag.make_jvp(lambda y: power(y, 4))(x)(X)[1]))(X)


@case
def primitives_by_one_rule(ag):
    @ag.extend.primitive
    def total(*xs):
        return sum(xs)

    ag.extend.defvjp_argnum(total, lambda argnum, ans, args, kwargs: lambda g: g * 1.0)
    ag.extend.defjvp_argnum(total, lambda argnum, g, ans, args, kwargs: g)
    yield ag.grad(lambda *xs: ag.np.sum(total(*xs) ** 2), 2)(X, X, X)
    yield ag.make_jvp(total, 1)(X, X, X)(X)

    @ag.extend.primitive
    def product(a, x):
        return a * x

    ag.extend.def_linear(product)
    yield ag.make_jvp(product, 1)(2.0, X)(X), ag.make_jvp(product, 0)(2.0, X)(3.0)


@case
def constants(ag):
    floor = ag.extend.notrace_primitive(numpy.floor)
    yield ag.grad(lambda x: ag.np.sum(x * floor(x)))(X)


# Whole programs


@case
def logistic_regression(ag):
    np = ag.np
    inputs = np.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30]])
    targets = np.array([True, True, False])

    def loss(weights):
        predictions = 0.5 * (np.tanh(np.dot(inputs, weights) / 2.0) + 1)
        chances = predictions * targets + (1 - predictions) * (1 - targets)
        return -np.sum(np.log(chances))

    weights = np.array([0.0, 0.0, 0.0])
    for _ in range(20):
        weights -= ag.grad(loss)(weights) * 0.1
    yield weights, loss(weights)


@case
def neural_network(ag):
    np = ag.np
    rs = ag.npr.RandomState(0)
    params = [(rs.randn(m, n), rs.randn(n)) for m, n in ((3, 5), (5, 2))]
    inputs, targets = rs.randn(10, 3), np.eye(2)[rs.randint(0, 2, 10)]

    def predict(params, inputs):
        for w, b in params:
            outputs = np.dot(inputs, w) + b
            inputs = np.tanh(outputs)
        return outputs - ag.special.logsumexp(outputs, axis=1, keepdims=True)

    def loss(params, step):
        flat, _ = ag.misc.flatten(params)
        return -np.sum(predict(params, inputs) * targets) + 0.1 * np.dot(flat, flat)

    for step in range(5):
        slopes = ag.grad(loss)(params, step)
        params = [(w - 0.1 * dw, b - 0.1 * db) for (w, b), (dw, db) in zip(params, slopes)]
    yield loss(params, 0), params


@case
def gaussian_process(ag):
    np = ag.np
    x, y = np.linspace(-2.0, 2.0, 6), np.sin(np.linspace(-2.0, 2.0, 6))

    def loss(p):
        scale, noise = np.exp(p[0]), np.exp(p[1])
        cov = np.exp(-0.5 * ((x[:, None] - x[None, :]) / scale) ** 2) + noise * np.eye(len(x))
        _, logdet = np.linalg.slogdet(cov)
        return 0.5 * logdet + 0.5 * np.dot(y, np.linalg.solve(cov, y))

    yield ag.value_and_grad(loss)(np.array([0.1, -1.0])), ag.hessian(loss)(np.array([0.1, -1.0]))


@case
def control_flow(ag):
    np = ag.np

    def steps(x):
        y = x
        while np.sum(y**2) < 10.0:
            y = y + np.where(y > 0, y, -0.5 * y)
        return np.sum(y) if y[0] > 0 else np.max(y)

    yield ag.value_and_grad(steps)(np.array([0.4, -0.2, 0.1]))
    yield ag.grad(lambda x: sum(np.array([xi**k for k, xi in enumerate(x)])))(X)


# The namespaces


@case
def arrays(ag):
    np = ag.np
    f = lambda x: np.array([[x[0], 1.0], [x[1] * x[2], x[0] ** 2]])
    yield f(X), ag.jacobian(f)(X), ag.jacobian(lambda x: np.array([x, 2.0 * x]))(X)
    yield ag.grad(lambda a: np.array(a) ** 2)(3.0), ag.jacobian(lambda a: np.array([a]))(3.0)
    yield ag.jacobian(lambda x: np.array(x, ndmin=2))(X)
    yield ag.jacobian(lambda x: np.array([x[0], 1, True]))(X)
    yield ag.jacobian(lambda a: np.full((2, 2), a))(3.0), np.full(2, 3.0), np.array([1, 2])
    yield ag.jacobian(lambda a, b: np.linspace(a, b, 5), (1))(1.0, 2.0)
    yield np.pi, np.float64(2.0), np.zeros((2, 2), dtype=int), np.newaxis is None
    yield ag.la.norm(X), ag.grad(ag.la.norm)(X), ag.npr.RandomState(1).rand(2)


@case
def special_functions(ag):
    x = numpy.array([0.5, 1.5])
    for name in ("gammaln", "digamma", "erf", "erfc", "expit", "logit"):
        f = getattr(ag.special, name)
        at = x / 2.0
        yield f(at), ag.elementwise_grad(f)(at)
    for axis, keepdims in ((None, False), (0, False), (1, True), (-1, False)):
        f = lambda m: ag.special.logsumexp(m, axis=axis, keepdims=keepdims)  # noqa: B023
        yield f(M), ag.jacobian(f)(M)
    yield ag.grad(lambda m: ag.special.logsumexp(m, b=numpy.array([1.0, 2.0, 3.0])))(M)
    for name in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"):
        f = getattr(ag.norm, name)
        yield f(X), f(X, 1.0, 2.0)
        for k in range(3):
            yield ag.grad(lambda *args: ag.np.sum(f(*args)), k)(X, 0.5, 2.0)  # noqa: B023


@case
def flattening(ag):
    value = {"b": [M, 2.0], "a": (X,), "c": {"z": 1.0, "y": numpy.zeros(0)}}
    flat, unflatten = ag.misc.flatten(value)
    yield flat, unflatten(flat)["b"][0], unflatten(flat)["c"]
    f, back, start = ag.misc.flatten_func(lambda d: {"out": d["x"] ** 2}, {"x": X})
    yield f(X), start, back(X)
    yield ag.jacobian(f)(X)


@case
def types(ag):
    found = []

    def f(x):
        found.append(ag.builtins.isinstance(x, numpy.ndarray))
        found.append(ag.builtins.type(x) is numpy.ndarray)
        found.append(ag.builtins.isinstance(x[0], float))
        return ag.np.sum(ag.builtins.tuple([x, x])[0] + ag.builtins.dict(a=x)["a"])

    yield ag.grad(f)(X), found


@case
def checking(ag):
    check = ag.test_util.check_grads
    check(energy(ag))(X)
    check(curve(ag), modes=["rev"], order=1)(X)
    check(make_logsumexp(ag), modes=["rev"])(X)
    wrong = ag.extend.primitive(lambda x: x**2)
    ag.extend.defvjp(wrong, lambda ans, x: lambda g: 2.01 * g * x)
    with pytest.raises(AssertionError):
        check(wrong, modes=["rev"])(3.0)
    yield 0.0


def same(found, expected):
    """Alike to rounding; a float of ours may be a NumPy float of theirs."""
    if isinstance(expected, dict):
        assert isinstance(found, dict)
        assert found.keys() == expected.keys()
        for key in expected:
            same(found[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert type(found) is type(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)
    elif isinstance(expected, (str, set, bool)):
        assert found == expected
    else:
        assert isinstance(found, (float, int, numpy.generic, numpy.ndarray))
        assert numpy.shape(found) == numpy.shape(expected)
        assert numpy.asarray(found).dtype == numpy.asarray(expected).dtype
        numpy.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_one_program_on_both(name):
    count = 0
    for count, (found, expected) in enumerate(  # noqa: B007
        zip(CASES[name](OURS), CASES[name](PEER), strict=True), 1
    ):
        same(found, expected)
    assert count


@pytest.mark.parametrize("ag", [OURS, PEER], ids=["ours", "peer"])
def test_both_refuse(ag):
    with pytest.raises(TypeError):
        ag.grad(lambda x: x)(X)
    with pytest.raises(TypeError):
        ag.value_and_grad(lambda x: x)(X)
    without = ag.extend.primitive(lambda x: 2.0 * x)
    with pytest.raises(NotImplementedError):
        ag.grad(without)(3.0)
    with pytest.raises(NotImplementedError):
        ag.make_jvp(without)(3.0)(1.0)
    forward = ag.extend.primitive(lambda x: 2.0 * x)
    ag.extend.defjvp(forward, "same")
    with pytest.raises(NotImplementedError):
        ag.grad(forward)(3.0)


def test_all_names_of_ours_are_names_of_theirs():
    theirs = set(dir(importlib.import_module("autograd"))) | {"defvjp", "defjvp"}
    ours = importlib.import_module("tapegrad.compat.autograd").__all__
    assert set(ours) <= theirs
    missing = {"holomorphic_grad", "multigrad_dict"}
    public = {n for n in PEER.__dict__ if callable(getattr(PEER, n)) and not n.startswith("_")}
    assert public - set(ours) == missing


# What only ours does


def test_a_vjp_serves_forwards():
    f = make_logsumexp(OURS)
    _, slope = OURS.make_jvp(f)(X)(X)
    numpy.testing.assert_allclose(slope, OURS.grad(f)(X) @ X)
    OURS.test_util.check_grads(f)(X)


def test_a_rule_is_refused_for_what_is_no_primitive():
    with pytest.raises(TypeError, match="takes what `primitive` returned, got sin"):
        OURS.extend.defvjp(numpy.sin, lambda ans, x: lambda g: g)
    f = OURS.extend.primitive(lambda x: x)
    with pytest.raises(TypeError, match="a function or None, got 'same'"):
        OURS.extend.defvjp(f, "same")
    with pytest.raises(TypeError, match="a function, 'same' or None, got 'like'"):
        OURS.extend.defjvp(f, "like")
    with pytest.raises(TypeError, match="`primitive` takes a function"):
        OURS.extend.primitive(3.0)
    g = OURS.extend.primitive(lambda x, k=1.0: k * x)
    with pytest.raises(TypeError, match="in positional arguments only"):
        OURS.grad(lambda x: g(2.0, k=x))(1.0)


def test_primitives_under_vmap():
    import tapegrad as tg

    f = make_logsumexp(OURS)
    found = tg.vmap(tg.grad(f))(M)
    expected = numpy.stack([OURS.grad(f)(row) for row in M])
    numpy.testing.assert_allclose(found, expected)
