"""Integrals and derivatives of what is sampled along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions.arguments import as_input, numpy_names, one_dim
from tapegrad.functions.joining import cat
from tapegrad.functions.scans import diff
from tapegrad.functions.shapes import narrow, reshape, to
from tapegrad.tensor import Tensor


def _strips(y: Tensor, x: Tensor | None, dx: Any, dim: int, name: str) -> tuple[Tensor, int]:
    """Twice the area of each strip between two samples, and their dimension."""
    t = as_input(y, name)
    if not t._a.ndim:
        raise IndexError(f"`{name}`: a 0-d Tensor has no dimension {dim}")
    d = one_dim(dim, t._a.ndim, name)
    if t._a.dtype.kind == "b":
        raise RuntimeError(f"`{name}` is not defined for a boolean Tensor")
    if x is not None and dx is not None:
        raise TypeError(f"`{name}`: give the points `x`, or their distance `dx`, not both")
    n = t._a.shape[d]
    if x is not None:
        points = as_input(x, name)
        if points._a.ndim == 1:
            if points._a.size != n:
                raise RuntimeError(
                    f"`{name}`: there must be one `x` for each of the {n} samples, got "
                    f"{points._a.size}"
                )
            points = reshape(points, (n, *(1,) * (t._a.ndim - d - 1)))
        at = points._a.ndim - t._a.ndim + d
        steps: Any = diff(points, dim=at)
    else:
        steps = 1 if dx is None else dx
    before, after = narrow(t, d, 0, max(n - 1, 0)), narrow(t, d, min(n, 1), max(n - 1, 0))
    try:
        return ew.mul(ar.add(before, after), steps), d
    except RuntimeError as problem:
        raise RuntimeError(f"`{name}`: samples and points do not fit: {problem}") from None


@numpy_names
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral along a dimension, by the trapezoidal rule: at points `x`, or `dx` apart.

    >>> import tapegrad as tg
    >>> tg.trapezoid(tg.tensor([1.0, 2.0, 4.0]))
    tensor(4.5000)
    """
    strips, d = _strips(y, x, dx, dim, "trapezoid")
    found = r.sum(strips, d - y._a.ndim)
    return ar.div(found, 2) if y._a.shape[d] else to(found, y._a.dtype)


trapz = trapezoid


@numpy_names
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1
) -> Tensor:
    """The integrals up to each point but the first, by the trapezoidal rule.

    >>> import tapegrad as tg
    >>> tg.cumulative_trapezoid(tg.tensor([1.0, 2.0, 4.0]))
    tensor([1.5000, 4.5000])
    """
    strips, d = _strips(y, x, dx, dim, "cumulative_trapezoid")
    if not y._a.shape[d]:
        return strips
    return ar.div(r.cumsum(strips, d - y._a.ndim), 2)


def gradient(
    input: Tensor, *, spacing: float | Tensor | Sequence[Any] | None = None,
    dim: int | Sequence[int] | None = None, edge_order: int = 1,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The derivatives along dimensions of what is sampled: central differences, one-sided at ends.

    `spacing` is the distance of the samples (1), one for each dimension, or the coordinates of them
    along each. `edge_order` is the order of the error at the ends, 1 or 2.

    >>> import tapegrad as tg
    >>> tg.gradient(tg.tensor([0.0, 1.0, 4.0]))
    (tensor([1., 2., 3.]),)
    """
    x = as_input(input, "gradient")
    given = x._a.ndim if dim is None else dim
    if dim is None:
        dims = tuple(range(x._a.ndim))
    else:
        several = (given,) if isinstance(given, int) else tuple(dim)  # type: ignore[arg-type]
        dims = tuple(one_dim(d, x._a.ndim, "gradient") for d in several)
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"`gradient`: a dimension appears twice in {several}")
    if isinstance(spacing, Tensor) and spacing._a.ndim:
        raise TypeError("`gradient`: coordinates are given in a list, one Tensor for a dimension")
    one: Any = 1.0 if spacing is None else spacing
    each = list(one) if isinstance(one, (list, tuple)) else [one] * len(dims)
    if len(each) != len(dims):
        raise RuntimeError(
            f"`gradient`: there must be one spacing for each of the {len(dims)} dimensions, got "
            f"{len(each)}"
        )
    if edge_order not in (1, 2):
        raise RuntimeError(f"`gradient`: edge_order is 1 or 2, got {edge_order}")
    for d in dims:
        if x._a.shape[d] <= edge_order:
            raise RuntimeError(
                f"`gradient` with edge_order={edge_order} needs {edge_order + 1} samples along "
                f"each dimension, got the shape {x._a.shape}"
            )
    return tuple(slope(x, h, d, edge_order) for h, d in zip(each, dims, strict=True))


def slope(x: Tensor, spacing: Any, d: int, edge_order: int) -> Tensor:
    """The derivative along one dimension of samples at a distance, or at coordinates."""
    n = x._a.shape[d]
    steps: Any = spacing
    uniform = not isinstance(spacing, Tensor) or not spacing._a.ndim
    if not uniform:
        if spacing._a.shape != (n,):
            raise RuntimeError(
                f"`gradient`: coordinates along dimension {d} are a vector of {n}, got the shape "
                f"{spacing._a.shape}"
            )
        steps = reshape(diff(spacing), (n - 1, *(1,) * (x._a.ndim - d - 1)))
    rises = ar.div(diff(x, dim=d), steps)  # the slopes between neighbours
    first, last = narrow(rises, d, 0, 1), narrow(rises, d, n - 2, 1)
    if n == 2:
        return cat([first, last], d)
    left, right = narrow(rises, d, 0, n - 2), narrow(rises, d, 1, n - 2)
    if uniform:
        inner = ar.div(ar.add(left, right), 2)
        ratios: Any = (0.5, 0.5)
    else:
        at = steps._a.ndim - x._a.ndim + d
        a, b = narrow(steps, at, 0, n - 2), narrow(steps, at, 1, n - 2)
        share = ar.div(a, ar.add(a, b))
        inner = ar.add(left, ew.mul(share, ar.sub(right, left)))
        ratios = narrow(share, at, 0, 1), ar.sub(1, narrow(share, at, n - 3, 1))
    if edge_order == 2:  # go on with the slope of the slopes
        second, before = narrow(rises, d, 1, 1), narrow(rises, d, n - 3, 1)
        first, last = (
            ar.sub(edge, ew.mul(ar.sub(next_, edge), ratio))
            for edge, next_, ratio in ((first, second, ratios[0]), (last, before, ratios[1]))
        )
    return cat([first, inner, last], d)
