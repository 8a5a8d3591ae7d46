"""Integrals, slopes, distances, closeness, exponents, as calls that PyTorch understands too."""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any

import numpy as np

from tests.peers.torch_cases import C3, SQ, M, R, S, V, case, ints, positive

INF, NAN = float("inf"), float("nan")
HOLES = np.array([[1.0, NAN, -2.0], [NAN, NAN, NAN], [0.5, INF, 3.0]])

# fmt: off
# -- integrals and slopes --------------------------------------------------------------------------
case(lambda t, y: [t.trapezoid(y), t.trapz(y, dx=2), t.trapezoid(y, dx=0.5, dim=0), t.trapezoid(y, dim=-2)], C3)
case(lambda t, y, x: [t.trapezoid(y, x), t.trapz(y, x=x, dim=1), t.cumulative_trapezoid(y, x)], M, R)
case(lambda t, y, x: [t.trapezoid(y, x), t.trapezoid(y, x, dim=0), t.cumulative_trapezoid(y, x, dim=0)], M, M)
case(lambda t, y, x: [t.trapezoid(y, x, dim=1), t.cumulative_trapezoid(y, x, dim=1)], C3, R)
case(lambda t, y, x: t.trapezoid(y, x, dim=1), C3, (3, 4))
case(lambda t, y: [t.cumulative_trapezoid(y), t.cumulative_trapezoid(y, dx=2, dim=0)], M)
case(lambda t, y: [t.trapezoid(y.detach()[:1]), t.trapezoid(y.detach()[:0]), t.cumulative_trapezoid(y.detach()[:1])], V)
case(lambda t: [t.trapezoid(t.tensor([1, 2, 4])), t.trapezoid(t.tensor([1, 2]), t.tensor([0, 3])), t.cumulative_trapezoid(t.tensor([1, 2]), dx=2)])
case(lambda t, y: [*t.gradient(y), *t.gradient(y, spacing=2.0), *t.gradient(y, spacing=[2.0, 3, 0.5])], C3, integers=False)
case(lambda t, y: [*t.gradient(y, dim=1), *t.gradient(y, dim=(2, -2), spacing=3), *t.gradient(y, dim=(1, 2), edge_order=2)], C3, integers=False)
case(lambda t, y, x: [*t.gradient(y, spacing=(x.cumsum(0),)), *t.gradient(y, spacing=[x.cumsum(0)], edge_order=2)], V, positive(5), smooth=False, integers=False)
case(lambda t, y, x: t.gradient(y, spacing=[x.cumsum(0)], dim=1, edge_order=2), M, positive(3), smooth=False, integers=False)
case(lambda t, y: [*t.gradient(y[:2]), *t.gradient(y[:3], edge_order=2), *t.gradient(y, spacing=t.tensor(2.0, dtype=y.dtype)), t.gradient(y.sum())], V, integers=False)
case(lambda t: [*t.gradient(t.tensor([1, 2, 4])), t.gradient(t.ones(2, 2), dim=())])

# -- what is not NaN -------------------------------------------------------------------------------
case(lambda t, a: [t.nansum(a), a.nansum(1), a.nansum((0, 1), keepdim=True), t.nansum(a, dim=()), a[:0].nansum(0)], M)
case(lambda t, a: [t.nanmean(a), a.nanmean(1), a.nanmean((0, 1), keepdim=True), t.nanmean(a, dim=())], M)
case(lambda t, a, m: [t.nansum(a.masked_fill(m, NAN)), a.masked_fill(m, NAN).nansum(0), t.nanmean(a.masked_fill(m, NAN), 1)], SQ, np.eye(3) > 0, integers=False)
case(lambda t: [t.nansum(t.tensor(HOLES), 1), t.nanmean(t.tensor(HOLES), 1), t.nanmean(t.ones(0)), t.nansum(t.tensor([1, 2]), dtype=t.int32)])
case(lambda t, a: t.nansum(a, dtype=t.float32), M)

