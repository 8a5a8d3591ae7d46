"""Reductions and their kin agree with NumPy for any shape, axis and keepdims."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import tapegrad as tg
from tapegrad.functions.quantiles import METHODS

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")

REDUCTIONS = "sum mean prod max min ptp var std nansum nanmean".split()
ONE_AXIS = "cumsum sort diff median argsort argmax".split()
SHAPES = npst.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=3)


def array_of(shape):
    """Different values, none of them 0."""
    values = np.random.default_rng(len(shape)).permutation(int(np.prod(shape))) + 1.0
    return values.reshape(shape) / 8.0


def agree(function, array):
    """The same value and the gradient of its sum by differences in a random direction."""
    t = tg.tensor(array, requires_grad=True)
    got, expected = function(t), function(array)
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-12, atol=1e-12)
    if not got.requires_grad:
        return
    (g,) = tg.autograd.grad(got.sum(), t)
    way = np.random.default_rng(1).normal(size=array.shape)
    step = 1e-6
    sides = [np.sum(function(array + s * way)) for s in (step, -step)]
    slope, scale = (sides[0] - sides[1]) / (2 * step), np.abs(g.numpy() * way).sum()
    assert abs(np.sum(g.numpy() * way) - slope) <= 1e-6 * (1 + scale + np.abs(sides[0]))


@st.composite
def reduced(draw):
    shape = draw(SHAPES)
    axes = draw(npst.valid_tuple_axes(len(shape), min_size=1))
    axis = draw(st.sampled_from([None, axes, axes[0]]))
    return shape, axis, draw(st.booleans())


@pytest.mark.parametrize("name", REDUCTIONS)
@given(reduced())
@settings(max_examples=40, deadline=None)
def test_reductions(name, chosen):
    shape, axis, keepdims = chosen
    count = np.prod(shape) if axis is None else np.prod(np.take(shape, axis))
    if name == "std" and count == 1:
        return  # the root of 0 has no slope
    agree(lambda x: getattr(np, name)(x, axis=axis, keepdims=keepdims), array_of(shape))


@pytest.mark.parametrize("name", ONE_AXIS)
@given(SHAPES, st.data())
@settings(max_examples=40, deadline=None)
def test_functions_along_one_axis(name, shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    agree(lambda x: getattr(np, name)(x, axis=axis), array_of(shape))


@pytest.mark.parametrize("method", METHODS)
@given(reduced(), st.lists(st.integers(0, 16), min_size=1, max_size=3))
@settings(max_examples=25, deadline=None)
def test_quantiles(method, chosen, sixteenths):
    shape, axis, keepdims = chosen
    array = array_of(shape)
    holes = np.where(array * 8 % 3 == 1, np.nan, array)
    for q in (sixteenths[0] / 16, np.array(sixteenths) / 16):
        options = {"axis": axis, "method": method, "keepdims": keepdims}
        agree(lambda x, q=q, o=options: np.quantile(x, q, **o), array)
        found = np.nanquantile(tg.tensor(holes), q, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of groups without a number
            expected = np.nanquantile(holes, q, **options)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


@given(SHAPES, st.data())
@settings(max_examples=60, deadline=None)
def test_moving_axes(shape, data):
    axis = st.integers(-len(shape), len(shape) - 1)
    a, b = data.draw(axis), data.draw(axis)
    agree(lambda x: np.moveaxis(x, a, b), array_of(shape))
    agree(lambda x: np.swapaxes(x, a, b), array_of(shape))
    start = data.draw(st.integers(-len(shape), len(shape)))
    agree(lambda x: np.rollaxis(x, a, start), array_of(shape))
    agree(lambda x: np.flip(x, a), array_of(shape))
    order = data.draw(st.permutations(range(len(shape))))
    agree(lambda x: np.transpose(x, order), array_of(shape))
    new = data.draw(npst.valid_tuple_axes(len(shape) + 2, min_size=1, max_size=2))
    if len(new) == 2:
        agree(lambda x: np.expand_dims(x, new), array_of(shape))


@given(npst.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
@settings(max_examples=60, deadline=None)
def test_operands_broadcast(shapes):
    a, b = (array_of(s) + 0.5 for s in shapes.input_shapes)
    b = b + 1 / 32  # no ties
    for ufunc in (np.add, np.divide, np.arctan2, np.fmax):
        agree(lambda x, ufunc=ufunc: ufunc(x, b), a)
        agree(lambda x, ufunc=ufunc: ufunc(a, x), b)


@pytest.mark.parametrize("kind", [tg.float64, tg.float32])
@pytest.mark.parametrize(
    "other", [np.float64(2.0), np.array([2.0, 3.0]), np.array(2.0), np.array([2.0], np.float32)]
)
def test_an_array_on_the_left_is_what_it_is_in_a_tensor(other, kind):
    t = tg.tensor([0.5, 1.5], dtype=kind, requires_grad=True)
    for ufunc in (np.add, np.multiply, np.power, np.true_divide, np.less):
        got, want = ufunc(other, t), ufunc(tg.tensor(np.asarray(other)), t)
        assert (got.dtype, got.tolist()) == (want.dtype, want.tolist())
        if got.requires_grad:
            (g,) = tg.autograd.grad(got.sum(), t)
            (w,) = tg.autograd.grad(want.sum(), t)
            assert (g.dtype, g.tolist()) == (w.dtype, w.tolist())
