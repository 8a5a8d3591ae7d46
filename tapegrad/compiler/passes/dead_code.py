"""Eliminate dead code: records that nothing uses."""

from __future__ import annotations

from tapegrad.compiler.ir.graph import Builder, Graph, reached


def without_dead(graph: Graph) -> Graph:
    """Drop the records that no result and no guard depends on.

    Inputs stay: the caller passes them.
    """
    live = reached(graph, [*graph.roots(), *graph.inputs])
    if all(live):
        return graph
    builder = Builder(graph)
    builder.copy_all([position for position, lives in enumerate(live) if lives])
    return builder.done()
