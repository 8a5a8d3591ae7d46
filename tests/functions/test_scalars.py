"""Functions along a dimension of 0-d Tensors, which count as having one, and of empty ones."""

import pytest

SAME = {
    "movedim": lambda tg, s: s.movedim(0, 0),
    "movedim of tuples": lambda tg, s: s.movedim((0,), (-1,)),
    "index_add": lambda tg, s: s.index_add(0, tg.tensor(0), tg.tensor(0.0)),
    "index_add, a vector": lambda tg, s: s.index_add(-1, tg.tensor([0]), tg.tensor(0.0)),
}


@pytest.mark.parametrize("use", SAME.values(), ids=list(SAME))
def test_what_gives_the_same(tg, leaf, use):
    s = leaf(2.0)
    y = use(tg, s)
    assert tuple(y.shape) == ()
    (3 * y).backward()
    assert (y.item(), s.grad.item()) == (2.0, 3.0)


def test_unfold(tg, leaf):
    s = leaf(2.0)
    y = s.unfold(0, 1, 1)
    assert y.tolist() == [2.0]
    y.sum().backward()
    assert s.grad.item() == 1.0
    with pytest.raises(RuntimeError, match="size"):
        s.unfold(0, 2, 1)


def test_index_add_in_place(tg, leaf):
    s, x = leaf(2.0), leaf(5.0)
    y = s * 1
    assert y.index_add_(0, tg.tensor(0), x, alpha=2) is y
    assert y.item() == 12.0
    y.backward()
    assert (s.grad.item(), x.grad.item()) == (1.0, 2.0)
    with pytest.raises(RuntimeError, match="shape"):
        tg.zeros(3).index_add(0, tg.tensor(0), tg.tensor(1.0))
    assert tg.zeros(3).index_add(0, tg.tensor(1), tg.tensor([1.0])).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("use", [
    lambda s: s.narrow(0, 0, 1), lambda s: s.split(1), lambda s: s.chunk(1),
    lambda s: s.tensor_split(1),
], ids=["narrow", "split", "chunk", "tensor_split"])  # fmt: skip
def test_what_needs_a_dimension(tg, use):
    with pytest.raises(RuntimeError, match=r"0-d|1-dimensional"):
        use(tg.tensor(2.0))


def test_extremes_of_nothing(tg):
    x = tg.ones(0, 3)
    assert tuple(x.argmax(1).shape) == (0,)
    assert tuple(x.argmin(1, keepdim=True).shape) == (0, 1)
    for use in (lambda: x.argmax(0), x.argmax, lambda: x.max(0), lambda: x.amin(0)):
        with pytest.raises(IndexError, match=r"no elements|reduction dim"):
            use()
    with pytest.raises(RuntimeError, match=r"no elements|reduction dim"):
        x.amax()


def test_chunks_of_nothing(tg):
    parts = tg.ones(0, 3).chunk(2)
    assert [tuple(p.shape) for p in parts] == [(0, 3), (0, 3)]
    assert [tuple(p.shape) for p in tg.ones(0, 3).chunk(2, 1)] == [(0, 2), (0, 1)]


def test_text(tg, leaf):
    x = leaf(2.0)
    assert f"{x}" == f"{x * 1}" == "2.0"
    assert f"{x:.3f}" == "2.000"
    assert f"{tg.tensor([1.5])}" == "tensor([1.5000])"
    assert f"{tg.tensor(3)}" == "3"
