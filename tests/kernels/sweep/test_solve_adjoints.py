"""Small systems of equations: the sweep hands on what their rules would, and their fast path
records what the general one does."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd.sweep import Sweep
from tapegrad.functions import solve_fast
from tests.kernels.sweep.test_compiled_sweep import both

pytestmark = pytest.mark.tapegrad_only("compares paths through the library")


def leaf(array):
    return tg.tensor(array, requires_grad=True)


def matrix(rng, n):
    return rng.standard_normal((n, n)) + np.sqrt(n) * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 32])
@pytest.mark.parametrize("cols", [0, 1, 3, 32])
@pytest.mark.parametrize("tracked", ["ab", "a", "b"])
def test_solutions(n, cols, tracked):
    rng = np.random.default_rng(n)
    a0, b0, w = matrix(rng, n), rng.standard_normal((n, cols)), rng.standard_normal((n, cols))

    def build():
        a, b = tg.tensor(a0), tg.tensor(b0)
        inputs = [t.requires_grad_() for name, t in (("a", a), ("b", b)) if name in tracked]
        # The matrix is read transposed, and both adjoints are added to what is there.
        x = tg.linalg.solve(a.T, b) + tg.linalg.solve(a, b)
        return (x * w).sum() + (a * a).sum() + (b * b).sum(), inputs

    both(build)


@pytest.mark.parametrize("n", [1, 2, 5, 32])
def test_determinants(n):
    a0 = matrix(np.random.default_rng(n), n)

    def build():
        a = leaf(a0)
        sign, log = tg.linalg.slogdet(a)
        other = tg.linalg.slogdet(-a.T)
        return log * log + sign * 3.0 + other.logabsdet * 2.0 + (a * a).sum(), [a]

    both(build)


def test_parts_of_what_is_taken_apart():
    a0 = np.random.default_rng(0).standard_normal((4, 4))

    def build():
        a = leaf(a0)
        values, vectors = tg.linalg.eigh(a + a.T)
        q, r = tg.linalg.qr(a)
        return (values**3).sum() + (vectors**2 @ values).sum() + (q * r).sum(), [a]

    both(build)


def test_small_systems_need_no_python(monkeypatch):
    a0, b0 = matrix(np.random.default_rng(0), 4), np.ones((4, 2))

    def f(a, b):
        return (tg.linalg.solve(a, b) ** 2).sum() + tg.linalg.slogdet(a).logabsdet

    g = tg.grad(f, argnums=(0, 1))
    g(a0, b0)  # loads kernels
    monkeypatch.setattr(Sweep, "_step", None)
    g(a0, b0)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_is_not_finite_is_left_to_the_rule(bad):
    a0 = np.diag([1.0, 2.0, 4.0])
    b0 = np.array([[1.0, 2.0], [bad, 3.0], [4.0, 5.0]])

    def build():
        a, b = leaf(a0), leaf(b0)
        x = tg.linalg.solve(a, b)
        return x[0].sum() + x[2].sum(), [a, b]

    with np.errstate(all="ignore"):
        both(build)


def test_an_adjoint_of_zero_gives_zero_for_a_singular_matrix():
    def build():
        a = leaf(np.array([[1.0, 2.0], [2.0, 4.0]]))
        return tg.linalg.slogdet(a).logabsdet * 0.0 + (a * a).sum(), [a]

    with np.errstate(all="ignore"):
        both(build)


def general(function):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solve_fast, "_small", lambda tape, x: False)
        return described(function)


def described(function):
    rng = np.random.default_rng(3)
    a, b = leaf(matrix(rng, 3)), leaf(rng.standard_normal((3, 2)))
    found = function(a, b)
    rows = []
    for t in found if isinstance(found, tuple) else (found,):
        record = t.tape.whole[t.tape.whole.index(t._pos)]
        index = t.tape.whole.index(t._pos)
        rows.append((
            record.op, record.inputs[0][:4] == "leaf", record.shape, t._a.tolist(), t._s,
            t.tape.whole.words()[index].tolist()[4:], str(t.tape.whole.keep[index]), t._is_view(),
        ))  # fmt: skip
    return rows


@pytest.mark.parametrize("function", [tg.linalg.solve, lambda a, b: tuple(tg.linalg.slogdet(a))])
def test_they_are_recorded_as_on_the_general_path(function):
    assert described(function) == general(function)


def test_what_they_refuse():
    a = leaf(np.array([[1.0, 2.0], [2.0, 4.0]]))
    with pytest.raises(tg.linalg.LinAlgError, match="singular"):
        tg.linalg.solve(a, leaf(np.ones((2, 1))))
    with pytest.raises(RuntimeError, match="do not fit"):
        tg.linalg.solve(a, leaf(np.ones((3, 1))))
    with pytest.raises(RuntimeError, match="takes square matrices"):
        tg.linalg.slogdet(leaf(np.ones((2, 3))))


@pytest.mark.parametrize("loops", [solve_fast._loops, None])
def test_numpys_loops_are_not_needed(loops, monkeypatch):
    monkeypatch.setattr(solve_fast, "_loops", loops)
    rng = np.random.default_rng(0)
    a, b = matrix(rng, 4), rng.standard_normal((4, 2))
    for right in (b, b[:, 0]):
        found = np.linalg.solve(leaf(a), leaf(right))
        np.testing.assert_array_equal(found.detach().numpy(), np.linalg.solve(a, right))
    found = np.linalg.slogdet(leaf(a))
    np.testing.assert_array_equal([part.item() for part in found], np.linalg.slogdet(a))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        np.linalg.solve(leaf(np.zeros((2, 2))), leaf(np.ones(2)))
    assert np.linalg.slogdet(leaf(np.zeros((2, 2))))[1].item() == -np.inf
    assert np.isnan(np.linalg.solve(leaf(np.eye(2)), leaf(np.array([np.nan, 1.0]))).tolist()[0])
