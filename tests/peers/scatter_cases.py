"""Places, counts and sets, as calls that PyTorch understands too, and calls that it refuses."""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any

import numpy as np

from tests.peers.torch_cases import C3, COL, SQ, M, R, S, V, case, ints, mask

K = ints([2, 0, 1, 2], [1, 1, 0, 2])
TWICE = ints(4, 0, 4)

# -- reduced at places -----------------------------------------------------------------------------


def _reduces(how: str, own: bool) -> None:
    def along(t: Any, a: Any, k: Any, b: Any) -> Any:
        return a.scatter_reduce(1, k, b, how, include_self=own)

    def function(t: Any, a: Any, k: Any, b: Any) -> Any:
        return t.scatter_reduce(a, 0, k, b, reduce=how, include_self=own)

    def some(t: Any, a: Any, k: Any, b: Any) -> Any:
        return along(t, a.detach(), k, b.detach())  # PyTorch has no gradient of a larger source

    def in_place(t: Any, a: Any, k: Any, b: Any) -> Any:
        return (a * 1).scatter_reduce_(0, k, b, how, include_self=own)

    case(along, M, K, (2, 4))
    case(some, M, K[:, :2], (2, 4))
    case(function, V, TWICE, R)
    case(in_place, V, TWICE, R)
    case(function, S, ints(0, 0), (2,))
    case(function, (2, 3), ints()[None].reshape(0, 3), (0, 3))


def _slices(how: str, own: bool) -> None:
    def slices(t: Any, a: Any, k: Any, b: Any) -> Any:
        return [t.index_reduce(a, 0, k, b, how, include_self=own),
                (a * 1).index_reduce_(0, k, b, how, include_self=own)]  # fmt: skip

    def method(t: Any, a: Any, k: Any, b: Any) -> Any:
        return a.index_reduce(-1, k, b, how, include_self=own)

    case(slices, (4, 3), ints(1, 0, 1), SQ)
    case(method, C3, ints(3, 3), (2, 3, 2))
    case(method, V, ints(2, 1, 2), R)
    case(method, S, ints(0), S)


for own in (True, False):
    for how in ("sum", "prod", "mean", "amax", "amin"):
        _reduces(how, own)
        if how != "sum":
            _slices(how, own)

case(
    lambda t, a, b: (a * 0).scatter_reduce(0, t.tensor([0, 0, 1]), b, "prod"), (3,), R, smooth=False
)
case(
    lambda t, a, b: a.scatter_reduce(0, t.tensor([0, 0, 1]), b * (b > 0), "prod"),
    (3,),
    R,
    smooth=False,
)
case(lambda t, a: (a * 0).scatter_reduce(0, t.tensor([0, 0, 1]), a[:3] * 0, "amax"), V)
case(lambda t, a: (a * 0).scatter_reduce(0, t.tensor([0, 0, 1]), a[:3] * 0, "amin"), V)

case(
    lambda t, a, b: [
        a.scatter_add(0, t.tensor([0, 0]), b),
        a.scatter(0, t.tensor([0]), b[:1]),
        (a * 1).scatter_add_(0, t.tensor([0]), b[:1]),
    ],
    S,
    (2,),
)

