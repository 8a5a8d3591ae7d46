"""The tape as an object: which events append to it, what they release, and what it costs."""

import gc
import os
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from tapegrad.base.reference_counts import expected_count
from tapegrad.tape.debts import DEBT_FLOOR
from tapegrad.tape.tape import FIRST, current

pytestmark = pytest.mark.tapegrad_only("the tape")


def alone(function):
    """Run a function in a thread of its own, whose tape is empty at the start."""
    outcome = []

    def run():
        try:
            outcome.append((function(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


def last(t):
    """The newest record of a tensor's tape."""
    return list(t.tape.whole)[-1]


def record_of(t, op):
    """The one record with this operation on the tape of a tensor."""
    (found,) = (record for record in t.tape.whole if record.op == op)
    return found


# --------------------------------------------------------------------------------------------------
# Reading a tape
# --------------------------------------------------------------------------------------------------


def test_a_leaf_has_no_tape_and_a_result_has_one(tg, leaf):
    x = leaf(2.0)
    assert x.tape is None
    assert tg.tensor(1.0).tape is None
    assert (tg.tensor(1.0) * 2).tape is None
    assert (x * 2).tape is not None


def test_all_results_of_a_thread_are_on_one_tape(leaf):
    x, w = leaf(2.0), leaf(3.0)
    assert (x * 2).tape.whole is (w * 3).tape.whole
    assert alone(lambda: (x * 2).tape.whole) is not (x * 2).tape.whole


def test_a_record_tells_position_op_inputs_shape_and_state(leaf):
    def run():
        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        y = x * 2
        z = y.sum()
        first, second = z.tape.whole
        assert second.position == first.position + 1
        assert (first.op, second.op) == ("mul", "sum")
        assert (first.shape, second.shape) == ((2, 2), ())
        assert (first.state, second.state) == ("live", "live")
        assert str(first.position) in map(str, second.inputs)
        return y, z

    alone(run)


def test_len_index_slice_and_iteration(leaf):
    def run():
        y = leaf(1.0)
        kept = [y := y + 1 for _ in range(10)]
        tape = y.tape.whole
        assert len(tape) == 10
        assert [r.position for r in tape] == [tape[i].position for i in range(10)]
        assert tape[-1] == tape[9]
        assert [r.op for r in tape[2:5]] == ["add"] * 3
        assert tape[2:5] == [tape[2], tape[3], tape[4]]
        assert list(tape) == tape[:]
        with pytest.raises(IndexError):
            tape[10]
        return kept

    alone(run)


def test_printing_shows_a_row_per_record(leaf, capsys):
    def run():
        x = leaf([1.0, 2.0])
        y = x.exp()
        z = (y * x).sum()
        print(z.tape)
        (y + y).sum().backward()
        print(z.tape)
        return z

    alone(run)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[1:4]] == ["exp", "mul", "sum"]
    header = lines[0].split()
    assert header[0] == "position"
    assert header[2:] == ["inputs", "shape", "state"]
    assert [line.split()[-1] for line in lines[1:4]] == ["live"] * 3
    assert "(2,)" in lines[2]
    assert [line.split()[-1] for line in lines[5:8]] == ["released", "live", "live"]


def test_repr_of_a_tape_is_short(leaf):
    y = leaf(1.0) * 2
    assert "Tape" in repr(y.tape)
    assert "\n" not in repr(y.tape)


# --------------------------------------------------------------------------------------------------
# What appends
# --------------------------------------------------------------------------------------------------

ONE_RECORD = {
    "add": lambda tg, x: x + 1,
    "mul": lambda tg, x: x * x,
    "div": lambda tg, x: 1 / x,
    "pow": lambda tg, x: x**3,
    "matmul": lambda tg, x: x @ x,
    "sum": lambda tg, x: x.sum(),
    "mean": lambda tg, x: x.mean(0),
    "tanh": lambda tg, x: tg.tanh(x),
    "reshape": lambda tg, x: x.reshape(4),
    "transpose": lambda tg, x: x.transpose(0, 1),
    "index": lambda tg, x: x[0],
    "mask": lambda tg, x: tg.masked_select(x, x.detach() > 1),
    "cat": lambda tg, x: tg.cat([x, x, x, x, x]),
    "where": lambda tg, x: tg.where(x.detach() > 1, x, x),
    "softmax": lambda tg, x: x.softmax(0),
    "clone": lambda tg, x: x.clone(),
    "broadcast": lambda tg, x: x + tg.ones((3, 1, 1)),
}


@pytest.mark.parametrize("name", ONE_RECORD)
def test_an_operation_appends_one_record(tg, leaf, name):
    def run():
        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        y = ONE_RECORD[name](tg, x)
        assert len(y.tape.whole) == 1
        assert y.tape.whole[0].shape == tuple(y.shape)
        return y

    alone(run)


def test_a_function_appends_one_record_with_its_name(tg, leaf):
    class Twice(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 3) - x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def run():
        y = Twice.apply(leaf(1.0))
        assert [r.op for r in y.tape.whole] == ["Twice"]

    alone(run)


def test_an_in_place_operation_appends_one_record(leaf):
    def run():
        y = leaf([1.0, 2.0]) * 1
        before = len(y.tape.whole)
        y.mul_(3)
        assert len(y.tape.whole) == before + 1

    alone(run)


def appended(tg, leaf, work):
    """How many records some work appends."""

    def run():
        x = leaf([1.0, 2.0])
        start = x * 1
        before = len(start.tape.whole)
        kept = work(x)
        return len(start.tape.whole) - before, kept

    return alone(run)[0]


def test_no_grad_appends_nothing(tg, leaf):
    def work(x):
        with tg.no_grad():
            return (x * x).sum().exp()

    assert appended(tg, leaf, work) == 0


def test_operations_on_constants_append_nothing(tg, leaf):
    assert appended(tg, leaf, lambda x: tg.ones(2) * 2 + x.detach()) == 0


def test_comparisons_and_reading_append_nothing(tg, leaf):
    def work(x):
        return [x > 1, x.tolist(), x[0].detach().item(), repr(x), x.argmax()]

    assert appended(tg, leaf, work) <= 1  # x[0] itself


def test_detach_appends_nothing(tg, leaf):
    assert appended(tg, leaf, lambda x: (x.detach(), x.data)) == 0


def test_backward_appends_nothing(tg, leaf):
    def run():
        x = leaf([1.0, 2.0])
        y = (x * x).sum()
        before = len(y.tape.whole)
        y.backward()
        assert len(y.tape.whole) == before

    alone(run)


def test_create_graph_appends_the_sweep(tg, leaf):
    def run():
        x = leaf(2.0)
        y = x * x * x
        end = last(y).position
        (g,) = tg.autograd.grad(y, x, create_graph=True)
        assert last(y).position > end
        assert last(g).state == "live"
        return g

    alone(run)


def test_positions_only_grow(leaf):
    def run():
        x = leaf(1.0)
        highest = 0
        for k in range(20000):
            y = x * 1.0
            if k % 1000 == 0:
                position = last(y).position
                assert position > highest
                highest = position
        assert highest >= 19000

    alone(run)


def test_a_record_keeps_its_position_when_others_go(leaf):
    def run():
        x = leaf(1.0)
        kept = x.exp()
        position = record_of(kept, "exp").position
        for _ in range(50000):
            x * 2.0
        assert record_of(kept, "exp").position == position
        z = kept.sin()
        assert str(position) in map(str, record_of(z, "sin").inputs)
        z.backward()
        assert x.grad is not None

    alone(run)


# --------------------------------------------------------------------------------------------------
# What releases
# --------------------------------------------------------------------------------------------------


def states(t):
    return {record.op: record.state for record in t.tape.whole}


def test_backward_releases_its_slice_and_nothing_else(tg, leaf):
    def run():
        x, w = leaf(2.0), leaf(3.0)
        below = x.exp()
        root = below.sin()
        above = root.cos()
        beside = w.tanh()
        root.backward()
        assert states(root) == {"exp": "released", "sin": "released", "cos": "live", "tanh": "live"}
        beside.backward()
        assert states(root)["tanh"] == "released"
        return above

    alone(run)


def test_retain_graph_releases_nothing(leaf):
    def run():
        y = leaf(2.0).exp().sin()
        y.backward(retain_graph=True)
        assert set(states(y).values()) == {"live"}

    alone(run)


def test_inputs_bound_the_slice_from_below(tg, leaf):
    def run():
        x = leaf(2.0)
        y = x.exp()
        z = y.sin()
        tg.autograd.grad(z, y)
        assert states(z) == {"exp": "live", "sin": "released"}
        y.backward()
        assert states(z) == {"exp": "released", "sin": "released"}

    alone(run)


def test_records_that_lead_to_no_input_are_not_swept(tg, leaf):
    def run():
        x, w = leaf(2.0), leaf(3.0)
        a, b = x.exp(), w.sin()
        z = a * b
        tg.autograd.grad(z, x)
        assert states(z) == {"exp": "released", "sin": "live", "mul": "released"}
        return a, b

    alone(run)


def test_a_failed_backward_releases_nothing(leaf):
    def run():
        x = leaf([1.0, 2.0])
        y = x.exp()
        with pytest.raises(RuntimeError):
            y.backward()
        assert states(y) == {"exp": "live"}

    alone(run)


def test_detach_in_place_forgets_the_position_and_records_keep_theirs(leaf):
    def run():
        x = leaf(3.0)
        y = x * 1
        z = y * y
        before = list(z.tape.whole)
        y.detach_()
        assert y.tape is None
        assert list(z.tape.whole) == before
        z.backward()
        assert x.grad.item() == 6.0

    alone(run)


# --------------------------------------------------------------------------------------------------
# What it costs
# --------------------------------------------------------------------------------------------------


def resident():
    """Resident memory of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


linux = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc")


def growth_while_evaluating(leaf, count):
    """Memory gained by evaluations that are dropped, all using one long-lived intermediate."""
    x = leaf([1.0, 2.0])
    base = x * 3.0

    def evaluate(times):
        for _ in range(times):
            ((base * base).sum() + x.sum()).exp()

    evaluate(20000)
    gc.collect()
    before = resident()
    evaluate(count)
    grown = resident() - before
    base.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    return grown


@linux
def test_dropped_evaluations_do_not_grow_memory(leaf):
    assert alone(lambda: growth_while_evaluating(leaf, 200_000)) < 8e6


@pytest.mark.parametrize("inplace", ["exp_", "sin_", "neg_"])
def test_a_large_result_of_an_in_place_operation_is_let_go(leaf, inplace):
    """By the next operation, whether the record keeps its operand, its result or nothing."""

    def run():
        x = leaf([1.0] * 200_000)
        y = getattr(x.clone(), inplace)()
        array = weakref.ref(y._a)
        del y
        x.clone()
        assert array() is None

    alone(run)


@linux
@pytest.mark.slow
def test_a_million_dropped_evaluations_do_not_grow_memory(leaf):
    assert alone(lambda: growth_while_evaluating(leaf, 1_000_000)) < 8e6


@linux
def test_dropped_large_results_do_not_wait_for_the_tape_to_fill(leaf):
    """A hundred dropped results of 8 MB are 800 MB; only a few may be alive at once."""

    def run():
        x = leaf([1.0])
        big = x.expand(1_000_000)
        before = resident()
        for _ in range(100):
            big * big
        return resident() - before

    assert alone(run) < 300e6


def test_views_that_were_looked_at_do_not_hide_what_results_owe(leaf):
    x, results = leaf(np.full((100, 100), 0.5)), []
    for _ in range(1000):
        kept = (x * x).sin()
        results.append(weakref.ref(kept._a))
        kept = kept.sum()
        for view in (x.t(), x[::2], x.reshape(-1)[1:]):
            float(view.max().detach())
    assert kept.item() > 0
    assert sum(result() is not None for result in results) * x._a.nbytes <= 2 * DEBT_FLOOR


def test_abandoned_records_are_a_constant_factor_of_the_live_ones(leaf):
    def run():
        x = leaf(1.0)
        kept = x * 2.0
        for _ in range(100_000):
            kept * 2.0
        return len(kept.tape.whole)

    assert alone(run) < 20_000


def test_training_with_backward_does_not_grow_the_tape(leaf):
    def run():
        x = leaf(1.0)
        for _ in range(30_000):
            y = x * 2.0 + 1.0
            y.backward()
        return len(y.tape.whole)

    assert alone(run) < 20_000


# Without native code an operation takes ten times as long; what is held does not depend on that.
LONG = 200_000 if os.environ.get("TAPEGRAD_NATIVE") == "0" else 1_000_000


def long_chain(x):
    y = x
    for _ in range(LONG):
        y = y * 1.0
    return y


def test_a_long_chain_of_records_is_swept_without_recursion(leaf):
    def run():
        start = time.perf_counter()
        x = leaf(3.0)
        long_chain(x).backward()
        assert x.grad.item() == 1.0
        return time.perf_counter() - start

    assert alone(run) < 10


def test_a_long_chain_of_records_is_dropped_without_recursion(leaf):
    def run():
        x = leaf(3.0)
        y = long_chain(x)
        start = time.perf_counter()
        del y
        z = x * 2.0
        for _ in range(10_000):
            z = z + 1.0
        z.backward()
        assert x.grad.item() == 2.0
        return time.perf_counter() - start

    assert alone(run) < 5


def test_many_records_held_by_handles(leaf):
    def run():
        start = time.perf_counter()
        x = leaf(1.0)
        handles = [x * 1.0 for _ in range(LONG // 4)]
        total = handles[0] + handles[-1]
        total.backward()
        assert x.grad.item() == 2.0
        handles[LONG // 8].backward()
        assert x.grad.item() == 3.0
        del handles
        return time.perf_counter() - start

    assert alone(run) < 5


def test_time_per_record_does_not_grow_with_the_chain(leaf):
    def seconds(length):
        x = leaf(3.0)
        y = x
        for _ in range(length):
            y = y * 1.0
        start = time.thread_time()  # whatever else the machine does
        y.backward()
        return (time.thread_time() - start) / length

    def run():
        seconds(1000)
        return min(seconds(10_000) for _ in range(3)), min(seconds(300_000) for _ in range(2))

    short, long = alone(run)
    assert long < 5 * short


def test_positions_are_objects_of_their_own(tg):
    """Small integers are shared, so that their reference counts would say nothing."""
    y = tg.tensor([1.0], requires_grad=True) * 2.0
    assert y._pos >= FIRST
    count = sys.getrefcount(current.tape.tokens[len(current.tape) - 1])
    assert count == expected_count(variables=0, holders=2)  # the list and the Tensor
