"""GradBench's evals as loops, each of which gives one number: what is differentiated is that.

`gmm`, `kmeans`, `llsq`, `lstm`, `ode`, `det` and `lse` compute what GradBench asks for; `ba` and
`ht` sum up the squares of the errors whose Jacobians it asks for. In `particle` and `saddle` the
inner derivatives are written out: nothing here is nested.
"""

import math

import numpy as np
from numba import njit

from bench.gradbench.ode import END

FINGERS, FINGER_BONES = 5, 4


@njit
def gmm(alpha, mu, q, l, x, m, gamma, constant):
    """The log-posterior of a mixture of Gaussians, with triangular factors of the precisions.

    What depends on no parameter is the `constant`.
    """
    (n, d), k = x.shape, len(alpha)
    inner, off = np.empty(k), np.empty(d)
    total = constant
    most, share = alpha[0], 0.0
    for j in range(k):
        most = max(most, alpha[j])
    for j in range(k):
        share += math.exp(alpha[j] - most)
    total -= n * (most + math.log(share))
    for i in range(n):
        best = -np.inf
        for j in range(k):
            square, place = 0.0, 0
            bias = alpha[j]
            for a in range(d):
                off[a] = 0.0
                bias += q[j, a]
            for b in range(d):
                t = x[i, b] - mu[j, b]
                off[b] += math.exp(q[j, b]) * t
                for a in range(b + 1, d):
                    off[a] += l[j, place] * t
                    place += 1
            for a in range(d):
                square += off[a] * off[a]
            inner[j] = bias - 0.5 * square
            best = max(best, inner[j])
        share = 0.0
        for j in range(k):
            share += math.exp(inner[j] - best)
        total += best + math.log(share)
    for j in range(k):
        for a in range(d):
            total += m * q[j, a] - 0.5 * gamma**2 * math.exp(2.0 * q[j, a])
        for place in range(l.shape[1]):
            total -= 0.5 * gamma**2 * l[j, place] * l[j, place]
    return total


@njit
def ba(cameras, points, weights, camera, point, feature):
    """Half the squares of the errors of all observations, and of the weights off one."""
    total = 0.0
    for i in range(len(weights)):
        c, p, w = cameras[camera[i]], points[point[i]], weights[i]
        x, y, z = p[0] - c[3], p[1] - c[4], p[2] - c[5]
        square = c[0] * c[0] + c[1] * c[1] + c[2] * c[2]
        if square > 0.0:
            angle = math.sqrt(square)
            cosine, s = math.cos(angle), math.sin(angle) / angle
            t = (1.0 - cosine) * (c[0] * x + c[1] * y + c[2] * z) / square
        else:
            cosine, s, t = 1.0, 1.0, 0.0
        u = x * cosine + (c[1] * z - c[2] * y) * s + c[0] * t
        v = y * cosine + (c[2] * x - c[0] * z) * s + c[1] * t
        depth = z * cosine + (c[0] * y - c[1] * x) * s + c[2] * t
        u, v = u / depth, v / depth
        square = u * u + v * v
        scale = c[6] * (1.0 + square * (c[9] + square * c[10]))
        first = w * (u * scale + c[7] - feature[i, 0])
        second = w * (v * scale + c[8] - feature[i, 1])
        off = 1.0 - w * w
        total += 0.5 * (first * first + second * second + off * off)
    return total


@njit
def kmeans(centroids, points):
    """The sum of the squared distances to the nearest centroid."""
    (k, d), total = centroids.shape, 0.0
    for i in range(len(points)):
        best = np.inf
        for j in range(k):
            distance = 0.0
            for a in range(d):
                off = points[i, a] - centroids[j, a]
                distance += off * off
            if distance < best:
                best = distance
        total += best
    return total


@njit
def llsq(x, t, s):
    """Half the sum of squares of what a polynomial is off."""
    total = 0.0
    for i in range(len(t)):
        value = 0.0
        for j in range(len(x) - 1, -1, -1):
            value = value * t[i] + x[j]
        total += (s[i] - value) ** 2
    return 0.5 * total


@njit
def _sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


