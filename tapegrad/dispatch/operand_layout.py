"""Encode how operands lie in a result: how they are broadcast, seen, joined, multiplied."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import FIELD, MATRIX, ONE_LEFT, ONE_RIGHT, SMALL, find
from tapegrad.ops.core import Op
from tapegrad.ops.shape import STRIDED, stack
from tapegrad.tape.record_format import BROADCAST, CLASS_SHIFT, COLUMN, ROW, SCALAR
from tapegrad.tape.shape_table import Shape, strides

Layout = tuple[int, int] | None
known: dict[Any, Layout] = {}
_places: dict[Any, int] = {}  # entries of views in the table of strides
_found = find()
_DATA = 0 if _found is None else _found.array_data
_word = ctypes.c_int64.from_address


def summed(x: np.ndarray, dims: tuple[int, ...]) -> Layout:
    """The layout of a sum, or of a mean: how the result would be broadcast."""
    key: Any = ("sum", x.shape, dims)
    if key in known:
        return known[key]
    kept = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
    found = classes((kept,), x.shape)
    return remember(key, found and (found[0], x.size))


def classes(shapes: Any, target: Shape) -> Layout:
    """How each operand is broadcast, as bits of the word, and the length of a row; None if it is
    none of the simple ways: as large as the result, one element, one row, or one column of it.
    """
    count = 1
    for n in target:
        count *= n
    bits = row = 0
    for shape, shift in zip(shapes, CLASS_SHIFT, strict=False):
        size = 1
        for n in shape:
            size *= n
        if size == count:
            continue
        if size == 1:
            bits |= SCALAR << shift
            continue
        found = _row_or_column(shape, target, size, count)
        if found is None or row not in (0, found[1]):
            return None
        bits |= found[0] << shift
        row = found[1]
    return bits, row


def _row_or_column(shape: Shape, target: Shape, size: int, count: int) -> Layout:
    core = shape
    while core and core[0] == 1:
        core = core[1:]
    if core == target[len(target) - len(core) :]:
        return ROW, size
    padded = (1,) * (len(target) - len(shape)) + shape
    while padded and padded[-1] == 1:
        padded = padded[:-1]
    if padded == target[: len(padded)] and count:  # how many rows of no elements, no count tells
        return COLUMN, count // size
    return None


def broadcast(shapes: Any, target: Shape) -> Layout:
    """How each operand is broadcast: as `classes` says it, or by its strides in the result."""
    found = classes(shapes, target)
    if found is not None or not 0 < prod(target) <= SMALL:
        return found
    key: Any = ("broadcast", target, *shapes)
    if key in known:
        return known[key]
    steps = [_steps(shape, target) for shape in shapes]
    axes = _merged(target, steps)
    bits, places = BROADCAST, []
    for shape, step, shift in zip(shapes, steps, CLASS_SHIFT, strict=False):
        along = tuple([step[d] for d in axes[1]])
        if not along[-1]:
            bits |= SCALAR << shift  # in each innermost row
        places.append(strides.add(prod(shape), 0, axes[0], along))
    place = strides.write(places)
    return remember(key, None if min(place, *places) < 0 else (bits, place))


def _steps(shape: Shape, target: Shape) -> list[int]:
    """How far elements of an operand in C order are apart along each dimension of a result."""
    return list(np.broadcast_to(np.empty(shape, np.int8), target).strides)


def _merged(target: Shape, steps: list[list[int]]) -> tuple[Shape, Shape]:
    """The lengths of as few dimensions as do for a result, and the innermost of each."""
    lengths: list[int] = []
    innermost: list[int] = []
    for d, n in enumerate(target):
        if n == 1:
            continue
        if innermost and all(step[innermost[-1]] == step[d] * n for step in steps):
            lengths[-1], innermost[-1] = lengths[-1] * n, d
        else:
            lengths.append(n)
            innermost.append(d)
    return tuple(lengths), tuple(innermost)


def view_place(op: Op, a: np.ndarray, r: np.ndarray, params: Any) -> int:
    """`place_of` what a view operation shows of an operand, whose adjoint lies in C order.

    What `as_strided` shows alone depends on how the operand lies.
    """
    if a.dtype is not r.dtype:
        return -1
    if a.flags.c_contiguous or a.size > SMALL or op.moves not in STRIDED:
        return place_of(a, r)
    like = np.empty(a.shape, a.dtype)
    return place_of(like, op.forward(like, **params))


def place_of(a: np.ndarray, r: np.ndarray) -> int:
    """The entry of a view's strides in the table of the compiled sweep; -1: it has none."""
    if not _DATA or a.size > SMALL or not a.flags.c_contiguous:
        return -1
    start = address(r) - address(a)
    key = (a.size, a.itemsize, start, r.shape, r.strides)
    found = _places.get(key)
    if found is None:
        found = _new_place(a, r, start)
    return found


