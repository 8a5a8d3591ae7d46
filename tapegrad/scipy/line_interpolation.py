"""Interpolation along a line, by SciPy's older name for all kinds of it.

>>> import numpy as np, tapegrad as tg
>>> y = tg.tensor([0.0, 1.0, 4.0], requires_grad=True)
>>> tg.scipy.interpolate.interp1d([0.0, 1.0, 2.0], y)(1.25).backward(); y.grad
tensor([0.0000, 0.7500, 0.2500])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions.arithmetic import clamp, where
from tapegrad.functions.elementwise import gt, logical_or, lt
from tapegrad.functions.shapes import movedim, reshape
from tapegrad.numpy_face.common import floating, tensor
from tapegrad.numpy_face.mapped import varies
from tapegrad.numpy_face.order import searchsorted_
from tapegrad.scipy.either import among, theirs
from tapegrad.scipy.piecewise_polynomials import make_interp_spline
from tapegrad.tensor import Tensor

DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
KINDS = ("linear", "nearest", "nearest-up", "previous", "next", *DEGREES)
EXTRAPOLATE = "extrapolate"


class interp1d:
    """The function through values at points of a line; see SciPy's.

    Values and places may be Tensors, the points are arrays.  Where it is not known whether places
    lie among the points, under `vmap` and `jit`, the values of those that do not are NaN, unless
    there is a `fill_value`, or `bounds_error` is False.

    >>> import numpy as np, tapegrad as tg
    >>> square = tg.scipy.interpolate.interp1d(np.arange(4.0), np.arange(4.0) ** 2, "cubic")
    >>> round(tg.grad(square)(1.5), 9)
    3.0
    """

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True,
        bounds_error: bool | None = None, fill_value: Any = np.nan, assume_sorted: bool = False,
    ) -> None:  # fmt: skip
        name = "scipy.interpolate.interp1d"
        if among(x):
            raise TypeError(f"`{name}` of Tensors: the points are an array, got a Tensor")
        if kind not in KINDS and not isinstance(kind, int):
            raise NotImplementedError(f"`{name}`: kind is one of {KINDS} or a degree, got {kind!r}")
        self.x, self.axis = np.asarray(x, float), axis
        self._given = (x, y, kind, axis, copy, bounds_error, fill_value, assume_sorted)
        self._of_tensors = among((y, fill_value))
        rows = movedim(floating(tensor(y)), axis, 0)
        if self.x.ndim != 1 or rows._a.shape[:1] != self.x.shape:
            raise ValueError(
                f"`{name}`: as many points as values along the axis, got the shapes "
                f"{self.x.shape} and {np.shape(y)}"
            )
        if not assume_sorted:
            order = np.argsort(self.x, kind="stable")
            self.x, rows = self.x[order], rows[order]
        self._extrapolates = isinstance(fill_value, str) and fill_value == EXTRAPOLATE
        if self._extrapolates and bounds_error:
            raise ValueError(f"`{name}`: `bounds_error` and extrapolation exclude each other")
        self.bounds_error = not self._extrapolates if bounds_error is None else bounds_error
        self.y, self.kind = rows, kind
        pair = isinstance(fill_value, tuple) and len(fill_value) == 2
        self._fills = fill_value if pair else (fill_value, fill_value)
        if self._extrapolates and kind in ("previous", "next"):  # in one direction alone
            self._fills = (np.nan, rows[-1]) if kind == "previous" else (rows[0], np.nan)
            self._extrapolates = False
        self._spline = None
        degree = DEGREES.get(kind, kind)
        if isinstance(degree, int) and degree > 1:
            self._spline = make_interp_spline(self.x, rows, degree)

    def __call__(self, x: Any) -> Any:
        """The values at places, which take the place of the axis."""
        if not (self._of_tensors or among(x)):
            return theirs("scipy.interpolate", "interp1d")(*self._given)(x)
        places = floating(tensor(x))
        u = reshape(places, (-1,))
        found = self._bounded(u, self._spline(u) if self._spline is not None else self._between(u))
        d = self.axis % self.y._a.ndim
        rest = self.y._a.shape[1:]
        whole = movedim(found, 0, d)
        return reshape(whole, (*rest[:d], *places._a.shape, *rest[d:]))

    def _between(self, u: Tensor) -> Tensor:
        x, n, kind = self.x, self.x.size, self.kind
        if kind in ("linear", "slinear", 1):
            cell = clamp(searchsorted_(x, u) - 1, 0, n - 2)
            low, high = self.y[cell], self.y[cell + 1]
            share = (u - tensor(x)[cell]) / tensor(np.diff(x))[cell]
            return low + (high - low) * reshape(share, (-1, *(1,) * (self.y._a.ndim - 1)))
        if kind in ("nearest", "nearest-up"):
            middles = x[1:] / 2 + x[:-1] / 2
            at = searchsorted_(middles, u, "left" if kind == "nearest" else "right")
        elif kind == "next":
            at = searchsorted_(x, u)
        else:
            at = searchsorted_(x, u, "right") - 1
        return self.y[clamp(at, 0, n - 1)]

    def _bounded(self, u: Tensor, found: Any) -> Any:
        """What was found among the points, and what stands beyond them."""
        if self._extrapolates:
            return found
        below, above = lt(u, self.x[0]), gt(u, self.x[-1])
        outside = logical_or(below, above)
        if self.bounds_error and not varies(outside) and outside._a.any():
            raise ValueError("`interp1d`: a place lies outside of the points")
        shape = (-1, *(1,) * (self.y._a.ndim - 1))
        for beyond, fill in zip((below, above), self._fills, strict=True):
            found = where(reshape(beyond, shape), tensor(fill), found)
        return found
