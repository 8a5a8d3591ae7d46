"""Loops over the windows of volumes: where the largest element is, and weighted sums.

They take what loops of `convolution_loops` take: a table, the operand, 0, where the result is
written, room, and the volumes.  Loops over windows are written with `while`: `range` with a step
divides to find how often it goes on, which takes longer than a small window.
"""

from numba import float64 as T

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.memory import f8 as pointer
from tapegrad.kernels.memory import i8
from tapegrad.kernels.memory import select_f8 as select
from tapegrad.kernels.memory import select_i8 as select_place
from tapegrad.kernels.windows_abi import SumTable, WindowTable

zero = T(0.0)
least = T(-float("inf"))


@scalar
def place_of_four(x, start, width):
    """The place of the largest of the elements of a window of 2 x 2, as `window_argmax`."""
    best, place = x[start], start
    for other in (start + 1, start + width, start + width + 1):
        here = x[other]
        better = (here > best) | (here != here)
        best, place = select(better, here, best), select_place(better, other, place)
    return place


def window_argmax(table_at, x_at, b_at, to_at, room_at, first, last, p7):
    """Of each window the place of its largest element in the volume; NaN is the largest."""
    table, x, to = WindowTable(table_at), pointer(x_at), i8(to_at)
    size, count, step = table.size, table.count, table.step
    ds, hs, ws = i8(table.bounds[0]), i8(table.bounds[1]), i8(table.bounds[2])
    volume, at = size[0] * size[1] * size[2], first * count[0] * count[1] * count[2]
    for v in range(first, last):
        for i in range(count[0]):
            for j in range(count[1]):
                begin = v * volume + (ds[2 * i] * size[1] + hs[2 * j]) * size[2]
                if table.fours:
                    for k in range(count[2]):
                        to[at] = place_of_four(x, begin + ws[2 * k], size[2]) - v * volume
                        at += 1
                    continue
                for k in range(count[2]):
                    best = least
                    place = (ds[2 * i] * size[1] + hs[2 * j]) * size[2] + ws[2 * k]
                    d = ds[2 * i]
                    while d < ds[2 * i + 1]:
                        h = hs[2 * j]
                        while h < hs[2 * j + 1]:
                            row, w = (d * size[1] + h) * size[2], ws[2 * k]
                            while w < ws[2 * k + 1]:
                                here = x[v * volume + row + w]
                                better = (here > best) | (here != here)  # no branch: it is a toss
                                best = select(better, here, best)
                                place = select_place(better, row + w, place)
                                w += step[2]
                            h += step[1]
                        d += step[0]
                    to[at] = place
                    at += 1
    return 0


@scalar
def add_rows(table, x, begin, i, j, room):
    """Add up the rows of a volume that one row of the result reads."""
    size, width = table.size, table.size[2]
    depths, heights = i8(table.starts[0]), i8(table.starts[1])
    depth_of, height_of = i8(table.places[0]), i8(table.places[1])
    by_depth, by_height = pointer(table.weights[0]), pointer(table.weights[1])
    is_first = True
    for d in range(depths[i], depths[i + 1]):
        for h in range(heights[j], heights[j + 1]):
            row = begin + (depth_of[d] * size[1] + height_of[h]) * width
            weight = by_depth[d] * by_height[h]
            if is_first:
                for k in range(width):
                    room[k] = weight * x[row + k]
            else:
                for k in range(width):
                    room[k] += weight * x[row + k]
            is_first = False
    if is_first:
        for k in range(width):
            room[k] = zero


def window_sum(table_at, x_at, b_at, to_at, room_at, first, last, p7):
    """Weighted sums: rows are added up first, in `room`, then elements of their sum."""
    table, x, to, room = SumTable(table_at), pointer(x_at), pointer(to_at), pointer(room_at)
    size, count, taps = table.size, table.count, table.taps
    starts, places, weights = i8(table.starts[2]), i8(table.places[2]), pointer(table.weights[2])
    at = first * count[0] * count[1] * count[2]
    for v in range(first, last):
        for i in range(count[0]):
            for j in range(count[1]):
                add_rows(table, x, v * size[0] * size[1] * size[2], i, j, room)
                if taps == 1:
                    for k in range(count[2]):
                        to[at + k] = weights[k] * room[places[k]]
                elif taps == 2:
                    for k in range(count[2]):
                        to[at + k] = (
                            weights[2 * k] * room[places[2 * k]]
                            + weights[2 * k + 1] * room[places[2 * k + 1]]
                        )
                else:
                    for k in range(count[2]):
                        total = zero
                        for e in range(starts[k], starts[k + 1]):
                            total += weights[e] * room[places[e]]
                        to[at + k] = total
                at += count[2]
    return 0
