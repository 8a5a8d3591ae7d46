"""Functions of `numpy.linalg` as plain source, like those of `array_library`.

Numba calls LAPACK; the source here takes the largest pivot, too, so that values agree to rounding,
and is differentiated like any other code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.njit.numba_front.array_library import Function, defined, dtype
from tapegrad.njit.numba_front.components import COMPLEX
from tapegrad.njit.numba_front.objects import NumbaType, types

_SQUARE = "n = a.shape[0]\nif a.shape[1] != n:\n raise ValueError"
# The order in which rows and columns are eliminated.  What decides has no derivative, so the copy
# that is worked on has none: nothing of it is kept.
_ORDER = """\
w = np.empty((n, n), D)
for i in range(n):
 for j in range(n):
  w[i, j] = a[i, j]
rows, columns, sign = np.arange(n), np.arange(n), ONE
for k in range(n):
 p, q, best = k, k, abs(w[k, k])
 for i in range(k, n):
  for j in range(k, LAST):
   if abs(w[i, j]) > best:
    p, q, best = i, j, abs(w[i, j])
 if best == 0:
  SINGULAR
 if p != k:
  sign = -sign
  rows[k], rows[p] = rows[p], rows[k]
  for j in range(n):
   w[k, j], w[p, j] = w[p, j], w[k, j]
 if q != k:
  sign = -sign
  columns[k], columns[q] = columns[q], columns[k]
  for i in range(n):
   w[i, k], w[i, q] = w[i, q], w[i, k]
 for i in range(k + 1, n):
  f = w[i, k] / w[k, k]
  for j in range(k + 1, n):
   w[i, j] -= f * w[k, j]"""
# The factors, `u` transposed; each element is written once, so that the reverse sweep reads it.
_FACTORS = """\
l, u = np.empty((n, n), D), np.empty((n, n), D)
for i in range(n):
 for j in range(n):
  s = a[rows[i], columns[j]]
  for k in range(min(i, j)):
   s -= l[i, k] * u[j, k]
  if j < i:
   l[i, j] = s / u[j, j]
  else:
   u[j, i] = s"""
# Where the largest element that is left is zero, so are all, and the derivative is zero as well,
# unless it is the last, by which nothing is divided.
_DETERMINANT = [
    _ORDER.replace("LAST", "n").replace("SINGULAR", "if k < n - 1:\n   return ZERO"),
    _FACTORS,
    "for k in range(n):\n sign *= u[k, k]\nreturn sign",
]
# The sign, and the logarithm of the size; a determinant of zero has no derivative.
_SIGN_AND_LOGARITHM = [
    _ORDER.replace("LAST", "n").replace("SINGULAR", "return ZERO, -np.inf"),
    _FACTORS,
    "s = ZERO\nfor k in range(n):\n if u[k, k] < 0:\n  sign = -sign\n"
    " s += math.log(abs(u[k, k]))\nreturn sign, s",
]
_SOLUTION = [
    _ORDER.replace("LAST", "k + 1").replace("SINGULAR", "raise ValueError"),
    _FACTORS,
    """\
y, x = np.empty_like(b), np.empty_like(b)
for i in range(n):
 for c in range(m):
  s = b[rows[i], c]
  for k in range(i):
   s -= l[i, k] * y[k, c]
  y[i, c] = s
for i in range(n - 1, -1, -1):
 for c in range(m):
  s = y[i, c]
  for k in range(i + 1, n):
   s -= u[k, i] * x[k, c]
  x[i, c] = s / u[i, i]
return x""",
]
_CHOLESKY = """\
x = np.zeros((n, n), D)
for i in range(n):
 for j in range(i + 1):
  s = a[i, j]
  for k in range(j):
   s -= x[i, k] * x[j, k]
  if i == j:
   if not s > 0:
    raise ValueError
   x[i, i] = math.sqrt(s)
  else:
   x[i, j] = s / x[j, j]
return x"""
_OF_ONE: dict[Any, list[str]] = {
    np.linalg.cholesky: [_CHOLESKY],
    np.linalg.det: _DETERMINANT,
    np.linalg.slogdet: _SIGN_AND_LOGARITHM,
    np.linalg.inv: [
        "b, m = np.zeros((n, n), D), n\nfor i in range(n):\n b[i, i] = ONE",
        *_SOLUTION,
    ],
}


_REAL_ALONE = np.linalg.cholesky, np.linalg.slogdet


def named(name: str, kinds: Sequence[NumbaType]) -> Function | None:
    """A function of `numpy.linalg` by its name; None if there is none for such operands."""
    a, b = kinds[0], kinds[-1]
    if any(not isinstance(k, types.Array) or k.dtype != a.dtype for k in kinds):
        return None
    f = getattr(np.linalg, name, None)
    real = isinstance(a.dtype, types.Float)
    if a.ndim != 2 or not (real or (a.dtype in COMPLEX and f not in _REAL_ALONE)):
        return None
    if len(kinds) == 2 and name == "solve":
        fits = "if b.shape[0] != n:\n raise ValueError"
        lines = [fits, "m = 1" if b.ndim == 1 else "m = b.shape[1]", *_SOLUTION]
        if b.ndim == 1:
            lines = [line.replace(", c]", "]") for line in lines]
    elif len(kinds) == 1 and f in _OF_ONE:
        lines = _OF_ONE[f]
    else:
        return None
    kind = dtype(a.dtype)
    for word, text in (("D)", f"{kind})"), ("ONE", f"{kind}(1)"), ("ZERO", f"{kind}(0)")):
        lines = [line.replace(word, text) for line in lines]
    return defined(name, "a, b" if len(kinds) == 2 else "a", _SQUARE, *lines)
