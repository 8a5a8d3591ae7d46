"""Every row of the table of operations: mapped against a loop, forward against reverse mode."""

import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.lift import batch
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.ops.families import table
from tapegrad.tape.tape import Tape, current
from tapegrad.tensor import wrap
from tests.conformance.checks import Case, close, pairing
from tests.conformance.samples import samples_of

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

SAMPLED = [
    (op, sample)
    for op in table.values()
    for sample in (samples_of(op)[:8] if op.kind is ELEMENTWISE else samples_of(op))
]
FORWARD_TOLERANCE = 1e-9

# These run example by example, with a warning: each for the reason given.
ONE_BY_ONE = {
    "restride": "only the derivative of a derivative of `as_strided` needs it",
    "unstride": "only the derivative of `as_strided` needs it",
}


@pytest.fixture(autouse=True)
def _own_tape(monkeypatch):
    monkeypatch.setattr(current, "tape", Tape())


def sampled(test):
    return pytest.mark.parametrize(
        ("op", "sample"), SAMPLED, ids=[f"{op.name}-{s.name}" for op, s in SAMPLED]
    )(test)


def applied(case, chosen):
    """The row as a function of some of its operands."""

    def function(*given):
        arrays = list(case.arrays)
        for i, x in zip(chosen, given, strict=True):
            arrays[i] = x
        operands = [wrap(x) if isinstance(x, np.ndarray) else x for x in arrays]
        return case.op(*operands, **case.sample.params)

    return function


def at_arrays(case, arrays):
    """The same row elsewhere."""
    other = Case(case.op, case.sample, np.float64)
    other.arrays = arrays
    return other


def examples(case, chosen, count=3):
    """Operands along the direction in which the row is differentiated, a little apart."""
    steps = np.linspace(0.0, 0.02, count)
    pairs = list(zip(case.arrays, case.direction, strict=True))
    return [[x + h * d if i in chosen else x for i, (x, d) in enumerate(pairs)] for h in steps]


@sampled
def test_mapped_is_a_loop(op, sample):
    case = Case(op, sample, np.float64)
    choices = [[i] for i in case.moving] + ([case.moving] if len(case.moving) > 1 else [])
    if op.name == "as_strided":
        with pytest.raises(RuntimeError, match="`as_strided` under `vmap`"):
            tg.vmap(applied(case, [0]))(np.stack([case.arrays[0]] * 2))
        return
    for chosen in choices:
        check_map(case, chosen)
        if case.floating:
            check_gradients_of_map(case, chosen)


def check_map(case, chosen):
    each = examples(case, chosen)
    expected = np.stack([case.value(arrays) for arrays in each])
    for axis in (0, -1):
        stacked = [np.stack([arrays[i] for arrays in each], axis=axis) for i in chosen]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = tg.vmap(applied(case, chosen), axis, axis)(*stacked)
        assert not said or case.op.name in ONE_BY_ONE
        close([np.moveaxis(np.asarray(found), axis, 0)], [expected], 1e-10, "vmap")


def check_gradients_of_map(case, chosen):
    f, each, places = applied(case, chosen), examples(case, chosen), tuple(range(len(chosen)))
    stacked = [np.stack([arrays[i] for arrays in each]) for i in chosen]
    weight = np.random.default_rng(1).uniform(-1, 1, (len(each), *case.result.shape))

    def gradient(w, *xs):
        return tg.grad(lambda *ys: (f(*ys) * w).sum(), places)(*xs)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        through = tg.grad(lambda *xs: (tg.vmap(f)(*xs) * weight).sum(), places)(*stacked)
        mapped = tg.vmap(gradient)(weight, *stacked)
    for e, arrays in enumerate(each):
        wanted = at_arrays(case, arrays).gradients(weight=weight[e])
        wanted = [wanted[case.moving.index(i)] for i in chosen]
        close([g[e] for g in through], wanted, 1e-9, "grad of vmap")
        close([g[e] for g in mapped], wanted, 1e-9, "vmap of grad")


@sampled
def test_forward_is_reverse_transposed(op, sample):
    """<w, J d> = <J^T w, d>, and the same for second derivatives in every mix of modes."""
    case = Case(op, sample, np.float64)
    if not case.moving or not case.floating:
        return
    f = applied(case, case.moving)
    x = [case.arrays[i] for i in case.moving]
    d = [np.asarray(u, float) for u in case.along()]
    places = tuple(range(len(x)))
    y, slope = tg.jvp(f, x, d)
    close([np.asarray(y)], [case.result], 1e-12, "value")
    expected, scale = pairing(case.gradients(), d)
    found, _ = pairing([np.asarray(slope)], [case.weight])
    assert abs(found - expected) <= FORWARD_TOLERANCE * (scale + 1)
    if sample.orders < 2:
        return
    rng = np.random.default_rng(13)
    along = [np.asarray(rng.uniform(-1, 1, u.shape)) for u in d]
    if sample.symmetric:
        along = [(u + u.mT) / 2 for u in along]
    second = case.second(case.arrays, case.weight, along)[: len(d)]
    expected, scale = pairing(second, d)
    gradient = tg.grad(lambda *xs: (f(*xs) * case.weight).sum(), places)
    mixes = {
        "forward over reverse": (tg.jvp(gradient, x, d)[1], along),
        "reverse over forward": (
            tg.grad(lambda *xs: (tg.jvp(f, xs, d)[1] * case.weight).sum(), places)(*x),
            along,
        ),
        "forward over forward": (
            [tg.jvp(lambda *xs: tg.jvp(f, xs, d)[1], x, along)[1]],
            [case.weight],
        ),
    }
    for mix, (found, weights) in mixes.items():
        total, _ = pairing([np.asarray(g) for g in found], weights)
        assert abs(total - expected) <= FORWARD_TOLERANCE * (scale + 1), mix


def test_what_has_no_rule_warns_once(monkeypatch):
    monkeypatch.setattr(batch, "_warned", set())
    _, back = tg.vjp(lambda x: tg.as_strided(x, (2, 2), (1, 1)), np.zeros(3))
    ways = np.array([[[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]]])
    with pytest.warns(UserWarning, match="`vmap` has no rule for `unstride`"):
        np.testing.assert_array_equal(tg.vmap(back)(ways)[0], [[1.0, 5.0, 4.0], [0.0, 2.0, 0.0]])
    tg.vmap(back)(ways)  # a second warning would be an error


def test_a_planted_wrong_rule_is_caught(monkeypatch):
    """The checks above see an error of a thousandth in the rule of one example."""
    from tapegrad.lift import batching_rules

    op = table["matmul"]
    right = batching_rules.table[op]
    monkeypatch.setitem(batching_rules.table, op, lambda *args: right(*args) * 1.001)
    with pytest.raises(AssertionError):
        test_mapped_is_a_loop(op, samples_of(op)[0])
