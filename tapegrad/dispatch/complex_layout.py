"""Encode the layout of records about complex numbers for the compiled sweep."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tapegrad.dispatch.operand_layout import (
    Layout,
    broadcast,
    classes,
    joined,
    matrix_layout,
    place_of,
    summed,
    view_place,
)
from tapegrad.kernels.sweep.sweep_abi import (
    KIND_FOURIER,
    KIND_MATMUL,
    KIND_MEAN,
    KIND_SUM,
    KIND_VIEW,
    SMALL,
)
from tapegrad.ops.complex_parts import complex_, conj
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.shape import PASSES, STRIDED
from tapegrad.tape.record_format import INPUTS_SHIFT
from tapegrad.tape.shape_table import Shape

F8, F4, C16, C8 = map(np.dtype, ("f8", "f4", "c16", "c8"))
KINDS = {F8: (F8, C16), C16: (F8, C16), F4: (F4, C8), C8: (F4, C8)}  # that occur together
MOST = SMALL >> 1  # elements: of complex numbers twice as many bytes
WORK = 4096  # multiplications up to which products of matrices are done by loops


def complex_layout(op: Op, arrays: list[Any], result: np.ndarray, params: dict[str, Any]) -> Layout:
    """The bits and the AUX field of a record that the compiled sweep understands, or None."""
    kinds = KINDS.get(result.dtype)
    if kinds is None or (len(arrays) > 3 and op.kind is ELEMENTWISE):
        return None
    bits = 0
    for k, x in enumerate(arrays):
        if type(x) is not np.ndarray or x.size > MOST:
            return None
        if x.dtype not in kinds:
            if k or op.inputs[0] != "condition" or x.dtype.char != "?":
                return None
        elif x.dtype.kind == "c" and k < 3:
            bits |= 1 << INPUTS_SHIFT + k
    if result.size > MOST:
        return None
    found = _layout(op, arrays, result, params)
    return None if found is None else (bits | found[0], found[1])


def _layout(op: Op, arrays: list[Any], result: np.ndarray, params: dict[str, Any]) -> Layout:
    first = arrays[0]
    if op.kind is ELEMENTWISE or op is conj or op is complex_:
        return broadcast([x.shape for x in arrays], result.shape)
    if op.moves == "parts":
        return (0, 0) if first.flags.c_contiguous or result.dtype.kind == "f" else None
    if op.moves in PASSES:
        return classes((first.shape,), result.shape)
    if op.sweep in (KIND_SUM, KIND_MEAN):
        return summed(first, params["dim"])
    if op.moves in STRIDED or (op.sweep == KIND_VIEW and op.window is not None):
        if op.view or op.window is None:
            place = view_place(op, first, result, params)
        else:
            window = op.window(first, **params)
            known = type(window) is np.ndarray and window.dtype is first.dtype
            place = place_of(first, window) if known else -1
        return None if place < 0 else (0, place)
    if op.moves == "concat":
        return joined(op, arrays, result, params["dim"])
    if op.sweep == KIND_FOURIER:
        from tapegrad.dispatch import fourier_adjoint_plans  # which loads the transforms

        planned = fourier_adjoint_plans.adjoint(op, first, result, params)
        return (0, planned) if planned else None
    if op.sweep == KIND_MATMUL and first.dtype is arrays[1].dtype:
        return _product(first.shape, arrays[1].shape)
    return None


def _product(a: Shape, b: Shape) -> Layout:
    """The layout of products of few small matrices or vectors."""
    work = prod(a) * (b[-1] if len(b) > 1 else 1)
    if len(b) > 2 and len(a) <= 2:
        work *= prod(b[:-2])
    return matrix_layout(a, b) if work <= WORK else None


def complex_matrices(a: Shape, b: Shape) -> Layout:
    """The bits and the AUX field of a product of complex matrices or vectors of these shapes."""
    found = _product(a, b)
    return None if found is None else (found[0] | 3 << INPUTS_SHIFT, found[1])
