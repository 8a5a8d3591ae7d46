"""Make the views of a call, and their records."""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call1, call2, call3, call8, i4, i8, room_i8
from tapegrad.kernels.sweep.sweep_abi import WRITEABLE
from tapegrad.native.abi import (
    ARRAY,
    BLOCK_AT,
    CALL,
    CAPACITY,
    COPY,
    DEPTH,
    ELEMENT,
    FALSE,
    FIRST_WAY,
    HELD,
    I8,
    JOINED,
    LEARN_VIEW,
    LEVELS,
    MODE,
    NEW_ARRAY,
    NEW_OBJECT,
    NEW_TUPLE,
    NEXT,
    NO_GRAD,
    NO_STEPS,
    NO_TEXT,
    NONE,
    SET_BASE,
    SHOWN,
    T_ARRAY,
    T_HOME,
    T_POS,
    T_SHAPE,
    TENSOR,
    TORCHS,
    TRUE,
    USED,
    V_BASE,
    V_CHAIN,
    V_FROZEN,
    V_SEVERAL,
    V_STAMP,
    V_TAPE,
    VIEW,
    VIEW_CACHE,
    VIEW_LINE,
    WAY_ENTRY,
    WAY_SHORT,
    WAY_STEP,
    WORDS,
    ZERO,
)
from tapegrad.native.append import code_of, is_full, write
from tapegrad.native.call_key import call_words, hash_of, line_of_call, line_to_learn
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    COUNT,
    FLAGS,
    ITEMS,
    LOW_HALF,
    NDIM,
    PLACE,
    REFUSED,
    THING,
    TYPE,
    array_of,
    decref,
    incref,
    next_of,
    number,
    put,
    recording,
)
from tapegrad.tape.tape import MODE_OFF

# Of a view, in a block: what its record says, and how its array lies.
WORD, SHAPE, AUX, START, DIMENSIONS, LENGTHS = range(6)
# How operations are recorded: not at all, on the tape, or so that nothing may be recorded later.
RESTING, WRITING, INFERRING = range(3)


@typed
def is_current(frame, tape, thing, place):
    """Whether a Tensor stands where it says: on this tape, nowhere, or as a view of what it was."""
    home = i8(thing)[frame[T_HOME]]
    if home == frame[NONE] or home == tape:
        return 1
    if i8(home)[TYPE] != frame[VIEW]:
        return 0
    view = i8(home)
    if view[frame[V_TAPE]] != tape and place > 0:
        return 0
    base = view[frame[V_BASE]]
    if base == frame[NONE]:
        return 1
    return 1 if i8(base)[frame[T_POS]] == view[frame[V_STAMP]] else 0


@typed
def stand(frame, tape, view, thing, above, place, mode, way_at):
    """Say what a view is a view of; 0 with an exception set.

    `above` is what the Tensor knows as a view, or 0 if it is none.
    """
    way = i8(way_at)
    slots = i8(view)
    frozen = frame[NO_TEXT] if above == 0 else i8(above)[frame[V_FROZEN]]
    base = thing if above == 0 else i8(above)[frame[V_BASE]]
    put(frame, view, frame[V_TAPE], tape)
    put(frame, view, frame[V_BASE], base)
    if base == frame[NONE]:
        put(frame, view, frame[V_CHAIN], frame[NO_STEPS])
        put(frame, view, frame[V_STAMP], frame[ZERO])
    else:
        put(frame, view, frame[V_STAMP], i8(base)[frame[T_POS]])
        if place != 0 and mode != WRITING:
            frozen = frame[NO_GRAD]
        if above == 0:
            put(frame, view, frame[V_CHAIN], way[WAY_STEP])
        else:
            chain = i8(above)[frame[V_CHAIN]]
            incref(chain)  # the collector may run
            slots[frame[V_CHAIN]] = call2(frame[JOINED], chain, way[WAY_STEP])
            decref(frame, chain)
    put(frame, view, frame[V_FROZEN], frozen)
    return slots[frame[V_CHAIN]]


@typed
def array_seen(frame, whole, seen_at):
    """The array of a view, or 0 with an exception set."""
    seen = i8(seen_at)
    ndim = seen[DIMENSIONS]
    lengths = seen_at + LENGTHS * 8
    dtype = i8(whole)[ARRAY_DTYPE]
    incref(dtype)
    array = call8(
        frame[NEW_ARRAY], frame[ARRAY], dtype, ndim, lengths, lengths + 8 * ndim,
        i8(whole)[ARRAY_DATA] + seen[START], i4(whole + FLAGS)[0] & WRITEABLE, 0,
    )  # fmt: skip
    if array != 0:
        incref(whole)
        if call2(frame[SET_BASE], array, whole) & LOW_HALF != 0:
            decref(frame, array)
            return 0
    return array


