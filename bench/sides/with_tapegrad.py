"""tapegrad: NumPy's arrays in and out, NumPy's own functions in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.problem import Unsupported


class Names:
    """NumPy's functions, and tapegrad's where NumPy has none."""

    def __init__(self, tg: Any) -> None:
        self.sigmoid, self.logsumexp, self.erf = tg.sigmoid, tg.logsumexp, tg.erf
        self.softplus = tg.nn.functional.softplus
        self.fori_loop, self.scan = tg.fori_loop, tg.scan
        self.solve = tg.scipy.integrate.odeint

    def loop(self, times: int, step: Callable[[Any], Any], carry: Any) -> Any:
        """Do a step so many times, compiled once."""
        return self.fori_loop(0, times, lambda _, carry: step(carry), carry)

    def odeint(self, f: Callable[..., Any], y0: Any, t: Any, p: Any, tolerance: float) -> Any:
        """Solve ``dy/dt = f(y, t, p)``."""
        return self.solve(f, y0, t, (p,), rtol=tolerance, atol=tolerance)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class Tapegrad:
    """tapegrad, compiled by `tg.jit`."""

    most_scalars = float("inf")

    def __init__(self, name: str, module: Any) -> None:
        self.name, self.version, self.ad = name, module.__version__, module
        self.xp = Names(module)
        self.jit: Callable[..., Any] | None = getattr(module, "jit", None)

    def set_threads(self, count: int) -> None:
        self.ad.set_num_threads(count)

    def array(self, x: Any) -> Any:
        return x

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        if self.jit is None:
            raise Unsupported("this tapegrad has no `jit`")
        return self.jit(f)

    def eager(self) -> Tapegrad:
        """Return tapegrad without `jit`: every operation recorded anew in each call."""
        side = Tapegrad("tapegrad eager", self.ad)
        side.jit = lambda f: f
        return side
