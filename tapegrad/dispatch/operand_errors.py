"""Errors for operands that an operation does not take."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.core import Op


def mismatch(op: Op, arrays: list[Any]) -> Exception:
    """The error for operands that do not broadcast."""
    shapes = " and ".join(str(x.shape) for x in arrays)
    return RuntimeError(
        f"`{op.name}`: the shapes {shapes} do not broadcast: from the right, sizes must "
        "be equal or 1"
    )


def unfit(op: Op, arrays: list[Any], problem: Exception) -> Exception:
    """The error for operands that an operation, which is not elementwise, met `problem` with."""
    if not op.paired:
        return problem
    return undefined(op, arrays) if isinstance(problem, TypeError) else mismatch(op, arrays)


def undefined(op: Op, arrays: list[Any]) -> Exception:
    """The error for operands of types that the operation does not take."""
    kinds = " and ".join(dict.fromkeys(str(np.asarray(x).dtype) for x in arrays))
    return RuntimeError(
        f"`{op.name}` is not defined for operands of the type {kinds}: convert them with `.to`, or "
        "compute with the real and the imaginary part"
    )
