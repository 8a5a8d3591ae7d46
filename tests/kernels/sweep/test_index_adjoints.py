"""Index arrays: the compiled sweep hands on what the rules would."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tapegrad as tg
from tapegrad.tape.record_format import GENERAL
from tests.kernels.sweep.test_compiled_sweep import both

pytestmark = pytest.mark.tapegrad_only("compares paths through the library")


def of(function, shape, *, native=True):
    """A graph in which rows are picked twice, from a leaf and from a result."""
    x0 = np.random.default_rng(0).standard_normal(shape)

    def build():
        x = tg.tensor(x0, requires_grad=True)
        y = function(x)
        assert bool(y.tape.whole.words()[y.tape.whole.index(y.position), 0] & GENERAL) != native
        again = function(x * 2.0)
        return (y * y).sum() + (again**3).sum() + (x * x).sum(), [x]

    return build


MIDDLE = tg.tensor([[[0, 2], [1, 1]], [[2, 2], [0, 0]]])
PICKED = {
    "vector": (lambda x: x[tg.tensor([0, 2, 2, -1])], (5,)),
    "rows": (lambda x: x[tg.tensor([0, 2, 2, -1])], (5, 3)),
    "blocks": (lambda x: x[tg.tensor([1, 1])], (2, 3, 4)),
    "by a matrix": (lambda x: x[tg.tensor([[0, 1], [-1, 0]])], (3, 2)),
    "by a number": (lambda x: x[tg.tensor(1)], (3, 2)),
    "index_select": (lambda x: tg.index_select(x, 0, tg.tensor([2, 0, 0])), (3, 2)),
    "index_select, columns": (lambda x: tg.index_select(x, 1, tg.tensor([2, 0, 0])), (2, 3)),
    "index_select, in the middle": (lambda x: tg.index_select(x, 1, tg.tensor([2, 0])), (2, 3, 4)),
    "columns": (lambda x: x[:, tg.tensor([2, 0, -1])], (2, 3)),
    "in the middle": (lambda x: x[:, tg.tensor([[2, 0], [1, 1]])], (2, 3, 4)),
    "last": (lambda x: x[..., tg.tensor([3, 3])], (2, 3, 4)),
    "of one row": (lambda x: x[:, tg.tensor([2, 0, -1])], (1, 3)),
    "by two": (lambda x: x[tg.tensor([0, 1, 1]), tg.tensor([1, 2, 2])], (2, 3)),
    "by a matrix mask": (lambda x: x[x.detach() > 0], (4, 3)),
    "gather": (lambda x: tg.gather(x, 0, tg.tensor([2, 0, 0])), (3,)),
    "gather, each row": (lambda x: tg.gather(x, 1, tg.tensor([[2, 0], [1, 1]])), (2, 3)),
    "gather, one of each row": (lambda x: tg.gather(x, -1, tg.tensor([[2], [0]])), (2, 3)),
    "gather, each column": (lambda x: tg.gather(x, 0, tg.tensor([[1, 0, 0]])), (2, 3)),
    "gather, in the middle": (lambda x: tg.gather(x, 1, MIDDLE), (2, 3, 2)),
    "masked_select": (lambda x: tg.masked_select(x, x.detach() > 0), (5, 8)),
    "flip": (lambda x: tg.flip(x, (0, 2)), (2, 3, 4)),
    "repeat": (lambda x: x.repeat(3, 1, 2), (2, 3)),
    "pad": (lambda x: tg.nn.functional.pad(x, (1, 2, -1, 3), value=2.0), (2, 3)),
    "pad, no dimensions": (lambda x: tg.nn.functional.pad(x, ()), ()),
    "repeat, no dimensions": (lambda x: x.repeat(()), ()),
    "diag": (lambda x: tg.diag(x, -1), (3,)),
    "diag_embed": (lambda x: tg.diag_embed(x), (2, 3)),
    "tril": (lambda x: tg.tril(x), (3, 4)),
    "tril, all": (lambda x: tg.tril(x, 9), (3, 4)),
    "tril, nothing": (lambda x: tg.tril(x, -9), (3, 4)),
    "triu, of several": (lambda x: tg.triu(x, -1), (2, 4, 3)),
    "max": (lambda x: tg.max(x, 0).values, (3, 4)),
    "min": (lambda x: tg.min(x, 1, keepdim=True).values, (3, 4)),
}
GENERALLY = {
    "by two, apart": (lambda x: x[tg.tensor([0, 1]), :, tg.tensor([1, 1])], (2, 2, 3)),
    "of a part": (lambda x: x[:1, tg.tensor([2, 0])], (2, 3)),
    "by a mask": (lambda x: x[x.detach() > 0], (40,)),
    "gather, some rows": (lambda x: tg.gather(x, 1, tg.tensor([[2, 0]])), (2, 3)),
    "gather, more than fits": (
        lambda x: tg.gather(x, 1, tg.zeros(1, 40_000, dtype=tg.int64)),
        (1, 3),
    ),
    "no places": (lambda x: x[tg.zeros(0, dtype=tg.int64)], (3,)),
    "int32": (lambda x: x[tg.tensor([0, 1], dtype=tg.int32)], (3,)),
}


FIRST, PAIRS = tg.tensor([2, 0]), tg.tensor([[2, 0], [1, 1]])


def setting(x, key, value):
    x[key] = value
    return x


# What is written (x is a result, v a vector of two numbers, m a matrix of two by two).
WRITTEN = {
    "index_put": lambda x, v, m: tg.index_put(x[0], (FIRST,), v),
    "index_put, rows": lambda x, v, m: tg.index_put(x, (tg.tensor([-1]),), m[0].sum() * x[:1]),
    "index_put, added": lambda x, v, m: tg.index_put(x[0], (FIRST,), v, accumulate=True),
    "index_put, a number": lambda x, v, m: tg.index_put(x, (tg.tensor([1, 1]),), v[0]),
    "index_put, by a matrix": lambda x, v, m: tg.index_put(x[1], (PAIRS,), m),
    "=, columns": lambda x, v, m: setting(x.clone(), (slice(None), FIRST), m),
    "=, one column": lambda x, v, m: setting(x.clone(), (..., tg.tensor([1])), v[0]),
    "index_add, columns": lambda x, v, m: tg.index_add(x, 1, tg.tensor([1, 1]), m),
    "index_copy, columns": lambda x, v, m: tg.index_copy(x, 1, FIRST, m),
    "index_add": lambda x, v, m: tg.index_add(x[0], 0, tg.tensor([1, 1]), v),
    "index_add, rows": lambda x, v, m: tg.index_add(x, 0, tg.tensor([1, 1]), x * v[0]),
    "scatter": lambda x, v, m: tg.scatter(x, 1, PAIRS, m),
    "scatter, columns": lambda x, v, m: tg.scatter(x[:, :2], 0, PAIRS % 2, m),
    "scatter, a number": lambda x, v, m: tg.scatter(x, 1, PAIRS, 2.0),
    "scatter_add": lambda x, v, m: tg.scatter_add(x, 1, PAIRS, m),
    "scatter_add, columns": lambda x, v, m: tg.scatter_add(x[:, :2], 0, PAIRS % 2, m),
    "masked_fill": lambda x, v, m: tg.masked_fill(x, x.detach() > 0, 1.0),
    "masked_fill, by a Tensor": lambda x, v, m: tg.masked_fill(x, x.detach() > 0, v[1]),
    "copy_": lambda x, v, m: m.clone().copy_(m * v[0]),
    "copy_, a number": lambda x, v, m: x.clone().copy_(v[0]),
    "fill_": lambda x, v, m: x.clone().fill_(v[1]),
    "zero_": lambda x, v, m: x.clone().zero_(),
}


def written(name, *, native=True):
    rng = np.random.default_rng(0)
    x0, v0, m0 = (rng.standard_normal(shape) for shape in ((2, 3), 2, (2, 2)))

    def build():
        leaves = [tg.tensor(a, requires_grad=True) for a in (x0, v0, m0)]
        x, v, m = (t * 1.5 for t in leaves)
        y = WRITTEN[name](x, v, m)
        assert bool(y.tape.whole.words()[y.tape.whole.index(y.position), 0] & GENERAL) != native
        again = WRITTEN[name](*leaves)  # straight into leaves, and into adjoints that are there
        return (y * y).sum() + again.sum() + (x**3).sum() + (v * v).sum() + (m**3).sum(), leaves

    return build


@pytest.mark.parametrize("name", WRITTEN)
def test_written(name):
    both(written(name))


def test_written_at_views():
    def build():
        x = tg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
        y = x * 2.0
        y[0] = x[1] * 3.0
        y[:, ::2] = x[0, 0]
        y[1, 1:].mul_(x[0, :2])
        y.t()[0].add_(1.0)
        y[tg.tensor([0, 1]), tg.tensor([1, 1])] = x[0, 1:]
        return (y * y).sum(), [x]

    both(build)


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
