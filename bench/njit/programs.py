"""Ten programs as users of Numba write them: nothing in them knows about derivatives."""

import math

import numpy as np
from numba import njit


# 1 -- scalar Newton loop with while and break; polynomial by Horner over a tuple/array
@njit
def newton(c0, c1, c2, c3, x0):
    """The square of a root of a cubic, by Newton's method."""
    x = x0
    n = 0
    while n < 100:
        p = ((c3 * x + c2) * x + c1) * x + c0
        d = (3.0 * c3 * x + 2.0 * c2) * x + c1
        step = p / d
        if abs(step) < 1e-13:
            break
        x = x - step
        n += 1
    return x * x


@njit
def newtons(c0, c1, c2, c3, starts):
    """The same from many starts."""
    s = 0.0
    for x in starts:
        s += newton(c0, c1, c2, c3, x)
    return s


# 2 -- Rosenbrock
@njit
def rosen(x):
    """Rosenbrock's function of many numbers."""
    s = 0.0
    for i in range(len(x) - 1):
        a = x[i + 1] - x[i] * x[i]
        b = 1.0 - x[i]
        s += 100.0 * a * a + b * b
    return s


# 3 -- RK4 n-body, local arrays and in-place updates
@njit
def accel(q, m, out):
    """The accelerations of bodies that attract each other."""
    n = q.shape[0]
    for i in range(n):
        out[i, 0] = 0.0
        out[i, 1] = 0.0
        out[i, 2] = 0.0
    for i in range(n):
        for j in range(i):
            dx = q[j, 0] - q[i, 0]
            dy = q[j, 1] - q[i, 1]
            dz = q[j, 2] - q[i, 2]
            r2 = dx * dx + dy * dy + dz * dz + 0.01
            w = 1.0 / (r2 * math.sqrt(r2))
            out[i, 0] += m[j] * w * dx
            out[i, 1] += m[j] * w * dy
            out[i, 2] += m[j] * w * dz
            out[j, 0] -= m[i] * w * dx
            out[j, 1] -= m[i] * w * dy
            out[j, 2] -= m[i] * w * dz


@njit
def nbody(q0, v0, m, steps, h):
    """A number that depends on all bodies after some steps by Runge and Kutta's method."""
    n = q0.shape[0]
    q = q0.copy()
    v = v0.copy()
    qt = np.empty_like(q)
    k1 = np.empty((n, 3))
    k2 = np.empty((n, 3))
    k3 = np.empty((n, 3))
    k4 = np.empty((n, 3))
    for _ in range(steps):
        accel(q, m, k1)
        for i in range(n):
            for d in range(3):
                qt[i, d] = q[i, d] + 0.5 * h * v[i, d]
        accel(qt, m, k2)
        for i in range(n):
            for d in range(3):
                qt[i, d] = q[i, d] + 0.5 * h * (v[i, d] + 0.5 * h * k1[i, d])
        accel(qt, m, k3)
        for i in range(n):
            for d in range(3):
                qt[i, d] = q[i, d] + h * (v[i, d] + 0.5 * h * k2[i, d])
        accel(qt, m, k4)
        for i in range(n):
            for d in range(3):
                q[i, d] += h * v[i, d] + h * h / 6.0 * (k1[i, d] + k2[i, d] + k3[i, d])
                v[i, d] += h / 6.0 * (k1[i, d] + 2.0 * k2[i, d] + 2.0 * k3[i, d] + k4[i, d])
    e = 0.0
    for i in range(n):
        e += q[i, 0] * q[i, 0] + 0.5 * q[i, 1] * v[i, 2] + m[i] * v[i, 0] * v[i, 0]
    return e


# 4 -- LSTM over a sequence, 2-D weights
@njit
def sigm(x):
    """The logistic function."""
    return 1.0 / (1.0 + math.exp(-x))


@njit
def lstm(w, u, b, xs):
    """The mean square of the outputs of a recurrent network with gates."""
    T, nin = xs.shape
    nh = u.shape[1]
    h = np.zeros(nh)
    c = np.zeros(nh)
    z = np.empty(4 * nh)
    loss = 0.0
    for t in range(T):
        for r in range(4 * nh):
            s = b[r]
            for k in range(nin):
                s += w[r, k] * xs[t, k]
            for k in range(nh):
                s += u[r, k] * h[k]
            z[r] = s
        for k in range(nh):
            i = sigm(z[k])
            f = sigm(z[nh + k])
            o = sigm(z[2 * nh + k])
            g = math.tanh(z[3 * nh + k])
            c[k] = f * c[k] + i * g
            h[k] = o * math.tanh(c[k])
            loss += h[k] * h[k]
    return loss / T


