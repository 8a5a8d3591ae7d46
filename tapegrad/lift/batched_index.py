"""Batch index arrays, as flat indices into the elements of an example.

NumPy moves the dimensions of index arrays to the front where these, or an int beside them, are
separated, so the batch dimension cannot simply precede a plan.  But a plan applied to an array of
flat indices gives those of the chosen elements, which index flattened examples: one vector for all
examples, or one for each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import everything
from tapegrad.dispatch.dispatch import run
from tapegrad.ops import elementwise as e
from tapegrad.ops.index import HOLE
from tapegrad.ops.shape import reshape
from tapegrad.tape.shape_table import Shape
from tapegrad.tensor import Tensor, wrap

Plan = tuple[Any, ...]


def in_order(plan: Plan) -> bool:
    """Whether a slice can precede a plan, so that the batch dimension stays first."""
    return not _separated(_chosen(plan)) and not any(isinstance(part, int) for part in plan)


def places(plan: Plan, shape: Shape, others: list[Any], many: list[bool]) -> Tensor:
    """The flat indices of the chosen elements of an example, batched if they differ."""
    plan = _written_out(plan, len(shape))
    chosen = _chosen(plan)
    numbers = np.arange(math.prod(shape)).reshape(shape)
    base = numbers[tuple(0 if part is HOLE else part for part in plan)]
    before = 0 if _separated(chosen) else chosen[0]
    holes = [d for d, part in enumerate(p for p in plan if p is not None) if part is HOLE]
    broadcast_rank = max(rank(k) - m for k, m in zip(others, many, strict=True))
    found: Any = base.reshape(base.shape[:before] + (1,) * broadcast_rank + base.shape[before:])
    for k, m, d in zip(others, many, holes, strict=True):
        t = k if isinstance(k, Tensor) else wrap(np.asarray(k))
        _check(everything(t._a), shape[d], d)
        front, own = t._a.shape[: int(m)], t._a.shape[int(m) :]
        missing = (1,) * (before + broadcast_rank - len(own))
        full = (*front, *missing, *own, *(1,) * (base.ndim - before))
        t = run(reshape, (t,), {"shape": full})
        t = e.where(e.lt(t, 0), e.add(t, shape[d]), t)
        found = e.add(found, e.mul(t, math.prod(shape[d + 1 :])))
    return found  # type: ignore[no-any-return]


def rank(x: Any) -> int:
    """The number of dimensions of an operand."""
    if isinstance(x, Tensor):
        return x._a.ndim
    return 0 if isinstance(x, (int, float, complex)) else np.ndim(x)


def _chosen(plan: Plan) -> list[int]:
    return [i for i, part in enumerate(plan) if part is HOLE or isinstance(part, int)]


def _separated(chosen: list[int]) -> bool:
    return chosen[-1] - chosen[0] != len(chosen) - 1


def _check(index: np.ndarray, size: int, d: int) -> None:
    """Refuse indices out of range: as flat indices they would be another element's."""
    if index.size and (index.max() >= size or index.min() < -size):
        raise IndexError(
            f"an index in [{index.min()}, {index.max()}] is out of range for dimension {d} of size "
            f"{size}"
        )


def _written_out(plan: Plan, ndim: int) -> Plan:
    """Write a plan out, with an entry for every dimension."""
    used = sum(part is not None and part is not Ellipsis for part in plan)
    rest = (slice(None),) * (ndim - used)
    if Ellipsis not in plan:
        return (*plan, *rest)
    at = plan.index(Ellipsis)
    return (*plan[:at], *rest, *plan[at + 1 :])
