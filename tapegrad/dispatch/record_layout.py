"""Encode the layout of a record's operands in its word and AUX, for the compiled sweep.

`layout_of` does so for an operation that the compiled sweep supports; for others it returns None,
and their records are left to their rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dispatch.complex_layout import complex_layout
from tapegrad.dispatch.operand_layout import (
    Layout,
    address,
    broadcast,
    classes,
    joined,
    known,
    matrix_layout,
    place_of,
    remember,
    summed,
    view_place,
)
from tapegrad.kernels.sweep.sweep_abi import (
    FACTOR_BATCH,
    FACTOR_COLUMNS,
    FACTOR_FLAGS,
    FACTOR_ROWS,
    FACTOR_SIDE,
    KIND_ASSIGN,
    KIND_CAST,
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
    PLACE_BITS,
    SMALL,
    SYSTEM,
)
from tapegrad.ops import axis_layout, index_layout
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.shape import PASSES, STRIDED
from tapegrad.tape.shape_table import strides
from tapegrad.tensor import F4, F8


def layout_of(op: Op, arrays: list[Any], result: np.ndarray, params: dict[str, Any]) -> Layout:
    """The bits and the AUX field of a record that the compiled sweep understands, or None."""
    kind = result.dtype
    if kind.kind == "c" or (type(arrays[0]) is np.ndarray and arrays[0].dtype.kind == "c"):
        return complex_layout(op, arrays, result, params)
    if kind is not F8 and kind is not F4:
        return None
    if op.kind is ELEMENTWISE:
        if len(arrays) > 3:
            return None
        key: Any = (result.shape, *[x.shape for x in arrays])
        if key in known:
            return known[key]
        return remember(key, broadcast(key[1:], key[0]))
    if op.moves in PASSES:
        return classes((arrays[0].shape,), result.shape)
    if op.sweep == KIND_SUM or op.sweep == KIND_MEAN:
        return summed(arrays[0], params["dim"])
    if op.moves in STRIDED:
        place = view_place(op, arrays[0], result, params)
        return None if place < 0 else (0, place)
    if op.moves == "concat":
        return joined(op, arrays, result, params["dim"])
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
    if op.sweep == KIND_CAST:
        small = result.size <= SMALL and arrays[0].dtype is not kind
        return (0, 0) if small and arrays[0].dtype in (F8, F4) else None
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
    if key in known:
        return known[key]
    assert op.window is not None
    there = op.window(result, **params)
    steps = tuple([s // itemsize for s in there.strides])
    start = (address(there) - address(result)) // itemsize if x.size else 0
    part = strides.add(x.size, start, x.shape, steps)
    place = strides.write([part])
    return remember(key, None if min(place, part) < 0 else (0, place))


def _convolved(op: Op, arrays: list[Any], result: np.ndarray, params: dict[str, Any]) -> Layout:
    """The layout of a convolution of small images: where its adjoints are planned."""
    key: Any = (
        op.name,
        result.shape,
        result.dtype.char,
        *[a.shape for a in arrays],
        *params.values(),
    )
    if key in known:
        return known[key]
    from tapegrad.kernels.large import direct_convolution

    alike = all(a.dtype is result.dtype for a in arrays)
    aux = direct_convolution.adjoints(op, result, arrays, params["geometry"]) if alike else 0
    return remember(key, (0, aux) if aux else None)


def _windowed(op: Op, x: np.ndarray, result: np.ndarray, windows: Any) -> Layout:
    """The layout of sums over windows of small volumes: where their adjoint is planned."""
    key: Any = (op, result.shape, result.dtype.char, windows)
    if key in known:
        return known[key]
    from tapegrad.kernels.large import volume_windows

    aux = volume_windows.adjoint(op, windows, x, result)
    return remember(key, (0, aux) if aux else None)


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
