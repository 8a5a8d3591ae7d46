"""What happens on the way of a solution: events, and the solution as a function of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.functions.histograms import searchsorted
from tapegrad.functions.joining import stack
from tapegrad.numpy_face.common import tensor
from tapegrad.scipy.initial_values import Problem, State
from tapegrad.scipy.optimize import brentq
from tapegrad.tensor import Tensor, tensor_of
from tapegrad.transforms.custom import stop_gradient
from tapegrad.transforms.looping import decided

EXACT = 4 * np.finfo(float).eps  # of a time


class Event:
    """A function of time and state, whose zeros are wanted; SciPy's attributes say which."""

    def __init__(
        self, function: Callable[..., Any], problem: Problem, args: tuple[Any, ...]
    ) -> None:
        self.function, self.problem, self.args = function, problem, args
        self.direction = getattr(function, "direction", 0)
        self.left = getattr(function, "terminal", None) or np.inf  # events until the end
        self.times: list[Tensor] = []
        self.states: list[Tensor] = []
        self.before = self.sign(problem.begin, problem.y0)

    def sign(self, time: Tensor, y: Tensor) -> float:
        """The sign of the function."""
        value = tensor(self.function(time, y, *self.args))
        if not decided(value):
            raise self.problem.unknown()
        return float(np.sign(stop_gradient(value).item()))

    def passes(self, state: State) -> bool:
        """Whether there is one within the last step."""
        before, self.before = self.before, self.sign(state.time, state.y)
        up, down = before <= 0 <= self.before, before >= 0 >= self.before
        return (up and self.direction >= 0) or (down and self.direction <= 0)

    def root(self, state: State) -> Tensor:
        """Its time within the last step, differentiable as the zero of the function."""

        def value(time: Any) -> Any:
            return self.function(time, self.problem.value(state, time), *self.args)

        ends = stop_gradient([state.time_before, state.time])
        found: Tensor = brentq(value, *map(float, ends), xtol=EXACT, rtol=EXACT)
        return tensor(found)


def take_events(events: list[Event], problem: Problem, state: State) -> State | None:
    """Note the events of the last step; the state at the one that ends the solution, if any."""
    found = [(event.root(state), event) for event in events if event.passes(state)]
    for time, event in sorted(found, key=lambda one: stop_gradient(one[0] * problem.direction)):
        y = problem.value(state, time)
        event.times.append(time)
        event.states.append(y)
        event.left -= 1
        if event.left == 0:
            return state._replace(time=time, y=y)
    return None


def stacked(values: list[Tensor]) -> Tensor:
    """Values in one array, which is empty if there are none."""
    return stack(values) if values else tensor_of(np.zeros(0), "")


class DenseOutput:
    """The solution as a function of a time, or of several, from the first to the last."""

    def __init__(self, problem: Problem, states: list[State]) -> None:
        self._problem, self.ts = problem, stack([s.time for s in states])
        self._ends = stop_gradient(self.ts)
        # Without a step the first state is constant: its own "last step" has the length one.
        self._steps = [stack(list(field)) for field in zip(*(states[1:] or states), strict=True)]
        self.t_min, self.t_max = self._ends.min(), self._ends.max()
        self.n_segments = max(len(states) - 1, 1)

    def __call__(self, t: Any) -> Tensor:
        """The state at a time, or the states at times, one column each."""
        time = tensor(t).double()
        if time._a.ndim > 1:
            raise ValueError(f"`sol`: times have at most one dimension, got {time._a.ndim}")
        direction = self._problem.direction
        place = searchsorted(self._ends * direction, stop_gradient(time) * direction)
        place = (place - 1).clip(0, self.n_segments - 1)
        step = State(*(field[place] for field in self._steps))
        y: Tensor = self._problem.within(step, time)
        return y if time._a.ndim == 0 else y.movedim(0, -1)
