"""The C function behind every fast call: check the arguments, make the results, run the program.

It is one function for all fast calls, compiled once per machine and kept in the disk cache: what
differs between them is in a `Frame`, which it reaches through `self`. So a new fast call needs no
compilation.
"""

from __future__ import annotations

import ctypes
from functools import cache

from tapegrad.kernels import build
from tapegrad.kernels.sweep import sweep_abi

_pointer, _int = ctypes.c_void_p, ctypes.c_int64


class Slot(ctypes.Structure):
    """The layout of an input to check, or of an output to make.

    Without a dtype it is a Python float, or an input an int or bool (`INTEGER`).  Without a shape
    it is that of the argument `like`; the program finds the places of such shapes among `inputs`,
    after those of all arguments.
    """

    _fields_ = (
        ("type", _pointer),
        ("dtype", _pointer),
        ("number", ctypes.c_int32),  # with the byte order: says the same of the elements as the
        ("byteorder", ctypes.c_int8),  # dtype's address, of which there may be several
        ("ndim", ctypes.c_int32),
        ("like", ctypes.c_int32),
        ("shape", _pointer),
    )


class Read(ctypes.Structure):
    """A captured read to check: of a dictionary's key, a cell, or a word."""

    _fields_ = (("place", _pointer), ("key", _pointer), ("value", _pointer), ("is_word", _int))


class Frame(ctypes.Structure):
    """The data of one fast call, and the functions that it calls."""

    _fields_ = (
        ("program", _pointer),
        ("input_count", _int),
        ("inputs", _pointer),  # Slots
        ("output_count", _int),
        ("outputs", _pointer),  # Slots
        ("code_count", _int),
        ("codes", _pointer),  # the result, see NONE
        ("context", _pointer),  # or null: what the program gets in place of scratch
        ("scratch", _pointer),  # or null
        ("busy", _int),  # whether a call is using it
        ("release", _int),  # whether the GIL is released while the program runs
        ("read_count", _int),
        ("reads", _pointer),  # Reads
        ("get_item", _pointer),
        ("get_content", _pointer),
        ("otherwise", _pointer),
        ("failed", _pointer),
        ("none", _pointer),
        ("vectorcall", _pointer),
        ("as_integer", _pointer),
        ("new_array", _pointer),
        ("new_float", _pointer),
        ("new_tuple", _pointer),
        ("incref", _pointer),
        ("decref", _pointer),
        ("save_thread", _pointer),
        ("restore_thread", _pointer),
    )


# The result is built on a stack: a code k >= 0 pushes output k, NONE pushes None, and EMPTY - n
# makes one tuple of the n topmost.
NONE, EMPTY = -1, -2
INTEGER = 1  # the number of a slot


@cache
def address() -> int:
    """The address of the function, of the kind METH_FASTCALL | METH_KEYWORDS."""
    return build.assemble(_text())


def _text() -> str:
    fields = dict(sweep_abi.FIELDS)
    for structure in (Slot, Read, Frame):
        for name, kind in structure._fields_:
            offset = getattr(structure, name).offset
            fields[f"{structure.__name__.lower()}_{name}"] = (offset, _LLVM[kind])
    text = "".join(_reader(name, *field) for name, field in fields.items()) + _FUNCTIONS
    constants = {
        "SYMBOL": build.SYMBOL, "SLOT": ctypes.sizeof(Slot), "READ": ctypes.sizeof(Read),
        "BUSY": Frame.busy.offset,
        "FLOAT": sweep_abi.FIELDS["float_value"][0], "ITEMS": sweep_abi.FIELDS["tuple_items"][0],
        "FLAGS": sweep_abi.ALIGNED_IN_C_ORDER, "EMPTY": EMPTY, "NONE": NONE, "INTEGER": INTEGER,
    }  # fmt: skip
    for name, value in constants.items():
        text = text.replace(f"<{name}>", str(value))
    return text


_LLVM = {_pointer: "ptr", _int: "i64", ctypes.c_int32: "i32", ctypes.c_int8: "i8"}


def _reader(name: str, offset: int, kind: str) -> str:
    """A function that loads one field of the structure at an address."""
    return f"""
define internal {kind} @{name}(ptr %at) alwaysinline {{
  %place = getelementptr i8, ptr %at, i64 {offset}
  %value = load {kind}, ptr %place
  ret {kind} %value
}}"""


