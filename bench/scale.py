"""Sums over rows: one thread, two threads, two processes.

A set of workers computes value and gradient of one sum, each over its rows; the process that is
called adds up what they send. All sets are there at once and take turns.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from bench.problem import SEED
from bench.report import Row
from bench.timing import Figure

ADAPTERS = {"tapegrad": None}
GROUPS: tuple[str, ...] = ()
ROUNDS, WARM = 15, 3
FEATURES, PARTS = 20, 25
# The set of workers: how many processes, and how many threads each has.
SETS = {"1 thread": (1, 1), "2 threads": (1, 2), "2 processes": (2, 1)}


def logistic(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> Any:
    """Return the negative log-likelihood of labels of 1 and -1."""
    return np.sum(np.logaddexp(0.0, -y * (x @ w)))


def mixture(p: dict[str, np.ndarray], x: np.ndarray) -> Any:
    """Return the negative log-likelihood of points under round Gaussians."""
    squares = np.sum(x**2, 1)[:, None] - 2 * x @ p["means"].T + np.sum(p["means"] ** 2, 1)
    terms = p["weights"] - x.shape[1] * p["scales"] - squares / 2 * np.exp(-2 * p["scales"])
    top = np.max(terms, 1)
    each = top + np.log(np.sum(np.exp(terms - top[:, None]), 1))
    return x.shape[0] * np.log(np.sum(np.exp(p["weights"]))) - np.sum(each)


def logistic_data(rng: np.random.Generator, rows: int) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Return parameters and the data of a logistic regression."""
    x = rng.standard_normal((rows, FEATURES))
    return rng.standard_normal(FEATURES), (x, np.where(rng.random(rows) < 0.5, -1.0, 1.0))


def mixture_data(rng: np.random.Generator, rows: int) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Return parameters and the data of a mixture."""
    means, parts = rng.standard_normal((PARTS, FEATURES // 2)), rng.standard_normal((2, PARTS))
    params = {"means": means, "weights": parts[0], "scales": parts[1] / 4}
    return params, (rng.standard_normal((rows, FEATURES // 2)),)


Make = Callable[[np.random.Generator, int], tuple[Any, tuple[np.ndarray, ...]]]
PROBLEMS: dict[str, tuple[Callable[..., Any], Make, int]] = {
    "logistic regression, 1,000,000 × 20": (logistic, logistic_data, 1_000_000),
    "mixture of 25 Gaussians, 100,000 × 10": (mixture, mixture_data, 100_000),
}


def worker(name: str, rows: slice, threads: int, quick: bool, pipe: Any) -> None:
    """Compute value and gradient over some rows for all parameters that are sent."""
    import tapegrad as tg

    tg.set_num_threads(threads)
    f, _, _ = PROBLEMS[name]
    data = [np.ascontiguousarray(a[rows]) for a in drawn(name, quick)[1]]
    compiled = tg.jit(tg.value_and_grad(f))
    while (params := pipe.recv()) is not None:
        pipe.send(compiled(params, *data))


def drawn(name: str, quick: bool) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Return the parameters and all the data, the same in each process."""
    _, make, rows = PROBLEMS[name]
    return make(np.random.default_rng(SEED), rows // 1000 if quick else rows)


class Workers:
    """Processes that share the rows of a problem."""

    def __init__(self, name: str, processes: int, threads: int, quick: bool) -> None:
        context = multiprocessing.get_context("spawn")
        rows = len(drawn(name, quick)[1][0])
        self.pipes, self.processes = [], []
        for k in range(processes):
            pipe, end = context.Pipe()
            part = slice(rows * k // processes, rows * (k + 1) // processes)
            process = context.Process(target=worker, args=(name, part, threads, quick, end))
            process.start()
            self.pipes.append(pipe)
            self.processes.append(process)

    def __call__(self, params: Any) -> tuple[float, np.ndarray]:
        """Return the value and the gradient, as one vector, over all rows."""
        for pipe in self.pipes:
            pipe.send(params)
        found = [pipe.recv() for pipe in self.pipes]
        leaves = [
            np.concatenate([np.ravel(g) for g in (x.values() if isinstance(x, dict) else [x])])
            for _, x in found
        ]
        return sum(value for value, _ in found), np.sum(leaves, 0)

    def end(self) -> None:
        """Have the processes end."""
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            pipe.send(None)
            process.join()


def sums(libraries: list[str], quick: bool) -> Iterator[Row]:
    """Time value and gradient of each problem with each set of workers."""
    for name in PROBLEMS if "tapegrad" in libraries else ():
        params = drawn(name, quick)[0]
        sets = {label: Workers(name, *how, quick) for label, how in SETS.items()}
        try:
            (value, gradient), *others = [work(params) for work in sets.values()]
            for other in others:  # the order of adding up differs
                np.testing.assert_allclose(other[0], value, rtol=1e-9)
                np.testing.assert_allclose(other[1], gradient, rtol=1e-6, atol=1e-6)
            samples: dict[str, list[float]] = {label: [] for label in sets}
            for k in range(2 if quick else ROUNDS + WARM):
                for label, work in sets.items():
                    start = perf_counter()
                    work(params)
                    if k >= (0 if quick else WARM):
                        samples[label].append(perf_counter() - start)
        finally:
            for work in sets.values():
                work.end()
        figures = {label: Figure.of(found, 1e3) for label, found in samples.items()}
        gain = [figures["1 thread"].median / figures[label].median for label in sets]
        note = ", ".join(f"{label} {x:.2f}×" for label, x in list(zip(sets, gain, strict=True))[1:])
        yield Row("value and gradient of a sum over rows", name, 1, "ms", figures, note=note)


PROCESS_GROUPS = {"sums": sums}
