"""Read the operands of a call: Tensors, numbers, indices and masks."""

import math

from tapegrad.kernels.memory import address, call0, call1, call2, call3, f4, f8, i4, i8, room_i8, u1
from tapegrad.kernels.sweep.sweep_abi import ALIGNED, ALIGNED_IN_C_ORDER, WRITEABLE
from tapegrad.native.pyobjects import (
    ARRAY_BASE,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_SHAPE,
    B1_SIZE,
    C16_SIZE,
    F4_SIZE,
    F8_SIZE,
    FLAGS,
    FLOAT_VALUE,
    I8_SIZE,
    INT64_VALUE,
    LARGE_COUNT,
    LOW_HALF,
    NDIM,
    REFUSED,
    STRIDES,
    TYPE,
    array_over,
    call_python,
    count_of,
    decref,
    dtype_of,
    floats_of,
    incref,
    int_value,
    itemsize_of,
    shape_number,
    typed,
)
from tapegrad.tape.record_format import F4_SHAPE

# Beside the bytes of an element: the operands are large; some do not lie in C order.
LARGE, STRIDED, MIXED = 64, 128, 256
KNOWN_CONSTANTS = 256  # arrays of numbers that are kept, as in `tapegrad.dispatch.op_functions`
UNREAD = 1  # in place of the Tensor
NO_INDEX = -1


@typed
def is_current(frame, tape, obj, position):
    """Whether a Tensor stands where it says: on this tape, nowhere, or as a view of what it was."""
    home = i8(obj)[frame.t_home]
    if home == frame.none or home == tape:
        return 1
    if i8(home)[TYPE] != frame.view_type:
        return 0
    view = i8(home)
    if view[frame.v_tape] != tape and position > 0:
        return 0
    base = view[frame.v_base]
    if base == frame.none:
        return 1
    return 1 if i8(base)[frame.t_pos] == view[frame.v_stamp] else 0


@typed
def known_constants(frame, itemsize):
    """The dict of the arrays of numbers that are kept."""
    if itemsize == F4_SIZE:
        return frame.constants_f4
    if itemsize == I8_SIZE:
        return frame.constants_i8
    return frame.constants_c16 if itemsize == C16_SIZE else frame.constants


@typed
def new_constant(frame, obj, itemsize):
    """The array of a Python number, or 0 where Python has to see to it."""
    overflow, is_f4, imaginary, whole = room_i8(1), itemsize == F4_SIZE, 0.0, 0
    kind = i8(obj)[TYPE]
    if kind == frame.float_type or kind == frame.float64_type:  # whose numbers stand at one place
        value = f8(obj)[FLOAT_VALUE]
    elif kind == frame.complex_type:
        value, imaginary = f8(obj)[FLOAT_VALUE], f8(obj)[FLOAT_VALUE + 1]
    elif kind == frame.int64_type:
        whole = i8(obj)[INT64_VALUE]
        value = float(whole)
    else:
        whole = call2(frame.PyLong_AsLongLongAndOverflow, obj, address(overflow))
        value = float(whole)
    if overflow[0] & LOW_HALF != 0:
        return 0
    array = floats_of(frame, itemsize, 0, 0)
    if array == 0:
        call0(frame.PyErr_Clear)
        return 0
    at = i8(array)[ARRAY_DATA]
    if is_f4:
        f4(at)[0] = value
        if math.isinf(f4(at)[0]) and not math.isinf(value):
            decref(frame, array)
            return 0
    elif itemsize == I8_SIZE:
        i8(at)[0] = whole
    else:
        f8(at)[0] = value
        if itemsize == C16_SIZE:
            f8(at)[1] = imaginary
    i4(array + FLAGS)[0] &= ~WRITEABLE
    if value != 0.0 and (imaginary != 0.0 or itemsize != C16_SIZE):  # 0 and -0 are equal keys
        known = known_constants(frame, itemsize)
        if call1(frame.PyDict_Size, known) > KNOWN_CONSTANTS:
            call1(frame.PyDict_Clear, known)
        if call3(frame.PyDict_SetItem, known, obj, array) & LOW_HALF != 0:
            call0(frame.PyErr_Clear)
    return array


