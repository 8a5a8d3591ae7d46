"""Loops of Python become loop records that compute the same, bit for bit."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.ir import reroll
from tapegrad.compiler.ir.control_ops import LOOP
from tapegrad.compiler.ir.reroll import rerolled
from tapegrad.compiler.passes.dead_code import without_dead
from tests.compiler.graphs import executed, passed, same_bits, traced

pytestmark = pytest.mark.tapegrad_only("no counterpart in PyTorch")

X = np.array([0.3, -0.8, 1.1])
ROWS = np.random.default_rng(3).standard_normal((24, 3))
NUMBERS = np.random.default_rng(4).standard_normal(24)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Let short loops be worth it."""
    monkeypatch.setattr(reroll, "SAVED", 5)


def loops(graph):
    return [node.params["form"] for node in graph.nodes if node.op is LOOP]


def became(f, *arrays):
    """The graph of a function after its loops were re-rolled; it computes the same."""
    before = without_dead(traced(f, *arrays))
    after = passed(lambda g: without_dead(rerolled(g).graph), before, *arrays)
    same_bits(executed(after, *arrays), executed(before, *arrays))
    return after


def plain(x):
    for _ in range(20):
        x = x - 0.1 * np.sin(x) * x
    return x


def varying(x):
    for c in NUMBERS:
        x = np.cos(x * c) + x * 0.5
    return x


def steady(x):
    for i in range(20):
        x = x + np.sin(x) * (0.1 * i)
    return x


def with_ends(x):
    y = np.exp(x) * x + 1.0
    for _ in range(20):
        y = y - 0.1 * np.sin(y) * x
    return np.sum(np.tanh(y) * y) / 3.0


def several(x):
    a, b, c = x, x * 2.0, np.sum(x)
    for _ in range(20):  # no sum, which a short loop may do in another order
        a, b, c = b * 0.5, np.sin(a) + c, c * 0.9 + np.max(a)
    return a, b, c


def two_back(x):
    a, b = x, x * 1.1
    for _ in range(20):
        a, b = b, np.sin(a) * 0.5 + b * 0.3
    return a * b


def of_rows(x, rows):
    for i in range(24):
        x = np.tanh(x * 0.5 + rows[i]) + x
    return x


def of_rows_backwards(x, rows):
    for i in range(24):
        x = np.tanh(x * 0.5 + rows[23 - i]) + x
    return x


def of_columns(x, rows):
    rows = rows.T
    for i in range(-24, 0):
        x = np.tanh(x * 0.5 + rows[:, i]) + x
    return x


def iterated(x, rows):
    for row in rows:
        x = np.tanh(x * 0.5 + row) + x
    return x


def read_before(x, rows):
    rows = [rows[i] for i in range(24)]
    for row in rows:
        x = np.tanh(x * 0.5 + row) + x
    return x


def appended(x, rows):
    found = []
    for row in rows:
        x = np.tanh(x * 0.5 + row) + x
        found.append(x * 2.0)
    return np.stack(found), x


def stacked_last(x, rows):
    found = [x]
    for row in rows:
        x = np.tanh(x * 0.5 + row) + x
        found.append(x)
    return np.stack(found, 1), np.concatenate(found)


def one_after_the_other(x, rows):
    found = []
    for row in rows:
        x = np.tanh(x * 0.5 + row) + x
        found.append(x)
    y = x * 0.0
    for x in found:
        y = y * 0.9 + np.sin(x) * x
    return y


def nested(x, rows):
    for row in rows:
        for _ in range(3):
            x = np.sin(x) * 0.5 + x * row
        x = x / (1.0 + np.sum(x * x))
    return x


def with_scans(x, rows):
    for row in rows:
        x = tg.fori_loop(0, 4, lambda i, y: np.sin(y) * 0.5 + y * 0.25, x) + row
        x = np.tanh(x) * x
    return x


def with_branches(x, rows):
    for row in rows:
        x = tg.cond(np.sum(x) > 0, lambda y: y * 0.5, lambda y: y + 1.0, x) + row
        x = np.tanh(x) * x
    return x


def with_gradients(x):
    for _ in range(20):
        x = x - 0.1 * tg.grad(lambda y: np.sum(np.sin(y) * y * y))(x)
    return x


def summed(x, rows):
    total = 0.0
    for row in rows:
        x = np.tanh(x * 0.5 + row) + x
        total = total + np.sum(x * x)
    return total


def guarded(x, rows):
    for row in rows:
        x = np.tanh(x * 0.5 + row) + x
        if np.sum(x) > 1e6:
            x = x * 0.5
    return x


