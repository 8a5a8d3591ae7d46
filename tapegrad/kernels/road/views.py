"""A view of a Tensor, with its record."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.layout import ALIGNED_IN_C_ORDER
from tapegrad.kernels.memory import address, call1, call2, call8, i4, i8, room_i8
from tapegrad.kernels.road.frame import (
    ARRAY,
    DECREF,
    END,
    F8,
    FALSE,
    INCREF,
    MODE,
    NEW_ARRAY,
    NEW_OBJECT,
    NO_TEXT,
    NONE,
    OFFSET,
    SET_BASE,
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
    WAY_AT,
    WAY_AUX,
    WAY_ENTRY,
    WAY_SHAPE,
    WAY_SHORT,
    WAY_STEP,
    WAY_WORD,
    ZERO,
)
from tapegrad.kernels.road.objects import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    FLAGS,
    ITEMS,
    LOW_HALF,
    PLACE,
    REFUSED,
    THING,
    TYPE,
    number,
    put,
)
from tapegrad.kernels.road.records import code_of, write
from tapegrad.tape import MODE_FAST

WRITEABLE = 0x400  # NumPy's flag


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
        return 0
    way = i8(way_at)
    word, shape = number(frame, way[WAY_WORD]), number(frame, way[WAY_SHAPE])
    aux = number(frame, way[WAY_AUX])
    return write(frame, tape, tensor, word, p, 0, 0, shape, aux, way[WAY_ENTRY])


@typed
def seen(frame, thing, way_at):
    """The array of a view of a float64 Tensor in C order; 0 with an exception set, or REFUSED."""
    if i8(thing)[TYPE] != frame[TENSOR]:
        return REFUSED
    whole = i8(thing)[frame[T_ARRAY]]
    flags = i4(whole + FLAGS)[0]
    if i8(whole)[ARRAY_DTYPE] != frame[F8] or flags & ALIGNED_IN_C_ORDER != ALIGNED_IN_C_ORDER:
        return REFUSED
    block = number(frame, i8(way_at + ITEMS * 8)[WAY_AT])
    start, ndim = i8(block)[0], i8(block)[1]
    lengths = block + 16
    call1(frame[INCREF], frame[F8])
    array = call8(
        frame[NEW_ARRAY], frame[ARRAY], frame[F8], ndim, lengths, lengths + 8 * ndim,
        i8(whole)[ARRAY_DATA] + start, flags & WRITEABLE, 0,
    )  # fmt: skip
    if array != 0:
        call1(frame[INCREF], whole)
        if call2(frame[SET_BASE], array, whole) & LOW_HALF != 0:
            call1(frame[DECREF], array)
            return 0
    return array


@typed
def tensor_of(frame, tape, thing, array, way_at):
    """The Tensor of a view's array, or what `viewed` gives without one."""
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


@typed
def viewed(frame, tape, thing, array, way_at):
    """The Tensor of a view of a Tensor that is none itself; 0 with an exception set, or REFUSED."""
    if number(frame, i8(tape)[frame[MODE]]) != MODE_FAST:
        return REFUSED
    home = i8(thing)[frame[T_HOME]]
    if home != frame[NONE] and home != tape:
        return REFUSED
    if array == frame[NONE]:
        array = seen(frame, thing, way_at)
        if array == 0 or array == REFUSED:
            return array
    else:
        call1(frame[INCREF], array)
    tensor = tensor_of(frame, tape, thing, array, way_at)
    call1(frame[DECREF], array)
    return tensor
