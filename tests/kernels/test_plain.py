"""Loops that take a short form for ordinary arguments: those forms, and that their limits hold."""

import math

import mpmath as mp
import numba
import numpy as np
import pytest

from tapegrad.kernels import symbols, table, vmath
from tapegrad.ops.core import table as operations

INF, NAN, TINY, HUGE = math.inf, math.nan, 5e-324, 1.7976931348623157e308
SPECIAL = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, TINY, -TINY, HUGE, -HUGE, 1e-310, 2.0**-1022]
SPECIAL += [709.0, -709.0, 745.0, -746.0, 710.0, 1e-280, 2.0**-901, 2.0**-899, 1e22, -1e300]
NUMPY = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos}
NUMPY["tan"] = np.tan
mp.mp.dps = 40


def ordinary(name, n):
    """Arguments over all that the short form serves."""
    rng = np.random.default_rng(3)
    if name == "exp":
        return np.append(rng.uniform(-708, 708, n), rng.uniform(-1, 1, n))
    low = math.log(2.0**-1022) if name == "log" else math.log(2.0**-900)
    return np.append(np.exp(rng.uniform(low + 1e-9, 709.7, n)), rng.uniform(0.5, 2.0, n))


def over(function, x, kind=np.float64):
    @numba.njit(error_model="numpy")
    def loop(x, out):
        for i in range(len(x)):
            out[i] = function(x[i])

    out = np.empty(len(x), kind)
    loop(x, out)
    return out


def errors(got, exact):
    return [
        float(abs(mp.mpf(float(g)) - e) / mp.mpf(float(np.spacing(abs(float(e))))))
        for g, e in zip(got, exact, strict=True)
    ]


@pytest.mark.parametrize("name", symbols.ALONE)
def test_a_short_form_is_within_one_ulp(name):
    x = ordinary(name, 300)
    assert not over(getattr(vmath, f"{name}_is_rare"), x, np.bool_).any()
    got = over(getattr(vmath, f"{name}_plain"), x)
    assert max(errors(got, [getattr(mp, name)(mp.mpf(float(v))) for v in x])) <= 1.0


def test_the_square_root_is_rounded_correctly():
    rng = np.random.default_rng(5)
    x = np.append(ordinary("sqrt", 500_000), [0.0, 2.0**-900, HUGE])
    square = rng.integers(2**52, 2**53, 100_000).astype(float) * 2.0**-30
    x = np.concatenate([x, square * square, np.nextafter(square * square, INF)])
    np.testing.assert_array_equal(over(vmath.sqrt_plain, x), np.sqrt(x))


@pytest.mark.parametrize("name", symbols.ALONE)
def test_what_a_short_form_does_not_serve_is_seen(name):
    x = np.array(SPECIAL)
    rare = over(getattr(vmath, f"{name}_is_rare"), x, np.bool_)
    got = over(getattr(vmath, f"{name}_plain"), x)
    with np.errstate(all="ignore"):
        want = NUMPY[name](x)
    same = np.isclose(got, want, rtol=2.0**-51, atol=0, equal_nan=True)
    same &= np.signbit(got) == np.signbit(want)
    assert np.all(same | rare)
    assert rare.any()
    assert not rare.all()


@pytest.mark.parametrize("inplace", [0, 16])
@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("n", [1, 7, symbols.BLOCK, 5 * symbols.BLOCK + 13])
def test_a_loop_serves_every_argument(name, n, inplace):
    rng = np.random.default_rng(n)
    x = rng.uniform(0.1, 3.0, n)
    rare = rng.integers(0, n, min(n, len(SPECIAL)))
    rare = rare[(rare < symbols.BLOCK) | (rare > 3 * symbols.BLOCK)]  # and a block without any
    x[rare] = SPECIAL[: len(rare)]
    with np.errstate(all="ignore"):
        want = NUMPY[name](x)
    kernel = table.forward(operations[name], "f8", inplace)
    assert kernel is not None
    out = x if inplace else np.empty(n)
    kernel.call(n, out.ctypes.data, x.ctypes.data, 0, 0, 0, 0, 0)
    np.testing.assert_allclose(out, want, rtol=2.0**-50, atol=0)
    np.testing.assert_array_equal(np.signbit(out[want == 0]), np.signbit(want[want == 0]))
