"""What transforms take and give: arguments, pytrees, arrays, numbers and Tensors."""

import dataclasses
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

X = np.array([0.3, 0.7, -1.1])


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Box:
    a: Any
    b: Any


class Held:
    def __init__(self, a, b):
        self.a, self.b = a, b


tg.register_pytree_node(Held, lambda h: ((h.a, h.b), None), lambda _, ab: Held(*ab))


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [(0, 6.0), (1, 8.0), (-1, 8.0), (-2, 6.0), ((0, 1), (6.0, 8.0)), ((1, 0), (8.0, 6.0)),
     ((-1,), (8.0,)), ([0], (6.0,)), (np.int64(1), 8.0)],
)  # fmt: skip
def test_argnums(argnums, expected):
    f = lambda x, y: 2.0 * x * y
    assert tg.grad(f, argnums)(4.0, 3.0) == expected
    assert tg.value_and_grad(f, argnums)(4.0, 3.0) == (24.0, expected)
    assert tg.jacrev(f, argnums)(4.0, 3.0) == expected
    assert tg.jacfwd(f, argnums)(4.0, 3.0) == expected
    assert tg.jacobian(f, argnums)(4.0, 3.0) == expected


def test_hessian_of_two_arguments():
    (aa, ab), (ba, bb) = tg.hessian(lambda x, y: x**2 * y**3, (0, 1))(2.0, 3.0)
    assert (aa, ab, ba, bb) == (54.0, 108.0, 108.0, 72.0)


def test_keyword_arguments_are_handed_on():
    f = lambda x, *, power, shift=0.0: x**power + shift
    assert tg.grad(f)(3.0, power=2) == 6.0
    assert tg.value_and_grad(f)(3.0, power=2, shift=1.0) == (10.0, 6.0)
    assert tg.jacfwd(f)(3.0, power=2) == tg.jacrev(f)(3.0, power=2) == 6.0
    found = tg.vmap(f)(X, power=np.array([1, 2, 3]))
    np.testing.assert_allclose(found, X ** np.array([1, 2, 3]))


def test_has_aux():
    f = lambda x: (np.sum(x**2), {"double": 2 * x, "text": "as it is"})
    g, aux = tg.grad(f, has_aux=True)(X)
    np.testing.assert_allclose(g, 2 * X)
    assert type(aux["double"]) is np.ndarray
    assert aux["text"] == "as it is"
    (value, aux), g = tg.value_and_grad(f, has_aux=True)(X)
    assert value == pytest.approx(np.sum(X**2))
    np.testing.assert_allclose(aux["double"], 2 * X)
    for jacobian in (tg.jacrev, tg.jacfwd, tg.jacobian):
        j, aux = jacobian(lambda x: (x**2, x[0]), has_aux=True)(X)
        np.testing.assert_allclose(j, np.diag(2 * X))
        assert float(aux) == 0.3
    h, aux = tg.hessian(lambda x: (np.sum(x**3), x[0]), has_aux=True)(X)
    np.testing.assert_allclose(h, np.diag(6 * X))
    assert tg.jvp(lambda x: (x**2, [x]), (3.0,), (1.0,), has_aux=True) == (9.0, 6.0, [3.0])
    value, pullback, aux = tg.vjp(lambda x: (x**2, [x]), 3.0, has_aux=True)
    assert (value, pullback(1.0), aux) == (9.0, (6.0,), [3.0])


def test_what_passes_through_aux_is_differentiated_further_out():
    def f(x):
        g, aux = tg.grad(lambda a: (a**3 * x, a * x), has_aux=True)(x)
        return g * aux  # 3 x^3 * x^2

    assert tg.grad(f)(2.0) == pytest.approx(15 * 2.0**4)
    assert tg.jvp(f, (2.0,), (1.0,))[1] == pytest.approx(15 * 2.0**4)


# -- pytrees ---------------------------------------------------------------------------------------

TREES = {
    "dict": ({"a": 2.0, "b": X}, lambda p: (p["a"], p["b"])),
    "list": ([2.0, X], tuple),
    "tuple": ((2.0, X), tuple),
    "named tuple": (Pair(2.0, X), tuple),
    "dataclass": (Box(2.0, X), lambda p: (p.a, p.b)),
    "registered": (Held(2.0, X), lambda p: (p.a, p.b)),
    "nested": ({"p": [None, (2.0, Pair(X, None))]}, lambda p: (p["p"][1][0], p["p"][1][1].a)),
}


