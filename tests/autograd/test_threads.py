"""Threads: each records and sweeps on its own, and leaves may be shared."""

import threading

import pytest


def run_together(*functions):
    """Run the functions at the same time, each in a thread; raise what one of them raises."""
    barrier = threading.Barrier(len(functions))
    errors = []

    def start(function):
        try:
            barrier.wait(30)
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=start, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_each_thread_its_own_graph(tg, leaf):
    leaves = [leaf(float(k)) for k in range(4)]

    def work(x):
        def run():
            for _ in range(100):
                y = x
                for _ in range(10):
                    y = y * 1.0 + x
                y.backward()

        return run

    run_together(*map(work, leaves))
    assert [x.grad.item() for x in leaves] == [1100.0] * 4


def test_graphs_that_share_leaves_lose_nothing(tg, leaf):
    repetitions, sweeps = 30, 50
    for _ in range(repetitions):
        x, w = leaf([1.0, 2.0]), leaf(3.0)

        def sweep(x=x, w=w):
            for _ in range(sweeps):
                (x * w + x).sum().backward()

        run_together(sweep, sweep)
        assert x.grad.tolist() == [2 * sweeps * 4.0] * 2
        assert w.grad.item() == 2 * sweeps * 3.0


def test_the_first_gradient_of_a_shared_leaf_is_not_lost(tg, leaf):
    """Two sweeps find grad None at the same moment."""
    for _ in range(200):
        x = leaf(1.0)
        run_together(*(lambda k=k, x=x: (x * k).backward() for k in (2.0, 3.0)))
        assert x.grad.item() == 5.0


def test_hooks_of_shared_leaves_run_in_every_thread(tg, leaf):
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append((threading.get_ident(), g.item())))
    run_together(*[lambda k=k: (x * k).backward() for k in (2.0, 3.0)])
    assert sorted(g for _, g in seen) == [2.0, 3.0]
    assert len({thread for thread, _ in seen}) == 2
    assert threading.get_ident() not in {thread for thread, _ in seen}


def test_recording_in_one_thread_while_another_sweeps(tg, leaf):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    stop = threading.Event()
    lengths = []

    def record():
        while not stop.is_set():
            y = w
            for _ in range(100):
                y = y * 1.0
            lengths.append(y.tolist())

    def sweep():
        try:
            for _ in range(300):
                (x * x).sum().backward()
        finally:
            stop.set()

    run_together(record, sweep)
    assert x.grad.tolist() == [600.0, 1200.0]
    assert all(values == [3.0, 4.0] for values in lengths)


def test_functions_in_two_threads(tg, leaf):
    class Square(tg.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t)
            return t * t

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = leaf(3.0)

    def sweep():
        for _ in range(100):
            Square.apply(x).backward()

    run_together(sweep, sweep)
    assert x.grad.item() == 1200.0


def test_an_error_in_one_thread_leaves_the_other_alone(tg, leaf):
    x, w = leaf(3.0), leaf([1.0, 2.0])

    def wrong():
        for _ in range(50):
            with pytest.raises(RuntimeError, match="scalar"):
                (w * w).backward()

    def right():
        for _ in range(50):
            (x * x).backward()

    run_together(wrong, right)
    assert x.grad.item() == 300.0
    assert w.grad is None


def test_create_graph_in_two_threads(tg, leaf):
    results = []

    def work():
        x = leaf(3.0)
        for _ in range(30):
            (g,) = tg.autograd.grad(x * x * x, x, create_graph=True)
            results.append(tg.autograd.grad(g, x)[0].item())

    run_together(work, work)
    assert results == [18.0] * 60


def test_many_threads_come_and_go(tg, leaf):
    x = leaf(1.0)
    for _ in range(50):
        run_together(lambda: (x * 2).backward())
    assert x.grad.item() == 100.0


def test_a_detached_value_may_cross_threads(tg, leaf):
    x = leaf(3.0)
    y = (x * x).detach()
    w = leaf(2.0)
    run_together(lambda: (w * y).backward())
    assert w.grad.item() == 9.0


@pytest.mark.tapegrad_only("PyTorch's graph belongs to no thread")
def test_recording_on_a_value_of_another_thread_is_refused(tg, leaf):
    x = leaf(3.0)
    y = x * x

    def mix():
        with pytest.raises(RuntimeError, match="thread"):
            y * 2

        w = leaf(2.0)
        (w * w).backward()
        assert w.grad.item() == 4.0

    run_together(mix)
    y.backward()
    assert x.grad.item() == 6.0


def test_backward_on_a_root_of_another_thread_is_right_or_loud(tg, leaf):
    x = leaf(3.0)
    y = x * x
    refused = []

    def sweep():
        try:
            y.backward()
        except RuntimeError as error:
            refused.append(str(error))

    run_together(sweep)
    if refused:
        assert "thread" in refused[0]
        assert x.grad is None
        y.backward()
    assert x.grad.item() == 6.0
