"""Every public function and method of tapegrad, as a call that PyTorch understands too.

A case is a function of the library `t` and of operands.  Operands are given as shapes (numbers from
-2 to 2), as `positive(shape)` or `unit(shape)`, or as arrays of integers and booleans.
"""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Operand = Any


class Case(NamedTuple):
    """A call; `smooth` says that second derivatives are compared."""

    name: str
    function: Callable[..., Any]
    operands: tuple[Operand, ...]
    smooth: bool
    integers: bool


CASES: list[Case] = []


def positive(*shape: int) -> Any:
    return ("positive", shape)


def unit(*shape: int) -> Any:
    return ("unit", shape)


def values_of(operand: Operand, seed: int) -> Any:
    """An operand as an array."""
    if isinstance(operand, np.ndarray):
        return operand
    kind, shape = operand if operand and isinstance(operand[0], str) else ("real", operand)
    low, high = {"real": (-2.0, 2.0), "positive": (0.1, 2.0), "unit": (-0.9, 0.9)}[kind]
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape))
    places = (rng.permutation(n) + 0.1 + 0.17 * seed) / max(n, 1)
    return np.asarray(low + (high - low) * places).reshape(shape)


def case(function: Any, *operands: Operand, smooth: bool = True, integers: bool = True) -> None:
    """Enter a call into the table."""
    words = [
        n for n in function.__code__.co_names if n not in ("nn", "functional", "special", "detach")
    ]
    name = f"{len(CASES)} {' '.join(words)}"
    CASES.append(Case(name, function, operands, smooth, integers))


def ints(*numbers: Any) -> Any:
    return np.array(numbers, np.int64)


def mask(*shape: int) -> Any:
    n = int(np.prod(shape))
    return (np.arange(n) % 3 != 1).reshape(shape)


M, R, COL, S, V = (2, 3), (3,), (2, 1), (), (5,)
C3, SQ = (2, 3, 4), (3, 3)

# -- arithmetic ------------------------------------------------------------------------------------
for x, y in [(M, M), (M, R), (COL, M), (M, S), (S, M), (S, S), ((0, 3), R)]:
    case(lambda t, a, b: t.add(a, b), x, y)
    case(lambda t, a, b: t.mul(a, b), x, y)
