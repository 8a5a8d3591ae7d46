"""Jump from the entry of small Tensors to that of large ones, which is compiled apart."""

from tapegrad.kernels.memory import address, call3, call8, i8
from tapegrad.native.abi import Operand
from tapegrad.native.pyobjects import REFUSED, count_of, decref, typed

ALONE = 1 << 17  # elements from which there may be two threads at work: twice `parallel.SPLIT`


@typed
def large(frame, kind, code, first, second, like):
    """An operation on a large operand, `like`, among those that were read: see `call_large`."""
    if i8(frame.threads)[0] != 1 and count_of(Operand(like).array) >= ALONE:
        return REFUSED
    if frame.large_call == 0:
        done = call3(frame.PyObject_Call, frame.open_large, frame.empty_tuple, 0)
        if done == 0:
            return 0
        decref(frame, done)
        return REFUSED  # what was read may be another by now
    return call8(frame.large_call, address(frame), kind, code, first, second, 0, 0, 0)
