"""Rounding to whole numbers, what it leaves, and replacing what is not a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.op_functions import unary
from tapegrad.functions.arguments import Operand, as_input
from tapegrad.functions.arithmetic import _div, add, sign, where
from tapegrad.functions.elementwise import eq, gt, isfinite, isnan, mul
from tapegrad.functions.method_decorators import method
from tapegrad.ops import elementwise as e
from tapegrad.ops.shape import clone, view_as_complex, view_as_real
from tapegrad.tensor import Tensor

_round = unary(e.round)


@method
def heaviside(input: Tensor, values: Operand) -> Tensor:
    """0 below 0, 1 above, and `values` at 0; the derivative is 0, that by `values` 1 at 0.

    >>> import tapegrad as tg
    >>> tg.heaviside(tg.tensor([-1.5, 0.0, 2.0]), tg.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """
    x = as_input(input, "heaviside")
    side = add(sign(x), 1)
    return where(eq(x, 0), values, mul(side, 0.5) if x._a.dtype.kind == "f" else gt(side, 1))


@method
def round(input: Any, *, decimals: int = 0) -> Tensor:
    """The nearest whole number, the even one of two; or the nearest with so many decimals.

    >>> import tapegrad as tg
    >>> tg.round(tg.tensor([0.5, 1.5, 2.6]))
    tensor([0., 2., 3.])
    """
    x = as_input(input, "round")
    if x._a.dtype.kind in "biu":
        if decimals:
            raise RuntimeError(f"`round`: integers have no decimals, got decimals={decimals}")
        return run(clone, (x,), {})
    if not decimals:
        return _round(x)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return _div(_round(mul(x, scale)), scale)
    return mul(_round(_div(x, scale)), scale)


def replacement(x: Tensor, nan: float, posinf: Any, neginf: Any) -> tuple[Any, Any]:
    """Where a Tensor is finite, and what stands elsewhere."""
    if type(x._a) is AbstractArray:
        limits = np.finfo(x._a.dtype)
        high = float(limits.max) if posinf is None else posinf
        low = float(limits.min) if neginf is None else neginf
        return isfinite(x), where(isnan(x), nan, where(gt(x, 0), high, low)).to(x.dtype)
    finite = np.isfinite(x._a)
    return finite, np.nan_to_num(x._a, nan=nan, posinf=posinf, neginf=neginf)


@method
def nan_to_num(
    input: Tensor, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """NaN and the infinities replaced, by 0 and the largest and smallest numbers by default.

    >>> import tapegrad as tg
    >>> tg.nan_to_num(tg.tensor([float("nan"), 1.0, float("inf")]), posinf=9.0)
    tensor([0., 1., 9.])
    """
    x = as_input(input, "nan_to_num")
    if x._a.dtype.kind in "biu":
        return run(clone, (x,), {})
    if x._a.dtype.kind == "c":
        parts = nan_to_num(run(view_as_real, (x,), {}), nan, posinf, neginf)
        return run(view_as_complex, (parts,), {})
    if type(x._a) is not AbstractArray and np.isfinite(x._a).all():
        return run(clone, (x,), {})
    finite, other = replacement(x, nan or 0.0, posinf, neginf)
    return run(e.where, (finite, x, other), {})
