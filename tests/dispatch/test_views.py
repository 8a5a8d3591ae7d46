"""Views: which results share memory with their source, and what NumPy sees of it."""

import numpy as np
import pytest


def shares(a, b):
    """Whether a write to one tensor is seen through the other (both are changed)."""
    a.detach().fill_(1)
    b.detach().fill_(2)
    return bool((a.detach() == 2).all())


# Each takes a tensor of shape (2, 3, 4).
VIEWS = {
    "view": lambda t: t.view(6, 4),
    "view -1": lambda t: t.view(-1),
    "view_as": lambda t: t.view_as(t.new_zeros(4, 6)),
    "reshape": lambda t: t.reshape(4, 6),
    "flatten": lambda t: t.flatten(),
    "unflatten": lambda t: t.unflatten(2, (2, 2)),
    "transpose": lambda t: t.transpose(0, 2),
    "mT": lambda t: t.mT,
    "permute": lambda t: t.permute(2, 0, 1),
    "movedim": lambda t: t.movedim(0, 2),
    "swapaxes": lambda t: t.swapaxes(0, 1),
    "unsqueeze": lambda t: t.unsqueeze(1),
    "squeeze": lambda t: t.squeeze(),
    "contiguous": lambda t: t.contiguous(),
    "detach": lambda t: t.detach(),
    "data": lambda t: t.data,
    "slices": lambda t: t[:, :, :],
    "ellipsis": lambda t: t[...],
    "none": lambda t: t[None],
    "expand": lambda t: t.expand(5, 2, 3, 4)[0],
    "as_strided": lambda t: t.as_strided((24,), (1,)),
    "to its own dtype": lambda t: t.to(t.dtype),
}

PARTS = {
    "integer": lambda t: t[0],
    "integers": lambda t: t[1, 2],
    "slice": lambda t: t[1:],
    "step": lambda t: t[:, ::2],
    "mixed": lambda t: t[0, 1:, None, -1],
    "narrow": lambda t: t.narrow(2, 1, 2),
    "select": lambda t: t.select(1, 2),
    "diagonal": lambda t: t.diagonal(),
    "split": lambda t: t.split(2, 1)[0],
    "tensor_split": lambda t: t.tensor_split(2, 2)[1],
    "chunk": lambda t: t.chunk(2)[1],
    "unbind": lambda t: t.unbind(1)[0],
    "unfold": lambda t: t.unfold(2, 2, 2),
    "as_strided": lambda t: t.as_strided((2, 2), (12, 1), 3),
    "iteration": lambda t: next(iter(t)),
}

COPIES = {
    "clone": lambda t: t.clone(),
    "contiguous of a transpose": lambda t: t.mT.contiguous(),
    "reshape of a transpose": lambda t: t.mT.reshape(-1),
    "index list": lambda t: t[[0, 1]],
    "index tensor": lambda t: t[t.new_tensor([0, 1]).long()],
    "mask": lambda t: t[t == t],
    "flip": lambda t: t.flip(0),
    "other dtype": lambda t: t.float(),
    "arithmetic": lambda t: t + 0,
}


@pytest.fixture
def t(tg):
    return tg.arange(24.0).view(2, 3, 4)


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory(t, name):
    view = VIEWS[name](t)
    assert shares(t, view)
    assert shares(view, t)


@pytest.mark.parametrize("name", PARTS)
def test_parts_share_memory(t, name):
    part = PARTS[name](t)
    before = t.sum().item()
    part.add_(1)
    assert t.sum().item() == before + part.numel()


@pytest.mark.parametrize("name", COPIES)
def test_copies_do_not_share_memory(t, name):
    copy = COPIES[name](t)
    before = t.tolist()
    copy.detach().fill_(-7)
    assert t.tolist() == before


