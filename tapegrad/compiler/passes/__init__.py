"""Optimisation passes: each is a function from graph to graph.

`front` and `schedule` import from here; this package imports `ir`, and `trace` to decompose.
"""

from __future__ import annotations

from collections.abc import Callable

from tapegrad.compiler.ir.contraction_order import contracted
from tapegrad.compiler.ir.graph import Graph
from tapegrad.compiler.ir.reroll import rerolled
from tapegrad.compiler.passes.apply_decompositions import expanded
from tapegrad.compiler.passes.block_products import with_block_products
from tapegrad.compiler.passes.combine_pads import with_sums_of_parts
from tapegrad.compiler.passes.common_subexpressions import simplified
from tapegrad.compiler.passes.complex_loops import with_real_loops
from tapegrad.compiler.passes.complex_pairs import with_pairs
from tapegrad.compiler.passes.dead_code import without_dead
from tapegrad.compiler.passes.early_gathers import with_early_gathers
from tapegrad.compiler.passes.early_permutes import with_early_permutes
from tapegrad.compiler.passes.jacobian_compression import with_compressed_jacobians
from tapegrad.compiler.passes.loop_rematerialization import with_kept_values
from tapegrad.compiler.passes.region_dce import pruned
from tapegrad.compiler.passes.scalar_replacement import scalarized
from tapegrad.compiler.passes.sink_records import late


def optimised(graph: Graph) -> Graph:
    """All passes, in order."""
    graph = without_dead(rerolled(graph).graph)
    graph = _pruned(with_real_loops(with_kept_values(graph)), optimised)
    fewer = with_compressed_jacobians(expanded(without_dead(with_pairs(graph))))
    plain = with_block_products(simplified(scalarized(with_contractions(fewer))))
    early = with_early_gathers(plain)
    joined = with_sums_of_parts(early if early is plain else simplified(early))
    return late(_taken(with_early_permutes(joined)))


def with_contractions(graph: Graph) -> Graph:
    """Write contractions in the cheapest order, and not what they were written as."""
    found = contracted(graph)
    return without_dead(found.graph) if found.where else graph


def _taken(graph: Graph) -> Graph:
    """Prune loops again: a pass may have made uses of their results dead."""
    return _pruned(without_dead(graph), _taken)


def _pruned(graph: Graph, inner: Callable[[Graph], Graph]) -> Graph:
    """Prune loops, and what they alone used."""
    found = pruned(graph, inner)
    return graph if found is graph else without_dead(found)
