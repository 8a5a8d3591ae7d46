"""Matrices made of vectors, products with them and their systems, against SciPy."""

import numpy as np
import pytest

import tapegrad as tg
from tests.scipy.test_names import alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

rng = np.random.default_rng(0)
V, B, W = rng.standard_normal(4), rng.standard_normal((3, 4)), rng.standard_normal((2, 4))
CALLS = {
    "companion": (lambda lib, a: lib.companion(a), V),
    "companion of two": (lambda lib, a: lib.companion(a), V[:2]),
    "leslie": (lambda lib, f, s: lib.leslie(f, s), V, V[1:]),
    "matmul_toeplitz": (lambda lib, c, x: lib.matmul_toeplitz(c, x), V, B.T),
    "matmul_toeplitz by a row": (lambda lib, c, r, x: lib.matmul_toeplitz((c, r), x), V, W[0], V),
    "solve_circulant": (lambda lib, c, b: lib.solve_circulant(c, b), V, B.T),
    "solve_circulant of a vector": (lambda lib, c, b: lib.solve_circulant(c, b), V, W[0]),
    "solve_circulant along axes": (
        lambda lib, c, b: lib.solve_circulant(c, b, baxis=-1, outaxis=-1), B, V
    ),
    "khatri_rao": (lambda lib, a, b: lib.khatri_rao(a, b), B, W),
    **{
        f"convolution_matrix, {mode}, {n}": (
            lambda lib, a, mode=mode, n=n: lib.convolution_matrix(a, n, mode), V
        )
        for mode in ("full", "same", "valid") for n in (1, 3, 6)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_structured_matrices(name):
    call, *arrays = CALLS[name]
    same("linalg", call, *arrays)
    alike_in_transforms("linalg", call, *arrays)


def test_complex_circulants():
    column = V + 1j * W[0]
    same("linalg", lambda lib, c, b: lib.solve_circulant(c, b), column, B.T)


def test_what_is_refused():
    t, lib = tg.tensor(V), tg.scipy.linalg
    for wrong in (
        lambda: lib.companion(t[:1]), lambda: lib.leslie(t, t), lambda: lib.khatri_rao(t, t),
        lambda: lib.convolution_matrix(t, 3, "some"), lambda: lib.convolution_matrix(t, 0),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"`scipy\.linalg\."):
            wrong()
    with pytest.raises(TypeError, match="neither `singular` nor `tol`"):
        lib.solve_circulant(t, t, singular="lstsq")
