"""The structures that Python fills and native operations read, each declared once.

Words are 64-bit integers: numbers, and addresses of objects, functions and memory.  What ends with
numbers as many as it has dimensions, its lengths and strides, has these behind its fields, from
`SIZE` on.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from tapegrad.base.word_struct import WordStruct


class Frame(WordStruct):
    """What a native operation is called with."""

    # functions of CPython and NumPy, see `native.bindings`
    PyThreadState_Get: int
    PyThreadState_GetID: int
    PyObject_GetAttr: int
    Py_DecRef: int
    PyLong_AsLongLong: int
    PyLong_AsLongLongAndOverflow: int
    PyBytes_FromStringAndSize: int
    PyLong_FromLongLong: int
    PyList_Append: int
    PyList_Size: int
    PyList_AsTuple: int
    PyTuple_New: int
    PyType_GenericAlloc: int
    PyObject_Call: int
    PyDict_GetItem: int
    PyDict_SetItem: int
    PyDict_Size: int
    PyDict_Next: int
    PyDict_Clear: int
    PySequence_Concat: int
    PyErr_Clear: int
    PyEval_SaveThread: int
    PyEval_RestoreThread: int
    PyArray_NewFromDescr: int
    PyArray_SetBaseObject: int
    # of the C library; and the floating-point exceptions of which NumPy warns
    memcpy: int
    fetestexcept: int
    feclearexcept: int
    fp_flags: int
    # objects
    none: int
    true: int
    false: int
    zero: int
    zero_f4: int  # what a Tensor of float32 without dimensions has for `_s`
    minus_one: int
    ellipsis: int
    empty_str: int
    empty_tuple: int
    tensor_type: int
    view_type: int
    float_type: int
    complex_type: int
    int_type: int
    bool_type: int
    int64_type: int
    float64_type: int
    tuple_type: int
    size_type: int
    list_type: int
    slice_type: int
    memoryview_type: int
    array_type: int
    float64: int
    float32: int
    complex128: int
    int64: int
    bool_dtype: int
    no_grad: int
    current: int
    attr_tape: int
    attr_pull: int
    constants: int  # arrays of numbers, by the number
    constants_f4: int
    constants_c16: int
    constants_i8: int
    shape_numbers: int
    shape_list: int
    former: int  # `tensor.former`
    by_code: int
    # functions in Python
    bump_version: int
    as_tensors: int
    learn_broadcast: int
    learn_complex: int
    learn_matmul: int
    learn_reduction: int
    learn_view: int
    learn_shape: int
    list_inputs: int
    learn_large: int
    learn_kernel: int
    warn_fp_flags: int
    compute: int
    # slots of a Tensor, of a View and of a tape, in words from the object on
    t_a: int
    t_pos: int
    t_s: int
    t_home: int
    t_grad: int
    t_extra: int
    v_base: int
    v_chain: int
    v_stamp: int
    v_tape: int
    v_frozen: int
    v_several: int
    tape_mode: int
    tape_inference: int
    tape_used: int
    tape_capacity: int
    tape_next: int
    tape_address: int
    tape_tokens: int
    tape_keep: int
    tape_slots: int
    tape_leaves: int
    tape_debt: int
    tape_debt_limit: int
    tape_leaf_debt: int
    tape_sweeping: int
    tape_tail: int
    tape_depth: int
    tape_levels: int
    tape_torchs: int
    tape_element: int
    tape_shift: int
    tape_old: int
    tape_old_at: int
    tape_hooks: int
    tape_floor: int
    tape_last_mutation: int
    tape_input_lists: int
    # the thread that called last, and its tape
    thread: int
    tape: int
    # tables: of `OpRow`, of `ShapeLine`, of `ViewLine`
    op_rows: int
    broadcasts: int
    matmuls: int
    reductions: int
    view_cache: int
    # NumPy's loops for sums and products of matrices, and the bits that a sum begins with
    sum_loop: int
    sum_data: int
    sum_start: int
    matmul_loop: int
    matmul_data: int
    sum_loop_f4: int
    sum_data_f4: int
    sum_start_f4: int
    matmul_loop_f4: int
    matmul_data_f4: int
    matmul_loop_c16: int
    matmul_data_c16: int
    null: Annotated[Any, 2]  # the number 0, as an operand
    # of large arrays: a table of `LargeRow`; where the number of threads stands, and where the
    # addresses of the numbers of elements of all shapes, and of how views lie, do
    large_rows: int
    threads: int
    sizes_at: int
    strides_at: int
    known_at: int  # where the number of operations stands that the compiled sweep knows


class Operand(WordStruct):
    """An operand that was read."""

    tensor: int  # 0: a Python number
    array: int
    shape: int  # its number
    position: int


MOST_OPERANDS = 16  # of a join; others have three at most, for which a record has room
OPERANDS = MOST_OPERANDS * Operand.SIZE  # words of as many
MOST_SAVED = MOST_OPERANDS + 2  # items of what a record saves: a result, and what is behind it


class UfuncLoop(WordStruct):
    """A loop of NumPy, with its data and what it is applied to."""

    function: int
    data: int
    first: int  # see `OPERAND_A`
    second: int


# The operands, what the loop before computed, the number 0, or nothing.
OPERAND_A, OPERAND_B, OPERAND_C, RESULT, NULL, NO_OPERAND = range(6)
SOURCES = NO_OPERAND


class OpRow(WordStruct):
    """What is known of an operation, by its code."""

    word: int  # of its records
    reads: Annotated[Any, 3]  # as in a `Plan`
    is_boolean: int  # the result
    is_real: int  # the result of complex numbers
    has_condition: int  # as its first operand
    is_mean: int
    fallback: int  # the function in Python that takes what the native path does not
    loops: Annotated[Any, 2 * UfuncLoop.SIZE]  # one after the other
    loops_f4: Annotated[Any, 2 * UfuncLoop.SIZE]
    loops_c16: Annotated[Any, 2 * UfuncLoop.SIZE]
    loops_i8: Annotated[Any, 2 * UfuncLoop.SIZE]
    numbers: int  # operands without a derivative, as bits: no kernel takes Tensors for them
    # By which operands are one number: addresses, or minus so many calls until Python looks for one
    kernels: Annotated[Any, 8]
    kernels_f4: Annotated[Any, 8]
    scalar_loops: int  # of NumPy's or SciPy's, slower from MIDDLE elements on; bits as follows


OF_F8, OF_F4 = 1, 2
MIDDLE = 128  # elements


class LargeRow(WordStruct):
    """By what an operation on large arrays is computed, by which operands are one number."""

    kernels: Annotated[Any, 16]  # addresses, or what follows; `IN_PLACE` is added to the index
    kernels_f4: Annotated[Any, 16]
    python_calls: int  # that go by Python, after a floating-point exception


IN_PLACE = 8
UNKNOWN, BY_UFUNC, BY_PYTHON = 0, 1, 2
PYTHON_CALLS = 16


class ShapeLine(WordStruct):
    """What follows from a pair of shapes, or from an operation and a shape.

    A line stands where the remainder of the pair says.
    """

    key: int
    shape: int  # the number of the result's; -1: not for the native path
    bits: int  # of the word
    aux: int
    # Of a broadcast whether the second operand has the result's shape, or where the number of its
    # dimensions and its lengths stand, if neither has it; else what a record saves.
    extra: int
    specs: int  # of a broadcast, what a record with `GENERAL` saves


SHAPE_LINES = 1024
KEY_BITS = 24  # of the second of a pair, above which its type stands
# The types that native operations know, by their numbers in `tape.DTYPES`.
F8_TYPE, F4_TYPE, C16_TYPE = range(3)
ALONE = (1 << KEY_BITS) - 1  # in place of the second: there is none
NUMBER = ALONE - 1  # in place of either: a Python number


class ViewLine(WordStruct):
    """A line of the inline cache of views; the hash of a call's key says which two may be its."""

    key: int  # the address of a `ViewKey`, or 0
    held: int  # the `CachedViews`
    number: int  # of these
    last_hash: int  # of the call that was last met here, and is not known