_FUNCTIONS = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; The shape that a slot has, or that of another argument.
define internal ptr @shape_of(ptr %slot, ptr %args) alwaysinline {
  %own = call ptr @slot_shape(ptr %slot)
  %has_own = icmp ne ptr %own, null
  br i1 %has_own, label %end, label %other
other:
  %like = call i32 @slot_like(ptr %slot)
  %model_at = getelementptr ptr, ptr %args, i32 %like
  %model = load ptr, ptr %model_at
  %shape = call ptr @array_shape(ptr %model)
  br label %end
end:
  %found = phi ptr [ %own, %0 ], [ %shape, %other ]
  ret ptr %found
}

; Where an argument's elements are; null if it is not as the slot says.  An integer is put into
; `room`, the place of a shape into `shape_to` where the slot has none.
define internal ptr @elements(ptr %frame, ptr %slot, ptr %object, ptr %args, ptr %room,
                              ptr %shape_to) alwaysinline {
  %beyond_at = alloca i32
  %type = call ptr @object_type(ptr %object)
  %right_type = call ptr @slot_type(ptr %slot)
  %typed = icmp eq ptr %type, %right_type
  br i1 %typed, label %number_or_array, label %wrong
number_or_array:
  %right_dtype = call ptr @slot_dtype(ptr %slot)
  %right_number = call i32 @slot_number(ptr %slot)
  %is_number = icmp eq ptr %right_dtype, null
  br i1 %is_number, label %number, label %array
number:
  %is_integer = icmp eq i32 %right_number, <INTEGER>
  br i1 %is_integer, label %integer, label %float
integer:
  %as_integer = call ptr @frame_as_integer(ptr %frame)
  %int = call i64 %as_integer(ptr %object, ptr %beyond_at)
  store i64 %int, ptr %room
  %beyond = load i32, ptr %beyond_at
  %within = icmp eq i32 %beyond, 0
  br i1 %within, label %held, label %wrong
held:
  ret ptr %room
float:
  %value = getelementptr i8, ptr %object, i64 <FLOAT>
  ret ptr %value
array:
  %flags = call i32 @array_flags(ptr %object)
  %order = and i32 %flags, <FLAGS>
  %ordered = icmp eq i32 %order, <FLAGS>
  %ndim = call i32 @array_ndim(ptr %object)
  %right_ndim = call i32 @slot_ndim(ptr %slot)
  %as_deep = icmp eq i32 %ndim, %right_ndim
  %so_far = and i1 %ordered, %as_deep
  br i1 %so_far, label %one_dtype, label %wrong
one_dtype:
  %dtype = call ptr @array_dtype(ptr %object)
  %same = icmp eq ptr %dtype, %right_dtype
  br i1 %same, label %dims, label %equal_dtype
equal_dtype:
  %dtype_number = call i32 @dtype_number(ptr %dtype)
  %equal_number = icmp eq i32 %dtype_number, %right_number
  %byteorder = call i8 @dtype_byteorder(ptr %dtype)
  %right_byteorder = call i8 @slot_byteorder(ptr %slot)
  %equal_order = icmp eq i8 %byteorder, %right_byteorder
  %equal = and i1 %equal_number, %equal_order
  br i1 %equal, label %dims, label %wrong
dims:
  %shape = call ptr @array_shape(ptr %object)
  %right_shape = call ptr @shape_of(ptr %slot, ptr %args)
  %count = zext i32 %ndim to i64
  %fixed = call ptr @slot_shape(ptr %slot)
  %is_free = icmp eq ptr %fixed, null
  br i1 %is_free, label %free, label %dim
free:
  store ptr %shape, ptr %shape_to
  br label %dim
dim:
  %d = phi i64 [ 0, %dims ], [ 0, %free ], [ %next, %compare ]
  %more = icmp ult i64 %d, %count
  br i1 %more, label %compare, label %right
compare:
  %length_at = getelementptr i64, ptr %shape, i64 %d
  %length = load i64, ptr %length_at
  %right_length_at = getelementptr i64, ptr %right_shape, i64 %d
  %right_length = load i64, ptr %right_length_at
  %as_long = icmp eq i64 %length, %right_length
  %next = add i64 %d, 1
  br i1 %as_long, label %dim, label %wrong
right:
  %data = call ptr @array_data(ptr %object)
  ret ptr %data
wrong:
  ret ptr null
}

