"""Operations on complex numbers in terms of their parts: a form for each, on pairs of real arrays.

`tg.jit` traces them (`compiler/passes/complex_pairs.py`), whose loops know real numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops import fourier_forms
from tapegrad.ops.core import Op, table
from tapegrad.ops.index import at
from tapegrad.ops.shape import getitem


class Pair(NamedTuple):
    """The parts of a complex value; products and sums know an imaginary part that is zero, None."""

    re: Any
    im: Any


Form = Callable[..., Any]


def form_of(op: Op, operands: int, complex_result: bool) -> Form | None:
    """The form of an operation of so many operands, of which some or the result are complex."""
    if op.multilinear:
        return _bilinear(op) if operands == 2 else None
    found = FORMS.get(op.name)
    linear = complex_result and (op.moves or op.name in LINEAR)
    return _by_parts(op) if found is None and linear else found


def real_type(dtype: np.dtype) -> np.dtype:
    """The type of the parts of a complex type."""
    return np.empty(0, dtype).real.dtype


def _by_parts(op: Op) -> Form:
    """The operation on the real parts, and on the imaginary ones; indices serve both."""

    def form(*args: Any, **params: Any) -> Pair:
        re, im = ([arg[k] if isinstance(arg, Pair) else arg for arg in args] for k in range(2))
        return Pair(op(*re, **params), op(*im, **params))

    return form


def knows_zeros(op: Op) -> bool:
    """Whether the form of an operation knows of an imaginary part that is zero.

    It is a product, or hands an imaginary part on.
    """
    return op.multilinear or op.name in {"mul", "strong", "exact", "div", "conj", "to"}


def _bilinear(op: Op) -> Form:
    """A product: of numbers, of matrices, of axes, of images and filters."""

    def form(a: Pair, b: Pair, **params: Any) -> Pair:
        re = op(a.re, b.re, **params)
        if a.im is not None and b.im is not None:
            re = re - op(a.im, b.im, **params)
        sides = [(a.im, b.re)] * (a.im is not None) + [(a.re, b.im)] * (b.im is not None)
        im = [op(*side, **params) for side in sides]
        return Pair(re, im[0] + im[1] if len(im) == 2 else im[0] if im else None)

    return form


def _is_zero(z: Pair) -> Any:
    zero = o.eq(z.re, 0.0)
    return zero if z.im is None else o.mul(zero, o.eq(z.im, 0.0))


def _unless(zero: Any, z: Pair) -> Pair:
    return Pair(o.where(zero, 0.0, z.re), None if z.im is None else o.where(zero, 0.0, z.im))


def _strong(g: Pair, x: Pair) -> Pair:
    return _unless(_is_zero(g), _times(g, x))


def _exact(g: Pair, x: Pair) -> Pair:
    return _unless(_is_zero(x), _strong(g, x))


def _div(a: Pair, b: Pair) -> Pair:
    """Divided by the larger part of the divisor first."""
    if b.im is None:
        return Pair(a.re / b.re, None if a.im is None else a.im / b.re)
    first = o.ge(abs(b.re), abs(b.im))
    large, small = o.where(first, b.re, b.im), o.where(first, b.im, b.re)
    nothing = o.mul(o.eq(b.re, 0.0), o.eq(b.im, 0.0))
    ratio = o.where(nothing, 0.0, small / large)
    size = o.where(nothing, abs(b.re), large + small * ratio)
    if a.im is None:
        re, im = o.where(first, a.re, a.re * ratio), -o.where(first, a.re * ratio, a.re)
    else:
        re = o.where(first, a.re + a.im * ratio, a.re * ratio + a.im)
        im = o.where(first, a.im - a.re * ratio, a.im * ratio - a.re)
    return Pair(re / size, im / size)


def _exp(z: Pair) -> Pair:
    size = o.exp(z.re)
    return Pair(size * o.cos(z.im), size * o.sin(z.im))


def _log(z: Pair) -> Pair:
    return Pair(o.log(o.hypot(z.re, z.im)), o.atan2(z.im, z.re))


def _scaled_log(base: float) -> Form:
    def form(z: Pair) -> Pair:
        found = _log(z)
        return Pair(found.re * (1 / math.log(base)), found.im * (1 / math.log(base)))

    return form


def _sqrt(z: Pair) -> Pair:
    """The root that does not lie to the left of zero."""
    large = o.sqrt((o.hypot(z.re, z.im) + abs(z.re)) * 0.5)
    nothing = o.eq(large, 0.0)
    other = o.where(nothing, z.im, abs(z.im) / (2.0 * o.where(nothing, 1.0, large)))
    right = o.ge(z.re, 0.0)
    return Pair(o.where(right, large, other), o.copysign(o.where(right, other, large), z.im))


def _sin(z: Pair) -> Pair:
    return Pair(o.sin(z.re) * o.cosh(z.im), o.cos(z.re) * o.sinh(z.im))


def _cos(z: Pair) -> Pair:
    return Pair(o.cos(z.re) * o.cosh(z.im), -(o.sin(z.re) * o.sinh(z.im)))


def _sinh(z: Pair) -> Pair:
    return Pair(o.sinh(z.re) * o.cos(z.im), o.cosh(z.re) * o.sin(z.im))


def _cosh(z: Pair) -> Pair:
    return Pair(o.cosh(z.re) * o.cos(z.im), o.sinh(z.re) * o.sin(z.im))


def _tanh(z: Pair) -> Pair:
    """Far from zero nothing in it overflows."""
    t, f, c = o.tanh(z.re), o.tan(z.im), o.cosh(z.re)
    size = 1.0 + t * t * (f * f)
    return Pair(t * (1.0 + f * f) / size, f / c / c / size)


def _expm1(z: Pair) -> Pair:
    half = o.sin(z.im * 0.5)
    return Pair(o.expm1(z.re) * o.cos(z.im) - 2.0 * half * half, o.exp(z.re) * o.sin(z.im))


def _turned(function: Callable[[Pair], Pair]) -> Form:
    """The circular function of a hyperbolic one: -i f(iz)."""

    def form(z: Pair) -> Pair:
        found = function(Pair(-z.im, z.re))
        return Pair(found.im, -found.re)

    return form


def _roots_beside(z: Pair) -> tuple[Pair, Pair]:
    """The roots of 1 - z and 1 + z; no zero of z loses its sign, which tells the side of a cut."""
    return _sqrt(Pair(1.0 - z.re, -z.im)), _sqrt(Pair(1.0 + z.re, z.im))


def _asin(z: Pair) -> Pair:
    """Kahan's formulas: what is added up here has one sign, so that nothing cancels."""
    a, b = _roots_beside(z)
    re = o.atan2(z.re, a.re * b.re - a.im * b.im)
    return Pair(re, o.asinh(a.re * b.im - a.im * b.re))


