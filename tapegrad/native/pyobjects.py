"""Read Python objects in compiled code: numbers, the thread's tape, operands, tables."""

import math
import sys

from tapegrad.kernels.flags import typed_with
from tapegrad.kernels.memory import (
    address,
    call0,
    call1,
    call2,
    call3,
    call8,
    f4,
    f8,
    i4,
    i8,
    room_i8,
)
from tapegrad.kernels.sweep.sweep_abi import (
    ALIGNED_IN_C_ORDER,
    FIELDS,
    NO_DIGIT,
    ONE_DIGIT,
    WRITEABLE,
)
from tapegrad.native.abi import F4_KEY, SHAPE_LINES, UNREAD, Frame, Operand, ShapeLine
from tapegrad.tape.tape import CLASS_SHIFT, MODE_FAST, MODE_OFF, NARROW

typed = typed_with(frame=Frame)
REFUSED = -1
REFERENCES = 0  # which an object's first word counts
IMMORTALS = sys.version_info >= (3, 12)  # objects whose count, in 32 bits, is negative
F8_SIZE, F4_SIZE = 8, 4  # bytes of an element in float64 and float32
LARGE_F8 = 16  # in their place: of float64, but for the path of large Tensors
LARGE_COUNT = 1 << 14  # elements of these, as `tensor.SHORT` and `ops.large.COMPILED` say
FIRST_CLASS, SECOND_CLASS, _ = CLASS_SHIFT  # in the word
TYPE, ITEMS = FIELDS["object_type"][0] >> 3, FIELDS["tuple_items"][0] >> 3
ARRAY_DATA, ARRAY_SHAPE = FIELDS["array_data"][0] >> 3, FIELDS["array_shape"][0] >> 3
COUNT, LIST_ITEMS = FIELDS["object_size"][0] >> 3, FIELDS["list_items"][0] >> 3
SLICE_FIELDS = FIELDS["slice_edges"][0] >> 3
INT64_VALUE = FIELDS["int64_value"][0] >> 3
FLOAT_VALUE = FIELDS["float_value"][0] >> 3
STRIDES = FIELDS["array_strides"][0] >> 3
ARRAY_BASE = FIELDS["array_base"][0] >> 3
ARRAY_DTYPE = FIELDS["array_dtype"][0] >> 3
INT_SIZE, INT_DIGIT = FIELDS["int_size"][0] >> 3, FIELDS["int_digit"][0]
NDIM, FLAGS = FIELDS["array_ndim"][0], FIELDS["array_flags"][0]
LOW_HALF = 0xFFFFFFFF
KNOWN_CONSTANTS = 256  # arrays of numbers that are kept, as in `tapegrad.dispatch.fast_path`


@typed
def int_value(frame, obj):
    """The value of a Python int."""
    size = i8(obj)[INT_SIZE]
    if size == ONE_DIGIT:
        return i4(obj + INT_DIGIT)[0]
    return 0 if size == NO_DIGIT else call1(frame.PyLong_AsLongLong, obj)


@typed
def incref(obj):
    """Count one more reference."""
    if not IMMORTALS or i4(obj)[0] >= 0:
        i8(obj)[REFERENCES] += 1
    return 0


@typed
def decref(frame, obj):
    """Count one reference less; of the last CPython is told."""
    if i8(obj)[REFERENCES] == 1:
        call1(frame.Py_DecRef, obj)
    elif not IMMORTALS or i4(obj)[0] >= 0:
        i8(obj)[REFERENCES] -= 1
    return 0


@typed
def hold_next(frame, tape):
    """What stands in `next`, as a new reference: while it is held nothing else has its address."""
    token = i8(tape)[frame.tape_next]
    incref(token)
    return token


@typed
def set_slot(frame, container, slot, obj):
    """Set a slot or an item that is empty."""
    incref(obj)
    i8(container)[slot] = obj
    return 0


@typed
def tape_of_thread(frame):
    """The tape of the running thread, or 0 with an exception set."""
    thread = call1(frame.PyThreadState_GetID, call0(frame.PyThreadState_Get))
    if frame.thread == thread:
        return frame.tape
    tape = call2(frame.PyObject_GetAttr, frame.current, frame.attr_tape)
    if tape != 0:
        decref(frame, tape)  # the thread itself holds it
        frame.tape = tape
        frame.thread = thread
    return tape


@typed
def on_tape(frame, tape, obj):
    """Whether the place of a Tensor counts: on this tape, nowhere, or as a view that is current."""
    home = i8(obj)[frame.t_home]
    if home == frame.none or home == tape:
        return 1
    if i8(home)[TYPE] != frame.view_type:
        return 0
    view = i8(home)
    if view[frame.v_tape] != tape or view[frame.v_frozen] != frame.empty_str:
        return 0
    base = view[frame.v_base]
    if base == frame.none:
        return 1
    return 1 if i8(base)[frame.t_pos] == view[frame.v_stamp] else 0


