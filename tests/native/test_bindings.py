"""What compiled code asks Python for, and is told."""

import numpy as np
import pytest
import scipy.special

import tapegrad as tg
from tapegrad.base.compile_stages import NotCompiled
from tapegrad.dispatch import call_plans
from tapegrad.kernels.codegen import kernel_table
from tapegrad.native import install
from tapegrad.native.abi import LargeRow, OpRow
from tapegrad.ops.families import table

pytestmark = pytest.mark.tapegrad_only("about compiled code")


@pytest.mark.parametrize("missing", ["forward", "drive"])
def test_a_kernel_that_another_process_compiles_is_looked_for_again(missing, monkeypatch):
    def not_there(*args, **kwargs):
        raise NotCompiled

    bindings, op = install.installed.bindings, table["sigmoid"]
    rows, large = bindings.op_rows.copy(), bindings.large_rows.copy()
    large_row = bindings.large_rows[op.code]
    kernel_table.forward.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(kernel_table, missing, not_there)
            large_row[LargeRow.kernels] = 0
            bindings.learn_kernel(op.code, 0, False)
            bindings.learn_large(op.code, 0, False)
            assert bindings.op_rows[op.code, OpRow.kernels] == -call_plans.MANY
            assert large_row[LargeRow.kernels] == 0
        kernel_table.forward(op, "f8", 0)
        bindings.learn_kernel(op.code, 0, False)
        bindings.learn_large(op.code, 0, False)
        assert bindings.op_rows[op.code, OpRow.kernels] > 0
        assert large_row[LargeRow.kernels] != 0
    finally:
        bindings.op_rows[:], bindings.large_rows[:] = rows, large


def test_an_operand_without_a_derivative_stays_so_when_loops_are_loaded():
    events = tg.tensor([0.0, 1.0], requires_grad=True)
    rate = tg.tensor([0.5, 2.0], requires_grad=True)
    for _ in range(3):  # the first call loads SciPy's loops
        assert not scipy.special.pdtr(events, np.array([0.5, 2.0])).requires_grad
        (gradient,) = tg.autograd.grad(scipy.special.pdtr(events, rate).sum(), rate)
        np.testing.assert_allclose(gradient, [-np.exp(-0.5), -2.0 * np.exp(-2.0)])
