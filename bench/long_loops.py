"""Memory and time of reverse mode through a long compiled loop, each in a process of its own.

``python -m bench.long_loops LIBRARY STEPS KEPT`` prints by how many bytes the first gradient raises
the peak, and the seconds that the next one takes. KEPT is for how many steps the state is kept; 0:
for all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from bench.child import peak_bytes, reset_peak
from bench.report import Row, ratios_to
from bench.timing import Figure

STEPS = (10_000, 1_000_000)
STATE = 4


def step(xp: Any, w: Any) -> Callable[[Any, Any], tuple[Any, None]]:
    """Return a step: Euler's, of a small system."""
    return lambda x, _: (x + 1e-3 * xp.tanh(w @ x), None)


def of_tapegrad(steps: int, kept: int) -> Callable[..., Any]:
    """Return the gradient of the last state's sum in the system's matrix."""
    import tapegrad as tg

    def last(w: Any, length: int) -> Any:
        given = {"checkpoint": min(kept, length)} if kept else {}
        return np.sum(tg.scan(step(np, w), np.ones(STATE), None, length, **given)[0])

    return tg.jit(tg.grad(last), static_argnums=1)


def of_jax(steps: int, kept: int) -> Callable[..., Any]:
    """Return the same by JAX: where few states are kept, by a scan of scans under `checkpoint`."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def last(w: Any, length: int) -> Any:
        inner = length // min(kept, length) if kept else 1

        def segment(x: Any, _: Any) -> tuple[Any, None]:
            return jax.lax.scan(step(jnp, w), x, None, inner)[0], None

        body = jax.checkpoint(segment) if kept else step(jnp, w)
        return jnp.sum(jax.lax.scan(body, jnp.ones(STATE), None, length // inner)[0])

    compiled = jax.jit(jax.grad(last), static_argnums=1)
    return lambda w, length: np.asarray(compiled(jnp.asarray(w), length))


MAKERS = {"tapegrad": of_tapegrad, "jax": of_jax}


def measured(name: str, steps: int, kept: int) -> tuple[int, float, float]:
    """Return the bytes and seconds of a gradient, and a number of it."""
    gradient = MAKERS[name](steps, kept)
    w = np.random.default_rng(0).standard_normal((STATE, STATE))
    gradient(w, 16)  # the compiler is loaded
    reset_peak()
    before = peak_bytes()
    first = gradient(w, steps)
    grown, start = peak_bytes() - before, perf_counter()
    gradient(w, steps)
    return grown, perf_counter() - start, float(np.sum(first))


def long_loops(libraries: list[str], quick: bool) -> Iterator[Row]:
    """Yield peak memory and time, with every state kept and with the root of their number."""
    names = [name for name in MAKERS if name in libraries]
    for steps in (100,) if quick else STEPS:
        for kept in (0, round(steps**0.5)):
            found = {name: in_process(name, steps, kept) for name in names}
            assert np.ptp([total for *_, total in found.values()]) < 1e-9
            how = f"{steps:,} steps, " + (f"state kept at {kept:,}" if kept else "all states kept")
            for k, what, unit, scale in ((0, "peak memory", "MB", 1e-6), (1, "time", "ms", 1e3)):
                figures = {name: Figure.of([row[k]], scale) for name, row in found.items()}
                group = f"{what} of the gradient of a long loop"
                yield Row(group, how, 1, unit, figures, ratios_to(figures, "jax"))


def in_process(name: str, steps: int, kept: int) -> list[float]:
    """Return what a process of its own measures, the second time: the first fills the caches."""
    from bench.processes import run

    command = "-m", "bench.long_loops", name, str(steps), str(kept)
    return [[float(x) for x in run(*command).split()] for _ in range(2)][-1]


if __name__ == "__main__":
    print(*measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
