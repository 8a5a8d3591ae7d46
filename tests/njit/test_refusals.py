"""What is not differentiated is refused, with the function, the line and the reason."""

import math

import numba
import numpy as np
import pytest
from numba import njit
from numba.typed import Dict, List

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("no other library has this")


def inserts(x):
    values = [x, 2.0]
    values.insert(0, x)
    return values[0] * values[1]


def appends_to_one_of_two(x):
    a, b = [x], [2.0]
    c = a if x > 0 else b
    c.append(x)
    return a[0] * len(b)


def appends_in_a_loop_over_it(x):
    values = [x, 2.0]
    for v in values:
        if len(values) < 9:
            values.append(x * v)
    return values[-1]


@njit
def same(x):
    return x


def appends_to_a_result(x):
    values = [x]
    others = same(values)
    values.append(x)
    return others[0] * len(others)


def appends_to_part_of_a_tuple(x):
    values = [x]
    pair = (values, x)
    values.append(x)
    return pair[0][0] * len(pair[0])


def repeats_in_place(x):
    values = [x]
    others = values
    values *= 2
    return others[0] * len(others)


def compares_lists(x):
    values = [x, 2.0]
    return x if values == [1.0, 2.0] else -x


def list_of_arrays(x):
    values = [np.array([x, x]), np.ones(2)]
    values[0] = values[1]
    return values[0][0] * values[1][0]


def builds_dict(x):
    values = {1: x}
    return values[1]


def inserts_into_a_typed_list(x):
    values = List()
    values.append(x)
    values.insert(0, 2.0 * x)
    return values[0]


def typed_dict(x):
    values = Dict()
    values[0] = x
    return values[0]


def looks_up(x):
    values = {0.5: 2.0}
    return values[x] * x


def puts_into_dict(x):
    values = {"a": 1.0}
    values["a"] = x
    return values["a"]


def changes_what_it_runs_over(x):
    values, s = {1: 2.0}, 0.0
    for key, value in values.items():
        values[key] = 3.0
        s += value * x
    return s


def list_of_tuples(x):
    values = [(x, "a"), (2.0, "b")]
    values.append((3.0, "c"))
    return values[0][0]


def grows_by_arrays(x):
    values = []
    for i in range(3):
        values.append(np.array([x, i]))
    return values[1][0]


def loops_over_arrays(x):
    values, s = [], 0.0
    values.append(np.array([x, 1.0]))
    for v in values:
        s += v[0]
    return s


@njit
def multiples(x):
    for k in range(3):
        yield k * x


def asks_a_generator(x):
    values = multiples(x)
    return next(values) + next(values)


def goes_on_with_a_generator(x):
    values, s = multiples(x), 0.0
    for v in values:
        s += v
        break
    for v in values:
        s += v
    return s


@njit
def both_ends(x):
    yield x
    yield x * x


def generates_in_two_places(x):
    s = 0.0
    for v in both_ends(x):
        s += v
    return s


@numba.stencil
def looks_up_neighbours(a):
    return {1: a[-1] + a[1]}[1]


def vectors_around_an_index(x):
    places = np.array([0, 1])
    return np.sum(np.full((2, 2, 2), x)[places, 1, places])


def sets(x):
    s = 0.0
    for v in {x, 2.0}:
        s += v
    return s


def draws_around(x):
    return np.random.normal(x, 1.0)


def shuffles(x):
    values = np.array((x, 2.0))
    np.random.shuffle(values)
    return values[0]


def calls_itself(x, n=3):
    if n == 0:
        return x
    return math.sin(calls_itself(x, n - 1))


@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()")
def summed(x, y):
    y[0] = x.sum()


def calls_gufunc(x):
    y = np.zeros(1)
    summed(np.ones(2) * x, y)
    return y[0]


def complex_numbers(x):
    return np.arcsinh(x * 1j).real


def iterator_shared(x):
    pairs = enumerate((x, x * x))
    s = 0.0
    for _ in range(2):
        for i, v in pairs:
            s += i * v
    return s


def gradient_inside(x):
    return square_slope.njit(x) * x


square_slope = tg.grad(njit(lambda x: x * x))

