"""Write the butterflies of Fourier transforms: of a few complex numbers, each a vector or two.

A number is a pair of names in the text of a function, of its real and of its imaginary part; these
are vectors of the same number of many transforms.
"""

from __future__ import annotations

import numpy as np

from tapegrad.compiler.llvm.function_builder import FunctionBuilder
from tapegrad.ops.fourier_forms import roots_of_unity

Number = tuple[str, str]  # the names of the real and of the imaginary part


def twiddled(t: FunctionBuilder, ys: list[Number], ws: list[Number], lanes: int) -> list[Number]:
    """Multiply all but the first by their factors."""
    found = ys[:1]
    for (re, im), (c, s) in zip(ys[1:], ws, strict=True):
        down = t.emit(f"fneg {t.vector(lanes)} {t.two('fmul', im, s, lanes)}")
        across = t.two("fmul", im, c, lanes)
        found.append((t.fused(re, c, down, lanes), t.fused(re, s, across, lanes)))
    return found


def _two(t: FunctionBuilder, name: str, a: Number, b: Number, lanes: int) -> Number:
    return t.two(name, a[0], b[0], lanes), t.two(name, a[1], b[1], lanes)


def _sides(t: FunctionBuilder, a: Number, b: Number, lanes: int) -> tuple[Number, Number]:
    """``a - i b`` and ``a + i b``."""
    return (
        (t.two("fadd", a[0], b[1], lanes), t.two("fsub", a[1], b[0], lanes)),
        (t.two("fsub", a[0], b[1], lanes), t.two("fadd", a[1], b[0], lanes)),
    )


def combined(t: FunctionBuilder, xs: list[Number], lanes: int) -> list[Number]:
    """The transform of a few numbers."""
    if len(xs) % 2:
        return _odd(t, xs, lanes)
    if len(xs) == 2:
        return [_two(t, name, xs[0], xs[1], lanes) for name in ("fadd", "fsub")]
    a, b = combined(t, xs[::2], lanes)
    c, d = combined(t, xs[1::2], lanes)
    y1, y3 = _sides(t, b, d, lanes)
    y0, y2 = combined(t, [a, c], lanes)
    return [y0, y1, y2, y3]


def _odd(t: FunctionBuilder, xs: list[Number], lanes: int) -> list[Number]:
    """Of an odd count r: results j and r - j share their sums."""
    r = len(xs)
    half = range(1, r // 2 + 1)
    sums = [_two(t, "fadd", xs[k], xs[r - k], lanes) for k in half]
    gaps = [_two(t, "fsub", xs[k], xs[r - k], lanes) for k in half]
    total = xs[0]
    for pair in sums:
        total = _two(t, "fadd", total, pair, lanes)
    found = [total] * r
    for j in half:
        roots = roots_of_unity(j * np.array(half), r)
        even = _weighted(t, [xs[0], *sums], [1.0, *roots.real], lanes)
        odd = _weighted(t, gaps, [*roots.imag], lanes)
        found[j], found[r - j] = _sides(t, even, odd, lanes)
    return found


def _weighted(t: FunctionBuilder, xs: list[Number], weights: list[float], lanes: int) -> Number:
    """A weighted sum."""
    first = t.splat(t.constant(weights[0]), lanes)
    re, im = (part if weights[0] == 1.0 else t.two("fmul", part, first, lanes) for part in xs[0])
    for x, weight in zip(xs[1:], weights[1:], strict=True):
        w = t.splat(t.constant(weight), lanes)
        re, im = t.fused(x[0], w, re, lanes), t.fused(x[1], w, im, lanes)
    return re, im
