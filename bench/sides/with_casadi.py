"""CasADi: programs of scalars, drawn once as an expression and run by its virtual machine."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class Casadi:
    """CasADi, a function of one vector."""

    most_scalars = float("inf")

    def __init__(self, name: str, module: Any) -> None:
        self.name, self.version, self.xp, self.module = name, module.__version__, module, module
        gradient = module.gradient
        self.ad = SimpleNamespace(grad=lambda f: lambda x: gradient(f(x), x))

    def set_threads(self, count: int) -> None:
        """Do nothing: the virtual machine uses one."""

    def array(self, x: Any) -> Any:
        return x

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        made: list[Any] = []

        def call(x: Any) -> Any:
            if not made:
                symbol = self.module.SX.sym("x", len(x))
                made.append(self.module.Function("f", [symbol], [f(symbol)]))
            return made[0](x)

        return call
