"""All families of operations, for whoever reads the whole table.

A family is loaded by what uses it, so that an import of the package need not make rows that few
programs use.  The codes of rows follow from the order in which families are loaded.

>>> from tapegrad.ops.families import table
>>> table["fft_c2c"].kind
'linear'
"""

from tapegrad.ops import (
    activations,
    alignments,
    banded,
    bessel,
    borders,
    complex_parts,
    convolution,
    determinant,
    einsum,
    elementwise,
    exponents,
    factorizations,
    fourier,
    fourier_forms,
    incomplete,
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
    scipy_bessel,
    scipy_distributions,
    scipy_elliptic,
    scipy_special,
    shape,
    solve,
    sparse,
    special,
    strided,
    sylvester,
    tiling,
    unchecked,
    windows,
)
from tapegrad.ops.core import Op, by_code, table

__all__ = [
    "Op", "activations", "alignments", "banded", "bessel", "borders", "by_code", "complex_parts",
    "convolution", "determinant", "einsum", "elementwise", "exponents", "factorizations",
    "fourier", "fourier_forms", "incomplete", "index", "interpolation", "least_squares", "linalg",
    "logic", "losses", "lu", "order", "orthogonal_polynomials", "pure_callback", "reduce", "scan",
    "scatter_reduce", "scipy_bessel", "scipy_distributions", "scipy_elliptic", "scipy_special",
    "shape", "solve", "sparse", "special", "strided", "sylvester", "table", "tiling", "unchecked",
    "windows",
]  # fmt: skip
