"""Elliptic integrals and functions of SciPy's, with their partial derivatives.

Carlson's integrals are symmetric in arguments that are alike, and their derivatives are integrals
of his, too (https://dlmf.nist.gov/19.18).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.core import NotImplementedYet, Op, elementwise
from tapegrad.ops.elementwise import POSITIVE, REAL, UNIT, Lazy, cos, pow, sin, sqrt
from tapegrad.ops.scipy_special import hyp2f1, scipy_row


def _no_second(name: str, argument: str = "its parameter") -> NotImplementedYet:
    return NotImplementedYet(
        f"the second derivative of `scipy.special.{name}` in {argument} is not implemented"
    )


# The derivatives in m are integrals of Carlson's (https://dlmf.nist.gov/19.25.i): a difference of F
# and E, over m, loses its digits near 0.  Whole turns of pi add those of the complete integrals.
_rd, _hyp2f1 = Lazy("elliprd"), Lazy("hyp2f1")


def _by_turns(phi: Any, period: Any) -> tuple[Any, Any, Any]:
    """The sine and the squared cosine of phi within half a turn, and what the other turns give."""
    turns = np.round(phi / math.pi)
    rest = phi - turns * math.pi
    return np.sin(rest), np.square(np.cos(rest)), np.where(turns == 0, 0.0, 2 * turns * period)


def _ellipkinc_slope(phi: Any, m: Any) -> Any:
    with np.errstate(all="ignore"):
        s, c2, rest = _by_turns(phi, math.pi / 8 * _hyp2f1(0.5, 0.5, 2.0, m) / (1 - m))
        return np.asarray(s**3 / 6 * _rd(c2, 1.0, 1 - m * s * s) + rest, np.result_type(phi, m))


def _ellipeinc_slope(phi: Any, m: Any) -> Any:
    with np.errstate(all="ignore"):
        s, c2, rest = _by_turns(phi, -math.pi / 8 * _hyp2f1(0.5, 1.5, 2.0, m))
        return np.asarray(rest - s**3 / 6 * _rd(c2, 1 - m * s * s, 1.0), np.result_type(phi, m))


def _amplitude_slope(m: Any, y: Any) -> Any:
    """Jacobi's dn at an amplitude, without cancellation where m is near 1."""
    s, c = sin(y), cos(y)
    return sqrt(c * c + (1 - m) * s * s)


_ellipj = Lazy("ellipj")
OF_CARLSON = _no_second("elliprf", "its arguments, and that of its kin,")

# fmt: off
ellipk = scipy_row("ellipk", Lazy("ellipk"), domain=UNIT, singular="It is infinite at 1.",
                   x=lambda x: math.pi / 8 * hyp2f1(0.5, 0.5, 2.0, x) / (1 - x))
ellipkm1 = scipy_row("ellipkm1", Lazy("ellipkm1"), domain=POSITIVE,
                     singular="It is infinite at 0.",
                     x=lambda x: -math.pi / 8 * hyp2f1(0.5, 0.5, 2.0, 1 - x) / x)
ellipe = scipy_row("ellipe", Lazy("ellipe"), domain=UNIT,
                   singular="The derivative is -infinite at 1.",
                   x=lambda x: -math.pi / 8 * hyp2f1(0.5, 1.5, 2.0, x))
ellipkinc = scipy_row("ellipkinc", Lazy("ellipkinc"), domain=UNIT,
                      phi=lambda phi, m: 1 / sqrt(1 - m * sin(phi) * sin(phi)),
                      m=lambda phi, m: ellipkinc_slope(phi, m))
ellipeinc = scipy_row("ellipeinc", Lazy("ellipeinc"), domain=UNIT,
                      phi=lambda phi, m: sqrt(1 - m * sin(phi) * sin(phi)),
                      m=lambda phi, m: ellipeinc_slope(phi, m))
ellipkinc_slope: Op = elementwise(
    "ellipkinc_slope", _ellipkinc_slope, domain=UNIT, to_float=True,
    phi=lambda phi, m: 0.5 * sin(phi) * sin(phi) * pow(1 - m * sin(phi) * sin(phi), -1.5),
    m=_no_second("ellipkinc"))
ellipeinc_slope: Op = elementwise(
    "ellipeinc_slope", _ellipeinc_slope, domain=UNIT, to_float=True,
    phi=lambda phi, m: -0.5 * sin(phi) * sin(phi) / sqrt(1 - m * sin(phi) * sin(phi)),
    m=_no_second("ellipeinc"))
elliprd: Op = scipy_row("elliprd", Lazy("elliprd"), domain=POSITIVE,
                        a=OF_CARLSON, b=OF_CARLSON, c=OF_CARLSON)
elliprc = scipy_row("elliprc", Lazy("elliprc"), domain=POSITIVE,
                    a=lambda a, b: -elliprd(b, b, a) / 6, b=lambda a, b: -elliprd(a, b, b) / 3,
                    singular="The derivative is NaN where b is negative.")
elliprf: Op = scipy_row("elliprf", Lazy("elliprf"), domain=POSITIVE,
                        a=lambda a, b, c: -elliprd(b, c, a) / 6,
                        b=lambda a, b, c: -elliprd(a, c, b) / 6,
                        c=lambda a, b, c: -elliprd(a, b, c) / 6,
                        singular="The derivative is -infinite at 0.")
elliprg = scipy_row("elliprg", Lazy("elliprg"), domain=POSITIVE,
                    a=lambda a, b, c: (elliprf(a, b, c) - a * elliprd(b, c, a) / 3) / 4,
                    b=lambda a, b, c: (elliprf(a, b, c) - b * elliprd(a, c, b) / 3) / 4,
                    c=lambda a, b, c: (elliprf(a, b, c) - c * elliprd(a, b, c) / 3) / 4)
jacobi_amplitude: Op = elementwise(
    "jacobi_amplitude", lambda u, m: np.asarray(_ellipj(u, m)[3]), domain=(REAL, (0.1, 0.9)),
    to_float=True, ordered=True,
    u=lambda m, y: _amplitude_slope(m, y),
    m=lambda m, y: -ellipkinc_slope(y, m) * _amplitude_slope(m, y))
ROWS = (ellipk, ellipkm1, ellipe, ellipkinc, ellipeinc, elliprc, elliprf, elliprg)
# fmt: on
