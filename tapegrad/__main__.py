"""``python -m tapegrad``: what is installed and whether it works; ``compile``: compile it ahead.

The code goes to the disk cache: once per machine, for all programs.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from importlib import import_module
from typing import Any

from tapegrad.diagnostics import self_check
from tapegrad.diagnostics.environment import environment
from tapegrad.kernels import build, compile_ahead, disk_cache
from tapegrad.kernels.codegen import kernel_table
from tapegrad.native import bindings, install
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.families import by_code
from tapegrad.parallel.thread_pool import processors

MOST = 4  # processes that compile: each takes some 400 MB
USAGE = """usage: python -m tapegrad [check | compile]

Without an argument: print versions, processor, kernel cache and threads, and compare derivatives
with known values, for ten seconds at most.  `check` does the second alone, without a limit.

`compile` compiles for this machine what gradients, operations on small arrays and operations along
dimensions are computed with, and what the programs of `tapegrad.jit` call, into the folder of
TAPEGRAD_CACHE_DIR (or the user's cache).  Later, only what is rare is compiled, and programs."""


def everything() -> Iterator[tuple[str, Callable[[], object]]]:
    """What most programs need, each under a name: first what takes longest."""
    import_module("tapegrad.nn.functional")  # whose operations are loaded when they are asked for
    yield "the sweep", kernel_table.compiled_sweep
    yield "operations on arrays", install.install
    for op in by_code:
        if op.axis or op.name in ("clone", "sum", "mean"):
            yield op.name, partial(kernel_table.small_axis_loop, op, compiling=True)
    for op in by_code:
        for dtype in ("f8", "f4") if bindings.by_kernel(op) else ():
            for scalars in NUMBERS[len(op.inputs)]:
                yield op.name, partial(kernel_table.forward, op, dtype, scalars)
    for op in by_code:
        for k in range(len(op.formulas)):
            for scalars in patterns(op, k):
                yield (
                    f"the gradient of {op.name}",
                    partial(kernel_table.adjoint, op, k, "f8", scalars),
                )
    yield from called_by_programs()


def called_by_programs() -> Iterator[tuple[str, Callable[[], object]]]:
    """What the programs of `jit` share: their ways in, and loops over one operation."""
    # The other commands, of which one compiles while a program waits, need nothing of the compiler.
    import numpy as np

    from tapegrad.compiler.codegen import (
        gemm_fallback,
        math_runtime,
        vector_blocks,
        vector_interpreter,
    )
    from tapegrad.compiler.front import fastcall_stub
    from tapegrad.compiler.front.jit import jit
    from tapegrad.compiler.ir.loop_nest import ADD, MAX, MIN, PROD, SUM
    from tapegrad.compiler.lower.lower import LONG, STACK

    yield "programs", fastcall_stub.address
    yield "programs", vector_interpreter.address
    for name in sorted(math_runtime.NAMES):
        yield f"{name} in programs", partial(math_runtime.address, math_runtime.symbol(name))
    for what in "total", "exact":
        yield (
            "products of matrices",
            partial(gemm_fallback.address, f"{gemm_fallback.PREFIX}{what}.f64"),
        )
    double = np.dtype("f8")

    def block(make: Callable[..., vector_blocks.Block], *args: Any) -> None:
        vector_blocks.load([make(*args)])

    def interpreted(elements: int) -> None:
        """The module of programs that are interpreted first, by whether the stack holds them."""

        def f(x: Any) -> Any:
            for _ in range(LONG):
                x = x * np.sum(x)
            return x

        jit(f)(np.ones(elements))

    yield "programs", partial(interpreted, 8)
    yield "programs", partial(interpreted, STACK)
    yield "programs", partial(block, vector_blocks.copied, double)
    yield "programs", partial(block, vector_blocks.filled, double)
    for mode in (ADD, SUM, PROD, MAX, MIN):
        yield "programs", partial(block, vector_blocks.reduced, mode, double)
    for op in by_code:
        count = len(op.inputs)
        if op.kind is ELEMENTWISE and op.formulas and op.scalar and count <= vector_blocks.MOST:
            with np.errstate(all="ignore"):  # 1 is not in the domain of all
                result = op.forward(*[np.ones(1)] * count).dtype  # of comparisons bool
            loop = partial(block, vector_blocks.operation, op.name, (double,) * count, result)
            yield f"{op.name} in programs", loop


# Which operands are numbers, as bits, by how many there are: none, or the last ones.
NUMBERS = (), (0,), (0, 2), (0, 4, 6)


def patterns(op: Op, k: int) -> list[int]:
    """Which operands are numbers, as bits: none, or the other one."""
    return [0, 1 << (1 - k)] if op.kind is ELEMENTWISE and len(op.inputs) == 2 else [0]


def compile_all() -> int:
    """Compile on all processors, with a line that says how far that is."""
    # It is waited for, and each process would say so.
    os.environ["TAPEGRAD_BACKGROUND"], os.environ["TAPEGRAD_QUIET"] = "0", "1"
    where = disk_cache.folder()
    if where is None:
        print("tapegrad: nothing is kept on disk (TAPEGRAD_CACHE=0)", file=sys.stderr)
        return 1
    started, tasks = time.perf_counter(), _tasks()
    shown = sys.stderr.isatty()
    for done, number in enumerate(compiled(range(len(tasks)), min(processors(), MOST))):
        if shown:
            name = tasks[number][0]
            print(f"\r\x1b[K[{done + 1}/{len(tasks)}] {name}", end="", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - started
    before = "\r\x1b[K" if shown else ""
    print(f"{before}tapegrad: compiled into {where} in {seconds:.0f} s", file=sys.stderr)
    return 0


@cache
def _tasks() -> list[tuple[str, Callable[[], object]]]:
    return list(everything())


def compiled(numbers: Sequence[int], processes: int) -> Iterator[int]:
    """Compile what has these numbers in `everything`; yields each when that is done."""
    if processes == 1:
        for number in numbers:
            yield _compile(number)
        return
    context = multiprocessing.get_context("spawn")  # a fork would take half of the threads over
    with ProcessPoolExecutor(processes, context) as pool:
        for future in as_completed([pool.submit(_compile, number) for number in numbers]):
            yield future.result()


def _compile(number: int) -> int:
    _tasks()[number][1]()
    return number


def compile_requested() -> int:
    """Compile what another process asked for."""
    requests, modules, number = compile_ahead.read_requests()
    gc.disable()  # a tenth of the time; the process ends soon
    with compile_ahead.alone(number):
        for text, level, ready in modules:
            build.assembled(text, level, ready)
        for name, source, arity in requests:
            kernel_table.load(name, source, arity)
        install.install(compiling=False)  # its ways in are compiled, too
    return 0


def main(arguments: list[str]) -> int:
    """Do what the command line says."""
    match arguments:
        case []:
            print(*environment(), sep="\n", flush=True)
            return self_check.check_in_time()
        case ["check"]:
            return self_check.check()
        case ["compile"]:
            return compile_all()
        case ["compile", "--asked"]:
            return compile_requested()
        case ["-h" | "--help"]:
            print(USAGE)
            return 0
    print(f"tapegrad: there is no command {' '.join(arguments)!r}\n{USAGE}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