@pytest.mark.parametrize("name", [*VIEWS, *PARTS])
def test_values_of_views_equal_a_contiguous_copy(t, name):
    view = {**VIEWS, **PARTS}[name](t)
    assert view.tolist() == view.clone().tolist() == view.numpy().tolist()
    assert tuple(view.shape) == view.numpy().shape


@pytest.mark.parametrize("name", sorted((set(VIEWS) | set(PARTS)) - {"detach", "data"}))
def test_views_are_recorded(tg, leaf, name):
    x = leaf(np.arange(24.0).reshape(2, 3, 4))
    view = {**VIEWS, **PARTS}[name](x)
    if view is x:
        return
    assert view.requires_grad
    (g,) = tg.autograd.grad((view * view).sum() / 2, x)
    y = x.detach().clone()
    hit = {**VIEWS, **PARTS}[name](tg.arange(24.0).view(2, 3, 4)).flatten().tolist()
    expected = [v if v in hit else 0.0 for v in y.flatten().tolist()]
    assert g.flatten().tolist() == expected


# --------------------------------------------------------------------------------------------------
# Details of single views
# --------------------------------------------------------------------------------------------------


def test_view_needs_compatible_strides(t):
    with pytest.raises(RuntimeError, match=r"(?i)view"):
        t.mT.view(-1)
    assert t.mT.reshape(-1).shape == (24,)


def test_view_infers_one_dimension(t):
    assert t.view(-1, 6).shape == (4, 6)
    assert t.view((3, -1)).shape == (3, 8)
    with pytest.raises(RuntimeError):
        t.view(-1, -1)
    with pytest.raises(RuntimeError):
        t.view(-1, 5)


def test_expand_repeats_without_copying(tg):
    x = tg.tensor([[1.0], [2.0]])
    y = x.expand(2, 3)
    assert y.tolist() == [[1.0] * 3, [2.0] * 3]
    assert y.stride()[1] == 0
    assert x.expand(-1, 2).shape == (2, 2)
    x[0] = 9
    assert y[0].tolist() == [9.0] * 3


def test_expand_sums_the_gradient(leaf):
    x = leaf([[1.0], [2.0]])
    (x.expand(4, 2, 3) * 5).sum().backward()
    assert x.grad.tolist() == [[60.0], [60.0]]


def test_expand_as_and_broadcast_to(tg):
    x = tg.tensor([1.0, 2.0])
    like = tg.zeros(3, 2)
    assert x.expand_as(like).shape == x.broadcast_to((3, 2)).shape == (3, 2)


def test_squeeze(tg):
    x = tg.zeros(1, 2, 1, 3)
    assert x.squeeze().shape == (2, 3)
    assert x.squeeze(0).shape == (2, 1, 3)
    assert x.squeeze(1).shape == (1, 2, 1, 3)
    assert x.squeeze((0, 2)).shape == (2, 3)
    assert x.unsqueeze(-1).shape == (1, 2, 1, 3, 1)


def test_diagonal(tg):
    x = tg.arange(9).view(3, 3)
    assert x.diagonal().tolist() == [0, 4, 8]
    assert x.diagonal(1).tolist() == [1, 5]
    assert x.diagonal(-1).tolist() == [3, 7]


def test_unfold_makes_overlapping_windows(tg, leaf):
    x = leaf([1.0, 2.0, 3.0, 4.0])
    windows = x.unfold(0, 3, 1)
    assert windows.tolist() == [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]
    windows.sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 2.0, 1.0]


def test_as_strided_may_overlap(tg, leaf):
    x = leaf([1.0, 2.0, 3.0, 4.0])
    windows = x.as_strided((3, 2), (1, 1))
    assert windows.tolist() == [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]
    windows.sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 2.0, 1.0]


def test_as_strided_out_of_bounds_is_refused(tg):
    with pytest.raises(RuntimeError, match=r"(?i)bounds|storage"):
        tg.zeros(4).as_strided((3, 2), (2, 1))


