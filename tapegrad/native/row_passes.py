"""Run loops over the rows of a large array, one pass after the other; see `pass_lists`."""

import math

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call0, call1, call3, call8, f8, i8
from tapegrad.native.abi import (
    AS_IT_IS,
    COPIED,
    COPY,
    DIVISOR,
    LOCK,
    OF_OPERAND,
    PASS,
    REACH,
    ROOT,
    UNLOCK,
)
from tapegrad.native.pyobjects import ARRAY_DATA, REFUSED, count_of, decref


@typed
def argument(frame, of_what, number, operand, result):
    """What a loop is called with."""
    if of_what == AS_IT_IS:
        return number
    return number + (operand if of_what == OF_OPERAND else result)


@typed
def one_pass(frame, pass_at, operand, result, count):
    """Call a loop for each row, then divide the result, or take its root."""
    words = i8(pass_at)
    kernel, rows, n = words[0], words[1], words[2]
    if kernel == COPIED:
        call3(frame[COPY], result, operand, 8 * n)
        return 0
    a = argument(frame, words[3], words[4], operand, result)
    b = argument(frame, words[6], words[7], operand, result)
    c = argument(frame, words[9], words[10], operand, result)
    for _ in range(rows):
        call8(kernel, n, a, b, c, 0, 0, 0, 0)
        a += words[5]
        b += words[8]
        c += words[11]
    divisor, y = f8(pass_at)[DIVISOR], f8(result)
    if divisor != 1.0:
        for k in range(count):
            y[k] /= divisor
    if words[ROOT]:
        for k in range(count):
            y[k] = math.sqrt(y[k])
    return 0


@typed
def is_sure(result, count):
    """Whether no result is zero or not finite."""
    y = f8(result)
    for k in range(count):
        if y[k] == 0.0 or not abs(y[k]) < math.inf:
            return 0
    return 1


@typed
def passed(frame, passes_at, array, result):
    """Fill a new array by passes without the interpreter's lock; REFUSED where it is in doubt.

    For what stands at `passes_at` see `REACH`.
    """
    operand, to, count = i8(array)[ARRAY_DATA], i8(result)[ARRAY_DATA], count_of(result)
    length, doubtful = i8(passes_at)[0] - REACH + 1, i8(passes_at)[2]
    sure = 1
    state = call0(frame[UNLOCK])
    for at in range(0, length, PASS):
        one_pass(frame, passes_at + 8 * (REACH + at), operand, to, count)
    if doubtful:
        sure = is_sure(to, count)
    call1(frame[LOCK], state)
    if not sure:
        decref(frame, result)
        return REFUSED
    return result
