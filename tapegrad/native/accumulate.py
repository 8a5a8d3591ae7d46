"""Accumulate leaf gradients natively, from the adjoints of a compiled sweep.

CPython's lock is held.  Either every gradient is delivered or none.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call1, call2, f4, f8, i4, i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED_IN_C_ORDER, WRITEABLE
from tapegrad.native.abi import (
    DICT_SIZE,
    FALSE,
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
from tapegrad.native.execute_inplace import counted
from tapegrad.native.pyobjects import (
    ARRAY_BASE,
    ARRAY_DATA,
    ARRAY_SHAPE,
    FLAGS,
    ITEMS,
    NARROW_SIZE,
    NDIM,
    TYPE,
    WIDE_SIZE,
    count_of,
    decref,
    floats_of,
    incref,
    number,
    put,
)

LIES = ALIGNED_IN_C_ORDER | WRITEABLE


@typed
def cell_of(cells, codes, k):
    """The adjoint of the k-th leaf of the tape, or of the leaf that the k-th code names."""
    leaf = -i8(codes)[k] - 1 if codes != 0 else k
    return i8(cells)[leaf]


@typed
def plain(frame, leaf, cell):
    """Whether a leaf is a small Tensor without hooks, whose adjoint the walk holds."""
    slots = i8(leaf)
    if cell & 1 or slots[TYPE] != frame[TENSOR]:
        return 0
    extra = slots[frame[T_EXTRA]]
    if extra != 0 and call1(frame[DICT_SIZE], extra) != 0:
        return 0
    small = number(frame, slots[frame[T_SHAPE]]) != -1
    return 1 if small and number(frame, slots[frame[T_POS]]) != 0 else 0


@typed
def held_by(frame, leaf):
    """The gradient that a leaf has: its Tensor, or 0."""
    held = i8(leaf)[frame[T_GRAD]]
    return 0 if held == frame[NONE] else held


@typed
def grows(frame, held):
    """Whether a gradient can be added to where it lies: a constant with memory of its own."""
    slots = i8(held)
    if slots[TYPE] != frame[TENSOR] or number(frame, slots[frame[T_POS]]) != 0:
        return 0
    array = slots[frame[T_ARRAY]]
    free = slots[frame[T_HOME]] == frame[NONE] and i8(array)[ARRAY_BASE] == 0
    return 1 if free and i4(array + FLAGS)[0] & LIES == LIES else 0


@typed
def is_narrow(frame, leaf):
    """Whether a plain leaf is of float32, and with it its gradient."""
    return number(frame, i8(leaf)[frame[T_SHAPE]]) < 0


@typed
def copy(to, source, count, narrow):
    """Copy some numbers."""
    for k in range(count):
        if narrow:
            f4(to)[k] = f4(source)[k]
        else:
            f8(to)[k] = f8(source)[k]


@typed
def add(to, source, count, narrow):
    """Add some numbers to others."""
    for k in range(count):
        if narrow:
            f4(to)[k] += f4(source)[k]
        else:
            f8(to)[k] += f8(source)[k]


@typed
def gradient(frame, leaf, cell):
    """A Tensor with a copy of an adjoint, or 0 with an exception set."""
    like = i8(leaf)[frame[T_ARRAY]]
    ndim, lengths = i4(like + NDIM)[0], i8(like)[ARRAY_SHAPE]
    narrow = is_narrow(frame, leaf)
    array = floats_of(frame, NARROW_SIZE if narrow else WIDE_SIZE, ndim, lengths)
    if array == 0:
        return 0
    tensor = call2(frame[NEW_OBJECT], frame[TENSOR], 0)
    if tensor == 0:
        decref(frame, array)
        return 0
    copy(i8(array)[ARRAY_DATA], cell, count_of(array), narrow)
    i8(tensor)[frame[T_ARRAY]] = array
    put(frame, tensor, frame[T_POS], frame[ZERO])
    put(frame, tensor, frame[T_HOME], frame[NONE])
    put(frame, tensor, frame[T_SHAPE], i8(leaf)[frame[T_SHAPE]])
    return tensor


@typed
def answer(frame, thing):
    """A new reference to a constant."""
    incref(thing)
    return thing


@typed
def are_plain(frame, cells, leaves, codes, count):
    """Whether each leaf that was reached is as plain as can be, and so is its gradient."""
    for k in range(count):
        cell = cell_of(cells, codes, k)
        if cell == 0:
            if codes != 0:
                return 0
            continue
        leaf = i8(leaves)[k]
        if not plain(frame, leaf, cell):
            return 0
        held = 0 if codes != 0 else held_by(frame, leaf)
        if held != 0 and not grows(frame, held):
            return 0
    return 1


@typed
def announced(frame, cells, leaves, count):
    """Count the changes of gradients that the leaves have; 0 with an exception set."""
    for k in range(count):
        held = held_by(frame, i8(leaves)[k])
        changes = held != 0 and cell_of(cells, 0, k) != 0
        if changes and not counted(frame, i8(held)[frame[T_ARRAY]]):
            return 0
    return 1


@typed
def agrees(frame, cells, leaves, found, count):
    """Whether the gradients that were made are still those that the leaves do not have."""
    if not are_plain(frame, cells, leaves, 0, count):
        return 0
    for k in range(count):
        misses = cell_of(cells, 0, k) != 0 and held_by(frame, i8(leaves)[k]) == 0
        if misses != (i8(found)[ITEMS + k] != frame[NONE]):
            return 0
    return 1


@typed
def hand_out(frame, cells, leaves, found, count):
    """Give the new gradients to the leaves, and add the others."""
    for k in range(count):
        cell, leaf, new = cell_of(cells, 0, k), i8(leaves)[k], i8(found)[ITEMS + k]
        if new != frame[NONE]:
            before = i8(leaf)[frame[T_GRAD]]
            put(frame, leaf, frame[T_GRAD], new)
            if before != 0:
                decref(frame, before)  # None
        elif cell != 0:
            array = i8(held_by(frame, leaf))[frame[T_ARRAY]]
            add(i8(array)[ARRAY_DATA], cell, count_of(array), is_narrow(frame, leaf))
    return 0


@typed
def made(frame, cells, leaves, codes, count):
    """New gradients as a tuple, None for leaves that have one; 0 with an exception set."""
    found = call1(frame[NEW_TUPLE], count)
    if found == 0:
        return 0
    for k in range(count):
        cell, leaf = cell_of(cells, codes, k), i8(leaves)[k]
        if cell != 0 and (codes != 0 or held_by(frame, leaf) == 0):
            tensor = gradient(frame, leaf, cell)
            if tensor == 0:
                decref(frame, found)
                return 0
            i8(found)[ITEMS + k] = tensor
        else:
            put(frame, found, ITEMS + k, frame[NONE])
    return found


def deliver(frame_at, cells, leaves, codes, count):
    """The gradients of the leaves that some codes name, as a tuple; without codes (0), those of all
    leaves that were reached, in their `.grad`, and None.  False: not all of them are so plain.

    `leaves` is where the leaves stand, one after the other.
    """
    frame = i8(frame_at)
    if not are_plain(frame, cells, leaves, codes, count):
        return answer(frame, frame[FALSE])
    found = made(frame, cells, leaves, codes, count)
    if found == 0 or codes != 0:
        return found
    done = announced(frame, cells, leaves, count)
    agreed = agrees(frame, cells, leaves, found, count)  # whatever came in between
    if done and agreed:
        hand_out(frame, cells, leaves, found, count)
    decref(frame, found)
    if not done:
        return 0
    return answer(frame, frame[NONE if agreed else FALSE])
