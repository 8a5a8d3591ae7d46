"""Estimate how long the steps of a schedule run as code that LLVM does not optimise."""

from __future__ import annotations

from math import prod

from tapegrad.compiler.ir.control_ops import LOOP
from tapegrad.compiler.ir.loop_nest import Nest
from tapegrad.compiler.llvm.scalar_ops import calls
from tapegrad.compiler.schedule.step_ir import (
    ControlStep,
    Gemm,
    RoutineCall,
    ScheduleState,
    SmallMatmul,
    Step,
)

# Nanoseconds of an operation on an element, of an elementary function, of a multiplication in a
# product of small matrices and in one by BLAS, and of what is between steps.
OPERATION, FUNCTION, SMALL, LARGE, BETWEEN = 1.5, 12.0, 1.5, 0.15, 10.0


def nanoseconds(step: Step, nest: Nest | None, loops: bool = True) -> float:
    """The time of a step; loops count as one trip where the number is not known, or not at all."""
    if nest is not None:
        each = sum(FUNCTION if calls(term.name) else OPERATION for term in nest.terms)
        return BETWEEN + prod(nest.domain) * max(each, OPERATION)
    if isinstance(step, ControlStep):
        if step.node.op is LOOP and not loops:
            return BETWEEN
        return BETWEEN + (step.trips or 1) * sum(of_graph(g, loops) for g in step.graphs)
    if isinstance(step, SmallMatmul):
        return BETWEEN + SMALL * step.size
    if isinstance(step, Gemm):
        return BETWEEN + LARGE * prod(step.out.shape) * step.a.shape[-1]
    if isinstance(step, RoutineCall):  # factorizations, mostly
        return BETWEEN + max((prod(place.shape) ** 1.5 for place in step.args), default=0.0)
    return BETWEEN


def of_graph(schedule: ScheduleState, loops: bool = True) -> float:
    """The time of one run of what a loop or a branch owns."""
    return sum(
        nanoseconds(*each, loops) for each in zip(schedule.steps, schedule.nests, strict=True)
    )
