"""A layered drawing of an acyclic graph, in the manner of Sugiyama: layers, few crossings, places.

Edges lead down. One that passes a layer has a waypoint there, which takes room like a box, so that
no edge runs through a box. In each layer the boxes come as near to their neighbours as their order
and the gaps allow: that is an isotonic regression.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import pairwise
from math import fsum
from typing import NamedTuple

Point = tuple[float, float]
GAP, LAYER_GAP, LANE = 22.0, 38.0, 12.0  # between boxes, between layers, around a waypoint
ROUNDS = 12  # sweeps through the layers, to reorder and to place
STRAIGHT = 4.0  # how much stiffer an edge is between two waypoints
PORT = 16.0  # between the ends of edges at a box


class Layout(NamedTuple):
    """The centre of each box, the points of each edge, and the size of the whole.

    Between the points of an edge that lie at one place but for their height it is straight.
    """

    centres: list[Point]
    routes: list[list[Point]]
    width: float
    height: float


def layered(sizes: Sequence[Point], edges: Sequence[tuple[int, int]]) -> Layout:
    """Place boxes of given widths and heights; an edge leads from a lower number to a higher.

    >>> layered([(40, 20), (40, 20)], [(0, 1)]).centres
    [(20.0, 10.0), (20.0, 68.0)]
    """
    ranks = _ranks(len(sizes), edges)
    widths = [width for width, _ in sizes]
    links: list[tuple[int, int]] = []  # between neighbouring layers
    chains = []  # the boxes and waypoints of each edge
    for a, b in edges:
        chain = [a]
        for rank in range(ranks[a] + 1, ranks[b]):
            chain.append(len(ranks))
            ranks.append(rank)
            widths.append(LANE)
        chain.append(b)
        chains.append(chain)
        links += pairwise(chain)
    above: list[list[int]] = [[] for _ in ranks]
    below: list[list[int]] = [[] for _ in ranks]
    for a, b in links:
        above[b].append(a)
        below[a].append(b)
    layers = _ordered(_layers(ranks, below), above, below)
    xs = _places(layers, above, below, widths, len(sizes))
    return _drawn(sizes, edges, chains, ranks, layers, xs)


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each box: below what it reads; what reads nothing stands near its readers."""
    ranks, readers = [0] * count, [count] * count
    reads = [False] * count
    for a, b in sorted(edges, key=lambda edge: edge[1]):
        ranks[b] = max(ranks[b], ranks[a] + 1)
        reads[b] = True
    for a, b in edges:
        readers[a] = min(readers[a], ranks[b])
    return [
        rank if read or reader == count else reader - 1
        for rank, read, reader in zip(ranks, reads, readers, strict=True)
    ]


def _layers(ranks: list[int], below: list[list[int]]) -> list[list[int]]:
    """The boxes of each layer, in the order of a depth-first search."""
    layers: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    seen = [False] * len(ranks)
    for start in range(len(ranks)):
        pending = [start]
        while pending:
            node = pending.pop()
            if not seen[node]:
                seen[node] = True
                layers[ranks[node]].append(node)
                pending += reversed(below[node])
    return layers


