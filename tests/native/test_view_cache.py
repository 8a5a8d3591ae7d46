"""What compiled code remembers of views is what their makers would say, of any call and operand."""

import gc
import sys
import threading
from contextlib import nullcontext

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings

import tapegrad as tg
from tapegrad.native import install
from tapegrad.native.abi import VIEW_LINES
from tapegrad.tape.tape import Tape, current
from tapegrad.tensor import Tensor
from tests.functions.test_paths import described, general

pytestmark = pytest.mark.tapegrad_only("about two ways to the same results")


@pytest.fixture(scope="module", autouse=True)
def known():
    if not install.install():
        pytest.skip("this machine has no native path")
    return install.installed.bindings.view_cache


# -- any call --------------------------------------------------------------------------------------

small = st.integers(-4, 4)
number = st.one_of(small, small, small.map(np.int64), small.map(float), st.booleans(), st.none())
numbers = st.lists(number, max_size=4)
sequence = st.one_of(numbers, numbers.map(tuple), numbers.map(tg.Size))
edge = st.one_of(st.none(), small, small.map(np.int64))
part = st.one_of(small, st.builds(slice, edge, edge, edge), st.none(), st.just(...), number)


def called(name, *args, **named):
    return st.tuples(st.just(name), st.tuples(*args), st.fixed_dictionaries(named))


def spread(name):
    """A method that takes numbers one by one, or as one sequence."""
    return st.one_of(
        called(name, sequence), st.tuples(st.just(name), numbers.map(tuple), st.just({}))
    )


CALLS = st.one_of(
    *[spread(name) for name in ("reshape", "view", "permute", "expand", "broadcast_to")],
    *[called(name) for name in ("t", "T", "mT", "squeeze", "flatten", "ravel", "unbind")],
    *[called(name, number) for name in ("squeeze", "unsqueeze", "unbind", "flatten", "split")],
    *[called(name, number, number) for name in ("transpose", "movedim", "select", "chunk")],
    *[called(name, sequence, sequence) for name in ("movedim", "as_strided")],
    *[called(name, sequence, small) for name in ("split", "tensor_split")],
    called("as_strided", sequence, sequence, small),
    called("squeeze", sequence),
    called("squeeze", axis=small),
    called("unsqueeze", dim=small),
    called("transpose", dim0=small, dim1=small),
    called("flatten", end_dim=small, start_dim=small),
    called("unflatten", number, sequence),
    called("narrow", number, number, number),
    called("narrow", small, start=small, length=small),
    called("diagonal", number, number, number),
    called("unfold", number, number, number),
    called("chunk", number, dim=small),
    called("tensor_split", number),
    called("__getitem__", part),
    called("__getitem__", st.lists(part, max_size=4).map(tuple)),
)


def call(x, name, args, named):
    if name in ("T", "mT"):
        return getattr(x, name)
    return getattr(Tensor, name)(x, *args, **named)


@st.composite
def arrays(draw):
    """An array of some type that lies in any way in some memory."""
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    dtype = draw(st.sampled_from(["f8", "f8", "f8", "f4", "i8", "?", "c16"]))
    steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
    room = [max(n, 1) * 2 + 1 for n in shape]
    whole = np.arange(float(np.prod(room))).astype(dtype).reshape(room)
    if draw(st.booleans()):
        array = whole.reshape(-1)[: int(np.prod(shape))].reshape(shape).copy()
    else:
        array = whole[(..., *[slice(None, None, step) for step in steps])]
        array = array[(..., *[slice(0, n) for n in shape])]
    array = array.transpose(draw(st.permutations(range(len(shape)))))
    if draw(st.integers(0, 4)) == 0:
        array = np.broadcast_to(array, (2, *array.shape))
    if not array.size:  # which is in C order whatever its strides are
        array = np.zeros(array.shape, dtype)
    if draw(st.integers(0, 4)) == 0:
        array.flags.writeable = False
    return array


