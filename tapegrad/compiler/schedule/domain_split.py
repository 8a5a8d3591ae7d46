"""Split the iteration domain of a loop at the boxes of the concatenations that it reads.

A box is a part of the loop's domain in which each join is one of its sections: so each nest reads
plain windows.  A reduction over several boxes is computed as partial results.
"""

from __future__ import annotations

import itertools
from math import copysign, prod
from typing import Any

from tapegrad.compiler.ir.buffers import Place, boxed, whole
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.ir.loop_nest import ADD, SET, Nest, Store, Term, nest_of
from tapegrad.compiler.schedule.step_ir import REDUCE, Loop, ScheduleState
from tapegrad.compiler.schedule.virtual_concat import intervals_of
from tapegrad.tape.shape_table import Shape


def nests(schedule: ScheduleState, step: Loop) -> list[Nest]:
    """The nests of a loop, in order; none if all that it computes is dead."""
    domain = step.domain
    if not step.joined:
        return _without_dead([_Box(schedule, step, (0,) * len(domain), domain).nest(step.stores)])
    intervals = intervals_of(schedule, list(step.joined))
    found = []
    combined: list[Nest] = []
    stores = [_parts(schedule, domain, intervals, store, combined) for store in step.stores]
    for box in itertools.product(*[range(len(ends)) for ends in intervals]):
        first = tuple([ends[k][0] for k, ends in zip(box, intervals, strict=True)])
        extent = tuple([ends[k][1] for k, ends in zip(box, intervals, strict=True)])
        own = [
            (p, boxed(by.get(_place_of(box, place), place), first, extent), mode)
            for (p, place, mode), by in zip(step.stores, stores, strict=True)
        ]
        found.append(_Box(schedule, step, first, extent).nest(own))
    return _without_dead([*found, *combined])


def _without_dead(nests: list[Nest]) -> list[Nest]:
    return [nest for nest in nests if nest.stores]


def _place_of(box: tuple[int, ...], place: Place) -> tuple[int, ...]:
    """Which partial result of its reduction a box computes."""
    return tuple([k for k, s in zip(box, place.strides, strict=True) if s == 0])


def _parts(
    schedule: ScheduleState, domain: Shape, intervals: list[list[tuple[int, int]]],
    store: tuple[int, Place, str], combined: list[Nest],
) -> dict[tuple[int, ...], Place]:  # fmt: skip
    """The places of a reduction's partial results, if there are several; a nest adds them up."""
    _, place, mode = store
    if mode in (SET, ADD):
        return {}
    counts = [len(ends) for ends, s in zip(intervals, place.strides, strict=True) if s == 0]
    if prod(counts) == 1:
        return {}
    kept = [d for d, s in enumerate(place.strides) if s]
    shape = tuple([domain[d] for d in kept])
    table = whole(schedule.room(place.buffer.dtype, prod(counts) * prod(shape)), ())
    own = whole(table.buffer, (prod(counts), *shape))
    strides = [0] * len(domain)
    for d, s in zip(kept, own.strides[1:], strict=True):
        strides[d] = s
    found = {}
    for k, box in enumerate(itertools.product(*map(range, counts))):
        found[box] = Place(table.buffer, k * own.strides[0], domain, tuple(strides))
    target = Place(place.buffer, place.offset, own.shape, (0, *[place.strides[d] for d in kept]))
    combined.append(Nest(own.shape, (own,), (), (Store(~0, target, mode),)))
    return found


