"""Gather and scatter at chosen places of a Tensor, and record it.

The places are named by a Tensor of integers, by a mask, or by how a view lies.
"""

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
from tapegrad.native.abi import OPERAND_TRIPLE, UNREAD, CallPlan, IndexPlan, Operand
from tapegrad.native.append import input_code, new_tensor
from tapegrad.native.execute_inplace import (
    announce_change,
    copy,
    copy_of,
    may_change,
    record_change,
)
from tapegrad.native.execute_ternary import read_index
from tapegrad.native.pyobjects import (
    ARRAY_BASE,
    ARRAY_DATA,
    F8_SIZE,
    ITEMS,
    REFUSED,
    array_of,
    check_exceptions,
    count_of,
    decref,
    hold_next,
    incref,
    int_value,
    read_operand,
    recording,
    tuple_of,
    typed,
)
from tapegrad.tape.tape import SAVES

# Of a plan's block: what is done (a kind of the compiled sweep's); whether the Tensor itself is
# changed; whether an index may count from the end; the record's word, the number of its shape and
# AUX; where among the operands stand what names the places and the value (-1: nowhere); by whose
# formulas the places are read (bits: the Tensor's, the value's); how many operands there are; the
# dimensions and lengths of the result; and the row of the table of strides, which may move, that
# AUX names.


@typed
def in_bounds(block_at, places_at, count):
    """Whether every index names a place."""
    block, places, good = IndexPlan(block_at), i8(places_at), True
    size = (block.aux >> 2 * FIELD) & FIELD_MASK
    least = -size if block.counts_back else 0
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
def scatter(aux, places_at, count, source_at, to):
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
    block, operands = IndexPlan(block_at), Operand(one_at)
    kind, aux, array = block.kind, block.aux, operands.array
    source, to = i8(array)[ARRAY_DATA], i8(result)[ARRAY_DATA]
    row_at = address(block[1]) + 8 * block.ndim
    if kind == KIND_VIEW:
        gather(i8(row_at), source, to, True)
        return 1
    if kind == KIND_JOIN:
        clear(to, count_of(result) * 8)
        assign(0, row_at, source, to)
        return 1
    index = operands[1].array
    places = i8(index)[ARRAY_DATA]
    if kind == KIND_SELECT:
        return select(places, count_of(index), source, to, count_of(result))
    pick(aux, places, count_of(index), source, to)
    return 1


@typed
def write_places(block_at, one_at, result):
    """Write into an array what the plan says; the operands follow each other."""
    block, operands = IndexPlan(block_at), Operand(one_at)
    kind, aux, to = block.kind, block.aux, i8(result)[ARRAY_DATA]
    if kind == KIND_TRIANGLE:
        cut(aux, count_of(result), to)
        return 0
    source = i8(operands[block.value].array)[ARRAY_DATA]
    if kind == KIND_ASSIGN:
        assign(aux, address(block[1]) + 8 * block.ndim, source, to)
        return 0
    index = operands[block.index].array
    places = i8(index)[ARRAY_DATA]
    if kind == KIND_MASK:
        fill(places, count_of(index), source, to)
    else:
        scatter(aux, places, count_of(index), source, to)
    return 0


@typed
def reads_of(block_at, one_at):
    """Whether a formula of what is tracked reads the places: bits, the Tensor's and the value's."""
    block, operands = IndexPlan(block_at), Operand(one_at)
    reads = block.reads & 1 if operands.position != 0 else 0
    if block.value >= 0 and operands[block.value].position != 0:
        reads |= block.reads & 2
    return reads


@typed
def saved_indices(frame, block_at, one_at, extra):
    """What the record keeps: the places, if a formula of what is tracked reads them."""
    block, operands = IndexPlan(block_at), Operand(one_at)
    size, reads = block.operands, reads_of(block_at, one_at)
    b = c = d = frame.none
    if reads and block.index == 1:
        b = operands[1].array
    elif reads and block.index == 2:
        c = operands[2].array
    if size == 1:
        c = extra
    elif size == 2:
        d = extra
    return tuple_of(frame, size + 2, frame.none, b, c, d, extra)


@typed
def word_of(block_at, one_at):
    """The record's word, which says whether it keeps the places."""
    return IndexPlan(block_at).word | (SAVES if reads_of(block_at, one_at) else 0)


@typed
def tracked_of(one_at):
    """Whether something that requires grad is among the operands."""
    operands = Operand(one_at)
    return 1 if operands.position | operands[1].position | operands[2].position else 0


@typed
def append_change(frame, tape, block_at, one_at, entry):
    """Record a change that is made; 0 with an exception set."""
    block, codes = IndexPlan(block_at), room_i8(3)
    for k in range(block.operands):
        operand_at = address(Operand(one_at)[k])
        codes[k] = input_code(frame, tape, operand_at)
        if codes[k] == 0 and Operand(operand_at).position != 0:
            return 0
    word = word_of(block_at, one_at)
    return record_change(
        frame, tape, Operand(one_at).tensor, word, codes[0], codes[1], codes[2], block.shape,
        block.aux, entry,
    )  # fmt: skip


