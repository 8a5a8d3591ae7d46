"""The fast path of operations of one operand writes the records of the general path."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.one_operand import recorded
from tapegrad.ops import determinant, factorizations, reduce, solve
from tapegrad.ops.families import table
from tapegrad.tape.tape import Tape, current

pytestmark = pytest.mark.tapegrad_only("about two ways to the same records")
ALONG = {"dim": (1,), "keepdim": False}
CALLS = [
    (reduce.sum, ALONG),
    (reduce.sum, {"dim": (0,), "keepdim": True}),
    (reduce.mean, ALONG),
    (reduce.logsumexp, ALONG),
    (reduce.softmax, {"dim": (1,)}),
    (reduce.prod, ALONG),
    (solve.inv, {}),
    (determinant.det, {}),
    (factorizations.qr, {}),
]


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("op", "params"), CALLS, ids=[op.name for op, _ in CALLS])
def test_the_same_is_recorded(op, params, order, dtype, monkeypatch):
    monkeypatch.setattr(current, "tape", Tape())
    a = np.random.default_rng(0).uniform(0.5, 1.5, (3, 3)) + np.eye(3)
    x = tg.tensor(a.astype(dtype), requires_grad=True)
    x = x if order == "C" else x.t()
    found = recorded(op, x, params)
    if found is None:
        assert dtype == "c16"
        assert not op.complex
        return
    tape = current.tape
    expected = run(op, (x,), params)
    assert np.array_equal(found._a, expected._a)
    assert tape.words()[-1].tolist() == tape.words()[-2].tolist()
    got, entry = tape.keep[len(tape) - 2], tape.keep[len(tape) - 1]
    assert [type(part) for part in got] == [type(part) for part in entry]
    assert got[-1] == entry[-1]


@pytest.mark.parametrize("dtype", ["c16", "c8"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", ["angle", "sigmoid", "sgn", "sinc"])
def test_the_same_is_recorded_of_complex_numbers(name, order, dtype, monkeypatch):
    test_the_same_is_recorded(table[name], {}, order, dtype, monkeypatch)
    x = tg.tensor(np.array([1j, -2.0, 0.5 + 1j], dtype), requires_grad=True)
    before = len(current.tape)
    y = getattr(tg, name)(x)
    assert np.array_equal(y._a, run(table[name], (x,), {})._a)
    assert len(current.tape) == before + 2


def test_what_is_no_operand_of_it():
    x = tg.ones(3, 4, requires_grad=True)
    assert recorded(reduce.sum, x.detach(), ALONG) is None
    with tg.no_grad():
        assert recorded(reduce.sum, x, ALONG) is None
    assert recorded(reduce.sum, x, {"dim": (7,), "keepdim": False}) is None
