"""Containers whose entries have names: in any order, and of the kinds that Python has."""

from collections import OrderedDict, defaultdict

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("pytrees")


def branched(x):
    return tg.cond(
        x > 0,
        lambda x: {"a": x, "b": (2 * x, {"c": x, "d": -x})},
        lambda x: {"b": (-x, {"d": 5 * x, "c": 7 * x}), "a": 3 * x},
        x,
    )


WANTED = {
    2.0: {"a": 2.0, "b": (4.0, {"c": 2.0, "d": -2.0})},
    -2.0: {"a": -6.0, "b": (2.0, {"c": -14.0, "d": -10.0})},
}


@pytest.mark.parametrize("x", list(WANTED))
def test_arms_may_return_entries_in_any_order(x):
    assert branched(x) == tg.jit(branched)(x) == WANTED[x]
    total = lambda x: (lambda r: r["a"] + 10 * r["b"][0] + 100 * r["b"][1]["c"])(branched(x))
    slope = 1 + 20 + 100 if x > 0 else 3 - 10 + 700
    assert tg.jit(tg.grad(total))(x) == tg.grad(total)(x) == slope


def test_arms_of_which_both_run_may_too():
    xs = np.array(list(WANTED))
    for f in (tg.vmap(branched), tg.jit(tg.vmap(branched))):
        np.testing.assert_array_equal(f(xs)["b"][1]["d"], [-2.0, -10.0])


def test_carries_may_change_the_order_of_their_entries():
    def f(x):
        swap = lambda _, c: {"b": c["b"] * 2 + c["a"], "a": c["a"] + 1}
        return tg.fori_loop(0, 3, swap, {"a": x, "b": 1.0})

    assert f(0.0) == tg.jit(f)(0.0) == {"a": 3.0, "b": 12.0}
    assert tg.jit(tg.grad(lambda x: f(x)["b"]))(0.0) == 7.0


def test_other_names_are_refused():
    with pytest.raises(TypeError, match="both must return the same"):
        tg.jit(lambda x: tg.cond(x > 0, lambda x: {"a": x}, lambda x: {"b": x}, x))(1.0)
    with pytest.raises(ValueError, match="differ in structure"):
        tg.tree_map(lambda a, b: a + b, {"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 2.0})


def test_tangents_and_trees_may_come_in_another_order():
    f = lambda d: d["a"] * d["b"]
    assert tg.jvp(f, ({"a": 2.0, "b": 3.0},), ({"b": 0.0, "a": 1.0},)) == (6.0, 3.0)
    assert tg.tree_map(lambda a, b: a - b, {"a": 1.0, "b": 2.0}, {"b": 1.0, "a": 5.0}) == {
        "a": -4.0, "b": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("make", [OrderedDict, lambda d: defaultdict(list, d)])
def test_other_dicts_of_python_are_containers(make):
    given = make({"b": 2.0, "a": 3.0})
    f = lambda d: d["a"] ** 2 * d["b"]
    for g in (tg.grad(f), tg.jit(tg.grad(f))):
        found = g(given)
        assert type(found) is type(given)
        assert found == {"b": 9.0, "a": 12.0}
        assert list(found) == ["b", "a"]
    double = tg.jit(lambda d: tg.tree_map(lambda x: 2 * x, d))(given)
    assert type(double) is type(given)
    assert double == {"b": 4.0, "a": 6.0}
    if isinstance(given, defaultdict):
        assert double["c"] == []


TREE = {"w": [1.0, np.array([2.0, 3.0])], "none": None, "b": (4.0,)}


def test_pytrees_taken_apart_and_made_again():
    leaves, structure = tg.tree_flatten(TREE)
    assert [np.size(x) for x in leaves] == [1, 2, 1]
    assert tg.tree_leaves(TREE)[2] == 4.0
    again = tg.tree_unflatten(structure, (2 * x for x in leaves))
    assert list(again) == ["w", "none", "b"]
    assert (again["b"], again["w"][1][1]) == ((8.0,), 6.0)
    assert tg.tree_reduce(lambda n, x: n + np.sum(x), TREE, 100.0) == 110.0
    with pytest.raises(ValueError, match="has 3 leaves, got 2"):
        tg.tree_unflatten(structure, leaves[:2])


def test_what_is_a_leaf_can_be_said():
    is_leaf = lambda x: x is None or isinstance(x, tuple)
    assert tg.tree_leaves(TREE, is_leaf=is_leaf)[2:] == [None, (4.0,)]
    assert tg.tree_map(len, {"a": (1, 2), "b": (3,)}, is_leaf=is_leaf) == {"a": 2, "b": 1}
    pairs = tg.tree_map(lambda a, b: (a, b), [None, (1.0, 2.0)], [{"x": 3.0}, 4.0], is_leaf=is_leaf)
    assert pairs == [(None, {"x": 3.0}), ((1.0, 2.0), 4.0)]


def test_a_norm_over_leaves_is_differentiated():
    norm = lambda tree: np.sqrt(sum(np.sum(x**2) for x in tg.tree_leaves(tree)))
    for f in (tg.grad(norm), tg.jit(tg.grad(norm))):
        assert f({"a": np.array([3.0]), "b": (4.0,)})["b"][0] == 0.8
