"""Calls of special functions, scans and tilings, entered into the table of `torch_cases`."""

# ruff: noqa: E501
from __future__ import annotations

import numpy as np

from tests.peers.torch_cases import C3, COL, SQ, M, R, S, case, ints, mask, positive, unit

# -- elementwise -----------------------------------------------------------------------------------
for name in "exp2 asinh erfc sinc i0 logaddexp hypot".split():
    if name in ("logaddexp", "hypot"):
        exec(
            f"case(lambda t, a, b: t.{name}(a, b) + a.{name}(b), M, R)\ncase(lambda t, a, b: t.{name}(a, b), S, COL)"
        )
    else:
        exec(f"case(lambda t, a: t.{name}(a) + a.{name}(), M)\ncase(lambda t, a: t.{name}(a), S)")
for name in "log2 log10".split():
    exec(f"case(lambda t, a: t.{name}(a) + a.{name}(), positive(2, 3))")
# PyTorch's own trigamma, polygamma(1, x), is right to nine digits only: `tests/functions` compares
# what follows from it with exact arithmetic.
case(lambda t, a: t.lgamma(a) + a.lgamma(), positive(2, 3), smooth=False)
case(lambda t, a: t.digamma(a.detach()) + a.detach().digamma(), positive(2, 3))
case(lambda t, a: (t.polygamma(0, a.detach()), t.polygamma(1, a.detach().float())), positive(2, 3))
for name in "atanh erfinv".split():
    exec(f"case(lambda t, a: t.{name}(a) + a.{name}(), unit(2, 3))")
case(lambda t, a: t.acosh(a + 1) + (a + 1).acosh(), positive(2, 3))
case(lambda t, a: a.arcsinh() + a.arctanh() + (a + 2).arccosh(), unit(2, 3))
for n in (2, 3, 4):
    case(lambda t, a, n=n: t.polygamma(n, a) + a.polygamma(n), positive(2, 3))
case(lambda t, a: t.logit(a / 3 + 0.5) + (a / 3 + 0.5).logit(), unit(2, 3), integers=False)
case(lambda t, a: t.logit(a, eps=0.2) + a.logit(0.3), M, smooth=False)
case(lambda t, a, b: t.xlogy(a, b) + a.xlogy(b), M, positive(3))
case(lambda t, a: t.xlogy(a, 2.5) + t.xlogy(2.5, a), positive(2, 3))
for name in "ceil trunc fix round frac".split():
    exec(f"case(lambda t, a: (t.{name}(a), a.{name}()), M, smooth=False)")
case(
    lambda t, a: (t.round(a, decimals=1), a.round(decimals=2), t.round(a * 100, decimals=-1)),
    M,
    smooth=False,
    integers=False,
)
case(lambda t, a, b: t.fmod(a, b) + a.fmod(0.7), M, positive(3), smooth=False)
case(lambda t, a: (t.nan_to_num(a), a.nan_to_num(1.0)), M)
case(lambda t, a: t.nan_to_num(a.detach() / 0, nan=2.0, posinf=3.0, neginf=-4.0), M)
for name in "i0 i0e i1 i1e ndtr log_ndtr erf erfc erfcx expit exp2 expm1 sinc".split():
    exec(
        f"case(lambda t, a: t.special.{name}(a), M)\ncase(lambda t, a: t.special.{name}(3 * a), M)"
    )
for name in "entr log1p".split():
    exec(f"case(lambda t, a: t.special.{name}(a), positive(2, 3))")
case(lambda t, a: t.special.gammaln(a), positive(2, 3), smooth=False)
case(lambda t, a: t.special.digamma(a.detach()) + t.special.psi(a.detach()), positive(2, 3))
case(lambda t, a: t.special.erfinv(a) + t.special.xlog1py(a, a), unit(2, 3))
case(lambda t, a, b: t.special.xlogy(a, b) + t.special.xlog1py(a, b), M, positive(3))
case(lambda t, a: t.special.polygamma(2, a), positive(2, 3))
case(lambda t, a: t.special.logit(a / 3 + 0.5), unit(2, 3), integers=False)
case(lambda t, a: t.special.round(a), M, smooth=False)
case(
    lambda t, a: (
        t.special.softmax(a, 1) + t.special.log_softmax(a, 0) + t.special.logsumexp(a, 1, True)
    ),
    M,
)

