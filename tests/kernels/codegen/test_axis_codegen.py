"""Kernels along dimensions that are made of rows: they compute what NumPy and the rules compute."""

import ctypes
import inspect

import numpy as np
import pytest

from tapegrad.kernels import build
from tapegrad.kernels.codegen import axis_codegen
from tapegrad.kernels.codegen.axis_codegen import BY_HAND
from tapegrad.ops import axis_layout
from tapegrad.ops.core import Spec
from tapegrad.ops.families import by_code

pytestmark = pytest.mark.tapegrad_only("about kernels of this library")

CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 8)
ROWS = [op for op in by_code if op.axis and op.name not in BY_HAND]
ADJOINTS = [op for op in ROWS if f"{op.name}_adjoint" not in BY_HAND]


def run(source, *args):
    CALL(build.load("kernel", source, 8))(*[address(a) for a in args])


def address(x):
    return x.ctypes.data if isinstance(x, np.ndarray) else x


def parameters(op):
    known = {"dim": (1,), "keepdim": False, "correction": 1, "p": 2.0, "eps": 1e-5}
    plain = getattr(op.forward, "plain", op.forward)
    wanted = {*inspect.signature(op.decomposition or plain).parameters}
    wanted |= {name for formula in op.formulas for name in formula.reads}
    return {name: value for name, value in known.items() if name in wanted}


def number(op):
    """What the loops are given beside the arrays."""
    return max(axis_layout.extra(parameters(op)), 0)


@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
@pytest.mark.parametrize("shape", [(2, 5, 3), (1, 1, 4), (3, 40, 1)], ids=str)
def test_forward(op, shape):
    x = np.random.default_rng(0).uniform(0.5, 1.5, shape)
    y = op.forward(x, **parameters(op))
    outer, n, inner = shape
    out = np.full_like(y, np.nan)
    run(axis_codegen.source(op, adjoint=False), n, inner, outer, x, out, number(op), 0, 0)
    np.testing.assert_allclose(out, y, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("op", ADJOINTS, ids=lambda op: op.name)
@pytest.mark.parametrize("shape", [(2, 5, 3), (3, 40, 1)], ids=str)
def test_adjoint(op, shape):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 1.5, shape)
    x[0, 1] = x[0, 0]  # a tie
    y = op.forward(x, **parameters(op))
    g = rng.standard_normal(y.shape)
    g[0, 0] = 0.0
    (formula,) = op.formulas
    known = {"g": g, "x": x, "y": y, "x_spec": Spec(x.shape, x.dtype), **parameters(op)}
    expected = formula.function(*[known[name] for name in formula.reads])
    outer, n, inner = shape
    out = np.full_like(x, np.nan)
    run(axis_codegen.source(op, adjoint=True), n, inner, outer, g, x, y, out, number(op))
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-15)


def test_costly_values_of_two_passes_are_kept_in_the_result():
    softmax = next(op for op in ROWS if op.name == "softmax")
    source = axis_codegen.source(softmax, adjoint=False)
    assert source.count("vmath.exp(") == 1
    assert source.count("for j in range(n)") == 3