@typed
def change_target(frame, tape, listening, block_at, one_at, extra):
    """Change a Tensor itself; the Tensor, 0 with an exception set, or REFUSED."""
    block, operands = IndexPlan(block_at), Operand(one_at)
    target = operands.array
    if not may_change(frame, tape, listening, one_at, 0):
        return REFUSED
    if block.value >= 0:
        value = operands[block.value].array
        if value == target or i8(value)[ARRAY_BASE] != 0:
            return REFUSED
    result = copy_of(frame, target, F8_SIZE)
    if result == 0:
        return 0
    write_places(block_at, one_at, result)
    if check_exceptions(frame, result) == REFUSED:
        return REFUSED
    tracked, entry, token = tracked_of(one_at) and listening, frame.none, hold_next(frame, tape)
    if tracked:
        entry = saved_indices(frame, block_at, one_at, extra)
    else:
        incref(entry)
    if entry == 0:
        decref(frame, token)
        decref(frame, result)
        return 0
    done = announce_change(frame, tape, token, block.operands, one_at)
    if done == 1:
        copy(i8(target)[ARRAY_DATA], i8(result)[ARRAY_DATA], F8_SIZE * count_of(target))
        if tracked:
            done = append_change(frame, tape, block_at, one_at, entry)
    decref(frame, entry)
    decref(frame, result)
    if done != 1:
        return done
    incref(operands.tensor)
    return operands.tensor


@typed
def new_result(frame, tape, listening, block_at, one_at, plan_at):
    """A new Tensor, or 0 with an exception set, or REFUSED."""
    block, operands, plan = IndexPlan(block_at), Operand(one_at), i8(plan_at + ITEMS * 8)
    kind = block.kind
    if kind == KIND_PICK or kind == KIND_SELECT or kind == KIND_VIEW or kind == KIND_JOIN:
        result = array_of(frame, frame.float64, block.ndim, address(block[1]))
        if result == 0:
            return 0
        if not read_places(block_at, one_at, result):
            decref(frame, result)
            return REFUSED
    else:
        result = copy_of(frame, operands.array, F8_SIZE)
        if result == 0:
            return 0
        write_places(block_at, one_at, result)
        if check_exceptions(frame, result) == REFUSED:
            return REFUSED
    tracked, entry, token = tracked_of(one_at) and listening, frame.none, hold_next(frame, tape)
    if tracked:
        entry = saved_indices(frame, block_at, one_at, plan[CallPlan.extra])
    else:
        incref(entry)
    incref(plan[CallPlan.short])
    second = address(Operand(one_at)[1]) if block.operands > 1 else 0
    third = address(Operand(one_at)[2]) if block.operands > 2 else 0
    return new_tensor(
        frame, tape, tracked, one_at, second, third, word_of(block_at, one_at), block.shape,
        block.aux, plan[CallPlan.short], entry, result, token,
    )  # fmt: skip


@typed
def run_plan(frame, tape, block_at, one_at, plan_at):
    """What a plan makes of operands that are known; 0 with an exception set, or REFUSED."""
    block, operands, plan = IndexPlan(block_at), Operand(one_at), i8(plan_at + ITEMS * 8)
    listening, kind = recording(frame, tape), block.kind
    if listening == REFUSED or operands.tensor == 0:
        return REFUSED
    if kind == KIND_PICK or kind == KIND_PUT:
        index = operands[block.index].array
        if not in_bounds(block_at, i8(index)[ARRAY_DATA], count_of(index)):
            return REFUSED
    if block.changes:
        return change_target(frame, tape, listening, block_at, one_at, plan[CallPlan.extra])
    return new_result(frame, tape, listening, block_at, one_at, plan_at)


@typed
def index_op(frame, tape, obj, plan_at, index, value):
    """A new reference to a result or to the Tensor that was changed, 0 or REFUSED."""
    one_at, found = address(room_i8(OPERAND_TRIPLE)), REFUSED
    target = Operand(one_at)
    block_at = int_value(frame, i8(plan_at + ITEMS * 8)[CallPlan.words_at])
    block = IndexPlan(block_at)
    target.tensor, target.array = UNREAD, 0
    usable = read_operand(frame, tape, obj, one_at, ALIGNED_IN_C_ORDER)
    value_at = address(Operand(one_at)[block.value])
    if usable and block.index >= 0:
        masks = block.kind == KIND_MASK or block.kind == KIND_SELECT
        dtype = frame.bool_dtype if masks else frame.int64
        usable = read_index(frame, tape, index, dtype, address(Operand(one_at)[block.index]))
    if block.value >= 0:
        Operand(value_at).tensor, Operand(value_at).array = UNREAD, 0
        if usable:
            usable = read_operand(frame, tape, value, value_at, ALIGNED_IN_C_ORDER)
    if usable:
        found = run_plan(frame, tape, block_at, one_at, plan_at)
    if block.value >= 0 and Operand(value_at).tensor == 0 and Operand(value_at).array != 0:
        decref(frame, Operand(value_at).array)
    if target.tensor == 0 and target.array != 0:
        decref(frame, target.array)
    return found
