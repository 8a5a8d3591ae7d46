"""Every misuse is an exception of a known type that says what is wrong, and harms nothing.

Each case runs with a healthy graph beside it. Afterwards no leaf has a gradient, the healthy graph
still gives the right one, and a new operation can be recorded.
"""

import copy
import threading

import numpy as np
import pytest


class World:
    """Two leaves, a constant, and a graph that must survive."""

    def __init__(self, tg):
        self.tg = tg
        self.x = tg.tensor([1.0, 2.0], requires_grad=True)
        self.w = tg.tensor([3.0, 4.0], requires_grad=True)
        self.c = tg.tensor([5.0, 6.0])
        self.healthy = (self.x * self.w).sum()

    def check(self):
        tg, x, w = self.tg, self.x, self.w
        assert tg.is_grad_enabled()
        assert x.grad is None
        assert w.grad is None
        assert x.tolist() == [1.0, 2.0]
        assert self.c.tolist() == [5.0, 6.0]
        self.healthy.backward()
        assert x.grad.tolist() == [3.0, 4.0]
        assert w.grad.tolist() == [1.0, 2.0]
        (x * x).sum().backward()
        assert x.grad.tolist() == [5.0, 8.0]


@pytest.fixture
def world(tg):
    return World(tg)


CASES = []


def case(error, match=None):
    """Register a function that misuses the library; its docstring says how."""

    def register(function):
        CASES.append(pytest.param(function, error, match, id=function.__name__))
        return function

    return register


# --------------------------------------------------------------------------------------------------
# backward and grad
# --------------------------------------------------------------------------------------------------


@case(RuntimeError, r"scalar")
def backward_from_a_vector(s):
    (s.x * s.x).backward()


@case(RuntimeError, r"scalar")
def grad_of_a_vector(s):
    s.tg.autograd.grad(s.x * s.x, s.x)


@case(RuntimeError, r"(?i)shape")
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


@case(RuntimeError, r"require")
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


@case(RuntimeError, r"second time")
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


# --------------------------------------------------------------------------------------------------
# requires_grad
# --------------------------------------------------------------------------------------------------


@case(RuntimeError, r"(?i)float")
def integers_that_require_grad(s):
    s.tg.tensor([1, 2], requires_grad=True)


@case(RuntimeError, r"(?i)float")
def integers_made_to_require_grad(s):
    s.tg.arange(3).requires_grad_()


@case(RuntimeError, r"(?i)float")
def integers_set_to_require_grad(s):
    s.tg.tensor(True).requires_grad = True


@case(RuntimeError, r"(?i)float")
def factory_of_integers_that_require_grad(s):
    s.tg.zeros(2, dtype=s.tg.int64, requires_grad=True)


@case(RuntimeError, r"leaf")
def intermediate_made_not_to_require_grad(s):
    (s.x * 2).requires_grad_(False)


@case(RuntimeError, r"require")
def hook_on_a_constant(s):
    s.c.register_hook(print)


@case(RuntimeError, r"require")
def retain_grad_on_a_constant(s):
    s.c.retain_grad()


@case(RuntimeError, r"leaf")
def post_accumulate_hook_on_an_intermediate(s):
    (s.x * 2).register_post_accumulate_grad_hook(print)


@case(RuntimeError, r"(?i)size|shape")
def grad_of_the_wrong_shape(s):
    s.x.grad = s.tg.ones(3)


@case(RuntimeError, r"(?i)type")
def grad_of_the_wrong_dtype(s):
    s.x.grad = s.tg.ones(2, dtype=s.tg.float32)


@case(TypeError)
def grad_that_is_no_tensor(s):
    s.x.grad = [1.0, 1.0]


@case(RuntimeError, r"detach")
def numpy_of_a_tensor_with_history(s):
    (s.x * 2).numpy()


@case(RuntimeError, r"(?i)deepcopy")
def deepcopy_of_an_intermediate(s):
    copy.deepcopy(s.x * 2)


# --------------------------------------------------------------------------------------------------
# In-place operations
# --------------------------------------------------------------------------------------------------


@case(RuntimeError, r"leaf")
def in_place_on_a_leaf(s):
    s.x.add_(1)


@case(RuntimeError, r"leaf")
def in_place_on_a_view_of_a_leaf(s):
    s.x[:1].mul_(2)


@case(RuntimeError, r"leaf")
def assignment_into_a_leaf(s):
    s.x[0] = 1.0


