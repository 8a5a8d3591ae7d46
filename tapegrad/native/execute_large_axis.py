"""Operations along dimensions of a large Tensor, and their records."""

from tapegrad.kernels.memory import address, i8
from tapegrad.native.abi import BY_UFUNC, AxisPlan, CallPlan, Operand, PassList
from tapegrad.native.execute_axis import finish_axis
from tapegrad.native.execute_large import make_ready
from tapegrad.native.pyobjects import (
    ITEMS,
    REFUSED,
    array_of,
    count_of,
    decref,
    int_value,
    recording,
    typed,
    unchanged,
)
from tapegrad.native.row_passes import run_passes


@typed
def large_result(frame, tape, block_at, array, tracked):
    """The result of a large operand, which is held; 0 with an exception set, or REFUSED."""
    block, count = AxisPlan(block_at), 1
    passes_at = address(block[1]) + 8 * block.ndim
    if count_of(array) != PassList(passes_at).elements:
        return REFUSED
    for k in range(block.ndim):
        count *= i8(address(block[1]))[k]
    done = make_ready(frame, tape, BY_UFUNC, tracked, 8 * count)
    if done != 1:
        return done
    result = array_of(frame, frame.float64, block.ndim, address(block[1]))
    if result == 0:
        return 0
    return run_passes(frame, passes_at, array, result)


@typed
def axis_op_large(frame, tape, one, plan_at):
    """The Tensor of a result along dimensions; 0 with an exception set, or REFUSED."""
    record = recording(frame, tape)
    if record == REFUSED:
        return REFUSED
    block_at = int_value(frame, i8(plan_at + ITEMS * 8)[CallPlan.words_at])
    tracked = 1 if record and Operand(one).position != 0 else 0
    result = large_result(frame, tape, block_at, Operand(one).array, tracked)
    if result == 0 or result == REFUSED:
        return result
    if not unchanged(frame, one):
        decref(frame, result)
        return REFUSED
    return finish_axis(frame, tape, tracked, one, plan_at, result)
