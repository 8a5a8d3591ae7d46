"""Steps of Runge-Kutta methods: SciPy's explicit ones, and one for stiff problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.functions.arithmetic import where
from tapegrad.functions.joining import stack
from tapegrad.scipy.either import theirs
from tapegrad.tensor import Tensor
from tapegrad.transforms.jacobians import jacfwd

Slope = Callable[[Tensor, Tensor], Tensor]


class Step(NamedTuple):
    """What an attempt at a step gives."""

    y: Tensor
    slope: Tensor
    errors: tuple[Tensor, ...]
    curve: Tensor  # coefficients of the first and higher powers of the part of the step


class Method:
    """How a step is made."""

    error_order: int
    powers: int  # of the curve

    def step(self, f: Slope, t: Tensor, y: Tensor, slope: Tensor, length: Tensor) -> Step:
        """The attempt at a step from `y` at the time `t`, where the slope is known."""
        raise NotImplementedError

    def error(self, norms: list[Tensor]) -> Tensor:
        """The estimate of a step's error by the norms of its `errors`, here of the only one."""
        return norms[0]


class Explicit(Method):
    """RK45 of Dormand and Prince, or RK23 of Bogacki and Shampine, with SciPy's coefficients."""

    def __init__(self, name: str) -> None:
        self.of = theirs("scipy.integrate", name)
        self.error_order, self.powers = self.of.error_estimator_order, self.of.P.shape[1]

    def step(self, f: Slope, t: Tensor, y: Tensor, slope: Tensor, length: Tensor) -> Step:
        """See `Method`."""
        h, new, slopes = self._stages(f, t, y, slope, length)
        curve = stack([h * combined(column, slopes) for column in self.of.P.T], -1)
        return Step(new, slopes[-1], (h * combined(self.of.E, slopes),), curve)

    def _stages(
        self, f: Slope, t: Tensor, y: Tensor, slope: Tensor, length: Tensor
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The length in the type of y, the new y, and the slopes on the way and there."""
        h, slopes = length.to(y.real.dtype), [slope]
        for row, c in zip(self.of.A[1:], self.of.C[1:], strict=True):
            slopes.append(f(t + float(c) * length, y + h * combined(row, slopes)))
        new = y + h * combined(self.of.B, slopes)
        return h, new, [*slopes, f(t + length, new)]


class Dop853(Explicit):
    """The method of order 8 of Dormand and Prince, which estimates errors of orders 5 and 3."""

    error_order, powers = 7, 7

    def __init__(self) -> None:
        self.of = theirs("scipy.integrate", "DOP853")
        # The curve is a sum of the products x, x (1 - x), x^2 (1 - x), ...: these by powers of x.
        factors, products = [np.array([1.0, -1.0]), np.array([0.0, 1.0])], [np.array([0.0, 1.0])]
        for k in range(6):
            products.append(np.polynomial.polynomial.polymul(products[-1], factors[k % 2]))
        self.by_powers = [np.resize(np.append(p[1:], np.zeros(7)), 7) for p in products]

    def step(self, f: Slope, t: Tensor, y: Tensor, slope: Tensor, length: Tensor) -> Step:
        """See `Method`."""
        h, new, slopes = self._stages(f, t, y, slope, length)
        errors = tuple([h * combined(weights, slopes) for weights in (self.of.E5, self.of.E3)])
        change, there = new - y, slopes[-1]
        for row, c in zip(self.of.A_EXTRA, self.of.C_EXTRA, strict=True):
            slopes.append(f(t + float(c) * length, y + h * combined(row, slopes)))
        parts = [change, h * slope - change, 2 * change - h * (there + slope)]
        parts += [h * combined(row, slopes) for row in self.of.D]
        curve = stack([combined(column, parts) for column in np.transpose(self.by_powers)], -1)
        return Step(new, there, errors, curve)

    def error(self, norms: list[Tensor]) -> Tensor:
        """See `Method`."""
        fifth, third = norms
        weighted = (fifth**2 + 0.01 * third**2).sqrt()
        return where(weighted > 0, fifth**2 / weighted, weighted)


class Rodas4(Method):
    """The Rosenbrock method of Hairer and Wanner, of order 4 and L-stable, for stiff problems.

    Its stages are solutions of linear equations with one matrix, that of the Jacobian.  See their
    book, Solving Ordinary Differential Equations II, section IV.7, and their program RODAS.
    """

    error_order, powers = 3, 3
    GAMMA = 0.25
    TIMES = 0.0, 0.386, 0.21, 0.63, 1.0, 1.0
    SLOPES_IN_TIME = 0.25, -0.1043, 0.1035, -0.03620000000000023, 0.0, 0.0
    STAGES = (
        (),
        (1.544,),
        (0.9466785280815826, 0.2557011698983284),
        (3.314825187068521, 2.896124015972201, 0.9986419139977817),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895, 1.0),
    )
    BEFORE = (
        (),
        (-5.6688,),
        (-2.430093356833875, -0.2063599157091915),
        (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
        (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.7089089320616),
        (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136,
         -6.058818238834054),
    )  # fmt: skip
    DENSE = (
        (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823,
         1.025137723295662),
        (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386,
         -6.594389125716872),
    )  # fmt: skip

    def step(self, f: Slope, t: Tensor, y: Tensor, slope: Tensor, length: Tensor) -> Step:
        """See `Method`."""
        h = length.to(y.real.dtype)
        in_time, jacobian = jacfwd(f, (0, 1))(t, y)
        identity = np.eye(y._a.size, dtype=y._a.real.dtype)
        inverse = (identity / (self.GAMMA * h) - jacobian).inverse()
        stages: list[Tensor] = []
        new, rows = y, zip(self.STAGES, self.BEFORE, self.TIMES, self.SLOPES_IN_TIME, strict=True)
        for k, (stage, before, c, d) in enumerate(rows):
            new = y + combined(stage, stages)
            there = f(t + c * length, new) if k else slope
            right = there + d * h * in_time + combined(before, stages) / h
            stages.append(inverse @ right)
        new = new + stages[-1]
        a, b = (combined(row, stages) for row in self.DENSE)
        curve = stack([new - y + a, b - a, -b], -1)
        return Step(new, f(t + length, new), (stages[-1],), curve)


def combined(weights: Any, terms: list[Tensor]) -> Any:
    """A sum with weights; zeros among these are left out."""
    return sum(float(w) * x for w, x in zip(weights, terms, strict=False) if w)


STIFF = "Radau", "BDF", "LSODA"
METHODS: dict[str, Callable[[], Method]] = {
    **{name: lambda name=name: Explicit(name) for name in ("RK45", "RK23")},  # type: ignore[misc]
    "DOP853": Dop853,
    **dict.fromkeys(STIFF, Rodas4),
}