# -- by a mask, along a view -----------------------------------------------------------------------
# fmt: off
case(lambda t, a, m, b: [t.masked_scatter(a, m, b), a.masked_scatter(m, b), (a * 1).masked_scatter_(m, b)], M, mask(2, 3), V)
case(lambda t, a, m, b: a.masked_scatter(m, b), R, mask(2, 3), V)
case(lambda t, a, m, b: a.masked_scatter(m, b), M, mask(2, 1), SQ)
case(lambda t, a, m, b: a.masked_scatter(m, b.detach()), M, mask(2, 3) & False, (0,))
case(lambda t, a, b: [t.slice_scatter(a, b, 1, 1), a.slice_scatter(b, 1, -2)], M, (2, 2))
case(lambda t, a, b: a.slice_scatter(b, 1, 0, 9, 2), M, (2, 2))
case(lambda t, a, b: a.slice_scatter(b, start=1, end=1), M, (0, 3))
case(lambda t, a, b: [t.select_scatter(a, b, 0, 1), a.select_scatter(b, 0, -1)], M, R)
case(lambda t, a, b: a.select_scatter(b, 1, 2), C3, (2, 4))
case(lambda t, a, b: [t.diagonal_scatter(a, b), a.diagonal_scatter(b, 1)], M, (2,))
case(lambda t, a, b: a.diagonal_scatter(b, 0, 2, 0), C3, (3, 2))
# PyTorch's gradient of the Tensor itself is that of the elements which are replaced.
case(lambda t, a, b: [t.as_strided_scatter(a.detach(), b, (2,), (2,), 1), a.detach().as_strided_scatter(b, (2,), (3,))], M, (2,))
case(lambda t, a, b: a.detach().t().as_strided_scatter(b.detach(), (2, 2), (1, 3)), M, (2, 2))
case(lambda t, a, b: [a.detach()[1].as_strided_scatter(b.detach(), (2,), (1,)), a.detach()[1].as_strided_scatter(b.detach(), (2,), (2,), 2)], M, (2,))
case(lambda t, a, b: a.detach()[:, 1:].as_strided_scatter(b.detach(), (2,), (1,)), M, (2,))
# fmt: on

# -- places in the flattened Tensor ----------------------------------------------------------------
case(lambda t, a, b: [t.put(a, t.tensor([[0, -1]]), b), (a * 1).put_(t.tensor([2, 1]), b)], M, (2,))
case(lambda t, a, b: a.put(t.tensor([0, 4, 0]), b, accumulate=True), M, R)
case(lambda t, a: a.put(t.tensor([], dtype=t.int64), a[:0, 0]), M)
case(lambda t, a, b: a.put(t.tensor(0), b), S, S)
case(lambda t, a: [(a * 1).fill_diagonal_(2.0), (a * 1).t().fill_diagonal_(3)], M)
for shape in [(5, 2), (7, 2), (2, 5), (3, 3, 3), (1, 1), (0, 3)]:
    case(lambda t, a: [(a * 1).fill_diagonal_(2.0), (a * 1).fill_diagonal_(2.0, wrap=True)], shape)

case(lambda t, a: [t.argwhere(a > 0), (a > 0).argwhere()], M)
case(lambda t, a: [t.argwhere(a), a.nonzero(as_tuple=True), t.nonzero(a * 0), t.where(a > 0)], S)

# -- places among bounds ---------------------------------------------------------------------------
SORTED = np.array([-1.0, -0.5, 0.0, 0.0, 1.0])
case(
    lambda t, a: [
        t.searchsorted(t.tensor(SORTED), a.detach(), right=flag) for flag in (False, True)
    ],
    M,
    integers=False,
)
case(
    lambda t, a: [
        t.searchsorted(t.tensor(SORTED), a.detach(), side=side, out_int32=True)
        for side in ("left", "right")
    ],
    S,
    integers=False,
)
case(
    lambda t, a: [
        t.searchsorted(a.detach().sort().values, a.detach()),
        t.searchsorted(a.detach(), a.detach(), sorter=a.argsort()),
    ],
    C3,
    integers=False,
)
case(
    lambda t: [
        t.searchsorted(t.tensor(SORTED), 0.0),
        t.searchsorted(t.tensor(SORTED), 0),
        t.searchsorted(t.ones(0), t.ones(2)),
    ]
)
case(
    lambda t: [
        t.searchsorted(t.tensor(SORTED), t.tensor([t.nan, t.inf])),
        t.searchsorted(t.tensor([1, 2, 4]), t.tensor([2, 3])),
    ]
)
case(
    lambda t, a: [
        t.bucketize(a.detach(), t.tensor(SORTED)),
        t.bucketize(a.detach(), t.tensor(SORTED), right=True, out_int32=True),
    ],
    M,
    integers=False,
)
case(lambda t: [t.bucketize(0.0, t.tensor(SORTED)), t.bucketize(1.0, t.tensor(SORTED), right=True)])

