"""Loops over the windows of volumes: where the largest element is, sums, and their transpose.

They are written with `while`: `range` with a step divides to find how often it goes on, which takes
longer than a small window.
"""

from numba import float64 as T

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.memory import f8 as pointer
from tapegrad.kernels.memory import i8
from tapegrad.kernels.memory import select_f8 as select
from tapegrad.kernels.memory import select_i8 as select_place
from tapegrad.kernels.windows_abi import WindowTable

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


def window_argmax(first, last, table_at, x_at, to_at, p5, p6, p7):
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


def window_sum(first, last, table_at, x_at, to_at, p5, p6, p7):
    """The sum of each window."""
    table, x, to = WindowTable(table_at), pointer(x_at), pointer(to_at)
    size, count, step = table.size, table.count, table.step
    ds, hs, ws = i8(table.bounds[0]), i8(table.bounds[1]), i8(table.bounds[2])
    volume, at = size[0] * size[1] * size[2], first * count[0] * count[1] * count[2]
    for v in range(first, last):
        for i in range(count[0]):
            for j in range(count[1]):
                begin = v * volume + (ds[2 * i] * size[1] + hs[2 * j]) * size[2]
                if table.fours:
                    for k in range(count[2]):
                        w = begin + ws[2 * k]
                        to[at] = zero + x[w] + x[w + 1] + x[w + size[2]] + x[w + size[2] + 1]
                        at += 1
                    continue
                for k in range(count[2]):
                    total = zero
                    d = ds[2 * i]
                    while d < ds[2 * i + 1]:
                        h = hs[2 * j]
                        while h < hs[2 * j + 1]:
                            row, w = v * volume + (d * size[1] + h) * size[2], ws[2 * k]
                            while w < ws[2 * k + 1]:
                                total += x[row + w]
                                w += step[2]
                            h += step[1]
                        d += step[0]
                    to[at] = total
                    at += 1
    return 0


def window_spread(first, last, table_at, x_at, to_at, p5, p6, p7):
    """Add what there is for each window to all its elements, which are zero at first."""
    table, x, to = WindowTable(table_at), pointer(x_at), pointer(to_at)
    size, count, step = table.size, table.count, table.step
    ds, hs, ws = i8(table.bounds[0]), i8(table.bounds[1]), i8(table.bounds[2])
    volume, at = size[0] * size[1] * size[2], first * count[0] * count[1] * count[2]
    for v in range(first, last):
        for i in range(count[0]):
            for j in range(count[1]):
                begin = v * volume + (ds[2 * i] * size[1] + hs[2 * j]) * size[2]
                if table.fours:
                    for k in range(count[2]):
                        w = begin + ws[2 * k]
                        to[w] += x[at]
                        to[w + 1] += x[at]
                        to[w + size[2]] += x[at]
                        to[w + size[2] + 1] += x[at]
                        at += 1
                    continue
                for k in range(count[2]):
                    share, d = x[at], ds[2 * i]
                    while d < ds[2 * i + 1]:
                        h = hs[2 * j]
                        while h < hs[2 * j + 1]:
                            row = v * volume + (d * size[1] + h) * size[2]
                            if step[2] == 1:
                                for w in range(row + ws[2 * k], row + ws[2 * k + 1]):
                                    to[w] += share
                            else:
                                w = ws[2 * k]
                                while w < ws[2 * k + 1]:
                                    to[row + w] += share
                                    w += step[2]
                            h += step[1]
                        d += step[0]
                    at += 1
    return 0
