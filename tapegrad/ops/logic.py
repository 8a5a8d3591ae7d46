"""Logic and bits, element by element: what is constant almost everywhere and has no derivative.

Operands keep their own types, which NumPy mixes by its rules: these are no elementwise rows, whose
operands are brought into one type before.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.core import NotDifferentiable, Op, custom
from tapegrad.ops.elementwise import abs as abs_
from tapegrad.ops.elementwise import eq, lt, ne

TRUTH = NotDifferentiable("a truth value is constant almost everywhere")
BITS = NotDifferentiable("whole numbers and bits have no derivative")


def _of_two(ufunc: np.ufunc, reason: NotDifferentiable, name: str = "", **public: Any) -> Op:
    name = name or ufunc.__name__
    return custom(name, ufunc, a=reason, b=reason, paired=True, inplace=True, **public)


def truth(x: Any) -> Any:
    """Whether elements are not zero, over operations."""
    return x if x.dtype.numpy.kind == "b" else ne(x, 0)


def falsehood(x: Any) -> Any:
    """Whether elements are zero, over operations."""
    return eq(x, np.zeros((), x.dtype.numpy))


def _size(x: Any) -> Any:
    """The absolute value, of a complex number a part of it, which is infinite with the number."""
    return abs_(x * 0.25) if x.dtype.is_complex else abs_(x)


def _isinf_form(x: Any) -> Any:
    inexact = x.dtype.is_floating_point or x.dtype.is_complex
    return eq(_size(x), math.inf) if inexact else ne(x, x)


def _isfinite_form(x: Any) -> Any:
    inexact = x.dtype.is_floating_point or x.dtype.is_complex
    return lt(_size(x), math.inf) if inexact else eq(x, x)


# fmt: off
logical_and = _of_two(
    np.logical_and, TRUTH, doc="Whether both are true.",
    decomposition=lambda a, b: truth(a) * truth(b), kinds="b",
    example=("tg.logical_and(tg.tensor(True), tg.tensor(False))", "tensor(False)"),
)
logical_or = _of_two(np.logical_or, TRUTH,
                     decomposition=lambda a, b: truth(a) + truth(b), kinds="b",
                     doc="Whether one is true.",
                     example=("tg.logical_or(tg.tensor(True), tg.tensor(False))", "tensor(True)"))
logical_xor = _of_two(np.logical_xor, TRUTH,
                      decomposition=lambda a, b: ne(truth(a), truth(b)), kinds="b",
                      doc="Whether exactly one is true.",
                      example=("tg.logical_xor(tg.tensor(True), tg.tensor(False))", "tensor(True)"))
logical_not: Op = custom("logical_not", np.logical_not, x=TRUTH, inplace=True,
                         decomposition=falsehood, kinds="b",
                         doc="The opposite.",
                         example=("tg.logical_not(tg.tensor(True))", "tensor(False)"))
isnan: Op = custom("isnan", np.isnan, x=TRUTH, decomposition=lambda x: ne(x, x), kinds="b",
                   doc="Whether elements are NaN.",
                   example=("tg.isnan(tg.tensor(tg.nan))", "tensor(True)"))
isinf: Op = custom("isinf", np.isinf, x=TRUTH, decomposition=_isinf_form, kinds="b",
                   doc="Whether elements are infinite.",
                   example=("tg.isinf(tg.tensor(1.0))", "tensor(False)"))
isfinite: Op = custom("isfinite", np.isfinite, x=TRUTH, decomposition=_isfinite_form, kinds="b",
                      doc="Whether elements are finite.",
                      example=("tg.isfinite(tg.tensor(1.0))", "tensor(True)"))
signbit: Op = custom("signbit", np.signbit, x=TRUTH, paired=True,
                     scalar="copysign(one, {0}) < zero",
                     doc="Whether the sign is negative, that of a zero, too.",
                     example=("tg.signbit(tg.tensor([-0.0, 1.0]))", "tensor([ True, False])"))
bitwise_and = _of_two(np.bitwise_and, BITS,
                      scalar="{0} & {1}", kinds="ib",
                      doc="And, bit by bit.",
                      example=("tg.bitwise_and(tg.tensor(6), tg.tensor(3))", "tensor(2)"))
bitwise_or = _of_two(np.bitwise_or, BITS,
                     scalar="{0} | {1}", kinds="ib",
                     doc="Or, bit by bit.",
                     example=("tg.bitwise_or(tg.tensor(6), tg.tensor(3))", "tensor(7)"))
bitwise_xor = _of_two(np.bitwise_xor, BITS,
                      scalar="{0} ^ {1}", kinds="ib",
                      doc="Exclusive or, bit by bit.",
                      example=("tg.bitwise_xor(tg.tensor(6), tg.tensor(3))", "tensor(5)"))
bitwise_not: Op = custom("bitwise_not", np.invert, x=BITS, paired=True, inplace=True,
                         scalar="{0} ^ -1", kinds="ib",
                         doc="Every bit reversed.",
                         example=("tg.bitwise_not(tg.tensor(0))", "tensor(-1)"))
# Bits that are moved by more than there are leave zeros, or copies of the sign.
bitwise_left_shift = _of_two(
    np.left_shift, BITS, "bitwise_left_shift",
    scalar="select(({1} >= zero) & ({1} < width({0})), {0} << {1}, zero)", kinds="i",
    doc="Bits moved to the left.",
    example=("tg.bitwise_left_shift(tg.tensor(1), tg.tensor(3))", "tensor(8)"),
)
bitwise_right_shift = _of_two(
    np.right_shift, BITS, "bitwise_right_shift",
    scalar="select(({1} >= zero) & ({1} < width({0})), "
    "{0} >> {1}, {0} >> (width({0}) - one))", kinds="i",
    doc="Bits moved to the right.",
    example=("tg.bitwise_right_shift(tg.tensor(8), tg.tensor(3))", "tensor(1)"),
)
ROWS = (
    logical_and, logical_or, logical_xor, logical_not, isnan, isinf, isfinite, signbit,
    bitwise_and, bitwise_or, bitwise_xor, bitwise_not, bitwise_left_shift,
    bitwise_right_shift,
)
# fmt: on
