"""Elementwise operations in place on a large Tensor, and their records.

What it will refuse it refuses before anything has changed.  NumPy's loops write where they read, so
that an exception of arithmetic comes too late to begin anew: Python then says what NumPy would.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call0, call1, call3, call8, i8
from tapegrad.native.abi import (
    BY_PYTHON,
    BY_STEPS,
    CALL,
    CLEAR_EXCEPTIONS,
    EXCEPTIONS,
    FROM_LONG,
    IN_PLACE,
    LOCK,
    NEW_TUPLE,
    NONE,
    ROW,
    ROWS,
    SAY_EXCEPTIONS,
    SERIOUS,
    UNLOCK,
    WORD,
)
from tapegrad.native.append import code_of, is_full
from tapegrad.native.execute_inplace import announced, apart, changeable, kept, move
from tapegrad.native.execute_large import FAILED, large_shape, loop_of
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ITEMS,
    KIND,
    LOW_HALF,
    PLACE,
    REFUSED,
    SECOND_CLASS,
    THING,
    VALUES,
    WIDE_SIZE,
    count_of,
    decref,
    incref,
    next_of,
    put,
    recording,
    same_shape,
)
from tapegrad.native.ufunc_loops import compute
from tapegrad.tape.tape import SAVES
from tapegrad.tape.tape import SCALAR as AS_SCALAR


@typed
def may_change(frame, tape, listening, first, second):
    """Whether a Tensor may be changed by an operand that is one number or has its shape."""
    if not changeable(frame, tape, listening, first) or (listening and is_full(frame, tape)):
        return 0
    if second == 0:
        return 1
    alike = i8(second)[KIND] == 0 or same_shape(i8(first)[VALUES], i8(second)[VALUES])
    return 1 if alike and apart(first, second) else 0


@typed
def written(frame, row_at, loop, first, second, bits):
    """Compute over the first operand; the exceptions of arithmetic that NumPy would speak of."""
    array, found = i8(first)[VALUES], 0
    b = i8(i8(second)[VALUES])[ARRAY_DATA] if second != 0 else 0
    at = i8(array)[ARRAY_DATA]
    state = call0(frame[UNLOCK])
    if loop == BY_STEPS:
        call1(frame[CLEAR_EXCEPTIONS], frame[SERIOUS])
        if not compute(frame, row_at, first, second, array, bits, 0, WIDE_SIZE):
            found = call1(frame[EXCEPTIONS], frame[SERIOUS]) & LOW_HALF
    else:
        call8(loop, count_of(array), at, at, b, 0, 0, 0, 0)
    call1(frame[LOCK], state)
    return found


@typed
def told(frame, function, thing, value):
    """Call a function in Python on an object and a number; 0 with an exception set."""
    given = call1(frame[NEW_TUPLE], 2)
    if given == 0:
        return 0
    put(frame, given, ITEMS, thing)
    i8(given)[ITEMS + 1] = call1(frame[FROM_LONG], value)
    done = call3(frame[CALL], function, given, 0) if i8(given)[ITEMS + 1] != 0 else 0
    decref(frame, given)
    if done != 0:
        decref(frame, done)
    return done


@typed
def recorded(frame, tape, row_at, first, second, bits, shape, entry):
    """Record a change that was made; 0 with an exception set."""
    p, q = code_of(frame, tape, first), 0
    if second != 0:
        q = code_of(frame, tape, second)
        if q == 0 and i8(second)[PLACE] != 0:
            return 0
    word = (i8(row_at)[WORD] | bits) & ~(SAVES if entry == frame[NONE] else 0)
    return move(frame, tape, i8(first)[THING], word, p, q, 0, shape, 0, entry)


@typed
def over(frame, tape, code, first, second):
    """The target, whose array and the other are held; 0 with an exception set, or REFUSED."""
    row_at, record = frame[ROWS] + code * ROW * 8, recording(frame, tape)
    if record == REFUSED:
        return REFUSED
    if not may_change(frame, tape, record, first, second):
        return REFUSED
    places, scalars, shape = i8(first)[PLACE], IN_PLACE, 0
    if second != 0:
        places |= i8(second)[PLACE]
        scalars |= 2 if i8(second)[KIND] == 0 else 0
    bits = AS_SCALAR << SECOND_CLASS if scalars & 2 else 0
    loop = loop_of(frame, code, scalars)
    if loop == 0 or loop == BY_PYTHON:
        return REFUSED if loop != 0 else 0
    listening, entry = record and places != 0, frame[NONE]
    if listening:
        shape = large_shape(frame, i8(first)[VALUES])
        if shape < 0:
            return 0 if shape == FAILED else REFUSED
        entry = kept(frame, row_at, first, second, WIDE_SIZE)
        if entry == 0:
            return 0
    else:
        incref(entry)
    done = announced(frame, tape, next_of(frame, tape), 1 if second == 0 else 2, first)
    if done != 1:
        decref(frame, entry)
        return done
    found = written(frame, row_at, loop, first, second, bits)
    if listening:
        done = recorded(frame, tape, row_at, first, second, bits, shape, entry)
    decref(frame, entry)
    if found != 0 and done != 0:  # last: it may raise
        code_at = call1(frame[FROM_LONG], code)
        done = told(frame, frame[SAY_EXCEPTIONS], code_at, found) if code_at != 0 else 0
        if code_at != 0:
            decref(frame, code_at)
    if done == 0:
        return 0
    incref(i8(first)[THING])
    return i8(first)[THING]
