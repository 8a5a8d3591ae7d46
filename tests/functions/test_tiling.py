"""Repeating elements: the size that is said must be the one that comes."""

import pytest


@pytest.mark.parametrize("repeats", [2, [1, 3]], ids=str)
def test_the_size_of_the_output_is_checked(tg, repeats):
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    repeats = repeats if isinstance(repeats, int) else tg.tensor(repeats)
    found = tg.repeat_interleave(x, repeats, 0, output_size=4)
    assert found.shape == (4, 2)
    with pytest.raises(RuntimeError):
        tg.repeat_interleave(x, repeats, 0, output_size=5)


def test_a_negative_number_of_repeats_is_an_error(tg):
    with pytest.raises(RuntimeError, match="negative"):
        tg.repeat_interleave(tg.ones(2), -1)


def test_vander_of_one_power_keeps_the_dtype(tg):
    for kind in (tg.float32, tg.complex64, tg.int64):
        assert tg.vander(tg.ones(2, dtype=kind), 1).dtype == kind
