"""Windows into buffers, against what NumPy shows of an array of numbers that name their place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.compiler.ir.buffers import SCRATCH, Buffer, c_strides, follow, whole, window
from tapegrad.compiler.ir.graph import Node
from tapegrad.ops.families import table

pytestmark = pytest.mark.tapegrad_only("about this project")

VIEWS = {
    "getitem": [
        {"index": (1, ...)},
        {"index": (..., slice(None, None, 2))},
        {"index": (slice(1, None), None, ..., -1)},
        {"index": (0, 1, 2)},
        {"index": (slice(2, 2), ...)},
    ],
    "permute": [{"dims": (2, 0, 1)}, {"dims": (1, 0, 2)}],
    "flip": [{"dims": (0,)}, {"dims": (0, 2)}],
    "expand": [{"shape": (5, 2, 3, 4)}],
    "reshape": [{"shape": (6, 4)}, {"shape": (24,)}, {"shape": (2, 1, 12)}, {"shape": (4, 3, 2)}],
    "unsqueeze": [{"dims": (0,)}, {"dims": (3,)}],
    "diagonal": [{"offset": 0, "dim1": 0, "dim2": 2}, {"offset": 1, "dim1": 1, "dim2": 2}],
    "clone": [{}],
    "alias": [{}],
}
CASES = [(name, params) for name, several in VIEWS.items() for params in several]


def buffer(size):
    return Buffer(SCRATCH, 0, np.dtype(np.float64), size)


def seen(place):
    """The numbers of the elements that a window shows."""
    numbers = np.arange(place.buffer.size)
    low = place.offset + sum(
        min(0, s * (n - 1)) for s, n in zip(place.strides, place.shape, strict=True)
    )
    high = place.offset + sum(
        max(0, s * (n - 1)) for s, n in zip(place.strides, place.shape, strict=True)
    )
    if 0 not in place.shape:
        assert 0 <= low <= high < place.buffer.size
    steps = [s * numbers.itemsize for s in place.strides]
    return np.lib.stride_tricks.as_strided(numbers[place.offset :], place.shape, steps)


def node(name, params, shape):
    array = np.asarray(table[name].forward(np.empty(shape), **params))
    return Node(table[name], (0,), params, array.shape, array.dtype)


@pytest.mark.parametrize(
    ("name", "params"), CASES, ids=[f"{n}-{k}" for k, (n, _) in enumerate(CASES)]
)
def test_a_window_shows_what_the_operation_gives(name, params):
    numbers = np.arange(24).reshape(2, 3, 4)
    place = window(whole(buffer(24), (2, 3, 4)), node(name, params, (2, 3, 4)))
    assert place is not None
    np.testing.assert_array_equal(seen(place), table[name].forward(numbers, **params))


@pytest.mark.parametrize("name", ["sin", "sum", "add", "tril", "roll"])
def test_what_computes_is_no_window(name):
    params = {"sum": {"dim": (0,), "keepdim": False}, "tril": {"diagonal": 0}}.get(name, {})
    made = Node(
        table[name] if name in table else table["exp"], (0,), params, (2, 3, 4), np.dtype(float)
    )
    assert window(whole(buffer(24), (2, 3, 4)), made) is None


index = st.one_of(
    st.integers(-2, 1),
    st.just(None),
    st.builds(slice, st.integers(0, 1), st.none(), st.integers(1, 2)),
)
change = st.one_of(
    st.tuples(st.just("getitem"), index), st.tuples(st.just("permute"), st.integers(0, 5)),
    st.tuples(st.just("flip"), st.integers(0, 5)), st.tuples(st.just("expand"), st.integers(1, 2)),
    st.tuples(st.sampled_from(["reshape", "squeeze"]), st.integers(0, 5)),
)  # fmt: skip


def parameters(kind, form, x):
    """Parameters of a view operation that fit an array, or None."""
    if kind == "getitem":
        fits = isinstance(form, (int, slice)) and x.ndim and x.shape[0] >= 2
        return {"index": (form, ...)} if fits or form is None else None
    if kind == "permute":
        return {"dims": tuple(np.roll(range(x.ndim), form).tolist())}
    if kind == "flip":
        return {"dims": (form % x.ndim,)} if x.ndim else None
    if kind == "reshape":
        shapes = [
            (x.size,),
            (1, x.size),
            x.shape[::-1],
            (*x.shape[:-2], int(np.prod(x.shape[-2:]))),
        ]
        return {"shape": tuple(shapes[form % 4])}
    if kind == "expand":
        return {"shape": (form, *x.shape)}
    dims = tuple(d for d, n in enumerate(x.shape) if n == 1)
    return {"dims": dims} if dims else None


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(change, max_size=8))
def test_chains_of_views(changes):
    """A window that is found shows the right elements; only a reshape may find none."""
    place = whole(buffer(24), (2, 3, 4))
    x = seen(place)
    for kind, form in changes:
        params = parameters(kind, form, x)
        if params is None:
            continue
        found = follow(place, ((table[kind], params),))
        if found is None:
            assert kind == "reshape"
            y = x.reshape(params["shape"])
            assert not np.shares_memory(x, y)  # NumPy has to copy too
            return
        np.testing.assert_array_equal(seen(found), table[kind].forward(x, **params))
        x, place = seen(found), found


def test_a_window_of_an_empty_array():
    place = window(whole(buffer(0), (0, 3)), node("permute", {"dims": (1, 0)}, (0, 3)))
    assert place is not None
    assert place.shape == (3, 0)


def test_broadcasting_a_window():
    place = whole(buffer(3), (3, 1)).broadcast((2, 3, 4))
    assert place.strides == (0, 1, 0)
    np.testing.assert_array_equal(seen(place), np.broadcast_to(np.arange(3)[:, None], (2, 3, 4)))


@pytest.mark.parametrize(
    ("shape", "strides", "contiguous"),
    [((2, 3), (3, 1), True), ((2, 3), (1, 2), False), ((1, 3), (99, 1), True),
     ((2, 1), (1, 7), True), ((), (), True), ((3,), (2,), False), ((3,), (0,), False)],
)  # fmt: skip
def test_what_lies_in_order(shape, strides, contiguous):
    place = whole(buffer(6), shape)._replace(strides=strides)
    assert place.is_contiguous() is contiguous
    assert whole(buffer(6), shape).strides == c_strides(shape)
