"""Write calls of the loops that eager operations run, by pointer: convolutions."""

from __future__ import annotations

import numpy as np

from tapegrad.compiler.codegen.threading import DECLARED
from tapegrad.compiler.llvm.function_builder import FunctionBuilder, Routine
from tapegrad.kernels.codegen import kernel_table
from tapegrad.kernels.large.direct_convolution import Plan
from tapegrad.parallel import large_elementwise

PREFIX = "kernel."
CONVOLUTION = f"{PREFIX}convolution_loops.form"


def address(symbol: str) -> int:
    """The address of a loop, by its module and name."""
    module, name = symbol.removeprefix(PREFIX).split(".")
    return kernel_table.loop(name, source=module, waiting=True).address


def convolution(plan: Plan, *, checking: bool) -> Routine:
    """A form of two arrays, by a plan for one thread; with `checking` it fails where it finds NaN.

    It takes both arrays, the words of the plan, scratch memory and the result.  What pays for
    several threads it leaves to Python, if there are any: the call is nothing beside that.
    """
    t = FunctionBuilder(np.dtype(np.float64))
    if large_elementwise.divides(plan.units, plan.work):
        t.declared.update(DECLARED)
        several = t.emit(f"icmp sgt i64 {t.load('@tapegrad_threads', 'i64')}, 1")
        with t.where(several):
            thread = t.emit("call ptr @PyGILState_GetThisThreadState()")
            t.fail(t.emit(f"icmp ne ptr {thread}, null"))
    t.declared.add(f"declare i64 @{CONVOLUTION}({', '.join(['i64'] * kernel_table.ARGUMENTS)})")
    a, b, words, room, out = (t.emit(f"ptrtoint ptr %a{k} to i64") for k in range(5))
    given = words, a, b, out, room, 0, plan.units, int(checking)
    status = t.emit(f"call i64 @{CONVOLUTION}({', '.join(f'i64 {x}' for x in given)})")
    t.fail(t.emit(f"icmp ne i64 {status}, 0"))
    return t.routine([""] * 5)
