"""Interleaved timing: every library in turn, round after round, so that all share the weather."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter, sleep
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """The median and the minimum of several measurements."""

    median: float
    minimum: float

    @property
    def unsteady(self) -> bool:
        """Whether something else used the machine meanwhile, so that the figure means little."""
        return self.median > 2 * self.minimum

    @classmethod
    def of(cls, samples: list[float], scale: float = 1.0) -> Figure:
        return cls(median(samples) * scale, min(samples) * scale)


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure.

    Parameters
    ----------
    batch
        Seconds that one sample should take; a short call is repeated until it does.
    rounds
        The least and the greatest number of rounds.
    budget
        Seconds after which no further round is started once the least number is done.
    rest
        Seconds of sleep before every sample. The idle threads of an OpenMP pool go on spinning for
        a while, on the processors that the next library's threads need.
    """

    batch: float = 0.005
    rounds: tuple[int, int] = (9, 51)
    budget: float = 3.0
    rest: float = 0.0


QUICK = Effort(batch=0.0, rounds=(2, 2), budget=0.0)


def interleave(calls: Mapping[str, Callable[[], Any]], effort: Effort) -> dict[str, list[float]]:
    """Return the seconds per call of each, one sample a round, the order rotating.

    What is there before is frozen: a library whose garbage wants a collection would else pay for
    the objects of all the others, some hundred thousand of them.
    """
    repeats = {name: _calibrate(call, effort.batch) for name, call in calls.items()}
    gc.collect()
    gc.freeze()
    try:
        return _interleaved(calls, effort, repeats)
    finally:
        gc.unfreeze()


def _interleaved(
    calls: Mapping[str, Callable[[], Any]], effort: Effort, repeats: dict[str, int]
) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    least, most = effort.rounds
    start = perf_counter()
    for done in range(most):
        if done >= least and perf_counter() - start > effort.budget:
            break
        for name in order:
            if effort.rest:
                sleep(effort.rest)
            samples[name].append(_sample(calls[name], repeats[name]))
        order.append(order.pop(0))
    return samples


def _sample(call: Callable[[], Any], repeats: int) -> float:
    rounds = range(repeats)
    start = perf_counter()
    for _ in rounds:
        call()
    return (perf_counter() - start) / repeats


def _calibrate(call: Callable[[], Any], batch: float) -> int:
    """Warm up, then return how many calls fill a batch."""
    for _ in range(2):
        call()
    return max(1, round(batch / _sample(call, 3))) if batch else 1
