"""Elements that a mask chooses."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.dtypes import fitted
from tapegrad.dispatch.index_plans import run_and_plan, run_planned
from tapegrad.dispatch.op_functions import as_operand
from tapegrad.functions.arguments import Operand, as_input
from tapegrad.functions.method_decorators import method
from tapegrad.ops import index as i
from tapegrad.tensor import Tensor


def mask_of(mask: Any, name: str) -> Tensor:
    """An operand that is a mask: booleans."""
    m = as_input(mask, name)
    if m._a.dtype.kind != "b":
        raise RuntimeError(f"`{name}` needs a boolean mask, got {m.dtype}")
    return m


def fill_parts(input: Any, mask: Any, value: Any) -> tuple[Tensor, Tensor, Any]:
    """Operands of `masked_fill`, checked."""
    x, m = as_input(input, "masked_fill"), mask_of(mask, "masked_fill")
    v = value if isinstance(value, Tensor) else np.asarray(as_operand(value))
    if (v._a if isinstance(v, Tensor) else v).ndim:
        raise RuntimeError("`masked_fill` fills with one number, got a value with dimensions")
    if not isinstance(v, Tensor) and v.dtype != x._a.dtype:
        v = fitted(v, x._a.dtype, "masked_fill")
    return x, m, v


@method
def masked_fill(input: Tensor, mask: Tensor | np.ndarray, value: Operand) -> Tensor:
    """A copy with one number where the mask holds.

    >>> import tapegrad as tg
    >>> tg.masked_fill(tg.ones(2), tg.tensor([True, False]), 0.0)
    tensor([0., 1.])
    """
    found = run_planned(i.masked_fill, input, mask, value)
    if found is not None:
        return found
    return run_and_plan(i.masked_fill, fill_parts(input, mask, value), {}, index=mask, value=value)


@method
def masked_select(input: Tensor, mask: Tensor | np.ndarray) -> Tensor:
    """The elements where the mask holds, in one dimension.

    >>> import tapegrad as tg
    >>> tg.masked_select(tg.tensor([1.0, 2.0]), tg.tensor([False, True]))
    tensor([2.])
    """
    m = mask_of(mask, "masked_select")
    count = int(np.count_nonzero(m._a)) if mask.__class__ is Tensor else ...
    found = run_planned(i.masked_select, input, mask, None, count)
    if found is not None:
        return found
    args = as_input(input, "masked_select"), m
    return run_and_plan(i.masked_select, args, {}, index=mask, how=count)
