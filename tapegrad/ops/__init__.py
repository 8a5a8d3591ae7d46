"""What can be recorded: the table of operations, one module per family."""

from tapegrad.ops import elementwise, index, linalg, reduce, shape
from tapegrad.ops.core import Op, by_code, table

__all__ = ["Op", "by_code", "elementwise", "index", "linalg", "reduce", "shape", "table"]
