"""What a Tensor under a map shows keeps nothing alive, and stands for its parts all the same."""

import gc
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.base.abstract_array import AbstractArray
from tapegrad.native import install

pytestmark = pytest.mark.tapegrad_only("about what this library keeps")

X = np.linspace(0.1, 1.0, 4)
MANY = np.stack([X] * 3)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def written(x):
    y = np.zeros_like(x)
    y[0] = x[0] * 2
    y[1:] = x[1:] * x[:-1]
    return y


CALLS = {
    "vmap": lambda: tg.vmap(rosenbrock)(MANY),
    "vmap in place": lambda: tg.vmap(written)(MANY),
    "vmap of vmap": lambda: tg.vmap(tg.vmap(lambda x: x * np.sin(x)))(MANY),
    "vmap of solve": lambda: tg.vmap(lambda x: np.linalg.solve(np.eye(4), x))(MANY),
    "vmap of grad": lambda: tg.vmap(tg.grad(rosenbrock))(MANY),
    "vmap of jvp": lambda: tg.vmap(lambda x: tg.jvp(rosenbrock, (x,), (x,)))(MANY),
    "vmap of hvp": lambda: tg.vmap(lambda x: tg.hvp(rosenbrock)(x, x))(MANY),
    "grad of vmap": lambda: tg.grad(lambda x: np.sum(tg.vmap(rosenbrock)(x)))(MANY),
    "jvp of vmap": lambda: tg.jvp(tg.vmap(rosenbrock), (MANY,), (MANY,)),
    "jacfwd": lambda: tg.jacfwd(lambda x: np.sin(x) * x[::-1])(X),
    "jacfwd of grad": lambda: tg.jacfwd(tg.grad(rosenbrock))(X),
    "hessian": lambda: tg.func.hessian(lambda x: (x * x).sin().sum())(tg.tensor(X)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_leaves_no_garbage(name):
    call = CALLS[name]
    install.install(compiling=False)  # which leaves some, and may come in any call
    for _ in range(3):  # what is worked out once, and compiled
        call()
    gc.collect()
    gc.disable()
    try:
        call()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_examples_go_with_the_last_that_is_held_of_them():
    def f(x):
        y = np.sin(x)
        examples = weakref.ref(y._lift.full)
        assert examples() is not None
        shown = y._a
        del y
        assert examples() is not None  # as long as what stands for them
        del shown
        assert examples() is None
        return x

    tg.vmap(f)(MANY)


def test_who_holds_it_alone_has_the_tensor():
    def f(x):
        shown = (x * 2)._a
        assert type(shown) is AbstractArray
        assert shown.owner.shape == (4,)
        return tg.sin(shown)

    np.testing.assert_allclose(tg.vmap(f)(MANY), np.sin(MANY * 2))


def test_it_stands_for_the_examples_of_a_value_that_is_turned_within_a_derivative():
    def f(x):
        y = x * 1
        y.t_()
        assert y.stride() == (1, 3)
        assert not y.is_contiguous()
        return (y * y).sum()

    def g(x):
        y = x * 1
        row = y[0]
        y.mul_(x)
        assert row.stride() == (1,)
        return (row * y).sum()

    m = tg.arange(1.0, 19.0).reshape(3, 2, 3)
    for function in (f, g):
        values, tangents = tg.func.vmap(lambda x, h=function: tg.func.jvp(h, (x,), (x,)))(m)
        for i in range(3):
            value, tangent = tg.func.jvp(function, (m[i],), (m[i],))
            assert values[i] == value
            assert tangents[i] == tangent
