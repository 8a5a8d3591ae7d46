"""Append a record: the Tensor, the record, and the values that it saves."""

from tapegrad.kernels.memory import call1, call2, call3, i8
from tapegrad.native.abi import Operand, OpRow
from tapegrad.native.pyobjects import (
    ARRAY_DTYPE,
    F4_SIZE,
    F8_SIZE,
    LIST_ITEMS,
    LOW_HALF,
    REFUSED,
    count_of,
    decref,
    incref,
    int_value,
    set_slot,
    tuple_of,
    typed,
)
from tapegrad.tape.tape import AUX, IN0, IN1, IN2, SHAPE, STRIDE, WORD


@typed
def set_number(frame, container, slot, value):
    """Set a slot to a Python int; 0 with an exception set."""
    new = call1(frame.PyLong_FromLongLong, value)
    if new == 0:
        return 0
    old = i8(container)[slot]
    i8(container)[slot] = new
    decref(frame, old)
    return 1


@typed
def new_slot(frame, tape, leaf):
    """The input code of a leaf that the tape did not know; 0 with an exception set."""
    leaves = i8(tape)[frame.tape_leaves]
    if call2(frame.PyList_Append, leaves, leaf) & LOW_HALF != 0:
        return 0
    code = -call1(frame.PyList_Size, leaves)
    code_at = call1(frame.PyLong_FromLongLong, code)
    if code_at == 0:
        return 0
    key = i8(leaf)[frame.t_pos]
    failed = call3(frame.PyDict_SetItem, i8(tape)[frame.tape_slots], key, code_at) & LOW_HALF
    decref(frame, code_at)
    return 0 if failed else code


@typed
def input_code(frame, tape, one):
    """What a record says of an operand: a position, a leaf's slot, or 0 for nothing.

    And 0 for a leaf, with an exception set.
    """
    found = Operand(one)
    if found.position >= 0:
        return found.position
    slot = call2(frame.PyDict_GetItem, i8(tape)[frame.tape_slots], i8(found.tensor)[frame.t_pos])
    return new_slot(frame, tape, found.tensor) if slot == 0 else int_value(frame, slot)


@typed
def add_debt(frame, tape, shape, result):
    """Account for a large result (its shape's number is odd); 0: that has to be done in Python."""
    if shape & 1 == 0:
        return 1
    itemsize = F4_SIZE if i8(result)[ARRAY_DTYPE] == frame.float32 else F8_SIZE
    debt = int_value(frame, i8(tape)[frame.tape_debt]) + itemsize * count_of(result)
    if debt > int_value(frame, i8(tape)[frame.tape_debt_limit]):
        return 0
    return set_number(frame, tape, frame.tape_debt, debt)


@typed
def is_full(frame, tape):
    """Whether the tape has no room for a record."""
    used, capacity = i8(tape)[frame.tape_used], i8(tape)[frame.tape_capacity]
    return 1 if int_value(frame, used) == int_value(frame, capacity) else 0


@typed
def fill_item(frame, things, place, obj):
    """Set an item of a list that is None."""
    set_slot(frame, i8(things)[LIST_ITEMS], place, obj)
    decref(frame, frame.none)
    return 0


@typed
def append_record(frame, tape, tensor, word, p, q, r, shape, aux, entry):
    """Append a record and give the Tensor its place; 0 with an exception set."""
    used_at, token = i8(tape)[frame.tape_used], i8(tape)[frame.tape_next]
    used = int_value(frame, used_at)
    record = i8(int_value(frame, i8(tape)[frame.tape_address]) + used * STRIDE)
    record[WORD], record[SHAPE], record[AUX] = word, shape, aux
    record[IN0], record[IN1], record[IN2] = p, q, r
    following = call1(frame.PyLong_FromLongLong, int_value(frame, token) + 1)
    count = call1(frame.PyLong_FromLongLong, used + 1)
    if following == 0 or count == 0:
        return 0
    i8(tape)[frame.tape_next] = following
    i8(tape)[frame.tape_used] = count
    i8(tensor)[frame.t_pos] = token  # the reference that `next` had
    fill_item(frame, i8(tape)[frame.tape_tokens], used, token)
    if entry != frame.none:
        fill_item(frame, i8(tape)[frame.tape_keep], used, entry)
    decref(frame, used_at)
    return 1


@typed
def record_tensor(
    frame, tape, tensor, tracked, first, second, third, word, shape, aux, entry, result
):  # fmt: skip
    """Record a Tensor that has its values, if it is to be; 0 with an exception set, or REFUSED."""
    if not tracked:
        set_slot(frame, tensor, frame.t_pos, frame.zero)
        set_slot(frame, tensor, frame.t_home, frame.none)
        return 1
    if is_full(frame, tape):
        return REFUSED
    p = input_code(frame, tape, first)
    if p == 0 and Operand(first).position != 0:
        return 0
    q = 0
    if second != 0:
        q = input_code(frame, tape, second)
        if q == 0 and Operand(second).position != 0:
            return 0
    r = 0
    if third != 0:
        r = input_code(frame, tape, third)
        if r == 0 and Operand(third).position != 0:
            return 0
    if not add_debt(frame, tape, shape, result):
        return REFUSED
    set_slot(frame, tensor, frame.t_home, tape)
    return append_record(frame, tape, tensor, word, p, q, r, shape, aux, entry)


@typed
def reads_of(row_at, first, second):
    """Which values the formulas of the operands that are tracked read, as bits."""
    reads = 0
    if Operand(first).position != 0:
        reads |= OpRow(row_at).reads[0]
    if second != 0 and Operand(second).position != 0:
        reads |= OpRow(row_at).reads[1]
    return reads


@typed
def saved_values(frame, row_at, first, second, result):
    """What the record of an elementwise operation keeps (a new reference).

    None, if the formulas of what is tracked read nothing.
    """
    reads = reads_of(row_at, first, second)
    if reads == 0:
        incref(frame.none)
        return frame.none
    size = OpRow(row_at).entry_size
    a, b, last = frame.none, frame.none, result if reads & 4 else frame.none
    if reads & 1:
        a = Operand(first).array
    if reads & 2 and second != 0:
        b = Operand(second).array
    return tuple_of(frame, size, a, b if size > 2 else last, last, 0, 0)


@typed
def new_tensor(
    frame, tape, tracked, first, second, third, word, shape, aux, shape_at, entry, result, token
):  # fmt: skip
    """The Tensor of a result, or what `call` gives without one; it takes over four references.

    `token` stood in `next` before anything was made that the collector knows: that may have run.
    """
    tensor = 0
    if entry != 0 and shape_at != 0:
        tensor = call2(frame.PyType_GenericAlloc, frame.tensor_type, 0)
    if tensor == 0:
        if entry != 0:
            decref(frame, entry)
        if shape_at != 0:
            decref(frame, shape_at)
        decref(frame, token)
        decref(frame, result)
        return 0
    i8(tensor)[frame.t_a] = result
    i8(tensor)[frame.t_s] = shape_at
    done = REFUSED
    if not tracked or i8(tape)[frame.tape_next] == token:
        done = record_tensor(
            frame, tape, tensor, tracked, first, second, third, word, shape, aux, entry, result
        )
    decref(frame, token)
    decref(frame, entry)
    if done != 1:
        decref(frame, tensor)
        return done
    return tensor
