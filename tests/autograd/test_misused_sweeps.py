"""Misuse of `backward`, `grad`, functions and hooks: an exception that harms no leaf."""

import threading

import numpy as np
import pytest

from tests.misuse import Cases

case = Cases()


# -- backward and grad -------------------------------------------------------------------------


@case(RuntimeError, r"scalar", says=r"\(2,\).*(gradient|sum)")
def backward_from_a_vector(s):
    (s.x * s.x).backward()


@case(RuntimeError, r"scalar")
def grad_of_a_vector(s):
    s.tg.autograd.grad(s.x * s.x, s.x)


@case(RuntimeError, r"(?i)shape", says=r"\[3\].*\[2\]")
def weights_of_the_wrong_shape(s):
    (s.x * s.x).backward(s.tg.ones(3))


@case(RuntimeError, r"(?i)shape")
def weights_that_would_broadcast(s):
    (s.x * s.x).backward(s.tg.ones(1))


@case(RuntimeError, r"(?i)shape|size")
def second_of_two_weights_is_wrong(s):
    roots = [s.x * s.x, s.w * s.w]
    s.tg.autograd.backward(roots, [s.tg.ones(2), s.tg.ones(3)])


@case(RuntimeError)
def fewer_weights_than_roots(s):
    s.tg.autograd.backward([s.x * s.x, s.w * s.w], [s.tg.ones(2)])


@case(TypeError)
def weights_that_are_a_list(s):
    (s.x * s.x).backward([1.0, 1.0])


@case(RuntimeError, r"require", says=r"requires_grad")
def root_that_needs_no_grad(s):
    s.c.sum().backward()


@case(RuntimeError, r"require")
def root_made_under_no_grad(s):
    with s.tg.no_grad():
        y = (s.x * s.x).sum()
    y.backward()


@case(RuntimeError, r"require")
def detached_root(s):
    (s.x * s.x).sum().detach().backward()


@case(RuntimeError, r"require")
def one_good_and_one_bad_root(s):
    s.tg.autograd.backward([s.x.sum(), s.c.sum()])


@case(RuntimeError, r"allow_unused")
def unused_input(s):
    s.tg.autograd.grad((s.x * s.x).sum(), [s.x, s.w])


@case(RuntimeError, r"require")
def input_that_needs_no_grad(s):
    s.tg.autograd.grad((s.x * s.c).sum(), [s.x, s.c])


@case((TypeError, RuntimeError), r"(?i)tensor")
def input_that_is_an_array(s):
    s.tg.autograd.grad((s.x * s.x).sum(), np.ones(2))


@case(RuntimeError, r"(?i)empty")
def no_inputs(s):
    (s.x * s.x).sum().backward(inputs=[])


@case(RuntimeError, r"second time", says=r"mul.*retain_graph=True|retain_graph=True.*mul")
def second_backward(s):
    y = (s.x * s.x).sum()
    s.tg.autograd.grad(y, s.x)
    y.backward()


@case(RuntimeError, r"second time")
def second_backward_through_a_shared_part(s):
    y = s.x * s.x
    s.tg.autograd.grad(y.sum(), s.x)
    (y * 2 + y).sum().backward()


@case(RuntimeError)
def backward_on_a_boolean(s):
    (s.x > 0).all().backward()


@case(TypeError)
def backward_with_an_unknown_argument(s):
    s.x.sum().backward(retain=True)


# -- functions and hooks -----------------------------------------------------------------------


def double(tg, backward):
    class Double(tg.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * 2 + b

    Double.backward = staticmethod(backward)
    return Double.apply


@case(RuntimeError, r"(?i)Double.*number of gradients.*2.*1")
def function_with_too_few_gradients(s):
    double(s.tg, lambda ctx, g: g)(s.x, s.w).sum().backward()


@case(RuntimeError, r"(?i)Double.*number of gradients.*2.*3")
def function_with_too_many_gradients(s):
    double(s.tg, lambda ctx, g: (g, g, g))(s.x, s.w).sum().backward()


@case(RuntimeError, r"(?i)Double.*shape", says=r"\(3,\).*\(2,\)|\(2,\).*\(3,\)")
def function_with_a_gradient_of_the_wrong_shape(s):
    double(s.tg, lambda ctx, g: (s.tg.ones(3), g))(s.x, s.w).sum().backward()


@case(RuntimeError)
def function_with_a_gradient_that_is_a_number(s):
    double(s.tg, lambda ctx, g: (1.0, g))(s.x, s.w).sum().backward()


@case(ZeroDivisionError)
def function_that_raises_in_backward(s):
    double(s.tg, lambda ctx, g: 1 / 0)(s.x, s.w).sum().backward()


@case(RuntimeError, r"(?i)size|shape", says=r"\(3,\).*\(2,\)|\(2,\).*\(3,\)")
def hook_with_a_result_of_the_wrong_shape(s):
    y = s.x * 2
    y.register_hook(lambda g: s.tg.ones(3))
    (y * y).sum().backward()


@case(TypeError)
def hook_with_a_result_that_is_a_number(s):
    y = s.x * 2
    y.register_hook(lambda g: 1.0)
    (y * y).sum().backward()


@case(ZeroDivisionError)
def hook_that_raises(s):
    y = s.x * 2
    y.register_hook(lambda g: 1 / 0)
    (y * y).sum().backward()


@case.parametrize
def test_misuse(world, misuse):
    misuse.hold(world)


@pytest.mark.tapegrad_only("PyTorch has by then added to the leaves that it met on the way")
@pytest.mark.parametrize("culprit", ["function", "hook", "saved value", "released"])
def test_a_failing_sweep_touches_no_leaf_at_all(tg, world, culprit):
    """The other leaf is reached first; its gradient must wait until the sweep has succeeded."""
    x, w = world.x, world.w
    y = x * 1
    if culprit == "function":
        y = double(tg, lambda ctx, g: 1 / 0)(y, y)
    z = y * y
    if culprit == "hook":
        y.register_hook(lambda g: 1 / 0)
    if culprit == "saved value":
        y.add_(1)
    if culprit == "released":
        tg.autograd.grad(z.sum(), x)
    with pytest.raises((RuntimeError, ZeroDivisionError)):
        (z + w).sum().backward()
    world.check()


@pytest.mark.tapegrad_only("PyTorch's graph belongs to no thread")
def test_mixing_threads_in_one_graph_is_refused(world):
    y = world.x * 2
    caught = []

    def mix():
        try:
            y * world.w
        except RuntimeError as error:
            caught.append(str(error))

    thread = threading.Thread(target=mix)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert "thread" in caught[0]
    world.check()
