"""The entry of native operations on large Tensors, once their operands were read.

Arrays are held until all is done: other threads, and what is let go of, may do anything to their
Tensors meanwhile.
"""

from tapegrad.kernels.memory import address
from tapegrad.native.abi import AXIS, CHANGE, REDUCTION, TERNARY, Frame, Operand, OpRow
from tapegrad.native.execute_large import elementwise, reduction
from tapegrad.native.execute_large_axis import axis_op_large
from tapegrad.native.execute_large_inplace import inplace_large
from tapegrad.native.execute_large_ternary import ternary_large
from tapegrad.native.pyobjects import decref, incref, tape_of_thread


def call_large(frame_at, kind, code, first, second, p5, p6, p7):
    """An operation on operands of which one at least is large: a new reference, 0 or REFUSED.

    `first` and `second` are operands; along dimensions the second is the plan, of three operands
    the first is all of them, which are held, and the second that which the result is like.
    """
    frame = Frame(frame_at)
    row_at = address(OpRow(frame.op_rows)[code])
    tape = tape_of_thread(frame)
    if tape == 0:
        return 0
    if kind == TERNARY:
        return ternary_large(frame, tape, row_at, code, first, second)
    a, b = Operand(first).array, frame.none
    if second != 0 and kind != AXIS:
        b = Operand(second).array
    incref(a)
    incref(b)
    if kind == AXIS:
        found = axis_op_large(frame, tape, first, second)
    elif kind == CHANGE:
        found = inplace_large(frame, tape, code, first, second)
    elif kind == REDUCTION:
        found = reduction(frame, tape, row_at, code, first)
    else:
        found = elementwise(frame, tape, row_at, code, first, second)
    decref(frame, b)
    decref(frame, a)
    return found
