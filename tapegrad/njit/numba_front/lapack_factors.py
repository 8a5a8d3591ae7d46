"""Factors that LAPACK computes, and that are written here as functions of what moves.

What LAPACK has found is held constant.  In the basis of its eigenvectors `v` a symmetric matrix is
`vᵀ a v = diag(w) + d`, where `d` is zero, but moves with the matrix; eigenvalues and eigenvectors
are functions of `d` up to its second order, which first and second derivatives need.  So are those
of a matrix that is not symmetric, by `v⁻¹ a v`, and singular values, with the vectors of an `a` of
`k` columns and at least as many rows: those of `pᵀ a q`, and of the rest that `p` does not reach,
are eigenvectors of the symmetric matrix of `a` beside its transpose.  With the triangle `u` of a
matrix, `b = a u⁻¹` has orthogonal columns; the factors of `b`, by Cholesky's of `bᵀ b`, lead to
those of `a`.  A pseudoinverse of some rank moves as that of matrices of this rank (Golub and
Pereyra 1973); a Newton step makes it right to the second order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.flags import from_python
from tapegrad.njit.numba_front.array_library import defined, dtype
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, types
from tapegrad.njit.numba_front.outlining import Outlining
from tapegrad.njit.numba_front.typed_ir import overload_of
from tapegrad.njit.numba_front.writer import Found
from tapegrad.njit.three_address_code import Constant

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
   z[i, j] = x[i, j] + (s / (w[j] - w[i]) if w[i] != w[j] else np.cbrt(s))"""
# Of a matrix that is not symmetric.
_SIMILAR = "return np.linalg.solve(v, a @ v)"
_OF_LENGTH_ONE = """\
y = z.T @ v.T
for j in range(n):
 y[j] /= np.sqrt(np.sum(y[j] ** 2))
return y.T"""
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
# The rows and columns of a matrix, the smaller number, the larger one.
_SIZES = "m, n = a.shape\nk, l = min(m, n), max(m, n)"
# A matrix and the vectors of its two sides, turned to have no fewer rows than columns.
_UPRIGHT = f"""\
{_SIZES}
if m >= n:
 b, p, q = a, u, vt.T
else:
 b, p, q = a.T, vt.T, u"""
# What of `a q` the columns of `p` span, and what is left; a square matrix leaves nothing.
_IN_BASES = f"""\
{_UPRIGHT}
g, c, e = np.empty((l, k), D), np.empty((k, k), D), np.empty((l if m != n else 0, k), D)
for i in range(l):
 for j in range(k):
  r = ZERO
  for o in range(k):
   r += b[i, o] * q[o, j]
  g[i, j] = r
for i in range(k):
 for j in range(k):
  r = ZERO
  for o in range(l):
   r += p[o, i] * g[o, j]
  c[i, j] = r
for i in range(e.shape[0]):
 for j in range(k):
  r = g[i, j]
  for o in range(k):
   r -= p[i, o] * c[o, j]
  e[i, j] = r
return c, e"""
# The parts `d`, `f` and `h` of what has moved; the first order of the vectors, `x` along those of
# other singular values, `y` along those of their negatives, `t` along the rest; the values.
_TURNED = f"""\
{_SIZES}
d, f, h = np.empty((k, k), D), np.empty((k, k), D), np.empty(e.shape, D)
x, y, t = np.zeros((k, k), D), np.zeros((k, k), D), np.empty(e.shape, D)
for i in range(k):
 for j in range(k):
  g, r = c[i, j] - c0[i, j], c[j, i] - c0[j, i]
  d[i, j], f[i, j] = (g + r) / 2, (r - g) / 2
  if i != j:
   x[i, j] = d[i, j] / (s[j] - s[i]) if s[i] != s[j] else np.cbrt(d[i, j])
   y[i, j] = f[i, j] / (s[j] + s[i]) if s[i] + s[j] != 0 else np.cbrt(f[i, j])
for i in range(h.shape[0]):
 for j in range(k):
  h[i, j] = e[i, j] - e0[i, j]
  t[i, j] = h[i, j] / s[j] if s[j] != 0 else np.cbrt(h[i, j])
v = np.empty(k, D)
for j in range(k):
 r = s[j] + d[j, j]
 for i in range(k):
  r += d[i, j] * x[i, j] + f[i, j] * y[i, j]
 for i in range(h.shape[0]):
  r += h[i, j] * t[i, j] / 2
 v[j] = r"""
