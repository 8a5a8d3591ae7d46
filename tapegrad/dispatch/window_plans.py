"""Plan what is computed of the windows of small volumes: see `call_plans`."""

from __future__ import annotations

from math import prod
from typing import Any

from tapegrad.dispatch import call_plans
from tapegrad.dispatch.call_plans import Key, add_plan, count_call, form_plan, plans
from tapegrad.dispatch.dispatch import run, run_constant
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.kernels.sweep.sweep_abi import SMALL
from tapegrad.ops.core import Op
from tapegrad.ops.windows import window_argmax
from tapegrad.tensor import Tensor


def run_windows(op: Op, x: Tensor, windows: Any) -> Tensor:
    """Run an operation on windows, in compiled code if this call has come before."""
    key, compiled = None, native_calls.planned
    if compiled is not None and x.__class__ is Tensor and x._s != -1:
        key = op, x._s, windows
        plan = plans.get(key)
        if plan is not None:
            made = compiled(plan, x)
            if made is not None:
                return made
    params = {"windows": windows}
    y = run_constant(op, x, params) if op is window_argmax else run(op, (x,), params)
    if key is not None:
        _remember(key, op, x, y, params)
    return y


def _remember(key: Key, op: Op, x: Tensor, y: Tensor, params: dict[str, Any]) -> None:
    """Count a call, and make a plan when it has come often enough."""
    if count_call(key) != call_plans.TIMES or not 0 < y._a.size <= SMALL or not x._a.size:
        return
    from tapegrad.kernels.large import volume_windows

    form = volume_windows.form_of(op, params["windows"], x._a.itemsize)
    plan = form_plan(
        op, [x._a], y._a, params, form.words, loop=form.loop.address, unsure=0,
        units=y._a.size // prod(form.result), itemsize=x._a.itemsize,
        dtype=id(y._a.dtype) if op is window_argmax else 0,
    )  # fmt: skip
    add_plan(key, plan._replace(keeps=(*plan.keeps, form, y._a.dtype)))