REASONS = {
    inserts: "the method `insert` of a list: write into an array",
    appends_to_one_of_two: "`append` of a list that may be one of several: write into an array",
    appends_in_a_loop_over_it: "`append` of a list while a loop runs over it",
    appends_to_a_result: "`append` of a list that a tuple or a result of a call may hold",
    appends_to_part_of_a_tuple: "`append` of a list that a tuple or a result of a call may hold",
    repeats_in_place: "`imul` of a list, in its place",
    gradient_inside: "a gradient that is called in it: call it from Python",
    compares_lists: "the operator `eq` on a list",
    list_of_arrays: "a list of array(float64, 1d, C): hold these in arrays, or in a tuple",
    grows_by_arrays: "a list of array(float64, 1d, C): hold these in arrays, or in a tuple",
    loops_over_arrays: "a list of array(float64, 1d, C): hold these in arrays, or in a tuple",
    vectors_around_an_index: "vectors as indices with others between them",
    builds_dict: "a dictionary",
    inserts_into_a_typed_list: "the method `append` of ListType[float64]: write into an array",
    typed_dict: "an assignment to an element of DictType[int64,float64]: use arrays",
    looks_up: "a subscript of DictType[float64,float64]: use arrays",
    puts_into_dict: "an assignment to an element of DictType[unicode_type,float64]",
    changes_what_it_runs_over: "that changes it",
    list_of_tuples: "a list of Tuple(float64, unicode_type)",
    sets: "a set",
    draws_around: "a call of `numpy.random.normal`",
    shuffles: "shuffle` of array(float64, 1d, C)",
    complex_numbers: "`arcsinh` of complex numbers",
    iterator_shared: "an iterator that several loops share",
    calls_gufunc: "a call of",
    asks_a_generator: "a generator: run one `for` loop over the call of it, or fill an array",
    goes_on_with_a_generator: "an iterator that several loops share",
}


@pytest.mark.parametrize("f", REASONS, ids=lambda f: f.__name__)
def test_refusal_names_function_line_and_reason(f):
    with pytest.raises(NotImplementedError) as caught:
        tg.grad(njit(f))(0.5)
    message = str(caught.value)
    assert message.startswith(f"`{f.__name__}`, line ")
    assert __file__ in message
    assert REASONS[f] in message
    line = int(message.split(", line ")[1].split(" ")[0])
    first = f.__code__.co_firstlineno
    assert first < line <= first + 8


def test_a_stencil_is_refused_at_its_line():
    f = njit(lambda x: np.sum(looks_up_neighbours(np.full(4, x))))
    with pytest.raises(NotImplementedError, match=r"`looks_up_neighbours`.* a dictionary: use"):
        tg.grad(f)(0.5)
    with pytest.raises(TypeError, match="a stencil that is called from Python takes no Tensors"):
        looks_up_neighbours(tg.tensor([1.0, 2.0, 3.0]))


def into_record(x, parts, weights):
    parts[0].weight = x
    return parts[0].weight


def into_field(x, parts, weights):
    weight = parts.weight
    weight[0] = x
    return parts[0].weight


def into_array_of_dict(x, parts, weights):
    w = weights["w"]
    w[0] = x
    return w[0]


def array_into_dict(x, parts, weights):
    weights["v"] = np.array((x, 1.0))
    return weights["v"][0]


WITHIN = {
    into_record: "an assignment to an attribute",
    into_field: "the attribute `weight` of an array",
    into_array_of_dict: "a subscript of DictType",
    array_into_dict: "an assignment to an element of DictType",
}


@pytest.mark.parametrize("f", WITHIN, ids=lambda f: f.__name__)
def test_active_values_in_records_and_dictionaries_are_refused(f):
    parts = np.array([(1.5, 2)], [("weight", float), ("n", "i8")])
    weights = Dict()
    weights["w"] = np.ones(2)
    with pytest.raises(NotImplementedError) as caught:
        tg.grad(njit(f))(0.5, parts, weights)
    message = str(caught.value)
    line = int(message.split(", line ")[1].split(" ")[0])
    assert line == f.__code__.co_firstlineno + 1
    assert f"{WITHIN[f]}" in message.partition("is not differentiated: ")[2]
    with pytest.raises(NotImplementedError, match="is not differentiated"):
        tg.jvp(njit(f), (0.5, parts, weights), (1.0, None, None))
    with pytest.raises(NotImplementedError, match="is not differentiated"):
        njit(f)(tg.tensor(0.5), parts, weights)
    with pytest.raises(TypeError, match="needs floating-point arguments, got Dict in argument 2"):
        tg.grad(njit(f), 2)(0.5, parts, weights)


