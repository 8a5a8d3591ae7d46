"""The entry of native operations, from the call to the record: operands, plan, loops, record.

CPython calls `call` for an operator or a method (`native.install` sees to that).  It reads Tensors
and the tape where CPython keeps their slots, and leaves behind what `dispatch.run` would.
Whatever is out of the ordinary is refused before anything has changed, and goes to the operation's
function in Python.
"""

from tapegrad.kernels.memory import address, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED, ALIGNED_IN_C_ORDER, KIND_MASK, KIND_SELECT
from tapegrad.native.abi import (
    BINARY,
    CHANGE,
    JOIN,
    MATMUL,
    MOST_DIMENSIONS,
    MOST_OPERANDS,
    OPERANDS,
    PLANNED,
    REDUCTION,
    TERNARY,
    UNARY,
    VIEW,
    CallPlan,
    Frame,
    Operand,
    OpRow,
    Plan,
)
from tapegrad.native.execute import execute
from tapegrad.native.operands import (
    LARGE,
    MIXED,
    NO_INDEX,
    STRIDED,
    is_strided,
    read_operands,
    release_operands,
)
from tapegrad.native.plans import (
    are_broadcast,
    for_threads,
    plan_complex,
    plan_elementwise,
    plan_kernel,
    plan_large_broadcast,
    plan_matmul,
    plan_sum,
)
from tapegrad.native.pyobjects import (
    B1_SIZE,
    C16_SIZE,
    I8_SIZE,
    ITEMS,
    REFUSED,
    call_python,
    count_of,
    incref,
    int_value,
    tape_of_thread,
    typed,
)
from tapegrad.native.view_ops import view_op

MOST = 1024  # elements that are changed by way of a copy; more are written at once


@typed
def make_plan(frame, kind, row_at, code, operands, itemsize, plan):
    """Plan what an operation computes of operands: 1, 0 with an exception set, or REFUSED."""
    if itemsize & C16_SIZE and (kind != MATMUL or itemsize & MIXED):
        if kind == MATMUL or kind == REDUCTION or plan.operands == 3:
            return REFUSED
        return plan_complex(frame, row_at, operands, plan)
    if itemsize & B1_SIZE or (itemsize & I8_SIZE and kind != UNARY and kind != BINARY):
        return REFUSED
    if kind == MATMUL:
        return plan_matmul(frame, row_at, operands, itemsize, plan)
    if kind == REDUCTION:
        return plan_sum(frame, row_at, code, operands, itemsize, plan)
    if plan.in_place:
        if is_strided(operands.array):
            return REFUSED
        if count_of(operands.array) > MOST:
            itemsize |= LARGE
    if plan.operands == 2 and itemsize & LARGE and are_broadcast(operands):
        return plan_large_broadcast(frame, row_at, code, operands, itemsize, plan)
    if plan.operands == 3 or itemsize & LARGE:
        return plan_kernel(frame, row_at, code, operands, itemsize, plan)
    return plan_elementwise(frame, row_at, operands, itemsize, plan)


@typed
def operate(frame, tape, kind, code, given, count, call_plan):
    """An operation on Python objects: a new reference, 0 with an exception set, or REFUSED."""
    operands, plan = Operand(address(room_i8(OPERANDS))), Plan(address(room_i8(Plan.SIZE)))
    row_at, found, index, dtype = address(OpRow(frame.op_rows)[code]), 1, NO_INDEX, frame.bool_dtype
    plan.operands, plan.in_place = count, kind == CHANGE
    flags = ALIGNED
    if kind == PLANNED:
        plan, flags = Plan(call_plan), ALIGNED_IN_C_ORDER
        if plan.index:
            index = plan.index
        if plan.loop != KIND_MASK and plan.loop != KIND_SELECT:
            dtype = frame.int64
        if plan.loops == JOIN:
            flags = ALIGNED
    elif kind == TERNARY and OpRow(row_at).has_condition:
        index = 0
    arrays, changes = 0 if kind == PLANNED else 1, plan.in_place
    promotes = 1 if kind <= TERNARY or changes else 0
    sizes = read_operands(
        frame, tape, given, count, operands, flags, arrays, index, dtype, promotes, changes
    )
    itemsize = sizes & ~STRIDED
    if itemsize == 0:
        found = REFUSED
    elif kind != PLANNED:
        plan.strided = 1 if sizes & STRIDED and kind != MATMUL else 0
        found = make_plan(frame, kind, row_at, code, operands, itemsize, plan)
    elif (
        itemsize != plan.itemsize | (LARGE if plan.large else 0)
        or operands.tensor == 0
        or (plan.large and for_threads(frame, count_of(operands.array)))
    ):
        found = REFUSED
    if found == 1 and plan.strided and plan.ndim > MOST_DIMENSIONS:
        found = REFUSED
    if found == 1:
        found = execute(frame, tape, operands, plan)
    release_operands(frame, count, operands)
    return found


def call(frame_at, kind, code, a, b):
    """An operation on Python objects (`b` is 0 where there is one): a new reference, or 0.

    Where it is refused, what the operation's function in Python gives, or None for the caller.
    """
    frame, given = Frame(frame_at), i8(a)
    tape = tape_of_thread(frame)
    if tape == 0:
        return 0
    if kind == VIEW:
        return view_op(frame, tape, given[0], given[1], given[2])
    objects, count, plan_at = room_i8(MOST_OPERANDS), 1 if b == 0 else 2, 0
    objects[0], objects[1] = a, b
    if kind == TERNARY:
        count = 3
        objects[0], objects[1], objects[2] = given[0], given[1], given[2]
    elif kind == CHANGE:
        count, code = 1, int_value(frame, given[3])
        objects[0], objects[1], objects[2] = given[0], given[1], given[2]
        while count < 3 and objects[count] != frame.none:
            count += 1
    elif kind == PLANNED:
        plan_at = int_value(frame, i8(given[0])[ITEMS + CallPlan.plan_at])
        count = Plan(plan_at).operands
        for k in range(count if Plan(plan_at).loops == JOIN else 1):
            objects[k] = given[1 + k]
        if Plan(plan_at).index:
            objects[Plan(plan_at).index] = given[2]
        if Plan(plan_at).value:
            objects[Plan(plan_at).value] = given[3]
    found = operate(frame, tape, kind, code, address(objects), count, plan_at)
    if found != REFUSED:
        return found
    if kind == PLANNED or kind == CHANGE:
        incref(frame.none)
        return frame.none
    fallback = OpRow(address(OpRow(frame.op_rows)[code])).fallback
    return call_python(frame, fallback, count, objects[0], objects[1], objects[2])
