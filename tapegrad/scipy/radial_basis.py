"""Interpolation between scattered points, by radial basis functions.

>>> import numpy as np, tapegrad as tg
>>> places, heights = np.random.default_rng(0).random((2, 20, 2)), np.arange(20.0)
>>> surface = lambda d: tg.scipy.interpolate.RBFInterpolator(places[0], d)(places[1]).sum()
>>> tg.grad(surface)(heights).shape
(20,)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from tapegrad.numpy_face.common import floating, tensor
from tapegrad.scipy.either import among, stack_lists, theirs
from tapegrad.transforms.custom import stop_gradient

# By its name: a function of the squared distance and its root, whether epsilon may be left out, and
# the least degree of the polynomial that goes with it.
KERNELS: dict[str, tuple[Callable[[Any, Any], Any], bool, int]] = {
    "linear": (lambda s, r: -r, True, 0),
    "thin_plate_spline": (lambda s, r: 0.5 * s * np.log(np.where(s == 0, 1.0, s)), True, 1),
    "cubic": (lambda s, r: s * r, True, 1),
    "quintic": (lambda s, r: -s * s * r, True, 2),
    "multiquadric": (lambda s, r: -np.sqrt(s + 1), False, 0),
    "inverse_multiquadric": (lambda s, r: 1 / np.sqrt(s + 1), False, -1),
    "inverse_quadratic": (lambda s, r: 1 / (s + 1), False, -1),
    "gaussian": (lambda s, r: np.exp(-s), False, -1),
}


class RBFInterpolator:
    """A smooth function through values at scattered points, both perhaps Tensors; see SciPy's.

    >>> import tapegrad as tg
    >>> d = tg.tensor([0.0, 1.0, 4.0], requires_grad=True)
    >>> curve = tg.scipy.interpolate.RBFInterpolator([[0.0], [1.0], [2.0]], d, kernel="cubic")
    >>> round(curve([[1.5]])[0].item(), 9)
    2.3125
    """

    def __init__(
        self, y: Any, d: Any, neighbors: Any = None, smoothing: Any = 0.0,
        kernel: str = "thin_plate_spline", epsilon: Any = None, degree: int | None = None,
    ) -> None:  # fmt: skip
        y, d, smoothing = map(stack_lists, (y, d, smoothing))
        self._given = (y, d, neighbors, smoothing, kernel, epsilon, degree)
        self._own: Any = None
        self.y: Any = None
        if among((y, d, smoothing, epsilon)):
            self._fit(*self._given)
        else:
            self._own = theirs("scipy.interpolate", "RBFInterpolator")(*self._given)

    def _fit(
        self, y: Any, d: Any, neighbors: Any, smoothing: Any, kernel: str, epsilon: Any,
        degree: int | None,
    ) -> None:  # fmt: skip
        """Find the coefficients, of arrays not before a Tensor comes."""
        if neighbors is not None:
            raise NotImplementedError("`scipy.interpolate.RBFInterpolator` for Tensors: neighbors")
        if kernel not in KERNELS:
            raise ValueError(f"`RBFInterpolator`: kernel is one of {[*KERNELS]}, got {kernel!r}")
        self.kernel, scaleless, least = KERNELS[kernel]
        if epsilon is None and not scaleless:
            raise ValueError(f"`RBFInterpolator`: the kernel {kernel!r} needs epsilon")
        self.epsilon = 1.0 if epsilon is None else epsilon
        places, values = floating(tensor(y)), floating(tensor(d))
        if places._a.ndim != 2 or values._a.shape[:1] != places._a.shape[:1]:
            raise ValueError(
                "`RBFInterpolator`: a row of coordinates for each value, got the shapes "
                f"{np.shape(y)} and {np.shape(d)}"
            )
        points, dims = places._a.shape
        self.degree = max(least, 0) if degree is None else degree
        low, high = np.min(places, axis=0), np.max(places, axis=0)
        # The curve does not depend on these; they keep the polynomials of one size.
        self._middle = stop_gradient(0.5 * (low + high))
        self._half = stop_gradient(np.where(high > low, 0.5 * (high - low), 1.0))
        self._powers = [
            powers
            for degree in range(self.degree + 1)
            for powers in combinations_with_replacement(range(dims), degree)
        ]
        if len(self._powers) > points:
            raise ValueError(
                f"`RBFInterpolator`: at least {len(self._powers)} points for the degree "
                f"{self.degree} in {dims} dimensions, got {points}"
            )
        self.y, self._rest = places, values._a.shape[1:]
        self._coefficients = self._solved(np.reshape(values, (points, -1)), smoothing)

    def _solved(self, values: Any, smoothing: Any) -> Any:
        kernel = self._kernel(self.y) + np.diag(smoothing * np.ones(len(self.y)))
        if not self._powers:
            return np.linalg.solve(kernel, values)
        p = self._polynomials(self.y)
        count = len(self._powers)
        whole = np.block([[kernel, p], [p.T, np.zeros((count, count))]])
        return np.linalg.solve(whole, np.concatenate([values, np.zeros((count, values.shape[1]))]))

    def _kernel(self, x: Any) -> Any:
        """What each point adds at some places."""
        steps = (x[:, None, :] - self.y[None, :, :]) * self.epsilon
        squares = np.sum(steps * steps, axis=-1)
        separated = squares != 0  # where the root has a slope
        return self.kernel(
            squares, np.where(separated, np.sqrt(np.where(separated, squares, 1.0)), 0.0)
        )

    def _polynomials(self, x: Any) -> Any:
        at = (x - self._middle) / self._half
        columns = [np.prod(at[:, list(powers)], axis=1) for powers in self._powers]
        return np.stack(columns, axis=1)

    def __call__(self, x: Any) -> Any:
        """The values at some places, a row of coordinates for each."""
        if self._own is not None and not among(x):
            return self._own(x)
        if self.y is None:
            self._fit(*self._given)
        at = floating(tensor(x))
        if at._a.ndim != 2 or at._a.shape[1] != self.y._a.shape[1]:
            raise ValueError(
                f"`RBFInterpolator`: rows of {self.y._a.shape[1]} coordinates, got the shape "
                f"{at._a.shape}"
            )
        parts = self._kernel(at)
        if self._powers:
            parts = np.concatenate([parts, self._polynomials(at)], axis=1)
        return np.reshape(parts @ self._coefficients, (len(at), *self._rest))
