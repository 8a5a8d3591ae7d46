"""Operations along dimensions of a small Tensor, and their records."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call8, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED_IN_C_ORDER, FIELD
from tapegrad.native.abi import ALONG, F8, NONE, PLAN_AT, PLAN_EXTRA, PLAN_SHORT
from tapegrad.native.append import completed
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ITEMS,
    LARGE_SIZE,
    PLACE,
    REFUSED,
    VALUES,
    WIDE_SIZE,
    array_of,
    incref,
    next_of,
    number,
    of_tensor,
    recording,
    tuple_of,
    unexceptional,
)
from tapegrad.native.to_large import large

# Of a plan's block: the address of the loop, and how the rows lie (see `ops.along.packed`), or of a
# large operand 0, and where in the block the number of words of its passes stands, and these; the
# record's word, the number of its shape and AUX; whether the formula reads the operand, and the
# result; the dimensions and lengths of the result.
LOOP, LIES, WORD, SHAPE, AUX, READS_OPERAND, READS_RESULT, NDIM, LENGTHS = range(9)
MASK = (1 << FIELD) - 1


@typed
def computed(frame, block_at, array):
    """The result; 0 with an exception set, or REFUSED: one of arithmetic came about."""
    block = i8(block_at)
    result = array_of(frame, frame[F8], block[NDIM], block_at + 8 * LENGTHS)
    if result == 0:
        return 0
    lies = block[LIES]
    n, inner = (lies >> FIELD) & MASK, (lies >> 2 * FIELD) & MASK
    outer = (lies & MASK) // (n * inner)
    x, y = i8(array)[ARRAY_DATA], i8(result)[ARRAY_DATA]
    call8(block[LOOP], n, inner, outer, x, y, lies >> 3 * FIELD, 0, 0)
    return unexceptional(frame, result)


@typed
def noted(frame, tape, tracked, one, plan_at, result):
    """The Tensor of a result, which it takes over; see `records.completed`."""
    plan = i8(plan_at + ITEMS * 8)
    block = i8(number(frame, plan[PLAN_AT]))
    entry, token = frame[NONE], next_of(frame, tape)
    if tracked:
        x = i8(one)[VALUES] if block[READS_OPERAND] else frame[NONE]
        y = result if block[READS_RESULT] else frame[NONE]
        entry = tuple_of(frame, 3, x, y, plan[PLAN_EXTRA], 0, 0)
    else:
        incref(entry)
    incref(plan[PLAN_SHORT])
    return completed(
        frame, tape, tracked, one, 0, 0, block[WORD], block[SHAPE], block[AUX],
        plan[PLAN_SHORT], entry, result, token,
    )  # fmt: skip


@typed
def along(frame, tape, thing, plan_at):
    """The Tensor of a result along dimensions; 0 with an exception set, or REFUSED."""
    record = recording(frame, tape)
    words = room_i8(4)
    one = address(words)
    if record == REFUSED:
        return REFUSED
    block_at = number(frame, i8(plan_at + ITEMS * 8)[PLAN_AT])
    size = of_tensor(frame, tape, thing, one, ALIGNED_IN_C_ORDER)
    if size != (LARGE_SIZE if i8(block_at)[LOOP] == 0 else WIDE_SIZE):
        return REFUSED
    if size == LARGE_SIZE:
        return large(frame, ALONG, 0, one, plan_at, one)
    result = computed(frame, block_at, i8(one)[VALUES])
    if result == 0 or result == REFUSED:
        return result
    tracked = 1 if record and i8(one)[PLACE] != 0 else 0
    return noted(frame, tape, tracked, one, plan_at, result)
