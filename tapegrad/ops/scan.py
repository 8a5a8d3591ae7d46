"""Scans: results that take up the elements of one dimension one after the other.

`decay` is the recurrence from which the derivatives of the others are made, and its own: its
transpose is itself run the other way.  Nothing is divided, so zeros are no special case, and every
order exists.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.core import ANALYTIC, Op, custom
from tapegrad.ops.elementwise import abs as abs_
from tapegrad.ops.elementwise import added_exponents, eq, exact, exp, strong, where
from tapegrad.ops.index import at
from tapegrad.ops.large import large
from tapegrad.ops.shape import cat, embed, getitem, to

DOUBLE_OF = {
    "f": np.dtype(np.float64),
    "F": np.dtype(np.complex128),
}  # that running sums are added in


def running_type(x: Any) -> Any:
    """That of running sums and products: double for single precision, as in PyTorch."""
    return DOUBLE_OF.get(x.dtype.char, x.dtype)


def later(v: Any, spec: Any, dim: int) -> Any:
    """Each element one place further on, over operations; zero comes first."""
    n = spec.shape[dim]
    index = at(dim, slice(0, n - 1))
    return embed(getitem(v, index=index), shape=spec.shape, index=at(dim, slice(1, n)))


def _strong(a: Any, s: Any) -> Any:
    """What is carried on: an exact zero stays zero, whatever it meets."""
    return np.where(s == 0, np.zeros((), s.dtype), a * s)


def _run(a: Any, b: Any) -> Any:
    """s[k] = b[k] + a[k] * s[k - 1] along the first dimension, element after element."""
    out = b.copy()
    for k in range(1, len(out)):
        out[k] += _strong(a[k], out[k - 1])
    return out


BLOCKS = 64  # elements along a dimension from which they are taken in blocks, side by side


def _run_blocks(a: Any, b: Any) -> Any:
    """The same: blocks run side by side, then what each hands on is carried through the next."""
    n = len(b)
    size = math.isqrt(n)
    count = n // size
    whole = count * size
    shape = (count, size, *b.shape[1:])
    local = b[:whole].reshape(shape).copy()
    factor = a[:whole].reshape(shape).copy()
    for k in range(1, size):
        local[:, k] += _strong(factor[:, k], local[:, k - 1])
        factor[:, k] *= factor[:, k - 1]
    for j in range(1, count):
        local[j] += _strong(factor[j], local[j - 1, -1])
    out = np.empty_like(b)
    out[:whole] = local.reshape(whole, *b.shape[1:])
    for k in range(whole, n):
        out[k] = b[k] + _strong(a[k], out[k - 1])
    return out


def _decay(a: Any, b: Any, *, dim: int, reverse: bool) -> Any:
    kind = running_type(b)
    factors, terms = (np.moveaxis(x.astype(kind, copy=False), dim, 0) for x in (a, b))
    if reverse:
        # s[k] = b[k] + a[k + 1] * s[k + 1]: seen from the end, the factor of the place before.
        factors, terms = np.roll(factors[::-1], 1, 0), terms[::-1]
    with np.errstate(all="ignore"):
        if len(terms) < BLOCKS or terms[0].size > 4 * len(terms):
            out = _run(factors, terms)
        else:
            out = _run_blocks(factors, terms)
    return np.ascontiguousarray(np.moveaxis(out[::-1] if reverse else out, 0, dim), b.dtype)


def _factor_vjp(g: Any, y: Any, y_spec: Any, a: Any, dim: int, reverse: bool) -> Any:
    adjoint = decay(a, g, dim=dim, reverse=not reverse)
    if reverse:
        return exact(later(adjoint, y_spec, dim), y)
    return exact(adjoint, later(y, y_spec, dim))


def _cumprod(x: Any, *, dim: int) -> Any:
    if not x.ndim:
        return x.copy()
    return np.multiply.accumulate(x, axis=dim, dtype=running_type(x)).astype(x.dtype, copy=False)


def _cumprod_vjp(g: Any, x: Any, y: Any, y_spec: Any, dim: int) -> Any:
    # The product of those before, times what those after make of the adjoint.
    if not y_spec.shape:
        return g
    after = decay(x, g, dim=dim, reverse=True)
    n = y_spec.shape[dim]
    if n < 2:
        return after
    one = np.ones((*y_spec.shape[:dim], 1, *y_spec.shape[dim + 1 :]), y_spec.dtype)
    before = cat(one, getitem(y, index=at(dim, slice(0, n - 1))), dim=dim)
    return strong(after, before)


def _logcumsumexp(x: Any, *, dim: int) -> Any:
    if not x.ndim:
        return x.copy()
    if x.dtype.kind != "c":
        found = np.logaddexp.accumulate(x, axis=dim, dtype=running_type(x))
        return found.astype(x.dtype, copy=False)
    y = x.astype(running_type(x))
    rows = np.moveaxis(y, dim, 0)
    for k in range(1, len(rows)):
        rows[k] = added_exponents(rows[k - 1], rows[k])
    return y.astype(x.dtype, copy=False)


def _logcumsumexp_vjp(g: Any, x: Any, y: Any, y_spec: Any, dim: int) -> Any:
    # The sum over k >= i of g[k] * exp(x[i] - y[k]), in factors exp(y[k - 1] - y[k]) <= 1, the
    # first of which is not used.
    if not y_spec.shape:
        return g
    kind = y_spec.dtype
    # The factors are to multiply to exp(x[i] - y[k]) again.
    g, x, y = (to(v, dtype=DOUBLE_OF.get(kind.char, kind)) for v in (g, x, y))
    before = later(y, y_spec, dim)
    steps = where(eq(before, y), 1.0, 0.0)  # among infinities
    factors = where(eq(abs_(y), math.inf), steps, exp(before - y))
    after = decay(factors, g, dim=dim, reverse=True)
    return to(strong(after, exp(x - y)), dtype=kind)


# fmt: off
# s[k] = b[k] + a[k] * s[k - 1]; the other way, s[k] = b[k] + a[k + 1] * s[k + 1].
decay: Op = custom(
    "decay", large("row_loops.decay", _decay), complex=ANALYTIC,
    a=_factor_vjp, grad_name="CumprodBackward",
    b=lambda g, a, dim, reverse: decay(a, g, dim=dim, reverse=not reverse),
    scans="add",
)
cumprod = custom("cumprod", large("row_loops.cumprod", _cumprod), complex=ANALYTIC,
                 x=_cumprod_vjp, scans="mul", axis="keep")
logcumsumexp = custom("logcumsumexp", large("row_loops.logcumsumexp", _logcumsumexp),
                      x=_logcumsumexp_vjp, complex=ANALYTIC, scans="logaddexp", axis="keep")
# fmt: on