# -- reductions and scans --------------------------------------------------------------------------
case(lambda t, a: (t.trace(a), a.trace()), (3, 4))
for dim in (0, 1, -1):
    case(lambda t, a, d=dim: t.cumprod(a, d) + a.cumprod(dim=d), C3)
    case(lambda t, a, d=dim: t.logcumsumexp(a, d) + a.logcumsumexp(dim=d), C3)
    for descending in (False, True):
        case(
            lambda t, a, d=dim, r=descending: (
                *t.sort(a, d, r),
                *a.sort(dim=d, descending=r, stable=True),
            ),
            C3,
        )
        case(
            lambda t, a, d=dim, r=descending: (t.argsort(a, d, r), a.argsort(dim=d, descending=r)),
            C3,
            integers=False,
        )
        case(
            lambda t, a, d=dim, r=descending: (
                *t.sort(a, dim=d, descending=r, stable=True),
                t.argsort(a, dim=d, descending=r, stable=True),
            ),
            ints([[2, 1, 2], [1, 1, 0]], [[0, 3, 3], [3, 0, 0]]),
        )
    case(lambda t, a, d=dim: (t.diff(a, dim=d), a.diff(n=2, dim=d), t.diff(a, 9, d)), C3)
case(
    lambda t, a: (t.cumprod(a, 0), *t.sort(a), t.argsort(a), t.logcumsumexp(a, 0)),
    S,
    integers=False,
)
case(
    lambda t, a: (t.cumprod(a, 0), t.cumprod(a, 1), *t.sort(a), t.diff(a), t.logcumsumexp(a, 1)),
    (0, 3),
    integers=False,
)
case(lambda t, a: t.cumprod(a, 0, dtype=t.float64), M)
for zeros in ((1,), (0, 2), (0, 1, 4)):
    case(lambda t, a, z=zeros: t.cumprod(a.scatter(0, t.tensor(z), 0.0), 0), (5,), integers=False)
    case(
        lambda t, a, z=zeros: t.cumprod(a * t.ones(5).scatter(0, t.tensor(z), 0.0), 0),
        (5,),
        integers=False,
    )
case(lambda t, a, b: (t.diff(a, prepend=b, append=b), a.diff(dim=1, append=b)), M, COL)
case(lambda t, a: (t.diff(a), a.diff(n=2), t.diff(a, 0)), mask(2, 3))

# -- shapes ----------------------------------------------------------------------------------------
case(
    lambda t, a: (t.roll(a, 1), a.roll(-2, 1), t.roll(a, (1, 5), (0, 2)), a.roll((1, 1), (1, 1))),
    C3,
)
case(lambda t, a: (t.roll(a, 3), a.tile(2), a.repeat(2, 1), t.repeat_interleave(a, 3)), S)
case(lambda t, a: (a.repeat(2, 1), a.repeat(1, 1), a.repeat((3, 1, 2)), a.repeat(0, 1)), M)
case(lambda t, a: (t.tile(a, (2,)), a.tile((2, 3)), a.tile(2, 1, 1), t.tile(a, (1, 1))), M)
case(
    lambda t, a: (
        t.repeat_interleave(a, 2),
        a.repeat_interleave(3, dim=0),
        a.repeat_interleave(1, 1),
        a.repeat_interleave(0, 1),
    ),
    M,
)
case(
    lambda t, a, n, k: (
        t.repeat_interleave(a, n, 1),
        a.repeat_interleave(n, dim=1),
        a.repeat_interleave(k, 0),
    ),
    M,
    ints(2, 0, 3),
    ints(2),
)
case(
    lambda t, a: (
        t.nn.functional.pad(a, (1, 2)),
        t.nn.functional.pad(a, (0, 1, 2, 3), value=1.5),
        t.nn.functional.pad(a, (-1, 2)),
        t.nn.functional.pad(a, (1, -2, -1, 0), "constant", 2.0),
    ),
    M,
    integers=False,
)
case(lambda t, a: t.nn.functional.pad(a, (1, 0, 0, 2, 1, 1)), C3)
for k in (-1, 0, 1, 2, 3, 5):
    case(lambda t, a, k=k: (t.rot90(a, k), a.rot90(k, (0, 1)), t.rot90(a, k, (1, 0))), M)
