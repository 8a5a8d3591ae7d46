"""Tensors without elements."""


def test_what_has_no_elements_can_be_changed(tg):
    """NumPy gives an empty array strides of zero, by which no elements share their memory."""
    x = tg.zeros(2, 0)
    x += 1.0
    x[:] = 5.0
    assert x.shape == (2, 0)
