"""Jump from the entry of small Tensors to that of large ones, which is compiled apart."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call3, call8, i8
from tapegrad.native.abi import CALL, NO_STEPS, OPEN_LARGE, THREADS, WIDE_CALL
from tapegrad.native.pyobjects import REFUSED, VALUES, count_of, decref

ALONE = 1 << 17  # elements from which there may be two threads at work: twice `parallel.SPLIT`


@typed
def large(frame, kind, code, first, second, like):
    """An operation on a large operand, `like`, among those that were read: see `wide`."""
    if i8(frame[THREADS])[0] != 1 and count_of(i8(like)[VALUES]) >= ALONE:
        return REFUSED
    if frame[WIDE_CALL] == 0:
        done = call3(frame[CALL], frame[OPEN_LARGE], frame[NO_STEPS], 0)
        if done == 0:
            return 0
        decref(frame, done)
        return REFUSED  # what was read may be another by now
    return call8(frame[WIDE_CALL], address(frame), kind, code, first, second, 0, 0, 0)
