"""Link LLVM text into a callable program; callbacks into Python from machine code."""

from __future__ import annotations

import ctypes
import itertools
import re
import threading
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tapegrad.compiler.codegen import gemm_fallback, kernel_calls, math_runtime, vector_interpreter
from tapegrad.compiler.codegen.threading import Shared, attempt
from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.llvm import elementary, function_builder, scipy_calls
from tapegrad.compiler.lower.first_tier import COUNTERS, ENTRY, NOW, PAYS, Counts
from tapegrad.compiler.lower.lower import GIVE_ALIGNED, TAKE_ALIGNED, Lowered
from tapegrad.compiler.schedule.speculative_products import ExactNest
from tapegrad.compiler.schedule.step_ir import Call, RoutineCall
from tapegrad.kernels import blas, build
from tapegrad.parallel import large_elementwise
from tapegrad.tape.shape_table import Shape

_numbers = itertools.count(1)
_calls: dict[int, list[Call | ExactNest | RoutineCall]] = {}
_shared: dict[int, list[Shared]] = {}
_compilers: dict[int, Callable[[bool], None]] = {}  # of first tiers
_raised = threading.local()
GUARD, ERROR = 1 << 40, -1

CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
)


def _computed(program: int, number: int, table: int, out: int) -> int:
    """Compute one operation by its NumPy forward, or rerun an exact nest."""
    try:
        if number in (PAYS, NOW):
            _compilers[program](number == NOW)
            return 0
        step = _calls[program][number]
        if isinstance(step, ExactNest):
            inputs, outputs = (ctypes.c_size_t * 2).from_address(table)
            step.run(inputs, outputs, out)
            return 0
        pointers = (ctypes.c_void_p * len(step.args)).from_address(table)
        args = [_seen(p, place) for p, place in zip(pointers, step.args, strict=True)]
        assert step.node.op is not None
        found = step.node.op.forward(*args, **step.node.params)
        target = _seen(out, step.out)
        if np.shape(found) != target.shape:
            return GUARD  # a shape that depends on values: this trace does not fit
        target[...] = found
    except BaseException as error:  # carried through machine code, see `failure`
        _raised.error = error
        return ERROR
    return 0


def _divided(program: int, number: int, function: int, table: int) -> int:
    """Run the parts of a nest on several threads, see `attempt`."""
    return attempt(_shared[program][number], function, table)


_callback, _share = CALLBACK(_computed), CALLBACK(_divided)


def _seen(address: int | None, place: Place) -> np.ndarray:
    """The array at an address."""
    dtype = place.buffer.dtype
    memory, low, strides = _window(place.shape, place.strides, dtype)
    if memory is None or address is None:
        return np.empty(place.shape, dtype)
    return np.ndarray(place.shape, dtype, memory.from_address(address + low), -low, strides)


@lru_cache(1 << 12)
def _window(shape: Shape, strides: Shape, dtype: np.dtype[Any]) -> tuple[Any, int, Shape]:
    """The memory that an array spans, if there is any, where it begins, and strides in bytes."""
    steps = tuple([s * dtype.itemsize for s in strides])
    if 0 in shape:
        return None, 0, steps
    low = sum(min(0, s * (n - 1)) for s, n in zip(steps, shape, strict=True))
    high = sum(max(0, s * (n - 1)) for s, n in zip(steps, shape, strict=True))
    return ctypes.c_char * (high - low + dtype.itemsize), low, steps


def failure() -> BaseException:
    """The exception that a callback into Python raised."""
    error: BaseException | None = getattr(_raised, "error", None)
    _raised.error = None
    return error or MemoryError("a compiled program found no memory for what lies between")


class Linked:
    """Machine code in memory, and the references that it needs."""

    __slots__ = ("__weakref__", "address", "compiled", "constants", "engine", "number")

    def __init__(self, lowered: Lowered) -> None:
        _offer_symbols()
        scipy_calls.offer(lowered.text, lowered.ready)
        for name, prefix in set(_COMMON.findall(lowered.text + lowered.ready)):
            _offer(name, prefix)
        self.engine = build.assembled(lowered.text, lowered.level, lowered.ready)
        engine = self.engine[0]
        self.address = int(engine.get_function_address(ENTRY))
        self.number = next(_numbers)
        self.compiled: Linked | None = None  # what a first tier calls from some time on
        self.constants = lowered.constants
        _calls[self.number], _shared[self.number] = lowered.calls, lowered.shared
        table = (ctypes.c_void_p * max(len(self.constants), 1))()
        for k, value in enumerate(self.constants):
            table[k] = value.ctypes.data
        self.constants = [*self.constants, table]  # type: ignore[list-item]
        self.set("tapegrad_number", self.number)
        ctypes.c_void_p.from_address(
            engine.get_global_value_address("tapegrad_constants")
        ).value = ctypes.addressof(table) + ctypes.sizeof(ctypes.c_void_p) * lowered.ahead

        if lowered.interpreted:
            self.set("tapegrad_scratch", lowered.scratch)

    def set(self, name: str, value: int) -> None:
        """Give a variable of the module a value."""
        place = self.engine[0].get_global_value_address(name)
        ctypes.c_int64.from_address(place).value = value

    def count(self, counts: Counts, compiler: Callable[[bool], None]) -> None:
        """Have a first tier compiled when that pays; the compiler is told whether a call waits."""
        _compilers[self.number] = compiler
        for name, value in zip(COUNTERS, counts, strict=False):
            self.set(f"tapegrad_{name}", value)

    def pass_on(self, better: Linked) -> None:
        """Have a first tier pass its calls on."""
        self.compiled = better
        self.set("tapegrad_compiled", better.address)

    def __del__(self) -> None:
        for table in (_calls, _shared, _compilers):
            table.pop(getattr(self, "number", -1), None)


# What all programs share, by how its symbol begins: it is compiled, or imported, on first use.
_ADDRESSES: dict[str, Callable[[str], int]] = {
    function_builder.PREFIX: lambda name: blas.routine(name.removeprefix(function_builder.PREFIX)),
    elementary.OUTLINED: elementary.address,
    math_runtime.PREFIX: math_runtime.address,
    gemm_fallback.PREFIX: gemm_fallback.address,
    kernel_calls.PREFIX: kernel_calls.address,
    vector_interpreter.SYMBOL: lambda _: vector_interpreter.address(),
}
_COMMON = re.compile(rf"@(({'|'.join(map(re.escape, _ADDRESSES))})[a-z0-9_.]*)")


@cache
def _offer(name: str, prefix: str) -> None:
    """Define a symbol that all programs share."""
    build.binding().add_symbol(name, _ADDRESSES[prefix](name))


_offered = False


def _offer_symbols() -> None:
    """Define the symbols of callbacks into Python and of the C library."""
    global _offered
    if _offered:
        return
    llvm = build.binding()

    llvm.add_symbol("tapegrad_callback", ctypes.cast(_callback, ctypes.c_void_p).value)
    llvm.add_symbol("tapegrad_share", ctypes.cast(_share, ctypes.c_void_p).value)
    llvm.add_symbol("tapegrad_threads", ctypes.addressof(large_elementwise.in_memory))
    interpreter = "PyErr_SetInterrupt", "PyGILState_GetThisThreadState"
    needed = dict.fromkeys(interpreter, ctypes.pythonapi)
    needed |= dict.fromkeys((TAKE_ALIGNED, GIVE_ALIGNED, "free", "realloc"), build.c_library())
    for name, library in needed.items():
        llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    _offered = True
