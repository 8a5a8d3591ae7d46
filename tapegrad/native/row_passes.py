"""Run loops over the rows of a large array, one pass after the other; see `pass_lists`."""

import math

from tapegrad.kernels.memory import address, call3, call8, f4, f8, i8
from tapegrad.native.abi import ABSOLUTE, COPY, FROM_OPERAND, Pass, PassArgument, PassList
from tapegrad.native.pyobjects import ARRAY_DATA, ARRAY_DTYPE, count_of, typed


@typed
def argument(base, start, operand, result):
    """What a loop is called with."""
    if base == ABSOLUTE:
        return start
    return start + (operand if base == FROM_OPERAND else result)


@typed
def one_pass(frame, pass_at, operand, result, count, is_f4):
    """Call a loop for each row, then divide the result."""
    this = Pass(pass_at)
    kernel, rows, n = this.kernel, this.rows, this.length
    if kernel == COPY:
        call3(frame.memcpy, result, operand, n)
        return 0
    given = PassArgument(address(this.arguments))
    a = argument(given[0].base, given[0].start, operand, result)
    b = argument(given[1].base, given[1].start, operand, result)
    c = argument(given[2].base, given[2].start, operand, result)
    for _ in range(rows):
        call8(kernel, n, a, b, c, 0, 0, 0, 0)
        a += given[0].step
        b += given[1].step
        c += given[2].step
    divisor = f8(address(this.divisor))[0]
    if divisor != 1.0:
        for k in range(count):
            if is_f4:  # in doubles, and rounded once
                f4(result)[k] = f4(result)[k] / divisor
            else:
                f8(result)[k] /= divisor
    return 0


@typed
def is_sure(result, count, is_f4):
    """Whether no result is zero or not finite."""
    for k in range(count):
        value = f4(result)[k] if is_f4 else f8(result)[k]
        if value == 0.0 or not abs(value) < math.inf:
            return 0
    return 1


@typed
def run_passes(frame, passes_at, array, result):
    """Fill a new array by passes; 0 where it is unsure whether that is what NumPy computes."""
    passes, count = PassList(passes_at), count_of(result)
    if count_of(array) != passes.elements:
        return 0
    operand, to = i8(array)[ARRAY_DATA], i8(result)[ARRAY_DATA]
    is_f4 = 1 if i8(result)[ARRAY_DTYPE] == frame.float32 else 0
    for k in range(passes.count):
        one_pass(frame, address(Pass(address(passes[1]))[k]), operand, to, count, is_f4)
    return is_sure(to, count, is_f4) if passes.unsure else 1
