"""Complex numbers: their arithmetic, functions and arrays, as arguments and as results."""

import cmath
import math
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from tests.njit.cases import A1, A2, collected_in, name_of
from tests.njit.checking import check

pytestmark = pytest.mark.tapegrad_only("no other library has this")

CASES = []
case = collected_in(CASES)
Z1 = np.array([0.7 - 0.4j, -1.1 + 0.3j, 0.2 + 1.5j, -0.6 - 0.9j])
Z2 = np.outer(Z1, [1.0, 0.5j, -0.3 + 0.2j]) + 0.1
W = 0.8 - 0.3j


@case(0.7, -1.2)
@case(-0.7, 1.2)
def arithmetic(x, y):
    z = complex(x, y)
    w = z * z + (1 + 2j) * z / (z - 3) - -z * 2 + 1j * x - y / z
    w += z**3 - z**-2 + +z
    w *= 0.5
    w -= 1
    w /= 1 + 1j
    return w.real * 2 + w.imag


@case(0.7, -1.2)
@case(-0.7, 1.2)
@case(-0.3, -0.2)
def functions_of_cmath(x, y):
    z = complex(x, y)
    size, angle = cmath.polar(z)
    s = cmath.exp(z) + cmath.log(z) * cmath.log10(z) + cmath.sqrt(z) + cmath.rect(x, y)
    s += cmath.sin(z) * cmath.cos(z) + cmath.tan(z) + cmath.sinh(z) * cmath.cosh(z) + cmath.tanh(z)
    return s.real + 3 * s.imag + size * angle + cmath.phase(s) + abs(s) * 0.1


@case(0.7, -1.2)
@case(-0.7, 1.2)
def functions_of_numpy(x, y):
    z = x + 1j * y
    s = np.exp(z) + np.log(z) * np.log2(z) + np.sqrt(z) + np.square(z) * np.reciprocal(z)
    s += np.conj(z) * np.sign(z) + np.power(z, 1.5) + np.power(z, z) - np.negative(np.positive(z))
    s += np.log10(z) + np.tan(z) + np.tanh(z) + np.sin(z) / np.cosh(z)
    return np.abs(s) + np.angle(s) + np.real(s) * np.imag(s)


@case(3.0, 2.0)
def powers(x, y):
    z = complex(x, y)
    w = z**2.5 + z ** (0.3 + 0.1j) + 2.0**z + z**7 + pow(z, 3)
    return abs(w) + (w**0).real


@case(0.4, 30.0)
@case(-0.4, 800.0)
def far_from_zero(x, y):
    return abs(cmath.tanh(complex(y, x)) + cmath.tan(complex(x, y)) * x)


@case(2.0)
def comparisons(x):
    z, s = complex(x, 0.0), 0.0
    if z == x and z != 1j and z:
        s += x * x
    if np.isnan(z) or cmath.isinf(z) or not np.isfinite(z):
        s += 100.0
    return 0.0 if z == 0 else s


@case(0.4)
def one_or_the_other(x):
    z = 0j if x > 1 else complex(x, x)
    w = z
    if x > 0.2:
        w = w.conjugate() * 1j
    for k in range(3):
        w = w * z + k
    return w.imag


@case(A1)
def transform(x):
    """Fourier's, as it is defined."""
    n = len(x)
    z = np.zeros(n, np.complex128)
    for k in range(n):
        for j in range(n):
            z[k] += x[j] * np.exp(-2j * math.pi * k * j / n)
    s = 0.0
    for k in range(n):
        s += k * abs(z[k]) ** 2
    return s


@case(A1)
def in_place(x):
    """Arrays that are written over, swapped, and read backwards."""
    n = len(x)
    z = x.astype(np.complex128)
    w = np.empty_like(z)
    for step in range(3):
        for i in range(n):
            w[i] = z[i - 1] * (1 + 0.1j * step) - z[i] / 2
        z, w = w, z
        z[0], z[-1] = z[-1], z[0].conjugate()
        z[1:3] *= 1j
        z[::2] += x[::2]
    return np.sum(np.abs(z)) + np.dot(z, w).imag


@case(A2)
def arrays(a):
    z = a * np.exp(1j * a) + 2
    y = np.abs(z) + z.real - z.imag * np.conj(z).imag + np.real(z * z) * np.angle(z)
    w = np.where(y > 1, z, 0.5j * z)
    row = np.array([z[0, 0], w[1, 1], 1j]) + np.full(3, 0.1j) + np.ones(3, np.complex128)
    s = np.sum(y) + abs(np.sum(w)) + abs(np.mean(z)) + abs(np.prod(row))
    return s + np.linalg.norm(z) + np.var(w) + np.std(z) + abs(np.trace(z[:2, :2]))


@case(A2)
def matrices(a):
    z = a + 1j * a[::-1]
    square = z @ np.ascontiguousarray(z.T) + 3 * np.eye(a.shape[0])
    x = np.linalg.solve(square, z[:, 0].copy())
    inverse = np.linalg.inv(square)
    s = abs(np.linalg.det(square)) + np.sum(np.abs(x)) + abs(np.vdot(x, x * 1j)) + abs(x @ x)
    return s + np.sum(inverse.real) + abs(np.dot(z, z[0].copy())[0]) + abs(np.cumsum(x)[-1])


