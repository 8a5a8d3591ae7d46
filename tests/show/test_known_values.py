"""Every operation can be drawn and swept; a value that is shown is the one that was computed."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.dispatch import run
from tapegrad.ops.core import Formula
from tapegrad.ops.families import table
from tapegrad.show.known_values import known_values
from tapegrad.show.named_slice import NamedSlice
from tests.conformance.samples import samples_of

pytestmark = pytest.mark.tapegrad_only("about this project's rows")

# The derivative of `prod`; in its second operand it has no formula yet.
NOT_IN_FULL = {"pair_prod"}
ROWS = [
    op for op in table.values()
    if any(type(f) is Formula for f in op.formulas) and op.name not in NOT_IN_FULL
]  # fmt: skip


def recorded(op):
    """The first sample of a row that is a record, behind an operation that keeps nothing."""
    for sample in samples_of(op):
        args = []
        for k, x in enumerate(sample.operands):
            formula = op.formulas[min(k, len(op.formulas) - 1)]
            if isinstance(x, np.ndarray) and x.dtype.kind in "fc" and type(formula) is Formula:
                args.append(tg.tensor(x, requires_grad=True) + 0.0)
            else:
                args.append(x if x is None else tg.tensor(x))
        y = run(op, tuple(args), sample.params)
        if y.position is not None:
            return y, args
    raise AssertionError(f"no sample of `{op.name}` is recorded")


@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_every_row(op):
    y, args = recorded(op)
    part = NamedSlice(y, "sweep", None, {})
    for code, value in known_values(part, y).items():
        for t in (y, *args):
            if isinstance(t, tg.Tensor) and t.position == code:
                np.testing.assert_array_equal(value, t.detach().numpy())
    weight = tg.ones(y.shape, dtype=y.dtype)
    before = y.tape.whole.words().tobytes()
    leaves = {f"leaf{k}": a.grad_fn.next_functions[0][0].variable for k, a in enumerate(args)
              if isinstance(a, tg.Tensor) and a.requires_grad}  # fmt: skip
    steps = tg.show.sweep(y, gradient=weight, names=leaves)
    assert y.tape.whole.words().tobytes() == before
    assert str(steps)
    wanted = tg.autograd.grad(y, [*leaves.values()], weight, allow_unused=True)
    for name, g in zip(leaves, wanted, strict=True):
        if g is not None:
            np.testing.assert_allclose(
                steps.gradients[name], g.numpy(), rtol=1e-9, atol=1e-12, equal_nan=True
            )
