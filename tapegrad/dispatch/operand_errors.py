"""Errors for operands that an operation does not take."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.core import Op

# Not defined for complex numbers, of which none is larger than another, though NumPy answers.
ORDERED = frozenset((
    "lt le gt ge minimum maximum clamp clamp_min clamp_max relu sign trunc ceil frac fmod softplus "
    "heaviside squared_difference"
).split())  # fmt: skip

# Of operands that meet element by element, though they are not brought into one type before.
PAIRED = frozenset((
    "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not left_shift "
    "right_shift masked_fill masked_select"
).split())  # fmt: skip


def mismatch(op: Op, arrays: list[Any]) -> Exception:
    """The error for operands that do not broadcast."""
    shapes = " and ".join(str(x.shape) for x in arrays)
    return RuntimeError(
        f"`{op.name}`: the shapes {shapes} do not broadcast: from the right, sizes must "
        "be equal or 1"
    )


def unfit(op: Op, arrays: list[Any], problem: Exception) -> Exception:
    """The error for operands that an operation, which is not elementwise, met `problem` with."""
    if op.name not in PAIRED:
        return problem
    return undefined(op, arrays) if isinstance(problem, TypeError) else mismatch(op, arrays)


def undefined(op: Op, arrays: list[Any]) -> Exception:
    """The error for operands of types that the operation does not take."""
    kinds = " and ".join(dict.fromkeys(str(np.asarray(x).dtype) for x in arrays))
    return RuntimeError(
        f"`{op.name}` is not defined for operands of the type {kinds}: convert them with `.to`, or "
        "compute with the real and the imaginary part"
    )
