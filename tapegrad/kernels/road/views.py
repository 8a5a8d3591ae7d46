"""A view of a Tensor, whose array is there, with its record."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call1, call2, i8, room_i8
from tapegrad.kernels.road.frame import (
    DECREF,
    END,
    FALSE,
    MODE,
    NEW_OBJECT,
    NO_TEXT,
    OFFSET,
    T_ARRAY,
    T_HOME,
    T_POS,
    T_SHAPE,
    TENSOR,
    V_BASE,
    V_CHAIN,
    V_FROZEN,
    V_SEVERAL,
    V_STAMP,
    V_TAPE,
    VIEW,
    WAY_AUX,
    WAY_ENTRY,
    WAY_SHAPE,
    WAY_SHORT,
    WAY_STEP,
    WAY_WORD,
    ZERO,
)
from tapegrad.kernels.road.objects import ITEMS, PLACE, REFUSED, THING, number, put
from tapegrad.kernels.road.records import code_of, write
from tapegrad.tape import MODE_FAST


@typed
def recorded_view(frame, tape, tensor, thing, way_at):
    """Write the record of a view, if there is one; 0 with an exception set, or REFUSED."""
    place = number(frame, i8(thing)[frame[T_POS]])
    if place == 0:
        put(frame, tensor, frame[T_POS], frame[ZERO])
        return 1
    if number(frame, i8(tape)[frame[OFFSET]]) == number(frame, i8(tape)[frame[END]]):
        return REFUSED
    one = room_i8(4)
    one[THING], one[PLACE] = thing, place
    p = code_of(frame, tape, address(one))
    if p == 0:
        return REFUSED
    way = i8(way_at)
    word, shape = number(frame, way[WAY_WORD]), number(frame, way[WAY_SHAPE])
    aux = number(frame, way[WAY_AUX])
    return write(frame, tape, tensor, word, p, 0, shape, aux, way[WAY_ENTRY])


@typed
def viewed(frame, tape, thing, array, way_at):
    """The Tensor of an array that a Tensor's memory is seen in; that one is no view itself."""
    if number(frame, i8(tape)[frame[MODE]]) != MODE_FAST:
        return REFUSED
    way = i8(way_at + ITEMS * 8)
    view = call2(frame[NEW_OBJECT], frame[VIEW], 0)
    if view == 0:
        return 0
    put(frame, view, frame[V_BASE], thing)
    put(frame, view, frame[V_CHAIN], way[WAY_STEP])
    put(frame, view, frame[V_STAMP], i8(thing)[frame[T_POS]])
    put(frame, view, frame[V_TAPE], tape)
    put(frame, view, frame[V_FROZEN], frame[NO_TEXT])
    put(frame, view, frame[V_SEVERAL], frame[FALSE])
    tensor = call2(frame[NEW_OBJECT], frame[TENSOR], 0)
    if tensor == 0:
        call1(frame[DECREF], view)
        return 0
    i8(tensor)[frame[T_HOME]] = view
    put(frame, tensor, frame[T_ARRAY], array)
    put(frame, tensor, frame[T_SHAPE], way[WAY_SHORT])
    done = recorded_view(frame, tape, tensor, thing, address(way))
    if done != 1:
        call1(frame[DECREF], tensor)
        return done
    return tensor
