"""Re-roll loops of Python: records that repeat become the body of a loop record.

The loop computes what the records did, in the same order.  It reads what differs from trip to trip
as rows; what is read of it outside are its last carries, or outputs of every trip.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from tapegrad.base.text_tables import counted
from tapegrad.compiler.ir.control_ops import EMPTY, LOOP, TAKE, Repeat, Sub
from tapegrad.compiler.ir.graph import Builder, Graph, Node, Rewritten, reached
from tapegrad.compiler.ir.loop_plan import Plan, Refused, Rows, planned
from tapegrad.compiler.ir.repeats import Records, Repetition, repetitions
from tapegrad.compiler.ir.store_forwarding import forwarded
from tapegrad.ops.core import Op
from tapegrad.ops.shape import cat, getitem, permute, reshape, stack, unsqueeze

TRIPS = 8  # at least, of a loop
# Records that a loop must save to pay.  One on a number, which straight code keeps in a register,
# counts as a part of one: the gradient of a loop over numbers takes up to 1.4 times as long.
SAVED = 150
NUMBER = 0.1
LOOPS = 32  # of a graph: each takes a pass over it
TRIES = 4  # repetitions that are looked at if the best ones cannot become loops
JOINED = 8  # entries of an array from which on a concatenation of them is one of slices


def rerolled(graph: Graph, blocked: Container[int] = ()) -> Rewritten:
    """Make loops of what repeats among the live records, once stores to arrays are forwarded.

    Gradients do not pass the records that are `blocked`.
    """
    graph, total, blocked = forwarded(graph, blocked)
    notes: dict[str, None] = {}
    for _ in range(LOOPS):
        if len(graph.nodes) < SAVED:
            break
        live = reached(graph, graph.roots())
        if sum(live) < SAVED:
            break
        records = Records(graph, live, blocked)
        plan = _best(records, notes)
        if plan is None:
            break
        made = _Loop(graph, plan, records, live, blocked)
        notes[made.note()] = None
        where = made.builder.where
        blocked = made.builder.blocked | {where[p] for p in where if p in blocked}
        total = {p: where[q] for p, q in total.items() if q in where} if total else where
        graph = made.builder.done()
    more = tuple([note for note in notes if note not in graph.notes])
    return Rewritten(graph._replace(notes=(*graph.notes, *more)), total, blocked)


def _best(records: Records, notes: dict[str, None]) -> Plan | None:
    """The plan of the loop that saves most; notes why others could not be."""
    for repetition in repetitions(records, TRIPS)[:TRIES]:
        if repetition.saved < SAVED:
            break
        try:
            plan = planned(records, repetition, TRIPS)
            _check(records, plan)
        except Refused as why:
            if str(why):
                notes[f"not re-rolled: {_said(repetition)}: {why}"] = None
            continue
        return plan
    return None


def _check(records: Records, plan: Plan) -> None:
    """Refuse loops that do not pay."""
    nodes = [records.nodes[p] for p in plan.places[0]]
    if (plan.trips - 1) * sum(1 if node.size > 1 else NUMBER for node in nodes) < SAVED:
        raise Refused("straight code is faster for so few operations")
    if all(node.moves or o in plan.entries for o, node in enumerate(nodes)):
        raise Refused("")  # it moves elements alone


def _said(found: Repetition) -> str:
    trips = found.length // found.period
    return f"{trips} iterations of {counted(found.period, 'record')}"


class _Builder(Builder):
    """A builder that moves elements; `blocked` are those new records that gradients do not pass."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.blocked: set[int] = set()

    def moved(self, op: Op, arg: int, to: tuple[int, ...], **params: Any) -> int:
        """Add the record of an operation that moves elements, whose result has a shape."""
        return self.add(Node(op, (arg,), params, to, self.nodes[arg].dtype))

    def to_front(self, position: int, dim: int, at: int = 0) -> int:
        """Move a dimension."""
        if dim == at:
            return position
        shape = self.nodes[position].shape
        dims = [d for d in range(len(shape)) if d != dim]
        dims.insert(at, dim)
        return self.moved(permute, position, tuple([shape[d] for d in dims]), dims=tuple(dims))

    def slices(self, source: int, index: tuple[Any, ...]) -> int:
        """Add a view of an array."""
        shape = np.broadcast_to(EMPTY[:0].sum(), self.nodes[source].shape)[index].shape
        return self.moved(getitem, source, shape, index=index)


