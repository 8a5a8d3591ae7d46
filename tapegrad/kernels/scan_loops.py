"""Loops along one dimension of small arrays that are not made of rows (see `axis_codegen`).

Running sums and products are no reductions, so that a generated loop cannot express them.  What
each buys over NumPy and the rule, in rows of `bench eager` on 1000 elements: `.clone` 7 times,
`cumsum` 11, its gradient 7, the gradient of `prod` 3; of `bench ops` on 32 x 32, `cumprod` 4 and
with its gradient 24, `logcumsumexp` 2 and 9.  `tests/kernels/sweep/test_axis_adjoints.py`
holds them to the rules.

Each takes the length of a row, how many elements lie between its elements (`inner`), and how many
such blocks of rows there are (`outer`); then addresses; and last a number that the operation may
have.  All arrays are float64 in C order.  What an adjoint finds is written, not added: the compiled
sweep adds.  A zero adjoint contributes zero, as in the rules.
"""

import math

from tapegrad.kernels import vmath
from tapegrad.kernels.memory import f8
from tapegrad.kernels.memory import select_f8 as select


def clone(n, inner, outer, x_at, out_at, extra, p6, p7):
    """A copy."""
    x, out = f8(x_at), f8(out_at)
    for j in range(n):
        out[j] = x[j]
    return 0


def cumsum(n, inner, outer, x_at, out_at, extra, p6, p7):
    """The sums of the elements so far."""
    x, out = f8(x_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            total = 0.0
            for j in range(n):
                at = (o * n + j) * inner + i
                total += x[at]
                out[at] = total
    return 0


def cumsum_adjoint(n, inner, outer, g_at, x_at, y_at, out_at, extra):
    """The sums of the elements from here to the end."""
    g, out = f8(g_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            total = 0.0
            for j in range(n - 1, -1, -1):
                at = (o * n + j) * inner + i
                total += g[at]
                out[at] = total
    return 0


def cumprod(n, inner, outer, x_at, out_at, extra, p6, p7):
    """The products of the elements so far."""
    x, out = f8(x_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            total = 1.0
            for j in range(n):
                at = (o * n + j) * inner + i
                total *= x[at]
                out[at] = total
    return 0


def cumprod_adjoint(n, inner, outer, g_at, x_at, y_at, out_at, extra):
    """The product of those before, times what those after make of the adjoint."""
    g, x, y, out = f8(g_at), f8(x_at), f8(y_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            carried = 0.0
            for j in range(n - 1, -1, -1):
                at = (o * n + j) * inner + i
                after = g[at] + carried
                before = y[at - inner] if j else 1.0
                out[at] = select(after != 0.0, after * before, 0.0)
                carried = select(after != 0.0, after * x[at], 0.0)
    return 0


def logcumsumexp(n, inner, outer, x_at, out_at, extra, p6, p7):
    """The logarithms of the sums of the exponentials so far, of all rows side by side."""
    x, out = f8(x_at), f8(out_at)
    for j in range(n):
        for o in range(outer):
            for i in range(inner):
                at = (o * n + j) * inner + i
                out[at] = vmath.logaddexp(out[at - inner], x[at]) if j else x[at]
    return 0


def logcumsumexp_adjoint(n, inner, outer, g_at, x_at, y_at, out_at, extra):
    """exp(x) times the sum of g / exp(y) from here on, in factors that are at most one."""
    g, x, y, out = f8(g_at), f8(x_at), f8(y_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            carried = 0.0
            for j in range(n - 1, -1, -1):
                at = (o * n + j) * inner + i
                after = g[at] + carried
                out[at] = select(after != 0.0, after * vmath.exp(x[at] - y[at]), 0.0)
                before = y[at - inner] if j else y[at]
                factor = vmath.exp(before - y[at])
                if abs(y[at]) == math.inf:
                    factor = 1.0 if before == y[at] else 0.0
                carried = select(after != 0.0, after * factor, 0.0)
    return 0


def prod_adjoint(n, inner, outer, g_at, x_at, y_at, out_at, extra):
    """The product of the others: of those behind an element, then of those before it."""
    g, x, out = f8(g_at), f8(x_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            behind = 1.0
            for j in range(n - 1, -1, -1):
                at = (o * n + j) * inner + i
                out[at] = behind
                behind *= x[at]
            before, weight = 1.0, g[o * inner + i]
            for j in range(n):
                at = (o * n + j) * inner + i
                out[at] = select(weight != 0.0, weight * (before * out[at]), 0.0)
                before *= x[at]
    return 0