@pytest.mark.parametrize("kind", TREES)
def test_pytrees_in(kind):
    tree, parts = TREES[kind]
    f = lambda p: parts(p)[0] ** 2 * np.sum(parts(p)[1] ** 2)
    gradient = tg.grad(f)(tree)
    assert type(gradient) is type(tree)
    a, b = parts(gradient)
    assert type(a) is float
    assert a == pytest.approx(4.0 * np.sum(X**2))
    np.testing.assert_allclose(b, 8.0 * X)
    value, pullback = tg.vjp(f, tree)
    assert type(pullback(1.0)[0]) is type(tree)
    assert tg.jvp(f, (tree,), (tree,)) == pytest.approx((value, 4 * value))
    assert tg.linearize(f, tree)[1](tree) == pytest.approx(4 * value)
    h = tg.hvp(f)(tree, tree)  # of degree four: H x = 3 g
    np.testing.assert_allclose(parts(h)[1], 24.0 * X)
    np.testing.assert_allclose(parts(tg.vhp(f)(tree, tree))[0], 3 * a)


@pytest.mark.parametrize("kind", TREES)
def test_pytrees_out(kind):
    tree, parts = TREES[kind]
    f = lambda s: tg.tree_map(lambda leaf: leaf * s, tree)
    a, b = parts(tg.jacfwd(f)(3.0))
    assert float(a) == 2.0
    np.testing.assert_allclose(b, X)
    a, b = parts(tg.jacrev(f)(3.0))
    assert float(a) == 2.0
    np.testing.assert_allclose(b, X)
    value, slope = tg.jvp(f, (3.0,), (1.0,))
    assert type(value) is type(slope) is type(tree)
    a, b = parts(tg.vmap(f)(np.array([1.0, 2.0])))
    np.testing.assert_allclose(a, [2.0, 4.0])
    np.testing.assert_allclose(b, [X, 2 * X])


def test_hessian_of_a_pytree_is_a_pytree_of_blocks():
    h = tg.hessian(lambda p: p["a"] ** 2 * np.sum(p["b"]))({"a": 2.0, "b": X})
    assert h["a"]["a"] == pytest.approx(2 * np.sum(X))
    np.testing.assert_allclose(h["a"]["b"], [4.0, 4.0, 4.0])
    np.testing.assert_allclose(h["b"]["a"], [4.0, 4.0, 4.0])
    assert not h["b"]["b"].any()


@pytest.mark.parametrize(
    "made", [lambda a, b: [a, b], lambda a, b: (a, b), Pair, lambda a, b: {"a": a, "b": b}, Box,
             lambda a, b: [{"a": a}, None, (b,)]]
)  # fmt: skip
def test_hessian_of_leaves_of_different_shapes(made):
    def f(p):
        a, b = tree_leaves(p)
        return np.sum(a**2) * b**3

    p = made(X, 2.0)
    h = tg.hessian(f)(p)
    assert type(h) is type(p)
    aa, ab, ba, bb = tree_leaves(h)
    np.testing.assert_allclose(aa, 16 * np.eye(3), rtol=1e-14)
    np.testing.assert_allclose(ab, 24 * X, rtol=1e-14)
    np.testing.assert_allclose(ba, 24 * X, rtol=1e-14)
    assert bb == pytest.approx(12 * np.sum(X**2), rel=1e-14)
    other = tg.jacobian(tg.grad(f))(p)
    for one, two in zip(tree_leaves(h), tree_leaves(other), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-14)


def tree_leaves(tree):
    found = []
    tg.tree_map(found.append, tree)
    return found


def test_axes_of_pytrees():
    m = np.arange(6.0).reshape(2, 3)
    f = lambda p, s: {"sum": p["m"].sum() + p["c"], "all": (p["m"] * s,)}
    found = tg.vmap(f, ({"m": 1, "c": None}, 0), {"sum": 0, "all": -1})(
        {"m": m, "c": 10.0}, np.array([1.0, 2.0, 3.0])
    )
    np.testing.assert_allclose(found["sum"], m.sum(0) + 10)
    np.testing.assert_allclose(found["all"][0], m * [1, 2, 3])
    np.testing.assert_allclose(tg.vmap(lambda x: x * 2, -1, -1)(m), 2 * m)
    np.testing.assert_allclose(tg.vmap(lambda x: x * 2, -1)(m), 2 * m.T)
    np.testing.assert_allclose(tg.vmap(lambda x, y: y, (0, None))(m, X), [X, X])
    assert tg.vmap(lambda x: x * 2)(np.ones((0, 2))).shape == (0, 2)


