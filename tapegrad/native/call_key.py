"""The key of a call that makes views, as words that can be compared.

Two calls with the same words make the same view of two Tensors.  First come the function, and type
and layout of the operand; then the arguments: None and `...` are words, an int is its type and its
value, a slice its type and what it is made of, a tuple or a list its type, its length and items.
Of anything else nothing is said here, nor of what is equal to an int and is none.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call1, call2, call4, i4, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED
from tapegrad.native.abi import (
    ARRAY,
    AS_LONG_IF,
    BLOCK_AT,
    DICT_SIZE,
    DOTS,
    INT,
    LIST,
    MET,
    NEXT_ITEM,
    NONE,
    SIZE,
    SLICE,
    T_ARRAY,
    TENSOR,
    TUPLE,
    VIEW_CACHE,
    VIEW_LINE,
    VIEW_LINES,
    WIDE_INT,
    WORDS,
)
from tapegrad.native.pyobjects import (
    ARRAY_DTYPE,
    ARRAY_SHAPE,
    COUNT,
    EDGES,
    FLAGS,
    ITEMS,
    LIST_ITEMS,
    LOW_HALF,
    NDIM,
    REFUSED,
    STRIDES,
    TYPE,
    WIDE_VALUE,
)

SPARE = 8  # words of the largest item, a slice
MIXING = -7046029254386353131  # 2**64 over the golden ratio, as a signed number
HIGH_BITS = 40


@typed
def plain_words(frame, thing, into, n):
    """Write the words of an int (NumPy's, too), None or `...` behind `n` others.

    Returns how many they are then, or REFUSED.
    """
    words = i8(into)
    if thing == frame[NONE] or thing == frame[DOTS]:
        words[n] = thing
        return n + 1
    if i8(thing)[TYPE] == frame[WIDE_INT]:
        words[n], words[n + 1] = frame[WIDE_INT], i8(thing)[WIDE_VALUE]
        return n + 2
    if i8(thing)[TYPE] != frame[INT]:
        return REFUSED
    beyond = room_i8(1)
    beyond[0] = 0
    words[n] = frame[INT]
    words[n + 1] = call2(frame[AS_LONG_IF], thing, address(beyond))
    return n + 2 if beyond[0] & LOW_HALF == 0 else REFUSED


@typed
def item_words(frame, thing, into, n):
    """The same of a slice, too."""
    if n > WORDS - SPARE:
        return REFUSED
    if i8(thing)[TYPE] != frame[SLICE]:
        return plain_words(frame, thing, into, n)
    i8(into)[n] = frame[SLICE]
    n += 1
    for k in range(3):
        n = plain_words(frame, i8(thing)[EDGES + k], into, n)
        if n == REFUSED:
            return REFUSED
    return n


@typed
def argument_words(frame, thing, into, n):
    """The same of a tuple or a list of such things, too."""
    kind = i8(thing)[TYPE]
    if kind == frame[TUPLE] or kind == frame[SIZE]:
        items = thing + ITEMS * 8
    elif kind == frame[LIST]:
        items = i8(thing)[LIST_ITEMS]
    else:
        return item_words(frame, thing, into, n)
    if n > WORDS - SPARE:
        return REFUSED
    count = i8(thing)[COUNT]
    i8(into)[n], i8(into)[n + 1] = kind, count
    n += 2
    for k in range(count):
        n = item_words(frame, i8(items)[k], into, n)
        if n == REFUSED:
            return REFUSED
    return n


@typed
def operand_words(frame, thing, into, n):
    """The same of the Tensor that is seen: how its array lies."""
    if i8(thing)[TYPE] != frame[TENSOR]:
        return REFUSED
    array = i8(thing)[frame[T_ARRAY]]
    ndim = i4(array + NDIM)[0]
    if i8(array)[TYPE] != frame[ARRAY] or i4(array + FLAGS)[0] & ALIGNED == 0:
        return REFUSED
    if 2 * ndim > WORDS // 2:
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
    if n == REFUSED or call1(frame[DICT_SIZE], named) == 0:
        return n
    state = room_i8(3)
    state[0] = 0
    name_at = address(state) + 8
    while call4(frame[NEXT_ITEM], named, address(state), name_at, name_at + 8) & LOW_HALF != 0:
        if n > WORDS - SPARE:
            return REFUSED
        i8(into)[n] = state[1]
        n = argument_words(frame, state[2], into, n + 1)
        if n == REFUSED:
            return REFUSED
    return n


@typed
def hash_of(words_at, count):
    """A number that tells most calls apart."""
    mixed = 0
    for k in range(count):
        mixed = (mixed ^ i8(words_at)[k]) * MIXING
        mixed ^= mixed >> HIGH_BITS
    return mixed


@typed
def line_at(frame, mixed, second):
    """Where a line of a call stands: the one it is looked for first, or second."""
    return frame[VIEW_CACHE] + ((mixed & (VIEW_LINES - 1)) ^ second) * VIEW_LINE * 8


@typed
def is_about(line, words_at, count):
    """Whether a line is about a call."""
    block_at = i8(line)[BLOCK_AT]
    if block_at == 0 or i8(block_at)[0] != count:
        return 0
    for k in range(count):
        if i8(block_at)[1 + k] != i8(words_at)[k]:
            return 0
    return 1


@typed
def line_of_call(frame, mixed, words_at, count):
    """The line about a call, or 0."""
    for second in range(2):
        line = line_at(frame, mixed, second)
        if is_about(line, words_at, count):
            return line
    return 0


@typed
def line_to_learn(frame, mixed):
    """The line that shall be about a call, which was met before; 0 where it was not, but now is."""
    first, second = line_at(frame, mixed, 0), line_at(frame, mixed, 1)
    if i8(first)[MET] != mixed:
        i8(first)[MET] = mixed
        return 0
    return second if i8(first)[BLOCK_AT] != 0 and i8(second)[BLOCK_AT] == 0 else first