# -- closeness, signs, infinities ------------------------------------------------------------------
ODD = np.array([1.0, -0.0, 0.0, INF, -INF, NAN, -2.0])
case(lambda t: [t.isclose(t.tensor(ODD), t.tensor(ODD)), t.tensor(ODD).isclose(t.tensor(ODD[::-1].copy()), equal_nan=True), t.isclose(t.tensor(ODD), t.tensor(1.0), atol=1.5)])
case(lambda t: [t.isclose(t.tensor(ODD), t.tensor(ODD) * (1 + 1e-6)), t.isclose(t.tensor(ODD), t.tensor(ODD), equal_nan=True), t.isclose(t.tensor(ODD), t.tensor(ODD) + 1e-3, rtol=0, atol=1e-2)])
case(lambda t: [t.isclose(t.tensor([1, 2]), t.tensor([1, 3])), t.isclose(t.tensor([True]), t.tensor([False])), t.isclose(t.tensor([1j, 2]), t.tensor([1j, 2j]))])
case(lambda t, a, b: t.isclose(a, b), M, R)
case(lambda t: [t.isposinf(t.tensor(ODD)), t.tensor(ODD).isneginf(), t.isposinf(t.tensor([1])), t.isneginf(t.tensor([True]))])
case(lambda t: [t.tensor(ODD).isposinf(), t.isneginf(t.tensor(ODD)), t.signbit(t.tensor(ODD)), t.tensor(ODD).signbit()])
case(lambda t: [t.signbit(t.tensor([-1, 2])), t.signbit(t.tensor([1], dtype=t.uint8)), t.signbit(t.tensor([True]))])
case(lambda t: [t.isreal(t.tensor(ODD)), t.isreal(t.tensor([1 + 0j, 1j])), t.tensor([1j]).isreal(), t.isreal(t.tensor([1]))])
case(lambda t, a: [t.isreal(a), a.isposinf(), a.isneginf(), a.signbit()], M)
case(lambda t, a, b: [t.nextafter(a.detach(), b.detach()), a.detach().nextafter(b.detach()), (a * 1).detach().nextafter_(b.detach())], M, M, integers=False)
case(lambda t: t.nextafter(t.tensor(ODD), t.tensor([1.0, 1.0, -1.0, 0.0, 0.0, 1.0, NAN])))

# -- whole numbers ---------------------------------------------------------------------------------
PAIR = ints([4, -6, 0, 12], [0, 7, -8, 9]), ints(6, 9, 0, -8)
case(lambda t, a, b: [t.gcd(a, b), a.gcd(b), (a * 1).gcd_(b), t.gcd(a, t.tensor(6))], *PAIR)
case(lambda t, a, b: [t.lcm(a, b), a.lcm(b), (a * 1).lcm_(b), t.lcm(t.tensor(6), a)], *PAIR)
case(lambda t: [t.gcd(t.tensor([4], dtype=t.uint8), t.tensor([-6], dtype=t.int8)), t.lcm(t.tensor([4], dtype=t.int32), t.tensor(6))])

# -- exponents -------------------------------------------------------------------------------------
case(lambda t, a: [t.ldexp(a.detach(), t.tensor([1, -2, 3])), a.ldexp(t.tensor(2)), (a * 1).ldexp_(t.tensor([1, 2, 3]))], M, integers=False)
case(lambda t, a, b: t.ldexp(a, b), M, R, integers=False)
case(lambda t: [t.ldexp(t.tensor([1e-300, 1e300]), t.tensor([2000, -2000])), t.ldexp(t.ones(2).float(), t.tensor([1, 2]))])
case(lambda t: [t.ldexp(t.tensor([1, 3]), t.tensor([2, 1])), t.ldexp(t.tensor([1e-3]), t.tensor([2000]))])
case(lambda t, a: [*t.frexp(a), *a.frexp()], M, integers=False)
case(lambda t: [*t.frexp(t.tensor([0.0, -0.0, 1.0, 1e300, 5e-324, INF, NAN]))])
case(lambda t: [*t.frexp(t.tensor([0.0, 1.0, 1e38, 5e-45, -INF, NAN], dtype=t.float32))])
case(lambda t, a, b: [t.float_power(a, b), a.float_power(2), t.float_power(2, b), t.float_power(a, 0.5)], positive(2, 3), R)
case(lambda t, a: [t.float_power(a, -2), t.float_power(a, t.tensor(3)), t.float_power(a, t.tensor([1j]))], positive(2, 3))
case(lambda t: [t.float_power(t.tensor([-1]), 0.5), t.float_power(t.tensor([1j]), 2), t.ones(2).double().mul_(3).float_power_(2)])