def frozen(leaf):
    with tg.no_grad():
        return leaf[...]


def inferred(leaf):
    with tg.inference_mode():
        return leaf[...]


SOURCES = {
    "a constant": lambda x: x,
    "a leaf": lambda x: x,
    "a result": lambda x: x * 1,
    "a view": lambda x: x[...],
    "a view of a view": lambda x: (x * 1)[None][0],
    "detached": lambda x: x.detach(),
    "frozen": frozen,
    "inferred": inferred,
}
MODES = {
    "recorded": nullcontext,
    "no_grad": tg.no_grad,
    "inference": tg.inference_mode,
    "anomaly": tg.autograd.detect_anomaly,
}


def outcome(array, source, mode, what):
    """What a call gives, as words, and the gradient of what it gives; or what it says is wrong."""
    x = tg.from_numpy(array)
    if array.dtype.kind == "f" and source != "a constant":
        x.requires_grad_()
    y = SOURCES[source](x)
    try:
        with MODES[mode]():
            found = call(y, *what)
    except Exception as problem:
        return type(problem), str(problem)
    parts = found if isinstance(found, tuple) else (found,)
    said = repr([described(t) for t in parts if t is not y])  # a copy's record may keep arrays
    for t in parts:
        if t.requires_grad:
            (t * t + 1.0).sum().backward(retain_graph=True)
    return type(found), said, x.grad is not None and x.grad.tolist()


@settings(max_examples=600, deadline=None)
@given(arrays(), st.sampled_from([*SOURCES]), st.sampled_from([*MODES]), CALLS, st.booleans())
@example(np.arange(6.0).reshape(2, 3), "a leaf", "recorded", ("permute", (1, 0), {}), True)
@example(np.zeros(2)[::2], "a constant", "recorded", ("ravel", (), {}), False)
@example(np.arange(6.0).reshape(2, 3), "a leaf", "recorded", ("permute", (True, False), {}), False)
def test_any_call(array, source, mode, what, other_first):
    with pytest.MonkeyPatch.context() as patch:
        general(patch)
        expected = outcome(array, source, mode, what)
    if other_first:  # so that what is known was learnt of another operand
        outcome(array, "a constant", "recorded", what)
    for _ in range(4):
        assert outcome(array, source, mode, what) == expected


LIKE = [(1, 0), [1, 0], tg.Size((1, 0)), (True, False), (1.0, 0.0), (np.int64(1), np.int64(0))]


def test_arguments_that_look_alike():
    array = np.arange(6.0).reshape(2, 3)
    for what in (*LIKE, *LIKE, *LIKE):
        for name, args in (("permute", (what,)), ("permute", what), ("__getitem__", (what,))):
            with pytest.MonkeyPatch.context() as patch:
                general(patch)
                expected = outcome(array, "a leaf", "recorded", (name, args, {}))
            assert outcome(array, "a leaf", "recorded", (name, args, {})) == expected


@pytest.mark.parametrize("big", [2**63, -(2**63) - 1, 2**200])
def test_numbers_of_more_than_64_bits(big):
    x = tg.tensor([1.0, 2.0])
    for _ in range(2):
        assert x[:big].tolist() == x[: max(0, big)].tolist()
        with pytest.raises(IndexError, match="out of range"):
            x.select(0, big)


def test_arguments_of_many_words():
    """What is too much to be compared is asked for again each time."""
    x = tg.tensor(np.arange(200.0), requires_grad=True)
    for _ in range(3):
        assert [len(part) for part in x.split([1] * 100 + [100])] == [1] * 100 + [100]
    y = tg.from_numpy(np.zeros((1,) * 30))
    for _ in range(3):
        assert y[(slice(None),) * 30].shape == (1,) * 30
        assert y.squeeze().shape == ()


# -- what is known ---------------------------------------------------------------------------------


