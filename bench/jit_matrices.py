"""Small matrices in compiled functions: products, systems, and a Kalman filter's gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.check import VALUE_TOLERANCE, Disagreement
from bench.gradbench.evaluation import Call, as_numpy, compiled, largest_difference
from bench.problem import SEED, Unsupported
from bench.report import Row, ratios_to, unsteady
from bench.sides.side import Side
from bench.timing import QUICK, Effort, Figure, interleave

NAMES = ("tapegrad", "numba", "jax")
GROUP = "small matrices"
BLOCK = 64  # points that are blended together by hand: their weights stay in the cache
Arrays = tuple[np.ndarray, ...]


def matrices(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time functions of small matrices; Numba's are loops by hand."""
    effort = QUICK if quick else Effort(budget=1.0)
    sides = [side for side in libraries if side.name in NAMES]
    for name, make, by_hand, arrays in problems(10 if quick else 1000, 3 if quick else 100):
        calls: dict[str, Call] = {}
        first: Any = None
        for side in sides:
            try:
                f = by_hand if side.name == "numba" else side.compile(make(side))
            except Unsupported:
                continue
            if f is None:
                continue
            own = [side.array(x) for x in arrays]
            calls[side.name] = lambda f=f, own=own: f(*own)
            value = [np.ravel(as_numpy(x)) for x in parts(f(*own))]
            first = value if first is None else first
            error = max(map(largest_difference, value, first))
            if error > VALUE_TOLERANCE:
                raise Disagreement(f"{name}: {side.name} is off by {error}")
        if calls:
            yield compared(GROUP, name, threads, calls, effort, NAMES[1:])


def compared(
    group: str, name: str, threads: int, calls: dict[str, Call], effort: Effort,
    others: tuple[str, ...],
) -> Row:  # fmt: skip
    """Time calls, interleaved, and compare ours with the others."""
    samples = interleave(calls, effort)
    figures = {side: Figure.of(taken, 1e6) for side, taken in samples.items()}
    ratios, note = ratios_to(figures, *others), unsteady(figures, *others)
    return Row(group, name, threads, "µs", figures, ratios, note=note)


def parts(found: Any) -> tuple[Any, ...]:
    """Return one result or several as a tuple."""
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def problems(times: int, steps: int) -> Iterator[tuple[str, Any, Any, Arrays]]:
    """Yield names, what makes a function of a library, the same by hand, and arguments."""
    rng = np.random.default_rng(SEED)
    a, b = rng.standard_normal((2, times, 3, 3))
    yield f"{times:,} products, 3 × 3", lambda side: lambda a, b: a @ b, _products, (a, b)
    points, bones = 10 * times, 22
    arrays = (
        rng.standard_normal((bones, 3, 4)), rng.standard_normal((4, points)),
        rng.random((bones, points)),
    )  # fmt: skip
    name = f"{points:,} points blended by {bones} matrices, 3 × 4"
    yield name, lambda side: _blending(side.xp), _blended, arrays
    yield f"{name}, gradient", lambda side: _blending_gradient(side), None, arrays
    a, b = rng.standard_normal((4, 4)) + 4.0 * np.eye(4), np.ones((4, 1))
    name = f"{times:,} systems, 4 × 4, one after the other"
    yield name, lambda side: _solving(side.xp, times), _solving_by_hand(times), (a, b)
    arrays = kalman_arrays(steps)
    name = f"Kalman filter, {steps} steps, state 4, gradient"
    yield name, lambda side: side.ad.grad(_kalman(side.xp), argnums=(0, 1, 2)), None, arrays


@compiled
def _products(a: Any, b: Any) -> Any:
    out = np.empty_like(a)
    for t in range(a.shape[0]):
        for i in range(3):
            for j in range(3):
                total = 0.0
                for k in range(3):
                    total += a[t, i, k] * b[t, k, j]
                out[t, i, j] = total
    return out


def _blending(xp: Any) -> Callable[..., Any]:
    """Return the sum of what each matrix makes of a point, weighted."""
    return lambda a, p, w: xp.sum((a @ p) * w[:, None, :], axis=0)


