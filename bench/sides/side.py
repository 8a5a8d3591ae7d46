"""What the benchmarks of compiled functions need of a library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Side(Protocol):
    """One library: its transforms, its names, and how it compiles."""

    name: str
    version: str
    ad: Any
    """Has `grad`, `jvp`, ..., functions of functions; None if it does not differentiate."""
    xp: Any
    """Has NumPy's names, and `sigmoid`, `logsumexp`, `loop`, `scan`."""
    most_scalars: float
    """Programs of more scalar operations than this take it minutes to compile."""

    def set_threads(self, count: int) -> None:
        """Use this many threads."""

    def array(self, x: Any) -> Any:
        """Return a NumPy array as what the library's users hold."""

    def compile(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function compiled, whose calls wait for the result; `Unsupported` if not."""


def loop(times: int, step: Callable[[Any], Any], carry: Any) -> Any:
    """Do a step so many times, in Python."""
    for _ in range(times):
        carry = step(carry)
    return carry


def scan(stack: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """Return a loop in Python that does a step for each element and stacks what they return."""

    def steps(step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any) -> tuple[Any, Any]:
        found = []
        for x in xs:
            carry, y = step(carry, x)
            found.append(y)
        return carry, stack(found)

    return steps
