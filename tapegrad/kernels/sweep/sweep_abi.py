"""The frame of the compiled sweep, and where CPython and NumPy keep what it reads.

The compiled sweep reads three things of Python objects: the items of a list, the items of a tuple,
and the header of an array.  Where they stand is found by looking, once, and checked; when that
fails (an interpreter with another layout) the compiled sweep is not used and the sweep runs in
Python.
"""

import ctypes
import sys
from array import array as int_array
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from tapegrad.base.word_struct import WordStruct
from tapegrad.tape.record_format import DTYPE_SHIFT


class SweepFrame(WordStruct):
    """What a sweep is about, and where its memory stands."""

    # What changes from sweep to sweep is written together; `into` is the array of the gradient of
    # one leaf, and all from `root` on is of a sweep from one root to one leaf.
    task: int
    records: int
    keep_at: int
    input_lists_at: int
    sizes: int
    views: int
    shift: int
    old: int
    old_count: int
    leaves: int
    low: int
    cursor: int
    target_count: int
    strict: int
    root: int
    leaf: Annotated[Any, 1]
    into: int
    count: int
    # what is wanted, and where the compiled sweep stands
    seeds: int
    seed_count: int
    targets: int
    bottom: int
    changed: int  # below: records older than the last change in place; -1: Python looks
    retain: int
    adjoints: int
    leaf_adjoints: int
    keep: int
    need: int
    need_at: int
    leaf_need: int
    reach: int
    reach_at: int
    input_lists: int
    arena: int
    arena_at: int
    arena_end: int
    free: int
    kernels: int
    kinds: int
    gemm: int
    gemm_f4: int
    gemm_arguments: int
    every: int
    top: int
    detail: int
    tuple_items: int
    array_data: int
    array_strides: int
    array_flags: int
    nothing: int
    seed: Annotated[Any, 2]  # of a sweep from one root, as `seeds` has it
    one: Annotated[Any, 1]  # the number, in double precision
    capacity: int  # of adjoints and marks: for so many records and leaves there is room
    kernel: int  # the compiled sweep
    choice: int  # the code of `where`, whose first operand is of bytes
    unordered: int  # whether values that a record has kept lie in another order than C's


EVERY_LEAF = -1  # in place of the number of targets

# Tasks: a sweep from its start, the same from where Python took over, the liveness pass, and a
# sweep from one root to one leaf, which is done as a whole or not at all.
START, RESUME, PROPAGATE, ONE_LEAF = range(4)

# What the compiled sweep returns.
(
    DONE, WANTS_PYTHON, WANTS_KERNEL, WANTS_ROOM, WANTS_BLAS, WANTS_CHECK, SPENT_RECORD, BELOW,
    UNUSED, WANTS_RULE,
) = range(10)  # fmt: skip

# Bits of `need`: something below leads to a target; this record's own adjoint is a target.
NEED_INSIDE, NEED_CAPTURE = 1, 2
LEAF_REACHED = 2  # beside 1, in the marks of the needed leaves: a root depends on this one

# Kinds of records: an elementwise operation is named by its number of operands (1 to 3).
(
    KIND_SUM, KIND_MEAN, KIND_MATMUL, KIND_VIEW, KIND_JOIN, KIND_AXIS, KIND_PARTS,
    KIND_PICK, KIND_SELECT, KIND_PUT, KIND_MASK, KIND_ASSIGN, KIND_TRIANGLE,
    KIND_SOLVE, KIND_SLOGDET, KIND_DET, KIND_FACTOR, KIND_CONVOLUTION, KIND_WINDOWS, KIND_FOURIER,
    KIND_CAST, KIND_CALL,
) = range(4, 26)  # fmt: skip

CAPACITY = 1024  # operations: the sweep holds the address of their kernels, which never moves
PER_OP = 48  # kernels of real numbers: two dtypes, three operands, eight patterns of scalars
# As many follow for each way in which the result and the operands may be complex.
REAL = CAPACITY * PER_OP

SINGLE = 1 << DTYPE_SHIFT  # in the word of a record: float32
FIELD = 15  # bits of a number in AUX where that holds several
FIELD_MASK = (1 << FIELD) - 1
DECIMAL_BITS = 9  # of the digits of a decimal number there; above them: how many are decimals
# In AUX of what reads or writes at chosen places: see `tapegrad.ops.index_layout`.
EACH_BITS, PLACE_BITS = 15, 32
SHARED, KEEPS_WRITTEN, INDEX_LAST, LOWER = 1 << 60, 1 << 61, 1 << 62, 1 << 62
# Elements up to which the compiled sweep handles adjoints, and multiplies matrices, by itself;
# from `tensor.SHORT` on arrays are computed by loops that threads share.
SMALL = MATRIX = FIELD_MASK
# In AUX of a product of matrices, in fields: rows, inner length, columns, how many products; which
# factor is one for all of them.
ONE_LEFT, ONE_RIGHT = 1 << 4 * FIELD, 2 << 4 * FIELD
SYSTEM = 1024  # elements up to which a system of equations is solved within the compiled sweep
CHUNK = 1 << 21  # bytes of the arena's first chunk; it must hold more than one record needs
# In AUX of a factorization: rows and columns (of the right side, for systems), the number of
# matrices, and what a system is like.
FACTOR_SIDE = 6
FACTOR_ROWS, FACTOR_COLUMNS, FACTOR_FLAGS, FACTOR_BATCH = 0, 6, 12, 14
ROOM = 8 * 4 * SMALL  # bytes that one record may need: three adjoints, rounded up
FREE_LISTS = 24


class Layout(NamedTuple):
    """Offsets in bytes into CPython's and NumPy's objects."""

    list_items: int
    tuple_items: int
    array_data: int
    array_strides: int
    array_flags: int