# 5 -- Gaussian mixture, triple loop, log-sum-exp with running maximum
@njit
def gmm(alphas, means, icf, x):
    """The likelihood of a mixture of Gaussians with diagonal covariances."""
    n, d = x.shape
    k = means.shape[0]
    main = np.empty(k)
    total = 0.0
    for i in range(n):
        best = -np.inf
        for j in range(k):
            sq = 0.0
            ld = 0.0
            for a in range(d):
                q = icf[j, a]
                t = (x[i, a] - means[j, a]) * math.exp(q)
                sq += t * t
                ld += q
            main[j] = alphas[j] + ld - 0.5 * sq
            if main[j] > best:
                best = main[j]
        s = 0.0
        for j in range(k):
            s += math.exp(main[j] - best)
        total += best + math.log(s)
    return total


# 6 -- Cholesky in place, then log-determinant and a triangular solve
@njit
def chol(a, y):
    """The likelihood of a vector by a covariance, up to a constant, which Cholesky takes apart."""
    n = a.shape[0]
    L = a.copy()
    for j in range(n):
        s = L[j, j]
        for k in range(j):
            s -= L[j, k] * L[j, k]
        piv = math.sqrt(s)
        L[j, j] = piv
        for i in range(j + 1, n):
            t = L[i, j]
            for k in range(j):
                t -= L[i, k] * L[j, k]
            L[i, j] = t / piv
    z = y.copy()
    q = 0.0
    ld = 0.0
    for i in range(n):
        t = z[i]
        for k in range(i):
            t -= L[i, k] * z[k]
        z[i] = t / L[i, i]
        q += z[i] * z[i]
        ld += math.log(L[i, i])
    return 0.5 * q + ld


# 7 -- 2-D stencil, nonlinear, double buffering with a swap
@njit
def stencil(u0, kappa, steps):
    """The energy of a field after steps of a nonlinear diffusion."""
    n, m = u0.shape
    u = u0.copy()
    v = u0.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                lap = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                v[i, j] = u[i, j] + kappa * lap * (1.0 + 0.1 * u[i, j] * u[i, j])
        u, v = v, u
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += u[i, j] * u[i, j]
    return s


# 8 -- a loop that calls another njit function, which returns a tuple
@njit
def rotate(x, y, a):
    """A point, turned."""
    c = math.cos(a)
    s = math.sin(a)
    return c * x - s * y, s * x + c * y


@njit
def spiral(x, y, a, r, n):
    """A point that is turned and drawn to a circle."""
    for i in range(n):
        x, y = rotate(x, y, a * (1.0 + 0.001 * i))
        d = math.sqrt(x * x + y * y)
        x *= 1.0 + 0.01 * (r - d)
        y *= 1.0 + 0.01 * (r - d)
    return x * x + 2.0 * x * y


@njit
def spirals(x, y, a, radii, n):
    """The sum of that for many circles."""
    s = 0.0
    for r in radii:
        s += spiral(x, y, a, r, n)
    return s


# 9 -- maximum and its place with branches, continue
@njit
def hinge(w, x, labels):
    """The squared hinge loss of several classes."""
    n, d = x.shape
    k = w.shape[0]
    loss = 0.0
    for i in range(n):
        best = -1e300
        arg = -1
        for c in range(k):
            if c == labels[i]:
                continue
            s = 0.0
            for a in range(d):
                s += w[c, a] * x[i, a]
            if s > best:
                best = s
                arg = c
        right = 0.0
        for a in range(d):
            right += w[labels[i], a] * x[i, a]
        margin = 1.0 + best - right
        if margin > 0.0 and arg >= 0:
            loss += margin * margin
    return loss / n


# 10 -- array expressions
@njit
def arrexpr(a, b):
    """A sum of elementwise functions, and a product."""
    return np.sum(np.exp(-a * b) * np.sin(a + 1.0)) + np.dot(a, b)


# -- into whose argument is written
@njit
def scaled(x, a):
    """Elements that are replaced, and summed."""
    s = 0.0
    for i in range(len(x)):
        x[i] = math.sin(x[i]) * a
        s += x[i]
    return s


def arguments():
    """The programs and small arguments for them."""
    n = np.random.default_rng(0).normal
    a = n(size=(6, 6))
    labels = np.array([0, 1, 2, 0, 1, 2])
    return {
        newton: (1.0, -2.0, 0.5, 0.3, 4.0),
        newtons: (1.0, -2.0, 0.5, 0.3, n(size=5) + 4.0),
        rosen: (n(size=20),),
        nbody: (n(size=(4, 3)), n(size=(4, 3)), np.abs(n(size=4)), 5, 0.01),
        lstm: (n(size=(12, 4)), n(size=(12, 3)), n(size=12), n(size=(5, 4))),
        gmm: (n(size=3), n(size=(3, 2)), 0.1 * n(size=(3, 2)), n(size=(6, 2))),
        chol: (a @ a.T + 6 * np.eye(6), n(size=6)),
        stencil: (n(size=(7, 6)), 0.1, 4),
        spiral: (1.0, 0.5, 0.3, 1.5, 7),
        spirals: (1.0, 0.5, 0.3, n(size=3), 7),
        hinge: (n(size=(3, 4)), n(size=(6, 4)), labels),
        arrexpr: (n(size=6), n(size=6)),
    }
