"""What the record of a solution or a determinant keeps of a large matrix."""

import gc
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops import lu_factors, solve
from tapegrad.ops.large import COMPILED
from tapegrad.ops.lu_factors import Factors

pytestmark = pytest.mark.tapegrad_only("it looks into the record")

N = 130
assert N * N >= COMPILED

FUNCTIONS = {
    "solve": lambda a, b: tg.linalg.solve(a, b),
    "solve, a vector": lambda a, b: tg.linalg.solve(a, b[:, 0]),
    "solve, from the right": lambda a, b: tg.linalg.solve(a, b.mT, left=False),
    "det": lambda a, b: tg.linalg.det(a / 4),
    "slogdet": lambda a, b: tg.linalg.slogdet(a).logabsdet,
}


def operands(rng, dtype, n=N):
    """A matrix that is well away from singular ones, and two columns."""
    a, b = rng.standard_normal((n, n)) / np.sqrt(n) + 3 * np.eye(n), rng.standard_normal((n, 2))
    if dtype == "complex128":
        a, b = a + 1j * rng.standard_normal((n, n)) / np.sqrt(n), b * (1 + 0.5j)
    return [tg.tensor(x.astype(dtype), requires_grad=True) for x in (a, b)]


def size(y):
    """One number that every element of a result goes into."""
    return (y.abs() * tg.arange(1.0, y.numel() + 1, dtype=y.abs().dtype).reshape(y.shape)).sum()


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gradient_is_that_of_a_record_without_factors(rng, monkeypatch, name, dtype):
    inputs = operands(rng, dtype)
    wanted = inputs if "solve" in name else inputs[:1]

    def gradients():
        return tg.autograd.grad(size(FUNCTIONS[name](*inputs)), wanted)

    found = gradients()
    monkeypatch.setattr("tapegrad.functions.matrices.COMPILED", 2 * N * N)
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    for x, y in zip(found, gradients(), strict=True):
        assert np.abs(x.numpy() - y.numpy()).max() <= tolerance * np.abs(y.numpy()).max()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_second_derivative_knows_the_matrix(rng, name):
    a, b = operands(rng, "float64")
    direction = tg.tensor(rng.standard_normal((N, N)) / N)

    def slope(a):
        (g,) = tg.autograd.grad(size(FUNCTIONS[name](a, b)), a, create_graph=True)
        return (g * direction).sum()

    (second,) = tg.autograd.grad(slope(a), a)
    step = 1e-5
    there, back = (slope((a + s * step * direction).detach().requires_grad_()) for s in (1, -1))
    expected = (there - back).item() / (2 * step)
    assert (second * direction).sum().item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["solve", "slogdet"])
def test_an_adjoint_does_not_factorize(rng, monkeypatch, name):
    a, b = operands(rng, "float64")
    asked = []
    routine = lu_factors.routine
    monkeypatch.setattr(
        lu_factors, "routine", lambda *args: asked.append(args[0]) or routine(*args)
    )
    y = size(FUNCTIONS[name](a, b))
    assert asked.count("getrf") == 1
    y.backward()
    assert asked.count("getrf") == 1
    assert asked.count("getrs") == 2 * (name == "solve")  # what both adjoints need is solved once


def test_factors_go_with_the_slice_of_the_tape(rng, monkeypatch):
    a, b = operands(rng, "float64")
    factors_of, made = solve.factors_of, []

    def noted(*args):
        factors = factors_of(*args)
        made.append(weakref.ref(factors.lu))
        return factors

    monkeypatch.setattr(solve, "factors_of", noted)
    y = tg.linalg.solve(a, b)
    gc.collect()
    (lu,) = made
    assert lu() is not None
    y.sum().backward()
    gc.collect()
    assert lu() is None


def test_adjoints_of_a_batch_solve_together(rng):
    a, b = operands(rng, "float64")
    y = tg.linalg.solve(a, b)
    weights = tg.tensor(rng.standard_normal((3, N, 2)))
    (found,) = tg.autograd.grad(y, b, weights, is_grads_batched=True, retain_graph=True)
    for g, w in zip(found, weights, strict=True):
        (one,) = tg.autograd.grad(y, b, w, retain_graph=True)
        assert np.allclose(g.numpy(), one.numpy(), rtol=1e-12, atol=1e-12)


def test_a_singular_matrix_is_refused_and_has_a_determinant():
    a = tg.diag(tg.arange(float(N))).requires_grad_()
    for refused in (tg.linalg.inv, lambda a: tg.linalg.solve(a, tg.ones(N))):
        with pytest.raises(tg.linalg.LinAlgError, match="is singular"):
            refused(a)
    sign, logarithm = tg.linalg.slogdet(a)
    assert (sign.item(), logarithm.item()) == (0.0, -np.inf)
    scaled = a / N
    (slope,) = tg.autograd.grad(tg.linalg.det(scaled), scaled)
    expected = np.prod(np.arange(1.0, N) / N)
    assert slope[0, 0].item() == pytest.approx(expected, rel=1e-9)
    assert np.count_nonzero(np.abs(slope.numpy()) > 1e-9 * expected) == 1


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_parts_of_factors(rng, order):
    x = np.asarray(rng.standard_normal((5, 5)), order=order)
    factors = Factors(x)
    b = rng.standard_normal((2, 5, 3))
    assert np.allclose(x @ factors.solve(b), b)
    assert np.allclose(x.T @ factors.mT.solve(b[0]), b[0])
    assert factors.solve(b[..., :0]).shape == (2, 5, 0)
    assert np.allclose(factors.inverse() @ x, np.eye(5))
    assert np.allclose(factors.slogdet(), np.linalg.slogdet(x))
    assert factors.mT.nbytes == factors.nbytes == 5 * 5 * 8 + 5 * 4
    assert repr(factors) == "<LU of 5 × 5>"
