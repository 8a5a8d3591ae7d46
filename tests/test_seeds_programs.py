"""The last samples of `test_seeds.py`: Functions, a dynamic graph, a regression, hooks."""

import math

import pytest

# --------------------------------------------------------------------------------------------------
# Function
# --------------------------------------------------------------------------------------------------


def exp_function(tg):
    class Exp(tg.autograd.Function):
        @staticmethod
        def forward(ctx, i):
            result = i.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            (result,) = ctx.saved_tensors
            return grad_output * result

    return Exp


def legendre_function(tg):
    class LegendrePolynomial3(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = 0.5 * (5 * x**3 - 3 * x)
            ctx.save_for_backward(x)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (ret,) = ctx.saved_tensors
            return grad_output * 1.5 * (5 * ret**2 - 1)

    return LegendrePolynomial3


def test_function_can_be_imported_from_autograd_function(tg):
    assert tg.autograd.function.Function is tg.autograd.Function
    assert callable(tg.autograd.function.once_differentiable)


def test_function_exp(tg):
    x = tg.tensor([1.0], requires_grad=True)
    y = exp_function(tg).apply(x)
    assert repr(y).startswith("tensor([2.7183], grad_fn=<ExpBackward")
    assert y.grad_fn.name().startswith("ExpBackward")
    y.backward()
    assert repr(x.grad) == "tensor([2.7183])"
    assert x.grad.item() == pytest.approx(math.e, rel=1e-15)


def test_function_grad_coeff(tg):
    """backward returns one gradient per argument of forward: None for one that has none."""

    class GradCoeff(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x, coeff):
            ctx.coeff = coeff
            x.view_as(x)
            return x

        @staticmethod
        def backward(ctx, grad_output):
            return ctx.coeff * grad_output, None

    x = tg.tensor([2.0], requires_grad=True)
    ret = GradCoeff.apply(x, -0.1)
    ret = ret**2
    assert repr(ret) == "tensor([4.], grad_fn=<PowBackward0>)"
    ret.backward()
    assert repr(x.grad) == "tensor([-0.4000])"


def test_function_legendre_on_plain_numbers(tg):
    """Function.apply also takes Python numbers, and then nothing is recorded."""
    a, b, c, d = 1, 2, 1, 2
    x = 1
    P3 = legendre_function(tg).apply
    y_pred = a + b * P3(c + d * x)
    assert repr(y_pred) == "127.0"


def test_function_legendre_on_tensors(tg):
    a, b, c, d = (tg.tensor(float(v), requires_grad=True) for v in (1, 2, 1, 2))
    y_pred = a + b * legendre_function(tg).apply(c + d * 1)
    assert y_pred.item() == 127.0
    y_pred.backward()
    assert [t.grad.item() for t in (a, b, c, d)] == [1.0, 63.0, 132.0, 132.0]


def test_function_gradcheck_compares_with_differences(tg, rng):
    x = tg.tensor(rng.standard_normal((3, 2)), requires_grad=True)
    assert tg.autograd.gradcheck(legendre_function(tg).apply, (x,)) is True
    assert tg.autograd.gradcheck(exp_function(tg).apply, (x,)) is True


def test_function_my_relu(tg):
    class MyReLU(tg.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return input.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            grad_input = grad_output.clone()
            grad_input[input < 0] = 0
            return grad_input

    w = tg.tensor([[3.0, 1.0]], requires_grad=True)
    b = tg.tensor([[3.0]], requires_grad=True)
    X = tg.tensor([[-1.0, -1.0], [1.0, 1.0]])
    Y = tg.tensor([[2.0, 3.0]])
    Y_hat = MyReLU.apply(X @ w.t() + b)
    loss = tg.mean(tg.pow(Y_hat - Y, 2))
    assert Y_hat.tolist() == [[0.0], [7.0]]
    assert loss.item() == 13.5
    loss.backward()
    assert repr(w.grad) == "tensor([[4.5000, 4.5000]])"
    assert repr(b.grad) == "tensor([[4.5000]])"


# --------------------------------------------------------------------------------------------------
# The dynamic graph: a network of five neurons, a regression, hooks
# --------------------------------------------------------------------------------------------------


def five_neurons(tg, rng, frozen=()):
    names = ("a", "w1", "w2", "w3", "w4")
    t = {n: tg.tensor(rng.standard_normal((3, 3)), requires_grad=n not in frozen) for n in names}
    b = t["w1"] * t["a"]
    c = t["w2"] * t["a"]
    d = t["w3"] * b + t["w4"] * c
    return t, b, c, d, 10 - d


def test_five_neurons_grad_fn(tg, rng):
    t, _, _, d, L = five_neurons(tg, rng)
    assert t["a"].grad_fn is None
    assert t["a"].is_leaf
    assert d.grad_fn.name().startswith("AddBackward")
    assert not d.is_leaf
    assert L.requires_grad


def test_five_neurons_chain_rule_multiplies_along_paths_and_adds_over_them(tg, rng):
    t, b, c, _, L = five_neurons(tg, rng)
    L.sum().backward()
    v = {n: s.detach().numpy() for n, s in t.items()}
    expected = {
        "w4": -c.detach().numpy(),
        "w3": -b.detach().numpy(),
        "w2": -v["w4"] * v["a"],
        "w1": -v["w3"] * v["a"],
        "a": -(v["w3"] * v["w1"] + v["w4"] * v["w2"]),
    }
    for name, value in expected.items():
        assert t[name].grad.numpy() == pytest.approx(value, rel=1e-14), name


def test_five_neurons_a_vector_loss_needs_weights(tg, rng):
    t, _, _, _, L = five_neurons(tg, rng)
    with pytest.raises(RuntimeError, match="scalar"):
        L.backward()
    assert all(s.grad is None for s in t.values())


def test_five_neurons_ones_as_weights_are_the_sum(tg, rng):
    t, _, _, _, L = five_neurons(tg, rng)
    L.backward(tg.ones(L.shape), retain_graph=True)
    with_ones = t["w1"].grad.tolist()
    t["w1"].grad = None
    L.sum().backward()
    assert t["w1"].grad.tolist() == with_ones


def test_five_neurons_second_backward(tg, rng):
    t, _, _, _, L = five_neurons(tg, rng)
    L.sum().backward(retain_graph=True)
    once = t["a"].grad.clone()
    L.sum().backward()
    assert t["a"].grad.tolist() == (once + once).tolist()
    with pytest.raises(RuntimeError, match="second time"):
        L.sum().backward()


def test_five_neurons_forward_again_builds_a_new_graph(tg, rng):
    w = tg.tensor([2.0], requires_grad=True)
    for k in range(1, 4):
        (w * w).backward()
        assert w.grad.tolist() == [4.0 * k]


def test_five_neurons_frozen_tensors_get_no_gradient(tg, rng):
    t, b, _, d, L = five_neurons(tg, rng, frozen=("a", "w1"))
    assert not b.requires_grad
    assert d.requires_grad
    L.sum().backward()
    assert t["a"].grad is None
    assert t["w1"].grad is None
    assert all(t[n].grad is not None for n in ("w2", "w3", "w4"))


def test_gradient_descent_step_uses_grad(tg):
    w = tg.tensor([2.0], requires_grad=True)
    (w * w).backward()
    w = w - 0.25 * w.grad
    assert w.tolist() == [1.0]


def test_regression_forward_runs_at_once_and_backward_releases_the_graph(tg):
    tg.manual_seed(0)
    w = tg.tensor([[3.0, 1.0]], requires_grad=True)
    b = tg.tensor([[3.0]], requires_grad=True)
    X = tg.randn(10, 2)
    Y = tg.randn(10, 1)
    Y_hat = X @ w.t() + b
    loss = tg.mean(tg.pow(Y_hat - Y, 2))
    assert Y_hat.data.shape == (10, 1)
    residual = X.numpy() @ [[3.0], [1.0]] + 3.0 - Y.numpy()
    assert loss.data.item() == pytest.approx((residual**2).mean(), rel=1e-14)
    loss.backward()
    assert b.grad.item() == pytest.approx(2 * residual.mean(), rel=1e-13)
    assert w.grad.numpy() == pytest.approx(2 * residual.T @ X.numpy() / 10, rel=1e-13)
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def quadratic(tg):
    x = tg.tensor(3.0, requires_grad=True)
    y1 = x + 1
    y2 = 2 * x
    return x, y1, y2, (y1 - y2) ** 2


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_only_leaves_keep_their_grad(tg):
    x, y1, y2, loss = quadratic(tg)
    loss.backward()
    assert loss.grad is None
    assert y1.grad is None
    assert y2.grad is None
    assert repr(x.grad) == "tensor(4.)"


def test_is_leaf_of_each_tensor(tg):
    x, y1, y2, loss = quadratic(tg)
    assert [t.is_leaf for t in (x, y1, y2, loss)] == [True, False, False, False]


def test_hooks_and_retain_grad_show_gradients_of_intermediates(tg, capsys):
    x, y1, y2, loss = quadratic(tg)
    y1.register_hook(lambda grad: print("y1 grad: ", grad))
    y2.register_hook(lambda grad: print("y2 grad: ", grad))
    loss.retain_grad()
    loss.backward()
    print("loss.grad:", loss.grad)
    print("x.grad:", x.grad)
    assert capsys.readouterr().out.splitlines() == [
        "y2 grad:  tensor(4.)",
        "y1 grad:  tensor(-4.)",
        "loss.grad: tensor(1.)",
        "x.grad: tensor(4.)",
    ]