def integers(x):
    n = np.sum(x > 0)
    for _ in range(30):
        n = n * 3 + 1
        n = n % 101
    return n


ONE = [plain, varying, steady, with_ends, several, two_back, with_gradients, integers]
TWO = [
    of_rows, of_rows_backwards, of_columns, iterated, read_before, appended, stacked_last, nested,
    with_scans, with_branches, summed, guarded,
]  # fmt: skip


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("f", [*ONE, *TWO], ids=lambda f: f.__name__)
def test_computes_the_same(f, kind):
    arrays = [a.astype(kind) for a in ((X,) if f in ONE else (X, ROWS))]
    after = became(f, *arrays)
    (form,) = loops(after)
    assert form.trips >= 17
    assert len(after.nodes) < 60


def test_several_loops():
    assert [form.trips for form in loops(became(one_after_the_other, X, ROWS))] == [24, 24]


def test_notes():
    (note,) = became(of_rows, X, ROWS).notes
    assert note == (
        "re-rolled: 24 iterations of 5 records, which carry 1 value and read rows of 1 array"
    )


def shuffled(x, rows):
    for i in (5, 3, 9, 1, 7, 2, 8, 0, 6, 4):
        x = np.tanh(x * 0.5 + rows[i]) + x
    return x


def of_lists(x, rows):
    for i, j in zip(range(12), range(12), strict=True):
        x = np.tanh(x * 0.5 + (np.exp(rows[i]) if i % 2 else np.sin(rows[j]))) + x
    return x


def of_the_first(x):
    y = x
    for _ in range(12):
        y = np.tanh(y * 0.5 + x) + y
    return y


def growing(x):
    for _ in range(12):
        x = np.concatenate([np.tanh(x), x[:1]]) * 0.5
    return x


@pytest.mark.parametrize("f", [shuffled, of_lists, growing])
def test_what_does_not_repeat_stays(f):
    arrays = (X,) if f is growing else (X, ROWS)
    assert not loops(became(f, *arrays))


def test_says_why_not():
    def f(x, rows):
        outside = [np.sin(rows[i]) * rows[i] for i in range(24)]
        for i in np.random.default_rng(0).permutation(24):
            x = np.tanh(x * 0.5 + outside[i]) + x
        return x

    notes = became(f, X, ROWS).notes
    assert any("not re-rolled" in note and "do not grow steadily" in note for note in notes)


def test_an_invariant_that_the_first_trip_computes():
    (form,) = loops(became(of_the_first, X))
    assert form.trips >= 10


OPERATIONS = [
    lambda a, b, t, rows: a * b * 0.3,
    lambda a, b, t, rows: np.sin(a),
    lambda a, b, t, rows: a + rows[t],
    lambda a, b, t, rows: b * t,
    lambda a, b, t, rows: a - float(NUMBERS[t]),
    lambda a, b, t, rows: np.tanh(a + b),
    lambda a, b, t, rows: a[::-1] * 0.5,
    lambda a, b, t, rows: np.where(a > b, a, rows[t] * b),
]


def random_loop(seed):
    """Of random steps: what they read of each other, of rows and of constants is random, too."""
    rng = np.random.default_rng(seed)
    count, width = int(rng.integers(1, 4)), int(rng.integers(3, 9))
    plan = [(int(rng.integers(len(OPERATIONS))), *rng.integers(0, 60, 2)) for _ in range(width)]
    trips, ends = int(rng.integers(9, 24)), rng.integers(0, 4, 2)

    def step(state, t, rows, width):
        values = list(state)
        for kind, first, second in plan[:width]:
            a, b = values[first % len(values)], values[second % len(values)]
            values.append(OPERATIONS[kind](a, b, t, rows))
        return [np.tanh(v) for v in values[-count:]], values[-1]

    def f(x, rows):
        state, found = [x * (k + 1) for k in range(count)], []
        state, _ = step(state, 0, rows, int(ends[0]))
        for t in range(trips):
            state, y = step(state[-count:], t, rows, width)
            found.append(y)
        last, y = step(state, 0, rows, int(ends[1]))
        return (*last, y, np.stack(found), found[2])

    return f


@pytest.mark.parametrize("seed", range(20))
def test_random_loops(seed):
    became(random_loop(seed), X, ROWS)


def test_random_loops_are_loops():
    assert sum(bool(loops(became(random_loop(seed), X, ROWS))) for seed in range(10)) >= 6
