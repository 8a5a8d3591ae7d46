"""Run loops over elements, of operands with any strides: ufuncs' loops, the library's kernels."""

from tapegrad.kernels.memory import address, call4, call8, i4, i8, room_f8, room_i8
from tapegrad.native.abi import MOST_DIMENSIONS, NO_OPERAND, NULL, RESULT, SOURCES, Nest, UfuncLoop
from tapegrad.native.pyobjects import (
    ARRAY_DATA,
    ARRAY_SHAPE,
    F4_SIZE,
    FIRST_CLASS,
    NDIM,
    STRIDES,
    count_of,
    itemsize_of,
    typed,
)
from tapegrad.tape.record_format import COLUMN, FLAT, ROW

CHUNK = 128  # elements that are brought together for a kernel
CHUNKS = 3 * CHUNK


@typed
def stride_along(array, ndim, d):
    """By how many bytes an array goes on along a dimension of the result, which has `ndim`."""
    k = d - ndim + i4(array + NDIM)[0]
    if k < 0 or i8(i8(array)[ARRAY_SHAPE])[k] == 1:
        return 0
    return i8(i8(array)[STRIDES])[k]


@typed
def lies_inside(operands, plan, inner, outer):
    """Whether operands say that one dimension lies inside another: 1, -1 that not, 0 nothing.

    In a conflict C order wins, as it does for NumPy's iterators.
    """
    found = 0
    for k in range(plan.operands):
        one = abs(stride_along(operands[k].array, plan.ndim, inner))
        two = abs(stride_along(operands[k].array, plan.ndim, outer))
        if one != 0 and two != 0:
            if two <= one:
                return -1
            found = 1
    return found


@typed
def result_strides(operands, plan, strides):
    """Write the strides of a result that lies as operands do, as NumPy allocates it."""
    order, step = room_i8(MOST_DIMENSIONS), plan.itemsize
    for i in range(plan.ndim):
        d = plan.ndim - 1 - i
        at, k = i, i - 1
        while k >= 0:
            found = lies_inside(operands, plan, d, order[k])
            if found < 0:
                break
            if found > 0:
                at = k
            k -= 1
        for k in range(i, at, -1):
            order[k] = order[k - 1]
        order[at] = d
    for i in range(plan.ndim):
        i8(strides)[order[i]] = step
        step *= i8(plan.lengths)[order[i]]
    return 0


@typed
def ordered_nest(frame, operands, plan, result, nest):
    """Plan loops over operands that lie in C order, each of which is broadcast as the word says:
    one, or one for each row of so many elements.

    Where there is one element none moves, as NumPy has it, whose powers look at the exponent's.
    """
    itemsize, length = itemsize_of(frame, operands.array), plan.aux
    nest.count, nest.lengths[0] = 1, count_of(result)
    if length:
        nest.count, nest.lengths[1], nest.lengths[0] = 2, nest.lengths[0] // length, length
        nest.done[1] = 0
    for k in range(plan.operands):
        kind = (plan.word >> FIRST_CLASS + 2 * k) & 3
        row = nest.strides[k] = itemsize if kind == FLAT or kind == ROW else 0
        if nest.lengths[0] == 1:
            nest.strides[k] = 0
        nest.strides[SOURCES + k] = row * length if kind == FLAT else 0
        if kind == COLUMN:
            nest.strides[SOURCES + k] = itemsize
        nest.starts[k] = i8(operands[k].array)[ARRAY_DATA]
    nest.starts[RESULT], nest.strides[RESULT] = i8(result)[ARRAY_DATA], plan.itemsize
    nest.strides[SOURCES + RESULT] = plan.itemsize * length
    nest.starts[NULL], nest.strides[NULL], nest.strides[SOURCES + NULL] = address(frame.null), 0, 0
    return 0