case(lambda t, a, b: a + b, M, R)
case(lambda t, a, b: t.add(a, b, alpha=2), M, M)
case(lambda t, a, b: a.add(b, alpha=3), M, M)
case(lambda t, a: 3 + a + 2.5, M)
case(lambda t, a, b: t.sub(a, b), M, COL)
case(lambda t, a, b: t.sub(a, b, alpha=2), M, M)
case(lambda t, a, b: a.subtract(b), M, M)
case(lambda t, a: 3 - a - 2, M)
case(lambda t, a, b: a.multiply(b) * 2, M, S)
case(lambda t, a: 2 * a * True, M)
case(lambda t, a, b: t.div(a, b), M, positive(3))
case(lambda t, a, b: a.divide(b) + a.true_divide(b) + a / b, M, positive(2, 3))
case(lambda t, a: 3 / a + a / 2, positive(2, 3))
case(lambda t, a, b: t.div(a, b, rounding_mode="floor"), M, positive(2, 3), smooth=False)
case(lambda t, a, b: t.div(a, b, rounding_mode="trunc"), M, positive(2, 3), smooth=False)
case(lambda t, a, b: t.floor_divide(a.detach(), b.detach()), M, positive(3), smooth=False)
case(lambda t, a: a.detach() // 2 + 7 // (a.detach() + 5), M, smooth=False)
case(lambda t, a, b: t.remainder(a, b), M, positive(3))
case(lambda t, a: a % 0.7 + 5 % (a.detach() + 7), M)
case(lambda t, a, b: t.pow(a, b), positive(2, 3), R)
for p in (2, 3, 1, 0, 0.5, -1, -0.5, -2, 2.5, 4):
    case(lambda t, a, p=p: t.pow(a, p) + a**p, positive(2, 3))
case(lambda t, a: 2**a + 0.5**a, M)
case(lambda t, a: t.neg(a) + a.negative() - a + (+a), M)
case(lambda t, a: t.abs(a) + a.absolute() + abs(a), M)
case(lambda t, a: t.sign(a), M, smooth=False)
case(lambda t, a: t.floor(a), M, smooth=False)
for name in "square exp expm1 sin cos atan sinh cosh tanh sigmoid relu erf".split():
    exec(f"case(lambda t, a: t.{name}(a) + a.{name}(), M)\ncase(lambda t, a: t.{name}(a), S)")
for name in "reciprocal log log1p sqrt rsqrt".split():
    exec(f"case(lambda t, a: t.{name}(a) + a.{name}(), positive(2, 3))")
for name in "tan asin acos".split():
    exec(f"case(lambda t, a: t.{name}(a) + a.{name}(), unit(2, 3))")
case(lambda t, a: a.arcsin() + a.arccos() + a.arctan(), unit(2, 3))
case(lambda t, a, b: t.atan2(a, b) + a.arctan2(b), M, positive(3))
case(lambda t, a, b: t.minimum(a, b) + t.maximum(a, b) * 2, M, R)
case(lambda t, a: t.clamp(a, -1, 1), M)
case(lambda t, a: a.clamp(min=-0.5) + a.clip(max=0.5), M)
case(lambda t, a, b, c: t.clamp(a, b, c), M, (3,), positive(2, 3))
case(lambda t, a, b: t.where(a > b, a, b), M, R)
case(lambda t, a, c: t.where(c, a, 0.0), M, mask(2, 3))
case(lambda t, a, c: a.where(c, a * 2), M, mask(3))
case(lambda t, c: t.where(c), mask(2, 3))
case(lambda t, a, b, c: t.addcmul(a, b, c), M, R, COL)
case(lambda t, a, b, c: a.addcmul(b, c, value=0.5), M, M, M)
case(lambda t, a, b, c: t.addcdiv(a, b, c), M, R, positive(2, 1))
case(lambda t, a, b, c: a.addcdiv(b, c, value=0.5), M, M, positive(2, 3))
case(lambda t, a, b, c: t.lerp(a, b, c), M, M, M)
case(lambda t, a, b: a.lerp(b, 0.25), M, M)
case(lambda t, a, b: t.lerp(1e12 * a, 1.0 * b, 0.9), M, M)
case(lambda t, a, b: t.lerp(1e20 * a, 1.0 * b, 1.0), M, M)
for name in "eq ne lt le gt ge".split():
    exec(f"case(lambda t, a, b: (t.{name}(a, b), a.{name}(1)), M, R)")
case(lambda t, a, b: (a == b, a != b, a < b, a <= b, a > b, a >= b, a.greater(b), a.less(b)), M, R)
for name in "greater greater_equal less less_equal not_equal".split():
    exec(f"case(lambda t, a, b: (t.{name}(a, b), (a * 1).detach().{name}_(b.detach())), M, R)")
for name in "logical_and logical_or logical_xor".split():
    exec(f"case(lambda t, a, b: (t.{name}(a, b), a.{name}(b)), mask(2, 3), mask(3))")
    exec(f"case(lambda t, a, b: t.{name}(a, b), M, R)")
case(lambda t, a: (t.logical_not(a), a.logical_not()), mask(2, 3))
for name in "bitwise_and bitwise_or bitwise_xor".split():
    exec(f"case(lambda t, a, b: (t.{name}(a, b), a.{name}(b)), ints(6, 3, -2), ints(3, 5, 7))")
case(lambda t, a, b: (a & b, a | b, a ^ b, ~a, a & 3, 1 | b), ints(6, 3, -2), ints(3, 5, 7))
case(
    lambda t, a, b: (t.bitwise_left_shift(a, b), t.bitwise_right_shift(a, b), a << 2, a >> b),
    ints(6, 3, -2),
    ints(3, 5, 7),
)
case(lambda t, a: (t.bitwise_not(a), a.bitwise_not(), ~a), mask(2, 3))
case(
    lambda t, a: (
        t.isnan(a / 0),
        t.isinf(a / 0),
        t.isfinite(a),
        a.isnan(),
        a.isinf(),
        a.isfinite(),
    ),
    R,
)
case(
    lambda t, a: (
        t.equal(a, a),
        t.equal(a, a + 1),
        t.allclose(a, a + 1e-9),
        a.allclose(a + 1),
        a.equal(a),
    ),
    R,
    integers=False,
)
case(lambda t, a: t.nn.functional.softplus(a), M)
case(lambda t, a: t.nn.functional.softplus(a, 2.0, 1.0), M)
case(lambda t, a: t.nn.functional.relu(a) + t.nn.functional.tanh(a) + t.nn.functional.sigmoid(a), M)
case(lambda t, a: t.nn.functional.softmax(a, 1) + t.nn.functional.log_softmax(a, 0), M)
for reduction in ("mean", "sum", "none"):
    case(lambda t, a, b, r=reduction: t.nn.functional.mse_loss(a, b, reduction=r), M, M)
    case(
        lambda t, a, b, r=reduction: t.nn.functional.binary_cross_entropy_with_logits(
            a, t.sigmoid(b), reduction=r
        ),
        M, M,
    )  # fmt: skip
    case(
        lambda t, a, r=reduction: t.nn.functional.cross_entropy(
            a, t.tensor([2, 0]), reduction=r
        ),
        M, integers=False,
    )  # fmt: skip
    case(
        lambda t, a, r=reduction: t.nn.functional.nll_loss(
            t.log_softmax(a, 1), t.tensor([2, 0]), reduction=r
        ),
        M, integers=False,
    )  # fmt: skip
case(lambda t, a: t.nn.functional.threshold(a, 0.2, 3.0), M, smooth=False)
case(lambda t, a, w, b: t.nn.functional.linear(a, w, b), (4, 3), (2, 3), (2,))
case(lambda t, a, w: t.nn.functional.linear(a, w), (3,), (2, 3))

# -- reductions ------------------------------------------------------------------------------------
DIMS = [None, 0, -1, (0, 2), (1,), (-1, 0)]
for dim in DIMS:
    for keepdim in (False, True):
        for name in "sum mean".split():
            exec(
                f"case(lambda t, a, d=dim, k=keepdim: t.{name}(a, d, k) if d is not None else t.{name}(a), C3)"
            )
        case(lambda t, a, d=dim, k=keepdim: t.var(a, d, keepdim=k), C3)
        case(lambda t, a, d=dim, k=keepdim: a.std(dim=d, correction=0, keepdim=k), C3)
        if dim is not None:
            case(lambda t, a, d=dim, k=keepdim: t.amax(a, d, k) - a.amin(dim=d, keepdim=k), C3)
            case(lambda t, a, d=dim, k=keepdim: t.logsumexp(a, d, k), C3)
        case(lambda t, a, d=dim, k=keepdim: t.norm(a, 2, d, k) if d is not None else a.norm(), C3)
for dim in (0, 1, -1):
    for keepdim in (False, True):
        case(lambda t, a, d=dim, k=keepdim: t.prod(a, d, k), C3)
        case(lambda t, a, d=dim, k=keepdim: tuple(t.max(a, d, k)), C3)
        case(lambda t, a, d=dim, k=keepdim: tuple(a.min(dim=d, keepdim=k)), C3)
        case(lambda t, a, d=dim, k=keepdim: (t.argmax(a, d, k), a.argmin(dim=d, keepdim=k)), C3)
        case(lambda t, a, d=dim, k=keepdim: (t.all(a > 0, d, k), (a > 0).any(dim=d, keepdim=k)), C3)
    case(lambda t, a, d=dim: t.softmax(a, d) + a.softmax(dim=d), C3)
    case(lambda t, a, d=dim: t.log_softmax(a, d) + a.log_softmax(dim=d), C3)
    case(lambda t, a, d=dim: t.cumsum(a, d) + a.cumsum(dim=d), C3)
    case(lambda t, a, d=dim: t.count_nonzero(a, d), C3)
case(lambda t, a: (t.sum(a), a.sum(), a.mean(), t.prod(a), a.prod()), M)
case(
    lambda t, a: (
        t.sum(a),
        t.sum(a, 0),
        t.mean(a),
        t.var(a, correction=0),
        t.amax(a),
        t.logsumexp(a, 0),
        t.cumsum(a, 0),
    ),
    S,
)
case(lambda t, a: (t.softmax(a, 0), t.log_softmax(a, 0), t.norm(a), t.max(a), t.argmax(a)), S)
case(lambda t, a: (t.max(a, 0).values, t.min(a, 0).indices), S)
case(
    lambda t, a: (
        t.sum(a, 0),
        t.sum(a, 1),
        t.sum(a),
        a.prod(0),
        a.prod(),
        t.cumsum(a, 0),
        t.all(a),
        t.any(a),
    ),
    (0, 3),
)
case(
    lambda t, a: (
        t.max(a),
        t.min(a),
        a.max(),
        a.min(),
        t.argmax(a),
        a.argmin(),
        t.all(a > 0),
        t.any(a > 0),
    ),
    M,
)
case(lambda t, a: (t.argmax(a, keepdim=True),), M)
case(lambda t, a, b: t.max(a, b) + t.min(a, b) * 2, M, M)
case(
    lambda t, a: a.var() + a.std() + t.var(a, unbiased=False) + t.std(a, 1, unbiased=True).sum(), M
)
case(lambda t, a: t.var(a, False) + t.var(a, correction=2), M)
case(lambda t, a: (t.amax(a, (0, 1)), t.amin(a)), M)
case(lambda t, a: t.sum(a, dtype=t.float32), M, smooth=False)
case(
    lambda t, a: (
        t.mean(a, dtype=t.float64),
        t.prod(a, dtype=t.float64),
        t.cumsum(a, 0, dtype=t.float64),
        t.softmax(a, 0, dtype=t.float64),
    ),
    M,
)
for p in (1, 3, 0.5, float("inf"), -float("inf"), 2.5):
    case(
        lambda t, a, p=p: (
            t.norm(a, p) + a.norm(p, dim=0).sum() + t.norm(a, p=p, dim=(0, 1), keepdim=True).sum()
        ),
        M,
    )
case(lambda t, a: t.norm(a, "fro"), M)
case(lambda t, a: t.norm(a.detach(), 0), M, smooth=False)
case(lambda t, a: t.count_nonzero(a), M)

# -- shapes ----------------------------------------------------------------------------------------
for shape in [(3, 2), (6,), (-1, 2), (1, 2, 3), (2, -1)]:
    case(lambda t, a, s=shape: t.reshape(a, s) + a.reshape(*s) + a.view(s) + a.view(*s), M)
case(lambda t, a, b: a.view_as(b) + a.reshape_as(b), M, (3, 2))
case(
    lambda t, a: (
        t.flatten(a),
        t.flatten(a, 1),
        a.flatten(0, 1),
        a.flatten(start_dim=-2),
        a.ravel(),
        t.ravel(a),
    ),
    C3,
)
case(lambda t, a: (t.flatten(a), t.reshape(a, (1, 1)), t.ravel(a)), S)
case(lambda t, a: (t.unflatten(a, 0, (2, 3)), a.unflatten(-1, (3, -1))), (6,))
case(lambda t, a: a.t().contiguous() * 2, M)
case(lambda t, a: (t.clone(a), a.clone(), a.contiguous()), M)
case(lambda t, a: (t.permute(a, (2, 0, 1)), a.permute(1, 2, 0), a.permute((0, -1, 1))), C3)
case(
    lambda t, a: (
        t.transpose(a, 0, 2),
        a.transpose(-1, 0),
        t.swapaxes(a, 0, 1),
        a.swapaxes(1, 2),
        a.swapdims(0, 1),
    ),
    C3,
)
case(lambda t, a: (t.t(a), a.t(), a.T, a.mT), M)
case(lambda t, a: t.t(a), R)
case(lambda t, a: (t.movedim(a, 0, 2), a.movedim((0, 1), (1, 2)), a.moveaxis(-1, 0)), C3)
case(
    lambda t, a: (
        t.squeeze(a),
        t.squeeze(a, 0),
        a.squeeze(1),
        a.squeeze(dim=-1),
        a.squeeze((0, 3)),
    ),
    (1, 2, 3, 1),
)
case(lambda t, a: (t.unsqueeze(a, 0), a.unsqueeze(-1), a.unsqueeze(1)), M)
case(lambda t, a: (a.expand(4, 2, 3), a.expand(2, -1, -1), a.expand((2, 3))), M)
case(
    lambda t, a, b: (
        a.expand(2, 3),
        t.broadcast_to(a, (4, 2, 3)),
        a.broadcast_to((2, 5)),
        a.expand_as(b),
    ),
    COL,
    M,
)
case(lambda t, a: (t.narrow(a, 1, 1, 2), a.narrow(0, 0, 1), a.narrow(-1, -2, 2)), M)
case(lambda t, a: (t.select(a, 1, 2), a.select(0, -1)), M)
case(lambda t, a: (t.diagonal(a), a.diagonal(1), a.diagonal(-1, 0, 1), t.diag(a), a.diag(1)), SQ)
case(lambda t, a: (t.diagonal(a, 0, 1, 2), a.diagonal(offset=-1, dim1=2, dim2=0)), C3)
case(lambda t, a: (t.diag(a), a.diag(-2)), R)
case(lambda t, a: (t.tril(a), a.tril(-1), t.triu(a, 1), a.triu()), SQ)
case(lambda t, a: (t.tril(a, 1), t.triu(a)), C3)
case(lambda t, a: (t.flip(a, (0,)), a.flip(0, 2), a.flip((-1,))), C3)
case(lambda t, a: (a.unfold(0, 2, 1), a.unfold(1, 2, 2)), (4, 5))
case(
    lambda t, a: (
        t.as_strided(a, (2, 2), (1, 2)),
        a.as_strided((3,), (1,), 1),
        a.as_strided((2, 3), (0, 1)),
    ),
    M,
)
case(lambda t, a, b: (t.cat([a, b]), t.cat((a, b, a), dim=0), t.concat([a, b], 0)), M, (1, 3))
case(lambda t, a, b: (t.cat([a, b], 1), t.cat([a, b], dim=-1)), M, COL)
case(lambda t, a, b: (t.stack([a, b]), t.stack([a, b], 1), t.stack((a, a, b), dim=-1)), M, M)
case(lambda t, a: (*t.split(a, 2), *a.split(2, 1), *t.split(a, [1, 4], 0), *a.split(9)), (5, 3))
case(lambda t, a: (*t.chunk(a, 2), *a.chunk(3, 1), *a.chunk(7)), (5, 3))
case(lambda t, a: (*t.split_with_sizes(a, [2, 3]), *a.split_with_sizes([1, 0, 2], 1)), (5, 3))
case(lambda t, a: (*t.unsafe_chunk(a, 2), *a.unsafe_chunk(3, 1)), (5, 3))
case(lambda t, a: (*t.unsafe_split(a, 2), *a.unsafe_split(2, 1)), (5, 3))
case(
    lambda t, a: (*t.unsafe_split_with_sizes(a, [2, 3]), *a.unsafe_split_with_sizes([3], 1)), (5, 3)
)
case(lambda t, a: a @ t.nn.functional.one_hot(t.tensor([2, 0, 1]), 4).to(a.dtype), (5, 3))
case(
    lambda t, a: (
        *t.tensor_split(a, 3),
        *a.tensor_split((1, 4)),
        *a.tensor_split([0, 2], dim=1),
        *t.tensor_split(a, 4, 1),
    ),
    (5, 3),
)
case(lambda t, a: (*t.unbind(a), *a.unbind(1)), M)
case(
    lambda t, a: (a.to(t.float32), a.float(), a.double(), a.to(dtype=t.float64), a.type(t.float64)),
    M,
    smooth=False,
)
case(lambda t, a: (a.long(), a.int(), a.bool(), a.short(), a.to(t.int8)), M, smooth=False)
case(lambda t, a, b: (a.to(b), a.type_as(b)), M, ints(1))

# -- indexing --------------------------------------------------------------------------------------
for key in [0, -1, slice(1), slice(None, None, 2), (0, 1), (slice(None), 1), (..., 0), None, (None, 1),
            (slice(None), None, 0), ([0, 1, 0],), (slice(None), [2, 0]), ([0, 1], [1, 2]), (0, [1, 1]),
            ([[0], [1]], [0, 2]), (..., [1, 0], slice(None)), (slice(0, 0),), ([],), (slice(1, 2), ..., None)]:  # fmt: skip
    case(lambda t, a, k=key: a[k], C3)
case(
    lambda t, a, m, i: (a[m], a[i], a[i, i], a[:, i], a[i][:, 0]), (3, 3), mask(3, 3), ints(2, 0, 2)
)
case(lambda t, a, m: (a[m], a[:, 1][m], a[m, 0]), (3, 2), mask(3))
case(lambda t, a, i: (t.index_select(a, 0, i), a.index_select(1, i)), SQ, ints(2, 0, 2))
case(lambda t, a, i: (t.gather(a, 1, i), a.gather(dim=0, index=i)), SQ, ints([0, 2, 2], [1, 1, 0]))
case(
    lambda t, a, i, b: (t.scatter(a, 1, i, b), a.scatter(1, i, 2.5), a.scatter(0, i, value=1)),
    SQ,
    ints([0, 2], [1, 0]),
    (2, 2),
    smooth=True,
    integers=False,
)
case(
    lambda t, a, i, b: (t.scatter_add(a, 1, i, b), a.scatter_add(0, i, b)),
    SQ,
    ints([0, 2, 2], [1, 1, 1]),
    M,
)
case(lambda t, a, i, b: (t.index_add(a, 0, i, b), a.index_add(0, i, b, alpha=2)), SQ, ints(2, 2), M)
case(
    lambda t, a, i, b: (t.index_put(a, (i,), b), a.index_put((i, i), b[:, 0], accumulate=True)),
    SQ,
    ints(2, 0),
    M,
)
case(lambda t, a, m: (t.masked_fill(a, m, 1.5), a.masked_fill(m, 0)), M, mask(3), integers=False)
case(lambda t, a, m, v: a.masked_fill(m, v), M, mask(2, 3), S)
case(lambda t, a, m: (t.masked_select(a, m), a.masked_select(m)), M, mask(3))
case(lambda t, a, i: (t.take(a, i), a.take(i)), M, ints([5, 0], [-1, 2]))
case(lambda t, a: (t.nonzero(a), a.nonzero(as_tuple=True)), mask(2, 3))

# -- products --------------------------------------------------------------------------------------
for x, y in [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
             ((5, 2, 3), (5, 3, 1)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((2, 1, 2, 3), (5, 3, 2)), ((0, 3), (3, 2)),
             ((2, 0), (0, 3)), ((1, 1), (1, 1))]:  # fmt: skip
    case(lambda t, a, b: t.matmul(a, b) + a @ b, x, y)
case(lambda t, a, b: (t.mm(a, b), a.mm(b)), (2, 3), (3, 4))
case(lambda t, a, b: (t.mv(a, b), a.mv(b)), (2, 3), (3,))
case(lambda t, a, b: (t.dot(a, b), a.dot(b)), (3,), (3,))
case(lambda t, a, b: (t.bmm(a, b), a.bmm(b)), (2, 2, 3), (2, 3, 1))
case(lambda t, a, b: (t.outer(a, b), a.outer(b)), (2,), (3,))
case(lambda t, a, b: a.T @ b.T, (3, 2), (4, 3))

# -- in place (on a clone, whose history is rewritten) -------------------------------------------------
INPLACE = "neg exp sin cos atan sinh cosh tanh sigmoid relu erf square expm1 abs sign floor".split()
for name in INPLACE:
    smooth = name not in ("sign", "floor")
    exec(f"case(lambda t, a: a.clone().{name}_() * 2, M, smooth=smooth)")
for name in "log log1p sqrt rsqrt reciprocal".split():
    exec(f"case(lambda t, a: a.clone().{name}_() * 2, positive(2, 3))")
for name in "tan asin acos".split():
    exec(f"case(lambda t, a: a.clone().{name}_() * 2, unit(2, 3))")
case(lambda t, a, b: (a * 1).add_(b).add_(b, alpha=2).add_(1), M, R)
case(lambda t, a, b: (a * 1).sub_(b).subtract_(b, alpha=2), M, R)
case(lambda t, a, b: (a * 1).mul_(b).multiply_(2), M, R)
case(lambda t, a, b: (a * 1).div_(2).divide_(b), M, positive(3), integers=False)
case(lambda t, a, b: (a * 1).div_(b, rounding_mode="floor"), M, positive(3), smooth=False)
case(lambda t, a, b: (a * 1).detach().floor_divide_(b.detach()), M, positive(3), smooth=False)
case(lambda t, a, b: (a * 1).remainder_(b), M, positive(3))
case(lambda t, a, b: (a * 1).atan2_(b), M, positive(3))
case(lambda t, a, b: (a * 1).pow_(b), positive(2, 3), R)
for p in (2, 3, 0.5, -1, 2.5):
    case(lambda t, a, p=p: (a * 1).pow_(p), positive(2, 3))
case(lambda t, a: ((a * 1).clamp_(-1, 1), (a * 1).clip_(min=0.5)), M)
case(lambda t, a, b, c: (a * 1).addcmul_(b, c, value=2), M, R, M)
case(lambda t, a, b, c: (a * 1).addcdiv_(b, c, value=2), M, R, positive(2, 3))
case(lambda t, a, b: (a * 1).lerp_(b, 0.25), M, M)
case(lambda t, a, b, c: (a * 1).lerp_(b, c), M, M, M)
case(lambda t, a, b: (a * 1).copy_(b), M, R)
case(lambda t, a: ((a * 1).fill_(2.5), (a * 1).zero_()), M, smooth=False, integers=False)
case(lambda t, a, v: (a * 1).fill_(v), M, S)
case(lambda t, a, m, v: ((a * 1).masked_fill_(m, v), (a * 1).masked_fill_(m, 2)), M, mask(2, 3), S)
case(lambda t, a, i, b: (a * 1).index_add_(0, i, b, alpha=2), SQ, ints(2, 2), M)
case(
    lambda t, a, i, b: ((a * 1).index_put_((i,), b), (a * 1).index_put_((i,), b, accumulate=True)),
    SQ,
    ints(2, 0),
    M,
)
case(
    lambda t, a, i, b: ((a * 1).scatter_(1, i, b), (a * 1).scatter_add_(1, i, b)),
    SQ,
    ints([0, 2], [1, 0]),
    (2, 2),
)
case(lambda t, a, i: (a * 1).scatter_(1, i, 3), SQ, ints([0, 2], [1, 0]))
case(lambda t, a: (a * 1).cumsum_(1), M)
case(lambda t, a: ((a * 1).tril_(), (a * 1).triu_(1)), SQ)
for name in "eq ne lt le gt ge".split():
    exec(f"case(lambda t, a, b: (a * 1).detach().{name}_(b.detach()), M, R, smooth=False)")


def assign(t: Any, a: Any, b: Any, key: Any) -> Any:
    c = a * 1
    c[key] = b
    return c


for key, shape in [(0, (3,)), ((slice(None), 1), (2,)), ((1, 2), ()), (slice(None, None, 2), (1, 3)), (..., (2, 3)),
                   (([0, 1], [2, 0]), (2,)), ((slice(None), [0, 2]), (2, 2)), (slice(None), (3,)), (0, (1, 3))]:  # fmt: skip
    case(lambda t, a, b, k=key: assign(t, a, b, k), M, shape)
case(lambda t, a, m, v: assign(t, a, v, m), M, mask(2, 3), S)
case(lambda t, a, m: assign(t, a, 1, m), M, mask(2, 3))
case(lambda t, a: assign(t, a, 5, (0, slice(1, 3))), M)


def through_view(t: Any, a: Any, b: Any) -> Any:
    c = a * 1
    c[:, 1:].mul_(b)
    c.t()[0].add_(c[1, 2])
    return c


case(lambda t, a, b: through_view(t, a, b), M, (2, 2))
for operator in ("+=", "-=", "*=", "/=", "//=", "%=", "**="):
    scope: dict[str, Any] = {}
    detach = ".detach()" if operator == "//=" else ""
    exec(
        f"def f(t, a, b):\n    c = (a * 1){detach}\n    c {operator} b{detach}\n    return c", scope
    )
    case(scope["f"], positive(2, 3), positive(3), integers=operator not in ("/=",))