# Vectors that `full_matrices` adds complete a basis in no determined way: their slope is infinite.
_SINGULAR_VECTORS = f"""\
{_UPRIGHT}
left, right = np.empty((k, k), D), np.empty((k, k), D)
for j in range(k):
 size = ONE
 for i in range(k):
  size -= (x[i, j] ** 2 + y[i, j] ** 2) / 2
 for i in range(h.shape[0]):
  size -= t[i, j] ** 2 / 4
 for i in range(k):
  g, r = -x[i, j] * d[j, j], -y[i, j] * d[j, j]
  for o in range(k):
   g += d[i, o] * x[o, j] - f[i, o] * y[o, j]
   r += f[i, o] * x[o, j] - d[i, o] * y[o, j]
  for o in range(h.shape[0]):
   g += h[o, i] * t[o, j] / 2
   r += h[o, i] * t[o, j] / 2
  if i == j:
   g = size
  else:
   g = x[i, j] + (g / (s[j] - s[i]) if s[i] != s[j] else np.cbrt(g))
  r = y[i, j] + (r / (s[j] + s[i]) if s[i] + s[j] != 0 else np.cbrt(r))
  left[i, j], right[i, j] = g - r, g + r
w, z = np.empty(u.shape, D), np.empty(vt.shape, D)
for i in range(l):
 for j in range(k):
  r = ZERO
  for o in range(k):
   r += p[i, o] * left[o, j]
  if m != n:
   g = -t[i, j] * d[j, j]
   for o in range(k):
    g += h[i, o] * (x[o, j] + y[o, j])
   r += t[i, j] + (g / s[j] if s[j] != 0 else np.cbrt(g))
  if m >= n:
   w[i, j] = r
  else:
   z[j, i] = r
for i in range(k):
 for j in range(k):
  r = ZERO
  for o in range(k):
   r += q[i, o] * right[o, j]
  if m >= n:
   z[j, i] = r
  else:
   w[i, j] = r
if m != n:
 far = np.cbrt(h[0, 0])
 for i in range(m):
  for j in range(k, w.shape[1]):
   w[i, j] = u[i, j] + far
 for i in range(k, z.shape[0]):
  for j in range(n):
   z[i, j] = vt[i, j] + far
return w, v, z"""
_INVERTED = f"""\
{_SIZES}
b, d, p = np.empty((l, k), D), np.empty((l, k), D), np.empty((k, l), D)
for i in range(l):
 for j in range(k):
  b[i, j] = a[i, j] if m >= n else a[j, i]
  d[i, j] = b[i, j] - (a0[i, j] if m >= n else a0[j, i])
  p[j, i] = y[j, i] if m >= n else y[i, j]
e = d.T @ p.T
z = p - (p @ d) @ p + (p @ p.T) @ (d.T - (d.T @ (b - d)) @ p) + (e - (p @ (b - d)) @ e) @ p
x = (b.T @ (z.T @ (z @ z.T))) @ b.T
x = 2 * x - (x @ b) @ x
return (x if m >= n else x.T).copy()"""
_RESIDUES = """\
y = np.empty(r.shape[0], D)
for c in range(r.shape[0]):
 y[c] = 0
 for i in range(a.shape[0]):
  s = -bI
  for j in range(a.shape[1]):
   s += a[i, j] * xJ
  y[c] += s * s
return y"""
_NUMBAS = {"_oneD_norm_2": "norm"}  # its own functions, by those of NumPy that do the same
SINGULAR_VALUES = "_compute_singular_values"
_WITH_KEYWORDS: tuple[Any, ...] = (np.linalg.svd, np.linalg.pinv, np.linalg.lstsq)
_PINV_CUTOFF: Found = [Constant(1e-15, "f64")], types.float64
_LSTSQ_CUTOFF: Found = [Constant(-1.0, "f64")], types.float64


@from_python
def eigenpairs(a):  # type: ignore[no-untyped-def]
    """Eigenvalues and eigenvectors by LAPACK."""
    return np.linalg.eigh(a)


@from_python
def general_eigenpairs(a):  # type: ignore[no-untyped-def]
    """Eigenvalues and eigenvectors of a matrix that is not symmetric by LAPACK."""
    return np.linalg.eig(a)


@from_python
def singular_factors(a, full):  # type: ignore[no-untyped-def]
    """Singular values and vectors by LAPACK."""
    return np.linalg.svd(a, full)


@from_python
def pseudoinverse(a, cutoff):  # type: ignore[no-untyped-def]
    """The pseudoinverse by LAPACK; below zero the cutoff is the machine's precision."""
    return np.linalg.pinv(a, cutoff if cutoff >= 0 else np.finfo(a.dtype).eps)


