"""Accumulate leaf gradients natively, from the adjoints of a compiled sweep.

CPython's lock is held.  Either every gradient is delivered or none.
"""

from tapegrad.kernels.memory import call1, call2, f4, f8, i4, i8
from tapegrad.kernels.sweep.arena import add_numbers
from tapegrad.kernels.sweep.sweep_abi import ALIGNED_IN_C_ORDER, WRITEABLE
from tapegrad.native.abi import Frame
from tapegrad.native.changes import bump_version
from tapegrad.native.pyobjects import (
    ARRAY_BASE,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_SHAPE,
    FLAGS,
    ITEMS,
    NDIM,
    TYPE,
    count_of,
    decref,
    floats_of,
    incref,
    int_value,
    itemsize_of,
    set_slot,
    typed,
)

LIES = ALIGNED_IN_C_ORDER | WRITEABLE


@typed
def cell_of(cells, codes, k):
    """The adjoint of the k-th leaf of the tape, or of the leaf that the k-th code names."""
    leaf = -i8(codes)[k] - 1 if codes != 0 else k
    return i8(cells)[leaf]


@typed
def is_plain_leaf(frame, leaf, cell):
    """Whether a leaf is a small Tensor without hooks, whose adjoint the compiled sweep holds."""
    slots = i8(leaf)
    if cell & 1 or slots[TYPE] != frame.tensor_type:
        return 0
    extra = slots[frame.t_extra]
    if extra != 0 and call1(frame.PyDict_Size, extra) != 0:
        return 0
    # An adjoint of the compiled sweep is small; of complex64 Python makes the gradient.
    short, dtype = int_value(frame, slots[frame.t_s]), i8(slots[frame.t_a])[ARRAY_DTYPE]
    known = short != -1 or dtype == frame.complex128
    return 1 if known and int_value(frame, slots[frame.t_pos]) != 0 else 0


@typed
def gradient_of(frame, leaf):
    """The gradient that a leaf has: its Tensor, or 0."""
    grad = i8(leaf)[frame.t_grad]
    return 0 if grad == frame.none else grad


@typed
def is_accumulable(frame, grad):
    """Whether a gradient can be added to where it lies: a constant with memory of its own."""
    slots = i8(grad)
    if slots[TYPE] != frame.tensor_type or int_value(frame, slots[frame.t_pos]) != 0:
        return 0
    array = slots[frame.t_a]
    free = slots[frame.t_home] == frame.none and i8(array)[ARRAY_BASE] == 0
    return 1 if free and i4(array + FLAGS)[0] & LIES == LIES else 0


@typed
def is_float32(frame, leaf):
    """Whether a plain leaf is of float32, and with it its gradient."""
    return int_value(frame, i8(leaf)[frame.t_s]) < -1


@typed
def number_count(frame, array):
    """How many real numbers there are in an array: two in each complex one."""
    return count_of(array) << (1 if i8(array)[ARRAY_DTYPE] == frame.complex128 else 0)


@typed
def copy(to, source, count, is_f4):
    """Copy some numbers."""
    for k in range(count):
        if is_f4:
            f4(to)[k] = f4(source)[k]
        else:
            f8(to)[k] = f8(source)[k]


@typed
def new_gradient(frame, leaf, cell):
    """A Tensor with a copy of an adjoint, or 0 with an exception set."""
    like = i8(leaf)[frame.t_a]
    ndim, lengths = i4(like + NDIM)[0], i8(like)[ARRAY_SHAPE]
    array = floats_of(frame, itemsize_of(frame, like), ndim, lengths)
    if array == 0:
        return 0
    tensor = call2(frame.PyType_GenericAlloc, frame.tensor_type, 0)
    if tensor == 0:
        decref(frame, array)
        return 0
    copy(i8(array)[ARRAY_DATA], cell, number_count(frame, array), is_float32(frame, leaf))
    i8(tensor)[frame.t_a] = array
    set_slot(frame, tensor, frame.t_pos, frame.zero)
    set_slot(frame, tensor, frame.t_home, frame.none)
    set_slot(frame, tensor, frame.t_s, i8(leaf)[frame.t_s])
    return tensor


@typed
def new_reference(obj):
    """A new reference to a constant."""
    incref(obj)
    return obj


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
        if not is_plain_leaf(frame, leaf, cell):
            return 0
        grad = 0 if codes != 0 else gradient_of(frame, leaf)
        if grad != 0 and not is_accumulable(frame, grad):
            return 0
    return 1


@typed
def bump_versions(frame, cells, leaves, count):
    """Count the changes of gradients that the leaves have; 0 with an exception set."""
    for k in range(count):
        grad = gradient_of(frame, i8(leaves)[k])
        changes = grad != 0 and cell_of(cells, 0, k) != 0
        if changes and not bump_version(frame, i8(grad)[frame.t_a]):
            return 0
    return 1


@typed
def is_as_before(frame, cells, leaves, found, count):
    """Whether the gradients that were made are still those that the leaves do not have."""
    if not are_plain(frame, cells, leaves, 0, count):
        return 0
    for k in range(count):
        misses = cell_of(cells, 0, k) != 0 and gradient_of(frame, i8(leaves)[k]) == 0
        if misses != (i8(found)[ITEMS + k] != frame.none):
            return 0
    return 1


@typed
def accumulate_all(frame, cells, leaves, found, count):
    """Give the new gradients to the leaves, and add the others."""
    for k in range(count):
        cell, leaf, new = cell_of(cells, 0, k), i8(leaves)[k], i8(found)[ITEMS + k]
        if new != frame.none:
            before = i8(leaf)[frame.t_grad]
            set_slot(frame, leaf, frame.t_grad, new)
            if before != 0:
                decref(frame, before)  # None
        elif cell != 0:
            array = i8(gradient_of(frame, leaf))[frame.t_a]
            count_all = number_count(frame, array)
            add_numbers(i8(array)[ARRAY_DATA], cell, count_all, is_float32(frame, leaf))
    return 0


@typed
def new_gradients(frame, cells, leaves, codes, count):
    """New gradients as a tuple, None for leaves that have one; 0 with an exception set."""
    found = call1(frame.PyTuple_New, count)
    if found == 0:
        return 0
    for k in range(count):
        cell, leaf = cell_of(cells, codes, k), i8(leaves)[k]
        if cell != 0 and (codes != 0 or gradient_of(frame, leaf) == 0):
            tensor = new_gradient(frame, leaf, cell)
            if tensor == 0:
                decref(frame, found)
                return 0
            i8(found)[ITEMS + k] = tensor
        else:
            set_slot(frame, found, ITEMS + k, frame.none)
    return found


@typed
def deliver(frame, cells, leaves, codes, count):
    """The gradients of the leaves that some codes name, as a tuple; without codes (0), those of all
    leaves that were reached, in their `.grad`, and None.  False: not all of them are so plain.

    `leaves` is where the leaves stand, one after the other.
    """
    if not are_plain(frame, cells, leaves, codes, count):
        return new_reference(frame.false)
    found = new_gradients(frame, cells, leaves, codes, count)
    if found == 0 or codes != 0:
        return found
    done = bump_versions(frame, cells, leaves, count)
    agreed = is_as_before(frame, cells, leaves, found, count)  # whatever came in between
    if done and agreed:
        accumulate_all(frame, cells, leaves, found, count)
    decref(frame, found)
    if not done:
        return 0
    return new_reference(frame.none if agreed else frame.false)


def accumulate(frame_at, cells, leaves, codes, count):
    """`deliver`, as Python calls it."""
    return deliver(Frame(frame_at), cells, leaves, codes, count)
