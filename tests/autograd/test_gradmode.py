"""no_grad, enable_grad, set_grad_enabled, inference_mode: where recording is on, and for whom."""

import asyncio
import threading

import numpy as np
import pytest

# --------------------------------------------------------------------------------------------------
# no_grad and enable_grad
# --------------------------------------------------------------------------------------------------


def test_grad_mode_is_on_by_default(tg):
    assert tg.is_grad_enabled() is True


def test_no_grad_as_a_context(tg, leaf):
    x = leaf(3.0)
    with tg.no_grad():
        assert tg.is_grad_enabled() is False
        y = x * 2
    assert tg.is_grad_enabled() is True
    assert (y.requires_grad, y.is_leaf, y.grad_fn) == (False, True, None)
    assert y.item() == 6.0


def test_enable_grad_inside_no_grad(tg, leaf):
    x = leaf(3.0)
    with tg.no_grad():
        with tg.enable_grad():
            y = x * 2
        z = x * 2
    assert y.requires_grad
    assert not z.requires_grad
    y.backward()
    assert x.grad.item() == 2.0


def test_nesting_restores_the_mode_that_was(tg):
    with tg.no_grad():
        with tg.no_grad():
            pass
        assert not tg.is_grad_enabled()
        with tg.enable_grad():
            with tg.no_grad():
                assert not tg.is_grad_enabled()
            assert tg.is_grad_enabled()
        assert not tg.is_grad_enabled()
    assert tg.is_grad_enabled()


def test_an_exception_restores_the_mode(tg):
    with pytest.raises(KeyError), tg.no_grad():
        raise KeyError
    assert tg.is_grad_enabled()


def test_one_no_grad_object_used_twice(tg):
    quiet = tg.no_grad()
    for _ in range(2):
        with quiet:
            assert not tg.is_grad_enabled()
        assert tg.is_grad_enabled()


@pytest.mark.parametrize("call", [True, False], ids=["no_grad()", "no_grad"])
def test_no_grad_as_a_decorator(tg, leaf, call):
    @tg.no_grad() if call else tg.no_grad
    def double(t, factor=2):
        """Doubles."""
        return t * factor

    x = leaf(3.0)
    assert not double(x).requires_grad
    assert double(x, factor=5).item() == 15.0
    assert double.__name__ == "double"
    assert double.__doc__ == "Doubles."
    assert tg.is_grad_enabled()


def test_enable_grad_as_a_decorator(tg, leaf):
    @tg.enable_grad()
    def double(t):
        return t * 2

    x = leaf(3.0)
    with tg.no_grad():
        assert double(x).requires_grad
        assert not tg.is_grad_enabled()


def test_a_decorated_function_that_raises_restores_the_mode(tg):
    @tg.no_grad()
    def broken():
        raise KeyError

    with pytest.raises(KeyError):
        broken()
    assert tg.is_grad_enabled()


def test_a_decorated_recursive_function(tg):
    modes = []

    @tg.no_grad()
    def down(n):
        modes.append(tg.is_grad_enabled())
        if n:
            down(n - 1)
        modes.append(tg.is_grad_enabled())

    down(2)
    assert modes == [False] * 6
    assert tg.is_grad_enabled()


def test_a_decorated_method(tg, leaf):
    class Model:
        def __init__(self):
            self.w = leaf(3.0)

        @tg.no_grad()
        def predict(self, factor):
            return self.w * factor

    assert not Model().predict(2).requires_grad


def test_a_decorated_generator_is_quiet_only_while_it_runs(tg, leaf):
    x = leaf(3.0)

    @tg.no_grad()
    def steps():
        for k in range(3):
            yield x * k

    for y in steps():
        assert not y.requires_grad
        assert tg.is_grad_enabled()
    assert tg.is_grad_enabled()


def test_leaves_may_still_be_made_to_require_grad(tg):
    with tg.no_grad():
        x = tg.tensor(3.0, requires_grad=True)
        y = tg.tensor(3.0).requires_grad_()
    assert x.requires_grad
    assert y.requires_grad
    (x * y).backward()
    assert x.grad.item() == 3.0


def test_copies_and_detach_under_no_grad(tg, leaf):
    x = leaf([1.0, 2.0])
    with tg.no_grad():
        for y in (x.detach(), x.clone(), x[[0, 1]], x.sum(), x @ x):
            assert not y.requires_grad


