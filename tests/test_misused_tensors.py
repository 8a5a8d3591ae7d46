"""Misuse of Tensors: what cannot require a gradient, or be changed in place."""

import copy

from tests.misuse import Cases

case = Cases()


# -- requires_grad -----------------------------------------------------------------------------


@case(RuntimeError, r"(?i)float", says=r"int64")
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


# -- in-place operations -----------------------------------------------------------------------


@case(RuntimeError, r"leaf", says=r"no_grad|detach")
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


@case(RuntimeError, r"(?i)modified", says=r"mul")
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


@case.parametrize
def test_misuse(world, misuse):
    misuse.hold(world)
