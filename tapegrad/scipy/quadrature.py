"""Adaptive integrals of functions: pieces are chosen by values, then their sum is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.functions.arithmetic import where
from tapegrad.functions.elementwise import maximum, minimum
from tapegrad.functions.reductions import argmax
from tapegrad.numpy_face.common import floating, tensor
from tapegrad.scipy.either import among
from tapegrad.tensor import Tensor
from tapegrad.transforms.control import fori_loop, while_loop
from tapegrad.transforms.custom import stop_gradient
from tapegrad.transforms.mapping import vmap

Function = Callable[..., Any]

# Kronrod's rule of 21 points on [-1, 1], from the middle on; every second is one of Gauss's ten.
_HALF = (
    0.0, 0.14887433898163122, 0.2943928627014602, 0.4333953941292472, 0.5627571346686047,
    0.6794095682990244, 0.7808177265864169, 0.8650633666889845, 0.9301574913557082,
    0.9739065285171717, 0.9956571630258081,
)  # fmt: skip
_WEIGHTS = (
    0.1494455540029169, 0.14773910490133849, 0.14277593857706009, 0.13470921731147334,
    0.12349197626206584, 0.10938715880229764, 0.0931254545836976, 0.07503967481091996,
    0.054755896574351995, 0.032558162307964725, 0.011694638867371874,
)  # fmt: skip
_POINTS = np.concatenate([-np.array(_HALF[:0:-1]), _HALF])
_KRONROD = np.array(_WEIGHTS[:0:-1] + _WEIGHTS)
_GAUSS = np.zeros(21)
_GAUSS[1::2] = np.polynomial.legendre.leggauss(10)[1]


def on_the_unit_interval(f: Function, a: Any, b: Any) -> Function:
    """The integrand over [0, 1] to which one from `a` to `b` is transformed; these may be infinite.

    >>> import numpy as np
    >>> bool(on_the_unit_interval(np.exp, -np.inf, 0.0)(0.5) == 4 * np.exp(-1.0))
    True
    """
    low, high = (0.0 if among(x) or np.isfinite(x) else float(x) for x in (a, b))
    if not low and not high:
        return lambda u: f(a + (b - a) * u) * (b - a)
    if low and high:
        both = (np.sign(high) - np.sign(low)) / 2
        return lambda u: (f((1 - u) / u) + f((u - 1) / u)) * both / u**2
    end, side, sign = (a, np.sign(high), 1.0) if high else (b, np.sign(low), -1.0)
    return lambda u: f(end + side * (1 - u) / u) * (sign * side) / u**2


def _values(g: Function, low: Any, high: Any) -> tuple[Tensor, Any]:
    """The values at the points of a piece, and half of its length."""
    half = (high - low) / 2
    points = tensor(low + half).double() + half * tensor(_POINTS)
    return floating(tensor(vmap(lambda u: g(u) + 0.0 * u)(points))), half


def _estimate(g: Function, low: Any, high: Any) -> tuple[Tensor, Tensor]:
    """The integral over a piece, and QUADPACK's estimate of its error."""
    values, half = _values(g, low, high)
    values = stop_gradient(values)
    found = (values * _KRONROD).sum()
    spread = half * (abs(values - found / 2) * _KRONROD).sum()
    error = half * abs((values * (_KRONROD - _GAUSS)).sum())
    better = spread * minimum(200 * error / where(spread > 0, spread, 1.0), 1.0) ** 1.5
    rounding = 50 * np.finfo(float).eps * half * (abs(values) * _KRONROD).sum()
    return half * found, maximum(where(spread > 0, better, error), rounding)


def integral(g: Function, absolute: float, relative: float, limit: int) -> tuple[Tensor, Tensor]:
    """The integral of a function over [0, 1], and an estimate of its error.

    As long as the error is too large, the piece with the largest one is halved.

    >>> import numpy as np
    >>> integral(lambda u: np.sqrt(u), 1e-8, 1e-8, 50)[0].item().__round__(7)
    0.6666667
    """
    places = tensor(np.arange(limit))
    total, error = _estimate(g, 0.0, 1.0)
    ones = (places == 0).double()

    def too_large(pieces: Any) -> Tensor:
        """Whether to go on."""
        count, _, _, values, errors = pieces
        allowed = maximum(abs(values.sum()) * relative, absolute)
        more: Tensor = (errors.sum() > allowed) & (count < limit)
        return more

    def halved(pieces: Any) -> Any:
        """The pieces, of which one became two: its first half takes its place."""
        count, lows, highs, *results = pieces
        worst = places == argmax(results[1])
        low, high = ((worst * x).sum() for x in (lows, highs))
        middle, new = (low + high) / 2, places == count
        first, second = _estimate(g, low, middle), _estimate(g, middle, high)
        parts = zip(results, first, second, strict=True)
        return (
            count + 1, where(new, middle, lows), where(new, high, where(worst, middle, highs)),
            *(where(new, b, where(worst, a, x)) for x, a, b in parts),
        )  # fmt: skip

    start = (tensor(1), ones * 0.0, ones, ones * total, ones * error)
    count, lows, highs, _, errors = while_loop(too_large, halved, start)

    def added(k: Any, total: Any) -> Any:
        """The sum with one more piece."""
        values, half = _values(g, lows[k], highs[k])
        return total + half * (values * _KRONROD).sum()

    return fori_loop(0, count, added, tensor(0.0).double()), errors.sum()
