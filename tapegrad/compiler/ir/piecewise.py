"""Piecewise index maps: concatenations as boxes of their index space, each with a source.

A join, a padding, a sum of paddings maps boxes to windows of other values (or to a number).  So
does a slice of it, and a join of joins.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import NamedTuple

from tapegrad.compiler.ir.buffers import Place, blank, c_strides, whole, window
from tapegrad.compiler.ir.copy_plans import PLANS
from tapegrad.compiler.ir.graph import Graph, Node
from tapegrad.compiler.ir.loop_nest import ADD, SET
from tapegrad.tape.shape_table import Shape

Cuts = list[set[int]]  # in each dimension, where sections begin or end


class Section(NamedTuple):
    """A box within a join, and the window of a value (or the number) that it shows.

    Dimension t of the source begins at `start[t]`, and runs along dimension `dims[t]` of the join;
    if that is -1, one index of it is seen.
    """

    first: Shape
    extent: Shape
    source: int | float
    start: Shape = ()
    dims: Shape = ()
    mode: str = SET

    def holds(self, first: Shape, extent: Shape) -> bool:
        """Whether a box lies within it."""
        return all(
            f <= a and a + n <= f + e
            for f, e, a, n in zip(self.first, self.extent, first, extent, strict=True)
        )

    def origin(self, first: Shape) -> Shape:
        """The index of the source that is seen at an index of the join."""
        return tuple([
            k if d < 0 else k + first[d] - self.first[d]
            for k, d in zip(self.start, self.dims, strict=True)
        ])  # fmt: skip


class VirtualConcats(NamedTuple):
    """The virtual joins of a graph, and how often loops read each record.

    `written` are sums of paddings, and joins of joins, that a loop writes element by element.
    """

    sections: dict[int, list[Section]]
    written: dict[int, list[Section]]
    reads: list[int]


def _seen(place: Place, shape: Shape) -> tuple[Shape, Shape] | None:
    """A window of a C-ordered array as its first index, and the dimensions that it runs along.

    None if it takes steps other than 1 along one, or lies across them.
    """
    steps, rest = c_strides(shape), place.offset
    first: list[int] = []
    for n, step in zip(shape, steps, strict=True):
        k, rest = divmod(rest, step) if n > 1 else (0, rest)
        first.append(k)
    where = {step: d for d, (n, step) in enumerate(zip(shape, steps, strict=True)) if n > 1}
    dims = [
        where.get(step, len(shape)) if n > 1 else -1
        for n, step in zip(place.shape, place.strides, strict=True)
    ]
    run = [d for d in dims if d >= 0]
    # Some windows go through several dimensions at once, or through one twice.
    inside = all(
        d < 0 or (d < len(shape) and first[d] + n <= shape[d])
        for d, n in zip(dims, place.shape, strict=True)
    )
    return (tuple(first), tuple(dims)) if inside and len(run) == len(set(run)) else None


def sections_of(graph: Graph, node: Node) -> list[Section] | None:
    """The sections of a join, or of a window of one; None if it is not such a map."""
    if not node.size:
        return None
    if node.op not in PLANS:
        shape = graph.nodes[node.args[0]].shape
        place = window(whole(blank(node.dtype), shape), node)
        seen = None if place is None else _seen(place, shape)
        if seen is None:
            return None
        start, shown_dims = seen
        runs = tuple([shown_dims.index(d) if d in shown_dims else -1 for d in range(len(shape))])
        return [Section((0,) * len(node.shape), node.shape, node.args[0], start, runs)]
    plan = PLANS[node.op](graph, node, whole(blank(node.dtype), node.shape))
    found = []
    for source, target, mode in plan or ():
        seen = _seen(target, node.shape)
        if seen is None:
            return None
        first, dims = seen
        extent = [1] * len(node.shape)
        for d, n in zip(dims, target.shape, strict=True):
            if d >= 0:
                extent[d] = n
        if 0 in target.shape:
            continue
        value: int | float = source
        if isinstance(source, int):
            operand = graph.nodes[source]
            if operand.uniform and operand.dtype.kind in "fib":
                assert operand.value is not None
                value = float(operand.value.flat[0])
            elif operand.shape != target.shape:
                return None
        dims = dims if isinstance(value, int) else ()
        found.append(Section(first, tuple(extent), value, (0,) * len(dims), dims, mode))
    return found or None


def within(outer: Section, inner: list[Section]) -> list[Section] | None:
    """Compose: the sections of a join that a section of another one shows."""
    found = [s for s in [_cut(outer, s) for s in inner] if s is not None]
    if outer.mode != ADD:
        return found
    # Zeros add nothing; a section that overwrites is not a sum.
    added = [s for s in found if s.source != 0.0 or isinstance(s.source, int)]
    over = any(
        s.mode == SET and _meet(s, other) for k, s in enumerate(added) for other in added[:k]
    )
    return None if over else [s._replace(mode=ADD) for s in added]


def _meet(a: Section, b: Section) -> bool:
    return all(
        f < g + m and g < f + n
        for f, n, g, m in zip(a.first, a.extent, b.first, b.extent, strict=True)
    )


def _cut(outer: Section, inner: Section) -> Section | None:
    """A section of a join restricted to a section of another one; None if they are disjoint."""
    first, extent, origin = list(outer.first), list(outer.extent), []
    for k, d, f, n in zip(outer.start, outer.dims, inner.first, inner.extent, strict=True):
        size = outer.extent[d] if d >= 0 else 1
        low, high = max(k, f), min(k + size, f + n)
        if low >= high:
            return None
        origin.append(low)
        if d >= 0:
            first[d] += low - k
            extent[d] = high - low
    start = inner.origin(tuple(origin))
    dims = tuple([-1 if d < 0 else outer.dims[d] for d in inner.dims])
    return Section(tuple(first), tuple(extent), inner.source, start, dims, inner.mode)


def cuts_of(sections: list[Section]) -> Cuts:
    """The bounds of sections, in each dimension."""
    found: Cuts = [set() for _ in sections[0].first]
    for section in sections:
        for d, (first, n) in enumerate(zip(section.first, section.extent, strict=True)):
            found[d] |= {first, first + n}
    return found


def intervals(cuts: Cuts) -> list[list[tuple[int, int]]]:
    """In each dimension, the starts and lengths of the parts between cuts."""
    found = []
    for places in cuts:
        ends = sorted(places)
        found.append([(a, b - a) for a, b in pairwise(ends)])
    return found


def boxes_in(cuts: Cuts) -> int:
    """The number of boxes that cuts make."""
    return prod([len(ends) - 1 for ends in cuts])