# -- distances -------------------------------------------------------------------------------------
for p in (2, 1, 3.0, 0.5, INF, 0):
    case(lambda t, a, b, p=p: [t.dist(a if p else a.detach(), b if p else b.detach(), p), a.detach().dist(b.detach(), p=p)], M, R, integers=False, smooth=p != 0)
    case(lambda t, a, b, p=p: t.cdist(a + 0.1 * a * a, b, p), M, SQ, integers=False, smooth=False)
    case(lambda t, a, b, p=p: t.cdist(a, b, p=p), (2, 1, 3, 2), (4, 5, 2), integers=False, smooth=False)
    case(lambda t, a, p=p: t.pdist(a + 0.1 * a * a, p), (4, 3), integers=False, smooth=False)
    case(lambda t, a, p=p: t.cdist(a, a.detach(), p), M, integers=False, smooth=False)
case(lambda t, a, b: t.cdist(a, b), (30, 3), (4, 3), integers=False)
case(lambda t, a, b: [t.cdist(a, b, compute_mode=m) for m in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")], M, SQ, integers=False, smooth=False)
case(lambda t, a: [t.cdist(a, a[:0]), t.cdist(a[:, :0], a[:, :0]), t.pdist(a[:1]), t.pdist(a[:, :0]), t.dist(a[:0], a[:0])], M, integers=False, smooth=False)
for p in (2, 1, 2.5, INF):
    case(lambda t, a, p=p: [t.renorm(a, p, 0, 1.5), a.renorm(p, -1, 1.0), (a * 1).renorm_(p, 0, 2.0)], M, integers=False)
    case(lambda t, a, p=p: t.renorm(a, p, 1, 2.0), C3, integers=False)
case(lambda t, a: [t.renorm(a * 0, 2, 0, 1), t.renorm(a[:0], 2, 0, 1)], M, integers=False, smooth=False)


# -- low rank: the bases are random, what they are made of is not ----------------------------------


def _product(t, usv):
    u, s, v = usv
    return u @ t.diag_embed(s).to(u.dtype) @ v.mH, s, u.shape[-1], v.shape[-2]


for _shapes in (((5, 2), (2, 4)), ((3, 2), (2, 6)), ((2, 4, 2), (2, 2, 5))):
    case(lambda t, a, b: [_product(t, t.svd_lowrank(a @ b, 2)), _product(t, t.svd_lowrank(a @ b, 2, M=b[..., :1, :])), _product(t, t.pca_lowrank(a @ b, 2, center=False))], *_shapes, integers=False, smooth=False)
# Of more random vectors than the rank PyTorch's gradients are sometimes NaN.
case(lambda t, a: [_product(t, t.svd_lowrank(a, 3)), _product(t, t.svd_lowrank(a, 3, niter=0)), _product(t, t.pca_lowrank(a.mT, 3, False))], (3, 5), integers=False, smooth=False)
case(lambda t, a: [_product(t, t.svd_lowrank(a.detach())), _product(t, t.pca_lowrank(a.detach(), niter=1))[1][:2]], (3, 5), integers=False, smooth=False)
case(lambda t, a: [x.abs() for x in t.svd_lowrank(t.complex(a.detach(), a.detach().flip(0)), 3)[1:2]], (3, 5), integers=False, smooth=False)

# -- histograms of several dimensions --------------------------------------------------------------
GRID = lambda t, a: (t.tensor([-2.0, 0.5, 1.0, 2.0], dtype=a.dtype), t.tensor([-1.0, 1.5], dtype=a.dtype))


def _boxes(found):
    return [found.hist, *found.bin_edges]


case(lambda t, a: [_boxes(t.histogramdd(a.detach(), 3)), _boxes(t.histogramdd(a.detach(), [2, 4])), _boxes(t.histogramdd(a.detach(), 2, range=[-1.0, 1.0, 0.0, 2.0], density=True)), _boxes(t.histogramdd(a.detach()[:1, :1] * 0, 2))], (4, 5, 2), integers=False, smooth=False)
case(lambda t, a, w: [_boxes(t.histogramdd(a.detach(), GRID(t, a), weight=w.detach())), _boxes(t.histogramdd(a.detach(), GRID(t, a), density=True)), _boxes(t.histogramdd(a.detach(), 3, weight=w.detach()))], (4, 5, 2), positive(4, 5), integers=False, smooth=False)
case(lambda t, a: [_boxes(t.histogramdd(a.detach()[:0], 2)), _boxes(t.histogramdd(t.tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 2.0], [2.0, 2.0]]), [2, 2]))], (4, 3), integers=False, smooth=False)

