"""Loops over one operation of a nest, compiled once per machine, which interpreted programs call.

All have one signature: a result, three operands (those that are not read are null), and a count.
Elements lie side by side; a result and its operands do not overlap.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tapegrad.compiler.codegen.scalar_nest import written
from tapegrad.compiler.codegen.vector_module import ATTRIBUTES
from tapegrad.compiler.ir.buffers import SCRATCH, Buffer, Place
from tapegrad.compiler.ir.loop_nest import SET, Nest, Store, Term
from tapegrad.compiler.llvm import scipy_calls
from tapegrad.compiler.llvm.elementary import definitions
from tapegrad.kernels import build

MOST = 3  # operands of a block
_MANY = 1 << 40  # elements, in the nest that a block is made of: the count is known when it runs


@cache
def operation(name: str, operands: tuple[np.dtype, ...], dtype: np.dtype) -> int:
    """The address of the loop of an operation.

    >>> import numpy as np
    >>> from tapegrad.compiler.codegen.vector_blocks import operation
    >>> double = np.dtype("f8")
    >>> operation("add", (double, double), double) > 0
    True
    """
    args = tuple([~k for k in range(len(operands))])
    loads = tuple([_row(d) for d in operands])
    return _address(loads, (Term(name, args, dtype),), Store(0, _row(dtype), SET))


@cache
def copied(dtype: np.dtype) -> int:
    """The address of the loop that copies elements."""
    return _address((_row(dtype),), (), Store(~0, _row(dtype), SET))


@cache
def filled(dtype: np.dtype) -> int:
    """The address of the loop that repeats one element."""
    return _address((_row(dtype, 0),), (), Store(~0, _row(dtype), SET))


@cache
def reduced(mode: str, dtype: np.dtype) -> int:
    """The address of the loop that reduces elements to one."""
    return _address((_row(dtype),), (), Store(~0, _row(dtype, 0), mode))


def _row(dtype: np.dtype, stride: int = 1) -> Place:
    return Place(Buffer(SCRATCH, 0, dtype, 0), 0, (_MANY,), (stride,))


def _address(loads: tuple[Place, ...], terms: tuple[Term, ...], store: Store) -> int:
    found = written(Nest((_MANY,), loads, terms, (store,)), part=True)
    params = "ptr %s0, " + "".join([f"ptr %l{k}, " for k in range(MOST)])
    given = "".join([f"ptr %l{k}, " for k in range(len(loads))])
    entry = [
        f"define void @{build.SYMBOL}({params}i64 %n) #0 {{",
        f"call void @loop({given}ptr %s0, i64 0, i64 %n)", "ret void", "}",
    ]  # fmt: skip
    text = found.text.replace("{name}", "loop")
    scipy_calls.offer(text)
    return build.assemble("\n".join([ATTRIBUTES, *entry, text, definitions(set(found.used))]))
