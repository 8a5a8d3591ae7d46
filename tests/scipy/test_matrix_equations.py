"""Systems in banded form, and equations in matrices: SciPy's solutions, derivatives, and code."""

import numpy as np
import pytest
import scipy.linalg

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("SciPy's functions on Tensors")


def bands(below, above, n, dtype=float):
    rng = np.random.default_rng(0)
    ab = rng.standard_normal((below + above + 1, n))
    if np.dtype(dtype).kind == "c":
        ab = ab + 1j * rng.standard_normal(ab.shape)
    ab[above] += 4.0
    return ab.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("columns", [None, 1, 3])
@pytest.mark.parametrize(
    ("below", "above", "n"), [(1, 1, 6), (1, 1, 2), (1, 1, 1), (0, 2, 5), (3, 1, 6), (0, 0, 3)]
)
def test_solutions_are_scipys(below, above, n, columns, dtype):
    ab = bands(below, above, n, dtype)
    b = np.cos(np.arange(n * (columns or 1))).reshape(n if columns is None else (n, columns))
    b = b.astype(dtype)
    expected = scipy.linalg.solve_banded((below, above), ab, b)

    def solve(ab, b):
        return tg.scipy.linalg.solve_banded((below, above), ab, b)

    near = 1e-4 if dtype is np.float32 else 1e-12
    for found in (solve(tg.tensor(ab), tg.tensor(b)).numpy(), tg.jit(solve)(ab, b)):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=near, atol=near)
    if dtype is np.float64:
        np.testing.assert_allclose(tg.vmap(solve)(ab[None], b[None])[0], expected)
        assert tg.autograd.gradcheck(solve, [tg.tensor(x, requires_grad=True) for x in (ab, b)])


def test_programs_solve_by_lapack():
    def total(ab, b):
        return np.sum(tg.scipy.linalg.solve_banded((1, 1), ab, b) ** 2)

    ab, b = bands(1, 1, 6), np.ones(6)
    compiled = tg.jit(tg.grad(total, argnums=(0, 1)))
    assert not compiled.lower(ab, b).callbacks
    for found, expected in zip(compiled(ab, b), tg.grad(total, argnums=(0, 1))(ab, b), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match=r"solve_banded.*\(3, 6\), is singular"):
        compiled(np.zeros((3, 6)), b)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 2), (5, 9)])
def test_sylvesters_equation(m, n, dtype):
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((*shape, 2)) for shape in ((m, m), (n, n), (m, n))]
    given = [(x @ (1, 1j) if dtype is np.complex128 else x[..., 0]).astype(dtype) for x in given]
    expected = scipy.linalg.solve_sylvester(*given)
    solve = tg.scipy.linalg.solve_sylvester
    compiled = tg.jit(solve)
    near = 1e-3 if dtype is np.float32 else 1e-11
    for found in (solve(*map(tg.tensor, given)).numpy(), compiled(*given)):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=near, atol=near)
    assert not compiled.lower(*given).callbacks
    if dtype is np.float64:
        many = tg.vmap(solve, in_axes=(None, 0, None))(given[0], given[1][None], given[2])
        np.testing.assert_allclose(many[0], expected)
        assert tg.autograd.gradcheck(solve, [tg.tensor(x, requires_grad=True) for x in given])


def test_gradients_of_equations_in_matrices_have_code():
    a, q = np.array([[-2.0, 1.0], [0.5, -3.0]]), np.array([[2.0, 0.5], [0.5, 1.0]])

    def total(a, q):
        found = tg.scipy.linalg.solve_continuous_lyapunov(a, q)
        return np.sum(found**2) + np.sum(tg.scipy.linalg.solve_sylvester(a, q, found))

    gradient = tg.grad(total, argnums=(0, 1))
    compiled = tg.jit(gradient)
    assert not compiled.lower(a, q).callbacks
    for found, expected in zip(compiled(a, q), gradient(a, q), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"shape \(2, 2\) has NaN or inf"):
        compiled(a, q * np.inf)


def test_what_does_not_fit_raises():
    one, longer = tg.ones(2, 2), tg.ones(2, 3)
    with pytest.raises(ValueError, match=r"`b` one of \(3, 3\), got \(2, 2\) and \(2, 2\)"):
        tg.scipy.linalg.solve_sylvester(one, one, longer)
    with pytest.raises(ValueError, match="takes three matrices"):
        tg.scipy.linalg.solve_sylvester(one, one, tg.ones(2))
    ab = tg.tensor(bands(1, 1, 6))
    with pytest.raises(ValueError, match=r"2 diagonals below and 1 above .* \(3, 6\)"):
        tg.scipy.linalg.solve_banded((2, 1), ab, tg.ones(6))
    with pytest.raises(ValueError, match=r"6 rows, and `b` has the shape \(5,\)"):
        tg.scipy.linalg.solve_banded((1, 1), ab, tg.ones(5))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        tg.scipy.linalg.solve_banded((1, 1), tg.zeros(3, 6), tg.ones(6))
