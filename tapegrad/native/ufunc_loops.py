"""Call NumPy's ufunc loops over broadcast operands, and its sum."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call1, call4, i8, room_i8
from tapegrad.native.abi import (
    DATA,
    EXCEPTIONS,
    FROM,
    LOOP,
    NARROW_STEPS,
    NOTHING,
    NOUGHT,
    SERIOUS,
    STEP,
    STEPS,
    TRUTH,
    WITH,
)
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    FIRST_CLASS,
    LOW_HALF,
    NARROW_SIZE,
    SECOND_CLASS,
    VALUES,
    count_of,
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
def compute(frame, row_at, first, second, result, bits, length, itemsize):
    """Fill a new array; 0 if an exception of arithmetic came about."""
    row = i8(row_at)
    count = count_of(result)
    sources = room_i8(4)
    shapes = room_i8(4)
    sources[0] = i8(i8(first)[VALUES])[ARRAY_DATA]
    shapes[0] = (bits >> FIRST_CLASS) & 3
    if second != 0:
        sources[1] = i8(i8(second)[VALUES])[ARRAY_DATA]
        shapes[1] = (bits >> SECOND_CLASS) & 3
    sources[2] = i8(result)[ARRAY_DATA]
    shapes[2] = FLAT
    sources[3] = address(frame) + NOUGHT * 8
    shapes[3] = AS_SCALAR
    bases = room_i8(3)
    classes = room_i8(3)
    for k in range(2):
        at = (NARROW_STEPS if itemsize == NARROW_SIZE else STEPS) + k * STEP
        if row[at + LOOP] != 0:
            inputs = 0
            for j in range(2):
                source = row[at + (FROM if j == 0 else WITH)]
                if source != NOTHING:
                    bases[inputs] = sources[source]
                    classes[inputs] = shapes[source]
                    inputs += 1
            bases[inputs] = sources[2]
            classes[inputs] = FLAT
            step(
                row[at + LOOP],
                row[at + DATA],
                inputs,
                address(bases),
                address(classes),
                count,
                length,
                itemsize,
                1 if row[TRUTH] else itemsize,
            )
    return 1 if call1(frame[EXCEPTIONS], frame[SERIOUS]) & LOW_HALF == 0 else 0
