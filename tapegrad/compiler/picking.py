"""Reading and writing by index arrays: windows with offsets that are read while a program runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.compiler.graph import Graph, Node
from tapegrad.compiler.place import Pick, Place
from tapegrad.ops.index import HOLE

# Operations that read by index arrays, and those that add to, or write into, what is given.
READS = frozenset(("index", "index_select", "gather"))
WRITES = {
    "unindex": True, "unselect": True, "ungather": True, "index_add": True, "scatter_add": True,
    "index_put": None, "scatter": False,
}  # fmt: skip


def indexable(graph: Graph, node: Node) -> bool:
    """Whether an operation picks in a way that windows can."""
    if node.name in ("unindex", "unselect", "ungather"):
        first, shape = 1, node.shape
    else:
        first = 1 if node.name in READS else _first_index(node)
        shape = graph.nodes[node.args[0]].shape
    indices = [graph.nodes[a] for a in node.args[first:]]
    if node.name in ("index_add", "scatter_add", "scatter"):
        indices = [graph.nodes[node.args[1]]]
    if not shape or not indices or any(i.dtype != np.int64 for i in indices):
        return False
    if node.name in ("gather", "ungather", "scatter", "scatter_add"):
        return _as_large(graph, node, indices[0])
    plan = plan_of(node, len(shape))
    return all(part is HOLE or isinstance(part, slice) for part in plan)


def _first_index(node: Node) -> int:
    return 2 if node.name == "index_put" else 1


def _as_large(graph: Graph, node: Node, index: Node) -> bool:
    """Of `scatter` and its kin: whether source and index have one shape."""
    if node.name in ("scatter", "scatter_add"):
        return graph.nodes[node.args[2]].shape == index.shape
    return True


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
    if node.name in ("gather", "ungather", "scatter", "scatter_add"):
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
    strides = tuple([0 if d == dim else s for d, s in enumerate(place.strides)])
    pick = Pick(index, place.strides[dim], place.shape[dim])
    return Place(place.buffer, place.offset, index.shape, strides, (pick,))