case(lambda t, a: (t.rot90(a), a.rot90(1, (1, 2))), C3)
case(
    lambda t, a, b: (
        t.hstack([a, b]),
        t.vstack([a, a]),
        t.row_stack([b, a]),
        t.dstack([a, a]),
        t.column_stack([a, b]),
    ),
    M,
    M,
)
case(
    lambda t, a, b: (
        t.hstack([a, b]),
        t.vstack([a, a]),
        t.row_stack([a, a]),
        t.dstack([a, a]),
        t.column_stack([a, a]),
    ),
    R,
    (2,),
)
case(
    lambda t, a, b: (t.hstack([a, b]), t.vstack([a, b]), t.dstack([a, b]), t.column_stack([a, b])),
    S,
    S,
)
case(lambda t, a, b: (t.hstack([a, a]), t.dstack([a, a]), t.column_stack([a[0], b])), C3, (3, 2))
for indexing in ("ij", "xy"):
    case(
        lambda t, a, b, c, i=indexing: (
            *t.meshgrid(a, b, c, indexing=i),
            *t.meshgrid([b, a], indexing=i),
            *t.meshgrid(a, indexing=i),
        ),
        R,
        (2,),
        S,
    )

# -- indexing --------------------------------------------------------------------------------------
case(
    lambda t, a, i: (
        t.take_along_dim(a, i, 1),
        a.take_along_dim(i),
        t.take_along_dim(a, i[:1], dim=0),
    ),
    SQ,
    ints([0, 2, 2], [1, 1, 0], [2, 0, 1]),
)
case(lambda t, a, i: t.take_along_dim(a, i, 1), (1, 3), ints([0, -1], [1, -3]))
case(lambda t, a: t.take_along_dim(a, t.argsort(a, 1), 1), M, integers=False)

# -- statistics ------------------------------------------------------------------------------------
GAPS = np.where(np.arange(12).reshape(3, 4) % 5 == 1, np.nan, 0.0)
for kind in "linear lower higher midpoint nearest".split():
    case(
        lambda t, a, b, i=kind: (
            t.quantile(a, 0.3, interpolation=i),
            t.quantile(a, t.tensor([0.0, 0.4, 1.0], dtype=a.dtype), dim=1, interpolation=i),
            a.quantile(t.tensor([0.1, 0.9], dtype=a.dtype), 0, True, interpolation=i),
            t.nanquantile(a + b, 0.4, dim=-1, interpolation=i),
            t.nanquantile(a[0] + b, 0.7, interpolation=i),
        ),
        C3,
        GAPS,
        integers=False,
    )
case(lambda t, a, q: t.quantile(a, q.abs(), 1), M, unit(3), integers=False)
case(
    lambda t, a, b: (a + b).nanquantile(t.tensor([0.2, 0.6], dtype=a.dtype), 0, True),
    (3, 4),
    GAPS,
    integers=False,
)
case(lambda t, a: (t.cov(a), t.cov(a, correction=0), a[0].cov(), t.corrcoef(a), a[1].corrcoef()), M)
case(lambda t, a, f: t.cov(a, fweights=f), M, ints(1, 3, 2), integers=False)
case(lambda t, a, w: a.cov(correction=0, aweights=w), M, positive(3), integers=False)
case(
    lambda t, a, w, f: t.cov(a, fweights=f, aweights=w),
    M,
    positive(3),
    ints(2, 1, 4),
    integers=False,
)
case(
    lambda t, a: (
        t.heaviside(a.detach(), a.detach() * 2),
        a.detach().heaviside(a.detach()),
        (a.detach() * 1).heaviside_(a.detach() * 2),
    ),
    M,
)
# PyTorch has no gradient of it, but an error.
case(lambda t, a: (t.vander(a.detach()), t.vander(a.detach(), 5), t.vander(a.detach(), 3, True)), R)
case(lambda t, a: (t.vander(a.detach(), 1), t.vander(a.detach(), 0), t.vander(a[:0].detach())), R)