def test_ravel_pytree():
    tree = {"w": np.ones((2, 2), np.float32), "b": [3.0, X]}
    flat, unravel = tg.ravel_pytree(tree)
    np.testing.assert_allclose(flat, [1, 1, 1, 1, 3.0, *X])
    back = unravel(2 * flat)
    assert back["w"].dtype == np.float32
    assert type(back["b"][0]) is float
    np.testing.assert_allclose(back["b"][1], 2 * X)
    found = tg.grad(lambda v: np.sum(unravel(v)["w"] ** 2) * unravel(v)["b"][0])(flat)
    np.testing.assert_allclose(found, [6.0] * 4 + [4.0] + [0.0] * 3)
    found = tg.grad(lambda p: np.sum(tg.ravel_pytree(p)[0] ** 2))({"a": X, "b": 2.0})
    np.testing.assert_allclose(found["a"], 2 * X)
    assert found["b"] == 4.0
    with pytest.raises(ValueError, match="`unravel` takes a vector of 8 elements, got the shape"):
        unravel(X)


# -- leaves ----------------------------------------------------------------------------------------


def test_like_for_like():
    f = lambda x: np.sum(x**2)
    assert type(tg.grad(f)(3.0)) is float
    assert type(tg.value_and_grad(f)(X)[0]) is float
    assert type(tg.grad(f)(X)) is np.ndarray
    assert type(tg.grad(f)(np.float64(3.0))) is float
    assert type(tg.grad(f)(tg.tensor(X))) is tg.Tensor
    assert type(tg.value_and_grad(f)(tg.tensor(X))[0]) is tg.Tensor
    assert tg.grad(f)(np.array(3.0)).shape == ()
    for dtype in (np.float32, np.float64):
        x = X.astype(dtype)
        assert tg.grad(f)(x).dtype == dtype
        assert [a.dtype for a in tg.jvp(np.sin, (x,), (np.ones(3),))] == [dtype, dtype]
        assert tg.jacfwd(np.sin)(x).dtype == tg.jacrev(np.sin)(x).dtype == dtype
        assert tg.hessian(f)(x).dtype == dtype
        assert tg.vmap(np.sin)(x).dtype == dtype
        assert tg.grad(f)(dtype(3.0)) == 6.0
    assert type(tg.grad(f)(np.float32(3.0))) is np.float32
    assert type(tg.value_and_grad(f)(X.astype("f4"))[0]) is np.float32
    np.testing.assert_allclose(tg.grad(f)(X.astype("f4")), 2 * X, rtol=1e-6)


@pytest.mark.parametrize("make", [tg.grad, tg.jacfwd, tg.jacrev], ids=["grad", "fwd", "rev"])
def test_nested_transforms_give_plain_results(make):
    """Nothing of an inner transform is dragged along."""
    f = lambda x: make(lambda y: tg.jvp(lambda z: tg.grad(np.sin)(z) * y, (y,), (x,))[1])(x)
    for outer in (tg.grad, tg.jacfwd, tg.jacrev):
        assert type(outer(f)(0.5)) in (float, np.ndarray)
    assert all(type(a) is float for a in tg.jvp(f, (0.5,), (1.0,)))


def test_of_a_tensor_that_requires_grad():
    w = tg.tensor(2.0, requires_grad=True)
    g = tg.grad(lambda x: x**3)(w)
    assert tg.autograd.grad(g, w)[0].item() == 12.0
    g = tg.grad(lambda x: x**3 * w)(tg.tensor(3.0))
    assert tg.autograd.grad(g, w)[0].item() == 27.0
    _, slope = tg.jvp(lambda x: x**3, (w,), (tg.tensor(1.0),))
    assert tg.autograd.grad(slope, w)[0].item() == 12.0
    v = tg.tensor([1.0, 2.0], requires_grad=True)
    assert tg.autograd.grad(tg.vmap(lambda x: x**3)(v).sum(), v)[0].tolist() == [3.0, 12.0]
    assert tg.autograd.grad(tg.hessian(lambda x: (x**3).sum())(v).sum(), v)[0].tolist() == [6, 6]
    assert w.grad is None


