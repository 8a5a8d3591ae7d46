"""Fitting a mixture of Gaussians: the logarithm of the posterior, with a Wishart prior."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from bench.gradbench.evaluation import Eval, Input, Instance, compiled, doubles, number

NAMES = ("alpha", "mu", "q", "l")
# So many points at a time: what is kept for them and all components fits the second cache.
BLOCK = 64


def objective(xp: Any, alpha: Any, mu: Any, q: Any, l: Any, x: Any, *, m: int, gamma: float) -> Any:
    """The log-posterior; q and l make the triangular factors of the precision matrices."""
    (n, d), k = x.shape, len(alpha)
    packed = xp.concatenate([xp.exp(q), l, xp.zeros_like(q[:, :1])], axis=1)
    factors = packed[:, places(d)]
    # (x - mu) in all factors at once: one product of matrices, and the factors' own means off it.
    means = xp.reshape(xp.sum(factors * mu[:, None, :], axis=2), (k * d,))
    z = xp.reshape(x @ xp.reshape(factors, (k * d, d)).T - means, (n, k, d))
    inner = alpha + xp.sum(q, axis=1) - 0.5 * xp.sum(z * z, axis=2)
    likelihood = xp.sum(xp.logsumexp(inner, 1)) - n * xp.logsumexp(alpha, 0)
    squares = xp.sum(xp.exp(2.0 * q)) + xp.sum(l * l)
    prior = m * xp.sum(q) - 0.5 * gamma**2 * squares
    return likelihood + prior + constant(n, d, k, m, gamma)


@lru_cache
def places(d: int) -> np.ndarray:
    """Return where each element of a factor stands among the diagonal, the rest, and a zero.

    The part below the diagonal is stored column by column.
    """
    found = np.full((d, d), d + d * (d - 1) // 2)
    np.fill_diagonal(found, np.arange(d))
    columns, rows = np.triu_indices(d, 1)
    found[rows, columns] = d + np.arange(len(rows))
    return found


@compiled
def constant(n, d, k, m, gamma):
    """Return what depends on no parameter: the normalizations of the Gaussians and the prior."""
    freedom = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(d):
        log_gamma += math.lgamma(0.5 * (freedom - j))
    prior = freedom * d * math.log(gamma / math.sqrt(2.0)) - log_gamma
    return k * prior - 0.5 * n * d * math.log(2.0 * math.pi)


def read(given: Input) -> Instance:
    """The parameters; the points."""
    k, d = given["k"], given["d"]
    shapes = {"l": (k, d * (d - 1) // 2)}  # an empty list has no shape of its own
    inputs = [doubles(given[name]) for name in NAMES]
    inputs = [x.reshape(shapes.get(name, x.shape)) for name, x in zip(NAMES, inputs)]
    return Instance(
        tuple(inputs), (doubles(given["x"]),), {"m": given["m"], "gamma": float(given["gamma"])}
    )


def generate(rng: np.random.Generator, d: int, k: int, n: int) -> dict[str, Any]:
    """As GradBench draws them."""
    return {
        "d": d, "k": k, "n": n, "m": 0, "gamma": 1.0,
        "x": rng.standard_normal((n, d)).tolist(),
        "alpha": rng.standard_normal(k).tolist(),
        "mu": rng.random((k, d)).tolist(),
        "q": rng.standard_normal((k, d)).tolist(),
        "l": rng.standard_normal((k, d * (d - 1) // 2)).tolist(),
    }  # fmt: skip


@compiled
def _factors(q, l):
    k, d = q.shape
    factors = np.zeros((k, d, d))
    for j in range(k):
        place = 0
        for b in range(d):
            factors[j, b, b] = math.exp(q[j, b])
            for a in range(b + 1, d):
                factors[j, a, b] = l[j, place]
                place += 1
    return factors


@compiled
def _block(alpha, mu, q, factors, columns, start, z, inner):
    """Fill in z and the shares of the components for a block of points; add up their logarithms."""
    d, n = columns.shape
    k, size = len(alpha), min(BLOCK, n - start)
    for j in range(k):
        bias = alpha[j]
        for a in range(d):
            bias += q[j, a]
        for i in range(size):
            inner[j, i] = bias
        for a in range(d):
            for i in range(size):
                z[j, a, i] = 0.0
            for b in range(a + 1):
                factor, mean = factors[j, a, b], mu[j, b]
                for i in range(size):
                    z[j, a, i] += factor * (columns[b, start + i] - mean)
            for i in range(size):
                inner[j, i] -= 0.5 * z[j, a, i] * z[j, a, i]
    total = 0.0
    for i in range(size):
        most, share = -np.inf, 0.0
        for j in range(k):
            most = max(most, inner[j, i])
        for j in range(k):
            inner[j, i] = math.exp(inner[j, i] - most)
            share += inner[j, i]
        for j in range(k):
            inner[j, i] /= share
        total += most + math.log(share)
    return total


@compiled
def _exponentials(alpha):
    found = np.empty(len(alpha))
    for j in range(len(alpha)):
        found[j] = math.exp(alpha[j])
    return found


@compiled
def primal_by_hand(alpha, mu, q, l, x, m, gamma):
    """`objective`, as one writes it for speed."""
    (n, d), k = x.shape, len(alpha)
    factors = _factors(q, l)
    z, inner = np.empty((k, d, BLOCK)), np.empty((k, BLOCK))
    columns = np.ascontiguousarray(x.T)
    total = constant(n, d, k, m, gamma)
    for start in range(0, n, BLOCK):
        total += _block(alpha, mu, q, factors, columns, start, z, inner)
    total -= n * math.log(_exponentials(alpha).sum())
    return total + m * q.sum() - 0.5 * gamma**2 * np.square(factors).sum()


@compiled
def gradient_by_hand(alpha, mu, q, l, x, m, gamma):
    """Its derivative, as one writes it for speed."""
    (n, d), k = x.shape, len(alpha)
    factors = _factors(q, l)
    z, inner = np.empty((k, d, BLOCK)), np.empty((k, BLOCK))
    columns = np.ascontiguousarray(x.T)
    g_factors, g_z, shares = np.zeros((k, d, d)), np.zeros((k, d)), np.zeros(k)
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        _block(alpha, mu, q, factors, columns, start, z, inner)
        for j in range(k):
            for i in range(size):
                shares[j] += inner[j, i]
            for a in range(d):
                pull = 0.0
                for i in range(size):
                    z[j, a, i] *= inner[j, i]
                    pull += z[j, a, i]
                g_z[j, a] += pull
                for b in range(a + 1):
                    total, mean = 0.0, mu[j, b]
                    for i in range(size):
                        total += z[j, a, i] * (columns[b, start + i] - mean)
                    g_factors[j, a, b] -= total
    weights = _exponentials(alpha)
    g_alpha, share = np.empty(k), n / weights.sum()
    for j in range(k):
        g_alpha[j] = shares[j] - share * weights[j]
    g_mu, g_q, g_l = np.zeros((k, d)), np.empty((k, d)), np.empty(l.shape)
    for j in range(k):
        place = 0
        for b in range(d):
            for a in range(b, d):
                g_mu[j, b] += factors[j, a, b] * g_z[j, a]
            diagonal = factors[j, b, b]
            g_q[j, b] = (g_factors[j, b, b] - gamma**2 * diagonal) * diagonal + shares[j] + m
            for a in range(b + 1, d):
                g_l[j, place] = g_factors[j, a, b] - gamma**2 * l[j, place]
                place += 1
    return g_alpha, g_mu, g_q, g_l


def shown(value: Any, given: Input) -> dict[str, Any]:
    """Show the gradient by the names of the parameters."""
    return {name: x.tolist() for name, x in zip(NAMES, value)}


EVAL = Eval(
    "gmm", ("objective", "jacobian"), objective, read, generate, primal_by_hand, gradient_by_hand,
    shown=(number, shown),
    standard={"d": 10, "k": 25, "n": 1000}, small={"d": 3, "k": 2, "n": 70},
)  # fmt: skip