def test_fields_between_elements_are_refused():
    packed = np.ones(3, [("weight", float), ("n", "i4")])

    @njit
    def total(x, parts):
        return np.sum(parts.weight) * x

    with pytest.raises(NotImplementedError, match="a field of 8 bytes of records of 12: align"):
        tg.grad(total)(0.5, packed)
    assert tg.grad(total)(0.5, packed.astype(np.dtype(packed.dtype.descr, align=True))) == 3.0

    weights = Dict()
    weights["w"] = packed["weight"]
    held = njit(lambda x, weights: x * weights["w"][1])
    with pytest.raises(RuntimeError, match=r"the compiled sweep of .* raised"):
        tg.grad(held)(0.5, weights)


def test_containers_that_python_owns_are_refused():
    @njit
    def first(x, values):
        return x

    @njit
    def same(x, values):
        return x, values

    with pytest.raises(NotImplementedError, match="type dict: pass a `numba"):
        tg.grad(first)(0.5, {"a": 1.0})
    with pytest.raises(NotImplementedError, match="a result of type unicode_type"):
        tg.grad(same, has_aux=True)(0.5, "text")


@numba.experimental.jitclass([("count", numba.float64)])
class Counter:
    def __init__(self):
        self.count = 3.0


@numba.experimental.jitclass([("value", numba.float64)])
class Rate:
    def __init__(self, value):
        self.value = value


def test_objects_that_are_written_are_refused():
    @njit
    def read(x, counter):
        return x * counter.count

    @njit
    def counted(x, counter):
        counter.count += 1.0
        return x * counter.count

    counter = Counter()
    assert tg.grad(read)(2.0, counter) == 3.0
    value, pullback = tg.vjp(read, 2.0, counter)
    assert (value, *pullback(1.0)) == (6.0, 3.0, None)
    assert tg.linearize(read, 2.0, counter)[1](0.5, None) == 1.5
    x = tg.tensor(2.0, requires_grad=True)
    read(x, (counter,)[0]).backward()
    assert x.grad == 3.0
    for transform in (tg.grad(counted), lambda *args: tg.vjp(counted, *args)):
        with pytest.raises(NotImplementedError, match="a `Counter`, which has no copy"):
            transform(2.0, counter)
    assert counter.count == 3.0


def test_objects_with_a_derivative_are_refused():
    @njit
    def made(x):
        counter = Counter()
        counter.count = x
        return counter.count

    with pytest.raises(NotImplementedError, match=r"an assignment to an attribute"):
        tg.grad(made)(2.0)
    with pytest.raises(NotImplementedError, match=r"a call of `Rate`, a `jitclass`: hold what is"):
        tg.grad(njit(lambda x: Rate(x).value))(2.0)


def test_functions_of_a_text_have_lines_too():
    exec("def looked_up(x):\n return np.linalg.matrix_rank(np.eye(2)) * {1: x}[1]", globals())
    with pytest.raises(NotImplementedError, match="`looked_up`, line 2 of <string>, is not diff"):
        tg.grad(njit(looked_up))(2.0)  # noqa: F821


def test_what_python_shall_run_is_refused():
    @njit
    def reads_clock(x):
        with numba.objmode(y="float64"):
            y = float(x)
        return y * x

    with pytest.raises(NotImplementedError, match="a block `with objmode`"):
        tg.grad(reads_clock)(0.5)


def test_factors_of_a_singular_matrix_are_refused():
    with pytest.raises(RuntimeError, match=r"no derivative where a matrix is singular \(`np.lin"):
        tg.grad(njit(lambda a: np.linalg.qr(a)[1][0, 0]))(np.zeros((2, 2)))


