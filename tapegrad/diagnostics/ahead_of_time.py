"""What is compiled ahead of time, and by several processes.

It is not in ``__main__``, which processes that are spawned cannot import from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

from tapegrad.kernels.codegen import complex_rules, kernel_table
from tapegrad.native import bindings, install
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.families import by_code, table


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
    yield from of_complex_numbers()
    for kind in "df":
        yield "Fourier transforms", partial(_loops_in_vectors, "fourier_transforms", kind)
        yield "small systems of equations", partial(_loops_in_vectors, "small_systems", kind)
    yield from called_by_programs()


def of_complex_numbers() -> Iterator[tuple[str, Callable[[], object]]]:
    """Gradients of sums, views and products, and of operations of one operand or two."""
    kernel_table.learn()
    compile_one = kernel_table.complex_adjoint
    yield "sums of complex numbers", partial(compile_one, table["sum"], 0, "f8", 0, 3)
    for op in by_code:
        usual = len(op.inputs) < 3 and op.name not in ("strong", "exact")
        for mixed in complex_rules.mixtures(op) if usual else ():
            for k in range(len(op.inputs)):
                for scalars in patterns(op, k):
                    work = partial(compile_one, op, k, "f8", scalars, mixed)
                    yield f"the gradient of {op.name} of complex numbers", work


def _loops_in_vectors(module: str, kind: str) -> None:
    """The loops of a module of `kernels.large`, of one precision."""
    import numpy as np

    import_module(f"tapegrad.kernels.large.{module}").compile_ahead(np.dtype(kind))


def called_by_programs() -> Iterator[tuple[str, Callable[[], object]]]:
    """What the programs of `jit` share: their ways in, and loops over one operation."""
    # The other commands, of which one compiles while a program waits, need nothing of the compiler.
    import numpy as np

    from tapegrad.compiler.codegen import (
        gemm_fallback,
        kernel_calls,
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
    yield "convolutions in programs", partial(kernel_calls.address, kernel_calls.CONVOLUTION)
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
    """Which operands are numbers, or one for a row, as bits, where operand k gets an adjoint."""
    if op.kind is not ELEMENTWISE or len(op.inputs) not in (2, 3):
        return [0]
    if len(op.inputs) == 2:
        return [0, 1 << (1 - k), 1 << k]
    return [scalars for scalars in NUMBERS[3] if not scalars >> k & 1]


@cache
def tasks() -> list[tuple[str, Callable[[], object]]]:
    """`everything`, by numbers that all processes agree on."""
    return list(everything())


def compiled(numbers: Sequence[int], processes: int) -> Iterator[int]:
    """Compile what has these numbers in `everything`; yields each when that is done."""
    if processes == 1:
        for number in numbers:
            yield _compile(number)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    context = multiprocessing.get_context("spawn")  # a fork would take half of the threads over
    with ProcessPoolExecutor(processes, context) as pool:
        for future in as_completed([pool.submit(_compile, number) for number in numbers]):
            yield future.result()


def _compile(number: int) -> int:
    tasks()[number][1]()
    return number
