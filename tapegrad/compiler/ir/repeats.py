"""Find repetitions in the records of a graph.

Each record gets a number, the same for records that differ in their operands alone: a repetition of
the program is one of these numbers.  Whether the operands repeat too is `loop_plan`'s question.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.ir.control_ops import REGION, Sub, graphs_of
from tapegrad.compiler.ir.graph import Graph, Node
from tapegrad.ops.shape import getitem

GRAM = 3  # records by which equal places are found
CANDIDATES = 8  # periods that are looked at, by how often they occur and by how much they cover

Codes = dict[Any, int]


class Repetition(NamedTuple):
    """Records of a sequence that repeat, by their numbers, with a period."""

    start: int
    period: int
    length: int

    @property
    def saved(self) -> int:
        """The records that a loop would save."""
        return (self.length // self.period - 1) * self.period


class Records:
    """The records of a graph that compute, in order: their numbers, and their operands.

    `places` are their positions in the graph, and `order` is the reverse of that (-1: none).
    `operands[starts[i] : starts[i + 1]]` are the positions of the operands of record i.  `indices`
    are the integers by which a record reads an entry of an array: its number does not tell them.
    `specs` number shapes and dtypes, of all records of the graph; constants have odd numbers.
    """

    def __init__(self, graph: Graph, live: Sequence[bool], blocked: Container[int] = ()) -> None:
        """Of the live records; those that are `blocked` differ from others."""
        nodes = graph.nodes
        codes: list[int] = []
        places: list[int] = []
        counts: list[int] = [0]
        operands: list[int] = []
        known: Codes = {}
        kinds: Codes = {}
        specs: list[int] = []
        # Most records that are alike have the same object as parameters, or none.
        seen: dict[tuple[Any, ...], tuple[int, int]] = {}
        self.indices: dict[int, tuple[int, ...]] = {}
        for position, node in enumerate(nodes):
            op, args = node.op, node.args
            if op is None or not live[position]:
                specs.append(_spec(node, kinds))
                continue
            params = node.params
            same = op, node.shape, id(node.dtype), id(params) if params else 0, len(args)
            found = None if position in blocked else seen.get(same)
            if found is None:
                tells = (position in blocked, len(args), *self._key(node, len(codes)))
                found = known.setdefault(tells, len(known)), _spec(node, kinds)
                if position not in blocked and len(codes) not in self.indices:
                    seen[same] = found
            codes.append(found[0])
            specs.append(found[1])
            places.append(position)
            operands += args
            counts.append(len(args))
        self.nodes = nodes
        self.blocked = blocked
        self.codes = np.array(codes, np.int64)
        self.places = np.array(places, np.int64)
        self.starts = np.cumsum(counts)
        self.operands = np.array(operands, np.int64)
        self.specs = np.array(specs, np.int64)
        self.order = np.full(len(nodes), -1)
        self.order[self.places] = np.arange(len(places))

    def _key(self, node: Node, number: int) -> tuple[Any, ...]:
        if node.op is getitem:
            index = entry_index(node)
            integers = tuple([i for i in index if type(i) is int])
            if integers and Ellipsis not in index:
                self.indices[number] = integers
                index = tuple([None if type(i) is int else (static(i),) for i in index])
                return getitem, node.shape, node.dtype, index
        return key(node)


def _spec(node: Node, kinds: Codes) -> int:
    return 2 * kinds.setdefault((node.shape, node.dtype), len(kinds)) + (node.value is not None)


def entry_index(node: Node) -> tuple[Any, ...]:
    """The index of a `getitem`, without the dots at its end."""
    index: tuple[Any, ...] = node.params["index"]
    return index[:-1] if index and index[-1] is Ellipsis else index


def key(node: Node) -> tuple[Any, ...]:
    """Tells records of different operations apart, whatever their operands are."""
    if not node.params:
        return node.op, node.shape, node.dtype
    if node.op is not None and node.op.kind is REGION and "k" not in node.params:
        return node.op, tuple(map(_owned, graphs_of(node))), static(node.params.get("form", ())[2:])
    return node.op, node.shape, node.dtype, static(node.params)


def _owned(sub: Sub) -> Any:
    """Tells graphs apart that records own."""
    if sub.pulled:
        return id(sub)
    rows = [(*key(node), node.args, static(node.value)) for node in sub.nodes]
    return tuple(rows), sub.outputs, tuple(sorted(sub.inputs.items())), sub.blocked


def static(value: Any) -> Any:
    """Tells static values apart to the last bit and by their types, as what can be hashed."""
    kind = type(value)
    if kind is int or kind is bool or kind is str or value is None:
        return kind, value
    if kind is tuple or kind is list:
        if {int}.issuperset(map(type, value)):
            return kind, tuple(value)
        return (kind, *map(static, value))
    if kind is dict:
        return tuple([(k, static(v)) for k, v in value.items()])
    if kind is slice:
        return slice, value.start, value.stop, value.step
    if kind is float:
        return float, struct.pack("d", value)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, np.dtype):
        return kind, value
    return kind, id(value)


def repetitions(records: Records, trips: int) -> list[Repetition]:
    """Repetitions of at least some trips; those first that save most as a loop."""
    found = []
    for period in _periods(records.codes, trips):
        equal = records.codes[period:] == records.codes[:-period]
        ends = np.flatnonzero(np.concatenate(([True], ~equal, [True])))
        lengths = np.diff(ends) - 1 + period
        for k in np.flatnonzero(lengths >= period * trips):
            found.append(Repetition(int(ends[k]), period, int(lengths[k])))
    return sorted(found, key=lambda r: (-r.saved, r.period, r.start))


def _periods(codes: np.ndarray, trips: int) -> list[int]:
    """The distances at which a few records are often followed by equal ones."""
    if len(codes) < GRAM + trips:
        return []
    grams = np.zeros(len(codes) - GRAM + 1, np.int64)
    for k in range(GRAM):
        grams = grams * 1_000_003 + codes[k : k + len(grams)]
    order = np.argsort(grams, kind="stable")
    equal = grams[order[1:]] == grams[order[:-1]]
    periods, counts = np.unique(np.diff(order)[equal], return_counts=True)
    often = counts >= trips - 1
    periods, counts = periods[often], counts[often]
    first = np.argsort(-counts, kind="stable")[:CANDIDATES]
    second = np.argsort(-counts * periods, kind="stable")[:CANDIDATES]
    # `np.unique` would import `numpy.ma`, which takes as long as a short program.
    return sorted(set(periods[np.concatenate([first, second])].tolist()))
