"""Records that own graphs: loops and branches.

A *loop* runs its body's graph again and again, a *branch* runs one of its arms.  The record itself
has no value; a `take` record of it is one of its results.

A loop's operands are the number of trips (if it is counted by an operand), the first carries, the
rows (arrays of which each trip reads one entry) and loop invariants.  The graphs read carries, one
entry of each row and the invariants, in this order.  Its results are the last carries,
the outputs of all trips, the carries with which each trip began, and the number of trips.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.ir.graph import Graph, Node, reached
from tapegrad.dispatch.dispatch import called as go
from tapegrad.ops.core import Spec
from tapegrad.tensor import wrap

REGION = "region"
EMPTY = np.empty(0)
GLANCED = 4  # trips of a loop that are run while it is traced


class Region:
    """The operation of a loop or branch, in place of an `Op`; see `trace.control_vjp`."""

    __slots__ = ("name",)
    kind = REGION

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


# `Node.op` is typed as an `Op`; code that handles regions checks for these.
LOOP: Any = Region("loop")
BRANCH: Any = Region("branch")
TAKE: Any = Region("take")


class Bundle(NamedTuple):
    """The adjoints of some results of a loop or a branch: for each the terms to sum."""

    parts: dict[int, list[Any]]

    def plus(self, other: Bundle) -> Bundle:
        """Both together."""
        found = dict(self.parts)
        for k, terms in other.parts.items():
            found[k] = [*found.get(k, ()), *terms]
        return Bundle(found)


class Sub:
    """A graph that a record owns: `inputs[k]` is the position of input k, if it is there.

    Gradients do not pass the records that are `blocked`.  `origin` is the trace that it comes from,
    as long as derivatives are taken.  `pulled`: a user's `Function` stands behind one of its
    records, or of those within, whose `backward` may read any of the records of that trace.
    """

    __slots__ = ("blocked", "inputs", "nodes", "origin", "outputs", "pulled")

    def __init__(
        self, nodes: list[Node], inputs: dict[int, int], outputs: tuple[int, ...],
        origin: Any = None, blocked: frozenset[int] = frozenset(), *, pulled: bool = False,
    ) -> None:  # fmt: skip
        self.nodes = nodes
        self.inputs = inputs
        self.outputs = outputs
        self.origin = origin
        self.blocked = blocked
        self.pulled = pulled

    def __repr__(self) -> str:
        return f"<{len(self.nodes)} records>"

    @classmethod
    def of(cls, graph: Graph) -> Sub:
        """The same as what a record owns."""
        places = {n.params["k"]: i for i, n in enumerate(graph.nodes) if n.name == "input"}
        return cls(graph.nodes, places, graph.outputs)

    def graph(self) -> Graph:
        """The records as a graph, whose unused inputs may go."""
        return Graph(self.nodes, (), self.outputs, ())

    def specs(self) -> list[Spec]:
        """Shapes and dtypes of the outputs."""
        return [self.nodes[i].spec for i in self.outputs]

    def live(self) -> list[bool]:
        """For each record, whether an output depends on it, or its derivative may."""
        return [True] * len(self.nodes) if self.pulled else reached(self.graph(), self.outputs)

    def used(self) -> set[int]:
        """The numbers of the live inputs."""
        live = self.live()
        return {k for k, i in self.inputs.items() if live[i]}

    def renumbered(self, numbers: dict[int, int]) -> Sub:
        """The same with other numbers for its inputs."""
        nodes = list(self.nodes)
        inputs = {}
        for k, i in self.inputs.items():
            # Inputs without a new number are dead.
            new = numbers.get(k, -1)
            old = nodes[i]
            nodes[i] = Node(None, (), {"k": new}, old.shape, old.dtype)
            if new >= 0:
                inputs[new] = i
        return Sub(
            nodes, inputs, self.outputs, self.origin, self.blocked, pulled=self.pulled
        )  # fmt: skip


class Repeat(NamedTuple):
    """A loop: its graphs, the numbers of carries and rows, and the trip count.

    It runs `trips` times; or as long as the graph `until` gives True; or, without both, as often as
    its first operand says.  `backwards`: the last entries of the rows come first.
    """

    body: Sub
    until: Sub | None
    carries: int
    rows: int
    trips: int | None
    backwards: bool

    @property
    def outputs(self) -> int:
        """The number of per-trip outputs."""
        return len(self.body.outputs) - self.carries

    @property
    def counted(self) -> bool:
        """Whether the number of trips is the first operand."""
        return self.trips is None and self.until is None

    def split(self, args: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """The operands: first carries, rows, and the rest."""
        args = args[self.counted :]
        n, m = self.carries, self.carries + self.rows
        return args[:n], args[n:m], args[m:]

    def entry(self, k: int) -> int:
        """The number of the result that holds carry k at the start of each trip."""
        return self.carries + self.outputs + k

    @property
    def counter(self) -> int:
        """The number of the result that holds the trip count."""
        return self.entry(self.carries)

    def unknown(self, k: int) -> bool:
        """Whether the length of a result is known only at run time."""
        return self.trips is None and self.carries <= k < self.counter

    def graphs(self) -> list[Sub]:
        """The graphs that it owns."""
        return [self.body] if self.until is None else [self.body, self.until]


class Glance:
    """The trips of a loop that are run while it is traced, for shapes and dtypes.

    `cuts` counts the loops that were left before their end, whose results are guesses.
    """

    __slots__ = ("cuts", "trips")

    def __init__(self, trips: int | None) -> None:
        self.trips = trips
        self.cuts = 0

    def ends(self, t: int) -> bool:
        """Whether a loop is cut short after t trips."""
        self.cuts += t == self.trips
        return t == self.trips


def run(sub: Sub, values: dict[int, np.ndarray], glance: Glance) -> list[np.ndarray]:
    """The outputs of a graph for some inputs, record by record."""
    live = reached(sub.graph(), sub.outputs)
    found: list[Any] = [None] * len(sub.nodes)
    for position, node in enumerate(sub.nodes):
        if not live[position]:
            continue
        args = [found[a] for a in node.args]
        if node.op is None:
            found[position] = values[node.params["k"]] if node.value is None else node.value
        elif node.op is TAKE:
            found[position] = result(args[0], node.params["k"])
        elif node.op.kind is REGION:
            found[position] = run_region(node.op, node.params, args, glance)
        else:
            found[position] = go(node.op, tuple([wrap(a) for a in args]), node.params)._a
    return [found[i] for i in sub.outputs]


def run_region(
    op: Any, params: dict[str, Any], args: list[np.ndarray], glance: Glance
) -> list[Any]:
    """All results of a loop or a branch; those of every trip are lists."""
    if op is BRANCH:
        arm = params["arms"][0 if args[0] else 1]
        return run(arm, dict(enumerate(args[1:])), glance)
    form: Repeat = params["form"]
    n, m = form.carries, form.carries + form.rows
    given = args[form.counted :]
    carry, rows, rest = given[:n], given[n:m], given[m:]
    trips = int(args[0]) if form.counted else form.trips
    same = dict(enumerate(rest, m))
    outputs: list[list[np.ndarray]] = [[] for _ in range(form.outputs)]
    entries: list[list[np.ndarray]] = [[] for _ in range(n)]
    t = 0
    while trips is None or t < trips:
        now = {**same, **dict(enumerate(carry))}
        if form.until is not None and not run(form.until, now, glance)[0]:
            break
        if glance.ends(t):
            break
        at = t if not form.backwards else (trips or 0) - 1 - t
        found = run(form.body, {**now, **dict(enumerate([r[at] for r in rows], n))}, glance)
        for entry, value in zip(entries, carry, strict=True):
            entry.append(value)
        for output, value in zip(outputs, found[n:], strict=True):
            output.append(value)
        carry = found[:n]
        t += 1
    if form.backwards:
        for each in (*outputs, *entries):
            each.reverse()
    specs = form.body.specs()
    count = t if trips is None else trips
    stacks = [
        Stack(x, count, spec)
        for x, spec in zip((*outputs, *entries), (*specs[n:], *specs[:n]), strict=True)
    ]
    return [*carry, *stacks, np.asarray(count)]


class Stack(NamedTuple):
    """The values of each trip, or of the first ones."""

    values: list[np.ndarray]
    length: int
    spec: Spec


def result(found: list[Any], k: int) -> np.ndarray:
    """One result of a loop or a branch."""
    value = found[k]
    if not isinstance(value, Stack):
        return np.asarray(value)
    if not value.values:
        return np.empty((0, *value.spec.shape), value.spec.dtype)
    if len(value.values) < value.length:
        return np.broadcast_to(value.values[0], (value.length, *value.spec.shape))
    return np.stack(value.values)


def result_spec(node: Node, k: int) -> Spec | None:
    """Shape and dtype of one result; None if its length is known only at run time."""
    if node.op is BRANCH:
        arm: Sub = node.params["arms"][0]
        return arm.specs()[k]
    form: Repeat = node.params["form"]
    if k == form.counter:
        return Spec((), np.dtype(np.int64))
    if form.unknown(k):
        return None
    specs = form.body.specs()
    shape, dtype = specs[k % len(specs)]
    trips = () if k < form.carries or form.trips is None else (form.trips,)
    return Spec((*trips, *shape), dtype)


def owns_graphs(node: Node) -> bool:
    """Whether a record is a loop or a branch."""
    return node.op is LOOP or node.op is BRANCH


def graphs_of(node: Node) -> list[Sub]:
    """The graphs that a loop or a branch owns."""
    return list(node.params["arms"]) if node.op is BRANCH else node.params["form"].graphs()


def grows(node: Node, k: int) -> bool:
    """Whether the size of a result is known only at run time."""
    return node.op is LOOP and bool(node.params["form"].unknown(k))