@typed
def constant(frame, obj, itemsize):
    """The array of a Python number (a new reference), or 0; the last few hundred are kept."""
    known = known_constants(frame, itemsize)
    array = call2(frame.PyDict_GetItem, known, obj)
    if array == 0:
        return new_constant(frame, obj, itemsize)
    incref(array)
    return array


@typed
def size_of_large(frame, array):
    """How many bytes an element of an array takes that is too large to be computed under the
    interpreter's lock; 0 for others.
    """
    if i8(array)[TYPE] != frame.array_type or count_of(array) < LARGE_COUNT:
        return 0
    dtype = i8(array)[ARRAY_DTYPE]
    return F8_SIZE if dtype == frame.float64 else F4_SIZE if dtype == frame.float32 else 0


@typed
def size_of_small(frame, array):
    """The size of elements that are no floats, of an array that is small enough to be computed
    under the lock; 0 for others.
    """
    if i8(array)[TYPE] != frame.array_type or count_of(array) >= LARGE_COUNT:
        return 0
    dtype = i8(array)[ARRAY_DTYPE]
    if dtype == frame.int64:
        return I8_SIZE
    return C16_SIZE if dtype == frame.complex128 else B1_SIZE if dtype == frame.bool_dtype else 0


@typed
def learnt_shape(frame, array):
    """The number of an array's shape; REFUSED if it has none yet, but will have the next time."""
    shape = shape_number(frame, array)
    if shape == REFUSED:
        learnt = call_python(frame, frame.learn_shape, 1, array, 0, 0)
        if learnt == 0:
            call0(frame.PyErr_Clear)
        else:
            decref(frame, learnt)
    return shape


@typed
def is_strided(array):
    """STRIDED for an array that does not lie in C order, 0 for others."""
    return 0 if i4(array + FLAGS)[0] & ALIGNED_IN_C_ORDER == ALIGNED_IN_C_ORDER else STRIDED


@typed
def read_tensor(frame, tape, obj, operands, flags):
    """Read a Tensor into the first; how many bytes an element takes, or 0: native code has no plan
    for it, perhaps for how its array lies, if not as the flags say.
    """
    operands.position = int_value(frame, i8(obj)[frame.t_pos])
    if not is_current(frame, tape, obj, operands.position):
        return 0
    array, short = i8(obj)[frame.t_a], int_value(frame, i8(obj)[frame.t_s])
    operands.tensor, operands.array = obj, array
    operands.shape = short if short >= -1 else F4_SHAPE - short
    if i4(array + FLAGS)[0] & flags != flags:
        return 0
    strided = is_strided(array)
    small = size_of_small(frame, array) if short == -1 else 0
    if small:
        operands.shape = learnt_shape(frame, array)
        return small | strided if operands.shape != REFUSED else 0
    if short == -1:
        itemsize = 0 if strided else size_of_large(frame, array)
        return itemsize | LARGE if itemsize else 0
    return (F8_SIZE if short >= 0 else F4_SIZE) | strided


@typed
def read_array(frame, obj, operands, itemsize):
    """Read a small array of the caller's into the first, with a header of its own, which is then
    held; 0 if it is none, or of another type than elements that take so many bytes.
    """
    if i8(obj)[TYPE] != frame.array_type or i8(obj)[ARRAY_DTYPE] != dtype_of(frame, itemsize):
        return 0
    if itemsize == C16_SIZE or itemsize == I8_SIZE:
        return 0
    if i4(obj + FLAGS)[0] & ALIGNED != ALIGNED or count_of(obj) >= LARGE_COUNT:
        return 0
    shape, slots = learnt_shape(frame, obj), i8(obj)
    if shape == REFUSED:
        return 0
    ndim, data = i4(obj + NDIM)[0], slots[ARRAY_DATA]
    array = array_over(frame, obj, ndim, slots[ARRAY_SHAPE], slots[STRIDES], data)
    if array == 0:
        call0(frame.PyErr_Clear)
        return 0
    operands.tensor, operands.array, operands.shape, operands.position = 0, array, shape, 0
    return 1


