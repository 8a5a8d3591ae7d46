"""A masked NaN never poisons: an adjoint that is exactly zero contributes exactly zero."""

import math

import numpy as np
import pytest

different = pytest.mark.tapegrad_only("zero times infinity is NaN in PyTorch")


MASKED = {
    "sqrt": (0.0, lambda tg, x: tg.sqrt(x)),
    "sqrt of a negative": (-1.0, lambda tg, x: tg.sqrt(x)),
    "log": (0.0, lambda tg, x: tg.log(x)),
    "log of a negative": (-1.0, lambda tg, x: tg.log(x)),
    "reciprocal": (0.0, lambda tg, x: 1 / x),
    "quotient": (0.0, lambda tg, x: x / x),
    "power": (0.0, lambda tg, x: x**0.5),
    "negative power": (0.0, lambda tg, x: x**-2),
    "exponent": (0.0, lambda tg, x: x**x),
    "asin": (1.0, lambda tg, x: tg.asin(x)),
    "atan2": (0.0, lambda tg, x: tg.atan2(x, x)),
    "product with infinity": (1.0, lambda tg, x: x * math.inf),
    "overflow": (1000.0, lambda tg, x: tg.exp(x) * tg.exp(x)),
    "chain": (0.0, lambda tg, x: tg.sin(tg.sqrt(tg.log(x) + 5))),
}


@different
@pytest.mark.parametrize("name", MASKED)
def test_where_hides_a_singular_branch(tg, leaf, name):
    at, function = MASKED[name]
    x = leaf([at, 0.5])
    keep = tg.tensor([False, True])
    safe = leaf([0.5, 0.5])
    expected = tg.autograd.grad(function(tg, safe).sum(), safe)[0].tolist()[1]
    tg.where(keep, function(tg, x), tg.zeros(2)).sum().backward()
    assert x.grad.tolist() == [0.0, expected]


@different
@pytest.mark.parametrize("name", MASKED)
def test_at_second_order_too(tg, leaf, name):
    at, function = MASKED[name]
    x = leaf(at)
    y = tg.where(tg.tensor(False), function(tg, x), x * x)
    (g,) = tg.autograd.grad(y, x, create_graph=True)
    assert g.item() == 2 * at
    (h,) = tg.autograd.grad(g, x, create_graph=True)
    assert h.item() == 2.0


# What selects hands nothing to what it left out, also where the adjoint is infinite.
SELECTING = {
    "relu": lambda tg, x: tg.relu(x),
    "maximum": lambda tg, x: tg.maximum(x, tg.zeros(2)),
    "minimum": lambda tg, x: -tg.minimum(-x, tg.zeros(2)),
    "fmax": lambda tg, x: tg.fmax(tg.zeros(2), x),
    "fmin": lambda tg, x: -tg.fmin(-x, tg.zeros(2)),
    "where": lambda tg, x: tg.where(x > 0, x, tg.zeros(2)),
    "masked_fill": lambda tg, x: x.masked_fill(x < 0, 0.0),
    "clamp": lambda tg, x: tg.clamp(x, 0.0, 9.0),
    "clamp from below": lambda tg, x: tg.clamp(x, min=0.0),
    "clamp from above": lambda tg, x: -tg.clamp(-x, max=0.0),
    "hardtanh": lambda tg, x: tg.nn.functional.hardtanh(x, 0.0, 9.0),
    "hardshrink": lambda tg, x: tg.nn.functional.hardshrink(x, 2.0),
    "softshrink": lambda tg, x: tg.nn.functional.softshrink(x, 2.0),
    "hardsigmoid": lambda tg, x: tg.nn.functional.hardsigmoid(x - 2.5),
    "hardswish": lambda tg, x: tg.nn.functional.hardswish(x - 2.5) + 0.0,
}


@pytest.mark.parametrize("name", SELECTING)
def test_what_is_left_out_has_no_part_in_an_infinite_adjoint(tg, leaf, name):
    x = leaf([-1.0, 4.0])
    y = SELECTING[name](tg, x)
    tg.sqrt(y).sum().backward()
    alone = leaf([4.0, 4.0])
    tg.sqrt(SELECTING[name](tg, alone)).sum().backward()
    assert x.grad.tolist() == [0.0, alone.grad.tolist()[1]]


