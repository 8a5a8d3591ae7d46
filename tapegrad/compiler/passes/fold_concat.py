"""Fold slices of concatenations, and concatenations of concatenations.

A slice of a join (or of a padding) that shows a single piece becomes a slice of that piece: the two
may share a loop, and the join may be dead.  A slice of the fill of a padding is a constant.  Nested
joins along one dimension are flattened, and so are nested paddings.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.compiler.ir.buffers import WINDOWS
from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.compiler.ir.loop_nest import SET
from tapegrad.compiler.ir.piecewise import Section, sections_of, within
from tapegrad.ops import shape as s
from tapegrad.ops.core import ELEMENTWISE

FOLDED = ("concat", "pad")  # of `Op.moves`
SEEN = 1 << 8  # pieces of a join up to which the one shown is searched for


def folded(graph: Graph) -> Graph:
    """Have slices of joins read the piece where they show a single one."""
    if not any(getattr(op, "moves", "") in FOLDED for op in graph.ops()):
        return graph
    joins = {k for k, node in enumerate(graph.nodes) if node.op and node.moves in FOLDED}
    seen = _seen(graph, joins)
    merged = _merged(graph, joins)
    if not seen and not merged:
        return graph
    builder = Builder(graph)
    for position, node in enumerate(graph.nodes):
        if position in seen:
            builder.where[position] = _piece(builder, graph, node, seen[position])
        else:
            found = merged.get(position, node)
            builder.where[position] = builder.add(builder.remapped(found))
    return builder.done()


def _seen(graph: Graph, joins: set[int]) -> dict[int, Section]:
    """For each slice of a join that may read a piece instead: the part of it that it shows."""
    seen: dict[int, Section] = {}
    others = set(graph.roots())  # with uses other than such slices
    known: dict[int, list[Section] | None] = {}
    for position, node in enumerate(graph.nodes):
        if joins.isdisjoint(node.args):
            continue
        found = None
        source = graph.nodes[node.args[0]]
        if node.moves in WINDOWS and node.args[0] in joins and len(source.args) <= SEEN:
            (a,) = node.args
            if a not in known:
                known[a] = sections_of(graph, source)
            found = _alone(graph, node, known[a])
        if found is None:
            others.update(node.args)
        else:
            seen[position] = found
    # A piece that a loop computes into the join is not stored a second time for a slice.
    return {
        position: section
        for position, section in seen.items()
        if graph.nodes[position].args[0] not in others or _stored(graph, section)
    }


def _stored(graph: Graph, section: Section) -> bool:
    if not isinstance(section.source, int):
        return True
    node = graph.nodes[section.source]
    whole = all(
        k == 0 and (1 if d < 0 else section.extent[d]) == n
        for k, d, n in zip(section.start, section.dims, node.shape, strict=True)
    )
    return whole or node.op is None or node.op.kind is not ELEMENTWISE


def _alone(graph: Graph, node: Node, pieces: list[Section] | None) -> Section | None:
    """The single section, of a piece or of the fill, that a slice of a join shows."""
    window = sections_of(graph, node) if pieces else None
    if window is None or pieces is None:
        return None
    shown = within(window[0], pieces)
    whole = (0,) * len(node.shape)
    full = [k for k, section in enumerate(shown or ()) if section.holds(whole, node.shape)]
    if not shown or not full or full[-1] != len(shown) - 1:
        return None
    last = shown[-1]
    if last.mode != SET:  # one padding of several, over zeros
        if any(not _is_zero(section) for section in shown[:-1]):
            return None
        last = last._replace(mode=SET)
    dims = [d for d in last.dims if d >= 0]
    alike = not isinstance(last.source, int) or graph.nodes[last.source].dtype == node.dtype
    return last if dims == sorted(dims) and alike else None


def _is_zero(section: Section) -> bool:
    return not isinstance(section.source, int) and section.source == 0


def _piece(builder: Builder, graph: Graph, node: Node, section: Section) -> int:
    """The slice of the piece itself."""
    if not isinstance(section.source, int):
        value = np.broadcast_to(np.array(section.source, node.dtype), node.shape)
        return builder.add(Node(None, (), {}, node.shape, node.dtype, value))
    source = graph.nodes[section.source]
    at = builder.where[section.source]
    index: list[Any] = []
    shape: list[int] = []
    for k, d, n in zip(section.start, section.dims, source.shape, strict=True):
        if d < 0 and n > 1:
            index.append(k)
        else:
            count = section.extent[d] if d >= 0 else 1
            index.append(slice(k, k + count))
            shape.append(count)
    if tuple(shape) != source.shape:
        params = {"index": tuple(index)}
        at = builder.add(Node(s.getitem, (at,), params, tuple(shape), node.dtype))
    if tuple(shape) != node.shape:
        params = {"shape": node.shape}
        at = builder.add(Node(s.reshape, (at,), params, node.shape, node.dtype))
    return at


# -- joins of joins ----------------------------------------------------------------------------


def _merged(graph: Graph, joins: set[int]) -> dict[int, Node]:
    """The joins and paddings that others are inside of, flattened."""
    uses, found = graph.uses(), {}
    for position in joins:
        node = graph.nodes[position]
        if (flat := _flat(graph, node, uses)) is not node:
            found[position] = flat
    return found


def _flat(graph: Graph, node: Node, uses: list[int]) -> Node:
    """Flatten a join or a padding with those inside that have no other use."""
    while True:
        inner = [
            a for a in node.args
            if uses[a] == 1 and graph.nodes[a].name == node.name
            and graph.nodes[a].dtype == node.dtype
        ]  # fmt: skip
        found = _one(graph, node, inner) if inner else None
        if found is None:
            return node
        node = found


def _one(graph: Graph, node: Node, inner: list[int]) -> Node | None:
    """Flatten one level of joins; None if they are of another kind."""
    params = node.params
    if node.name == "cat":
        inside = {a for a in inner if graph.nodes[a].params == params}
        args: list[int] = []
        for a in node.args:
            args += graph.nodes[a].args if a in inside else [a]
        same = all(graph.nodes[a].dtype == node.dtype for a in args)
        return node.on(tuple(args)) if inside and same else None
    if node.name != "pad" or graph.nodes[inner[0]].params["value"] != params["value"]:
        return None
    below = graph.nodes[inner[0]]
    widths = tuple([
        (a + c, b + d)
        for (a, b), (c, d) in zip(params["widths"], below.params["widths"], strict=True)
    ])  # fmt: skip
    return Node(node.op, below.args, {**params, "widths": widths}, node.shape, node.dtype)
