"""Public functions of random shapes, types, layouts and numbers: right, or refused.

Operands lie between guards, which no function may read or change: the result is that of the same
operands in memory of their own, and that of NumPy where a ufunc computes the same.  What is refused
is refused in words of our own.  `TAPEGRAD_TRIALS` sets how many calls there are.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.base.dtypes import result_type
from tapegrad.ops.families import by_code
from tests.conformance import fuzz_calls as fuzz

pytestmark = [
    pytest.mark.tapegrad_only("about the memory that this library reads"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning"),
]

TRIALS = int(os.environ.get("TAPEGRAD_TRIALS", "1500"))
REFUSALS = (RuntimeError, IndexError, TypeError, ValueError)
ASSERTED = "`embedding`: padding_idx", "`multi_head_attention_forward`: "  # as in PyTorch
NUMPYS_WORDS = (
    "ufunc '", "operands could not be broadcast", "cannot reshape array", "could not broadcast",
    "shape mismatch: value array", "setting an array element", "of unsized object",
    "NoneType", "unsupported operand type", "has no attribute",
)  # fmt: skip
UFUNCS = {
    op.name: op.forward
    for op in by_code
    if isinstance(op.forward, np.ufunc) and len(op.inputs) == 2 and op.doc and op.to_float is False
}


@st.composite
def calls(draw):
    """A call of any function, changed."""
    known = fuzz.noted()
    path = draw(st.sampled_from([p for p in known if not fuzz.of_chance(p)]))
    call = draw(st.sampled_from(known[path]))
    return fuzz.changed(call, lambda choices: draw(st.sampled_from(choices)))


def same(mine, other, what):
    assert mine.dtype == other.dtype, what
    assert mine.shape == other.shape, what
    if mine.dtype.kind in "fc":
        tolerance = 1e-3 if mine.dtype in (np.float32, np.complex64) else 1e-8
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance, err_msg=what)
    else:
        np.testing.assert_array_equal(mine, other, err_msg=what)


@settings(
    max_examples=TRIALS,
    deadline=None,
    derandomize="TAPEGRAD_TRIALS" not in os.environ,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(calls())
def test_calls_are_right_or_refused(call):
    if fuzz.shows_memory(call):
        return
    operands = fuzz.arrays_in([call.args, call.named])
    before = [fuzz.memory_of(x).copy() for x in operands]
    mine = fuzz.run(tg, call, tg.from_numpy)
    if not fuzz.writes(call):
        for x, whole in zip(operands, before, strict=True):
            assert fuzz.memory_of(x).tobytes() == whole.tobytes(), f"{call}: an operand changed"
    if isinstance(mine, Exception):
        asserted = str(mine).startswith(ASSERTED)
        assert isinstance(mine, REFUSALS) or asserted, f"{call}: {mine!r}"
        assert str(mine), call
        assert not any(words in str(mine) for words in NUMPYS_WORDS), f"{call}: {mine!r}"
    if fuzz.writes(call):
        return
    plain = fuzz.run(tg, call, lambda x: tg.from_numpy(np.array(x, order="C")))
    if isinstance(mine, Exception) or isinstance(plain, Exception):
        assert type(mine) is type(plain), f"{call}: {mine!r}, in memory of its own {plain!r}"
        return
    for a, b in zip(mine, plain, strict=True):
        if isinstance(a, tg.Tensor):
            same(fuzz.array_of(a), fuzz.array_of(b), repr(call))


@settings(max_examples=max(TRIALS // 5, 1), deadline=None, derandomize=True, database=None)
@given(st.data())
def test_ufuncs(data):
    """Operands of two types and shapes, beside NumPy on operands of the result's type."""
    name = data.draw(st.sampled_from(sorted(UFUNCS)))
    first, second = (
        fuzz.other_array(np.array([1.5, 2.0, 0.5]), lambda c: data.draw(st.sampled_from(c)))
        for _ in range(2)
    )
    call = fuzz.Call(name, (first, second), {})
    mine = fuzz.run(tg, call, tg.from_numpy)
    if isinstance(mine, Exception):
        assert isinstance(mine, RuntimeError), f"{call}: {mine!r}"
        return
    kind = result_type([first, second])
    with np.errstate(all="ignore"):
        theirs = np.asarray(UFUNCS[name](first.astype(kind), second.astype(kind)))
    same(fuzz.array_of(mine[0]), theirs, repr(call))
