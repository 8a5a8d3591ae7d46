"""Adjoints of some programs as a person writes them: value first, then the gradients."""

import math

import numpy as np
from numba import njit


@njit
def rosen(x):
    """Value and gradient in one loop."""
    s, g = 0.0, np.zeros(len(x))
    for i in range(len(x) - 1):
        a, b = x[i + 1] - x[i] * x[i], 1.0 - x[i]
        s += 100.0 * a * a + b * b
        g[i] -= 400.0 * a * x[i] + 2.0 * b
        g[i + 1] += 200.0 * a
    return s, g


@njit
def gmm(alphas, means, icf, x):
    """Value and gradients; what a point needs is computed where it stands."""
    (n, d), k = x.shape, len(means)
    scale, bias, inner, off = np.empty((k, d)), np.empty(k), np.empty(k), np.empty((k, d))
    g_alphas, g_means, g_icf = np.zeros(k), np.zeros((k, d)), np.zeros((k, d))
    g_x = np.zeros((n, d))
    for j in range(k):
        bias[j] = alphas[j]
        for a in range(d):
            scale[j, a] = math.exp(icf[j, a])
            bias[j] += icf[j, a]
    total = 0.0
    for i in range(n):
        best = -np.inf
        for j in range(k):
            square = 0.0
            for a in range(d):
                off[j, a] = (x[i, a] - means[j, a]) * scale[j, a]
                square += off[j, a] * off[j, a]
            inner[j] = bias[j] - 0.5 * square
            if inner[j] > best:
                best = inner[j]
        s = 0.0
        for j in range(k):
            inner[j] = math.exp(inner[j] - best)
            s += inner[j]
        total += best + math.log(s)
        for j in range(k):
            w = inner[j] / s
            g_alphas[j] += w
            for a in range(d):
                pull = w * off[j, a]
                g_means[j, a] += pull * scale[j, a]
                g_x[i, a] -= pull * scale[j, a]
                g_icf[j, a] += w - pull * off[j, a]
    return total, g_alphas, g_means, g_icf, g_x


@njit
def chol(a, y):
    """Value and gradients; the factor is at hand when the loops run backwards."""
    n = len(a)
    low, z = a.copy(), y.copy()
    for j in range(n):
        s = low[j, j]
        for k in range(j):
            s -= low[j, k] * low[j, k]
        low[j, j] = math.sqrt(s)
        for i in range(j + 1, n):
            t = low[i, j]
            for k in range(j):
                t -= low[i, k] * low[j, k]
            low[i, j] = t / low[j, j]
    square, log_det = 0.0, 0.0
    for i in range(n):
        t = z[i]
        for k in range(i):
            t -= low[i, k] * z[k]
        z[i] = t / low[i, i]
        square += z[i] * z[i]
        log_det += math.log(low[i, i])
    g, g_y = np.zeros((n, n)), z.copy()
    for i in range(n - 1, -1, -1):
        t = g_y[i] / low[i, i]
        g[i, i] = 1.0 / low[i, i] - t * z[i]
        g_y[i] = t
        for k in range(i):
            g[i, k] = -t * z[k]
            g_y[k] -= t * low[i, k]
    for j in range(n - 1, -1, -1):
        pivot, own = low[j, j], g[j, j]
        for i in range(n - 1, j, -1):
            t = g[i, j] / pivot
            own -= t * low[i, j]
            g[i, j] = t
            for k in range(j):
                g[i, k] -= t * low[j, k]
                g[j, k] -= t * low[i, k]
        g[j, j] = 0.5 * own / pivot
        for k in range(j):
            g[j, k] -= 2.0 * g[j, j] * low[j, k]
    return 0.5 * square + log_det, g, g_y


@njit
def stencil(u0, kappa, steps):
    """Value and gradients; the field of every step is kept."""
    n, m = u0.shape
    fields = np.empty((steps + 1, n, m))
    fields[0] = u0
    for t in range(steps):
        u, v = fields[t], fields[t + 1]
        v[0], v[n - 1] = u[0], u[n - 1]
        v[:, 0], v[:, m - 1] = u[:, 0], u[:, m - 1]
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                lap = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                v[i, j] = u[i, j] + kappa * lap * (1.0 + 0.1 * u[i, j] * u[i, j])
    s, g, g_kappa = 0.0, 2.0 * fields[steps], 0.0
    before = np.empty((n, m))
    for i in range(n):
        for j in range(m):
            s += fields[steps, i, j] * fields[steps, i, j]
    for t in range(steps - 1, -1, -1):
        u = fields[t]
        before[:] = 0.0
        before[0], before[n - 1] = g[0], g[n - 1]
        before[:, 0], before[:, m - 1] = g[:, 0], g[:, m - 1]
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                x, pull = u[i, j], g[i, j]
                lap = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * x
                factor = 1.0 + 0.1 * x * x
                g_kappa += pull * lap * factor
                g_lap = pull * kappa * factor
                before[i, j] += pull * (1.0 + kappa * lap * 0.2 * x) - 4.0 * g_lap
                before[i - 1, j] += g_lap
                before[i + 1, j] += g_lap
                before[i, j - 1] += g_lap
                before[i, j + 1] += g_lap
        g, before = before, g
    return s, g, g_kappa


@njit
def hinge(w, x, labels):
    """Value and gradients; only the class that is ahead has an adjoint."""
    (n, d), k = x.shape, len(w)
    loss, g_w, g_x = 0.0, np.zeros((k, d)), np.zeros((n, d))
    for i in range(n):
        best, ahead, own = -1e300, -1, labels[i]
        right = 0.0
        for c in range(k):
            s = 0.0
            for a in range(d):
                s += w[c, a] * x[i, a]
            if c == own:
                right = s
            elif s > best:
                best, ahead = s, c
        margin = 1.0 + best - right
        if margin > 0.0 and ahead >= 0:
            loss += margin * margin
            pull = 2.0 * margin / n
            for a in range(d):
                g_w[ahead, a] += pull * x[i, a]
                g_w[own, a] -= pull * x[i, a]
                g_x[i, a] = pull * (w[ahead, a] - w[own, a])
    return loss / n, g_w, g_x
