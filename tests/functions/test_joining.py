"""Pieces of a Tensor, and which of them may be changed in place."""

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")

TOGETHER = {
    "split": lambda t: t.split(1),
    "split_with_sizes": lambda t: t.split_with_sizes((1, 1, 1)),
    "chunk": lambda t: t.chunk(3),
}
ALONE = {
    "unsafe_split": lambda t: t.unsafe_split(1),
    "unsafe_split of sizes": lambda t: t.unsafe_split_with_sizes((1, 1, 1)),
    "unsafe_chunk": lambda t: t.unsafe_chunk(3),
}


@pytest.mark.parametrize("pieces", (TOGETHER | ALONE).values(), ids=TOGETHER | ALONE)
def test_pieces_share_memory(tg, pieces):
    x = tg.arange(6.0).reshape(3, 2)
    parts = pieces(x)
    assert [p.tolist() for p in parts] == [[[0.0, 1.0]], [[2.0, 3.0]], [[4.0, 5.0]]]
    parts[1].mul_(10)
    assert x.tolist() == [[0.0, 1.0], [20.0, 30.0], [4.0, 5.0]]


@pytest.mark.parametrize("pieces", TOGETHER.values(), ids=TOGETHER)
def test_views_of_one_call_are_not_changed_in_place(tg, pieces):
    base = tg.ones(3, 2, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="view"):
        pieces(base)[0].mul_(2)


@pytest.mark.parametrize("pieces", ALONE.values(), ids=ALONE)
def test_views_that_were_made_each_by_itself_may_be(tg, pieces):
    x = tg.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    first, second, _ = pieces(x * 1)
    first.mul_(second)
    first.sum().backward()
    assert x.grad.tolist() == [[2.0], [1.0], [0.0]]


def test_sizes_must_add_up(tg):
    for function in (tg.split_with_sizes, tg.unsafe_split_with_sizes):
        with pytest.raises(RuntimeError, match="split"):
            function(tg.ones(3), (1, 1))
    assert [len(p) for p in tg.unsafe_chunk(tg.ones(5), 2)] == [3, 2]
    assert [len(p) for p in tg.unsafe_split(tg.ones(5), 2)] == [2, 2, 1]


@pytest.mark.parametrize("where", [2, (1,)])
def test_pieces_of_tensor_split_are_views_as_slices_are(tg, where):
    x = tg.ones(2, 2, requires_grad=True)
    y = x * 1
    first, _ = y.tensor_split(where)
    first.mul_(3)
    (y * y).sum().backward()
    assert y.tolist() == [[3.0, 3.0], [1.0, 1.0]]
    assert x.grad.tolist() == [[18.0, 18.0], [2.0, 2.0]]