# -- sets ------------------------------------------------------------------------------------------
AGAIN = ints([3, 1, 3, 3], [1, 1, 2, 3], [3, 1, 3, 3])
FLAGS = [(False, False), (True, False), (False, True), (True, True)]
for numbers in (AGAIN, AGAIN[0], np.asarray(3), AGAIN[:0, 0], AGAIN / 2.0, AGAIN > 1):
    case(
        lambda t, x: [t.unique(x.detach(), return_inverse=i, return_counts=c) for i, c in FLAGS],
        numbers,
    )
    # PyTorch's reads these flags as keywords alone.
    case(
        lambda t, x: [
            t.unique_consecutive(x.detach(), return_inverse=i, return_counts=c) for i, c in FLAGS
        ],
        numbers,
    )
    case(lambda t, x: [x.detach().unique(), x.detach().unique_consecutive()], numbers)
for dim in (0, 1, -1):
    case(lambda t, x, d=dim: [t.unique(x.detach(), True, i, c, dim=d) for i, c in FLAGS], AGAIN)
    case(
        lambda t, x, d=dim: [
            t.unique_consecutive(x.detach(), return_inverse=i, return_counts=c, dim=d)
            for i, c in FLAGS
        ],
        AGAIN,
    )
case(
    lambda t, x: [
        t.unique(x, dim=0, return_inverse=True),
        t.unique_consecutive(x, dim=0, return_counts=True),
    ],
    AGAIN[:0],
)
case(
    lambda t: t.unique(
        t.tensor([t.nan, 1.0, t.nan, -t.inf]), return_inverse=True, return_counts=True
    )
)
case(
    lambda t: t.unique_consecutive(
        t.tensor([t.nan, t.nan, 1.0, 1.0]), return_inverse=True, return_counts=True
    )
)
case(
    lambda t, x: [
        t.isin(x, t.tensor([1, 2])),
        t.isin(x, t.tensor([1, 2]), invert=True),
        t.isin(x, x[:0]),
    ],
    AGAIN,
)
case(
    lambda t, x: [
        t.isin(x, 3),
        t.isin(3.0, x),
        t.isin(7, x, invert=True),
        t.isin(x, t.tensor([2, 1]), assume_unique=True),
    ],
    AGAIN[0, 2:],
)
case(lambda t, a: t.isin(a, a[0]), M)
case(lambda t: t.isin(t.tensor([t.nan, 1.0]), t.tensor([t.nan, 1.0])))

# -- counts ----------------------------------------------------------------------------------------
case(
    lambda t, x: [
        t.bincount(x),
        x.bincount(minlength=9),
        x[:0].bincount(minlength=2),
        x[:0].bincount(),
    ],
    AGAIN[1],
)
case(
    lambda t, x, w: [
        t.bincount(x, w.detach()),
        x.bincount(w.detach(), 7),
        x.bincount(x),
        x[:0].bincount(w.detach()[:0]),
    ],
    AGAIN[1],
    (4,),
)
case(
    lambda t, a: [t.histc(a), a.histc(3), a.histc(4, -1, 1), a.histc(bins=2, min=0.5, max=9.5)],
    C3,
    integers=False,
)
case(
    lambda t, a: [
        a.detach().histc(3, 2, 2),
        (a.detach() * 0 + 2).histc(3),
        a.detach()[:0].histc(2),
    ],
    M,
    integers=False,
)
case(lambda t: t.histc(t.tensor([0.0, 1.0, 2.0, 3.0, 0.5, t.nan, 7.0]), 3, 0, 3))
case(
    lambda t, a: [
        *t.histogram(a.detach(), 3),
        *a.detach().histogram(4, range=(-1.0, 1.0)),
        *a.detach().histogram(5, density=True),
    ],
    C3,
    integers=False,
)
case(
    lambda t, a: [
        *t.histogram(a.detach(), t.linspace(-2, 1, 4, dtype=a.dtype)),
        *(a.detach() * 0).histogram(2),
        *a.detach()[:0].histogram(2),
    ],
    M,
    integers=False,
)
case(
    lambda t, a, w: [
        *a.detach().histogram(3, weight=w.detach()),
        *a.detach().histogram(3, range=(0.0, 1.0), weight=w.detach(), density=True),
    ],
    M,
    M,
    integers=False,
)
case(
    lambda t: [*t.histogram(t.tensor([0.0, 1.0, 2.0, 3.0, t.nan, 7.0]), t.tensor([0.0, 1.0, 3.0]))]
)

