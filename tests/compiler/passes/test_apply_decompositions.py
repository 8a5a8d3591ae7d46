"""Compound operations and their forms: what is put in whose place, and what that computes."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.passes.apply_decompositions import expanded, form_of
from tapegrad.ops.families import by_code, table
from tapegrad.tape.tape import current
from tests.compiler.graphs import SPECIAL, graph, names, passed, same_bits, traced
from tests.compiler.passes.randoms import close, on_random_loops, on_random_programs
from tests.conformance.samples import samples_of

pytestmark = pytest.mark.tapegrad_only("about this project")

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -0.25]])
COMPOUND = sorted(op.name for op in by_code if op.decomposition is not None)
ROWS = {"dim": (1,), "keepdim": False}
# For some parameters they have no form: compiled loops serve most convolutions.
UNSERVED = frozenset((
    "as_strided", "only_view", "convolution", "convolution_input", "convolution_weight"
))  # fmt: skip


def compounds(before):
    """The names of the records that have forms."""
    return {n.name for n in before.nodes if n.op is not None and form_of(n.op, n.dtype.kind)}


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("name", COMPOUND)
def test_the_form_of_a_row_computes_what_the_row_does(name, kind):
    for sample in samples_of(table[name]):
        operands = [np.asarray(x) for x in sample.operands]
        operands = [x.astype(kind) if x.dtype.kind == "f" else x for x in operands]
        params = {k: np.dtype(kind) if k == "dtype" else v for k, v in sample.params.items()}
        before = graph(*operands, (name, range(len(operands)), params))
        after = passed(expanded, before, *operands, alike=close)
        if name not in UNSERVED and before.nodes[-1].dtype.kind != "i":
            assert not compounds(after), sample.name


SEVERAL = np.stack([SPECIAL, SPECIAL[::-1], np.full(10, -np.inf), np.zeros(10), np.full(10, 700.0)])
ALONG = {"dim": (1,), "keepdim": False}


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("mean", ALONG), ("var", {**ALONG, "correction": 1.0}),
        ("var", {**ALONG, "correction": 99.0}),
        ("std", {**ALONG, "correction": 0.0}), ("logsumexp", ALONG), ("softmax", {"dim": (1,)}),
        ("log_softmax", {"dim": (1,)}), *[
            ("norm", {**ALONG, "p": p}) for p in (0, 1, 2, 3.0, -1.5, math.inf, -math.inf)
        ],
        ("tril", {"diagonal": 1}), ("triu", {"diagonal": 1}), ("repeat", {"reps": (2, 1)}),
        ("roll", {"shifts": (3,), "dims": (1,)}), ("others_prod", {"dim": 1}), ("entr", {}),
        ("logit", {}), ("isnan", {}), ("isinf", {}), ("isfinite", {}), ("logical_not", {}),
        ("any", ALONG), ("all", ALONG), ("count_nonzero", ALONG),
        ("argmax", {"dim": 1, "keepdim": False}), ("argmin", {"dim": 0, "keepdim": True}),
    ],
)  # fmt: skip
def test_special_values(name, params):
    with np.errstate(all="ignore"):
        passed(expanded, graph(SEVERAL, (name, (0,), params)), SEVERAL, alike=close)
        alone = SPECIAL[5:6].reshape(1, 1)
        if name not in ("argmin", "argmax"):
            passed(expanded, graph(alone, (name, (0,), params)), alone, alike=close)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "logical_and", "logical_or", "logical_xor"])
def test_special_values_of_pairs(name):
    a, b = SPECIAL[:, None].copy(), SPECIAL.copy()
    passed(expanded, graph(a, b, (name, (0, 1))), a, b, alike=close)


def test_zeros_keep_their_signs_where_elements_move():
    for row in (
        ("tril", {"diagonal": 0}), ("roll", {"shifts": (1,), "dims": (0,)}),
        ("repeat", {"reps": (1, 2)}), ("triu", {"diagonal": 0}),
    ):  # fmt: skip
        name, params = row
        passed(expanded, graph(SEVERAL, (name, (0,), params)), SEVERAL, alike=same_bits)
    mask, value = SEVERAL > 0, np.array(-0.0)
    fill = graph(SEVERAL, mask, value, ("masked_fill", (0, 1, 2)))
    passed(expanded, fill, SEVERAL, mask, value)


# -- what stays --------------------------------------------------------------------------------


def test_records_without_a_form_are_copied():
    before = graph(X, ("sin", (0,)), ("sum", (1,), ROWS), ("=", 2.0), ("mul", (2, 3)))
    after = passed(expanded, before, X)
    assert after.nodes == before.nodes


def test_a_form_of_floats_does_not_serve_other_numbers():
    x = np.arange(6).reshape(2, 3)
    before = graph(x, ("einsum", (0, 0), {"terms": ("ab", "ab"), "out": "a"}))
    assert names(passed(expanded, before, x)) == ["input", "einsum"]


@pytest.mark.parametrize("name", ["var", "std"])
def test_real_results_of_complex_operands(name):
    f = lambda z: getattr(tg, name)(z, 1)
    z = tg.tensor([[1 + 2j, -0.5j, 3.0], [1 - 1j, 2.5, 0.0]])
    np.testing.assert_allclose(tg.jit(f)(z), f(z), rtol=1e-12)
    slope = tg.func.grad(lambda z: f(z).sum())
    np.testing.assert_allclose(tg.jit(slope)(z), slope(z), rtol=1e-12)


def test_a_form_that_does_not_serve_the_parameters():
    small = np.array([1, 2, 3], np.uint8)  # a count of theirs would be of another dtype
    before = graph(small, ("any", (0,), {"dim": (0,), "keepdim": False}))
    assert names(passed(expanded, before, small)) == ["input", "any"]


# -- how it is done ----------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """The shapes for which the form of `mean` was traced."""
    seen = []

    def mean(x, **params):
        seen.append((*x.shape, x.dtype.numpy.name))
        return real(x, **params)

    real = table["mean"].decomposition
    monkeypatch.setattr(table["mean"], "decomposition", mean)
    return seen


def test_a_form_is_traced_once_for_each_shape_and_parameters(asked):
    single = X.astype(np.float32)
    before = graph(
        X, single, X.T.copy(), ("mean", (0,), ROWS), ("sin", (0,)), ("mean", (4,), ROWS),
        ("mean", (0,), {"dim": (0,), "keepdim": False}), ("mean", (1,), ROWS), ("mean", (2,), ROWS),
        outputs=range(3, 9),
    )  # fmt: skip
    after = passed(expanded, before, X, single, X.T.copy(), alike=close)
    assert asked == [(2, 3, "float64")] * 2 + [(2, 3, "float32"), (3, 2, "float64")]
    assert names(after).count("sum") == 5


def test_a_form_may_use_others():
    before = graph(X, ("std", (0,), {**ROWS, "correction": 1.0}))
    after = passed(expanded, before, X, alike=close)
    assert {"sum", "div", "sqrt", "square"} <= set(names(after))
    assert not compounds(after)


def test_a_form_made_of_compound_operations_is_expanded_in_turn(monkeypatch):
    mean = table["mean"]
    form = lambda x, *, correction, **params: mean(mean(x, dim=(1,), keepdim=True), **params)
    monkeypatch.setattr(table["var"], "decomposition", form)
    after = expanded(graph(X, ("var", (0,), {"dim": (0, 1), "keepdim": False, "correction": 0.0})))
    assert names(after).count("sum") == 2
    assert "mean" not in names(after)


def test_a_result_may_be_asked_for_again_and_a_guard_may_read_it():
    before = graph(
        X, ("mean", (0,), {"dim": (0, 1), "keepdim": False}), ("gt", (1, 1)),
        outputs=(1, 1), guards=((2, False),),
    )  # fmt: skip
    passed(expanded, before, X, alike=close)


def test_a_wrong_form_is_noticed(monkeypatch):
    monkeypatch.setattr(table["mean"], "decomposition", lambda x, **params: x * 1.0)
    with pytest.raises(AssertionError, match="the form of mean gave"):
        expanded(graph(X, ("mean", (0,), ROWS)))


def test_a_form_that_fails_leaves_no_trace(monkeypatch):
    def broken(x, **params):
        raise ZeroDivisionError

    monkeypatch.setattr(table["mean"], "decomposition", broken)
    levels = list(current.tape.levels)
    with pytest.raises(ZeroDivisionError):
        expanded(graph(X, ("mean", (0,), ROWS)))
    assert current.tape.levels == levels


def test_a_form_records_nothing_on_the_tape():
    x = tg.tensor(X, requires_grad=True)
    before = len(current.tape)
    expanded(graph(X, ("var", (0,), {**ROWS, "correction": 1.0})))
    assert len(current.tape) == before
    assert x.grad is None


def test_a_form_meets_no_transform_that_is_under_way():
    """Compiled within a map or a derivative, a form sees plain operands."""
    inner = tg.jit(lambda x: np.mean(x * x))
    found = tg.vmap(lambda x: inner(x) * x)(X)
    np.testing.assert_allclose(found, np.mean(X * X, axis=1)[:, None] * X, rtol=1e-14)
    slope = tg.grad(lambda x: inner(x) * 2.0)(X)
    np.testing.assert_allclose(slope, 4 * X / 6, rtol=1e-14)


# -- nothing to compute ------------------------------------------------------------------------

EMPTY = np.empty((0, 3))


@pytest.mark.parametrize(
    ("row", "value"),
    [
        (("sum", (0,), {"dim": (0, 1), "keepdim": False}), 0.0),
        (("prod", (0,), {"dim": (0,), "keepdim": False}), np.ones(3)),
        (("mean", (0,), {"dim": (0,), "keepdim": False}), np.full(3, np.nan)),
        (("sin", (0,)), EMPTY),
        (("getitem", (2,), {"index": (slice(1, 1),)}), EMPTY),
        (("matmul", (1, 0)), np.zeros((2, 3))),
    ],
    ids=["sum", "prod", "mean", "sin", "slice", "matmul"],
)
def test_what_reads_nothing_is_a_constant(row, value):
    wide = np.empty((2, 0))
    after = passed(expanded, graph(EMPTY, wide, X, row), EMPTY, wide, X)
    assert names(after) == ["input", "input", "input", "constant"]
    same_bits([after.nodes[-1].value], [np.asarray(value)])


def test_what_reads_something_beside_nothing_is_computed():
    before = graph(EMPTY, X, ("cat", (0, 1), {"dim": 0}), ("sin", (2,)))
    assert names(passed(expanded, before, EMPTY, X)) == ["input", "input", "cat", "sin"]


def test_an_empty_input_and_an_empty_constant_stay():
    before = graph(EMPTY, ("=", EMPTY), outputs=(0, 1))
    assert expanded(before).nodes == before.nodes


def test_empty_arrays_compiled():
    f = lambda x: (np.sum(np.exp(x)), np.mean(x, axis=1), np.prod(x, axis=0))
    for found, wanted in zip(tg.jit(f)(EMPTY), f(tg.tensor(EMPTY)), strict=True):
        np.testing.assert_array_equal(found, wanted.numpy())
    slope = tg.jit(tg.grad(lambda x: np.sum(np.var(x, axis=1))))(np.empty((2, 0)))
    assert slope.shape == (2, 0)


def test_loops_are_copied():
    f = lambda x: tg.fori_loop(0, 3, lambda i, y: y * np.mean(y), x)
    after = passed(expanded, traced(f, X[0]), X[0])
    assert "loop" in names(after)


test_random_programs = on_random_programs(expanded, alike=close)
test_random_loops = on_random_loops(expanded, alike=close)
