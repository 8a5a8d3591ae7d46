"""Choose the order of a nest's loops, and which of them is vectorised.

A nest holds all that this needs: its windows do not alias, strides and extents are constants.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from tapegrad.compiler.codegen.math_runtime import NAMES
from tapegrad.compiler.codegen.transpose import SIDE, columns
from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.loop_nest import ADD, SET, Nest, supported
from tapegrad.compiler.llvm.scalar_ops import divides

BYTES = 64  # of the longest vector registers
L1_BYTES = 1 << 15  # of the L1 data cache
TERMS_MOST = 100  # operations from which on values spill out of registers
CALL = 20  # operations that a call of `vmath` costs
# Operations in all up to which elements that are not contiguous stay scalar; for gathered ones LLVM
# does little better.
SCALAR_MOST, GATHERED_MOST = 1 << 10, 1 << 14
FULL_VECTORS_LEAST = 1 << 14  # and from which on half-empty vectors do not pay
INTERLEAVED_LEAST = 1 << 9  # and from which on several vectors are interleaved:
INTERLEAVED = {5: 4, 11: 2}  # so many, by the operations per element,
LARGE, LIGHT, MOST_INTERLEAVED = 1 << 12, 4, 8  # most for cheap nests of many elements
REMAINDER_MOST = 11  # operations from which on the remainder gets no code of its own


class LoopOrder(NamedTuple):
    """The loops of a nest, outermost first, which of these levels is vectorised (-1: none), and
    the vector width.
    """

    order: tuple[int, ...]
    simd: int
    width: int
    exact: bool = False  # the remainder is done by shorter vectors, not under a mask
    rows: bool = False  # stores are transposed in registers; the last rows are stored twice


def loop_order_of(nest: Nest, part: bool) -> LoopOrder | None:
    """The loop order of a collapsed nest; None to leave it to LLVM."""
    places = [*nest.loads, *[s.place for s in nest.stores]]
    if 0 in nest.domain or not all(supported(p.buffer.dtype) for p in places):
        return None
    if any(load.buffer is s.place.buffer for load in nest.loads for s in nest.stores):
        return None  # a scan
    if columns(nest):
        return LoopOrder((0,), 0, SIDE, rows=True)
    if len(nest.terms) > TERMS_MOST:
        return None
    rank, work = len(nest.domain), _work(nest)
    total = prod(nest.domain) * work
    fit = [d for d in range(part, rank) if _fits(nest, places, d)]
    if not fit:
        small = total <= (GATHERED_MOST if any(nest.gathers) else SCALAR_MOST)
        return LoopOrder(tuple(range(rank)), -1, 1) if small and not part else None
    dtypes = [p.buffer.dtype for p in places] + [t.dtype for t in nest.terms]
    most = BYTES // max(4, *[t.itemsize for t in dtypes])
    simd = min(reversed(fit), key=lambda d: -(-nest.domain[d] // most) / nest.domain[d])
    extent = nest.domain[simd]
    if 2 * extent <= most and total >= FULL_VECTORS_LEAST:
        return None
    width = most * _interleaved(nest, work)
    while width > 2 and width // 2 >= extent:
        width //= 2
    order = _order(nest, simd, width, part)
    plain = all(s.mode == SET for s in nest.stores) and order[-1] == simd
    slow = any(divides(t.name) for t in nest.terms)
    exact = total >= INTERLEAVED_LEAST and (slow or (plain and work < REMAINDER_MOST))
    return LoopOrder(order, order.index(simd), width, exact)


def _interleaved(nest: Nest, work: int) -> int:
    """The interleave count: how many vectors are in flight, to hide latency in short loops."""
    total = prod(nest.domain) * work
    if total < INTERLEAVED_LEAST:
        return 1
    if total >= LARGE and work < LIGHT and len(nest.domain) > 1:
        return MOST_INTERLEAVED
    return next((v for least, v in INTERLEAVED.items() if work < least), 1)


def _order(nest: Nest, simd: int, width: int, part: bool) -> tuple[int, ...]:
    """The loop order in which reused data stay in cache or registers."""
    extent = nest.domain[simd]
    others = [d for d in range(len(nest.domain)) if d != simd]
    kept = [s.place for s in nest.stores if s.mode not in (SET, ADD)]
    invariant = [d for d in others if d >= part and any(p.strides[d] == 0 for p in kept)]
    first = [d for d in others if d not in invariant]
    # An operand that is invariant in another loop.
    reused = any(not all(p.strides[d] for d in others) for p in nest.loads if p.strides[simd])
    if any(s.place.strides[simd] == 0 for s in nest.stores) or any(nest.gathers):
        invariant = []  # sums over vectors are innermost; overwriting keeps order
    far = invariant and extent * prod([nest.domain[d] for d in invariant]) * 8 > L1_BYTES
    if far and first and not part and all(_size(nest, p) * 8 <= L1_BYTES for p in kept):
        return (*invariant, *first, simd)  # accumulators fit L1, operands stream
    if extent <= width and (kept or reused):
        return (simd, *others)  # unrolled: its vectors stay in registers
    if invariant and (not far or not first):
        return (*first, simd, *invariant)
    return (*others, simd)


def _size(nest: Nest, place: Place) -> int:
    """The number of distinct elements of a window."""
    return prod([n for n, s in zip(nest.domain, place.strides, strict=True) if s])


def _fits(nest: Nest, places: list[Place], d: int) -> bool:
    """Whether a dimension can be vectorised."""
    if any(p.strides[d] not in (0, 1) for p in places):
        return False
    if any(s.mode in (SET, ADD) and s.place.strides[d] == 0 for s in nest.stores):
        return False
    return all(nest.loads[load].strides[d] == 0 for found in nest.gathers for load, _, _ in found)


def _work(nest: Nest) -> int:
    """The cost of an element in operations."""
    return 1 + sum(CALL if t.name in _CALLED else 1 for t in nest.terms if t.name != "constant")


_CALLED = NAMES - {"hypot"}  # which is a root and little more


class Segment(NamedTuple):
    """A range of the vectorised dimension, done `width` elements at a time; a single step that
    is too wide is masked.
    """

    first: int
    last: int
    width: int


def segments(extent: int, width: int, exact: bool) -> list[Segment]:
    """Split an extent into full vectors and a remainder: of shorter vectors, or one masked."""
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
