"""Any shapes, strides and types: values are NumPy's, gradients are the rule path's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tapegrad as tg
from tapegrad.tensor import wrap
from tests.conformance.checks import close, rules_only
from tests.conformance.samples import LAYOUTS, laid_out

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.tapegrad_only("compares two ways of sweeping"),
]
few = settings(max_examples=60, deadline=None, derandomize=True)
sides = st.integers(0, 4)
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
dtypes = st.sampled_from([np.float64, np.float32])
layouts = st.sampled_from(["", *LAYOUTS])


def numbers(shape, dtype, how, seed):
    rng = np.random.default_rng(seed)
    x = np.asarray(rng.uniform(0.2, 2.0, shape)).astype(dtype)
    return laid_out(x, how) if how else x


def gradients(function, arrays):
    """Both ways of sweeping; the leaves' gradients under different weights for each element."""
    leaves = [wrap(x).requires_grad_() for x in arrays]
    y = function(*leaves)
    weight = wrap(np.asarray(np.cos(np.arange(y._a.size)).reshape(y._a.shape)).astype(y._a.dtype))
    return y, [g._a for g in tg.autograd.grad(y, leaves, weight)]


def check(function, reference, arrays):
    before = [x.copy() for x in arrays]
    y, found = gradients(function, arrays)
    with rules_only():
        _, expected = gradients(function, arrays)
    np.testing.assert_allclose(y._a.shape, reference.shape)
    assert y._a.dtype == arrays[0].dtype
    tolerance = 1e-12 if arrays[0].dtype == np.float64 else 1e-4
    np.testing.assert_allclose(y._a, reference, rtol=tolerance, atol=tolerance)
    close(found, expected, tolerance, "kernel against rule")
    for x, old, g in zip(arrays, before, found, strict=True):
        assert g.dtype == x.dtype
        np.testing.assert_array_equal(x, old)


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "maximum": np.maximum, "atan2": np.arctan2,
}  # fmt: skip


@few
@given(
    pair=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4, min_side=0),
    name=st.sampled_from(sorted(BINARY)), dtype=dtypes, hows=st.tuples(layouts, layouts),
)  # fmt: skip
def test_binary_operations_broadcast(pair, name, dtype, hows):
    a, b = (numbers(s, dtype, h, k) for k, (s, h) in enumerate(zip(pair.input_shapes, hows)))
    check(getattr(tg, name), BINARY[name](a, b), [a, b])


@few
@given(
    triple=hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3, min_side=0),
    dtype=dtypes, hows=st.tuples(layouts, layouts, layouts),
)  # fmt: skip
def test_ternary_operations_broadcast(triple, dtype, hows):
    arrays = [numbers(s, dtype, h, k) for k, (s, h) in enumerate(zip(triple.input_shapes, hows))]
    a, b, c = arrays
    check(tg.addcmul, a + b * c, arrays)
    check(tg.addcdiv, a + b / c, arrays)


REDUCTIONS = {
    "sum": np.sum, "mean": np.mean, "amax": np.max, "var": np.var,
}  # fmt: skip


@few
@given(data=st.data(), name=st.sampled_from(sorted(REDUCTIONS)), dtype=dtypes, how=layouts,
       shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4))  # fmt: skip
def test_reductions(data, name, dtype, how, shape):
    dim = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)) if shape else set()
    keepdim = data.draw(st.booleans())
    x = numbers(shape, dtype, how, 1)
    options = {"correction": 0} if name == "var" else {}
    check(
        lambda t: getattr(tg, name)(t, dim=tuple(dim), keepdim=keepdim, **options),
        np.asarray(REDUCTIONS[name](x, axis=tuple(dim) or None, keepdims=keepdim)),
        [x],
    )


@few
@given(data=st.data(), dtype=dtypes, how=layouts, shape=shapes)
def test_basic_indexing(data, dtype, how, shape):
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, slice) and (part.step or 1) < 0 for part in parts):
        return
    x = numbers(shape, dtype, how, 1)
    check(lambda t: t[index] * 2, np.asarray(x[index]) * x.dtype.type(2), [x])


@few
@given(data=st.data(), dtype=dtypes, how=layouts,
       shape=hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))  # fmt: skip
def test_advanced_indexing(data, dtype, how, shape):
    index = data.draw(
        hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3))
    )
    x = numbers(shape, dtype, how, 1)
    check(lambda t: t[tuple(tg.tensor(i) for i in index)], x[index], [x])


@few
@given(data=st.data(), dtype=dtypes, how=layouts,
       shape=hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))  # fmt: skip
def test_chains_of_views(data, dtype, how, shape):
    """Views of views: the chain of them, and its gradient, are what NumPy's views say."""
    chain = []
    now = list(shape)
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(
            st.sampled_from(["permute", "slice", "unsqueeze", "expand", "reshape", "select"])
        )
        if kind == "permute":
            order = tuple(data.draw(st.permutations(range(len(now)))))
            chain.append((lambda t, o=order: t.permute(o), lambda a, o=order: a.transpose(o)))
            now = [now[d] for d in order]
        elif kind == "slice":
            d = data.draw(st.integers(0, len(now) - 1))
            key = (slice(None),) * d + (slice(data.draw(st.integers(0, 1)), None, 2), ...)
            chain.append((lambda t, k=key: t[k], lambda a, k=key: a[k]))
            now = list(np.empty(now)[key].shape)
        elif kind == "unsqueeze":
            d = data.draw(st.integers(0, len(now)))
            chain.append((lambda t, d=d: t.unsqueeze(d), lambda a, d=d: np.expand_dims(a, d)))
            now.insert(d, 1)
        elif kind == "expand":
            full = [3, *(2 if n == 1 else n for n in now)]
            chain.append((lambda t, s=full: t.expand(s), lambda a, s=full: np.broadcast_to(a, s)))
            now = full.copy()
        elif kind == "reshape":
            n = int(np.prod(now))
            chain.append((lambda t, n=n: t.reshape(n, 1), lambda a, n=n: a.reshape(n, 1)))
            now = [n, 1]
        elif now[-1] and len(now) > 1:
            chain.append((lambda t: t.select(-1, 0), lambda a: a[..., 0]))
            now.pop()
    x = numbers(shape, dtype, how, 1)

    def follow(t, k):
        for step in chain:
            t = step[k](t)
        return t

    check(lambda t: follow(t, 0), np.asarray(follow(x, 1)), [x])


@few
@given(data=st.data(), dtype=dtypes, hows=st.tuples(layouts, layouts))
def test_matrix_products(data, dtype, hows):
    m, k, n = (data.draw(st.integers(0, 4)) for _ in range(3))
    left = data.draw(st.sampled_from([(m, k), (k,), (2, m, k), (2, 1, m, k)]))
    right = data.draw(
        st.sampled_from([(k, n), (k,), (2, k, n), (3, k, n) if len(left) != 3 else (k, n)])
    )
    a, b = (numbers(s, dtype, h, i) for i, (s, h) in enumerate(zip((left, right), hows)))
    check(tg.matmul, np.asarray(np.matmul(a, b)), [a, b])
