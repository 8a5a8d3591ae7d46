"""Hand tracking: how far a posed hand is from measured points, and the dense Jacobian of that.

The 26 numbers of a pose are a rotation vector, a translation, and four angles for each finger: two
of its second bone, one of the third and one of the fourth. A bone turns with its parent; a vertex
is moved by the mean of its bones' transforms. A point belongs to a vertex or, if there are `us`,
to a place in a triangle, which two coordinates of its own give: their derivatives come first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.gradbench.ba import _cross, _dot, _moved, _turn, rotated
from bench.gradbench.evaluation import Eval, Input, Instance, compiled, doubles

FINGERS, ANGLES, GLOBAL = 5, 4, 6
POSE = GLOBAL + FINGERS * ANGLES
BONES = 2 + 4 * FINGERS  # the wrist, the fingers' and the forearm
STRAIGHT = POSE  # where, behind the pose, the angle of a bone that does not bend is
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def _places() -> np.ndarray:
    """Where in the pose the two angles of each bone are."""
    found = np.full((BONES, 2), STRAIGHT)
    for finger in range(FINGERS):
        bone, angle = 1 + 4 * finger, GLOBAL + ANGLES * finger
        found[bone + 1] = angle, angle + 1
        found[bone + 2 : bone + 4, 0] = angle + 2, angle + 3
    return found


PLACES = _places()


def objective(
    xp: Any, theta: Any, us: Any, base: Any, inverse: Any, positions: Any,
    weights: Any, mirror: Any, points: Any, seen: Any, *, parents: tuple[int, ...],
) -> Any:  # fmt: skip
    """The points less where the hand has them."""
    angles = xp.concatenate([theta, 0.0 * theta[:1]])[PLACES]
    turned = base[:, :, :3] @ bent(xp, angles[:, 0], angles[:, 1])
    relatives = xp.concatenate([turned, base[:, :, 3:]], 2)
    absolutes: list[Any] = []
    for bone, parent in enumerate(parents):
        own = relatives[bone]
        absolutes.append(own if parent < 0 else absolutes[parent] @ own)
    transforms = (xp.stack(absolutes) @ inverse)[:, :3]
    blended = xp.reshape(weights @ xp.reshape(transforms, (len(parents), 12)), (-1, 3, 4))
    skinned = xp.sum(blended * positions[:, None], axis=2) * mirror
    whole = xp.stack([xp.stack(rotated(xp, theta[:3], axis)) for axis in AXES])
    hand = skinned @ whole + theta[3:6]
    if not len(us):
        return points - hand[seen[:, 0]]
    first, second = us[:, :1], us[:, 1:]
    a, b, c = (hand[seen[:, corner]] for corner in range(3))
    return points - (first * a + second * b + (1.0 - first - second) * c)


def bent(xp: Any, x: Any, z: Any) -> Any:
    """The rotations of all bones around their first axis, then around their third."""
    cx, sx, cz, sz, zero = xp.cos(x), xp.sin(x), xp.cos(z), xp.sin(z), 0.0 * x
    entries = [cz, -sz * cx, sz * sx, sz, cz * cx, -cz * sx, zero, sx, cx]
    return xp.reshape(xp.stack(entries, 1), (-1, 3, 3))


def jacobian(ad: Any, xp: Any, f: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return the function to the Jacobian, point by coordinate by column.

    A point's own two coordinates move no other, so one direction for each gives their columns.
    """

    def columns(theta: Any, us: Any, *data: Any) -> Any:
        by_theta = ad.jacfwd(lambda theta: f(theta, us, *data))(theta)
        if not len(us):
            return by_theta
        one, zero = xp.ones_like(us[:, 0]), xp.zeros_like(us[:, 0])
        directions = xp.stack([one, zero], 1), xp.stack([zero, one], 1)
        by_us = [ad.jvp(lambda us: f(theta, us, *data), (us,), (d,))[1] for d in directions]
        return xp.concatenate([*(column[:, :, None] for column in by_us), by_theta], 2)

    return columns


def read(given: Input) -> Instance:
    """The pose and the points' coordinates; the model, the points and the vertices they meet."""
    data = given["data"]
    model, meets = data["model"], np.array(data["correspondences"])
    us = doubles(given["us"]).reshape(-1, 2)
    mirror = np.array([-1.0 if model["is_mirrored"] else 1.0, 1.0, 1.0])
    names = "base_relatives", "inverse_base_absolutes", "base_positions", "weights"
    seen = np.array(model["triangles"])[meets] if len(us) else meets[:, None]
    arrays = (*(doubles(model[name]) for name in names), mirror, doubles(data["points"]))
    static = {"parents": tuple(model["parents"])}
    return Instance((doubles(given["theta"]), us), (*arrays, seen), static)


