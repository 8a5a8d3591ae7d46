"""What is written into a Tensor that exists, with the record of the change."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call1, call3, i8
from tapegrad.kernels.road.frame import CALL, CHANGED, DECREF, NEW_TUPLE, T_HOME, T_POS
from tapegrad.kernels.road.objects import ITEMS, put
from tapegrad.kernels.road.records import write


@typed
def counted(frame, array):
    """Count a change of an array's memory; 0 with an exception set."""
    given = call1(frame[NEW_TUPLE], 1)
    if given == 0:
        return 0
    put(frame, given, ITEMS, array)
    done = call3(frame[CALL], frame[CHANGED], given, 0)
    call1(frame[DECREF], given)
    if done == 0:
        return 0
    call1(frame[DECREF], done)
    return 1


@typed
def move(frame, tape, tensor, word, p, q, r, shape, aux, entry):
    """Record a change, and give the Tensor its new place; 0 with an exception set."""
    before, home = i8(tensor)[frame[T_POS]], i8(tensor)[frame[T_HOME]]
    done = write(frame, tape, tensor, word, p, q, r, shape, aux, entry)
    if i8(tensor)[frame[T_POS]] != before:
        call1(frame[DECREF], before)
    if home != tape:
        put(frame, tensor, frame[T_HOME], tape)
        call1(frame[DECREF], home)
    return done
