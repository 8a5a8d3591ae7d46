"""Sums of weighted products of matrices: the order in which they are computed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.compiler.ir import contraction_order
from tapegrad.compiler.ir.contraction_order import contracted
from tapegrad.compiler.passes.dead_code import without_dead
from tests.compiler.graphs import executed, graph, names, passed, run, traced
from tests.compiler.passes.randoms import close, on_random_programs
from tests.compiler.test_random_programs import profile

pytestmark = pytest.mark.tapegrad_only("about this project")


def change(before):
    return without_dead(contracted(before).graph)


def blend(matrices, points, weights):
    """Points moved by some matrices, weighted and added up."""
    return np.sum((matrices @ points) * weights[:, None, :], axis=0)


def arrays(b, r, k, n, dtype=np.float64):
    rng = np.random.default_rng([b, r, k, n])
    shapes = (b, r, k), (k, n), (b, n)
    return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)


def leaves(found):
    if isinstance(found, tuple | list):
        return [y for x in found for y in leaves(x)]
    return [np.asarray(found)]


def sizes_of(tape):
    return {node.size for node in tape.nodes}


# -- which order -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("sizes", "between"),
    [
        ((22, 3, 4, 100), 3 * 4 * 100),  # the matrices are blended
        ((4, 64, 8, 100), 4 * 8 * 100),  # the points are weighted
        ((4, 3, 4, 1000), 4 * 3 * 1000),  # as written
        ((8, 32, 32, 200), 8 * 32 * 200),
        ((2, 100, 100, 100), 2 * 100 * 100),
    ],
)
def test_the_array_between_is_the_smallest(sizes, between, dtype):
    given = arrays(*sizes, dtype)
    after = passed(change, traced(blend, *given), *given, alike=close)
    result = sizes[1] * sizes[3]
    assert max(sizes_of(after)) == max(between, result, *[x.size for x in given])
    close(executed(after, *given), [blend(*given)])


FORTY = np.linspace(-1.0, 1.0, 40).reshape(40, 1, 1, 1)
LAYOUTS = {
    "transposed": lambda a, p, w: np.sum((p.T @ a.mT) * w[:, :, None], axis=0),
    "batch in the middle": lambda a, p, w: np.sum(
        (np.stack([a, 2.0 * a]) @ p) * w[:, None], axis=1
    ),
    "two batches": lambda a, p, w: np.sum(
        (np.reshape(a, (4, 5, 3, 4)) @ p) * np.reshape(w, (4, 5, 1, -1)), axis=(0, 1)
    ),
    "one batch of two": lambda a, p, w: np.sum(
        (np.reshape(a, (2, 10, 3, 4)) @ p) * np.reshape(w, (2, 10, 1, -1)), axis=1
    ),
    "dimension kept": lambda a, p, w: np.sum((a @ p) * w[:, None], axis=0, keepdims=True),
    "weight of a matrix": lambda a, p, w: np.sum((a @ p) * w[:, :1, None], axis=0),
    "weight of a row": lambda a, p, w: np.sum((a @ p) * a[:, :, :1], axis=0),
    "weight of all": lambda a, p, w: np.sum((a @ p) * w[0, 0], axis=0),
    "weight of a point": lambda a, p, w: np.sum(w[0] * (a @ p), axis=0),
    "repeated weight": lambda a, p, w: np.sum(
        np.broadcast_to(w[:, None], (20, 3, p.shape[1])) * (a @ p), axis=0
    ),
    "split columns": lambda a, p, w: np.sum(
        np.reshape(w.T @ np.reshape(a, (20, 12)), (300, 3, 4)) * p.T[:, None], axis=2
    ),
    "split columns, weights first": lambda a, p, w: np.sum(
        np.reshape(w.T[:100] @ np.reshape(np.sin(a * FORTY), (40, 20, 12)), (40, 100, 3, 4))
        * p.T[:100, None],
        axis=3,
    ),
    "split batch": lambda a, p, w: np.sum(
        np.reshape(a @ p, (4, 5, 1, 3, 300)) * np.reshape(w, (4, 5, 1, 1, 300)), axis=(0, 1)
    ),
    "weighted columns": lambda a, p, w: np.sum((w @ p.T) * p[:, 0], axis=1),
    "no weight": lambda a, p, w: np.sum(a @ p, axis=0),
    "batch of points": lambda a, p, w: np.sum(a @ (p * w[:, None]), axis=0),
    "batch of weights alone": lambda a, p, w: np.sum((a[0] @ p) * w[:, None], axis=0),
    "one matrix": lambda a, p, w: np.sum((a[:1] @ p) * w[:, None], axis=0),
    "outer products": lambda a, p, w: np.sum((a[:, :, :1] @ p[:1]) * w[:, None], axis=0),
    "sum of products": lambda a, p, w: np.sum((a @ p + (a * a) @ p) * w[:, None], axis=0),
    "sum of weighted products": lambda a, p, w: np.sum(
        (a @ p) * w[:, None] + np.sin(w)[:, None] * (a @ p), axis=0
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name):
    f, given = LAYOUTS[name], arrays(20, 3, 4, 300)
    after = passed(change, traced(f, *given), *given, alike=close)
    assert 20 * 3 * 300 not in sizes_of(after)
    derivative = tg.value_and_grad(lambda *a: np.sum(np.sin(f(*a))), argnums=(0, 1, 2))
    found, wanted = tg.jit(derivative)(*given), derivative(*given)
    close(leaves(found), leaves(wanted))


# -- what stays --------------------------------------------------------------------------------


STAY = {
    "read elsewhere": lambda a, p, w: (np.sum((a @ p) * w[:, None], axis=0), np.sin(a @ p)),
    "a batch of points": lambda a, p, w: np.sum((a @ (p * w[:, None])) * w[:, None], axis=0),
    "a sum over rows": lambda a, p, w: np.sum((a @ p) * w[:, None], axis=(0, 1)),
    "weighted twice": lambda a, p, w: np.sum((a @ p) * w[:, None] * w[:, None], axis=0),
    "no product": lambda a, p, w: np.sum(np.sin(a @ p) * w[:, None], axis=0),
    "vectors": lambda a, p, w: np.sum((a @ p[:, 0]) * w[:, :3], axis=0),
    "something added": lambda a, p, w: np.sum((a @ p + 1.0) * w[:, None], axis=0),
}


@pytest.mark.parametrize("name", STAY)
def test_other_sums_stay(name):
    given = arrays(20, 3, 4, 300)
    before = without_dead(traced(STAY[name], *given))
    if name == "read elsewhere":  # one product, which two read
        before = graph(
            *given, ("matmul", (0, 1)), ("getitem", (2,), {"index": (slice(None), None)}),
            ("mul", (3, 4)), ("sum", (5,), {"dim": (0,), "keepdim": False}), ("sin", (3,)),
            outputs=(6, 7),
        )  # fmt: skip
    assert names(change(before)) == names(before)


def test_what_nobody_asks_for_stays():
    given = arrays(20, 3, 4, 300)
    before = traced(lambda a, p, w: (blend(a, p, w), a)[1], *given)
    assert contracted(before).graph is before


def test_what_is_small_or_no_sum_or_product_stays():
    given = arrays(6, 2, 2, 5)
    before = traced(blend, *given)
    assert contracted(before).graph is before
    for f in (lambda a: np.sum(np.sin(a), axis=0), lambda a: a @ a):
        before = traced(f, np.ones((30, 20, 20)))
        assert contracted(before).graph is before


def test_a_gradient_does_not_pass_what_is_blocked():
    given = arrays(20, 3, 4, 300)

    def f(a, p, w):
        with tg.no_grad():
            fixed = a @ p
        return np.sum(np.sum(fixed * w[:, None], axis=0) ** 2) + np.sum(p)

    def shown(a, p, w):
        with tg.no_grad():
            weights = w[:, None]
        return np.sum(np.sum((a @ p) * weights, axis=0) ** 2) + np.sum(w)

    for g in (f, shown):
        derivative = tg.grad(g, argnums=(0, 1, 2))
        close(tg.jit(derivative)(*given), derivative(*given))


def test_long_sums_are_looked_at_once():
    a, p, w = arrays(20, 3, 4, 300)

    def f(a):
        total = a @ p
        for k in range(2000):
            total = total + a[k % 20] @ p
        return np.sum(total * w[:, None], axis=0)

    before = traced(f, a)
    assert contracted(before).graph is before


# -- derivatives -------------------------------------------------------------------------------


def scaled(t, a, p, w):
    return blend(a * t[:, None, None], p, w)


def direction(a, p, w):
    return np.cos(a), np.cos(p), np.cos(w)


DERIVATIVES = {
    "value_and_grad": tg.value_and_grad(lambda *x: np.sum(blend(*x) ** 2), argnums=(0, 1, 2)),
    "jvp": lambda *x: tg.jvp(blend, x, direction(*x)),
    "jvp of a gradient": lambda *x: tg.jvp(
        tg.grad(lambda *y: np.sum(np.sin(blend(*y))), argnums=(0, 1, 2)), x, direction(*x)
    ),
    "gradient of a gradient": tg.grad(
        lambda *x: np.sum(tg.grad(lambda *y: np.sum(np.sin(blend(*y))))(*x) ** 2), argnums=(0, 1, 2)
    ),
    "jacfwd": lambda a, p, w: tg.jacfwd(scaled)(w[:, 0], a, p, w),
    "vmap": lambda a, p, w: tg.vmap(lambda t: blend(a * t, p, w))(np.arange(3.0)),
    "scan": lambda a, p, w: tg.scan(lambda c, _: (c + blend(a, p * c[0, 0], w), c), p[:3], p[:2]),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_follow_the_order(name, dtype):
    f, given = DERIVATIVES[name], arrays(30, 3, 4, 200, dtype)
    compiled = tg.jit(lambda *x: f(*x))
    with np.errstate(all="ignore"):
        found = leaves(compiled(*given))
        wanted = leaves(f(*[x.astype(np.float64) for x in given]))
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == dtype
        tolerance = 2e-5 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())
    if name != "jacfwd":  # which has an array for each direction
        assert 30 * 3 * 200 not in sizes_of(compiled.lower(*given).graph)


def test_weighted_points_lie_as_the_product_reads_them():
    """It takes them transposed: the larger factor is not copied."""
    rng = np.random.default_rng(0)
    transforms, points = rng.normal(size=(26, 22, 3, 4)), rng.normal(size=(544, 4))
    weights = rng.normal(size=(544, 22))

    def moved(transforms, points, weights):
        blended = weights @ transforms.reshape(26, 22, 12)
        return np.sum(blended.reshape(26, 544, 3, 4) * points[:, None], axis=3)

    f = tg.jit(moved)
    wanted = np.einsum("abrk,nk,nb->anr", transforms, points, weights)
    np.testing.assert_allclose(f(transforms, points, weights), wanted, rtol=1e-11, atol=1e-12)
    text = f.lower(transforms, points, weights).as_text("loops")
    assert "matrix product by BLAS" in text
    assert text.count("writes 383 kB") == 1  # 22 x 4 x 544 doubles


# -- what is not finite ------------------------------------------------------------------------


def test_zero_tangents_of_infinite_weights_are_zero():
    a, p, w = arrays(20, 3, 4, 300)
    w[:10] = np.inf
    da = np.ones_like(a)
    da[:10] = 0.0
    f = tg.jit(lambda a, p, w, da: tg.jvp(lambda a: blend(a, p, w), (a,), (da,))[1])
    found = f(a, p, w, da)
    np.testing.assert_allclose(found, blend(da[10:], p, w[10:]), rtol=1e-12, atol=1e-12)


def test_zero_adjoints_of_infinite_factors_are_zero():
    a, p, w = arrays(20, 3, 4, 300)
    p[:, 100:], w[:, 100:] = np.inf, -np.inf
    loss = lambda a, p, w: np.sum(blend(a, p, w)[:, :100])
    found = tg.jit(tg.grad(loss))(a, p, w)
    wanted = tg.grad(loss)(a, p[:, :100], w[:, :100])
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", range(3))
@pytest.mark.filterwarnings("ignore:invalid value")
def test_the_same_elements_are_finite(where, bad):
    given = arrays(20, 3, 4, 300)
    given[where].reshape(-1)[[5, 17]] = bad
    before = traced(blend, *given)
    (found,), (wanted,) = run(change(before), *given), run(before, *given)
    finite = np.isfinite(wanted)
    assert 0 < finite.sum() < finite.size
    np.testing.assert_array_equal(np.isfinite(found), finite)
    np.testing.assert_allclose(found[finite], wanted[finite], rtol=1e-12, atol=1e-12)
    if np.isnan(bad):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))


# -- random programs ---------------------------------------------------------------------------


def eagerly(before):
    """The pass where it takes every other order that is no dearer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contraction_order, "LEAST", 1)
        patch.setattr(contraction_order, "GAIN", 0.0)
        return change(before)


SIZES = st.tuples(*[st.integers(1, 4)] * 5)
SUBSETS = st.tuples(*[st.booleans()] * 8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@profile(150)
@given(SIZES, SUBSETS, st.sampled_from([(0,), (1,), (0, 1)]), st.booleans(), st.integers(0, 99))
def test_random_contractions(dtype, sizes, kept, dims, swapped, seed):
    """Every operand has some of the dimensions, the others have one element there."""
    c, b, r, k, n = sizes
    some = [size if keep else 1 for size, keep in zip((c, b, c, b, c, b, r, n), kept, strict=True)]
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(*some[:2], r, k)).astype(dtype)
    right = rng.normal(size=(*some[2:4], k, n)).astype(dtype)
    weights = rng.normal(size=some[4:]).astype(dtype)

    def f(x, y, w):
        pair = (w, x @ y) if swapped else (x @ y, w)
        return np.sum(pair[0] * pair[1], axis=dims)

    given = left, right, weights
    for g in (f, lambda *x: tg.jvp(f, x, x)[1]):
        passed(eagerly, traced(g, *given), *given, alike=close)


test_random_programs = on_random_programs(eagerly, alike=close)
