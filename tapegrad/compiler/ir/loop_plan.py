"""Plan a loop over records that repeat: what its trips carry, read and share.

Each operand of a record in the repetition is in all trips the same: a value of the trip itself; one
of an earlier trip, which is carried; or a value from outside, which is invariant, or an entry of
rows.  Trips at the ends of which this does not hold stay straight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.ir.repeats import Records, Repetition, entry_index, static

LAGS = 4  # trips that a value is carried for at most
SHARED, RELATIVE, CONSTANTS, OTHERS, UNLIKE = range(5)  # how an operand changes from trip to trip


class Refused(Exception):
    """A repetition cannot become a loop; says why."""


class Rows(NamedTuple):
    """One value from outside for each trip: entries of an array, or constants."""

    source: int  # the position of the array; -1: constants
    part: tuple[Any, ...]  # which entries: an index with a slice where the integer stood
    dim: int  # which dimension that is
    constants: tuple[int, ...]  # their positions
    blocked: bool = False  # whether gradients do not pass the entries


class Plan(NamedTuple):
    """A loop over some records of a graph.

    `places[t, o]` is the position of record o of trip t.  `operands[o]` are the operands of record
    o of each trip: ("own", record), ("carry", number), ("row", number) or ("fixed", position);
    record o itself may be an entry of rows, `entries[o]`.  A carry (record, lag) holds that record
    as it was so many trips before, and `inits` the positions of what it holds at first.
    """

    places: np.ndarray
    operands: list[list[tuple[str, int]]]
    entries: dict[int, int]
    rows: list[Rows]
    carries: list[tuple[int, int]]
    inits: list[int]

    @property
    def trips(self) -> int:
        """The number of trips."""
        return len(self.places)

    @property
    def period(self) -> int:
        """The records of a trip."""
        return int(self.places.shape[1])


class _Changes:
    """How the operands of some trips change: `kinds[a]` of operand a, `holds[t]` up to trip t."""

    def __init__(self, records: Records, start: int, period: int, trips: int) -> None:
        self.records, self.start, self.period = records, start, period
        first, last = records.starts[start], records.starts[start + trips * period]
        self.refs = records.operands[first:last].reshape(trips, -1)
        arity = np.diff(records.starts[start : start + period + 1])
        self.owner = np.repeat(np.arange(period), arity)
        order = records.order[self.refs]
        own = start + np.arange(trips)[:, None] * period + self.owner
        # Before the first record of the trip a value is negative, and of an earlier trip.
        self.record = np.where(order >= 0, self.owner - (own - order), -(1 << 40))
        near = self.record >= -LAGS * period
        specs = records.specs[self.refs]
        pairs = [
            self.refs[1:] == self.refs[:-1],
            near[1:] & near[:-1] & (self.record[1:] == self.record[:-1]),
            (specs[1:] == specs[:-1]) & (specs[1:] & 1 == 1),
            (specs[1:] == specs[:-1]) & (specs[1:] & 1 == 0),
        ]
        often = [2 * pair.sum(0) >= max(trips - 1, 1) for pair in pairs]
        self.kinds = np.select(often, range(4), UNLIKE)
        holds = np.zeros(self.refs[1:].shape, bool)
        for kind, pair in enumerate(pairs):
            holds |= pair & (self.kinds == kind)
        self.holds = np.asarray(holds.all(1))
        self.steps = self._steps(trips)

    def _steps(self, trips: int) -> dict[int, tuple[int, int]]:
        """Of records that read entries in turn: which integer of their index grows, by how much."""
        found = {}
        for o in range(self.period):
            if self.start + o not in self.records.indices:
                continue
            indices = np.array(
                [self.records.indices[self.start + t * self.period + o] for t in range(trips)]
            )
            steps = np.diff(indices, axis=0)
            step = steps[len(steps) // 2]
            self.holds &= (steps == step).all(1)
            moving = np.flatnonzero(step)
            if len(moving):
                found[o] = (int(moving[0]), int(step[moving[0]]))
                if len(moving) > 1 or self.kinds[self.owner == o][0] != SHARED:
                    self.holds[:] = False
        return found


def planned(records: Records, found: Repetition, least: int) -> Plan:
    """A loop of at least some trips; raises `Refused`."""
    start, trips = _range(records, found.start, found.period, found.length // found.period)
    for _ in range(4):
        if trips < least:
            break
        start, trips = _cut(records, start, found.period, trips)
        changes = _Changes(records, start, found.period, trips)
        early = _earliest(changes)
        if early:
            start, trips = start + early * found.period, trips - early
            continue
        ahead = start - found.period
        if ahead >= found.start:
            with_first = _Changes(records, ahead, found.period, trips + 1)
            if (inits := _free(with_first, changes)) is not None:
                return _finished(with_first, changes.kinds, inits)
        inits = _regular(changes)
        if inits is None:  # what is carried begins as something else
            start, trips = start + found.period, trips - 1
            continue
        return _finished(changes, changes.kinds, inits)
    raise Refused("what an iteration reads differs from one to the next")


def _range(records: Records, start: int, period: int, trips: int) -> tuple[int, int]:
    """The longest range of trips that read alike: where it starts, how many they are."""
    holds = _Changes(records, start, period, trips).holds
    ends = np.flatnonzero(np.concatenate(([True], ~holds, [True])))
    k = int(np.argmax(np.diff(ends)))
    return start + int(ends[k]) * period, int(ends[k + 1] - ends[k])


def _cut(records: Records, start: int, period: int, trips: int) -> tuple[int, int]:
    """Let trips begin where they carry the fewest bytes."""
    changes = _Changes(records, start, period, trips)
    reach: dict[int, int] = {}  # of each record: how far behind it is read last
    for owner, record, kind in zip(changes.owner, changes.record[-1], changes.kinds, strict=True):
        if kind == RELATIVE:
            o = int(record) % period
            reach[o] = max(reach.get(o, 0), int(owner - record))
    alive = np.zeros(2 * period + 1)
    for o, length in reach.items():
        node = records.nodes[records.places[start + o]]
        alive[o + 1] += node.size * node.dtype.itemsize + 1
        alive[o + 1 + length % period] -= node.size * node.dtype.itemsize + 1
    alive = np.cumsum(alive)
    shift = int(np.argmin(alive[:period] + alive[period : 2 * period]))
    if not shift:
        return start, trips
    begin, length = _range(records, start + shift, period, (trips * period - shift) // period)
    return begin, length


def _earliest(changes: _Changes) -> int:
    """The first trip from which on all that is from outside lies before the loop."""
    order = changes.records.order[changes.refs]
    outside = changes.kinds != RELATIVE
    inner = np.where(outside & (order >= changes.start), order - changes.start, -1)
    latest = int(inner.max(initial=-1))
    if latest < 0:
        return 0
    shared = inner[:, changes.kinds == SHARED].max(initial=-1)
    if shared < latest:
        raise Refused("an iteration reads a value of another one at a distance that varies")
    return latest // changes.period + 1


Inits = dict[tuple[int, int], int]


def _carried(changes: _Changes, kinds: np.ndarray) -> dict[tuple[int, int], list[int]]:
    """What trips read of earlier ones, as (record, lag), and by which operands."""
    found: dict[tuple[int, int], list[int]] = {}
    for a in np.flatnonzero(kinds == RELATIVE):
        lag, o = divmod(int(changes.record[-1, a]), changes.period)
        if lag < 0:
            found.setdefault((o, -lag), []).append(int(a))
    return found


def _spec(changes: _Changes, o: int) -> tuple[Any, Any]:
    node = changes.records.nodes[changes.records.places[changes.start + o]]
    return node.shape, node.dtype


def _free(more: _Changes, changes: _Changes) -> Inits | None:
    """What is carried first, if the trip ahead of some reads as these do but for that."""
    inits: Inits = {}
    for (o, lag), operands in _carried(changes, changes.kinds).items():
        firsts = {int(more.refs[0, a]) for a in operands}
        if lag > 1 or len(firsts) > 1:
            return None
        first = firsts.pop()
        node = more.records.nodes[first]
        if more.records.order[first] >= more.start or (node.shape, node.dtype) != _spec(more, o):
            return None
        inits[o, lag] = first
    if not _same_steps(more, changes):
        return None
    for a, kind in enumerate(changes.kinds):
        if kind == RELATIVE and changes.record[-1, a] < 0:
            continue
        if kind == RELATIVE:
            if more.record[0, a] != changes.record[-1, a]:
                return None
        elif kind == SHARED:
            if more.refs[0, a] != changes.refs[0, a]:
                return None
        elif more.kinds[a] != kind or more.records.order[more.refs[0, a]] >= more.start:
            return None
    # Of constants and entries, the first must be like the others.
    alike = more.records.specs[more.refs[:2]]
    rows = (changes.kinds == CONSTANTS) | (changes.kinds == OTHERS)
    return inits if (alike[0] == alike[1])[rows].all() else None


def _same_steps(more: _Changes, changes: _Changes) -> bool:
    """Whether the entries that the trip ahead reads are the ones before those of the others."""
    if more.steps != changes.steps:
        return False
    indices, period = more.records.indices, more.period
    for o in range(period):
        if more.start + o in indices:
            first, second, third = (indices[more.start + t * period + o] for t in range(3))
            if any(b - a != c - b for a, b, c in zip(first, second, third, strict=True)):
                return False
    return True


def _regular(changes: _Changes) -> Inits | None:
    """What is carried first: the records where those of a trip before would be."""
    inits: Inits = {}
    for o, most in _lags(_carried(changes, changes.kinds)).items():
        for lag in range(1, most + 1):
            at = changes.start + o - lag * changes.period
            if at < 0:
                return None
            place = int(changes.records.places[at])
            node = changes.records.nodes[place]
            if (node.shape, node.dtype) != _spec(changes, o):
                return None
            inits[o, lag] = place
    return inits


def _lags(carried: dict[tuple[int, int], list[int]]) -> dict[int, int]:
    """For how many trips records are carried."""
    found: dict[int, int] = {}
    for o, lag in carried:
        found[o] = max(found.get(o, 0), lag)
    return found


def _finished(changes: _Changes, kinds: np.ndarray, inits: Inits) -> Plan:
    """The plan of trips that are known to read alike."""
    records, period = changes.records, changes.period
    trips = len(changes.refs)
    last = changes.start + trips * period
    carries = sorted(inits)
    numbers = {carry: k for k, carry in enumerate(carries)}
    rows: list[Rows] = []
    known: dict[Any, int] = {}

    def row(made: Rows) -> int:
        number = known.setdefault(static(tuple(made)), len(rows))
        if number == len(rows):
            rows.append(made)
        return number

    operands: list[list[tuple[str, int]]] = [[] for _ in range(period)]
    for a, kind in enumerate(kinds):
        refs = changes.refs[:, a]
        if kind == SHARED:
            found = "fixed", int(refs[0])
        elif kind == RELATIVE:
            lag, o = divmod(int(changes.record[-1, a]), period)
            found = ("own", o) if lag == 0 else ("carry", numbers[o, -lag])
        else:
            found = _varying(records, refs, row)
        operands[changes.owner[a]].append(found)
    entries = {}
    places = records.places[changes.start : last].reshape(trips, period)
    for o, (which, step) in changes.steps.items():
        node = records.nodes[records.places[changes.start + o]]
        source = operands[o][0]
        assert source[0] == "fixed"
        made = _window(records, source[1], entry_index(node), which, step, trips)
        entries[o] = row(made._replace(blocked=int(places[0, o]) in records.blocked))
    return Plan(places, operands, entries, rows, carries, [inits[c] for c in carries])


def _varying(records: Records, refs: np.ndarray, row: Any) -> tuple[str, int]:
    """The operand of values from outside that differ from trip to trip."""
    nodes = [records.nodes[p] for p in refs]
    if all(node.value is not None for node in nodes):
        if len({static(node.value) for node in nodes}) == 1:
            return "fixed", int(refs[0])
        return "row", row(Rows(-1, (), 0, tuple(map(int, refs))))
    order = records.order[refs]
    if any(o not in records.indices for o in order.tolist()) or len({n.args for n in nodes}) > 1:
        raise Refused(
            f"its iterations read values from outside ({nodes[0].name}) that are not the entries "
            "of one array"
        )
    indices = np.array([records.indices[o] for o in order.tolist()])
    steps = np.diff(indices, axis=0)
    moving = np.flatnonzero(steps[0])
    blocked = {p in records.blocked for p in refs.tolist()}
    forms = {static([() if type(i) is int else i for i in entry_index(node)]) for node in nodes}
    if (steps != steps[0]).any() or len(moving) != 1 or len(forms) > 1 or len(blocked) > 1:
        raise Refused("its iterations read entries of an array whose indices do not grow steadily")
    which, step = int(moving[0]), int(steps[0, moving[0]])
    source = nodes[0].args[0]
    made = _window(records, source, entry_index(nodes[0]), which, step, len(refs))
    return "row", row(made._replace(blocked=blocked.pop()))


def _window(records: Records, source: int, index: Any, which: int, step: int, trips: int) -> Rows:
    """The entries of an array from an index on, of which integer number `which` grows."""
    at = [k for k, i in enumerate(index) if type(i) is int][which]
    extent = records.nodes[source].shape[sum(i is not None for i in index[:at])]
    first, last = index[at], index[at] + step * (trips - 1)
    if (first < 0) != (last < 0):
        raise Refused("its iterations read an array beyond its beginning, from its end")
    first, last = first % extent, last % extent
    stop = last + (1 if step > 0 else -1)
    made = (*index[:at], slice(first, None if stop < 0 else stop, step), *index[at + 1 :])
    return Rows(source, made, sum(type(i) is not int for i in index[:at]), ())
