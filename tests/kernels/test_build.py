"""Machine code from text: what it may refer to, and how its loops are widened."""

import ctypes
import math

import llvmlite.binding as llvm
import numpy as np
import pytest

from tapegrad.kernels import build
from tapegrad.kernels.codegen import axis_codegen
from tapegrad.kernels.flags import entry_point
from tapegrad.kernels.whole_program import together
from tapegrad.ops.families import table

pytestmark = pytest.mark.tapegrad_only("how kernels are compiled")

ELSEWHERE = """
declare double @sin(double)
declare double @llvm.pow.f64(double, double)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
@seen = global i64 0
define i64 @tapegrad_kernel(i64 %at, i64 %n) {
  %p = inttoptr i64 %at to ptr
  %x = load double, ptr %p
  %s = call double @sin(double %x)
  %c = fmul double %s, 0x3FF3333333333333
  %q = call double @llvm.pow.f64(double %c, double %x)
  %r = frem double %q, 0x3FB99999A0000000
  %big = fcmp ogt double %x, 2.0
  br i1 %big, label %clear, label %keep
clear:
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)
  br label %keep
keep:
  store double %r, ptr %p
  %count = load i64, ptr @seen
  %more = add i64 %count, 1
  store i64 %more, ptr @seen
  ret i64 %more
}
"""


@pytest.mark.parametrize("level", [0, 2, 3])
def test_code_finds_what_stands_elsewhere(level):
    """The C library, also where LLVM itself calls it, constants, and data of its own."""
    engine = build.assembled(ELSEWHERE, level)
    address = engine[0].get_function_address(build.SYMBOL)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)
    for count, x in enumerate((0.5, 2.5)):
        cells = (ctypes.c_double * 4)(x, 1.0, 1.0, 1.0)
        assert function(ctypes.addressof(cells), 32) == count + 1
        constant = 0.10000000149011612
        assert math.isclose(cells[0], math.fmod((math.sin(x) * 1.2) ** x, constant), rel_tol=1e-9)
        assert cells[3] == (1.0 if x < 2 else 0.0)


IN_ORDER = """
define double @tapegrad_kernel(ptr %x, i64 %n) "prefer-vector-width"="512" {
start:
  br label %trip
trip:
  %k = phi i64 [ 0, %start ], [ %k1, %trip ]
  %s = phi double [ 0.0, %start ], [ %s1, %trip ]
  %at = getelementptr double, ptr %x, i64 %k
  %a = load double, ptr %at
  %b = fadd double %a, 3.0
  %c = fdiv double %a, %b
  %d = call double @llvm.sqrt.f64(double %c)
  %s1 = fadd double %s, %d
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %trip, label %done
done:
  ret double %s1
}
declare double @llvm.sqrt.f64(double)
"""


def test_loops_that_add_up_in_order_are_vectorised_to_the_bit():
    x = np.random.default_rng(0).uniform(size=1003)
    assert " x double> @llvm.sqrt." in str(build._module(IN_ORDER, 3, ""))
    engine = build.assembled(IN_ORDER)
    address = engine[0].get_function_address(build.SYMBOL)
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_int64)(address)
    assert function(x.ctypes.data, len(x)) == np.cumsum(np.sqrt(x / (x + 3.0)))[-1]


def interleaving(name):
    """How many vectors the loops of an operation along a dimension compute side by side."""
    namespace: dict = {}
    source = axis_codegen.source(table[name], adjoint=False)
    with together():
        exec(compile(source, "<kernel>", "exec"), namespace)
        _, text = entry_point(namespace["kernel"], 8)
    text = build._interleaved(text)
    llvm.parse_assembly(text).verify()
    return [int(line[-2]) for line in text.split("\n") if "llvm.loop.interleave.count" in line]


@pytest.mark.parametrize(("name", "counts"), [("amax", []), ("softmax", [2])])
def test_loops_over_polynomials_are_interleaved(name, counts):
    assert interleaving(name) == counts
