"""Schedule pooling: calls of the compiled loops over windows that the operations run eagerly."""

from __future__ import annotations

from math import prod

import numpy as np

from tapegrad.compiler.ir.buffers import whole
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.llvm.function_builder import FunctionBuilder, Routine
from tapegrad.compiler.schedule.step_ir import RoutineCall, ScheduleState
from tapegrad.kernels.large.volume_windows import form_of
from tapegrad.ops.windows import ROWS


def pools(node: Node, operand: Node) -> bool:
    """Whether there is a loop for an operation."""
    return node.op in ROWS and operand.dtype.kind == "f"


def place_pooled(state: ScheduleState, position: int, node: Node) -> None:
    """Call the loop; what addresses its table holds is alive as long as the program's constants."""
    (a,) = node.args
    given = state.plain(a, ordered=True)
    dtype = given.buffer.dtype
    form = form_of(node.op, node.params["windows"], dtype.itemsize)
    for part in form.kept:
        for array in part if isinstance(part, tuple) else (part,):
            state.constant(array)
    # Of no type that would be written into the program's text, which is kept on disk.
    table = np.concatenate([[form.loop.address], form.words]).astype(np.uint64)
    room = whole(state.room(dtype, form.size[-1]), (form.size[-1],))
    out = state.fresh(node)
    volumes = prod(given.shape[: -len(form.size)])
    places = [state.constant(table), given, room, out]
    state.steps.append(RoutineCall(node, [given], out, places, _call(volumes)))
    state.places[position] = out
    state.home[position] = len(state.steps) - 1


def _call(volumes: int) -> Routine:
    """A call of the loop whose address stands before its table."""
    t = FunctionBuilder(np.dtype(np.int64))
    loop = t.load("%a0", "ptr")
    table, x, room, out = (
        t.emit(f"ptrtoint ptr {at} to i64") for at in (t.at("%a0", 1), "%a1", "%a2", "%a3")
    )
    words = ", ".join(f"i64 {word}" for word in (table, x, 0, out, room, 0, volumes, 0))
    t.emit(f"call i64 {loop}({words})")
    return t.routine([""] * 4)