; Fill `inputs` with the places of the arguments; whether all are as they have to be.
define internal i1 @accept(ptr %frame, ptr %args, ptr %inputs, ptr %integers) alwaysinline {
  %count = call i64 @frame_input_count(ptr %frame)
  %slots = call ptr @frame_inputs(ptr %frame)
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %fitting ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %look, label %end
look:
  %arg_at = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %arg_at
  %slot = getelementptr [<SLOT> x i8], ptr %slots, i64 %k
  %room = getelementptr i64, ptr %integers, i64 %k
  %behind = add i64 %count, %k
  %shape_to = getelementptr ptr, ptr %inputs, i64 %behind
  %place = call ptr @elements(ptr %frame, ptr %slot, ptr %arg, ptr %args, ptr %room, ptr %shape_to)
  %fits = icmp ne ptr %place, null
  br i1 %fits, label %fitting, label %end
fitting:
  %input_at = getelementptr ptr, ptr %inputs, i64 %k
  store ptr %place, ptr %input_at
  %next = add i64 %k, 1
  br label %loop
end:
  %all = icmp uge i64 %k, %count
  ret i1 %all
}

; New arrays into `made`, and into `outputs` where each output is to be written; floats are
; written into `floats`.  Whether all could be made; if not, an exception is set.
define internal i1 @prepare(ptr %frame, ptr %args, ptr %made, ptr %floats,
                            ptr %outputs) alwaysinline {
  %count = call i64 @frame_output_count(ptr %frame)
  %slots = call ptr @frame_outputs(ptr %frame)
  %bytes = shl i64 %count, 3
  call void @llvm.memset.p0.i64(ptr %made, i8 0, i64 %bytes, i1 false)
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %written ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %output, label %end
output:
  %slot = getelementptr [<SLOT> x i8], ptr %slots, i64 %k
  %dtype = call ptr @slot_dtype(ptr %slot)
  %is_float = icmp eq ptr %dtype, null
  br i1 %is_float, label %float, label %array
float:
  %float_at = getelementptr double, ptr %floats, i64 %k
  br label %written
array:
  %new_array = call ptr @frame_new_array(ptr %frame)
  %type = call ptr @slot_type(ptr %slot)
  %ndim = call i32 @slot_ndim(ptr %slot)
  %shape = call ptr @shape_of(ptr %slot, ptr %args)
  %number = call i32 @slot_number(ptr %slot)
  %new = call ptr %new_array(ptr %type, i32 %ndim, ptr %shape, i32 %number, ptr null, ptr null,
                             i32 0, i32 0, ptr null)
  %is_made = icmp ne ptr %new, null
  br i1 %is_made, label %kept, label %end
kept:
  %made_at = getelementptr ptr, ptr %made, i64 %k
  store ptr %new, ptr %made_at
  %data = call ptr @array_data(ptr %new)
  br label %written
written:
  %place = phi ptr [ %float_at, %float ], [ %data, %kept ]
  %output_at = getelementptr ptr, ptr %outputs, i64 %k
  store ptr %place, ptr %output_at
  %next = add i64 %k, 1
  br label %loop
end:
  %all = icmp uge i64 %k, %count
  ret i1 %all
}

; Run the program, with the frame's context, or its scratch if no other call is using it.
define internal i64 @run(ptr %frame, ptr %inputs, ptr %outputs) alwaysinline {
  %program = call ptr @frame_program(ptr %frame)
  %buffer = call ptr @frame_scratch(ptr %frame)
  %busy = getelementptr i8, ptr %frame, i64 <BUSY>
  %has_buffer = icmp ne ptr %buffer, null
  %context = call ptr @frame_context(ptr %frame)
  br i1 %has_buffer, label %take, label %start
take:
  %before = atomicrmw xchg ptr %busy, i64 1 acquire
  %free = icmp eq i64 %before, 0
  %taken = select i1 %free, ptr %buffer, ptr null
  br label %start
start:
  %scratch = phi ptr [ %context, %0 ], [ %taken, %take ]
  %was_taken = phi i1 [ false, %0 ], [ %free, %take ]
  %release = call i64 @frame_release(ptr %frame)
  %releases = icmp ne i64 %release, 0
  br i1 %releases, label %alone, label %locked
locked:
  %status_locked = call i64 %program(ptr %inputs, ptr %outputs, ptr %scratch)
  br label %done
alone:
  %save = call ptr @frame_save_thread(ptr %frame)
  %restore = call ptr @frame_restore_thread(ptr %frame)
  %thread = call ptr %save()
  %status_alone = call i64 %program(ptr %inputs, ptr %outputs, ptr %scratch)
  call void %restore(ptr %thread)
  br label %done
done:
  %status = phi i64 [ %status_locked, %locked ], [ %status_alone, %alone ]
  br i1 %was_taken, label %give, label %end
give:
  store atomic i64 0, ptr %busy release, align 8
  br label %end
end:
  ret i64 %status
}