def test_as_strided_of_a_view_starts_where_it_is_told(tg):
    x = tg.arange(6.0)
    assert x[2:].as_strided((2,), (1,), 0).tolist() == [0.0, 1.0]
    assert x[2:].as_strided((2,), (1,)).tolist() == [2.0, 3.0]


def test_is_contiguous(t):
    assert t.is_contiguous()
    assert t[1].is_contiguous()
    assert not t.mT.is_contiguous()
    assert not t[:, ::2].is_contiguous()
    assert t.mT.contiguous().is_contiguous()
    assert t.contiguous() is t


def test_data_ptr_tells_where_a_view_starts(t):
    assert t.data_ptr() == t.view(-1).data_ptr() == t[0].data_ptr()
    assert t[1].data_ptr() == t.data_ptr() + 12 * 8


def test_a_view_keeps_its_memory_alive(tg):
    part = tg.arange(1000.0)[990:]
    assert part.tolist() == [float(v) for v in range(990, 1000)]


def test_base_of_a_view(tg, leaf):
    y = leaf([[1.0, 2.0], [3.0, 4.0]]) * 1
    assert y._base is None
    assert not y._is_view()
    part = y[0][1:]
    assert part._is_view()
    assert part._base is y


# --------------------------------------------------------------------------------------------------
# NumPy
# --------------------------------------------------------------------------------------------------


def test_numpy_shares_memory(tg):
    t = tg.tensor([1.0, 2.0])
    a = t.numpy()
    a[0] = 7
    assert t.tolist() == [7.0, 2.0]
    t[1] = 9
    assert a.tolist() == [7.0, 9.0]


def test_from_numpy_shares_memory_of_any_layout(tg):
    a = np.arange(12.0).reshape(3, 4)
    for part in (a, a.T, a[1:], a[:, ::2]):
        t = tg.from_numpy(part)
        assert t.tolist() == part.tolist()
        t.add_(1)
        assert t.tolist() == part.tolist()


def test_numpy_of_a_view_is_a_view(t):
    a = t[:, 1].mT.numpy()
    a[0, 0] = -1
    assert t[0, 1, 0].item() == -1


def test_numpy_of_detach_shares_memory(leaf):
    x = leaf([1.0, 2.0])
    x.detach().numpy()[0] = 5
    assert x.tolist() == [5.0, 2.0]


def test_numpy_of_a_tensor_that_requires_grad_is_refused(tg, leaf):
    x = leaf([1.0, 2.0])
    for tensor in (x, x * 2, x[0]):
        with pytest.raises(RuntimeError, match="detach"):
            tensor.numpy()
    assert x.numpy(force=True).tolist() == [1.0, 2.0]
    assert x.detach().numpy().tolist() == [1.0, 2.0]