@typed
def read_number(frame, obj, operands, itemsize):
    """Read a number of Python's or NumPy's, whose array is then held, into the first; 0 if it is
    none.
    """
    kind = i8(obj)[TYPE]
    if kind == frame.complex_type:
        if itemsize != C16_SIZE:
            return 0
    elif kind == frame.float_type or kind == frame.float64_type:
        if itemsize == I8_SIZE:
            return 0
    elif kind != frame.int_type and kind != frame.int64_type and kind != frame.bool_type:
        return 0
    array = constant(frame, obj, itemsize)
    if array == 0:
        return 0
    operands.tensor, operands.array, operands.shape, operands.position = 0, array, 0, 0
    return 1


@typed
def read_index(frame, tape, obj, dtype, operands):
    """Read a Tensor of truth values or places, a constant, into the first; 0 if it is none."""
    if i8(obj)[TYPE] != frame.tensor_type:
        return 0
    operands.position = int_value(frame, i8(obj)[frame.t_pos])
    if not is_current(frame, tape, obj, operands.position):
        return 0
    array = i8(obj)[frame.t_a]
    flags = i4(array + FLAGS)[0]
    if i8(array)[ARRAY_DTYPE] != dtype or flags & ALIGNED_IN_C_ORDER != ALIGNED_IN_C_ORDER:
        return 0
    operands.tensor, operands.array, operands.shape = obj, array, 0
    return 1 if operands.position == 0 else 0


@typed
def has_complex_number(frame, given, count):
    """Whether an operand is a complex number of Python's."""
    found = False
    for k in range(count):
        found |= i8(i8(given)[k])[TYPE] == frame.complex_type
    return found


@typed
def as_floats(frame, operands, itemsize):
    """Put floats, of a new array, in place of the first if it is of another type.

    0 where Python has to see to it, as to the derivative by what becomes of longer floats.
    """
    array = operands.array
    dtype = i8(array)[ARRAY_DTYPE]
    if dtype == dtype_of(frame, itemsize):
        return 1
    if is_strided(array) or operands.position != 0:
        return 0
    made = floats_of(frame, itemsize, i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE])
    if made == 0:
        call0(frame.PyErr_Clear)
        return 0
    source, target = i8(array)[ARRAY_DATA], i8(made)[ARRAY_DATA]
    for k in range(count_of(array)):
        if dtype == frame.float32:
            value = float(f4(source)[k])
        else:
            value = float(i8(source)[k] if dtype == frame.int64 else u1(source)[k])
        if itemsize == F4_SIZE:
            f4(target)[k] = value
        else:
            f8(target)[k] = value
    operands.tensor, operands.array, operands.position = 0, made, 0
    return 1


@typed
def read_operands(
    frame, tape, given, count, operands, flags, arrays, index, dtype, promotes, changes
):  # fmt: skip
    """Read operands; how many bytes an element of them takes, or 0: native code has no plan.

    With LARGE: one is large, and the others large or one number, if they are not to be broadcast,
    as with `promotes`.  With MIXED some are real, others are complex.  A Python number is of the
    Tensors' type, or complex; with `arrays` there may be arrays of this type.  `index`, or
    NO_INDEX, is of another, `dtype`.  With `promotes` small integers, truth values and constants of
    float32 become the longest floats beside them, if no Tensor of floats of two types is a number;
    with `changes` the first operand stays as it is.
    Whatever is returned, `release_operands` has to follow.
    """
    sizes, whole, number = 0, 0, 0
    for k in range(count):
        operands[k].tensor, operands[k].array = UNREAD, 0
    for k in range(count):
        obj = i8(given)[k]
        if k == index:
            if not read_index(frame, tape, obj, dtype, operands[k]):
                return 0
        elif i8(obj)[TYPE] == frame.tensor_type:
            found = read_tensor(frame, tape, obj, operands[k], flags)
            if found == 0:
                return 0
            if found & LARGE == 0:
                whole |= operands[k].shape != 0
                number |= operands[k].shape == 0 and found & (F8_SIZE | F4_SIZE) != 0
            sizes |= found
    itemsize = sizes & ~(LARGE | STRIDED)
    mixed = itemsize == F8_SIZE and has_complex_number(frame, given, count)
    mixed = sizes & LARGE == 0 and (mixed or itemsize == F8_SIZE | C16_SIZE)
    if mixed:
        itemsize = C16_SIZE
    floats, wholes = itemsize & (F8_SIZE | F4_SIZE), itemsize & (I8_SIZE | B1_SIZE)
    both = floats == F8_SIZE | F4_SIZE
    if promotes and floats and (wholes or both) and sizes & LARGE == 0:
        if both and number:
            return 0  # which has less of a say than a vector
        shorter = wholes | (F4_SIZE if both else 0)
        itemsize, sizes = itemsize & ~shorter, sizes & ~shorter
        if changes and i8(operands.array)[ARRAY_DTYPE] != dtype_of(frame, itemsize):
            return 0
        for k in range(count):
            read = k != index and operands[k].tensor != UNREAD
            if read and not as_floats(frame, operands[k], floats & ~shorter):
                return 0
    if itemsize & (itemsize - 1) or itemsize == 0 or (sizes & LARGE and whole and not promotes):
        return 0  # of several types, or of none
    for k in range(count):
        if operands[k].tensor != UNREAD or read_number(frame, i8(given)[k], operands[k], itemsize):
            continue
        if not arrays or not read_array(frame, i8(given)[k], operands[k], itemsize):
            return 0
        if sizes & LARGE and operands[k].shape != 0 and not promotes:
            return 0
        sizes |= is_strided(operands[k].array)
    return (sizes & ~F8_SIZE) | C16_SIZE | MIXED if mixed else sizes