# -- joined, chosen, turned ------------------------------------------------------------------------
case(lambda t, a: [t.fliplr(a), a.fliplr(), t.flipud(a), a.flipud()], M)
case(lambda t, a: [t.flipud(a), t.fliplr(a[:0, None])], V)
case(lambda t, a, b: [t.concatenate((a, b), 1), t.concat((a, b), dim=1)], M, COL)
case(lambda t, a, b, c: t.block_diag(a, b, c), M, R, S)
case(lambda t, a, b: t.block_diag(a, b), M, (0, 2))
case(lambda t, a, b: t.block_diag(a, t.tensor([[1], [2]]), b.float()), S, R, integers=False)
case(lambda t: t.block_diag())
case(lambda t, a, b: [t.cartesian_prod(a, b), t.cartesian_prod(a)], R, V)
case(lambda t, a, b, c: t.cartesian_prod(a, b, c), R, (1,), (2,))
case(
    lambda t, a: [t.combinations(a, r, flag) for r in (0, 1, 2, 3, 4) for flag in (False, True)],
    (4,),
)
case(lambda t, a: [t.combinations(a), t.combinations(a, 5)], R)
case(lambda t, a: t.combinations(a), (0,))
case(
    lambda t: [
        t.tril_indices(*size) for size in [(3, 2), (2, 4, 1), (2, 2, -5), (0, 3), (3, 3, -1)]
    ]
)
case(
    lambda t: [t.triu_indices(*size) for size in [(3, 2), (2, 4, 1), (2, 2, 5), (0, 3), (3, 3, -1)]]
)
case(lambda t: t.triu_indices(3, 3, dtype=t.int32))
case(
    lambda t, a: [
        a.sum_to_size(3),
        a.sum_to_size(1, 3),
        a.sum_to_size((2, 1)),
        a.sum_to_size(2, 3),
        a.sum_to_size(()),
    ],
    M,
)
case(lambda t, a: a.sum_to_size((3, 1)), C3[:1] + (3, 4))

# PyTorch has no gradient of these.
for _how in ("add", "multiply"):
    case(
        lambda t, a, b, k, h=_how: (
            t.scatter(a.detach(), 1, k, b.detach(), reduce=h),
            a.detach().scatter(0, k % 2, 3, reduce=h),
            t.scatter(a.detach()[0, 0], 0, t.tensor(0), b.detach()[0, 0], reduce=h),
        ),
        (2, 4),
        (3, 5),
        np.array([[0, 3, 3], [1, 1, 1]]),
        smooth=False,
        integers=False,
    )
    case(
        lambda t, a, b, k, h=_how: (
            (a * 1).detach().scatter_(1, k, b.detach(), reduce=h),
            (a * 1).detach().scatter_(0, k % 2, value=3, reduce=h),
        ),
        (2, 4),
        (3, 5),
        np.array([[0, 3, 3], [1, 1, 1]]),
        smooth=False,
        integers=False,
    )