@typed
def strided_nest(frame, operands, plan, result, nest):
    """Plan nested loops in the order in which the result lies, as few as there can be."""
    order, ndim, steps = room_i8(MOST_DIMENSIONS), i4(result + NDIM)[0], i8(i8(result)[STRIDES])
    for i in range(ndim):
        d, at = ndim - 1 - i, i
        while at > 0 and steps[order[at - 1]] > steps[d]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = d
    for k in range(SOURCES):
        nest.starts[k], nest.strides[k] = 0, 0
    for k in range(plan.operands):
        nest.starts[k] = i8(operands[k].array)[ARRAY_DATA]
    nest.starts[RESULT], nest.starts[NULL] = i8(result)[ARRAY_DATA], address(frame.null)
    nest.count, nest.lengths[0], nest.done[0] = 1, 1, 0
    for i in range(ndim):
        n = i8(i8(result)[ARRAY_SHAPE])[order[i]]
        if n == 1:
            continue
        last = nest.count - 1
        even = 1
        for k in range(SOURCES):
            step = 0
            if k < plan.operands:
                step = stride_along(operands[k].array, ndim, order[i])
            elif k == RESULT:
                step = steps[order[i]]
            nest.strides[nest.count * SOURCES + k] = step
            if step != nest.strides[last * SOURCES + k] * nest.lengths[last]:
                even = 0
        if even:
            nest.lengths[last] *= n
        else:
            if nest.lengths[0] == 1:  # the first of more than one element
                for k in range(SOURCES):
                    nest.strides[k] = nest.strides[nest.count * SOURCES + k]
                nest.count -= 1
            nest.lengths[nest.count], nest.done[nest.count] = n, 0
            nest.count += 1
    return 0


@typed
def next_row(nest):
    """Go on to the next innermost loop; 0: there is none, and all is as at first."""
    for d in range(1, nest.count):
        nest.done[d] += 1
        for k in range(SOURCES):
            nest.starts[k] += nest.strides[d * SOURCES + k]
        if nest.done[d] < nest.lengths[d]:
            return 1
        nest.done[d] = 0
        for k in range(SOURCES):
            nest.starts[k] -= nest.strides[d * SOURCES + k] * nest.lengths[d]
    return 0


@typed
def run_ufunc(frame, operands, plan, result):
    """Run one loop of NumPy or two over operands that are broadcast."""
    nest, loops = Nest(address(room_f8(Nest.SIZE))), UfuncLoop(plan.loop)
    arguments, paces, size = room_i8(3), room_i8(3), room_i8(1)
    if plan.strided:
        strided_nest(frame, operands, plan, result, nest)
    else:
        ordered_nest(frame, operands, plan, result, nest)
    for k in range(2):
        more = 1 if loops[k].function != 0 and count_of(result) != 0 else 0
        while more:
            used = 0
            for j in range(3):
                source = loops[k].first if j == 0 else loops[k].second if j == 1 else RESULT
                if source != NO_OPERAND:
                    arguments[used], paces[used] = nest.starts[source], nest.strides[source]
                    used += 1
            size[0] = nest.lengths[0]
            call4(
                loops[k].function, address(arguments), address(size), address(paces), loops[k].data
            )
            more = next_row(nest)
    return 0


@typed
def gathered(start, step, count, itemsize, to):
    """Where some elements stand one after the other: there, or where they are brought together."""
    if step == itemsize:
        return start
    for k in range(count):
        if itemsize == F4_SIZE:
            i4(to)[k] = i4(start + k * step)[0]
        else:
            i8(to)[k] = i8(start + k * step)[0]
    return to


@typed
def run_kernel(frame, operands, plan, result):
    """Compute element by element by a kernel, which takes them one after the other, or a number."""
    count, given = plan.operands, room_i8(3)
    if not plan.strided:
        for k in range(count):
            given[k] = i8(operands[k].array)[ARRAY_DATA]
        to = i8(result)[ARRAY_DATA]
        return call8(plan.loop, count_of(result), to, given[0], given[1], given[2], 0, 0, 0)
    nest, chunk = Nest(address(room_f8(Nest.SIZE))), room_f8(CHUNKS)
    strided_nest(frame, operands, plan, result, nest)
    itemsize, more = itemsize_of(frame, operands.array), 1
    while more:
        for first in range(0, nest.lengths[0], CHUNK):
            n = min(CHUNK, nest.lengths[0] - first)
            for k in range(count):
                given[k] = nest.starts[k] + first * nest.strides[k]
                if i4(operands[k].array + NDIM)[0] != 0:
                    to = address(chunk) + 8 * k * CHUNK
                    given[k] = gathered(given[k], nest.strides[k], n, itemsize, to)
            to = nest.starts[RESULT] + first * nest.strides[RESULT]
            call8(plan.loop, n, to, given[0], given[1], given[2], 0, 0, 0)
        more = next_row(nest)
    return 0
