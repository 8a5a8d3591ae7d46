"""`vmath.single`: error in units of the last place of float32, special values, vectorisation."""

import numpy as np
import pytest
import scipy.special as sp

from tapegrad.kernels.vmath import single
from tests.kernels.vmath.test_vmath import INF, NAN, compile_loop, run


def logistic(x):
    return 1.0 / (1.0 + np.exp(-x))


def odd_erfinv(x):
    return np.copysign(sp.erfinv(x), x)  # SciPy's of -0 is 0


def soft(x):
    return np.logaddexp(0.0, x)


# Of each function the same in float64, where its arguments lie, and the error.
UNARY = {
    "exp": (np.exp, -103.0, 88.7, 1.1),
    "exp2": (np.exp2, -149.0, 127.9, 1.0),
    "expm1": (np.expm1, -20.0, 88.7, 1.5),
    "sinh": (np.sinh, -89.3, 89.3, 1.8),
    "cosh": (np.cosh, -89.3, 89.3, 1.6),
    "tanh": (np.tanh, -12.0, 12.0, 1.5),
    "sigmoid": (logistic, -87.0, 30.0, 2.5),
    "softplus": (soft, -87.0, 90.0, 1.8),
    "log": (np.log, 0.0, 3e38, 1.0),
    "log2": (np.log2, 0.0, 3e38, 1.4),
    "log10": (np.log10, 0.0, 3e38, 1.2),
    "log1p": (np.log1p, -0.99999994, 3e38, 1.6),
    "sin": (np.sin, -(2.0**19), 2.0**19, 1.7),
    "cos": (np.cos, -(2.0**19), 2.0**19, 1.7),
    "tan": (np.tan, -(2.0**19), 2.0**19, 3.5),
    "asin": (np.arcsin, -1.0, 1.0, 1.9),
    "acos": (np.arccos, -1.0, 1.0, 1.4),
    "atan": (np.arctan, -1e6, 1e6, 2.2),
    "erf": (sp.erf, -5.0, 5.0, 1.3),
    "erfc": (sp.erfc, -5.0, 9.1, 5.5),
    "ndtr": (sp.ndtr, -12.8, 10.0, 5.5),
    "erfinv": (odd_erfinv, -0.99999994, 0.99999994, 4.5),
}
BINARY = {"power": (np.power, 1e-3, 60.0, 0.6), "atan2": (np.arctan2, -100.0, 100.0, 1.8)}
ENDS = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-45, -1e-45, 1e30, -1e30, INF, -INF, NAN], np.float32
)


@pytest.fixture(scope="module")
def loop():
    """The loop over a function, compiled once."""
    made = {}

    def kernel(name):
        if name not in made:
            made[name] = compile_loop(getattr(single, name), name in BINARY)
        return made[name]

    return kernel


def arguments(low, high, seed=9):
    """Numbers of an interval, evenly distributed there, about zero, and by their exponents."""
    rng = np.random.default_rng(seed)
    near = max(low, -4.0), min(high, 4.0)
    size = np.exp(rng.uniform(np.log(1e-40), np.log(max(-low, high)), 20_000))
    x = np.concatenate(
        [rng.uniform(low, high, 20_000), rng.uniform(*near, 20_000), size, -size]
    ).astype(np.float32)
    return x[(low < x) & (x < high)]


def worst(got, exact):
    """The largest error in units of the last place; of what is no normal number in those of one."""
    unit = np.spacing(np.maximum(np.abs(exact), 1.2e-38).astype(np.float32)).astype(np.float64)
    return np.max(np.abs(got.astype(np.float64) - exact) / unit)


@pytest.mark.parametrize("name", UNARY)
def test_the_error_is_of_some_units(name, loop):
    exact, low, high, bound = UNARY[name]
    x = arguments(low, high)
    assert worst(run(loop(name), x), exact(x.astype(np.float64))) <= bound


@pytest.mark.parametrize("name", BINARY)
def test_the_error_of_two_operands_is_of_some_units(name, loop):
    exact, low, high, bound = BINARY[name]
    x, y = arguments(low, high), arguments(-8.0, 8.0, seed=3)
    count = min(len(x), len(y))
    x, y = x[:count], np.random.default_rng(1).permutation(y)[:count]
    assert worst(run(loop(name), x, y), exact(x.astype(np.float64), y.astype(np.float64))) <= bound


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_ends_are_numpys(name, loop):
    arrays = [ENDS] if name in UNARY else [a.ravel() for a in np.meshgrid(ENDS, ENDS)]
    if name in ("sin", "cos", "tan"):
        arrays = [ENDS[np.abs(ENDS) <= 2.0**19]]  # beyond, and of NaN, the loop takes another form
    found = run(loop(name), *arrays)
    with np.errstate(all="ignore"):
        exact = (UNARY | BINARY)[name][0](*arrays).astype(np.float32)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
    whole = (exact == 0) | np.isinf(exact)
    np.testing.assert_array_equal(found[whole], exact[whole])
    np.testing.assert_array_equal(np.signbit(found[whole]), np.signbit(exact[whole]))
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-44)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_angles_are_computed_in_float64(name, loop):
    x = np.array([0.5, -(2.0**19), 2.0**20, -1e9, 1e22, INF, NAN], np.float32)
    found = run(loop(f"{name}_any"), x)
    with np.errstate(invalid="ignore"):
        exact = getattr(np, name)(x.astype(np.float64))
    np.testing.assert_allclose(found, exact, rtol=3e-7)
    assert run(loop("angle_is_large"), x).tolist() == [0, 0, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_the_loop_over_floats_is_vectorised(name, loop):
    kernel = loop(name)
    kernel(*[np.ones(3, np.float32)] * (3 if name in BINARY else 2))
    (signature,) = [s for s in kernel.signatures if s[0].dtype.name == "float32"]
    kind = "double" if name == "power" else "float"
    code = kernel.inspect_llvm(signature)
    assert f"x {kind}> @llvm.fma.v" in code, f"{name} is computed one element at a time"


def test_the_others_are_those_of_vmath():
    from tapegrad.kernels import vmath

    assert single.lgamma is vmath.lgamma
    assert {*single.__all__} <= {*vmath.__all__}
