"""Operations of science: complex numbers, special functions, order, transforms, matrices."""

from __future__ import annotations

import numpy as np

from bench.operations import Row, mat, positive, row, unit, vec


def cvec(rng: np.random.Generator, n: int) -> np.ndarray:
    """A vector of n*n complex numbers."""
    return rng.standard_normal(n * n) + 1j * rng.standard_normal(n * n)


def cmat(rng: np.random.Generator, n: int) -> np.ndarray:
    """A square of n*n complex numbers."""
    return rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))


def regular(rng: np.random.Generator, n: int) -> np.ndarray:
    """A matrix that is well away from singular ones."""
    return rng.standard_normal((n, n)) / np.sqrt(n) + 2 * np.eye(n)


def symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    """A symmetric positive definite matrix, of distinct eigenvalues."""
    a = rng.standard_normal((n, n)) / np.sqrt(n)
    return a @ a.T + np.diag(np.linspace(1.0, 2.0, n))


def batch(rng: np.random.Generator, n: int) -> np.ndarray:
    """A hundred matrices of 4 x 4, however large others are."""
    return rng.standard_normal((100, 4, 4)) + 4 * np.eye(4)


ARRAYS: dict[str, list[Row]] = {
    "complex": [
        (".complex add", lambda xp, x, y: x + y, (cvec, cvec), ()),
        (".complex mul", lambda xp, x, y: x * y, (cvec, cvec), ()),
        (".complex div", lambda xp, x, y: x / y, (cvec, cvec), ()),
        (".complex exp", lambda xp, x: xp.exp(x), (cvec,), ()),
        (".complex log", lambda xp, x: xp.log(x), (cvec,), ()),
        (".complex sin", lambda xp, x: xp.sin(x), (cvec,), ()),
        (".complex abs", lambda xp, x: xp.abs(x), (cvec,), ()),
        (".angle", lambda xp, x: xp.angle(x), (cvec,), ()),
        (".real", lambda xp, x: x.real * 2.0, (cvec,), ()),
        (".polar", lambda xp, x, y: xp.polar(x, y), (positive, vec), ()),
        (".complex sum", lambda xp, x: xp.sum(x).real, (cvec,), ()),
        (".complex mm", lambda xp, x, y: xp.mm(x, y), (cmat, cmat), ()),
    ],
    "special": [
        (".erfc", lambda xp, x: xp.erfc(x), (vec,), ()),
        (".erfinv", lambda xp, x: xp.erfinv(x), (unit,), ()),
        (".lgamma", lambda xp, x: xp.lgamma(x), (positive,), ()),
        (".digamma", lambda xp, x: xp.digamma(x), (positive,), ()),
        (".i0", lambda xp, x: xp.i0(x), (vec,), ()),
        (".ndtr", lambda xp, x: xp.special.ndtr(x), (vec,), ()),
        (".log_ndtr", lambda xp, x: xp.special.log_ndtr(x), (vec,), ()),
        (".xlogy", lambda xp, x, y: xp.xlogy(x, y), (vec, positive), ()),
        (".entr", lambda xp, x: xp.special.entr(x), (positive,), ()),
        (".logaddexp", lambda xp, x, y: xp.logaddexp(x, y), (vec, vec), ()),
        (".hypot", lambda xp, x, y: xp.hypot(x, y), (vec, vec), ()),
        (".asinh", lambda xp, x: xp.asinh(x), (vec,), ()),
        (".sinc", lambda xp, x: xp.sinc(x), (vec,), ()),
    ],
    "order and scans": [
        (".sort", lambda xp, x: xp.sort(x).values, (vec,), ()),
        (".sort, dim 1", lambda xp, x: xp.sort(x, dim=1).values, (mat,), ()),
        ("~.argsort", lambda xp, x: xp.argsort(x), (vec,), ()),
        (".quantile", lambda xp, x: xp.quantile(x, 0.3), (row,), ()),
        (".cumprod", lambda xp, x: xp.cumprod(x, 1), (mat,), ()),
        (".logcumsumexp", lambda xp, x: xp.logcumsumexp(x, 1), (mat,), ()),
        (".diff", lambda xp, x: xp.diff(x), (vec,), ()),
    ],
    "Fourier transforms": [
        (".fft", lambda xp, x: xp.fft.fft(x), (vec,), ()),
        (".complex fft", lambda xp, x: xp.fft.fft(x), (cvec,), ()),
        (".rfft", lambda xp, x: xp.fft.rfft(x), (vec,), ()),
        (".rfft, dim 1", lambda xp, x: xp.fft.rfft(x, dim=1), (mat,), ()),
        (".irfft", lambda xp, x: xp.fft.irfft(x), (cvec,), ()),
        (".fft2", lambda xp, x: xp.fft.fft2(x), (cmat,), ()),
        (".rfft2", lambda xp, x: xp.fft.rfft2(x), (mat,), ()),
    ],
}

MATRICES: dict[str, list[Row]] = {
    "linear algebra": [
        (".inv", lambda xp, a: xp.linalg.inv(a), (regular,), ()),
        (".solve", lambda xp, a, b: xp.linalg.solve(a, b), (regular, row), ()),
        (".det", lambda xp, a: xp.linalg.det(a), (regular,), ()),
        (".slogdet", lambda xp, a: xp.linalg.slogdet(a)[1], (regular,), ()),
        (".cholesky", lambda xp, a: xp.linalg.cholesky(a), (symmetric,), ()),
        (".eigh, values", lambda xp, a: xp.linalg.eigh(a)[0], (symmetric,), ()),
        (".svdvals", lambda xp, a: xp.linalg.svdvals(a), (regular,), ()),
        (".qr", lambda xp, a: xp.linalg.qr(a)[1].abs(), (regular,), ()),
        (".matrix_exp", lambda xp, a: xp.linalg.matrix_exp(a), (regular,), ()),
        (".pinv", lambda xp, a: xp.linalg.pinv(a), (regular,), ()),
        (".einsum", lambda xp, a, b: xp.einsum("ij,kj->ik", a, b), (regular, regular), ()),
        (".kron", lambda xp, a, b: xp.kron(a[:4, :4], b[:4, :4]), (regular, regular), ()),
        (".inv, a batch", lambda xp, a: xp.linalg.inv(a), (batch,), ()),
        (".det, a batch", lambda xp, a: xp.linalg.det(a), (batch,), ()),
        (".bmm, a batch", lambda xp, a, b: xp.bmm(a, b), (batch, batch), ()),
    ]
}