def _acos(z: Pair) -> Pair:
    a, b = _roots_beside(z)
    return Pair(2.0 * o.atan2(a.re, b.re), o.asinh(b.re * a.im - b.im * a.re))


def _asinh(z: Pair) -> Pair:
    found = _asin(Pair(z.im, -z.re))
    return Pair(-found.im, found.re)


def _acosh(z: Pair) -> Pair:
    a, b = _sqrt(Pair(z.re - 1.0, z.im)), _sqrt(Pair(z.re + 1.0, z.im))
    return Pair(o.asinh(a.re * b.re + a.im * b.im), 2.0 * o.atan2(a.im, b.re))


def _atanh(z: Pair) -> Pair:
    """Half the logarithm of how far -1 lies away, relative to 1."""
    x = abs(z.re)
    near, far = o.hypot(1.0 - x, z.im), o.hypot(1.0 + x, z.im)
    more = 4.0 * (x / near) / near  # than one, squared
    size = o.where(o.gt(more, 1.0), 0.5 * o.log(far / near), 0.25 * o.log1p(more))
    angle = o.atan2(z.im, 1.0 - z.re) + o.atan2(z.im, 1.0 + z.re)
    return Pair(o.copysign(size, z.re), 0.5 * angle)


def _sigmoid(z: Pair) -> Pair:
    e = _exp(Pair(-z.re, -z.im))
    return _div(Pair(1.0, None), Pair(1.0 + e.re, e.im))


def _plus(a: Pair, b: Pair) -> Pair:
    return Pair(a.re + b.re, a.im + b.im)