class _Loop:
    """Puts a loop in the place of the records that it repeats.

    `stacked` are the records whose values of every trip are read outside, `last` those of which
    the last one is, though they are not carried.
    """

    def __init__(
        self, graph: Graph, plan: Plan, records: Records, live: Sequence[bool],
        blocked: Container[int],
    ) -> None:  # fmt: skip
        self.plan, self.graph, self.blocked = plan, graph, blocked
        self.nodes = graph.nodes
        self.trips, self.period = plan.trips, plan.period
        self.start = int(records.order[plan.places[0, 0]])
        self.order = records.order
        self.builder = builder = _Builder(graph)
        first, last = int(plan.places[0, 0]), int(plan.places[-1, -1])
        outside = np.ones(len(self.nodes), bool)
        outside[plan.places] = False
        outside[last] = True
        for position in np.flatnonzero(outside).tolist():
            node = self.nodes[position]
            if position == last:
                self._read(live, last)
                self._emit()
            elif position > first and node.op is not None and not live[position]:
                continue
            elif position > last and node.moves == "concat" and self._joins(node):
                builder.where[position] = self._joined(node)
            else:
                builder.copy(position)

    def note(self) -> str:
        """What was made."""
        plan = self.plan
        return (
            f"re-rolled: {self.trips} iterations of {counted(self.period, 'record')}, which carry "
            f"{counted(len(plan.carries), 'value')} and read rows of "
            f"{counted(len(plan.rows), 'array')}"
        )

    def _trip(self, position: int) -> tuple[int, int] | None:
        """Of which trip a record is, and which of its records."""
        order = int(self.order[position]) - self.start
        if not 0 <= order < self.trips * self.period:
            return None
        return order // self.period, order % self.period

    def _read(self, live: Sequence[bool], last: int) -> None:
        """Find what is read outside."""
        wanted: dict[int, set[int]] = {}
        readers = [node.args for p, node in enumerate(self.nodes[last + 1 :], last + 1) if live[p]]
        for args in (*readers, self.graph.roots()):
            for a in args:
                if (at := self._trip(a)) is not None:
                    wanted.setdefault(at[1], set()).add(at[0])
        end = self.trips - 1
        for o, lag in self.plan.carries:
            # Of a list of all trips' values the last one is read as the others are.
            if not {end, end - 1} <= wanted.get(o, set()) or lag > 1:
                wanted.get(o, set()).discard(self.trips - lag)
        self.wanted = wanted
        self.last = [o for o, trips in wanted.items() if trips == {end}]
        self.stacked = [o for o, trips in wanted.items() if trips - {end}]

    def _emit(self) -> None:
        builder, plan = self.builder, self.plan
        inits = [builder.where[p] for p in plan.inits]
        for o in self.last:
            node = self._node(o)
            zeros = np.zeros(node.shape, node.dtype)
            inits.append(builder.add(Node(None, (), {}, node.shape, node.dtype, zeros)))
        rows = [self._rows(row) for row in plan.rows]
        body, rest = self._body(len(inits))
        form = Repeat(body, None, len(inits), len(rows), self.trips, False)
        args = (*inits, *rows, *[builder.where[p] for p in rest])
        at = builder.add(Node(LOOP, args, {"form": form}, EMPTY.shape, EMPTY.dtype))
        carries = [*plan.carries, *[(o, 1) for o in self.last]]
        for k, (o, lag) in enumerate(carries):
            builder.where[int(plan.places[self.trips - lag, o])] = self._take(at, k, o)
        for k, o in enumerate(self.stacked, len(inits)):
            whole = self._take(at, k, o, self.trips)
            for t in sorted(self.wanted[o]):
                builder.where[int(plan.places[t, o])] = builder.slices(whole, (t,))

    def _node(self, o: int) -> Node:
        return self.nodes[int(self.plan.places[0, o])]

    def _take(self, loop: int, k: int, o: int, *trips: int) -> int:
        node = self._node(o)
        shape = (*trips, *node.shape)
        return self.builder.add(Node(TAKE, (loop,), {"k": k}, shape, node.dtype))

    def _rows(self, row: Rows) -> int:
        """The rows of one value for each trip."""
        if row.source >= 0:
            part = self.builder.slices(self.builder.where[row.source], row.part)
            if row.blocked:
                self.builder.blocked.add(part)
            return self.builder.to_front(part, row.dim)
        value = np.stack([_constant(self.nodes[p]) for p in row.constants])
        return self.builder.add(Node(None, (), {}, value.shape, value.dtype, value))

    def _body(self, carries: int) -> tuple[Sub, list[int]]:
        """The graph of a trip, and the loop invariants that it reads."""
        plan = self.plan
        nodes: list[Node] = []
        inputs: dict[int, int] = {}
        made: dict[tuple[str, int], int] = {}
        rest: list[int] = []

        def entrance(k: int, node: Node, shape: tuple[int, ...]) -> int:
            nodes.append(Node(None, (), {"k": k}, shape, node.dtype))
            inputs[k] = len(nodes) - 1
            return inputs[k]

        for k, (o, _) in enumerate(plan.carries):
            made["carry", k] = entrance(k, self._node(o), self._node(o).shape)
        for k, row in enumerate(plan.rows):
            node = self._entry(row)
            made["row", k] = entrance(carries + k, node, node.shape)
        before = carries + len(plan.rows)
        for o, operands in enumerate(plan.operands):
            if o in plan.entries:
                made["own", o] = made["row", plan.entries[o]]
                continue
            for operand in operands:
                if operand[0] != "fixed" or operand in made:
                    continue
                node = self.nodes[operand[1]]
                if node.value is not None:
                    nodes.append(node)
                    made[operand] = len(nodes) - 1
                else:
                    made[operand] = entrance(before + len(rest), node, node.shape)
                    rest.append(operand[1])
            nodes.append(self._node(o).on(tuple([made[operand] for operand in operands])))
            made["own", o] = len(nodes) - 1
        outputs = [
            made["own", o] if lag == 1 else made["carry", plan.carries.index((o, lag - 1))]
            for o, lag in plan.carries
        ]
        outputs += [made["own", o] for o in (*self.last, *self.stacked)]
        blocked = [
            made["own", o] for o in range(self.period)
            if o not in plan.entries and int(plan.places[0, o]) in self.blocked
        ]  # fmt: skip
        return Sub(nodes, inputs, tuple(outputs), None, frozenset(blocked)), rest

    def _entry(self, row: Rows) -> Node:
        """A record like the entries of some rows."""
        if row.source < 0:
            return self.nodes[row.constants[0]]
        source = self.nodes[row.source]
        whole = np.broadcast_to(EMPTY[:0].sum(), source.shape)[row.part]
        return Node(None, (), {}, np.moveaxis(whole, row.dim, 0).shape[1:], source.dtype)

    # -- concatenations of what the trips gave -------------------------------------------------

    def _entries(self, a: int) -> tuple[int, int] | None:
        """Whether a record of the new graph is an entry of an array: which one."""
        node = self.builder.nodes[a]
        if node.op is not getitem or len(node.params["index"]) != 1:
            return None
        index = node.params["index"][0]
        return (node.args[0], index) if type(index) is int and index >= 0 else None

    def _joins(self, node: Node) -> bool:
        """Whether a concatenation is of entries of one array, one after the other."""
        if node.op not in (stack, cat):
            return False
        return any(len(part) >= JOINED for part in self._parts(node))

    def _parts(self, node: Node) -> list[list[int]]:
        """The operands, those together that are entries one after the other."""
        found: list[list[int]] = []
        before: tuple[int, int] | None = None
        for a in node.args:
            at = self.builder.where[a]
            entry = None if a in self.blocked else self._entries(at)
            if entry is not None and before is not None and entry == (before[0], before[1] + 1):
                found[-1].append(at)
            else:
                found.append([at])
            before = entry
        return found

    def _joined(self, node: Node) -> int:
        """A concatenation with slices in place of entries."""
        builder, dim = self.builder, node.params["dim"]
        pieces = []
        for part in self._parts(node):
            shape = builder.nodes[part[0]].shape
            if len(part) == 1:
                if node.op is stack:
                    more = (*shape[:dim], 1, *shape[dim:])
                    pieces.append(builder.moved(unsqueeze, part[0], more, dims=(dim,)))
                else:
                    pieces.append(part[0])
                continue
            entry = self._entries(part[0])
            assert entry is not None
            lines = builder.slices(entry[0], (slice(entry[1], entry[1] + len(part)),))
            lines = builder.to_front(lines, 0, dim)
            if node.op is cat:
                more = (*shape[:dim], len(part) * shape[dim], *shape[dim + 1 :])
                lines = builder.moved(reshape, lines, more, shape=more)
            pieces.append(lines)
        if len(pieces) == 1:
            return pieces[0]
        return builder.add(Node(cat, tuple(pieces), {"dim": dim}, node.shape, node.dtype))


def _constant(node: Node) -> np.ndarray:
    assert node.value is not None
    return node.value
