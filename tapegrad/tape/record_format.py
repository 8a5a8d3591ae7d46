"""How a record lies on the tape: six 64-bit integers, `WORD IN0 IN1 IN2 SHAPE AUX`.

An input is a position (> 0), a leaf slot (< 0, slot `s` is written `-s - 1`) or nothing (0).  The
shape is its number in `shape_table`; what AUX is says the operation.
"""

import struct

import numpy as np

FIELDS = 6
WORD, IN0, IN1, IN2, SHAPE, AUX = range(FIELDS)
STRIDE = 8 * FIELDS
pack_into = struct.Struct(f"{FIELDS}q").pack_into
unpack_from = struct.Struct(f"{FIELDS}q").unpack_from
pack_word = struct.Struct("q").pack_into

# The word: operation code, how each input is broadcast, the dtype, and the state of the record.
CODE_MASK = 0xFFFF
FLAT, SCALAR, ROW, COLUMN = range(4)
CLASS_SHIFT = (16, 18, 20)
CLASSES = 0x3F << CLASS_SHIFT[0]
DTYPE_SHIFT, COMPLEX_SHIFT = 22, 23  # the second bit of a dtype says complex
DTYPES = (np.dtype("f8"), np.dtype("f4"), np.dtype("c16"), np.dtype("c8"))
DTYPE_BITS = {dtype: bits << DTYPE_SHIFT for bits, dtype in enumerate(DTYPES)}
GENERAL = 1 << 24  # only the general (Python) walker understands this record
RELEASED = 1 << 25  # a sweep has passed without retain_graph
SPENT = 1 << 26  # ... and took saved values away that a second sweep would need
HOOKED = 1 << 27  # the adjoint of this record has hooks
LISTED = 1 << 28  # more inputs than fit: in `input_lists`, IN0 is their offset, IN1 their number
PACKED = 1 << 29  # the saved values went through saved_tensors_hooks
SAVES = 1 << 30  # values are saved, not only static arguments
BROADCAST = 1 << 31  # AUX leads to the strides of each operand in the result
INPUTS_SHIFT = 32
COMPLEX_INPUTS = 7 << INPUTS_SHIFT  # which inputs are complex, where the compiled sweep is to know
SHARES = 1 << 35  # a view: its memory is that of another result
MIXED = COMPLEX_INPUTS | 1 << COMPLEX_SHIFT  # something about the record is complex

F4_SHAPE = -2  # `Tensor._s` of a float32 Tensor is F4_SHAPE - n where a float64 one has n