; Whether what the program reads around it is what it was.
define internal i1 @unchanged(ptr %frame, i64 %count) {
  %reads = call ptr @frame_reads(ptr %frame)
  %get_item = call ptr @frame_get_item(ptr %frame)
  %get_content = call ptr @frame_get_content(ptr %frame)
  %decref = call ptr @frame_decref(ptr %frame)
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %step ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %read, label %end
read:
  %at = getelementptr [<READ> x i8], ptr %reads, i64 %k
  %place = call ptr @read_place(ptr %at)
  %key = call ptr @read_key(ptr %at)
  %value = call ptr @read_value(ptr %at)
  %is_word = call i64 @read_is_word(ptr %at)
  %elsewhere = icmp eq i64 %is_word, 0
  br i1 %elsewhere, label %look, label %word
word:
  %held = load ptr, ptr %place
  br label %step
look:
  %is_cell = icmp eq ptr %key, null
  br i1 %is_cell, label %cell, label %dictionary
cell:
  %content = call ptr %get_content(ptr %place)
  call void %decref(ptr %content)
  br label %step
dictionary:
  %item = call ptr %get_item(ptr %place, ptr %key)
  br label %step
step:
  %now = phi ptr [ %content, %cell ], [ %item, %dictionary ], [ %held, %word ]
  %next = add i64 %k, 1
  %same = icmp eq ptr %now, %value
  br i1 %same, label %loop, label %end
end:
  %all = icmp uge i64 %k, %count
  ret i1 %all
}

; Python floats into `made` for the outputs that are floats; whether all could be made.
define internal i1 @wrap(ptr %frame, ptr %made, ptr %floats) alwaysinline {
  %count = call i64 @frame_output_count(ptr %frame)
  %slots = call ptr @frame_outputs(ptr %frame)
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %step ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %output, label %end
output:
  %slot = getelementptr [<SLOT> x i8], ptr %slots, i64 %k
  %dtype = call ptr @slot_dtype(ptr %slot)
  %is_float = icmp eq ptr %dtype, null
  br i1 %is_float, label %float, label %step
float:
  %float_at = getelementptr double, ptr %floats, i64 %k
  %value = load double, ptr %float_at
  %new_float = call ptr @frame_new_float(ptr %frame)
  %new = call ptr %new_float(double %value)
  %made_at = getelementptr ptr, ptr %made, i64 %k
  store ptr %new, ptr %made_at
  %is_made = icmp ne ptr %new, null
  br i1 %is_made, label %step, label %end
step:
  %next = add i64 %k, 1
  br label %loop
end:
  %all = icmp uge i64 %k, %count
  ret i1 %all
}

; Give back one reference to each of `count` objects; null is none.
define internal void @drop(ptr %frame, ptr %objects, i64 %count) {
  %decref = call ptr @frame_decref(ptr %frame)
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %step ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %step, label %end
step:
  %at = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %at
  call void %decref(ptr %object)
  %next = add i64 %k, 1
  br label %loop
end:
  ret void
}

; The result that the codes describe, or null and an exception; `made` keeps its references.
define internal ptr @result(ptr %frame, ptr %made) {
  %count = call i64 @frame_code_count(ptr %frame)
  %codes = call ptr @frame_codes(ptr %frame)
  %incref = call ptr @frame_incref(ptr %frame)
  %none = call ptr @frame_none(ptr %frame)
  %stack = alloca ptr, i64 %count
  br label %loop
loop:
  %c = phi i64 [ 0, %0 ], [ %next, %push ]
  %height = phi i64 [ 0, %0 ], [ %higher, %push ]
  %more = icmp ult i64 %c, %count
  br i1 %more, label %step, label %end
step:
  %code_at = getelementptr i64, ptr %codes, i64 %c
  %code = load i64, ptr %code_at
  %is_tuple = icmp sle i64 %code, <EMPTY>
  br i1 %is_tuple, label %tuple, label %leaf
leaf:
  %is_none = icmp eq i64 %code, <NONE>
  br i1 %is_none, label %reference, label %output
output:
  %made_at = getelementptr ptr, ptr %made, i64 %code
  %output_object = load ptr, ptr %made_at
  br label %reference
reference:
  %object = phi ptr [ %none, %leaf ], [ %output_object, %output ]
  call void %incref(ptr %object)
  br label %push
tuple:
  %length = sub i64 <EMPTY>, %code
  %new_tuple = call ptr @frame_new_tuple(ptr %frame)
  %new = call ptr %new_tuple(i64 %length)
  %is_made = icmp ne ptr %new, null
  br i1 %is_made, label %fill, label %failed
fill:
  %below = sub i64 %height, %length
  %items = getelementptr i8, ptr %new, i64 <ITEMS>
  %from = getelementptr ptr, ptr %stack, i64 %below
  %bytes = shl i64 %length, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %items, ptr %from, i64 %bytes, i1 false)
  br label %push
