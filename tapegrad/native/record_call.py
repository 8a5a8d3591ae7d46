"""Record a call of a custom rule natively.

What the path of small Tensors is made of is compiled once more for it: LLVM would no longer inline
there what is called here as well.
"""

from tapegrad.kernels.memory import address, call3, i4, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import ALIGNED_IN_C_ORDER, SINGLE
from tapegrad.native.abi import MOST_OPERANDS, OPERANDS, Frame, Operand
from tapegrad.native.append import new_tensor, record_tensor
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_SHAPE,
    COUNT,
    F4_SIZE,
    F8_SIZE,
    FLAGS,
    ITEMS,
    LIST_ITEMS,
    NDIM,
    REFUSED,
    TYPE,
    count_of,
    decref,
    floats_of,
    hold_next,
    incref,
    int_value,
    tape_of_thread,
    typed,
)
from tapegrad.tape.record_format import F4_SHAPE


@typed
def record_call(frame, tape, given):
    """The Tensor of a call that is recorded, 0 with an exception set, or REFUSED.

    Given are the word of the record, but for the dtype; what the record keeps; an array, of which a
    new Tensor gets a copy, or a Tensor without a place; the arguments, as a tuple, and the list of
    their places; and what a Tensor of the result says in `_s`.
    """
    word, entry, made = int_value(frame, i8(given)[0]), i8(given)[1], i8(given)[2]
    arguments, places, short_at = i8(given)[3], i8(given)[4], i8(given)[5]
    count, short = i8(arguments)[COUNT], int_value(frame, short_at)
    operands = Operand(address(room_i8(OPERANDS)))
    if count > MOST_OPERANDS or short == -1:
        return REFUSED
    for k in range(count):
        operands[k].tensor = i8(arguments)[ITEMS + k]
        operands[k].position = int_value(frame, i8(i8(places)[LIST_ITEMS])[k])
    shape = F4_SHAPE - short if short < 0 else short
    word |= SINGLE if short < 0 else 0
    if i8(made)[TYPE] == frame.tensor_type:
        old = i8(made)
        array, place, home = old[frame.t_a], old[frame.t_pos], old[frame.t_home]
        done = record_tensor(frame, tape, made, 1, count, operands, word, shape, 0, entry, array)
        if done != 1:
            return done
        incref(made)
        decref(frame, place)
        decref(frame, home)
        return made
    if i4(made + FLAGS)[0] & ALIGNED_IN_C_ORDER != ALIGNED_IN_C_ORDER:
        return REFUSED
    itemsize = F4_SIZE if short < 0 else F8_SIZE
    result = floats_of(frame, itemsize, i4(made + NDIM)[0], i8(made)[ARRAY_SHAPE])
    if result == 0:
        return 0
    call3(frame.memcpy, i8(result)[ARRAY_DATA], i8(made)[ARRAY_DATA], count_of(made) * itemsize)
    incref(entry)
    incref(short_at)
    return new_tensor(
        frame, tape, 1, count, operands, word, shape, 0, short_at, entry, result,
        hold_next(frame, tape),
    )  # fmt: skip


def custom(frame_at, kind, code, given, nothing):
    """`record_call` as CPython calls it: the Tensor, None where it is refused, or 0."""
    frame = Frame(frame_at)
    tape = tape_of_thread(frame)
    if tape == 0:
        return 0
    found = record_call(frame, tape, given)
    if found == REFUSED:
        incref(frame.none)
        return frame.none
    return found
