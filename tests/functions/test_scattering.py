"""Elements brought to places by an index, a mask or a view: what PyTorch gets wrong, and modes."""

import numpy as np
import pytest

import tapegrad

INDEX = np.array([0, 0, 2])


def test_what_is_not_included_has_no_share_of_a_tie():
    x = tapegrad.tensor([3.0, 1.0], requires_grad=True)
    src = tapegrad.tensor([3.0, 3.0], requires_grad=True)
    index = tapegrad.tensor([0, 0])
    y = x.scatter_reduce(0, index, src, "amax", include_self=False)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]
    assert src.grad.tolist() == [0.5, 0.5]


def test_the_gradient_of_as_strided_scatter():
    x = tapegrad.ones(2, 3, requires_grad=True)
    src = tapegrad.zeros(2, requires_grad=True)
    weights = tapegrad.arange(6.0).reshape(2, 3)
    (x.as_strided_scatter(src, (2,), (2,), 1) * weights).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 2.0], [0.0, 4.0, 5.0]]
    assert src.grad.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_every_mode_agrees(reduce, include_self):
    def f(x, src):
        index = tapegrad.tensor(INDEX)
        y = tapegrad.scatter_reduce(x, 0, index, src, reduce, include_self=include_self)
        return (y * y).sum()

    x, src = np.array([0.5, 2.0, -1.0]), np.array([1.5, -0.7, 0.3])
    expected = tapegrad.grad(f, argnums=(0, 1))(x, src)
    rows = np.stack([x, 2 * x]), np.stack([src, 3 * src])
    for found in (
        tapegrad.jit(tapegrad.grad(f, argnums=(0, 1)))(x, src),
        [g[0] for g in tapegrad.vmap(tapegrad.grad(f, argnums=(0, 1)))(*rows)],
    ):
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_complex_numbers_have_no_extreme(reduce):
    z = tapegrad.zeros(3, dtype=tapegrad.complex128)
    for include_self in (True, False):
        with pytest.raises(NotImplementedError, match="complex numbers, which have no order"):
            tapegrad.index_reduce(
                z, 0, tapegrad.tensor([1]), z[:1], reduce, include_self=include_self
            )


def test_the_second_derivative_where_several_zeros_meet_is_an_error():
    def f(src):
        return tapegrad.ones(2).scatter_reduce(0, tapegrad.tensor([0, 0]), src, "prod").sum()

    assert tapegrad.grad(f)(np.array([0.0, 0.0])).tolist() == [0.0, 0.0]
    assert tapegrad.hessian(f)(np.array([0.0, 3.0])).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(NotImplementedError, match="several zeros meet"):
        tapegrad.hessian(f)(np.array([0.0, 0.0]))


def test_masked_scatter_and_put_under_transforms():
    def f(x):
        y = tapegrad.masked_scatter(x, x > 0, x * x)
        return tapegrad.put(y, tapegrad.tensor([0]), x[1:2] * 3.0, accumulate=True)

    x = np.array([[1.0, -2.0, 0.5], [-1.0, 3.0, 2.0]])
    expected = [f(tapegrad.tensor(row)).tolist() for row in x]
    assert tapegrad.vmap(f)(x).tolist() == expected
    assert [tapegrad.jit(f)(row).tolist() for row in x] == expected


def test_as_strided_scatter_under_transforms():
    def f(x):
        return x.as_strided_scatter(x[0, :2] * 2, (2,), (3,), 1)

    x = np.arange(12.0).reshape(2, 2, 3)
    expected = [f(tapegrad.tensor(part)).tolist() for part in x]
    assert tapegrad.vmap(f)(x).tolist() == expected
    assert [tapegrad.jit(f)(part).tolist() for part in x] == expected


def test_a_mask_that_holds_too_often_is_an_error():
    with pytest.raises(RuntimeError, match="holds at 2 places"):
        tapegrad.masked_scatter(tapegrad.zeros(2), tapegrad.ones(2) > 0, tapegrad.ones(1))


@pytest.mark.parametrize("reduce", ["add", "multiply"])
def test_scatter_that_combines_has_gradients(reduce):
    x = tapegrad.tensor([[1.0, 2.0, 0.0], [3.0, -1.0, 2.0]], requires_grad=True)
    src = tapegrad.tensor([[0.5, 2.0], [3.0, -2.0]], requires_grad=True)
    index = tapegrad.tensor([[0, 0], [2, 1]])
    for call in (
        lambda x, src: x.scatter(1, index, src, reduce=reduce),
        lambda x, src: (x * 1).scatter_(1, index, src * 2, reduce=reduce),
    ):
        assert tapegrad.autograd.gradcheck(call, (x, src))
        assert tapegrad.autograd.gradgradcheck(call, (x, src))
