"""Programs as a newcomer to PyTorch's autograd writes them: what tutorials teach, end to end."""

import itertools
import math

import numpy as np
import pytest


@pytest.fixture
def sine(tg):
    """A sine on a grid, and the powers of the grid up to the third."""
    x = tg.linspace(-math.pi, math.pi, 200)
    return x, tg.sin(x), x.unsqueeze(-1).pow(tg.tensor([0, 1, 2, 3]))


def best_cubic(x, y):
    """The coefficients that least squares gives."""
    powers = x.numpy()[:, None] ** np.arange(4)
    return np.linalg.lstsq(powers, y.numpy(), rcond=None)[0]


# -- fitting a polynomial: by hand, by autograd, by a function of one's own -----------------------


def test_a_polynomial_fitted_with_gradients_by_hand_and_by_autograd(tg, sine):
    x, y, _ = sine
    a, b, c, d = by_hand = [0.1, -0.2, 0.3, 0.05]
    leaves = [tg.tensor(v, device="cpu", requires_grad=True) for v in by_hand]
    rate = 1e-6
    losses = []
    for _ in range(300):
        grad = 2.0 * (a + b * x + c * x**2 + d * x**3 - y)
        by_rule = [(grad * x**k).sum().item() for k in range(4)]
        a, b, c, d = (v - rate * g for v, g in zip((a, b, c, d), by_rule, strict=True))

        p, q, r, s = leaves
        loss = (p + q * x + r * x**2 + s * x**3 - y).pow(2).sum()
        losses.append(loss.item())
        loss.backward()
        with tg.no_grad():
            for v, g in zip(leaves, by_rule, strict=True):
                assert v.grad.item() == pytest.approx(g, rel=1e-9, abs=1e-9)
                v -= rate * v.grad
                v.grad = None
    assert [v.item() for v in leaves] == pytest.approx([a, b, c, d], rel=1e-9)
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))


def test_a_matrix_of_powers_reaches_the_best_cubic(tg, sine):
    x, y, powers = sine
    scale = powers.abs().amax(0)
    basis = powers / scale
    w = tg.zeros(4, requires_grad=True)
    for _ in range(3000):
        loss = (basis @ w - y).pow(2).mean()
        (g,) = tg.autograd.grad(loss, w)
        with tg.no_grad():
            w.sub_(g, alpha=0.5)
    found = (w / scale).detach().numpy()
    np.testing.assert_allclose(found, best_cubic(x, y), atol=1e-3)


def test_a_function_of_its_own_is_fitted_as_the_formula_is(tg, sine):
    class Legendre3(tg.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return 0.5 * (5 * input**3 - 3 * input)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            return grad_output * 1.5 * (5 * input**2 - 1)

    x, y, _ = sine

    def fit(curve):
        weights = [tg.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3)]
        a, b, c, d = weights
        for _ in range(50):
            loss = (a + b * curve(c + d * x) - y).pow(2).sum()
            loss.backward()
            with tg.no_grad():
                for w in weights:
                    w -= 5e-6 * w.grad
                    w.grad.zero_()
        return [w.item() for w in weights], loss.item()

    own, loss = fit(Legendre3.apply)
    formula, same = fit(lambda t: 0.5 * (5 * t**3 - 3 * t))
    assert own == pytest.approx(formula, rel=1e-9, abs=1e-12)
    assert loss == pytest.approx(same)
    assert tg.autograd.gradcheck(Legendre3.apply, tg.linspace(-1, 1, 5, requires_grad=True))


# -- what a first tour of autograd shows ----------------------------------------------------------


def test_one_layer_and_its_loss(tg):
    tg.manual_seed(1)
    x, y = tg.ones(5), tg.zeros(3)
    w = tg.randn(5, 3, requires_grad=True)
    b = tg.randn(3, requires_grad=True)
    z = tg.matmul(x, w) + b
    loss = tg.nn.functional.binary_cross_entropy_with_logits(z, y)
    assert type(z.grad_fn).__name__ == "AddBackward0"
    assert loss.grad_fn is not None
    loss.backward()
    slope = (1 / (1 + np.exp(-z.detach().numpy())) - y.numpy()) / 3
    np.testing.assert_allclose(b.grad.numpy(), slope)
    np.testing.assert_allclose(w.grad.numpy(), np.outer(np.ones(5), slope))
    with tg.no_grad():
        assert not (tg.matmul(x, w) + b).requires_grad
    assert not z.detach().requires_grad


