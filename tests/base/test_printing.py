"""The options by which Tensors print; those of tests/peers compare the texts with PyTorch's."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("`get_printoptions` and `printoptions` are not PyTorch's")
DEFAULT = {
    "precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None,
}  # fmt: skip


def test_options_stay_until_they_are_set_again():
    try:
        tg.set_printoptions(precision=2, edgeitems=1, threshold=4)
        assert repr(tg.arange(5.0) / 8) == "tensor([0.00,  ..., 0.50])"
        tg.set_printoptions(linewidth=20)
        assert repr(tg.arange(4.0) / 4) == "tensor([0.00, 0.25,\n        0.50, 0.75])"
    finally:
        tg.set_printoptions(profile="default")
    assert tg.get_printoptions() == DEFAULT


def test_a_context_restores_the_options_after_an_error():
    with pytest.raises(KeyError), tg.printoptions(precision=1):
        {}[repr(tg.tensor(0.25))]
    assert tg.get_printoptions() == DEFAULT


def test_a_context_that_is_refused_changes_nothing():
    with pytest.raises(ValueError, match="`profile` is one of default, short, full, got 'long'"):
        tg.printoptions(profile="long").__enter__()
    assert tg.get_printoptions() == DEFAULT


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("precision", 2.5, "`precision` is an int of 0 or more, got 2.5"),
        ("edgeitems", -1, "`edgeitems` is an int of 0 or more, got -1"),
        ("linewidth", "80", "`linewidth` is an int of 0 or more, got '80'"),
        ("threshold", "all", "`threshold` is a number, got 'all'"),
    ],
)
def test_refusals(name, value, said):
    with pytest.raises(ValueError, match=f"`set_printoptions`: {said}"):
        tg.set_printoptions(**{name: value})
    assert tg.get_printoptions() == DEFAULT


def test_options_do_not_touch_numpys():
    with tg.printoptions(precision=1):
        assert repr(np.array([0.25])) == "array([0.25])"
