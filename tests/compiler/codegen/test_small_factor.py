"""Linear algebra of small matrices, compiled: what NumPy's LAPACK gives, value and gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.codegen.small_matmul import SIDE
from tapegrad.compiler.llvm.function_builder import PREFIX

linalg = tg.linalg
TOLERANCE = {np.float64: 1e-11, np.float32: 2e-4}


def positive(a: Any) -> Any:
    return a @ a.mT + np.eye(a.shape[-1], dtype=a.dtype)


# Of a batch of square matrices, and of right sides of two columns.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "solve": linalg.solve,
    "solve of a vector": lambda a, b: linalg.solve(a, b[..., :, 0]) if a.ndim == 2 else b,
    "solve of one": lambda a, b: linalg.solve(a, b[(0,) * (b.ndim - 2)]),
    "inv": lambda a, b: linalg.inv(a) @ b,
    "det": lambda a, b: linalg.det(a),
    "slogdet": lambda a, b: linalg.slogdet(a)[1] * 2.0 + linalg.slogdet(a)[0],
    "cholesky": lambda a, b: linalg.cholesky(positive(a)) @ b,
    "lower": lambda a, b: linalg.solve_triangular(a, b, upper=False),
    "upper": lambda a, b: linalg.solve_triangular(a, b, upper=True),
    "unit": lambda a, b: linalg.solve_triangular(a, b, upper=True, unitriangular=True),
    "turned": lambda a, b: linalg.solve(a.mT, tg.flip(b, (-2,))),
}


def compare(f: Any, args: Any, dtype: Any = np.float64) -> Any:
    """Value and gradient, compiled and not, first at other arguments; returns the jitted one."""
    args = [np.asarray(x, dtype) for x in args]
    count = tuple(range(len(args)))

    def total(*xs: Any) -> Any:
        y = f(*xs)
        return (y * y).sum() / 2, y

    both = tg.value_and_grad(total, count, has_aux=True)
    jitted = tg.jit(both)
    with np.errstate(all="ignore"):
        jitted(*[np.broadcast_to(np.eye(*x.shape[-2:], dtype=dtype), x.shape).copy() for x in args])
        ((_, y), got), ((_, wanted), expected) = jitted(*args), both(*args)
    for a, b in zip((y, *got), (wanted, *expected), strict=True):
        assert np.ndim(a) == 0 or a.dtype == b.dtype == dtype
        scale = np.abs(b).max(initial=1.0, where=np.isfinite(b))
        np.testing.assert_allclose(a / scale, b / scale, rtol=0, atol=TOLERANCE[dtype])
    return jitted


def matrices(n: int, batch: tuple[int, ...] = (), seed: int = 0) -> Any:
    """Matrices whose diagonal is of no use as pivots, and right sides."""
    rng = np.random.default_rng([n, seed])
    a = np.roll(rng.uniform(-1.0, 1.0, (*batch, n, n)) + 2.0 * np.eye(n), 1, -2)
    return a, rng.normal(size=(*batch, n, 2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_matrix(name: str, n: int, dtype: Any) -> None:
    a, b = matrices(n)
    if name in ("lower", "upper", "unit"):
        a = a / 2 + np.eye(n)
    jitted = compare(FUNCTIONS[name], (a, b), dtype)
    args = a.astype(dtype), b.astype(dtype)
    assert jitted.lower(*args).callbacks == ()
    assert PREFIX not in jitted.lower(*args).as_text("llvm")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_batch(name: str) -> None:
    a, b = matrices(3, (4, 2))
    compare(FUNCTIONS[name], (a + 2 * np.eye(3), b))


@pytest.mark.parametrize("shapes", [((2, 1), (3,)), ((), (5,)), ((5,), ()), ((0,), (0,))], ids=str)
def test_batches_that_are_broadcast(shapes: Any) -> None:
    (a, _), (_, b) = matrices(3, shapes[0]), matrices(3, shapes[1])
    compare(linalg.solve, (a, b))
    compare(lambda a, b: linalg.solve_triangular(a + 3 * np.eye(3), b, upper=True), (a, b))


def test_what_is_larger_is_left_to_lapack() -> None:
    for n, columns in ((SIDE, SIDE), (SIDE + 1, 1), (2, SIDE + 1)):
        a, b = np.eye(n) + 0.1, np.ones((n, columns))
        text = tg.jit(linalg.solve).lower(a, b).as_text("llvm")
        assert (PREFIX in text) == (max(n, columns) > SIDE)


@pytest.mark.parametrize(
    "rows",
    [
        [[0.0, 1.0], [1.0, 0.0]],
        [[1.0, 2.0], [-1.0, 3.0]],  # two pivots as large as each other
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        [[1e-20, 1.0], [1.0, 1.0]],
        [[-2.0, 0.0], [0.0, 3.0]],
    ],
    ids=str,
)
def test_pivots(rows: Any) -> None:
    a = np.array(rows)
    b = np.arange(1.0, 1.0 + len(a))[:, None]
    compare(linalg.solve, (a, b))
    compare(lambda a: linalg.inv(a) * linalg.det(a), (a,))
    for k in (0, 1):
        f = tg.jit(lambda a, k=k: linalg.slogdet(a)[k])
        np.testing.assert_allclose(f(a), np.linalg.slogdet(a)[k], rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    "diagonal",
    [
        (1e200, 1e200, 1e-300), (1e-200, -1e-200, 1e300), (1e-160, 1e-160, 1e100),
        (1e200, 1e200, 1e200), (1e-200, 1e-200, 1e-200), (0.0, 1.0, 2.0), (0.0, 0.0, 1e300),
        (np.inf, 1.0, 1.0), (np.nan, 1.0, 1.0), (-np.inf, -1.0, 1.0), (1.0, 2.0, 5e-324),
    ],
    ids=str,
)  # fmt: skip
def test_a_determinant_at_the_ends_of_the_numbers(diagonal: Any) -> None:
    a = np.diag(diagonal)
    with np.errstate(all="ignore"):
        expected = np.linalg.det(a), *np.linalg.slogdet(a)
        found = tg.jit(lambda a: (linalg.det(a), *linalg.slogdet(a)))(a)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("rank", [0, 1])
def test_singular_matrices(n: int, rank: int) -> None:
    a = np.zeros((n, n))
    a[:rank] = 1.0
    for f in (linalg.det, lambda a: linalg.slogdet(a)[0], lambda a: linalg.slogdet(a)[1]):
        jitted = tg.jit(f)
        jitted(np.eye(n))
        with np.errstate(all="ignore"):
            assert jitted(a) == f(a)
    for f in (linalg.det, lambda a: linalg.det(a @ a), lambda a: linalg.slogdet(a)[1]):
        slope = tg.jit(tg.grad(f))
        slope(np.eye(n))
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(slope(a), tg.grad(f)(a), atol=1e-12)
    both = np.stack([np.eye(n), a])
    for f in (linalg.inv, lambda a: linalg.solve(a, np.ones((n, 1))), linalg.cholesky):
        jitted = tg.jit(f)
        np.testing.assert_allclose(jitted(np.stack([np.eye(n)] * 2)), f(np.stack([np.eye(n)] * 2)))
        with pytest.raises(np.linalg.LinAlgError) as eager:
            f(both)
        with pytest.raises(np.linalg.LinAlgError) as compiled:
            jitted(both)
        assert str(compiled.value) == str(eager.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("at", [(0, 0), (1, 0), (2, 1), (0, 2)])
def test_what_is_no_number(at: Any, bad: float) -> None:
    a = positive(matrices(3)[0])
    a[at] = bad
    b = np.ones((3, 1))
    functions: list[Any] = [
        linalg.inv, linalg.cholesky, lambda a: linalg.solve(a, b), linalg.det,
        lambda a: linalg.slogdet(a)[1], lambda a: linalg.solve_triangular(a, b, upper=False),
        tg.grad(lambda a: linalg.solve_triangular(a, b, upper=False)[0].sum()),
    ]  # fmt: skip
    for f in functions:
        jitted = tg.jit(f)
        jitted(np.eye(3))
        with np.errstate(all="ignore"):
            found, expected = outcome(jitted, a), outcome(f, a)
        if isinstance(expected, str):
            assert found == expected
        else:  # which elements it reaches depends on the order of operations
            assert np.isfinite(found).all() == np.isfinite(expected).all()


def outcome(f: Any, a: Any) -> Any:
    """What a function returns, or the message of its error."""
    try:
        return f(a)
    except np.linalg.LinAlgError as error:
        return str(error)


def test_a_zero_on_the_diagonal_of_a_triangle() -> None:
    a, b = np.triu(np.ones((3, 3))), np.array([[0.0], [0.0], [1.0]])
    a[1, 1] = 0.0
    f = tg.jit(lambda a, b: linalg.solve_triangular(a, b, upper=True))
    f(np.eye(3), b)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(f(a, b), linalg.solve_triangular(a, b, upper=True))


def test_only_one_triangle_is_read() -> None:
    a = positive(matrices(4)[0])
    upper = a.copy()
    upper[np.tril_indices(4, -1)] = np.nan
    lower = a.copy()
    lower[np.triu_indices(4, 1)] = np.nan
    np.testing.assert_allclose(tg.jit(linalg.cholesky)(lower), np.linalg.cholesky(a), rtol=1e-13)
    f = tg.jit(lambda a: linalg.solve_triangular(a, np.ones((4, 1)), upper=True))
    np.testing.assert_allclose(f(upper), f(np.triu(a)), rtol=1e-13)


def test_a_system_in_a_loop() -> None:
    a, _ = matrices(4)

    def f(a: Any, x: Any) -> Any:
        def step(x: Any, k: Any) -> Any:
            x = linalg.solve(a + k * np.eye(4), x) + linalg.det(a)
            return x, x.sum()

        return tg.scan(step, x, np.arange(5.0))[1]

    compare(f, (a, np.ones((4, 1))))


def test_second_derivatives() -> None:
    a, b = matrices(3)
    for name in ("solve", "det", "slogdet", "cholesky"):

        def f(a: Any, name: str = name) -> Any:
            return (FUNCTIONS[name](a, b) ** 2).sum()

        found, expected = tg.jit(tg.hessian(f))(a), tg.hessian(f)(a)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