def _less(a: Pair, b: Pair) -> Pair:
    return Pair(a.re - b.re, a.im - b.im)


def _lerp(a: Pair, b: Pair, c: Pair) -> Pair:
    """From the nearer end."""
    whole, rest = _less(b, a), Pair(1.0 - c.re, None if c.im is None else -c.im)
    near, far = _plus(a, _times(c, whole)), _less(b, _times(whole, rest))
    first = o.gt(0.5, abs(c.re) if c.im is None else _abs(c))
    return Pair(o.where(first, near.re, far.re), o.where(first, near.im, far.im))


def _abs(z: Pair) -> Any:
    return o.hypot(z.re, z.im)


def _sgn(z: Pair) -> Pair:
    size = o.hypot(z.re, z.im)
    nothing = o.eq(size, 0.0)
    size = o.where(nothing, 1.0, size)
    return Pair(o.where(nothing, 0.0, z.re / size), o.where(nothing, 0.0, z.im / size))


def whole_power(a: Pair, _: Pair, *, n: int) -> Pair:
    """A small whole power, by products."""
    found = a
    for _k in range(abs(n) - 1):
        found = _times(found, a)
    return _div(Pair(1.0, None), found) if n < 0 else found


def _power(a: Pair, b: Pair) -> Pair:
    size, phase = o.log(o.hypot(a.re, a.im)), o.atan2(a.im, a.re)
    found = _exp(Pair(b.re * size - b.im * phase, b.im * size + b.re * phase))
    # NaN for a base of zero; of the exponents those have a power that are zero or lie to the right.
    nothing, whole, right = _is_zero(a), _is_zero(b), o.gt(b.re, 0.0)
    re = o.where(o.mul(nothing, right), 0.0, found.re)
    im = o.where(o.mul(nothing, o.maximum(whole, right)), 0.0, found.im)
    return Pair(o.where(o.mul(nothing, whole), 1.0, re), im)


def _to(z: Any, *, dtype: np.dtype) -> Any:
    if not isinstance(z, Pair):
        return Pair(o.to(z, dtype=real_type(dtype)), None)
    if dtype.kind == "b" and z.im is not None:
        return o.maximum(o.ne(z.re, 0.0), o.ne(z.im, 0.0))
    if dtype.kind != "c":
        return o.to(z.re, dtype=dtype)
    im = None if z.im is None else o.to(z.im, dtype=real_type(dtype))
    return Pair(o.to(z.re, dtype=real_type(dtype)), im)


def _fft(z: Any, **how: Any) -> Pair:
    re, im = z if isinstance(z, Pair) else (z, fourier_forms.zeros(z))
    return Pair(*fourier_forms.c2c(re, im, **how))


