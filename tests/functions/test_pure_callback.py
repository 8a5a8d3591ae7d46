"""A function of NumPy arrays within eager, mapped, differentiated and compiled code."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("PyTorch runs such functions as they are")

X = np.array([3.0, 1.0, 2.0])


def ranked(x):
    return 2.0 * tg.pure_callback(np.sort, x, x * 1.5)


@tg.custom_vjp
def cube(x):
    return tg.pure_callback(lambda x: x**3, x, x)


cube.defvjp(lambda x: (cube(x), x), lambda x, g: (3.0 * g * x * x,))


@pytest.mark.parametrize("transform", [lambda f: f, tg.jit, lambda f: tg.jit(tg.jit(f))])
def test_the_values_are_those_of_the_function(transform):
    f = transform(ranked)
    for x in (X, X[::-1].copy(), X.astype(np.float32)):
        found = f(tg.tensor(x))
        np.testing.assert_array_equal(found.numpy(), 3.0 * np.sort(x))
        assert found.numpy().dtype == x.dtype


def test_each_call_of_a_compiled_program_calls_it():
    seen = []

    def host(x):
        seen.append(x.copy())
        return x.sum()

    f = tg.jit(lambda x: tg.pure_callback(host, (), x) + 1.0)
    for k in range(4):
        assert f(np.full(3, float(k))) == 3 * k + 1
        np.testing.assert_array_equal(seen[-1], np.full(3, float(k)))
    assert f.lower(X).callbacks == ("pure_callback",)


def test_maps_call_it_for_each_example(recwarn):
    rows = np.arange(6.0)[::-1].reshape(2, 3).copy()
    for transform in (tg.vmap, lambda f: tg.jit(tg.vmap(f))):
        np.testing.assert_array_equal(transform(ranked)(rows), 3.0 * np.sort(rows, 1))
        assert transform(ranked)(rows[:0]).shape == (0, 3)
    assert not recwarn.list


def test_types_and_shapes_are_announced():
    def places(x):
        return tg.pure_callback(np.argsort, tg.zeros(3, dtype=tg.int64), x)

    for f in (places, tg.jit(places)):
        assert f(tg.tensor(X)).dtype is tg.int64
        assert f(tg.tensor(X)).tolist() == [1, 2, 0]
    found = tg.pure_callback(lambda: 3, (), dtype=tg.float32)
    assert (found.item(), found.dtype) == (3.0, tg.float32)
    for shape, dtype in ((2,), None), ((3,), tg.int64):
        message = r"`pure_callback`: the function returned float64 of shape \(3,\), where"
        for transform in (lambda f: f, tg.jit):
            f = transform(lambda x: tg.pure_callback(np.sort, shape, x, dtype=dtype))  # noqa: B023
            with pytest.raises(RuntimeError, match=message):
                f(X)
    with pytest.raises(TypeError, match="`pure_callback` takes a function, got int"):
        tg.pure_callback(1, ())


def test_arguments_cannot_be_written_and_results_are_copies():
    kept = np.ones(3)
    found = tg.pure_callback(lambda: kept, (3,))
    kept[0] = 5.0
    assert found.tolist() == [1.0, 1.0, 1.0]

    def writing(x):
        x[0] = 1.0
        return x

    for f in (lambda x: tg.pure_callback(writing, x, x), ranked):
        x = tg.tensor(X)
        if f is not ranked:
            with pytest.raises(ValueError, match="read-only"):
                f(x)
        assert x.numpy().flags.writeable


def test_errors_of_the_function_pass_through():
    def failing(x):
        raise KeyError("mine")

    for transform in (lambda f: f, tg.jit, tg.vmap):
        with pytest.raises(KeyError, match="mine"):
            transform(lambda x: tg.pure_callback(failing, x, x))(X)


def test_it_has_no_derivative():
    for transform in (tg.grad, tg.jacfwd, tg.hessian, lambda f: tg.jit(tg.grad(f))):
        with pytest.raises(NotImplementedError, match="`pure_callback` has no derivative, since"):
            transform(lambda x: ranked(x).sum())(X)
    x = tg.tensor(X, requires_grad=True)
    (ranked(x.detach()) * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 3.0 * np.sort(X))


@pytest.mark.parametrize("outer", [lambda f: f, tg.jit])
def test_a_rule_gives_it_one(outer):
    slope = outer(tg.grad(lambda x: cube(x).sum()))
    for x in (X, X + 1.0):
        np.testing.assert_allclose(slope(x), 3 * x * x)
        np.testing.assert_allclose(outer(tg.vmap(tg.grad(cube)))(x), 3 * x * x)
        second = outer(tg.grad(lambda x: tg.grad(lambda x: cube(x).sum())(x).sum()))
        np.testing.assert_allclose(second(x), 6 * x)


def test_within_a_compiled_loop():
    f = tg.jit(lambda x: tg.fori_loop(0, 3, lambda i, y: tg.pure_callback(np.cos, y, y) + 0.0, x))
    for x in (X, X + 1.0):
        np.testing.assert_allclose(f(x), np.cos(np.cos(np.cos(x))), rtol=1e-15)