@typed
def release_operands(frame, count, operands):
    """Release the arrays of numbers among operands."""
    for k in range(count):
        if operands[k].tensor == 0 and operands[k].array != 0:
            decref(frame, operands[k].array)
    return 0


@typed
def any_tracked(count, operands):
    """Whether a derivative by one of some operands may be asked for."""
    positions = 0
    for k in range(count):
        positions |= operands[k].position
    return 1 if positions != 0 else 0


@typed
def all_unchanged(frame, count, operands):
    """Whether operands are as they were read, whatever came in between; their arrays are held."""
    for k in range(count):
        if operands[k].tensor != 0:
            obj = i8(operands[k].tensor)
            if obj[frame.t_a] != operands[k].array:
                return 0
            if int_value(frame, obj[frame.t_pos]) != operands[k].position:
                return 0
    return 1


@typed
def hold_arrays(count, operands):
    """Keep the arrays of operands alive, whatever becomes of their Tensors."""
    for k in range(count):
        incref(operands[k].array)
    return 0


@typed
def release_arrays(frame, count, operands):
    """The opposite of `hold_arrays`."""
    for k in range(count):
        decref(frame, operands[k].array)
    return 0


@typed
def end_of(frame, array, last):
    """Where the memory of an array begins, or with `last` where it ends."""
    at = i8(array)[ARRAY_DATA] + (itemsize_of(frame, array) if last else 0)
    for k in range(i4(array + NDIM)[0]):
        reach = (i8(i8(array)[ARRAY_SHAPE])[k] - 1) * i8(i8(array)[STRIDES])[k]
        if (reach > 0) == (last != 0):
            at += reach
    return at


@typed
def disjoint(frame, a, b):
    """Whether no element of two arrays stands between the first and the last of the other."""
    before = end_of(frame, a, 1) <= end_of(frame, b, 0)
    return 1 if before or end_of(frame, b, 1) <= end_of(frame, a, 0) else 0


@typed
def storage_of(frame, array):
    """The storage of an array, as `versions.root` has it; 0: it is for Python to find."""
    base = i8(array)[ARRAY_BASE]
    while base != 0 and i8(base)[TYPE] == frame.array_type:
        array, base = base, i8(base)[ARRAY_BASE]
    return array if base == 0 or i8(base)[TYPE] == frame.memoryview_type else 0


@typed
def same_shape(a, b):
    """Whether two arrays have one shape."""
    if i4(a + NDIM)[0] != i4(b + NDIM)[0]:
        return 0
    for k in range(i4(a + NDIM)[0]):
        if i8(i8(a)[ARRAY_SHAPE])[k] != i8(i8(b)[ARRAY_SHAPE])[k]:
            return 0
    return 1
