"""Let scratch buffers share memory, by when they are first and last in use."""

from __future__ import annotations

from heapq import heappop, heappush

from tapegrad.compiler.ir.buffers import Buffer


def arranged(buffers: list[Buffer]) -> int:
    """Give buffers that are not needed at the same time the same memory; returns its size."""
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
    """A few sizes only, so that what is given back fits again."""
    if nbytes <= 64:
        return 64
    step = max(1 << (nbytes.bit_length() - 3), 64)
    return (nbytes + step - 1) // step * step
