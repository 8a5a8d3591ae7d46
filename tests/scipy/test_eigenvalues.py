"""Eigenvalues of matrices in the forms that SciPy has for them."""

import numpy as np
import pytest

import tapegrad as tg
from tests.scipy.test_names import G, P, Z, alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

rng = np.random.default_rng(0)
BANDS, LINE = rng.standard_normal((3, 5)), rng.standard_normal(5)


@pytest.mark.parametrize("M", [G, Z], ids=["real", "complex"])
def test_any_matrix(M):
    same("linalg", lambda lib, a: lib.eigvals(a), M)
    same("linalg", lambda lib, a: abs(lib.eig(a)[1]), M)
    same("linalg", lambda lib, a: lib.eig(a, right=False), M)
    same("linalg", lambda lib, a, b: (lib.eigvals(a, b) ** 2).sum().real, M, P)
    with pytest.raises(TypeError, match=r"`scipy\.linalg\.eig` of a Tensor has neither 'left'"):
        tg.scipy.linalg.eig(tg.tensor(M), left=True)


@pytest.mark.parametrize("lower", [False, True])
def test_bands(lower):
    values = lambda lib, b: lib.eigvals_banded(b, lower=lower)
    same("linalg", values, BANDS)
    alike_in_transforms("linalg", values, BANDS)
    same("linalg", lambda lib, b: abs(lib.eig_banded(b, lower)[1]), BANDS)
    some = {"select": "i", "select_range": (1, 3)}
    same("linalg", lambda lib, b: lib.eigvals_banded(b, lower=lower, **some), BANDS)
    hermitian = BANDS + 1j * rng.standard_normal(BANDS.shape)
    hermitian[0 if lower else -1] = LINE
    same("linalg", lambda lib, b: lib.eigvals_banded(b, lower=lower), hermitian, orders=0)
    with pytest.raises(ValueError, match="select='a' or select='i'"):
        tg.scipy.linalg.eig_banded(tg.tensor(BANDS), select="v", select_range=(0, 1))


def test_tridiagonal_matrices():
    values = lambda lib, d, e: lib.eigvalsh_tridiagonal(d, e)
    same("linalg", values, LINE, LINE[1:])
    alike_in_transforms("linalg", values, LINE, LINE[1:])
    same("linalg", lambda lib, d, e: abs(lib.eigh_tridiagonal(d, e)[1]), LINE, LINE[1:])
