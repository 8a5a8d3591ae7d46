"""Index arrays: the walk hands on what the rules would."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tapegrad as tg
from tapegrad.tape import GENERAL
from tests.kernels.test_walk import both

pytestmark = pytest.mark.tapegrad_only("compares roads through the library")


def of(function, shape, *, native=True):
    """A graph in which rows are picked twice, from a leaf and from a result."""
    x0 = np.random.default_rng(0).standard_normal(shape)

    def build():
        x = tg.tensor(x0, requires_grad=True)
        y = function(x)
        assert bool(y.tape.words()[y.tape.index(y.position), 0] & GENERAL) != native
        again = function(x * 2.0)
        return (y * y).sum() + (again**3).sum() + (x * x).sum(), [x]

    return build


PICKED = {
    "vector": (lambda x: x[tg.tensor([0, 2, 2, -1])], (5,)),
    "rows": (lambda x: x[tg.tensor([0, 2, 2, -1])], (5, 3)),
    "blocks": (lambda x: x[tg.tensor([1, 1])], (2, 3, 4)),
    "by a matrix": (lambda x: x[tg.tensor([[0, 1], [-1, 0]])], (3, 2)),
    "by a number": (lambda x: x[tg.tensor(1)], (3, 2)),
    "index_select": (lambda x: tg.index_select(x, 0, tg.tensor([2, 0, 0])), (3, 2)),
    "gather": (lambda x: tg.gather(x, 0, tg.tensor([2, 0, 0])), (3,)),
    "gather, each row": (lambda x: tg.gather(x, 1, tg.tensor([[2, 0], [1, 1]])), (2, 3)),
    "gather, one of each row": (lambda x: tg.gather(x, -1, tg.tensor([[2], [0]])), (2, 3)),
}
GENERALLY = {
    "by two": (lambda x: x[tg.tensor([0, 1]), tg.tensor([1, 1])], (2, 3)),
    "columns": (lambda x: x[:, tg.tensor([2, 0])], (2, 3)),
    "by a mask": (lambda x: x[x.detach() > 0], (40,)),
    "index_select, columns": (lambda x: tg.index_select(x, 1, tg.tensor([2, 0, 0])), (2, 3)),
    "gather, each column": (lambda x: tg.gather(x, 0, tg.tensor([[1, 0, 0]])), (2, 3)),
    "gather, some rows": (lambda x: tg.gather(x, 1, tg.tensor([[2, 0]])), (2, 3)),
    "gather, more than fits": (
        lambda x: tg.gather(x, 1, tg.zeros(1, 40_000, dtype=tg.int64)),
        (1, 3),
    ),
    "no places": (lambda x: x[tg.zeros(0, dtype=tg.int64)], (3,)),
    "int32": (lambda x: x[tg.tensor([0, 1], dtype=tg.int32)], (3,)),
}


@pytest.mark.parametrize("name", PICKED)
def test_picked(name):
    both(of(*PICKED[name]))


@pytest.mark.parametrize("name", GENERALLY)
def test_what_only_the_rules_know(name):
    both(of(*GENERALLY[name], native=name in ("by a mask",)))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_places(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    n = shape[0]
    places = data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=9))
    both(of(lambda x: x[tg.tensor(places)], shape))


def test_places_that_were_changed_behind_the_library_are_refused():
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    places = np.array([0, 1])
    y = x[tg.from_numpy(places)]
    places[1] = 1000  # which no version tells of
    with pytest.raises((IndexError, ValueError)):  # NumPy's, and no memory is written beyond
        y.sum().backward()


def test_places_out_of_range():
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(IndexError, match=r"index of a Tensor of shape \(3,\)"):
        x[tg.tensor([0, 3])]
    with pytest.raises(IndexError, match=r"too many indices|0-d"):
        tg.tensor(1.0)[tg.tensor([0])]