def generate(rng: np.random.Generator, v: int, p: int, u: int) -> dict[str, Any]:
    """A hand of 22 bones and `v` vertices, each at up to four of them; `p` points."""
    parents = [-1, *(0 if bone % 4 == 0 else bone for bone in range(4 * FINGERS)), 0]
    relatives = np.tile(np.eye(4), (BONES, 1, 1))
    absolutes = relatives.copy()
    for bone, parent in enumerate(parents):
        relatives[bone, :3, :3] = np.linalg.qr(rng.normal(0.0, 0.3, (3, 3)) + np.eye(3))[0]
        relatives[bone, :3, 3] = rng.normal(0.0, 0.4, 3)
        before = absolutes[parent] if parent >= 0 else np.eye(4)
        absolutes[bone] = before @ relatives[bone]
    weights = np.zeros((v, BONES))
    np.put_along_axis(weights, rng.integers(0, BONES, (v, 4)), rng.random((v, 4)), 1)
    weights /= weights.sum(1, keepdims=True)
    positions = np.concatenate([rng.normal(0.0, 1.0, (v, 3)), np.ones((v, 1))], 1)
    model = {
        "bone_count": BONES, "bone_names": [f"bone {i}" for i in range(BONES)],
        "parents": parents, "base_relatives": relatives.tolist(),
        "inverse_base_absolutes": np.linalg.inv(absolutes).tolist(),
        "base_positions": positions.tolist(), "weights": weights.tolist(),
        "triangles": rng.integers(0, v, (2 * v, 3)).tolist(), "is_mirrored": False,
    }  # fmt: skip
    meets = rng.integers(0, 2 * v if u else v, p)
    points = rng.normal(0.0, 1.0, (p, 3))
    return {
        "theta": rng.normal(0.0, 0.4, POSE).tolist(),
        "data": {"model": model, "correspondences": meets.tolist(), "points": points.tolist()},
        "us": rng.uniform(0.0, 0.5, (p, u)).tolist() if u else [],
    }


@compiled
def _product(a, b, last, out):
    """Add the product of two rigid transforms, or of their slopes, which have `last` of zero."""
    for i in range(3):
        for j in range(4):
            total = a[i, 3] * last if j == 3 else 0.0
            for l in range(3):
                total += a[i, l] * b[l, j]
            out[i, j] += total


@compiled
def _joint(base, x, z, axis, out):
    """Write a bone's transform to its parent's, or its slope in the first or the last angle."""
    cx, sx, cz, sz = math.cos(x), math.sin(x), math.cos(z), math.sin(z)
    if axis == 0:
        turn = ((0.0, sz * sx, sz * cx), (0.0, -cz * sx, -cz * cx), (0.0, cx, -sx))
    elif axis == 1:
        turn = ((-sz, -cz * cx, cz * sx), (cz, -sz * cx, sz * sx), (0.0, 0.0, 0.0))
    else:
        turn = ((cz, -sz * cx, sz * sx), (sz, cz * cx, -cz * sx), (0.0, sx, cx))
    for i in range(3):
        for j in range(3):
            out[i, j] = base[i, 0] * turn[0][j] + base[i, 1] * turn[1][j] + base[i, 2] * turn[2][j]
        out[i, 3] = base[i, 3] if axis < 0 else 0.0


@compiled
def _posed(theta, base, inverse, parents, slopes):
    """Return the bones' transforms; write their slopes in their own finger's angles, if wanted."""
    bones = len(base)
    own, absolute, found = np.zeros((3, 4)), np.zeros((bones, 3, 4)), np.zeros((bones, 3, 4))
    by_angle = np.zeros((bones, ANGLES, 3, 4))
    for bone in range(bones):
        parent, at = parents[bone], PLACES[bone]
        x = theta[at[0]] if at[0] < POSE else 0.0
        z = theta[at[1]] if at[1] < POSE else 0.0
        _joint(base[bone], x, z, -1, own)
        if parent < 0:
            absolute[bone] = own
        else:
            _product(absolute[parent], own, 1.0, absolute[bone])
        _product(absolute[bone], inverse[bone], 1.0, found[bone])
        if parent < 0 or len(slopes) == 0:
            continue
        for angle in range(ANGLES):
            # The columns of a slope's product are those of a transform's: the last row is (0, 1).
            _product(by_angle[parent, angle], own, 1.0, by_angle[bone, angle])
        for axis in range(2):
            if at[axis] < POSE:
                angle = (at[axis] - GLOBAL) % ANGLES
                _joint(base[bone], x, z, axis, own)
                _product(absolute[parent], own, 0.0, by_angle[bone, angle])
        for angle in range(ANGLES):
            _product(by_angle[bone, angle], inverse[bone], 1.0, slopes[bone, angle])
    return found


@compiled
def _blend(transforms, position, weights, first, last):
    """Return a vertex moved by the weighted transforms of some bones."""
    x = y = z = 0.0
    for bone in range(first, last):
        w, m = weights[bone], transforms[bone]
        if w != 0.0:
            x += w * (
                m[0, 0] * position[0] + m[0, 1] * position[1] + m[0, 2] * position[2] + m[0, 3]
            )
            y += w * (
                m[1, 0] * position[0] + m[1, 1] * position[1] + m[1, 2] * position[2] + m[1, 3]
            )
            z += w * (
                m[2, 0] * position[0] + m[2, 1] * position[1] + m[2, 2] * position[2] + m[2, 3]
            )
    return x, y, z


