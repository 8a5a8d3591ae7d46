"""Large elementwise work: split over threads, and through compiled loops where they are faster."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.kernels.broadcast_plan import Grid, core, grid
from tapegrad.kernels.launch_abi import Launch
from tapegrad.kernels.sweep import sweep_abi
from tapegrad.ops.core import Op
from tapegrad.ops.elementwise import Lazy
from tapegrad.ops.large import COMPILED
from tapegrad.parallel import thread_pool

SPLIT = 1 << 16  # elements per thread from which splitting pays
PIECES, BLOCK = 4, 1024  # calls of a thread for its part of a row, of whole blocks of elements
INTO_FIRST = 16  # of a loop, beside which operands are one number: it writes over the first
ROW = 16  # elements of a row from which a call for each pays, instead of one pass of NumPy's
ROW_OF_PASSES = 6  # the same, instead of several passes

# The compiled loops of rows are for these types.  In float32 NumPy's own are often ahead, which
# compute in float32 what `vmath` computes in float64.  A loop that is `alike` needs no interpreter,
# so that several threads can begin it without waiting for each other.
_TYPES = {"d": "f8", "f": "f4"}

_threads = int(os.environ.get("TAPEGRAD_NUM_THREADS", "0")) or (os.cpu_count() or 1)

in_memory = ctypes.c_int64(_threads)  # the same for machine code


def set_num_threads(n: int) -> None:
    """Choose how many threads large elementwise operations and their gradients use.

    >>> import tapegrad as tg
    >>> tg.set_num_threads(1)
    >>> tg.get_num_threads()
    1
    """
    global _threads
    if not isinstance(n, int):
        raise RuntimeError(f"`set_num_threads` takes an int, got {type(n).__name__}")
    if n < 1:
        raise ValueError(f"`set_num_threads` takes a positive number, got {n}")
    _threads = in_memory.value = n


def get_num_threads() -> int:
    """How many threads large operations use.

    >>> import tapegrad as tg
    >>> tg.get_num_threads() >= 1
    True
    """
    return _threads


def edges(n: int, weight: int = 1) -> list[int]:
    """Where the parts of 0..n begin and end that threads do; one part where more do not pay."""
    parts = max(1, min(_threads, n, n * weight // SPLIT))
    return [n * i // parts for i in range(parts + 1)]


def divides(n: int, weight: int) -> bool:
    """Whether work pays for threads, if there are any."""
    return n * weight >= 2 * SPLIT


def split(n: int, work: Callable[[int, int], Any], weight: int = 1) -> None:
    """Run `work(start, stop)` over 0..n, on several threads when that pays.

    `weight` is how many elements one of the n stands for.
    """
    if _threads == 1 or not divides(n, weight):
        work(0, n)
        return
    bounds = edges(n, weight)
    if len(bounds) == 2:
        work(0, n)
    else:
        thread_pool.share(work, bounds)


_layout = sweep_abi.find()
_word = ctypes.c_int64.from_address


def address(array: np.ndarray) -> int:
    """Where an array's first element is."""
    if _layout is None:
        return int(array.ctypes.data)
    return _word(id(array) + _layout.array_data).value  # a third of the time


# -- compiled loops ------------------------------------------------------------------------------

Steps = Sequence[int]
_NOTHING = (0,) * 7


def launch(
    kernel: Any,
    rows: int,
    n: int,
    at: Steps,
    row_steps: Steps,
    steps: Steps | None = None,
    weight: int = 1,
) -> None:
    """Call a kernel for each row, on all threads.

    The kernel takes n and up to seven integers, which move by `row_steps` from row to row, and by
    `steps` from element to element; without `steps` a row cannot be divided.  A call for a row is
    the work of `weight * n` elements.
    """
    if rows == 1:
        if steps is None or _threads == 1 or not divides(n, weight):
            kernel.call(n, *at, *_NOTHING[len(at) :])
            return
        threads = len(edges(n, weight)) - 1
        thread_pool.call(_pieces(kernel, n, at, steps, threads), threads)
    elif _threads == 1:
        call_rows(kernel, rows, n, at, row_steps)
    elif steps is not None and rows < _threads <= rows * n // SPLIT:
        for r in range(rows):
            launch(kernel, 1, n, [a + r * s for a, s in zip(at, row_steps)], row_steps, steps)
    else:
        parts = []
        for start, stop in pairwise(edges(rows, weight * n)):
            moved = [a + start * s for a, s in zip(at, row_steps)]
            parts.append(launch_words(kernel, stop - start, n, moved, row_steps))
        thread_pool.call(parts)


