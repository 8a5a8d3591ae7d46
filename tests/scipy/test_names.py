"""`tapegrad.scipy` against SciPy: values, shapes, and derivatives against differences."""

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.signal
import scipy.special

import tapegrad as tg
from tapegrad.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

rng = np.random.default_rng(0)
G = rng.standard_normal((3, 3)) + 3 * np.eye(3)
Z = G + 1j * rng.standard_normal((3, 3))
P = G @ G.T + np.eye(3)
H = P + 1j * (G - G.T) / 9
V, W = rng.standard_normal(3), rng.standard_normal((3, 2))


def same(home, call, *arrays, orders=2):
    """Hold a function to SciPy's; `call` is given the module of one or the other."""
    ours, theirs = getattr(tg.scipy, home), getattr(scipy, home)
    given = tuple(tg.tensor(a, requires_grad=True) for a in arrays)
    found, wanted = call(ours, *given), call(theirs, *arrays)
    if not isinstance(wanted, tuple):
        found, wanted = (found,), (wanted,)
    for a, b in zip(found, wanted, strict=True):
        if isinstance(a, tg.Tensor):
            assert tuple(a.shape) == np.shape(b)
            np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-9, atol=1e-11)
        else:
            assert a == b
    if orders > 0:
        assert gradcheck(lambda *x: call(ours, *x), given)
    if orders > 1:
        assert gradgradcheck(lambda *x: call(ours, *x), given)


