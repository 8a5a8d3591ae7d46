"""Memory in a trace: what is written into it, and what a trace that gets long says."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.trace.trace import Trace

pytestmark = pytest.mark.tapegrad_only("PyTorch has no `jit` of this kind")


def unrolled(x):
    for _ in range(100):
        x = x + 0.1 * x
    return x


def rolled(x):
    return tg.fori_loop(0, 100, lambda _, x: x + 0.1 * x, x)


def test_a_long_trace_says_what_to_write(monkeypatch, capsys):
    monkeypatch.setattr(Trace, "long", 50)
    assert tg.jit(rolled)(1.0) == pytest.approx(1.1**100)
    assert capsys.readouterr().err == ""
    assert tg.jit(unrolled)(1.0) == pytest.approx(1.1**100)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{__file__}:" in said
    assert "`tapegrad.scan`" in said
    assert tg.jit(unrolled)(2.0) == pytest.approx(2 * 1.1**100)
    assert capsys.readouterr().err == ""


def detached(x):
    y = x * 1
    y.detach().mul_(2.0)
    return (y * x).sum()


def stopped(x):
    y = x * x
    v = tg.stop_gradient(y)
    y *= x
    return (y * v).sum()


def own_history(x):
    y = x * x
    v = y.detach()
    r = v[1:]
    v += x
    s = v[:2]
    s *= x[:2]
    return (r * x[1:]).sum() + (v * y).sum()


def of_several(x):
    y = (x * x).reshape(3, 1) * x
    v = y.T.detach()[0]
    u = v.detach()
    y[0, 0] = x[1]
    v[1] = x[2] * 3
    u[2] = x[0]
    y.detach()[1] *= 2
    return (u * v).sum() + (v * y[0]).sum() + (y * y).sum()


def in_a_loop(x):
    def step(_, c):
        d = c * 1.0
        d.detach().mul_(2.0)
        return d * x

    return tg.fori_loop(0, 3, step, x).sum()


@pytest.mark.parametrize("f", [detached, stopped, own_history, of_several, in_a_loop])
def test_what_is_detached_shares_memory_and_no_history(f):
    x = tg.tensor([1.0, 2.0, 3.0])
    gradient, value = tg.func.grad_and_value(f)(x)
    np.testing.assert_allclose(tg.jit(f)(x), value)
    np.testing.assert_allclose(tg.jit(tg.func.grad(f))(x), gradient)
    np.testing.assert_allclose(tg.grad(tg.jit(f))(x), gradient)
    np.testing.assert_allclose(tg.jvp(tg.jit(f), (x,), (tg.ones(3),))[1], gradient.sum())
    np.testing.assert_allclose(tg.jit(tg.vmap(f))(tg.stack([x, x])), [value.item()] * 2)


def test_what_is_detached_of_an_argument_is_the_callers():
    with pytest.raises(RuntimeError, match="the memory of an argument is the caller's"):
        tg.jit(lambda x: tg.stop_gradient(x).mul_(2.0))(np.ones(3))
