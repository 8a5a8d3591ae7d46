"""Choose the order of a nest's loops, and which of them is vectorised.

A nest says all that has to be known for that: no two windows overlap, strides and extents are
numbers.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from tapegrad.compiler.codegen.math_runtime import NAMES
from tapegrad.compiler.codegen.transpose import SIDE, columns
from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.loop_nest import ADD, MEMORY, SET, Nest
from tapegrad.compiler.llvm.scalar_ops import divides

BYTES = 64  # of a vector, on the processors that have the longest
NEAR = 1 << 15  # bytes that the nearest cache holds
LONG = 100  # operations that are too many for the registers
CALL = 20  # operations that a call of `vmath` counts as
# Operations in all up to which elements that do not lie side by side are computed one by one; of
# those that are found by an index LLVM makes little more.
FEWER, FEW = 1 << 10, 1 << 14
THICK = 1 << 14  # and from which half of a vector is too little
HOT = 1 << 9  # and from which on several vectors are computed side by side:
SIDE_BY_SIDE = {5: 4, 11: 2}  # so many, by the operations on one of them,
HOTTER, LIGHT, HELD = 1 << 12, 4, 8  # and most where there are few of them and many elements
MUCH = 11  # operations that are better not written again for a few elements


class LoopOrder(NamedTuple):
    """How a nest is run through: its dimensions from the outermost to the innermost, at which of
    these levels elements are taken together (-1: nowhere), and how many.
    """

    order: tuple[int, ...]
    across: int
    width: int
    exact: bool = False  # what is left is done by narrower vectors, not under a mask
    rows: bool = False  # results are written as rows, see `transpose`; the last rows once more


def loop_order_of(nest: Nest, part: bool) -> LoopOrder | None:
    """The way through a nest whose dimensions are collapsed; None if that is left to LLVM."""
    places = [*nest.loads, *[s.place for s in nest.stores]]
    if 0 in nest.domain or any(p.buffer.dtype.name not in MEMORY for p in places):
        return None
    if any(load.buffer is s.place.buffer for load in nest.loads for s in nest.stores):
        return None  # a scan
    if columns(nest):
        return LoopOrder((0,), 0, SIDE, rows=True)
    if len(nest.terms) > LONG:
        return None
    rank, work = len(nest.domain), _work(nest)
    all_of_it = prod(nest.domain) * work
    fit = [d for d in range(part, rank) if _fits(nest, places, d)]
    if not fit:
        few = all_of_it <= (FEW if any(nest.picks) else FEWER)
        return LoopOrder(tuple(range(rank)), -1, 1) if few and not part else None
    dtypes = [p.buffer.dtype for p in places] + [t.dtype for t in nest.terms]
    most = BYTES // max(4, *[t.itemsize for t in dtypes])
    across = min(reversed(fit), key=lambda d: -(-nest.domain[d] // most) / nest.domain[d])
    extent = nest.domain[across]
    if 2 * extent <= most and all_of_it >= THICK:
        return None
    width = most * _side_by_side(nest, work)
    while width > 2 and width // 2 >= extent:
        width //= 2
    order = _order(nest, across, width, part)
    plain = all(s.mode == SET for s in nest.stores) and order[-1] == across
    slow = any(divides(t.name) for t in nest.terms)
    exact = all_of_it >= HOT and (slow or (plain and work < MUCH))
    return LoopOrder(order, order.index(across), width, exact)


def _side_by_side(nest: Nest, work: int) -> int:
    """How many vectors are computed side by side: short loops wait for each other otherwise."""
    all_of_it = prod(nest.domain) * work
    if all_of_it < HOT:
        return 1
    if all_of_it >= HOTTER and work < LIGHT and len(nest.domain) > 1:
        return HELD
    return next((v for least, v in SIDE_BY_SIDE.items() if work < least), 1)


def _order(nest: Nest, across: int, width: int, part: bool) -> tuple[int, ...]:
    """The loops, so that what they use again is near."""
    extent = nest.domain[across]
    others = [d for d in range(len(nest.domain)) if d != across]
    kept = [s.place for s in nest.stores if s.mode not in (SET, ADD)]
    still = [d for d in others if d >= part and any(p.strides[d] == 0 for p in kept)]
    first = [d for d in others if d not in still]
    # An operand that stays the same along another loop.
    held = any(not all(p.strides[d] for d in others) for p in nest.loads if p.strides[across])
    if any(s.place.strides[across] == 0 for s in nest.stores) or any(nest.picks):
        still = []  # what is added up along vectors is innermost; what is overwritten keeps order
    far = still and extent * prod([nest.domain[d] for d in still]) * 8 > NEAR
    if far and first and not part and all(_size(nest, p) * 8 <= NEAR for p in kept):
        return (*still, *first, across)  # what is added up is near, what is read is read once
    if extent <= width and (kept or held):
        return (across, *others)  # no loop at all: its vectors stay in registers
    if still and (not far or not first):
        return (*first, across, *still)
    return (*others, across)


def _size(nest: Nest, place: Place) -> int:
    """How many elements a window shows."""
    return prod([n for n, s in zip(nest.domain, place.strides, strict=True) if s])


def _fits(nest: Nest, places: list[Place], d: int) -> bool:
    """Whether elements along a dimension can be taken together."""
    if any(p.strides[d] not in (0, 1) for p in places):
        return False
    if any(s.mode in (SET, ADD) and s.place.strides[d] == 0 for s in nest.stores):
        return False
    return all(nest.loads[load].strides[d] == 0 for picks in nest.picks for load, _, _ in picks)


def _work(nest: Nest) -> int:
    """The operations on an element; a call of `vmath` counts as many."""
    return 1 + sum(CALL if t.name in _CALLED else 1 for t in nest.terms if t.name != "constant")


_CALLED = NAMES - {"hypot"}  # which is a root and little more


class Segment(NamedTuple):
    """Elements along the dimension that is taken several at a time: a loop from a place to a place,
    `width` at a time; if it is one step, that may be too wide, and is masked.
    """

    first: int
    last: int
    width: int


def segments(extent: int, width: int, exact: bool) -> list[Segment]:
    """Steps of one width, and narrower ones for what is left: of several widths, or one masked."""
    rest = extent % width
    if rest == 0 or (extent < width and not exact):
        return [Segment(0, extent, width)]
    found = [Segment(0, extent - rest, width)] if extent > width else []
    while rest:
        width = 1 << (rest.bit_length() - (1 if exact or rest & (rest - 1) == 0 else 0))
        taken = min(width, rest)
        found.append(Segment(extent - rest, extent - rest + taken, width))
        rest -= taken
    return found
