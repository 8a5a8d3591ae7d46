"""Curves made of polynomials, and the splines that are: one form, evaluated and integrated alike.

>>> import numpy as np, tapegrad as tg
>>> y = np.array([0.0, 1.0, 4.0, 9.0])
>>> tg.grad(lambda y: tg.scipy.interpolate.CubicSpline(np.arange(4.0), y).integrate(0, 3))(y)
array([0.375, 1.125, 1.125, 0.375])
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions.arguments import one_dim
from tapegrad.functions.indexing import getitem
from tapegrad.functions.shapes import movedim, reshape
from tapegrad.numpy_face.common import floating, tensor
from tapegrad.numpy_face.order import searchsorted_
from tapegrad.scipy.either import among, stack_lists, theirs
from tapegrad.tensor import Tensor


class PPoly:
    """Polynomials between breakpoints: ``sum(c[k, i] * (x - x[i]) ** (len(c) - 1 - k))``.

    It is called with Tensors or arrays, and is linear in the coefficients, which may be a Tensor.

    >>> import tapegrad as tg
    >>> curve = tg.scipy.interpolate.PPoly(tg.tensor([[1.0, 2.0], [0.0, 1.0]]), [0.0, 1.0, 2.0])
    >>> curve([0.5, 1.5]), curve.derivative()(1.5), curve.integrate(0.0, 2.0)
    (tensor([0.5000, 2.0000]), tensor(2.), tensor(2.5000))
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        self.x = points(x, type(self).__name__)
        self.extrapolate = True if extrapolate is None else extrapolate
        self.axis, c = axis, stack_lists(c)
        self.c = np.moveaxis(c, (axis, axis + 1), (0, 1)) if axis else c

    def _like(self, c: Any, extrapolate: Any) -> PPoly:
        found = PPoly(c, self.x, extrapolate)
        found.axis = self.axis
        return found

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values, or derivatives of the order `nu`, at some places."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if not among((x, self.c)):
            own = theirs("scipy.interpolate", "PPoly")(self.c, self.x, axis=0)
            found = own(x, nu, extrapolate)
            return np.moveaxis(found, range(np.ndim(x)), self._places(np.ndim(x)))
        t = floating(tensor(x))
        low, high = self.x[0], self.x[-1]
        if extrapolate == "periodic":
            t = low + ew.remainder(t - low, high - low)
        piece = ar.clamp(ar.sub(searchsorted_(self.x, t, "right"), 1), 0, self.x.size - 2)
        c, rest = tensor(self.c), self.c.ndim - 2
        shape = (*t._a.shape, *(1,) * rest)
        step = reshape(t - getitem(tensor(self.x), (piece,)), shape)
        found, order = 0.0, len(c)
        for k in range(order - nu):  # by Horner's rule, the highest power first
            found = found * step + _falling(order - 1 - k, nu) * getitem(c[k], (piece,))
        if not isinstance(found, Tensor):  # a derivative of a higher order than the polynomials
            found = ew.mul(step, 0.0) + ew.mul(getitem(c[0], (piece,)), 0.0)
        if not extrapolate:
            beyond = reshape(ew.logical_or(ew.lt(t, low), ew.gt(t, high)), shape)
            found = ar.where(beyond, np.nan, found)
        return movedim(found, tuple(range(t._a.ndim)), self._places(t._a.ndim))

    def _places(self, ndim: int) -> tuple[int, ...]:
        return tuple(range(self.axis, self.axis + ndim))

    def derivative(self, nu: int = 1) -> PPoly:
        """The curve of the derivatives of an order; of the order -1 an antiderivative.

        >>> import tapegrad as tg
        >>> tg.scipy.interpolate.PPoly(tg.tensor([[3.0], [1.0]]), [0.0, 1.0]).derivative().c
        tensor([[3.]])
        """
        if nu < 0:
            return self.antiderivative(-nu)
        order = len(self.c)
        if nu >= order:
            return self._like(self.c[:1] * 0.0, self.extrapolate)
        factors = np.array([_falling(order - 1 - k, nu) for k in range(order - nu)])
        c = self.c[: order - nu] * _columns(factors, self.c.ndim)
        return self._like(c, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The curve of the integrals from the first breakpoint, `nu` times.

        >>> import tapegrad as tg
        >>> curve = tg.scipy.interpolate.PPoly(tg.tensor([[2.0, 0.0]]), [0.0, 1.0, 2.0])
        >>> curve.antiderivative()([0.5, 1.5])
        tensor([1., 2.])
        """
        if nu <= 0:
            return self.derivative(-nu)
        order = len(self.c)
        c = self.c / _columns(np.arange(order, 0, -1.0), self.c.ndim)
        powers = np.diff(self.x) ** np.arange(order, 0, -1.0)[:, None]
        each = np.sum(c * np.reshape(powers, (*powers.shape, *(1,) * (c.ndim - 2))), axis=0)
        before = np.cumsum(each, axis=0)[:-1]
        starts = np.concatenate([np.zeros((1, *np.shape(each)[1:])), before])
        extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
        found = self._like(np.concatenate([c, starts[None]]), extrapolate)
        return found.antiderivative(nu - 1) if nu > 1 else found

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral between two places.

        >>> import tapegrad as tg
        >>> tg.scipy.interpolate.PPoly(tg.tensor([[2.0], [0.0]]), [0.0, 1.0]).integrate(0.0, 1.0)
        tensor(1.)
        """
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        whole = self.antiderivative()
        if extrapolate != "periodic":
            return whole(b, extrapolate=extrapolate) - whole(a, extrapolate=extrapolate)
        low, period = self.x[0], self.x[-1] - self.x[0]
        turns = np.floor((b - low) / period) - np.floor((a - low) / period)
        return (
            whole(b, extrapolate="periodic") - whole(a, extrapolate="periodic")
            + turns * whole(self.x[-1], extrapolate=True)
        )  # fmt: skip


def _falling(power: int, nu: int) -> float:
    """What the derivative of an order brings down of a power."""
    return float(np.prod(np.arange(power - nu + 1, power + 1)))


def _columns(factors: np.ndarray, ndim: int) -> np.ndarray:
    return factors.reshape(-1, *(1,) * (ndim - 1))


def points(x: Any, name: str) -> np.ndarray:
    """Breakpoints, or the places of values, which are constants."""
    if among(x):
        raise TypeError(
            f"`scipy.interpolate.{name}`: the points are not differentiated, got a Tensor: "
            "give an array"
        )
    return np.asarray(x, float)


class CubicSpline(PPoly):
    """A piecewise cubic polynomial through values at given points; see SciPy's.

    It is called with Tensors or arrays, and is linear in the values, which may be a Tensor.

    >>> import tapegrad as tg
    >>> y = tg.tensor([0.0, 1.0, 4.0], requires_grad=True)
    >>> tg.scipy.interpolate.CubicSpline([0.0, 1.0, 2.0], y)(1.5).item()
    2.25
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot",
        extrapolate: Any = None,
    ) -> None:  # fmt: skip
        spline = theirs("scipy.interpolate", "CubicSpline")
        self.x, y = points(x, "CubicSpline"), stack_lists(y)
        self.axis = one_dim(axis, np.ndim(y), "scipy.interpolate.CubicSpline")
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        usual = "periodic" if periodic else True
        self.extrapolate = usual if extrapolate is None else extrapolate
        if not among(y):
            self.c = spline(self.x, y, axis, bc_type, extrapolate).c
            return
        rows = movedim(floating(tensor(y)), self.axis, 0)
        unit, at_rest = np.eye(self.x.size), bc_type
        if periodic:  # whose last value is the first one
            unit, rows = np.vstack([unit[:-1], unit[:1]])[:, :-1], rows[:-1]
        elif not isinstance(bc_type, str):
            at_rest = tuple(
                end if isinstance(end, str) else (end[0], np.zeros(self.x.size)) for end in bc_type
            )
        self.c = np.tensordot(spline(self.x, unit, 0, at_rest).c, rows, 1)
        if at_rest is not bc_type:
            self.c = self.c + spline(self.x, np.zeros(rows._a.shape), 0, bc_type).c


class CubicHermiteSpline(PPoly):
    """A piecewise cubic polynomial of given values and slopes; see SciPy's.

    >>> import tapegrad as tg
    >>> slopes = tg.tensor([0.0, 0.0], requires_grad=True)
    >>> tg.scipy.interpolate.CubicHermiteSpline([0.0, 1.0], [0.0, 1.0], slopes)(0.5).item()
    0.5
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        name = type(self).__name__
        self.x, y, dydx = points(x, name), stack_lists(y), stack_lists(dydx)
        self.axis = one_dim(axis, np.ndim(y), f"scipy.interpolate.{name}")
        self.extrapolate = True if extrapolate is None else extrapolate
        if among((y, dydx)):
            y, dydx = floating(tensor(y)), floating(tensor(dydx))
        self._through(np.moveaxis(y, self.axis, 0), np.moveaxis(dydx, self.axis, 0))

    def _through(self, y: Any, slopes: Any) -> None:
        """Take the coefficients from values and slopes, whose first axis is that of the points."""
        h = _columns(np.diff(self.x), np.ndim(y))
        secant = np.diff(y, axis=0) / h
        curvature = (slopes[:-1] + slopes[1:] - 2 * secant) / h
        self.c = np.stack(
            [curvature / h, (secant - slopes[:-1]) / h - curvature, slopes[:-1], y[:-1]]
        )


class _Sloped(CubicHermiteSpline):
    """A Hermite spline that finds its slopes in the values; given arrays, it has SciPy's."""

    def _begin(self, x: Any, y: Any, axis: int, extrapolate: Any, how: dict[str, Any]) -> Any:
        """The values, if they are a Tensor, the points along their first axis."""
        name = type(self).__name__
        self.x, y = points(x, name), stack_lists(y)
        self.axis = one_dim(axis, np.ndim(y), f"scipy.interpolate.{name}")
        self.extrapolate = extrapolate
        if not among(y):
            self.c = theirs("scipy.interpolate", name)(self.x, y, axis, **how).c
            return None
        return movedim(floating(tensor(y)), self.axis, 0)


class PchipInterpolator(_Sloped):
    """A piecewise cubic curve that is monotonic where the values are; see SciPy's.

    >>> import tapegrad as tg
    >>> y = tg.tensor([0.0, 0.0, 1.0], requires_grad=True)
    >>> tg.scipy.interpolate.PchipInterpolator([0.0, 1.0, 2.0], y)([0.5, 1.5])
    tensor([0.0000, 0.3125], grad_fn=<PermuteBackward0>)
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        y = self._begin(x, y, axis, True if extrapolate is None else extrapolate, {})
        if y is None:
            return
        h = _columns(np.diff(self.x), y.ndim)
        secant = np.diff(y, axis=0) / h
        if len(h) == 1:
            self._through(y, np.concatenate([secant, secant]))
            return
        before, after = secant[:-1], secant[1:]
        turns = before * after <= 0
        one, two = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
        safe = [np.where(turns, 1.0, m) for m in (before, after)]
        mean = np.where(turns, 0.0, (one + two) / (one / safe[0] + two / safe[1]))
        ends = _end(h[0], h[1], secant[0], secant[1]), _end(h[-1], h[-2], secant[-1], secant[-2])
        self._through(y, np.concatenate([ends[0][None], mean, ends[1][None]]))


def _end(h: Any, beside: Any, secant: Any, next_one: Any) -> Any:
    """The slope at an end, by three points, as far as the curve stays monotonic."""
    slope = ((2 * h + beside) * secant - h * next_one) / (h + beside)
    steep = (np.sign(secant) != np.sign(next_one)) & (np.abs(slope) > 3 * np.abs(secant))
    kept = np.where(steep, 3 * secant, slope)
    return np.where(np.sign(slope) != np.sign(secant), 0.0, kept)


class Akima1DInterpolator(_Sloped):
    """A piecewise cubic curve whose slopes heed the values beside a point alone; see SciPy's.

    >>> import tapegrad as tg
    >>> y = tg.tensor([0.0, 1.0, 4.0, 9.0], requires_grad=True)
    >>> tg.scipy.interpolate.Akima1DInterpolator([0.0, 1.0, 2.0, 3.0], y)(1.5).item()
    2.25
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None
    ) -> None:
        if method not in ("akima", "makima"):
            raise ValueError(
                f"`Akima1DInterpolator`: method is 'akima' or 'makima', got {method!r}"
            )
        y = self._begin(x, y, axis, bool(extrapolate), {"method": method})
        if y is None:
            return
        secant = np.diff(y, axis=0) / _columns(np.diff(self.x), y.ndim)
        if len(self.x) == 2:
            self._through(y, np.concatenate([secant, secant]))
            return
        first, last = 2 * secant[:1] - secant[1:2], 2 * secant[-1:] - secant[-2:-1]
        m = np.concatenate([2 * first - secant[:1], first, secant, last, 2 * last - secant[-1:]])
        change = np.abs(np.diff(m, axis=0))
        if method == "makima":
            change = change + 0.5 * np.abs(m[1:] + m[:-1])
        after, before = change[2:], change[:-2]
        total = after + before
        bent = total > 1e-9 * np.max(total)
        share = before / np.where(bent, total, 1.0)
        even = 0.5 * (m[3:] + m[:-3])
        self._through(y, np.where(bent, m[1:-2] + share * (m[2:-1] - m[1:-2]), even))