def test_inside_no_grad():
    with tg.no_grad():
        assert tg.grad(lambda x: x**2)(3.0) == 6.0
        assert tg.jvp(lambda x: x**2, (3.0,), (1.0,)) == (9.0, 6.0)
        np.testing.assert_allclose(tg.hessian(lambda x: (x**3).sum())(X), np.diag(6 * X))
    assert tg.grad(lambda x: x**2)(3.0) == 6.0


# -- what else JAX's signatures have ---------------------------------------------------------------


def test_linearize_passes_on_what_else_is_returned():
    value, slope, aux = tg.linearize(lambda x: (np.sin(x), {"x": x, "n": 3}), X, has_aux=True)
    np.testing.assert_array_equal(value, np.sin(X))
    np.testing.assert_allclose(slope(np.ones(3)), np.cos(X), rtol=1e-14)
    assert (type(aux["x"]), aux["n"]) == (np.ndarray, 3)
    with pytest.raises(TypeError, match=r"`linearize` with `has_aux=True`: .* must return a pair"):
        tg.linearize(np.sin, X, has_aux=True)
    second = tg.jacobian(lambda q: tg.linearize(lambda x: (x**3, x), q, has_aux=True)[1](X))(X)
    np.testing.assert_allclose(second, np.diag(6 * X**2), rtol=1e-13)


def test_vmap_is_told_how_many_examples_there_are():
    assert tg.vmap(lambda: tg.ones(2), axis_size=3)().shape == (3, 2)
    assert tg.vmap(lambda x: x, None, axis_size=2)(1.5).tolist() == [1.5, 1.5]
    assert tg.vmap(lambda x: 2 * x, axis_size=3)(X).tolist() == (2 * X).tolist()
    with pytest.raises(ValueError, match=r"`axis_size` is 2, but .* numbers of examples: \[3\]"):
        tg.vmap(np.sin, axis_size=2)(X)
    with pytest.raises(ValueError, match="or `axis_size`, the number of examples"):
        tg.vmap(np.sin, None)(X)
    with pytest.raises(TypeError, match="is a number of examples or None, got"):
        tg.vmap(np.sin, axis_size=2.0)


@pytest.mark.parametrize("kind", [OrderedDict, lambda pairs: defaultdict(float, pairs)])
def test_dictionaries_of_other_kinds(kind):
    p = kind([("b", 2.0), ("a", X)])

    def f(p):
        return np.sum(p["a"] ** 2) * p["b"]

    slopes = tg.grad(f)(p)
    assert (type(slopes), list(slopes)) == (type(p), ["b", "a"])
    np.testing.assert_allclose(slopes["a"], 4 * X, rtol=1e-14)
    assert getattr(slopes, "default_factory", float) is float
    np.testing.assert_allclose(tg.hessian(f)(p)["a"]["b"], 2 * X, rtol=1e-14)
    np.testing.assert_allclose(tg.jit(tg.grad(f))(p)["a"], 4 * X, rtol=1e-14)
    mapped = tg.vmap(f, ({"a": 0, "b": None},))(kind([("b", 2.0), ("a", np.stack([X, X]))]))
    np.testing.assert_allclose(mapped, [f(p), f(p)], rtol=1e-14)
    assert tg.ravel_pytree(p)[0].tolist() == [2.0, *X]


@pytest.mark.parametrize(
    "transform", [tg.grad, tg.jacobian, tg.jacrev, tg.jacfwd, tg.hessian], ids=lambda t: t.__name__
)
def test_arrays_without_a_shape_stay_arrays(transform):
    for x, kind in ((np.array(2.0), np.ndarray), (2.0, float), (np.float64(2.0), float)):
        found = transform(lambda s: s**2)(x)
        assert isinstance(found, kind)
        assert found == (2.0 if transform is tg.hessian else 4.0)
    assert isinstance(transform(lambda s: s**2)(tg.tensor(2.0)), tg.Tensor)
    rows = tg.vmap(transform(lambda s: s**3))(X)
    np.testing.assert_allclose(rows, 6 * X if transform is tg.hessian else 3 * X**2, rtol=1e-13)


@pytest.mark.parametrize(
    "transform", [tg.grad, tg.value_and_grad, tg.jacobian, tg.jacrev, tg.jacfwd, tg.hessian]
)
def test_a_truth_value_names_no_argument(transform):
    with pytest.raises(TypeError, match="argnums is an int or a tuple of ints, got True"):
        transform(lambda a, b: a * b, argnums=True)(1.0, 2.0)
