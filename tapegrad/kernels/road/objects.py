"""What compiled code reads of Python's objects: numbers, the thread's tape, operands, tables."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.layout import FIELDS
from tapegrad.kernels.memory import call0, call1, call2, call3, call8, i4, i8
from tapegrad.kernels.road.frame import (
    ARRAY,
    AS_LONG,
    CALL,
    CONSTANT,
    CONSTANTS,
    CURRENT,
    DECREF,
    EXCEPTIONS,
    FALSE,
    FLOAT,
    FORGET_ERROR,
    GET_ATTR,
    GET_ID,
    GET_ITEM,
    GET_STATE,
    INCREF,
    INFERENCE,
    INT,
    LINE,
    LINES,
    MODE,
    NEW_ARRAY,
    NEW_TUPLE,
    NO_TEXT,
    NONE,
    OWNER,
    PAIR,
    SERIOUS,
    T_ARRAY,
    T_HOME,
    T_POS,
    T_SHAPE,
    TAPE,
    TAPE_NAME,
    TENSOR,
    V_BASE,
    V_FROZEN,
    V_STAMP,
    V_TAPE,
    VIEW,
)
from tapegrad.tape import MODE_FAST, MODE_OFF

REFUSED = -1
REFERENCES = 0  # which an object's first word counts
# Of an operand: the Tensor, or 0; its array; the number of its shape; what it stands at.
THING, VALUES, KIND, PLACE = 0, 1, 2, 3
SECOND_CLASS, FIRST_CLASS = 18, 16  # in the word
TYPE, ITEMS = FIELDS["object_type"][0] >> 3, FIELDS["tuple_items"][0] >> 3
ARRAY_DATA, ARRAY_SHAPE = FIELDS["array_data"][0] >> 3, FIELDS["array_shape"][0] >> 3
COUNT, LIST_ITEMS = FIELDS["object_size"][0] >> 3, FIELDS["list_items"][0] >> 3
EDGES = FIELDS["slice_edges"][0] >> 3
WIDE_VALUE = FIELDS["int64_value"][0] >> 3
STRIDES = FIELDS["array_strides"][0] >> 3
ARRAY_BASE = FIELDS["array_base"][0] >> 3
ARRAY_DTYPE = FIELDS["array_dtype"][0] >> 3
NDIM, FLAGS = FIELDS["array_ndim"][0], FIELDS["array_flags"][0]
LOW_HALF = 0xFFFFFFFF


@typed
def number(frame, thing):
    """The value of a Python int."""
    return call1(frame[AS_LONG], thing)


@typed
def put(frame, container, slot, thing):
    """Set a slot or an item that is empty."""
    call1(frame[INCREF], thing)
    i8(container)[slot] = thing
    return 0


@typed
def tape_of_thread(frame):
    """The tape of the running thread, or 0 with an exception set."""
    thread = call1(frame[GET_ID], call0(frame[GET_STATE]))
    if frame[OWNER] == thread:
        return frame[TAPE]
    tape = call2(frame[GET_ATTR], frame[CURRENT], frame[TAPE_NAME])
    if tape != 0:
        call1(frame[DECREF], tape)  # the thread itself holds it
        frame[TAPE] = tape
        frame[OWNER] = thread
    return tape


@typed
def stands(frame, tape, thing):
    """Whether the place of a Tensor counts: on this tape, nowhere, or as a view that is current."""
    home = i8(thing)[frame[T_HOME]]
    if home == frame[NONE] or home == tape:
        return 1
    if i8(home)[TYPE] != frame[VIEW]:
        return 0
    view = i8(home)
    if view[frame[V_TAPE]] != tape or view[frame[V_FROZEN]] != frame[NO_TEXT]:
        return 0
    base = view[frame[V_BASE]]
    if base == frame[NONE]:
        return 1
    return 1 if i8(base)[frame[T_POS]] == view[frame[V_STAMP]] else 0


@typed
def constant(frame, thing):
    """The array of a Python number (a new reference), or 0."""
    array = call2(frame[GET_ITEM], frame[CONSTANTS], thing)
    if array != 0:
        call1(frame[INCREF], array)
        return array
    given = call1(frame[NEW_TUPLE], 1)
    if given != 0:
        put(frame, given, ITEMS, thing)
        array = call3(frame[CALL], frame[CONSTANT], given, 0)
        call1(frame[DECREF], given)
    if array == 0:
        call0(frame[FORGET_ERROR])  # Python will find it again
    return array


@typed
def operand(frame, tape, thing, into, lies):
    """Read an operand; 0 if it is none for this road, or its array does not lie as is asked for.

    The array of a number is held.
    """
    found = i8(into)
    found[THING] = 0
    kind = i8(thing)[TYPE]
    if kind == frame[TENSOR]:
        if not stands(frame, tape, thing):
            return 0
        array = i8(thing)[frame[T_ARRAY]]
        found[VALUES] = array
        found[KIND] = number(frame, i8(thing)[frame[T_SHAPE]])
        found[PLACE] = number(frame, i8(thing)[frame[T_POS]])
        found[THING] = thing
        return 1 if found[KIND] >= 0 and i4(array + FLAGS)[0] & lies == lies else 0
    if kind != frame[FLOAT] and kind != frame[INT]:
        return 0
    array = constant(frame, thing)
    if array == 0:
        return 0
    found[VALUES] = array
    found[KIND] = 0
    found[PLACE] = 0
    return 1


@typed
def recording(frame, tape):
    """1: operations are recorded; 0: they are not; REFUSED: in some way that is not for here."""
    mode = number(frame, i8(tape)[frame[MODE]])
    if mode == MODE_FAST:
        return 1
    if mode == MODE_OFF and i8(tape)[frame[INFERENCE]] == frame[FALSE]:
        return 0
    return REFUSED


@typed
def line_of(frame, lines, learn, one, two, one_at, two_at):
    """The line of two numbers in a table, which Python fills; 0 with an exception set."""
    pair = (one << 32 | two) + 1
    line = lines + ((one * 31 + two) & (LINES - 1)) * LINE * 8
    if i8(line)[PAIR] != pair:
        numbers = call1(frame[NEW_TUPLE], 2)
        if numbers == 0:
            return 0
        put(frame, numbers, ITEMS, one_at)
        put(frame, numbers, ITEMS + 1, two_at)
        done = call3(frame[CALL], learn, numbers, 0)
        call1(frame[DECREF], numbers)
        if done == 0:
            return 0
        call1(frame[DECREF], done)
    return line


@typed
def line_of_shapes(frame, lines, learn, first, second):
    """The line of the shapes of two Tensors."""
    one, two = i8(first), i8(second)
    one_at, two_at = i8(one[THING])[frame[T_SHAPE]], i8(two[THING])[frame[T_SHAPE]]
    return line_of(frame, lines, learn, one[KIND], two[KIND], one_at, two_at)


@typed
def array_of(frame, dtype, ndim, lengths):
    """A new array, whose elements are not set yet, or 0 with an exception set."""
    call1(frame[INCREF], dtype)
    return call8(frame[NEW_ARRAY], frame[ARRAY], dtype, ndim, lengths, 0, 0, 0, 0)


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
def unexceptional(frame, result):
    """A new array that was computed, or REFUSED: an exception of arithmetic came about."""
    if call1(frame[EXCEPTIONS], frame[SERIOUS]) & LOW_HALF != 0:
        call1(frame[DECREF], result)
        return REFUSED
    return result


@typed
def count_of(array):
    """How many elements an array has."""
    count = 1
    for k in range(i4(array + NDIM)[0]):
        count *= i8(i8(array)[ARRAY_SHAPE])[k]
    return count