@case(A1)
def parts_are_views(x):
    z = np.zeros(len(x), np.complex128)
    z.real[:] = x
    for i in range(len(x)):
        z.imag[i] = x[i] * x[i]
    part = z.imag[1:]
    part *= 2.0
    return abs(np.sum(z * z))


@case(A1)
def loops_over_arrays(x):
    z = x[:4] + 1j
    s = 0j
    for k, v in enumerate(z):
        s += v**2 * k
    for v, w in zip(z, z[::-1]):
        s += v * w.conjugate()
    for v in z.reshape(2, 2).flat:
        s *= v
    for row in z.reshape(2, 2):
        s += row[0] * row[1]
    return s.real + s.imag


class Pair(NamedTuple):
    first: complex
    second: float


@njit
def helper(pair, z):
    z[0] = pair.first
    return Pair(pair.first * z[1], abs(z[2])), z[1:] * 2


@case(A1)
def tuples_and_calls(x):
    z = x * (1 + 0.5j)
    pair, rest = helper(Pair(z[0] * z[1], x[0]), z)
    first, second = pair
    return (first * second).imag + abs(rest[0] + z[0])


@case(Z1, W)
def arguments(z, w):
    s = 0.0
    for i in range(len(z)):
        s += abs(z[i] * w - np.exp(z[i])) ** 2 + (z[i] / w).real
    return s


@case(Z2)
def matrices_as_arguments(z):
    product = np.ascontiguousarray(z.T) @ z[:, 1].copy()
    return np.sum(np.abs(product)) + np.sum(z.imag[1:, ::2] ** 2)


@case((W, Z1), 0.3)
def parts_of_tuples(pair, x):
    w, z = pair
    return (w * np.sum(z) * x).imag + abs(w) ** 2


@case(Z1.astype(np.complex64), np.float32(0.7), differences=False, tolerance=1e-4)
def of_single_precision(z, x):
    w = z * x + np.complex64(1j)
    return np.abs(w * w).sum() + (z[0] / w[1]).real


@pytest.mark.parametrize(("f", "args", "options"), CASES, ids=name_of)
def test_construct(f, args, options):
    check(f, args, **options)


@pytest.mark.parametrize("x", [0.0, 1.0])
def test_sizes_and_angles_of_zero_have_no_slope(x):
    @njit
    def sizes(x):
        z = complex(x - x, x * 0.0)
        return abs(z) + cmath.phase(z) + np.angle(z) + x

    assert tg.grad(sizes)(x) == 1.0


def test_roots_beside_the_cut():
    root = njit(lambda y, side: cmath.sqrt(complex(-4.0, side * y)).real)
    assert tg.grad(root)(0.0, 1.0) == 0.25  # i / (2 * 2i)
    assert tg.grad(njit(lambda x: cmath.sqrt(complex(x, 0.0)).imag))(-4.0) == -0.25


def test_division_by_zero_raises_as_in_numba():
    quotient = njit(lambda x: (1 / complex(x, 0.0)).real)
    with pytest.raises(ZeroDivisionError):
        tg.grad(quotient)(0.0)
    assert tg.grad(quotient)(2.0) == -0.25


def test_gradients_are_those_of_the_parts():
    """dL/dx + i dL/dy, as of Tensors."""
    gradient = tg.grad(njit(lambda z: abs(z) ** 4))
    assert gradient(1 + 2j) == pytest.approx(4 * 5 * (1 + 2j))
    assert type(gradient(1 + 2j)) is complex
    assert type(gradient(np.complex64(1j))) is np.complex64
    assert tg.hvp(njit(lambda z: abs(z) ** 4))(1 + 2j, 1j) == pytest.approx(16 + 52j)
    value, (dz, dw) = tg.value_and_grad(njit(arguments), (0, 1))(Z1, W)
    tensors = tg.tensor(Z1, requires_grad=True), tg.tensor(W, requires_grad=True)
    z, w = tensors
    expected = ((z * w - z.exp()).abs() ** 2 + (z / w).real).sum()
    expected.backward()
    assert value == pytest.approx(expected.item())
    np.testing.assert_allclose(dz, z.grad.numpy())
    np.testing.assert_allclose(dw, w.grad.numpy())


@njit
def outputs(z, x):
    return z * x + np.exp(z) * 1j, z[0] * x[1]


def test_jvp_and_vjp_of_complex_results():
    x, rng = np.arange(1.0, 5.0), np.random.default_rng(0)
    dz, dx = rng.normal(size=4) + 1j * rng.normal(size=4), rng.normal(size=4)
    values, moved = tg.jvp(outputs, (Z1, x), (dz, dx))
    step = 1e-6
    near = zip(outputs(Z1 + step * dz, x + step * dx), outputs(Z1 - step * dz, x - step * dx))
    for t, (after, before) in zip(moved, near):
        np.testing.assert_allclose(t, (after - before) / (2 * step), rtol=1e-8)
    weights = rng.normal(size=4) + 1j * rng.normal(size=4), 0.3 - 2j
    pulled, pull = tg.vjp(outputs, Z1, x)
    gz, gx = pull(weights)
    np.testing.assert_equal(pulled, values)
    along = sum(np.sum(np.conj(w) * t).real for w, t in zip(weights, moved))
    assert np.sum(np.conj(gz) * dz).real + gx @ dx == pytest.approx(along)
    assert gz.dtype == complex
    assert gx.dtype == float