class _Box:
    """Builds the nest of one box of a loop."""

    def __init__(self, schedule: ScheduleState, step: Loop, first: Shape, extent: Shape) -> None:
        self.schedule, self.step = schedule, step
        self.first, self.extent = first, extent
        self.loads: list[Place] = []
        self.where: dict[Any, int] = {}
        self.terms: list[Term] = []
        self.index: dict[Any, int] = {}

    def nest(self, stores: list[tuple[int, Place, str]]) -> Nest:
        """The nest with the given stores."""
        schedule = self.schedule
        for position in self.step.nodes:
            node = schedule.graph.nodes[position]
            if position in self.step.joined:
                continue  # one of those joins, which is written here
            args = tuple([self._operand(a) for a in node.args])
            if schedule.kinds[position] == REDUCE or node.moves == "identity":
                self.index[position] = args[0]
            else:
                self.index[position] = self._term(node.name, args, node.dtype)
        made = [Store(self._operand(p), place, mode) for p, place, mode in stores]
        if self.step.thinned:
            made = self._thin(made)
        return nest_of(self.extent, self.loads, tuple(self.terms), tuple(made))

    def _term(self, name: str, args: tuple[int, ...], dtype: Any, constant: object = None) -> int:
        self.terms.append(Term(name, args, dtype, constant))
        return len(self.terms) - 1

    def _operand(self, position: int) -> int:
        """A value at the elements of the box: a term or a load."""
        found = self.index.get(position)
        if found is None:
            if position in self.step.joined:
                found = self._joined(position)
            elif self.schedule.literal(position):
                found = self._literal(self.schedule.graph.nodes[position])
            else:
                place = self.schedule.places[position].broadcast(self.step.domain)
                return self._load(place, self.first)
            self.index[position] = found
        return found

    def _literal(self, node: Node) -> int:
        assert node.value is not None
        return self._term("constant", (), node.dtype, node.value.flat[0].item())

    def _load(self, place: Place, first: Shape) -> int:
        place = boxed(place, first, self.extent)
        key = (id(place.buffer), place.offset, place.strides, place.gathers)
        if key not in self.where:
            self.where[key] = len(self.loads)
            self.loads.append(place)
        return ~self.where[key]

    def _joined(self, position: int) -> int:
        """A join at the elements of the box: its sections there, in order."""
        schedule, node = self.schedule, self.schedule.graph.nodes[position]
        found: int | None = None
        for section in schedule.sections[position]:
            if not section.holds(self.first, self.extent):
                continue
            adds = section.mode == ADD and found is not None
            if not isinstance(section.source, int):
                # Zeros that parts would be added to are skipped: the first part is stored.
                zero = section.source == 0 and copysign(1.0, section.source) > 0
                found = None if zero else self._number(node, section.source)
                continue
            value = self._section(section.source, section.origin(self.first), section.dims)
            if schedule.graph.nodes[section.source].dtype != node.dtype:
                value = self._term("to", (value,), node.dtype)
            if adds:
                assert found is not None
                found = self._term("add", (found, value), node.dtype)
            else:
                found = value
        return self._number(node, 0.0) if found is None else found

    def _number(self, node: Node, value: float) -> int:
        key = (node.dtype, value.hex())
        if key not in self.index:
            self.index[key] = self._term("constant", (), node.dtype, value)
        return self.index[key]

    def _section(self, source: int, start: Shape, dims: Shape) -> int:
        """The elements of a section's source, from an index on."""
        schedule = self.schedule
        if source not in schedule.places:
            return self._again(source, start)
        place = schedule.plain(source)
        offset, strides = place.offset, [0] * len(self.extent)
        for k, d, s in zip(start, dims, place.strides, strict=True):
            offset += k * s
            if d >= 0:
                strides[d] = s
        seen = Place(place.buffer, offset, self.extent, tuple(strides))
        return self._load(seen, (0,) * len(self.extent))

    def _again(self, position: int, start: Shape) -> int:
        """Recompute a value in the box at shifted indices."""
        key = (position, start)
        found = self.index.get(key)
        if found is None:
            schedule, node = self.schedule, self.schedule.graph.nodes[position]
            args = []
            for a in node.args:
                if schedule.literal(a):
                    args.append(self._operand(a))
                elif a in schedule.places:
                    args.append(self._load(schedule.places[a].broadcast(node.shape), start))
                else:
                    args.append(self._again(a, start))
            if node.moves == "identity":
                found = args[0]
            else:
                found = self._term(node.name, tuple(args), node.dtype)
            self.index[key] = found
        return found

    def _thin(self, stores: list[Store]) -> list[Store]:
        """Drop dead terms and loads."""
        terms = self.terms
        live = {s.source for s in stores}
        for k in range(len(terms) - 1, -1, -1):
            if k in live:
                live.update(terms[k].args)
        new = {k: i for i, k in enumerate([k for k in range(len(terms)) if k in live])}
        used = [k for k in range(len(self.loads)) if ~k in live]
        new.update({~k: ~i for i, k in enumerate(used)})
        self.loads = [self.loads[k] for k in used]
        self.terms = [
            t._replace(args=tuple([new[a] for a in t.args]))
            for k, t in enumerate(terms)
            if k in live
        ]
        return [s._replace(source=new[s.source]) for s in stores]
