"""Order statistics and running extremes, as calls that PyTorch understands too.

Which of several equal elements `topk`, `kthvalue` and `median` name is not said: of integers, the
values alone are compared.
"""

from __future__ import annotations

from tests.peers.torch_cases import C3, M, R, S, V, case, ints

INF, NAN = float("inf"), float("nan")

for shape, dim in [(M, -1), (M, 0), (C3, 1), (S, 0), (V, -1)]:
    case(lambda t, a, d=dim: [*t.kthvalue(a, 1, d)], shape, integers=False)
    case(lambda t, a, d=dim: [t.kthvalue(a, 1, d).values, t.topk(a, 1, d).values], shape)
    case(lambda t, a, d=dim: [*a.mode(d)], shape)
    case(lambda t, a, d=dim: [*t.median(a, d)], shape, integers=False)
    case(lambda t, a, d=dim: [t.median(a, d).values, a.median()], shape)
    case(lambda t, a, d=dim: [*a.nanmedian(d, keepdim=True)], shape, integers=False)
    case(lambda t, a, d=dim: [*t.cummax(a, d), *a.cummin(d)], shape)
    case(lambda t, a, d=dim: [*t.aminmax(a, dim=d)], shape)
    case(lambda t, a, d=dim: [*a.topk(1, d), *a.topk(1, d, largest=False)], shape, integers=False)
case(lambda t, a: [*a.kthvalue(3, 0, True)], V, integers=False)
case(lambda t, a: [*t.topk(a, 3, dim=1), *t.topk(a, 2, 1, False)], C3, integers=False)
case(lambda t, a: [*t.topk(a, 0, dim=1)], C3)
case(lambda t, a: [t.median(a), a.nanmedian(), *t.aminmax(a), a.msort()], M)
case(lambda t, a: [*t.aminmax(a, dim=0)], (2, 0))
case(lambda t, a: t.median(a), S)
case(lambda t, a: t.median(a[:0]), V, integers=False)

# -- ties, NaN, infinities -------------------------------------------------------------------------
case(lambda t, a: t.median((a > 0) * a), V)
case(lambda t, i: [*t.mode(i), *t.mode(i, 0, True)], ints([3, 1, 3, 1], [2, 2, 2, 0]))
case(lambda t, i: [*t.cummax(i, 0), *t.cummin(i, 1)], ints([3, 1, 3, 1], [2, 2, 2, 0]))
case(lambda t, a, m: a.masked_fill(m, NAN).cummax(1).values, M, ints([0, 1, 0], [0, 0, 0]) > 0)
case(lambda t, a, m: a.masked_fill(m, NAN).median(), M, ints([0, 1, 0], [0, 0, 0]) > 0)
case(lambda t, a, m: a.masked_fill(m, NAN).nanmedian(), M, ints([0, 1, 0], [0, 0, 0]) > 0)
case(lambda t, a, m: [
    *a.masked_fill(m, NAN).median(1), *a.masked_fill(m, NAN).nanmedian(1),
], M, ints([0, 1, 0], [0, 0, 0]) > 0)  # fmt: skip
case(lambda t, a, m: a.masked_fill(m, NAN).nanmedian(), R, ints(1, 1, 1) > 0)
case(lambda t, a, m: [
    *a.masked_fill(m, NAN).topk(2), *a.masked_fill(m, -INF).kthvalue(2),
], M, ints([0, 1, 0], [0, 0, 0]) > 0)  # fmt: skip

REFUSED = {
    "kthvalue of none": (lambda t, a: t.kthvalue(a, 0), M),
    "kthvalue beyond the last": (lambda t, a: t.kthvalue(a, 4), M),
    "kthvalue without elements": (lambda t, a: t.kthvalue(a, 1), (0,)),
    "topk beyond the last": (lambda t, a: t.topk(a, 4), M),
    "topk of a fraction": (lambda t, a: t.topk(a, 1.5), M),
    "median along what is not there": (lambda t, a: t.median(a, 2), M),
    "median without elements": (lambda t, a: t.median(a, 0), (0, 3)),
    "median that keeps all": (lambda t, a: t.median(a, keepdim=True), M),
    "mode without elements": (lambda t, a: t.mode(a, 0), (0, 3)),
    "cummax along none": (lambda t, a: t.cummax(a), M),
    "cummax along what is not there": (lambda t, a: t.cummax(a, 2), M),
    "aminmax without elements": (lambda t, a: t.aminmax(a), (0,)),
}
REFUSED = {name: (call, [shape]) for name, (call, shape) in REFUSED.items()}