def _from_parts(a: Any, b: Any) -> Pair:
    """The operands, broadcast."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    return Pair(*[x if x.shape == shape else o.expand(x, shape=shape) for x in (a, b)])


def _slices(z: Pair, dim: int, part: slice) -> Pair:
    return Pair(*[getitem(x, index=at(dim, part)) for x in z])


def _behind(first: Pair, more: Pair, dim: int) -> Pair:
    return Pair(o.cat(first.re, more.re, dim=dim), o.cat(first.im, more.im, dim=dim))


def _prod(z: Pair, *, dim: tuple[int, ...], keepdim: bool) -> Pair:
    """Halves are multiplied, until one number is left."""
    for d in dim:
        rest = None
        while (n := z.re.shape[d]) > 1:
            if n % 2:
                last = _slices(z, d, slice(n - 1, n))
                rest = last if rest is None else _times(rest, last)
            half = n // 2
            z = _times(_slices(z, d, slice(0, half)), _slices(z, d, slice(half, 2 * half)))
        z = z if rest is None else _times(z, rest)
    return z if keepdim else Pair(o.squeeze(z.re, dims=dim), o.squeeze(z.im, dims=dim))


def _cumprod(z: Pair, *, dim: int) -> Pair:
    """Products of one, two, four neighbours, and so on."""
    n, step = (z.re.shape[dim] if z.re.shape else 1), 1
    while step < n:
        before, here = _slices(z, dim, slice(0, n - step)), _slices(z, dim, slice(step, n))
        z = _behind(_slices(z, dim, slice(0, step)), _times(before, here), dim)
        step *= 2
    return z


def _decay(a: Pair, b: Pair, *, dim: int, reverse: bool) -> Pair:
    """What ever more neighbours hand on, whose factors are multiplied."""
    n, step = b.re.shape[dim], 1
    if reverse:  # seen from the end, the factor of the place before
        a, b = (Pair(*[o.flip(x, dims=(dim,)) for x in z]) for z in (a, b))
        a = _behind(_slices(a, dim, slice(0, 1)), _slices(a, dim, slice(0, n - 1)), dim)
    while step < n:
        start, end, later = slice(0, step), slice(0, n - step), slice(step, n)
        factors, here = _slices(a, dim, later), _slices(b, dim, later)
        here = _plus(here, _strong(_slices(b, dim, end), factors))
        a = _behind(_slices(a, dim, start), _times(factors, _slices(a, dim, end)), dim)
        b = _behind(_slices(b, dim, start), here, dim)
        step *= 2
    return Pair(*[o.flip(x, dims=(dim,)) for x in b]) if reverse else b


class _Operations:
    """The rows of the table, by their names."""

    def __getattr__(self, name: str) -> Op:
        if name not in table:
            raise AttributeError(name)
        return table[name]


o: Any = _Operations()
# Both parts of the result are the operation on both parts, as of whatever moves elements.
LINEAR = {
    "add", "sub", "neg", "sum", "mean", "sum_to", "cumsum", "where", "clone", "trace", "part",
    "tril", "triu", "diagonal_embed",
}  # fmt: skip
_times = _bilinear(table["mul"])
POWERS = (1, 2, 3, 4, -1, -2)
FORMS: dict[str, Form] = {
    "mul": _times, "strong": _strong, "exact": _exact, "div": _div, "to": _to,
    "reciprocal": lambda z: _div(Pair(1.0, None), z),
    "square": lambda z: _times(z, z),
    "conj": lambda z: Pair(z.re, None if z.im is None else -z.im),
    "complex": _from_parts,
    "fft_c2c": _fft,
    "fft_r2c": lambda x, **how: Pair(*fourier_forms.r2c(x, **how)),
    "fft_c2r": lambda z, **how: fourier_forms.c2r(z.re, z.im, **how),
    "view_as_real": lambda z: o.stack(z.re, z.im, dim=z.re.ndim),
    "view_as_complex": lambda x: Pair(*[getitem(x, index=(..., k)) for k in range(2)]),
    "abs": _abs, "angle": lambda z: o.atan2(z.im, z.re), "sgn": _sgn, "exp": _exp, "log": _log,
    "log2": _scaled_log(2.0), "log10": _scaled_log(10.0), "sqrt": _sqrt, "pow": _power,
    "exp2": lambda z: _exp(Pair(z.re * math.log(2), z.im * math.log(2))), "expm1": _expm1,
    "log1p": lambda z: _log(Pair(1.0 + z.re, z.im)),
    "rsqrt": lambda z: _div(Pair(1.0, None), _sqrt(z)),
    "cube": lambda z: _times(_times(z, z), z),
    "round": lambda z: Pair(o.round(z.re), o.round(z.im)),
    "prod": _prod, "cumprod": _cumprod, "decay": _decay,
    "tan": _turned(_tanh), "asin": _asin, "acos": _acos, "atan": _turned(_atanh),
    "asinh": _asinh, "acosh": _acosh, "atanh": _atanh, "sigmoid": _sigmoid,
    "silu": lambda z: _times(z, _sigmoid(z)),
    "addcmul": lambda a, b, c: _plus(a, _times(b, c)),
    "addcdiv": lambda a, b, c: _plus(a, _div(b, c)),
    "lerp": _lerp,
    "sin": _sin, "cos": _cos, "sinh": _sinh, "cosh": _cosh, "tanh": _tanh,
    "ne": lambda a, b: o.maximum(o.ne(a.re, b.re), o.ne(a.im, b.im)),
    "eq": lambda a, b: o.mul(o.eq(a.re, b.re), o.eq(a.im, b.im)),
}  # fmt: skip