@compiled
def _hand(theta, transforms, positions, weights, mirror):
    """Return where the vertices are."""
    r = theta[0], theta[1], theta[2]
    c, s, t = _turn(r)
    hand = np.empty((len(positions), 3))
    for i in range(len(positions)):
        x, y, z = _blend(transforms, positions[i], weights[i], 0, len(transforms))
        moved = _moved(r, (mirror[0] * x, y, z), c, s, t)
        for e in range(3):
            hand[i, e] = moved[e] + theta[3 + e]
    return hand


@compiled
def _slopes(theta, transforms, slopes, positions, weights, mirror):
    """Return the vertices' derivatives in the pose.

    The bones' slopes are turned by the hand's rotation first, so that a vertex only adds up those
    of bones that it has a weight for, whose finger's four angles lie side by side.
    """
    r = theta[0], theta[1], theta[2]
    c, s, t = _turn(r)
    square = _dot(r, r)
    over = 1.0 / square if square > 0.0 else 0.0
    ds, dt = (c - s) * over, (s - 2.0 * t) * over
    turned = np.empty((len(slopes), 3, 4, ANGLES))
    for bone in range(len(slopes)):
        for angle in range(ANGLES):
            for l in range(4):
                m = slopes[bone, angle]
                moved = _moved(r, (mirror[0] * m[0, l], m[1, l], m[2, l]), c, s, t)
                for e in range(3):
                    turned[bone, e, l, angle] = moved[e]
    found = np.zeros((len(positions), 3, POSE))
    for i in range(len(positions)):
        out, position = found[i], positions[i]
        x, y, z = _blend(transforms, position, weights[i], 0, len(transforms))
        at = mirror[0] * x, y, z
        cross, along = _cross(r, at), _dot(r, at)
        for d in range(3):
            axis = 1.0 * (d == 0), 1.0 * (d == 1), 1.0 * (d == 2)
            twist = _cross(axis, at)
            for e in range(3):
                base = ds * cross[e] + dt * along * r[e] - s * at[e]
                out[e, d] = r[d] * base + s * twist[e] + t * (axis[e] * along + r[e] * at[d])
            out[d, 3 + d] = 1.0
        for bone in range(1, 1 + 4 * FINGERS):
            w = weights[i, bone]
            if w != 0.0:
                first = GLOBAL + (bone - 1) // 4 * ANGLES
                for e in range(3):
                    m = turned[bone, e]
                    for k in range(ANGLES):
                        out[e, first + k] += w * (
                            m[0, k] * position[0] + m[1, k] * position[1]
                            + m[2, k] * position[2] + m[3, k]
                        )  # fmt: skip
    return found


@compiled
def primal_by_hand(theta, us, base, inverse, positions, weights, mirror, points, seen, parents):
    """`objective`, as one writes it for speed."""
    transforms = _posed(theta, base, inverse, parents, np.empty((0, ANGLES, 3, 4)))
    hand = _hand(theta, transforms, positions, weights, mirror)
    found = np.empty_like(points)
    for i in range(len(points)):
        for e in range(3):
            if len(us) == 0:
                found[i, e] = points[i, e] - hand[seen[i, 0], e]
            else:
                a, b, c = hand[seen[i, 0], e], hand[seen[i, 1], e], hand[seen[i, 2], e]
                found[i, e] = points[i, e] - (c + us[i, 0] * (a - c) + us[i, 1] * (b - c))
    return found


@compiled
def gradient_by_hand(theta, us, base, inverse, positions, weights, mirror, points, seen, parents):
    """Its Jacobian, as one writes it for speed."""
    slopes = np.zeros((len(base), ANGLES, 3, 4))
    transforms = _posed(theta, base, inverse, parents, slopes)
    by_pose = _slopes(theta, transforms, slopes, positions, weights, mirror)
    if len(us) == 0:
        found = np.empty((len(points), 3, POSE))
        rows, table = found.reshape(len(points), 3 * POSE), by_pose.reshape(-1, 3 * POSE)
        for i in range(len(points)):
            row, source = rows[i], table[seen[i, 0]]
            for k in range(3 * POSE):
                row[k] = -source[k]
        return found
    hand = _hand(theta, transforms, positions, weights, mirror)
    found = np.empty((len(points), 3, 2 + POSE))
    for i in range(len(points)):
        u, v = us[i]
        w = 1.0 - u - v
        a, b, c = seen[i]
        for e in range(3):
            out, x, y, z = found[i, e], by_pose[a, e], by_pose[b, e], by_pose[c, e]
            out[0] = hand[c, e] - hand[a, e]
            out[1] = hand[c, e] - hand[b, e]
            for k in range(POSE):
                out[2 + k] = -(u * x[k] + v * y[k] + w * z[k])
    return found


EVAL = Eval(
    "ht", ("objective", "jacobian"), objective, read, generate, primal_by_hand, gradient_by_hand,
    shown=(
        lambda value, _: np.ravel(value).tolist(),
        lambda value, _: value.reshape(-1, value.shape[2]).tolist(),
    ),
    standard={"v": 544, "p": 10000, "u": 0}, small={"v": 9, "p": 12, "u": 2},
    derivative=jacobian, dense=True,
)  # fmt: skip
