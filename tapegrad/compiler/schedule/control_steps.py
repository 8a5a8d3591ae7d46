"""Schedule a loop or a branch as one step."""

from __future__ import annotations

import numpy as np

from tapegrad.compiler.ir.buffers import SCRATCH, Buffer, whole
from tapegrad.compiler.ir.control_ops import TAKE, graphs_of, grows
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.schedule.step_ir import ControlStep, ScheduleState


def place_control(schedule: ScheduleState, position: int, node: Node) -> None:
    """Schedule a loop or a branch, or place one of its results."""
    if node.op is not TAKE:
        args = [schedule.plain(a, ordered=True) for a in node.args]
        step = ControlStep(node, args, [schedule.inner(sub.graph()) for sub in graphs_of(node)])
        schedule.buffers.append(step.work)
        schedule.steps.append(step)
        schedule.home[position] = len(schedule.steps) - 1
        return
    home = schedule.home[position] = schedule.home[node.args[0]]
    found = schedule.steps[home]
    assert isinstance(found, ControlStep)
    k = node.params["k"]
    if k not in found.outs:
        if grows(found.node, k):
            buffer = Buffer(SCRATCH, 0, np.dtype(np.int64), 1)
            schedule.buffers.append(buffer)
            schedule.grown.append(buffer)
            found.outs[k] = whole(buffer, ())
        else:
            found.outs[k] = schedule.fresh(node)
    schedule.places[position] = found.outs[k]
