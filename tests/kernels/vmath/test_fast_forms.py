"""Loops that take a short form for ordinary arguments: those forms, and that their limits hold."""

import ctypes
import math
import re

import mpmath as mp
import numba
import numpy as np
import pytest
import scipy.special

from tapegrad.kernels import build, vmath
from tapegrad.kernels.codegen import kernel_table, rule_codegen
from tapegrad.ops.families import table as operations

INF, NAN, TINY, HUGE = math.inf, math.nan, 5e-324, 1.7976931348623157e308
SPECIAL = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, TINY, -TINY, HUGE, -HUGE, 1e-310, 2.0**-1022]
SPECIAL += [709.0, -709.0, 745.0, -746.0, 710.0, 1e-280, 2.0**-901, 2.0**-899, 1e22, -1e300]
SPECIAL += [671.0, 672.0, 2.0**60, math.pi, -math.pi / 2, -1e-17, 5.9, -5.95]
NUMPY = {name: getattr(np, name) for name in ("exp", "log", "log1p", "sqrt", "sin", "cos", "tan")}
NUMPY["erf"] = scipy.special.erf
NUMPY["erfinv"] = lambda x: np.copysign(scipy.special.erfinv(x), x)  # whose -0 has become 0
NUMPY |= {"erfc": scipy.special.erfc, "ndtr": scipy.special.ndtr}
# Errors in ulp, where they exceed 1; those of SciPy's functions that have larger ones themselves.
LARGEST = {"erf": 2.0, "erfc": 2.0, "ndtr": 2.5, "erfinv": 2.0, "tan": 2.0}
THEIRS = {"erfc": 2.0**-47, "ndtr": 2.0**-47}
EXACT = {"ndtr": "ncdf"}  # what mpmath calls a function
FUNCTION = re.compile(r"\w+\.\w+\(\{0\}\)")  # and not a formula with one in it
UNARY = [n for n, op in operations.items() if op.rare and FUNCTION.fullmatch(op.scalar)]
mp.mp.dps = 40


def ordinary(name, n):
    """Arguments over all that the short form serves."""
    rng = np.random.default_rng(3)
    if name == "exp":
        return np.append(rng.uniform(-746, 671, n), rng.uniform(-1, 1, n))
    if name == "erf":
        return np.concatenate([rng.uniform(-7, 7, n), np.exp(rng.uniform(-740, 1, n))])
    if name in ("erfc", "ndtr"):
        high = 6.0 if name == "erfc" else 8.4
        return np.concatenate([rng.uniform(-high, high, n), np.exp(rng.uniform(-740, 1, n))])
    if name == "erfinv":
        return np.append(rng.uniform(-0.9997, 0.9997, n), np.exp(rng.uniform(-700, -1, n)))
    if name in ("sin", "cos", "tan"):
        wide = rng.uniform(-1e9, 1e9, n)
        return np.concatenate([rng.uniform(-7, 7, n), wide, np.exp(rng.uniform(-740, 1, n))])
    low = -36.0 if name == "log1p" else math.log(2.0 ** (-1022 if name == "log" else -900))
    high = 41.0 if name == "log1p" else 709.7
    x = np.append(np.exp(rng.uniform(low + 1e-9, high, n)), rng.uniform(0.5, 2.0, n))
    if name == "log1p":
        return np.concatenate([x, np.exp(rng.uniform(-740, 0, n)), x[x < 2.0] / 2.0 - 1.0])
    return np.append(x, 1.0 + rng.uniform(-0.04, 0.04, n)) if name == "log" else x


def plain(name):
    return getattr(vmath, f"{'power' if name == 'pow' else name}_plain")


def is_rare(name):
    found = re.match(r"vmath\.(\w+)", operations[name].rare)
    return None if found is None else getattr(vmath, found[1])


def over(function, x, kind=np.float64, y=None):
    @numba.njit(error_model="numpy")
    def loop(x, out):
        for i in range(len(x)):
            out[i] = function(x[i])

    @numba.njit(error_model="numpy")
    def loop_of_two(x, y, out):
        for i in range(len(x)):
            out[i] = function(x[i], y[i])

    out = np.empty(len(x), kind)
    if y is None:
        loop(x, out)
    else:
        loop_of_two(x, y, out)
    return out


def errors(got, exact):
    return [
        float(abs(mp.mpf(float(g)) - e) / mp.mpf(float(np.spacing(abs(float(e))))))
        for g, e in zip(got, exact, strict=True)
    ]


@pytest.mark.parametrize("name", UNARY)
def test_a_short_form_is_as_exact_as_the_long_one(name):
    x = ordinary(name, 300)
    if is_rare(name) is not None:
        assert not over(is_rare(name), x, np.bool_).any()
    got = over(plain(name), x)
    found = errors(got, [getattr(mp, EXACT.get(name, name))(mp.mpf(float(v))) for v in x])
    assert max(found) <= LARGEST.get(name, 1.0)


def test_the_short_power_is_within_two_ulp():
    rng = np.random.default_rng(6)
    x = np.concatenate([np.exp(rng.uniform(-600, 600, 400)), 1.0 + rng.uniform(-0.04, 0.04, 400)])
    y = rng.uniform(-670, 670, 800) / np.maximum(np.abs(np.log(x)) + 0.07, 0.03)
    assert not over(vmath.power_is_rare, x, np.bool_, y).any()
    exact = [mp.power(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, y, strict=True)]
    assert max(errors(over(vmath.power_plain, x, np.float64, y), exact)) <= 2.0


