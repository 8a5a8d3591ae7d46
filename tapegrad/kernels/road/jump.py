"""From the road of small Tensors to that of large ones, which is compiled for itself."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.layout import ALIGNED_IN_C_ORDER
from tapegrad.kernels.memory import address, call1, call3, call8, i4, i8
from tapegrad.kernels.road.frame import (
    ARRAY,
    CALL,
    DECREF,
    F8,
    NO_STEPS,
    OPEN_LARGE,
    THREADS,
    WIDE_CALL,
)
from tapegrad.kernels.road.objects import (
    ARRAY_DTYPE,
    FLAGS,
    KIND,
    REFUSED,
    THING,
    TYPE,
    VALUES,
    count_of,
)

LEAST = 1 << 14  # elements, as `tensor.SHORT` and `parallel.COMPILED` say
ALONE = 1 << 17  # elements from which there may be two threads at work: twice `parallel.SPLIT`


@typed
def is_large(frame, one):
    """Whether what was read is a Tensor that was refused for its size alone."""
    if i8(one)[THING] == 0 or i8(one)[KIND] >= 0:
        return 0
    array = i8(one)[VALUES]
    if i8(array)[TYPE] != frame[ARRAY] or i8(array)[ARRAY_DTYPE] != frame[F8]:
        return 0
    lies = i4(array + FLAGS)[0] & ALIGNED_IN_C_ORDER == ALIGNED_IN_C_ORDER
    return 1 if lies and count_of(array) >= LEAST else 0


@typed
def large(frame, kind, code, first, second, like):
    """An operation on a large operand, `like`, among those that were read: see `wide`."""
    if i8(frame[THREADS])[0] != 1 and count_of(i8(like)[VALUES]) >= ALONE:
        return REFUSED
    if frame[WIDE_CALL] == 0:
        done = call3(frame[CALL], frame[OPEN_LARGE], frame[NO_STEPS], 0)
        if done == 0:
            return 0
        call1(frame[DECREF], done)
        if frame[WIDE_CALL] == 0:
            return REFUSED
    return call8(frame[WIDE_CALL], address(frame), kind, code, first, second, 0, 0, 0)
