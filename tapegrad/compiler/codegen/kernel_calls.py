"""Write calls of the loops that eager operations run, by pointer: convolutions and pooling."""

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


def pooling(volumes: int) -> Routine:
    """A loop over windows of an array, whose address stands before its table.

    It takes the array, both of these, scratch memory and the result.
    """
    t = FunctionBuilder(np.dtype(np.int64))
    loop = t.load("%a1", "ptr")
    x, table, room, out = (
        t.emit(f"ptrtoint ptr {at} to i64") for at in ("%a0", t.at("%a1", 1), "%a2", "%a3")
    )
    words = ", ".join(f"i64 {word}" for word in (table, x, 0, out, room, 0, volumes, 0))
    t.emit(f"call i64 {loop}({words})")
    return t.routine([""] * 4)
