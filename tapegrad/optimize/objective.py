"""The function to minimize and the constraints, with the derivatives that a method asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.optimize.points import Points, flattened
from tapegrad.optimize.progress import Progress
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import name_of
from tapegrad.transforms.forward import linearize
from tapegrad.transforms.jacobians import hessian, jacobian
from tapegrad.transforms.reverse import grad, value_and_grad


class Products:
    """Products of a matrix of second derivatives with vectors, many of them at one point."""

    def __init__(self, gradient: Callable[..., Any]) -> None:
        self.gradient = gradient
        self.at: tuple[bytes, ...] | None = None
        self.slope: Callable[..., Any] | None = None

    def __call__(self, v: Any, x: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        """The derivative of the gradient in `x` along a vector; recorded once for a point."""
        at = tuple(a.tobytes() for a in (x, *rest))
        if self.slope is None or at != self.at:
            self.forget()
            _, self.slope = linearize(lambda x: self.gradient(x, *rest), x)
            self.at = at
        return np.asarray(self.slope(np.array(v, float).reshape(x.shape)), float)

    def forget(self) -> None:
        """Let go of what was recorded."""
        self.slope = self.at = None


class Objective:
    """The function to minimize, of vectors."""

    def __init__(
        self, f: Callable[..., Any], points: Points, args: tuple[Any, ...], progress: Progress
    ) -> None:
        self.f, self.points, self.args, self.progress = f, points, args, progress
        self.both = value_and_grad(self.checked)
        gradient = grad(lambda flat: self.checked(points.given(flat)))
        self.products = Products(gradient)
        self.second = hessian(lambda flat: self.checked(points.given(flat)))

    def checked(self, x: Any) -> Any:
        """The user's function; an error unless it returns a real number."""
        name = f"`{self.points.name}`: {name_of(self.f)}"
        y = self.f(x, *self.args)
        known = isinstance(y, (Tensor, float, int, complex, np.ndarray, np.generic))
        if isinstance(y, bool) or not known:
            raise TypeError(f"{name} must return a scalar, got {type(y).__name__}")
        array = y._a if isinstance(y, Tensor) else np.asarray(y)
        if array.shape != ():
            raise TypeError(
                f"{name} must return a scalar, got the shape {array.shape}: reduce it (`.sum()`), "
                "or use `least_squares` for a vector of residuals"
            )
        if array.dtype.kind not in "iuf":
            raise TypeError(f"{name} must return a real number, got {array.dtype}")
        return y if array.dtype.kind == "f" else float(array)

    def value(self, flat: np.ndarray) -> float:
        """The value alone."""
        try:
            value = self._number(self.checked(self.points.given(flat)))
        except TypeError as error:
            self._explain(error)
            raise
        self._finite_at_start(value)
        self.progress.evaluated(value)
        return value

    def value_and_gradient(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        """Both, from one run and one sweep."""
        try:
            found, gradient = self.both(self.points.given(flat))
        except TypeError as error:
            self._explain(error)
            raise
        value, slope = self._number(found), self.points.vector(gradient)
        self._finite_at_start(value, slope)
        self.progress.evaluated(value, slope)
        return value, slope

    def product(self, flat: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The Hessian times a vector."""
        return self.products(v, flat)

    def matrix(self, flat: np.ndarray) -> np.ndarray:
        """The Hessian."""
        return np.asarray(self.second(np.array(flat, float)), float)

    def _number(self, value: Any) -> float:
        return float(self.points.array(value, f"the value of {name_of(self.f)}"))

    def _finite_at_start(self, value: float, slope: np.ndarray | None = None) -> None:
        if self.progress.evaluations:
            return
        name = f"`{self.points.name}`: {name_of(self.f)}"
        if not np.isfinite(value):
            raise ValueError(f"{name} is {value} at the start `x0`: start where it is finite")
        if slope is not None and not np.isfinite(slope).all():
            raise ValueError(
                f"{name} has a gradient that is not finite at the start, in "
                f"`x0{self.points.stray(slope)}`: start elsewhere"
            )

    def _explain(self, error: TypeError) -> None:
        if self.points.tree.kind in (list, tuple) and not self.progress.evaluations:
            kind = self.points.tree.kind.__name__
            error.add_note(
                f"`x0` is a {kind}, and so is what {name_of(self.f)} gets: a pytree of "
                f"{len(self.points.leaves)} leaves. For one vector give `np.array(x0)`."
            )


class Constraint:
    """A constraint given as a function, of vectors."""

    def __init__(self, f: Callable[..., Any], points: Points, args: tuple[Any, ...] = ()) -> None:
        self.f, self.points = flattened(f, points, args), points
        self.rows = jacobian(self.f)
        values = self.f
        weighted = lambda flat, weights: (values(flat) * weights).sum()
        self.products = Products(grad(weighted))

    def value(self, flat: np.ndarray) -> np.ndarray:
        """The values, as a vector."""
        y = self.f(np.asarray(flat, float))
        return np.array(self.points.array(y, "the value of a constraint"), float)

    def jacobian(self, flat: np.ndarray) -> np.ndarray:
        """One row for each value."""
        rows = self.rows(np.array(flat, float))
        return np.asarray(self.points.array(rows, "the value of a constraint"), float)

    def hessian(self, flat: np.ndarray, weights: np.ndarray) -> Any:
        """The second derivatives of the weighted values, as an operator on vectors."""
        from scipy.sparse.linalg import LinearOperator

        x, w = np.array(flat, float), np.array(weights, float)
        size = x.size
        return LinearOperator((size, size), lambda p: self.products(p, x, w), dtype=float)
