"""Write functions of words, which loop over the widest vectors, as LLVM text."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tapegrad.compiler.llvm.function_builder import FunctionBuilder
from tapegrad.compiler.llvm.ssa import FLOATS
from tapegrad.kernels import build

WORDS = 8  # arguments


@cache
def lanes(dtype: np.dtype[Any]) -> int:
    """The elements of the widest vector."""
    avx512 = build.binding().get_host_cpu_features().get("avx512f")
    return (64 if avx512 else 32) // dtype.itemsize


class VectorFunction:
    """A function of the words `%w0`, `%w1`, ..., under construction."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.t, self.lanes = FunctionBuilder(dtype), lanes(dtype)

    def pointer(self, word: int) -> str:
        """The argument that is an address."""
        return self.t.emit(f"inttoptr i64 %w{word} to ptr")

    def two(self, name: str, a: str, b: str) -> str:
        """A vector operation."""
        return self.t.two(name, a, b, self.lanes)

    def size(self, x: str) -> str:
        """The absolute values of a vector."""
        t = self.t
        kind, symbol = t.vector(self.lanes), f"llvm.fabs.v{self.lanes}{FLOATS[t.kind]}"
        t.declared.add(f"declare {kind} @{symbol}({kind})")
        return t.emit(f"call {kind} @{symbol}({kind} {x})")

    def compared(self, relation: str, a: str, b: str) -> str:
        """Where a relation holds."""
        return self.t.emit(f"fcmp {relation} {self.t.vector(self.lanes)} {a}, {b}")

    def where(self, condition: str, a: str, b: str) -> str:
        """The elements of one vector where a condition holds, and of another one elsewhere."""
        kind = self.t.vector(self.lanes)
        return self.t.emit(f"select <{self.lanes} x i1> {condition}, {kind} {a}, {kind} {b}")

    def text(self) -> str:
        """The whole."""
        words = ", ".join(f"i64 %w{k}" for k in range(WORDS))
        return "\n".join([
            f"define i64 @{build.SYMBOL}({words}) nounwind {{", "start:", *self.t.head,
            *self.t.lines, "ret i64 0", "}", *sorted(self.t.declared),
        ])  # fmt: skip
