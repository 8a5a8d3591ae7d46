"""Every handler on complex operands: NumPy's values, or an error."""

import numpy as np
import pytest

import tapegrad as tg
from tests.numpy_face import more_cases  # noqa: F401 - enters its cases
from tests.numpy_face.cases import CASES
from tests.numpy_face.test_numpy_functions import flat, samples

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")


@pytest.mark.filterwarnings("ignore")  # what NumPy thinks of its own complex numbers
@pytest.mark.parametrize("name", CASES)
def test_complex_operands(name):
    case = CASES[name]
    parts = samples(case)
    arrays = [a + 1j * a[..., ::-1] if a.ndim else a + 0.3j for a in parts]
    try:
        expected = flat(case.function(*arrays))
    except (TypeError, ValueError, np.linalg.LinAlgError):
        return  # NumPy has no such function of complex numbers
    try:
        found = flat(case.function(*[tg.tensor(a) for a in arrays]))
    except (TypeError, RuntimeError, NotImplementedError) as problem:
        if "complex" in str(problem):
            return
        raise
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        assert f.numpy().dtype == np.asarray(e).dtype
        np.testing.assert_allclose(f.numpy(), e, rtol=1e-12, atol=1e-13)


Z, W = np.array([1 + 2j, 3j, 2 - 1j]), np.array([2 - 1j, 1 + 1j, -1j])


def test_the_transposed_conjugate():
    m = np.stack([Z, W])
    np.testing.assert_array_equal(tg.tensor(m).H.numpy(), m.conj().T)
    np.testing.assert_array_equal(tg.tensor(m[None]).mH.numpy(), m[None].conj().mT)
    np.testing.assert_array_equal(tg.tensor(m).mT.numpy(), m.T)
    real = tg.tensor(m.real.copy())
    assert real.H._base is real


def test_weights_and_single_variables():
    for given in ({}, {"aweights": np.array([0.5, 1.0, 2.0])}, {"fweights": np.array([1, 2, 1])}):
        for rows in (Z, np.stack([Z, W])):
            got = np.cov(tg.tensor(rows), **given)
            np.testing.assert_allclose(got.numpy(), np.cov(rows, **given), rtol=1e-14)
    np.testing.assert_allclose(np.angle(tg.tensor(Z), deg=True).numpy(), np.angle(Z, deg=True))
    holes = np.array([1 + 1j, complex(np.nan, 1), complex(1, np.inf)])
    np.testing.assert_array_equal(np.nan_to_num(tg.tensor(holes)).numpy(), np.nan_to_num(holes))
    np.testing.assert_allclose(np.nanvar(tg.tensor(holes[:2])).numpy(), np.nanvar(holes[:2]))


def test_the_sign_of_a_complex_number():
    np.testing.assert_allclose(np.sign(tg.tensor(Z)).numpy(), Z / abs(Z), rtol=1e-15)
    assert np.sign(tg.tensor([-2.0, 0.0])).tolist() == [-1.0, 0.0]
    tg.check_grads(np.sign, (Z,))


def test_a_conjugate_inside_of_a_transform():
    both = np.stack([Z, W])
    np.testing.assert_array_equal(tg.vmap(np.conj)(both), both.conj())
    found = tg.grad(lambda z: np.sum(z * np.conj(z)).real)(Z)
    np.testing.assert_allclose(found, 2 * Z)


def test_what_replaces_nan_does_so_part_by_part():
    z = np.array([complex(np.nan, 1.0), 2j, complex(1.0, np.inf), 3.0 - 1j])
    weight = np.array([1.0, 2.0, 3.0, 4.0])
    f = lambda z: np.nan_to_num(z, nan=2.0, posinf=5.0)
    slope = tg.grad(lambda z: np.sum(weight * (f(z).real + 10 * f(z).imag)))
    wanted = np.array([10j, 2 + 20j, 3, 4 + 40j])
    for run in (lambda f: f, tg.jit, tg.vmap, lambda f: tg.jit(tg.vmap(f))):
        np.testing.assert_array_equal(run(f)(z), f(z))
    np.testing.assert_array_equal(slope(z), wanted)
    np.testing.assert_array_equal(tg.jit(slope)(z), wanted)
    y = tg.tensor(z)
    assert np.array_equal(y.nan_to_num_(2.0, 5.0).numpy(), f(z))
