"""Splines under the names of FITPACK: through all values, as knots, coefficients and a degree.

>>> import numpy as np, tapegrad as tg
>>> x = np.linspace(0.0, 3.0, 7)
>>> area = lambda y: tg.scipy.interpolate.splint(0.0, 3.0, tg.scipy.interpolate.splrep(x, y))
>>> round(float(tg.grad(area)(np.sin(x)).sum()), 9)
3.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.numpy_face.common import floating, tensor
from tapegrad.scipy.either import among, for_tensors, theirs
from tapegrad.scipy.piecewise_polynomials import BSpline, make_interp_spline

_own = for_tensors("scipy.interpolate", "tck")


@for_tensors("scipy.interpolate")
def splrep(
    x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, task: int = 0,
    s: Any = None, t: Any = None, full_output: int = 0, per: int = 0, quiet: int = 1,
) -> Any:  # fmt: skip
    """The spline through all values, which may be a Tensor: its knots, coefficients and degree.

    >>> import tapegrad as tg
    >>> y = tg.tensor([0.0, 1.0, 4.0, 9.0], requires_grad=True)
    >>> knots, coefficients, degree = tg.scipy.interpolate.splrep([0.0, 1.0, 2.0, 3.0], y)
    >>> degree, len(coefficients)
    (3, 8)
    """
    if s or task or per or full_output or not all(v is None for v in (w, xb, xe, t)):
        raise NotImplementedError(
            "`scipy.interpolate.splrep` of Tensors goes through all values: x, y and k alone"
        )
    knots, c, degree = make_interp_spline(x, y, k).tck
    return knots, np.concatenate([c, np.zeros(k + 1)]), degree


@_own
def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """The values of a spline, or of a derivative.

    >>> import tapegrad as tg
    >>> tck = tg.scipy.interpolate.splrep([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])
    >>> round(tg.grad(lambda x: tg.scipy.interpolate.splev(x, tck))(1.5), 9)
    3.0
    """
    knots, c, k = tck
    if ext not in (0, 1, 3):
        raise NotImplementedError(f"`scipy.interpolate.splev` of Tensors: ext is 0, 1 or 3: {ext}")
    at: Any = floating(tensor(x))
    low, high = knots[k], knots[-k - 1]
    if ext == 3 and der == 0:  # FITPACK extrapolates derivatives
        at = np.clip(at, low, high)
    found = BSpline(knots, c[: len(knots) - k - 1], k)(at, der)
    return found if ext != 1 else np.where((at < low) | (at > high), 0.0, found)


@_own
def splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    """The integral of a spline, which is 0 beyond its ends.

    >>> import tapegrad as tg
    >>> tck = tg.scipy.interpolate.splrep([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])
    >>> round(tg.grad(lambda b: tg.scipy.interpolate.splint(0.0, b, tck))(2.0), 9)
    4.0
    """
    if full_output:
        raise NotImplementedError("`scipy.interpolate.splint` of Tensors: full_output")
    knots, c, k = tck
    ends = [np.clip(end, knots[k], knots[-k - 1]) for end in (a, b)]
    return BSpline(knots, c[: len(knots) - k - 1], k).integrate(*ends)


class InterpolatedUnivariateSpline:
    """The spline of a degree through values, which may be a Tensor; see SciPy's.

    >>> import tapegrad as tg
    >>> y = tg.tensor([0.0, 1.0, 4.0, 9.0], requires_grad=True)
    >>> curve = tg.scipy.interpolate.InterpolatedUnivariateSpline([0.0, 1.0, 2.0, 3.0], y)
    >>> round(curve(1.5).item(), 9), round(curve.integral(0.0, 3.0).item(), 9)
    (2.25, 9.0)
    """

    def __init__(
        self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
        check_finite: bool = False,
    ) -> None:  # fmt: skip
        if among(y):
            if w is not None or any(end is not None for end in bbox):
                raise NotImplementedError(
                    "`InterpolatedUnivariateSpline` of Tensors: neither weights nor bbox"
                )
            self._tck = splrep(x, y, k=k)
        else:
            own = theirs("scipy.interpolate", type(self).__name__)
            self._tck = own(x, y, w, list(bbox), k, ext, check_finite)._eval_args
        self._ext = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}.get(ext, ext)

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        """The values, or derivatives of the order `nu`, at some places."""
        return splev(x, self._tck, nu, self._ext if ext is None else ext)

    def integral(self, a: Any, b: Any) -> Any:
        """The integral between two places."""
        return splint(a, b, self._tck)