@case(RuntimeError, r"leaf")
def augmented_assignment_to_a_leaf(s):
    s.x += s.w


@case(RuntimeError, r"(?i)modified")
def saved_value_that_changed(s):
    y = s.x * 1
    z = (y * y).sum()
    y.zero_()
    z.backward()


@case(RuntimeError, r"(?i)shape|broadcast|size")
def in_place_that_would_grow(s):
    (s.x * 1).add_(s.tg.ones((3, 2)))


@case(RuntimeError, r"(?i)cast|type")
def floats_into_integers(s):
    s.tg.tensor([1, 2]).add_(0.5)


@case(RuntimeError, r"(?i)shape|size|expand")
def assignment_of_the_wrong_shape(s):
    y = s.x * 1
    y[:] = s.tg.ones(3)


# --------------------------------------------------------------------------------------------------
# Shapes, dimensions, indices
# --------------------------------------------------------------------------------------------------


@case(RuntimeError, r"(?i)broadcast|size|shape")
def shapes_that_do_not_broadcast(s):
    s.x + s.tg.ones(3)


@case(RuntimeError, r"(?i)broadcast|size|shape")
def shapes_that_do_not_broadcast_in_where(s):
    s.tg.where(s.c > 0, s.x, s.tg.ones(3))


@case(RuntimeError, r"(?i)shape|size")
def matrices_that_do_not_fit(s):
    s.tg.ones(2, 3) @ s.tg.ones(2, 3)


@case(RuntimeError)
def matmul_of_a_scalar(s):
    s.x @ s.tg.tensor(1.0)


@case(RuntimeError)
def dot_of_matrices(s):
    s.tg.dot(s.tg.ones(2, 2), s.tg.ones(2, 2))


@case(RuntimeError)
def mv_of_the_wrong_sizes(s):
    s.tg.mv(s.tg.ones(2, 3), s.x)


@case(RuntimeError, r"(?i)shape|size")
def reshape_to_another_size(s):
    s.x.reshape(3)


@case(RuntimeError)
def view_that_strides_forbid(s):
    s.tg.ones(2, 3).t().view(6)


@case(RuntimeError)
def expand_of_a_dimension_that_is_not_one(s):
    s.x.expand(3)


@case(RuntimeError)
def permute_with_too_few_dimensions(s):
    s.tg.ones(2, 3).permute(0)


@case(RuntimeError)
def permute_with_a_repeated_dimension(s):
    s.tg.ones(2, 3).permute(0, 0)


@case(RuntimeError)
def cat_of_different_sizes(s):
    s.tg.cat([s.tg.ones(2, 2), s.tg.ones(2, 3)])


@case((RuntimeError, ValueError))
def cat_of_nothing(s):
    s.tg.cat([])


@case(RuntimeError)
def stack_of_different_sizes(s):
    s.tg.stack([s.x, s.tg.ones(3)])


@case(RuntimeError)
def split_that_does_not_add_up(s):
    s.x.split([1, 2])


@case(IndexError, r"(?i)dim")
def sum_over_a_missing_dimension(s):
    s.x.sum(1)


@case(IndexError, r"(?i)dim")
def softmax_over_a_missing_dimension(s):
    s.tg.softmax(s.x, 3)


@case(IndexError, r"(?i)dim")
def transpose_of_a_missing_dimension(s):
    s.x.transpose(0, 1)


@case(RuntimeError)
def sum_over_a_dimension_twice(s):
    s.tg.ones(2, 3).sum((0, 0))


@case(IndexError)
def index_out_of_range(s):
    s.x[2]


@case(IndexError)
def too_many_indices(s):
    s.x[0, 0]


@case(IndexError)
def mask_of_the_wrong_size(s):
    s.x[s.tg.tensor([True, False, True])]


@case(IndexError)
def index_tensor_out_of_range(s):
    s.x[s.tg.tensor([0, 5])]


@case(IndexError)
def index_of_floats(s):
    s.x[s.tg.tensor([0.0, 1.0])]


@case((IndexError, TypeError))
def index_that_is_text(s):
    s.x["a"]


@case((RuntimeError, IndexError))
def index_select_out_of_range(s):
    s.x.index_select(0, s.tg.tensor([7]))


@case(RuntimeError)
def gather_out_of_range(s):
    s.x.gather(0, s.tg.tensor([7]))


@case(RuntimeError, r"int64")
def gather_with_an_index_of_floats(s):
    s.x.gather(0, s.tg.tensor([0.0]))


