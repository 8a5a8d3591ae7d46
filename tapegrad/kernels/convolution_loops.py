"""Loops of direct convolutions, around kernels of `codegen.convolution_codegen`.

Images are packed such that what a tap reads lies the same number of bytes behind every position,
one channel of some images after the other with zeros around them.  A position between two rows or
images yields nothing that is wanted; a few of these cost less than to begin anew at every row.
Elements are moved as integers, so that one code serves both types.
"""

from tapegrad.kernels.convolution_abi import (
    CONVOLVE,
    Convolution,
    Correlation,
    Form,
    Packing,
    Pass,
    Run,
)
from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call8, i4, i8
from tapegrad.kernels.sweep.arena import has_nan

SMALL = 2048  # elements of an image that stay in the cache while its channels are gone through


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
def copy_each(to, to_step, there, source, source_step, here, count, itemsize, times):
    """`copy` so many times, moving on by steps of bytes: a run of each channel.

    Runs of one vector, the rows of small images, are copied without a loop.
    """
    nbytes = count * itemsize if there == 1 and here == 1 else 0
    if nbytes == 64:
        for _ in range(times):
            a, b = i8(source), i8(to)
            b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7] = (
                a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]
            )  # fmt: skip
            source += source_step
            to += to_step
    elif nbytes == 32:
        for _ in range(times):
            a, b = i8(source), i8(to)
            b[0], b[1], b[2], b[3] = a[0], a[1], a[2], a[3]
            source += source_step
            to += to_step
    elif nbytes == 16:
        for _ in range(times):
            a, b = i8(source), i8(to)
            b[0], b[1] = a[0], a[1]
            source += source_step
            to += to_step
    else:
        for _ in range(times):
            copy(to, there, source, here, count, itemsize)
            source += source_step
            to += to_step
    return 0


@typed
def pack(packing_at, source, images, channels, to):
    """Pack channels of some images: of small images run by run, else channel by channel."""
    packing = Packing(packing_at)
    size = packing.itemsize
    each = channels if packing.plane * channels <= SMALL else 1
    for c in range(0, channels, each):
        for i in range(images):
            here = source + (i * packing.whole + c * packing.plane) * size
            there = to + (c * packing.channel + i * packing.image) * size
            for r in range(packing.runs):
                run = Run(packing.runs_at)[r]
                copy_each(
                    there + run.start * size, packing.channel * size, 1,
                    here + run.place * size, packing.plane * size, packing.step,
                    run.count, size, each,
                )  # fmt: skip
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
def write_tile(results_at, tile, width, position, image, run, images, outputs, out):
    """Copy what is wanted of a tile to images: of runs from one on that begin within."""
    results = Packing(results_at)
    size, end = results.itemsize, position + width
    while image < images:
        this = Run(results.runs_at)[run]
        start = this.start + image * results.image
        if start >= end:
            break
        begin = max(start, position)
        count = min(start + this.count, end) - begin
        at = image * results.whole + this.place + (begin - start) * results.step
        copy_each(
            out + at * size, results.plane * size, results.step,
            tile + (begin - position) * size, width * size, 1, count, size, outputs,
        )  # fmt: skip
        run += 1
        if run == results.runs:
            image, run = image + 1, 0
    return 0


@typed
def run_pass(work_at, pass_at, filters, packed, tile, out, images, begin, end):
    """Compute the outputs of a pass, tile by tile, some blocks of channels of each."""
    work, this = Convolution(work_at), Pass(pass_at)
    results, results_at = Packing(address(this.results)), address(this.results)
    size, width = results.itemsize, work.tile
    block = this.depth * work.rows * size
    image, run, position = 0 if results.runs else images, 0, 0
    while image < images:
        first = Run(results.runs_at)[run]
        position = max(position, first.start + image * results.image)
        for b in range(begin, end):
            at = packed + position * size
            call8(
                work.kernel, this.depth, this.offsets, at, filters + b * block, tile, width * size,
                0, 0,
            )  # fmt: skip
            o = b * work.rows
            write_tile(
                results_at, tile, width, position, image, run, images,
                min(work.rows, work.outputs - o), out + o * results.plane * size,
            )  # fmt: skip
        position += width
        while image < images:
            first = Run(results.runs_at)[run]
            if first.start + image * results.image + first.count > position:
                break
            run += 1
            if run == results.runs:
                image, run = image + 1, 0
    return 0


@typed
def convolve(work_at, x_at, filters_at, y_at, room_at, first, last):
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


@typed
def correlate(work_at, v_at, x_at, totals_at, room_at, first, last, packed_at):
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


@typed
def put_in_order(work_at, itemsize, totals_at, to):
    """Put the sums of all filters, which are there block by block, one filter after the other."""
    work = Correlation(work_at)
    for _ in range(work.channel_groups):
        for b in range(work.row_blocks):
            rows = min(work.rows, work.outputs - b * work.rows)
            for k in range(work.column_blocks):
                first = k * work.columns
                copy_each(
                    to + first * itemsize, work.depth * itemsize, 1,
                    totals_at, work.columns * itemsize, 1,
                    min(work.columns, work.depth - first), itemsize, rows,
                )  # fmt: skip
                totals_at += work.rows * work.columns * itemsize
            to += rows * work.depth * itemsize
    return 0


@typed
def clear(at, nbytes):
    """Set whole words to zero."""
    words = i8(at)
    for i in range(nbytes // 8):
        words[i] = 0
    return 0


@typed
def run_form(form_at, a_at, b_at, to, room_at, first, last):
    """Compute a form of two arrays, or what some groups of images give of it or add to it."""
    this = Form(form_at)
    size = this.itemsize
    clear(room_at, this.room * size)
    if this.loop == CONVOLVE:
        return convolve(this.work, a_at, b_at, to, room_at, first, last)
    packed, totals = room_at + this.packed * size, room_at + this.sums * size
    correlate(this.work, a_at, b_at, totals, room_at, first, last, packed)
    return put_in_order(this.work, size, totals, to)


def form(form_at, a_at, b_at, to, room_at, first, last, checking):
    """`run_form`; with `checking`, 1 where the result has NaN."""
    run_form(form_at, a_at, b_at, to, room_at, first, last)
    this = Form(form_at)
    return has_nan(to, this.size, this.itemsize) if checking else 0
