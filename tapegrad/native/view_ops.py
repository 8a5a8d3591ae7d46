"""Make the views of a call, and their records."""

from tapegrad.kernels.memory import address, call1, call2, call3, i4, i8, room_i8
from tapegrad.native.abi import (
    KEY_WORDS,
    TOGETHER,
    CachedViews,
    Operand,
    ViewCall,
    ViewKey,
    ViewLine,
    ViewPlan,
    ViewRecord,
)
from tapegrad.native.append import append_record, input_codes, is_full
from tapegrad.native.call_key import call_words, hash_of, line_of_call, line_to_learn
from tapegrad.native.operands import is_current
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    COUNT,
    ITEMS,
    NDIM,
    REFUSED,
    TYPE,
    array_of,
    array_over,
    decref,
    hold_next,
    incref,
    int_value,
    recording,
    set_slot,
    typed,
)
from tapegrad.tape.tape import MODE_OFF

# How operations are recorded: not at all, on the tape, or so that nothing may be recorded later.
NOT_RECORDING, RECORDING, INFERRING = range(3)


@typed
def set_base(frame, tape, view, obj, parent, position, mode, plan_at):
    """Say what a view is a view of; 0 with an exception set.

    `parent` is what the Tensor knows as a view, or 0 if it is none.
    """
    plan = i8(plan_at)
    slots = i8(view)
    frozen = frame.empty_str if parent == 0 else i8(parent)[frame.v_frozen]
    base = obj if parent == 0 else i8(parent)[frame.v_base]
    set_slot(frame, view, frame.v_tape, tape)
    set_slot(frame, view, frame.v_base, base)
    if base == frame.none:
        set_slot(frame, view, frame.v_chain, frame.empty_tuple)
        set_slot(frame, view, frame.v_stamp, frame.zero)
    else:
        set_slot(frame, view, frame.v_stamp, i8(base)[frame.t_pos])
        if position != 0 and mode != RECORDING:
            frozen = frame.no_grad
        if parent == 0:
            set_slot(frame, view, frame.v_chain, plan[ViewPlan.step])
        else:
            chain = i8(parent)[frame.v_chain]
            incref(chain)  # the collector may run
            slots[frame.v_chain] = call2(frame.PySequence_Concat, chain, plan[ViewPlan.step])
            decref(frame, chain)
    set_slot(frame, view, frame.v_frozen, frozen)
    return slots[frame.v_chain]


@typed
def view_array(frame, whole, record_at):
    """The array of a view, or 0 with an exception set."""
    seen = ViewRecord(record_at)
    lengths = address(seen[1])
    start = i8(whole)[ARRAY_DATA] + seen.start
    return array_over(frame, whole, seen.ndim, lengths, lengths + 8 * seen.ndim, start)


@typed
def append_view(frame, tape, tensor, obj, position, mode, record_at, entry, token):
    """Write the record of a view, if there is one; 0 with an exception set, or REFUSED."""
    if position == 0 or mode != RECORDING:
        set_slot(frame, tensor, frame.t_pos, frame.zero)
        return 1
    if is_full(frame, tape) or i8(tape)[frame.tape_next] != token:
        return REFUSED
    one, codes = Operand(address(room_i8(Operand.SIZE))), room_i8(3)
    one.tensor, one.position = obj, position
    if not input_codes(frame, tape, 1, one, address(codes)):
        return 0
    seen = ViewRecord(record_at)
    return append_record(
        frame, tape, tensor, seen.word, address(codes), seen.shape, seen.aux, entry
    )


