"""Control flow, rules of the user's own and transforms as programs use them: `C`."""

import numpy as np


class Plain:
    """Of NumPy: loops of Python, and derivatives as they are given."""

    @staticmethod
    def cond(chosen, f, g, *xs):
        return f(*xs) if chosen else g(*xs)

    @staticmethod
    def fori_loop(low, high, body, x):
        for i in range(low, high):
            x = body(i, x)
        return x

    @staticmethod
    def while_loop(goes_on, body, x):
        while goes_on(x):
            x = body(x)
        return x

    @staticmethod
    def scan(f, c, xs, reverse=False):
        ys = []
        for x in xs[::-1] if reverse else xs:
            c, y = f(c, x)
            ys.append(y)
        return c, np.stack(ys[::-1] if reverse else ys)

    @staticmethod
    def vmap(f):
        return lambda xs: np.stack([f(x) for x in xs])

    stop_gradient = staticmethod(lambda x: x)
    checkpoint = staticmethod(lambda f: f)
    custom_vjp = custom_jvp = staticmethod(lambda f, df: f)
    slope = staticmethod(lambda f, df: df)
    pushed = staticmethod(lambda f, df, x, t: df(x) * t)


class Transformed:
    """Of a library that has the transforms under their usual names."""

    def __init__(self, library, xp):
        self.tg, self.xp = library, xp
        for name in "cond fori_loop while_loop scan vmap stop_gradient checkpoint".split():
            if hasattr(library, name):
                setattr(self, name, getattr(library, name))

    def custom_vjp(self, f, df):
        c = self.tg.custom_vjp(f)
        c.defvjp(lambda d: (f(d), d), lambda d, g: (df(d) * g,))
        return c

    def custom_jvp(self, f, df):
        c = self.tg.custom_jvp(f)
        c.defjvp(lambda p, t: (f(p[0]), df(p[0]) * t[0]))
        return c

    def slope(self, f, df):
        return self.tg.grad(lambda d: self.xp.sum(f(d)))

    def pushed(self, f, df, x, t):
        return self.tg.jvp(f, (x,), (t,))[1]


def of_jax():
    import jax
    import jax.numpy as jnp
    from jax import lax

    jax.config.update("jax_enable_x64", True)
    made = Transformed(jax, jnp)
    for name in "cond fori_loop while_loop scan stop_gradient".split():
        setattr(made, name, getattr(lax, name))
    return made