def test_jacobians_of_complex_results_in_real_arguments():
    turned, x = njit(lambda x: x * np.exp(1j * x)), np.array([0.3, -1.2, 2.0])
    expected = np.diag(np.exp(1j * x) * (1 + 1j * x))
    for transform in (tg.jacobian, tg.jacfwd, tg.jacrev):
        np.testing.assert_allclose(transform(turned)(x), expected)
    for transform in (tg.jacobian, tg.hessian):
        with pytest.raises(NotImplementedError, match="no matrix of complex derivatives"):
            transform(njit(lambda z: abs(z)))(W)
    with pytest.raises(TypeError, match="must return a floating-point scalar, got complex128"):
        tg.grad(njit(lambda z: z * z))(W)


def test_calls_with_tensors():
    x = tg.tensor(np.arange(1.0, 5.0), requires_grad=True)
    z = tg.tensor(Z1, requires_grad=True)
    assert tg.autograd.gradcheck(outputs, (z, x))
    assert tg.autograd.gradgradcheck(outputs, (z, x))

    def loss(z, x, f=outputs):
        many, one = f(z, x)
        return (many * tg.conj(many)).real.sum() + (one * one).imag

    def plainly(z, x):
        return loss(z, x, lambda z, x: (z * x + tg.exp(z) * 1j, z[0] * x[1]))

    expected = tg.grad(plainly, (0, 1))(z, x)
    for gradient in (tg.grad(loss, (0, 1)), tg.jit(tg.grad(loss, (0, 1)))):
        for g, e in zip(gradient(z, x), expected):
            np.testing.assert_allclose(g.detach().numpy(), e.detach().numpy())


def test_nopython_calls():
    plain = njit(arguments)
    gradient = tg.value_and_grad(plain, (0, 1))

    @njit
    def step(z, w):
        value, (dz, dw) = gradient.njit(z, w)
        return value, z - 0.1 * dz, w - 0.1 * dw

    value, (dz, dw) = gradient(Z1, W)
    found = step(Z1, W)
    assert found[0] == value
    np.testing.assert_array_equal(found[1], Z1 - 0.1 * dz)
    assert found[2] == W - 0.1 * dw
    narrow = step(Z1.astype(np.complex64), np.complex64(W))
    np.testing.assert_allclose(narrow[1], found[1], rtol=1e-5)
    constant = tg.grad(plain_weighted)
    inside = njit(lambda x: constant.njit(x, Z1, W))
    np.testing.assert_array_equal(inside(Z1.real), constant(Z1.real, Z1, W))


@njit
def plain_weighted(x, z, w):
    """Complex arguments that nobody differentiates in."""
    return abs(np.sum(x * z) * w)


def test_threads_and_vectors():
    @njit(parallel=True)
    def sums(x, z):
        total = 0.0
        for i in numba.prange(len(x)):
            w = z[i]
            for _ in range(5):
                w = w * w * 0.3 + x[i]
            total += abs(w)
        return total

    rng = np.random.default_rng(1)
    x, z = rng.normal(size=500) * 0.3, rng.normal(size=500) * (0.2 + 0.1j)
    check(sums, (x, z))


def test_long_loops_with_checkpoints():
    @njit
    def rotate(z, w, steps):
        z = z.copy()
        for _ in range(steps):
            for i in range(len(z)):
                z[i] = z[i] * w + 0.01 * z[i - 1] * z[i].conjugate()
        return abs(np.sum(z))

    turn = np.exp(0.01j) * 0.99
    whole = tg.grad(rotate, (0, 1))(Z1, turn, 2000)
    segments = tg.grad(rotate, (0, 1), max_memory=20_000)(Z1, turn, 2000)
    for g, e in zip(segments, whole):
        np.testing.assert_allclose(g, e)


def test_what_is_left_to_numba_takes_and_gives_complex_numbers():
    @njit
    def f(x, table, z):
        table["turn"] = z * 1j
        roots = np.linalg.eigvals(np.array([[0j, 1 + 0j], [-1 + 0j, 0j]]))
        return x * (table["turn"].real + abs(roots[0]) + np.arcsinh(z).imag)

    table = numba.typed.Dict.empty(numba.types.unicode_type, numba.types.complex128)
    expected = -2.0 + 1.0 + np.arcsinh(1 + 2j).imag
    assert tg.grad(f)(3.0, table, 1 + 2j) == pytest.approx(expected)
    with pytest.raises(NotImplementedError, match="arcsinh"):
        tg.grad(njit(lambda x: np.arcsinh(complex(x, 1.0)).real))(2.0)
