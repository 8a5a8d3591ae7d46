"""Gather and scatter by index arrays, as windows with offsets read at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.compiler.ir.buffers import Pick, Place
from tapegrad.compiler.ir.graph import Graph, Node
from tapegrad.ops.index import HOLE

# Operations that read by index arrays, and those that add to, or write into, what is given.
READS = frozenset(("index", "index_select", "gather"))
WRITES = {
    "unindex": True, "unselect": True, "ungather": True, "index_add": True, "scatter_add": True,
    "index_put": None, "scatter": False, "cleared": False, "scattered": False,
}  # fmt: skip
# Those that pick one element along one dimension for each of the index array's.
ALONG = frozenset(("gather", "ungather", "scatter", "scatter_add", "scattered"))
# Those of which the index is the second operand alone.
_SECOND = frozenset(("index_add", "scatter_add", "scatter"))


def indices_of(node: Node) -> tuple[int, ...]:
    """The index arrays among the operands of an operation."""
    if node.name in _SECOND:
        return (node.args[1],)
    return node.args[2 if node.name == "index_put" else 1 :]


def value_of(node: Node) -> int | None:
    """The operand that is written; None for zeros."""
    if node.name in ("cleared", "scattered"):
        return None
    return node.args[2 if node.name in _SECOND else 1 if node.name == "index_put" else 0]


def indexable(graph: Graph, node: Node) -> bool:
    """Whether an operation picks in a way that windows can."""
    transposes = node.name in ("unindex", "unselect", "ungather")
    shape = node.shape if transposes else graph.nodes[node.args[0]].shape
    indices = [graph.nodes[a] for a in indices_of(node)]
    if not indices or any(i.dtype != np.int64 for i in indices):
        return False
    if node.name in ALONG:
        return True
    plan = plan_of(node, len(shape))
    return bool(shape) and all(part is HOLE or isinstance(part, slice) for part in plan)


def written(value: Place, target: Place, node: Node) -> Place:
    """What is written into a picked window, as large as it."""
    if node.name in ("scatter", "scatter_add") and value.shape:
        return value._replace(shape=target.shape)  # of a larger source the corner is read
    return value.broadcast(target.shape)


def plan_of(node: Node, rank: int) -> tuple[Any, ...]:
    """Slices and holes, one for each dimension."""
    if "plan" not in node.params:
        dim = node.params["dim"]
        return (*(slice(None),) * dim, HOLE, *(slice(None),) * (rank - dim - 1))
    plan = node.params["plan"]
    if any(part is ... for part in plan):
        k = next(i for i, part in enumerate(plan) if part is ...)
        missing = rank - sum(part is not None for part in plan) + 1
        plan = (*plan[:k], *(slice(None),) * missing, *plan[k + 1 :])
    return (*plan, *(slice(None),) * (rank - len(plan)))


def picked(place: Place, node: Node, indices: list[Place]) -> Place:
    """The window of what index arrays choose."""
    if node.name in ALONG:
        return _along(place, node.params["dim"], indices[0])
    plan = plan_of(node, len(place.shape))
    shape = np.broadcast_shapes(*[i.shape for i in indices])
    holes = [d for d, part in enumerate(plan) if part is HOLE]
    together = holes == list(range(holes[0], holes[-1] + 1))
    before: list[tuple[int, int]] = []
    after: list[tuple[int, int]] = []
    picks: list[tuple[Place, int, int]] = []
    offset = place.offset
    waiting = iter(indices)
    for d, part in enumerate(plan):
        n, s = place.shape[d], place.strides[d]
        if part is HOLE:
            picks.append((next(waiting), s, n))
            continue
        start, _, step = part.indices(n)
        count = len(range(*part.indices(n)))
        offset += start * s if count else 0
        (before if together and d < holes[0] else after).append((count, s * step))
    full = (*[n for n, _ in before], *shape, *[n for n, _ in after])
    strides = (*[s for _, s in before], *(0,) * len(shape), *[s for _, s in after])
    found = []
    for index, s, n in picks:
        wide = index.broadcast(shape)
        steps = (*(0,) * len(before), *wide.strides, *(0,) * len(after))
        found.append(Pick(wide._replace(shape=full, strides=steps), s, n))
    return Place(place.buffer, offset, full, strides, tuple(found))


def _along(place: Place, dim: int, index: Place) -> Place:
    if not place.shape:
        return place.broadcast(index.shape)
    strides = tuple([0 if d == dim else s for d, s in enumerate(place.strides)])
    pick = Pick(index, place.strides[dim], place.shape[dim])
    return Place(place.buffer, place.offset, index.shape, strides, (pick,))
