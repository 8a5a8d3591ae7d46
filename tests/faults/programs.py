"""Short programs that interruptions and what runs in between must leave no trace of."""

import numpy as np

import tapegrad as tg

X = np.array([0.3, -0.2, 0.7])
LARGE = 20_000


def numbers(*tensors):
    return [np.array(t if isinstance(t, (np.ndarray, float)) else t.detach()._a) for t in tensors]


def chain():
    x = tg.tensor(X, requires_grad=True)
    y = x
    for _ in range(3):
        y = tg.sin(y * 2.0) + y / (x * x + 1.0) - 0.5 * tg.exp(-y)
    (y @ x + y.sum() * x.mean()).backward()
    return numbers(x.grad)


def joined():
    x = tg.tensor(X, requires_grad=True)
    y = x
    for _ in range(2):
        y = tg.cat([tg.stack([y, y * 2]).softmax(0)[0] * y, y])[:3].clone()
        y = y[tg.tensor([2, 0, 1])] + y.reshape(1, 3).expand(2, 3).max(0)[0]
        y = tg.where(y > 0, y, y.cumsum(0)) + y.unbind()[1] + tg.linalg.norm(y)
    (g,) = tg.autograd.grad((y * x).sum(), x)
    return numbers(g)


def in_place():
    x = tg.tensor(X, requires_grad=True)
    y = x * 2.0
    z = y * 3.0
    z.mul_(y).add_(1.0)
    v = z[1:]
    v.mul_(2.0)
    z[0] = x[2]
    w = tg.zeros(2, 3)
    w[1] = z
    w.t().mul_(y.reshape(3, 1))
    u = x + 1.0
    u.zero_()
    (w.sum() + (v * v).sum()).backward()
    return numbers(x.grad)


def hooked():
    x = tg.tensor(X, requires_grad=True)
    w = tg.tensor(2.0, requires_grad=True)
    y = x * w
    y.register_hook(lambda g: g * 2.0)
    y.retain_grad()
    x.register_hook(lambda g: g + 1.0)
    z = (tg.sin(y) * y).sum()
    z.backward(retain_graph=True)
    (g,) = tg.autograd.grad(z, w, create_graph=True)
    (g * g).backward()
    return numbers(x.grad, w.grad, y.grad)


class Cube(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def own_rule():
    x = tg.tensor(X, requires_grad=True)
    y = Cube.apply(tg.sin(x))
    tg.autograd.backward([y.sum(), (y * x).sum()], retain_graph=True)
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = tg.autograd.grad(g.sum(), x)
    return numbers(x.grad, h)


def careful():
    x = tg.tensor(X, requires_grad=True)
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = tg.sin(x) * x
    with tg.autograd.detect_anomaly():
        z = (y * y).sum()
        z.backward()
    with tg.no_grad():
        x.mul_(0.5)
    with tg.inference_mode():
        w = x * 2.0
    return numbers(x.grad, w)


def large():
    x = tg.tensor(np.linspace(0.0, 1.0, LARGE), requires_grad=True)
    y = tg.sin(x * 2) * x + tg.sqrt(x + 1)
    y = tg.where(y > 1.0, y, y * y).reshape(100, -1).softmax(1)
    y = y * 1.0
    y.mul_(2.0).add_(y[:, :1].clone())
    (y * y).sum().backward()
    return numbers(x.grad)


def _f(x):
    y = np.sin(x) * x + tg.exp(-x)
    return np.sum(y[1:] * y[:-1]) + y @ y


def gradients():
    g, h = tg.grad(_f), tg.grad(lambda x: tg.grad(_f)(x) @ x)
    value, both = tg.value_and_grad(lambda x, a: a * _f(x), argnums=(0, 1))(X, 2.0)
    return numbers(g(X), h(X), np.array(value), *both)


def mapped():
    xs = np.stack([X, 2 * X])
    return numbers(
        tg.vmap(tg.grad(_f))(xs), tg.jvp(_f, (X,), (X,))[1], tg.hessian(_f)(X),
        tg.vmap(lambda x: tg.jvp(tg.grad(_f), (x,), (X,))[1])(xs), tg.hvp(_f)(X, X),
        tg.jacfwd(tg.grad(_f))(X), tg.jacrev(lambda x: np.cumsum(np.tanh(x)))(X),
    )  # fmt: skip


def rules():
    @tg.custom_vjp
    def f(x):
        return tg.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * tg.cos(x),))
    y = tg.grad(lambda x: tg.sum(tg.checkpoint(lambda t: f(t) * t)(x)))(X)
    _, pull = tg.vjp(lambda x: {"a": x * 2, "b": tg.sum(x)}, X)
    _, tangent = tg.linearize(_f, X)
    return numbers(y, *pull({"a": X, "b": 1.0}), np.asarray(tangent(X)))


_compiled = tg.jit(tg.value_and_grad(_f))


def compiled():
    value, g = _compiled(X)
    return numbers(np.array(value), g)


def compiling():
    f = tg.jit(tg.grad(lambda x: np.sum(np.sin(x) * x)))
    return numbers(f(X), f(2 * X))


PROGRAMS = [
    chain, joined, in_place, hooked, own_rule, careful, large, gradients, mapped, rules, compiled,
    compiling,
]  # fmt: skip
