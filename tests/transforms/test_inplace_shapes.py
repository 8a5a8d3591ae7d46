"""Functions that change shapes in place, under every transform: as where nothing is in place."""

import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.numpy_semantics import torchs_rule
from tests.view_programs import program, total

pytestmark = pytest.mark.tapegrad_only("transforms of tapegrad")

BLOCK = 25
M = np.arange(6.0).reshape(2, 3) + 1


def function_of(seed):
    steps = program(seed)

    followed = torchs_rule(total)  # which the programs are written for

    def f(x):
        y = followed(steps, tg.tensor, x * 2)
        return y * y

    return f, steps.data


def differences(f, x, eps=1e-6):
    """The gradient by central differences."""
    found = np.empty(x.shape)
    for k in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[k] = eps
        found[k] = (f(tg.tensor(x + step)).item() - f(tg.tensor(x - step)).item()) / (2 * eps)
    return found


def close(found, wanted, seed):
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-9, atol=1e-9, err_msg=str(seed))


@pytest.mark.parametrize("block", range(4))
def test_gradients_equal_differences(block):
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        f, x = function_of(seed)
        np.testing.assert_allclose(tg.grad(f)(x), differences(f, x), rtol=1e-5, err_msg=str(seed))


@pytest.mark.parametrize("block", range(4))
def test_gradients_through_windows_into_the_storage_equal_differences(block):
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        steps = program(seed, strided=True)
        f = lambda x, steps=steps: total(steps, tg.tensor, x * 2)
        a = tg.tensor(steps.data, requires_grad=True)
        f(a).backward()
        np.testing.assert_allclose(
            a.grad.tolist(), differences(f, steps.data), rtol=1e-5, atol=1e-7, err_msg=str(seed)
        )


@pytest.mark.parametrize("block", range(4))
def test_transforms_agree(block):
    warnings.simplefilter("error")  # none runs example by example
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        f, x = function_of(seed)
        v, many = np.cos(x), np.stack([x, x + 1])
        g, hv = tg.grad(f)(x), tg.grad(lambda x, f=f, v=v: (tg.grad(f)(x) * v).sum())(x)
        close(tg.vmap(f)(many)[0], f(tg.tensor(x)).item(), seed)
        close(tg.vmap(tg.grad(f))(many)[0], g, seed)
        close(tg.grad(lambda xs, f=f: tg.vmap(f)(xs).sum())(many)[0], g, seed)
        close(tg.jvp(f, (x,), (v,))[1], (g * v).sum(), seed)
        close(tg.linearize(f, x)[1](v), (g * v).sum(), seed)
        close(tg.jvp(tg.grad(f), (x,), (v,))[1], hv, seed)
        close(tg.grad(lambda x, f=f, v=v: tg.jvp(f, (x,), (v,))[1])(x), hv, seed)
        close(tg.hvp(f)(x, v), hv, seed)
        close(tg.grad(tg.checkpoint(f))(x), g, seed)


@pytest.mark.parametrize("seed", range(12))
def test_compiled_functions_agree(seed):
    f, x = function_of(seed)
    g, compiled = tg.grad(f)(x), tg.jit(f)
    close(compiled(x), f(tg.tensor(x)).item(), seed)
    close(tg.grad(compiled)(x), g, seed)
    close(tg.jit(tg.grad(f))(x), g, seed)
    close(tg.jit(tg.vmap(f))(np.stack([x, x + 1]))[0], compiled(x), seed)


# --------------------------------------------------------------------------------------------------
# What is whose
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x: tg.vmap(f)(x[None])[0],
        lambda f, x: tg.jvp(f, (x,), (x,))[0],
        lambda f, x: tg.jvp(f, (x,), (x,))[1],
    ],
    ids=["vmap", "jvp, value", "jvp, tangent"],
)
def test_the_argument_of_a_transform_may_be_reshaped_and_the_callers_is_not(call):
    x = tg.tensor(M)
    assert call(lambda x: x.t_().unsqueeze_(0), x).tolist() == [M.T.tolist()]
    assert x.shape == (2, 3)


