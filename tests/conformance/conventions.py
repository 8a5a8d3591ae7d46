"""Conventions at singular points: functions, where they are taken, and the gradients there.

`CONVENTIONS` are PyTorch's (`tests/peers/test_torch_ops.py` holds the table against it).  `STRONG`
is where tapegrad differs: an adjoint that is exactly zero meets an infinite or undefined derivative.
"""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

nan, inf = float("nan"), float("inf")


class At(NamedTuple):
    """A function of the library `t` and of leaves, the leaves' values, the gradients of its sum."""

    function: Callable[..., Any]
    leaves: tuple[Any, ...]
    gradients: tuple[Any, ...]


CONVENTIONS: dict[str, At] = {
    "abs at 0": At(lambda t, x: t.abs(x), ([-1.0, 0.0, -0.0, 2.0],), ([-1.0, 0.0, 0.0, 1.0],)),
    "relu at 0": At(lambda t, x: t.relu(x), ([-1.0, 0.0, -0.0, 2.0],), ([0.0, 0.0, 0.0, 1.0],)),
    "sign": At(lambda t, x: t.sign(x), ([-1.0, 0.0, 2.0],), ([0.0, 0.0, 0.0],)),
    "floor at a step": At(lambda t, x: t.floor(x), ([-1.0, 0.0, 0.5],), ([0.0, 0.0, 0.0],)),
    "leaky_relu at 0": At(lambda t, x: t.nn.functional.leaky_relu(x, 0.5), ([-1.0, 0.0, -0.0, 2.0, nan],), ([0.5, 0.5, 0.5, 1.0, 0.5],)),
    "elu at 0": At(lambda t, x: t.nn.functional.elu(x, 0.5), ([0.0, -0.0, 2.0, -inf, inf, nan],), ([0.5, 0.5, 1.0, 0.0, 1.0, 1.0],)),
    "relu6 at its bounds": At(lambda t, x: t.nn.functional.relu6(x), ([0.0, 3.0, 6.0, nan],), ([0.0, 1.0, 0.0, 1.0],)),
    "shrinking at its ends": At(
        lambda t, x: t.nn.functional.hardshrink(x) + t.nn.functional.softshrink(x), ([-0.5, 0.0, 0.5, 0.6, nan],), ([0.0, 0.0, 0.0, 2.0, 2.0],)
    ),
    "hardsigmoid at its ends": At(lambda t, x: t.nn.functional.hardsigmoid(x), ([-3.0, 3.0, nan],), ([0.0, 0.0, 0.0],)),
    "hardswish at its ends": At(lambda t, x: t.nn.functional.hardswish(x), ([-3.0, 3.0, nan],), ([0.0, 1.0, 1.0],)),
    "threshold at it": At(lambda t, x: t.nn.functional.threshold(x, 0.5, 9.0), ([0.5, 0.6, nan],), ([0.0, 1.0, 1.0],)),
    "maximum of equals": At(
        lambda t, a, b: t.maximum(a, b), ([1.0, 1.0, 2.0], [1.0, 2.0, 1.0]), ([0.5, 0.0, 1.0], [0.5, 1.0, 0.0])
    ),
    "minimum of equals": At(
        lambda t, a, b: t.minimum(a, b), ([1.0, 1.0, 2.0], [1.0, 2.0, 1.0]), ([0.5, 1.0, 0.0], [0.5, 0.0, 1.0])
    ),
    "maximum of a thing and itself": At(lambda t, x: t.maximum(x, x), ([3.0],), ([1.0],)),
    "maximum of infinities": At(lambda t, a, b: t.maximum(a, b), ([inf, -inf], [inf, -inf]), ([0.5, 0.5], [0.5, 0.5])),
    "clamp at its bounds": At(lambda t, x: t.clamp(x, 0.0, 1.0), ([-0.5, 0.0, 0.5, 1.0, 1.5],), ([0.0, 1.0, 1.0, 1.0, 0.0],)),
    "clamp from below": At(lambda t, x: t.clamp(x, min=0.0), ([-0.5, 0.0, 0.5],), ([0.0, 1.0, 1.0],)),
    "clamp between Tensors": At(
        lambda t, x, a, b: t.clamp(x, a, b),
        ([-0.5, 0.0, 0.5, 1.0, 1.5], [0.0] * 5, [1.0] * 5),
        ([0.0, 1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]),
    ),
    "sqrt at 0": At(lambda t, x: t.sqrt(x), ([0.0, 4.0],), ([inf, 0.25],)),
    "sqrt below 0": At(lambda t, x: t.sqrt(x), ([-1.0],), ([nan],)),
    "rsqrt at 0": At(lambda t, x: t.rsqrt(x), ([0.0],), ([-inf],)),
    "log at 0": At(lambda t, x: t.log(x), ([0.0, 1.0],), ([inf, 1.0],)),
    "log below 0": At(lambda t, x: t.log(x), ([-2.0],), ([-0.5],)),
    "log1p at -1": At(lambda t, x: t.log1p(x), ([-1.0],), ([inf],)),
    "reciprocal at 0": At(lambda t, x: t.reciprocal(x), ([0.0],), ([-inf],)),
    "quotient by 0": At(lambda t, a, b: a / b, ([1.0, 0.0], [0.0, 0.0]), ([inf, inf], [-inf, nan])),
    "asin and acos at 1": At(lambda t, x: t.asin(x) - t.acos(x), ([1.0, -1.0, 0.0],), ([inf, inf, 2.0],)),
    "atan2 at the origin": At(lambda t, a, b: t.atan2(a, b), ([0.0, 0.0, -0.0], [0.0, -0.0, -0.0]), ([0.0] * 3, [0.0] * 3)),
    "atan2 on the axes": At(lambda t, a, b: t.atan2(a, b), ([0.0, 1.0], [1.0, 0.0]), ([1.0, 0.0], [0.0, -1.0])),
    "square at 0": At(lambda t, x: x**2, ([0.0],), ([0.0],)),
    "cube at 0": At(lambda t, x: x**3, ([0.0],), ([0.0],)),
    "first power": At(lambda t, x: x**1, ([0.0, 2.0],), ([1.0, 1.0],)),
    "power 0": At(lambda t, x: x**0, ([0.0, 2.0, -1.0],), ([0.0, 0.0, 0.0],)),
    "root at 0": At(lambda t, x: x**0.5, ([0.0],), ([inf],)),
    "third root at 0": At(lambda t, x: x ** (1 / 3), ([0.0],), ([inf],)),
    "power 1.5 at 0": At(lambda t, x: x**1.5, ([0.0],), ([0.0],)),
    "negative power at 0": At(lambda t, x: x**-2, ([0.0],), ([-inf],)),
    "power of Tensors": At(
        lambda t, a, b: a**b,
        ([0.0, 0.0, 0.0, 2.0, 0.0, -2.0, 1.0], [2.0, 1.0, 0.0, 0.0, -1.0, 3.0, inf]),
        ([0.0, 1.0, 0.0, 0.0, -inf, 12.0, inf], [0.0, 0.0, 0.0, 0.6931471805599453, -inf, nan, 0.0]),
    ),
    "number to a power": At(lambda t, x: 0.0**x, ([0.0, 1.0, -1.0],), ([0.0, 0.0, -inf],)),
    "where": At(
        lambda t, a, b: t.where(a > 0, a, b), ([1.0, -1.0], [5.0, 6.0]), ([1.0, 0.0], [0.0, 1.0])
    ),
    "remainder": At(lambda t, a, b: t.remainder(a, b), ([5.5, -5.5], [2.0, 2.0]), ([1.0, 1.0], [-2.0, 3.0])),
    "far out": At(
        lambda t, x: t.sigmoid(x) + t.tanh(x) + t.nn.functional.softplus(x),
        ([-1000.0, 1000.0, -inf, inf],), ([0.0, 1.0, 0.0, 1.0],),
    ),
    "norm at 0": At(lambda t, x: t.norm(x), ([0.0, 0.0],), ([0.0, 0.0],)),
    "norm with p=1 at 0": At(lambda t, x: t.norm(x, 1), ([0.0, -2.0],), ([0.0, -1.0],)),
    "norm with p=3 at 0": At(lambda t, x: t.norm(x, 3), ([0.0, 0.0],), ([0.0, 0.0],)),
    "norm with p=inf, ties": At(lambda t, x: t.norm(x, inf), ([-2.0, 2.0, 1.0],), ([-0.5, 0.5, 0.0],)),
    "norm with p=inf at 0": At(lambda t, x: t.norm(x, inf), ([0.0, 0.0],), ([0.0, 0.0],)),
    "norm with p=0": At(lambda t, x: t.norm(x, 0), ([0.0, 3.0],), ([0.0, 0.0],)),
    "norms of rows, one of them 0": At(
        lambda t, x: t.norm(x, dim=1), ([[0.0, 0.0], [3.0, 4.0]],), ([[0.0, 0.0], [0.6, 0.8]],)
    ),
    "standard deviation at 0": At(lambda t, x: t.std(x), ([2.0, 2.0, 2.0],), ([0.0, 0.0, 0.0],)),
    "variance at 0": At(lambda t, x: t.var(x), ([2.0, 2.0, 2.0],), ([0.0, 0.0, 0.0],)),
    "product, no zero": At(lambda t, x: t.prod(x), ([2.0, 3.0, 4.0],), ([12.0, 8.0, 6.0],)),
    "product, one zero": At(lambda t, x: t.prod(x), ([2.0, 0.0, 4.0],), ([0.0, 8.0, 0.0],)),
    "product, two zeros": At(lambda t, x: t.prod(x), ([0.0, 3.0, 0.0],), ([0.0, 0.0, 0.0],)),
    "products of rows": At(
        lambda t, x: t.prod(x, 1), ([[2.0, 0.0], [0.0, 0.0], [2.0, 3.0]],), ([[0.0, 2.0], [0.0, 0.0], [3.0, 2.0]],)
    ),
    "amax of ties": At(lambda t, x: t.amax(x), ([3.0, 1.0, 3.0],), ([0.5, 0.0, 0.5],)),
    "amin of ties": At(lambda t, x: t.amin(x), ([3.0, 1.0, 1.0, 1.0],), ([0.0, 1 / 3, 1 / 3, 1 / 3],)),
    "amax of ties in rows": At(
        lambda t, x: t.amax(x, 1), ([[3.0, 3.0], [1.0, 2.0]],), ([[0.5, 0.5], [0.0, 1.0]],)
    ),
    "max of ties": At(lambda t, x: t.max(x), ([3.0, 1.0, 3.0],), ([0.5, 0.0, 0.5],)),
    "max along a dimension names one": At(
        lambda t, x: t.max(x, 1)[0], ([[3.0, 3.0], [1.0, 2.0]],), ([[1.0, 0.0], [0.0, 1.0]],)
    ),
    "min along a dimension names one": At(
        lambda t, x: t.min(x, 1)[0], ([[3.0, 3.0], [1.0, 2.0]],), ([[1.0, 0.0], [1.0, 0.0]],)
    ),
    "softmax with -inf": At(
        lambda t, x: t.softmax(x, 0)[0], ([0.0, 0.0, -inf],), ([0.25, -0.25, 0.0],)
    ),
    "log_softmax with -inf": At(
        lambda t, x: t.log_softmax(x, 0)[0], ([0.0, 0.0, -inf],), ([0.5, -0.5, 0.0],)
    ),
    "logsumexp with -inf": At(lambda t, x: t.logsumexp(x, 0), ([0.0, 0.0, -inf],), ([0.5, 0.5, 0.0],)),
    "logsumexp of nothing but -inf": At(lambda t, x: t.logsumexp(x, 0), ([-inf, -inf],), ([nan, nan],)),
    "logsumexp with inf": At(lambda t, x: t.logsumexp(x, 0), ([0.0, inf],), ([0.0, nan],)),
    "rounding": At(
        lambda t, x: t.ceil(x) + t.trunc(x) + t.round(x), ([-1.5, -1.0, 0.0, -0.0, 0.5, inf],), ([0.0] * 6,)
    ),
    "frac": At(lambda t, x: t.frac(x), ([-1.5, -1.0, 0.0, 2.5],), ([1.0] * 4,)),
    "fmod": At(lambda t, a, b: t.fmod(a, b), ([5.5, -5.5, 1.0], [2.0, 2.0, 0.0]), ([1.0] * 3, [-2.0, 2.0, -inf])),
    "hypot at the origin": At(lambda t, a, b: t.hypot(a, b), ([0.0, 3.0, 0.0], [0.0, 4.0, -2.0]), ([nan, 0.6, 0.0], [nan, 0.8, -1.0])),
    "logaddexp of infinities": At(
        lambda t, a, b: t.logaddexp(a, b), ([-inf, inf, -inf, 0.0, 800.0], [-inf, inf, 0.0, inf, 0.0]),
        ([nan, nan, 0.0, 0.0, 1.0], [nan, nan, 1.0, 1.0, 0.0]),
    ),
    "nan_to_num": At(lambda t, x: t.nan_to_num(x), ([nan, inf, -inf, 2.0],), ([0.0, 0.0, 0.0, 1.0],)),
    "sinc at 0": At(lambda t, x: t.sinc(x), ([0.0, -0.0, inf],), ([0.0, 0.0, nan],)),
    "logarithms at 0": At(lambda t, x: t.log2(x) + t.log10(x), ([0.0],), ([inf],)),
    "asinh and exp2 far out": At(lambda t, x: t.asinh(x) + t.exp2(x), ([-inf],), ([0.0],)),
    "acosh at 1 and below": At(lambda t, x: t.acosh(x), ([1.0, 0.0],), ([inf, nan],)),
    "atanh at 1": At(lambda t, x: t.atanh(x), ([1.0, -1.0, 0.0],), ([inf, inf, 1.0],)),
    "logit at the ends and outside": At(lambda t, x: t.logit(x), ([0.0, 1.0, 0.5, -1.0, 2.0],), ([inf, inf, 4.0, nan, nan],)),
    "logit with eps": At(lambda t, x: t.logit(x, 0.25), ([0.0, 0.25, 0.5, 0.75, 1.0],), ([0.0, 16 / 3, 4.0, 16 / 3, 0.0],)),
    "erfinv at the ends and outside": At(lambda t, x: t.erfinv(x), ([1.0, -1.0, 2.0],), ([inf, inf, nan],)),
    "lgamma at its poles": At(lambda t, x: t.lgamma(x), ([0.0, -0.0, -1.0, inf, -inf],), ([-inf, inf, nan, inf, nan],)),
    "digamma at 0": At(lambda t, x: t.digamma(x), ([0.0],), ([inf],)),
    "i0 at 0": At(lambda t, x: t.i0(x) + t.special.i0e(x), ([0.0, -0.0],), ([0.0, 0.0],)),
    "i1 at 0": At(lambda t, x: t.special.i1(x) + t.special.i1e(x), ([0.0, -0.0],), ([1.0, 1.0],)),
    "quantiles at the ends and outside": At(lambda t, x: t.special.ndtri(x), ([0.0, 1.0, 2.0],), ([inf, inf, nan],)),
    "normal distribution far out": At(
        lambda t, x: t.special.ndtr(x) + t.special.log_ndtr(x) * 2, ([inf, 50.0],), ([0.0, 0.0],)
    ),
    "xlogy": At(
        lambda t, a, b: t.xlogy(a, b), ([0.0, 0.0, 0.0, 1.0, 1.0, 0.0], [0.0, -1.0, 1.0, 0.0, -1.0, nan]),
        ([0.0, 0.0, 0.0, -inf, nan, nan], [nan, 0.0, 0.0, inf, -1.0, nan]),
    ),
    "xlog1py": At(
        lambda t, a, b: t.special.xlog1py(a, b), ([0.0, 0.0, 0.0, 1.0], [-1.0, -2.0, 0.0, -1.0]),
        ([0.0, 0.0, 0.0, -inf], [nan, 0.0, 0.0, inf]),
    ),
    "entr": At(lambda t, x: t.special.entr(x), ([0.0, 1.0, -1.0],), ([inf, -1.0, nan],)),
    "products so far, no zero": At(lambda t, x: t.cumprod(x, 0), ([2.0, 3.0, 4.0],), ([16.0, 10.0, 6.0],)),
    "products so far, one zero": At(lambda t, x: t.cumprod(x, 0), ([2.0, 0.0, 4.0],), ([1.0, 10.0, 0.0],)),
    "products so far, two zeros": At(lambda t, x: t.cumprod(x, 0), ([0.0, 3.0, 0.0, 2.0],), ([4.0, 0.0, 0.0, 0.0],)),
    "products so far, in rows": At(
        lambda t, x: t.cumprod(x, 1), ([[2.0, 0.0], [0.0, 0.0], [2.0, 3.0]],), ([[1.0, 2.0], [1.0, 0.0], [4.0, 2.0]],)
    ),
    "sorting ties": At(
        lambda t, x: (t.sort(x, stable=True)[0] * t.tensor([1.0, 2.0, 3.0])).sum(), ([2.0, 1.0, 1.0],), ([3.0, 1.0, 2.0],)
    ),
    "logcumsumexp with infinities": At(
        lambda t, x: t.logcumsumexp(x, 0), ([0.0, inf, 1.0],), ([1.0, nan, 0.0],)
    ),
    "logcumsumexp with -inf": At(
        lambda t, x: t.logcumsumexp(x, 0), ([-inf, 0.0, -inf, 0.0],), ([nan, 2.5, 0.0, 0.5],)
    ),
    # What is not a number stays so.
    "product with inf": At(lambda t, a, b: a * b, ([2.0, inf], [inf, 2.0]), ([inf, 2.0], [2.0, inf])),
    "product with nan": At(lambda t, a, b: a * b, ([2.0, nan], [nan, 2.0]), ([nan, 2.0], [2.0, nan])),
    "exp of inf": At(lambda t, x: t.exp(x), ([inf, -inf, nan],), ([inf, 0.0, nan],)),
    "sin of inf": At(lambda t, x: t.sin(x), ([inf],), ([nan],)),
    "matrix product with inf": At(
        lambda t, a, b: a @ b, ([[1.0, 2.0]], [[inf], [1.0]]), ([[inf, 1.0]], [[1.0], [2.0]])
    ),
    "matrix product with nan": At(
        lambda t, a, b: a @ b, ([[1.0, 2.0]], [[nan], [1.0]]), ([[nan, 1.0]], [[1.0], [2.0]])
    ),
    "abs of inf": At(lambda t, x: t.abs(x), ([inf, -inf],), ([1.0, -1.0],)),
    "eigenvalues that are equal": At(lambda t, x: t.linalg.eigvalsh(x), ([[2.0, 0.0], [0.0, 2.0]],), ([[1.0, 0.0], [0.0, 1.0]],)),
    "singular values that are equal": At(lambda t, x: t.linalg.svdvals(x), ([[2.0, 0.0], [0.0, 2.0]],), ([[1.0, 0.0], [0.0, 1.0]],)),
    "determinant of a regular matrix": At(lambda t, x: t.linalg.det(x), ([[1.0, 2.0], [3.0, 4.0]],), ([[4.0, -3.0], [-2.0, 1.0]],)),
    "logarithm of a determinant of zero": At(lambda t, x: t.logdet(x), ([[1.0, 0.0], [0.0, 0.0]],), ([[nan, nan], [nan, inf]],)),
    "Frobenius norm at 0": At(lambda t, x: t.linalg.matrix_norm(x), ([[0.0, 0.0]],), ([[0.0, 0.0]],)),
    "sums of products with inf": At(
        lambda t, a, b: t.einsum("ij,jk->ik", a, b), ([[1.0, 2.0]], [[inf], [1.0]]), ([[inf, 1.0]], [[1.0], [2.0]])
    ),
}  # fmt: skip

