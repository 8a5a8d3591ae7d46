"""JAX, compiled by `jax.jit`: its own arrays in and out, each call waiting for its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Names:
    """`jax.numpy`'s functions, and JAX's where NumPy has none."""

    def __init__(self, jax: Any) -> None:
        self.numpy, self.erf = jax.numpy, jax.scipy.special.erf
        self.sigmoid, self.softplus = jax.nn.sigmoid, jax.nn.softplus
        self.logsumexp, self.scan = jax.nn.logsumexp, jax.lax.scan

        self.fori_loop = jax.lax.fori_loop

    def loop(self, times: int, step: Callable[[Any], Any], carry: Any) -> Any:
        """Do a step so many times, compiled once."""
        return self.fori_loop(0, times, lambda _, carry: step(carry), carry)

    def odeint(self, f: Callable[..., Any], y0: Any, t: Any, p: Any, tolerance: float) -> Any:
        """Solve ``dy/dt = f(y, t, p)``."""
        from jax.experimental.ode import odeint

        return odeint(f, y0, self.numpy.asarray(t), p, rtol=tolerance, atol=tolerance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.numpy, name)


class Jax:
    """JAX in double precision."""

    most_scalars = 1000

    def __init__(self, name: str, module: Any) -> None:
        import jax.scipy.special  # `import jax` alone does not load it

        module.config.update("jax_enable_x64", True)
        self.name, self.version, self.array = name, module.__version__, module.numpy.asarray
        self.ad, self.xp = module, Names(jax)

    def set_threads(self, count: int) -> None:
        """Do nothing: the environment, set before the import, has decided."""

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        wait, compiled = self.ad.block_until_ready, self.ad.jit(f)
        return lambda *arrays: wait(compiled(*arrays))
