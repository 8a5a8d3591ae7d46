"""Assign scratch memory to buffers by liveness."""

from __future__ import annotations

from heapq import heappop, heappush

from tapegrad.compiler.ir.buffers import Buffer


def arranged(buffers: list[Buffer]) -> int:
    """Give buffers with disjoint live ranges the same memory; returns its size."""
    free: dict[int, list[int]] = {}  # offsets by size
    busy: list[tuple[int, int, int]] = []
    size = 0
    for buffer in sorted(buffers, key=lambda b: b.first):
        while busy and busy[0][0] < buffer.first:
            _, offset, room = heappop(busy)
            free.setdefault(room, []).append(offset)
        room = _rounded(buffer.nbytes)
        waiting = free.get(room)
        if waiting:
            buffer.offset = waiting.pop()
        else:
            buffer.offset = size
            size += room
        heappush(busy, (buffer.last, buffer.offset, room))
    return size


def _rounded(nbytes: int) -> int:
    """Round to few size classes, so that freed memory fits again."""
    if nbytes <= 64:
        return 64
    step = max(1 << (nbytes.bit_length() - 3), 64)
    return (nbytes + step - 1) // step * step
