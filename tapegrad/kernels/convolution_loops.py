"""Loops of direct convolutions, around kernels of `codegen.convolution_codegen`.

Images are packed such that what a tap reads lies the same number of bytes behind every position,
one channel of some images after the other with zeros around them.  A position between two rows or
images yields nothing that is wanted; a few of these cost less than to begin anew at every row.
Elements are moved as integers, so that one code serves both types.
"""

from tapegrad.kernels.convolution_abi import Convolution, Correlation, Packing, Pass, Run
from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call8, i4, i8


@typed
def copy(to, there, source, here, count, itemsize):
    """Copy elements that lie `there` and `here` elements apart."""
    if itemsize == 4:
        a, b = i4(source), i4(to)
        if there == 1 and here == 1:
            for i in range(count):
                b[i] = a[i]
        else:
            for i in range(count):
                b[i * there] = a[i * here]
    else:
        c, d = i8(source), i8(to)
        if there == 1 and here == 1:
            for i in range(count):
                d[i] = c[i]
        else:
            for i in range(count):
                d[i * there] = c[i * here]
    return 0


@typed
def pack(packing_at, source, images, channels, to):
    """Pack channels of some images."""
    packing = Packing(packing_at)
    size = packing.itemsize
    for c in range(channels):
        for i in range(images):
            here = source + (i * packing.whole + c * packing.plane) * size
            there = to + (c * packing.channel + i * packing.image) * size
            for r in range(packing.runs):
                run = Run(packing.runs_at)[r]
                at = here + run.place * size
                copy(there + run.start * size, 1, at, packing.step, run.count, size)
    return 0


@typed
def arrange(work_at, filters_at, to):
    """Put filters into the order in which blocks of outputs read them; return where they end."""
    work = Convolution(work_at)
    size = Packing(address(work.packing)).itemsize
    blocks = (work.outputs + work.rows - 1) // work.rows
    for g in range(work.channel_groups):
        group = filters_at + g * work.filter_group * size
        for p in range(work.passes):
            this = Pass(work.passes_at)[p]
            for b in range(blocks):
                rows = min(work.rows, work.outputs - b * work.rows)
                for k in range(this.depth):
                    at = group + (b * work.rows * work.filter + i8(this.weights)[k]) * size
                    copy(to, 1, at, work.filter, rows, size)
                    to += work.rows * size
    return to


@typed
def write_tile(results_at, tile, width, position, first, rows, outputs, out):
    """Copy what is wanted of a tile to images: of runs from the first on that begin within."""
    results = Packing(results_at)
    size, r, end = results.itemsize, first, position + width
    while r < rows:
        image, run = r // results.runs, Run(results.runs_at)[r % results.runs]
        start = run.start + image * results.image
        if start >= end:
            break
        begin = max(start, position)
        count = min(start + run.count, end) - begin
        at = image * results.whole + run.place + (begin - start) * results.step
        for o in range(outputs):
            copy(
                out + (o * results.plane + at) * size, results.step,
                tile + (o * width + begin - position) * size, 1, count, size,
            )  # fmt: skip
        r += 1
    return 0


@typed
def run_pass(work_at, pass_at, filters, packed, tile, out, images, begin, end):
    """Compute the outputs of a pass, tile by tile, some blocks of channels of each."""
    work, this = Convolution(work_at), Pass(pass_at)
    results, results_at = Packing(address(this.results)), address(this.results)
    size, rows, width = results.itemsize, results.runs * images, work.tile
    block = this.depth * work.rows * size
    first, position = 0, 0
    while first < rows:
        run = Run(results.runs_at)[first % results.runs]
        position = max(position, run.start + first // results.runs * results.image)
        for b in range(begin, end):
            at = packed + position * size
            call8(
                work.kernel, this.depth, this.offsets, at, filters + b * block, tile, width * size,
                0, 0,
            )  # fmt: skip
            o = b * work.rows
            write_tile(
                results_at, tile, width, position, first, rows, min(work.rows, work.outputs - o),
                out + o * results.plane * size,
            )  # fmt: skip
        position += width
        while first < rows:
            run = Run(results.runs_at)[first % results.runs]
            if run.start + first // results.runs * results.image + run.count > position:
                break
            first += 1
    return 0


def convolve(work_at, x_at, filters_at, y_at, room_at, first, last, p7):
    """Compute the outputs of some groups of images: of each, as many parts as there are.

    The room is for the filters in order, a tile, and packed images, and is zero at first.
    """
    work, packing = Convolution(work_at), Packing(address(Convolution(work_at).packing))
    size = packing.itemsize
    blocks = (work.outputs + work.rows - 1) // work.rows
    tile = arrange(work_at, filters_at, room_at)
    packed = tile + work.rows * work.tile * size
    for unit in range(first, last):
        start, part = unit // work.parts * work.together, unit % work.parts
        begin, end = blocks * part // work.parts, blocks * (part + 1) // work.parts
        images, filters = min(work.together, work.images - start), room_at
        for g in range(work.channel_groups):
            at = x_at + (start * packing.whole + g * work.inputs * packing.plane) * size
            pack(address(work.packing), at, images, work.inputs, packed)
            for p in range(work.passes):
                this = Pass(work.passes_at)[p]
                results = Packing(address(this.results))
                out = start * results.whole + g * work.outputs * results.plane
                run_pass(
                    work_at, address(this.results), filters, packed, tile, y_at + out * size,
                    images, begin, end,
                )  # fmt: skip
                filters += blocks * this.depth * work.rows * size
    return 0


def correlate(work_at, x_at, v_at, totals_at, room_at, first, last, packed_at):
    """Add what some groups of images contribute to the sums of all filters."""
    work = Correlation(work_at)
    packing, results = Packing(address(work.packing)), Packing(address(work.results))
    size, block = packing.itemsize, work.rows * work.columns * packing.itemsize
    for g in range(work.channel_groups):
        for chunk in range(first, last):
            start = chunk * work.together
            images = min(work.together, work.images - start)
            at = x_at + (start * packing.whole + g * work.inputs * packing.plane) * size
            pack(address(work.packing), at, images, work.inputs, packed_at)
            at = v_at + (start * results.whole + g * work.outputs * results.plane) * size
            pack(address(work.results), at, images, work.outputs, room_at)
            count = (images - 1) * results.image + work.end
            steps = (count + work.lanes - 1) // work.lanes
            if images < work.together:  # what other images have left behind them
                zero = room_at + (results.channel - 1) * size  # the room that is left at the end
                for o in range(work.outputs):
                    at = room_at + (o * results.channel + count) * size
                    copy(at, 1, zero, 0, steps * work.lanes - count, size)
            sums = totals_at + g * work.row_blocks * work.column_blocks * block
            for b in range(work.row_blocks):
                at = room_at + b * work.rows * results.channel * size
                for k in range(work.column_blocks):
                    call8(
                        work.kernel, steps, at, results.channel * size, packed_at,
                        work.offsets + 8 * k * work.columns, sums, 0, 0,
                    )  # fmt: skip
                    sums += block
    return 0
