"""Loops over one operation of a nest, compiled once per machine, which interpreted programs call.

All have one signature: a result, three operands (those that are not read are null), and a count.
Elements lie side by side; a result and its operands do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np

from tapegrad.compiler.codegen.nest_function import written
from tapegrad.compiler.codegen.vector_module import ATTRIBUTES
from tapegrad.compiler.ir.buffers import SCRATCH, Buffer, Place
from tapegrad.compiler.ir.loop_nest import SET, Nest, Store, Term
from tapegrad.compiler.llvm import scipy_calls
from tapegrad.compiler.llvm.elementary import definitions
from tapegrad.kernels import build

MOST = 3  # operands of a block
_MANY = 1 << 40  # elements, in the nest that a block is made of: the count is known when it runs


class Block:
    """A loop over one operation: its name, its LLVM text, and where it is, once it is loaded."""

    __slots__ = ("address", "symbol", "text")

    def __init__(
        self, name: str, loads: tuple[Place, ...], terms: tuple[Term, ...], store: Store
    ) -> None:
        dtypes = [place.buffer.dtype for place in (*loads, store.place)]
        self.symbol = "tapegrad_block." + ".".join([name, *[d.name for d in dtypes]])
        self.text = _text(self.symbol, loads, terms, store)
        self.address = 0


def load(blocks: Iterable[Block]) -> None:
    """Have blocks compiled, or taken from disk, where that was not done in this process.

    >>> import numpy as np
    >>> from tapegrad.compiler.codegen.vector_blocks import load, operation
    >>> double = np.dtype("f8")
    >>> add = operation("add", (double, double), double)
    >>> load([add])
    >>> add.address > 0
    True
    """
    missing = {block.symbol: block for block in blocks if not block.address}
    if missing:
        scipy_calls.offer(*[block.text for block in missing.values()])
        found = build.assemble_all({symbol: block.text for symbol, block in missing.items()})
        for symbol, block in missing.items():
            block.address = found[symbol]


@cache
def operation(name: str, operands: tuple[np.dtype, ...], dtype: np.dtype) -> Block:
    """The loop of an operation."""
    args = tuple([~k for k in range(len(operands))])
    loads = tuple([_row(d) for d in operands])
    return Block(name, loads, (Term(name, args, dtype),), Store(0, _row(dtype), SET))


@cache
def copied(dtype: np.dtype) -> Block:
    """The loop that copies elements."""
    return Block("copied", (_row(dtype),), (), Store(~0, _row(dtype), SET))


@cache
def filled(dtype: np.dtype) -> Block:
    """The loop that repeats one element."""
    return Block("filled", (_row(dtype, 0),), (), Store(~0, _row(dtype), SET))


@cache
def reduced(mode: str, dtype: np.dtype) -> Block:
    """The loop that reduces elements to one."""
    return Block(f"reduced.{mode}", (_row(dtype),), (), Store(~0, _row(dtype, 0), mode))


def _row(dtype: np.dtype, stride: int = 1) -> Place:
    return Place(Buffer(SCRATCH, 0, dtype, 0), 0, (_MANY,), (stride,))


def _text(symbol: str, loads: tuple[Place, ...], terms: tuple[Term, ...], store: Store) -> str:
    found = written(Nest((_MANY,), loads, terms, (store,)), part=True)
    params = "ptr %s0, " + "".join([f"ptr %l{k}, " for k in range(MOST)])
    given = "".join([f"ptr %l{k}, " for k in range(len(loads))])
    entry = [
        f"define void @{symbol}({params}i64 %n) #0 {{",
        f"call void @loop({given}ptr %s0, i64 0, i64 %n)", "ret void", "}",
    ]  # fmt: skip
    text = found.text.replace("{name}", "loop")
    return "\n".join([ATTRIBUTES, *entry, text, definitions(found.used)])
