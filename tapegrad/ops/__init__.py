"""What can be recorded: the table of operations, one module per family."""

from tapegrad.ops import (
    decompose,
    determinant,
    einsum,
    elementwise,
    index,
    linalg,
    logic,
    order,
    reduce,
    scan,
    shape,
    solve,
    special,
    tiling,
)
from tapegrad.ops.core import Op, by_code, table

__all__ = [
    "Op", "by_code", "decompose", "determinant", "einsum", "elementwise", "index", "linalg",
    "logic", "order", "reduce", "scan", "shape", "solve", "special", "table", "tiling",
]  # fmt: skip