def _words(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address))


@cache
def find() -> Layout | None:
    """Look at objects with known content; None when they are not laid out as expected."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    marks = [object(), object(), object()]
    addresses = [id(m) for m in marks]
    pair = tuple(marks)
    words = _words(id(pair), 8)
    tuple_items = next((8 * i for i in range(6) if words[i : i + 2] == addresses[:2]), -1)
    head = _words(id(marks), 5)
    list_items = 24 if _words(head[3], 3) == addresses else -1
    array = np.arange(6.0).reshape(2, 3)[:, :2]
    interface = array.__array_interface__
    words = _words(id(array), 10)
    ndim = (ctypes.c_int32).from_address(id(array) + 24).value
    good = (
        tuple_items > 0
        and list_items > 0
        and words[2] == interface["data"][0]
        and ndim == 2
        and _words(words[5], 2) == [24, 8]
        and not (ctypes.c_int32).from_address(id(array) + 64).value & 1
        and (ctypes.c_int32).from_address(id(array.copy()) + 64).value & 1 == 1
    )
    return Layout(list_items, tuple_items, 16, 40, 64) if good else None


# What machine code outside the compiled sweep reads: offset, and LLVM's type.
FIELDS = {
    "object_type": (8, "ptr"),
    "float_value": (16, "double"),
    "int_size": (16, "i64"),  # see `ONE_DIGIT`
    "int_digit": (24, "i32"),
    "object_size": (16, "i64"),  # how many items a tuple or a list has
    "tuple_items": (tuple.__basicsize__, "[0 x ptr]"),  # 24, from 3.14 on 32: a hash is kept
    "list_items": (24, "ptr"),
    "int64_value": (16, "i64"),  # of NumPy's scalar
    "slice_edges": (16, "ptr"),  # start, stop, step
    "array_data": (16, "ptr"),
    "array_ndim": (24, "i32"),
    "array_shape": (32, "ptr"),
    "array_strides": (40, "ptr"),
    "array_base": (48, "ptr"),
    "array_dtype": (56, "ptr"),
    "array_flags": (64, "i32"),
    "dtype_byteorder": (26, "i8"),
    "dtype_number": (28, "i32"),
}
# What stands for the size of an int of one digit, of 30 bits, and for that of 0.  From 3.14 on the
# same word says whether the int is immortal, in a bit of its own.
SIZE_BITS = ~4 if sys.version_info >= (3, 14) else ~0
ONE_DIGIT, NO_DIGIT = (
    ctypes.c_int64.from_address(id(n) + FIELDS["int_size"][0]).value & SIZE_BITS for n in (7, 0)
)
# NumPy's flags of an array.
IN_C_ORDER, ALIGNED, WRITEABLE = 0x001, 0x100, 0x400
ALIGNED_IN_C_ORDER = ALIGNED | IN_C_ORDER


@cache
def as_listed() -> bool:
    """Whether objects of Python's and NumPy's are laid out as `FIELDS` says."""
    layout = find()
    if layout is None:
        return False
    views: dict[str, Any] = {
        "ptr": ctypes.c_int64, "double": ctypes.c_double, "i32": ctypes.c_int32,
        "i8": ctypes.c_uint8, "i64": ctypes.c_int64,
    }  # fmt: skip

    def read(thing: object, field: str) -> Any:
        offset, kind = FIELDS[field]
        return views[kind].from_address(id(thing) + offset).value

    def size(n: int) -> int:
        return int(read(n, "int_size")) & SIZE_BITS

    number, array = 1.5, np.zeros((2, 3), np.float32)
    across, aside = array[:, 1:], np.zeros(9, np.uint8)[1:].view("f8")
    fixed = array.view()
    fixed.flags.writeable = False
    flags = [read(x, "array_flags") for x in (array, across, aside, fixed)]
    items, piece = [number, array, across], slice(number, array, across)
    numbers = int_array("q", [7, -8])  # where lists have pointers it has numbers
    return (
        FIELDS["tuple_items"][0] == layout.tuple_items
        and all(read(x, "object_type") == id(type(x)) for x in (number, array))
        and read(number, "float_value") == number
        and read(np.int64(-7), "int64_value") == -7
        and [read(n, "int_digit") for n in (7, 1000, 2**30 - 1)] == [7, 1000, 2**30 - 1]
        and [size(n) for n in (1, 1000, 2**30 - 1)] == [ONE_DIGIT] * 3
        and not {size(n) for n in (-7, 2**30)} & {ONE_DIGIT, NO_DIGIT}
        and read(array, "array_data") == array.__array_interface__["data"][0]
        and read(array, "array_ndim") == 2
        and _words(read(array, "array_shape"), 2) == [2, 3]
        and _words(read(across, "array_strides"), 2) == [12, 4]
        and read(array, "array_dtype") == id(array.dtype)
        and (read(array, "array_base"), read(across, "array_base")) == (0, id(array))
        and [flag & ALIGNED_IN_C_ORDER for flag in flags] == [0x101, 0x100, 0x001, 0x101]
        and [bool(flag & WRITEABLE) for flag in flags] == [True, True, True, False]
        and [read(x, "object_size") for x in (items, tuple(items), ())] == [3, 3, 0]
        and _words(read(items, "list_items"), 3) == [id(x) for x in items]
        and _words(read(numbers, "list_items"), 2) == [7, -8]
        and _words(id(piece) + FIELDS["slice_edges"][0], 3) == [id(x) for x in items]
        and all(
            read(dtype, "dtype_byteorder") == ord(dtype.byteorder)
            and read(dtype, "dtype_number") == dtype.num
            for dtype in (np.dtype("f8"), np.dtype("?"), np.dtype("i4").newbyteorder("S"))
        )
    )
