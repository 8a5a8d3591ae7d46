"""Read Python objects in compiled code: numbers, the thread's tape, operands, tables."""

import math
import sys

from tapegrad.kernels.flags import typed
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
from tapegrad.native.abi import (
    ARRAY,
    AS_LONG,
    AS_LONG_IF,
    CALL,
    CLEAR_DICT,
    CONSTANTS,
    CURRENT,
    DECREF,
    DICT_SIZE,
    EXCEPTIONS,
    F4,
    F8,
    FALSE,
    FLOAT,
    FORGET_ERROR,
    GET_ATTR,
    GET_ID,
    GET_ITEM,
    GET_STATE,
    INFERENCE,
    INT,
    LINE,
    LINES,
    MODE,
    NARROW_CONSTANTS,
    NARROW_LINE,
    NEW_ARRAY,
    NEW_TUPLE,
    NEXT,
    NO_TEXT,
    NONE,
    OWNER,
    PAIR,
    SERIOUS,
    SET_ITEM,
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
from tapegrad.tape.tape import MODE_FAST, MODE_OFF, NARROW

REFUSED = -1
REFERENCES = 0  # which an object's first word counts
IMMORTALS = sys.version_info >= (3, 12)  # objects whose count, in 32 bits, is negative
# Of an operand: the Tensor, or 0 for a number; its array; the number of its shape; what it stands
# at.
THING, VALUES, KIND, PLACE, OPERAND = range(5)
UNREAD = 1  # in place of the Tensor
WIDE_SIZE, NARROW_SIZE = 8, 4  # bytes of an element in float64 and float32
LARGE_SIZE = 16  # in their place: of float64, but for the path of large Tensors
LEAST = 1 << 14  # elements of these, as `tensor.SHORT` and `ops.large.COMPILED` say
SECOND_CLASS, FIRST_CLASS = 18, 16  # in the word
TYPE, ITEMS = FIELDS["object_type"][0] >> 3, FIELDS["tuple_items"][0] >> 3
ARRAY_DATA, ARRAY_SHAPE = FIELDS["array_data"][0] >> 3, FIELDS["array_shape"][0] >> 3
COUNT, LIST_ITEMS = FIELDS["object_size"][0] >> 3, FIELDS["list_items"][0] >> 3
EDGES = FIELDS["slice_edges"][0] >> 3
WIDE_VALUE = FIELDS["int64_value"][0] >> 3
FLOAT_VALUE = FIELDS["float_value"][0] >> 3
STRIDES = FIELDS["array_strides"][0] >> 3
ARRAY_BASE = FIELDS["array_base"][0] >> 3
ARRAY_DTYPE = FIELDS["array_dtype"][0] >> 3
INT_SIZE, INT_DIGIT = FIELDS["int_size"][0] >> 3, FIELDS["int_digit"][0]
NDIM, FLAGS = FIELDS["array_ndim"][0], FIELDS["array_flags"][0]
LOW_HALF = 0xFFFFFFFF
CONSTANTS_KNOWN = 256  # arrays of numbers that are kept, as in `tapegrad.dispatch.fast_path`


@typed
def number(frame, thing):
    """The value of a Python int."""
    size = i8(thing)[INT_SIZE]
    if size == ONE_DIGIT:
        return i4(thing + INT_DIGIT)[0]
    return 0 if size == NO_DIGIT else call1(frame[AS_LONG], thing)


@typed
def incref(thing):
    """Count one more reference."""
    if not IMMORTALS or i4(thing)[0] >= 0:
        i8(thing)[REFERENCES] += 1
    return 0


@typed
def decref(frame, thing):
    """Count one reference less; of the last CPython is told."""
    if i8(thing)[REFERENCES] == 1:
        call1(frame[DECREF], thing)
    elif not IMMORTALS or i4(thing)[0] >= 0:
        i8(thing)[REFERENCES] -= 1
    return 0


@typed
def next_of(frame, tape):
    """What stands in `next`, as a new reference: while it is held nothing else has its address."""
    token = i8(tape)[frame[NEXT]]
    incref(token)
    return token


@typed
def put(frame, container, slot, thing):
    """Set a slot or an item that is empty."""
    incref(thing)
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
        decref(frame, tape)  # the thread itself holds it
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
    made = call1(frame[NEW_TUPLE], size)
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
    return call8(frame[NEW_ARRAY], frame[ARRAY], dtype, ndim, lengths, 0, 0, 0, 0)


@typed
def floats_of(frame, itemsize, ndim, lengths):
    """A new array of float64 or float32, by the bytes of an element: see `array_of`."""
    return array_of(frame, frame[F4 if itemsize == NARROW_SIZE else F8], ndim, lengths)


@typed
def new_constant(frame, thing, narrow):
    """The array of a Python number, or 0 where Python has to see to it."""
    beyond = room_i8(1)
    if i8(thing)[TYPE] == frame[FLOAT]:
        value = f8(thing)[FLOAT_VALUE]
    else:
        value = float(call2(frame[AS_LONG_IF], thing, address(beyond)))
    if beyond[0] & LOW_HALF != 0:
        return 0
    array = array_of(frame, frame[F4 if narrow else F8], 0, 0)
    if array == 0:
        call0(frame[FORGET_ERROR])
        return 0
    at = i8(array)[ARRAY_DATA]
    if narrow:
        f4(at)[0] = value
        if math.isinf(f4(at)[0]) and not math.isinf(value):
            decref(frame, array)
            return 0
    else:
        f8(at)[0] = value
    i4(array + FLAGS)[0] &= ~WRITEABLE
    if value != 0.0:  # 0 and -0 are equal keys
        known = frame[NARROW_CONSTANTS if narrow else CONSTANTS]
        if call1(frame[DICT_SIZE], known) > CONSTANTS_KNOWN:
            call1(frame[CLEAR_DICT], known)
        if call3(frame[SET_ITEM], known, thing, array) & LOW_HALF != 0:
            call0(frame[FORGET_ERROR])
    return array


@typed
def constant(frame, thing, itemsize):
    """The array of a Python number (a new reference), or 0; the last few hundred are kept."""
    narrow = itemsize == NARROW_SIZE
    array = call2(frame[GET_ITEM], frame[NARROW_CONSTANTS if narrow else CONSTANTS], thing)
    if array == 0:
        return new_constant(frame, thing, narrow)
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
    if i8(array)[TYPE] != frame[ARRAY] or i8(array)[ARRAY_DTYPE] != frame[F8]:
        return 0
    return 1 if count_of(array) >= LEAST else 0


@typed
def of_tensor(frame, tape, thing, into, lies):
    """Read a Tensor; how many bytes an element takes, or 0: it is none for this path.

    That may be for how its array lies, if not as is asked for.
    """
    if not stands(frame, tape, thing):
        return 0
    found = i8(into)
    array, short = i8(thing)[frame[T_ARRAY]], number(frame, i8(thing)[frame[T_SHAPE]])
    found[THING], found[VALUES] = thing, array
    found[KIND] = short if short >= -1 else NARROW - short
    found[PLACE] = number(frame, i8(thing)[frame[T_POS]])
    if i4(array + FLAGS)[0] & lies != lies:
        return 0
    if short == -1:
        return LARGE_SIZE if lies == ALIGNED_IN_C_ORDER and is_large(frame, array) else 0
    return WIDE_SIZE if short >= 0 else NARROW_SIZE


@typed
def of_number(frame, thing, into, itemsize):
    """Read a Python number, whose array is then held; 0 if it is none for this path."""
    kind = i8(thing)[TYPE]
    if kind != frame[FLOAT] and kind != frame[INT]:
        return 0
    array = constant(frame, thing, itemsize)
    if array == 0:
        return 0
    found = i8(into)
    found[THING], found[VALUES], found[KIND], found[PLACE] = 0, array, 0, 0
    return 1


@typed
def operand(frame, tape, thing, into, lies):
    """Read an operand of float64, a Tensor or a number; 0 if it is none for this path."""
    if i8(thing)[TYPE] == frame[TENSOR]:
        return 1 if of_tensor(frame, tape, thing, into, lies) == WIDE_SIZE else 0
    return of_number(frame, thing, into, WIDE_SIZE)


@typed
def operands(frame, tape, given, begin, end, words, lies):
    """Read operands, each into some words; how many bytes an element of them takes, or 0.

    LARGE_SIZE: each is large, or one number.  Whatever is returned, `let_go` has to follow.  A
    number is of the Tensors' type.
    """
    sizes, whole = 0, 0
    for k in range(begin, end):
        one = words + 8 * OPERAND * k
        i8(one)[THING], i8(one)[VALUES] = UNREAD, 0
    for k in range(begin, end):
        thing = i8(given)[k]
        if i8(thing)[TYPE] == frame[TENSOR]:
            one = words + 8 * OPERAND * k
            found = of_tensor(frame, tape, thing, one, lies)
            if found == 0:
                return 0
            if found == WIDE_SIZE and i8(one)[KIND] != 0:
                whole = 1
            sizes |= found
    itemsize = LARGE_SIZE if sizes == LARGE_SIZE | WIDE_SIZE and not whole else sizes
    if itemsize != WIDE_SIZE and itemsize != NARROW_SIZE and itemsize != LARGE_SIZE:
        return 0
    for k in range(begin, end):
        one = words + 8 * OPERAND * k
        if i8(one)[THING] == UNREAD and not of_number(frame, i8(given)[k], one, itemsize):
            return 0
    return itemsize


@typed
def let_go(frame, begin, end, words):
    """Let go of the arrays of numbers among operands."""
    for k in range(begin, end):
        one = i8(words + 8 * OPERAND * k)
        if one[THING] == 0 and one[VALUES] != 0:
            decref(frame, one[VALUES])


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
    """The line of two numbers in a table; 0 with an exception set, or REFUSED.

    Then Python has filled it, and what was read before may be another by now.
    """
    pair = (one << 32 | two) + 1
    line = lines + ((one * 31 + two) & (LINES - 1)) * LINE * 8
    if i8(line)[PAIR] == pair:
        return line
    numbers = tuple_of(frame, 2, one_at, two_at, 0, 0, 0)
    if numbers == 0:
        return 0
    done = call3(frame[CALL], learn, numbers, 0)
    decref(frame, numbers)
    if done == 0:
        return 0
    decref(frame, done)
    return REFUSED


@typed
def stays(frame, one):
    """Whether an operand is as it was read, whatever came in between; its array is held."""
    found = i8(one)
    if found[THING] == 0:
        return 1
    thing = i8(found[THING])
    same = thing[frame[T_ARRAY]] == found[VALUES]
    return 1 if same and number(frame, thing[frame[T_POS]]) == found[PLACE] else 0


@typed
def line_of_shapes(frame, lines, learn, first, second, itemsize):
    """The line of the shapes of two Tensors: see `line_of`."""
    one, two = i8(first), i8(second)
    one_at, two_at = i8(one[THING])[frame[T_SHAPE]], i8(two[THING])[frame[T_SHAPE]]
    kind = two[KIND] | (NARROW_LINE if itemsize == NARROW_SIZE else 0)
    return line_of(frame, lines, learn, one[KIND], kind, one_at, two_at)


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
        decref(frame, result)
        return REFUSED
    return result
