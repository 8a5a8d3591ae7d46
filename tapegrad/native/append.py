"""Append a record: the Tensor, the record, and the values that it saves."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call1, call2, call3, i8
from tapegrad.native.abi import (
    ADDRESS,
    APPEND,
    CAPACITY,
    DEBT,
    DEBT_LIMIT,
    ENTRY,
    F4,
    FROM_LONG,
    GET_ITEM,
    KEEP,
    LEAVES,
    LIST_SIZE,
    NEW_OBJECT,
    NEXT,
    NONE,
    READS,
    READS_SECOND,
    SET_ITEM,
    SLOTS,
    T_ARRAY,
    T_HOME,
    T_POS,
    T_SHAPE,
    TENSOR,
    TOKENS,
    USED,
    ZERO,
)
from tapegrad.native.pyobjects import (
    ARRAY_DTYPE,
    LIST_ITEMS,
    LOW_HALF,
    NARROW_SIZE,
    PLACE,
    REFUSED,
    THING,
    VALUES,
    WIDE_SIZE,
    count_of,
    decref,
    incref,
    number,
    put,
    tuple_of,
)
from tapegrad.tape.tape import STRIDE


@typed
def exchange_number(frame, container, slot, value):
    """Set a slot to a Python int; 0 with an exception set."""
    new = call1(frame[FROM_LONG], value)
    if new == 0:
        return 0
    old = i8(container)[slot]
    i8(container)[slot] = new
    decref(frame, old)
    return 1


@typed
def new_slot(frame, tape, leaf):
    """The input code of a leaf that the tape did not know; 0 with an exception set."""
    leaves = i8(tape)[frame[LEAVES]]
    if call2(frame[APPEND], leaves, leaf) & LOW_HALF != 0:
        return 0
    code = -call1(frame[LIST_SIZE], leaves)
    code_at = call1(frame[FROM_LONG], code)
    if code_at == 0:
        return 0
    key = i8(leaf)[frame[T_POS]]
    failed = call3(frame[SET_ITEM], i8(tape)[frame[SLOTS]], key, code_at) & LOW_HALF
    decref(frame, code_at)
    return 0 if failed else code


@typed
def code_of(frame, tape, one):
    """What a record says of an operand: a position, a leaf's slot, or 0 for nothing.

    And 0 for a leaf, with an exception set.
    """
    found = i8(one)
    if found[PLACE] >= 0:
        return found[PLACE]
    slot = call2(frame[GET_ITEM], i8(tape)[frame[SLOTS]], i8(found[THING])[frame[T_POS]])
    return new_slot(frame, tape, found[THING]) if slot == 0 else number(frame, slot)


@typed
def owed(frame, tape, shape, result):
    """Account for a large result (its shape's number is odd); 0: that has to be done in Python."""
    if shape & 1 == 0:
        return 1
    itemsize = NARROW_SIZE if i8(result)[ARRAY_DTYPE] == frame[F4] else WIDE_SIZE
    debt = number(frame, i8(tape)[frame[DEBT]]) + itemsize * count_of(result)
    if debt > number(frame, i8(tape)[frame[DEBT_LIMIT]]):
        return 0
    return exchange_number(frame, tape, frame[DEBT], debt)


@typed
def is_full(frame, tape):
    """Whether the tape has no room for a record."""
    used, capacity = i8(tape)[frame[USED]], i8(tape)[frame[CAPACITY]]
    return 1 if number(frame, used) == number(frame, capacity) else 0


@typed
def fill(frame, things, place, thing):
    """Set an item of a list that is None."""
    put(frame, i8(things)[LIST_ITEMS], place, thing)
    decref(frame, frame[NONE])
    return 0


@typed
def write(frame, tape, tensor, word, p, q, r, shape, aux, entry):
    """Append a record and give the Tensor its place; 0 with an exception set."""
    used_at, token = i8(tape)[frame[USED]], i8(tape)[frame[NEXT]]
    used = number(frame, used_at)
    record = i8(number(frame, i8(tape)[frame[ADDRESS]]) + used * STRIDE)
    record[0] = word
    record[1] = p
    record[2] = q
    record[3] = r
    record[4] = shape
    record[5] = aux
    following = call1(frame[FROM_LONG], number(frame, token) + 1)
    count = call1(frame[FROM_LONG], used + 1)
    if following == 0 or count == 0:
        return 0
    i8(tape)[frame[NEXT]] = following
    i8(tape)[frame[USED]] = count
    i8(tensor)[frame[T_POS]] = token  # the reference that `next` had
    fill(frame, i8(tape)[frame[TOKENS]], used, token)
    if entry != frame[NONE]:
        fill(frame, i8(tape)[frame[KEEP]], used, entry)
    decref(frame, used_at)
    return 1


@typed
def finish(
    frame, tape, tensor, tracked, first, second, third, word, shape, aux, entry, result
):  # fmt: skip
    """Record a Tensor that has its values, if it is to be; 0 with an exception set, or REFUSED."""
    if not tracked:
        put(frame, tensor, frame[T_POS], frame[ZERO])
        put(frame, tensor, frame[T_HOME], frame[NONE])
        return 1
    if is_full(frame, tape):
        return REFUSED
    p = code_of(frame, tape, first)
    if p == 0 and i8(first)[PLACE] != 0:
        return 0
    q = 0
    if second != 0:
        q = code_of(frame, tape, second)
        if q == 0 and i8(second)[PLACE] != 0:
            return 0
    r = 0
    if third != 0:
        r = code_of(frame, tape, third)
        if r == 0 and i8(third)[PLACE] != 0:
            return 0
    if not owed(frame, tape, shape, result):
        return REFUSED
    put(frame, tensor, frame[T_HOME], tape)
    return write(frame, tape, tensor, word, p, q, r, shape, aux, entry)


@typed
def reads_of(row_at, first, second):
    """Which values the formulas of the operands that are tracked read, as bits."""
    reads = 0
    if i8(first)[PLACE] != 0:
        reads |= i8(row_at)[READS]
    if second != 0 and i8(second)[PLACE] != 0:
        reads |= i8(row_at)[READS_SECOND]
    return reads


@typed
def kept(frame, row_at, first, second, result):
    """What the record of an elementwise operation keeps (a new reference).

    None, if the formulas of what is tracked read nothing.
    """
    reads = reads_of(row_at, first, second)
    if reads == 0:
        incref(frame[NONE])
        return frame[NONE]
    size = i8(row_at)[ENTRY]
    a, b, last = frame[NONE], frame[NONE], result if reads & 4 else frame[NONE]
    if reads & 1:
        a = i8(first)[VALUES]
    if reads & 2 and second != 0:
        b = i8(second)[VALUES]
    return tuple_of(frame, size, a, b if size > 2 else last, last, 0, 0)


@typed
def completed(
    frame, tape, tracked, first, second, third, word, shape, aux, shape_at, entry, result, token
):  # fmt: skip
    """The Tensor of a result, or what `call` gives without one; it takes over four references.

    `token` stood in `next` before anything was made that the collector knows: that may have run.
    """
    tensor = 0
    if entry != 0 and shape_at != 0:
        tensor = call2(frame[NEW_OBJECT], frame[TENSOR], 0)
    if tensor == 0:
        if entry != 0:
            decref(frame, entry)
        if shape_at != 0:
            decref(frame, shape_at)
        decref(frame, token)
        decref(frame, result)
        return 0
    i8(tensor)[frame[T_ARRAY]] = result
    i8(tensor)[frame[T_SHAPE]] = shape_at
    done = REFUSED
    if not tracked or i8(tape)[frame[NEXT]] == token:
        done = finish(
            frame, tape, tensor, tracked, first, second, third, word, shape, aux, entry, result
        )
    decref(frame, token)
    decref(frame, entry)
    if done != 1:
        decref(frame, tensor)
        return done
    return tensor
