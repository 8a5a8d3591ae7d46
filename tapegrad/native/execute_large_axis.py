"""Operations along dimensions of a large Tensor, and their records."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import i8
from tapegrad.native.abi import BY_STEPS, F8, PLAN_AT
from tapegrad.native.execute_axis import LENGTHS, LIES, NDIM, noted
from tapegrad.native.execute_large import ready
from tapegrad.native.pyobjects import (
    ITEMS,
    PLACE,
    REFUSED,
    VALUES,
    array_of,
    count_of,
    decref,
    number,
    recording,
    stays,
)
from tapegrad.native.row_passes import passed


@typed
def large_result(frame, tape, block_at, array, tracked):
    """The result of a large operand, which is held; 0 with an exception set, or REFUSED."""
    block, count = i8(block_at), 1
    passes_at = block_at + 8 * block[LIES]
    if count_of(array) != i8(passes_at)[1]:
        return REFUSED
    for k in range(block[NDIM]):
        count *= block[LENGTHS + k]
    done = ready(frame, tape, BY_STEPS, tracked, 8 * count)
    if done != 1:
        return done
    result = array_of(frame, frame[F8], block[NDIM], block_at + 8 * LENGTHS)
    if result == 0:
        return 0
    return passed(frame, passes_at, array, result)


@typed
def along_large(frame, tape, one, plan_at):
    """The Tensor of a result along dimensions; 0 with an exception set, or REFUSED."""
    record = recording(frame, tape)
    if record == REFUSED:
        return REFUSED
    block_at = number(frame, i8(plan_at + ITEMS * 8)[PLAN_AT])
    tracked = 1 if record and i8(one)[PLACE] != 0 else 0
    result = large_result(frame, tape, block_at, i8(one)[VALUES], tracked)
    if result == 0 or result == REFUSED:
        return result
    if not stays(frame, one):
        decref(frame, result)
        return REFUSED
    return noted(frame, tape, tracked, one, plan_at, result)
