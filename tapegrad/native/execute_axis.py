"""Operations along dimensions of a small Tensor, and their records."""

from tapegrad.kernels.memory import address, call8, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED_IN_C_ORDER, FIELD
from tapegrad.native.abi import AXIS, AxisPlan, CallPlan, Operand
from tapegrad.native.append import new_tensor
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    F8_SIZE,
    ITEMS,
    LARGE_F8,
    REFUSED,
    array_of,
    check_exceptions,
    hold_next,
    incref,
    int_value,
    read_tensor,
    recording,
    tuple_of,
    typed,
)
from tapegrad.native.to_large import large

# Of a plan's block: the address of the loop, and how the rows lie (see `ops.along.packed`), or of a
# large operand 0, and where in the block the number of words of its passes stands, and these; the
# record's word, the number of its shape and AUX; whether the formula reads the operand, and the
# result; the dimensions and lengths of the result.
MASK = (1 << FIELD) - 1


@typed
def computed(frame, block_at, array):
    """The result; 0 with an exception set, or REFUSED: one of arithmetic came about."""
    block = AxisPlan(block_at)
    result = array_of(frame, frame.float64, block.ndim, address(block[1]))
    if result == 0:
        return 0
    rows = block.rows
    n, inner = (rows >> FIELD) & MASK, (rows >> 2 * FIELD) & MASK
    outer = (rows & MASK) // (n * inner)
    x, y = i8(array)[ARRAY_DATA], i8(result)[ARRAY_DATA]
    call8(block.loop, n, inner, outer, x, y, rows >> 3 * FIELD, 0, 0)
    return check_exceptions(frame, result)


@typed
def finish_axis(frame, tape, tracked, one, plan_at, result):
    """The Tensor of a result, which it takes over; see `append.new_tensor`."""
    plan = i8(plan_at + ITEMS * 8)
    block = AxisPlan(int_value(frame, plan[CallPlan.words_at]))
    entry, token = frame.none, hold_next(frame, tape)
    if tracked:
        x = Operand(one).array if block.reads_operand else frame.none
        y = result if block.reads_result else frame.none
        entry = tuple_of(frame, 3, x, y, plan[CallPlan.extra], 0, 0)
    else:
        incref(entry)
    incref(plan[CallPlan.short])
    return new_tensor(
        frame, tape, tracked, one, 0, 0, block.word, block.shape, block.aux,
        plan[CallPlan.short], entry, result, token,
    )  # fmt: skip


@typed
def axis_op(frame, tape, obj, plan_at):
    """The Tensor of a result along dimensions; 0 with an exception set, or REFUSED."""
    record = recording(frame, tape)
    one = address(room_i8(Operand.SIZE))
    if record == REFUSED:
        return REFUSED
    block_at = int_value(frame, i8(plan_at + ITEMS * 8)[CallPlan.words_at])
    size = read_tensor(frame, tape, obj, one, ALIGNED_IN_C_ORDER)
    if size != (LARGE_F8 if AxisPlan(block_at).loop == 0 else F8_SIZE):
        return REFUSED
    if size == LARGE_F8:
        return large(frame, AXIS, 0, one, plan_at, one)
    result = computed(frame, block_at, Operand(one).array)
    if result == 0 or result == REFUSED:
        return result
    tracked = 1 if record and Operand(one).position != 0 else 0
    return finish_axis(frame, tape, tracked, one, plan_at, result)
