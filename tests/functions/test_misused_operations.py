"""Misuse of operations: shapes, dimensions, indices and types that do not fit."""

from tests.misuse import Cases

case = Cases()


# -- shapes, dimensions, indices ---------------------------------------------------------------


@case(RuntimeError, r"(?i)broadcast|size|shape", says=r"add.*\(2,\).*\(3,\)")
def shapes_that_do_not_broadcast(s):
    s.x + s.tg.ones(3)


@case(RuntimeError, r"(?i)broadcast|size|shape")
def shapes_that_do_not_broadcast_in_where(s):
    s.tg.where(s.c > 0, s.x, s.tg.ones(3))


@case(RuntimeError, r"(?i)shape|size", says=r"matmul.*\(2, 3\).*\(2, 3\)")
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


@case(RuntimeError, r"(?i)shape|size", says=r"\(2,\)")
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


# -- types -------------------------------------------------------------------------------------


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


@case.parametrize
def test_misuse(world, misuse):
    misuse.hold(world)
