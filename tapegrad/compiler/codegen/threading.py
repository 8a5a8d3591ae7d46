"""Split long nests among threads, by parts of the outermost loop.

The function of such a nest asks Python for the threads of the pool, if it may use several and runs
in a thread that Python knows.  In others (`prange`, a sampler written in C), which could deadlock,
or when the pool is busy, it does everything itself.  Each part reduces into memory of its own, and
the partial results are added in order: for a number of threads the bits are reproducible.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.loop_nest import ADD, SET, Nest, collapsed
from tapegrad.kernels.launch_abi import Launch
from tapegrad.ops.core import table as ops
from tapegrad.parallel import large_elementwise, thread_pool

REFUSED, DONE, INTERRUPTED = 0, 1, 2
FEWEST = 16  # steps of the outermost loop
DECLARED = (
    "@tapegrad_threads = external global i64",
    "declare ptr @PyGILState_GetThisThreadState()",
    "declare void @PyErr_SetInterrupt()",
    "declare i64 @tapegrad_share(i64, i64, ptr, ptr)",
)


class Shared(NamedTuple):
    """A nest whose outermost loop several threads can share."""

    extent: int  # of the outermost loop
    work: int  # its cost in additions
    pointers: int
    totals: tuple[tuple[int, str, Place], ...]  # the pointers to the results of reductions


def shared(nest: Nest) -> Shared | None:
    """How a nest is divided; None if it is too short, or its parts would write the same memory."""
    nest = collapsed(nest)
    if not nest.domain or nest.domain[0] < FEWEST or any(nest.gathers[len(nest.loads) :]):
        return None
    if _goes_on(nest):
        return None
    work = int(np.prod(nest.domain)) * (1 + len(nest.terms) // 8)
    if work < 2 * large_elementwise.SPLIT:
        return None
    totals = []
    for k, (_, place, mode) in enumerate(nest.stores, len(nest.loads)):
        if mode == ADD:  # it accumulates in place: it could not be retried
            return None
        if place.strides[0] == 0:
            if mode == SET or min(place.strides) < 0:
                return None
            totals.append((k, mode, place))
    pointers = len(nest.loads) + len(nest.stores)
    return Shared(nest.domain[0], work, pointers, tuple(totals))


def _goes_on(nest: Nest) -> bool:
    """Whether the outermost loop carries a dependence, as scans do."""
    return any(
        load.buffer is store.place.buffer
        and abs(load.offset - store.place.offset) >= abs(store.place.strides[0])
        for load in nest.loads
        for store in nest.stores
    )


def dividing(name: str, number: int, nest: Shared) -> str:
    """The function `name` of a nest, which runs `name.part` for each part through `SHARED`."""
    pointers = range(nest.pointers)
    given = ", ".join(f"ptr %a{k}" for k in pointers)
    lines = [
        f"define internal i64 @{name}.range(i64 %table, i64 %from, i64 %to, "
        "i64 %d, i64 %e, i64 %f, i64 %g, i64 %h) #0 {",
        "%at = inttoptr i64 %table to ptr",
    ]
    for k in pointers:
        lines.append(f"%p{k} = getelementptr inbounds ptr, ptr %at, i64 {k}")
        lines.append(f"%a{k} = load ptr, ptr %p{k}")
    lines += [
        f"call void @{name}.part({given}, i64 %from, i64 %to)", "ret i64 0", "}",
        f"define internal void @{name}({given}) #0 {{",
        f"%table = alloca [{nest.pointers} x ptr]",
    ]  # fmt: skip
    for k in pointers:
        lines.append(f"%p{k} = getelementptr inbounds ptr, ptr %table, i64 {k}")
        lines.append(f"store ptr %a{k}, ptr %p{k}")
    return "\n".join([
        *lines,
        f"call void @shared(i64 {number}, ptr @{name}.range, i64 {nest.extent}, ptr %table)",
        "ret void", "}",
    ])  # fmt: skip


# Runs the parts of a nest, on several threads or all of them here.
SHARED = f"""\
define internal void @shared(i64 %number, ptr %range, i64 %extent, ptr %table) #2 {{
  %threads = load i64, ptr @tapegrad_threads
  %several = icmp sgt i64 %threads, 1
  br i1 %several, label %look, label %alone
look:
  %thread = call ptr @PyGILState_GetThisThreadState()
  %strange = icmp eq ptr %thread, null
  br i1 %strange, label %alone, label %ask
ask:
  %program = load i64, ptr @tapegrad_number
  %done = call i64 @tapegrad_share(i64 %program, i64 %number, ptr %range, ptr %table)
  switch i64 %done, label %alone [ i64 {DONE}, label %end i64 {INTERRUPTED}, label %interrupted ]
interrupted:
  call void @PyErr_SetInterrupt()  ; raised when the machine code has returned
  br label %alone
alone:
  %at = ptrtoint ptr %table to i64
  %none = call i64 %range(i64 %at, i64 0, i64 %extent, i64 0, i64 0, i64 0, i64 0, i64 0)
  br label %end
end:
  ret void
}}"""


def divide(nest: Shared, function: int, table: int) -> bool:
    """Run the parts on the thread pool; returns whether it could."""
    parts = min(
        large_elementwise.get_num_threads(), nest.extent, nest.work // large_elementwise.SPLIT
    )
    if parts < 2:
        return False
    given = np.ndarray(nest.pointers, np.int64, _memory(table, 8 * nest.pointers))
    pointers = np.repeat(given[None], parts, 0)
    partial: list[tuple[str, Place, list[np.ndarray]]] = []
    for k, mode, place in nest.totals:
        own = [np.empty(_reach(place), place.buffer.dtype) for _ in range(parts - 1)]
        pointers[1:, k] = [a.ctypes.data for a in own]
        partial.append((mode, place, own))
        size = _reach(place) * place.buffer.dtype.itemsize
        own.insert(0, np.ndarray(_reach(place), place.buffer.dtype, _memory(given[k], size)))
    edges = [nest.extent * i // parts for i in range(parts + 1)]
    none = [0] * (Launch.SIZE - 5)
    thread_pool.call([
        [function, 1, int(pointers[i].ctypes.data), edges[i], edges[i + 1], *none]
        for i in range(parts)
    ])  # fmt: skip
    for mode, place, (total, *others) in partial:
        for other in others:
            into = _window(total, place)
            ops[mode].forward(into, _window(other, place), out=into)
    return True


def _memory(address: int, size: int) -> Any:
    return (ctypes.c_char * size).from_address(int(address))


def _reach(place: Place) -> int:
    """The extent of a window in memory, in elements."""
    return 1 + sum(s * (n - 1) for s, n in zip(place.strides, place.shape, strict=True))


def _window(array: np.ndarray, place: Place) -> np.ndarray:
    """The window of a reduction's result, without repeated elements."""
    dims = [d for d, s in enumerate(place.strides) if s]
    shape = [place.shape[d] for d in dims]
    strides = [place.strides[d] * array.itemsize for d in dims]
    return np.ndarray(shape, array.dtype, array.data, 0, strides)


def attempt(nest: Shared, function: int, table: int) -> int:
    """`divide`, as machine code calls it: without raising."""
    try:
        return DONE if divide(nest, function, table) else REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except (MemoryError, RuntimeError, NotCompiled):  # no memory, no more threads, no launcher yet
        return REFUSED