REFUSED: dict[str, Any] = {
    "scatter reduced in an unknown way": (lambda t, a: a.detach().scatter(0, t.tensor([[0]]), 1.0, reduce="sum"), ((2, 3),)),
    "scatter of another type, reduced": (lambda t, a: a.detach().scatter(0, t.tensor([[0]]), t.ones(1, 1, dtype=t.float32), reduce="add"), ((2, 3),)),
    "searchsorted on both sides": (lambda t: t.searchsorted(t.ones(2), t.ones(1), right=True, side="left"), []),
    "searchsorted on no side": (lambda t: t.searchsorted(t.ones(2), t.ones(1), side="x"), []),
    "searchsorted in other rows": (lambda t: t.searchsorted(t.ones(2, 3), t.ones(3)), []),
    "searchsorted of a number in rows": (lambda t: t.searchsorted(t.ones(2, 3), 1.0), []),
    "searchsorted in a number": (lambda t: t.searchsorted(t.tensor(1.0), 1.0), []),
    "searchsorted with a short sorter": (lambda t: t.searchsorted(t.ones(3), t.ones(1), sorter=t.tensor([0, 1])), []),
    "searchsorted with a wrong sorter": (lambda t: t.searchsorted(t.ones(2), t.ones(1), sorter=t.tensor([0, 2])), []),
    "searchsorted with fractions as sorter": (lambda t: t.searchsorted(t.ones(2), t.ones(1), sorter=t.ones(2)), []),
    "bucketize among a matrix": (lambda t: t.bucketize(t.ones(2), t.ones(2, 2)), []),
    "isin of numbers alone": (lambda t: t.isin(1, 1), []),
    "unique along what is not there": (lambda t: t.unique(t.ones(2), dim=1), []),
    "unique of a number along a dimension": (lambda t: t.unique(t.tensor(1.0), dim=0), []),
    "unique of slices of nothing": (lambda t: t.unique(t.ones(2, 0), dim=0), []),
    "bincount of negative numbers": (lambda t: t.bincount(t.tensor([-1])), []),
    "bincount of fractions": (lambda t: t.bincount(t.tensor([1.0])), []),
    "bincount of a matrix": (lambda t: t.bincount(t.tensor([[1]])), []),
    "bincount with too many weights": (lambda t: t.bincount(t.tensor([1]), t.ones(2)), []),
    "bincount of a negative length": (lambda t: t.bincount(t.tensor([1]), minlength=-1), []),
    "histc in no bins": (lambda t: t.histc(t.ones(2), 0), []),
    "histc of a falling range": (lambda t: t.histc(t.ones(2), 2, 3, 1), []),
    "histc of NaN": (lambda t: t.histc(t.tensor([t.nan])), []),
    "histogram in no bins": (lambda t: t.histogram(t.ones(2), 0), []),
    "histogram in one edge": (lambda t: t.histogram(t.ones(2), t.ones(1)), []),
    "histogram in a list": (lambda t: t.histogram(t.ones(2), [3]), []),
    "histogram of a falling range": (lambda t: t.histogram(t.ones(2), 2, range=(2.0, 1.0)), []),
    "histogram of NaN": (lambda t: t.histogram(t.tensor([t.nan]), 2), []),
    "histogram with other weights": (lambda t: t.histogram(t.ones(2), 2, weight=t.ones(3)), []),
    "histogram of two types": (lambda t: t.histogram(t.ones(2), t.ones(2).float()), []),
    "fliplr of a vector": (lambda t, a: t.fliplr(a), [R]),
    "flipud of a number": (lambda t, a: t.flipud(a), [S]),
    "block_diag of three dimensions": (lambda t, a: t.block_diag(a), [C3]),
    "block_diag of a list": (lambda t, a: t.block_diag([a]), [M]),
    "cartesian_prod of a matrix": (lambda t, a: t.cartesian_prod(a, a), [M]),
    "cartesian_prod of nothing": (lambda t: t.cartesian_prod(), []),
    "cartesian_prod of two types": (lambda t, a: t.cartesian_prod(a, a.float()), [R]),
    "combinations of a matrix": (lambda t, a: t.combinations(a), [M]),
    "combinations of less than none": (lambda t, a: t.combinations(a, -1), [R]),
    "tril_indices of less than no rows": (lambda t: t.tril_indices(-1, 2), []),
    "triu_indices of fractions": (lambda t: t.triu_indices(2, 2, dtype=t.float32), []),
    "sum_to_size that does not fit": (lambda t, a: a.sum_to_size(2), [M]),
    "sum_to_size that grows": (lambda t, a: a.sum_to_size(4, 2, 3), [M]),
    "sum_to_size without a size": (lambda t, a: a.sum_to_size(), [M]),
    "scatter_reduce in an unknown way": (lambda t, a: a.scatter_reduce(0, t.tensor([[0]]), a[:1, :1], "median"), [M]),
    "scatter_reduce of another type": (lambda t, a: a.scatter_reduce(0, t.tensor([[0]]), a.float(), "amax"), [M]),
    "scatter_reduce out of range": (lambda t, a: a.scatter_reduce(0, t.tensor([[5]]), a, "amax"), [M]),
    "scatter_reduce that does not fit": (lambda t, a: a.scatter_reduce(0, t.tensor([[0, 0]]), a[:, :1], "amax"), [M]),
    "scatter_reduce of a number": (lambda t, a: a.scatter_reduce(0, t.tensor([[0]]), 1.0, "amax"), [M]),
    "index_reduce to a sum": (lambda t, a: a.index_reduce(0, t.tensor([0, 1]), a, "sum"), [M]),
    "index_reduce out of range": (lambda t, a: a.index_reduce(0, t.tensor([0, 2]), a, "prod"), [M]),
    "index_reduce that does not fit": (lambda t, a: a.index_reduce(0, t.tensor([0]), a, "prod"), [M]),
    "index_reduce by a matrix": (lambda t, a: a.index_reduce(0, t.tensor([[0, 1]]), a, "prod"), [M]),
    "index_reduce of another type": (lambda t, a: a.index_reduce(0, t.tensor([0, 1]), a.float(), "prod"), [M]),
    "masked_scatter of too few": (lambda t, a: a.masked_scatter(a > 0, a[0]), [M]),
    "masked_scatter of another type": (lambda t, a: a.masked_scatter(a > 0, a.float()), [M]),
    "masked_scatter without a mask": (lambda t, a: a.masked_scatter(a, a), [M]),
    "masked_scatter that does not fit": (lambda t, a: a.masked_scatter(t.ones(4) > 0, a), [M]),
    "masked_scatter_ that grows": (lambda t, a: (a[0] * 1).masked_scatter_(a > 0, a), [M]),
    "slice_scatter that does not fit": (lambda t, a: a.slice_scatter(a, 0, 1), [M]),
    "slice_scatter backwards": (lambda t, a: a.slice_scatter(a, 0, step=-1), [M]),
    "slice_scatter of a number": (lambda t, a: a.sum().slice_scatter(a.sum()), [M]),
    "select_scatter out of range": (lambda t, a: a.select_scatter(a[0], 0, 2), [M]),
    "select_scatter that does not fit": (lambda t, a: a.select_scatter(a, 0, 1), [M]),
    "select_scatter of a number": (lambda t, a: a.sum().select_scatter(a.sum(), 0, 0), [M]),
    "diagonal_scatter that does not fit": (lambda t, a: a.diagonal_scatter(a[0]), [M]),
    "as_strided_scatter that does not fit": (lambda t, a: a.as_strided_scatter(a[0], (2,), (1,)), [M]),
    "as_strided_scatter beyond the storage": (lambda t, a: a.as_strided_scatter(t.ones(20), (20,), (2,)), [M]),
    "put out of range": (lambda t, a: a.put(t.tensor([6]), a[0, :1]), [M]),
    "put of too few": (lambda t, a: a.put(t.tensor([0, 1]), a[0]), [M]),
    "put of another type": (lambda t, a: a.put(t.tensor([0]), a[0, :1].float()), [M]),
    "fill_diagonal_ of a vector": (lambda t, a: (a * 1).fill_diagonal_(1.0), [R]),
    "fill_diagonal_ of unequal sizes": (lambda t, a: (a * 1).fill_diagonal_(1.0), [C3]),
}  # fmt: skip