def _ordered(
    layers: list[list[int]], above: list[list[int]], below: list[list[int]]
) -> list[list[int]]:
    """The layers, reordered by the means of neighbours so that few edges cross."""
    best, fewest = [[*layer] for layer in layers], _crossings(layers, below)
    for sweep in range(ROUNDS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        place = {n: float(k) for layer in layers for k, n in enumerate(layer)}
        for layer in layers if down else layers[::-1]:
            means = {
                n: sum(place[m] for m in neighbours[n]) / len(neighbours[n])
                if neighbours[n]
                else place[n]
                for n in layer
            }
            layer.sort(key=means.__getitem__)
            place |= {n: float(k) for k, n in enumerate(layer)}
        found = _crossings(layers, below)
        if found < fewest:
            best, fewest = [[*layer] for layer in layers], found
    return best


def _crossings(layers: list[list[int]], below: list[list[int]]) -> int:
    """How many pairs of edges cross."""
    total = 0
    for upper, lower in pairwise(layers):
        place = {n: k for k, n in enumerate(lower)}
        ends: list[int] = []  # of the edges further to the left, in order
        for node in upper:
            here = sorted(place[m] for m in below[node])
            total += sum(len(ends) - bisect_left(ends, end + 1) for end in here)
            for end in here:
                insort(ends, end)
    return total


def _places(
    layers: list[list[int]], above: list[list[int]], below: list[list[int]],
    widths: list[float], boxes: int,
) -> list[float]:  # fmt: skip
    """The centre of each box and waypoint along its layer."""
    xs = [0.0] * len(widths)
    for layer in layers:
        right = 0.0
        for node in layer:
            xs[node] = right + widths[node] / 2
            right += widths[node] + GAP
    for sweep in range(2 * ROUNDS):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wishes, weights = [], []
            for node in layer:
                near = [*above[node], *below[node]]
                stiff = [STRAIGHT if node >= boxes and m >= boxes else 1.0 for m in near]
                total = sum(stiff)
                # `sum` of floats rounds in another way from Python 3.12 on.
                wish = fsum(w * xs[m] for w, m in zip(stiff, near, strict=True))
                wishes.append(wish / total if total else xs[node])
                weights.append(max(total, 0.1))
            for node, x in zip(layer, _spread(layer, wishes, weights, widths), strict=True):
                xs[node] = x
    left = min((xs[n] - widths[n] / 2 for layer in layers for n in layer), default=0.0)
    return [x - left for x in xs]


def _spread(
    layer: list[int], wishes: list[float], weights: list[float], widths: list[float]
) -> list[float]:
    """The places nearest to the wishes, in least squares, with gaps and in order."""
    offsets, offset = [0.0], 0.0
    for a, b in pairwise(layer):
        offset += (widths[a] + widths[b]) / 2 + GAP
        offsets.append(offset)
    blocks: list[list[float]] = []  # the mean, the weight and the number of those that touch
    for wish, weight, shift in zip(wishes, weights, offsets, strict=True):
        blocks.append([wish - shift, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, heavy, count = blocks.pop()
            before = blocks[-1]
            both = before[1] + heavy
            before[:] = [(before[0] * before[1] + mean * heavy) / both, both, before[2] + count]
    means = [mean for mean, _, count in blocks for _ in range(int(count))]
    return [mean + shift for mean, shift in zip(means, offsets, strict=True)]


def _drawn(
    sizes: Sequence[Point], edges: Sequence[tuple[int, int]], chains: list[list[int]],
    ranks: list[int], layers: list[list[int]], xs: list[float],
) -> Layout:  # fmt: skip
    """The coordinates of boxes and edges."""
    boxes = len(sizes)
    tops, heights, top = [], [], 0.0
    for layer in layers:
        height = max((sizes[n][1] for n in layer if n < boxes), default=0.0)
        tops.append(top)
        heights.append(height)
        top += height + LAYER_GAP
    centres = [(xs[n], tops[ranks[n]] + heights[ranks[n]] / 2) for n in range(boxes)]
    ports = _ports(sizes, edges, chains, xs)
    routes = []
    for (a, b), chain, port in zip(edges, chains, ports, strict=True):
        route = [(xs[a], centres[a][1] + sizes[a][1] / 2)]
        for n in chain[1:-1]:
            y = tops[ranks[n]]
            route += [(xs[n], y), (xs[n], y + heights[ranks[n]])]
        route.append((port, centres[b][1] - sizes[b][1] / 2))
        routes.append(route)
    width = max((xs[n] + sizes[n][0] / 2 for n in range(boxes)), default=0.0)
    width = max([width, *(x for route in routes for x, _ in route)])
    return Layout(centres, routes, width, max(top - LAYER_GAP, 0.0))


def _ports(
    sizes: Sequence[Point], edges: Sequence[tuple[int, int]], chains: list[list[int]],
    xs: list[float],
) -> list[float]:  # fmt: skip
    """Where each edge ends on top of its box: in the order in which the edges arrive."""
    arriving: dict[int, list[int]] = {}
    for k, (_, b) in enumerate(edges):
        arriving.setdefault(b, []).append(k)
    ports = [0.0] * len(edges)
    for b, found in arriving.items():
        found.sort(key=lambda k: (xs[chains[k][-2]], k))
        step = min(PORT, 0.7 * sizes[b][0] / len(found))
        for place, k in enumerate(found):
            ports[k] = xs[b] + (place - (len(found) - 1) / 2) * step
    return ports
