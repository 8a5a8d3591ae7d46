"""Large elementwise work: split over threads, and through compiled loops where they are faster."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tapegrad.ops.core import Op

SPLIT = 1 << 16  # elements per thread from which splitting pays
COMPILED = 1 << 14  # elements from which a compiled loop pays for its call

# Operations whose compiled loop beats NumPy's own by measurement (`python -m bench eager`).
FASTER = frozenset(
    "sin cos sigmoid softplus relu cube addcmul addcdiv lerp rsqrt erf".split()
)

_threads = int(os.environ.get("TAPEGRAD_NUM_THREADS", "0")) or (os.cpu_count() or 1)
_pool: ThreadPoolExecutor | None = None


def set_num_threads(n: int) -> None:
    """Choose how many threads large elementwise operations and their gradients use.

    >>> import tapegrad as tg
    >>> tg.set_num_threads(1)
    >>> tg.get_num_threads()
    1
    """
    global _threads, _pool
    if n < 1:
        raise ValueError(f"`set_num_threads` takes a positive number, got {n}")
    _threads = n
    if _pool is not None:
        _pool.shutdown()
        _pool = None


def get_num_threads() -> int:
    """How many threads large operations use.

    >>> import tapegrad as tg
    >>> tg.get_num_threads() >= 1
    True
    """
    return _threads


def split(n: int, work: Callable[[int, int], Any]) -> None:
    """Run `work(start, stop)` over 0..n, on several threads when that pays."""
    global _pool
    parts = min(_threads, n // SPLIT)
    if parts < 2:
        work(0, n)
        return
    if _pool is None:
        _pool = ThreadPoolExecutor(_threads - 1, thread_name_prefix="tapegrad")
    edges = [n * i // parts for i in range(parts + 1)]
    others = [_pool.submit(work, edges[i], edges[i + 1]) for i in range(1, parts)]
    work(edges[0], edges[1])
    for other in others:
        other.result()


def address(array: np.ndarray) -> int:
    """Where an array's first element is."""
    return int(array.ctypes.data)


def forward(op: Op, arrays: list[Any]) -> Any:
    """The result of an elementwise operation on arrays of one dtype."""
    first = arrays[0]
    size = getattr(first, "size", 1)
    for other in arrays[1:]:
        size = max(size, other.size)
    if size < COMPILED:
        return op.forward(*arrays, out=...)
    scalars = 0
    shape = None
    for i, a in enumerate(arrays):
        if a.size == 1:
            scalars |= 1 << i
        elif not a.flags.c_contiguous or (shape is not None and a.shape != shape):
            return op.forward(*arrays, out=...)
        else:
            shape = a.shape
    if shape is None or first.dtype.char not in "df" and op.name in FASTER:
        return op.forward(*arrays, out=...)
    if any(a.ndim > len(shape) or a.dtype != arrays[-1].dtype for a in arrays):
        return op.forward(*arrays, out=...)
    if op.name in FASTER:
        return _compiled(op, arrays, scalars, shape)
    if _threads > 1 and size >= 2 * SPLIT and isinstance(op.forward, np.ufunc):
        return _split_ufunc(op.forward, arrays, shape)
    return op.forward(*arrays, out=...)


def _compiled(op: Op, arrays: list[Any], scalars: int, shape: Any) -> Any:
    from tapegrad.kernels import table

    dtype = arrays[0].dtype
    kernel = table.forward(op, "f8" if dtype.char == "d" else "f4", scalars)
    out = np.empty(shape, dtype)
    starts = [address(a) for a in arrays]
    steps = [0 if scalars >> i & 1 else dtype.itemsize for i in range(len(arrays))]
    target = address(out)

    def work(start: int, stop: int) -> None:
        moved = [s + start * step for s, step in zip(starts, steps, strict=True)]
        kernel(stop - start, target + start * dtype.itemsize, *moved, *[0] * (3 - len(moved)))

    split(out.size, work)
    return out


def _split_ufunc(ufunc: np.ufunc, arrays: list[Any], shape: Any) -> Any:
    kind = ufunc.resolve_dtypes((*(a.dtype for a in arrays), None))[-1]
    out = np.empty(shape, kind)
    flat_out = out.reshape(-1)
    flats = [a.reshape(-1) for a in arrays]

    def work(start: int, stop: int) -> None:
        parts = [a if a.size == 1 else a[start:stop] for a in flats]
        ufunc(*parts, out=flat_out[start:stop])

    split(out.size, work)
    return out
