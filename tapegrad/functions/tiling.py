"""Lay elements out anew: repeat, roll, rotate, pad, meshgrid, powers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import index
from typing import Any, SupportsIndex

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.index_plans import run_and_plan, run_planned
from tapegrad.functions.arguments import Sizes, as_input, dims_of, index_array, one_dim
from tapegrad.functions.indexing import index_select
from tapegrad.functions.joining import cat, stack
from tapegrad.functions.method_decorators import axis_method, method
from tapegrad.functions.scans import cumprod
from tapegrad.functions.shapes import expand, flip, narrow, reshape, transpose
from tapegrad.ops import shape as s
from tapegrad.ops import tiling as t
from tapegrad.ops.borders import Border, border_of
from tapegrad.ops.borders import border as border_row
from tapegrad.ops.index import HOLE, select_rows
from tapegrad.ops.index import index as select
from tapegrad.tensor import Tensor, wrap


def _one_or_more(given: Any) -> tuple[int, ...]:
    """An int or several."""
    return (int(given),) if isinstance(given, (int, np.integer)) else tuple(map(int, given))


@method
def roll(
    input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None
) -> Tensor:
    """Elements moved on along dimensions; what leaves at the end comes back at the beginning.

    Without `dims` the elements are moved in their flat order.

    >>> import tapegrad as tg
    >>> tg.roll(tg.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    x = as_input(input, "roll")
    by = _one_or_more(shifts)
    given = () if dims is None else _one_or_more(dims)
    if not given:
        if len(by) != 1:
            raise RuntimeError(f"`roll`: without `dims` one shift is needed, got {by}")
        return reshape(_rolled(reshape(x, (x._a.size,)), by, (0,)), x._a.shape)
    if len(by) != len(given):
        raise RuntimeError(f"`roll` needs a shift for each dimension, got {by} for {given}")
    chosen = tuple(one_dim(d, x._a.ndim, "roll") for d in given)
    if not x._a.ndim:
        return run(s.clone, (x,), {})
    return _rolled(x, by, chosen)


def _rolled(x: Tensor, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Tensor:
    """`roll`; of small arrays by views and a join, which have a native path."""
    if len(dims) == 1 and x._s != -1:
        n = x._a.shape[dims[0]]
        split = n - shifts[0] % n if n else 0
        if split < n:
            parts = narrow(x, dims[0], split, n - split), narrow(x, dims[0], 0, split)
            return cat(parts, dims[0])
    return run(t.roll, (x,), {"shifts": shifts, "dims": dims})


def _repeated(x: Tensor, reps: tuple[int, ...], name: str) -> Tensor:
    if any(n < 0 for n in reps):
        raise RuntimeError(f"`{name}`: the numbers of repeats must not be negative, got {reps}")
    missing = len(reps) - x._a.ndim
    if missing:
        x = run(s.unsqueeze, (x,), {"dims": tuple(range(missing))})
    found = run_planned(t.repeat, x, None, None, reps)
    return run_and_plan(t.repeat, (x,), {"reps": reps}, how=reps) if found is None else found


@method
def repeat(input: Any, *repeats: Any) -> Tensor:
    """The Tensor side by side with itself, so many times along each dimension; a method.

    >>> import tapegrad as tg
    >>> tg.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    x = as_input(input, "repeat")
    reps = tuple(int(n) for n in dims_of(repeats))
    if len(reps) < x._a.ndim:
        raise RuntimeError(
            f"`repeat` needs a number for each dimension of {x._a.shape}, got {reps}; `tile` "
            "takes fewer"
        )
    return _repeated(x, reps, "repeat")


@method
def tile(input: Tensor, *reps: Sizes, dims: Sequence[SupportsIndex] | None = None) -> Tensor:
    """`repeat`, in which dimensions that are not named are as they were.

    >>> import tapegrad as tg
    >>> tg.tile(tg.tensor([[1, 2]]), (2,))
    tensor([[1, 2, 1, 2]])
    """
    x = as_input(input, "tile")
    times = tuple(int(n) for n in dims_of(reps if dims is None else (dims,)))
    return _repeated(x, (1,) * (x._a.ndim - len(times)) + times, "tile")


@axis_method
def repeat_interleave(
    input: Tensor,
    repeats: int | Tensor | np.ndarray,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Each element repeated, so many times or its own number of times.

    Without `dim` the elements are taken in their flat order.

    >>> import tapegrad as tg
    >>> tg.repeat_interleave(tg.tensor([1, 2]), tg.tensor([1, 3]))
    tensor([1, 2, 2, 2])
    """
    x = as_input(input, "repeat_interleave")
    if dim is None or not x._a.ndim:
        x = reshape(x, (x._a.size,))
    d = one_dim(0 if dim is None else dim, x._a.ndim, "repeat_interleave")
    if isinstance(repeats, (int, np.integer)):
        repeats = wrap(np.array(repeats))
    count = index_array(repeats, "repeat_interleave")._a
    n = x._a.shape[d]
    if count.ndim > 1 or count.size not in (1, n):
        raise RuntimeError(
            f"`repeat_interleave` needs one number, or one for each of {n} elements, got the "
            f"shape {count.shape}"
        )
    if count.size and count.min() < 0:
        raise RuntimeError("`repeat_interleave`: the numbers of repeats must not be negative")
    total = int(count.sum()) * (n if count.size == 1 else 1)
    if output_size is not None and output_size != total:
        raise RuntimeError(
            f"`repeat_interleave`: `output_size` is {output_size}, the repeats add up to {total}"
        )
    if count.size == 1:
        return _each_repeated(x, int(count.reshape(())), d)
    return run(select_rows, (x, wrap(np.repeat(np.arange(n), count))), {"dim": d})


def _each_repeated(x: Tensor, times: int, d: int) -> Tensor:
    shape = x._a.shape
    unsqueezed = run(s.unsqueeze, (x,), {"dims": (d + 1,)})
    reps = tuple(times if k == d + 1 else 1 for k in range(len(shape) + 1))
    spread = _repeated(unsqueezed, reps, "repeat_interleave")
    return reshape(spread, (*shape[:d], shape[d] * times, *shape[d + 1 :]))


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """A border of one value; `pad` is (before, after) of the last dimension, then of others.

    Negative numbers take away.  Other modes repeat elements of signals, images and volumes
    (batch, channels, *size): "reflect", "replicate" the outermost, or "circular".

    >>> import tapegrad as tg
    >>> tg.nn.functional.pad(tg.tensor([1.0, 2.0]), (1, 2))
    tensor([0., 1., 2., 0., 0.])
    >>> tg.nn.functional.pad(tg.tensor([[1.0, 2.0, 3.0]]), (1, 2), "reflect")
    tensor([[2., 1., 2., 3., 2., 1.]])
    """
    x = as_input(input, "pad")
    edges = tuple(int(n) for n in pad)
    if mode != "constant":
        return _repeating(x, edges, mode, value)
    if len(edges) % 2 or len(edges) > 2 * x._a.ndim:
        raise RuntimeError(
            f"`pad` takes a pair of numbers for each of the last dimensions, got {edges} for the "
            f"shape {x._a.shape}"
        )
    pairs = [(0, 0)] * (x._a.ndim - len(edges) // 2)
    pairs += [*zip(edges[-2::-2], edges[::-2], strict=True)]
    for n, (before, after) in zip(x._a.shape, pairs, strict=True):
        if n + before + after < 0:
            raise RuntimeError(f"`pad`: {edges} takes away more than there is in {x._a.shape}")
    if any(n < 0 for n in edges):
        cut = tuple(
            slice(max(-before, 0), n - max(-after, 0))
            for n, (before, after) in zip(x._a.shape, pairs, strict=True)
        )
        x = run(s.getitem, (x,), {"index": (*cut, ...)})
    widths = tuple((max(before, 0), max(after, 0)) for before, after in pairs)
    if value is not None:
        return run(t.pad, (x,), {"widths": widths, "value": value})
    found = run_planned(t.pad, x, None, None, widths)
    if found is not None:
        return found
    return run_and_plan(t.pad, (x,), {"widths": widths, "value": 0.0}, how=widths)


def _reflected(at: np.ndarray, n: int) -> np.ndarray:
    at = np.abs(at)
    return np.where(at < n, at, 2 * (n - 1) - at)


def _circled(at: np.ndarray, n: int) -> np.ndarray:
    """The circle is of the elements that no negative number takes away."""
    first, last = np.clip(at[[0, -1]], 0, n - 1)
    found: np.ndarray = first + (at - first) % (last - first + 1)
    return found


MANY = 1 << 13  # elements from which on a border is one pass
# Which of n elements stands at places on either side of them.
BORDERS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "circular": _circled,
    "reflect": _reflected,
    "replicate": lambda at, n: np.clip(at, 0, n - 1),
}


def _repeating(x: Tensor, edges: tuple[int, ...], mode: str, value: float | None) -> Tensor:
    """A border of elements of the Tensor itself."""
    dims, shape = len(edges) // 2, x._a.shape
    if mode not in BORDERS:
        raise NotImplementedError(f"`pad`: mode is 'constant' or one of {[*BORDERS]}, got {mode!r}")
    if len(edges) % 2 or value is not None:
        raise RuntimeError(
            f"`pad` in mode {mode!r} takes pairs of numbers and no value, got {edges} and {value}"
        )
    if dims not in (1, 2, 3) or len(shape) not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"`pad` in mode {mode!r} takes a pair for each dimension of signals, images or volumes "
            f"(batch, channels, *size), got {edges} for the shape {shape}"
        )
    lines: dict[int, Line] = {}
    for k in range(dims):
        (before, after), d = edges[2 * k : 2 * k + 2], len(shape) - 1 - k
        n = shape[d]
        rest = n + min(before, 0) + min(after, 0)
        most = {"circular": rest, "reflect": n - 1}.get(mode, max(before, after))
        if max(before, after) > most or n + before + after < 0 or (not n and mode != "circular"):
            raise RuntimeError(
                f"`pad` in mode {mode!r}: {(before, after)} does not fit {n} elements of dimension "
                f"{d}, shape {shape}"
            )
        if before or after:
            lines[d] = _line(mode, n, before, after)
    return bordered(x, lines) if lines else x


Line = tuple[Tensor, Border | None]  # the places that a dimension is read at, and as a border


@lru_cache(1 << 10)
def _line(mode: str, n: int, before: int, after: int) -> Line:
    places = BORDERS[mode](np.arange(-before, n + after), n)
    border = border_of(places, max(before, 0), n, max(-before, 0), n - max(-after, 0))
    return wrap(places), border


def bordered(x: Tensor, lines: dict[int, Line]) -> Tensor:
    """Borders along some dimensions, in one pass where there are many elements.

    Small Tensors are selected from, as compiled sweeps do.
    """
    if x._a.size < MANY or any(border is None for _, border in lines.values()):
        for d, (places, _) in lines.items():
            x = index_select(x, d, places)
        return x
    borders = tuple(border for _, border in lines.values())
    return run(border_row, (x,), {"dims": tuple(lines), "borders": borders})


@method
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """The Tensor turned by so many right angles, from the first of two dimensions to the second.

    >>> import tapegrad as tg
    >>> tg.rot90(tg.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    x = as_input(input, "rot90")
    if len(dims) != 2 or x._a.ndim < 2:
        raise RuntimeError(f"`rot90` turns two dimensions, got {tuple(dims)} of {x._a.shape}")
    a, b = (one_dim(d, x._a.ndim, "rot90") for d in dims)
    if a == b:
        raise RuntimeError(f"`rot90` needs two different dimensions, got {tuple(dims)}")
    k %= 4
    if k == 0:
        return run(s.clone, (x,), {})
    if k == 2:
        return flip(x, (a, b))
    return transpose(flip(x, (b if k == 1 else a,)), a, b)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid from those of its axes; ``indexing="xy"`` swaps the first two.

    >>> import tapegrad as tg
    >>> tg.meshgrid(tg.tensor([1, 2]), tg.tensor([3, 4]))[1]
    tensor([[3, 4],
            [3, 4]])
    """
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f"`meshgrid`: indexing is 'ij' or 'xy', got {indexing!r}")
    given = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    axes = [as_input(x, "meshgrid") for x in given]
    if not axes:
        raise RuntimeError("`meshgrid` needs at least one Tensor")
    if any(x._a.ndim > 1 for x in axes):
        raise RuntimeError(
            f"`meshgrid` takes vectors and numbers, got the shapes {[x._a.shape for x in axes]}"
        )
    if any(x._a.dtype != y._a.dtype for x, y in pairwise(axes)):
        raise RuntimeError("`meshgrid`: all Tensors must have one dtype")
    turned = indexing == "xy" and len(axes) > 1
    if turned:
        axes[:2] = axes[1::-1]
    shape = tuple(x._a.size for x in axes)
    grids = [
        expand(reshape(x, (-1 if x._a.size else 0,) + (1,) * (len(axes) - d - 1)), shape)
        for d, x in enumerate(axes)
    ]
    if turned:
        grids[:2] = grids[1::-1]
    return tuple(grids)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element in a row of `N` (as many as elements), from the highest to 0.

    >>> import tapegrad as tg
    >>> tg.vander(tg.tensor([2.0, 3.0]), 3)
    tensor([[4., 2., 1.],
            [9., 3., 1.]])
    """
    t = as_input(x, "vander")
    if t._a.ndim != 1:
        raise RuntimeError(f"`vander` takes a vector, got the shape {t._a.shape}")
    rows = t._a.size
    columns = rows if N is None else int(N)
    if columns < 0:
        raise RuntimeError(f"`vander`: N must not be negative, got {N}")
    kind = t._a.dtype if t._a.dtype.kind in "fc" else np.dtype(np.int64)
    powers = wrap(np.ones((rows, min(columns, 1)), kind))
    if columns > 1:
        steps = expand(reshape(t, (rows, 1)), (rows, columns - 1))
        powers = cat([powers, cumprod(steps, 1)], 1)
    return powers if increasing else flip(powers, (1,))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All ways to take one element of each vector, in the order of nested loops; one a row.

    >>> import tapegrad as tg
    >>> tg.cartesian_prod(tg.tensor([1, 2]), tg.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    vectors = [as_input(x, "cartesian_prod") for x in tensors]
    for x in vectors:
        if x._a.ndim != 1:
            raise RuntimeError(f"`cartesian_prod` takes vectors, got the shape {x._a.shape}")
    if len(vectors) == 1:
        return vectors[0]
    return stack([reshape(grid, (grid._a.size,)) for grid in meshgrid(*vectors)], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to take `r` elements of a vector, in their order; one a row.

    >>> import tapegrad as tg
    >>> tg.combinations(tg.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    x, k = as_input(input, "combinations"), index(r)
    if x._a.ndim != 1:
        raise RuntimeError(f"`combinations` takes a vector, got the shape {x._a.shape}")
    if k < 0:
        raise RuntimeError(f"`combinations` of a negative number of elements, {k}")
    if not k:
        return wrap(np.zeros(0, x._a.dtype))
    n = x._a.size
    if k == 2:
        places = np.stack(np.triu_indices(n, 0 if with_replacement else 1), 1)
    else:
        repeating = itertools.combinations_with_replacement
        choose: Any = repeating if with_replacement else itertools.combinations
        places = np.array([*choose(range(n), k)], np.int64).reshape(-1, k)
    return run(select, (x, wrap(places)), {"plan": (HOLE,)})
