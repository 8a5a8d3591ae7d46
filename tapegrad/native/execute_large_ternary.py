"""Elementwise operations of three operands, of which one is large, and their records."""

from tapegrad.kernels.memory import address, i4, i8
from tapegrad.native.abi import Operand
from tapegrad.native.execute_large import FAILED, call_unlocked, large_shape, loop_of, make_ready
from tapegrad.native.execute_ternary import finish_ternary, pattern, tracks
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_SHAPE,
    NDIM,
    REFUSED,
    array_of,
    count_of,
    decref,
    recording,
    typed,
    unchanged,
)


@typed
def large_result(frame, tape, code, three_at, like, scalars, tracked):
    """The result of large operands, which are held; 0 with an exception set, or REFUSED."""
    whole, three = Operand(like).array, Operand(three_at)
    a, b, c = (
        three.array,
        three[1].array,
        three[2].array,
    )
    count = count_of(whole)
    loop = loop_of(frame, code, scalars)
    done = make_ready(frame, tape, loop, tracked, 8 * count)
    if done != 1:
        return done
    result = array_of(frame, frame.float64, i4(whole + NDIM)[0], i8(whole)[ARRAY_SHAPE])
    if result != 0:
        call_unlocked(
            frame, loop, count, i8(result)[ARRAY_DATA], i8(a)[ARRAY_DATA], i8(b)[ARRAY_DATA],
            i8(c)[ARRAY_DATA],
        )  # fmt: skip
    return result


@typed
def ternary_large(frame, tape, row_at, code, three_at, like):
    """The Tensor of a result; 0 with an exception set, or REFUSED."""
    record, scalars = recording(frame, tape), pattern(like, three_at)
    if record == REFUSED or scalars == REFUSED:
        return REFUSED
    tracked = 1 if record and tracks(three_at) else 0
    result, shape = large_result(frame, tape, code, three_at, like, scalars, tracked), 0
    if result == 0 or result == REFUSED:
        return result
    for k in range(3):
        one = address(Operand(three_at)[k])
        if not unchanged(frame, one):
            decref(frame, result)
            return REFUSED
    if tracked:
        shape = large_shape(frame, result)
        if shape < 0:
            decref(frame, result)
            return 0 if shape == FAILED else REFUSED
    return finish_ternary(frame, tape, tracked, row_at, three_at, like, scalars, shape, result)
