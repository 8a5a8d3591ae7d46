"""Interpolation of `scipy.interpolate`, at Tensors and of values that are Tensors.

>>> import numpy as np, tapegrad as tg
>>> x = np.linspace(0.0, 3.0, 7)
>>> spline = tg.scipy.interpolate.CubicSpline(x, np.sin(x))
>>> bool(abs(tg.grad(spline)(1.2) - np.cos(1.2)) < 0.01)
True
"""

from collections.abc import Sequence as _Sequence
from itertools import product as _product
from typing import Any as _Any

import numpy as _np

from tapegrad.functions import arithmetic as _ar
from tapegrad.functions import elementwise as _ew
from tapegrad.functions.indexing import getitem as _getitem
from tapegrad.functions.shapes import reshape as _reshape
from tapegrad.functions.shapes import to as _to
from tapegrad.numpy_face.common import floating as _floating
from tapegrad.numpy_face.common import tensor as _tensor
from tapegrad.numpy_face.mapped import varies as _varies
from tapegrad.numpy_face.order import searchsorted_ as _searchsorted
from tapegrad.scipy.either import among as _among
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import stack_lists as _stack_lists
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.fitpack import InterpolatedUnivariateSpline, splev, splint, splrep
from tapegrad.scipy.line_interpolation import interp1d
from tapegrad.scipy.piecewise_polynomials import (
    Akima1DInterpolator,
    BSpline,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    PPoly,
    make_interp_spline,
)
from tapegrad.scipy.radial_basis import RBFInterpolator

__all__ = [
    "Akima1DInterpolator", "BSpline", "CubicHermiteSpline", "CubicSpline",
    "InterpolatedUnivariateSpline", "PPoly", "PchipInterpolator", "RBFInterpolator",
    "RegularGridInterpolator", "interp1d", "interpn", "make_interp_spline", "splev", "splint",
    "splrep",
]  # fmt: skip


class RegularGridInterpolator:
    """Multilinear interpolation between values on a grid, which may be a Tensor; see SciPy's.

    The method "nearest" takes the value of the nearest point, which has no slope in the places.
    Where it is not known whether places lie within the grid, under `vmap` and `jit`, the values of
    those that do not are NaN, as long as `bounds_error` is not False.

    >>> import numpy as np, tapegrad as tg
    >>> plane = tg.scipy.interpolate.RegularGridInterpolator(([0, 1], [0, 2]), np.eye(2))
    >>> tg.grad(lambda p: plane(p)[0])(np.array([0.5, 0.5]))
    array([-0.5,  0. ])
    """

    def __init__(
        self, points: _Sequence[_Any], values: _Any, method: str = "linear",
        bounds_error: bool = True, fill_value: _Any = _np.nan,
    ) -> None:  # fmt: skip
        name = "scipy.interpolate.RegularGridInterpolator"
        if method not in ("linear", "nearest"):
            raise TypeError(f"`{name}` for Tensors is 'linear' or 'nearest', got {method!r}")
        self.grid = tuple(_np.asarray(p, float) for p in points)
        self.values = values = _stack_lists(values)
        self.bounds_error, self.fill_value = bounds_error, fill_value
        self.method = method
        shape = tuple(p.size for p in self.grid)
        rising = all((_np.diff(p) > 0).all() for p in self.grid)
        if _np.shape(values)[: len(shape)] != shape or not rising or 1 in shape:
            raise ValueError(
                f"`{name}` takes two rising points and more along each axis of the values, got "
                f"{list(shape)} of them for the shape {_np.shape(values)}"
            )

    def __call__(self, xi: _Any) -> _Any:
        """The values at some places, whose coordinates are the last dimension, or a tuple."""
        if not _among((xi, self.values)):
            own = _theirs("scipy.interpolate", "RegularGridInterpolator")
            how = (self.method, self.bounds_error, self.fill_value)
            return own(self.grid, self.values, *how)(xi)
        coordinates = isinstance(xi, tuple)
        if coordinates:
            xi = _np.stack(_np.broadcast_arrays(*map(_tensor, xi)), -1)  # NumPy asks the Tensors
        t = _floating(_tensor(xi))
        if not t._a.ndim or t._a.shape[-1] != len(self.grid):
            raise ValueError(
                f"`RegularGridInterpolator`: places have {len(self.grid)} coordinates, got the "
                f"shape {t._a.shape}"
            )
        if t._a.ndim == 1 and not coordinates:
            t = _reshape(t, (1, -1))
        values = _floating(_tensor(self.values))
        rest = values._a.ndim - len(self.grid)
        cells, shares, beyond = [], [], []
        for d, points in enumerate(self.grid):
            x = _getitem(t, (..., d))
            cell = _ar.clamp(_ar.sub(_searchsorted(points, x, "right"), 1), 0, points.size - 2)
            low, high = (_getitem(_tensor(p), (cell,)) for p in (points[:-1], points[1:]))
            cells.append(cell)
            along = (x - low) / (high - low)
            shares.append(along if self.method == "linear" else _to(_ew.gt(along, 0.5), x.dtype))
            beyond.append(_ew.logical_or(_ew.lt(x, points[0]), _ew.gt(x, points[-1])))
        outside = beyond[0]
        for one in beyond[1:]:
            outside = _ew.logical_or(outside, one)
        if self.bounds_error and not _varies(outside) and outside._a.any():
            raise ValueError("`RegularGridInterpolator`: a place lies outside of the grid")
        other = _np.nan if self.bounds_error else self.fill_value
        shape = (*outside._a.shape, *(1,) * rest)
        found: _Any = 0.0
        for corner in _product((0, 1), repeat=len(self.grid)):
            share: _Any = 1.0
            for s, up in zip(shares, corner, strict=True):
                share = share * (s if up else 1 - s)
            index = tuple(_ar.add(c, up) for c, up in zip(cells, corner, strict=True))
            found = found + _reshape(share, shape) * _getitem(values, index)
        return found if other is None else _ar.where(_reshape(outside, shape), other, found)


@_for_tensors("scipy.interpolate", "points", "xi")
def interpn(
    points: _Sequence[_Any], values: _Any, xi: _Any, method: str = "linear",
    bounds_error: bool = True, fill_value: _Any = _np.nan,
) -> _Any:  # fmt: skip
    """Values on a grid interpolated at some places, as by `RegularGridInterpolator`.

    >>> import numpy as np, tapegrad as tg
    >>> plane = lambda p: tg.scipy.interpolate.interpn(([0, 1], [0, 2]), np.eye(2), p)[0]
    >>> tg.grad(plane)(np.array([0.5, 0.5]))
    array([-0.5,  0. ])
    """
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.interpolate", name)
