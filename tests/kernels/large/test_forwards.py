"""Large arrays: every compiled loop against the forward or the rule that stands beside it."""

import inspect
import math
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import large_adjoints
from tapegrad.kernels.broadcast_plan import core, grid
from tapegrad.kernels.codegen import axis_codegen
from tapegrad.kernels.large import reduce_loops, softmax_and_norms
from tapegrad.ops.core import Spec
from tapegrad.ops.families import table
from tapegrad.ops.large import found as loop_of
from tapegrad.parallel import large_elementwise

pytestmark = pytest.mark.tapegrad_only("how tapegrad computes on large arrays")

ROWS, COLUMNS = 300, 257
RNG = np.random.default_rng(7)
M = RNG.standard_normal((ROWS, COLUMNS))
P = RNG.uniform(0.5, 1.5, (ROWS, COLUMNS))
U = RNG.uniform(-0.9, 0.9, (ROWS, COLUMNS))
ROW, COLUMN, NUMBER = P[0].copy(), P[:, :1].copy(), np.array(1.7)
V = RNG.standard_normal(70001)  # no multiple of a block, a group or a vector
MASK = M > 0.3
TURN = RNG.permutation(ROWS)
WALK = RNG.permutation(V.size)
PLACES = RNG.permuted(np.tile(np.arange(COLUMNS), (ROWS, 1)), axis=1)


@contextmanager
def rules_alone():
    """No compiled loop: NumPy forwards, and rules on whole arrays."""
    loops = [
        (op, name, getattr(op, name))
        for op in table.values()
        for name in ("forward", "writes")
        if hasattr(getattr(op, name), "plain")
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_adjoints, "step", lambda *_: False)
        patch.setattr(large_elementwise, "COMPILED", math.inf)
        for op, name, function in loops:
            patch.setattr(op, name, function.plain)
        yield


def results(function, inputs):
    """The value and the gradients, with a weight for each element of the value."""
    leaves = [tg.tensor(x, requires_grad=True) for x in inputs]
    y = function(*leaves)
    weight = np.random.default_rng(1).uniform(0.5, 1.5, tuple(y.shape)).astype(inputs[0].dtype)
    y.backward(tg.tensor(weight) if y.ndim else None)
    return [y.detach().numpy(), *[leaf.grad.numpy() for leaf in leaves]]


def close(got, expected, tolerance):
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    scale = np.max(np.abs(expected), initial=1e-300)
    assert np.max(np.abs(got - expected), initial=0.0) <= tolerance * scale


def named(name, **params):
    """The function of that name, with fixed parameters."""
    return lambda *leaves: getattr(tg, name)(*leaves, **params)