# -- in place --------------------------------------------------------------------------------------
for name in "exp2 erfc sinc i0 ceil trunc fix frac round nan_to_num".split():
    smooth = name not in ("ceil", "trunc", "fix", "round", "frac", "nan_to_num")
    exec(f"case(lambda t, a: a.clone().{name}_() * 2, M, smooth={smooth})")
for name in "log2 log10".split():
    exec(f"case(lambda t, a: a.clone().{name}_() * 2, positive(2, 3))")
case(lambda t, a: a.clone().erfinv_() * 2, unit(2, 3))
case(
    lambda t, a: (a.clone().lgamma_(), a.detach().clone().digamma_()), positive(2, 3), smooth=False
)
# PyTorch has no derivatives of these in place.
case(lambda t, a: (a.detach().clone().asinh_(), a.detach().clone().atanh_()), unit(2, 3))
case(lambda t, a: (a.detach() + 1).acosh_() * 2, positive(2, 3))
case(
    lambda t, a: ((a / 3 + 0.5).logit_() * 2, (a * 1).logit_(0.3)),
    unit(2, 3),
    smooth=False,
    integers=False,
)
case(lambda t, a: (a * 1).polygamma_(2) * 2, positive(2, 3))
case(
    lambda t, a: ((a * 1).round_(decimals=1), (a.detach() / 0).nan_to_num_(posinf=1.0)),
    M,
    smooth=False,
    integers=False,
)
case(lambda t, a, b: ((a * 1).hypot_(b), (a * 1).xlogy_(b)), M, positive(3))
case(lambda t, a, b: (a * 1).fmod_(b), M, positive(3), smooth=False)
case(lambda t, a: ((a * 1).cumprod_(1), (a * 1).cumprod_(0)), M, integers=False)

# -- other names of operations in place, logic and bits ------------------------------------------------

case(lambda t, a: (a * 1).absolute_() + (a * 1).negative_(), M)
case(lambda t, a: (a * 1).arcsin_() + (a * 1).arccos_() + (a * 1).arctan_(), unit(2, 3))
case(
    lambda t, a: (
        [(a.detach() + n).arcsinh_().arctan_() + (a.detach() + 2).arccosh_() for n in (0, 1)]
        + [(a * 1).detach().arctanh_()]
    ),
    unit(2, 3),
)  # PyTorch has no derivative of these in place
case(lambda t, a, b: (a * 1).arctan2_(b), M, positive(3))
case(lambda t, a, b: (a * 1).true_divide_(b), M, positive(3))
case(lambda t, a, b: [
    (a * 1).detach().logical_and_(b), (a * 1).detach().logical_or_(b),
    (a * 1).detach().logical_xor_(b), (a * 1).detach().logical_not_(),
], M, R)  # fmt: skip
case(lambda t, i, j: [
    (i * 1).bitwise_and_(j), (i * 1).bitwise_or_(j), (i * 1).bitwise_xor_(j), (i * 1).bitwise_not_(),
    (i * 1).bitwise_left_shift_(j), (i * 1).bitwise_right_shift_(j),
], ints(4, 3), ints(4, 3))  # fmt: skip

# -- special functions that PyTorch has without derivatives, or with some ---------------------------
# From 3 on PyTorch's own Bessel functions are right to six digits only, and its Airy function is below -2:
# `tests/functions` compares these with exact arithmetic.
for name in "bessel_j0 bessel_j1 bessel_y0 bessel_y1 airy_ai".split():
    exec(f"case(lambda t, a: t.special.{name}(a.detach()), positive(2, 3), integers=False)")