def alike_in_transforms(home, call, *arrays):
    """Hold the derivatives of a function to those under `jit` and `vmap`."""

    def total(*args):
        found = call(getattr(tg.scipy, home), *args)
        return sum(np.sum(np.sin(x)) for x in (found if isinstance(found, tuple) else (found,)))

    slopes = tg.grad(total, tuple(range(len(arrays))))
    wanted = slopes(*arrays)
    batch = tg.vmap(slopes)(*[np.stack([a, a]) for a in arrays])
    for a, b, c in zip(tg.jit(slopes)(*arrays), wanted, batch, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(c[1], b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("M", [G, Z], ids=["real", "complex"])
@pytest.mark.parametrize("name", ["inv", "det", "pinv", "expm", "svdvals"])
def test_functions_of_a_matrix(name, M):
    same("linalg", lambda lib, a: getattr(lib, name)(a), M)


@pytest.mark.parametrize("M", [G, Z], ids=["real", "complex"])
@pytest.mark.parametrize("b", [V, W], ids=["vector", "columns"])
@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("lower", [False, True])
def test_triangular_systems(lower, trans, b, M):
    for unit in (False, True):
        how = {"trans": trans, "lower": lower, "unit_diagonal": unit}
        same("linalg", lambda lib, a, b: lib.solve_triangular(a, b, **how), M, b)  # noqa: B023


@pytest.mark.parametrize("M", [P, H], ids=["real", "complex"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(
    "assume", [None, "gen", "pos", "sym", "her", "upper triangular", "lower triangular"]
)
def test_systems_of_which_something_is_known(assume, lower, M):
    M = M.T + (0.1j * G if assume == "sym" and M is H else 0.0)
    how = {"lower": lower, "assume_a": assume}
    same("linalg", lambda lib, a, b: lib.solve(a, b, **how), M, W)
    if M.dtype.kind == "f":
        same("linalg", lambda lib, a, b: lib.solve(a, b, transposed=True), G, V)


@pytest.mark.parametrize("M", [P, H], ids=["real", "complex"])
@pytest.mark.parametrize("b", [V, W], ids=["vector", "columns"])
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky(lower, b, M):
    def solved(lib, a, b):
        return lib.cho_solve(lib.cho_factor((a + a.T.conj()) / 2, lower), b)

    same("linalg", lambda lib, a: lib.cholesky(a, lower=lower), M, orders=0)
    same("linalg", lambda lib, a: lib.cholesky((a + a.T.conj()) / 2, lower=lower), M)
    same("linalg", solved, M, b)


@pytest.mark.parametrize("M", [G, Z], ids=["real", "complex"])
def test_lu(M):
    same("linalg", lambda lib, a: lib.lu(a)[1:], M)
    same("linalg", lambda lib, a: lib.lu(a), M, orders=0)
    same("linalg", lambda lib, a: lib.lu(a, permute_l=True), M)
    same("linalg", lambda lib, a: lib.lu_factor(a), M, orders=0)
    for trans in (0, 1, 2):
        for b in (V, W):
            same("linalg", lambda lib, a, b: lib.lu_solve(lib.lu_factor(a), b, trans), M, b)  # noqa: B023


def test_factorizations():
    same("linalg", lambda lib, a: lib.qr(a, mode="economic"), W)
    same("linalg", lambda lib, a: lib.qr(a), G)
    same("linalg", lambda lib, a: lib.qr(a, mode="r"), W)
    same("linalg", lambda lib, a: lib.svd(a, compute_uv=False), W)
    same("linalg", lambda lib, a: lib.svd(a)[1], W)
    same("linalg", lambda lib, a: lib.eigh(a + a.T, eigvals_only=True), P)
    same("linalg", lambda lib, a: lib.eigvalsh(a, lower=False), P, orders=0)
    same("linalg", lambda lib, a: abs(lib.eigh(a + a.T)[1]), P)
    same("linalg", lambda lib, a: lib.sqrtm(a), P, orders=1)
    same("linalg", lambda lib, a, b: lib.block_diag(a, b), G, W)


@pytest.mark.parametrize("M", [P, H], ids=["real", "complex"])
@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("lower", [False, True])
def test_eigenvalues_beside_another_matrix(lower, kind, M):
    one, other = M + np.diag([0.0, 1.0, 3.0]), np.diag([1.0, 2.0, 3.0]) + M.T / 9
    how = {"lower": lower, "type": kind}

    def both(lib, a, b):
        a, b = (a + a.T.conj()) / 2, (b + b.T.conj()) / 2
        values, vectors = lib.eigh(a, b, **how)
        some = lib.eigh(a, b, subset_by_index=[1, 2], **how)
        return values, abs(vectors), some[0], abs(some[1]), lib.eigvalsh(a, b, **how)

    same("linalg", both, one, other, orders=1)
    half = np.tril if lower else np.triu
    same("linalg", lambda lib, a, b: lib.eigvalsh(a, b, **how), half(one), half(other), orders=0)


BANDS = np.array([[0.0, 0.3, 0.5, 0.2], [1.0, 0.7, 0.6, 0.9], [4.0, 5.0, 4.5, 6.0]])
# Each with SciPy's arguments, and what it is given.
MATRICES = {
    "logm": (lambda lib, a: lib.logm(a), P),
    "lyapunov": (lambda lib, a, q: lib.solve_continuous_lyapunov(a, q), G, P),
    "discrete": (lambda lib, a, q: lib.solve_discrete_lyapunov(a, q), G / 9, P),
    "bilinear": (lambda lib, a, q: lib.solve_discrete_lyapunov(a, q, "bilinear"), G / 9, P),
    "continuous_are": (
        lambda lib, a, b, q, r: lib.solve_continuous_are(a, b, q @ q.T, r @ r.T), G, W, P, G[:2]
    ),
    "discrete_are": (
        lambda lib, a, b, q, r: lib.solve_discrete_are(a, b, q @ q.T, r @ r.T), G, W, P, G[:2]
    ),
    "polar": (lambda lib, a: lib.polar(a), G),
    "polar of a rotation": (lambda lib, a: lib.polar(a, side="left"), np.eye(3)),
    "polar of columns": (lambda lib, a: lib.polar(a), W),
    "polar of rows": (lambda lib, a: lib.polar(a, "left"), W.T),
    "polar, singular": (lambda lib, a: lib.polar(a), G[:2]),
    "sylvester": (lambda lib, a, b, q: lib.solve_sylvester(a, b, q), G, P, P),
    "solve_banded": (lambda lib, ab, b: lib.solve_banded((0, 2), ab, b), BANDS, BANDS[2]),
    "solveh_banded": (lambda lib, ab, b: lib.solveh_banded(ab, b), BANDS, BANDS.T),
    "lower": (lambda lib, ab, b: lib.solveh_banded(ab, b, lower=True), BANDS[::-1], BANDS[0]),
    "toeplitz": (lambda lib, c: lib.toeplitz(c), V),
    "toeplitz of two": (lambda lib, c, r: lib.toeplitz(c, r), V, BANDS[2]),
    "circulant": (lambda lib, c: lib.circulant(c), V),
    "hankel": (lambda lib, c: lib.hankel(c), V),
    "hankel of two": (lambda lib, c, r: lib.hankel(c, r), V, BANDS[2]),
    "solve_toeplitz": (lambda lib, c, b: lib.solve_toeplitz(c, b), BANDS[2] - BANDS[1], BANDS[1]),
    "norm": (lambda lib, a: lib.norm(a, "nuc", keepdims=True), W),
    "lstsq": (lambda lib, a, b: (*lib.lstsq(a, b)[:2], lib.lstsq(a, b)[3]), W, V),
    "lstsq of columns": (lambda lib, a, b: lib.lstsq(a, b)[:2], W, G),
}  # fmt: skip


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name):
    call, *arrays = MATRICES[name]
    same("linalg", call, *arrays)
    alike_in_transforms("linalg", call, *arrays)


def test_equations_in_single_precision():
    for name in ("solve_continuous_are", "solve_discrete_are"):
        given = [tg.tensor(m, dtype=tg.float32, requires_grad=True) for m in (G, W, P, np.eye(2))]
        found = getattr(tg.scipy.linalg, name)(*given)
        found.sum().backward()
        assert {t.dtype for t in (found, *[t.grad for t in given])} == {tg.float32}


def test_a_logarithm_draws_no_random_numbers_of_the_users():
    np.random.seed(0)
    wanted = np.random.random()
    np.random.seed(0)
    tg.grad(lambda a: np.sum(tg.scipy.linalg.logm(a)))(np.kron(P, P))
    assert np.random.random() == wanted


REAL = ["dct", "idct", "dst", "idst"]


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_and_sine_transforms(kind, norm, name):
    x = rng.standard_normal((5, 2))
    for how in ({}, {"n": 3}, {"n": 6, "orthogonalize": True}, {"orthogonalize": False}):
        how |= {"type": kind, "norm": norm}
        same("fft", lambda lib, x: getattr(lib, name)(x, **how), x[:, 0])  # noqa: B023
        same("fft", lambda lib, x: getattr(lib, name)(x, axis=0, **how), x, orders=0)  # noqa: B023
    same("fft", lambda lib, x: getattr(lib, name + "n")(x, kind, norm=norm), x, orders=1)


@pytest.mark.parametrize("how", [{}, {"n": 7, "norm": "ortho"}, {"axis": 0, "workers": 1}])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_fourier_transforms(name, how):
    same("fft", lambda lib, x: getattr(lib, name)(x, **how), rng.standard_normal((3, 5)), orders=1)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_fourier_transforms_of_several_dimensions(name):
    x = rng.standard_normal((3, 4))
    same("fft", lambda lib, x: getattr(lib, name + "2")(x, (2, 5)), x, orders=1)
    same("fft", lambda lib, x: getattr(lib, name + "n")(x, axes=(1, 0)), x, orders=1)
    for shift in ("fftshift", "ifftshift"):
        same("fft", lambda lib, x: getattr(lib, shift)(x, axes=0), x)  # noqa: B023


SHAPES = [
    ((6,), (3,)), ((3,), (6,)), ((4, 5), (2, 3)), ((2, 3), (4, 5)), ((3, 4, 3), (2, 2, 1)),
    ((17,), (16,)), ((5, 7), (4, 4)),  # by a convolution
]  # fmt: skip


@pytest.mark.parametrize("method", ["auto", "direct", "fft"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolution(name, mode, method):
    for a, b in [*SHAPES, ((), ())]:
        x, y = rng.standard_normal(a), rng.standard_normal(b)

        def call(lib, x, y):
            return getattr(lib, name)(x, y, mode, method)

        same("signal", call, x, y, orders=2 if len(a) < 2 else 0)
        if a:
            same("signal", call, x * (1 + 1j), y - 1j, orders=0)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution_along_some_axes(mode):
    x, y = rng.standard_normal((3, 5)), rng.standard_normal((3, 2))
    same("signal", lambda lib, x, y: lib.fftconvolve(x, y, mode, axes=1), x, y)
    long = rng.standard_normal(700)
    same("signal", lambda lib, x, y: lib.convolve(x, y, mode), long, long[:300], orders=0)


def test_special_functions():
    same("special", lambda lib, x: lib.softmax(x), W)
    same("special", lambda lib, x: lib.log_softmax(x, axis=1), W)
    same("special", lambda lib, x: lib.logsumexp(x, axis=1, keepdims=True), W)
    same("special", lambda lib, x: lib.gamma(x), abs(V) + 1)
    same("special", lambda lib, x: lib.erf(x), V)


def test_of_arrays_they_are_scipys():
    assert type(tg.scipy.linalg.expm(np.eye(2))) is np.ndarray
    assert tg.scipy.linalg.hilbert is scipy.linalg.hilbert
    assert type(tg.grad(lambda a: np.trace(tg.scipy.linalg.expm(a)))(np.eye(2))) is np.ndarray


def test_under_transforms():
    def f(a):
        return np.sum(tg.scipy.fft.dct(tg.scipy.linalg.cho_solve(
            tg.scipy.linalg.cho_factor(a @ a.T + np.eye(3)), V
        )) ** 2)  # fmt: skip

    slope = tg.grad(f)(G)
    np.testing.assert_allclose(tg.jit(tg.grad(f))(G), slope, rtol=1e-9)
    np.testing.assert_allclose(tg.vmap(tg.grad(f))(np.stack([G, G]))[1], slope, rtol=1e-12)
    np.testing.assert_allclose(tg.jvp(f, (G,), (G,))[1], np.sum(slope * G), rtol=1e-12)


@pytest.mark.parametrize("method", ["direct", "bilinear"])
def test_lyapunov_equations_in_single_precision(method):
    a, q = G.astype(np.float32) / 9, P.astype(np.float32)
    solve = lambda a, q: tg.scipy.linalg.solve_discrete_lyapunov(a, q, method)
    found = np.asarray(solve(tg.tensor(a), tg.tensor(q)))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, solve(G / 9, P), rtol=1e-4)
    slopes = tg.grad(lambda a, q: np.sum(solve(a, q)), (0, 1))(a, q)
    assert [s.dtype for s in slopes] == [np.float32, np.float32]


def test_what_is_not_there_is_refused():
    t = tg.tensor(G, requires_grad=True)
    for call, error, words in [
        (lambda: tg.scipy.linalg.solve_triangular(t, V, trans="X"), ValueError, "'T' or 'C'"),
        (lambda: tg.scipy.linalg.lu_solve((t, [0, 1, 2]), V, trans=3), ValueError, "0, 1 or 2"),
        (lambda: tg.scipy.linalg.qr(t, pivoting=True), ValueError, "without pivoting"),
        (lambda: tg.scipy.linalg.eigh(t, subset_by_value=[0, 1]), TypeError, "use `subset_by_in"),
        (lambda: tg.scipy.linalg.eigh(t, subset_by_index=[0, 3]), ValueError, r"of 3, got \[0, 3"),
        (lambda: tg.scipy.linalg.eigh(t, t, type=4), ValueError, "1, 2 or 3, got 4"),
        (lambda: tg.scipy.linalg.solve_discrete_lyapunov(t, G, "x"), ValueError, "'bilinear'"),
        (lambda: tg.scipy.linalg.solve_discrete_are(t, G, G, G, e=G), TypeError, "no `e` and no"),
        (lambda: tg.scipy.linalg.polar(t, "top"), ValueError, "'right' or 'left', got 'top'"),
        (lambda: tg.scipy.linalg.polar(t * 1j), NotImplementedError, "real matrices"),
        (lambda: tg.scipy.linalg.toeplitz(t), ValueError, r"takes vectors, got \(3, 3\)"),
        (lambda: tg.scipy.fft.dct(t, type=5), ValueError, "no type 5"),
        (lambda: tg.scipy.signal.convolve(t, V), ValueError, "as many dimensions"),
        (lambda: tg.scipy.signal.convolve(t, t, mode="whole"), ValueError, "no mode 'whole'"),
        (
            lambda: tg.scipy.signal.convolve(t[:1], t[:, :1], mode="valid"),
            ValueError, "at least as long",
        ),
        (lambda: tg.scipy.linalg.schur(t), RuntimeError, r"scipy\.linalg\.schur"),
        (lambda: scipy.linalg.toeplitz(t[0]), RuntimeError, r"`tapegrad\.scipy\.linalg\.toeplitz`"),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            call()


def test_what_only_says_how_is_taken():
    b = rng.standard_normal(4)
    bands = rng.standard_normal((3, 4)) + 3 * np.array([[0.0], [1.0], [0.0]])
    how = {"overwrite_ab": True, "overwrite_b": True, "check_finite": False}
    same(
        "linalg", lambda lib, ab, b: lib.solve_banded((1, 1), ab.copy(), b.copy(), **how), bands, b
    )


def test_logarithms_of_matrices():
    near = np.array([[1.304, -0.0593, -0.1319], [0.2212, 0.9925, -0.0551], [0.0328, 0.1267, 1.149]])
    same("linalg", lambda lib, a: lib.logm(a), near)
    single = tg.scipy.linalg.logm(tg.tensor(near.astype(np.float32)))
    assert single.dtype == tg.float32
    np.testing.assert_allclose(single, scipy.linalg.logm(near), rtol=1e-5, atol=1e-6)
    for name, a in (("sqrtm", np.diag([1.0, -4.0])), ("logm", Z)):  # SciPy's own
        found = getattr(tg.scipy.linalg, name)(a)
        np.testing.assert_array_equal(found, getattr(scipy.linalg, name)(a))


def test_logarithms_of_sums_with_a_sign():
    weights = np.array([1.0, -2.0, 0.5])
    call = lambda lib, x: lib.logsumexp(x, b=weights, return_sign=True)
    same("special", call, V)
    same("special", lambda lib, x: lib.logsumexp(x, axis=0, keepdims=True, return_sign=True), W)
