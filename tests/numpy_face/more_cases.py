"""More NumPy functions on Tensors: statistics, polynomials, ranges, sets, least squares.

Those of `DEPEND` find another number of elements for other values: no map and no `jit` takes them.
"""

import numpy as np

from tests.numpy_face.cases import CASES, I3, A, C, L, M, S, V, case

FIRST = len(CASES)
B = np.array([[0.5, np.nan, 2.5], [3.5, 4.5, np.nan]])
GAPS = np.where(np.arange(24).reshape(C) % 5 == 1, np.nan, 0.0)
W = np.array([0.25, 0.0, 1.5, 0.5])

# -- quantiles -----------------------------------------------------------------------------
METHODS = (
    "linear lower higher nearest midpoint hazen weibull median_unbiased normal_unbiased "
    "interpolated_inverted_cdf inverted_cdf averaged_inverted_cdf closest_observation"
).split()
Q = [0.0, 0.15, 0.5, 0.75, 1.0]
for m in METHODS:
    case(f"quantile {m}", lambda t, m=m: np.quantile(t, Q, axis=1, method=m), C)
    case(f"nanquantile {m}", lambda t, m=m: np.nanquantile(t + GAPS, Q, axis=2, method=m), C)
case("quantile", lambda t: np.quantile(t, 0.3))
case("quantile axes", lambda t: np.quantile(t, [[0.1], [0.8]], axis=(2, 0), keepdims=True), C)
case("quantile place", lambda t, q: np.quantile(t, q, axis=0), C, (2,))
case("quantile of an array", lambda q: np.quantile(A, q))
case("quantile of places", lambda t, q: np.quantile(t, q, method="weibull"), M, (2, 2))
case("percentile", lambda t: np.percentile(t, [20, 90.0], axis=-1))
case("percentile of a number", lambda t: np.percentile(t, 20), ())
case(
    "quantile weights",
    lambda t: np.quantile(t, Q, axis=2, method="inverted_cdf", weights=W), C,
)  # fmt: skip
case(
    "percentile weights",
    lambda t: np.percentile(t, 40, method="inverted_cdf", weights=A, keepdims=True),
)
case("nanquantile", lambda t: np.nanquantile(t + GAPS, 0.4), C)
case("nanquantile axes", lambda t: np.nanquantile(t + GAPS, Q, axis=(0, 1), keepdims=True), C)
case("nanpercentile", lambda t: np.nanpercentile(np.where(B > 0, t, np.nan), [30, 60], axis=1))
case(
    "nanpercentile weights",
    lambda t: np.nanpercentile(t + GAPS, 40, method="inverted_cdf", weights=np.ones(C)), C,
)  # fmt: skip
case("median axes", lambda t: np.median(t, axis=(0, -1), keepdims=True), C)
case("nanmedian", lambda t: np.nanmedian(t + GAPS), C)
case("nanmedian axes", lambda t: np.nanmedian(t + GAPS, axis=(0, 2), keepdims=True), C)
case("nanmedian axis", lambda t: np.nanmedian(t + GAPS, axis=1), C)

# -- covariances ---------------------------------------------------------------------------
F = np.array([1, 3, 2])
case("cov", np.cov)
case("cov of a vector", np.cov, V)
case("cov columns", lambda t: np.cov(t, rowvar=False))
case("cov of two", lambda a, b: np.cov(a, b), V, V)
case("cov of columns", lambda a, b: np.cov(a, b, rowvar=False), (3, 2), (3, 1))
case("cov of vectors as columns", lambda a, b: np.cov(a, b, rowvar=False), V, V)
case("cov bias", lambda t: np.cov(t, bias=True))
case("cov ddof", lambda t: np.cov(t, ddof=2))
case("cov fweights", lambda t: np.cov(t, fweights=F))
case("cov aweights", lambda t, w: np.cov(t, aweights=w), M, (3,))
case("cov both", lambda t, w: np.cov(t, fweights=F, aweights=w, ddof=0), M, (3,))
case("cov both ddof", lambda t, w: np.cov(t, fweights=F, aweights=w), M, (3,))
case("corrcoef", np.corrcoef, (3, 5))
case("corrcoef of two", lambda a, b: np.corrcoef(a, b), V, V)
case("corrcoef columns", lambda t: np.corrcoef(t, rowvar=False), (5, 3))