@pytest.mark.tapegrad_only("a view made under no_grad claims to require grad in PyTorch 2.13")
def test_views_under_no_grad(tg, leaf):
    x = leaf([1.0, 2.0])
    with tg.no_grad():
        for y in (x[0], x[:1], x.view(2), x.t(), x.unsqueeze(0), x.expand(2, 2)):
            assert not y.requires_grad


def test_a_result_of_no_grad_is_a_constant_later(tg, leaf):
    x = leaf(3.0)
    with tg.no_grad():
        c = x * 2
    (x * c).backward()
    assert x.grad.item() == 6.0


# --------------------------------------------------------------------------------------------------
# set_grad_enabled
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [True, False])
def test_set_grad_enabled_as_a_context(tg, leaf, mode):
    x = leaf(3.0)
    with tg.set_grad_enabled(mode):
        assert tg.is_grad_enabled() is mode
        y = x * 2
    assert y.requires_grad is mode
    assert tg.is_grad_enabled()


def test_set_grad_enabled_as_a_call_holds_until_the_next(tg, leaf):
    x = leaf(3.0)
    try:
        tg.set_grad_enabled(False)
        assert not (x * 2).requires_grad
        tg.set_grad_enabled(True)
        assert (x * 2).requires_grad
    finally:
        tg.set_grad_enabled(True)


def test_set_grad_enabled_as_a_decorator(tg, leaf):
    @tg.set_grad_enabled(False)
    def double(t):
        return t * 2

    assert tg.is_grad_enabled()
    assert not double(leaf(3.0)).requires_grad
    assert tg.is_grad_enabled()


def test_set_grad_enabled_restores_what_was(tg):
    with tg.no_grad():
        with tg.set_grad_enabled(True):
            assert tg.is_grad_enabled()
        assert not tg.is_grad_enabled()


@pytest.mark.parametrize("mode", ["a", 1, None, [True]])
def test_set_grad_enabled_takes_a_truth_value(tg, mode):
    with pytest.raises(TypeError, match=r"True or False|must be bool"):
        tg.set_grad_enabled(mode)
    assert tg.is_grad_enabled()


@pytest.mark.tapegrad_only("PyTorch decorates what cannot be called")
@pytest.mark.parametrize("mode", ["no_grad", "enable_grad"])
@pytest.mark.parametrize("given", [5, "a", False])
def test_a_mode_decorates_what_can_be_called(tg, mode, given):
    with pytest.raises(TypeError, match=f"`{mode}` is a context, or decorates a function, got"):
        getattr(tg, mode)(given)


@pytest.mark.tapegrad_only("PyTorch decorates what cannot be called")
def test_inference_mode_takes_a_truth_value(tg):
    with pytest.raises(TypeError, match="True or False, got str"):
        tg.inference_mode("a")


# --------------------------------------------------------------------------------------------------
# inference_mode
# --------------------------------------------------------------------------------------------------


def test_inference_mode_records_nothing(tg, leaf):
    x = leaf(3.0)
    with tg.inference_mode():
        assert not tg.is_grad_enabled()
        y = x * 2
    assert tg.is_grad_enabled()
    assert not y.requires_grad
    assert y.item() == 6.0


def test_inference_mode_false_changes_nothing(tg, leaf):
    with tg.inference_mode(False):
        assert (leaf(3.0) * 2).requires_grad


@pytest.mark.parametrize("call", [True, False], ids=["inference_mode()", "inference_mode"])
def test_inference_mode_as_a_decorator(tg, leaf, call):
    @tg.inference_mode() if call else tg.inference_mode
    def double(t):
        return t * 2

    assert not double(leaf(3.0)).requires_grad
    assert tg.is_grad_enabled()


def test_is_inference_is_a_method(tg):
    with tg.inference_mode():
        made = tg.ones(2) * 2
    assert made.is_inference() is True
    assert tg.ones(2).is_inference() is False


MADE = {
    "tensor": lambda tg, t: tg.tensor([1.0, 2.0]),
    "from_numpy": lambda tg, t: tg.from_numpy(np.ones(2)),
    "as_tensor": lambda tg, t: tg.as_tensor([1.0, 2.0]),
    "ones": lambda tg, t: tg.ones(2),
    "full": lambda tg, t: tg.full((2,), 1.0),
    "arange": lambda tg, t: tg.arange(2.0),
    "eye": lambda tg, t: tg.eye(2),
    "rand": lambda tg, t: tg.rand(2),
    "randint": lambda tg, t: tg.randint(0, 3, (2,)),
    "zeros_like": lambda tg, t: tg.zeros_like(t),
    "new_ones": lambda tg, t: t.new_ones(2),
    "operation": lambda tg, t: t * 2,
    "clone": lambda tg, t: t.clone(),
    "view": lambda tg, t: tg.ones(2)[:1],
    "detach": lambda tg, t: tg.ones(2).detach(),
    "data": lambda tg, t: tg.ones(2).data,
    "leaf": lambda tg, t: tg.ones(2, requires_grad=True).detach(),
}


