"""The frame of the compiled road: what `kernels.road` reads, and the tables it looks things up in.

All are 64-bit integers: addresses of functions and objects, and where slots stand in an object,
counted in words.
"""

(
    # CPython's functions, NumPy's, and the C library's that tells of exceptions of arithmetic
    GET_STATE, GET_ID, GET_ATTR, INCREF, DECREF, AS_LONG, FROM_LONG, APPEND, NEW_TUPLE, NEW_OBJECT,
    CALL, GET_ITEM, SET_ITEM, DICT_SIZE, LIST_SIZE, NEW_ARRAY, EXCEPTIONS, FORGET_ERROR, SET_BASE,
    # objects
    TENSOR, VIEW, FLOAT, INT, NONE, FALSE, NO_TEXT, ZERO, CURRENT, TAPE_NAME, CONSTANTS,
    F8, BOOL, ARRAY, NO_NUMBER, CONSTANT, CHANGED, LEARN_PAIR, LEARN_PRODUCT, LEARN_TOTAL,
    # the slots of Tensors, of views and of tapes
    T_ARRAY, T_POS, T_SHAPE, T_HOME, T_GRAD, T_EXTRA,
    V_BASE, V_CHAIN, V_STAMP, V_TAPE, V_FROZEN, V_SEVERAL,
    MODE, INFERENCE, OFFSET, END, NEXT, ADDRESS, TOKENS, KEEP, SLOTS, LEAVES, DEBT, DEBT_LIMIT,
    # the thread whose tape this is, and that tape; tables
    OWNER, TAPE, ROWS, PAIRS, PRODUCTS, TOTALS, NOUGHT, SERIOUS,
    SUM_LOOP, SUM_DATA, SUM_START, PRODUCT_LOOP, PRODUCT_DATA,
    FRAME_SIZE,
) = range(77)  # fmt: skip

# A row of the table ROWS, by the code of an operation: its word; which values the formulas of the
# first input read, of the second, and of the third (bits: the operands, the result); how many
# values an entry of `keep` has, or 0; whether the result is of booleans; the Python function that
# takes what the road does not; and what is computed: one or two loops of NumPy, each with its data
# and its operands, or, of three operands, loops of our own, by which of them are one number.
WORD, READS, READS_SECOND, READS_THIRD, ENTRY, TRUTH, OTHERWISE, STEPS = range(8)
LOOP, DATA, FROM, WITH, STEP = range(5)
ROW = STEPS + 2 * STEP
CHOOSES = TRUTH  # of three operands: whether the first is a condition
DIVIDES = STEPS  # of a total: whether it is a mean
# FROM and WITH: an operand, what the step before computed, the number 0, or nothing.
FIRST, SECOND, RESULT, NULL, NOTHING = range(5)

# A line of PAIRS, PRODUCTS or TOTALS, where the place of a pair of shapes (of a total: of the
# operation and a shape) is a remainder: the pair, the number of the result's shape (-1: not for
# this road), the bits of the word, AUX, and of a pair which operand has the result's shape, of a
# product what its record keeps beside the values, of a total what its record keeps.
PAIR, SHAPE, BITS, AUX, MORE, LINE = range(6)
LINES = 1024

# What a call is: elementwise on one operand or two, a matrix product, a sum or mean of everything,
# a view: then its operand is an array of the Tensor, the array that is seen (or None, where the
# `Way` tells where it lies), and the `Way`; or something along dimensions: an array of the Tensor
# and the `Plan`; or elementwise on an array of three operands.
ONE, TWO, MATMUL, TOTAL, VIEWED, ALONG, THREE = range(7)
# Of a `Way`: see `tapegrad.views`.
WAY_STEP, WAY_SHORT, WAY_WORD, WAY_SHAPE, WAY_AUX, WAY_ENTRY, WAY_AT = 0, 2, 3, 4, 5, 7, 9
# Of a `Plan`: see `tapegrad.along`.
PLAN_SHORT, PLAN_EXTRA, PLAN_AT = range(3)
