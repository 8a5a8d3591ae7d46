"""Check a GEMM result for NaN; recompute with strong zeros. Compiled once for all programs.

BLAS gives NaN where a zero meets a non-finite factor.  So the elements of each product are summed,
and where the sum is NaN, loops with strong zeros recompute the product.  That is rare: sizes and
strides are arguments, not constants in the code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod

import numpy as np

from tapegrad.compiler.codegen import vector_blocks
from tapegrad.compiler.codegen.vector_module import ATTRIBUTES
from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.loop_nest import SUM, Nest, collapsed
from tapegrad.compiler.llvm.function_builder import FunctionBuilder
from tapegrad.compiler.llvm.ssa import FLOATS
from tapegrad.kernels import build

PREFIX = "again."
RANK = 4  # dimensions of the loops
TYPES = {"float64": "double", "float32": "float"}


def total(place: Place) -> tuple[str, str] | None:
    """The call that adds up a window, and its declaration; None if it has gaps.

    It takes the addresses of the sum and of the window.
    """
    type = TYPES.get(place.buffer.dtype.name)
    if type is None or not place.is_contiguous():
        return None
    name, size = f"{PREFIX}total.{FLOATS[type]}", prod(place.shape)
    call = f"call void @{name}(ptr {{}}, ptr {{}}, ptr null, ptr null, i64 {size})"
    return call, f"declare void @{name}(ptr, ptr, ptr, ptr, i64)"


def redone(nest: Nest) -> tuple[str, str] | None:
    """The function that recomputes a product by calling the loops, and their declaration."""
    nest = collapsed(nest)
    places = [*nest.loads, *[s.place for s in nest.stores]]
    types = {TYPES.get(p.buffer.dtype.name) for p in places}
    if len(nest.domain) > RANK or any(nest.gathers) or len(types) > 1 or None in types:
        return None
    if [t.name for t in nest.terms] != ["exact"] or [s.mode for s in nest.stores] != [SUM]:
        return None
    args = nest.terms[0].args
    if nest.stores[0].source != 0 or min(nest.stores[0].place.strides, default=0) < 0:
        return None
    name = f"{PREFIX}exact.{FLOATS[types.pop() or '']}"
    windows = [nest.loads[~args[0]], nest.loads[~args[1]], nest.stores[0].place]
    missing = RANK - len(nest.domain)
    numbers = [1] * missing + list(nest.domain)
    for window in windows:
        numbers += [0] * missing + list(window.strides)
    table = ", ".join([f"i64 {n}" for n in numbers])
    given = ", ".join([f"ptr %l{k}" for k in range(len(nest.loads))])
    text = (
        f"@{{name}}.table = internal constant [{len(numbers)} x i64] [{table}]\n"
        f"define internal void @{{name}}({given}, ptr %s0) #1 {{\n"
        f"call void @{name}(ptr %l{~args[0]}, ptr %l{~args[1]}, ptr %s0, ptr @{{name}}.table)\n"
        "ret void\n}"
    )
    return text, f"declare void @{name}(ptr, ptr, ptr, ptr)"


@cache
def address(name: str) -> int:
    """The address of such a function, which is compiled on first use.

    >>> from tapegrad.compiler.codegen.gemm_fallback import address
    >>> address("again.total.f64") == address("again.total.f64") > 0
    True
    """
    what, short = name.removeprefix(PREFIX).split(".")
    dtype = np.dtype(short.replace("f", "float"))
    if what == "total":
        block = vector_blocks.reduced(SUM, dtype)
        vector_blocks.load([block])
        return block.address
    text = (
        _Exact(dtype)
        .routine(["noalias readonly"] * 2 + ["noalias", "noalias readonly"], "void")
        .text
    )
    text = text.replace("define internal void @{name}", f"define void @{build.SYMBOL}")
    return build.assemble(f"{ATTRIBUTES}\n{text}")


class _Exact(FunctionBuilder):
    """The loops: zero the result, then accumulate products.

    Over the factors, the result, and a table of the extents and of the strides of all three.
    """

    def __init__(self, dtype: np.dtype) -> None:
        super().__init__(dtype)
        numbers = [self.load(self.at("%a3", k, "i64"), "i64") for k in range(4 * RANK)]
        extents, *self.strides = [numbers[k : k + RANK] for k in range(0, 4 * RANK, RANK)]
        kept = []
        for n, stride in zip(extents, self.strides[2], strict=True):
            still = self.emit(f"icmp eq i64 {stride}, 0")
            kept.append(self.emit(f"select i1 {still}, i64 1, i64 {n}"))
        self.loops(kept, [], self.clear)
        self.loops(extents, [], self.add)

    def loops(self, extents: list[str], at: list[str], body: Callable[[list[str]], None]) -> None:
        """Write nested loops; the innermost body gets their indices."""
        if len(at) == len(extents):
            body(at)
            return
        with self.loop(extents[len(at)]) as index:
            self.loops(extents, [*at, index], body)

    def place(self, operand: int, index: list[str]) -> str:
        """The address of an element."""
        offset = "0"
        for i, stride in zip(index, self.strides[operand], strict=True):
            offset = self.emit(f"add nsw i64 {offset}, {self.emit(f'mul nsw i64 {i}, {stride}')}")
        return self.at(f"%a{operand}", offset)

    def clear(self, index: list[str]) -> None:
        """Zero an element of the result."""
        self.store(self.constant(0.0), self.place(2, index))

    def add(self, index: list[str]) -> None:
        """Add a product to the result, in which zeros are strong."""
        zero, out = self.constant(0.0), self.place(2, index)
        a, b = self.load(self.place(0, index)), self.load(self.place(1, index))
        product = self.two("fmul", a, b)
        for factor in (a, b):
            some = self.emit(f"fcmp une {self.kind} {factor}, {zero}")
            product = self.choose(some, product, zero)
        self.store(self.two("fadd", self.load(out), product), out)
