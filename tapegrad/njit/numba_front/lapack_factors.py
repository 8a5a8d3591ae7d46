"""Factors that LAPACK computes, and that are written here as functions of what moves.

What LAPACK has found is held constant.  In the basis of its eigenvectors `v` a symmetric matrix is
`vᵀ a v = diag(w) + d`, where `d` is zero, but moves with the matrix; eigenvalues and eigenvectors
are functions of `d` up to its second order, which first and second derivatives need.  With the
triangle `u` of a matrix, `b = a u⁻¹` has orthogonal columns; the factors of `b`, by Cholesky's of
`bᵀ b`, lead to those of `a`.
"""

from __future__ import annotations

import numpy as np

from tapegrad.kernels.flags import from_python
from tapegrad.njit.numba_front.array_library import defined, dtype
from tapegrad.njit.numba_front.objects import NumbaType, types
from tapegrad.njit.numba_front.outlining import Outlining
from tapegrad.njit.numba_front.writer import Found

# The lower triangle alone is read, as LAPACK reads it.
_IN_BASIS = """\
n = a.shape[0]
m = np.empty((n, n), D)
for i in range(n):
 for j in range(n):
  m[i, j] = a[max(i, j), min(i, j)]
return v.T @ (m @ v)"""
# The rotation `x` of the vectors, to first order.  Between equal eigenvalues it is not determined:
# it is zero there, with an infinite slope.
_ROTATION = """\
n = w.shape[0]
d, x = np.empty((n, n), D), np.zeros((n, n), D)
for i in range(n):
 for j in range(n):
  d[i, j] = b[i, j] - c[i, j]
  if i != j:
   x[i, j] = d[i, j] / (w[j] - w[i]) if w[i] != w[j] else np.cbrt(d[i, j])"""
_VALUES = """\
y = np.empty(n, D)
for i in range(n):
 s = w[i] + d[i, i]
 for k in range(n):
  s += d[i, k] * x[k, i]
 y[i] = s
return y"""
_VECTORS = """\
z, dx, xx = np.empty((n, n), D), d @ x, np.sum(x * x, 0)
for i in range(n):
 for j in range(n):
  if i == j:
   z[i, j] = 1 - xx[j] / 2
  else:
   s = dx[i, j] - x[i, j] * d[j, j]
   z[i, j] = x[i, j] + (s / (w[j] - w[i]) if w[i] != w[j] else np.cbrt(s))
return (z.T @ v.T).T"""
_ORTHOGONAL = """\
m, k = a.shape[0], u.shape[0]
b, q = np.empty((m, k), D), np.empty((m, k), D)
for i in range(m):
 for j in range(k):
  s = a[i, j]
  for l in range(j):
   s -= b[i, l] * u[l, j]
  b[i, j] = s / u[j, j]
c = np.linalg.cholesky(b.T @ b)
for i in range(m):
 for j in range(k):
  s = b[i, j]
  for l in range(j):
   s -= q[i, l] * c[j, l]
  q[i, j] = s / c[j, j]
r = np.empty(u.shape, D)
r[:, :k] = c.T @ np.ascontiguousarray(u[:, :k])
r[:, k:] = q.T @ np.ascontiguousarray(a[:, k:])
return q, r"""
# A symmetric matrix whose largest eigenvalues are the singular values of another one.
_DOUBLED = """\
m, n = a.shape
h = np.zeros((m + n, m + n), D)
for i in range(m):
 for j in range(n):
  h[m + j, i] = a[i, j]
return h"""
_NUMBAS = {"_oneD_norm_2": "norm"}  # its own functions, by those of NumPy that do the same
SINGULAR_VALUES = "_compute_singular_values"


@from_python
def eigenpairs(a):  # type: ignore[no-untyped-def]
    """Eigenvalues and eigenvectors by LAPACK."""
    return np.linalg.eigh(a)


@from_python
def triangle(a):  # type: ignore[no-untyped-def]
    """The upper triangle of a matrix by LAPACK."""
    return np.linalg.qr(a)[1]


@from_python
def same(a):  # type: ignore[no-untyped-def]
    """A copy."""
    return a.copy()


class LapackFactors(Outlining):
    """Writes eigenvalues, eigenvectors, singular values and orthogonal factors."""

    def library(self, name: str, args: list[Found], t: NumbaType) -> Found | None:
        """A function of the array library, or one of those here."""
        name = _NUMBAS.get(name, name)
        (_, kind), *others = args
        if others or not isinstance(kind, types.Array) or not isinstance(kind.dtype, types.Float):
            return super().library(name, args, t)
        if name in ("eigh", "eigvalsh") and kind.ndim == 2:
            found = self.eigenpairs(args[0], vectors=name == "eigh")
            return found if name == "eigh" else self.laid_out(found, t)
        if name == "qr":
            u = self.run(triangle, args[0], detached=True)
            found = self.source("orthogonal", "a, u", _ORTHOGONAL, [*args, u])
            parts = [self.laid_out(x, part) for x, part in zip(self.parts(*found), t)]
            return [x for ops, _ in parts for x in ops], t
        if name == SINGULAR_VALUES:
            matrix = self.source("doubled", "a", _DOUBLED, args)
            values = self.eigenpairs(matrix, vectors=False)
            last = "return b[::-1][: min(a.shape)].copy()"
            return self.source("largest", "a, b", last, [*args, values])
        return super().library(name, args, t)

    def eigenpairs(self, this: Found, *, vectors: bool) -> Found:
        """The eigenvalues of a symmetric matrix, and its eigenvectors if they are asked for."""
        ops, kind = self.run(eigenpairs, this, detached=True)
        w, v = self.parts(ops, kind)
        b = self.source("in_basis", "a, v", _IN_BASIS, [this, v])
        c = self.run(same, b, detached=True)
        given = [w, v, b, c]
        values = self.source("values", "w, v, b, c", f"{_ROTATION}\n{_VALUES}", given)
        if not vectors:
            return values
        found = self.source("vectors", "w, v, b, c", f"{_ROTATION}\n{_VECTORS}", given)
        return [*values[0], *found[0]], types.BaseTuple.from_types((values[1], found[1]))

    def source(self, name: str, arguments: str, body: str, given: list[Found]) -> Found:
        """What a function that is written here makes of arrays of one type."""
        body = body.replace("D)", f"{dtype(given[0][1].dtype)})")
        return self.inline(defined(name, arguments, body), given)
