"""Where time is spent: the step of `problems.mlp`, and single large operations, taken apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from bench import libraries, problems
from bench.libraries import Library, Torch
from bench.profile import large
from bench.report import Row, ratios_to, unsteady
from bench.timing import Figure

ADAPTERS = {name: libraries.ADAPTERS[name] for name in ("tapegrad", "torch")}
GROUPS = ("step", "large")
PROCESS_GROUPS: dict[str, Any] = {}
ROUNDS = 3000


def step(chosen: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time each part of the step, the libraries in turn."""
    makers = {library.name: parts(library) for library in chosen if isinstance(library, Torch)}
    samples: dict[str, dict[str, list[float]]] = {name: {} for name in makers}
    for done in range(3 if quick else ROUNDS):
        for name, run in makers.items():
            for part, seconds in run().items():
                if done:  # the first round fills the caches
                    samples[name].setdefault(part, []).append(seconds)
    for part in next(iter(samples.values()), {}):
        figures = {name: Figure.of(taken[part], 1e6) for name, taken in samples.items()}
        yield Row(
            problems.mlp().name, part, threads, "µs", figures, ratios_to(figures, "torch"),
            note=unsteady(figures),
        )  # fmt: skip


def parts(library: Torch) -> Callable[[], dict[str, float]]:
    """Return a function that does the step once and says how long each part of it took."""
    xp, problem = library.module, problems.mlp()
    leaves = [xp.tensor(x, requires_grad=True) for x in problem.inputs]
    start, target = (xp.tensor(x) for x in problem.data)
    weights, biases = leaves[0::2], leaves[1::2]
    names = [
        f"{part} {k}"
        for k in range(1, len(weights) + 1)
        for part in ("matmul", "add", "tanh")
        if part != "tanh" or k < len(weights)
    ]
    names = ["clear .grad", *names, "mse_loss", "backward", "update"]

    def run() -> dict[str, float]:
        times = [perf_counter()]
        for x in leaves:
            x.grad = None
        times.append(perf_counter())
        y = start
        for k, (w, b) in enumerate(zip(weights, biases), 1):
            y = y @ w
            times.append(perf_counter())
            y = y + b
            times.append(perf_counter())
            if k < len(weights):
                y = xp.tanh(y)
                times.append(perf_counter())
        y = xp.nn.functional.mse_loss(y, target)
        times.append(perf_counter())
        y.backward()
        times.append(perf_counter())
        with xp.no_grad():
            for x in leaves:
                x -= problem.rate * x.grad
        times.append(perf_counter())
        return {name: b - a for name, a, b in zip(names, times, times[1:])}

    return run


__all__ = ["ADAPTERS", "GROUPS", "PROCESS_GROUPS", "large", "step"]
