"""Record a call of a custom rule natively.

What the path of small Tensors is made of is compiled once more for it: LLVM would no longer inline
there what is called here as well.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call3, i4, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED_IN_C_ORDER, SINGLE
from tapegrad.native.abi import COPY, NONE, T_ARRAY, T_HOME, T_POS, TENSOR
from tapegrad.native.append import completed, finish
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_SHAPE,
    COUNT,
    FLAGS,
    ITEMS,
    LIST_ITEMS,
    NARROW_SIZE,
    NDIM,
    OPERAND,
    PLACE,
    REFUSED,
    THING,
    TYPE,
    WIDE_SIZE,
    count_of,
    decref,
    floats_of,
    incref,
    next_of,
    number,
    tape_of_thread,
)
from tapegrad.tape.tape import NARROW


@typed
def record_call(frame, tape, given):
    """The Tensor of a call that is recorded, 0 with an exception set, or REFUSED.

    Given are the word of the record, but for the dtype; what the record keeps; an array, of which a
    new Tensor gets a copy, or a Tensor without a place; the arguments, as a tuple, and the list of
    their places; and what a Tensor of the result says in `_s`.
    """
    word, entry, made = number(frame, i8(given)[0]), i8(given)[1], i8(given)[2]
    arguments, places, short_at = i8(given)[3], i8(given)[4], i8(given)[5]
    count, short, words = i8(arguments)[COUNT], number(frame, short_at), room_i8(12)
    if count > 3 or short == -1:
        return REFUSED
    first = address(words)
    for k in range(count):
        one = i8(first + 8 * OPERAND * k)
        one[THING] = i8(arguments)[ITEMS + k]
        one[PLACE] = number(frame, i8(i8(places)[LIST_ITEMS])[k])
    second = first + 8 * OPERAND if count > 1 else 0
    third = first + 16 * OPERAND if count > 2 else 0
    shape = NARROW - short if short < 0 else short
    word |= SINGLE if short < 0 else 0
    if i8(made)[TYPE] == frame[TENSOR]:
        old = i8(made)
        array, place, home = old[frame[T_ARRAY]], old[frame[T_POS]], old[frame[T_HOME]]
        done = finish(frame, tape, made, 1, first, second, third, word, shape, 0, entry, array)
        if done != 1:
            return done
        incref(made)
        decref(frame, place)
        decref(frame, home)
        return made
    if i4(made + FLAGS)[0] & ALIGNED_IN_C_ORDER != ALIGNED_IN_C_ORDER:
        return REFUSED
    itemsize = NARROW_SIZE if short < 0 else WIDE_SIZE
    result = floats_of(frame, itemsize, i4(made + NDIM)[0], i8(made)[ARRAY_SHAPE])
    if result == 0:
        return 0
    call3(frame[COPY], i8(result)[ARRAY_DATA], i8(made)[ARRAY_DATA], count_of(made) * itemsize)
    incref(entry)
    incref(short_at)
    return completed(
        frame, tape, 1, first, second, third, word, shape, 0, short_at, entry, result,
        next_of(frame, tape),
    )  # fmt: skip


def custom(frame_at, kind, code, given, nothing):
    """`record_call` as CPython calls it: the Tensor, None where it is refused, or 0."""
    frame = i8(frame_at)
    tape = tape_of_thread(frame)
    if tape == 0:
        return 0
    found = record_call(frame, tape, given)
    if found == REFUSED:
        incref(frame[NONE])
        return frame[NONE]
    return found
