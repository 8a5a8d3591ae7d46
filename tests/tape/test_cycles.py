"""Hooks and contexts that refer to the Tensors whose records hold them."""

import functools
import gc
import random
import weakref

import pytest

import tapegrad
from tapegrad.tape.tape import current

pytestmark = [
    pytest.mark.tapegrad_only("how the tape is reclaimed"),
    pytest.mark.usefixtures("fresh_tape"),
]


@pytest.fixture(scope="module", autouse=True)
def without_what_other_tests_left():
    """Spare each look the objects of other tests, a million of them."""
    gc.collect()
    gc.freeze()


class Sentinel:
    """What a cycle holds, and a weak reference tells of."""


@pytest.fixture
def looked():
    """Have the tape look for cycles, however little there is, and be compacted."""

    def look():
        gc.collect()
        current.tape.cycles_from = 0
        current.tape.reclaim()
        gc.collect()

    return look


class Doubled(tapegrad.autograd.Function):
    @staticmethod
    def forward(ctx, x, sentinel):
        ctx.result = y = 2 * x
        ctx.sentinel = sentinel
        return y

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad, None


def a_hook_on_the_tensor(x, sentinel):
    y = x * 2
    y.register_hook(lambda g: (sentinel, g * y)[1])
    return y


def a_hook_on_the_record(x, sentinel):
    y = x * 2
    y.grad_fn.register_hook(lambda *grads: [sentinel, y].clear())
    return y


def a_hook_that_holds_the_record(x, sentinel):
    y = x * 2
    node = y.grad_fn
    node.register_prehook(lambda grads: [sentinel, node].clear())
    return y


def a_hook_that_holds_a_later_result(x, sentinel):
    y = x * 2
    z = (y * y).sum()
    y.register_hook(lambda g: (sentinel, g * z)[1])
    return z


class Module:
    """What remembers its output, as modules do whose hooks read it."""

    def __init__(self, x, sentinel):
        self.output, self.sentinel = 2 * x, sentinel
        self.output.register_hook(self.hook)

    def hook(self, g):
        return g * self.output


def a_method_of_what_holds_it(x, sentinel):
    return Module(x, sentinel).output


def a_partial_function(x, sentinel):
    y = x * 2
    y.register_hook(functools.partial(lambda y, g, s: g * y, y, s=sentinel))
    return y


def two_that_hold_each_other(x, sentinel):
    y, z = x * 2, x * 3
    y.register_hook(lambda g: (sentinel, g * z)[1])
    z.register_hook(lambda g: g * y)
    return y


def a_context(x, sentinel):
    return Doubled.apply(x, sentinel)


CYCLES = [
    a_hook_on_the_tensor, a_hook_on_the_record, a_hook_that_holds_the_record,
    a_hook_that_holds_a_later_result, a_method_of_what_holds_it, a_partial_function,
    two_that_hold_each_other, a_context,
]  # fmt: skip


@pytest.mark.parametrize("cycle", CYCLES, ids=lambda cycle: cycle.__name__)
def test_what_nobody_else_holds_is_reclaimed(cycle, looked):
    x = tapegrad.tensor([1.0, 2.0], requires_grad=True)
    sentinel = Sentinel()
    there = weakref.ref(sentinel)
    y = cycle(x, sentinel)
    del sentinel
    looked()
    assert there() is not None
    assert len(current.tape)
    y.sum().backward(retain_graph=True)
    expected = x.grad.tolist()
    looked()
    x.grad = None
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == expected
    del y
    looked()
    assert there() is None
    assert len(current.tape) == 0


@pytest.mark.parametrize("cycle", CYCLES, ids=lambda cycle: cycle.__name__)
def test_a_long_run_holds_little(cycle):
    """The tape looks by itself, where more than before survives."""
    x = tapegrad.ones(1000, requires_grad=True)
    sentinels = weakref.WeakSet()
    most = 0
    for _ in range(20_000):
        sentinel = Sentinel()
        sentinels.add(sentinel)
        cycle(x, sentinel)
        most = max(most, len(sentinels))
    assert most < 10_000
    assert len(current.tape) < 20_000


def test_what_the_result_needs_stays(looked):
    """The record of a Tensor that is gone, by way of a result or of what a hook closes over."""
    x = tapegrad.tensor(3.0, requires_grad=True)
    seen = []
    y = x * 2
    y.register_hook(lambda g, y=y: seen.append(y.item()))
    z = y * y
    del y
    looked()
    z.backward()
    assert seen == [6.0]
    assert x.grad.item() == 24.0


def test_what_else_refers_to_the_hook_keeps_it(looked):
    x = tapegrad.tensor(3.0, requires_grad=True)

    def made():
        y = x * 2
        holder = [y]
        y.register_hook(lambda g: g * holder[0])
        return holder

    held = made()
    looked()
    held[0].backward()
    assert x.grad.item() == 12.0


def test_where_a_hook_reaches_much_all_counts_as_in_use(looked, monkeypatch):
    x = tapegrad.tensor(3.0, requires_grad=True)

    def made():
        y = x * 2
        y.register_hook(lambda g, much=[[k] for k in range(30)]: [y, much].clear())

    made()
    with monkeypatch.context() as patch:
        patch.setattr("tapegrad.tape.cycles.MOST", 20)
        patch.setattr("tapegrad.tape.cycles.MOST_OF_EACH", 20)
        looked()
        assert len(current.tape) == 1
    looked()
    assert len(current.tape) == 0


@pytest.mark.parametrize("seed", range(40))
def test_any_hooks_on_any_graph(seed, looked):
    """What is reachable, by operations and by what hooks close over, stays, and nothing else."""
    choose = random.Random(seed)
    x = tapegrad.tensor(1.0, requires_grad=True)
    made, reads, closes = [], [], []
    for k in range(12):
        inputs = choose.sample(range(k), min(k, 2))
        y = sum((made[i] for i in inputs), x) * 0.5
        made.append(y)
        reads.append(inputs)
        closes.append([])
    for k in choose.sample(range(12), 6):
        others = choose.sample(range(12), 2)
        made[k].register_hook(lambda g, held=[made[i] for i in others]: g * 1.0)
        closes[k] += others
    kept = choose.sample(range(12), choose.randrange(4))
    needed, pending = set(), list(kept)
    while pending:
        k = pending.pop()
        if k not in needed:
            needed.add(k)
            pending += reads[k] + closes[k]
    there = [weakref.ref(y) for y in made]
    held = {k: made[k] for k in kept}
    made.clear()
    del y
    looked()
    for k, reference in enumerate(there):
        closed_over = any(k in closes[j] for j in needed)
        assert (reference() is not None) == (k in held or closed_over), k
    for y in held.values():
        x.grad = None
        y.backward(retain_graph=True)
        assert 0.0 < x.grad.item() <= 2.0**12
    held.clear()
    y = None
    looked()
    assert len(current.tape) == 0