@pytest.mark.parametrize("name", ["max", "min", "median"])
def test_nor_have_elements_that_are_no_extremes(tg, leaf, name):
    x = leaf([1.0, 2.0, 3.0])
    place = {"max": 2, "min": 0, "median": 1}[name]
    tg.sqrt(getattr(tg, name)(x - (place + 1.0))).backward()
    assert x.grad.tolist() == [math.inf if k == place else 0.0 for k in range(3)]


@pytest.mark.tapegrad_only
@pytest.mark.parametrize("name", SELECTING)
def test_compiled_too(tg, name):
    from tapegrad import jit

    f = lambda x: tg.sqrt(SELECTING[name](tg, x)).sum()
    x = np.array([-1.0, 4.0])
    expected = tg.grad(f)(x)
    assert expected[0] == 0.0
    np.testing.assert_allclose(jit(tg.grad(f))(x), expected)
    np.testing.assert_allclose(tg.vmap(tg.grad(f))(x[None])[0], expected)
    np.testing.assert_allclose(tg.jacobian(tg.grad(f))(x)[0], 0.0)


@different
@pytest.mark.parametrize("name", MASKED)
def test_a_zero_weight_hides_it_as_well(tg, leaf, name):
    at, function = MASKED[name]
    x = leaf([at, 0.5])
    function(tg, x).backward(tg.tensor([0.0, 0.0]))
    assert x.grad.tolist() == [0.0, 0.0]


@different
def test_masked_fill_and_indexing_hide_it(tg, leaf):
    x = leaf([0.0, 4.0])
    tg.sqrt(x).masked_fill(x == 0, 0.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]
    x.grad = None
    tg.sqrt(x)[1].backward()
    assert x.grad.tolist() == [0.0, 0.25]
    x.grad = None
    tg.sqrt(x)[x > 0].sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


def test_an_adjoint_that_is_not_zero_meets_the_singularity(tg, leaf):
    x = leaf([0.0, 4.0])
    tg.sqrt(x).sum().backward()
    assert x.grad.tolist() == [math.inf, 0.25]
    y = leaf(-1.0)
    tg.sqrt(y).backward()
    assert math.isnan(y.grad.item())


def test_a_zero_adjoint_still_has_a_derivative(tg, leaf):
    """y = (x^2 - 1)^2 / 2 at 1: the adjoint of x^2 is zero, and the second derivative is 4."""
    x = leaf(1.0)
    a = x * x - 1
    y = a * a / 2
    (g,) = tg.autograd.grad(y, x, create_graph=True)
    assert g.item() == 0.0
    (h,) = tg.autograd.grad(g, x, create_graph=True)
    assert h.item() == 4.0
    (third,) = tg.autograd.grad(h, x)
    assert third.item() == 12.0


def test_a_zero_weight_has_a_derivative_with_respect_to_itself(tg, leaf):
    x, weight = leaf([2.0, 3.0]), leaf([0.0, 0.0])
    (g,) = tg.autograd.grad(x**3, x, weight, create_graph=True)
    assert g.tolist() == [0.0, 0.0]
    (by_weight,) = tg.autograd.grad(g.sum(), weight)
    assert by_weight.tolist() == [12.0, 27.0]


@pytest.mark.tapegrad_only("NumPy's functions under a transform")
def test_a_masked_nan_reaches_no_tangent(tg):
    """What `where` does not choose has a tangent that is NaN."""
    f = lambda x: np.where(x > 1.0, np.sqrt(x - 1.0), 2.0 * x)
    for x, slope in ((0.5, 2.0), (2.0, 0.5)):
        pushed = lambda x: tg.jvp(f, (x,), (1.0,))[1]
        assert pushed(x) == tg.jit(pushed)(x) == slope
    x = np.array([0.5, 2.0])
    slopes = tg.jvp(lambda x: np.where(x > 1.0, x, 1), (x,), (x,))[1]
    np.testing.assert_array_equal(slopes, [0.0, 2.0])
