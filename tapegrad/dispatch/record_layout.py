"""Encode the layout of a record's operands in its word and AUX, for the compiled sweep.

`layout_of` does so for an operation that the compiled sweep supports; for others it returns None,
and their records are left to their rules.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import (
    FACTOR_BATCH,
    FACTOR_COLUMNS,
    FACTOR_FLAGS,
    FACTOR_ROWS,
    FACTOR_SIDE,
    FIELD,
    KIND_ASSIGN,
    KIND_CONVOLUTION,
    KIND_DET,
    KIND_FACTOR,
    KIND_JOIN,
    KIND_MATMUL,
    KIND_MEAN,
    KIND_PICK,
    KIND_SLOGDET,
    KIND_SOLVE,
    KIND_SUM,
    KIND_TRIANGLE,
    KIND_WINDOWS,
    MATRIX,
    ONE_LEFT,
    ONE_RIGHT,
    PLACE_BITS,
    SMALL,
    SYSTEM,
    find,
)
from tapegrad.ops import axis_layout, index_layout
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.shape import PASSES, STRIDED, stack
from tapegrad.tape.shape_table import Shape, strides
from tapegrad.tape.tape import BROADCAST, CLASS_SHIFT, COLUMN, ROW, SCALAR
from tapegrad.tensor import F4, F8

Layout = tuple[int, int] | None
_layouts: dict[Any, Layout] = {}
_places: dict[Any, int] = {}  # entries of views in the table of strides
_found = find()
_DATA = 0 if _found is None else _found.array_data
_word = ctypes.c_int64.from_address


def layout_of(op: Op, arrays: list[Any], result: np.ndarray, params: dict[str, Any]) -> Layout:
    """The bits and the AUX field of a record that the compiled sweep understands, or None."""
    kind = result.dtype
    if kind is not F8 and kind is not F4:
        return None
    if op.kind is ELEMENTWISE:
        if len(arrays) > 3:
            return None
        key: Any = (result.shape, *[x.shape for x in arrays])
        if key in _layouts:
            return _layouts[key]
        return _remember(key, broadcast(key[1:], key[0]))
    if type(arrays[0]) is np.ndarray and arrays[0].dtype.kind == "c":
        return None
    if op.moves in PASSES:
        return classes((arrays[0].shape,), result.shape)
    if op.sweep == KIND_SUM or op.sweep == KIND_MEAN:
        shape = arrays[0].shape
        key = ("sum", shape, params["dim"])
        if key in _layouts:
            return _layouts[key]
        kept = tuple(1 if d in key[2] else n for d, n in enumerate(shape))
        found = classes((kept,), shape)
        return _remember(key, found and (found[0], arrays[0].size))
    if op.moves in STRIDED:
        place = place_of(arrays[0], result)
        return None if place < 0 else (0, place)
    if op.moves == "concat":
        return _joined(op, arrays, result, params["dim"])
    if op.axis:
        aux = axis_layout.packed(arrays[0], result, params)
        return (0, aux) if aux else None
    if op.sweep == KIND_JOIN:
        return _embedded(op, arrays[0], result, params)
    if op.window is not None:
        window = op.window(arrays[0], **params)
        if op.sweep == KIND_ASSIGN:
            return _written(arrays[0], arrays[1], window)
        place = place_of(arrays[0], window) if type(window) is np.ndarray else -1
        return None if place < 0 else (0, place)
    if KIND_PICK <= op.sweep <= KIND_TRIANGLE:
        aux = index_layout.packed(op, arrays, result, params)
        return (0, aux) if aux else None
    if op.sweep == KIND_MATMUL:
        return matrix_layout(arrays[0].shape, arrays[1].shape)
    if op.sweep == KIND_CONVOLUTION:
        return _convolved(op, arrays, result, params)
    if op.sweep == KIND_WINDOWS:
        return _windowed(op, arrays[0], result, params["windows"])
    if op.sweep == KIND_SOLVE or op.sweep == KIND_SLOGDET or op.sweep == KIND_DET:
        return _system(arrays[0], arrays[1] if op.sweep == KIND_SOLVE else None)
    if op.sweep == KIND_FACTOR:
        return _factored(op, arrays, result, params)
    return None


def _written(x: np.ndarray, value: Any, there: Any) -> Layout:
    """The layout of a write of a value, or one number, into a part of an operand."""
    if type(there) is not np.ndarray or not index_layout.writes(x, value, there.size):
        return None
    place = place_of(x, there)
    return None if place < 0 else (0, place | np.size(value) << PLACE_BITS)


def _embedded(op: Op, x: np.ndarray, result: np.ndarray, params: dict[str, Any]) -> Layout:
    """The layout of an operand within a constant, which its row's `window` shows: a join of one."""
    if x.size > SMALL or result.size > SMALL or not result.flags.c_contiguous:
        return None
    key: Any = (op.name, x.shape, result.shape, *params.values())
    itemsize = x.itemsize
    if key in _layouts:
        return _layouts[key]
    assert op.window is not None
    there = op.window(result, **params)
    steps = tuple([s // itemsize for s in there.strides])
    start = (address(there) - address(result)) // itemsize if x.size else 0
    part = strides.add(x.size, start, x.shape, steps)
    place = strides.write([part])
    return _remember(key, None if min(place, part) < 0 else (0, place))


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


def _joined(op: Op, arrays: list[Any], result: np.ndarray, dim: int) -> Layout:
    """The layout of a concatenation: the strides of each part in the whole."""
    if result.size > SMALL or any(
        type(x) is not np.ndarray or x.dtype is not result.dtype for x in arrays
    ):
        return None
    key: Any = (op.name, dim, *[x.shape for x in arrays])
    if key in _layouts:
        return _layouts[key]
    steps = [s // 8 for s in np.empty(result.shape).strides]
    step = steps.pop(dim) if op is stack else steps[dim]
    places, start = [], 0
    for x in arrays:
        places.append(strides.add(x.size, start, x.shape, tuple(steps)))
        start += step if op is stack else step * x.shape[dim]
    place = strides.write(places)
    return _remember(key, None if min(place, *places) < 0 else (0, place))


def _remember(key: Any, found: Layout) -> Layout:
    if len(_layouts) > 4096:
        _layouts.clear()
    _layouts[key] = found
    return found


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


def _convolved(op: Op, arrays: list[Any], result: np.ndarray, params: dict[str, Any]) -> Layout:
    """The layout of a convolution of small images: where its adjoints are planned."""
    key: Any = (
        op.name,
        result.shape,
        result.dtype.char,
        *[a.shape for a in arrays],
        *params.values(),
    )
    if key in _layouts:
        return _layouts[key]
    from tapegrad.kernels.large import direct_convolution

    alike = all(a.dtype is result.dtype for a in arrays)
    aux = direct_convolution.adjoints(op, result, arrays, params["geometry"]) if alike else 0
    return _remember(key, (0, aux) if aux else None)


def _windowed(op: Op, x: np.ndarray, result: np.ndarray, windows: Any) -> Layout:
    """The layout of sums over windows of small volumes: where their adjoint is planned."""
    key: Any = (op, result.shape, result.dtype.char, windows)
    if key in _layouts:
        return _layouts[key]
    from tapegrad.kernels.large import volume_windows

    aux = volume_windows.adjoint(op, windows, x, result)
    return _remember(key, (0, aux) if aux else None)


def _system(a: np.ndarray, b: np.ndarray | None) -> Layout:
    """The layout of small systems of linear equations, or of determinants; one may be strided."""
    shape = a.shape
    n = shape[-1]
    if not 0 < n * n <= SYSTEM or a.size > SMALL or not a.size:
        return None
    if len(shape) > 2 and not a.flags.c_contiguous:
        return None
    several = a.size // (n * n) - 1 << 40
    if b is None:
        return 0, n | several
    cols = b.shape[-1]
    if b.shape[:-2] != shape[:-2] or not 0 < n * cols <= SYSTEM or b.size > SMALL:
        return None
    return 0, n | cols << 20 | several


def _factored(op: Op, arrays: list[Any], result: np.ndarray, params: dict[str, Any]) -> Layout:
    """The layout of a factorization of small matrices, or of triangular systems; see `_system`."""
    a = arrays[0]
    if not 0 < a.size <= SMALL or not result.size or not result.flags.c_contiguous:
        return None
    (rows, cols), flags = a.shape[-2:], 0
    if a.ndim > 2 and not a.flags.c_contiguous and op.saves[0][0]:
        return None
    if len(arrays) == 2:
        b = arrays[1]
        if b.shape[:-2] != a.shape[:-2] or b.size > SMALL:
            return None
        cols = b.shape[-1]
        flags = params["upper"] | params["unit"] << 1
    elif (rows < cols and op.name == "qr") or (rows != cols and op.name == "lu"):
        return None
    if max(rows, cols) >> FACTOR_SIDE or max(rows, cols) * rows > SYSTEM:
        return None
    count = a.size // (a.shape[-1] * rows)
    packed = rows << FACTOR_ROWS | cols << FACTOR_COLUMNS | flags << FACTOR_FLAGS
    return 0, packed | count << FACTOR_BATCH


def broadcast(shapes: Any, target: Shape) -> Layout:
    """How each operand is broadcast: as `classes` says it, or by its strides in the result."""
    found = classes(shapes, target)
    if found is not None or not 0 < prod(target) <= SMALL:
        return found
    key: Any = ("broadcast", target, *shapes)
    if key in _layouts:
        return _layouts[key]
    steps = [_steps(shape, target) for shape in shapes]
    axes = _merged(target, steps)
    bits, places = BROADCAST, []
    for shape, step, shift in zip(shapes, steps, CLASS_SHIFT, strict=False):
        along = tuple([step[d] for d in axes[1]])
        if not along[-1]:
            bits |= SCALAR << shift  # in each innermost row
        places.append(strides.add(prod(shape), 0, axes[0], along))
    place = strides.write(places)
    return _remember(key, None if min(place, *places) < 0 else (bits, place))


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
