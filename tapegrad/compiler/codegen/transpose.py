"""Transpose results in registers where a loop stores adjacent columns.

Strided stores go one element at a time, however many are computed at once. So 8 x 8 blocks are
transposed in registers and stored as rows.
"""

from __future__ import annotations

from collections.abc import Callable

from tapegrad.compiler.ir.loop_nest import MEMORY, SET, Nest

SIDE = 8  # rows and columns of a block
LEAST, ROWS = 4, 1 << 10  # columns and rows for which it is worth it
# Shuffles of two vectors, in the three stages of an 8 x 8 transpose.
STEPS = (
    ((0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)),
    ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
    ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
)


def columns(nest: Nest) -> list[list[int]]:
    """Runs of stores to adjacent columns, each from its first column on.

    There are none unless the nest is one long loop that overwrites elements of eight bytes.
    """
    if len(nest.domain) != 1 or nest.domain[0] < ROWS:
        return []
    stores = [s.place for s in nest.stores]
    dtypes = {p.buffer.dtype for p in stores}
    dtypes.update([t.dtype for t in nest.terms], [p.buffer.dtype for p in nest.loads])
    if any(s.mode != SET or s.place.strides[0] == 0 for s in nest.stores):
        return []
    if any(nest.gathers[len(nest.loads) :]) or any(d.name not in MEMORY for d in dtypes):
        return []
    if any(p.buffer.dtype.itemsize != SIDE for p in stores):
        return []
    runs: list[list[int]] = []
    places: dict[tuple[int, int, int], int] = {}
    for k, p in enumerate(stores):
        places[id(p.buffer), p.strides[0], p.offset] = k
    for buffer, stride, offset in sorted(places):
        k = places[buffer, stride, offset]
        if (buffer, stride, offset - 1) in places:
            runs[-1].append(k)
        else:
            runs.append([k])
    return [run for run in runs if LEAST <= len(run) <= stores[run[0]].strides[0]]


def transpose(vectors: list[str], shuffle: Callable[[str, str, tuple[int, ...]], str]) -> list[str]:
    """Transpose up to eight vectors of eight elements into eight vectors of as many.

    `shuffle` names a vector of chosen elements of two others.

    >>> from tapegrad.compiler.codegen.transpose import transpose
    >>> shuffle = lambda x, y, order: "".join([(x + y)[i] for i in order])
    >>> transpose([c * 8 for c in "abc"], shuffle)[0]
    'abc'
    """
    count = len(vectors)
    vectors = [*vectors, *[vectors[-1]] * (SIDE - count)]
    distance = 1
    for orders in STEPS:
        for i in range(SIDE):
            if not i & distance:
                pair = vectors[i], vectors[i + distance]
                vectors[i], vectors[i + distance] = [shuffle(*pair, order) for order in orders]
        distance *= 2
    if count == SIDE:
        return vectors
    return [shuffle(x, x, tuple(range(count))) for x in vectors]