F = tg.nn.functional
UNARY = (
    "abs acos asin atan cos cosh erf exp expm1 log log1p neg reciprocal relu rsqrt sigmoid sin "
    "sinh sqrt square tan tanh"
).split()
CASES = {
    **{name: (named(name), [np.abs(U) + 0.05]) for name in UNARY},
    "softplus": (F.softplus, [M]),
    "cube": (lambda x: x**3, [M]),
    "add, rows": (lambda x, y: x + y, [M, ROW]),
    "sub, columns": (lambda x, y: x - y, [COLUMN, M]),
    "mul": (lambda x, y: x * y, [M, P]),
    "mul, rows": (lambda x, y: x * y, [M, ROW]),
    "mul, columns": (lambda x, y: x * y, [M, COLUMN]),
    "mul, number": (lambda x, y: x * y, [M, NUMBER]),
    "mul, column by row": (lambda x, y: x * y, [COLUMN, ROW]),
    "mul, middle": (
        lambda x, y: x * y, [M.reshape(3, 100, COLUMNS), M.reshape(3, 100, COLUMNS)[:, :1].copy()]
    ),
    "div, rows": (lambda x, y: x / y, [M, ROW]),
    "div, columns": (lambda x, y: x / y, [M, COLUMN]),
    "div, of a number": (lambda x, y: y / x, [P, NUMBER]),
    "pow, number": (lambda x, y: x**y, [P, NUMBER]),
    "pow, rows": (lambda x, y: x**y, [P, ROW]),
    "remainder": (lambda x, y: x % y, [M, P]),
    "atan2": (tg.atan2, [M, P]),
    "minimum": (tg.minimum, [M, P]),
    "maximum, rows": (tg.maximum, [M, ROW]),
    "clamp": (lambda x: tg.clamp(x, -0.5, 0.5), [M]),
    "clamp, from below": (lambda x: tg.clamp(x, min=-0.5), [M]),
    "where": (lambda x, y: tg.where(tg.tensor(MASK), x, y), [M, P]),
    "where, rows": (lambda x, y: tg.where(tg.tensor(MASK), x, y), [M, ROW]),
    "masked_fill": (lambda x: x.masked_fill(tg.tensor(MASK), 3.0), [M]),
    "addcmul": (lambda x, a, b: tg.addcmul(x, a, b, value=0.5), [M, P, U]),
    "addcdiv": (lambda x, a, b: tg.addcdiv(x, a, b, value=0.5), [M, U, P]),
    "lerp": (lambda a, b: tg.lerp(a, b, 0.3), [M, P]),
    "addcmul, one scaled": (lambda x, a: tg.addcmul(x, a, a, value=-2), [M, P]),
    "addcmul, rows": (lambda x, a, b: tg.addcmul(x, a, b, value=0.5), [M, ROW, COLUMN]),
    "mse_loss": (F.mse_loss, [M, P]),
    "mse_loss, added up": (lambda a, b: F.mse_loss(a, b, reduction="sum"), [M, P]),
    "mse_loss, each": (lambda a, b: F.mse_loss(a, b, reduction="none"), [M, P]),
    "mse_loss, to a constant": (lambda a: F.mse_loss(a * 2, tg.tensor(P)), [M]),
    **{
        f"{name}, {dim}": (named(name, dim=dim), [M])
        for name in ("sum", "mean", "var", "std", "norm", "amax", "amin", "logsumexp")
        for dim in (0, 1)
    },
    **{
        f"{name}, {dim}": (named(name, dim=dim), [M])
        for name in ("softmax", "log_softmax", "cumsum") for dim in (0, 1)
    },
    **{name: (named(name), [V]) for name in (
        "sum", "mean", "var", "std", "norm", "max", "min")},
    "ties": (lambda x: tg.amax(x, dim=1), [np.round(M)]),
    "ties, columns": (lambda x: tg.amin(x, dim=0), [np.round(M)]),
    "cumsum of a vector": (lambda x: tg.cumsum(x, 0), [V]),
    "cumprod": (lambda x: tg.cumprod(x, 1), [P]),
    "cumprod, columns": (lambda x: tg.cumprod(x, 0), [0.9 + 0.1 * P]),
    "cumprod of a vector": (lambda x: tg.cumprod(x, 0), [1 + 1e-3 * V]),
    "cumprod, zeros": (lambda x: tg.cumprod(x, 1), [P * MASK]),
    "logcumsumexp": (lambda x: tg.logcumsumexp(x, 1), [M]),
    "logcumsumexp, columns": (lambda x: tg.logcumsumexp(x, 0), [300 * M]),
    "logcumsumexp, batches": (lambda x: tg.logcumsumexp(x.view(20, 15, COLUMNS), 2), [M]),
    "hypot": (tg.hypot, [M, P]),
    "logaddexp": (tg.logaddexp, [M, P]),
    "logaddexp, rows": (tg.logaddexp, [M, ROW]),
    "fmod": (tg.fmod, [M, P]),
    "sinc": (tg.sinc, [M]),
    "frac": (lambda x: tg.frac(3 * x), [M]),
    "digamma": (tg.digamma, [P]),
    "lgamma": (tg.lgamma, [P]),
    "lgamma, of either sign": (tg.lgamma, [M]),
    **{name: (getattr(tg.special, name), [4 * M]) for name in ("i0", "i1", "i0e", "i1e")},
    "entr": (tg.special.entr, [P]),
    "trigamma": (lambda x: tg.polygamma(1, x), [P]),
    "prod": (tg.prod, [1 + 1e-3 * V]),
    "prod, rows": (lambda x: tg.prod(x, dim=1), [P]),
    "sum of rows": (lambda x: tg.sin(x * 2).sum(dim=1), [M]),
    "sum of columns": (lambda x, y: (tg.sin(x) * y).sum(dim=0), [M, ROW]),
    "shared": (lambda x: (tg.sin(x) * tg.cos(x) + x * x).sum(), [M]),
    "outer": (tg.outer, [ROW, COLUMN[:, 0]]),
    "mv": (tg.mv, [M, ROW]),
    "dot": (tg.dot, [V, np.roll(V, 1)]),
    "clone": (lambda x: x.clone() * 2, [M]),
    "tril": (lambda x: tg.tril(x, 2), [M]),
    "triu": (lambda x: tg.triu(x, -3), [M]),
    "flip": (lambda x: tg.flip(x, (1,)), [M]),
    "as_strided": (lambda x: x.as_strided((COLUMNS, ROWS), (1, COLUMNS)), [M]),
    "as_strided, parts": (lambda x: x.as_strided((ROWS - 2, 20), (COLUMNS, 2), 5), [M]),
    "as_strided, overlapping": (lambda x: x.as_strided((60000, 3), (1, 2)), [V]),
    "index": (lambda x: x[tg.tensor(TURN)], [M]),
    "index, from the end": (lambda x: x[tg.tensor(TURN - ROWS)], [M]),
    "index_select": (lambda x: tg.index_select(x, 0, tg.tensor(TURN // 2)), [M]),
    "index_add": (lambda x, y: x.index_add(0, tg.tensor(TURN // 2), y), [M, P]),
    "gather": (lambda x: x.gather(1, tg.tensor(PLACES // 2)), [M]),
    "index, of a vector": (lambda x: x[tg.tensor(WALK)], [V]),
    "take": (lambda x: x.take(tg.tensor(WALK - V.size)), [V]),
    "gather, expanded": (lambda x: x.gather(0, tg.tensor(TURN[:, None]).expand(M.shape)), [M]),
    "gather, turned": (lambda x: x.gather(1, tg.tensor(PLACES.T.copy()).t()), [M]),
    "scatter_add, expanded": (
        lambda x, y: x.scatter_add(0, tg.tensor(TURN[:, None] // 2).expand(M.shape), y), [M, P]
    ),
    "scatter_add_, expanded": (
        lambda x, y: x.clone().scatter_add_(0, tg.tensor(TURN[:, None] // 2).expand(M.shape), y),
        [M, P],
    ),
    "scatter_": (lambda x, y: x.clone().scatter_(1, tg.tensor(PLACES), y), [M, P]),
    "scatter_add_": (lambda x, y: x.clone().scatter_add_(1, tg.tensor(PLACES // 2), y), [M, P]),
    "scatter": (lambda x, y: x.scatter(1, tg.tensor(PLACES[:, :90].copy()), y), [M, P]),
    "scatter_add": (lambda x, y: x.scatter_add(1, tg.tensor(PLACES // 3), y), [M, P]),
    "fill_": (lambda x: x.clone().fill_(2.0) + x, [M]),
    "zero_": (lambda x: x.clone().zero_() + x, [M]),
    "copy_": (lambda x, y: x.clone().copy_(y) + x, [M, P]),
    "copy_, a row": (lambda x, y: x.clone().copy_(y) + x, [M, ROW]),
    "exp_": (lambda x: x.clone().exp_(), [M]),
    "mul_": (lambda x, y: x.clone().mul_(y), [M, P]),
    "index_add_": (lambda x, y: x.clone().index_add_(0, tg.tensor(TURN), y), [M, P]),
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_rules(name, threads, monkeypatch):
    monkeypatch.setattr(large_elementwise, "SPLIT", 1 << 13)
    before = tg.get_num_threads()
    function, inputs = CASES[name]
    try:
        tg.set_num_threads(threads)
        got = results(function, inputs)
    finally:
        tg.set_num_threads(before)
    with rules_alone():
        expected = results(function, inputs)
    for a, b in zip(got, expected, strict=True):
        close(a, b, 1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "mul, rows", "sin", "sigmoid", "clamp", "where", "var, 1", "softmax, 1", "logsumexp, 1",
        "sum, 0", "sum", "norm", "cumsum, 1", "cumprod", "hypot", "logaddexp",
        "gather", "index_add", "ties", "tril",
    ],
)  # fmt: skip
def test_in_float32_too(name):
    function, inputs = CASES[name]
    inputs = [x.astype(np.float32) for x in inputs]
    got = results(function, inputs)
    with rules_alone():
        expected = results(function, inputs)
    for a, b in zip(got, expected, strict=True):
        close(a, b, 2e-5)


ALONG = [op for op in table.values() if axis_codegen.has_adjoint(op)]
LAYOUTS = {  # shape, dimensions, threads
    "rows": ((300, 257), (1,), 2), "short rows": ((999, 33), (1,), 1),
    "two dimensions": ((10, 30, 257), (1, 2), 2), "columns": ((300, 257), (0,), 2),
    "blocks of columns": ((11, 30, 130), (1,), 2), "one row": ((70001,), (0,), 1),
    "one row on threads": ((70001,), (0,), 3), "two rows on threads": ((2, 70001), (1,), 3),
}  # fmt: skip
TOLERANCE = {np.float64: 1e-12, np.float32: 2e-5}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", ALONG, ids=lambda op: op.name)
def test_loops_along_dimensions_are_used_in_every_layout(op, layout, dtype, monkeypatch):
    """And they compute what NumPy and the rule do."""
    shape, dim, threads = LAYOUTS[layout]
    monkeypatch.setattr(large_elementwise, "_threads", threads)
    monkeypatch.setattr(large_elementwise, "SPLIT", 1 << 13)
    x = np.random.default_rng(3).standard_normal(shape).round(2).astype(dtype)  # there are ties
    known = {"dim": dim, "keepdim": False, "correction": 1.0, "p": 2.0, "eps": 1e-5}
    params = {k: v for k, v in known.items() if k in parameters(op)}
    y = getattr(op.forward, "plain", op.forward)(x, **params)
    if op.decomposition is not None:
        close(softmax_and_norms.forward(op, x, **params), y, TOLERANCE[dtype])
    g = np.random.default_rng(4).standard_normal(y.shape).astype(dtype)
    g.reshape(-1)[::2] = 0.0
    (formula,) = op.formulas
    read = {"g": g, "x": x, "y": y, "x_spec": Spec(x.shape, x.dtype), **params}
    saved = [read[name] if name in formula.reads else None for name in "xy"]
    found = softmax_and_norms.adjoint(op, g, *saved, params)
    expected = formula.function(*[read[name] for name in formula.reads]).astype(dtype)
    close(found, expected, TOLERANCE[dtype])


def parameters(op):
    """The names of the parameters of an operation."""
    plain = getattr(op.forward, "plain", op.forward)
    return {*inspect.signature(op.decomposition or plain).parameters}


def test_long_rows_are_added_up_as_exactly_as_in_pairs():
    x = 1e4 + RNG.standard_normal(3_000_001)
    for name, params in (("var", {"correction": 0.0}), ("norm", {"p": 2.0})):
        found = softmax_and_norms.forward(table[name], x, dim=(0,), keepdim=False, **params)
        centre = math.fsum(x.tolist()) / x.size if name == "var" else 0.0
        exact = math.fsum(((x - centre) ** 2).tolist())
        exact = exact / x.size if name == "var" else math.sqrt(exact)
        assert abs(found - exact) <= 1e-15 * exact


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1.0, 1e153, 5e307])
def test_quotients_by_any_divisor(scale):
    """The adjoint of a norm divides by it, in subnormal numbers, too."""
    x = scale * np.array([[3.0] + [0.0] * 49, [0.0] * 49 + [1.0], *[[0.0] * 50] * 398])
    y = np.abs(x).sum(1)
    found = softmax_and_norms.adjoint(
        table["norm"], np.ones(400), x, y, {"p": 2.0, "dim": (1,), "keepdim": False}
    )
    np.testing.assert_allclose(found, x / np.where(y == 0, 1, y)[:, None], rtol=1e-15)


@pytest.mark.parametrize(
    "function",
    [f for op in table.values() for f in (op.forward, op.writes) if hasattr(f, "loop")],
    ids=lambda f: f.loop,
)
def test_the_loop_that_a_row_names_exists(function):
    assert callable(loop_of(function.loop))


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("threads", [1, 2])
def test_complex_numbers_are_added_up_as_their_parts_are(threads, dtype, monkeypatch):
    monkeypatch.setattr(large_elementwise, "SPLIT", 1 << 13)
    monkeypatch.setattr(large_elementwise, "_threads", threads)
    x = (V[:64000] + 1j * V[-64000:]).astype(dtype).reshape(40, 50, 32)
    for dim in ((0, 1, 2), (0,), (1,), (1, 2), (0, 2)):
        for function in (reduce_loops.sum, reduce_loops.mean):
            found = function(x, dim=dim, keepdim=False)
            expected = getattr(x.astype("c16"), function.__name__)(dim)
            close(found, np.asarray(expected, dtype), 1e-5 if dtype == "c8" else 1e-13)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(64, 6, 8, 8), (3000, 5, 2), (9, 4, 3, 400), (2, 7, 5, 300)])
def test_sums_around_the_dimensions_that_stay(shape, dtype):
    x = np.random.default_rng(0).uniform(0.0, 1.0, shape).astype(dtype)
    for dim in ((0, *range(2, x.ndim)), (0, x.ndim - 1)):
        if dim != tuple(range(dim[-1] + 1)):
            found = reduce_loops.sum(x, dim=dim, keepdim=True)
            expected = x.astype("f8").sum(dim, keepdims=True)
            np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "f4" else 1e-13)
    kept = (1, shape[1], *[1] * (x.ndim - 2))
    found = reduce_loops.sum_to(x, shape=kept[1:])
    assert found.shape == kept[1:]
    assert found.dtype == x.dtype


def test_sums_are_as_exact_as_pairwise_ones():
    x = np.random.default_rng(0).uniform(0, 1, 3_000_001)
    exact = math.fsum(x.tolist())
    assert abs(reduce_loops.sum(x, dim=(0,), keepdim=False) - exact) <= 4e-16 * exact
    columns = x[: 10**6].reshape(-1, 50).copy()
    exact = math.fsum(columns[:, 3].tolist())
    found = reduce_loops.sum(columns, dim=(0,), keepdim=False)
    assert abs(found[3] - exact) <= 2e-14 * exact


# -- singular points and large arguments -----------------------------------------------------------

SPECIAL = [0.0, -0.0, 1e300, -1e300, 1e18, -3e15, math.inf, -math.inf, math.nan, 5e-324, 2.0**52]


def spread_out(values):
    """Some values here and there among ordinary ones."""
    x = np.tile(np.linspace(-3, 3, 1000), 40)
    x[:: len(x) // len(values)][: len(values)] = values
    return x


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_functions_of_any_argument(name):
    x = spread_out(SPECIAL)
    with np.errstate(invalid="ignore"):
        expected = getattr(np, name)(x)
    found = large_elementwise.compiled(table[name], [x])
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    for other in ("sin", "cos"):  # their derivatives are one another
        leaf = tg.tensor(x, requires_grad=True)
        getattr(tg, other)(leaf).backward(tg.ones(x.size))
        with np.errstate(invalid="ignore"):
            partial = np.cos(x) if other == "sin" else -np.sin(x)
        np.testing.assert_allclose(leaf.grad.numpy(), partial, rtol=1e-15)


def test_sinc_of_any_argument():
    x = spread_out(SPECIAL)
    with np.errstate(all="ignore"):
        expected = table["sinc"].forward(x)
    found = large_elementwise.compiled(table["sinc"], [x])
    np.testing.assert_allclose(found, expected, rtol=2e-15, atol=1e-320)


@pytest.mark.parametrize("name", ["remainder", "floor_divide", "fmod"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_divisions_of_any_numbers(name, dtype):
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL).astype(dtype)
        small = np.array([0.3, -0.3, 1.0, -7.0, 1e-20, -1e-20], dtype)
        values = np.concatenate([values, small])
        a, b = [np.tile(v.ravel(), 100) for v in np.meshgrid(values, values)]
        expected = getattr(np, name)(a, b)
        found = large_elementwise.compiled(table[name], [a, b])
    np.testing.assert_array_equal(found, expected)
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


def test_quotients_near_whole_numbers():
    b = RNG.uniform(0.1, 3, 10**5)
    a = b * RNG.integers(-1000, 1000, b.size)
    a = np.where(RNG.random(a.size) < 0.5, np.nextafter(a, math.inf), a)
    for name in ("remainder", "floor_divide", "fmod"):
        found = large_elementwise.compiled(table[name], [a, b])
        np.testing.assert_array_equal(found, getattr(np, name)(a, b))


@pytest.mark.parametrize("name", ["minimum", "maximum", "clamp_min", "clamp_max"])
def test_nan_wins(name):
    a, b = spread_out([math.nan, 1.0, math.nan]), spread_out([0.0, math.nan, math.nan])
    np.testing.assert_array_equal(
        large_elementwise.compiled(table[name], [a, b]), table[name].forward(a, b)
    )


def test_rows_with_nan_and_infinities():
    x = M.copy()
    x[1, 3], x[2, 4], x[3], x[4, 5] = math.nan, math.inf, -math.inf, -math.inf
    for name in ("softmax", "log_softmax"):
        with np.errstate(all="ignore"):
            expected = table[name].forward.plain(x, dim=(1,))
        np.testing.assert_allclose(table[name].forward(x, dim=(1,)), expected, rtol=1e-12)
    with np.errstate(all="ignore"):
        expected = table["logsumexp"].forward.plain(x, dim=(1,), keepdim=False)
    found = table["logsumexp"].forward(x, dim=(1,), keepdim=False)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    for dim in (0, 1):
        got = results(lambda t, dim=dim: tg.amax(t, dim=dim), [x])
        with rules_alone():
            expected = results(lambda t, dim=dim: tg.amax(t, dim=dim), [x])
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)


def test_a_product_is_not_reordered_into_an_overflow():
    x = np.tile([1e200, 1e-200], 20000)
    assert tg.prod(tg.tensor(x)).item() == pytest.approx(1.0)


def test_a_long_product_of_float32_is_computed_in_float64():
    x = np.random.default_rng(0).uniform(1 - 1e-4, 1 + 1e-4, 1_000_000).astype(np.float32)
    expected = np.multiply.reduce(x.astype(np.float64))
    assert tg.prod(tg.tensor(x)).item() == pytest.approx(expected, rel=2.4e-7)


def test_zero_adjoints_hide_singular_points():
    x = tg.tensor(np.where(MASK, P, 0.0), requires_grad=True)
    scale = tg.tensor(ROW, requires_grad=True)
    tg.where(tg.tensor(MASK), tg.log(x) * scale, tg.zeros(ROWS, COLUMNS)).sum().backward()
    expected = np.where(MASK, ROW / np.where(MASK, P, 1.0), 0.0)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-15)
    terms = np.where(MASK, np.log(np.where(MASK, P, 1.0)), 0.0)
    np.testing.assert_allclose(scale.grad.numpy(), terms.sum(0), rtol=1e-12)


def test_a_norm_of_zeros_has_the_derivative_zero():
    x = tg.tensor(np.zeros((200, 100)), requires_grad=True)
    tg.norm(x, dim=1).backward(tg.ones(200))
    assert not x.grad.numpy().any()


# -- layouts ---------------------------------------------------------------------------------------


def test_layouts_that_no_loop_knows():
    x = tg.tensor(M, requires_grad=True)
    y = (tg.sin(x.t()) * tg.tensor(M.T.copy())).sum()
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(M) * M, rtol=1e-14)
    a, b = tg.tensor(M[::2], requires_grad=True), tg.tensor(M[:, ::2], requires_grad=True)
    (a[:, ::2] * b[::2]).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy()[:, ::2], M[::2, ::2])
    whole = tg.sum(tg.arange(100000))
    assert whole.item() == 4999950000


def test_broadcasting_in_three_steps():
    a, b = M[:, :240].reshape(30, 10, 240), RNG.standard_normal((30, 1, 240))
    c = RNG.standard_normal((1, 10, 1))
    got = results(lambda x, y, z: tg.sin(x * y) * z, [a.copy(), b, c])
    with rules_alone():
        expected = results(lambda x, y, z: tg.sin(x * y) * z, [a.copy(), b, c])
    for one, other in zip(got, expected, strict=True):
        close(one, other, 1e-12)


def test_grid_merges_dimensions():
    assert grid(((4, 5, 6), (6,)), (4, 5, 6)) == (20, 6, (False, True), (False, False))
    assert grid(((4, 5, 6), (4, 1, 1)), (4, 5, 6)) == (4, 30, (False, False), (False, True))
    assert grid(((4, 5, 6), (1, 5, 1)), (4, 5, 6)) is None
    assert grid(((7,), ()), (7,)) == (1, 7, (False, False), (False, True))
    assert core(np.broadcast_to(np.ones((3, 1)), (3, 4))).shape == (3, 1)


def test_overlapping_memory_in_place():
    x = tg.tensor(V.copy())
    x[1:].add_(x[:-1])
    np.testing.assert_array_equal(x.numpy()[1:], V[1:] + V[:-1])
    y = tg.tensor(P.copy())
    rows = tg.tensor(np.arange(ROWS))
    y.index_add_(0, rows, y)
    np.testing.assert_array_equal(y.numpy(), 2 * P)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("place", [COLUMNS, -1])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, k: x.gather(1, k),
        lambda x, k: x.scatter(1, k, tg.tensor(P)),
        lambda x, k: x.scatter_add(1, k, tg.tensor(P)),
        lambda x, k: x.scatter_(1, k, tg.tensor(P)),
        lambda x, k: x.scatter_add_(1, k, tg.tensor(P)),
        lambda x, k: x.reshape(-1)[:COLUMNS].take(k - (x.shape[1] + 1) * (k < 0)),
    ],
)
def test_a_single_place_out_of_range_is_refused(function, place, threads, monkeypatch):
    """And nothing was written."""
    monkeypatch.setattr(large_elementwise, "_threads", threads)
    monkeypatch.setattr(large_elementwise, "SPLIT", 1000)
    far, x = PLACES.copy(), tg.tensor(M.copy())
    far[200, 100] = place
    with pytest.raises((RuntimeError, IndexError), match="index out of range: an index in"):
        function(x, tg.tensor(far))
    np.testing.assert_array_equal(x.numpy(), M)


def test_rows_out_of_range_are_refused():
    for function in (
        lambda x, k: x.index_add(0, k, tg.tensor(P)),
        lambda x, k: x.index_select(0, k),
        lambda x, k: x[k],
    ):
        with pytest.raises(IndexError):
            function(tg.tensor(M), tg.tensor(TURN + 1))
    for function in (
        lambda x, k: x.gather(0, k[:, None].expand(M.shape)),
        lambda x, k: x.scatter_add(0, k[:, None].expand(M.shape), tg.tensor(P)),
    ):
        with pytest.raises(RuntimeError, match="index out of range"):
            function(tg.tensor(M), tg.tensor(TURN + 1))


def test_negative_places_count_from_the_end():
    back, long = PLACES - COLUMNS, V[:COLUMNS].copy()
    np.testing.assert_array_equal(tg.tensor(long)[tg.tensor(back)].numpy(), long[back])
    np.testing.assert_array_equal(tg.tensor(V)[tg.tensor(back[0])].numpy(), V[back[0]])
    np.testing.assert_array_equal(tg.tensor(M)[tg.tensor(TURN - ROWS)].numpy(), M[TURN - ROWS])


def test_small_arrays_compile_nothing():
    code = """
import sys, numpy as np, tapegrad as tg
x = tg.tensor(np.linspace(0.1, 0.9, 1024), requires_grad=True)
y = tg.sin(x) * tg.relu(x) % 0.3
(tg.softmax(y, dim=0).var() + y.view(32, 32).cumsum(1).sum() + tg.norm(y)).item()
print("llvmlite" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout.split() == ["False"]


@pytest.mark.parametrize("n", [2, 6, 10, 15, 16])
def test_an_adjoint_that_was_spread_over_short_rows(n):
    """The adjoint of a sum over short rows is one number for each: a kernel call for each row."""
    x0 = np.random.default_rng(n).standard_normal((40, 500, n))
    x = tg.tensor(x0, requires_grad=True)
    weights = np.linspace(0.0, 1.0, 40 * 500).reshape(40, 500)
    ((x * x).sum(-1) * weights).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x0 * weights[..., None], rtol=1e-14)


@pytest.mark.parametrize("name", ["cumprod", "logcumsumexp"])
@pytest.mark.parametrize("dim", [0, 1])
def test_scans_of_what_is_not_finite(name, dim):
    forward, rng = table[name].forward, np.random.default_rng(0)
    some = [0.0, -0.0, 0.5, -1.5, 700.0, 1e308, -1e308, 1e-308, -np.inf, np.inf, np.nan]
    x = np.where(rng.random((300, 200)) < 0.05, rng.choice(some, (300, 200)), M[:, :200])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(forward(x, dim=dim), forward.plain(x, dim=dim), 1e-13)
