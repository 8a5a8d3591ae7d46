"""Places among bounds and counts, where they are wanted of several examples, and their weights."""

import numpy as np
import pytest

import tapegrad

SORTED = np.array([[0.0, 1.0, 2.0], [2.0, 3.0, 4.0]])
VALUES = np.array([[0.5, 2.5], [1.0, 9.0]])


def test_searchsorted_under_transforms():
    expected = [[1, 3], [0, 3]]
    assert (
        tapegrad.searchsorted(tapegrad.tensor(SORTED), tapegrad.tensor(VALUES)).tolist() == expected
    )
    assert tapegrad.vmap(tapegrad.searchsorted)(SORTED, VALUES).tolist() == expected
    assert tapegrad.jit(tapegrad.searchsorted)(SORTED, VALUES).tolist() == expected
    at = tapegrad.vmap(tapegrad.searchsorted, in_axes=(0, None))(SORTED, 2.0)
    assert at.tolist() == [2, 0]
    at = tapegrad.vmap(tapegrad.searchsorted, in_axes=(None, 0))(SORTED[0], VALUES)
    assert at.tolist() == [[1, 3], [1, 3]]


def test_counts_are_linear_in_their_weights():
    weights = tapegrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    counted = tapegrad.bincount(tapegrad.tensor([1, 0, 1]), weights)
    (counted * tapegrad.tensor([10.0, 1.0])).sum().backward()
    assert counted.tolist() == [2.0, 4.0]
    assert weights.grad.tolist() == [1.0, 10.0, 1.0]
    hist, _ = tapegrad.histogram(tapegrad.tensor([0.0, 1.0, 2.0]), 2, weight=weights)
    hist[1].backward()
    assert weights.grad.tolist() == [1.0, 11.0, 2.0]


def test_a_place_has_no_gradient():
    x = tapegrad.tensor([1.0, 2.0], requires_grad=True)
    assert not tapegrad.searchsorted(x, x).requires_grad
    assert not tapegrad.histc(x).requires_grad
    assert not any(part.requires_grad for part in tapegrad.histogram(x, 2))


@pytest.mark.parametrize("name", ["histc", "histogram", "histogramdd"])
def test_it_is_named_where_values_are_not_known(name):
    def f(x):
        return getattr(tapegrad, name)(x, [4] if name == "histogramdd" else 4)

    x = np.random.default_rng(0).normal(size=(2, 5, 1))
    for transform, where in ((tapegrad.vmap, "under `vmap`"), (tapegrad.jit, "`tapegrad.jit`")):
        with pytest.raises(RuntimeError, match=f"{where}.*`{name}`"):
            transform(f)(x)