@case(RuntimeError, r"(?i)bool")
def masked_fill_with_a_mask_of_numbers(s):
    s.x.masked_fill(s.c, 0.0)


@case(RuntimeError)
def narrow_past_the_end(s):
    s.x.narrow(0, 1, 5)


@case(RuntimeError)
def chunk_into_no_pieces(s):
    s.x.chunk(0)


@case((RuntimeError, IndexError))
def maximum_of_nothing(s):
    s.tg.zeros(0).max()


@case((RuntimeError, ValueError), r"(?i)min.*max")
def clamp_without_bounds(s):
    s.x.clamp()


# --------------------------------------------------------------------------------------------------
# Types
# --------------------------------------------------------------------------------------------------


@case(TypeError)
def text_as_an_operand(s):
    s.x + "text"


@case(TypeError)
def none_as_an_operand(s):
    s.x * None


@case(TypeError)
def list_as_an_argument(s):
    s.tg.exp([1.0, 2.0])


@case(TypeError)
def missing_argument(s):
    s.tg.mul(s.x)


@case(TypeError)
def too_many_arguments(s):
    s.tg.exp(s.x, s.x, s.x)


@case(TypeError)
def unknown_keyword(s):
    s.x.sum(axle=0)


@case(TypeError)
def dim_that_is_text(s):
    s.x.sum("a")


@case(RuntimeError, r"(?i)float")
def mean_of_integers(s):
    s.tg.tensor([1, 2]).mean()


@case(RuntimeError)
def integers_to_negative_powers(s):
    s.tg.tensor([1, 2]) ** -1


@case(RuntimeError)
def integers_divided_by_zero(s):
    s.tg.tensor([1, 2]) // 0


@case(RuntimeError, r"(?i)ambiguous")
def truth_of_a_vector(s):
    if s.x:
        pass


@case(RuntimeError)
def item_of_a_vector(s):
    s.x.item()


@case(ValueError)
def ragged_lists(s):
    s.tg.tensor([[1.0, 2.0], [3.0]])


# --------------------------------------------------------------------------------------------------
# Functions and hooks
# --------------------------------------------------------------------------------------------------


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


@case(RuntimeError, r"(?i)Double.*shape")
def function_with_a_gradient_of_the_wrong_shape(s):
    double(s.tg, lambda ctx, g: (s.tg.ones(3), g))(s.x, s.w).sum().backward()


@case(RuntimeError)
def function_with_a_gradient_that_is_a_number(s):
    double(s.tg, lambda ctx, g: (1.0, g))(s.x, s.w).sum().backward()


@case(ZeroDivisionError)
def function_that_raises_in_backward(s):
    double(s.tg, lambda ctx, g: 1 / 0)(s.x, s.w).sum().backward()


@case(RuntimeError, r"(?i)size|shape")
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


@pytest.mark.parametrize(("misuse", "error", "match"), CASES)
def test_misuse(world, misuse, error, match):
    with pytest.raises(error, match=match):
        misuse(world)
    world.check()


# --------------------------------------------------------------------------------------------------
# Where the message must be ours
# --------------------------------------------------------------------------------------------------


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


@pytest.mark.tapegrad_only("the words of the message")
@pytest.mark.parametrize(
    ("misuse", "match"),
    [
        (shapes_that_do_not_broadcast, r"add.*\(2,\).*\(3,\)"),
        (matrices_that_do_not_fit, r"matmul.*\(2, 3\).*\(2, 3\)"),
        (backward_from_a_vector, r"\(2,\).*(gradient|sum)"),
        (weights_of_the_wrong_shape, r"\[3\].*\[2\]"),
        (second_backward, r"mul.*retain_graph=True|retain_graph=True.*mul"),
        (saved_value_that_changed, r"mul"),
        (integers_that_require_grad, r"int64"),
        (root_that_needs_no_grad, r"requires_grad"),
        (function_with_a_gradient_of_the_wrong_shape, r"\(3,\).*\(2,\)|\(2,\).*\(3,\)"),
        (hook_with_a_result_of_the_wrong_shape, r"\(3,\).*\(2,\)|\(2,\).*\(3,\)"),
        (in_place_on_a_leaf, r"no_grad|detach"),
        (reshape_to_another_size, r"\(2,\)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_messages_say_what_where_and_what_to_do(world, misuse, match):
    with pytest.raises(RuntimeError, match=f"(?s){match}"):
        misuse(world)


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