def _blending_gradient(side: Side) -> Callable[..., Any]:
    blend = _blending(side.xp)

    def half_square(a: Any, p: Any, w: Any) -> Any:
        moved = blend(a, p, w)
        return 0.5 * side.xp.sum(moved * moved)

    return side.ad.grad(half_square, argnums=(0, 1, 2))


@compiled
def _blended(a: Any, p: Any, w: Any) -> Any:
    found, rows, columns = np.empty((3, p.shape[1])), np.empty((3, 4, BLOCK)), p.shape[1]
    for start in range(0, columns, BLOCK):
        count = min(BLOCK, columns - start)
        for i in range(3):
            for k in range(4):
                row = rows[i, k]
                row[:] = 0.0
                for t in range(a.shape[0]):
                    factor, weights = a[t, i, k], w[t, start : start + count]
                    for n in range(count):
                        row[n] += factor * weights[n]
            for n in range(count):
                at = start + n
                found[i, at] = (
                    rows[i, 0, n] * p[0, at] + rows[i, 1, n] * p[1, at]
                    + rows[i, 2, n] * p[2, at] + rows[i, 3, n] * p[3, at]
                )  # fmt: skip
    return found


def _solving(xp: Any, times: int) -> Callable[..., Any]:
    def f(a: Any, x: Any) -> Any:
        return xp.loop(times, lambda x: xp.linalg.solve(a * (1.0 + 0.01 * x[0, 0]), x) + 1.0, x)

    return f


def _solving_by_hand(times: int) -> Callable[..., Any]:
    return lambda a, b: _solved(a, b, times)


@compiled
def _solved(a: Any, b: Any, times: int) -> Any:
    x, w = b.copy(), np.empty((4, 4))
    for _ in range(times):
        factor = 1.0 + 0.01 * x[0, 0]
        for i in range(4):
            for j in range(4):
                w[i, j] = a[i, j] * factor
        for c in range(4):
            pivot = c
            for r in range(c + 1, 4):
                if abs(w[r, c]) > abs(w[pivot, c]):
                    pivot = r
            if pivot != c:
                x[c, 0], x[pivot, 0] = x[pivot, 0], x[c, 0]
                for j in range(c, 4):
                    w[c, j], w[pivot, j] = w[pivot, j], w[c, j]
            for r in range(c + 1, 4):
                scale = w[r, c] / w[c, c]
                x[r, 0] -= scale * x[c, 0]
                for j in range(c + 1, 4):
                    w[r, j] -= scale * w[c, j]
        for r in range(3, -1, -1):
            for k in range(r + 1, 4):
                x[r, 0] -= w[r, k] * x[k, 0]
            x[r, 0] /= w[r, r]
        x += 1.0
    return x


def _kalman(xp: Any) -> Callable[..., Any]:
    """Return the log-likelihood of a Kalman filter, a scan over what was measured."""

    def f(a: Any, process: Any, noise: Any, h: Any, measured: Any) -> Any:
        q, r = xp.diag(xp.exp(process)), xp.diag(xp.exp(noise))

        def step(carry: Any, y: Any) -> Any:
            state, p = carry
            state = a @ state
            p = a @ p @ a.T + q
            s = h @ p @ h.T + r
            gain = xp.linalg.solve(s, h @ p).T
            off = y - h @ state
            total = -0.5 * (off @ xp.linalg.solve(s, off) + xp.linalg.slogdet(s)[1])
            return (state + gain @ off, p - gain @ h @ p), total

        start = 0.0 * process, xp.diag(0.0 * process + 1.0)
        return xp.sum(xp.scan(step, start, measured)[1])

    return f


def kalman_arrays(steps: int, state: int = 4, seen: int = 2) -> Arrays:
    """Return the dynamics, the noise, how the state is seen, and what was measured."""
    rng = np.random.default_rng(SEED)
    a = 0.9 * np.linalg.qr(rng.standard_normal((state, state)))[0]
    noise = rng.uniform(-1.0, 0.0, state), rng.uniform(-1.0, 0.0, seen)
    return a, *noise, rng.standard_normal((seen, state)), rng.standard_normal((steps, seen))
