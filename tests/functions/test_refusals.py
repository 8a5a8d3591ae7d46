"""Operands and arguments that functions refuse, with PyTorch's exceptions and in our words."""

import pytest

NOT_FITTING = {
    "masked_fill": lambda tg, x: x.masked_fill(tg.tensor([True, False]), 1.0),
    "masked_fill_": lambda tg, x: x.masked_fill_(tg.tensor([True, False]), 1.0),
    "masked_select": lambda tg, x: x.masked_select(tg.tensor([True, False])),
    "index_put": lambda tg, x: x.index_put((tg.tensor([0, 1]),), tg.ones(3)),
    "index_put_": lambda tg, x: x.index_put_((tg.tensor([0, 1]),), tg.ones(3)),
    "index_put, a mask": lambda tg, x: x.index_put((x > 1,), tg.ones(3)),
    "logical_and": lambda tg, x: tg.logical_and(x, tg.ones(2)),
    "bitwise_or": lambda tg, x: tg.tensor([1, 2, 3]) | tg.tensor([1, 2]),
}


@pytest.mark.parametrize("use", NOT_FITTING.values(), ids=list(NOT_FITTING))
def test_shapes_that_do_not_broadcast(tg, use):
    words = "broadcast|shape mismatch|match the (size|existing)"
    with pytest.raises(RuntimeError, match=words) as refused:
        use(tg, tg.tensor([1.0, 2.0, 3.0]))
    if tg.__name__ == "tapegrad":
        assert "operands could not" not in str(refused.value)


@pytest.mark.parametrize("p", [float("inf"), float("-inf")])
def test_extreme_norms_of_nothing(tg, p):
    with pytest.raises(RuntimeError, match=r"empty|no elements|no identity"):
        tg.ones(0).norm(p)
    with pytest.raises(RuntimeError, match=r"empty|no elements|no identity"):
        tg.ones(2, 0).norm(p, 1)
    assert tg.ones(0, 2).norm(p, 1).numpy().shape == (0,)