@njit
def lstm(main, extra, state, sequence):
    """The loss of a recurrent network with diagonal weights."""
    layers, (times, bits) = len(main) // 2, sequence.shape
    state = state.copy()
    total = 0.0
    guess = np.empty(bits)
    for t in range(times - 1):
        norm = 2.0
        for i in range(bits):
            x = sequence[t, i] * extra[0, i]
            for layer in range(layers):
                weight, bias = main[2 * layer], main[2 * layer + 1]
                hidden, cell = state[2 * layer, i], state[2 * layer + 1, i]
                forget = _sigmoid(x * weight[i] + bias[i])
                ingate = _sigmoid(hidden * weight[bits + i] + bias[bits + i])
                outgate = _sigmoid(x * weight[2 * bits + i] + bias[2 * bits + i])
                change = math.tanh(hidden * weight[3 * bits + i] + bias[3 * bits + i])
                cell = cell * forget + ingate * change
                x = outgate * math.tanh(cell)
                state[2 * layer, i], state[2 * layer + 1, i] = x, cell
            guess[i] = x * extra[1, i] + extra[2, i]
            norm += math.exp(guess[i])
        for i in range(bits):
            total += sequence[t + 1, i] * (guess[i] - math.log(norm))
    return -total / ((times - 1) * bits)


@njit
def ode(x, start, steps):
    """The last element of the state after steps by Runge and Kutta's method."""
    n, h = len(x), END / steps
    y, at, slope, total = start.copy(), start.copy(), np.zeros(n), np.empty(n)
    for _ in range(steps):
        for stage in range(4):
            reach = h if stage == 3 else h / 2
            weight = h / 3 if stage == 1 or stage == 2 else h / 6
            for i in range(n):
                at[i] = y[i] if stage == 0 else y[i] + reach * slope[i]
                if stage == 0:
                    total[i] = y[i]
            slope[0] = x[0]
            for i in range(1, n):
                slope[i] = x[i] * at[i - 1]
            for i in range(n):
                total[i] += weight * slope[i]
        for i in range(n):
            y[i] = total[i]
    return y[n - 1]


@njit
def det(a):
    """The determinant by expansion along the first row, again and again; a stack for recursion."""
    n = len(a)
    place, sign, total = np.zeros(n, np.int64), np.ones(n), np.zeros(n)
    free, row = (1 << n) - 1, 0
    while row >= 0:
        j = place[row]
        if j == n:  # the minor of this row and those below is there
            row -= 1
            if row >= 0:
                j = place[row] - 1
                total[row] += sign[row] * a[row, j] * total[row + 1]
                sign[row] = -sign[row]
                free |= 1 << j
            continue
        place[row] += 1
        if free >> j & 1:
            if row == n - 1:
                total[row] += a[row, j]
            else:
                free &= ~(1 << j)
                row += 1
                place[row], sign[row], total[row] = 0, 1.0, 0.0
    return total[0]


@njit
def lse(x):
    """The logarithm of a sum of exponentials."""
    most = x[0]
    for i in range(1, len(x)):
        most = max(most, x[i])
    total = 0.0
    for i in range(len(x)):
        total += math.exp(x[i] - most)
    return most + math.log(total)


@njit
def _turned(angles, bone, out):
    """The rotation by Euler's angles x, z and y of a bone."""
    cx, sx = math.cos(angles[bone, 0]), math.sin(angles[bone, 0])
    cz, sz = math.cos(angles[bone, 1]), math.sin(angles[bone, 1])
    cy, sy = math.cos(angles[bone, 2]), math.sin(angles[bone, 2])
    out[0, 0], out[0, 1], out[0, 2] = cz * cy, sy * sx * cz - sz * cx, cz * sy * cx + sz * sx
    out[1, 0], out[1, 1], out[1, 2] = sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx
    out[2, 0], out[2, 1], out[2, 2] = -sy, cy * sx, cy * cx


@njit
def _product(a, b, out):
    """The product of two motions, of which the last row is 0, 0, 0, 1."""
    for r in range(3):
        for c in range(4):
            s = a[r, 3] if c == 3 else 0.0
            for k in range(3):
                s += a[r, k] * b[k, c]
            out[r, c] = s


@njit
def _global_turn(theta, out):
    """The rotation around the vector of the first three parameters (Rodrigues' formula)."""
    x, y, z = theta[0], theta[1], theta[2]
    angle = math.sqrt(x * x + y * y + z * z)
    x, y, z = x / angle, y / angle, z / angle
    s, c = math.sin(angle), math.cos(angle)
    out[0, 0], out[0, 1] = x * x + (1 - x * x) * c, x * y * (1 - c) - z * s
    out[0, 2], out[1, 0] = x * z * (1 - c) + y * s, x * y * (1 - c) + z * s
    out[1, 1], out[1, 2] = y * y + (1 - y * y) * c, y * z * (1 - c) - x * s
    out[2, 0], out[2, 1] = x * z * (1 - c) - y * s, z * y * (1 - c) + x * s
    out[2, 2] = z * z + (1 - z * z) * c


