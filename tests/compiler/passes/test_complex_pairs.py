"""Operations on complex numbers become operations on their parts, with NumPy's results."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.complex_forms import FORMS
from tapegrad.ops.core import table

pytestmark = pytest.mark.tapegrad_only("how programs are compiled")

RNG = np.random.default_rng(3)
SIGNED = [1.0, -1.0, 1j, -1j, 1 + 2j, -2 + 0.5j, -0.3 - 2j, 2 - 1j]
ZEROS = [0.0, complex(-0.0, 0.0), complex(0.0, -0.0), complex(-0.0, -0.0)]


def numbers(*shape, dtype=complex):
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


def names(f, *args):
    return {node.name for node in tg.jit(f).lower(*args).graph.nodes}


def complex_work(f, *args):
    """The operations of a program that compute with complex numbers."""
    return {
        node.name for node in tg.jit(f).lower(*args).graph.nodes
        if node.dtype.kind == "c" and node.op is not None
    } - {"complex"}  # fmt: skip


UNARY = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "exp2": np.exp2, "expm1": np.expm1,
    "log1p": np.log1p, "rint": np.rint, "tan": np.tan,
    "abs": np.abs, "angle": np.angle, "conj": np.conj, "cos": np.cos, "cosh": np.cosh,
    "exp": np.exp, "log": np.log, "log10": np.log10, "log2": np.log2, "reciprocal": np.reciprocal,
    "sgn": np.sign, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square,
    "tanh": np.tanh,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("name", UNARY)
def test_functions_are_numpys(name, dtype):
    z = np.concatenate([SIGNED, numbers(20)]).astype(dtype)
    if name not in ("reciprocal", "log", "log2", "log10"):
        z = np.concatenate([z, np.array(ZEROS, dtype)])
    if name in ("log1p", "atan", "atanh"):  # poles
        z = z[(np.abs(z) != 1) | (np.abs(z.real * z.imag) > 0)]
    f = UNARY[name]
    found = np.asarray(tg.jit(f)(z))
    wanted = f(z)
    assert found.dtype == wanted.dtype
    rtol = 1e-13 if dtype == np.complex128 else 3e-6
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)
    for part in ("real", "imag"):  # on a cut the sign of a zero tells the side
        got, want = getattr(found, part), getattr(wanted, part)
        large = np.abs(want) > 1e-6
        np.testing.assert_array_equal(np.sign(got[large]), np.sign(want[large]))
    assert not complex_work(f, z)


@pytest.mark.parametrize("z", [complex(-4.0, 0.0), complex(-4.0, -0.0)])
def test_roots_and_logarithms_tell_the_sides_of_their_cut(z):
    x = np.array([z])
    for f in (np.sqrt, np.log, np.angle):
        np.testing.assert_allclose(tg.jit(f)(x), f(x), rtol=1e-15)


SIDES = [0.0, -0.0, 1e-9, 0.3, 1.0, 1 - 1e-9, 1 + 1e-9, 2.0, 30.0]
ON_CUTS = np.array([complex(s * a, t * b) for a in SIDES for b in SIDES for s in (1, -1)
                    for t in (1, -1)])  # fmt: skip
FAR = [1 + 400j, 400 + 1j, 1e8 + 1e8j, 1e150 + 1e10j, 1e-200 + 1e-100j]
WITH_CUTS = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "expm1", "log1p", "tan", "tanh"]


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("name", WITH_CUTS)
def test_cuts_and_large_numbers(name, dtype):
    z = np.concatenate([ON_CUTS, *([FAR] * (dtype == np.complex128))]).astype(dtype)
    f = UNARY[name]
    with np.errstate(all="ignore"):
        wanted = f(z)
    found = tg.jit(f)(z)
    units = 6 * np.finfo(dtype).eps
    for part in ("real", "imag"):
        got, want = getattr(found, part), getattr(wanted, part)
        some = np.isfinite(want)
        np.testing.assert_array_equal(np.isfinite(got), some)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
        got, want = got[some], want[some]
        # In `expm1` a part is the difference of numbers that are as large as the other one.
        sizes = np.abs(wanted[some] if name == "expm1" else want)
        assert (np.abs(got - want) <= units * sizes).all()


COMPOUND = {
    "sigmoid": tg.sigmoid,
    "silu": tg.nn.functional.silu,
    "rsqrt": tg.rsqrt,
    "lerp": lambda z: tg.lerp(z, z * z, 0.3 + 0j),
    "addcmul": lambda z: tg.addcmul(z, z * 2, z),
    "addcdiv": lambda z: tg.addcdiv(z, z * 2, z + 3),
    "cube": lambda z: tg.pow(z, 3),
    "prod": lambda z: tg.prod(z, 0),
    "prod with a zero": lambda z: tg.prod(z * np.array([1, 1, 0, 1, 1])[:, None], 0),
    "cumprod": lambda z: tg.cumprod(z, 0),
    "cumprod along rows": lambda z: tg.cumprod(z, 1),
    "variance": lambda z: tg.var(z, 0),
    "deviation": lambda z: tg.std(z, 0),
    "norm": lambda z: tg.linalg.norm(z, dim=1),
    "inverse sines": lambda z: tg.asin(z) * tg.atanh(z),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOUND)
def test_values_and_derivatives(name):
    f, z = COMPOUND[name], 0.7 * numbers(5, 3)
    slope = tg.grad(lambda z: (tg.abs(f(tg.as_tensor(z))) ** 2).sum())
    curved = lambda z: tg.jvp(slope, (z,), (z[::-1].copy(),))[1]
    for g in (lambda z: f(tg.as_tensor(z)), slope, curved):
        jitted = tg.jit(g)
        np.testing.assert_allclose(jitted(z), g(z), rtol=1e-9, atol=1e-12)
        assert not jitted.lower(z).callbacks


TRUTHS = {
    "isnan": tg.isnan, "isfinite": tg.isfinite, "isinf": tg.isinf, "any": lambda z: tg.any(z, 0),
    "and": lambda z: tg.logical_and(z, z - 1), "count": lambda z: tg.count_nonzero(z, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUTHS)
def test_truths(name):
    z = np.array([0j, 1.0, 1j, complex(np.nan, 0), complex(0, np.inf), 1.7e308 + 1.7e308j])
    f, jitted = TRUTHS[name], tg.jit(TRUTHS[name])
    np.testing.assert_array_equal(jitted(z), f(tg.tensor(z)).numpy())
    assert not jitted.lower(z).callbacks


@pytest.mark.parametrize("exponent", [2, 3, -1, -2, 0.5, 1.5 - 0.5j])
def test_powers(exponent):
    z = np.concatenate([SIGNED, numbers(20)])
    np.testing.assert_allclose(tg.jit(lambda z: z**exponent)(z), z**exponent, rtol=1e-12)
    slope = tg.grad(lambda z: np.sum(np.abs(z**exponent)))
    np.testing.assert_allclose(tg.jit(slope)(z), slope(z), rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_powers_keep_single_precision(shape):
    z, w = numbers(*shape, dtype=np.complex64), numbers(*shape, dtype=np.complex64)
    found = tg.jit(lambda z, w: z**w)(z, w)
    assert np.asarray(found).dtype == np.complex64
    np.testing.assert_allclose(found, z**w, rtol=1e-5)
    slope = tg.grad(lambda z, w: np.sum(np.abs(z**w + z**2)), argnums=(0, 1))
    for got, want in zip(tg.jit(slope)(z, w), slope(z, w), strict=True):
        assert np.asarray(got).dtype == np.complex64
        np.testing.assert_allclose(got, want, rtol=1e-4)


@pytest.mark.parametrize("value", [0.5, 0.5j])
def test_an_index_into_one_place(value):
    def f(z, w):
        y = z * 1.0
        y[np.array([0])] = w
        return np.sum(np.abs(y[np.array([0, -1])] - 0.3) ** 2)

    z, slope = numbers(1), tg.grad(f, argnums=(0, 1))
    for found, wanted in zip(tg.jit(slope)(z, value), slope(z, value), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_powers_of_zero():
    z, w = np.array([0, 0, 0, 0j, 0]), np.array([0, 2, 0.5, 1 + 0j, -1])
    with np.errstate(all="ignore"):
        wanted = z**w
    np.testing.assert_allclose(tg.jit(lambda z, w: z**w)(z, w), wanted)


@pytest.mark.parametrize(
    "f",
    [np.add, np.subtract, np.multiply, np.divide, lambda a, b: a == b, lambda a, b: a @ b,
     lambda a, b: np.einsum("ij,kj->ik", a, b), lambda a, b: np.where(np.abs(a) > 1, a, b),
     lambda a, b: np.concatenate([a, b]), lambda a, b: np.stack([a, b * 2], 1)],
)  # fmt: skip
@pytest.mark.parametrize("kinds", ["cc", "cr", "rc"])
def test_pairs_meet_real_numbers(f, kinds):
    a, b = (numbers(3, 3) if kind == "c" else RNG.normal(size=(3, 3)) for kind in kinds)
    np.testing.assert_allclose(tg.jit(f)(a, b), f(a, b), rtol=1e-13)

    def total(a, b):
        return np.sum(np.abs(f(a, b) + 0j) ** 2)

    for k in range(2):
        slope = tg.grad(total, argnums=k)
        np.testing.assert_allclose(tg.jit(slope)(a, b), slope(a, b), rtol=1e-12)


def test_division_neither_overflows_nor_hides_a_zero():
    a = np.array([1e300 + 1e300j, 1 + 1j, 1j, 0j])
    b = np.array([1e300 - 1e300j, 1e-300 + 1e-300j, 0j, 0j])
    with np.errstate(all="ignore"):
        wanted = a / b
    found = tg.jit(np.divide)(a, b)
    np.testing.assert_allclose(found[:2], wanted[:2], rtol=1e-14)
    assert not np.isfinite(found[2:]).any()


def test_what_a_zero_adjoint_meets_stays_zero():
    z = np.array([0j, 1 + 1j, 2.0])

    def f(z):
        return np.sum(np.where(np.abs(z) > 0.5, np.abs(np.log(z)), 0.0))

    with np.errstate(all="ignore"):
        found, wanted = tg.jit(tg.grad(f))(z), tg.grad(f)(z)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)
    assert found[0] == 0


def test_what_has_no_form_is_left_to_python_between():
    z = numbers(8)

    def f(z):
        return np.sum(np.abs(np.sinc(np.exp(z) * z) / (2 + z)) ** 2)

    np.testing.assert_allclose(tg.jit(tg.grad(f))(z), tg.grad(f)(z), rtol=1e-12)
    assert set(tg.jit(tg.grad(f)).lower(z).callbacks) == {"sinc of pairs"}


OTHERS = {
    "arcsinh": np.arcsinh, "arctan": np.arctan, "cumprod": np.cumprod, "expm1": np.expm1,
    "inv": np.linalg.inv, "log1p": np.log1p, "prod": np.prod, "sinc": np.sinc,
    "solve": lambda z: np.linalg.solve(z, z[0]), "svd": lambda z: np.linalg.svd(z)[1],
    "tan": np.tan,
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_python_is_given_the_numbers_of_the_pairs(name):
    z, f = numbers(3, 3), OTHERS[name]
    np.testing.assert_allclose(tg.jit(f)(z), f(z), rtol=1e-12)
    slope = tg.grad(lambda z: np.sum(np.abs(f(2 * z)) ** 2))
    np.testing.assert_allclose(tg.jit(slope)(z), slope(z), rtol=1e-9)


def test_comparisons_and_truth():
    z, w = np.array([1 + 1j, 0, 2j]), np.array([1 + 1j, 1, 2])
    found = tg.jit(lambda z, w: (z == w, z != w, z.astype(bool)))(z, w)
    for got, wanted in zip(found, (z == w, z != w, z.astype(bool)), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_what_is_only_moved_stays_whole():
    z = numbers(4, 3)
    moved = names(lambda z: np.fft.fft(z.T.reshape(-1)[::2]), z)
    assert "view_as_real" not in moved
    assert "complex" not in moved


@pytest.mark.parametrize("steps", [3, 40])
def test_loops_carry_complex_numbers(steps):
    w = numbers(4)

    def written(w):
        z = w
        for _ in range(steps):
            z = z * np.exp(0.1j * w) + 0.01 / (1 + np.abs(z))
        return np.sum(np.abs(z) ** 2)

    def looped(w):
        def body(_, z):
            return z * np.exp(0.1j * w) + 0.01 / (1 + np.abs(z))

        return np.sum(np.abs(tg.fori_loop(0, steps, body, w)) ** 2)

    for f in (written, looped):
        np.testing.assert_allclose(tg.jit(f)(w), written(w), rtol=1e-12)
        np.testing.assert_allclose(tg.jit(tg.grad(f))(w), tg.grad(written)(w), rtol=1e-11)


def test_branches_and_second_derivatives():
    z = numbers(3)

    def f(x):
        u = z * np.exp(1j * x)
        v = tg.cond(np.sum(x) > 0, lambda u: u * u, lambda u: 1 / u, u)
        return np.sum(np.abs(v - z) ** 2)

    for x in (np.array([0.1, 0.4, 0.2]), np.array([-0.1, -0.4, 0.2])):
        np.testing.assert_allclose(
            tg.jit(tg.hessian(f))(x), tg.hessian(f)(x), rtol=1e-10, atol=1e-12
        )
        np.testing.assert_allclose(
            tg.jit(lambda x: tg.jvp(f, (x,), (x,)))(x)[1], tg.jvp(f, (x,), (x,))[1], rtol=1e-12
        )


def test_maps_over_complex_numbers():
    z = numbers(5, 3)

    def f(z):
        return np.sum(np.abs(np.exp(z) @ np.conj(z)))

    each = tg.vmap(tg.grad(f))
    np.testing.assert_allclose(tg.jit(each)(z), each(z), rtol=1e-12)


def test_every_form_is_of_an_operation():
    assert set(FORMS) <= set(table)


def test_programs_of_complex_arguments_and_results_call_no_python():
    z, w = numbers(4, 4), numbers(4)

    def f(z, w):
        y = np.einsum("ij,j->i", np.exp(1j * z) / (1 + np.abs(z)), np.conj(w))
        return np.vdot(y, w) + np.sum(z[1:] * w)

    def slopes(z, w):
        return tg.grad(lambda z, w: np.abs(f(z, w)), argnums=(0, 1))(z, w), f(z, w), z.T

    compiled = tg.jit(slopes)
    assert compiled.lower(z, w).callbacks == ()
    for got, wanted in zip(
        [*compiled(z, w)[0], *compiled(z, w)[1:]],
        [*slopes(z, w)[0], *slopes(z, w)[1:]],
        strict=True,
    ):
        assert got.dtype == complex
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    assert z.flags.c_contiguous
    np.testing.assert_allclose(compiled(z[:, ::-1].T, w)[2], z[:, ::-1])  # other strides


def test_arguments_without_elements():
    z = numbers(0, 3)
    f = tg.jit(lambda z: np.exp(z) * z)
    assert f(z).shape == (0, 3)
    assert f(z).dtype == complex


@pytest.mark.parametrize("shapes", [((2, 3), ()), ((), (3,)), ((2, 1), (1, 3))])
def test_parts_are_broadcast(shapes):
    a, b = (tg.tensor(RNG.normal(size=shape)) for shape in shapes)

    def f(a, b):
        return tg.abs(tg.complex(a, b * b)).sum()

    assert not complex_work(f, a, b)
    np.testing.assert_allclose(tg.jit(f)(a, b), f(a, b))
    for found, wanted in zip(tg.jit(tg.grad(f, (0, 1)))(a, b), tg.grad(f, (0, 1))(a, b)):
        np.testing.assert_allclose(found, wanted)
