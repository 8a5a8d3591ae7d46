"""Gather and scatter at chosen places of a Tensor, and record it.

The places are named by a Tensor of integers, by a mask, or by how a view lies.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, f8, i8, room_i8, u1
from tapegrad.kernels.sweep.index_adjoints import FIELD_MASK, cut, length_of, start_of
from tapegrad.kernels.sweep.sweep_abi import (
    ALIGNED_IN_C_ORDER,
    FIELD,
    KEEPS_WRITTEN,
    KIND_ASSIGN,
    KIND_JOIN,
    KIND_MASK,
    KIND_PICK,
    KIND_PUT,
    KIND_SELECT,
    KIND_TRIANGLE,
    KIND_VIEW,
    PLACE_BITS,
)
from tapegrad.kernels.sweep.view_adjoints import (
    clear,
    gather,
    row_count,
    row_length,
    row_pace,
    row_start,
)
from tapegrad.native.abi import BOOL, F8, I8, NONE, PLAN_AT, PLAN_EXTRA, PLAN_SHORT
from tapegrad.native.append import code_of, completed
from tapegrad.native.execute_inplace import announced, copied, copy, may_change, move
from tapegrad.native.execute_ternary import naming
from tapegrad.native.pyobjects import (
    ARRAY_BASE,
    ARRAY_DATA,
    ITEMS,
    OPERAND,
    PLACE,
    REFUSED,
    THING,
    UNREAD,
    VALUES,
    WIDE_SIZE,
    array_of,
    count_of,
    decref,
    incref,
    next_of,
    number,
    operand,
    recording,
    tuple_of,
    unexceptional,
)
from tapegrad.tape.tape import SAVES

# Of a plan's block: what is done (a kind of the walk's); whether the Tensor itself is changed;
# whether an index may count from the end; the record's word, the number of its shape and AUX; where
# among the operands stand what names the places and the value (-1: nowhere); by whose formulas the
# places are read (bits: the Tensor's, the value's); how many operands there are; the dimensions and
# lengths of the result; and the row of the table of strides, which may move, that AUX names.
(
    KIND_OF, CHANGES, NEGATIVE, WORD, SHAPE, AUX, INDEX_AT, VALUE_AT, READS, OPERANDS, NDIM,
    LENGTHS,
) = range(12)  # fmt: skip


@typed
def within(block_at, places_at, count):
    """Whether every index names a place."""
    block, places, good = i8(block_at), i8(places_at), True
    size = (block[AUX] >> 2 * FIELD) & FIELD_MASK
    least = -size if block[NEGATIVE] else 0
    for i in range(count):
        good &= least <= places[i] < size
    return good


@typed
def pick(aux, places_at, count, source_at, to):
    """Read the elements, or rows, that indices name."""
    places, source, target = i8(places_at), f8(source_at), f8(to)
    length = length_of(aux)
    for i in range(count):
        start = start_of(aux, places[i], i)
        for j in range(length):
            target[i * length + j] = source[start + j]


@typed
def put_down(aux, places_at, count, source_at, to):
    """Write, or add, elements or rows where indices say."""
    places, source, target = i8(places_at), f8(source_at), f8(to)
    length, adds = length_of(aux), aux & KEEPS_WRITTEN
    pace = 0 if aux & FIELD_MASK == 1 else 1
    for i in range(count):
        start = start_of(aux, places[i], i)
        for j in range(length):
            value = source[(i * length + j) * pace]
            target[start + j] = target[start + j] + value if adds else value


@typed
def assign(aux, row_at, source_at, to):
    """Write where a view lies, whose row in the table of strides this is."""
    source, target, record = f8(source_at), f8(to), i8(row_at)
    pace = 0 if aux >> PLACE_BITS == 1 else 1
    inner, step = row_length(record), row_pace(record)
    for r in range(row_count(record)):
        at = row_start(record, r)
        for i in range(inner):
            target[at + i * step] = source[(r * inner + i) * pace]


@typed
def fill(mask_at, count, source_at, to):
    """Write one number where a mask holds."""
    mask, target = u1(mask_at), f8(to)
    value = f8(source_at)[0]
    for i in range(count):
        target[i] = value if mask[i] else target[i]


@typed
def select(mask_at, count, source_at, to, most):
    """Read the elements where a mask holds; whether there are as many as there is room for."""
    mask, source, target = u1(mask_at), f8(source_at), f8(to)
    at = 0
    for i in range(count):
        if mask[i]:
            if at < most:
                target[at] = source[i]
            at += 1
    return 1 if at == most else 0


@typed
def read_places(block_at, one_at, result):
    """Fill a new array with what the plan says, and say whether all is as it was."""
    block, operands = i8(block_at), i8(one_at)
    kind, aux, array = block[KIND_OF], block[AUX], operands[VALUES]
    source, to = i8(array)[ARRAY_DATA], i8(result)[ARRAY_DATA]
    row_at = block_at + 8 * (LENGTHS + block[NDIM])
    if kind == KIND_VIEW:
        gather(i8(row_at), source, to, True)
        return 1
    if kind == KIND_JOIN:
        clear(to, count_of(result) * 8)
        assign(0, row_at, source, to)
        return 1
    index = operands[OPERAND + VALUES]
    places = i8(index)[ARRAY_DATA]
    if kind == KIND_SELECT:
        return select(places, count_of(index), source, to, count_of(result))
    pick(aux, places, count_of(index), source, to)
    return 1


@typed
def write_places(block_at, one_at, result):
    """Write into an array what the plan says; the operands follow each other."""
    block, operands = i8(block_at), i8(one_at)
    kind, aux, to = block[KIND_OF], block[AUX], i8(result)[ARRAY_DATA]
    if kind == KIND_TRIANGLE:
        cut(aux, count_of(result), to)
        return 0
    source = i8(operands[block[VALUE_AT] * OPERAND + VALUES])[ARRAY_DATA]
    if kind == KIND_ASSIGN:
        assign(aux, block_at + 8 * (LENGTHS + block[NDIM]), source, to)
        return 0
    index = operands[block[INDEX_AT] * OPERAND + VALUES]
    places = i8(index)[ARRAY_DATA]
    if kind == KIND_MASK:
        fill(places, count_of(index), source, to)
    else:
        put_down(aux, places, count_of(index), source, to)
    return 0


@typed
def reads_of(block_at, one_at):
    """Whether a formula of what is tracked reads the places: bits, the Tensor's and the value's."""
    block, operands = i8(block_at), i8(one_at)
    reads = block[READS] & 1 if operands[PLACE] != 0 else 0
    if block[VALUE_AT] >= 0 and operands[block[VALUE_AT] * OPERAND + PLACE] != 0:
        reads |= block[READS] & 2
    return reads


@typed
def kept(frame, block_at, one_at, extra):
    """What the record keeps: the places, if a formula of what is tracked reads them."""
    block, operands = i8(block_at), i8(one_at)
    size, reads = block[OPERANDS], reads_of(block_at, one_at)
    b = c = d = frame[NONE]
    if reads and block[INDEX_AT] == 1:
        b = operands[OPERAND + VALUES]
    elif reads and block[INDEX_AT] == 2:
        c = operands[2 * OPERAND + VALUES]
    if size == 1:
        c = extra
    elif size == 2:
        d = extra
    return tuple_of(frame, size + 2, frame[NONE], b, c, d, extra)


@typed
def word_of(block_at, one_at):
    """The record's word, which says whether it keeps the places."""
    return i8(block_at)[WORD] | (SAVES if reads_of(block_at, one_at) else 0)