@pytest.mark.parametrize("made", MADE)
def test_what_inference_mode_makes_is_marked(tg, made):
    ordinary = tg.ones(2)
    with tg.inference_mode():
        t = MADE[made](tg, ordinary)
        assert t.is_inference()
        t.add_(1)
    with pytest.raises(RuntimeError, match=r"(?i)inference"):
        t.add_(1)
    with tg.no_grad(), pytest.raises(RuntimeError, match=r"(?i)inference"):
        t[0] = 1
    if t.is_floating_point():
        with pytest.raises(RuntimeError, match=r"(?i)inference"):
            t.requires_grad_()
    assert not t.clone().is_inference()


SEEN = {
    "itself": lambda t: t.add_(0),
    "detach": lambda t: t.detach(),
    "data": lambda t: t.data,
    "its own dtype": lambda t: t.to(t.dtype),
}


@pytest.mark.parametrize("seen", SEEN)
def test_what_inference_mode_sees_of_an_ordinary_tensor_is_ordinary(tg, seen):
    ordinary = tg.ones(2)
    with tg.inference_mode():
        t = SEEN[seen](ordinary)
    assert not t.is_inference()
    t.add_(1)
    assert 2.0 in ordinary.tolist()


def test_a_view_made_in_inference_mode_cannot_be_changed_where_it_would_be_recorded(tg, leaf):
    y = leaf([1.0, 2.0]) * 1
    with tg.inference_mode():
        v = y[:1]
    with pytest.raises(RuntimeError):
        v.mul_(2)


@pytest.mark.parametrize("records", [False, True])
def test_a_view_made_in_inference_mode_is_what_it_shows(tg, records):
    ordinary = tg.ones(2, requires_grad=records) * 1
    with tg.inference_mode():
        made = tg.ones(2)
        views = [t for x in (ordinary, made) for t in (x[:1], x.view(2, 1), *x.unbind())]
        assert (ordinary * 1).is_inference()
    for v in views[:4]:
        assert not v.is_inference()
        assert v._base is ordinary
    for v in views[4:]:
        assert v.is_inference()
    for change in (lambda v: v.add_(2), lambda v: v.transpose_(0, 1)):
        if records:
            with pytest.raises(RuntimeError, match="view"):
                change(views[1])
        else:
            change(views[1])


def test_a_tensor_made_in_inference_mode_may_require_grad(tg):
    with tg.inference_mode():
        t = tg.ones(2, requires_grad=True)
        assert not (t * 2).requires_grad
        ordinary = tg.tensor([1.0])
    assert t.requires_grad
    assert t.is_leaf
    assert t.is_inference()
    (g,) = tg.autograd.grad((t + 1).sum(), t)
    assert g.tolist() == [1.0, 1.0]
    assert ordinary.requires_grad is False


def test_an_ordinary_tensor_may_start_to_require_grad_in_inference_mode(tg):
    t = tg.ones(2)
    with tg.inference_mode():
        t.requires_grad_()
    (t * t).sum().backward()
    assert t.grad.tolist() == [2.0, 2.0]


def test_an_inference_tensor_can_be_added_to_what_is_recorded(tg, leaf):
    with tg.inference_mode():
        c = tg.ones(2)
    x = leaf([1.0, 2.0])
    (x + c).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.tapegrad_only("PyTorch does not count versions of such Tensors, and refuses")
def test_an_inference_tensor_can_be_saved_and_is_watched(tg, leaf):
    with tg.inference_mode():
        c = tg.tensor([3.0, 4.0])
    x = leaf([1.0, 2.0])
    (x * c).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    z = x * c
    with tg.inference_mode():
        c.mul_(2)
    with pytest.raises(RuntimeError, match="inplace"):
        z.sum().backward()


def test_is_inference_mode_enabled(tg):
    assert tg.is_inference_mode_enabled() is False
    with tg.inference_mode():
        assert tg.is_inference_mode_enabled() is True
    assert tg.is_inference_mode_enabled() is False


# --------------------------------------------------------------------------------------------------
# Threads
# --------------------------------------------------------------------------------------------------