# NaN stays where PyTorch, whose sign of NaN is 0, drops it.
# A determinant has a derivative at singular matrices, where PyTorch's is zero.
OURS = {
    "Bessel functions at 0": At(
        lambda t, x: t.special.spherical_bessel_j0(x) + t.special.bessel_j0(x) + t.special.bessel_j1(x), ([0.0, -0.0],), ([0.5, 0.5],)
    ),
    "abs of nan": At(lambda t, x: t.abs(x), ([nan],), ([nan],)),
    "determinant of a singular matrix": At(lambda t, x: t.linalg.det(x), ([[1.0, 2.0], [2.0, 4.0]],), ([[4.0, -2.0], [-2.0, 1.0]],)),
    "determinant of a matrix of zeros": At(lambda t, x: t.linalg.det(x), ([[0.0, 0.0], [0.0, 0.0]],), ([[0.0, 0.0], [0.0, 0.0]],)),
}  # fmt: skip

# An adjoint of exactly zero contributes exactly zero, whatever it meets.
STRONG: dict[str, At] = {
    "0 times sqrt": At(lambda t, x: 0.0 * t.sqrt(x), ([0.0, 4.0],), ([0.0, 0.0],)),
    "where": At(
        lambda t, x: t.where(x > 0, t.sqrt(x), 0.0 * x), ([0.0, -1.0, 4.0],), ([0.0, 0.0, 0.25],)
    ),
    "where log": At(lambda t, x: t.where(x > 0, t.log(x), x), ([0.0, 2.0],), ([1.0, 0.5],)),
    "where power": At(lambda t, x: t.where(x > 0, x**x, x), ([0.0, 1.0],), ([1.0, 1.0],)),
    "where quotient": At(lambda t, x: t.where(x > 0, x / x, x), ([0.0, 1.0],), ([1.0, 0.0],)),
    "masked_fill": At(
        lambda t, x: t.log(x).masked_fill(x <= 0, 0.0), ([0.0, -1.0, 2.0],), ([0.0, 0.0, 0.5],)
    ),
    "masked_select": At(lambda t, x: t.log(x)[x > 0], ([0.0, -1.0, 2.0],), ([0.0, 0.0, 0.5],)),
    "index": At(lambda t, x: t.rsqrt(x)[1:], ([0.0, 4.0],), ([0.0, -0.0625],)),
    "relu": At(lambda t, x: t.relu(t.log(x)), ([0.0, 1.0, 4.0],), ([0.0, 0.0, 0.25],)),
    "clamp": At(lambda t, x: t.clamp(t.log(x), min=-1.0), ([0.0, 4.0],), ([0.0, 0.25],)),
    "maximum": At(lambda t, x: t.maximum(t.log(x), x * 0), ([0.0, 4.0],), ([0.0, 0.25],)),
    "amax": At(lambda t, x: t.amax(t.log(x)), ([0.0, 4.0],), ([0.0, 0.25],)),
    "product with a zero": At(lambda t, x: t.sqrt(x) * (x * 0), ([0.0],), ([0.0],)),
    "matmul, inf in the other factor": At(
        lambda t, a, b: t.where((a @ b).isfinite(), a @ b, 0.0 * (a @ b).detach().isnan().to(a.dtype)),
        ([[1.0, 2.0]], [[inf, 1.0], [1.0, 1.0]]), ([[1.0, 1.0]], [[0.0, 1.0], [0.0, 2.0]]),
    ),
    "matmul, nan in the other factor": At(
        lambda t, a, b: (a @ b)[:, 1:], ([[1.0, 2.0]], [[nan, 1.0], [1.0, 1.0]]),
        ([[1.0, 1.0]], [[0.0, 1.0], [0.0, 2.0]]),
    ),
    "matmul, batched": At(
        lambda t, a, b: (a @ b)[..., 1:], ([[[1.0, 2.0]]], [[nan, 1.0], [1.0, 1.0]]),
        ([[[1.0, 1.0]]], [[0.0, 1.0], [0.0, 2.0]]),
    ),
    "matrix times vector": At(
        lambda t, a, b: (a @ b)[1:], ([[inf, 1.0], [1.0, 2.0]], [3.0, 4.0]),
        ([[0.0, 0.0], [3.0, 4.0]], [1.0, 2.0]),
    ),
    "norm of a row that is not used": At(
        lambda t, x: t.norm(t.log(x), dim=1)[1:], ([[0.0, 1.0], [1.0, 2.0]],), ([[0.0, 0.0], [0.0, 0.5]],)
    ),
    "std of a row that is not used": At(
        lambda t, x: t.std(t.log(x), dim=1)[1:], ([[0.0, 1.0], [1.0, 1.0]],), ([[0.0, 0.0], [0.0, 0.0]],)
    ),
    "var of a row that is not used": At(
        lambda t, x: t.var(t.log(x), dim=1)[1:], ([[0.0, 1.0], [1.0, 1.0]],), ([[0.0, 0.0], [0.0, 0.0]],)
    ),
    "product of a row that is not used": At(
        lambda t, x: t.prod(1 / x, dim=1)[1:], ([[0.0, 1.0], [1.0, 2.0]],), ([[0.0, 0.0], [-0.5, -0.25]],)
    ),
    "logsumexp of a row that is not used": At(
        lambda t, x: t.logsumexp(1 / x, dim=1)[1:], ([[0.0, 0.0], [1.0, 1.0]],), ([[0.0, 0.0], [-0.5, -0.5]],)
    ),
    "softmax of a row that is not used": At(
        lambda t, x: t.softmax(1 / x, dim=1)[1:, 0], ([[0.0, 0.0], [1.0, 1.0]],), ([[0.0, 0.0], [-0.25, 0.25]],)
    ),
    "log_softmax of a row that is not used": At(
        lambda t, x: t.log_softmax(1 / x, dim=1)[1:, 0], ([[0.0, 0.0], [1.0, 1.0]],), ([[0.0, 0.0], [-0.5, 0.5]],)
    ),
    "slogdet of a matrix that is not used": At(
        lambda t, x: t.linalg.slogdet(x)[1][1:], ([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 4.0]]],),
        ([[[0.0, 0.0], [0.0, 0.0]], [[0.5, 0.0], [0.0, 0.25]]],),
    ),
    "eigenvectors of a matrix that is not used": At(
        lambda t, x: t.linalg.eigh(x)[1][1:, 1, 0] * t.linalg.eigh(x)[1][1:, 0, 0],
        ([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]]],), ([[[0.0, 0.0], [0.0, 0.0]], [[0.0, -0.5], [-0.5, 0.0]]],),
    ),
    "singular vectors of a matrix that is not used": At(
        lambda t, x: t.linalg.svd(x)[0][1:, 1, 0] * t.linalg.svd(x)[0][1:, 0, 0],
        ([[[0.0, 0.0], [0.0, 0.0]], [[2.0, 0.0], [0.0, 1.0]]],), ([[[0.0, 0.0], [0.0, 0.0]], [[0.0, 1 / 3], [2 / 3, 0.0]]],),
    ),
    "Q of a matrix that is not used": At(
        lambda t, x: t.linalg.qr(x)[0][1:, 1, 0] * t.linalg.qr(x)[0][1:, 0, 0],
        ([[[0.0, 0.0], [0.0, 0.0]], [[2.0, 0.0], [0.0, 1.0]]],), ([[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.5, 0.0]]],),
    ),
    "triangular solve, zero on the diagonal": At(
        lambda t, a, b: t.linalg.solve_triangular(a, b, upper=True)[1:], ([[0.0, 1.0], [0.0, 2.0]], [[1.0], [4.0]]),
        ([[0.0, 0.0], [0.0, -1.0]], [[0.0], [0.5]]),
    ),
    "einsum, nan in the other factor": At(
        lambda t, a, b: t.einsum("ij,jk->ik", a, b)[:, 1:], ([[1.0, 2.0]], [[nan, 1.0], [1.0, 1.0]]),
        ([[1.0, 1.0]], [[0.0, 1.0], [0.0, 2.0]]),
    ),
    "einsum of three, nan in one factor": At(
        lambda t, a, b, c: t.einsum("i,i,i->i", a, b, c)[1:], ([nan, 2.0], [inf, 3.0], [0.0, 4.0]),
        ([0.0, 12.0], [0.0, 8.0], [0.0, 6.0]),
    ),
    "where hypot": At(
        lambda t, a, b: t.where(a > 0, t.hypot(a, b), a), ([0.0, 3.0], [0.0, 4.0]), ([1.0, 0.6], [0.0, 0.8])
    ),
    "where xlogy": At(
        lambda t, a, b: t.where(b > 0, t.xlogy(a, b), a), ([0.0, 0.0], [0.0, 1.0]), ([1.0, 0.0], [0.0, 0.0])
    ),
    "where logit": At(lambda t, x: t.where(x > 0, t.logit(x), x), ([0.0, -1.0, 0.5],), ([1.0, 1.0, 4.0],)),
    "products so far of a row that is not used": At(
        lambda t, x: t.cumprod(1 / x, dim=1)[1:, 1], ([[0.0, 1.0], [1.0, 2.0]],), ([[0.0, 0.0], [-0.5, -0.25]],)
    ),
    "products so far, an infinity after what is used": At(
        lambda t, x: t.cumprod(1 / x, 0)[:2], ([1.0, 2.0, 0.0],), ([-1.5, -0.25, 0.0],)
    ),
    "a weight of zero": At(lambda t, x, w: w * t.log(x), ([0.0, 1.0], [0.0, 2.0]), ([0.0, 2.0], [-inf, 0.0])),
}  # fmt: skip
