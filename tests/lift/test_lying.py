"""What Tensors under transforms say of their memory: strides, order, views of the same elements."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("transforms over arrays")

A = np.arange(6.0).reshape(2, 3)
MANY = np.stack([A, 2 * A + 1])


def filled(x):
    y = tg.zeros(2, 3)
    y[0] = x[1]
    y.view(-1)[4:].copy_(x.view(-1)[:2])
    return y.view(3, 2) * y.stride(0)


def eagerly(f, x):
    return np.asarray(f(tg.tensor(x)))


WAYS = {
    "jit": lambda f: [tg.jit(f)(x) for x in MANY],
    "vmap": lambda f: tg.vmap(f)(MANY),
    "jit of vmap": lambda f: tg.jit(tg.vmap(f))(MANY),
    "vmap of jit": lambda f: tg.vmap(tg.jit(f))(MANY),
    "jit of jvp": lambda f: [tg.jit(lambda x: tg.jvp(f, (x,), (x,))[0])(x) for x in MANY],
}


def seen(x):
    return x.view(3, -1) * 2


def seen_as(x):
    return x.view_as(tg.zeros(3, 2)) + x.view(-1)[1:3]


def strides(x):
    turned = x.t()
    return x * x.stride(0) + turned.stride()[1] + 100 * x.is_contiguous() + turned.is_contiguous()


def begins(x):
    y = x * 2
    return y[:, 1:] * y[:, 1:].storage_offset()


def written(x):
    y = x * 2
    y.contiguous().add_(1)
    y.view(-1)[0] = 7
    return y


@pytest.mark.parametrize("f", [seen, seen_as, strides, begins, written, filled])
@pytest.mark.parametrize("way", list(WAYS))
def test_memory_lies_as_it_would_eagerly(f, way):
    found = [np.asarray(y) for y in WAYS[way](f)]
    np.testing.assert_array_equal(found, [eagerly(f, x) for x in MANY])


@pytest.mark.parametrize("way", list(WAYS))
def test_a_view_that_would_be_a_copy_is_refused(way):
    with pytest.raises(RuntimeError, match="cannot be seen as"):
        WAYS[way](lambda x: x.t().view(2, 3))


def test_arguments_of_a_program_lie_in_order():
    f = tg.jit(strides)
    for x in (A, np.asfortranarray(A), A[::-1], np.arange(9.0)[3:].reshape(2, 3)):
        np.testing.assert_array_equal(f(x), eagerly(strides, x.copy(order="C")))
    begin = tg.jit(lambda x: x * 0 + x.storage_offset())
    assert begin(np.arange(5.0)[2:])[0] == begin(np.arange(3.0))[0] == 0


def test_no_examples_can_be_seen_in_another_shape():
    assert tg.vmap(lambda x: x.view(-1))(np.zeros((0, 2, 3))).shape == (0, 6)


def windows(x):
    return (x * 2).as_strided((2, 2), (1, 1)) * x[:, :2]


def test_strided_views_inside_a_program():
    np.testing.assert_array_equal(tg.jit(windows)(A), eagerly(windows, A))
    np.testing.assert_array_equal(
        tg.jit(windows)(np.arange(9.0)[3:].reshape(2, 3)), eagerly(windows, A + 3)
    )
    slope = tg.grad(lambda x: windows(x).sum())
    np.testing.assert_array_equal(tg.jit(slope)(A), slope(A))

    def added(x):
        y = x * 2
        y.as_strided((2,), (2,)).add_(10)
        return y

    np.testing.assert_array_equal(tg.jit(added)(A), eagerly(added, A))


def test_a_strided_view_shows_no_memory_besides_that_of_its_operand():
    with pytest.raises(RuntimeError, match="no memory but that of its operand"):
        tg.jit(lambda x: (x * 2)[1:].as_strided((2, 2), (1, 1), 0))(A)
    with pytest.raises(RuntimeError, match="`as_strided` under `vmap`"):
        tg.vmap(lambda x: x.as_strided((2, 2), (1, 1)))(MANY)
