"""A line search for the strong Wolfe conditions, by cubic interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

DECREASE, CURVATURE = 1e-4, 0.9  # of the slope at the start: the two Wolfe conditions
LEAST_GROWTH, MOST_GROWTH = 0.01, 10  # of the step while no minimum is bracketed
MARGIN = 0.1  # of a bracket: how near to its ends may be tried twice in a row


class Trial(NamedTuple):
    """What was found at a step along the direction."""

    step: float
    value: float
    gradient: np.ndarray
    slope: np.float64  # of the value by the step


class Conditions(NamedTuple):
    """The strong Wolfe conditions, by what is known where the search starts."""

    start: Trial

    def too_high(self, at: Trial) -> bool:
        """Whether the value has not decreased as much as the slope promises."""
        return bool(at.value > self.start.value + DECREASE * at.step * self.start.slope)

    def flat(self, at: Trial) -> bool:
        """Whether most of the slope is gone."""
        return bool(abs(at.slope) <= -CURVATURE * self.start.slope)


def strong_wolfe(
    evaluate: Callable[[float], Trial], start: Trial, first: float, *,
    longest: float, tolerance: float, limit: int,
) -> tuple[Trial, int]:  # fmt: skip
    """A step along a direction that meets the conditions, or the best found; and evaluations.

    `first` is the step that is tried first, `longest` the greatest element of the direction,
    `tolerance` how far the ends of a bracket move a parameter when it is not divided further, and
    `limit` how many further steps are tried.
    """
    meets = Conditions(start)
    before, here, tried = start, evaluate(first), 0
    while tried < limit:
        if meets.too_high(here) or (tried > 1 and here.value >= before.value):
            break
        if meets.flat(here):
            return here, tried + 1
        if here.slope >= 0:
            break
        least = here.step + LEAST_GROWTH * (here.step - before.step)
        step = interpolated(before, here, least, MOST_GROWTH * here.step)
        before, here, tried = here, evaluate(step), tried + 1
    else:
        return (start if start.value <= here.value else here), tried + 1
    return _zoomed(evaluate, meets, [before, here], longest, tolerance, tried, limit)


def _zoomed(
    evaluate: Callable[[float], Trial], meets: Conditions, ends: list[Trial],
    longest: float, tolerance: float, tried: int, limit: int,
) -> tuple[Trial, int]:  # fmt: skip
    """Divide a bracket until a step meets the conditions."""
    low = 0 if ends[0].value <= ends[1].value else 1
    near = False  # whether the last trial was near an end
    while tried < limit:
        if abs(ends[1].step - ends[0].step) * longest < tolerance:
            break
        left, right = sorted(end.step for end in ends)
        step = interpolated(ends[0], ends[1], left, right)
        margin = MARGIN * (right - left)
        at_end = min(right - step, step - left) < margin
        if at_end and (near or step >= right or step <= left):
            step = right - margin if abs(step - right) < abs(step - left) else left + margin
            at_end = False
        near = at_end
        here, tried = evaluate(step), tried + 1
        if meets.too_high(here) or here.value >= ends[low].value:
            ends[1 - low] = here
            low = 0 if ends[0].value <= ends[1].value else 1
            continue
        if not meets.flat(here) and here.slope * (ends[1 - low].step - ends[low].step) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = here
        if meets.flat(here):
            break
    return ends[low], tried + 1


def interpolated(a: Trial, b: Trial, least: float, most: float) -> float:
    """Where the cubic through two values and slopes is smallest, within bounds; else the middle."""
    if a.step > b.step:
        a, b = b, a
    with np.errstate(all="ignore"):
        mean = a.slope + b.slope - 3 * np.float64(a.value - b.value) / (a.step - b.step)
        square = mean**2 - a.slope * b.slope
        if not square >= 0:
            return (least + most) / 2
        root = np.sqrt(square)
        share = (b.slope + root - mean) / (b.slope - a.slope + 2 * root)
        return float(min(max(b.step - (b.step - a.step) * share, least), most))