P = (4, 2)
REFUSED: dict[str, Any] = {
    "histogramdd of a vector": (lambda t, a: t.histogramdd(a.detach()[0], 2), [P]),
    "histogramdd of a number": (lambda t, a: t.histogramdd(a.detach()[0, 0], 2), [P]),
    "histogramdd of integers": (lambda t, a: t.histogramdd(a.detach().long(), 2), [P]),
    "histogramdd of no bins": (lambda t, a: t.histogramdd(a.detach(), [2, 0]), [P]),
    "histogramdd of bins for one coordinate": (lambda t, a: t.histogramdd(a.detach(), [2]), [P]),
    "histogramdd of bins that are a text": (lambda t, a: t.histogramdd(a.detach(), "x"), [P]),
    "histogramdd of edges of another type": (lambda t, a: t.histogramdd(a.detach(), GRID(t, a.float())), [P]),
    "histogramdd of edges that are a matrix": (lambda t, a: t.histogramdd(a.detach(), [e[None] for e in GRID(t, a)]), [P]),
    "histogramdd with a short range": (lambda t, a: t.histogramdd(a.detach(), 2, range=[0.0, 1.0]), [P]),
    "histogramdd with a range that falls": (lambda t, a: t.histogramdd(a.detach(), 2, range=[0.0, 1.0, 2.0, 1.0]), [P]),
    "histogramdd with few weights": (lambda t, a: t.histogramdd(a.detach(), 2, weight=a.detach()[0]), [P]),
    "histogramdd with weights of another type": (lambda t, a: t.histogramdd(a.detach(), 2, weight=a.detach()[:, 0].float()), [P]),
    "histogramdd of NaN": (lambda t, a: t.histogramdd(a.detach() * NAN, 2), [P]),
    "svd_lowrank of a vector": (lambda t, a: t.svd_lowrank(a[0]), [M]),
    "svd_lowrank of integers": (lambda t, a: t.svd_lowrank(a.long()), [M]),
    "svd_lowrank less what does not fit": (lambda t, a: t.svd_lowrank(a, M=t.ones(2)), [M]),
    "pca_lowrank of a vector": (lambda t, a: t.pca_lowrank(a[0]), [M]),
    "pca_lowrank of a high rank": (lambda t, a: t.pca_lowrank(a, 3), [M]),
    "pca_lowrank of a negative rank": (lambda t, a: t.pca_lowrank(a, -1), [M]),
    "pca_lowrank with negative iterations": (lambda t, a: t.pca_lowrank(a, 2, niter=-1), [M]),
    "pca_lowrank of integers": (lambda t, a: t.pca_lowrank(a.long()), [M]),
    "trapezoid with too few points": (lambda t, a: t.trapezoid(a, t.ones(2)), [M]),
    "trapezoid with points that do not fit": (lambda t, a: t.trapezoid(a, t.ones(3, 3)), [M]),
    "trapezoid with points and a distance": (lambda t, a: t.trapezoid(a, a, dx=2), [M]),
    "trapezoid of a number": (lambda t, a: t.trapezoid(a), [S]),
    "trapezoid of booleans": (lambda t, a: t.trapezoid(a > 0), [M]),
    "gradient of too few": (lambda t, a: t.gradient(a, edge_order=2), [M]),
    "gradient of third order": (lambda t, a: t.gradient(a, edge_order=3), [M]),
    "gradient with too few spacings": (lambda t, a: t.gradient(a, spacing=[2.0]), [M]),
    "gradient along a dimension twice": (lambda t, a: t.gradient(a, dim=(0, 0)), [M]),
    "gradient along what is not there": (lambda t, a: t.gradient(a, dim=5), [M]),
    "gradient with bare coordinates": (lambda t, a: t.gradient(a, dim=1, spacing=t.ones(3)), [M]),
    "nanmean of integers": (lambda t: t.nanmean(t.tensor([1])), []),
    "isclose of two types": (lambda t, a: t.isclose(a, a.float()), [M]),
    "isclose with a negative tolerance": (lambda t, a: t.isclose(a, a, rtol=-1.0), [M]),
    "isclose to a number": (lambda t, a: t.isclose(a, 1.0), [M]),
    "allclose that does not fit": (lambda t, a: t.allclose(a, t.ones(2)), [M]),
    "scatter of more dimensions": (lambda t, a: t.scatter(a, 0, t.tensor([[0]]), t.ones(1, 1, 1, dtype=a.dtype)), [M]),
    "conv_transpose2d of nothing": (lambda t: t.nn.functional.conv_transpose2d(t.ones(4, 3, 0), t.ones(4, 1, 3, 2)), []),
    "isposinf of complex numbers": (lambda t: t.isposinf(t.tensor([1j])), []),
    "ldexp by a number": (lambda t, a: t.ldexp(a, 2), [M]),
    "frexp of integers": (lambda t: t.frexp(t.tensor([1])), []),
    "float_power of numbers alone": (lambda t: t.float_power(2, 2), []),
    "float_power_ of single precision": (lambda t, a: a.detach().float().float_power_(2), [M]),
    "renorm of a vector": (lambda t, a: t.renorm(a, 2, 0, 1), [R]),
    "renorm to less than nothing": (lambda t, a: t.renorm(a, 2, 0, -1), [M]),
    "renorm by counting": (lambda t, a: t.renorm(a, 0, 0, 1), [M]),
    "renorm along what is not there": (lambda t, a: t.renorm(a, 2, 2, 1), [M]),
    "dist that does not fit": (lambda t, a: t.dist(a, t.ones(2)), [R]),
    "dist from a number": (lambda t, a: t.dist(a, 1.0), [R]),
    "dist of integers": (lambda t: t.dist(t.tensor([1]), t.tensor([2])), []),
    "cdist of vectors": (lambda t, a: t.cdist(a, a), [R]),
    "cdist of other columns": (lambda t, a: t.cdist(a, t.ones(2, 2)), [M]),
    "cdist of a negative p": (lambda t, a: t.cdist(a, a, -1), [M]),
    "cdist of integers": (lambda t: t.cdist(t.ones(2, 2).int(), t.ones(2, 2).int()), []),
    "cdist of two types": (lambda t, a: t.cdist(a, a.float()), [M]),
    "cdist in an unknown way": (lambda t, a: t.cdist(a, a, compute_mode="x"), [M]),
    "pdist of a vector": (lambda t, a: t.pdist(a), [R]),
    "pdist of a negative p": (lambda t, a: t.pdist(a, -1), [M]),
    "pdist of integers": (lambda t: t.pdist(t.ones(2, 2).int()), []),
}
