"""Operations along one dimension of small arrays, and their adjoints.

Each takes the length of a row, how many elements lie between its elements (`inner`), and how many
such blocks of rows there are (`outer`); then addresses; and last a number that the operation may
have.  All arrays are float64 in C order.  What an adjoint finds is written, not added: the walk
adds.  A zero adjoint contributes zero, as in the rules.
"""

import math

from tapegrad.kernels import vmath
from tapegrad.kernels.flags import scalar
from tapegrad.kernels.memory import f8
from tapegrad.kernels.memory import plus_f8 as plus
from tapegrad.kernels.memory import select_f8 as select


@scalar
def sum_of(n, step, x_at):
    """The sum of a row."""
    x, total = f8(x_at), 0.0
    for j in range(n):
        total = plus(total, x[j * step])
    return total


@scalar
def top_of(n, step, x_at):
    """The largest element of a row; NaN if there is one."""
    x = f8(x_at)
    found = x[0]
    for j in range(1, n):
        v = x[j * step]
        found = select((v > found) | (v != v), v, found)
    return found


@scalar
def exponentials(n, step, x_at, top):
    """The sum of exp(x - top)."""
    x, total = f8(x_at), 0.0
    for j in range(n):
        total = plus(total, vmath.exp(x[j * step] - top))
    return total


@scalar
def squares(n, step, x_at, centre):
    """The sum of the squared distances from a centre."""
    x, total = f8(x_at), 0.0
    for j in range(n):
        d = x[j * step] - centre
        total = plus(total, d * d)
    return total


@scalar
def variance(n, step, x_at, extra):
    """The variance of a row; `extra` is taken from the count."""
    return squares(n, step, x_at, sum_of(n, step, x_at) / n) / max(n - extra, 0)


@scalar
def strong(g, partial):
    """The strong product."""
    return select(g != 0.0, g * partial, 0.0)


# -- forward -------------------------------------------------------------------------------------


def clone(n, inner, outer, x_at, out_at, extra, p6, p7):
    """A copy."""
    x, out = f8(x_at), f8(out_at)
    for j in range(n):
        out[j] = x[j]
    return 0


