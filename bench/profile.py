"""Where single operations on a million doubles spend their time, taken apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter, sleep
from typing import Any

import numpy as np

from bench import operations
from bench.libraries import Library, Torch
from bench.operations import columns, mat, positive, row, rows, unit, vec
from bench.problem import SEED
from bench.report import Row, ratios_to, unsteady
from bench.timing import QUICK, Effort, Figure, interleave

try:
    from resource import RUSAGE_SELF, getrusage
except ImportError:  # not on Windows: no page faults there
    getrusage = None  # type: ignore[assignment]

GROUP = "operations on 1,000,000 doubles, taken apart"
QUICK_SIDE = 32
COUNTED = 20  # calls over which page faults are counted

# In memory that is there, nothing is recorded: what a loop over 8 MB takes by itself.
LOOPS: dict[str, tuple[operations.Draw, Callable[[Any, Any], Any]]] = {
    "write 8 MB": (vec, lambda y, x: y.fill_(2.0)),
    "copy 8 MB": (vec, lambda y, x: y.copy_(x)),
    **{
        f"{name}, in place": (draw, lambda y, x, name=name: getattr(y, f"{name}_")())
        for name, draw in (
            ("neg", vec), ("exp", vec), ("log", positive), ("sqrt", positive), ("sin", vec),
            ("tan", unit), ("asin", unit), ("erf", vec),
        )
    },
}  # fmt: skip

# A new result, without a record and with one.
CALLS: dict[str, tuple[tuple[operations.Draw, ...], Callable[..., Any]]] = {
    "neg": ((vec,), lambda xp, x: -x),
    "exp": ((vec,), lambda xp, x: xp.exp(x)),
    "sqrt": ((positive,), lambda xp, x: xp.sqrt(x)),
    "clone().exp_()": ((vec,), lambda xp, x: x.clone().exp_()),
    "clone().mul_(y)": ((vec, vec), lambda xp, x, y: x.clone().mul_(y)),
    "sum": ((vec,), lambda xp, x: xp.sum(x)),
    "prod": ((operations.near_one,), lambda xp, x: xp.prod(x)),
    "outer": ((row, row), lambda xp, x, y: xp.outer(x, y)),
    "mm": ((mat, mat), lambda xp, a, b: xp.mm(a, b)),
    "gather": ((mat, columns), lambda xp, x, i: x.gather(1, i)),
    "index_add": ((mat, mat, rows), lambda xp, x, y, i: x.index_add(0, i, y)),
    "t": ((mat,), lambda xp, x: x.t()),
    "view": ((mat,), lambda xp, x: x.view(-1)),
    "unbind": ((mat,), lambda xp, x: x.unbind()),
}


def large(chosen: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time loops, calls and records apart, the libraries in turn, and count page faults."""
    libraries = [library for library in chosen if isinstance(library, Torch)]
    side = QUICK_SIDE if quick else operations.SIDE
    rest = 0.02 if threads > 1 else 0.0
    for name, (draw, change) in LOOPS.items():
        x = draw(np.random.default_rng(SEED), side)
        yield _row(name, threads, "µs", _changes(libraries, change, x, rest, 3 if quick else 60))
    effort = QUICK if quick else Effort(rounds=(9, 31), budget=0.5, rest=rest)
    for name, (draws, function) in CALLS.items():
        for part, tracked in (("no record", False), ("recorded", True)):
            calls = {x.name: _call(x.module, draws, function, side, tracked) for x in libraries}
            samples = interleave(calls, effort)
            figures = {library: Figure.of(taken, 1e6) for library, taken in samples.items()}
            yield _row(f"{name}, {part}", threads, "µs", figures)
        if getrusage is not None:
            faults = {library: _faults(call) for library, call in calls.items()}
            yield _row(f"{name}, recorded", threads, "page faults", faults)


def _row(name: str, threads: int, unit: str, figures: dict[str, Figure]) -> Row:
    timed = unit == "µs"
    ratios = ratios_to(figures, "torch") if timed else {}
    return Row(GROUP, name, threads, unit, figures, ratios, note=unsteady(figures) if timed else "")


def _changes(
    libraries: list[Torch], change: Callable[[Any, Any], Any], x: np.ndarray, rest: float, most: int
) -> dict[str, Figure]:
    """Time what changes a Tensor in place; its old values come back in between."""
    pairs = {a.name: (a.module.tensor(x), a.module.tensor(x)) for a in libraries}
    samples: dict[str, list[float]] = {name: [] for name in pairs}
    for done in range(most):
        for name, (y, source) in pairs.items():
            sleep(rest)
            for _ in range(2):  # the first call wakes threads
                y.copy_(source)
                start = perf_counter()
                change(y, source)
                seconds = perf_counter() - start
            if done:
                samples[name].append(seconds)
    return {name: Figure.of(taken, 1e6) for name, taken in samples.items()}


def _call(
    xp: Any, draws: tuple[operations.Draw, ...], function: Any, side: int, tracked: bool
) -> Callable[[], Any]:
    rng = np.random.default_rng(SEED)
    arrays = [draw(rng, side) for draw in draws]
    tensors = [xp.tensor(a, requires_grad=tracked and a.dtype.kind == "f") for a in arrays]
    return lambda: function(xp, *tensors)


def _faults(call: Callable[[], Any]) -> Figure:
    call()
    before = getrusage(RUSAGE_SELF).ru_minflt
    for _ in range(COUNTED):
        call()
    return Figure.of([(getrusage(RUSAGE_SELF).ru_minflt - before) / COUNTED])


__all__ = ["large"]
