"""What is done to a graph before it is lowered: each pass is a function from graph to graph."""

from __future__ import annotations

from tapegrad.compiler.graph import Graph
from tapegrad.compiler.passes.dead import without_dead


def optimised(graph: Graph) -> Graph:
    """All passes, in order."""
    return without_dead(graph)