@typed
def tracked_of(one_at):
    """Whether something that requires grad is among the operands."""
    operands = i8(one_at)
    return 1 if operands[PLACE] | operands[OPERAND + PLACE] | operands[2 * OPERAND + PLACE] else 0


@typed
def recorded(frame, tape, block_at, one_at, entry):
    """Record a change that is made; 0 with an exception set."""
    block, codes = i8(block_at), room_i8(3)
    for k in range(block[OPERANDS]):
        operand_at = one_at + 8 * OPERAND * k
        codes[k] = code_of(frame, tape, operand_at)
        if codes[k] == 0 and i8(operand_at)[PLACE] != 0:
            return 0
    return move(
        frame, tape, i8(one_at)[THING], word_of(block_at, one_at), codes[0], codes[1], codes[2],
        block[SHAPE], block[AUX], entry,
    )  # fmt: skip


@typed
def changed(frame, tape, listening, block_at, one_at, extra):
    """Change a Tensor itself; the Tensor, 0 with an exception set, or REFUSED."""
    block, operands = i8(block_at), i8(one_at)
    target = operands[VALUES]
    if not may_change(frame, tape, listening, one_at, 0):
        return REFUSED
    if block[VALUE_AT] >= 0:
        value = operands[block[VALUE_AT] * OPERAND + VALUES]
        if value == target or i8(value)[ARRAY_BASE] != 0:
            return REFUSED
    result = copied(frame, target, WIDE_SIZE)
    if result == 0:
        return 0
    write_places(block_at, one_at, result)
    if unexceptional(frame, result) == REFUSED:
        return REFUSED
    tracked, entry, token = tracked_of(one_at) and listening, frame[NONE], next_of(frame, tape)
    if tracked:
        entry = kept(frame, block_at, one_at, extra)
    else:
        incref(entry)
    if entry == 0:
        decref(frame, token)
        decref(frame, result)
        return 0
    done = announced(frame, tape, token, block[OPERANDS], one_at)
    if done == 1:
        copy(i8(target)[ARRAY_DATA], i8(result)[ARRAY_DATA], WIDE_SIZE * count_of(target))
        if tracked:
            done = recorded(frame, tape, block_at, one_at, entry)
    decref(frame, entry)
    decref(frame, result)
    if done != 1:
        return done
    incref(operands[THING])
    return operands[THING]


