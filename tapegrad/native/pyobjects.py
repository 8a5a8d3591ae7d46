"""Python's objects in compiled code: numbers, tuples, arrays, the thread's tape, references.

References are counted by hand, by these rules.  An argument is borrowed: who calls holds it.  What
is returned as an object is a new reference, unless its docstring says that it is borrowed; 0 says
that an exception is set, and REFUSED that nothing has changed and that Python is to begin anew.
Whoever stores an object where another stood releases that one after its place was taken, for
releasing, making a container and calling Python may all run code of the user: what was read before
(the tape's end, a Tensor's array and place) has to be looked at again.
"""

import sys

from tapegrad.kernels.flags import typed_with
from tapegrad.kernels.memory import address, call0, call1, call2, call3, call8, i4, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import FIELDS, NO_DIGIT, ONE_DIGIT, SIZE_BITS, WRITEABLE
from tapegrad.native.abi import Frame, Nest, Operand, Plan
from tapegrad.tape.record_format import CLASS_SHIFT
from tapegrad.tape.tape import MODE_FAST, MODE_OFF

typed = typed_with(frame=Frame, nest=Nest, operands=Operand, plan=Plan)
REFUSED = -1
REFERENCES = 0  # which an object's first word counts
IMMORTALS = sys.version_info >= (3, 12)  # objects whose count, in 32 bits, is negative
F8_SIZE, F4_SIZE, C16_SIZE = 8, 4, 16  # bytes of an element: float64, float32, complex128
I8_SIZE, B1_SIZE = 32, 512  # in place of the bytes of an int64, and of a truth value
LARGE_COUNT = 1 << 14  # elements of a large array, as `tensor.SHORT` and `ops.large.COMPILED` say
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


@typed
def int_value(frame, obj):
    """The value of a Python int."""
    size = i8(obj)[INT_SIZE] & SIZE_BITS
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
def new_int(frame, value):
    """A Python int: a new reference, or 0 with an exception set."""
    return call1(frame.PyLong_FromLongLong, value)


@typed
def new_tuple(frame, size, items):
    """A new tuple of objects that stand one after the other, or 0 with an exception set.

    They are held before it is made: the collector may run then, and with it anything.
    """
    for k in range(size):
        incref(i8(items)[k])
    made = call1(frame.PyTuple_New, size)
    if made != 0:
        for k in range(size):
            i8(made)[ITEMS + k] = i8(items)[k]
    return made


@typed
def call_python(frame, function, count, a, b, c):
    """What a function in Python returns for some objects, or 0 with an exception set."""
    items = room_i8(3)
    items[0], items[1], items[2] = a, b, c
    given = new_tuple(frame, count, address(items))
    if given == 0:
        return 0
    found = call3(frame.PyObject_Call, function, given, 0)
    decref(frame, given)
    return found


@typed
def tell_python(frame, function, count, a, b, c):
    """Call a function in Python with some numbers; 0 with an exception set."""
    items, found = room_i8(3), 0
    items[0], items[1], items[2] = a, b, c
    given = call1(frame.PyTuple_New, count)
    if given == 0:
        return 0
    for k in range(count):
        i8(given)[ITEMS + k] = new_int(frame, items[k])
        if i8(given)[ITEMS + k] == 0:
            decref(frame, given)
            return 0
    found = call3(frame.PyObject_Call, function, given, 0)
    decref(frame, given)
    if found == 0:
        return 0
    decref(frame, found)
    return 1


@typed
def array_of(frame, dtype, ndim, lengths, strides):
    """A new array, whose elements are not set yet, or 0 with an exception set.

    `strides` is where its strides stand, or 0: it lies in C order.
    """
    incref(dtype)
    return call8(
        frame.PyArray_NewFromDescr, frame.array_type, dtype, ndim, lengths, strides, 0, 0, 0
    )


@typed
def array_over(frame, whole, ndim, lengths, strides, data):
    """A new array over memory of another, which it keeps alive, or 0 with an exception set."""
    dtype = i8(whole)[ARRAY_DTYPE]
    incref(dtype)
    array = call8(
        frame.PyArray_NewFromDescr, frame.array_type, dtype, ndim, lengths, strides, data,
        i4(whole + FLAGS)[0] & WRITEABLE, 0,
    )  # fmt: skip
    if array != 0:
        incref(whole)
        if call2(frame.PyArray_SetBaseObject, array, whole) & LOW_HALF != 0:
            decref(frame, array)
            return 0
    return array


@typed
def dtype_of(frame, itemsize):
    """The type of numbers whose elements take so many bytes."""
    if itemsize == F4_SIZE:
        return frame.float32
    if itemsize == I8_SIZE:
        return frame.int64
    return frame.complex128 if itemsize == C16_SIZE else frame.float64


@typed
def floats_of(frame, itemsize, ndim, lengths):
    """A new array of numbers, by the bytes of an element: see `array_of`."""
    return array_of(frame, dtype_of(frame, itemsize), ndim, lengths, 0)


@typed
def itemsize_of(frame, array):
    """How many bytes an element of an array of numbers takes."""
    dtype = i8(array)[ARRAY_DTYPE]
    if dtype == frame.float32:
        return F4_SIZE
    return C16_SIZE if dtype == frame.complex128 else F8_SIZE


@typed
def count_of(array):
    """How many elements an array has."""
    count = 1
    for k in range(i4(array + NDIM)[0]):
        count *= i8(i8(array)[ARRAY_SHAPE])[k]
    return count


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
def shape_number(frame, array):
    """The number of an array's shape; REFUSED if it has none yet."""
    ndim = i4(array + NDIM)[0]
    key = call1(frame.PyTuple_New, ndim)
    for k in range(ndim):
        item = new_int(frame, i8(i8(array)[ARRAY_SHAPE])[k]) if key != 0 else 0
        if item == 0:
            if key != 0:
                decref(frame, key)
            call0(frame.PyErr_Clear)  # no memory: Python will say it
            return REFUSED
        i8(key)[ITEMS + k] = item
    number = call2(frame.PyDict_GetItem, frame.shape_numbers, key)
    found = REFUSED if number == 0 else int_value(frame, number)
    decref(frame, key)
    return found
