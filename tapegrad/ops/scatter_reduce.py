"""Products and extremes of what an index array brings to one place.

Source and index have one shape.  Extremes share the gradient among ties; a product stays
differentiable at zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.abstract_array import everything
from tapegrad.ops.core import NotDifferentiable, Op, custom
from tapegrad.ops.elementwise import eq, gt, maximum, strong, where
from tapegrad.ops.index import SELECTS, check_range, gather, scatter_add
from tapegrad.ops.shape import to


def flat_places(index: Any, shape: tuple[int, ...], dim: int) -> np.ndarray:
    """Where elements stand in memory that an index names along a dimension, in one dimension."""
    step, found = 1, np.zeros((), np.int64)
    for d in range(len(shape) - 1, -1, -1):
        n = index.shape[d]
        along = [1] * len(shape)
        along[d] = n
        found = found + (index if d == dim else np.arange(n).reshape(along)) * step
        step *= shape[d]
    return np.asarray(found).reshape(-1)


def _along(ufunc: Any) -> Any:
    def forward(x: Any, index: Any, src: Any, *, dim: int) -> Any:
        check_range(index, x.shape[dim], "scatter_reduce")
        out = np.array(x, order="C")
        # NumPy's loop over vectors is the fast one.
        ufunc.at(out.reshape(-1), flat_places(index, x.shape, dim), np.ravel(src))
        return out

    return forward


def _share(g: Any, x: Any, index: Any, src: Any, y: Any, dim: int) -> Any:
    """The part of the adjoint that each of the equal extremes gets."""
    hits = eq(src, gather(y, index, dim=dim))
    ties = scatter_add(to(eq(x, y), dtype=x.dtype), index, to(hits, dtype=x.dtype), dim=dim)
    return strong(g, 1.0 / maximum(ties, 1.0))


def _extreme_x(g: Any, x: Any, index: Any, src: Any, y: Any, dim: int) -> Any:
    return where(eq(x, y), _share(g, x, index, src, y, dim), 0.0)


def _extreme_src(g: Any, x: Any, index: Any, src: Any, y: Any, dim: int) -> Any:
    share = _share(g, x, index, src, y, dim)
    hit = eq(src, gather(y, index, dim=dim))
    return where(hit, gather(share, index, dim=dim), 0.0)


def _unknown_slope(g: Any, count: Any) -> Any:
    """Zeros; where several factors are zero each has a slope in the others, which is not known."""
    lost = where(gt(count, 1.5), g, 0.0)
    if everything(getattr(lost, "_a", lost)).any():
        raise NotImplementedError(
            "the second derivative of a product by `scatter_reduce` or `index_reduce` is not "
            "implemented where several zeros meet at one place"
        )
    return lost


# The product of all factors but `t`, which is zero: with another zero among them that is zero, too.
beside_zero: Op = custom(
    "beside_zero",
    lambda rest, t, count: np.where(count > 1.5, np.zeros((), rest.dtype), rest),
    rest=lambda g, count: where(gt(count, 1.5), 0.0, g),
    t=_unknown_slope, count=NotDifferentiable("how many zeros there are is a count"),
    decomposition=lambda rest, t, count: where(gt(count, 1.5), 0.0, rest),
    grad_name="ScatterReduce",
)  # fmt: skip


def _without_zeros(x: Any, index: Any, src: Any, dim: int) -> tuple[Any, Any]:
    """The product of all factors but zeros, and how many zeros there are."""
    zeros = [eq(t, 0.0) for t in (x, src)]
    first, more = (to(z, dtype=x.dtype) for z in zeros)
    count = scatter_add(first, index, more, dim=dim)
    first, more = (where(z, 1.0, t) for z, t in zip(zeros, (x, src), strict=True))
    return scatter_prod(first, index, more, dim=dim), count


def _others(t: Any, y: Any, rest: Any, count: Any) -> Any:
    """The product of all factors but `t`."""
    zero = eq(t, 0.0)
    return where(zero, beside_zero(rest, t, count), y / where(zero, 1.0, t))


def _prod_x(g: Any, x: Any, index: Any, src: Any, y: Any, dim: int) -> Any:
    return strong(g, _others(x, y, *_without_zeros(x, index, src, dim)))


def _prod_src(g: Any, x: Any, index: Any, src: Any, y: Any, dim: int) -> Any:
    there = (y, *_without_zeros(x, index, src, dim))
    others = _others(src, *[gather(t, index, dim=dim) for t in there])
    return strong(gather(g, index, dim=dim), others)


# fmt: off
scatter_prod: Op = custom("scatter_prod", _along(np.multiply), x=_prod_x, index=SELECTS,
                          src=_prod_src, grad_name="ScatterReduce", scatters="mul")
scatter_amax: Op = custom("scatter_amax", _along(np.maximum), x=_extreme_x, index=SELECTS,
                          src=_extreme_src, grad_name="ScatterReduce", scatters="maximum",
                          singular="Ties share the gradient.")
scatter_amin: Op = custom("scatter_amin", _along(np.minimum), x=_extreme_x, index=SELECTS,
                          src=_extreme_src, grad_name="ScatterReduce", scatters="minimum",
                          singular="Ties share the gradient.")
# fmt: on
# By the name of the reduction; a mean is the sum over a count.
REDUCING = {
    "sum": scatter_add,
    "mean": scatter_add,
    "prod": scatter_prod,
    "amax": scatter_amax,
    "amin": scatter_amin,
}  # fmt: skip
# By the ufunc that does the same two at a time.
OF_UFUNC = {np.add: "sum", np.multiply: "prod", np.maximum: "amax", np.minimum: "amin"}
