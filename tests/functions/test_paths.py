"""The fast paths write what the general path writes: views and joins."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch import dispatch, views
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.functions import joining
from tapegrad.ops.families import by_code
from tapegrad.ops.shape import getitem
from tapegrad.tape.record_format import CODE_MASK, WORD
from tapegrad.tape.tape import current
from tapegrad.tape.versions import root
from tapegrad.tensor import View

pytestmark = pytest.mark.tapegrad_only("about its paths")

VIEWS = {
    "reshape": lambda x: x.reshape(3, -1),
    "reshape, a list": lambda x: x.reshape([4, 6]),
    "view": lambda x: x.view(-1),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "transpose": lambda x: x.transpose(0, -1),
    "t": lambda x: x[0].t(),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "permute": lambda x: x.permute(2, 0, 1),
    "movedim": lambda x: x.movedim(0, 2),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "squeeze, nothing": lambda x: x.squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "expand": lambda x: x[:, :1].expand(-1, 5, -1),
    "expand, more dimensions": lambda x: x.expand(2, -1, -1, -1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "select": lambda x: x.select(1, -1),
    "a number": lambda x: x[1],
    "a slice": lambda x: x[:, 1:],
    "all kinds": lambda x: x[None, ..., ::2, 1],
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "unfold, transposed": lambda x: x.mT.unfold(2, 2, 1),
    "as_strided": lambda x: x.as_strided((3, 2), (2, 5), 1),
    "unbind": lambda x: x.unbind(1),
    "split": lambda x: x.split([1, 2], 1),
    "chunk, of a view": lambda x: x.mT.chunk(2, 2),
    "tensor_split": lambda x: x.tensor_split((1, 3), 2),
}
MODES = {
    "recorded": lambda function, x: function(x),
    "recorded, in float32": lambda function, x: function(x.float()),
    "of a view": lambda function, x: function((x * 2)[...]),
    "no_grad": tg.no_grad()(lambda function, x: function(x)),
    "inference": tg.inference_mode()(lambda function, x: function(x)),
    "a constant": lambda function, x: function(x.detach()),
    "large": lambda function, x: function(x.expand(2000, 2, 3, 4)[:, 1].clone()),
}


def general(monkeypatch):
    """Take the general path everywhere."""

    def make_view(op, x, params, r, key=None, element=False):
        t = dispatch.run(op, (x,), params)
        return views.separate(t, current.tape) if element and numpys() else t

    def make_views(x, key, indices, arrays=None, together=True):
        found = tuple(dispatch.run(getitem, (x,), {"index": index}) for index in indices())
        for part in found:
            if isinstance(part._home, View):
                part._home.several |= together
        return found

    monkeypatch.setattr(native_calls, "view", views.viewed)
    monkeypatch.setattr(views, "make_view", make_view)
    monkeypatch.setattr(views, "make_views", make_views)
    monkeypatch.setattr(joining, "_joined_natively", lambda *_: None)
    monkeypatch.setattr(joining, "_joined", lambda *_: None)


def described(t):
    """Everything there is to know of a Tensor and of its record."""
    home = t._home
    view = ()
    if isinstance(home, View):
        view = home.chain, home.frozen, home.several, home.base is not None
        if home.base is not None:
            assert home.stamp == home.base._pos
            assert root(home.base._a) is root(t._a)
    row: tuple = ()
    if t._pos > 0:
        tape = t.tape.whole
        index = tape.index(t._pos)
        words = tape.words()[index].tolist()
        fields = [by_code[words[WORD] & CODE_MASK].name, words[WORD], *words[4:], tape.keep[index]]
        row = (fields, [code < 0 for code in tape.inputs(index)])
    # Where there is one element, or none, how far away the next would be says nothing.
    pairs = zip(t._a.strides, t._a.shape, strict=True)
    steps = tuple([step if n > 1 and t._a.size else 0 for step, n in pairs])
    layout = t._a.shape, steps, t._a.dtype, t._a.flags.writeable
    return t._a.tolist(), layout, t._s, np.sign(t._pos), view, row


def results(function, mode):
    x = tg.tensor(np.arange(24.0).reshape(2, 3, 4), requires_grad=True)
    found = MODES[mode](function, x)
    return [described(t) for t in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "large"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_are_recorded_as_on_the_general_path(name, mode, monkeypatch):
    got = results(VIEWS[name], mode)
    general(monkeypatch)
    assert got == results(VIEWS[name], mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dim", [0, 1, -1, -3])
@pytest.mark.parametrize(
    "parts",
    [
        lambda x: [x[0], x[1]],
        lambda x: [x[0], x[0] * 2.0, tg.ones(3, 4), x[1]],
        lambda x: [x[0, 0, 0]] * 3,
        lambda x: [x[0], x[1, :, :].double()],
    ],
    ids=["two", "four, one a constant", "numbers", "views"],
)
def test_stacks_are_recorded_as_on_the_general_path(parts, dim, mode, monkeypatch):
    def function(x):
        found = parts(x)
        return tg.stack(found, dim if found[0].dim() else 0)

    got = results(function, mode)
    general(monkeypatch)
    assert got == results(function, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize(
    "parts",
    [
        lambda x: [x[0], x[1]],
        lambda x: [x[0], x[0] * 2.0, tg.ones(3, 4), x[1]],
        lambda x: [x[0, 0], x[1, :1].reshape(-1), tg.zeros(0)],
        lambda x: [x[0], x[1, :, :].double()],
        lambda x: [x[0]],
    ],
    ids=["two", "four, one a constant", "vectors, one empty", "views", "one"],
)
def test_joined_parts_are_recorded_as_on_the_general_path(parts, dim, mode, monkeypatch):
    def function(x):
        found = parts(x)
        return tg.cat(found, dim if found[0].dim() > 1 else 0)

    got = results(function, mode)
    assert got == results(function, mode)
    general(monkeypatch)
    assert got == results(function, mode)


def test_anomaly_detection_sees_views():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    with tg.autograd.detect_anomaly():
        y = x.reshape(2, 1)
        assert y._pos in y.tape.whole.traces


def test_views_of_one_call_survive_a_tape_that_moves():
    """While pieces are recorded the tape may run full: what they read is numbered anew."""
    x = tg.tensor(np.arange(9000.0), requires_grad=True)
    for i in range(300):
        tg.tensor(float(i), requires_grad=True) * 2.0
    parts = x.unbind()
    assert len({t._pos for t in parts}) == 9000
    sum(parts[::3000]).backward()
    assert np.flatnonzero(x.grad._a).tolist() == [0, 3000, 6000]


@pytest.mark.parametrize("shape", [(-2,), (2, -2), (None,), (5,), (-1, 5), (-1, -1)])
def test_shapes_that_numpy_would_take_or_name_otherwise(shape):
    x = tg.tensor(np.arange(24.0))
    with pytest.raises((RuntimeError, TypeError)) as caught:
        x.reshape(*shape)
    if caught.type is RuntimeError:
        assert "`reshape`" in str(caught.value)


def test_an_index_that_was_met_before_is_not_confused_with_one_that_looks_like_it():
    x = tg.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    for _ in range(2):
        assert x[1].shape == (4,)
        assert x[1:2].shape == (1, 4)
    for key in (1.0, slice(1.0, 2, None)):
        with pytest.raises((TypeError, IndexError)):
            x[key]
    with pytest.raises(IndexError, match="out of range"):
        x[3]
    assert x[1:2:-1].shape == (0, 4)
    with pytest.raises(ValueError, match="zero"):
        x[1:2:0]
    np.testing.assert_array_equal(x.T[1].detach().numpy(), x.detach().numpy()[:, 1])
    other = tg.tensor(np.arange(12.0).reshape(4, 3).T, requires_grad=True)  # in Fortran order
    other[1].sum().backward()
    np.testing.assert_array_equal(other.grad.numpy(), [[0.0] * 4, [1.0] * 4, [0.0] * 4])


@pytest.mark.parametrize(
    "array",
    [np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(4, 3).T, np.arange(4.0), np.array(2.0)],
    ids=["whole", "transposed", "row", "number"],
)
def test_an_array_beside_a_tensor_counts_as_a_constant(array):
    x = tg.tensor(np.linspace(-1.0, 1.0, 12).reshape(3, 4), requires_grad=True)
    for got, expected in ((x * array, x * tg.tensor(array)), (x - array, x - tg.tensor(array))):
        whole = got.tape.whole
        first, second = whole[whole.index(got._pos)], whole[whole.index(expected._pos)]
        assert (first.op, first.inputs, first.shape) == (second.op, second.inputs, second.shape)
        got.sum().backward()
        found, x.grad = x.grad, None
        expected.sum().backward()
        np.testing.assert_array_equal(found.numpy(), x.grad.numpy())
        x.grad = None


def test_methods_take_the_names_of_numpy():
    a = np.array([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    x = tg.tensor(a)
    for name in ("sum", "mean", "prod", "argmax", "argmin", "all", "any"):
        for keepdims in (False, True):
            found = getattr(x, name)(axis=1, keepdims=keepdims).numpy()
            np.testing.assert_array_equal(found, getattr(a, name)(axis=1, keepdims=keepdims))
    np.testing.assert_array_equal(x.cumsum(axis=0).numpy(), a.cumsum(axis=0))
    np.testing.assert_allclose(x.std(axis=(0, 1), ddof=0).numpy(), a.std())
    np.testing.assert_array_equal(x.max(axis=0, keepdims=True).values.numpy(), a.max(0)[None])
    np.testing.assert_array_equal(x.sort(axis=1).values.numpy(), np.sort(a, 1))
    with pytest.raises(TypeError, match="`sum` was given both `axis` and `dim`"):
        x.sum(axis=0, dim=1)


def test_indices_that_look_alike_are_told_apart():
    """What a view writes is remembered by its index, in which slices stand as their parts."""
    x = tg.tensor(np.arange(125.0).reshape(5, 5, 5), requires_grad=True)
    a = x.detach().numpy()
    indices = [slice(3, None), (3, None, None), slice(None, 3), (None, 3), 3, (3,), (3, ...)]
    indices += [slice(1, 4, 2), (1, 4, 2), (slice(1, 4, 2),), (slice(1, 4), 2), ((..., 1))]
    for _ in range(2):
        for index in indices:
            x.grad = None
            y = x[index]
            np.testing.assert_array_equal(y.detach().numpy(), a[index])
            y.sum().backward()
            want = np.zeros_like(a)
            want[index] = 1
            np.testing.assert_array_equal(x.grad.numpy(), want)
        x.narrow(0, 1, 4).sum().backward()
        x.select(0, 1).sum().backward()


def test_pieces_of_no_elements_are_unflattened_by_their_own_size():
    with pytest.raises(RuntimeError, match="unflatten"):
        tg.zeros(4, 0).unflatten(0, (5,))
