"""Transforms in one another: what runs on parts is not concerned by the levels above."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("the NumPy face")

M = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
D = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])


def softmax(x):
    return tg.softmax(x, 0) if isinstance(x, tg.Tensor) else np.exp(x) / np.exp(x).sum()


def row_by_row(function):
    return [np.array(each) for each in zip(*map(function, M, D), strict=True)]


@pytest.mark.parametrize("function", [softmax, lambda x: tg.cumprod(x, 0)], ids=["softmax", "prod"])
def test_tangents_of_mapped_operations_that_are_transposed(function):
    found = tg.jvp(tg.vmap(function), (M,), (D,))
    expected = row_by_row(lambda x, d: tg.jvp(function, (x,), (d,)))
    for mine, other in zip(found, expected, strict=True):
        assert isinstance(mine, np.ndarray)
        np.testing.assert_allclose(mine, other)


def test_tangents_of_mapped_custom_functions():
    @tg.custom_vjp
    def triple(x):
        return 3.0 * x

    triple.defvjp(lambda x: (3.0 * x, x), lambda x, g: (x * g,))
    found = tg.jvp(tg.vmap(triple), (M,), (D,))
    np.testing.assert_allclose(found[1], M * D)
    assert found[1].shape == M.shape


def test_a_rule_of_the_user_that_differentiates():
    @tg.custom_vjp
    def odd(x):
        return np.sin(x).sum()

    odd.defvjp(
        lambda x: (np.sin(x).sum(), x), lambda x, g: (tg.grad(lambda y: (y**2).sum())(x) * g,)
    )
    np.testing.assert_allclose(tg.vmap(tg.grad(odd))(M), 2 * M)
    np.testing.assert_allclose(tg.grad(lambda m: tg.vmap(odd)(m).sum())(M), 2 * M)
