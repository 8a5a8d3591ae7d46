"""An operation on small Tensors, from the call to its record, in compiled code.

CPython calls `call` for an operator or a method (`tapegrad.road` sees to that), with the
interpreter's lock held throughout.  It reads Tensors and the tape where CPython keeps their slots,
computes by the loops of NumPy's ufuncs, and leaves behind what `tapegrad.fast` would.  Whatever is
out of the ordinary is refused before anything has changed, and goes to the operation's function in
Python.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.layout import ALIGNED_IN_C_ORDER, FIELDS
from tapegrad.kernels.memory import (
    address,
    call0,
    call1,
    call2,
    call3,
    call4,
    call8,
    f8,
    i4,
    i8,
    room_i8,
)
from tapegrad.kernels.road_frame import (
    ADDRESS,
    APPEND,
    ARRAY,
    AS_LONG,
    AUX,
    BITS,
    BOOL,
    CALL,
    CONSTANTS,
    CURRENT,
    DATA,
    DEBT,
    DEBT_LIMIT,
    DIVIDES,
    DECREF,
    END,
    ENTRY,
    EXCEPTIONS,
    F8,
    FALSE,
    FLOAT,
    FROM,
    FROM_LONG,
    GET_ATTR,
    GET_ID,
    GET_ITEM,
    GET_STATE,
    INCREF,
    INFERENCE,
    INT,
    KEEP,
    LEARN_PAIR,
    LEARN_PRODUCT,
    LEARN_TOTAL,
    LINE,
    LINES,
    LOOP,
    MATMUL,
    MODE,
    MORE,
    NEW_ARRAY,
    NEW_OBJECT,
    NEW_TUPLE,
    NEXT,
    NO_NUMBER,
    NO_TEXT,
    NONE,
    NOTHING,
    NOUGHT,
    OFFSET,
    OTHERWISE,
    OWNER,
    PAIR,
    PAIRS,
    PRODUCT,
    PRODUCTS,
    READS,
    READS_SECOND,
    ROW,
    ROWS,
    SERIOUS,
    SHAPE,
    SLOTS,
    STEP,
    STEPS,
    SUM_DATA,
    SUM_LOOP,
    SUM_START,
    T_ARRAY,
    T_HOME,
    T_POS,
    T_SHAPE,
    TAPE,
    TAPE_NAME,
    TENSOR,
    TOKENS,
    TOTAL,
    TOTALS,
    TRUTH,
    V_BASE,
    V_FROZEN,
    V_STAMP,
    V_TAPE,
    VIEW,
    WITH,
    WORD,
    ZERO,
)
from tapegrad.tape import COLUMN, FLAT, MODE_FAST, MODE_OFF, STRIDE
from tapegrad.tape import SCALAR as AS_SCALAR

REFUSED = -1
# Of an operand: the Tensor, or 0; its array; the number of its shape; what it stands at.
THING, VALUES, KIND, PLACE = 0, 1, 2, 3
SECOND_CLASS, FIRST_CLASS = 18, 16  # in the word
TYPE, ITEMS = FIELDS["object_type"][0] >> 3, FIELDS["tuple_items"][0] >> 3
ARRAY_DATA, ARRAY_SHAPE = FIELDS["array_data"][0] >> 3, FIELDS["array_shape"][0] >> 3
NDIM, FLAGS = FIELDS["array_ndim"][0], FIELDS["array_flags"][0]
WHOLE = ALIGNED_IN_C_ORDER
LOW_HALF = 0xFFFFFFFF


# -- what is there -----------------------------------------------------------------------------


@typed
def number(frame, thing):
    """The value of a Python int."""
    return call1(frame[AS_LONG], thing)


@typed
def put(frame, container, slot, thing):
    """Set a slot or an item that is empty."""
    call1(frame[INCREF], thing)
    i8(container)[slot] = thing
    return 0


@typed
def tape_of_thread(frame):
    """The tape of the running thread, or 0 with an exception set."""
    thread = call1(frame[GET_ID], call0(frame[GET_STATE]))
    if frame[OWNER] == thread:
        return frame[TAPE]
    tape = call2(frame[GET_ATTR], frame[CURRENT], frame[TAPE_NAME])
    if tape != 0:
        call1(frame[DECREF], tape)  # the thread itself holds it
        frame[TAPE] = tape
        frame[OWNER] = thread
    return tape


@typed
def stands(frame, tape, thing):
    """Whether the place of a Tensor counts: on this tape, nowhere, or as a view that is current."""
    home = i8(thing)[frame[T_HOME]]
    if home == frame[NONE] or home == tape:
        return 1
    if i8(home)[TYPE] != frame[VIEW]:
        return 0
    view = i8(home)
    if view[frame[V_TAPE]] != tape or view[frame[V_FROZEN]] != frame[NO_TEXT]:
        return 0
    base = view[frame[V_BASE]]
    if base == frame[NONE]:
        return 1
    return 1 if i8(base)[frame[T_POS]] == view[frame[V_STAMP]] else 0


@typed
def operand(frame, tape, thing, into):
    """Read an operand; 0 if it is none for this road.  The array of a number is held."""
    found = i8(into)
    found[THING] = 0
    kind = i8(thing)[TYPE]
    if kind == frame[TENSOR]:
        if not stands(frame, tape, thing):
            return 0
        array = i8(thing)[frame[T_ARRAY]]
        found[VALUES] = array
        found[KIND] = number(frame, i8(thing)[frame[T_SHAPE]])
        found[PLACE] = number(frame, i8(thing)[frame[T_POS]])
        found[THING] = thing
        return 1 if found[KIND] >= 0 and i4(array + FLAGS)[0] & WHOLE == WHOLE else 0
    if kind != frame[FLOAT] and kind != frame[INT]:
        return 0
    array = call2(frame[GET_ITEM], frame[CONSTANTS], thing)
    if array == 0:
        return 0
    call1(frame[INCREF], array)
    found[VALUES] = array
    found[KIND] = 0
    found[PLACE] = 0
    return 1


@typed
def recording(frame, tape):
    """1: operations are recorded; 0: they are not; REFUSED: in some way that is not for here."""
    mode = number(frame, i8(tape)[frame[MODE]])
    if mode == MODE_FAST:
        return 1
    if mode == MODE_OFF and i8(tape)[frame[INFERENCE]] == frame[FALSE]:
        return 0
    return REFUSED


@typed
def line_of(frame, lines, learn, one, two, one_at, two_at):
    """The line of two numbers in a table, which Python fills; 0 with an exception set."""
    pair = (one << 32 | two) + 1
    line = lines + ((one * 31 + two) & (LINES - 1)) * LINE * 8
    if i8(line)[PAIR] != pair:
        numbers = call1(frame[NEW_TUPLE], 2)
        if numbers == 0:
            return 0
        put(frame, numbers, ITEMS, one_at)
        put(frame, numbers, ITEMS + 1, two_at)
        done = call3(frame[CALL], learn, numbers, 0)
        call1(frame[DECREF], numbers)
        if done == 0:
            return 0
        call1(frame[DECREF], done)
    return line


@typed
def line_of_shapes(frame, lines, learn, first, second):
    """The line of the shapes of two Tensors."""
    one, two = i8(first), i8(second)
    one_at, two_at = i8(one[THING])[frame[T_SHAPE]], i8(two[THING])[frame[T_SHAPE]]
    return line_of(frame, lines, learn, one[KIND], two[KIND], one_at, two_at)


# -- computing ---------------------------------------------------------------------------------


@typed
def step(loop, data, inputs, bases, classes, count, length, itemsize):
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
            paces[k] = 8 if k < inputs else itemsize
            if shape == FLAT:
                at += row * size[0] * paces[k]
            elif shape == AS_SCALAR:
                paces[k] = 0
            elif shape == COLUMN:
                at += row * 8
                paces[k] = 0
            if size[0] == 1 and k < inputs:
                paces[k] = 0  # as NumPy has it, whose powers look whether the exponent moves
            arguments[k] = at
        call4(loop, address(arguments), address(size), address(paces), data)
    return 0


@typed
def array_of(frame, dtype, ndim, lengths):
    """A new array, whose elements are not set yet, or 0 with an exception set."""
    call1(frame[INCREF], dtype)
    return call8(frame[NEW_ARRAY], frame[ARRAY], dtype, ndim, lengths, 0, 0, 0, 0)


@typed
def count_of(array):
    """How many elements an array has."""
    count = 1
    for k in range(i4(array + NDIM)[0]):
        count *= i8(i8(array)[ARRAY_SHAPE])[k]
    return count


@typed
def compute(frame, row_at, first, second, result, bits, length):
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
        at = STEPS + k * STEP
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
                1 if row[TRUTH] else 8,
            )
    return 1 if call1(frame[EXCEPTIONS], frame[SERIOUS]) & LOW_HALF == 0 else 0


# -- writing -----------------------------------------------------------------------------------


@typed
def exchange_number(frame, container, slot, value):
    """Set a slot to a Python int; 0 with an exception set."""
    new = call1(frame[FROM_LONG], value)
    if new == 0:
        return 0
    old = i8(container)[slot]
    i8(container)[slot] = new
    call1(frame[DECREF], old)
    return 1


@typed
def code_of(frame, tape, one):
    """What a record says of an operand: a position or a leaf's slot; 0: nothing, or a new leaf."""
    found = i8(one)
    if found[PLACE] >= 0:
        return found[PLACE]
    slot = call2(frame[GET_ITEM], i8(tape)[frame[SLOTS]], i8(found[THING])[frame[T_POS]])
    return 0 if slot == 0 else number(frame, slot)


