"""Plan convolutions of small images, and their transposes: see `call_plans`."""

from __future__ import annotations

from typing import Any

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.base.size import only_ints
from tapegrad.dispatch.call_plans import Key, add_plan, count_call, form_plan, is_due, plans
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.kernels.sweep.sweep_abi import ROOM
from tapegrad.ops.core import Op
from tapegrad.parallel import large_elementwise
from tapegrad.tensor import Tensor

How = tuple[Any, ...]  # what the function was given beside Tensors
_static = frozenset((int, str))


def run_planned(op: Op, x: Any, w: Any, how: How) -> Tensor | None:
    """Run a call by its plan in compiled code; None if there is no plan, or it refuses."""
    compiled = native_calls.planned
    if compiled is None:
        return None
    plan = plans.get(_key(op, x, w, how))  # type: ignore[arg-type]
    return None if plan is None else compiled(plan, x, None, w)


def _key(op: Op, x: Any, w: Any, how: How) -> Key | None:
    if x.__class__ is not Tensor or x._s == -1 or w.__class__ is not Tensor or w._s == -1:
        return None
    for given in how:
        if given.__class__ not in _static and not (given.__class__ is tuple and only_ints(given)):
            return None
    return op, x._s, w._s, how


def remember(op: Op, x: Tensor, w: Tensor, y: Tensor, params: dict[str, Any], how: How) -> None:
    """Count a call, and make a plan when it has come often enough."""
    key = None if native_calls.planned is None else _key(op, x, w, how)
    if key is None or y._s == -1:
        return
    if not is_due(count_call(key)):
        return
    from tapegrad.kernels.large import direct_convolution as direct

    try:
        loop = direct.loop()
    except NotCompiled:
        return

    arrays, size, at = [x._a, w._a], params["size"], params["geometry"]
    plan = direct.plan_of(op, x._a.shape, w._a.shape, size, at, x._a.dtype.char, 1)
    if plan is None or plan.room * y._a.itemsize > ROOM:
        return
    if large_elementwise.get_num_threads() > 1 and large_elementwise.divides(plan.units, plan.work):
        return
    made = form_plan(
        op, arrays, y._a, params, plan.words, loop=loop.address, units=plan.units, unsure=1
    )
    add_plan(key, made._replace(keeps=(*made.keeps, plan)))