@typed
def recorded(frame, tape, tensor, thing, place, mode, seen_at, entry, token):
    """Write the record of a view, if there is one; 0 with an exception set, or REFUSED."""
    if place == 0 or mode != WRITING:
        put(frame, tensor, frame[T_POS], frame[ZERO])
        return 1
    if is_full(frame, tape) or i8(tape)[frame[NEXT]] != token:
        return REFUSED
    one = room_i8(4)
    one[THING], one[PLACE] = thing, place
    p = code_of(frame, tape, address(one))
    if p == 0:
        return 0
    seen = i8(seen_at)
    return write(frame, tape, tensor, seen[WORD], p, 0, 0, seen[SHAPE], seen[AUX], entry)


@typed
def view_of(frame, tape, thing, whole, place, mode, several, seen_at, way_at):
    """The Tensor of a view; 0 with an exception set, or REFUSED."""
    way = i8(way_at + ITEMS * 8)
    token, done = next_of(frame, tape), 0
    tensor = call2(frame[NEW_OBJECT], frame[TENSOR], 0)
    if tensor == 0:
        decref(frame, token)
        return 0
    view = call2(frame[NEW_OBJECT], frame[VIEW], 0)
    if view != 0:
        i8(tensor)[frame[T_HOME]] = view
        home = i8(thing)[frame[T_HOME]]
        above = home if home != tape and home != frame[NONE] else 0
        together = frame[FALSE] if above == 0 else i8(above)[frame[V_SEVERAL]]
        put(frame, view, frame[V_SEVERAL], frame[TRUE] if several else together)
        if stand(frame, tape, view, thing, above, place, mode, address(way)) != 0:
            array = array_seen(frame, whole, seen_at)
            if array != 0:
                i8(tensor)[frame[T_ARRAY]] = array
                put(frame, tensor, frame[T_SHAPE], way[WAY_SHORT])
                done = recorded(
                    frame, tape, tensor, thing, place, mode, seen_at, way[WAY_ENTRY], token
                )
    decref(frame, token)
    if done != 1:
        decref(frame, tensor)
        return done
    return tensor


@typed
def element_of(frame, tape, thing, whole, place, mode, size, seen_at, way_at):
    """The Tensor of an element as a number of its own; 0 with an exception set, or REFUSED."""
    way = i8(way_at + ITEMS * 8)
    token, done = next_of(frame, tape), 0
    tensor = call2(frame[NEW_OBJECT], frame[TENSOR], 0)
    if tensor == 0:
        decref(frame, token)
        return 0
    put(frame, tensor, frame[T_HOME], i8(tape)[frame[ELEMENT]])
    put(frame, tensor, frame[T_SHAPE], way[WAY_SHORT])
    array = array_of(frame, i8(whole)[ARRAY_DTYPE], 0, seen_at)
    if array != 0:
        call3(frame[COPY], i8(array)[ARRAY_DATA], i8(whole)[ARRAY_DATA] + i8(seen_at)[START], size)
        i8(tensor)[frame[T_ARRAY]] = array
        done = recorded(frame, tape, tensor, thing, place, mode, seen_at, way[WAY_ENTRY], token)
    decref(frame, token)
    if done != 1:
        decref(frame, tensor)
        return done
    return tensor


@typed
def views_of(frame, tape, thing, whole, place, mode, count, seen_at, ways_at):
    """The Tensors of several views, as a tuple; 0 with an exception set, or REFUSED."""
    room = number(frame, i8(tape)[frame[CAPACITY]]) - number(frame, i8(tape)[frame[USED]])
    if place != 0 and mode == WRITING and room < count:
        return REFUSED
    found = call1(frame[NEW_TUPLE], count)
    if found == 0:
        return 0
    for k in range(count):
        way_at = i8(ways_at)[k]
        tensor = view_of(frame, tape, thing, whole, place, mode, 1, seen_at, way_at)
        if tensor == 0 or tensor == REFUSED:
            decref(frame, found)
            return tensor
        i8(found)[ITEMS + k] = tensor
        seen_at += 8 * (LENGTHS + 2 * i8(seen_at)[DIMENSIONS])
    return found


