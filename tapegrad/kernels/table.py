"""The kernels that are loaded, by operation; each is compiled or read from disk when first wanted."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from tapegrad.kernels import build, symbols
from tapegrad.kernels.layout import KIND_MATMUL, KIND_MEAN, KIND_SUM
from tapegrad.ops.core import ELEMENTWISE, Op, by_code, table

# addresses[((code * 2 + narrow) * 3 + operand) * 8 + scalars]; 0: not loaded.
addresses = np.zeros(len(by_code) * 48, np.int64)
PASSES = ("clone", "contiguous", "reshape", "squeeze", "unsqueeze", "expand", "alias")
_DTYPES = ("f8", "f4")


def _kinds() -> np.ndarray:
    kinds = np.ones(len(by_code), np.int64)
    for op in by_code:
        if op.kind == ELEMENTWISE:
            kinds[op.code] = len(op.inputs)
    kinds[table["sum"].code] = KIND_SUM
    kinds[table["mean"].code] = KIND_MEAN
    kinds[table["matmul"].code] = KIND_MATMUL
    return kinds


kinds = _kinds()


def fill(at: int) -> bool:
    """Load the kernel of one place in `addresses`; False when the operation has none."""
    scalars, rest = at & 7, at >> 3
    operand, rest = rest % 3, rest // 3
    op = by_code[rest // 2]
    address = adjoint(op, operand, _DTYPES[rest & 1], scalars)
    addresses[at] = address
    return bool(address)


@cache
def adjoint(op: Op, operand: int, dtype: str, scalars: int) -> int:
    """The address of an adjoint kernel, or 0."""
    if op.name in PASSES:
        return adjoint(table["add"], 0, dtype, scalars)
    if not symbols.has_kernel(op, operand):
        return 0
    return build.load("kernel", symbols.adjoint_source(op, operand, dtype, scalars), 8)


@cache
def forward(op: Op, dtype: str, scalars: int) -> Any:
    """A forward kernel as a ctypes function that runs without the GIL, or None."""
    if not symbols.computable(symbols.result(op)):
        return None
    address = build.load("kernel", symbols.forward_source(op, dtype, scalars), 5)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(address)


@cache
def callable_adjoint(op: Op, operand: int, dtype: str, scalars: int) -> Any:
    """An adjoint kernel as a ctypes function that runs without the GIL, or None."""
    address = adjoint(op, operand, dtype, scalars)
    if not address:
        return None
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 8)(address)


@cache
def walk() -> Any:
    """The compiled walk: a function of the address of a frame."""
    from pathlib import Path

    source = (Path(__file__).parent / "walk.py").read_text()
    address = build.load("walk", source, 1)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)