@typed
def tuple_of(frame, size, a, b, c, d, e):
    """A new tuple of so many of these, or 0 with an exception set.

    They are held before it is made: the collector may run then, and with it anything.
    """
    incref(a)
    if size > 1:
        incref(b)
    if size > 2:
        incref(c)
    if size > 3:
        incref(d)
    if size > 4:
        incref(e)
    made = call1(frame.PyTuple_New, size)
    if made == 0:
        return 0
    i8(made)[ITEMS] = a
    if size > 1:
        i8(made)[ITEMS + 1] = b
    if size > 2:
        i8(made)[ITEMS + 2] = c
    if size > 3:
        i8(made)[ITEMS + 3] = d
    if size > 4:
        i8(made)[ITEMS + 4] = e
    return made


@typed
def array_of(frame, dtype, ndim, lengths):
    """A new array, whose elements are not set yet, or 0 with an exception set."""
    incref(dtype)
    return call8(frame.PyArray_NewFromDescr, frame.array_type, dtype, ndim, lengths, 0, 0, 0, 0)


@typed
def floats_of(frame, itemsize, ndim, lengths):
    """A new array of float64 or float32, by the bytes of an element: see `array_of`."""
    return array_of(frame, frame.float32 if itemsize == F4_SIZE else frame.float64, ndim, lengths)


@typed
def new_constant(frame, obj, is_f4):
    """The array of a Python number, or 0 where Python has to see to it."""
    beyond = room_i8(1)
    if i8(obj)[TYPE] == frame.float_type:
        value = f8(obj)[FLOAT_VALUE]
    else:
        value = float(call2(frame.PyLong_AsLongLongAndOverflow, obj, address(beyond)))
    if beyond[0] & LOW_HALF != 0:
        return 0
    array = array_of(frame, frame.float32 if is_f4 else frame.float64, 0, 0)
    if array == 0:
        call0(frame.PyErr_Clear)
        return 0
    at = i8(array)[ARRAY_DATA]
    if is_f4:
        f4(at)[0] = value
        if math.isinf(f4(at)[0]) and not math.isinf(value):
            decref(frame, array)
            return 0
    else:
        f8(at)[0] = value
    i4(array + FLAGS)[0] &= ~WRITEABLE
    if value != 0.0:  # 0 and -0 are equal keys
        known = frame.constants_f4 if is_f4 else frame.constants
        if call1(frame.PyDict_Size, known) > KNOWN_CONSTANTS:
            call1(frame.PyDict_Clear, known)
        if call3(frame.PyDict_SetItem, known, obj, array) & LOW_HALF != 0:
            call0(frame.PyErr_Clear)
    return array


@typed
def constant(frame, obj, itemsize):
    """The array of a Python number (a new reference), or 0; the last few hundred are kept."""
    is_f4 = itemsize == F4_SIZE
    array = call2(frame.PyDict_GetItem, frame.constants_f4 if is_f4 else frame.constants, obj)
    if array == 0:
        return new_constant(frame, obj, is_f4)
    incref(array)
    return array


@typed
def count_of(array):
    """How many elements an array has."""
    count = 1
    for k in range(i4(array + NDIM)[0]):
        count *= i8(i8(array)[ARRAY_SHAPE])[k]
    return count


@typed
def is_large(frame, array):
    """Whether an array is one of float64 that is none of this path for its size alone."""
    if i8(array)[TYPE] != frame.array_type or i8(array)[ARRAY_DTYPE] != frame.float64:
        return 0
    return 1 if count_of(array) >= LARGE_COUNT else 0


@typed
def read_tensor(frame, tape, obj, into, flags):
    """Read a Tensor; how many bytes an element takes, or 0: it is none for this path.

    That may be for how its array lies, if not as is asked for.
    """
    if not on_tape(frame, tape, obj):
        return 0
    found = Operand(into)
    array, short = i8(obj)[frame.t_a], int_value(frame, i8(obj)[frame.t_s])
    found.tensor, found.array = obj, array
    found.shape = short if short >= -1 else NARROW - short
    found.position = int_value(frame, i8(obj)[frame.t_pos])
    if i4(array + FLAGS)[0] & flags != flags:
        return 0
    if short == -1:
        return LARGE_F8 if flags == ALIGNED_IN_C_ORDER and is_large(frame, array) else 0
    return F8_SIZE if short >= 0 else F4_SIZE