@njit
def ht(theta, us, parents, relatives, inverses, base, weights, triangles, seen, points):
    """The squares of the distances of points from triangles of a hand's skin, posed by angles."""
    bones, vertices = len(parents), len(base)
    angles = np.zeros((bones, 3))
    for finger in range(FINGERS):
        for i in range(3):
            bone = 2 + FINGER_BONES * finger + i
            at = 6 + 4 * finger + i
            angles[bone, 0] = theta[at if i == 0 else at + 1]
            if i == 0:
                angles[bone, 1] = theta[at + 1]
    own, posed, turn = np.zeros((3, 4)), np.empty((3, 4)), np.empty((3, 3))
    absolute, transform = np.empty((bones, 3, 4)), np.empty((bones, 3, 4))
    for bone in range(bones):
        _turned(angles, bone, own)
        _product(relatives[bone], own, posed)
        if parents[bone] < 0:
            for r in range(3):
                for c in range(4):
                    absolute[bone, r, c] = posed[r, c]
        else:
            _product(absolute[parents[bone]], posed, absolute[bone])
        _product(absolute[bone], inverses[bone], transform[bone])
    _global_turn(theta, turn)
    skin, at = np.empty((vertices, 3)), np.empty(3)
    for v in range(vertices):
        at[0], at[1], at[2] = 0.0, 0.0, 0.0
        for bone in range(bones):
            w = weights[v, bone]
            if w != 0.0:
                for r in range(3):
                    s = transform[bone, r, 3]
                    for k in range(3):
                        s += transform[bone, r, k] * base[v, k]
                    at[r] += w * s
        for r in range(3):
            s = theta[3 + r]
            for k in range(3):
                s += turn[r, k] * at[k]
            skin[v, r] = s
    total = 0.0
    for i in range(len(points)):
        corners = triangles[seen[i]]
        u, v = us[i, 0], us[i, 1]
        for r in range(3):
            hit = u * skin[corners[0], r] + v * skin[corners[1], r]
            hit += (1.0 - u - v) * skin[corners[2], r]
            total += (points[i, r] - hit) ** 2
    return total


@njit
def particle(ws):
    """How far from the origin particles meet the x-axis, squared; a control for each of them."""
    total, h = 0.0, 0.1
    for w in ws:
        x, y, u, v = 0.0, 8.0, 0.75, 0.0
        while True:
            f, g = 0.0, 0.0
            for charge in range(2):
                dx, dy = x - 10.0, y - (10.0 - w if charge == 0 else 0.0)
                square = dx * dx + dy * dy
                pull = 1.0 / (square * math.sqrt(square))
                f += pull * dx
                g += pull * dy
            if y + h * v <= 0.0:
                break
            x, y, u, v = x + h * u, y + h * v, u + h * f, v + h * g
        x += -y / v * u
        total += x * x
    return total


@njit
def saddle(starts):
    """The least value of the greatest of a function, by descents from starts, in each an ascent."""
    total, rate = 0.0, 0.1
    for i in range(len(starts)):
        a, b = starts[i, 0], starts[i, 1]
        for _ in range(10):
            c, d = starts[i, 0], starts[i, 1]
            while c * c + d * d > 1e-6:
                c, d = c - rate * 2.0 * c, d - rate * 2.0 * d
            a, b = a - rate * (2.0 * a + c * d), b - rate * (2.0 * b - c * d)
        total += (a * a + b * b) - (c * c + d * d)
    return total


def hand(rng, vertices, count):
    """A hand of some bones, and points near its skin, drawn at random."""
    bones = 2 + FINGERS * FINGER_BONES
    parents = np.array([-1, 0] + [1 if i % 4 == 0 else 1 + i for i in range(bones - 2)])
    motions = lambda: np.concatenate(
        [rng.normal(size=(bones, 3, 3)) / 2 + np.eye(3), rng.normal(size=(bones, 3, 1))], 2
    )
    weights = rng.random((vertices, bones))
    weights *= weights > 0.8
    triangles = rng.integers(0, vertices, (2 * vertices, 3))
    return (
        rng.normal(size=6 + 4 * FINGERS), rng.random((count, 2)) / 2, parents, motions(), motions(),
        rng.normal(size=(vertices, 3)), weights, triangles,
        rng.integers(0, len(triangles), count), rng.normal(size=(count, 3)),
    )  # fmt: skip
