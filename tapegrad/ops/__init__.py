"""What can be recorded: the table of operations, one module per family."""

from tapegrad.ops import elementwise, index, linalg, reduce, scan, shape, special, tiling
from tapegrad.ops.core import Op, by_code, table

__all__ = [
    "Op", "by_code", "elementwise", "index", "linalg", "reduce", "scan", "shape", "special",
    "table", "tiling",
]  # fmt: skip
