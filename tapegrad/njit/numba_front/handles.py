"""Arguments of which Numba alone knows what is in them: their words are addresses.

An argument that is a dictionary, a text or a record is put into memory as Numba has it, with a
reference of its own, for as long as a program runs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import registry
from numba.extending import intrinsic

from tapegrad.kernels.flags import from_python
from tapegrad.njit.numba_front.objects import NumbaType, types

_intrinsic: Any = intrinsic


@_intrinsic
def put(typing_context: Any, x: NumbaType, at: NumbaType) -> Any:
    """Store a value at an address, with a reference of its own; returns its word."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, at = args
        t = signature.args[0]
        if isinstance(t, types.Record):  # its memory is the argument's
            return builder.ptrtoint(value, at.type)
        context.nrt.incref(builder, t, value)
        builder.store(value, builder.inttoptr(at, value.type.as_pointer()))
        return at

    return types.int64(x, types.int64), codegen


@_intrinsic
def drop(typing_context: Any, x: NumbaType, at: NumbaType) -> Any:
    """Give back the reference of what was put at an address; `x` is of its type."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, at = args
        if not isinstance(signature.args[0], types.Record):
            kept = builder.load(builder.inttoptr(at, value.type.as_pointer()))
            context.nrt.decref(builder, signature.args[0], kept)
        return context.get_dummy_value()

    return types.none(x, types.int64), codegen


@from_python
def _put(x, at):  # type: ignore[no-untyped-def]
    return put(x, at)


@from_python
def _drop(x, at):  # type: ignore[no-untyped-def]
    drop(x, at)


@lru_cache(maxsize=1024)
def size_of(t: NumbaType) -> int:
    """How many bytes a value takes."""
    context: Any = registry.cpu_target.target_context
    return int(context.get_abi_sizeof(context.get_value_type(t)))


class Handle:
    """An argument in memory, and its word."""

    def __init__(self, x: Any, t: NumbaType) -> None:
        self.x = x
        self.memory = np.zeros(size_of(t) // 8 + 1, np.int64)
        self.word: int = _put(x, self.memory.ctypes.data)

    def __del__(self) -> None:
        if hasattr(self, "word"):
            _drop(self.x, self.memory.ctypes.data)
