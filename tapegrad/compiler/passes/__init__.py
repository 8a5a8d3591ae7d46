"""What is done to a graph before it is lowered: each pass is a function from graph to graph."""

from __future__ import annotations

from tapegrad.compiler.graph import Graph
from tapegrad.compiler.passes.apart import taken_apart
from tapegrad.compiler.passes.batches import with_whole_batches
from tapegrad.compiler.passes.dead import without_dead
from tapegrad.compiler.passes.expand import expanded
from tapegrad.compiler.passes.folded import folded
from tapegrad.compiler.passes.kept import with_kept_values
from tapegrad.compiler.passes.late import late
from tapegrad.compiler.passes.narrow import narrowed
from tapegrad.compiler.passes.padded import with_sums_of_parts
from tapegrad.compiler.passes.simple import simplified


def optimised(graph: Graph) -> Graph:
    """All passes, in order."""
    graph = without_dead(narrowed(with_kept_values(without_dead(graph)), optimised))
    whole = with_whole_batches(simplified(taken_apart(expanded(graph))))
    return late(_taken(folded(with_sums_of_parts(whole))))


def _taken(graph: Graph) -> Graph:
    """A graph whose loops compute what is taken of them: a pass may have found a taker dead."""
    live = without_dead(graph)
    found = narrowed(live, _taken)
    return live if found is live else without_dead(found)