@typed
def made(frame, tape, listening, block_at, one_at, plan_at):
    """A new Tensor, or 0 with an exception set, or REFUSED."""
    block, operands, plan = i8(block_at), i8(one_at), i8(plan_at + ITEMS * 8)
    kind = block[KIND_OF]
    if kind == KIND_PICK or kind == KIND_SELECT or kind == KIND_VIEW or kind == KIND_JOIN:
        result = array_of(frame, frame[F8], block[NDIM], block_at + 8 * LENGTHS)
        if result == 0:
            return 0
        if not read_places(block_at, one_at, result):
            decref(frame, result)
            return REFUSED
    else:
        result = copied(frame, operands[VALUES], WIDE_SIZE)
        if result == 0:
            return 0
        write_places(block_at, one_at, result)
        if unexceptional(frame, result) == REFUSED:
            return REFUSED
    tracked, entry, token = tracked_of(one_at) and listening, frame[NONE], next_of(frame, tape)
    if tracked:
        entry = kept(frame, block_at, one_at, plan[PLAN_EXTRA])
    else:
        incref(entry)
    incref(plan[PLAN_SHORT])
    second = one_at + 8 * OPERAND if block[OPERANDS] > 1 else 0
    third = one_at + 16 * OPERAND if block[OPERANDS] > 2 else 0
    return completed(
        frame, tape, tracked, one_at, second, third, word_of(block_at, one_at), block[SHAPE],
        block[AUX], plan[PLAN_SHORT], entry, result, token,
    )  # fmt: skip


@typed
def of_plan(frame, tape, block_at, one_at, plan_at):
    """What a plan makes of operands that are known; 0 with an exception set, or REFUSED."""
    block, operands, plan = i8(block_at), i8(one_at), i8(plan_at + ITEMS * 8)
    listening, kind = recording(frame, tape), block[KIND_OF]
    if listening == REFUSED or operands[THING] == 0:
        return REFUSED
    if kind == KIND_PICK or kind == KIND_PUT:
        index = operands[block[INDEX_AT] * OPERAND + VALUES]
        if not within(block_at, i8(index)[ARRAY_DATA], count_of(index)):
            return REFUSED
    if block[CHANGES]:
        return changed(frame, tape, listening, block_at, one_at, plan[PLAN_EXTRA])
    return made(frame, tape, listening, block_at, one_at, plan_at)


@typed
def moved(frame, tape, thing, plan_at, index, value):
    """A new reference to a result or to the Tensor that was changed, 0 or REFUSED."""
    words = room_i8(12)
    one_at, found = address(words), REFUSED
    block_at = number(frame, i8(plan_at + ITEMS * 8)[PLAN_AT])
    block = i8(block_at)
    words[THING], words[VALUES] = UNREAD, 0
    usable = operand(frame, tape, thing, one_at, ALIGNED_IN_C_ORDER)
    value_at = one_at + 8 * OPERAND * block[VALUE_AT]
    if usable and block[INDEX_AT] >= 0:
        masks = block[KIND_OF] == KIND_MASK or block[KIND_OF] == KIND_SELECT
        dtype = frame[BOOL] if masks else frame[I8]
        usable = naming(frame, tape, index, dtype, one_at + 8 * OPERAND * block[INDEX_AT])
    if block[VALUE_AT] >= 0:
        i8(value_at)[THING], i8(value_at)[VALUES] = UNREAD, 0
        if usable:
            usable = operand(frame, tape, value, value_at, ALIGNED_IN_C_ORDER)
    if usable:
        found = of_plan(frame, tape, block_at, one_at, plan_at)
    if block[VALUE_AT] >= 0 and i8(value_at)[THING] == 0 and i8(value_at)[VALUES] != 0:
        decref(frame, i8(value_at)[VALUES])
    if words[THING] == 0 and words[VALUES] != 0:
        decref(frame, words[VALUES])
    return found
