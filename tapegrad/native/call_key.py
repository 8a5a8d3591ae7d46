"""The key of a call that makes views, as words that can be compared.

Two calls with the same words make the same view of two Tensors.  First come the function, and type
and layout of the operand; then the arguments: None and `...` are words, an int is its type and its
value, a slice its type and what it is made of, a tuple or a list its type, its length and items.
Of anything else nothing is said here, nor of what is equal to an int and is none.
"""

from tapegrad.kernels.memory import address, call1, call2, call4, i4, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED
from tapegrad.native.abi import KEY_WORDS, VIEW_LINES, ViewKey, ViewLine
from tapegrad.native.pyobjects import (
    ARRAY_DTYPE,
    ARRAY_SHAPE,
    COUNT,
    FLAGS,
    INT64_VALUE,
    ITEMS,
    LIST_ITEMS,
    LOW_HALF,
    NDIM,
    REFUSED,
    SLICE_FIELDS,
    STRIDES,
    TYPE,
    typed,
)

SPARE = 8  # words of the largest item, a slice
MIXING = -7046029254386353131  # 2**64 over the golden ratio, as a signed number
HIGH_BITS = 40


@typed
def plain_words(frame, obj, into, n):
    """Write the words of an int (NumPy's, too), None or `...` behind `n` others.

    Returns how many they are then, or REFUSED.
    """
    words = i8(into)
    if obj == frame.none or obj == frame.ellipsis:
        words[n] = obj
        return n + 1
    if i8(obj)[TYPE] == frame.int64_type:
        words[n], words[n + 1] = frame.int64_type, i8(obj)[INT64_VALUE]
        return n + 2
    if i8(obj)[TYPE] != frame.int_type:
        return REFUSED
    beyond = room_i8(1)
    beyond[0] = 0
    words[n] = frame.int_type
    words[n + 1] = call2(frame.PyLong_AsLongLongAndOverflow, obj, address(beyond))
    return n + 2 if beyond[0] & LOW_HALF == 0 else REFUSED


@typed
def item_words(frame, obj, into, n):
    """The same of a slice, too."""
    if n > KEY_WORDS - SPARE:
        return REFUSED
    if i8(obj)[TYPE] != frame.slice_type:
        return plain_words(frame, obj, into, n)
    i8(into)[n] = frame.slice_type
    n += 1
    for k in range(3):
        n = plain_words(frame, i8(obj)[SLICE_FIELDS + k], into, n)
        if n == REFUSED:
            return REFUSED
    return n


@typed
def argument_words(frame, obj, into, n):
    """The same of a tuple or a list of such things, too."""
    kind = i8(obj)[TYPE]
    if kind == frame.tuple_type or kind == frame.size_type:
        items = obj + ITEMS * 8
    elif kind == frame.list_type:
        items = i8(obj)[LIST_ITEMS]
    else:
        return item_words(frame, obj, into, n)
    if n > KEY_WORDS - SPARE:
        return REFUSED
    count = i8(obj)[COUNT]
    i8(into)[n], i8(into)[n + 1] = kind, count
    n += 2
    for k in range(count):
        n = item_words(frame, i8(items)[k], into, n)
        if n == REFUSED:
            return REFUSED
    return n


@typed
def operand_words(frame, obj, into, n):
    """The same of the Tensor that is seen: how its array lies."""
    if i8(obj)[TYPE] != frame.tensor_type:
        return REFUSED
    array = i8(obj)[frame.t_a]
    ndim = i4(array + NDIM)[0]
    if i8(array)[TYPE] != frame.array_type or i4(array + FLAGS)[0] & ALIGNED == 0:
        return REFUSED
    if 2 * ndim > KEY_WORDS // 2:
        return REFUSED
    words = i8(into)
    words[n], words[n + 1] = i8(array)[ARRAY_DTYPE], ndim
    n += 2
    for k in range(ndim):
        words[n + k] = i8(i8(array)[ARRAY_SHAPE])[k]
        words[n + ndim + k] = i8(i8(array)[STRIDES])[k]
    return n + 2 * ndim


@typed
def call_words(frame, function, given, named, into):
    """Write the words of a call; how many they are, or REFUSED."""
    count = i8(given)[COUNT]
    if count == 0:
        return REFUSED
    i8(into)[0] = function
    n = operand_words(frame, i8(given)[ITEMS], into, 1)
    for k in range(1, count):
        if n == REFUSED:
            return REFUSED
        n = argument_words(frame, i8(given)[ITEMS + k], into, n)
    if n == REFUSED or call1(frame.PyDict_Size, named) == 0:
        return n
    state = room_i8(3)
    state[0] = 0
    name_at = address(state) + 8
    while call4(frame.PyDict_Next, named, address(state), name_at, name_at + 8) & LOW_HALF != 0:
        if n > KEY_WORDS - SPARE:
            return REFUSED
        i8(into)[n] = state[1]
        n = argument_words(frame, state[2], into, n + 1)
        if n == REFUSED:
            return REFUSED
    return n


@typed
def hash_of(words_at, count):
    """A number that tells most calls apart."""
    hashed = 0
    for k in range(count):
        hashed = (hashed ^ i8(words_at)[k]) * MIXING
        hashed ^= hashed >> HIGH_BITS
    return hashed


@typed
def line_at(frame, hashed, second):
    """Where a line of a call stands: the one it is looked for first, or second."""
    return address(ViewLine(frame.view_cache)[(hashed & (VIEW_LINES - 1)) ^ second])


@typed
def is_about(line, words_at, count):
    """Whether a line is about a call."""
    key_at = ViewLine(line).key
    if key_at == 0 or ViewKey(key_at).count != count:
        return 0
    words = i8(address(ViewKey(key_at)[1]))
    for k in range(count):
        if words[k] != i8(words_at)[k]:
            return 0
    return 1


@typed
def line_of_call(frame, hashed, words_at, count):
    """The line about a call, or 0."""
    for second in range(2):
        line = line_at(frame, hashed, second)
        if is_about(line, words_at, count):
            return line
    return 0


@typed
def line_to_learn(frame, hashed):
    """The line that shall be about a call, which was met before; 0 where it was not, but now is."""
    first, second = line_at(frame, hashed, 0), line_at(frame, hashed, 1)
    if ViewLine(first).last_hash != hashed:
        ViewLine(first).last_hash = hashed
        return 0
    return second if ViewLine(first).key != 0 and ViewLine(second).key == 0 else first
