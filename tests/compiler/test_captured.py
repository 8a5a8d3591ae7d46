"""Tensors from outside: they are constants of a trace for as long as nobody changes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.transforms.pytree import flatten


def captured(jitted: Any) -> list[int]:
    """How many Tensors each specialization watches."""
    return [len(v.captured) for found in jitted._specializations.values() for v in found]


def test_a_changed_tensor_is_seen() -> None:
    w = tg.ones(3)
    view = w[:2]
    one = tg.jit(lambda x: (x * w).sum())
    two = tg.jit(lambda x: (x * view).sum())
    three = tg.jit(lambda x: (x * w[1:]).sum())
    assert [one(np.ones(3)), two(np.ones(2)), three(np.ones(2))] == [3.0, 2.0, 2.0]
    w.add_(1.0)
    assert [one(np.ones(3)), two(np.ones(2)), three(np.ones(2))] == [6.0, 4.0, 4.0]
    assert captured(one)[-1:] == captured(two)[-1:] == captured(three)[-1:] == [1]


def test_what_only_the_trace_knows_is_not_watched() -> None:
    x = np.linspace(1.0, 2.0, 4)
    for f in (
        tg.grad(lambda x: (x * x).sum()),
        lambda x: (x * tg.ones(4)).sum(),
        lambda x: (x * tg.ones(8)[::2]).sum(),
        lambda x: tg.linalg.solve(np.eye(4) * x, np.ones(4)).sum(),
        lambda x: tg.jvp(lambda y: y**3, (x,), (np.ones(4),))[1],
    ):
        jitted = tg.jit(f)
        np.testing.assert_allclose(jitted(x), f(x))
        assert captured(jitted) == [0]


def test_an_array_that_became_a_variable_is_not_watched() -> None:
    """A constant that was read, then written into, and is returned: calls traced it each time."""

    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        y[x > 0] = x[x > 0] ** 2
        return y

    jitted: Any = tg.jit(f)
    x = np.array([1.0, -2.0, 3.0])
    for _ in range(3):
        np.testing.assert_array_equal(jitted(x), f(x))
    assert captured(jitted) == [0]
    assert jitted._fast_call != jitted._general


def cubes(x: Any) -> Any:
    return np.sum(x**3) + x[0] * x[1]


def waves(x: Any) -> Any:
    return np.sin(x) * x[0]


POINT, SLOPE = np.array([0.5, 1.0, 2.0]), np.array([1.0, 0.0, 2.0])
TRANSFORMED: dict[str, Any] = {
    "grad": (tg.grad(cubes), POINT),
    "value_and_grad": (tg.value_and_grad(cubes), POINT),
    "jacobian": (tg.jacobian(waves), POINT),
    "jacobian_of_many": (tg.jacobian(lambda x: np.arange(4.0) * x), 2.0),
    "jacobian_of_itself": (tg.jacobian(lambda x: x), POINT),
    "jacrev": (tg.jacrev(waves), POINT),
    "jacrev_of_one_row": (tg.jacrev(lambda x: (x * x).sum(keepdims=True)), POINT),
    "jacfwd": (tg.jacfwd(waves), POINT),
    "hessian": (tg.hessian(cubes), POINT),
    "hessian_in_two": (tg.hessian(lambda x, y: np.sum(x * y * x), (0, 1)), POINT, SLOPE),
    "jacfwd_of_grad": (tg.jacfwd(tg.grad(cubes)), POINT),
    "hvp": (tg.hvp(cubes), POINT, SLOPE),
    "vhp": (tg.vhp(cubes), POINT, SLOPE),
    "vjp": (lambda x, v: tg.vjp(waves, x)[1](v), POINT, SLOPE),
    "vjp_with_own_weights": (lambda x: tg.vjp(waves, x)[1](np.ones(3)), POINT),
    "jvp": (lambda x, v: tg.jvp(waves, (x,), (v,)), POINT, SLOPE),
    "jvp_along_a_constant": (lambda x: tg.jvp(waves, (x,), (np.ones(3),)), POINT),
    "linearize": (lambda x, v: tg.linearize(waves, x)[1](v), POINT, SLOPE),
    "vmap_of_grad": (tg.vmap(tg.grad(lambda x: np.sin(x) * x)), POINT),
    "vmap_of_hessian": (tg.vmap(tg.hessian(cubes)), np.stack([POINT, SLOPE])),
    "checkpoint": (tg.grad(tg.checkpoint(cubes)), POINT),
}


@pytest.mark.parametrize("transformed", TRANSFORMED)
def test_the_constants_of_transforms_are_not_watched(transformed: str) -> None:
    """With none to watch the calls go the fast way in, which checks the arguments alone."""
    f, *args = TRANSFORMED[transformed]
    jitted: Any = tg.jit(f)
    for _ in range(2):
        pairs = zip(flatten(jitted(*args))[0], flatten(f(*args))[0], strict=True)
        for found, wanted in pairs:
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert captured(jitted) == [0]
    assert jitted._fast_call != jitted._general


@pytest.mark.parametrize("make", [lambda a: a, tg.tensor, lambda a: np.pad(a[1:-1], 1)])
@pytest.mark.parametrize("size", [3, 16, 17, 300])
def test_an_array_is_as_it_was_when_it_was_read(make: Any, size: int) -> None:
    """What the function does to its own arrays later does not reach what it has computed."""

    def f(x: Any) -> Any:
        own, y = make(np.zeros(size)), x * 0.0
        for i in range(3):
            own[i] = 2.0 + i
            y = y + x * own
            own[i] = 0.0
        return y

    x = np.linspace(1.0, 2.0, size)
    wanted = x * np.r_[2.0, 3.0, 4.0, np.zeros(size - 3)]
    np.testing.assert_array_equal(tg.jit(f)(x), wanted)
    slope = tg.jit(tg.grad(lambda x: (f(x) * x).sum()))
    np.testing.assert_array_equal(slope(x), 2 * wanted)


def test_what_is_not_compiled_cannot_be_lowered():
    w = tg.tensor(2.0, requires_grad=True)
    f = tg.jit(lambda x: x * w)
    with pytest.raises(RuntimeError, match=r"`lower`: <lambda> is not compiled .* requires grad"):
        f.lower(1.0)
    assert f(3.0).item() == 6.0
