"""The threads that help with large arrays."""

import itertools
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels.large.launching import loop
from tapegrad.ops.families import table
from tapegrad.parallel import large_elementwise, thread_pool

pytestmark = pytest.mark.tapegrad_only("how tapegrad shares work among threads")

X = np.random.default_rng(3).standard_normal((300, 1001))


def frames(parts, out):
    """Row sums of X, each part of the rows a frame."""
    kernel, n = loop("add_up", X), X.shape[1]
    found = []
    for start, stop in itertools.pairwise(parts):
        at = [
            large_elementwise.address(X) + start * n * 8,
            large_elementwise.address(out) + start * 8,
        ]
        found.append(large_elementwise.launch_words(kernel, stop - start, n, at, [n * 8, 8]))
    return found


@pytest.mark.parametrize("parts", [[0, 300], [0, 100, 300], [0, 1, 2, 150, 299, 300]])
@pytest.mark.parametrize("rest", [0.0, 0.05])  # after which the helpers sleep
def test_each_frame_is_called_once(parts, rest):
    for _ in range(3):
        out = np.zeros(300)
        time.sleep(rest)
        thread_pool.call(frames(parts, out))
        np.testing.assert_allclose(out, X.sum(1), rtol=1e-12, atol=1e-12)


def test_what_no_thread_begins_is_done_here(monkeypatch):
    mail = np.zeros((2, thread_pool.Mailbox.SIZE), np.int64)
    absent = [thread_pool.Helper(mail.ctypes.data + k * mail.strides[0]) for k in range(2)]
    monkeypatch.setattr(thread_pool, "_helpers", absent)
    monkeypatch.setattr(thread_pool, "_mail", mail)
    monkeypatch.setattr(thread_pool, "_mail_at", mail.ctypes.data)
    out = np.zeros(300)
    thread_pool.call(frames([0, 1, 150, 300], out))
    np.testing.assert_allclose(out, X.sum(1), rtol=1e-12, atol=1e-12)


def test_functions_and_kernels_take_turns():
    for _ in range(20):
        seen, out = [], np.zeros(300)
        thread_pool.share(lambda start, stop, seen=seen: seen.append((start, stop)), [0, 3, 5, 9])
        thread_pool.call(frames([0, 100, 300], out))
        assert sorted(seen) == [(0, 3), (3, 5), (5, 9)]
        np.testing.assert_allclose(out, X.sum(1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("who", [0, 1, 2])
def test_a_problem_in_a_part_is_raised_after_all_have_ended(who):
    ended = []

    def work(start, stop):
        if start == who:
            raise ValueError("a problem")
        time.sleep(0.02)
        ended.append(start)

    with pytest.raises(ValueError, match="a problem"):
        thread_pool.share(work, [0, 1, 2, 3])
    assert sorted(ended) == [k for k in range(3) if k != who]
    thread_pool.share(
        lambda start, stop: ended.append(start), [0, 1, 2, 3]
    )  # all are back at their place
    assert len(ended) == 5


def test_who_finds_the_crew_busy_works_alone():
    """From inside a part, and from another thread."""
    out, seen = np.zeros(300), []

    def inner():
        thread_pool.call(frames([0, 100, 300], out))
        thread_pool.share(lambda start, stop: seen.append((start, stop)), [0, 1, 2])

    def work(start, stop):
        if start:
            thread = threading.Thread(target=inner)
            thread.start()
            thread.join(30)

    thread_pool.share(work, [0, 1, 2])
    assert seen == [(0, 2)]
    np.testing.assert_allclose(out, X.sum(1), rtol=1e-12, atol=1e-12)


def test_threads_that_compute_at_once(monkeypatch):
    monkeypatch.setattr(large_elementwise, "_threads", 3)
    monkeypatch.setattr(large_elementwise, "SPLIT", 1000)
    right = []

    def work(k):
        x = np.full(50_000, float(k))
        for _ in range(100):
            right.append(bool((tg.tensor(x) * 2.0 + 1.0 == 2.0 * k + 1.0).all()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(right) == 400
    assert all(right)


def test_an_interrupt_waits_for_the_helpers(monkeypatch):
    """The memory that they write is not let go before."""
    pause, ended = time.sleep, []

    def interrupted(_):
        raise KeyboardInterrupt

    def work(start, stop):
        if start:
            pause(0.05)
            ended.append(start)

    monkeypatch.setattr(thread_pool, "PATIENCE", 1)
    monkeypatch.setattr(thread_pool.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread_pool.share(work, [0, 1, 2])
    assert ended == [1]


def test_helpers_that_are_woken_in_vain_sleep_again():
    """As after an interrupt: they do not watch for the next task for ever."""
    thread_pool.share(lambda start, stop: None, [0, 1, 2, 3])
    time.sleep(0.1)
    for helper in thread_pool._helpers:
        helper.wake.put(None)
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.2
    test_functions_and_kernels_take_turns()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_hires_its_own():
    code = """
import os, warnings
import numpy as np
import tapegrad as tg
warnings.simplefilter("ignore")
tg.set_num_threads(2)
x = tg.tensor(np.ones(300_000))
assert (x + x).sum().item() == 600_000
child = os.fork()
if not child:
    os._exit(0 if (x * 3.0).sum().item() == 900_000 else 1)
assert os.waitpid(child, 0)[1] == 0
assert (x + x).sum().item() == 600_000
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("name", sorted(name for name, op in table.items() if "alike" in op.loop))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_several_threads_give_the_same_bits(name, dtype, monkeypatch):
    monkeypatch.setattr(large_elementwise, "SPLIT", 1000)
    row = np.random.default_rng(5).standard_normal((2, 40_001)).astype(dtype)
    row[:, ::1000] = 0.0
    row[0, 5::1000], row[0, 6::1000], row[1, 7::1000] = np.inf, np.nan, -0.0
    op = table[name]
    arrays = list(row[: len(op.inputs)])
    with np.errstate(all="ignore"):
        expected = op.forward(*arrays)
        monkeypatch.setattr(large_elementwise, "_threads", 2)
        got = large_elementwise.forward(op, arrays)
    nan = np.isnan(expected)
    assert np.array_equal(np.isnan(got), nan)
    assert np.array_equal(np.signbit(got[~nan]), np.signbit(expected[~nan]))
    assert np.array_equal(got[~nan], expected[~nan])
