"""Bundle adjustment: where cameras see points, less where they were seen, and its sparse Jacobian.

A camera is eleven numbers: rotation vector, centre, focal length, principal point and two
coefficients of radial distortion. An error depends on one camera, one point and one weight: 15
numbers. The Jacobian is a block of two such rows for each observation, and a diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.gradbench.evaluation import Eval, Input, Instance, compiled, doubles

CAMERA, POINT = 11, 3
WIDTH = CAMERA + POINT + 1


def errors(xp: Any, feature: Any, *parts: Any) -> tuple[Any, Any]:
    """Both errors of an observation, from its 15 numbers; each may be a vector of many's."""
    r1, r2, r3, c1, c2, c3, focal, u, v, k1, k2, p1, p2, p3, weight = parts
    y1, y2, y3 = rotated(xp, (r1, r2, r3), (p1 - c1, p2 - c2, p3 - c3))
    a, b = y1 / y3, y2 / y3
    square = a * a + b * b
    scale = focal * (1.0 + square * (k1 + square * k2))
    seen_u, seen_v = feature[:, 0], feature[:, 1]
    return weight * (a * scale + u - seen_u), weight * (b * scale + v - seen_v)


def rotated(xp: Any, r: Any, x: Any) -> tuple[Any, Any, Any]:
    """A vector turned around another, by as much as that is long (Rodrigues' formula)."""
    square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
    turns = square > 0.0
    angle = xp.sqrt(xp.where(turns, square, 1.0))
    # Of a vector that is zero the first order remains: x + r × x.
    c = xp.where(turns, xp.cos(angle), 1.0)
    s = xp.where(turns, xp.sin(angle) / angle, 1.0)
    t = (1.0 - c) * (r[0] * x[0] + r[1] * x[1] + r[2] * x[2]) / (angle * angle)
    return (
        x[0] * c + (r[1] * x[2] - r[2] * x[1]) * s + r[0] * t,
        x[1] * c + (r[2] * x[0] - r[0] * x[2]) * s + r[1] * t,
        x[2] * c + (r[0] * x[1] - r[1] * x[0]) * s + r[2] * t,
    )


def gathered(cameras: Any, points: Any, weights: Any, camera: Any, point: Any) -> tuple[Any, ...]:
    """The 15 numbers of every observation, as 15 vectors."""
    return (*cameras[camera].T, *points[point].T, weights)


def objective(
    xp: Any, cameras: Any, points: Any, weights: Any, camera: Any, point: Any, feature: Any
) -> tuple[Any, Any]:
    """The errors of all observations, two each, and how far the weights are from one."""
    parts = gathered(cameras, points, weights, camera, point)
    return xp.stack(errors(xp, feature, *parts), 1), 1.0 - weights * weights


