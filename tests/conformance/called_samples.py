"""Samples of rows that SciPy computes, or the user's own function."""

import numpy as np

from tapegrad.ops.sparse import Pattern
from tests.conformance.samples import row

row("pure_callback", (2, 3), (3,), function=np.add, shape=(2, 3), dtype=np.dtype(np.float64))
row("pure_callback", (0, 3), function=np.sort, shape=(0, 3), dtype=np.dtype(np.float32))

_TRIDIAGONAL = Pattern(np.array([0, 1, 0, 1, 2, 1, 2]), np.array([0, 2, 5, 7]), (3, 3))
_WIDE = Pattern(np.array([3, 0, 2]), np.array([0, 1, 1, 3]), (3, 4))
_STRONG = np.array([4.0, 1.0, -0.5, 5.0, 1.5, 0.25, 3.0])
for rest in [(), (2,)]:
    for pattern in (_WIDE, _WIDE.transposed, _TRIDIAGONAL.transposed):
        count = pattern.indices.shape
        row("sparse_product", count, (pattern.shape[1], *rest), pattern=pattern)
        row(
            "sampled_product", (pattern.shape[0], *rest), (pattern.shape[1], *rest), pattern=pattern
        )
    for pattern in (_TRIDIAGONAL, _TRIDIAGONAL.transposed):
        row("sparse_solve", _STRONG, (3, *rest), pattern=pattern)
row("sparse_product", (3,), (4, 0), pattern=_WIDE)
row("sampled_product", (3, 0), (4, 0), pattern=_WIDE)
row("sparse_solve", _STRONG, (3, 0), pattern=_TRIDIAGONAL)

for kind in ("dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4"):
    row("sines", (2, 4), kind=kind, dim=1)
    row("sines", (3, 2), kind=kind, dim=0)
    row("sines", (2,), kind=kind, dim=0)