def test_the_square_root_is_rounded_correctly():
    rng = np.random.default_rng(5)
    x = np.append(ordinary("sqrt", 500_000), [0.0, 2.0**-900, HUGE])
    square = rng.integers(2**52, 2**53, 100_000).astype(float) * 2.0**-30
    x = np.concatenate([x, square * square, np.nextafter(square * square, INF)])
    np.testing.assert_array_equal(over(vmath.sqrt_plain, x), np.sqrt(x))


def test_a_root_is_the_same_where_a_processor_has_no_rough_one(monkeypatch):
    monkeypatch.setattr(build.simd_tables, "in_registers", lambda: False)
    monkeypatch.setenv("TAPEGRAD_CACHE", "0")
    source = rule_codegen.forward_source(operations["sqrt"], "f8", 0)
    assert "sqrt_plain" in source
    kernel = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 8)(
        kernel_table.load(kernel_table.ELEMENTS, source, 8)
    )
    x = np.append(ordinary("sqrt", 50_000), [0.0, 2.0**-900, HUGE])
    out = np.empty(len(x))
    kernel(len(x), out.ctypes.data, x.ctypes.data, 0, 0, 0, 0, 0)
    np.testing.assert_array_equal(out, np.sqrt(x))


@pytest.mark.parametrize("name", UNARY)
def test_what_a_short_form_does_not_serve_is_seen(name):
    x = np.array(SPECIAL)
    rare = np.zeros(len(x), bool) if name == "erf" else over(is_rare(name), x, np.bool_)
    got = over(plain(name), x)
    with np.errstate(all="ignore"):
        want = NUMPY[name](x)
    same = np.isclose(got, want, rtol=THEIRS.get(name, 2.0**-51), atol=0, equal_nan=True)
    same &= np.signbit(got) == np.signbit(want)
    assert np.all(same | rare | (np.isnan(got) & np.isnan(want)))
    assert rare.any() or name == "erf"
    assert not rare.all()


@pytest.mark.parametrize("inplace", [0, 16])
@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("n", [1, 7, rule_codegen.BLOCK, 5 * rule_codegen.BLOCK + 13])
def test_a_loop_serves_every_argument(name, n, inplace):
    rng = np.random.default_rng(n)
    x = rng.uniform(0.1, 3.0, n)
    rare = rng.integers(0, n, min(n, len(SPECIAL)))
    rare = rare[
        (rare < rule_codegen.BLOCK) | (rare > 3 * rule_codegen.BLOCK)
    ]  # and a block without any
    x[rare] = SPECIAL[: len(rare)]
    with np.errstate(all="ignore"):
        want = NUMPY[name](x)
    kernel = kernel_table.forward(operations[name], "f8", inplace)
    assert kernel is not None
    out = x if inplace else np.empty(n)
    kernel.call(n, out.ctypes.data, x.ctypes.data, 0, 0, 0, 0, 0)
    np.testing.assert_allclose(out, want, rtol=THEIRS.get(name, 2.0**-50), atol=0)
    np.testing.assert_array_equal(np.signbit(out[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("name", ["sin", "cos", "asin", "acosh"])
@pytest.mark.parametrize("n", [1, 7, rule_codegen.BLOCK, 3 * rule_codegen.BLOCK + 13])
def test_an_adjoint_serves_every_argument(name, n, accumulate):
    rng = np.random.default_rng(n)
    x = rng.uniform(0.1, 0.9, n) + (name == "acosh")
    g, before = rng.uniform(-1.0, 1.0, n), rng.uniform(-1.0, 1.0, n)
    x[rng.integers(0, n, min(n, len(SPECIAL)))] = SPECIAL[: min(n, len(SPECIAL))]
    g[n // 2] = 0.0
    with np.errstate(all="ignore"):
        factor = {
            "sin": np.cos(x),
            "cos": -np.sin(x),
            "asin": 1.0 / np.sqrt(1.0 - x * x),
            "acosh": 1.0 / np.sqrt(x * x - 1.0),
        }[name]
        want = np.where(g == 0.0, 0.0, g * factor)
    kernel = kernel_table.pullback(operations[name], 0, "f8", 0)
    assert kernel is not None
    out = before.copy()
    kernel.call(n, accumulate, g.ctypes.data, out.ctypes.data, x.ctypes.data, 0, 0, 0)
    np.testing.assert_allclose(out, want + before if accumulate else want, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_each_form_of_a_chain_has_its_turn(name):
    served = [test for _, test in rule_codegen.chain(name)]
    assert len(served) == 3
    assert served[-1] == ""
    x = np.full(3 * rule_codegen.BLOCK, 0.75)
    x[rule_codegen.BLOCK + 1] = math.pi  # few bits are left of it: the second form
    x[2 * rule_codegen.BLOCK + 1] = 2.0**60  # the third
    kernel = kernel_table.forward(operations[name], "f8", 0)
    assert kernel is not None
    out = np.empty(len(x))
    kernel.call(len(x), out.ctypes.data, x.ctypes.data, 0, 0, 0, 0, 0)
    np.testing.assert_allclose(out, NUMPY[name](x), rtol=2.0**-50, atol=0)
    assert out[0] == out[rule_codegen.BLOCK - 1]
