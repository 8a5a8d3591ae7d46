"""Elementwise operations in place on a large Tensor, and their records.

What it will refuse it refuses before anything has changed.  NumPy's loops write where they read, so
that an exception of arithmetic comes too late to begin anew: Python then says what NumPy would.
"""

from tapegrad.kernels.memory import address, call0, call1, call3, call8, i8
from tapegrad.native.abi import BY_PYTHON, BY_UFUNC, IN_PLACE, Operand, OpRow
from tapegrad.native.append import input_code, is_full
from tapegrad.native.execute_inplace import (
    announce_change,
    changeable,
    disjoint,
    record_change,
    saved_values,
)
from tapegrad.native.execute_large import FAILED, large_shape, loop_of
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    F8_SIZE,
    ITEMS,
    LOW_HALF,
    REFUSED,
    SECOND_CLASS,
    count_of,
    decref,
    hold_next,
    incref,
    recording,
    same_shape,
    set_slot,
    typed,
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
    alike = Operand(second).shape == 0 or same_shape(Operand(first).array, Operand(second).array)
    return 1 if alike and disjoint(first, second) else 0


@typed
def compute_into(frame, row_at, loop, first, second, bits):
    """Compute over the first operand; the exceptions of arithmetic that NumPy would speak of."""
    array, found = Operand(first).array, 0
    b = i8(Operand(second).array)[ARRAY_DATA] if second != 0 else 0
    at = i8(array)[ARRAY_DATA]
    state = call0(frame.PyEval_SaveThread)
    if loop == BY_UFUNC:
        call1(frame.feclearexcept, frame.fp_flags)
        if not compute(frame, row_at, first, second, array, bits, 0, F8_SIZE):
            found = call1(frame.fetestexcept, frame.fp_flags) & LOW_HALF
    else:
        call8(loop, count_of(array), at, at, b, 0, 0, 0, 0)
    call1(frame.PyEval_RestoreThread, state)
    return found


@typed
def call_python(frame, function, obj, value):
    """Call a function in Python on an object and a number; 0 with an exception set."""
    given = call1(frame.PyTuple_New, 2)
    if given == 0:
        return 0
    set_slot(frame, given, ITEMS, obj)
    i8(given)[ITEMS + 1] = call1(frame.PyLong_FromLongLong, value)
    done = call3(frame.PyObject_Call, function, given, 0) if i8(given)[ITEMS + 1] != 0 else 0
    decref(frame, given)
    if done != 0:
        decref(frame, done)
    return done


@typed
def append_change(frame, tape, row_at, first, second, bits, shape, entry):
    """Record a change that was made; 0 with an exception set."""
    p, q = input_code(frame, tape, first), 0
    if second != 0:
        q = input_code(frame, tape, second)
        if q == 0 and Operand(second).position != 0:
            return 0
    word = (OpRow(row_at).word | bits) & ~(SAVES if entry == frame.none else 0)
    return record_change(frame, tape, Operand(first).tensor, word, p, q, 0, shape, 0, entry)


@typed
def inplace_large(frame, tape, code, first, second):
    """The target, whose array and the other are held; 0 with an exception set, or REFUSED."""
    row_at, record = address(OpRow(frame.op_rows)[code]), recording(frame, tape)
    if record == REFUSED:
        return REFUSED
    if not may_change(frame, tape, record, first, second):
        return REFUSED
    places, scalars, shape = Operand(first).position, IN_PLACE, 0
    if second != 0:
        places |= Operand(second).position
        scalars |= 2 if Operand(second).shape == 0 else 0
    bits = AS_SCALAR << SECOND_CLASS if scalars & 2 else 0
    loop = loop_of(frame, code, scalars)
    if loop == 0 or loop == BY_PYTHON:
        return REFUSED if loop != 0 else 0
    listening, entry = record and places != 0, frame.none
    if listening:
        shape = large_shape(frame, Operand(first).array)
        if shape < 0:
            return 0 if shape == FAILED else REFUSED
        entry = saved_values(frame, row_at, first, second, F8_SIZE)
        if entry == 0:
            return 0
    else:
        incref(entry)
    done = announce_change(frame, tape, hold_next(frame, tape), 1 if second == 0 else 2, first)
    if done != 1:
        decref(frame, entry)
        return done
    found = compute_into(frame, row_at, loop, first, second, bits)
    if listening:
        done = append_change(frame, tape, row_at, first, second, bits, shape, entry)
    decref(frame, entry)
    if found != 0 and done != 0:  # last: it may raise
        code_at = call1(frame.PyLong_FromLongLong, code)
        done = call_python(frame, frame.warn_fp_flags, code_at, found) if code_at != 0 else 0
        if code_at != 0:
            decref(frame, code_at)
    if done == 0:
        return 0
    incref(Operand(first).tensor)
    return Operand(first).tensor
