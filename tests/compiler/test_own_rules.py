"""Functions with rules of the user's own under `jit`: autograd's primitives, custom derivatives."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compat.autograd import defjvp, defvjp, make_jvp, primitive
from tapegrad.compat.autograd.extend import notrace_primitive
from tapegrad.transforms.pytree import flatten

pytestmark = pytest.mark.tapegrad_only("what only this library has")

X = np.array([0.0, 1.0, 2.0])


@primitive
def logsumexp(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


# Three times too much, which shows that the rule is asked.
defvjp(logsumexp, lambda ans, x: lambda g: 3.0 * g * np.exp(x - ans))


@primitive
def power(x, k):
    return x**k


defjvp(power, lambda g, ans, x, k: g * k * power(x, k - 1))
defvjp(power, lambda ans, x, k: lambda g: g * k * power(x, k - 1))


@primitive
def scaled(a, x, power=1.0):
    return a * x**power


defvjp(scaled, lambda ans, a, x, power=1.0: lambda g: g * x**power, argnums=(0,))

total = primitive(np.sum)
whole = notrace_primitive(np.floor)


@tg.custom_vjp
def tripled(x):
    return np.sum(np.exp(x))


tripled.defvjp(lambda x: (tripled(x), x), lambda x, g: (3.0 * g * np.exp(x),))

FUNCTIONS = {
    "value": logsumexp,
    "grad": tg.grad(logsumexp),
    "grad_of_more": tg.grad(lambda x: logsumexp(x * x) * x[0]),
    "hessian": tg.hessian(logsumexp),
    "jvp": lambda x: make_jvp(logsumexp)(x)(x),
    "vmap": tg.vmap(tg.grad(lambda y: logsumexp(y * X))),
    "forward": lambda x: make_jvp(lambda y: power(y, 4))(x)(x),
    "forward_twice": lambda x: make_jvp(lambda y: make_jvp(lambda z: power(z, 4))(y)(y))(x)(x),
    "forward_over_reverse": lambda x: make_jvp(tg.grad(lambda y: np.sum(power(y, 4))))(x)(x),
    "in_one_argument": lambda x: tg.grad(lambda a: np.sum(scaled(a, x, 2.0)))(x),
    "by_name": lambda x: scaled(2.0, x, power=x[1]),
    "without_rules": lambda x: total(x) * x,
    "constant": tg.grad(lambda x: np.sum(x * whole(x))),
    "in_a_loop": lambda x: tg.fori_loop(0, 3, lambda i, c: c * logsumexp(c), x),
    "custom_vjp": tg.grad(tripled),
    "custom_vjp_twice": tg.hessian(tripled),
    "custom_vjp_alone": tripled,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_own_rules_are_traced(name):
    f = FUNCTIONS[name]
    jitted = tg.jit(f)
    pairs = zip(flatten(jitted(X + 1.0))[0], flatten(f(X + 1.0))[0], strict=True)
    for found, wanted in pairs:
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert jitted.cache_info() == (1, 1, 0)


def test_the_rule_serves_a_tape_around():
    found = []
    for f in (logsumexp, tg.jit(logsumexp)):
        x = tg.tensor(X, requires_grad=True)
        f(x).backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(found[0], 3.0 * np.exp(X) / np.exp(X).sum())
    np.testing.assert_allclose(found[1], found[0])


def test_what_cannot_be_traced_says_so():
    opaque = primitive(lambda x: np.asarray(x).sum())
    assert opaque(X) == 3.0
    with pytest.raises(RuntimeError, match=r"inside `tapegrad.jit` cannot be turned into an array"):
        tg.jit(opaque)(X)


def test_a_derivative_without_a_rule_is_an_error():
    with pytest.raises(NotImplementedError, match="no derivative of the primitive"):
        tg.jit(tg.grad(total))(X)
    with pytest.raises(TypeError, match="in positional arguments only"):
        tg.jit(tg.grad(lambda x: scaled(1.0, 2.0, power=x)))(1.0)
