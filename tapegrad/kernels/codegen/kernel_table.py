"""The kernels loaded so far, by operation; each is compiled or read from disk on first use.

What is not compiled yet raises `NotCompiled` where another process can compile it: the caller
does without until then.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.kernels import build
from tapegrad.kernels.codegen import axis_codegen, rule_codegen
from tapegrad.kernels.sweep.sweep_abi import (
    CAPACITY,
    KIND_AXIS,
    KIND_CAST,
    KIND_CONVOLUTION,
    KIND_DET,
    KIND_FACTOR,
    KIND_FOURIER,
    KIND_JOIN,
    KIND_PARTS,
    KIND_PICK,
    KIND_SLOGDET,
    KIND_SOLVE,
    KIND_SUM,
    KIND_TRIANGLE,
    KIND_VIEW,
    KIND_WINDOWS,
    REAL,
)
from tapegrad.ops.core import ELEMENTWISE, Op, by_code
from tapegrad.ops.elementwise import add
from tapegrad.ops.shape import PASSES, STRIDED

# addresses[mixed * REAL + ((code * 2 + narrow) * 3 + operand) * 8 + scalars]; 0: not loaded.
# The memory of what nobody asks for, which is most, is never touched.
ARGUMENTS = 8
addresses = np.zeros(16 * REAL, np.int64)
_DTYPES = ("f8", "f4")
# The names of loops that are written as LLVM text, not as Numba source.
ELEMENTS, OF_COMPLEX = "elements", "complex elements"


kinds = np.ones(CAPACITY, np.int64)
_MOVES = {"concat": KIND_JOIN, "parts": KIND_PARTS, **dict.fromkeys(STRIDED, KIND_VIEW)}
known: np.ndarray = np.zeros(1, np.int64)  # the number of operations of which the sweep knows


def learn() -> None:
    """Tell the sweep of what kind each operation is; rows may have come since the last time."""
    count = len(by_code)  # another thread may load more
    if known[0] == count:
        return
    if count > CAPACITY:
        raise RuntimeError(f"the table of operations is full: it holds {CAPACITY}")
    for op in by_code[int(known[0]) : count]:
        # The sweep leaves records of four operands to Python, and has other kinds from 4 on.
        operands = len(op.inputs) if op.kind == ELEMENTWISE and len(op.inputs) < 4 else 1
        kind = KIND_AXIS if op.axis else _MOVES.get(op.moves, operands)
        kinds[op.code] = op.sweep or kind
    known[0] = count


def fill(at: int) -> bool:
    """Load the kernel of one place in `addresses`; False when there is none, or none yet."""
    mixed, place = divmod(at, REAL)
    scalars, rest = place & 7, place >> 3
    operand, rest = rest % 3, rest // 3
    op, dtype = by_code[rest // 2], _DTYPES[rest & 1]
    try:
        if mixed:
            address = complex_adjoint(op, operand, dtype, scalars, mixed)
        else:
            address = adjoint(op, operand, dtype, scalars)
    except NotCompiled:
        return False
    addresses[at] = address
    return bool(address)


def load(name: str, source: str, arity: int) -> int:
    """The address of a function that another process has asked for; see `build.load`."""
    return build.load(name, source, arity, _WRITERS.get(name))


def _written(source: str, name: str) -> str:
    from tapegrad.kernels.codegen import loop_text  # which loads all that writes LLVM text

    return loop_text.text(source, name)


def _written_in_parts(source: str, name: str) -> str:
    from tapegrad.kernels.codegen import complex_loop_text

    return complex_loop_text.text(source, name)


_WRITERS = {ELEMENTS: _written, OF_COMPLEX: _written_in_parts}


# By the kind of a record that no generated kernel serves: the function and the module in `sweep`.
_SWEEP_MODULES = {
    **dict.fromkeys(range(KIND_PICK, KIND_TRIANGLE + 1), ("placed", "index_adjoints")),
    KIND_SOLVE: ("system", "solve_adjoints"),
    KIND_SLOGDET: ("system", "solve_adjoints"),
    KIND_DET: ("system", "solve_adjoints"),
    KIND_CONVOLUTION: ("convolved", "convolution_adjoints"),
    KIND_WINDOWS: ("windowed", "window_adjoints"),
    KIND_FOURIER: ("transformed", "fourier_adjoints"),
    KIND_CAST: ("cast_back", "cast_adjoints"),
}


@cache
def _load(name: str, module: str) -> int:
    return build.load_or_ask(name, _source(f"sweep/{module}"), ARGUMENTS)


@cache
def adjoint(op: Op, operand: int, dtype: str, scalars: int) -> int:
    """The address of an adjoint kernel, or 0."""
    if op.moves in PASSES:
        return adjoint(add, 0, dtype, scalars)
    if op.axis:
        return build.load_or_ask(*_small_axis_source(op, True), ARGUMENTS)
    if op.sweep == KIND_FACTOR:
        return _load(f"{op.name}_adjoint", "factor_adjoints")
    if op.sweep in _SWEEP_MODULES:
        return _load(*_SWEEP_MODULES[op.sweep])
    if not rule_codegen.has_kernel(op, operand):
        return 0
    source = rule_codegen.adjoint_source(op, operand, dtype, scalars)
    if rule_codegen.calls_scipy(op, operand):
        from tapegrad.compiler.llvm import scipy_calls

        scipy_calls.offer(scipy_calls.PREFIX)  # what the code is linked to
    return build.load_or_ask(ELEMENTS, source, ARGUMENTS, _written)


@cache
def complex_adjoint(op: Op, operand: int, dtype: str, scalars: int, mixed: int) -> int:
    """The address of an adjoint kernel of an operation on complex numbers; see `complex_rules`."""
    if op.moves in PASSES:
        op, operand = add, 0
    elif op.sweep in _SWEEP_MODULES:
        return _load(*_SWEEP_MODULES[op.sweep])
    elif kinds[op.code] >= KIND_SUM:
        return _load("moved", "complex_adjoints")
    from tapegrad.kernels.codegen import complex_rules

    if not complex_rules.has_kernels(op, mixed):
        return 0
    source = complex_rules.source(op, operand, dtype, scalars, mixed)
    return build.load_or_ask(OF_COMPLEX, source, ARGUMENTS, _written_in_parts)


_function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * ARGUMENTS)


class Kernel(NamedTuple):
    """A function of integers: its address, and a callable that runs without the GIL."""

    address: int
    call: Callable[..., int]


@cache
def forward(op: Op, dtype: str, scalars: int) -> Kernel | None:
    """The loop that computes an elementwise operation, if it has one."""
    if not rule_codegen.computable(rule_codegen.result(op)):
        return None
    source = rule_codegen.forward_source(op, dtype, scalars)
    return _launchable(ELEMENTS, source, _written)


def from_source(source: str) -> Kernel:
    """The loop that a generated source defines."""
    return _launchable("kernel", source)


def _launchable(name: str, source: str, write: build.Write | None = None) -> Kernel:
    """A loop, and before it what calls it for each row: a loop for want of that is not loaded.

    It would be loaded again at the next try, and code that was loaded is there for good.
    """
    drive("rows", 1)
    address = build.load_or_ask(name, source, ARGUMENTS, write)
    return Kernel(address, _function(address))


def is_compiled(op: Op, dtype: str, scalars: int, *, asking: bool) -> bool:
    """Whether `forward` would find its loop on disk; see `build.is_compiled`."""
    source = rule_codegen.forward_source(op, dtype, scalars)
    return build.is_compiled(ELEMENTS, source, ARGUMENTS, asking=asking)


@cache
def pullback(op: Op, operand: int, dtype: str, scalars: int) -> Kernel | None:
    """The loop that hands an adjoint on to one operand of an operation, if it has one."""
    address = adjoint(op, operand, dtype, scalars)
    if not address:
        return None
    drive("rows", 1)
    return Kernel(address, _function(address))


@cache
def _small_axis_source(op: Op, adjoint: bool) -> tuple[str, str]:
    """The name and the source of the loop of an operation along a dimension, or of its adjoint."""
    name = f"{op.name}_adjoint" if adjoint else op.name
    if name in axis_codegen.BY_HAND:
        return name, _source("scan_loops")
    return "kernel", axis_codegen.source(op, adjoint)


@cache
def _load_small_axis_loop(op: Op) -> int:
    return build.load(*_small_axis_source(op, False), ARGUMENTS)


def small_axis_loop(op: Op, *, compiling: bool = False, asking: bool = False) -> int:
    """The address of the loop of an axis operation on small arrays; 0: not compiled yet.

    With `compiling` it is compiled at once, with `asking` in the background.
    """
    if compiling or build.is_compiled(*_small_axis_source(op, False), ARGUMENTS, asking=asking):
        return _load_small_axis_loop(op)
    return 0


_F8_TO_F4 = (
    ("_f8 as", "_f4 as"), ("f8 as pointer", "f4 as pointer"), ("float64 as T", "float32 as T"),
    ("SIZE = 8", "SIZE = 4"),
)  # fmt: skip


@cache
def loop(
    name: str, dtype: str = "f8", source: str = "large/axis_kernels", *, waiting: bool = False
) -> Kernel:
    """A loop of a module of `kernels`, as it is written in float64 or for float32.

    With `waiting`, for who cannot do without, it is compiled at once.
    """
    text = _source(source)
    if dtype == "f4":
        for f8, f4 in _F8_TO_F4:
            text = text.replace(f8, f4)
    if waiting:
        address = build.load(name, text, ARGUMENTS)
        return Kernel(address, _function(address))
    return _launchable(name, text)


@cache
def large_axis_loop(
    op: Op, adjoint: bool, layout: axis_codegen.Layout, dtype: str, only: int | None = None
) -> Kernel:
    """The loop of an operation along dimensions of large arrays, or of its adjoint, or one pass."""
    return from_source(axis_codegen.source(op, adjoint, layout, dtype, only))


@cache
def drive(name: str, arity: int) -> Callable[..., int]:
    """A function of `kernels.row_launcher`, which calls kernels; it runs without the GIL."""
    address = build.load_or_ask(name, _source("row_launcher"), arity)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * arity)(address)


@cache
def _source(name: str) -> str:
    return (Path(build.__file__).parent / f"{name}.py").read_text()


@cache
def compiled_sweep() -> Kernel:
    """The compiled sweep, a function of the address of a frame."""
    address = build.load_or_ask("compiled_sweep", _source("sweep/compiled_sweep"), 1)
    return Kernel(address, ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address))