VIEW_LINES = 16384


class ViewKey(WordStruct):
    """The beginning of a call's key; its words, and a `ViewCall`, follow."""

    count: int


KEY_WORDS = 96  # at most


TOGETHER = 2


class ViewCall(WordStruct):
    """What a call makes; a `ViewRecord` for each view follows."""

    several: int  # a tuple of views; TOGETHER: of which none may be changed in place alone
    count: int  # 0: the function in Python takes these calls
    itemsize: int  # in bytes, of an element that is a number where NumPy's rules hold, or 0


class ViewRecord(WordStruct):
    """The record of a view, and its array, of which lengths and strides follow."""

    word: int
    shape: int
    aux: int
    start: int  # how many bytes behind the operand's its array begins
    ndim: int


class ViewPlan(NamedTuple):
    """What follows from a view operation, its parameters, and shape and type of the operand."""

    step: tuple[Any, ...]  # of the view's chain
    dtype: np.dtype[Any]
    short: int  # the Tensor's `_s`
    word: int
    shape: int
    aux: int
    ordered: bool  # the compiled sweep knows how the view lies if the operand lies in C order
    entry: Any


class CachedViews(NamedTuple):
    """What a line of the inline cache of views keeps alive."""

    key: Any
    names: tuple[Any, ...]
    plans: tuple[ViewPlan, ...]


