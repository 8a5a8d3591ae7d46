"""Random stacks of transforms, written once: `T` is tapegrad or jax, `xp` np or jax.numpy.

A stack is a list of names; each makes a map from R^3 to R^3 of one.  `special` says whether those
are applied that leave the function as it is (`checkpoint`, and rules that say what is so anyway);
without them the numbers must be the same.
"""

import numpy as np

X = np.array([0.7, 1.3, 0.4])
A = np.array([[0.6, -0.2, 0.3], [0.1, 0.5, -0.4], [-0.3, 0.2, 0.7]])

BASES = {
    "sin": lambda xp: lambda q: xp.sin(A @ q) * q,
    "product": lambda xp: lambda q: xp.exp(q * q[0]) / (1 + q[1] ** 2),
    "cumulated": lambda xp: lambda q: xp.cumsum(xp.where(q > 0.5, q**2, xp.exp(q))) * xp.max(q),
}

PLAIN = {
    "grad": lambda T, xp, f: lambda q: T.grad(lambda z: xp.sum(f(z) * xp.cos(z)))(q),
    "grad of a closure": lambda T, xp, f: lambda q: T.grad(lambda z: xp.sum(f(z) * q))(q * 2),
    "value": lambda T, xp, f: lambda q: T.value_and_grad(lambda z: xp.sum(f(z) * q))(q)[0] * q,
    "jvp": lambda T, xp, f: lambda q: T.jvp(f, (q,), (xp.sin(q),))[1],
    "jvp of a closure": lambda T, xp, f: lambda q: T.jvp(lambda z: f(z) * q, (q,), (q,))[1],
    "jvp, both": lambda T, xp, f: lambda q: (lambda y, t: y * t)(*T.jvp(f, (q,), (q,))),
    "vjp": lambda T, xp, f: lambda q: T.vjp(f, q)[1](q)[0],
    "mapped vjp": lambda T, xp, f: lambda q: q @ T.vmap(T.vjp(f, q)[1])(xp.eye(3))[0],
    "vjp under a map": lambda T, xp, f: (
        lambda q: xp.sum(T.vmap(lambda g: T.vjp(f, q)[1](g)[0])(xp.outer(q, q)), axis=0)
    ),
    "constant vjp under a map": lambda T, xp, f: (
        lambda q: xp.sum(T.vmap(lambda s: s * T.vjp(f, X * 1.1)[1](X)[0])(q), axis=0)
    ),
    "linearize": lambda T, xp, f: lambda q: T.linearize(f, q)[1](q * q),
    "mapped linearize": lambda T, xp, f: lambda q: q @ T.vmap(T.linearize(f, q)[1])(xp.eye(3)),
    "vmap": lambda T, xp, f: lambda q: xp.sum(T.vmap(lambda s: f(q * s))(q), axis=0),
    "map of a grad": lambda T, xp, f: (
        lambda q: xp.sum(T.vmap(T.grad(lambda z: xp.sum(f(z) * q)))(xp.outer(q, q)), axis=0)
    ),
    "jacfwd": lambda T, xp, f: lambda q: T.jacfwd(f)(q) @ q,
    "jacrev": lambda T, xp, f: lambda q: q @ T.jacrev(f)(q),
    "hessian": lambda T, xp, f: lambda q: T.hessian(lambda z: xp.sum(f(z) ** 2))(q) @ q,
}


def _by_vjp(T, xp, f):
    c = T.custom_vjp(f)
    c.defvjp(lambda q: (f(q), q), lambda q, g: (T.vjp(f, q)[1](g)[0],))
    return c


def _by_kept_vjp(T, xp, f):
    c = T.custom_vjp(f)
    c.defvjp(lambda q: (c(q), T.jacfwd(f)(q)), lambda m, g: (g @ m,))
    return c


def _by_grad(T, xp, f):
    c = T.custom_vjp(f)
    c.defvjp(
        lambda q: (f(q), (q,)), lambda kept, g: (T.grad(lambda z, w: xp.sum(f(z) * w))(kept[0], g),)
    )
    return c


def _by_jvp(T, xp, f):
    c = T.custom_jvp(f)
    c.defjvp(lambda p, t: T.jvp(f, p, t))
    return c


def _by_matrix(T, xp, f):
    c = T.custom_jvp(f)
    c.defjvp(lambda p, t: (c(*p), T.jacrev(f)(p[0]) @ t[0]))
    return c


SPECIAL = {
    "custom_vjp by vjp": _by_vjp,
    "custom_vjp by a kept matrix": _by_kept_vjp,
    "custom_vjp by grad": _by_grad,
    "custom_jvp by jvp": _by_jvp,
    "custom_jvp by a matrix": _by_matrix,
    "checkpoint": lambda T, xp, f: T.checkpoint(f),
    "checkpoint of a closure": lambda T, xp, f: (
        lambda q: T.checkpoint(lambda z: f(z * q))(q) + f(q)
    ),
}
# What the last one is without `checkpoint`.
WITHOUT = {"checkpoint of a closure": lambda T, xp, f: lambda q: f(q * q) + f(q)}


def stacked(T, xp, base, names, special=True, more=None):
    """The function of a stack, the first name innermost; `more` are further transforms."""
    plain = {**PLAIN, **(more or {})}
    f = BASES[base](xp)
    for name in names:
        if name in plain:
            f = plain[name](T, xp, f)
        elif special:
            f = SPECIAL[name](T, xp, f)
        elif name in WITHOUT:
            f = WITHOUT[name](T, xp, f)
    return f


def drawn(rng, most, plain):
    """A base and a random stack of up to so many, of which at least one is special."""
    names = [rng.choice(plain) for _ in range(rng.randint(1, most - 1))]
    for _ in range(rng.randint(1, most - len(names))):
        names.insert(rng.randint(0, len(names)), rng.choice([*SPECIAL]))
    return rng.choice([*BASES]), names
