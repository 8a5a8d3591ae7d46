"""Operands of every pair of shapes: NumPy's shape and values, or an error where NumPy has one."""

import itertools

import numpy as np
import pytest

import tapegrad as tg
from tests.numpy_face.test_numpy_functions import flat

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")

SHAPES = [(), (1,), (2,), (3,), (0,), (1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (1, 2, 2), (2, 3, 1)]
FUNCTIONS = {
    f.__name__ if f.__module__ is None else f"{f.__module__}.{f.__name__}": f
    for f in (
        np.dot, np.vdot, np.inner, np.outer, np.kron, np.tensordot, np.correlate, np.convolve,
        np.append, np.polyval, np.cov, np.trapezoid, np.array_equal, np.linalg.solve,
        np.linalg.outer, np.linalg.vecdot, np.linalg.matmul, np.linalg.tensordot, np.linalg.lstsq,
        np.linalg.tensorsolve,
    )
} | {f.__name__: f for f in (np.add, np.matmul, np.vecdot, np.matvec, np.vecmat)} | {
    "concatenate": lambda a, b: np.concatenate([a, b]),
    "concatenate along the last": lambda a, b: np.concatenate([a, b], -1),
    "stack": lambda a, b: np.stack([a, b]),
    "hstack": lambda a, b: np.hstack([a, b]),
    "vstack": lambda a, b: np.vstack([a, b]),
    "dstack": lambda a, b: np.dstack([a, b]),
    "column_stack": lambda a, b: np.column_stack([a, b]),
    "block": lambda a, b: np.block([a, b]),
    "tensordot of one axis": lambda a, b: np.tensordot(a, b, 1),
    "einsum of the last": lambda a, b: np.einsum("...i,...i", a, b),
    "einsum of matrices": lambda a, b: np.einsum("ij,jk", a, b),
    "diff to": lambda a, b: np.diff(a, append=b),
    "no diff to": lambda a, b: np.diff(a, 0, append=b),
    "gradient": np.gradient,
    "where": lambda a, b: np.where(a > 0.5, a, b),
}  # fmt: skip


def answer(function, *args):
    try:
        return [np.asarray(f.numpy() if isinstance(f, tg.Tensor) else f)
                for f in flat(function(*args))]  # fmt: skip
    except (ValueError, TypeError, RuntimeError, IndexError, np.linalg.LinAlgError) as problem:
        return problem


@pytest.mark.filterwarnings("ignore")  # NumPy's of empty covariances
@pytest.mark.parametrize("name", FUNCTIONS)
def test_two_operands(name):
    rng = np.random.default_rng(0)
    for left, right in itertools.product(SHAPES, SHAPES):
        a, b = rng.uniform(0.2, 1, left), rng.uniform(0.2, 1, right)
        expected = answer(FUNCTIONS[name], a, b)
        for args in ((tg.tensor(a), tg.tensor(b)), (a, tg.tensor(b)), (tg.tensor(a), b)):
            found = answer(FUNCTIONS[name], *args)
            what = f"{name} of {left} and {right}: {found}"
            assert isinstance(found, Exception) == isinstance(expected, Exception), what
            if not isinstance(found, Exception):
                assert [f.shape for f in found] == [e.shape for e in expected], what
                for f, e in zip(found, expected, strict=True):
                    np.testing.assert_allclose(f, e, rtol=1e-9, atol=1e-12, err_msg=what)


def test_lengths_that_differ_are_named():
    with pytest.raises(ValueError, match=r"`np.vecdot` sums over axis -1 of the shape \(3,\) and"):
        np.vecdot(tg.ones(3), tg.ones(1))
    with pytest.raises(ValueError, match=r"`np.matvec` sums over axis -1 of the shape \(2, 3\)"):
        np.matvec(tg.ones(2, 3), tg.ones(1))
    with pytest.raises(ValueError, match="their sizes must agree"):
        np.tensordot(tg.ones(2, 3), tg.ones(1, 4), 1)
    with pytest.raises(ValueError, match="need as many dimensions"):
        np.concatenate([tg.ones(0), tg.ones(1, 1)])
    with pytest.raises(ValueError, match="takes matrices first"):
        np.matvec(tg.ones(3), tg.ones(3))
    with pytest.raises(ValueError, match=r"`np.correlate` takes vectors, got \(\)"):
        np.correlate(tg.ones(()), tg.ones(3))
    with pytest.raises(np.linalg.LinAlgError, match="got a number"):
        np.linalg.solve(tg.ones(1, 1), tg.tensor(1.0))