# What a call is.  Of a view its operands are an array of the function, the tuple of its arguments
# and the dict of those with names; of three operands, of these; in place of the target, an operand
# or None, and the code; by a `CallPlan`, of this, the Tensor, the indices or None, and what is
# written or None, or of this and the Tensors that are joined.
UNARY, BINARY, TERNARY, MATMUL, REDUCTION, CHANGE, PLANNED, VIEW = range(8)


MOST_DIMENSIONS = 8  # of a product of matrices, and of a result in whose loops operands are strided


class Nest(WordStruct):
    """Nested loops over elements, the innermost first."""

    count: int
    lengths: Annotated[Any, MOST_DIMENSIONS]
    done: Annotated[Any, MOST_DIMENSIONS]  # of each but the innermost
    strides: Annotated[Any, MOST_DIMENSIONS * SOURCES]  # of each loop, of each source, in bytes
    starts: Annotated[Any, SOURCES]  # where a loop of the innermost begins


class Plan(WordStruct):
    """What a call computes and records: from operands by loops to a result and its record."""

    operands: int  # how many
    index: int  # which of them names places, or 0
    value: int  # which is written there, or 0
    in_place: int  # the result is the first operand itself
    large: int  # loops run without the interpreter's lock
    # the result
    itemsize: int  # in bytes; 1: booleans
    dtype: int  # if it is none of real numbers that take so many bytes, as operands do; or 0
    ndim: int
    lengths: int  # their address
    own_lengths: Annotated[Any, MOST_DIMENSIONS]
    short: int  # what its Tensor has for `_s`, or 0: that follows from `shape`
    # the loops
    loops: int  # see `UFUNC`
    loop: int
    rows: int
    strided: int  # operands do not lie in C order, or the word does not tell how they are broadcast
    counts_back: int
    divisor: int  # of a sum, or 0
    # the record
    word: int
    shape: int  # the number of the result's; -1: not known yet
    aux: int
    reads: Annotated[Any, 3]  # of each operand: which values its formula reads, see `READS_RESULT`
    entry: int  # what the record saves, if no values are among it, or 0
    extra: int  # what it saves behind values, or 0


READS_RESULT = 8  # the bit of the result; the operands' are 1, 2 and 4
# By which loops a plan is carried out, and what `loop` and `rows` are then: NumPy's, of a table of
# `UfuncLoop`; a kernel of elements; a sum of all elements, by a kernel or 0, by NumPy's loop; a
# product of matrices by NumPy's loop; a kernel of rows, that lie as `ops.axis_layout.packed` says;
# passes of a `PassList`; reading at places, or writing there into a copy of the first operand, of a
# kind of the compiled sweep's, of places that a row of the table of strides tells; a form of one
# array or two, which a `FormCall` tells; operands one after the other, in each of so many rows; a
# transform of rows by NumPy's loop, as a `RowTransform` says.
UFUNC, KERNEL, SUM, GEMM, ROWS, PASSES, READ, WRITE, FORM, JOIN, TRANSFORM = range(11)


class RowTransform(WordStruct):
    """A Fourier transform along the last dimension, for NumPy's loop."""

    data: int
    factor: int  # where the number stands that results are multiplied by
    length: int  # of a row of the operand
    itemsize: int  # of the result
    result_length: int
    widens: int  # the operand is real, and the loop takes complex numbers


class CallPlan(NamedTuple):
    """A `Plan` that was made in Python, for an operation, its parameters and operands' shapes."""

    plan_at: int
    words: np.ndarray  # lengths, and what loops read, follow the plan
    keeps: tuple[Any, ...]  # objects that it names


class FormCall(WordStruct):
    """A loop's table, see `kernels.convolution_abi` and `windows_abi`, and the room it needs."""

    form: int
    room: int
    units: int  # into which the work is divided
    unsure: int  # whether results that hold NaNs are Python's


class PassList(WordStruct):
    """Passes over a large array, see `kernels.large.pass_lists`; each a `Pass`, they follow."""

    count: int
    elements: int  # of the operand
    unsure: int  # whether results that are zero or not finite are Python's


class PassArgument(WordStruct):
    """An argument of a loop."""

    base: int  # see `ABSOLUTE`
    start: int  # a number, which is counted from there
    step: int  # from row to row


ABSOLUTE, FROM_OPERAND, FROM_RESULT = range(3)


class Pass(WordStruct):
    """A loop over rows; then the result is divided."""

    kernel: int  # COPY: the operand is copied
    rows: int
    length: int  # in elements; of a copy in bytes
    arguments: Annotated[Any, 3 * PassArgument.SIZE]
    divisor: Annotated[Any, 1]  # a double


COPY = 0


class RuleContext(NamedTuple):
    """What a sweep brings along to the rules of functions."""

    tape: Any
    wanted: Any  # whether an input is
    scratch: Any  # what outputs collect
    hand_on: Any  # the method that does what is done natively for small arrays
