"""Loops over the windows of volumes: where the largest element is, sums, and their transpose."""

from numba import float64 as T

from tapegrad.kernels.memory import f8 as pointer
from tapegrad.kernels.memory import i8
from tapegrad.kernels.windows_abi import WindowTable

zero = T(0.0)
least = T(-float("inf"))


def window_argmax(first, last, table_at, x_at, to_at, p5, p6, p7):
    """Of each window the place of its largest element in the volume; NaN is the largest."""
    table, x, to = WindowTable(table_at), pointer(x_at), i8(to_at)
    size, count, step = table.size, table.count, table.step
    ds, hs, ws = i8(table.bounds[0]), i8(table.bounds[1]), i8(table.bounds[2])
    volume, at = size[0] * size[1] * size[2], first * count[0] * count[1] * count[2]
    for v in range(first, last):
        for i in range(count[0]):
            for j in range(count[1]):
                for k in range(count[2]):
                    best = least
                    place = (ds[2 * i] * size[1] + hs[2 * j]) * size[2] + ws[2 * k]
                    for d in range(ds[2 * i], ds[2 * i + 1], step[0]):
                        for h in range(hs[2 * j], hs[2 * j + 1], step[1]):
                            row = (d * size[1] + h) * size[2]
                            for w in range(ws[2 * k], ws[2 * k + 1], step[2]):
                                here = x[v * volume + row + w]
                                if here > best or here != here:
                                    best, place = here, row + w
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
                for k in range(count[2]):
                    total = zero
                    for d in range(ds[2 * i], ds[2 * i + 1], step[0]):
                        for h in range(hs[2 * j], hs[2 * j + 1], step[1]):
                            row = v * volume + (d * size[1] + h) * size[2]
                            for w in range(ws[2 * k], ws[2 * k + 1], step[2]):
                                total += x[row + w]
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
                for k in range(count[2]):
                    for d in range(ds[2 * i], ds[2 * i + 1], step[0]):
                        for h in range(hs[2 * j], hs[2 * j + 1], step[1]):
                            row = v * volume + (d * size[1] + h) * size[2]
                            for w in range(ws[2 * k], ws[2 * k + 1], step[2]):
                                to[row + w] += x[at]
                    at += 1
    return 0
