"""Initial value problems of differential equations, solved in steps whose sizes are adapted.

Steps and sizes are SciPy's.  They are taken in a `while_loop`: transforms go through it, and `jit`
compiles it.  The sizes are constants to a derivative, which is that of the solution as computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.functions.arithmetic import sign, where
from tapegrad.functions.elementwise import fmax, maximum, minimum
from tapegrad.functions.joining import stack
from tapegrad.functions.reductions import mean
from tapegrad.numpy_face.common import floating, tensor
from tapegrad.scipy.either import among
from tapegrad.scipy.runge_kutta import Method
from tapegrad.tensor import Tensor, tensor_of
from tapegrad.transforms.control import scan, while_loop
from tapegrad.transforms.custom import stop_gradient
from tapegrad.transforms.looping import decided

SAFETY, LEAST_FACTOR, LARGEST_FACTOR = 0.9, 0.2, 10.0  # of SciPy's choice of the next step
EPSILON, TINY = np.finfo(float).eps, np.finfo(float).tiny


class State(NamedTuple):
    """Where the solution is, and the step that led there, for values within it."""

    time: Tensor
    y: Tensor
    slope: Tensor
    size: Tensor  # of the next step, with its sign
    rejected: Tensor  # whether the last attempt was
    time_before: Tensor
    y_before: Tensor
    length: Tensor  # of the last step
    curve: Tensor


class Problem:
    """An initial value problem, with the method and the tolerances that it is solved with."""

    def __init__(
        self, name: str, fun: Callable[..., Any], span: tuple[Any, Any], y0: Any, method: Method,
        rtol: Any, atol: Any, max_step: Any,
    ) -> None:  # fmt: skip
        self.name, self.fun, self.method = name, fun, method
        self.y0 = floating(tensor(y0))
        if self.y0._a.ndim != 1:
            raise ValueError(f"`{name}`: `y0` has one dimension, got the shape {self.y0._a.shape}")
        self.begin, self.end = (tensor(t).double() for t in span)
        self.direction = stop_gradient(sign(self.end - self.begin))
        self.rtol, self.atol, self.max_step = max(rtol, 100 * EPSILON), atol, max_step

    def slope(self, t: Tensor, y: Tensor) -> Tensor:
        """What the function gives, which may be a list of numbers."""
        found = floating(tensor(self.fun(t, y)))
        if found._a.shape != y._a.shape:
            raise ValueError(
                f"`{self.name}`: the function returned the shape {found._a.shape} for a state of "
                f"shape {y._a.shape}"
            )
        return found.to(y.dtype)

    def first(self, size: Any) -> State:
        """The state at the beginning; `size` is that of the first step, None: SciPy's choice."""
        slope = self.slope(self.begin, self.y0)
        size = self._first_size(slope) if size is None else tensor(size).double()
        rest = tensor_of(np.zeros(slope._a.shape, slope._a.dtype), "")
        one, no = tensor_of(np.array(1.0), ""), tensor_of(np.array(False), "")
        return State(
            self.begin, self.y0, slope, self.direction * size, no, self.begin, self.y0, one,
            stack([slope, *[rest] * (self.method.powers - 1)], -1),
        )  # fmt: skip

    def _norm(self, x: Tensor, size: Tensor) -> Tensor:
        """The root mean square of something relative to what is tolerated at a size of y."""
        return mean((abs(x) / (self.atol + size * self.rtol)).double() ** 2).sqrt()

    def _first_size(self, slope: Tensor) -> Tensor:
        """The first step after Hairer, Nørsett and Wanner (I, II.4), as SciPy chooses it."""
        y, slope, span = stop_gradient((self.y0, slope, abs(self.end - self.begin)))
        d0, d1 = self._norm(y, abs(y)), self._norm(slope, abs(y))
        tiny = (d0 < 1e-5) | (d1 < 1e-5)
        h0 = minimum(where(tiny, 1e-6, 0.01 * d0 / d1), span)
        h = self.direction * h0
        there = stop_gradient(self.slope(self.begin + h, y + h.to(y.real.dtype) * slope))
        largest = maximum(d1, self._norm(there - slope, abs(y)) / h0)
        power = 1 / (self.method.error_order + 1)
        h1 = where(largest <= 1e-15, maximum(1e-3 * h0, 1e-6), (0.01 / largest) ** power)
        chosen: Tensor = minimum(minimum(minimum(100 * h0, h1), span), self.max_step)
        return chosen

    def _least(self, time: Tensor) -> Tensor:
        """The smallest step that still changes a time."""
        least: Tensor = 10 * EPSILON * abs(stop_gradient(time)) + TINY
        return least

    def goes_on(self, state: State, until: Any) -> Tensor:
        """Whether another step is wanted, and possible."""
        wanted = (until - state.time) * self.direction > 0
        possible = ~state.rejected | (abs(state.size) >= self._least(state.time))
        return stop_gradient(wanted & possible)  # type: ignore[no-any-return]

    def attempt(self, state: State) -> State:
        """Try a step; what comes out is the old state with a smaller `size` if it is rejected."""
        t, y = state.time, state.y
        size = minimum(maximum(abs(state.size), self._least(t)), self.max_step)
        last = t * self.direction + size >= self.end * self.direction
        length = where(last, self.end - t, self.direction * size)
        new, slope, errors, curve = self.method.step(self.slope, t, y, state.slope, length)
        size_of_y = maximum(abs(y), abs(new))
        norms = stop_gradient([self._norm(error, size_of_y) for error in errors])
        error = self.method.error(norms)
        good = error < 1
        # An error of NaN makes the step smaller.
        factor = fmax(SAFETY * error ** (-1 / (self.method.error_order + 1)), LEAST_FACTOR)
        factor = minimum(factor, where(state.rejected, 1.0, LARGEST_FACTOR))
        time = where(last, self.end, t + length)
        taken = State(time, new, slope, size, ~good, t, y, length, curve)
        after = State(*(where(good, a, b) for a, b in zip(taken, state, strict=True)))
        return after._replace(size=stop_gradient(length * factor), rejected=~good)

    def within(self, state: State, time: Any) -> Tensor:
        """The solution at a time within the last step; or at times, each with a step of its own."""
        part = ((time - state.time_before) / state.length).to(self.y0.real.dtype)[..., None]
        found = 0.0
        for k in reversed(range(self.method.powers)):
            found = part * (state.curve[..., k] + found)
        return state.y_before + found

    def value(self, state: State, time: Any) -> Tensor:
        """The solution at a time within the last step; NaN if the steps did not get there."""
        beyond = (time - state.time) * self.direction > 0
        return where(beyond, np.nan, self.within(state, time))

    def require_order(self, times: Tensor) -> None:
        """Refuse times that do not follow each other within the span, as far as they are known."""
        beyond = ((times - self.begin) * (times - self.end) > 0).any()
        if decided(beyond) and beyond:
            raise ValueError(f"`{self.name}`: the times are not within those of the span")
        back = ((times[1:] - times[:-1]) * self.direction <= 0).any()
        if decided(back) and back:
            raise ValueError(
                f"`{self.name}`: the times are not sorted in the direction of the span"
            )

    def values(self, times: Tensor, size: Any) -> tuple[State, Tensor]:
        """The last state, and the solution at times that follow each other."""

        def advance(state: State, time: Any) -> tuple[State, Tensor]:
            """Go on to a time."""
            state = while_loop(lambda s: self.goes_on(s, time), self.attempt, state)
            return state, self.value(state, time)

        return scan(advance, self.first(size), times)

    def unknown(self) -> TypeError:
        """The error where what is asked for depends on values that are not known yet."""
        return TypeError(
            f"`{self.name}`: under `jit` and `vmap` it is not known how many steps and events "
            "there will be: say at which times you want the solution, `t_eval=`, without "
            "`events=` and `dense_output=`"
        )

    def states(
        self, size: Any, note: Callable[[State], State | None] = lambda _: None
    ) -> tuple[State, list[State]]:
        """The last state, and all that steps lead to, where it is known how many these are.

        `note` sees each, and returns the last one if it lies before the end.
        """
        state = self.first(size)
        found = [state]
        while True:
            more = self.goes_on(state, self.end)
            if not decided(more):
                raise self.unknown()
            if not more:
                return state, found
            state = self.attempt(state)
            if not state.rejected:
                last = note(state)
                found.append(last or state)
                if last:
                    return last, found


def is_recorded(fun: Callable[..., Any], t0: Any, y0: Any, *others: Any) -> bool:
    """Whether Tensors take part in a problem, if only in what its function reads.

    Some functions write their result into an array like the state, where numbers alone would lose
    the history of what they were computed from: these are shown a Tensor.
    """
    if among((t0, y0, *others)):
        return True
    try:
        found = fun(t0, tensor(np.array(y0)))
    except Exception:  # it takes arrays alone
        found = None
    return _has_history(found) or among(fun(t0, np.array(y0)))


def _has_history(found: Any) -> bool:
    """Whether something is computed from more than arrays."""
    if isinstance(found, (tuple, list)):
        return any(map(_has_history, found))
    return isinstance(found, Tensor) and (type(found) is not Tensor or found.requires_grad)