push:
  %pushed = phi ptr [ %object, %reference ], [ %new, %fill ]
  %base = phi i64 [ %height, %reference ], [ %below, %fill ]
  %push_at = getelementptr ptr, ptr %stack, i64 %base
  store ptr %pushed, ptr %push_at
  %higher = add i64 %base, 1
  %next = add i64 %c, 1
  br label %loop
failed:
  call void @drop(ptr %frame, ptr %stack, i64 %height)
  ret ptr null
end:
  %whole = load ptr, ptr %stack
  ret ptr %whole
}

define ptr @<SYMBOL>(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {
  %first_at = getelementptr i8, ptr %self, i64 <ITEMS>
  %first = load ptr, ptr %first_at
  %frame = call ptr @array_data(ptr %first)
  %input_count = call i64 @frame_input_count(ptr %frame)
  %output_count = call i64 @frame_output_count(ptr %frame)
  %places = shl i64 %input_count, 1
  %inputs = alloca ptr, i64 %places
  %integers = alloca i64, i64 %input_count
  %outputs = alloca ptr, i64 %output_count
  %made = alloca ptr, i64 %output_count
  %floats = alloca double, i64 %output_count
  %positional = icmp eq ptr %kwnames, null
  %as_many = icmp eq i64 %nargs, %input_count
  %called_right = and i1 %positional, %as_many
  br i1 %called_right, label %around, label %otherwise
around:
  %read_count = call i64 @frame_read_count(ptr %frame)
  %reads_none = icmp eq i64 %read_count, 0
  br i1 %reads_none, label %look, label %read
read:
  %unchanged = call i1 @unchanged(ptr %frame, i64 %read_count)
  br i1 %unchanged, label %look, label %otherwise
look:
  %accepted = call i1 @accept(ptr %frame, ptr %args, ptr %inputs, ptr %integers)
  br i1 %accepted, label %make, label %otherwise
make:
  %prepared = call i1 @prepare(ptr %frame, ptr %args, ptr %made, ptr %floats, ptr %outputs)
  br i1 %prepared, label %go, label %no_room
go:
  %status = call i64 @run(ptr %frame, ptr %inputs, ptr %outputs)
  %ran = icmp eq i64 %status, 0
  br i1 %ran, label %pack, label %stopped
pack:
  %wrapped = call i1 @wrap(ptr %frame, ptr %made, ptr %floats)
  br i1 %wrapped, label %build, label %no_room
build:
  %result = call ptr @result(ptr %frame, ptr %made)
  call void @drop(ptr %frame, ptr %made, i64 %output_count)
  ret ptr %result
no_room:
  call void @drop(ptr %frame, ptr %made, i64 %output_count)
  ret ptr null
stopped:
  call void @drop(ptr %frame, ptr %made, i64 %output_count)
  %guard = icmp sgt i64 %status, 0
  br i1 %guard, label %otherwise, label %raised
raised:
  %vectorcall_failed = call ptr @frame_vectorcall(ptr %frame)
  %failed = call ptr @frame_failed(ptr %frame)
  %nothing = call ptr %vectorcall_failed(ptr %failed, ptr null, i64 0, ptr null)
  %decref = call ptr @frame_decref(ptr %frame)
  call void %decref(ptr %nothing)
  ret ptr null
otherwise:
  %vectorcall = call ptr @frame_vectorcall(ptr %frame)
  %other = call ptr @frame_otherwise(ptr %frame)
  %answer = call ptr %vectorcall(ptr %other, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %answer
}
"""