# -- what is not NaN -----------------------------------------------------------------------
for name in "nanmax nanmin nanvar nanstd".split():
    f = getattr(np, name)
    case(name, lambda t, f=f: f(t + GAPS), C)
    case(f"{name} axis", lambda t, f=f: f(t + GAPS, axis=1), C)
    case(f"{name} axes", lambda t, f=f: f(t + GAPS, axis=(-1, 0), keepdims=True), C)
case("nanvar ddof", lambda t: np.nanvar(t + GAPS, axis=2, ddof=1), C)
case("nanstd correction", lambda t: np.nanstd(t + GAPS, correction=2), C)
case("nancumsum", lambda t: np.nancumsum(t + GAPS), C)
case("nancumsum axis", lambda t: np.nancumsum(t + GAPS, axis=1), C)
case("nancumprod", lambda t: np.nancumprod(t + GAPS, axis=-1), C)

# -- Tensors in lists ----------------------------------------------------------------------
case("list in concatenate", lambda t: np.concatenate([[t[0], 1.0], t[1:]]), V)
case("list in vstack", lambda t: np.vstack([[t[3], 1.0], t[1:3]]), V)
case("list in append", lambda t: np.append(t, [[t[0, 0], 1, 2.0]], axis=0))
case("list in dot", lambda t: np.dot([[t[0], 1.0], [2.0, t[1]]], t[2:]), V)
case("list in inner", lambda t: np.inner(t[2:], (t[1], 0.5)), V)
case("list in einsum", lambda t: np.einsum("ij,j->i", t, [1.0, t[0, 0], t[1, 2]]))
case("list in add", lambda t: np.add(t, [1.0, t[0, 0], t[1, 2]]))
case("list in where", lambda t: np.where(A > 1, t, [1.0, t[0, 0], t[1, 2]]))
case("list in interp", lambda t: np.interp(t, [0.0, 0.5, 1.0], [t[0], 1.0, t[1]]), V)
case("list in convolve", lambda t: np.convolve(t, [1.0, t[0]]), V)
case("list in solve", lambda t: L.solve(t + I3, [t[0, 0], 1.0, 0]), S)


def _filled(t):
    y = np.zeros_like(t)
    y[0] = [t[1, 2], 1.0, 0]
    y[1, [2, 0]] = (t[0, 0], t[0, 1])
    return y


case("list that is written", _filled)

# -- methods of ufuncs ---------------------------------------------------------------------
case("maximum.accumulate", lambda t: np.maximum.accumulate(t, axis=1), C)
case("minimum.accumulate", np.minimum.accumulate)
case("logaddexp.accumulate", lambda t: np.logaddexp.accumulate(t, axis=-1))
for f in (np.add, np.multiply, np.maximum, np.minimum):
    name = f"{f.__name__}.reduceat"
    case(name, lambda t, f=f: f.reduceat(t, [1, 0, 2, 3, 3]), V)
    case(f"{name} axis", lambda t, f=f: f.reduceat(t, [0, 2], axis=-1), C)


def _written(ufunc, key):
    def written(t, v):
        y = t.copy()
        ufunc.at(y, key, v)
        return y

    return written


for f in (np.multiply, np.maximum, np.minimum):
    name = f"{f.__name__}.at"
    case(name, _written(f, [0, 3, -1, 0]), V, (4,))
    case(f"{name} rows", _written(f, [1, 1]), M, (2, 3))
    case(f"{name} pairs", _written(f, ([0, 1, 1], [2, 0, 0])), M, (3,))
    case(f"{name} one", _written(f, (slice(None), 1)), M, ())

# -- polynomials ---------------------------------------------------------------------------
X = np.linspace(-1.0, 1.5, 6)
case("polyadd", np.polyadd, V, (2,))
case("polysub", np.polysub, (2,), V)
case("polymul", np.polymul, V, (3,))
case("polydiv", np.polydiv, (5,), (3,))
case("polydiv by a number", lambda u, v: np.polydiv(u, v)[0], V, (1,))
case("polydiv by more", lambda u, v: np.polydiv(u, v)[1], (2,), V)
case("poly", np.poly, V)
case("polyder", np.polyder, V)
case("polyder twice", lambda p: np.polyder(p, 2), V)
case("polyder not at all", lambda p: np.polyder(p, 0) * 2, V)
case("polyint", np.polyint, V)
case("polyint twice", lambda p, k: np.polyint(p, 2, k), V, (2,))
case("polyint constant", lambda p: np.polyint(p, 3, 0.5), V)
case("polyfit", lambda y: np.polyfit(X, y, 2), (6,))
case("polyfit points", lambda x, y: np.polyfit(x, y, 1), (6,), (6,))
case("polyfit weights", lambda y, w: np.polyfit(X, y, 2, w=w), (6, 2), (6,))
case("polyfit cov", lambda x, y: np.polyfit(x, y, 1, cov=True), (6,), (6,))
case("polyfit cov weights", lambda y, w: np.polyfit(X, y, 2, w=w, cov="unscaled"), (6, 2), (6,))
case("polyfit cov of two", lambda y: np.polyfit(X, y, 2, cov=True)[1], (6, 2))
case("polyfit full", lambda y: np.polyfit(X, y, 2, full=True)[:2], (6, 2))
case("polyfit full values", lambda x: np.polyfit(x.real, X, 1, full=True)[3], (6,))
case("vander", np.vander, V)
case("vander increasing", lambda t: np.vander(t, 3, increasing=True), V)