@typed
def owed(frame, tape, shape, result):
    """Account for a large result (its shape's number is odd); 0: that has to be done in Python."""
    if shape & 1 == 0:
        return 1
    debt = number(frame, i8(tape)[frame[DEBT]]) + 8 * count_of(result)
    if debt > number(frame, i8(tape)[frame[DEBT_LIMIT]]):
        return 0
    return exchange_number(frame, tape, frame[DEBT], debt)


@typed
def write(frame, tape, tensor, word, p, q, shape, aux, entry):
    """Append a record and give the Tensor its place; 0 with an exception set."""
    offset = number(frame, i8(tape)[frame[OFFSET]])
    token = i8(tape)[frame[NEXT]]
    record = i8(number(frame, i8(tape)[frame[ADDRESS]]) + offset)
    record[0] = word
    record[1] = p
    record[2] = q
    record[3] = 0
    record[4] = shape
    record[5] = aux
    following = call1(frame[FROM_LONG], number(frame, token) + 1)
    if following == 0:
        return 0
    if not exchange_number(frame, tape, frame[OFFSET], offset + STRIDE):
        call1(frame[DECREF], following)
        return 0
    i8(tape)[frame[NEXT]] = following
    i8(tensor)[frame[T_POS]] = token  # the reference that `next` had
    put(frame, tensor, frame[T_HOME], tape)
    failed = call2(frame[APPEND], i8(tape)[frame[TOKENS]], token)
    failed |= call2(frame[APPEND], i8(tape)[frame[KEEP]], entry)
    return 1 if failed & LOW_HALF == 0 else 0