def test_what_raised_is_not_known(known):
    x = tg.tensor([[1.0, 2.0]])
    known.forget()
    for _ in range(3):
        for wrong in (lambda: x.permute(0, 0), lambda: x.view(3), lambda: x[5], lambda: x.t(1)):
            with pytest.raises((RuntimeError, IndexError, TypeError)):
                wrong()
    assert not known.held
    assert not known.lines[:, 0].any()


def test_a_call_that_is_known_is_learnt_once(known):
    """Also of other Tensors of the same layout."""
    known.forget()
    x = tg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    calls = [Tensor.t, lambda t: t.chunk(2), lambda t: t.unsqueeze(dim=-1), lambda t: t[:, 1]]
    for view in calls * 2:
        view(x)
    count = len(known.held)
    for view in calls:
        view(tg.tensor(np.zeros((2, 3))))
        view(x)
    assert len(known.held) == count == len(calls)


def test_more_calls_than_are_known(known):
    x = tg.tensor(np.arange(30_000.0), requires_grad=True)
    for _ in range(3):
        for k in range(0, len(x), 3):
            assert x[k].item() == k
    for k in (1000, 2000, 3000) * 3:
        assert [part.item() for part in x[:k].unbind()] == list(range(k))
    assert len(known.held) == np.count_nonzero(known.lines[:, 0]) < VIEW_LINES
    assert sum(1 + len(held.plans) for held in known.held.values()) <= 2 * VIEW_LINES


def test_a_call_is_learnt_when_it_comes_again(known):
    known.forget()
    x = tg.tensor(np.arange(100.0), requires_grad=True)
    for k in range(100):
        assert x[k].item() == k
    assert not known.held
    for k in range(100):
        assert x[k].item() == k
    assert len(known.held) > 90


def test_no_references_are_lost_or_leaked(known, references_kept):
    x = tg.tensor(np.ones((3, 2)), requires_grad=True)
    y = x * 2.0
    row = y[1]
    step = row._home.chain[0]
    shared = (x, y, x._a, y._a, row, row._home, step, None, True, False, (), np.dtype("f8"), "")

    def work():
        x.t().unsqueeze(dim=0).expand(4, -1, -1).chunk(2, dim=1)
        y.unbind()[1].view(1, 2).as_strided((2,), (1,), 0)
        row.reshape([2, 1])[..., None]
        with pytest.raises(IndexError):
            x[5]
        with tg.no_grad():
            row[0], x.view(-1), y.split((1, 2))
        with tg.inference_mode():
            x[1:], y.detach()[1]

    assert references_kept(work, shared)


def test_what_is_forgotten_while_it_is_used(known):
    """To make an object may run the collector, and that the user's code, at any time."""

    class Loud:
        def __init__(self):
            self.me = self

        def __del__(self):
            known.forget()
            z = tg.tensor([3.0, 1.0], requires_grad=True)
            (z.view(2, 1).t() * z[0]).sum().backward()
            current.tape.reclaim()

    x = tg.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    thresholds = gc.get_threshold()
    gc.set_threshold(3, 2, 2)
    try:
        for k in range(200):
            Loud()
            parts = x.t().unbind()
            y = x.view(4, 3).t()[1].unsqueeze(dim=0)
            assert y.tolist() == [[1.0, 4.0, 7.0, 10.0]]
            assert [part.tolist() for part in parts] == x.t().tolist()
            if k % 10 == 0:
                (y.sum() + parts[0].sum()).backward()
    finally:
        gc.set_threshold(*thresholds)
    assert (x.grad / 20).tolist() == [[1, 1, 0, 0], [2, 0, 0, 1], [1, 0, 1, 0]]


def test_a_full_tape(monkeypatch):
    """Views of one call that find no room for all their records are made in Python."""
    monkeypatch.setattr(current, "tape", Tape())
    x = tg.tensor(np.arange(700.0), requires_grad=True)
    for _ in range(60):
        parts = x.unbind()
        assert [part._pos - parts[0]._pos for part in parts] == list(range(700))
    sum(parts[::300]).backward()
    assert np.flatnonzero(x.grad._a).tolist() == [0, 300, 600]


