"""The layout of the frame that native operations read, and of the tables that it leads to.

All are 64-bit integers: addresses of functions and objects, and where slots stand in an object,
counted in words.
"""

(
    # CPython's functions, NumPy's, and the C library's that tells of exceptions of arithmetic
    GET_STATE, GET_ID, GET_ATTR, INCREF, DECREF, AS_LONG, FROM_LONG, APPEND, NEW_TUPLE, NEW_OBJECT,
    CALL, GET_ITEM, SET_ITEM, DICT_SIZE, LIST_SIZE, NEW_ARRAY, EXCEPTIONS, FORGET_ERROR, SET_BASE,
    AS_LONG_IF, NEXT_ITEM, JOINED, UNLOCK, LOCK, CLEAR_EXCEPTIONS, COPY, CLEAR_DICT,
    # objects
    TENSOR, VIEW, FLOAT, INT, NONE, FALSE, NO_TEXT, ZERO, NARROW_ZERO, CURRENT, TAPE_NAME,
    CONSTANTS, NARROW_CONSTANTS, F8, F4, I8, BOOL, ARRAY, NO_NUMBER,
    CHANGED, LEARN_PAIR, LEARN_PRODUCT, LEARN_TOTAL,
    TRUE, NO_GRAD, NO_STEPS, TUPLE, SIZE, LIST, SLICE, DOTS, WIDE_INT, SHOWN,
    LEARN_VIEW, LEARN_LARGE, SHAPE_NUMBERS, SAY_EXCEPTIONS, OPEN_LARGE, PULL, SHAPE_LIST,
    # the slots of Tensors, of views and of tapes
    T_ARRAY, T_POS, T_SHAPE, T_HOME, T_GRAD, T_EXTRA,
    V_BASE, V_CHAIN, V_STAMP, V_TAPE, V_FROZEN, V_SEVERAL,
    MODE, INFERENCE, USED, CAPACITY, NEXT, ADDRESS, TOKENS, KEEP, SLOTS, LEAVES, DEBT, DEBT_LIMIT,
    SWEEPING, TAIL, DEPTH, LEVELS, TORCHS, ELEMENT, SHIFT, OLD, OLD_AT, HOOKS,
    # the thread whose tape this is, and that tape; tables
    OWNER, TAPE, ROWS, PAIRS, PRODUCTS, TOTALS, VIEW_CACHE, NOUGHT, SERIOUS,
    SUM_LOOP, SUM_DATA, SUM_START, PRODUCT_LOOP, PRODUCT_DATA,
    NARROW_SUM_LOOP, NARROW_SUM_DATA, NARROW_SUM_START, NARROW_PRODUCT_LOOP, NARROW_PRODUCT_DATA,
    # of large arrays: the function `wide`, or 0; a table; where the number of threads stands, and
    # where the address of the numbers of elements of all shapes does
    WIDE_CALL, LARGE, THREADS, SIZES_AT,
    FRAME_SIZE,
) = range(125)  # fmt: skip

# A row of the table ROWS, by the code of an operation: its word; which values the formulas of the
# first input read, of the second, and of the third (bits: the operands, the result); how many
# values an entry of `keep` has, or 0; whether the result is of booleans; the Python function that
# takes what the native path does not; and what is computed: one or two loops of NumPy, each with
# its data and its operands, or, of three operands, loops of our own, by which of them are one
# number; then the same for float32.
WORD, READS, READS_SECOND, READS_THIRD, ENTRY, TRUTH, OTHERWISE, STEPS = range(8)
LOOP, DATA, FROM, WITH, STEP = range(5)
NARROW_STEPS = STEPS + 2 * STEP
ROW = NARROW_STEPS + 2 * STEP
CHOOSES = TRUTH  # of three operands: whether the first is a condition
DIVIDES = STEPS  # of a total: whether it is a mean
# FROM and WITH: an operand, what the step before computed, the number 0, or nothing.
FIRST, SECOND, RESULT, NULL, NOTHING = range(5)

# A row of LARGE, by the code of an operation: by which operands are one number, a loop of our own,
# or what is done instead; the same in place; then how many calls shall go by Python, after an
# exception of arithmetic.
UNKNOWN, BY_STEPS, BY_PYTHON = 0, 1, 2  # no loop's address
IN_PLACE, WARY = 8, 16
LARGE_ROW = WARY + 1
WARINESS = 16

# A line of PAIRS, PRODUCTS or TOTALS, where the place of a pair of shapes (of a total: of the
# operation and a shape) is a remainder: the pair, the number of the result's shape (-1: not for
# this path), the bits of the word, AUX, and of a pair which operand has the result's shape, of a
# product what its record keeps beside the values, of a total what its record keeps.
PAIR, SHAPE, BITS, AUX, MORE, LINE = range(6)
LINES = 1024
NARROW_LINE = 1 << 24  # in the second of a pair: of float32

# A line of VIEW_CACHE, where a hash of the words of a call that makes views (`asked`) says which
# two are about it: where a block begins, or 0; a tuple that holds the block, whatever the words
# name, and for each view its `ViewPlan`; the tuple's number; and the hash of the call that was last
# met here and is not known.  The block: how many words describe the call, these words, whether it
# makes several views, how many (0: the function in Python takes these calls), and of an element
# that is a number where NumPy's rules hold, how many bytes it has, or 0; and for each view the
# word, the shape and AUX of its record, how many bytes after the operand's its array begins, how
# many dimensions it has, the lengths and the strides.
BLOCK_AT, HELD, NUMBER, MET, VIEW_LINE = range(5)
VIEW_LINES = 16384
WORDS = 96  # which a call may have at most
FIRST_WAY = 2  # among the things that are held
# Of a `Way`: see `tapegrad.dispatch.views`.
WAY_STEP, WAY_SHORT, WAY_ENTRY = 0, 2, 7

# What a call is: elementwise on one operand or two, a matrix product, a sum or mean of everything,
# or one of a function that makes views: then its operand is an array of the function, the tuple of
# its arguments, and the dict of those that are named; or something along dimensions: an array of
# the Tensor and the `Plan`; or elementwise on an array of three operands; or, in place, of a
# target, an operand or None, and the operation's code; or at chosen places: an array of the Tensor,
# the `Plan`, what names the places or None, and what is written or None.
ONE, TWO, MATMUL, TOTAL, VIEWED, ALONG, THREE, CHANGING, MOVING = range(9)
# Of a `Plan`: see `tapegrad.dispatch.axis_plans`.
PLAN_SHORT, PLAN_EXTRA, PLAN_AT = range(3)
# Of a pass over a large array (`tapegrad.kernels.large.pass_lists`): a loop (COPIED: none, it is a
# copy), how many rows there are, and their length; three arguments, each of them by what it is (an
# address counted from the operand's or the result's, or a number), the number, and by how much it
# grows from row to row; by what the result is divided then, a double; and whether its square root
# is taken.
PASS = 14
COPIED = 0
AS_IT_IS, OF_OPERAND, OF_RESULT = range(3)
DIVISOR, ROOT = 12, 13
# Before the first: how many words follow, how many elements the operand has, whether a result may
# be in doubt.
REACH = 3
