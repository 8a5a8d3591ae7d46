"""Distributions with a location and a scale, from the logarithm of one density each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compat.autograd.scipy._rules import composed, elementwise

Function = Callable[..., Any]


class Continuous:
    """The functions of a distribution; `density` is that of `logpdf` at location 0 and scale 1.

    It is called with the value and the parameters of shape, within the support.
    """

    def __init__(self, name: str, density: Function, shapes: int, upper: float = np.inf) -> None:
        self.density, self.shapes, self.upper = density, shapes, upper
        path = f"stats.{name}."
        none = (None,) * shapes  # a distribution function has no derivative in these here
        self._cdf = elementwise(path + "cdf", lambda y, z, *s: np.exp(self._at(z, *s)), *none)
        self._logcdf = elementwise(
            path + "logcdf", lambda y, z, *s: np.exp(self._at(z, *s) - y), *none
        )
        self.logpdf = composed(path + "logpdf")(self._logpdf)
        self.pdf = composed(path + "pdf")(
            lambda *args, **named: np.exp(self._logpdf(*args, **named))
        )
        self.cdf = composed(path + "cdf")(self._of_standard(self._cdf))
        self.logcdf = composed(path + "logcdf")(self._of_standard(self._logcdf))

    def _at(self, z: Any, *shapes: Any) -> Any:
        """The logarithm of the density, also outside of the support."""
        low = -np.inf if self.upper < 0 else 0.0
        inside = (z >= low) & (z <= abs(self.upper))
        if np.all(inside):
            return self.density(z, *shapes)
        return np.where(inside, self.density(np.where(inside, z, 0.5), *shapes), -np.inf)

    def _standard(
        self, x: Any, rest: Any, loc: Any = 0.0, scale: Any = 1.0
    ) -> tuple[Any, Any, Any]:
        """The value at location 0 and scale 1, the parameters of shape, and the scale."""
        if len(rest) > self.shapes:
            loc = rest[self.shapes]
        if len(rest) > self.shapes + 1:
            scale = rest[self.shapes + 1]
        return (x - loc) / scale, rest[: self.shapes], scale

    def _logpdf(self, x: Any, *rest: Any, **named: Any) -> Any:
        z, shapes, scale = self._standard(x, rest, **named)
        return self._at(z, *shapes) - np.log(scale)

    def _of_standard(self, function: Function) -> Function:
        def shifted(x: Any, *rest: Any, **named: Any) -> Any:
            z, shapes, _ = self._standard(x, rest, **named)
            return function(z, *shapes)

        return shifted