@typed
def finish(frame, tape, tensor, tracked, first, second, word, shape, aux, entry, result):
    """Record a Tensor that has its values, if it is to be; 0 with an exception set, or REFUSED."""
    if not tracked:
        put(frame, tensor, frame[T_POS], frame[ZERO])
        put(frame, tensor, frame[T_HOME], frame[NONE])
        return 1
    place = i8(tape)
    if number(frame, place[frame[OFFSET]]) == number(frame, place[frame[END]]):
        return REFUSED
    p = code_of(frame, tape, first)
    if p == 0 and i8(first)[PLACE] != 0:
        return REFUSED
    q = 0
    if second != 0:
        q = code_of(frame, tape, second)
        if q == 0 and i8(second)[PLACE] != 0:
            return REFUSED
    if not owed(frame, tape, shape, result):
        return REFUSED
    return write(frame, tape, tensor, word, p, q, shape, aux, entry)


@typed
def kept(frame, row_at, first, second, result):
    """What the record of an elementwise operation keeps (a new reference)."""
    row = i8(row_at)
    size = row[ENTRY]
    if size == 0:
        call1(frame[INCREF], frame[NONE])
        return frame[NONE]
    entry = call1(frame[NEW_TUPLE], size)
    if entry == 0:
        return 0
    reads = 0
    if i8(first)[PLACE] != 0:
        reads |= row[READS]
    if second != 0 and i8(second)[PLACE] != 0:
        reads |= row[READS_SECOND]
    put(frame, entry, ITEMS, i8(first)[VALUES] if reads & 1 else frame[NONE])
    if second != 0:
        put(frame, entry, ITEMS + 1, i8(second)[VALUES] if reads & 2 else frame[NONE])
    put(frame, entry, ITEMS + size - 1, result if reads & 4 else frame[NONE])
    return entry