def in_a_thread(function):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def test_the_mode_of_a_new_thread_is_on(tg):
    with tg.no_grad():
        assert in_a_thread(tg.is_grad_enabled) is True


def test_a_thread_does_not_change_the_mode_of_another(tg):
    def quiet():
        tg.set_grad_enabled(False)
        return tg.is_grad_enabled()

    assert in_a_thread(quiet) is False
    assert tg.is_grad_enabled()


def test_overlapping_contexts_in_two_threads(tg, leaf):
    inside, leave = threading.Event(), threading.Event()

    def other():
        with tg.no_grad():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    recorded = (leaf(3.0) * 2).requires_grad
    leave.set()
    thread.join()
    assert recorded
    assert tg.is_grad_enabled()


def modes(tg):
    return {
        "no_grad": (tg.no_grad, False), "inference_mode": (tg.inference_mode, False),
        "set_grad_enabled": (lambda: tg.set_grad_enabled(False), False),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["no_grad", "inference_mode", "set_grad_enabled"])
def test_a_decorated_generator_has_its_mode_whenever_it_runs(tg, name):
    mode, expected = modes(tg)[name]
    seen = []

    @mode()
    def generator():
        try:
            seen.append(("begin", tg.is_grad_enabled()))
            got = yield 1
            seen.append((got, tg.is_grad_enabled()))
            try:
                yield 2
            except KeyError:
                seen.append(("thrown", tg.is_grad_enabled()))
            yield 3
        finally:
            seen.append(("end", tg.is_grad_enabled()))

    g = generator()
    assert next(g) == 1
    assert tg.is_grad_enabled()
    assert g.send("sent") == 2
    assert g.throw(KeyError()) == 3
    assert tg.is_grad_enabled()
    g.close()
    assert tg.is_grad_enabled()
    assert seen == [(what, expected) for what in ("begin", "sent", "thrown", "end")]
    g = generator()
    next(g)
    del g  # as `close`
    assert seen[-1] == ("end", expected)


def test_a_decorated_generator_returns_and_raises(tg):
    @tg.no_grad()
    def inner(problem):
        yield 1
        if problem is not None:
            raise problem
        return 2

    def outer():
        assert (yield from inner(None)) == 2
        with pytest.raises(ZeroDivisionError):
            yield from inner(ZeroDivisionError())

    assert list(outer()) == [1, 1]
    assert tg.is_grad_enabled()


def test_a_generator_that_ignores_close_is_an_error(tg):
    @tg.no_grad()
    def stubborn():
        try:
            yield
        except GeneratorExit:
            yield

    g = stubborn()
    next(g)
    with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
        g.close()
    assert tg.is_grad_enabled()


@pytest.mark.tapegrad_only("PyTorch's decorators leave a coroutine its caller's mode")
def test_a_decorated_coroutine_is_quiet_only_while_it_runs(tg):
    seen = []

    async def outside():
        seen.append(("other", tg.is_grad_enabled()))
        await asyncio.sleep(0)

    @tg.no_grad()
    async def quiet(n):
        for _ in range(2):
            seen.append(("quiet", tg.is_grad_enabled()))
            await asyncio.sleep(0)
        return n

    @tg.no_grad()
    async def numbers():
        try:
            for n in range(3):
                await asyncio.sleep(0)
                got = yield n
                seen.append((got, tg.is_grad_enabled()))
        finally:
            seen.append(("end", tg.is_grad_enabled()))

    async def main():
        found = await asyncio.gather(quiet(5), outside(), outside())
        assert found[0] == 5
        assert [n async for n in numbers()] == [0, 1, 2]
        some = numbers()
        assert await some.asend(None) == 0
        assert await some.asend("sent") == 1
        with pytest.raises(KeyError):
            await some.athrow(KeyError())
        other = numbers()
        await other.asend(None)
        await other.aclose()
        with pytest.raises(StopAsyncIteration):
            await other.asend(None)
        task = asyncio.ensure_future(quiet(1))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert tg.is_grad_enabled()

    asyncio.run(main())
    assert {recording for what, recording in seen if what == "other"} == {True}
    assert {recording for what, recording in seen if what != "other"} == {False}
    assert [what for what, _ in seen].count("end") == 3


def test_an_array_is_given_where_nothing_is_recorded(tg, leaf):
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="grad"):
        x.numpy()
    with tg.no_grad():
        assert x.numpy().tolist() == [1.0, 2.0]
