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
from tapegrad.functions.arguments import one_dim as _one_dim
from tapegrad.functions.contractions import tensordot as _tensordot
from tapegrad.functions.indexing import getitem as _getitem
from tapegrad.functions.shapes import movedim as _movedim
from tapegrad.functions.shapes import reshape as _reshape
from tapegrad.numpy_face.common import floating as _floating
from tapegrad.numpy_face.common import tensor as _tensor
from tapegrad.numpy_face.mapped import varies as _varies
from tapegrad.numpy_face.order import searchsorted_ as _searchsorted
from tapegrad.scipy.either import among as _among
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.tensor import Tensor

__all__ = ["CubicSpline", "RegularGridInterpolator"]


class CubicSpline:
    """A piecewise cubic polynomial through values at given points; see SciPy's.

    It is called with Tensors or arrays, and is linear in the values, which may be a Tensor.

    >>> import tapegrad as tg
    >>> y = tg.tensor([0.0, 1.0, 4.0], requires_grad=True)
    >>> tg.scipy.interpolate.CubicSpline([0.0, 1.0, 2.0], y)(1.5).item()
    2.25
    """

    def __init__(
        self, x: _Any, y: _Any, axis: int = 0, bc_type: _Any = "not-a-knot",
        extrapolate: _Any = None,
    ) -> None:  # fmt: skip
        spline = _theirs("scipy.interpolate", "CubicSpline")
        if _among(x):
            raise TypeError(
                "`scipy.interpolate.CubicSpline`: the points are not differentiated, got a Tensor: "
                "give an array"
            )
        self.x = _np.asarray(x, float)
        self.axis = _one_dim(axis, _np.ndim(y), "scipy.interpolate.CubicSpline")
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        usual = "periodic" if periodic else True
        self.extrapolate = usual if extrapolate is None else extrapolate
        if not _among(y):
            self.c = spline(self.x, y, axis, bc_type, extrapolate).c
            return
        rows = _movedim(_floating(_tensor(y)), self.axis, 0)
        unit, at_rest = _np.eye(self.x.size), bc_type
        if periodic:  # whose last value is the first one
            unit, rows = _np.vstack([unit[:-1], unit[:1]])[:, :-1], rows[:-1]
        elif not isinstance(bc_type, str):
            at_rest = tuple(
                end if isinstance(end, str) else (end[0], _np.zeros(self.x.size)) for end in bc_type
            )
        self.c = _tensordot(_tensor(spline(self.x, unit, 0, at_rest).c), rows, 1)
        if at_rest is not bc_type:
            self.c = self.c + spline(self.x, _np.zeros(rows._a.shape), 0, bc_type).c

    def __call__(self, x: _Any, nu: int = 0, extrapolate: _Any = None) -> _Any:
        """The values, or derivatives of the order `nu`, at some places."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if not _among((x, self.c)):
            own = _theirs("scipy.interpolate", "PPoly")(self.c, self.x, axis=0)
            found = own(x, nu, extrapolate)
            return _np.moveaxis(found, range(_np.ndim(x)), self._places(_np.ndim(x)))
        t = _floating(_tensor(x))
        low, high = self.x[0], self.x[-1]
        if extrapolate == "periodic":
            t = low + _ew.remainder(t - low, high - low)
        piece = _ar.clamp(_ar.sub(_searchsorted(self.x, t, "right"), 1), 0, self.x.size - 2)
        c, rest = _tensor(self.c), self.c.ndim - 2
        shape = (*t._a.shape, *(1,) * rest)
        step = _reshape(t - _getitem(_tensor(self.x), (piece,)), shape)
        found = 0.0
        for k in range(4 - nu):  # by Horner's rule, the highest power first
            factor = float(_np.prod(_np.arange(4 - k - nu, 4 - k)))
            found = found * step + factor * _getitem(c[k], (piece,))
        if not isinstance(found, Tensor):  # the fourth derivative
            found = _ew.mul(step, 0.0) + _ew.mul(_getitem(c[0], (piece,)), 0.0)
        if not extrapolate:
            beyond = _reshape(_ew.logical_or(_ew.lt(t, low), _ew.gt(t, high)), shape)
            found = _ar.where(beyond, _np.nan, found)
        return _movedim(found, tuple(range(t._a.ndim)), self._places(t._a.ndim))

    def _places(self, ndim: int) -> tuple[int, ...]:
        return tuple(range(self.axis, self.axis + ndim))


class RegularGridInterpolator:
    """Multilinear interpolation between values on a grid, which may be a Tensor; see SciPy's.

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
        if method != "linear":
            raise TypeError(f"`{name}` for Tensors has the method 'linear', got {method!r}")
        self.grid = tuple(_np.asarray(p, float) for p in points)
        self.values, self.bounds_error, self.fill_value = values, bounds_error, fill_value
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
            return own(self.grid, self.values, "linear", self.bounds_error, self.fill_value)(xi)
        if isinstance(xi, tuple):
            xi = _np.stack(_np.broadcast_arrays(*map(_tensor, xi)), -1)  # NumPy asks the Tensors
        t = _floating(_tensor(xi))
        if not t._a.ndim or t._a.shape[-1] != len(self.grid):
            raise ValueError(
                f"`RegularGridInterpolator`: places have {len(self.grid)} coordinates, got the "
                f"shape {t._a.shape}"
            )
        t = _reshape(t, (1, -1)) if t._a.ndim == 1 else t
        values = _floating(_tensor(self.values))
        rest = values._a.ndim - len(self.grid)
        cells, shares, beyond = [], [], []
        for d, points in enumerate(self.grid):
            x = _getitem(t, (..., d))
            cell = _ar.clamp(_ar.sub(_searchsorted(points, x, "right"), 1), 0, points.size - 2)
            low, high = (_getitem(_tensor(p), (cell,)) for p in (points[:-1], points[1:]))
            cells.append(cell)
            shares.append((x - low) / (high - low))
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


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.interpolate", name)
