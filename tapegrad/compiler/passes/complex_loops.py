"""Hand complex numbers into and out of loops and branches as two real arrays each.

The graphs that loops and branches own are optimised by themselves.  So that what they compute with
complex numbers becomes operations on parts (`complex_pairs`), a complex carry, row, invariant or
result becomes two: its real and its imaginary parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tapegrad.compiler.ir.control_ops import BRANCH, TAKE, Repeat, Sub, graphs_of, owns_graphs
from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.compiler.passes.complex_pairs import computes, is_complex, part_spec, parts_of
from tapegrad.ops.complex_parts import complex_


def with_real_loops(graph: Graph) -> Graph:
    """The graph, whose loops and branches have real operands and results alone."""
    if not any(map(owns_graphs, graph.nodes)) or not computes(graph):
        return graph
    builder = _SplitBuilder(graph)
    for position in range(len(graph.nodes)):
        builder.take(position)
    for position in graph.roots():
        builder.joined(position)
    return builder.done()


class _SplitBuilder(Builder):
    """A graph with a complex value whole (`where`), as its parts, or both."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.parts: dict[int, tuple[int, int]] = {}
        self.starts: dict[int, list[int]] = {}  # of the results of a region

    def take(self, position: int) -> None:
        """Append a record."""
        node = self.graph.nodes[position]
        if node.op is TAKE:
            self._result(position, node)
        elif owns_graphs(node):
            self._region(position, node)
        else:
            for a in node.args:
                self.joined(a)
            self.copy(position)

    def joined(self, position: int) -> None:
        """Have a value as one record."""
        if position not in self.where:
            node = self.graph.nodes[position]
            made = Node(complex_, self.parts[position], {}, node.shape, node.dtype)
            self.where[position] = self.add(made)

    def split(self, position: int) -> tuple[int, ...]:
        """The records of a value: one, or its parts."""
        node = self.graph.nodes[position]
        if not is_complex(node):
            return (self.where[position],)
        if position not in self.parts:
            self.parts[position] = parts_of(self, self.where[position], node)
        return self.parts[position]

    def _result(self, position: int, node: Node) -> None:
        (region,) = node.args
        first = self.starts[region][node.params["k"]]
        dtype = part_spec(node)[1] if is_complex(node) else node.dtype
        made = [
            self.add(Node(TAKE, (self.where[region],), {"k": first + k}, node.shape, dtype))
            for k in range(1 + is_complex(node))
        ]
        if is_complex(node):
            self.parts[position] = made[0], made[1]
        else:
            self.where[position] = made[0]

    def _region(self, position: int, node: Node) -> None:
        """A loop or a branch over the parts of its complex operands."""
        counts = node.op is BRANCH or node.params["form"].counted
        given, graphs = node.args[counts:], graphs_of(node)
        starts = _starts(self.graph.nodes, given)
        results = _starts(graphs[0].nodes, graphs[0].outputs)
        subs = [_with_real_ends(sub, starts) for sub in graphs]
        params: dict[str, Any] = {"arms": tuple(subs)}
        if node.op is not BRANCH:
            form: Repeat = node.params["form"]
            n = form.carries
            rows = starts[n + form.rows] - starts[n]
            made = Repeat(
                subs[0], subs[1] if len(subs) > 1 else None, starts[n], rows, form.trips,
                form.backwards,
            )  # fmt: skip
            params = {"form": made}
            # What the carries were, and their count.
            results += [results[-1] + k for k in results[1 : n + 1]]
        args = [self.where[a] for a in node.args[:counts]]
        args += [k for a in given for k in self.split(a)]
        self.starts[position] = results
        self.where[position] = self.add(Node(node.op, tuple(args), params, node.shape, node.dtype))


def _starts(nodes: list[Node], chosen: Sequence[int]) -> list[int]:
    """Where the ends begin that some records become, and where the last ones end."""
    return [0, *accumulate([1 + is_complex(nodes[k]) for k in chosen])]


def _with_real_ends(sub: Sub, starts: list[int]) -> Sub:
    """A graph with the parts of its complex inputs and outputs, whose inputs begin anew."""
    graph = sub.graph()
    builder = Builder(graph)
    for position, node in enumerate(graph.nodes):
        if node.op is not None or node.value is not None:
            builder.copy(position)
            continue
        first = starts[node.params["k"]]
        if not is_complex(node):
            builder.where[position] = builder.add(Node(None, (), {"k": first}, *node.spec))
            continue
        shape, dtype = part_spec(node)
        parts = [builder.add(Node(None, (), {"k": first + k}, shape, dtype)) for k in range(2)]
        builder.where[position] = builder.add(Node(complex_, tuple(parts), {}, *node.spec))
    outputs: list[int] = []
    for k in graph.outputs:
        node, here = graph.nodes[k], builder.where[k]
        outputs += parts_of(builder, here, node) if is_complex(node) else [here]
    return Sub.of(Graph(builder.nodes, (), tuple(outputs), ()))