@typed
def new_view(frame, tape, obj, whole, position, mode, bound, record_at, plan_at):
    """The Tensor of a view; 0 with an exception set, or REFUSED."""
    plan = i8(plan_at + ITEMS * 8)
    token, done = hold_next(frame, tape), 0
    tensor = call2(frame.PyType_GenericAlloc, frame.tensor_type, 0)
    if tensor == 0:
        decref(frame, token)
        return 0
    view = call2(frame.PyType_GenericAlloc, frame.view_type, 0)
    if view != 0:
        i8(tensor)[frame.t_home] = view
        home = i8(obj)[frame.t_home]
        parent = home if home != tape and home != frame.none else 0
        together = frame.false if parent == 0 else i8(parent)[frame.v_several]
        set_slot(frame, view, frame.v_several, frame.true if bound else together)
        if set_base(frame, tape, view, obj, parent, position, mode, address(plan)) != 0:
            array = view_array(frame, whole, record_at)
            if array != 0:
                i8(tensor)[frame.t_a] = array
                set_slot(frame, tensor, frame.t_s, plan[ViewPlan.short])
                entry = plan[ViewPlan.entry]
                done = append_view(
                    frame, tape, tensor, obj, position, mode, record_at, entry, token
                )
    decref(frame, token)
    if done != 1:
        decref(frame, tensor)
        return done
    return tensor


@typed
def new_element(frame, tape, obj, whole, position, mode, size, record_at, plan_at):
    """The Tensor of an element as a number of its own; 0 with an exception set, or REFUSED."""
    plan = i8(plan_at + ITEMS * 8)
    token, done = hold_next(frame, tape), 0
    tensor = call2(frame.PyType_GenericAlloc, frame.tensor_type, 0)
    if tensor == 0:
        decref(frame, token)
        return 0
    set_slot(frame, tensor, frame.t_home, i8(tape)[frame.tape_element])
    set_slot(frame, tensor, frame.t_s, plan[ViewPlan.short])
    array = array_of(frame, i8(whole)[ARRAY_DTYPE], 0, record_at, 0)
    if array != 0:
        start = i8(whole)[ARRAY_DATA] + ViewRecord(record_at).start
        call3(frame.memcpy, i8(array)[ARRAY_DATA], start, size)
        i8(tensor)[frame.t_a] = array
        done = append_view(
            frame, tape, tensor, obj, position, mode, record_at, plan[ViewPlan.entry], token
        )
    decref(frame, token)
    if done != 1:
        decref(frame, tensor)
        return done
    return tensor


@typed
def new_views(frame, tape, obj, whole, position, mode, bound, count, record_at, plans_at):
    """The Tensors of several views, as a tuple; 0 with an exception set, or REFUSED."""
    room = int_value(frame, i8(tape)[frame.tape_capacity]) - int_value(
        frame, i8(tape)[frame.tape_used]
    )
    if position != 0 and mode == RECORDING and room < count:
        return REFUSED
    found = call1(frame.PyTuple_New, count)
    if found == 0:
        return 0
    for k in range(count):
        plan_at = i8(plans_at)[k]
        tensor = new_view(frame, tape, obj, whole, position, mode, bound, record_at, plan_at)
        if tensor == 0 or tensor == REFUSED:
            decref(frame, found)
            return tensor
        i8(found)[ITEMS + k] = tensor
        this = ViewRecord(record_at)
        record_at = address(this[1]) + 2 * 8 * this.ndim
    return found


@typed
def recording_mode(frame, tape):
    """How operations are recorded, or REFUSED."""
    record_or_not = recording(frame, tape)
    if record_or_not == REFUSED and int_value(frame, i8(tape)[frame.tape_mode]) == MODE_OFF:
        return INFERRING
    return record_or_not


@typed
def bytes_of_element(frame, tape, size):
    """`size` where elements are numbers (see `numpy_semantics`), 0 where views; or REFUSED."""
    if size == 0 or i8(tape)[frame.tape_torchs] != frame.false:
        return 0
    if i8(tape)[frame.tape_depth] != frame.zero:
        return size if i8(tape)[frame.tape_element] != frame.none else REFUSED
    return REFUSED if i8(i8(tape)[frame.tape_levels])[COUNT] != 0 else 0