# -- ranges --------------------------------------------------------------------------------
case("linspace", lambda a, b: np.linspace(a, b, 5), (), ())
case("linspace to a number", lambda a: np.linspace(a, 2, 4, endpoint=False), M)
case("linspace axis", lambda a, b: np.linspace(a, b, 3, axis=-1), M, (3,))
case("linspace of one", lambda a: np.linspace(a, 2.0, 1), V)
case("linspace step", lambda a: np.linspace(a, 2.0, 4, retstep=True), ())
case("logspace", lambda a, b: np.logspace(a, b, 4), (), V)
case("logspace base", lambda a, b: np.logspace(a, 2, 4, base=b + 1), (), ())
case("geomspace", lambda a, b: np.geomspace(a, b, 5), (), ())
case("geomspace of negatives", lambda a: np.geomspace(-a, -3.0, 4, endpoint=False, axis=1), V)
case("geomspace of one", lambda a: np.geomspace(a, 3.0, 1), ())

# -- places, parts, functions --------------------------------------------------------------
K = np.array([[2, 0, 1], [1, 1, 0]])
case("insert", lambda t, v: np.insert(t, 1, v), M, ())
case("insert axis", lambda t, v: np.insert(t, 1, v, axis=1), M, (2,))
case("insert one of a list", lambda t, v: np.insert(t, [1], v, axis=1), M, (2, 2))
case("insert several", lambda t, v: np.insert(t, [0, 3, 3], v, axis=-1), M, (3,))
case("insert at a slice", lambda t: np.insert(t, slice(0, 2), 5.0, axis=0))
case("insert at truth", lambda t: np.insert(t, np.array([True, False, True]), 5.0, axis=1))
case("insert in a cube", lambda t, v: np.insert(t, -1, v, axis=1), C, (2, 4))
case("unwrap", lambda t: np.unwrap(t * 30), C)
case("unwrap period", lambda t: np.unwrap(t * 9, axis=0, period=2.0, discont=1.5), C)
case("interp period", lambda t, v: np.interp(5 * t, [0.3, 1.9, 1.1], v, period=1.4), M, (3,))
case(
    "interp period of points", lambda t, p: np.interp(A, t, [1.0, 3.0, 2.0], period=p + 1), (3,), ()
)
for mode in ("linear_ramp", "mean", "maximum", "minimum", "median"):
    case(f"pad {mode}", lambda t, m=mode: np.pad(t, ((0, 2), (2, 1)), mode=m))
    if mode != "linear_ramp":
        case(f"pad {mode} part", lambda t, m=mode: np.pad(t, (1, 2), m, stat_length=(1, 2)), C)
