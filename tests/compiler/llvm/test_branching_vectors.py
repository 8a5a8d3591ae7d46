"""Functions that branch, in loops that LLVM vectorises: each element as it is computed alone."""

import math

import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from tapegrad.compiler.llvm import branching_vectors
from tapegrad.kernels import build

pytestmark = pytest.mark.tapegrad_only("no other library has this")
RARE = [1e13, -1e300, np.inf, np.nan, -0.0, 2.0**40, 5e-324]


@njit
def sines(x):
    s = 0.0
    for v in x:
        s += math.sin(v)
    return s


@njit
def rests(x, y):
    s = 0.0
    for i in range(len(x)):
        s += x[i] % y[i]
    return s


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_the_cosine_of_any_number_has_the_bits_of_one_alone(dtype):
    x = np.random.default_rng(0).normal(size=100)
    x[[3, 17, 18, 50, 51, 52, 99]] = RARE
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    together = tg.grad(sines)(x)
    alone = np.concatenate([tg.grad(sines)(x[k : k + 1]) for k in range(len(x))])
    np.testing.assert_array_equal(together, alone)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(together, np.cos(x), rtol=4 * np.finfo(dtype).eps)


def test_quotients_beyond_the_quick_form():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=40), rng.normal(size=40)
    x[[4, 30]], y[[4, 30]] = 1e300, 3.0
    np.testing.assert_array_equal(tg.grad(rests, 1)(x, y), -np.floor_divide(x, y))


@pytest.mark.parametrize(
    ("function", "kind"), [("vmath.sin_any.f64", "double"), ("vmath.single.sin_any.f32", "float")]
)
def test_llvm_calls_the_vectors(function, kind):
    """Also of floats, where something of the loop is double."""
    names, width = {function}, branching_vectors.variant_width()
    text = f"""
    define void @{build.SYMBOL}(ptr noalias %x, ptr noalias %y) "prefer-vector-width"="512" {{
    br label %next
    next:
    %k = phi i64 [ 0, %0 ], [ %k1, %next ]
    %from = getelementptr {kind}, ptr %x, i64 %k
    %to = getelementptr double, ptr %y, i64 %k
    %a = load {kind}, ptr %from
    %b = call {kind} @{function}({kind} %a)
    %c = {"fpext float %b to double" if kind == "float" else "fadd double %b, 0.0"}
    store double %c, ptr %to
    %k1 = add nuw nsw i64 %k, 1
    %goes = icmp ult i64 %k1, 1024
    br i1 %goes, label %next, label %done
    done:
    ret void
    }}
    {branching_vectors.definitions(names, width)}
    """
    scalar = branching_vectors.elementary.definitions(names)
    told = branching_vectors.with_variants(scalar, names)
    assembly = build.assembly(told + text)
    body = assembly.partition(f"{build.SYMBOL}:")[2].partition("retq")[0]
    assert f"{function}.x{width}" in body
