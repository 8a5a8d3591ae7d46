"""The tape of a trace: records in topological order, results and guards.

A record names its operands by position.  Passes take a graph and return another one; records are
immutable.  `check` tests the invariants of a graph.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.core import Op, Spec
from tapegrad.ops.shape import clone
from tapegrad.tape.shape_table import Shape


class Node:
    """One record: an operation on earlier records, an input, or a constant.

    `op` is None for an input (`params["k"]` is its number) and a constant (`value` holds it).
    """

    __slots__ = ("args", "dtype", "op", "params", "shape", "value")

    def __init__(
        self, op: Op | None, args: tuple[int, ...], params: dict[str, Any], shape: Shape,
        dtype: np.dtype[Any], value: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self.op = op
        self.args = args
        self.params = params
        self.shape = shape
        self.dtype = dtype
        self.value = value

    @property
    def name(self) -> str:
        """The name of the operation, or `input` or `constant`."""
        if self.op is not None:
            return self.op.name
        return "input" if self.value is None else "constant"

    @property
    def moves(self) -> str:
        """How the operation moves elements (`Op.moves`); empty if it computes."""
        return getattr(self.op, "moves", "")

    @property
    def reduces(self) -> str:
        """The combining operation of a reduction (`Op.reduces`)."""
        return getattr(self.op, "reduces", "")

    @property
    def spec(self) -> Spec:
        """Shape and dtype of the result."""
        return Spec(self.shape, self.dtype)

    @property
    def size(self) -> int:
        """The number of elements of the result."""
        return prod(self.shape)

    @property
    def uniform(self) -> bool:
        """Whether this is a constant broadcast from a single element."""
        value = self.value
        if value is None or not value.size:
            return False
        return all(s == 0 or n == 1 for n, s in zip(value.shape, value.strides, strict=True))

    def on(self, args: tuple[int, ...]) -> Node:
        """The same record on other operands."""
        made = _new(Node)  # without `__init__`: programs are long
        made.op, made.args, made.params = self.op, args, self.params
        made.shape, made.dtype, made.value = self.shape, self.dtype, self.value
        return made


_new = Node.__new__


def adds_to_zeros(node: Node) -> bool:
    """Whether a record is the transpose of a gather."""
    return "scatter add" in node.moves and "shape" in node.params


class Guard(NamedTuple):
    """A value that Python code read while it was traced: another value needs another trace."""

    position: int
    expected: np.generic | bool | int | float
    line: tuple[str, int] = ("unknown", 0)  # of the user's program that read it


class Graph(NamedTuple):
    """A trace: records, the positions of inputs and results, and the guards."""

    nodes: list[Node]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    guards: tuple[Guard, ...]
    notes: tuple[str, ...] = ()  # what became of the loops of Python that were found on the trace

    def roots(self) -> list[int]:
        """The positions that must be computed."""
        return [*self.outputs, *[g.position for g in self.guards]]

    def ops(self) -> set[Op]:
        """The operations of the records."""
        return {node.op for node in self.nodes if node.op is not None}

    def uses(self) -> list[int]:
        """How often each record is read: by other records, as a result, by a guard."""
        found = [0] * len(self.nodes)
        for node in self.nodes:
            for a in node.args:
                found[a] += 1
        for root in self.roots():
            found[root] += 1
        return found

    def __str__(self) -> str:
        notes: dict[int, str] = {}
        for k, position in enumerate(self.outputs):
            notes[position] = notes.get(position, "") + f"  -> result {k}"
        for guard in self.guards:
            notes[guard.position] = notes.get(guard.position, "") + f"  must be {guard.expected!r}"
        lines = []
        for position, node in enumerate(self.nodes):
            args = " ".join(f"%{a}" for a in node.args)
            params = " ".join(f"{k}={_short(v)}" for k, v in node.params.items())
            if node.value is not None and node.value.size == 1:
                params = f"{node.value.item():g}"
            shape = "x".join(map(str, node.shape)) or "-"
            text = f"%{position:<5} {node.name:<16} {args:<18} {shape:<10} {node.dtype.name:<8} "
            lines.append((text + params + notes.get(position, "")).rstrip())
        return "\n".join(lines)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


class Rewritten(NamedTuple):
    """A graph, where another one's records went, and those that gradients do not pass."""

    graph: Graph
    where: dict[int, int]
    blocked: Container[int]


class Builder:
    """Builds a graph from another one: `where[old]` is the new position."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.where: dict[int, int] = {}

    def add(self, node: Node) -> int:
        """Append a record; returns its position."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def remapped(self, node: Node) -> Node:
        """A record of the old graph with its operands in the new one."""
        where, args = self.where, node.args
        if not args:
            return node
        given = tuple([where[a] for a in args])
        return node if given == args else node.on(given)

    def copy(self, position: int) -> None:
        """Append a record of the old graph, with its operands in the new one."""
        self.where[position] = self.add(self.remapped(self.graph.nodes[position]))

    def copy_all(self, positions: Iterable[int]) -> None:
        """Append records of the old graph, with their operands in the new one."""
        where, nodes, made = self.where, self.graph.nodes, self.nodes
        for position in positions:
            node = nodes[position]
            args = node.args
            if args:
                if len(args) == 2:
                    given: tuple[int, ...] = where[args[0]], where[args[1]]
                elif len(args) == 1:
                    given = (where[args[0]],)
                else:
                    given = tuple([where[a] for a in args])
                if given != args:
                    node = node.on(given)
            where[position] = len(made)
            made.append(node)

    def done(self) -> Graph:
        """The new graph."""
        where, graph = self.where, self.graph
        return Graph(
            self.nodes,
            tuple([where[i] for i in graph.inputs]),
            tuple([where[i] for i in graph.outputs]),
            tuple([g._replace(position=where[g.position]) for g in graph.guards]),
            graph.notes,
        )


def reached(graph: Graph, roots: Iterable[int]) -> list[bool]:
    """For each record, whether a root depends on it."""
    live = [False] * len(graph.nodes)
    for root in roots:
        live[root] = True
    for position in range(len(graph.nodes) - 1, -1, -1):
        if live[position]:
            for a in graph.nodes[position].args:
                live[a] = True
    return live


def check(graph: Graph) -> None:
    """Assert the invariants of a graph."""
    for position, node in enumerate(graph.nodes):
        assert all(0 <= a < position for a in node.args), f"%{position} reads what comes later"
        assert (node.op is None) == (not node.args) or node.op is not None, f"%{position}"
        if node.value is not None:
            assert node.value.shape == node.shape, f"%{position}: a constant of another shape"
    for position in (*graph.inputs, *graph.roots()):
        assert 0 <= position < len(graph.nodes), f"%{position} does not exist"


def same_record(nodes: list[Node], a: int, b: int, depth: int = 8) -> bool:
    """Whether two records are one operation on the same records, copies aside."""
    while nodes[a].op is clone:
        a = nodes[a].args[0]
    while nodes[b].op is clone:
        b = nodes[b].args[0]
    x, y = nodes[a], nodes[b]
    if a == b:
        return True
    if x.op is not y.op or len(x.args) != len(y.args) or not depth:
        return False
    if any(isinstance(value, np.ndarray) for value in x.params.values()) or x.params != y.params:
        return False
    if x.op is None:
        return x.value is not None and y.value is not None and np.array_equal(x.value, y.value)
    return all(same_record(nodes, *pair, depth - 1) for pair in zip(x.args, y.args, strict=True))
