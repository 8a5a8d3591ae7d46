"""What a compiled sweep found for the leaves, as Tensors, in compiled code.

CPython's lock is held.  Either every gradient is delivered or none.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call1, call2, f8, i4, i8
from tapegrad.kernels.road.frame import (
    DECREF,
    DICT_SIZE,
    F8,
    FALSE,
    INCREF,
    NEW_OBJECT,
    NEW_TUPLE,
    NONE,
    T_ARRAY,
    T_EXTRA,
    T_GRAD,
    T_HOME,
    T_POS,
    T_SHAPE,
    TENSOR,
    ZERO,
)
from tapegrad.kernels.road.objects import (
    ARRAY_DATA,
    ARRAY_SHAPE,
    ITEMS,
    NDIM,
    TYPE,
    array_of,
    count_of,
    number,
    put,
)


@typed
def cell_of(cells, codes, k):
    """The adjoint of the k-th leaf of the tape, or of the leaf that the k-th code names."""
    leaf = -i8(codes)[k] - 1 if codes != 0 else k
    return i8(cells)[leaf]


@typed
def plain(frame, leaf, cell, collecting):
    """Whether a leaf is a small float64 Tensor without hooks, and without a gradient as yet."""
    slots = i8(leaf)
    if cell & 1 or slots[TYPE] != frame[TENSOR]:
        return 0
    extra = slots[frame[T_EXTRA]]
    if extra != 0 and call1(frame[DICT_SIZE], extra) != 0:
        return 0
    if number(frame, slots[frame[T_SHAPE]]) < 0 or number(frame, slots[frame[T_POS]]) == 0:
        return 0
    held = slots[frame[T_GRAD]]
    return 1 if not collecting or held == 0 or held == frame[NONE] else 0


@typed
def gradient(frame, leaf, cell):
    """A Tensor with a copy of an adjoint, or 0 with an exception set."""
    like = i8(leaf)[frame[T_ARRAY]]
    ndim, lengths = i4(like + NDIM)[0], i8(like)[ARRAY_SHAPE]
    array = array_of(frame, frame[F8], ndim, lengths)
    if array == 0:
        return 0
    tensor = call2(frame[NEW_OBJECT], frame[TENSOR], 0)
    if tensor == 0:
        call1(frame[DECREF], array)
        return 0
    source, target = f8(cell), f8(i8(array)[ARRAY_DATA])
    for k in range(count_of(array)):
        target[k] = source[k]
    i8(tensor)[frame[T_ARRAY]] = array
    put(frame, tensor, frame[T_POS], frame[ZERO])
    put(frame, tensor, frame[T_HOME], frame[NONE])
    put(frame, tensor, frame[T_SHAPE], i8(leaf)[frame[T_SHAPE]])
    return tensor


@typed
def answer(frame, thing):
    """A new reference to a constant."""
    call1(frame[INCREF], thing)
    return thing


def deliver(frame_at, cells, leaves, codes, count):
    """The gradients of the leaves that some codes name, as a tuple; without codes (0), those of all
    leaves that were reached, in their `.grad`, and None.  False: not all of them are so plain.

    `leaves` is where the leaves stand, one after the other.
    """
    frame = i8(frame_at)
    reached = 0
    for k in range(count):
        cell = cell_of(cells, codes, k)
        if cell != 0:
            if not plain(frame, i8(leaves)[k], cell, codes == 0):
                return answer(frame, frame[FALSE])
            reached += 1
        elif codes != 0:
            return answer(frame, frame[FALSE])
    found = call1(frame[NEW_TUPLE], reached)
    if found == 0:
        return 0
    at = ITEMS
    for k in range(count):
        cell = cell_of(cells, codes, k)
        if cell != 0:
            tensor = gradient(frame, i8(leaves)[k], cell)
            if tensor == 0:
                call1(frame[DECREF], found)
                return 0
            i8(found)[at] = tensor
            at += 1
    if codes != 0:
        return found
    at = ITEMS
    for k in range(count):
        if cell_of(cells, codes, k) != 0:
            leaf = i8(leaves)[k]
            held = i8(leaf)[frame[T_GRAD]]
            put(frame, leaf, frame[T_GRAD], i8(found)[at])
            if held != 0:
                call1(frame[DECREF], held)
            at += 1
    call1(frame[DECREF], found)
    return answer(frame, frame[NONE])