@from_python
def least_squares(a, b, cutoff):  # type: ignore[no-untyped-def]
    """What solves a system best, and what is left, by LAPACK."""
    return np.linalg.lstsq(a, b, cutoff)


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
        if not isinstance(kind, types.Array) or not isinstance(kind.dtype, types.Float):
            return super().library(name, args, t)
        found: Found | None = None
        if name in ("eigh", "eigvalsh", "eig", "eigvals") and kind.ndim == 2 and not others:
            found = self.eigenpairs(args[0], name)
        elif name == "qr":
            u = self.run(triangle, args[0], detached=True)
            found = self.source("orthogonal", "a, u", _ORTHOGONAL, [*args, u])
        elif name == "svd" or (name == SINGULAR_VALUES and not others):
            found = self.singular(*args, vectors=name == "svd")
        elif name == "pinv":
            found = self.moving(*self.pseudoinverse(*args))
        elif name == "lstsq" and others[0][1].dtype == kind.dtype:
            found = self.least_squares(*args)
        if found is None:
            return super().library(name, args, t)
        if not isinstance(t, types.BaseTuple):
            return self.laid_out(found, t)
        parts = [self.laid_out(x, part) for x, part in zip(self.parts(*found), t)]
        return [x for ops, _ in parts for x in ops], t

    def overloaded(self, e: NumbaIR, t: NumbaType, otherwise: str) -> Found:
        """A function of Numba's own source; or one of those here, with keywords."""
        f = self.type(e.func)
        key: Any = getattr(f, "typing_key", None)
        args, keywords = self.given_to(e)
        if key in _WITH_KEYWORDS and keywords:
            source = overload_of(f, [k for _, k in args], {n: k for n, (_, k) in keywords.items()})
            if source is not None:
                found = self.library(key.__name__, self.bound(source, args, keywords), t)
                if found is not None:
                    return found
        return super().overloaded(e, t, otherwise)

    def eigenpairs(self, this: Found, name: str) -> Found | None:
        """The eigenvalues of a matrix, and its eigenvectors if they are asked for."""
        symmetric = "h" in name
        ops, kind = self.run(eigenpairs if symmetric else general_eigenpairs, this, detached=True)
        w, v = self.parts(ops, kind)
        if not isinstance(w[1].dtype, types.Float):
            return None  # they may be complex
        b = self.source("in_basis", "a, v", _IN_BASIS if symmetric else _SIMILAR, [this, v])
        c = self.run(same, b, detached=True)
        given = [w, v, b, c]
        values = self.source("values", "w, v, b, c", f"{_ROTATION}\n{_VALUES}", given)
        if "vals" in name:
            return values
        last = "return (z.T @ v.T).T" if symmetric else _OF_LENGTH_ONE
        body = f"{_ROTATION}\n{_VECTORS}\n{last}"
        return self.together(values, self.source("vectors", "w, v, b, c", body, given))

    def singular(self, this: Found, *full: Found, vectors: bool) -> Found:
        """The singular values of a matrix, between its singular vectors if these are asked for."""
        default: Found = [Constant(vectors, "i1")], types.boolean
        whole = full[0] if full else default
        u, s, vt = self.parts(*self.run(singular_factors, this, whole, detached=True))
        a, u, vt = (self.in_any_order(x) for x in (this, u, vt))
        moved = self.parts(*self.source("in_bases", "a, u, vt", _IN_BASES, [a, u, vt]))
        held = [self.run(same, x, detached=True) for x in moved]
        last = _SINGULAR_VECTORS if vectors else "return v"
        given, names = [a, u, s, vt, *moved, *held], "a, u, s, vt, c, e, c0, e0"
        return self.source("singular", names, f"{_TURNED}\n{last}", given)

    def in_any_order(self, this: Found) -> Found:
        """A matrix whose type does not say in which order it lies."""
        ops, kind = this
        of = types.Array(kind.dtype, kind.ndim, "A")
        return self.cast(ops, kind, of), of

    def pseudoinverse(self, this: Found, cutoff: Found = _PINV_CUTOFF) -> tuple[Found, Found]:
        """The pseudoinverse of a matrix by LAPACK, and what moves as it does."""
        y = self.run(pseudoinverse, this, cutoff, detached=True)
        held = self.run(same, this, detached=True)
        return y, self.source("inverted", "a, a0, y", _INVERTED, [this, held, y])

    def least_squares(self, a: Found, b: Found, cutoff: Found = _LSTSQ_CUTOFF) -> Found:
        """What `lstsq` gives."""
        ops, kind = self.run(least_squares, a, b, cutoff, detached=True)
        x, left, rank, _ = self.parts(ops, kind)
        _, inverse = self.pseudoinverse(a, cutoff)
        x = self.moving(x, self.source("solution", "p, b", "return p @ b", [inverse, b]))
        residues = _RESIDUES
        for letter in "IJ":
            index = letter.lower() if b[1].ndim == 1 else f"{letter.lower()}, c"
            residues = residues.replace(letter, f"[{index}]")
        left = self.source("residues", "a, b, x, r", residues, [a, b, x, left])
        return self.together(x, left, rank, self.singular(a, vectors=False))

    def moving(self, value: Found, like: Found) -> Found:
        """A value that is found by LAPACK, and that moves as another one does."""
        held = self.run(same, like, detached=True)
        return self.source("moving", "y, z, z0", "return y + (z - z0)", [value, like, held])

    @staticmethod
    def together(*found: Found) -> Found:
        """Several values as a tuple."""
        kinds = [t for _, t in found]
        return [x for ops, _ in found for x in ops], types.BaseTuple.from_types(kinds)

    def source(self, name: str, arguments: str, body: str, given: list[Found]) -> Found:
        """What a function that is written here makes of arrays of one type."""
        kind = dtype(given[0][1].dtype)
        for word, text in (("D)", f"{kind})"), ("ZERO", f"{kind}(0)"), ("ONE", f"{kind}(1)")):
            body = body.replace(word, text)
        return self.inline(defined(name, arguments, body), given)
