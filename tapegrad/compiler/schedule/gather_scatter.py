"""Gather and scatter by index arrays, as windows with offsets read at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.compiler.ir.buffers import Gather, Place
from tapegrad.compiler.ir.graph import Graph, Node, adds_to_zeros
from tapegrad.ops.index import HOLE


def indices_of(node: Node) -> tuple[int, ...]:
    """The index arrays among the operands of an operation."""
    assert node.op is not None
    if node.op.variadic:
        return node.args[node.op.inputs.index("others") :]
    return (node.args[node.op.inputs.index("index")],)


def value_of(node: Node) -> int | None:
    """The operand that is written; None for zeros."""
    assert node.op is not None
    if adds_to_zeros(node):
        return node.args[0]
    value = [k for k, name in enumerate(node.op.inputs) if name in ("src", "source", "value")]
    return node.args[value[0]] if value else None


def indexable(graph: Graph, node: Node) -> bool:
    """Whether windows with gathers can express an operation."""
    shape = node.shape if adds_to_zeros(node) else graph.nodes[node.args[0]].shape
    indices = [graph.nodes[a] for a in indices_of(node)]
    if not indices or any(i.dtype != np.int64 for i in indices):
        return False
    if "along" in node.moves:
        return True
    plan = plan_of(node, len(shape))
    return bool(shape) and all(part is HOLE or isinstance(part, slice) for part in plan)


def written(value: Place, target: Place, node: Node) -> Place:
    """The value written into a gathered window, in its shape."""
    if "along" in node.moves and not adds_to_zeros(node) and value.shape:
        return value._replace(shape=target.shape)  # of a larger source its corner is read
    return value.broadcast(target.shape)


def plan_of(node: Node, rank: int) -> tuple[Any, ...]:
    """The index plan written out: a slice or a hole for each dimension."""
    if "plan" not in node.params:
        dim = node.params["dim"]
        return (*(slice(None),) * dim, HOLE, *(slice(None),) * (rank - dim - 1))
    plan = node.params["plan"]
    if any(part is ... for part in plan):
        k = next(i for i, part in enumerate(plan) if part is ...)
        missing = rank - sum(part is not None for part in plan) + 1
        plan = (*plan[:k], *(slice(None),) * missing, *plan[k + 1 :])
    return (*plan, *(slice(None),) * (rank - len(plan)))


def gathered(place: Place, node: Node, indices: list[Place]) -> Place:
    """The window of the elements that index arrays choose."""
    if "along" in node.moves:
        return along(place, node.params["dim"], indices[0])
    plan = plan_of(node, len(place.shape))
    shape = np.broadcast_shapes(*[i.shape for i in indices])
    holes = [d for d, part in enumerate(plan) if part is HOLE]
    together = holes == list(range(holes[0], holes[-1] + 1))
    before: list[tuple[int, int]] = []
    after: list[tuple[int, int]] = []
    gathers: list[tuple[Place, int, int]] = []
    offset = place.offset
    waiting = iter(indices)
    for d, part in enumerate(plan):
        n, s = place.shape[d], place.strides[d]
        if part is HOLE:
            gathers.append((next(waiting), s, n))
            continue
        start, _, step = part.indices(n)
        count = len(range(*part.indices(n)))
        offset += start * s if count else 0
        (before if together and d < holes[0] else after).append((count, s * step))
    full = (*[n for n, _ in before], *shape, *[n for n, _ in after])
    strides = (*[s for _, s in before], *(0,) * len(shape), *[s for _, s in after])
    found = []
    for index, s, n in gathers:
        broadcast = index.broadcast(shape)
        steps = (*(0,) * len(before), *broadcast.strides, *(0,) * len(after))
        found.append(Gather(broadcast._replace(shape=full, strides=steps), s, n))
    return Place(place.buffer, offset, full, strides, tuple(found))


def along(place: Place, dim: int, index: Place) -> Place:
    """The window of the elements that an index array names along a dimension."""
    if not place.shape:
        return place.broadcast(index.shape)
    strides = tuple([0 if d == dim else s for d, s in enumerate(place.strides)])
    gather = Gather(index, place.strides[dim], place.shape[dim])
    return Place(place.buffer, place.offset, index.shape, strides, (gather,))