def test_recursion_is_refused():
    recursive = njit(calls_itself)
    globals()["calls_itself"] = recursive
    with pytest.raises(NotImplementedError, match="a function that calls itself: write a loop"):
        tg.grad(recursive)(0.5)


def test_generators_with_several_yields_are_refused():
    with pytest.raises(NotImplementedError, match=r"`both_ends`, line .* more than one `yield`: y"):
        tg.grad(njit(generates_in_two_places))(0.5)


def test_lists_from_outside_and_as_results_are_refused():
    @njit
    def doubled(x):
        return [x[0], x[1]]

    with pytest.raises(NotImplementedError, match="a list as a result: return an array"):
        tg.jacobian(doubled)(np.ones(2))

    @njit
    def appended(values, x):
        values.append(x)

    @njit
    def has_another_append(x):
        values = [x]
        appended(values, x)
        return values[1]

    with pytest.raises(
        NotImplementedError, match=r"`appended`, line .*: `append` of a list of a c"
    ):
        tg.grad(has_another_append)(0.5)


@njit
def put_first(x, values):
    values[0] = x
    return values[0] * values[1]


@njit
def first_of(x, values):
    return values[0]


def test_lists_among_the_arguments_are_read_only():
    values = [1.0, 2.0]
    with pytest.raises(NotImplementedError, match="writes into its argument, a list: pass an arr"):
        tg.grad(put_first)(0.5, values)
    assert values == [1.0, 2.0]
    with pytest.raises(NotImplementedError, match=r"a list of UniTuple.* as an argument: pass an"):
        tg.grad(first_of)(0.5, [(1.0, 2.0)])
    for mixed in ([], [1, 2.0]):
        with pytest.raises(NotImplementedError, match="a list as an argument that is not of one"):
            tg.grad(first_of)(0.5, mixed)
    with pytest.raises(TypeError, match="needs floating-point arguments, got list in argument 1"):
        tg.grad(put_first, 1)(0.5, values)
    slope = tg.grad(first_of).njit
    with pytest.raises(numba.TypingError, match="was called with a list: pass an array or a tuple"):
        njit(lambda x: slope(x, [x, 2.0]))(0.5)


def norm(x):
    return abs(x[0])


@numba.extending.overload(norm)
def _norm(x):
    return lambda x: {1: x[0]}[1]


def test_functions_with_names_of_numpys_are_not_taken_for_them():
    with pytest.raises(NotImplementedError, match=r"`_norm`|`<lambda>`, line .*a dictionary"):
        tg.grad(njit(lambda x: norm(x)))(np.ones(3))


def test_arguments_that_are_no_floats_are_refused():
    @njit
    def f(x, n):
        return x[0] * n

    x = np.ones(3)
    with pytest.raises(TypeError, match=r"needs floating-point arguments, got int64 in argument 1"):
        tg.grad(f, 1)(x, 3)
    with pytest.raises(TypeError, match=r"needs floating-point arguments, got int64 in argument 0"):
        tg.grad(f)(np.arange(3), 2.0)
    with pytest.raises(TypeError, match="must return a floating-point scalar, got complex128"):
        tg.grad(f, 1)(np.ones(3, complex), 2.0)


def test_results_that_are_no_scalars_are_refused():
    @njit
    def array(x):
        return x * x

    @njit
    def pair(x):
        return x[0], x

    @njit
    def integer(x):
        return int(x[0])

    x = np.ones(3)
    for f in (array, pair, integer):
        with pytest.raises(TypeError, match="must return a floating-point scalar"):
            tg.grad(f)(x)
    with pytest.raises(TypeError, match="must return a pair"):
        tg.grad(array, has_aux=True)(x)


def test_what_to_do_is_said_by_the_kind_of_argument():
    @njit
    def first(x):
        return x[0]

    for x, remedy in (
        (np.ones(2, int), "pass a float"),
        (np.ones(2, np.float16), "convert the array"),
        (np.ones(2, np.clongdouble), "there are complex128 and complex64"),
        ("text", "`argnums` chooses"),
    ):
        with pytest.raises(TypeError, match=remedy):
            tg.grad(first)(x)
    with pytest.raises(AttributeError, match=r"`tapegrad.jit` of it has `.njit`"):
        tg.grad(lambda x: x**2).njit  # noqa: B018