def jacobian(ad: Any, xp: Any, f: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return the function to the blocks, observation by row by column, and the diagonal.

    An error depends on the numbers of its own observation alone, so the gradient of the sum of all
    first errors holds the first rows of all blocks.
    """

    def blocks(
        cameras: Any, points: Any, weights: Any, camera: Any, point: Any, feature: Any
    ) -> tuple[Any, Any]:
        parts = gathered(cameras, points, weights, camera, point)
        rows = []
        for which in range(2):
            total = lambda *parts, which=which: xp.sum(errors(xp, feature, *parts)[which])
            rows += ad.grad(total, argnums=tuple(range(WIDTH)))(*parts)
        return xp.reshape(xp.stack(rows, 1), (-1, 2, WIDTH)), -2.0 * weights

    return blocks


def read(given: Input) -> Instance:
    """Cameras, points and weights; who sees what, and where. One of each comes, to be repeated."""
    n, m, p = given["n"], given["m"], given["p"]
    cameras, points = np.tile(doubles(given["cam"]), (n, 1)), np.tile(doubles(given["x"]), (m, 1))
    feature = np.tile(doubles(given["feat"]), (p, 1))
    seen = np.arange(p)
    return Instance((cameras, points, np.full(p, float(given["w"]))), (seen % n, seen % m, feature))


def generate(rng: np.random.Generator, n: int, m: int, p: int) -> dict[str, Any]:
    """A camera that looks at a point, both repeated, as in GradBench's files."""
    rotation, centre = rng.normal(0.0, 0.5, 3), rng.normal(0.0, 1.0, 3)
    inner = [rng.uniform(300, 500), *rng.normal(0.0, 5.0, 2), *rng.normal(0.0, 0.05, 2)]
    return {
        "n": n, "m": m, "p": p,
        "cam": [*rotation.tolist(), *centre.tolist(), *map(float, inner)],
        "x": (centre + np.array([0.3, -0.2, 5.0])).tolist(),
        "w": float(rng.uniform(0.3, 0.9)),
        "feat": rng.uniform(0.0, 800.0, 2).tolist(),
    }  # fmt: skip


@compiled
def _cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@compiled
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled
def _turn(r):
    """Return the factors of x, r × x and r (r · x) in the rotated x."""
    square = _dot(r, r)
    if square == 0.0:
        return 1.0, 1.0, 0.0
    angle = math.sqrt(square)
    cosine = math.cos(angle)
    return cosine, math.sin(angle) / angle, (1.0 - cosine) / square


@compiled
def _moved(r, x, c, s, t):
    """Return x rotated, from those factors."""
    cross, along = _cross(r, x), t * _dot(r, x)
    return (
        c * x[0] + s * cross[0] + along * r[0],
        c * x[1] + s * cross[1] + along * r[1],
        c * x[2] + s * cross[2] + along * r[2],
    )


@compiled
def _before(cam, point):
    """Return the rotation vector, and the point as seen from the camera's centre."""
    return (cam[0], cam[1], cam[2]), (point[0] - cam[3], point[1] - cam[4], point[2] - cam[5])


@compiled
def primal_by_hand(cameras, points, weights, camera, point, feature):
    """`objective`, as one writes it for speed."""
    p = len(weights)
    found, off = np.empty((p, 2)), np.empty(p)
    for i in range(p):
        cam, w = cameras[camera[i]], weights[i]
        r, x = _before(cam, points[point[i]])
        c, s, t = _turn(r)
        y = _moved(r, x, c, s, t)
        u, v = y[0] / y[2], y[1] / y[2]
        square = u * u + v * v
        scale = cam[6] * (1.0 + square * (cam[9] + square * cam[10]))
        found[i, 0] = w * (u * scale + cam[7] - feature[i, 0])
        found[i, 1] = w * (v * scale + cam[8] - feature[i, 1])
        off[i] = 1.0 - w * w
    return found, off


@compiled
def gradient_by_hand(cameras, points, weights, camera, point, feature):
    """Its derivative, as one writes it for speed."""
    p = len(weights)
    blocks = np.empty((p, 2, WIDTH))
    for i in range(p):
        cam, w = cameras[camera[i]], weights[i]
        r, x = _before(cam, points[point[i]])
        c, s, t = _turn(r)
        y, cross, along = _moved(r, x, c, s, t), _cross(r, x), _dot(r, x)
        # The factors' derivatives by the angle, over the angle, as one vector.
        square = _dot(r, r)
        over = 1.0 / square if square > 0.0 else 0.0
        ds, dt = (c - s) * over, (s - 2.0 * t) * over
        base = (
            ds * cross[0] + dt * along * r[0] - s * x[0],
            ds * cross[1] + dt * along * r[1] - s * x[1],
            ds * cross[2] + dt * along * r[2] - s * x[2],
        )
        seen = y[0] / y[2], y[1] / y[2]
        square = seen[0] * seen[0] + seen[1] * seen[1]
        stretch = 1.0 + square * (cam[9] + square * cam[10])
        slope = 2.0 * (cam[9] + 2.0 * square * cam[10])
        factor = w * cam[6] / y[2]
        for row in range(2):
            out, at = blocks[i, row], seen[row]
            # The error by the point before the camera, by way of where it is seen.
            across = factor * (at * seen[0] * slope + (stretch if row == 0 else 0.0))
            down = factor * (at * seen[1] * slope + (stretch if row == 1 else 0.0))
            pull = across, down, -(across * seen[0] + down * seen[1])
            # Back through the rotation: to its vector, and turned back to the point.
            lean, twist, on = _dot(pull, base), _cross(x, pull), _dot(pull, r)
            shift = _moved((-r[0], -r[1], -r[2]), pull, c, s, t)
            for e in range(3):
                out[e] = lean * r[e] + s * twist[e] + t * (pull[e] * along + on * x[e])
                out[3 + e], out[CAMERA + e] = -shift[e], shift[e]
            out[6] = w * at * stretch
            out[7], out[8] = (w, 0.0) if row == 0 else (0.0, w)
            out[9] = w * cam[6] * at * square
            out[10] = out[9] * square
            out[14] = at * stretch * cam[6] + cam[7 + row] - feature[i, row]
    return blocks, -2.0 * weights


def shown_errors(value: Any, given: Input) -> dict[str, Any]:
    """Show the first observation's errors, of which all are repetitions."""
    found, off = value
    return {
        "reproj_error": {"elements": found[0].tolist(), "repeated": len(found)},
        "w_err": {"element": float(off[0]), "repeated": len(off)},
    }


def shown_jacobian(value: Any, given: Input) -> dict[str, Any]:
    """Show the first block and the last element of the sparse matrix, in compressed rows.

    Where its elements stand depends on the sizes alone.
    """
    blocks, diagonal = value
    n, m, p = given["n"], given["m"], given["p"]
    after = CAMERA * n + POINT * m
    row = [*range(CAMERA), *range(CAMERA * n, CAMERA * n + POINT), after]
    starts = np.concatenate([np.arange(0, 2 * WIDTH * p, WIDTH), 2 * WIDTH * p + np.arange(p + 1)])
    return {
        "rows": [*starts[: 2 * WIDTH].tolist(), int(starts[-1])],
        "cols": [*row, *row, after + p - 1],
        "vals": [*blocks[0].ravel().tolist(), float(diagonal[-1])],
    }


EVAL = Eval(
    "ba", ("objective", "jacobian"), objective, read, generate, primal_by_hand, gradient_by_hand,
    shown=(shown_errors, shown_jacobian),
    standard={"n": 49, "m": 7776, "p": 31843}, small={"n": 2, "m": 5, "p": 12},
    derivative=jacobian,
)  # fmt: skip
