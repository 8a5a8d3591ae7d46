"""Loops of Fourier transforms, around those of `codegen.fourier_codegen`.

A block of lines is loaded into two planes, one of real and one of imaginary parts, an element of
all lines after the other; so every pass works on vectors, however the lines lie in memory.  The
transform back exchanges the planes at both ends.
"""

from numba import float64 as T

from tapegrad.kernels.flags import scalar, typed
from tapegrad.kernels.fourier_abi import (
    MIDDLE,
    OPERAND,
    FourierForm,
    FourierPass,
    FourierStage,
    Lines,
)
from tapegrad.kernels.memory import address, call8
from tapegrad.kernels.memory import f8 as pointer

SIZE = 8  # bytes
TILE = 16  # elements of all lines that are moved together, within a few lines of the cache
zero = T(0.0)


@scalar
def start_of(lines, line):
    """Where a line begins."""
    return (line // lines.run * lines.jump + line % lines.run * lines.pace) * lines.parts * SIZE


@typed
def clear(at, size, columns, first):
    """Set columns of a plane to zero, from the first of them on."""
    plane = pointer(at)
    for k in range(size):
        for j in range(first, columns):
            plane[k * columns + j] = zero
    return 0


@typed
def moved_by_kernel(lines_at, array, first, columns, size, lanes, re_at, gap, scale_at):
    """Move a whole block of lines; how many elements of each that were."""
    lines = Lines(lines_at)
    if lines.kernel == 0:
        return 0
    distance, count = lines.step, size
    if lines.tile:
        distance, count = lines.pace, size // lines.tile
    at = array + start_of(lines, first)
    distance *= lines.parts * SIZE
    call8(lines.kernel, at, re_at, gap, distance, count, columns // lanes, scale_at, 0)
    return count * lines.tile if lines.tile else size


@typed
def load(lines_at, array, first, count, columns, size, lanes, re_at, gap):
    """Load lines, and zeros in the place of those that are not there."""
    lines, re, im, done = Lines(lines_at), pointer(re_at), pointer(re_at + gap), 0
    if count == columns:
        done = moved_by_kernel(lines_at, array, first, columns, size, lanes, re_at, gap, 0)
    elif lines.parts == 2:
        clear(re_at + gap, size, columns, max(count, 0))
    if count < columns:
        clear(re_at, size, columns, max(count, 0))
    step, is_real = lines.step * lines.parts, lines.parts == 1
    for start in range(done, size, TILE):
        end = min(start + TILE, size)
        for j in range(count):
            at = pointer(array + start_of(lines, first + j))
            if is_real:
                for k in range(start, end):
                    re[k * columns + j] = at[k * step]
            else:
                for k in range(start, end):
                    re[k * columns + j], im[k * columns + j] = at[k * step], at[k * step + 1]
    return 0


@typed
def store(lines_at, array, first, count, columns, size, lanes, re_at, gap, scale_at):
    """Store lines."""
    lines, re, im, scale = Lines(lines_at), pointer(re_at), pointer(re_at + gap), pointer(scale_at)
    factor, done = scale[0], 0
    if count == columns:
        done = moved_by_kernel(lines_at, array, first, columns, size, lanes, re_at, gap, scale_at)
    step, is_real = lines.step * lines.parts, lines.parts == 1
    for start in range(done, size, TILE):
        end = min(start + TILE, size)
        for j in range(count):
            at = pointer(array + start_of(lines, first + j))
            if is_real:
                for k in range(start, end):
                    at[k * step] = re[k * columns + j] * factor
            else:
                for k in range(start, end):
                    at[k * step] = re[k * columns + j] * factor
                    at[k * step + 1] = im[k * columns + j] * factor
    return 0


@typed
def load_block(stage_at, array, line, count, from_at, to_at, gap):
    """Load a block of lines; where its planes are."""
    stage = FourierStage(stage_at)
    size, width, lanes, lines = stage.size, stage.width, stage.lanes, address(stage.source)
    re, back = (from_at + gap, -gap) if stage.inverse else (from_at, gap)
    if stage.joins:
        columns, end = 2 * width, size // 2 + 1
        load(lines, array, line, count, columns, end, lanes, from_at, gap)
        re = to_at + gap if stage.inverse else to_at
        # The planes of the operand follow each other; those of the result may be exchanged.
        call8(stage.joins, from_at, re, gap, back, size, width // lanes, 0, 0)
        return to_at
    load(lines, array, line, min(count, width), width, size, lanes, re, back)
    if stage.paired:
        load(lines, array, line + width, count - width, width, size, lanes, re + back, -back)
    elif Lines(lines).parts == 1:
        clear(re + back, size, width, 0)
    return from_at


@typed
def store_block(stage_at, array, line, count, from_at, to_at, gap):
    """Store the results of a block."""
    stage = FourierStage(stage_at)
    size, width, lanes, lines = stage.size, stage.width, stage.lanes, address(stage.target)
    if stage.parts:
        columns, end = 2 * width, size // 2 + 1
        call8(stage.parts, from_at, to_at, gap, gap, size, width // lanes, 0, 0)
        store(lines, array, line, count, columns, end, lanes, to_at, gap, stage.scale)
        return 0
    re, back = (from_at + gap, -gap) if stage.inverse else (from_at, gap)
    store(lines, array, line, min(count, width), width, size, lanes, re, back, stage.scale)
    if stage.paired:
        count, line, re = count - width, line + width, re + back
        store(lines, array, line, count, width, size, lanes, re, -back, stage.scale)
    return 0


@typed
def run_stage(form_at, stage_at, source, target, room, first, last):
    """Transform some blocks of the lines of an array."""
    stage, gap = FourierStage(stage_at), FourierForm(form_at).gap
    run, columns = Lines(address(stage.source)).run, stage.width * (1 + stage.paired)
    for unit in range(first, last):
        line = unit // stage.blocks * stage.group + unit % stage.blocks * columns
        end = min((unit // stage.blocks + 1) * stage.group, stage.lines)
        count = min(columns, end - line)
        at = load_block(stage_at, source, line, count, room, room + 2 * gap, gap)
        other = 2 * room + 2 * gap - at
        for n in range(stage.passes):
            this = FourierPass(stage.passes_at)[n]
            call8(this.kernel, at, other, gap, this.factors, this.rest, this.vectors, 0, 0)
            at, other = other, at
        if stage.roots:
            vectors = stage.width // stage.lanes
            call8(
                stage.roots, at, gap, stage.size, vectors, line % run, stage.whole, stage.places,
                stage.tables,
            )  # fmt: skip
        store_block(stage_at, target, line, count, at, other, gap)
    return 0


def fourier(form_at, operand_at, middle_at, result_at, room_at, first, last, p7):
    """Do all stages of a form, or some units of its only one."""
    form, room_at = FourierForm(form_at), (room_at + 63) // 64 * 64  # as vectors are aligned
    if middle_at == 0:
        middle_at = room_at + form.middle
    for n in range(form.stages):
        stage = FourierStage(form.stages_at)[n]
        source, target = Lines(address(stage.source)).array, Lines(address(stage.target)).array
        given = operand_at if source == OPERAND else result_at
        run_stage(
            form_at, address(stage.source), middle_at if source == MIDDLE else given,
            middle_at if target == MIDDLE else result_at, room_at,
            0 if form.stages > 1 else first, stage.units if form.stages > 1 else last,
        )  # fmt: skip
    return 0