def test_a_vector_times_the_jacobian_accumulates(tg):
    x = tg.eye(4, 5, requires_grad=True)
    out = (x + 1).pow(2).t()
    out.backward(tg.ones_like(out), retain_graph=True)
    first = x.grad.clone()
    assert first.tolist() == (2 * (tg.eye(4, 5) + 1)).tolist()
    out.backward(tg.ones_like(out), retain_graph=True)
    assert bool((x.grad == 2 * first).all())
    x.grad.zero_()
    out.backward(tg.ones_like(out))
    assert bool((x.grad == first).all())
    with pytest.raises(RuntimeError):
        out.backward(tg.ones_like(out))


def test_external_gradients_and_frozen_inputs(tg, leaf):
    a, b = leaf([2.0, 3.0]), leaf([6.0, 4.0])
    q = 3 * a**3 - b**2
    q.backward(gradient=tg.tensor([1.0, 1.0]))
    assert bool((9 * a**2 == a.grad).all())
    assert bool((-2 * b == b.grad).all())
    x, y, z = tg.rand(5, 5), tg.rand(5, 5), tg.rand(5, 5, requires_grad=True)
    assert not (x + y).requires_grad
    assert (x + z).requires_grad


def test_the_graph_is_walked_from_its_end(tg, leaf):
    a = leaf([0.0, math.pi / 4, math.pi / 2])
    b = tg.sin(a)
    d = 2 * b + 1
    names, node = [], d.sum().grad_fn
    while node is not None:
        names.append(type(node).__name__)
        last, node = node, next((n for n, _ in node.next_functions if n is not None), None)
    assert names == ["SumBackward0", "AddBackward0", "MulBackward0", "SinBackward0",
                     "AccumulateGrad"]  # fmt: skip
    assert last.variable is a
    assert a.grad_fn is None
    d.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 2 * np.cos(a.detach().numpy()))
    assert a.is_leaf
    assert not b.is_leaf


def test_in_place_changes_of_leaves_and_saved_values_are_refused(tg, leaf):
    a = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="leaf"):
        a.sin_()
    b = a.exp()
    b.add_(1)
    with pytest.raises(RuntimeError, match=r"in-?place"):
        b.sum().backward()


def test_jacobians_and_hessians_by_name(tg):
    def exp_adder(x, y):
        return 2 * x.exp() + 3 * y

    x, y = tg.tensor([0.0, 1.0]), tg.tensor([2.0, 3.0])
    functional = tg.autograd.functional
    dx, dy = functional.jacobian(exp_adder, (x, y))
    np.testing.assert_allclose(dx.numpy(), np.diag(2 * np.exp(x.numpy())))
    np.testing.assert_allclose(dy.numpy(), 3 * np.eye(2))
    _, product = functional.vjp(exp_adder, (x, y), tg.tensor([1.0, 10.0]))
    np.testing.assert_allclose(product[0].numpy(), 2 * np.exp(x.numpy()) * [1, 10])
    hessian = functional.hessian(lambda x: x.pow(3).sum(), x)
    np.testing.assert_allclose(hessian.numpy(), np.diag(6 * x.numpy()))


def test_a_small_network_learns_exclusive_or(tg):
    tg.manual_seed(0)
    x = tg.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = tg.tensor([[0.0], [1.0], [1.0], [0.0]])
    parameters = [tg.randn(2, 8), tg.zeros(8), tg.randn(8, 1), tg.zeros(1)]
    for p in parameters:
        p.requires_grad_()
    w1, b1, w2, b2 = parameters
    for _ in range(2000):
        logits = tg.tanh(x @ w1 + b1) @ w2 + b2
        loss = tg.nn.functional.binary_cross_entropy_with_logits(logits, y)
        loss.backward()
        with tg.no_grad():
            for p in parameters:
                p -= 0.5 * p.grad
                p.grad = None
    assert loss.item() < 0.05
    assert ((logits > 0) == (y > 0.5)).all()
