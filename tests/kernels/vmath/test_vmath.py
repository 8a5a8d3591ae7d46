"""`vmath` against 40-digit arithmetic: error in ulp, special values, float32, vectorisation."""

import math
from collections.abc import Callable

import mpmath as mp
import numba
import numpy as np
import pytest

from tapegrad.kernels import vmath

INF, NAN, TINY, HUGE = math.inf, math.nan, 5e-324, 1.7976931348623157e308
mp.mp.dps = 40


def spread(rng, low, high, n):
    """n numbers of either sign with evenly distributed exponents."""
    return np.exp(rng.uniform(np.log(low), np.log(high), n)) * rng.choice([-1.0, 1.0], n)


def whole_line(rng, n):
    return np.concatenate([rng.uniform(-3, 3, n), spread(rng, 1e-320, 1.0, n // 4)])


def exponents(rng, n):
    return np.concatenate([rng.uniform(-745, 709.7, n), whole_line(rng, n)])


def past_exponents(rng, n):
    return np.concatenate([rng.uniform(-710.47, 710.47, n), whole_line(rng, n)])


def positive(rng, n):
    near_one = 1.0 + spread(rng, 1e-16, 0.1, n // 2)
    return np.concatenate([np.abs(spread(rng, 1e-323, 1e308, n)), rng.uniform(0.5, 2, n), near_one])


def above_minus_one(rng, n):
    near_pole = -1.0 + np.abs(spread(rng, 1e-16, 0.5, n // 2))
    return np.concatenate(
        [np.abs(spread(rng, 1e-320, 1e308, n)), whole_line(rng, n) / 3, near_pole]
    )


def angles(rng, n):
    multiples = np.concatenate([np.arange(1, n // 4), rng.integers(1, 2**39, n // 4)]) * (np.pi / 2)
    around = multiples * (1.0 + rng.integers(-3, 4, len(multiples)) * 2.0**-53)
    wide = spread(rng, 1e-300, vmath.TRIG_MAX, n)
    return np.concatenate([rng.uniform(-10, 10, n), wide, multiples, around])


def trigamma_arguments(rng, n):
    positive = np.concatenate([rng.uniform(0.0, 12.0, n), np.abs(spread(rng, 1e-150, 1e150, n))])
    return np.concatenate([positive, -rng.uniform(0.01, 0.99, n) - rng.integers(0, 9, n)])


def above_zero(rng, n):
    """Arguments of lgamma, many of them next to its zeros."""
    zeros = np.concatenate([1.0 + spread(rng, 1e-12, 0.1, n), 2.0 + spread(rng, 1e-12, 0.1, n)])
    return np.concatenate([rng.uniform(0, 12, n), np.abs(spread(rng, 1e-320, 1e305, n)), zeros])


def below_zero(rng, n):
    """Arguments that are away from the zeros of lgamma, between -4 and -2 and next to integers."""
    return np.append(-rng.uniform(0.01, 0.99, n) - rng.integers(5, 60, n), -rng.uniform(0, 1, n))


def bessel_arguments(rng, n):
    return np.concatenate([rng.uniform(-12, 12, n), rng.uniform(-713, 713, n), whole_line(rng, n)])


def scaled_bessel(order):
    return lambda v: mp.besseli(order, v) * mp.exp(-abs(v))


def ratios(rng, n):
    near_ends = 1.0 - np.abs(spread(rng, 1e-16, 0.5, n // 2))
    inner = np.clip(spread(rng, 1e-320, 1.0, n // 2), -1.0, 1.0)
    return np.concatenate([rng.uniform(-1, 1, n), near_ends, -near_ends, inner])


def normal_ratios(rng, n):
    """Arguments between -1 and 1, most of them close to one of these."""
    return np.append(ratios(rng, n), np.sqrt(-np.expm1(-rng.uniform(0.0, 36.0, n))))


def any_size(rng, n):
    return np.concatenate([whole_line(rng, n), spread(rng, 1e-323, 1e308, n)])


def above_one(rng, n):
    return 1.0 + np.concatenate([rng.uniform(0, 3, n), np.abs(spread(rng, 1e-15, 1e308, n))])


def cube_root(v):
    return mp.sign(v) * mp.cbrt(abs(v))


def logistic(v):
    return 1 / (1 + mp.exp(-v))


def soft(v):
    return (v if v > 0 else mp.mpf(0)) + mp.log1p(mp.exp(-abs(v)))


def scaled_erfc(v):
    if v > 1e12:  # where exp(v * v) is too large even for mpmath
        return 1 / (v * mp.sqrt(mp.pi))
    return mp.exp(v * v) * mp.erfc(v)


def log_normal(v):
    if v > 0:
        return mp.log1p(-mp.ncdf(-v))
    return mp.log(scaled_erfc(-v / mp.sqrt(2)) / 2) - v * v / 2


# name: (reference, sampler, bound in ulp)
FUNCTIONS: dict[str, tuple[Callable, Callable, float]] = {
    "exp": (mp.exp, exponents, 1.0),
    "log": (mp.log, positive, 1.0),
    "log2": (lambda v: mp.log(v, 2), positive, 1.0),
    "log10": (mp.log10, positive, 1.0),
    "exp2": (lambda v: mp.power(2, v), lambda rng, n: exponents(rng, n) * 1.44, 1.0),
    "cbrt": (cube_root, any_size, 1.0),
    "asin": (mp.asin, ratios, 1.0),
    "acos": (mp.acos, ratios, 1.0),
    "atan": (mp.atan, any_size, 1.0),
    "asinh": (mp.asinh, any_size, 2.0),
    "acosh": (mp.acosh, above_one, 2.0),
    "atanh": (mp.atanh, ratios, 2.0),
    "sin": (mp.sin, angles, 1.0),
    "cos": (mp.cos, angles, 1.0),
    "tan": (mp.tan, angles, 2.0),
    "expm1": (mp.expm1, exponents, 2.0),
    "log1p": (mp.log1p, above_minus_one, 1.0),
    "sigmoid": (logistic, exponents, 2.0),
    "softplus": (soft, exponents, 2.0),
    "tanh": (mp.tanh, lambda rng, n: np.append(whole_line(rng, n), rng.uniform(-22, 22, n)), 2.0),
    "sinh": (mp.sinh, past_exponents, 2.0),
    "cosh": (mp.cosh, past_exponents, 2.0),
    "trigamma": (lambda v: mp.psi(1, v), trigamma_arguments, 6.0),
    "lgamma": (mp.loggamma, above_zero, 3.5),
    "lgamma_any": (lambda v: mp.log(abs(mp.gamma(v))), below_zero, 3.0),
    "i0": (lambda v: mp.besseli(0, v), bessel_arguments, 5.5),
    "i1": (lambda v: mp.besseli(1, v), bessel_arguments, 5.5),
    "i0e": (scaled_bessel(0), bessel_arguments, 4.0),
    "i1e": (scaled_bessel(1), bessel_arguments, 4.0),
    "erfc": (mp.erfc, lambda rng, n: np.append(whole_line(rng, n), rng.uniform(-6, 26.5, n)), 2.0),
    "erf": (mp.erf, lambda rng, n: 2 * whole_line(rng, n), 2.0),
    "erfinv": (mp.erfinv, normal_ratios, 2.0),
    "ndtr": (mp.ncdf, lambda rng, n: np.append(whole_line(rng, n), rng.uniform(-37.5, 9, n)), 3.0),
    "erfcx": (
        scaled_erfc,
        lambda rng, n: np.append(np.maximum(any_size(rng, n), -26), rng.uniform(-26, 60, n)),
        2.0,
    ),
    "log_ndtr": (
        log_normal,
        lambda rng, n: np.append(any_size(rng, n).clip(-1e150, 37), rng.uniform(-60, 9, n)),
        3.0,
    ),
}
UNARY = list(FUNCTIONS)
BINARY = ("power", "hypot", "logaddexp", "fmod_any", "atan2")
VECTORISED = ("power", "hypot", "logaddexp", "atan2")


@pytest.fixture(scope="module")
def loop():
    """name -> the compiled loop over that function, made once."""
    made: dict[str, Callable] = {}

    def get(name):
        if name not in made:
            made[name] = compile_loop(getattr(vmath, name), binary=name in BINARY)
        return made[name]

    return get


def compile_loop(f, binary):
    def over_one(x, out):
        for i in range(len(x)):
            out[i] = f(x[i])

    def over_two(x, y, out):
        for i in range(len(x)):
            out[i] = f(x[i], y[i])

    return numba.njit(error_model="numpy")(over_two if binary else over_one)


def run(kernel, *arrays):
    arrays = [np.ascontiguousarray(a) for a in np.broadcast_arrays(*arrays)]
    out = np.empty_like(arrays[0])
    kernel(*arrays, out)
    return out


def ulp_errors(got, exact):
    """|got - exact| in units of the last place of a double near exact; infinite for NaN."""
    return [
        float(abs(mp.mpf(float(g)) - e) / mp.mpf(float(np.spacing(abs(float(e))))))
        if g == g
        else math.inf
        for g, e in zip(got, exact, strict=True)
    ]


@pytest.mark.parametrize("name", UNARY)
def test_error_is_within_the_bound(name, loop):
    reference, sampler, bound = FUNCTIONS[name]
    x = sampler(np.random.default_rng(7), 400)
    errors = ulp_errors(run(loop(name), x), [reference(mp.mpf(float(v))) for v in x])
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound, f"{name}({x[worst]!r}) is off by {errors[worst]:.2f} ulp"


def test_the_error_measure_sees_two_ulp():
    x = np.array([0.3, 0.7])
    off = np.nextafter(np.nextafter(np.exp(x), 9), 9)
    assert min(ulp_errors(off, [mp.exp(mp.mpf(float(v))) for v in x])) > 1.0


def test_power_is_within_two_ulp(loop):
    rng = np.random.default_rng(8)
    x = np.concatenate([np.abs(spread(rng, 1e-320, 1e308, 600)), rng.uniform(0.5, 2, 600)])
    x = np.concatenate([x, 1.0 + spread(rng, 1e-12, 0.1, 300)])
    y = rng.uniform(-740, 708, len(x)) / np.log(x)  # results of every size, subnormal ones included
    y[::7] = rng.uniform(-3, 3, len(y[::7]))
    exact = [mp.power(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, y, strict=True)]
    inside = [TINY < e < HUGE for e in exact]
    errors = ulp_errors(run(loop("power"), x, y)[inside], np.array(exact)[inside])
    assert max(errors) <= 2.0


def same(got, want):
    """Equal but for rounding, with the same sign of zero and the same NaN."""
    if math.isnan(want):
        return math.isnan(got)
    if want == 0 or math.isinf(want):
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return math.isclose(got, want, rel_tol=2.0**-51, abs_tol=0.0)


SPECIAL = {
    "exp": [(-INF, 0.0), (INF, INF), (0.0, 1.0), (-0.0, 1.0), (709.8, INF), (HUGE, INF)]
    + [(-745.2, 0.0), (-745.13, TINY), (-HUGE, 0.0), (TINY, 1.0)],
    "log": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF), (1.0, 0.0)]
    + [(TINY, math.log(TINY)), (HUGE, math.log(HUGE)), (-TINY, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-1.5, NAN), (-INF, NAN), (INF, INF)]
    + [
        (TINY, TINY),
        (-TINY, -TINY),
        (HUGE, math.log(HUGE)),
        (-HUGE, NAN),
        (1e300, math.log(1e300)),
    ],
    "expm1": [(-INF, -1.0), (INF, INF), (0.0, 0.0), (-0.0, -0.0), (709.8, INF), (HUGE, INF)]
    + [(-HUGE, -1.0), (TINY, TINY), (-3 * TINY, -3 * TINY)],
    "log2": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (1.0, 0.0), (TINY, -1074.0)]
    + [(2.0**-1022, -1022.0), (0.5, -1.0), (2.0**1023, 1023.0), (-INF, NAN)],
    "log10": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (1.0, 0.0), (-INF, NAN)]
    + [(10.0**k, float(k)) for k in range(23)],
    "exp2": [(-INF, 0.0), (INF, INF), (0.0, 1.0), (-0.0, 1.0), (1024.0, INF), (HUGE, INF)]
    + [(-HUGE, 0.0), (-1074.0, TINY), (-1080.0, 0.0), (1023.0, 2.0**1023), (-1022.5, 2.0**-1022.5)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (27.0, 3.0), (-0.125, -0.5)]
    + [(2.0**-1074, 2.0**-358), (HUGE, math.cbrt(HUGE))],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.0, math.pi / 2), (-1.0, -math.pi / 2), (INF, NAN)]
    + [(TINY, TINY), (-TINY, -TINY), (1.0 + 2**-52, NAN), (-INF, NAN), (-2.0, NAN)],
    "acos": [(0.0, math.pi / 2), (-0.0, math.pi / 2), (1.0, 0.0), (-1.0, math.pi), (INF, NAN)]
    + [(TINY, math.pi / 2), (1.0 + 2**-52, NAN), (-INF, NAN), (-2.0, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (1.0, math.pi / 4), (INF, math.pi / 2), (-INF, -math.pi / 2)]
    + [(TINY, TINY), (-TINY, -TINY), (HUGE, math.pi / 2), (-HUGE, -math.pi / 2)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (TINY, TINY), (-TINY, -TINY)]
    + [(HUGE, math.asinh(HUGE)), (-1e300, math.asinh(-1e300))],
    "acosh": [(1.0, 0.0), (1.0 - 2**-53, NAN), (INF, INF), (-INF, NAN), (-1.0, NAN), (0.0, NAN)]
    + [(HUGE, math.acosh(HUGE)), (1.0 + 2**-52, math.acosh(1.0 + 2**-52))],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (TINY, TINY), (-TINY, -TINY)]
    + [(1.5, NAN), (INF, NAN), (-INF, NAN), (-2.0, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (TINY, TINY), (-TINY, -TINY)]
    + [(1e300, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (TINY, 1.0), (-1e300, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (TINY, TINY), (-TINY, -TINY)],
    "sigmoid": [(-INF, 0.0), (INF, 1.0), (0.0, 0.5), (-745.13, TINY), (-HUGE, 0.0), (HUGE, 1.0)]
    + [(-710.0, math.exp(-710.0)), (-760.0, 0.0)],
    "softplus": [(-INF, 0.0), (INF, INF), (0.0, math.log(2)), (-745.13, TINY), (HUGE, HUGE)]
    + [(-HUGE, 0.0), (800.0, 800.0)],
    "tanh": [(-INF, -1.0), (INF, 1.0), (0.0, 0.0), (-0.0, -0.0), (TINY, TINY), (HUGE, 1.0)],
    "sinh": [(-INF, -INF), (INF, INF), (0.0, 0.0), (-0.0, -0.0), (TINY, TINY), (711.0, INF)]
    + [(-HUGE, -INF), (710.4, math.sinh(710.4))],
    "cosh": [(-INF, INF), (INF, INF), (0.0, 1.0), (-0.0, 1.0), (711.0, INF), (-HUGE, INF)]
    + [(-710.4, math.cosh(710.4))],
    "trigamma": [(0.0, INF), (-0.0, INF), (-1.0, INF), (-7.0, INF), (INF, 0.0), (TINY, INF)]
    + [(-0.5, math.pi**2 / 2 + 4), (1.0, math.pi**2 / 6)],
    "lgamma": [(0.0, INF), (-0.0, INF), (1.0, 0.0), (2.0, 0.0), (INF, INF), (HUGE, INF)]
    + [(TINY, -math.log(TINY)), (1e305, math.lgamma(1e305))],
    "lgamma_any": [(0.0, INF), (-1.0, INF), (-7.0, INF), (-INF, INF), (-HUGE, INF)]
    + [(-TINY, -math.log(TINY)), (-1e-200, -math.log(1e-200)), (3.0, math.log(2.0))],
    # NaN at infinity is NumPy's, SciPy's and PyTorch's.
    "i0": [(0.0, 1.0), (-0.0, 1.0), (TINY, 1.0), (715.0, INF), (-HUGE, INF), (INF, NAN)],
    "i1": [(0.0, 0.0), (-0.0, -0.0), (3 * TINY, 2 * TINY), (-HUGE, -INF), (INF, NAN)],
    "i0e": [(0.0, 1.0), (TINY, 1.0), (INF, 0.0), (-INF, 0.0), (1e300, 3.989422804014327e-151)],
    "i1e": [(0.0, 0.0), (-0.0, -0.0), (3 * TINY, 2 * TINY), (INF, 0.0), (-INF, -0.0)],
    "erfc": [(-INF, 2.0), (INF, 0.0), (0.0, 1.0), (-0.0, 1.0), (HUGE, 0.0), (-HUGE, 2.0)]
    + [(27.5, 0.0), (26.0, math.erfc(26.0)), (TINY, 1.0), (-6.0, 2.0)],
    "erf": [(-INF, -1.0), (INF, 1.0), (0.0, 0.0), (-0.0, -0.0), (TINY, TINY), (-HUGE, -1.0)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (TINY, TINY), (-TINY, -TINY)]
    + [(1.0 + 2**-52, NAN), (-2.0, NAN), (INF, NAN), (-INF, NAN)]
    + [(1.0 - 2**-53, 5.863584748755167)],
    "ndtr": [(-INF, 0.0), (INF, 1.0), (0.0, 0.5), (-0.0, 0.5), (TINY, 0.5), (-HUGE, 0.0)]
    + [(HUGE, 1.0), (-39.0, 0.0), (9.0, 1.0), (-30.0, 4.906713927148187e-198)],
    "erfcx": [(-INF, INF), (INF, 0.0), (0.0, 1.0), (-0.0, 1.0), (TINY, 1.0), (-HUGE, INF)]
    + [(-27.0, INF), (1e300, 5.641895835477563e-301), (28.0, 0.020136801964214276)],
    "log_ndtr": [(-INF, -INF), (INF, -0.0), (0.0, -math.log(2)), (-0.0, -math.log(2))]
    + [(HUGE, -0.0), (-HUGE, -INF), (40.0, -0.0), (-1e150, -5e299)],
}


@pytest.mark.parametrize("name", UNARY)
def test_special_values(name, loop):
    x, want = np.array([*SPECIAL[name], (NAN, NAN)]).T
    got = run(loop(name), x)
    wrong = [(a, g, w) for a, g, w in zip(x, got, want, strict=True) if not same(g, w)]
    assert not wrong, f"{name}: (x, got, wanted) {wrong}"


def test_hypot_is_within_one_ulp(loop):
    rng = np.random.default_rng(8)
    x, y = spread(rng, 1e-320, 1e308, 600), spread(rng, 1e-320, 1e308, 600)
    x[::2] = y[::2] * rng.uniform(-9, 9, 300)
    with np.errstate(over="ignore"):
        x = np.where(np.isfinite(x), x, 1.0)
    exact = [mp.hypot(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, y, strict=True)]
    inside = np.array([e < HUGE for e in exact])
    assert inside.sum() > 500
    assert max(ulp_errors(run(loop("hypot"), x, y)[inside], np.array(exact)[inside])) <= 1.0


def test_atan2_is_within_one_ulp(loop):
    rng = np.random.default_rng(8)
    x, y = spread(rng, 1e-320, 1e308, 900), spread(rng, 1e-320, 1e308, 900)
    x[::3], y[::3] = rng.normal(size=(2, 300))
    x[1::3] = y[1::3] * rng.uniform(-2, 2, 300)
    with np.errstate(over="ignore"):
        x = np.where(np.isfinite(x), x, 1.0)
    exact = [mp.atan2(mp.mpf(float(b)), mp.mpf(float(a))) for a, b in zip(x, y, strict=True)]
    assert max(ulp_errors(run(loop("atan2"), y, x), exact)) <= 1.0


def test_logaddexp_adds_little_to_the_rounding_of_its_sum(loop):
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.uniform(-800, 800, 300), rng.uniform(-2, 2, 300)])
    y = x + np.concatenate([rng.uniform(-50, 50, 300), rng.uniform(-2, 2, 300)])
    exact = [
        mp.log(mp.exp(mp.mpf(float(a))) + mp.exp(mp.mpf(float(b))))
        for a, b in zip(x, y, strict=True)
    ]
    scale = np.spacing(np.maximum(np.maximum(np.abs(x), np.abs(y)), 0.5))
    found = run(loop("logaddexp"), x, y)
    errors = [abs(float(mp.mpf(float(f)) - e)) for f, e in zip(found, exact, strict=True)]
    assert max(errors / scale) <= 2.0


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "fmod_any", "atan2"])
def test_functions_of_two_numbers_at_special_values(name, loop):
    v = [0.0, 0.5, 1.0, 2.5, INF, TINY, HUGE, 1e300, 1e-300]
    v = np.array([*v, *(-a for a in v), NAN])
    x, y = (a.ravel() for a in np.meshgrid(v, v))
    with np.errstate(all="ignore"):
        want = getattr(np, {"fmod_any": "fmod", "atan2": "arctan2"}.get(name, name))(x, y)
    got = run(loop(name), x, y)
    wrong = [t for t in zip(x, y, got, want, strict=True) if not same(t[2], t[3])]
    assert not wrong


def test_power_special_cases_follow_ieee(loop):
    v = [0.0, 1.0, 2.0, 3.0, 0.5, 2.5, INF, TINY, HUGE, 1e308, 2.0**52 + 1, 2.0**53 + 2, 1 - 2**-53]
    v = np.array([*v, *(-a for a in v), NAN])
    x, y = (a.ravel() for a in np.meshgrid(v, v))
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    got = run(loop("power"), x, y)
    wrong = [t for t in zip(x, y, got, want, strict=True) if not same(t[2], t[3])]
    assert not wrong


def test_bounded_functions_stay_in_their_bounds(loop):
    x = np.random.default_rng(10).uniform(-60, 60, 100_000)
    for name, low in [("tanh", -1), ("erf", -1), ("sin", -1), ("cos", -1), ("sigmoid", 0)]:
        y = run(loop(name), x)
        assert low <= y.min(), name
        assert y.max() <= 1, name


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_any_takes_huge_arguments_too(name, loop):
    x = np.array([0.5, -2e6, vmath.TRIG_MAX, 1e22, -1e300, HUGE])
    with mp.workdps(400):
        exact = [getattr(mp, name)(mp.mpf(float(v))) for v in x]
    assert max(ulp_errors(run(loop(f"{name}_any"), x), exact)) <= 2.0
    assert np.isnan(run(loop(f"{name}_any"), np.array([INF, NAN]))).all()


@pytest.mark.parametrize("name", [*UNARY, *VECTORISED])
def test_float32_is_the_rounded_float64(name, loop):
    inside = dict.fromkeys(("asin", "acos", "atanh", "erfinv"), (-1, 1))
    low, high = (inside | {"acosh": (1, 5)}).get(name, (0.1, 5))
    x = np.random.default_rng(9).uniform(low, high, 64).astype(np.float32)
    arrays = [x] * (2 if name in BINARY else 1)
    got = run(loop(name), *arrays)
    assert got.dtype == np.float32
    want = run(loop(name), *(a.astype(np.float64) for a in arrays)).astype(np.float32)
    np.testing.assert_array_equal(got, want)
    f = getattr(vmath, name)

    @numba.njit
    def kind(a):
        return f(a, a) if name in BINARY else f(a)

    kind(np.float32(0.5))
    assert kind.nopython_signatures[0].return_type == numba.float32


@pytest.mark.parametrize("name", [*UNARY, *VECTORISED])
def test_the_loop_is_vectorised(name, loop):
    kernel = loop(name)
    arrays = [np.ones(3)] * (3 if name in BINARY else 2)
    kernel(*arrays)
    signature = next(s for s in kernel.signatures if s[0].dtype == numba.float64)
    code = kernel.inspect_llvm(signature)
    assert "x double> @llvm.fma.v" in code, f"{name} is computed one element at a time"
