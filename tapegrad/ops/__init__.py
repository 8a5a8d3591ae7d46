"""What can be recorded: the table of operations, one module per family.

`core` is the language of rows; `grad_fn` shows a record under its row's name to PyTorch's users.

Whatever runs, differentiates or compiles operations imports from here; this package imports `base`
and `tape`.
"""

from tapegrad.ops import (
    activations,
    alignments,
    bessel,
    complex_parts,
    convolution,
    determinant,
    einsum,
    elementwise,
    exponents,
    factorizations,
    fourier,
    index,
    interpolation,
    least_squares,
    linalg,
    logic,
    losses,
    lu,
    order,
    orthogonal_polynomials,
    pure_callback,
    reduce,
    scan,
    scatter_reduce,
    scipy_special,
    shape,
    solve,
    sparse,
    special,
    strided,
    tiling,
    unchecked,
    windows,
)
from tapegrad.ops.core import Op, by_code, table

__all__ = [
    "Op", "activations", "alignments", "bessel", "by_code", "complex_parts", "convolution",
    "determinant", "einsum", "elementwise", "exponents", "factorizations", "fourier", "index",
    "interpolation", "least_squares", "linalg", "logic", "losses", "lu", "order",
    "orthogonal_polynomials", "pure_callback", "reduce", "scan", "scatter_reduce", "scipy_special",
    "shape", "solve", "sparse", "special", "strided", "table", "tiling", "unchecked", "windows",
]  # fmt: skip