case("pad ramp to values", lambda t, v: np.pad(t, 2, "linear_ramp", end_values=v), M, (2, 2))
case("partition", lambda t: np.sort(np.partition(t, 1, axis=1), axis=1))
case("resize", lambda t: np.resize(t, (4, 2)))
case("choose", lambda a, b: np.choose(K, [a, b, 0.5]), M, (3,))
case("choose wrap", lambda a: np.choose(K + 2, a, mode="wrap"), (3, 2, 3))
case("choose clip", lambda a: np.choose(K - 1, a, mode="clip"), (2, 3))
case("heaviside", lambda a, b: np.heaviside(np.where(A > 3, a, 0.0), b), M, M)
case("ldexp", lambda t: np.ldexp(t, K))
case("modf", lambda t: np.modf(-3 * t))
case("frexp", lambda t: np.frexp(5 * t)[0])
case("angle", lambda t: np.angle(np.where(A > 3, -t, t), deg=True))
case("real_if_close", lambda t: np.real_if_close(t))
case("ix_", np.ix_, V, (3,))
case("apply_along_axis", lambda t: np.apply_along_axis(np.linalg.norm, 1, t), C)
case("apply_along_axis rows", lambda t: np.apply_along_axis(np.cumsum, 1, t), C)
case("apply_along_axis matrices", lambda t: np.apply_along_axis(np.diag, 1, t), C)
case("apply_along_axis arguments", lambda t: np.apply_along_axis(np.quantile, 0, t, q=0.3), M)
case("apply_over_axes", lambda t: np.apply_over_axes(np.sum, t, [0, -1]), C)
case("piecewise", lambda t: np.piecewise(t, [A < 1, A > 4], [np.exp, lambda x: x**2, 0.5]))
case(
    "piecewise one",
    lambda t: np.piecewise(t, A[0] > 1, [lambda x, k: x**k, lambda x, k: x * k], 3.0),
    (3,),
)
case("piecewise number", lambda t: np.piecewise(t, [True], [np.sin]), ())
case("piecewise of itself", lambda t: np.piecewise(t, [t < 0.4, t > 0.6], [np.sin, -1.0, np.sqrt]))
case("piecewise list", lambda t: np.piecewise(t, [t < 0.5], [np.exp, lambda x: 2.0]), C)
case("piecewise overlap", lambda t: np.piecewise(t, [t > 0, t > 0.5], [np.sin, np.cos]), ())

# -- counts and sets -----------------------------------------------------------------------
T = np.array([0.25, 0.15, 0.75, 0.25])
case("bincount", lambda w: np.bincount([0, 3, 1, 3], w, minlength=6), V)
case("histogram weights", lambda w: np.histogram(T, 3, weights=w)[0], V)
case("histogram density", lambda w: np.histogram(T, [0, 0.2, 0.5], density=True, weights=w)[0], V)
case("histogram2d weights", lambda w: np.histogram2d(T, T[::-1], [2, 3], weights=w)[0], V)


def _density(e, w):
    edges = np.stack([0 * e[0], e[0], 2 + e[1]])
    return np.histogram2d(T, T[::-1] * 1.1, [[0, 0.3, 1], edges], density=True, weights=w)[::2]


case("histogram2d edges", _density, (2,), V)
case("histogramdd", lambda t, w: np.histogramdd(t, 2, weights=w)[0], (4, 3), V)
case("histogramdd list", lambda t, w: np.histogramdd([t, T], 2, weights=w, density=True)[0], V, V)
case("histogram edges", lambda t: np.histogram(t, 4)[1])
case("histogram range", lambda t: np.histogram(A, np.histogram_bin_edges(t, 3), density=True)[1])
case("histogram_bin_edges", lambda t: np.histogram_bin_edges(t, 3))
case("unique", lambda t: np.unique(np.concatenate([t, t[:, :1]], axis=1)))
case("unique axis", lambda t: np.unique(np.concatenate([t, t[:1]]), axis=0))
case("unique_values", lambda t: np.sort(np.unique_values(t)))
case("union1d", lambda a, b: np.union1d(a, b), M, V)
case("intersect1d", lambda t: np.intersect1d(t, np.concatenate([T, np.ravel(t)[:2] * 1])))
case("setdiff1d", lambda t: np.setdiff1d(t, T))
case("setxor1d", lambda a, b: np.setxor1d(a, np.concatenate([a[:2], b])), V, (3,))
case("trim_zeros", lambda t: np.trim_zeros(np.concatenate([[0.0, 0.0], t, [0.0]])), V)
case("trim_zeros front", lambda t: np.trim_zeros(np.where(A > 1, t, 0.0), "f"))
DEPEND = frozenset(
    "unique|unique axis|unique_values|union1d|intersect1d|setdiff1d|setxor1d|trim_zeros|"
    "trim_zeros front".split("|")
)

# -- np.linalg -----------------------------------------------------------------------------
case("linalg.lstsq", lambda a, b: L.lstsq(a, b)[0], (5, 3), (5,))
case("linalg.lstsq of matrices", lambda a, b: L.lstsq(a, b)[:2], (5, 3), (5, 2))
case("linalg.lstsq residuals", lambda a, b: L.lstsq(a, b)[1], (5, 3), (5,))
case("linalg.lstsq wide", lambda a, b: L.lstsq(a, b)[0], (3, 5), (3,))
case("linalg.lstsq square", lambda a, b: L.lstsq(a + I3, b)[0], S, (3, 2))
case("linalg.lstsq of rank 1", lambda a, b: L.lstsq(np.outer(a, a), b)[0], V, V)
case("linalg.lstsq values", lambda a: L.lstsq(a, A)[3], (2, 3))
for p in (None, 2, -2, 1, -1, np.inf, "fro"):
    case(f"linalg.cond {p}", lambda a, p=p: L.cond(a + I3, p), (2, 3, 3))