for name in "modified_bessel_i0 modified_bessel_i1 spherical_bessel_j0".split():
    exec(f"case(lambda t, a: t.special.{name}(3 * a.detach()), M)")
for name in "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1".split():
    exec(f"case(lambda t, a: t.special.{name}(3 * a.detach()), positive(2, 3))")
case(lambda t, a: t.special.ndtri(a / 2 + 0.5), unit(2, 3), integers=False)
for name in "gammainc gammaincc".split():
    exec(
        f"case(lambda t, a, b: t.special.{name}(a.detach(), b), positive(2, 3), positive(3), integers=False)"
    )
for name in "igamma igammac".split():
    exec(
        f"case(lambda t, a, b: (t.{name}(a.detach(), b), a.detach().{name}(b), (a.detach() + 0).{name}_(b)), positive(2, 3), positive(2, 3), integers=False)"
    )
case(
    lambda t, a: (
        t.special.zeta(3, a),
        t.special.zeta(a.detach() + 1, 2),
        t.special.zeta(2.5, a + 0.5),
    ),
    positive(2, 3),
)
case(lambda t, a, b: t.special.zeta(a.detach() + 1, b), positive(2, 3), positive(3))
case(
    lambda t, a: (t.special.multigammaln(a + 2, 3), t.mvlgamma(a + 2, p=1), (a + 2).mvlgamma(2)),
    positive(2, 3),
    smooth=False,
)
case(lambda t, a: (a + 2).mvlgamma_(2), positive(2, 3), smooth=False, integers=False)
for family in "t u v w".split():
    for name in (f"chebyshev_polynomial_{family}", f"shifted_chebyshev_polynomial_{family}"):
        exec(
            f"case(lambda t, a, n: (t.special.{name}(a.detach(), n), t.special.{name}(a.detach(), 2.7)), M, ints(-1, 3, 9))"
        )
for name in (
    "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p".split()
):
    exec(
        f"case(lambda t, a, n: (t.special.{name}(a.detach(), n), t.special.{name}(a.detach(), n / 2), t.special.{name}(1.5, n)), M, ints(-1, 3, 7))"
    )

# -- what random calls of tests/conformance/fuzz_calls.py found ------------------------------------
for _other in (np.array(3), np.array(1, np.int8)):  # a 0-d Tensor takes the type of the other
    case(
        lambda t, a, n: [
            a & n,
            n | a,
            a ^ n,
            a << n,
            a >> n,
            t.bitwise_and(n, a),
            (a * 1).bitwise_or_(n),
        ],
        np.array([4, 9, 2], np.int32),
        _other,
    )
case(lambda t, a, b: t.nn.functional.cosine_similarity(a[:1], b), M, (2, 2, 3), integers=False)
case(
    lambda t, a, b: t.nn.functional.cosine_similarity(a[:1], b, dim=0), M, (2, 2, 3), integers=False
)
case(
    lambda t, a: [
        t.hstack([a.detach()[0, :0], t.tensor(True)]),
        t.cat([a.detach()[0, :0], t.tensor([2])]),
    ],
    M,
    integers=False,
)
case(
    lambda t, a, b: [*t.triangular_solve(b, a + 3 * t.eye(3, dtype=a.dtype))],
    SQ,
    (2, 3, 2),
    integers=False,
)
case(
    lambda t, a: [
        t.scatter(a.detach(), 0, t.tensor(1), a.detach()[:2] + 1),
        t.scatter_add(a.detach(), 0, t.tensor(1), a.detach()[2:]),
    ],
    (5,),
    integers=False,
)
case(
    lambda t, a, b: [
        t.scatter(a.detach(), 0, t.tensor(0), b.detach()),
        t.scatter_add(a.detach(), 0, t.tensor(0), b.detach()),
    ],
    (),
    (1,),
    integers=False,
)
