"""Functions that people differentiate, written once over `xp` (NumPy's names) and transforms `T`.

Each entry of `PROBLEMS` is a maker, called with ``xp`` and ``T``, which gives a scalar function of
one array, and the point at which it is differentiated.
"""

import numpy as np

PROBLEMS = {}


def problem(*point):
    def keep(make):
        PROBLEMS[make.__name__] = make, np.asarray(*point, float)
        return make

    return keep


rng = np.random.default_rng(3)


@problem([-1.2, 1.0, 0.8, -0.3, 1.1])
def rosenbrock(xp, T):
    return lambda x: xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


DATA = rng.normal(size=(12, 2))


@problem(rng.normal(size=15) * 0.5)
def gaussian_mixture(xp, T):
    """The log-likelihood of three components: logits, means, logarithms of scales."""

    def f(x):
        logits, means, scales = x[:3], xp.reshape(x[3:9], (3, 2)), xp.reshape(x[9:], (3, 2))
        weights = logits - xp.log(xp.sum(xp.exp(logits)))
        z = (DATA[:, None, :] - means) * xp.exp(-scales)
        each = weights + xp.sum(-0.5 * z**2 - scales - 0.5 * np.log(2 * np.pi), axis=2)
        top = xp.max(each, axis=1, keepdims=True)
        return xp.sum(top[:, 0] + xp.log(xp.sum(xp.exp(each - top), axis=1)))

    return f


SEEN = np.cumsum(rng.normal(size=(6, 1)), axis=0)


@problem([0.9, 0.1, -0.3, -0.5])
def kalman_filter(xp, T):
    """The log-likelihood of a damped walk with velocity, seen with noise."""

    def f(x):
        one, nil = 1.0 + 0 * x[0], 0 * x[0]
        move = xp.reshape(xp.stack([one, x[1], nil, x[0]]), (2, 2))
        drift = xp.exp(x[2]) * np.eye(2)
        noise = xp.reshape(xp.exp(x[3]), (1, 1))
        look = np.array([[1.0, 0.0]])
        mean, spread, total = np.zeros(2), np.eye(2), 0.0
        for seen in SEEN:
            mean = xp.dot(move, mean)
            spread = xp.dot(xp.dot(move, spread), move.T) + drift
            gap = seen - xp.dot(look, mean)
            s = xp.dot(xp.dot(look, spread), look.T) + noise
            gain = xp.linalg.solve(s, xp.dot(look, spread)).T
            mean = mean + xp.dot(gain, gap)
            spread = spread - xp.dot(xp.dot(gain, look), spread)
            total = total - 0.5 * (gap[0] ** 2 / s[0, 0] + xp.log(2 * np.pi * s[0, 0]))
        return total

    return f


PLACES = np.linspace(0, 2, 6)[:, None]
HEIGHTS = np.sin(3 * PLACES[:, 0])


@problem([0.1, -0.4, -1.0])
def gaussian_process(xp, T):
    """The marginal likelihood by a Cholesky factor."""

    def f(x):
        squares = (PLACES - PLACES.T) ** 2
        kernel = xp.exp(x[0]) * xp.exp(-0.5 * squares * xp.exp(-2 * x[1]))
        factor = xp.linalg.cholesky(kernel + (xp.exp(x[2]) + 1e-6) * np.eye(6))
        white = xp.linalg.solve(factor, HEIGHTS)
        return -0.5 * xp.sum(white**2) - xp.sum(xp.log(xp.diagonal(factor, 0, -1, -2)))

    return f


@problem(np.array([[0, 0, 0], [1.1, 0, 0.1], [0.2, 1.2, 0], [0.1, 0.3, 1.15]]))
def lennard_jones(xp, T):
    """The energy of four atoms; its gradient is what moves them."""
    first, second = np.triu_indices(4, 1)

    def f(x):
        squares = xp.sum((x[first] - x[second]) ** 2, axis=1)
        inverse = 1.0 / squares**3
        return xp.sum(4.0 * (inverse**2 - inverse))

    return f


def runge_kutta(slope, y, step, count):
    for _ in range(count):
        a = slope(y)
        b = slope(y + 0.5 * step * a)
        c = slope(y + 0.5 * step * b)
        d = slope(y + step * c)
        y = y + step / 6.0 * (a + 2.0 * b + 2.0 * c + d)
    return y


@problem([1.2, 0.3])
def pendulum(xp, T):
    """How far a pendulum is from rest after a while."""

    def f(x):
        y = runge_kutta(lambda y: xp.stack([y[1], -9.81 * xp.sin(y[0])]), x, 0.05, 8)
        return xp.sum(y**2)

    return f


WEIGHTS = rng.normal(size=14) * 0.5


@problem(WEIGHTS)
def neural_ode(xp, T):
    """A small network as the right-hand side of a differential equation."""

    def f(x):
        inner, outer, bias = xp.reshape(x[:6], (3, 2)), xp.reshape(x[6:12], (2, 3)), x[12:]
        slope = lambda y: xp.dot(outer, xp.tanh(xp.dot(inner, y))) + bias
        y = runge_kutta(slope, np.array([1.0, -0.5]), 0.1, 4)
        return xp.sum((y - np.array([0.3, 0.2])) ** 2)

    return f


SEQUENCE = rng.normal(size=(5, 2))


@problem(rng.normal(size=18) * 0.6)
def recurrent_network(xp, T):
    def f(x):
        into, around, out = xp.reshape(x[:6], (3, 2)), xp.reshape(x[6:15], (3, 3)), x[15:]
        h, total = np.zeros(3), 0.0
        for k in range(4):
            h = xp.tanh(xp.dot(into, SEQUENCE[k]) + xp.dot(around, h))
            total = total + (xp.dot(out, h) - SEQUENCE[k + 1, 0]) ** 2
        return total

    return f


INPUTS = rng.normal(size=(10, 4))
LABELS = np.sign(INPUTS @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.3 * rng.normal(size=10))


@problem([0.5, -0.5, 0.1, 0.2])
def logistic_regression(xp, T):
    return lambda w: xp.sum(xp.logaddexp(0.0, -LABELS * xp.dot(INPUTS, w))) + 0.1 * xp.sum(w**2)


@problem(rng.normal(size=(3, 3)))
def matrix_square_root(xp, T):
    """Through eigenvalues and eigenvectors of a positive definite matrix."""

    def f(x):
        values, vectors = xp.linalg.eigh(xp.dot(x, x.T) + np.diag([1.0, 2.0, 4.0]))
        root = xp.dot(vectors * xp.sqrt(values), vectors.T)
        return xp.sum(root * np.arange(9.0).reshape(3, 3)) + root[0, 1] ** 2

    return f


@problem([0.7, 1.9, 3.1])
def implicit(xp, T):
    """The y with y + exp(y) = x, by Newton's method; its derivative by the implicit function."""
    if not hasattr(T, "custom_vjp"):
        return None

    @T.custom_vjp
    def solve(x):
        y = 0 * x
        for _ in range(40):
            y = y - (y + xp.exp(y) - x) / (1.0 + xp.exp(y))
        return y

    def keep(x):
        y = solve(x)
        return y, y

    solve.defvjp(keep, lambda y, g: (g / (1.0 + xp.exp(y)),))
    return lambda x: xp.sum(xp.sin(solve(x)) * x)