case("linalg.cond of a wide one", L.cond)
case(
    "linalg.tensorsolve",
    lambda a, b: L.tensorsolve(a + np.eye(6).reshape(2, 3, 6) * 3, b), (2, 3, 6), M,
)  # fmt: skip
case(
    "linalg.tensorsolve axes",
    lambda a, b: L.tensorsolve(a + 3 * np.eye(6).reshape(3, 2, 6).transpose(0, 2, 1), b, (1,)),
    (3, 6, 2), (3, 2),
)  # fmt: skip
case("linalg.tensorinv", lambda a: L.tensorinv(a + 3 * np.eye(6).reshape(2, 3, 6)), (2, 3, 6))
case(
    "linalg.tensorinv ind", lambda a: L.tensorinv(a + 3 * np.eye(4).reshape(4, 2, 2), 1), (4, 2, 2)
)

# -- brackets, and series of coefficients --------------------------------------------------
P = np.polynomial
case("r_", lambda t: np.r_[t, 5.0, t * 2, [1, 2]], V)
case("r_ of elements", lambda t: np.r_[t[0], 0 : t[1] : 3j, t[2]], V)
case("r_ of rows", lambda t: np.r_["-1", A * t, t, A])
case("r_ beside each other", lambda t: np.r_["1,2,0", t, t, np.ones(4)], V)
case("r_ in three dimensions", lambda a, b: np.r_["0,3,1", a, b], V, (2, 4, 1))
case("c_", lambda t: np.c_[t, np.ones(4), t * t], V)
case("c_ of a matrix", lambda a, b: np.c_[a, b, I3], (3, 2), (3,))
KINDS = "Polynomial Chebyshev Legendre Hermite HermiteE Laguerre".split()
for kind in KINDS:
    series = getattr(P, kind)
    case(f"{kind} at", lambda t, f=series: f([1.0, 2.0, 3.0], domain=[0, 4])(t), M)
    case(f"{kind} of", lambda t, f=series: f(t)(0.3), V)
    case(f"{kind} of and at", lambda c, t, f=series: f(c, window=[0, 1])(t), V, M)
case("Polynomial derivative", lambda t: P.Polynomial(t).deriv()(1.5), V)
case("Legendre integral", lambda t: P.Legendre(t).integ()(0.5), V)
case("polyval of coefficients", lambda c, t: P.polynomial.polyval(t, c), V, M)
case("chebval of coefficients", lambda c: P.chebyshev.chebval(0.3, c), V)

# -- results written into a Tensor ---------------------------------------------------------
zeros_like, SOME = np.zeros_like, np.array([True, False, True])
case(
    "divide where", lambda t: np.divide(A, t, out=zeros_like(t), where=SOME),
    (2, 3),
)  # fmt: skip
case("log into what is there", lambda t: np.log(t, out=t * 2, where=A > 1))
case("add out", lambda t: np.add(t, 1.0, out=zeros_like(t * np.ones((2, 4)))), V)
case("modf out", lambda t: np.modf(t, out=(zeros_like(t), None))[0])
case("outer out", lambda t: np.multiply.outer(t, t, out=zeros_like(t * np.ones((4, 1)))), V)
case("accumulate out", lambda t: np.add.accumulate(t, out=zeros_like(t)))
case("sum out", lambda t: np.sum(t, 0, None, zeros_like(t[0])))
case("matmul out", lambda a, b: np.matmul(a, b, out=zeros_like(a)), S, S)
case("dot out", lambda a, b: np.dot(a, b, zeros_like(a)), S, S)
case("clip out", lambda t: np.clip(t, 0.5, 1.5, zeros_like(t)))
case("stack out", lambda t: np.stack([t, t], out=zeros_like(t * np.ones((2, 1)))), V)
case("median out", lambda t: np.median(t, axis=0, out=zeros_like(t[0])))

# -- spread of some elements, or about a given mean ------------------------------------------
case("std where", lambda t: np.std(t, where=A > 1))
case("var where", lambda t: np.var(t, axis=1, ddof=1, keepdims=True, where=SOME), (2, 3))
case("var mean", lambda t, m: np.var(t, axis=1, mean=m), (2, 3), (2, 1))
case("std mean where", lambda t, m: np.std(t, axis=1, mean=m, where=SOME), (2, 3), (2, 1))

MORE = list(CASES)[FIRST:]