# -- the roads ---------------------------------------------------------------------------------


@typed
def completed(frame, tape, tracked, first, second, word, shape, aux, shape_at, entry, result):
    """The Tensor of a result, or what `call` gives without one; it takes over three references."""
    tensor = 0
    if entry != 0 and shape_at != 0:
        tensor = call2(frame[NEW_OBJECT], frame[TENSOR], 0)
    if tensor == 0:
        if entry != 0:
            call1(frame[DECREF], entry)
        if shape_at != 0:
            call1(frame[DECREF], shape_at)
        call1(frame[DECREF], result)
        return 0
    i8(tensor)[frame[T_ARRAY]] = result
    i8(tensor)[frame[T_SHAPE]] = shape_at
    done = finish(frame, tape, tensor, tracked, first, second, word, shape, aux, entry, result)
    call1(frame[DECREF], entry)
    if done != 1:
        call1(frame[DECREF], tensor)
        return done
    return tensor


@typed
def elementwise(frame, tape, row_at, first, second):
    """An elementwise operation of one operand or two."""
    record = recording(frame, tape)
    if record == REFUSED:
        return REFUSED
    like, shape, bits, length = first, i8(first)[KIND], 0, 0
    places = i8(first)[PLACE]
    if second != 0:
        other = i8(second)[KIND]
        places |= i8(second)[PLACE]
        if shape == other:
            if i8(first)[THING] == 0:
                like = second
        elif other == 0:
            bits = AS_SCALAR << SECOND_CLASS
        elif shape == 0:
            bits = AS_SCALAR << FIRST_CLASS
            like = second
            shape = other
        else:
            line = line_of_shapes(frame, frame[PAIRS], frame[LEARN_PAIR], first, second)
            if line == 0:
                return 0
            shape, bits, length = i8(line)[SHAPE], i8(line)[BITS], i8(line)[AUX]
            if shape < 0:
                return REFUSED
            if i8(line)[MORE] != 0:
                like = second
    truth = i8(row_at)[TRUTH]
    array = i8(like)[VALUES]
    result = array_of(
        frame, frame[BOOL] if truth else frame[F8], i4(array + NDIM)[0], i8(array)[ARRAY_SHAPE]
    )
    if result == 0:
        return 0
    if not compute(frame, row_at, first, second, result, bits, length):
        call1(frame[DECREF], result)
        return REFUSED
    tracked = 1 if record and places != 0 and not truth else 0
    shape_at = frame[NO_NUMBER] if truth else i8(i8(like)[THING])[frame[T_SHAPE]]
    call1(frame[INCREF], shape_at)
    entry = frame[NONE]
    if tracked:
        entry = kept(frame, row_at, first, second, result)
    else:
        call1(frame[INCREF], entry)
    word = i8(row_at)[WORD] | bits
    return completed(
        frame, tape, tracked, first, second, word, shape, length, shape_at, entry, result
    )


@typed
def product(frame, tape, row_at, first, second):
    """The product of two matrices or vectors."""
    record = recording(frame, tape)
    if record == REFUSED or i8(first)[THING] == 0 or i8(second)[THING] == 0:
        return REFUSED
    line = line_of_shapes(frame, frame[PRODUCTS], frame[LEARN_PRODUCT], first, second)
    if line == 0:
        return 0
    shape, word = i8(line)[SHAPE], i8(row_at)[WORD] | i8(line)[BITS]
    if shape < 0:
        return REFUSED
    a, b = i8(first)[VALUES], i8(second)[VALUES]
    result = call3(frame[PRODUCT], a, b, 0)
    if result == 0:
        return 0
    p, q = i8(first)[PLACE], i8(second)[PLACE]
    tracked = 1 if record and (p != 0 or q != 0) else 0
    entry = frame[NONE]
    if tracked:
        entry = call1(frame[NEW_TUPLE], 4)
        if entry != 0:
            put(frame, entry, ITEMS, a if q != 0 else frame[NONE])
            put(frame, entry, ITEMS + 1, b if p != 0 else frame[NONE])
            put(frame, entry, ITEMS + 2, frame[NONE])
            put(frame, entry, ITEMS + 3, i8(line)[MORE])
    else:
        call1(frame[INCREF], entry)
    shape_at = call1(frame[FROM_LONG], shape)
    return completed(
        frame, tape, tracked, first, second, word, shape, i8(line)[AUX], shape_at, entry, result
    )


