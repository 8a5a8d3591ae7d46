"""Call NumPy's ufunc loops over broadcast operands, and its sum."""

from tapegrad.kernels.memory import address, call1, call4, i8, room_i8
from tapegrad.native.abi import (
    NO_OPERAND,
    NULL,
    OPERAND_A,
    OPERAND_B,
    RESULT,
    Operand,
    OpRow,
    UfuncLoop,
)
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    F4_SIZE,
    FIRST_CLASS,
    LOW_HALF,
    SECOND_CLASS,
    count_of,
    typed,
)
from tapegrad.tape.tape import COLUMN, FLAT
from tapegrad.tape.tape import SCALAR as AS_SCALAR


@typed
def step(loop, data, inputs, bases, classes, count, length, itemsize, result_size):
    """One loop of NumPy over the elements, row by row where an operand is a row or a column."""
    base, kind = i8(bases), i8(classes)
    arguments = room_i8(3)
    paces = room_i8(3)
    size = room_i8(1)
    rows = 1
    size[0] = count
    if length:
        rows = count // length
        size[0] = length
    for row in range(rows):
        for k in range(inputs + 1):
            shape = kind[k]
            at = base[k]
            paces[k] = itemsize if k < inputs else result_size
            if shape == FLAT:
                at += row * size[0] * paces[k]
            elif shape == AS_SCALAR:
                paces[k] = 0
            elif shape == COLUMN:
                at += row * itemsize
                paces[k] = 0
            if size[0] == 1 and k < inputs:
                paces[k] = 0  # as NumPy has it, whose powers look whether the exponent moves
            arguments[k] = at
        call4(loop, address(arguments), address(size), address(paces), data)
    return 0


@typed
def has_loop(row_at, itemsize):
    """Whether an operation has a loop over elements of this size."""
    row = OpRow(row_at)
    loops = UfuncLoop(address(row.loops_f4 if itemsize == F4_SIZE else row.loops))
    return 1 if loops.function != 0 else 0


@typed
def compute(frame, row_at, first, second, result, bits, length, itemsize):
    """Fill a new array; 0 if an exception of arithmetic came about."""
    row = OpRow(row_at)
    count = count_of(result)
    sources = room_i8(4)
    shapes = room_i8(4)
    sources[OPERAND_A] = i8(Operand(first).array)[ARRAY_DATA]
    shapes[OPERAND_A] = (bits >> FIRST_CLASS) & 3
    if second != 0:
        sources[OPERAND_B] = i8(Operand(second).array)[ARRAY_DATA]
        shapes[OPERAND_B] = (bits >> SECOND_CLASS) & 3
    sources[RESULT] = i8(result)[ARRAY_DATA]
    shapes[RESULT] = FLAT
    sources[NULL] = address(frame.null)
    shapes[NULL] = AS_SCALAR
    bases = room_i8(3)
    classes = room_i8(3)
    loops = UfuncLoop(address(row.loops_f4 if itemsize == F4_SIZE else row.loops))
    for k in range(2):
        if loops[k].function != 0:
            inputs = 0
            for j in range(2):
                source = loops[k].first if j == 0 else loops[k].second
                if source != NO_OPERAND:
                    bases[inputs] = sources[source]
                    classes[inputs] = shapes[source]
                    inputs += 1
            bases[inputs] = sources[RESULT]
            classes[inputs] = FLAT
            step(
                loops[k].function,
                loops[k].data,
                inputs,
                address(bases),
                address(classes),
                count,
                length,
                itemsize,
                1 if row.is_boolean else itemsize,
            )
    return 1 if call1(frame.fetestexcept, frame.fp_flags) & LOW_HALF == 0 else 0
