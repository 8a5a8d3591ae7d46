"""What loops and branches compute that nobody takes: it goes, and what it alone reads goes too."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.ir.control_ops import BRANCH, LOOP, TAKE
from tapegrad.compiler.passes.common_subexpressions import simplified
from tapegrad.compiler.passes.dead_code import without_dead
from tapegrad.compiler.passes.region_dce import pruned
from tests.compiler.graphs import graph, names, owned, passed, traced
from tests.compiler.passes.randoms import on_random_loops, on_random_programs

pytestmark = pytest.mark.tapegrad_only("tapegrad's own branches and loops")

X = np.array([0.5, 1.5, -0.8])
ROWS = np.arange(12.0).reshape(4, 3) * 0.1
OTHERS = np.cos(ROWS)


def plain(graph):
    """Without what is dead, in the loops too."""
    return without_dead(pruned(without_dead(graph), plain))


def narrow(f, *args):
    """The graph of a function after the pass, which must compute the same bits; and its loops."""
    after = passed(plain, traced(f, *args), *args)
    return after, [node for node in after.nodes if node.op is LOOP or node.op is BRANCH]


def size(loop):
    """How many carries, rows, outputs and other operands a loop has."""
    form = loop.params["form"]
    carries, rows, rest = form.split(loop.args)
    assert (len(carries), len(rows)) == (form.carries, form.rows)
    assert {k for g in form.graphs() for k in g.inputs} <= set(range(len(loop.args)))
    return form.carries, form.rows, form.outputs, len(rest)


def computed(loop):
    """The names of the operations of a body."""
    body = loop.params["form"].body.graph()
    return sorted(name for name in names(without_dead(body)) if name not in ("input", "constant"))


# -- loops -------------------------------------------------------------------------------------


def test_a_carry_that_nobody_takes_goes():
    def f(x, y):
        carry = tg.fori_loop(0, 3, lambda i, c: (np.sin(c[0]), np.exp(c[1]) * 0.1), (x, y))
        return carry[0]

    after, [loop] = narrow(f, X, X)
    assert size(loop) == (1, 0, 0, 0)
    assert computed(loop) == ["sin"]
    assert len(after.inputs) == 2


def test_the_second_of_two_carries_is_the_first_now():
    def f(x, y):
        return tg.fori_loop(0, 3, lambda i, c: (np.sin(c[0]), c[1] * 0.5), (x, y))[1]

    _, [loop] = narrow(f, X, X + 1.0)
    assert size(loop) == (1, 0, 0, 0)
    assert loop.args == (1,)


def test_a_carry_that_another_one_reads_stays():
    def f(x, y, z):
        step = lambda i, c: (c[0] * c[1], c[1] + c[2], c[2] * 0.5, np.exp(c[0]))
        return tg.fori_loop(0, 3, step, (x, y, z, x))[0]

    _, [loop] = narrow(f, X, X, X)
    assert size(loop)[0] == 3
    assert "exp" not in computed(loop)


def test_outputs_and_rows_go_with_their_readers():
    def f(x, rows, others):
        step = lambda c, r: (c * 0.5, (np.sin(r[0]), np.cos(r[1]) + c))
        return tg.scan(step, x, (rows, others))[1][1]

    _, [loop] = narrow(f, X, ROWS, OTHERS)
    assert size(loop) == (1, 1, 1, 0)
    assert loop.args == (0, 2)
    assert "sin" not in computed(loop)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_loop_of_outputs_alone(reverse):
    def f(x, rows):
        return tg.scan(lambda c, r: (np.tanh(c), (r * 2.0, r * 3.0)), x, rows, reverse=reverse)[1]

    _, [loop] = narrow(f, X, ROWS)
    assert size(loop) == (0, 1, 2, 0)
    assert loop.params["form"].backwards is reverse


def test_what_is_the_same_in_every_trip_goes_too():
    def f(x, a, b):
        return tg.fori_loop(0, 3, lambda i, c: (c[0] * a, c[1] * b), (x, x))[1]

    _, [loop] = narrow(f, X, X + 1.0, X + 2.0)
    assert size(loop) == (1, 0, 0, 1)
    assert loop.args == (0, 2)


def test_the_number_of_trips_stays_the_first_operand():
    def f(x, y, n):
        return tg.fori_loop(0, n, lambda i, c: (c[0] * y, np.sin(c[1]) * i), (x, y))[1]

    _, [loop] = narrow(f, X, X, np.int64(4))
    assert loop.params["form"].counted
    assert size(loop) == (2, 0, 0, 0)  # the counter of the loop is a carry


def test_what_a_condition_reads_stays():
    def f(x, y, z):
        grows = lambda c: np.sum(c[1]) < 9.0
        return tg.while_loop(grows, lambda c: (c[0] * 0.5, c[1] + 1.0, c[2] * 2.0), (x, y, z))[0]

    _, [loop] = narrow(f, X, X, X)
    assert size(loop) == (2, 0, 0, 0)
    assert sorted(loop.params["form"].until.inputs) == [1]


def test_what_a_condition_reads_beside_the_carries_stays():
    def f(x, least, step):
        def body(c):
            return c[0] + step, c[1] * step

        return tg.while_loop(lambda c: c[0] < least, body, (x, x))[0]

    _, [loop] = narrow(f, np.float64(0.0), np.float64(3.0), np.float64(0.7))
    assert size(loop) == (1, 0, 0, 2)


def test_the_number_of_trips_that_were_made():
    def f(x, y):
        return tg.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, np.sin(c[1])), (x, y))[0]

    narrow(f, np.int64(1), X)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_adjoint_of_a_loop_takes_what_it_needs(reverse):
    def f(x, rows):
        step = lambda c, r: ((np.sin(c[0]) * r, c[1] * 0.5), (c[0], c[1] * r))
        (last, _), (_, given) = tg.scan(step, (x, x), rows, reverse=reverse)
        return np.sum(last) + np.sum(given)

    before = traced(tg.grad(f, argnums=(0, 1)), X, ROWS)
    after = passed(plain, before, X, ROWS)
    sizes = [size(node) for node in after.nodes if node.op is LOOP]
    assert len(sizes) == 2
    was = [size(node) for node in before.nodes if node.op is LOOP]
    assert sizes != was


def test_a_gradient_of_less_makes_the_loops_before_it_do_less():
    """The adjoint of y alone needs no entries of what y does not depend on."""

    def f(x, y):
        carry = tg.fori_loop(0, 4, lambda i, c: (np.sin(c[0]), np.tanh(c[1])), (x, y))
        return np.sum(carry[0]) + np.sum(carry[1])

    _, [forward, backward] = narrow(tg.grad(f, argnums=1), X, X)
    assert computed(forward) == ["tanh"]
    assert size(forward)[0] == size(backward)[0] == 1


def test_a_loop_that_reads_less_of_another_one():
    def f(x, y):
        a, b = tg.fori_loop(0, 3, lambda i, c: (np.sin(c[0]), np.exp(-c[1])), (x, y))
        return tg.fori_loop(0, 3, lambda i, c: (c[0] * 2.0, c[1] * 3.0), (a, b))[0]

    after, [first, second] = narrow(f, X, X)
    assert computed(first) == ["sin"]
    assert size(first) == size(second) == (1, 0, 0, 0)
    assert [n.params["k"] for n in after.nodes if n.op is TAKE] == [0, 0]


def test_a_loop_that_nobody_asks_for_goes():
    def f(x):
        tg.fori_loop(0, 3, lambda i, c: np.sin(c), x)
        return x * 2.0

    after, loops = narrow(f, X)
    assert loops == []
    assert names(after) == ["input", "constant", "mul"]


def test_a_loop_that_only_a_dead_record_reads():
    def f(x):
        y = tg.fori_loop(0, 3, lambda i, c: np.sin(c), x)
        z = tg.fori_loop(0, 3, lambda i, c: (c[0] * 2.0, np.cos(c[1])), (x, y))
        return z[0]

    _, [loop] = narrow(f, X)
    assert computed(loop) == ["mul"]


def test_nothing_is_pruned_where_no_loop_is():
    before = graph(X, ("sin", (0,)))
    assert pruned(before, simplified) is before


def test_results_that_are_taken_twice_and_by_guards():
    def f(x, y):
        a, b = tg.fori_loop(0, 3, lambda i, c: (np.sin(c[0]), c[1] * 0.5), (x, y))
        return (a, a, a + 1.0) if np.sum(b) > 0 else (x, x, x)

    _, [loop] = narrow(f, X, X)
    assert size(loop)[0] == 2


# -- branches ----------------------------------------------------------------------------------


def test_a_branch_without_what_nobody_takes():
    def f(x, y, z):
        arms = lambda x, y, z: (np.sin(x) * y, np.exp(z)), lambda x, y, z: (x * 2.0, z)
        return tg.cond(x[0] > 0, *arms, x, y, z)[0]

    after, [branch] = narrow(f, X, X, X)
    assert [len(arm.outputs) for arm in branch.params["arms"]] == [1, 1]
    assert branch.args[1:] == (0, 1)
    assert all("exp" not in names(inner) for inner in owned(after))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_only_one_arm_reads_stays(sign):
    def f(x, y, z):
        arms = lambda x, y, z: (x, z * 3.0), lambda x, y, z: (y, np.exp(y))
        return tg.cond(x[0] > 0, *arms, x, y, z)[1]

    _, [branch] = narrow(f, sign * X, X + 1.0, X + 2.0)
    assert branch.args[1:] == (1, 2)


def test_the_predicate_stays():
    def f(x, y):
        return tg.cond(np.sum(x) > 0, lambda y: (y, y * 2.0), lambda y: (y * 3.0, y), y)[1]

    for x in (X, -X):
        after, [branch] = narrow(f, x, X)
        assert after.nodes[branch.args[0]].name == "gt"


# -- within each other -------------------------------------------------------------------------


def test_inner_graphs_go_through_the_pass_first():
    """What an inner loop does not compute any more, the outer one need not read."""

    def inner(x, y):
        return tg.fori_loop(0, 2, lambda i, c: (np.sin(c[0]), np.exp(c[1])), (x, y))[0]

    def f(x, y):
        return tg.fori_loop(0, 3, lambda i, c: (inner(c[0], c[1]), c[1] * 0.5), (x, y))[0]

    after, [outer] = narrow(f, X, X)
    assert size(outer) == (1, 0, 0, 0)
    assert all("exp" not in names(each) for each in owned(after))


def test_what_only_an_inner_condition_reads_stays():
    def f(x, least, step):
        def body(i, c):
            inner = tg.while_loop(lambda d: d < c[1], lambda d: d + 1.0, c[0])
            return inner, c[1] + c[2], c[2] * 0.9, c[3] * 2.0

        return tg.fori_loop(0, 3, body, (x, least, step, x))[0]

    _, [loop] = narrow(f, np.float64(0.0), np.float64(2.5), np.float64(1.7))
    assert size(loop) == (3, 0, 0, 0)


@pytest.mark.parametrize("first", [1.0, -1.0])
def test_what_an_inner_branch_reads_stays(first):
    def f(a, b, c, d, e):
        def body(i, s):
            arms = lambda x, y, z: (x * y, z), lambda x, y, z: (x + 1.0, y)
            taken, _ = tg.cond(s[0][0] > 0, *arms, s[1], s[2], s[4])
            return -s[0], taken, s[2] * 0.5, s[3] * taken, s[4] * 3.0

        return tg.fori_loop(0, 3, body, (a, b, c, d, e))[1]

    _, [loop] = narrow(f, first * np.ones(3), X, X + 2.0, X, X)
    assert size(loop) == (3, 0, 0, 0)
    assert loop.args == (0, 1, 2)


def test_the_inner_pass_sees_every_graph():
    def f(x, y):
        step = lambda c: (tg.cond(c[1] > 2, np.sin, np.cos, c[0]), c[1] + 1)
        return tg.while_loop(lambda c: c[1] < 5, step, (x, y))[0]

    seen = []

    def inner(graph):
        seen.append([name for name in names(graph) if name in ("lt", "add", "sin", "cos")])
        return pruned(graph, inner)

    pruned(without_dead(traced(f, X, np.int64(0))), inner)
    assert sorted(seen) == [["add"], ["cos"], ["lt"], ["sin"]]


def test_special_values_pass_through():
    def f(x, y):
        return tg.fori_loop(0, 3, lambda i, c: (-c[0] * 1.0, c[1] + c[0]), (x, y))[0]

    with np.errstate(all="ignore"):
        narrow(f, np.array([0.0, -0.0, np.nan, np.inf]), np.array([np.nan, np.inf, -np.inf, -0.0]))


test_random_programs = on_random_programs(plain, count=5)
test_random_loops = on_random_loops(plain)
