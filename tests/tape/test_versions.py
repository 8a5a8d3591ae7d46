"""Version counters: whose changes in place are counted together, above all those of `.data`."""

import numpy as np
import pytest

IN_PLACE = r"(?i)in-?place"

# A part of a Tensor `d`, and the way back from the whole to what a record saves.
PARTS = {
    "itself": lambda d: d,
    "view": lambda d: d.view(2, 1),
    "slice": lambda d: d[0:1],
    "transpose": lambda d: d.view(1, 2).mT,
    "as_strided": lambda d: d.as_strided((2,), (1,)),
    "unbind": lambda d: d.unbind()[0],
    "detach": lambda d: d.detach(),
    "view of detach": lambda d: d.detach()[1:],
}


@pytest.mark.parametrize("part", PARTS)
def test_a_change_through_a_view_of_data_is_noticed(tg, leaf, part):
    x, d = leaf([1.0, 2.0]), tg.ones(2).data
    z = x * d
    PARTS[part](d).mul_(5)
    with pytest.raises(RuntimeError, match=IN_PLACE):
        z.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("part", PARTS)
def test_a_change_of_data_is_noticed_by_what_saved_a_view_of_it(tg, leaf, part):
    d = tg.ones(2).data
    v = PARTS[part](d)
    x = tg.ones_like(v).requires_grad_()
    z = x * v
    d.mul_(5)
    with pytest.raises(RuntimeError, match=IN_PLACE):
        z.sum().backward()


@pytest.mark.parametrize("part", PARTS)
def test_data_and_its_views_count_together_and_apart_from_their_source(tg, part):
    source = tg.ones(2)
    d = source.data
    v = PARTS[part](d)
    v.add_(1)
    d.add_(1)
    assert (source._version, d._version, v._version) == (0, 2, 2)
    source.add_(1)
    assert (source._version, d._version, v._version) == (1, 2, 2)
    assert (source == d).all()


def test_data_of_data_counts_for_itself(tg):
    d = tg.ones(2).data
    e = d.data
    e.add_(1)
    assert (d._version, e._version) == (0, 1)
    assert d.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 3)),
        np.zeros((2, 3)).T,
        np.zeros((4, 6))[::2, 1::2],
        np.zeros(()),
        np.zeros((0, 3)),
        np.zeros(2, np.float32),
        np.zeros(2, np.float16),
        np.zeros(2, np.complex128),
        np.zeros(2, np.int8),
        np.zeros(2, bool),
    ],
    ids=lambda a: f"{a.dtype}{a.shape}",
)
def test_data_shows_the_same_memory(tg, array):
    t = tg.from_numpy(array)
    d = t.data
    assert (d.shape, d.dtype, d.data_ptr()) == (t.shape, t.dtype, t.data_ptr())
    assert not t.numel() or d.stride() == t.stride()
    d.fill_(1)
    assert (t == 1).all()


def test_data_of_a_view_knows_where_it_begins(tg):
    assert tg.arange(4.0)[1:].data[1:].storage_offset() == 2


def test_data_is_the_base_of_its_views(tg):
    d = tg.ones(2).data
    v = d[:1]
    assert d._base is None
    assert v._base is d


def test_data_can_be_changed_by_what_requires_grad(tg, leaf):
    x, source = leaf([1.0, 2.0]), tg.ones(2)
    d = source.data
    v = d[:1]
    d.mul_(x)
    assert d.requires_grad
    assert v.requires_grad
    assert not source.requires_grad
    (d.sum() + v.sum()).backward()
    assert x.grad.tolist() == [2.0, 1.0]


def test_a_view_of_data_takes_its_base_along(tg, leaf):
    x, d = leaf([1.0, 2.0]), tg.ones(2).data
    d[:1].mul_(x[1:])
    assert d.tolist() == [2.0, 1.0]
    d.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]


@pytest.mark.tapegrad_only("PyTorch's gradient would be wrong, silently")
def test_a_change_of_the_source_is_noticed_by_what_saved_data(tg, leaf):
    x, source = leaf([1.0, 2.0]), tg.ones(2)
    z = x * source.data[:2]
    source.mul_(5)
    with pytest.raises(RuntimeError, match=IN_PLACE):
        z.sum().backward()


@pytest.mark.tapegrad_only("PyTorch's gradient would be wrong, silently")
def test_a_value_is_kept_that_data_shares_with_what_is_changed(leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    y.mul_(y.data)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]