class BSpline:
    """A spline by its knots, the coefficients of its B-splines, and its degree; see SciPy's.

    Derivatives and antiderivatives are a `PPoly`.

    >>> import tapegrad as tg
    >>> c = tg.tensor([0.0, 1.0, 0.0], requires_grad=True)
    >>> tg.scipy.interpolate.BSpline([0, 0, 0, 1, 1, 1], c, 2)(0.5).item()
    0.5
    """

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        self.t, self.k, self.extrapolate = points(t, "BSpline"), k, extrapolate
        c = stack_lists(c)
        self.axis = one_dim(axis, np.ndim(c), "scipy.interpolate.BSpline")
        self.c: Any = floating(tensor(c)) if among(c) else np.asarray(c)
        n = self.t.size - k - 1
        self._unit = theirs("scipy.interpolate", "BSpline")(self.t, np.eye(n), k)
        self._pieces = self._of(self._unit)

    def _of(self, unit: Any) -> PPoly:
        """The polynomials of the curve that is linear in the coefficients as a spline says."""
        n = self.t.size - self.k - 1
        x = self.t[self.k : n + 1]
        each = [unit(x[:-1], nu=j) / math.factorial(j) for j in range(unit.k, -1, -1)]
        rows = np.moveaxis(self.c, self.axis, 0)[:n]
        found = PPoly(np.tensordot(np.stack(each), rows, 1), x, self.extrapolate)
        found.axis = self.axis
        return found

    @property
    def tck(self) -> tuple[np.ndarray, Any, int]:
        """The knots, the coefficients and the degree."""
        return self.t, self.c, self.k

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values, or derivatives of the order `nu`, at some places."""
        if among((x, self.c)):
            return self._pieces(x, nu, extrapolate)
        own = theirs("scipy.interpolate", "BSpline")
        return own(self.t, self.c, self.k, self.extrapolate, self.axis)(x, nu, extrapolate)

    def derivative(self, nu: int = 1) -> PPoly:
        """The curve of the derivatives of an order."""
        return self._pieces.derivative(nu)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The curve of the integrals from the first knot, `nu` times."""
        return self._of(self._unit.antiderivative(nu))

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral between two places."""
        return self._pieces.integrate(a, b, extrapolate)

    @staticmethod
    def basis_element(t: Any, extrapolate: Any = True) -> Any:
        """SciPy's."""
        return theirs("scipy.interpolate", "BSpline").basis_element(t, extrapolate)

    @staticmethod
    def design_matrix(x: Any, t: Any, k: int, extrapolate: Any = False) -> Any:
        """SciPy's."""
        return theirs("scipy.interpolate", "BSpline").design_matrix(x, t, k, extrapolate)


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """The spline of a degree through values at given points.

    >>> import tapegrad as tg
    >>> y = tg.tensor([0.0, 1.0, 4.0], requires_grad=True)
    >>> tg.scipy.interpolate.make_interp_spline([0.0, 1.0, 2.0], y, k=2)(1.5).item()
    2.25
    """
    make = theirs("scipy.interpolate", "make_interp_spline")
    at = points(x, "make_interp_spline")
    if not among(y):
        own = make(at, y, k, t, bc_type, axis, check_finite)
        return BSpline(own.t, np.moveaxis(own.c, 0, own.axis), own.k, own.extrapolate, own.axis)
    if bc_type not in (None, "not-a-knot", "natural", "clamped"):
        raise TypeError(
            "`scipy.interpolate.make_interp_spline` of Tensors: bc_type is None, 'not-a-knot', "
            f"'natural' or 'clamped', got {bc_type!r}: see `CubicSpline` for others"
        )
    unit = make(at, np.eye(at.size), k, t, bc_type)
    rows = movedim(floating(tensor(y)), axis, 0)
    c = np.tensordot(unit.c, rows, 1)
    return BSpline(unit.t, np.moveaxis(c, 0, axis), unit.k, axis=axis)