def test_np_asarray_of_a_tensor_that_requires_grad_is_refused(leaf):
    with pytest.raises(RuntimeError, match="detach"):
        np.asarray(leaf([1.0, 2.0]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_np_asarray_and_np_array(tg):
    t = tg.tensor([1.0, 2.0])
    shared, copied = np.asarray(t), np.array(t, dtype="float32")
    assert copied.dtype == np.float32
    t[0] = 5
    assert shared.tolist() == [5.0, 2.0]
    assert copied.tolist() == [1.0, 2.0]


def test_numpy_has_the_shape_dtype_and_strides_of_the_tensor(tg, t):
    a = t.mT.numpy()
    assert a.shape == (2, 4, 3)
    assert a.dtype == np.float64
    assert tuple(s // 8 for s in a.strides) == t.mT.stride()
    assert tg.tensor(1.5).numpy().shape == ()


def test_a_writable_view_of_a_numpy_array_sees_its_changes_in_results(tg):
    a = np.array([1.0, 2.0])
    x = tg.from_numpy(a).requires_grad_()
    a[0] = 3.0
    (x * x).sum().backward()
    assert x.grad.tolist() == [6.0, 4.0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_read_only_arrays_can_be_read(tg):
    a = np.array([1.0, 2.0])
    a.flags.writeable = False
    assert (tg.from_numpy(a) * 2).tolist() == [2.0, 4.0]
    assert tg.tensor(a).tolist() == [1.0, 2.0]


@pytest.mark.tapegrad_only("PyTorch warns and then writes")
def test_read_only_arrays_are_not_written(tg):
    a = np.array([1.0, 2.0])
    a.flags.writeable = False
    t = tg.from_numpy(a)
    with pytest.raises((RuntimeError, ValueError), match=r"(?i)read-?only"):
        t.add_(1)
    assert a.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("leaf", [True, False])
def test_a_view_keeps_its_history_when_its_base_is_detached(tg, leaf):
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    base = x if leaf else x * 2
    view, other = base[:2], base[2:]
    loss = (view * view).sum()
    base.detach_()
    assert view._base is base
    assert view.requires_grad
    assert view.grad_fn is not None
    (g,) = tg.autograd.grad(loss, view, retain_graph=True)
    assert g.tolist() == [2.0, 4.0] if leaf else [4.0, 8.0]
    if not leaf:
        (loss + other.sum()).backward()
        assert x.grad.tolist() == [8.0, 16.0, 2.0]


@pytest.mark.parametrize("step", [lambda v: v.view_as(v), lambda v: v[...], lambda v: v.view(1)])
def test_a_view_of_one_of_several_is_not_changed_in_place_either(tg, step):
    x = tg.ones(3, requires_grad=True)
    pieces = (x * 1).split(1)
    with pytest.raises(RuntimeError, match="view"):
        step(pieces[0]).mul_(2)
    pieces = tg.ones(3).split(1)
    step(pieces[0]).mul_(2)
    assert [p.item() for p in pieces] == [2.0, 1.0, 1.0]


@pytest.mark.parametrize("recorded", [False, True])
def test_a_view_of_a_view_that_became_a_leaf_is_not_changed_in_place(tg, recorded):
    with tg.set_grad_enabled(recorded):
        leaf = tg.zeros(2).view(2)
    leaf.requires_grad_()
    view = leaf.view(2)
    with pytest.raises(RuntimeError, match="view"):
        view.mul_(2)
    view.sum().backward()
    assert leaf.is_leaf
    assert leaf.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_a_view_made_in_a_mode_does_not_follow_a_recorded_change(tg, mode):
    base = tg.ones(2, requires_grad=True) * 1
    with getattr(tg, mode)():
        view = base[:1]
    assert view.grad_fn is None
    base.mul_(tg.tensor([2.0, 3.0]))
    for use in (lambda: view.grad_fn, lambda: (view * base).sum()):
        with pytest.raises(RuntimeError, match="view"):
            use()
    with tg.no_grad():
        assert (view * 2).tolist() == [4.0]


def test_a_view_of_a_leaf_made_in_a_mode_stays_usable(tg):
    leaf = tg.ones(2, requires_grad=True)
    with tg.no_grad():
        view = leaf[:1]
        leaf.mul_(2)
    leaf.requires_grad_(False)
    assert (view * tg.ones(1)).tolist() == [2.0]


@pytest.mark.tapegrad_only("it looks at what is known of earlier calls")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_views_of_a_call_are_planned_once(tg, monkeypatch, dtype):
    x = tg.ones(7, 5, dtype=getattr(tg, dtype), requires_grad=True)
    other = tg.ones(7, 5, dtype=tg.float32 if dtype == "float64" else tg.float64)
    from tapegrad.dispatch import views

    monkeypatch.setattr(views.native_calls, "view", views.viewed)
    x.unbind(), other.unbind()

    def planned(*args):
        raise AssertionError("it was planned again")

    monkeypatch.setattr(views, "_new_multi_plan", planned)
    assert [piece.tolist() for piece in x.unbind()] == [[1.0] * 5] * 7
    assert [piece.dtype for piece in other.unbind()] == [other.dtype] * 7