@typed
def read_number(frame, obj, into, itemsize):
    """Read a Python number, whose array is then held; 0 if it is none for this path."""
    kind = i8(obj)[TYPE]
    if kind != frame.float_type and kind != frame.int_type:
        return 0
    array = constant(frame, obj, itemsize)
    if array == 0:
        return 0
    found = Operand(into)
    found.tensor, found.array, found.shape, found.position = 0, array, 0, 0
    return 1


@typed
def read_operand(frame, tape, obj, into, flags):
    """Read an operand of float64, a Tensor or a number; 0 if it is none for this path."""
    if i8(obj)[TYPE] == frame.tensor_type:
        return 1 if read_tensor(frame, tape, obj, into, flags) == F8_SIZE else 0
    return read_number(frame, obj, into, F8_SIZE)


@typed
def read_operands(frame, tape, given, begin, end, words, flags):
    """Read operands, each into some words; how many bytes an element of them takes, or 0.

    LARGE_F8: each is large, or one number.  Whatever is returned, `release_operands` has to follow.
    A number is of the Tensors' type.
    """
    sizes, whole = 0, 0
    for k in range(begin, end):
        one = address(Operand(words)[k])
        Operand(one).tensor, Operand(one).array = UNREAD, 0
    for k in range(begin, end):
        obj = i8(given)[k]
        if i8(obj)[TYPE] == frame.tensor_type:
            one = address(Operand(words)[k])
            found = read_tensor(frame, tape, obj, one, flags)
            if found == 0:
                return 0
            if found == F8_SIZE and Operand(one).shape != 0:
                whole = 1
            sizes |= found
    itemsize = LARGE_F8 if sizes == LARGE_F8 | F8_SIZE and not whole else sizes
    if itemsize != F8_SIZE and itemsize != F4_SIZE and itemsize != LARGE_F8:
        return 0
    for k in range(begin, end):
        one = address(Operand(words)[k])
        if Operand(one).tensor == UNREAD and not read_number(frame, i8(given)[k], one, itemsize):
            return 0
    return itemsize


@typed
def release_operands(frame, begin, end, words):
    """Let go of the arrays of numbers among operands."""
    for k in range(begin, end):
        one = Operand(words)[k]
        if one.tensor == 0 and one.array != 0:
            decref(frame, one.array)


@typed
def recording(frame, tape):
    """1: operations are recorded; 0: they are not; REFUSED: in some way that is not for here."""
    mode = int_value(frame, i8(tape)[frame.tape_mode])
    if mode == MODE_FAST:
        return 1
    if mode == MODE_OFF and i8(tape)[frame.tape_inference] == frame.false:
        return 0
    return REFUSED


@typed
def line_of(frame, lines, learn, one, two, one_at, two_at):
    """The line of two numbers in a table; 0 with an exception set, or REFUSED.

    Then Python has filled it, and what was read before may be another by now.
    """
    pair = (one << 32 | two) + 1
    line = address(ShapeLine(lines)[(one * 31 + two) & (SHAPE_LINES - 1)])
    if ShapeLine(line).key == pair:
        return line
    numbers = tuple_of(frame, 2, one_at, two_at, 0, 0, 0)
    if numbers == 0:
        return 0
    done = call3(frame.PyObject_Call, learn, numbers, 0)
    decref(frame, numbers)
    if done == 0:
        return 0
    decref(frame, done)
    return REFUSED


@typed
def unchanged(frame, one):
    """Whether an operand is as it was read, whatever came in between; its array is held."""
    found = Operand(one)
    if found.tensor == 0:
        return 1
    obj = i8(found.tensor)
    same = obj[frame.t_a] == found.array
    return 1 if same and int_value(frame, obj[frame.t_pos]) == found.position else 0


@typed
def line_of_shapes(frame, lines, learn, first, second, itemsize):
    """The line of the shapes of two Tensors: see `line_of`."""
    one, two = Operand(first), Operand(second)
    one_at, two_at = i8(one.tensor)[frame.t_s], i8(two.tensor)[frame.t_s]
    kind = two.shape | (F4_KEY if itemsize == F4_SIZE else 0)
    return line_of(frame, lines, learn, one.shape, kind, one_at, two_at)


@typed
def same_shape(a, b):
    """Whether two arrays have one shape."""
    if i4(a + NDIM)[0] != i4(b + NDIM)[0]:
        return 0
    for k in range(i4(a + NDIM)[0]):
        if i8(i8(a)[ARRAY_SHAPE])[k] != i8(i8(b)[ARRAY_SHAPE])[k]:
            return 0
    return 1


@typed
def check_exceptions(frame, result):
    """A new array that was computed, or REFUSED: an exception of arithmetic came about."""
    if call1(frame.fetestexcept, frame.fp_flags) & LOW_HALF != 0:
        decref(frame, result)
        return REFUSED
    return result
