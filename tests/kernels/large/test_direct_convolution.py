"""Direct convolutions compute what products with matrices of patches do."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.kernels.codegen import convolution_codegen as codegen
from tapegrad.kernels.large import direct_convolution as direct
from tapegrad.ops import convolution as ops
from tapegrad.ops.convolution import Geometry

CLOSE = {"d": 1e-12, "f": 1e-4}


@st.composite
def problems(draw):
    """Images, filters, outputs and where the windows lie."""
    dims, groups = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    numbers = [st.integers(low, high) for low, high in ((1, 3), (1, 3), (0, 2), (1, 2))]
    kernel, stride, padding, dilation = [tuple(draw(n) for _ in range(dims)) for n in numbers]
    least = [
        max(d * (k - 1) + 1 - 2 * p, 1) for k, p, d in zip(kernel, padding, dilation, strict=True)
    ]
    size = tuple([n + draw(st.integers(0, 9)) for n in least])
    places = tuple([
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    ])  # fmt: skip
    n, inputs, outputs = (
        draw(st.sampled_from((1, 2, 37))),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 17)),
    )
    dtype = draw(st.sampled_from("df"))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x, w, v = [
        rng.standard_normal(shape).astype(dtype)
        for shape in (
            (n, inputs * groups, *size),
            (outputs * groups, inputs, *kernel),
            (n, outputs * groups, *places),
        )
    ]
    return x, w, v, Geometry(stride, padding, dilation, groups)


def check(x, w, v, at):
    """Compare the three forms; how many the loops computed."""
    size, kernel, places = x.shape[2:], w.shape[2:], v.shape[2:]
    pairs = (
        (direct.convolution(x, w, places, at), ops._convolved(x, w, places, at)),
        (direct.transposed(v, w, size, at), ops._spread(v, w, size, at)),
        (direct.correlation(v, x, kernel, at), ops._correlated(v, x, kernel, at)),
    )
    close = CLOSE[x.dtype.char]
    for found, expected in pairs:
        if found is not None:
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=close, atol=close * 10)
    return sum(found is not None for found, _ in pairs)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems())
def test_equals_products_of_matrices(problem):
    check(*problem)


def usual(dtype="d", n=5, stride=(1, 1)):
    rng = np.random.default_rng(0)
    at = Geometry(stride, (1, 1), (1, 1))
    shapes = (n, 6, 12, 12), (20, 6, 3, 3), (n, 20, 11 // stride[0] + 1, 11 // stride[1] + 1)
    return *[rng.standard_normal(shape).astype(dtype) for shape in shapes], at


@pytest.mark.parametrize("dtype", "df")
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 3)])
def test_usual_images_are_computed_directly(dtype, stride):
    assert check(*usual(dtype, stride=stride)) == 3


@pytest.mark.parametrize("dtype", "df")
def test_vectors_of_older_machines(monkeypatch, dtype):
    shapes = codegen.vectors
    half = codegen.Vectors(f"f{np.dtype(dtype).itemsize}", 32 // np.dtype(dtype).itemsize, 16)
    try:
        monkeypatch.setattr(codegen, "vectors", lambda _: half)
        for made in (direct.plan, direct.tile_kernel, direct.block_kernel):
            made.cache_clear()
        assert check(*usual(dtype)) == 3
    finally:
        monkeypatch.setattr(codegen, "vectors", shapes)
        for made in (direct.plan, direct.tile_kernel, direct.block_kernel):
            made.cache_clear()


def test_threads(monkeypatch):
    """One image is divided by channels, many by images."""
    before = tg.get_num_threads()
    try:
        tg.set_num_threads(4)
        for n in (1, 50):
            x, w, v, at = usual(n=n)
            x, v = [np.repeat(np.repeat(a, 4, axis=2), 4, axis=3) for a in (x, v)]
            assert check(x, w, v, at) == 3
    finally:
        tg.set_num_threads(before)


def test_what_the_loops_leave_alone():
    x, w, v, at = usual()
    assert direct.convolution(x.astype(complex), w.astype(complex), v.shape[2:], at) is None
    assert direct.convolution(x, w.astype("f"), v.shape[2:], at) is None
    assert direct.convolution(x.astype(">f8"), w.astype(">f8"), v.shape[2:], at) is None
    assert direct.convolution(x[:0], w, v.shape[2:], at) is None
    whole = Geometry((1, 1), (0, 0), (1, 1))  # hardly a position that is wanted
    assert direct.convolution(x, np.ones((2, 6, 12, 12)), (1, 1), whole) is None


def test_any_layout():
    x, w, v, at = usual()
    turned = [np.asfortranarray(a) for a in (x, w, v)]
    size, places = x.shape[2:], v.shape[2:]
    for form, pair, last in (
        (direct.convolution, (0, 1), places),
        (direct.transposed, (2, 1), size),
        (direct.correlation, (2, 0), (3, 3)),
    ):
        found = form(*[turned[k] for k in pair], last, at)
        np.testing.assert_array_equal(found, form(*[(x, w, v)[k] for k in pair], last, at))


def test_infinite_filters_do_not_reach_beyond_the_outputs():
    """A transposed convolution adds what there is; it multiplies nothing by zeros around it."""
    v, w = tg.ones(1, 1, 2, 2), tg.full((1, 1, 2, 2), float("inf"))
    found = tg.nn.functional.conv_transpose2d(v, w)
    assert found.tolist() == [[[[float("inf")] * 3] * 3]]


def test_infinite_images_spoil_their_own_outputs_alone():
    x = np.ones((1, 1, 6, 6))
    x[0, 0, 0, 5] = np.inf
    w = tg.ones(1, 1, 3, 3, requires_grad=True)
    y = tg.nn.functional.conv2d(tg.tensor(x), w)
    expected = np.full((4, 4), 9.0)
    expected[0, 3] = np.inf
    np.testing.assert_array_equal(y.detach().numpy()[0, 0], expected)
    (g,) = tg.autograd.grad(y[..., :3].sum(), w)
    assert np.isfinite(g.numpy()).all()
    assert prod(g.shape) == 9