def address(array: np.ndarray) -> int:
    """The address of an array's first element."""
    return _word(id(array) + _DATA).value if _DATA else int(array.ctypes.data)


def _new_place(a: np.ndarray, r: np.ndarray, start: int) -> int:
    """Enter a view in the table, if it aliases the array: a copied scalar does not."""
    ends = [(n - 1) * s for n, s in zip(r.shape, r.strides, strict=True)] if r.size else []
    low = start + sum(e for e in ends if e < 0)
    high = start + sum(e for e in ends if e > 0)
    if r.size and not 0 <= low <= high < a.nbytes:
        return -1
    moves = r.size > 1
    steps = tuple([s // a.itemsize if moves and n > 1 else 0 for n, s in zip(r.shape, r.strides)])
    first = start // a.itemsize if r.size else 0
    alike = (a.size, first, r.shape, steps)  # where no element is elsewhere
    place = _places.get(alike, -1)
    if place < 0:
        place = strides.add(a.size, first, r.shape, steps)
    if place >= 0:
        _places[a.size, a.itemsize, start, r.shape, r.strides] = _places[alike] = place
    return place


def joined(op: Op, arrays: list[Any], result: np.ndarray, dim: int) -> Layout:
    """The layout of a concatenation: the strides of each part in the whole."""
    if result.size > SMALL or any(
        type(x) is not np.ndarray or x.dtype is not result.dtype for x in arrays
    ):
        return None
    key: Any = (op.name, dim, *[x.shape for x in arrays])
    if key in known:
        return known[key]
    steps = [s // 8 for s in np.empty(result.shape).strides]
    step = steps.pop(dim) if op is stack else steps[dim]
    places, start = [], 0
    for x in arrays:
        places.append(strides.add(x.size, start, x.shape, tuple(steps)))
        start += step if op is stack else step * x.shape[dim]
    place = strides.write(places)
    return remember(key, None if min(place, *places) < 0 else (0, place))


def matrix_layout(a: Shape, b: Shape) -> Layout:
    """The layout of products of matrices or vectors that are small enough for the compiled sweep.

    Both factors have the same batch, or one of them serves all products.
    """
    if a[:-2] and b[:-2] and a[:-2] != b[:-2]:
        return None
    batch = prod(a[:-2] or b[:-2])
    m, inner, cols = a[-2] if len(a) > 1 else 1, a[-1], b[-1] if len(b) > 1 else 1
    if max(prod(a), prod(b), batch * m * cols) > MATRIX or not prod(a) * prod(b):
        return None
    one = (0 if a[:-2] else ONE_LEFT) | (0 if b[:-2] else ONE_RIGHT)
    return 0, m | inner << FIELD | cols << 2 * FIELD | batch << 3 * FIELD | one


def remember(key: Any, found: Layout) -> Layout:
    """Keep what has been found, for the next record like it."""
    if len(known) > 4096:
        known.clear()
    known[key] = found
    return found
