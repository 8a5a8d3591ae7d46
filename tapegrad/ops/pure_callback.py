"""A function of the user's over NumPy arrays as an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.ops.core import NotImplementedYet, custom
from tapegrad.tape.shape_table import Shape


def _called(
    *arrays: Any, function: Callable[..., Any], shape: Shape, dtype: np.dtype[Any]
) -> np.ndarray:
    given = [x.view() for x in arrays]
    for x in given:
        x.flags.writeable = False  # it is the memory of a Tensor
    found = np.array(function(*given))  # a copy: the function may keep what it returned
    if found.shape != shape or not np.can_cast(found.dtype, dtype, "same_kind"):
        raise RuntimeError(
            f"`pure_callback`: the function returned {found.dtype} of shape {found.shape}, where "
            f"{dtype} of shape {shape} was announced"
        )
    return found.astype(dtype, copy=False)


pure_callback = custom(
    "pure_callback",
    _called,
    variadic=True,
    each=NotImplementedYet(
        "`pure_callback` has no derivative, since nobody knows what its function does: call it in "
        "a function with a derivative of its own (`tapegrad.custom_vjp`), or on `t.detach()`"
    ),
)
