"""The entry of native operations on large Tensors, once their operands were read.

Arrays are held until all is done: other threads, and what is let go of, may do anything to their
Tensors meanwhile.
"""

from tapegrad.kernels.memory import i8
from tapegrad.native.abi import ALONG, CHANGING, NONE, ROW, ROWS, THREE, TOTAL
from tapegrad.native.execute_large import elementwise, total
from tapegrad.native.execute_large_axis import along_large
from tapegrad.native.execute_large_inplace import over
from tapegrad.native.execute_large_ternary import of_large_three
from tapegrad.native.pyobjects import VALUES, decref, incref, tape_of_thread


def wide(frame_at, kind, code, first, second, p5, p6, p7):
    """An operation on operands of which one at least is large: a new reference, 0 or REFUSED.

    `first` and `second` are operands; along dimensions the second is the plan, of three operands
    the first is all of them, which are held, and the second that which the result is like.
    """
    frame = i8(frame_at)
    row_at = frame[ROWS] + code * ROW * 8
    tape = tape_of_thread(frame)
    if tape == 0:
        return 0
    if kind == THREE:
        return of_large_three(frame, tape, row_at, code, first, second)
    a, b = i8(first)[VALUES], frame[NONE]
    if second != 0 and kind != ALONG:
        b = i8(second)[VALUES]
    incref(a)
    incref(b)
    if kind == ALONG:
        found = along_large(frame, tape, first, second)
    elif kind == CHANGING:
        found = over(frame, tape, code, first, second)
    elif kind == TOTAL:
        found = total(frame, tape, row_at, code, first)
    else:
        found = elementwise(frame, tape, row_at, code, first, second)
    decref(frame, b)
    decref(frame, a)
    return found