def test_threads_that_learn_at_once(known):
    errors, ready = [], threading.Barrier(4)

    def work(k):
        x = tg.tensor(np.arange(60.0).reshape(3, 4, 5), requires_grad=True)
        a = x.detach().numpy()
        ready.wait()
        for n in range(300):
            if n % 20 == k:
                known.forget()
            d = n % 3
            y = x.movedim(d, 0)[n % 3].t().unsqueeze(dim=d)
            expected = np.expand_dims(np.moveaxis(a, d, 0)[n % 3].T, d)
            if not np.array_equal(y.detach().numpy(), expected) or y._home.tape is not current.tape:
                errors.append(n)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


def test_what_other_threads_read_changes_line_by_line(known, monkeypatch):
    """NumPy lets go of the interpreter's lock to write hundreds of elements, not for a line."""
    sizes = []

    class Watched(np.ndarray):
        def __setitem__(self, key, value):
            sizes.append(np.size(self[key]))
            super().__setitem__(key, value)

    x = tg.tensor(np.arange(6.0).reshape(2, 3))
    lines = known.lines
    monkeypatch.setattr(known, "lines", lines.view(Watched))
    for _ in range(3):
        assert x.t().tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    known.forget()
    assert not lines.any()
    assert max(sizes) == lines.shape[1]


def test_another_threads_tensor():
    made = []
    thread = threading.Thread(
        target=lambda: made.append(tg.tensor([1.0], requires_grad=True)[None] * 2.0)
    )
    thread.start()
    thread.join()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="recorded by another thread"):
            made[0].t()
        tg.tensor([[1.0]]).t()


# -- memory ----------------------------------------------------------------------------------------


def test_a_storage_is_as_large_as_it_is():
    """Two Tensors may lie alike in storages of which one ends sooner, or begins elsewhere."""
    long, short = np.arange(12.0), np.arange(6.0)
    for _ in range(2):
        for array, start in ((long, 2), (short, 2), (long, 4), (short, 0)):
            x = tg.from_numpy(array)[start : start + 2]
            assert x.as_strided((3,), (1,), 1).tolist() == [1.0, 2.0, 3.0]
            assert x.as_strided((2,), (1,)).tolist() == [start, start + 1.0]
        assert tg.from_numpy(long)[2:4].as_strided((3,), (5,), 1).tolist() == [1.0, 6.0, 11.0]
        with pytest.raises(RuntimeError, match="reach beyond the storage of 6 elements"):
            tg.from_numpy(short)[2:4].as_strided((3,), (5,), 1)


def test_a_storage_in_another_order_or_with_gaps():
    turned = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    gaps = np.ndarray((3,), "f8", bytearray(np.arange(6.0).tobytes()), 0, (16,))
    for _ in range(3):
        assert tg.from_numpy(turned).as_strided((3,), (1,), 1).tolist() == [3.0, 1.0, 4.0]
        assert tg.from_numpy(gaps).as_strided((2,), (1,), 1).tolist() == [2.0, 4.0]
        assert tg.from_numpy(gaps)[None].shape == (1, 3)


def test_a_view_of_a_base_that_has_changed():
    leaf = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(3):
        base = leaf * 1.0
        pair = base[0:2]
        base.mul_(2.0)
        leaf.grad = None
        pair.view(2, 1).t().sum().backward()
        assert leaf.grad.tolist() == [2.0, 2.0, 0.0]
        parts = (leaf * 1.0).split((1, 2))
        with pytest.raises(RuntimeError, match="made together with others"):
            parts[0].mul_(2.0)
        with tg.no_grad():
            leaf[1:].view(2).mul_(1.0)


def test_a_window_of_no_elements_may_begin_anywhere(tg):
    x = tg.ones(1)
    for offset in (0, 1, 7):
        assert x.as_strided((0,), (1,), offset).shape == (0,)
        assert x.as_strided((2, 0), (3, 1), offset).shape == (2, 0)
