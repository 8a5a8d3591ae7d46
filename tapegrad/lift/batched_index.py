"""Index arrays under a map, as places among the elements of an example.

NumPy brings the dimensions of index arrays to the front where they, or a number beside them, stand
apart, so the dimension of the examples cannot simply be put before a plan.  Every plan does the
same to the numbers of the elements, though, and the elements of examples that were laid flat are
chosen by these numbers: one vector of them for all examples, or one for each.
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
    """Whether a slice can stand before a plan, and the dimension it takes before all others."""
    return not _apart(_chosen(plan)) and not any(isinstance(part, int) for part in plan)


def places(plan: Plan, shape: Shape, others: list[Any], many: list[bool]) -> Tensor:
    """The numbers of the chosen elements of an example; with its own for each in front."""
    plan = _written_out(plan, len(shape))
    chosen = _chosen(plan)
    numbers = np.arange(math.prod(shape)).reshape(shape)
    base = numbers[tuple(0 if part is HOLE else part for part in plan)]
    before = 0 if _apart(chosen) else chosen[0]
    holes = [d for d, part in enumerate(p for p in plan if p is not None) if part is HOLE]
    wide = max(rank(k) - m for k, m in zip(others, many, strict=True))
    found: Any = base.reshape(base.shape[:before] + (1,) * wide + base.shape[before:])
    for k, m, d in zip(others, many, holes, strict=True):
        t = k if isinstance(k, Tensor) else wrap(np.asarray(k))
        _check(everything(t._a), shape[d], d)
        front, own = t._a.shape[: int(m)], t._a.shape[int(m) :]
        missing = (1,) * (before + wide - len(own))
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


def _apart(chosen: list[int]) -> bool:
    return chosen[-1] - chosen[0] != len(chosen) - 1


def _check(index: np.ndarray, size: int, d: int) -> None:
    """Refuse what is out of range: the number of an element would be another one's."""
    if index.size and (index.max() >= size or index.min() < -size):
        raise IndexError(
            f"an index in [{index.min()}, {index.max()}] is out of range for dimension {d} of size "
            f"{size}"
        )


def _written_out(plan: Plan, ndim: int) -> Plan:
    """A plan that has an entry for every dimension."""
    used = sum(part is not None and part is not Ellipsis for part in plan)
    rest = (slice(None),) * (ndim - used)
    if Ellipsis not in plan:
        return (*plan, *rest)
    at = plan.index(Ellipsis)
    return (*plan[:at], *rest, *plan[at + 1 :])
