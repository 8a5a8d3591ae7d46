"""Virtual concatenations: loops read their pieces, and nothing is written.

A join is a piecewise map: its sections are windows of other values, or one number.  So is a slice
of a join, and a join of joins.  The domain of a loop that reads one is split where sections begin
or end: in each box (see `domain_split`) a section covers everything, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from tapegrad.compiler.ir.copy_plans import ADDED, PLANS
from tapegrad.compiler.ir.graph import Graph, Node
from tapegrad.compiler.ir.piecewise import (
    Cuts,
    Section,
    VirtualConcats,
    boxes_in,
    cuts_of,
    intervals,
    sections_of,
    within,
)
from tapegrad.compiler.llvm.scalar_ops import cheap
from tapegrad.compiler.schedule.concat_in_place import place_pieces
from tapegrad.compiler.schedule.step_ir import (
    JOINED,
    MAP,
    PIECES,
    REDUCE,
    WINDOW,
    Loop,
    ScheduleState,
)

LEAST = 1 << 10  # elements of a join from which on materialising costs more than splitting a loop
# Most boxes of a loop: by its size, one for EACH elements, within limits.
FEWEST, EACH, MOST = 5, 1 << 12, 27
SEEN = 64  # boxes up to which slices of a join are considered
DEPTH = 4  # most cheap operations in a chain


# -- which they are ----------------------------------------------------------------------------


def unwritten(graph: Graph, kinds: Any) -> VirtualConcats:
    """The joins, and windows of them, that need not be materialised.

    `kinds` says how a record is scheduled.
    """
    sections: dict[int, list[Section]] = {}
    for position, node in enumerate(graph.nodes):
        large = node.op in PLANS and node.size >= LEAST and kinds(node) == PIECES
        view = bool(node.args) and node.args[0] in sections and kinds(node) == WINDOW
        if large or view:
            found = sections_of(graph, node)
            if found is not None and boxes_in(cuts_of(found)) <= SEEN:
                sections[position] = found
    reads = [0] * len(graph.nodes)
    if not sections:
        return VirtualConcats(sections, {}, reads)
    written = {k: found for k, found in sections.items() if graph.nodes[k].op in PLANS}
    for root in graph.roots():
        sections.pop(root, None)
        reads[root] += 2
    for position in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[position]
        if node.name == ADDED and reads[position] > 1:
            sections.pop(position, None)  # reading it is slower than reading memory
        for a in set(node.args):
            reads[a] += reads[position] if position in sections else 1
            if a in sections and position not in sections and position not in written:
                alike = graph.nodes[a].shape == node.shape
                if not (kinds(node) == REDUCE or (kinds(node) == MAP and alike)):
                    del sections[a]
    for position in list(sections):  # views of joins that are materialised
        node = graph.nodes[position]
        if node.op not in PLANS and node.args[0] not in sections:
            del sections[position]
    for position in list(written):
        node = graph.nodes[position]
        sums = node.name == ADDED or not sections.keys().isdisjoint(node.args)
        if position in sections or not sums:
            del written[position]
    return VirtualConcats(sections, written, reads)


# -- in a schedule -----------------------------------------------------------------------------


def place_joined(schedule: ScheduleState, position: int) -> None:
    """Note the sections of a virtual join, with nested ones flattened."""
    found: list[Section] = []
    known = schedule.unwritten.sections.get(position) or schedule.unwritten.written[position]
    for section in known:
        parts: list[Section] | None = None
        if isinstance(section.source, int) and schedule.kinds[section.source] == JOINED:
            parts = within(section, schedule.sections[section.source])
            if parts is None:
                write(schedule, section.source)
        found += [section] if parts is None else parts
    schedule.sections[position] = found
    schedule.home[position] = max(
        [schedule.ready(s.source) for s in found if isinstance(s.source, int)], default=-1
    )


def place_written(schedule: ScheduleState, position: int, node: Node) -> None:
    """Have a loop materialise a join element by element."""
    place_joined(schedule, position)
    if _too_many(_merged(schedule, [position])):
        write(schedule, position)
    else:
        loop = schedule.begin(node.shape)
        schedule.home[position] = schedule.latest[node.shape]
        loop.nodes.append(position)
        loop.members.add(position)
        ensure_join(schedule, position, loop)


def _unwritten(schedule: ScheduleState, args: Iterable[int]) -> list[int]:
    return [a for a in args if schedule.kinds[a] == JOINED]


def limit_joins(schedule: ScheduleState, node: Node) -> None:
    """Materialise joins that a record reads, if it would read too many at once."""
    args = _unwritten(schedule, node.args)
    while args and _too_many(_merged(schedule, args)):
        write(schedule, args.pop())


def accepts(schedule: ScheduleState, loop: Loop, args: Iterable[int]) -> bool:
    """Whether a loop can read some joins beside those that it reads already."""
    more = [a for a in _unwritten(schedule, args) if a not in loop.joined]
    return not more or not _too_many(_merged(schedule, [*loop.joined, *more]))


def readable(schedule: ScheduleState, position: int, loop: Loop) -> bool:
    """Whether a loop can read the pieces of a join, all of which are in memory."""
    if schedule.kinds[position] != JOINED or not accepts(schedule, loop, (position,)):
        return False
    sources = [s.source for s in schedule.sections[position] if isinstance(s.source, int)]
    return all(source in schedule.places for source in sources)


def ensure_join(schedule: ScheduleState, position: int, loop: Loop) -> None:
    """Make a join available in a loop: its sources are loaded, or computed in this loop alone."""
    if position in loop.joined:
        return
    loop.joined.add(position)
    for section in schedule.sections[position]:
        source = section.source
        if not isinstance(source, int) or source in schedule.places:
            continue
        if _moves(schedule, section, loop):
            schedule.loop(schedule.home[source]).thinned = True
        else:
            schedule.plain(source)


def write(schedule: ScheduleState, position: int) -> None:
    """Materialise a join after all, and first the joins that it is made of, however many stand one
    behind the other.
    """
    todo = [position]
    while todo:
        node = schedule.graph.nodes[todo[-1]]
        before = [a for a in node.args if schedule.kinds[a] == JOINED]
        if before:
            todo += before
            continue
        at = todo.pop()
        if at != position and schedule.kinds[at] != JOINED:  # it was there twice
            continue
        if node.op in PLANS:
            schedule.kinds[at] = PIECES
            place_pieces(schedule, at, node)
        else:
            schedule.kinds[at] = WINDOW
            schedule.window(at, node)


def _moves(schedule: ScheduleState, section: Section, loop: Loop) -> bool:
    """Whether the source of a section is computed in the reading loop rather than stored.

    It is if that is its only use, or if it is cheap, as for any other value.
    """
    source = section.source
    assert isinstance(source, int)
    aligned = len(section.dims) == len(section.extent)
    if not aligned or any(d not in (-1, t) for t, d in enumerate(section.dims)):
        return False
    if _alone(schedule, source):
        return True
    read = {id(schedule.places[a].buffer) for a in loop.members if a in schedule.places}
    more: set[int] = set()
    return _quick(schedule, source, more, DEPTH) and len(more - read) < 2


def _quick(schedule: ScheduleState, position: int, more: set[int], depth: int) -> bool:
    """Whether a value is cheap to compute; `more` collects the places that it loads."""
    node = schedule.graph.nodes[position]
    if schedule.kinds[position] != MAP or not cheap(node.name) or not depth:
        return False
    for a in node.args:
        place = schedule.places.get(a)
        if place is not None:
            if place.gathers:
                return False
            more.add(id(place.buffer))
        elif not schedule.literal(a):
            alike = schedule.graph.nodes[a].shape == node.shape
            if not alike or not _quick(schedule, a, more, depth - 1):
                return False
    return True


def _alone(schedule: ScheduleState, position: int) -> bool:
    """Whether a value, and what it is computed from but not stored, is used by one loop alone."""
    graph, shape = schedule.graph, schedule.graph.nodes[position].shape
    todo = [position]
    while todo:
        at = todo.pop()
        node = graph.nodes[at]
        if at in schedule.places:
            if schedule.places[at].gathers:
                return False
            continue
        computed = schedule.kinds[at] == MAP and node.op not in PLANS and node.shape == shape
        if not computed or schedule.unwritten.reads[at] != 1:
            return False
        todo += [a for a in node.args if not schedule.literal(a)]
    return True


# -- how a loop is cut -------------------------------------------------------------------------


def _merged(schedule: ScheduleState, joins: list[int]) -> Cuts:
    found = [cuts_of(schedule.sections[a]) for a in joins]
    return [set().union(*parts) for parts in zip(*found, strict=True)]


def intervals_of(schedule: ScheduleState, joins: list[int]) -> list[list[tuple[int, int]]]:
    """How joins split the domain of a loop: in each dimension, starts and lengths."""
    return intervals(_merged(schedule, joins))


def _too_many(cuts: Cuts) -> bool:
    """Whether a loop would be split into more boxes than pay."""
    size = prod([max(ends) for ends in cuts])
    return boxes_in(cuts) > min(max(FEWEST, size // EACH), MOST)
