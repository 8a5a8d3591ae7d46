"""Materialise concatenations: producers write their pieces in place, the rest is copied."""

from __future__ import annotations

from tapegrad.compiler.ir.copy_plans import PLANS, Plan
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.schedule.step_ir import CALL, MAP, Copy, ScheduleState
from tapegrad.tape.shape_table import Shape


def place_pieces(schedule: ScheduleState, position: int, node: Node) -> None:
    """Materialise a join: copy the pieces that no loop writes in place."""
    out = schedule.fresh(node)
    plan = PLANS[node.op](schedule.graph, node, out)
    if plan is None:
        schedule.buffers.pop()
        schedule.kinds[position] = CALL
        schedule.call(position, node)
        return
    last = _written_by_loops(schedule, node, plan)
    for source, target, mode in plan:
        if isinstance(source, float):
            schedule.steps.append(Copy(source, target, mode))
        elif schedule.literal(source):
            value = schedule.graph.nodes[source].value
            assert value is not None
            schedule.steps.append(Copy(float(value.flat[0]), target, mode))
        else:
            schedule.steps.append(
                Copy(schedule.place(source).broadcast(target.shape), target, mode)
            )
        last = len(schedule.steps) - 1
    schedule.places[position] = out
    schedule.home[position] = last


def _written_by_loops(schedule: ScheduleState, node: Node, plan: Plan) -> int:
    """Remove the pieces that loops write in place from a plan; returns the last of the loops.

    These are values that loops compute, and those available to a loop over as many elements: so
    adjacent pieces are written at once.
    """
    last = -1
    if node.name not in ("cat", "stack"):
        return last
    loops: dict[Shape, int] = {}
    rest: Plan = []
    for source, target, mode in plan:
        assert isinstance(source, int)
        operand = schedule.graph.nodes[source]
        fits = operand.shape == target.shape and operand.dtype == node.dtype
        if fits and schedule.kinds[source] == MAP:
            at = schedule.home[source]
            schedule.loop(at).stores.append((source, target, mode))
            loops[target.shape] = max(at, loops.get(target.shape, -1))
            last = max(last, at)
        else:
            rest.append((source, target, mode))
    plan.clear()
    for source, target, mode in rest:
        assert isinstance(source, int)
        at = loops.get(target.shape, -1)
        if at > schedule.home[source] and schedule.graph.nodes[source].dtype == node.dtype:
            schedule.ensure_operand(source, schedule.loop(at), at)
            schedule.loop(at).stores.append((source, target, mode))
        else:
            plan.append((source, target, mode))
    return last