def _pieces(kernel: Any, n: int, at: Steps, steps: Steps, threads: int) -> list[list[int]]:
    """The launches of one row, in several calls for each thread: who comes late does fewer."""
    size = max(n // (PIECES * threads), 1)
    size -= size % BLOCK if size > BLOCK else 0
    moves = [size * s for s in steps]
    count = n // size
    found = []
    for k in range(threads):
        start, stop = count * k // threads, count * (k + 1) // threads
        moved = [a + start * m for a, m in zip(at, moves)]
        found.append(launch_words(kernel, stop - start, size, moved, moves))
    if rest := n % size:
        moved = [a + (n - rest) * s for a, s in zip(at, steps)]
        found.append(launch_words(kernel, 1, rest, moved, ()))
    return found


def launch_words(kernel: Any, rows: int, n: int, at: Steps, row_steps: Steps) -> list[int]:
    """The words of a `Launch`: a kernel, and what it is called with for each row."""
    words = [0] * Launch.SIZE
    words[Launch.kernel], words[Launch.calls], words[Launch.arguments] = kernel.address, rows, n
    words[Launch.arguments + 1 : Launch.arguments + 1 + len(at)] = at
    words[Launch.steps + 1 : Launch.steps + 1 + len(row_steps)] = row_steps
    return words


def call_rows(kernel: Any, rows: int, n: int, at: Steps, row_steps: Steps) -> None:
    """Call a kernel for each row, on this thread."""
    thread_pool.call_here(launch_words(kernel, rows, n, at, row_steps))


def row_steps(g: Grid, k: int, itemsize: int) -> int:
    """By how many bytes operand k moves from one row to the next."""
    if g.same_rows[k]:
        return 0
    return itemsize if g.same_element[k] else g.n * itemsize


def forward(op: Op, arrays: list[Any]) -> Any:
    """The result of an elementwise operation on arrays of one dtype."""
    first = arrays[0]
    size, broadcast = first.size, False
    for a in arrays[1:]:
        if a.shape != first.shape and a.size != 1:
            size = max(size, a.size) if size == 1 else size * a.size  # or less: column by row
            broadcast = True
    if size < COMPILED:
        return op.forward(*arrays)
    found = None
    dtype = _TYPES.get(arrays[-1].dtype.char)
    if dtype and (_by_loop(op, dtype) or (broadcast and "broadcast" in op.loop)):
        found = compiled(op, arrays)
    if found is None and _threads > 1:
        ufunc = op.forward
        if isinstance(ufunc, Lazy) and arrays[-1].dtype.kind != "c":
            ufunc = ufunc.load()
        if isinstance(ufunc, np.ufunc):
            found = _split_ufunc(ufunc, arrays)
    return op.forward(*arrays) if found is None else found


def _by_loop(op: Op, dtype: str) -> bool:
    """Whether the compiled loop of an operation, on a type, is the one to take."""
    return dtype in op.loop or (_threads > 1 and "alike" in op.loop)


def forward_into(op: Op, arrays: list[np.ndarray], out: np.ndarray) -> bool:
    """Compute an elementwise operation over its first operand, if that is sure to be possible.

    The operands are of the type of `out`, and as large or one number.
    """
    if arrays[0] is not out or not out.flags.c_contiguous:
        return False
    if any(a is not out and np.may_share_memory(a, out) for a in arrays):
        return False
    dtype = _TYPES.get(out.dtype.char)
    if out.size >= COMPILED and dtype and _by_loop(op, dtype):
        return compiled(op, arrays, out) is not None
    ufunc = op.forward
    if not isinstance(ufunc, np.ufunc):
        return False
    if ufunc.resolve_dtypes((*[a.dtype for a in arrays], None))[-1] != out.dtype:
        return False
    if out.size < COMPILED or _split_ufunc(ufunc, arrays, out) is None:
        ufunc(*arrays, out=out)
    return True


def compiled(
    op: Op, arrays: Sequence[np.ndarray], out: np.ndarray | None = None, row: int = ROW
) -> np.ndarray | None:
    """The result of an elementwise operation by its compiled loop; None where it has none.

    `out` may be the first operand.  Rows shorter than `row` are not worth calling it for each.
    """
    first = arrays[0]
    dtype = arrays[-1].dtype
    shape = first.shape
    for a in arrays:
        if a.shape != shape:
            shape = np.broadcast_shapes(*[a.shape for a in arrays])
            break
    cores = [core(a) for a in arrays]
    plan = grid(tuple([a.shape for a in cores]), shape)
    if plan is None or (plan.rows > 1 and plan.n < row):
        return None
    scalars = 0 if out is None else INTO_FIRST
    for k, a in enumerate(cores):
        if not a.flags.c_contiguous or (a.dtype != dtype and op.inputs[k] != "condition"):
            return None
        scalars |= plan.same_element[k] << k
    from tapegrad.kernels.codegen import kernel_table

    try:
        kernel = kernel_table.forward(op, "f8" if dtype.char == "d" else "f4", scalars)
    except NotCompiled:
        return None
    if kernel is None:
        return None
    if out is None:
        out = np.empty(shape, dtype)
    at = [address(out), *[address(a) for a in cores]]
    by_row = [plan.n * out.itemsize, *[row_steps(plan, k, a.itemsize) for k, a in enumerate(cores)]]
    by_element = [out.itemsize]
    by_element += [0 if plan.same_element[k] else a.itemsize for k, a in enumerate(cores)]
    launch(kernel, plan.rows, plan.n, at, by_row, by_element)
    return out


def _split_ufunc(ufunc: np.ufunc, arrays: list[Any], out: Any = None) -> Any:
    """The result of a ufunc, computed on all threads; None where the layout forbids it."""
    shape = None
    for a in arrays:
        if a.size > 1:
            if not a.flags.c_contiguous or (shape is not None and a.shape != shape):
                return None
            shape = a.shape
    if shape is None or any(a.ndim > len(shape) for a in arrays):
        return None
    if out is None:
        out = np.empty(shape, ufunc.resolve_dtypes((*[a.dtype for a in arrays], None))[-1])
    flat_out = out.reshape(-1)
    flats = [a.reshape(-1) for a in arrays]

    def work(start: int, stop: int) -> None:
        parts = [a if a.size == 1 else a[start:stop] for a in flats]
        ufunc(*parts, out=flat_out[start:stop])

    split(out.size, work)
    return out