def prod(n, inner, outer, x_at, out_at, extra, p6, p7):
    """Products."""
    x, out = f8(x_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            found = 1.0
            for j in range(n):
                found *= x[(o * n + j) * inner + i]
            out[o * inner + i] = found
    return 0


def amax(n, inner, outer, x_at, out_at, extra, p6, p7):
    """Largest elements."""
    out = f8(out_at)
    for o in range(outer):
        for i in range(inner):
            out[o * inner + i] = top_of(n, inner, x_at + 8 * (o * n * inner + i))
    return 0


def amin(n, inner, outer, x_at, out_at, extra, p6, p7):
    """Smallest elements."""
    x, out = f8(x_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            found = x[o * n * inner + i]
            for j in range(1, n):
                v = x[(o * n + j) * inner + i]
                found = select((v < found) | (v != v), v, found)
            out[o * inner + i] = found
    return 0


def norm(n, inner, outer, x_at, out_at, extra, p6, p7):
    """Euclidean norms."""
    out = f8(out_at)
    for o in range(outer):
        for i in range(inner):
            found = squares(n, inner, x_at + 8 * (o * n * inner + i), 0.0)
            out[o * inner + i] = math.sqrt(found)
    return 0


def var(n, inner, outer, x_at, out_at, extra, p6, p7):
    """Variances."""
    out = f8(out_at)
    for o in range(outer):
        for i in range(inner):
            out[o * inner + i] = variance(n, inner, x_at + 8 * (o * n * inner + i), extra)
    return 0


def std(n, inner, outer, x_at, out_at, extra, p6, p7):
    """Standard deviations."""
    out = f8(out_at)
    for o in range(outer):
        for i in range(inner):
            found = variance(n, inner, x_at + 8 * (o * n * inner + i), extra)
            out[o * inner + i] = math.sqrt(found)
    return 0


def logsumexp(n, inner, outer, x_at, out_at, extra, p6, p7):
    """Logarithms of sums of exponentials."""
    out = f8(out_at)
    for o in range(outer):
        for i in range(inner):
            at = x_at + 8 * (o * n * inner + i)
            top = top_of(n, inner, at)
            if not abs(top) < math.inf:
                top = 0.0
            out[o * inner + i] = vmath.log(exponentials(n, inner, at, top)) + top
    return 0


def softmax(n, inner, outer, x_at, out_at, extra, p6, p7):
    """Exponentials, scaled to the sum 1."""
    x, out = f8(x_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            first = o * n * inner + i
            top = top_of(n, inner, x_at + 8 * first)
            total = 0.0
            for j in range(n):
                e = vmath.exp(x[first + j * inner] - top)
                out[first + j * inner] = e
                total = plus(total, e)
            for j in range(n):
                out[first + j * inner] /= total
    return 0


def log_softmax(n, inner, outer, x_at, out_at, extra, p6, p7):
    """The logarithm of `softmax`."""
    x, out = f8(x_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            first = o * n * inner + i
            top = top_of(n, inner, x_at + 8 * first)
            rest = vmath.log(exponentials(n, inner, x_at + 8 * first, top))
            for j in range(n):
                out[first + j * inner] = (x[first + j * inner] - top) - rest
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


# -- adjoints ------------------------------------------------------------------------------------


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
                out[at] = strong(weight, before * out[at])
                before *= x[at]
    return 0


def amax_adjoint(n, inner, outer, g_at, x_at, y_at, out_at, extra):
    """Divided among the elements that equal the extreme."""
    g, x, y, out = f8(g_at), f8(x_at), f8(y_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            weight, extreme = g[o * inner + i], y[o * inner + i]
            first, hits = o * n * inner + i, 0.0
            for j in range(n):
                hits = plus(hits, select(x[first + j * inner] == extreme, 1.0, 0.0))
            for j in range(n):
                hit = select(x[first + j * inner] == extreme, 1.0, 0.0)
                out[first + j * inner] = strong(weight, hit / hits)
    return 0


amin_adjoint = amax_adjoint


def norm_adjoint(n, inner, outer, g_at, x_at, y_at, out_at, extra):
    """x by its norm; nothing at 0."""
    g, x, y, out = f8(g_at), f8(x_at), f8(y_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            weight, size = g[o * inner + i], y[o * inner + i]
            for j in range(n):
                at = (o * n + j) * inner + i
                out[at] = strong(weight, select(size == 0.0, 0.0, x[at] / size))
    return 0


@scalar
def deviate(n, inner, x_at, out_at, weight, scale):
    """The distances from the mean, scaled, times a weight."""
    x, out = f8(x_at), f8(out_at)
    centre = sum_of(n, inner, x_at) * (1.0 / n)
    for j in range(n):
        out[j * inner] = strong(weight, scale * (x[j * inner] - centre))


@scalar
def by_count(n, extra):
    """1 / (n - correction)."""
    return 1.0 / (n - extra) if n > extra else math.nan


def var_adjoint(n, inner, outer, g_at, x_at, y_at, out_at, extra):
    """Twice the distances from the mean, by the count."""
    g, scale = f8(g_at), 2.0 * by_count(n, extra)
    for o in range(outer):
        for i in range(inner):
            first = 8 * (o * n * inner + i)
            deviate(n, inner, x_at + first, out_at + first, g[o * inner + i], scale)
    return 0


def std_adjoint(n, inner, outer, g_at, x_at, y_at, out_at, extra):
    """The distances from the mean, by the count and the deviation; nothing where that is 0."""
    g, y, scale = f8(g_at), f8(y_at), by_count(n, extra)
    for o in range(outer):
        for i in range(inner):
            first, size = 8 * (o * n * inner + i), y[o * inner + i]
            weight = strong(g[o * inner + i], select(size == 0.0, 0.0, 1.0 / size))
            deviate(n, inner, x_at + first, out_at + first, weight, scale)
    return 0


def logsumexp_adjoint(n, inner, outer, g_at, x_at, y_at, out_at, extra):
    """The weights of the softmax."""
    g, x, y, out = f8(g_at), f8(x_at), f8(y_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            weight, size = g[o * inner + i], y[o * inner + i]
            for j in range(n):
                at = (o * n + j) * inner + i
                out[at] = strong(weight, vmath.exp(x[at] - size))
    return 0


def softmax_adjoint(n, inner, outer, g_at, x_at, y_at, out_at, extra):
    """(g - <g, y>) * y."""
    g, y, out = f8(g_at), f8(y_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            first, total = o * n * inner + i, 0.0
            for j in range(n):
                total = plus(total, strong(g[first + j * inner], y[first + j * inner]))
            for j in range(n):
                at = first + j * inner
                out[at] = strong(g[at] - total, y[at])
    return 0


def log_softmax_adjoint(n, inner, outer, g_at, x_at, y_at, out_at, extra):
    """g - sum(g) * exp(y)."""
    g, y, out = f8(g_at), f8(y_at), f8(out_at)
    for o in range(outer):
        for i in range(inner):
            first = o * n * inner + i
            total = sum_of(n, inner, g_at + 8 * first)
            for j in range(n):
                at = first + j * inner
                out[at] = g[at] - strong(total, vmath.exp(y[at]))
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