@typed
def cached_view(frame, tape, obj, line):
    """What a call makes that is known; 0 with an exception set, or REFUSED."""
    mode = recording_mode(frame, tape)
    key_at, held = ViewLine(line).key, ViewLine(line).held
    position = int_value(frame, i8(obj)[frame.t_pos])
    this = ViewCall(address(ViewKey(key_at)[1]) + 8 * ViewKey(key_at).count)
    several, count = this.several, this.count
    # A number is asked about as an element is, and seen by Python: NumPy copies it.
    single = i4(i8(obj)[frame.t_a] + NDIM)[0] == 0
    element = bytes_of_element(frame, tape, 1 if single else this.itemsize)
    if element != 0 and (single or element == REFUSED or mode == INFERRING):
        return REFUSED
    if mode == REFUSED or count == 0 or not is_current(frame, tape, obj, position):
        return REFUSED
    record_at, plans_at = address(this[1]), i8(held + 8 * ITEMS)[CachedViews.plans] + 8 * ITEMS
    # Whatever Python code comes between may have the line forgotten, or the Tensor changed.
    whole = i8(obj)[frame.t_a]
    incref(held)
    incref(whole)
    if several:
        bound = 1 if several == TOGETHER else 0
        found = new_views(
            frame, tape, obj, whole, position, mode, bound, count, record_at, plans_at
        )
    else:
        plan_at = i8(plans_at)[0]
        if element:
            found = new_element(
                frame, tape, obj, whole, position, mode, element, record_at, plan_at
            )
        else:
            found = new_view(frame, tape, obj, whole, position, mode, 0, record_at, plan_at)
    decref(frame, whole)
    decref(frame, held)
    return found


@typed
def call_view_fn(frame, function, given, named):
    """What a function in Python makes of a call."""
    made = call3(frame.PyObject_Call, function, given, named)
    if made == 0 or i8(made)[TYPE] == frame.tensor_type:
        return made
    arguments = call1(frame.PyTuple_New, 1)
    if arguments == 0:
        decref(frame, made)
        return 0
    i8(arguments)[ITEMS] = made
    found = call3(frame.PyObject_Call, frame.as_tensors, arguments, 0)
    decref(frame, arguments)
    return found


@typed
def learn_view(frame, function, given, named, line, words_at, count):
    """The same, where it will be known from then on."""
    length = room_i8(1)
    length[0] = count + 1
    key = array_of(frame, frame.int64, 1, address(length), 0)
    if key == 0:
        return 0
    key_words = i8(i8(key)[ARRAY_DATA])
    key_words[0] = (line - frame.view_cache) // (8 * ViewLine.SIZE)
    for k in range(count):
        key_words[1 + k] = i8(words_at)[k]
    arguments = call1(frame.PyTuple_New, 4)
    if arguments == 0:
        decref(frame, key)
        return 0
    set_slot(frame, arguments, ITEMS, function)
    set_slot(frame, arguments, ITEMS + 1, given)
    set_slot(frame, arguments, ITEMS + 2, named)
    i8(arguments)[ITEMS + 3] = key
    found = call3(frame.PyObject_Call, frame.learn_view, arguments, 0)
    decref(frame, arguments)
    return found


@typed
def view_op(frame, tape, function, given, named):
    """What a function that makes views gives for some arguments; 0 with an exception set."""
    words = room_i8(KEY_WORDS)
    words_at = address(words)
    count = call_words(frame, function, given, named, words_at)
    if count == REFUSED:
        return call_view_fn(frame, function, given, named)
    hashed = hash_of(words_at, count)
    line = line_of_call(frame, hashed, words_at, count)
    if line == 0:
        line = line_to_learn(frame, hashed)
        if line != 0:
            return learn_view(frame, function, given, named, line, words_at, count)
        return call_view_fn(frame, function, given, named)
    found = cached_view(frame, tape, i8(given)[ITEMS], line)
    return call_view_fn(frame, function, given, named) if found == REFUSED else found
