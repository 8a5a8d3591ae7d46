"""Eliminate dead code: records that nothing uses."""

from __future__ import annotations

from tapegrad.compiler.ir.graph import Builder, Graph, reached


def without_dead(graph: Graph) -> Graph:
    """Drop the records that no result and no guard depends on.

    Inputs stay: the caller passes them.
    """
    live = reached(graph, [*graph.roots(), *graph.inputs])
    builder = Builder(graph)
    for position, node in enumerate(graph.nodes):
        if live[position]:
            builder.where[position] = builder.add(builder.remapped(node))
    return builder.done()
