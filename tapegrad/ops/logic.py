"""Logic and bits, element by element: what is constant almost everywhere and has no derivative.

Operands keep their own types, which NumPy mixes by its rules: these are no elementwise rows, whose
operands are brought into one type before.
"""

from __future__ import annotations

import numpy as np

from tapegrad.ops.core import NotDifferentiable, Op, custom

TRUTH = NotDifferentiable("a truth value is constant almost everywhere")
BITS = NotDifferentiable("whole numbers and bits have no derivative")


def _of_two(ufunc: np.ufunc, reason: NotDifferentiable, inplace: bool = True) -> Op:
    return custom(ufunc.__name__, ufunc, a=reason, b=reason, paired=True, inplace=inplace)


logical_and = _of_two(np.logical_and, TRUTH)
logical_or = _of_two(np.logical_or, TRUTH)
logical_xor = _of_two(np.logical_xor, TRUTH)
logical_not: Op = custom("logical_not", np.logical_not, x=TRUTH, inplace=True)
isnan: Op = custom("isnan", np.isnan, x=TRUTH)
isinf: Op = custom("isinf", np.isinf, x=TRUTH)
isfinite: Op = custom("isfinite", np.isfinite, x=TRUTH)
signbit: Op = custom("signbit", np.signbit, x=TRUTH)
bitwise_and = _of_two(np.bitwise_and, BITS)
bitwise_or = _of_two(np.bitwise_or, BITS)
bitwise_xor = _of_two(np.bitwise_xor, BITS)
bitwise_not: Op = custom("bitwise_not", np.invert, x=BITS, paired=True, inplace=True)
left_shift = _of_two(np.left_shift, BITS, inplace=False)  # under another name
right_shift = _of_two(np.right_shift, BITS, inplace=False)
ROWS = (
    logical_and, logical_or, logical_xor, logical_not, isnan, isinf, isfinite, signbit,
    bitwise_and, bitwise_or, bitwise_xor, bitwise_not, left_shift, right_shift,
)  # fmt: skip
