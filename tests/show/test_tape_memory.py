"""What `tg.show.memory` counts: the buffers that a tape keeps alive, once each."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about the tape")


@pytest.fixture(autouse=True)
def fresh_tape():
    """A tape that no other test has recorded on."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda work: thread.submit(work).result()


def test_a_buffer_that_several_records_keep_is_counted_once():
    x = tg.ones(1000, requires_grad=True)
    use = tg.show.memory((tg.exp(x) * x).sum())
    assert (use.nbytes, use.records) == (16000, 3)
    assert sorted([(op, name) for _, op, name in row.records] for row in use.rows) == [
        [("exp", "result"), ("mul", "a")], [("mul", "b")],
    ]  # fmt: skip


def test_views_are_counted_with_the_buffer_that_they_lie_in():
    x = tg.ones(1000, requires_grad=True)
    y = tg.exp(x)
    use = tg.show.memory(y[:10] * y[10:20])
    assert use.nbytes == 8000 + 8000  # `exp` keeps all of its result, and the leaf is kept too
    assert use.rows[0].shape == (1000,)


def test_the_largest_comes_first():
    x, y = tg.ones(10, requires_grad=True), tg.ones(1000, requires_grad=True)
    sizes = [row.nbytes for row in tg.show.memory(tg.exp(x).sum() + tg.exp(y).sum()).rows]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 8000
    assert 80 in sizes


def test_a_tensor_counts_what_it_was_computed_by_and_a_tape_everything(fresh_tape):
    def work():
        x = tg.ones(1000, requires_grad=True)
        y, z = tg.exp(x), tg.exp(x)
        return [tg.show.memory(of).nbytes for of in (y, y.tape, y.tape.whole, None)], z.position

    assert fresh_tape(work)[0] == [16000, 16000, 24000, 24000]


def test_a_sweep_releases_what_it_has_read():
    x = tg.ones(1000, requires_grad=True)
    y = tg.exp(x).sum()
    y.backward()
    use = tg.show.memory(y)
    assert [(row.nbytes, len(row.leaves), row.records) for row in use.rows] == [(8000, 1, ())]


def test_what_a_function_saves_is_counted():
    class Masked(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x * 2)
            ctx.mask = np.ones(500, bool)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    use = tg.show.memory(Masked.apply(tg.ones(1000, requires_grad=True)))
    kept = {row.nbytes: row.records[0][1] for row in use.rows if row.records}
    assert kept == {8000: "Masked", 500: "Masked"}


def test_what_hooks_have_packed_is_counted():
    x = tg.ones(1000, requires_grad=True)
    with tg.autograd.graph.saved_tensors_hooks(
        lambda t: t.numpy(force=True).astype(np.float32), lambda a: tg.tensor(a).double()
    ):
        use = tg.show.memory(tg.exp(x))
    assert {row.nbytes for row in use.rows if row.records} == {4000}


def test_every_result_of_a_function_leads_to_its_record():
    class Two(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x * 2)
            return x.clone(), x.clone()

        @staticmethod
        def backward(ctx, g, h):
            return g + h

    for y in Two.apply(tg.ones(10, requires_grad=True)):
        assert any(row.records for row in tg.show.memory(y).rows)


def test_lines_are_known_under_anomaly_detection():
    x = tg.ones(10, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tg.autograd.detect_anomaly():
            y = tg.exp(x)  # this line
    use = tg.show.memory(y)
    (row,) = [row for row in use.rows if row.records]
    assert row.line.endswith("y = tg.exp(x)  # this line")
    assert __file__ in row.line
    assert "detect_anomaly" not in str(use)
    assert "detect_anomaly" in str(tg.show.memory(tg.exp(x)))


def test_printed_and_as_html():
    x = tg.ones(3, 1000, requires_grad=True)
    use = tg.show.memory(tg.exp(x))
    assert str(use).startswith("48 kB in 2 buffers of 1 record\n")
    assert "(3, 1000)" in str(use)
    assert "<td>24 kB</td>" in use._repr_html_()


def test_a_long_list_is_cut():
    x = tg.ones(10, requires_grad=True)
    y = x
    for _ in range(80):
        y = tg.exp(y)
    use = tg.show.memory(y)
    assert len(use.rows) == 81
    assert str(use).count("\n") < 60
    assert "(31 more)" in str(use)


def test_refusals():
    with pytest.raises(
        ValueError, match=r"`memory`: this Tensor of shape \(2,\) stands on no tape"
    ):
        tg.show.memory(tg.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match="`memory` takes a Tape, a Tensor or nothing, got list"):
        tg.show.memory([])


def test_nothing_recorded(fresh_tape):
    assert fresh_tape(lambda: str(tg.show.memory())) == "0 B in 0 buffers of 0 records"