@typed
def total(frame, tape, row_at, code, first):
    """The sum, or the mean, of all elements."""
    record = recording(frame, tape)
    array = i8(first)[VALUES]
    count = count_of(array)
    if record == REFUSED or count == 0:
        return REFUSED
    code_at = call1(frame[FROM_LONG], code)
    if code_at == 0:
        return 0
    shape_at = i8(i8(first)[THING])[frame[T_SHAPE]]
    line = line_of(
        frame, frame[TOTALS], frame[LEARN_TOTAL], code, i8(first)[KIND], code_at, shape_at
    )
    call1(frame[DECREF], code_at)
    if line == 0:
        return 0
    result = array_of(frame, frame[F8], 0, 0)
    if result == 0:
        return 0
    arguments, paces, size = room_i8(3), room_i8(3), room_i8(1)
    at = i8(result)[ARRAY_DATA]
    i8(at)[0] = frame[SUM_START]
    arguments[0], arguments[1], arguments[2] = at, i8(array)[ARRAY_DATA], at
    paces[0], paces[1], paces[2] = 0, 8, 0
    size[0] = count
    call4(frame[SUM_LOOP], address(arguments), address(size), address(paces), frame[SUM_DATA])
    if i8(row_at)[DIVIDES]:
        f8(at)[0] /= count
    if call1(frame[EXCEPTIONS], frame[SERIOUS]) & LOW_HALF != 0:
        call1(frame[DECREF], result)
        return REFUSED
    tracked = 1 if record and i8(first)[PLACE] != 0 else 0
    entry = i8(line)[MORE] if tracked else frame[NONE]
    call1(frame[INCREF], entry)
    call1(frame[INCREF], frame[ZERO])
    return completed(
        frame, tape, tracked, first, 0, i8(line)[BITS], 0, i8(line)[AUX], frame[ZERO], entry,
        result,
    )  # fmt: skip


@typed
def otherwise(frame, row_at, a, b):
    """Hand a call over to the operation's function in Python."""
    arguments = call1(frame[NEW_TUPLE], 1 if b == 0 else 2)
    if arguments == 0:
        return 0
    put(frame, arguments, ITEMS, a)
    if b != 0:
        put(frame, arguments, ITEMS + 1, b)
    found = call3(frame[CALL], i8(row_at)[OTHERWISE], arguments, 0)
    call1(frame[DECREF], arguments)
    return found


def call(frame_at, kind, code, a, b):
    """An operation on Python objects (`b` is 0 where there is one): a new reference, or 0."""
    frame = i8(frame_at)
    row_at = frame[ROWS] + code * ROW * 8
    tape = tape_of_thread(frame)
    if tape == 0:
        return 0
    found = REFUSED
    one, two = room_i8(4), room_i8(4)
    first, second = address(one), address(two) if b != 0 else 0
    one[THING], one[VALUES] = 1, 0
    two[THING], two[VALUES] = 1, 0
    usable = operand(frame, tape, a, first) and (b == 0 or operand(frame, tape, b, second))
    if usable and (one[THING] != 0 or (b != 0 and two[THING] != 0)):
        if kind == MATMUL:
            found = product(frame, tape, row_at, first, second)
        elif kind == TOTAL:
            found = total(frame, tape, row_at, code, first)
        elif i8(row_at)[STEPS + LOOP] != 0:
            found = elementwise(frame, tape, row_at, first, second)
    if one[THING] == 0 and one[VALUES] != 0:
        call1(frame[DECREF], one[VALUES])
    if two[THING] == 0 and two[VALUES] != 0:
        call1(frame[DECREF], two[VALUES])
    if found == REFUSED:
        return otherwise(frame, row_at, a, b)
    return found
