"""Append a record: the Tensor, the record, and the values that it saves."""

from tapegrad.kernels.memory import address, call1, call2, call3, i8, room_i8
from tapegrad.native.abi import MOST_OPERANDS
from tapegrad.native.pyobjects import (
    ARRAY_BASE,
    LIST_ITEMS,
    LOW_HALF,
    REFUSED,
    call_python,
    count_of,
    decref,
    int_value,
    itemsize_of,
    new_int,
    set_slot,
    typed,
)
from tapegrad.tape.debts import BORROWED
from tapegrad.tape.record_format import AUX, IN0, IN1, IN2, LISTED, SHAPE, STRIDE, WORD


@typed
def set_number(frame, container, slot, value):
    """Set a slot to a Python int; 0 with an exception set."""
    new = new_int(frame, value)
    if new == 0:
        return 0
    old = i8(container)[slot]
    i8(container)[slot] = new
    decref(frame, old)
    return 1


@typed
def new_slot(frame, tape, leaf):
    """The input code of a leaf that the tape did not know; 0 with an exception set.

    Its memory, and that of its gradient, is owed as well, as in `Tape.slot`.
    """
    leaves = i8(tape)[frame.tape_leaves]
    if call2(frame.PyList_Append, leaves, leaf) & LOW_HALF != 0:
        return 0
    code = -call1(frame.PyList_Size, leaves)
    code_at = new_int(frame, code)
    if code_at == 0:
        return 0
    key = i8(leaf)[frame.t_pos]
    failed = call3(frame.PyDict_SetItem, i8(tape)[frame.tape_slots], key, code_at) & LOW_HALF
    decref(frame, code_at)
    if failed:
        return 0
    array, debt = i8(leaf)[frame.t_a], int_value(frame, i8(tape)[frame.tape_leaf_debt])
    nbytes = itemsize_of(frame, array) * count_of(array)  # and so does `debts.owed_by`
    if i8(array)[ARRAY_BASE] == 0:
        debt += 2 * nbytes
    elif nbytes <= BORROWED:
        debt += nbytes
    return code if set_number(frame, tape, frame.tape_leaf_debt, debt) else 0


@typed
def input_code(frame, tape, operands):
    """What a record says of the first operand: a position, a leaf's slot, or 0 for nothing.

    And 0 for a leaf, with an exception set.
    """
    if operands.position >= 0:
        return operands.position
    tensor = operands.tensor
    slot = call2(frame.PyDict_GetItem, i8(tape)[frame.tape_slots], i8(tensor)[frame.t_pos])
    return new_slot(frame, tape, tensor) if slot == 0 else int_value(frame, slot)


@typed
def add_debt(frame, tape, shape, result):
    """Account for a large result (its shape's number is odd); 0: that has to be done in Python."""
    if shape & 1 == 0:
        return 1
    nbytes = itemsize_of(frame, result) * count_of(result)
    debt = int_value(frame, i8(tape)[frame.tape_debt]) + nbytes
    if debt > int_value(frame, i8(tape)[frame.tape_debt_limit]):
        return 0
    return set_number(frame, tape, frame.tape_debt, debt)


@typed
def is_full(frame, tape):
    """Whether Python has to make room for a record, or to reclaim others, first."""
    used, capacity = i8(tape)[frame.tape_used], i8(tape)[frame.tape_capacity]
    if int_value(frame, used) == int_value(frame, capacity):
        return 1
    debt, limit = i8(tape)[frame.tape_leaf_debt], i8(tape)[frame.tape_debt_limit]
    return 1 if int_value(frame, debt) > int_value(frame, limit) else 0


@typed
def fill_item(frame, things, place, obj):
    """Set an item of a list that is None."""
    set_slot(frame, i8(things)[LIST_ITEMS], place, obj)
    decref(frame, frame.none)
    return 0


@typed
def append_record(frame, tape, tensor, word, codes, shape, aux, entry):
    """Append a record and give the Tensor its place; 0 with an exception set."""
    used_at, token = i8(tape)[frame.tape_used], i8(tape)[frame.tape_next]
    used = int_value(frame, used_at)
    record = i8(int_value(frame, i8(tape)[frame.tape_address]) + used * STRIDE)
    record[WORD], record[SHAPE], record[AUX] = word, shape, aux
    record[IN0], record[IN1], record[IN2] = i8(codes)[0], i8(codes)[1], i8(codes)[2]
    following = new_int(frame, int_value(frame, token) + 1)
    count = new_int(frame, used + 1)
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
def input_codes(frame, tape, count, operands, codes):
    """Write what a record says of some operands; 0 with an exception set."""
    for k in range(count):
        i8(codes)[k] = input_code(frame, tape, operands[k])
        if i8(codes)[k] == 0 and operands[k].position != 0:
            return 0
    return 1


@typed
def list_inputs(frame, tape, count, codes):
    """Put codes that a record has no room for into the tape's list, and say there where they are.

    0 with an exception set; REFUSED, where Python has recorded something meanwhile.
    """
    token, inputs = i8(tape)[frame.tape_next], i8(codes)
    raw = call2(frame.PyBytes_FromStringAndSize, codes, 8 * count)
    if raw == 0:
        return 0
    start = call_python(frame, frame.list_inputs, 2, tape, raw, 0)
    decref(frame, raw)
    if start == 0:
        return 0
    inputs[0], inputs[1], inputs[2] = int_value(frame, start), count, 0
    decref(frame, start)
    return 1 if i8(tape)[frame.tape_next] == token and not is_full(frame, tape) else REFUSED


@typed
def record_tensor(
    frame, tape, tensor, tracked, count, operands, word, shape, aux, entry, result
):  # fmt: skip
    """Record a Tensor that has its values, if it is to be; 0 with an exception set, or REFUSED."""
    if not tracked:
        set_slot(frame, tensor, frame.t_pos, frame.zero)
        set_slot(frame, tensor, frame.t_home, frame.none)
        return 1
    if is_full(frame, tape):
        return REFUSED
    codes = room_i8(MOST_OPERANDS)
    if not input_codes(frame, tape, count, operands, address(codes)):
        return 0
    if count > 3:
        word |= LISTED
        done = list_inputs(frame, tape, count, address(codes))
        if done != 1:
            return done
    if not add_debt(frame, tape, shape, result):
        return REFUSED
    set_slot(frame, tensor, frame.t_home, tape)
    return append_record(frame, tape, tensor, word, address(codes), shape, aux, entry)


@typed
def new_tensor(
    frame, tape, tracked, count, operands, word, shape, aux, short, entry, result, token
):  # fmt: skip
    """The Tensor of a result, 0 with an exception set, or REFUSED; it takes over the last four.

    `token` stood in `next` before anything was made that the collector knows: that may have run.
    """
    tensor = 0
    if entry != 0 and short != 0:
        tensor = call2(frame.PyType_GenericAlloc, frame.tensor_type, 0)
    if tensor == 0:
        if entry != 0:
            decref(frame, entry)
        if short != 0:
            decref(frame, short)
        decref(frame, token)
        decref(frame, result)
        return 0
    i8(tensor)[frame.t_a] = result
    i8(tensor)[frame.t_s] = short
    done = REFUSED
    if not tracked or i8(tape)[frame.tape_next] == token:
        done = record_tensor(
            frame, tape, tensor, tracked, count, operands, word, shape, aux, entry, result
        )
    decref(frame, token)
    decref(frame, entry)
    if done != 1:
        decref(frame, tensor)
        return done
    return tensor