@typed
def mode_of(frame, tape):
    """How operations are recorded, or REFUSED."""
    record_or_not = recording(frame, tape)
    if record_or_not == REFUSED and number(frame, i8(tape)[frame[MODE]]) == MODE_OFF:
        return INFERRING
    return record_or_not


@typed
def bytes_of_element(frame, tape, size):
    """`size` where elements are numbers (see `numpy_mode`), 0 where views; REFUSED: ask Python."""
    if size == 0 or i8(tape)[frame[TORCHS]] != frame[FALSE]:
        return 0
    if i8(tape)[frame[DEPTH]] != frame[ZERO]:
        return size if i8(tape)[frame[ELEMENT]] != frame[NONE] else REFUSED
    return REFUSED if i8(i8(tape)[frame[LEVELS]])[COUNT] != 0 else 0


@typed
def known_view(frame, tape, thing, line):
    """What a call makes that is known; 0 with an exception set, or REFUSED."""
    mode = mode_of(frame, tape)
    block_at, held = i8(line)[BLOCK_AT], i8(line)[HELD]
    place = number(frame, i8(thing)[frame[T_POS]])
    sight_at = block_at + 8 * (1 + i8(block_at)[0])
    several, count = i8(sight_at)[0], i8(sight_at)[1]
    # A number is asked about as an element is, and seen by Python: NumPy copies it.
    single = i4(i8(thing)[frame[T_ARRAY]] + NDIM)[0] == 0
    element = bytes_of_element(frame, tape, 1 if single else i8(sight_at)[2])
    if element != 0 and (single or element == REFUSED or mode == INFERRING):
        return REFUSED
    if mode == REFUSED or count == 0 or not is_current(frame, tape, thing, place):
        return REFUSED
    seen_at, ways_at = sight_at + 24, held + 8 * (ITEMS + FIRST_WAY)
    # Whatever Python code comes between may have the line forgotten, or the Tensor changed.
    whole = i8(thing)[frame[T_ARRAY]]
    incref(held)
    incref(whole)
    if several:
        found = views_of(frame, tape, thing, whole, place, mode, count, seen_at, ways_at)
    else:
        way_at = i8(ways_at)[0]
        if element:
            found = element_of(frame, tape, thing, whole, place, mode, element, seen_at, way_at)
        else:
            found = view_of(frame, tape, thing, whole, place, mode, 0, seen_at, way_at)
    decref(frame, whole)
    decref(frame, held)
    return found


@typed
def in_python(frame, function, given, named):
    """What a function in Python makes of a call."""
    made = call3(frame[CALL], function, given, named)
    if made == 0 or i8(made)[TYPE] == frame[TENSOR]:
        return made
    arguments = call1(frame[NEW_TUPLE], 1)
    if arguments == 0:
        decref(frame, made)
        return 0
    i8(arguments)[ITEMS] = made
    found = call3(frame[CALL], frame[SHOWN], arguments, 0)
    decref(frame, arguments)
    return found


@typed
def learnt(frame, function, given, named, line, words_at, count):
    """The same, where it will be known from then on."""
    length = room_i8(1)
    length[0] = count + 1
    told = array_of(frame, frame[I8], 1, address(length))
    if told == 0:
        return 0
    said = i8(i8(told)[ARRAY_DATA])
    said[0] = (line - frame[VIEW_CACHE]) // (8 * VIEW_LINE)
    for k in range(count):
        said[1 + k] = i8(words_at)[k]
    arguments = call1(frame[NEW_TUPLE], 4)
    if arguments == 0:
        decref(frame, told)
        return 0
    put(frame, arguments, ITEMS, function)
    put(frame, arguments, ITEMS + 1, given)
    put(frame, arguments, ITEMS + 2, named)
    i8(arguments)[ITEMS + 3] = told
    found = call3(frame[CALL], frame[LEARN_VIEW], arguments, 0)
    decref(frame, arguments)
    return found


@typed
def viewed(frame, tape, function, given, named):
    """What a function that makes views gives for some arguments; 0 with an exception set."""
    words = room_i8(WORDS)
    words_at = address(words)
    count = call_words(frame, function, given, named, words_at)
    if count == REFUSED:
        return in_python(frame, function, given, named)
    mixed = hash_of(words_at, count)
    line = line_of_call(frame, mixed, words_at, count)
    if line == 0:
        line = line_to_learn(frame, mixed)
        if line != 0:
            return learnt(frame, function, given, named, line, words_at, count)
        return in_python(frame, function, given, named)
    found = known_view(frame, tape, i8(given)[ITEMS], line)
    return in_python(frame, function, given, named) if found == REFUSED else found