@pytest.mark.parametrize("wrap", [lambda f: f, tg.vmap], ids=["grad", "vmap of grad"])
def test_what_is_differentiated_in_is_a_leaf(wrap):
    x = M if wrap is not tg.vmap else M[None]
    with pytest.raises(RuntimeError, match=r"`t_`: a leaf that requires grad"):
        wrap(tg.grad(lambda x: (x.t_() ** 2).sum()))(x)
    with pytest.raises(RuntimeError, match=r"`t_`: a view of a leaf that requires grad"):
        wrap(tg.grad(lambda x: (x[:].t_() ** 2).sum()))(x)


def test_what_is_differentiated_in_cannot_be_reshaped_under_no_grad():
    def f(x):
        with tg.no_grad():
            x.t_()
        return x.sum()

    with pytest.raises(RuntimeError, match=r"`t_`: .* is what a transform differentiates in"):
        tg.grad(f)(M)


@pytest.mark.parametrize("transform", [lambda f: f, lambda f: tg.grad(f)], ids=["jit", "grad"])
def test_a_compiled_program_does_not_reshape_its_argument(transform):
    with pytest.raises(RuntimeError, match=r"`t_` under `tapegrad.jit`: an argument .*x.t\(\)"):
        tg.jit(transform(lambda x: x.t_().sum()))(M)
    found = tg.jit(transform(lambda x: (x[:].t_() * tg.tensor(M.T)).sum()))(M)
    close(found, (M * M).sum() if np.ndim(found) == 0 else M, 0)


def test_a_compiled_program_does_not_reshape_what_lies_outside():
    c = tg.tensor(M)
    with pytest.raises(RuntimeError, match="in place that was made outside"):
        tg.jit(lambda x: x * c.t_())(M.T)


def test_a_loop_reshapes_what_it_made():
    def f(x):
        def body(i, c):
            z = c * 2
            row = z[0]
            z.t_()
            row.mul_(2)
            return z.unsqueeze_(0).squeeze_(0).t() * 0.3

        return tg.fori_loop(0, 3, body, x)

    close(tg.jit(f)(M), f(tg.tensor(M)).tolist(), 0)
    g = tg.grad(lambda x: f(x).sum())(M)
    close(tg.jit(tg.grad(lambda x: f(x).sum()))(M), g, 0)


def test_a_loop_does_not_reshape_what_lies_outside():
    def f(x):
        z = x * 2
        return tg.fori_loop(0, 3, lambda i, c: c + z.t_().sum(), tg.tensor(0.0))

    with pytest.raises(RuntimeError, match="`fori_loop` changes a Tensor in place"):
        tg.jit(f)(M)


def test_a_constant_that_a_view_changes_follows():
    def f(x):
        z = tg.zeros(2, 3)
        row = z[0]
        z.t_()
        row.add_(x[1])
        return z * 1

    wanted = [[4.0, 0.0], [5.0, 0.0], [6.0, 0.0]]
    assert f(tg.tensor(M)).tolist() == wanted
    assert tg.jit(f)(M).tolist() == wanted
    assert tg.vmap(f)(M[None])[0].tolist() == wanted
    assert tg.jvp(f, (M,), (M,))[1].tolist() == wanted


def test_windows_into_the_storage():
    def f(x):
        y = x * 2
        y.as_strided_((2, 2), (1, 1))
        return (y * y).sum()

    g = tg.grad(f)(M)
    close(g, [[8.0, 32.0, 24.0], [0.0, 0.0, 0.0]], 0)
    close(tg.jit(tg.grad(f))(M), g, 0)
    close(tg.jvp(f, (M,), (M,))[1], (g * M).sum(), 0)
    with pytest.raises(RuntimeError, match="`as_strided` under `vmap`"):
        tg.vmap(f)(M[None])
    with pytest.raises(RuntimeError, match="`as_strided_` inside a transform shows no memory but"):
        tg.jit(lambda x: (x * 2)[1].as_strided_((2,), (1,), 0))(M)
