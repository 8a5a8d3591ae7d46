"""The arena that lends buffers for adjoints, and the headers of saved arrays."""

from tapegrad.kernels.flags import helper, typed
from tapegrad.kernels.memory import f4, f8, i4, i8, u1
from tapegrad.kernels.sweep.reachability import find

EXPONENT = 0x7FF0000000000000
EXPONENT_F4 = 0x7F800000


@typed
def size_class(nbytes):
    """The power of two, from 16 bytes up, that holds a buffer."""
    level = 4
    while (1 << level) < nbytes:
        level += 1
    return level


@typed
def take(frame, nbytes):
    """A buffer from the free list of its size, or from the arena (the caller checked for room)."""
    level = size_class(nbytes)
    free = i8(frame.free)
    head = free[level]
    if head != 0:
        free[level] = i8(head)[0]
        return head
    at = frame.arena_at
    frame.arena_at = at + (1 << level)
    return at


@typed
def give_back(frame, address, nbytes):
    """Put a buffer on the free list of its size."""
    level = size_class(nbytes)
    free = i8(frame.free)
    i8(address)[0] = free[level]
    free[level] = address


@typed
def widened(frame, at, rows, cols, s0, s1):
    """A buffer with the float32 numbers of a matrix as doubles, row after row."""
    room = take(frame, rows * cols * 8)
    source, target = f4(at), f8(room)
    for i in range(rows):
        for j in range(cols):
            target[i * cols + j] = source[i * s0 + j * s1]
    return room


@typed
def add_numbers(to, source, count, is_f4):
    """Add some numbers to others."""
    for k in range(count):
        if is_f4:
            f4(to)[k] += f4(source)[k]
        else:
            f8(to)[k] += f8(source)[k]


@typed
def add_f4(frame, room, count, out, fresh):
    """Add float64 values to a float32 adjoint, and free their buffer."""
    source, target = f8(room), f4(out)
    for i in range(count):
        target[i] = source[i] if fresh else target[i] + source[i]
    give_back(frame, room, count * 8)


@typed
def saved(frame, index, k):
    """The array header of a kept value, or 0."""
    entry = i8(frame.keep)[index]
    return i8(entry + frame.tuple_items)[k]


@typed
def cell_of(frame, code):
    """Where the address of an input's adjoint stands."""
    if code < 0:
        return frame.leaf_adjoints + 8 * (-code - 1)
    return frame.adjoints + 8 * find(frame, code)


@typed
def hand_on(frame, code, made, count, itemsize):
    """Add a buffer, which this takes over, to the adjoint of an input."""
    cell = i8(cell_of(frame, code))
    if cell[0] == 0:
        cell[0] = made
        return 0
    add_numbers(cell[0] & ~1, made, count, itemsize == 4)
    give_back(frame, made, count * itemsize)
    return 0


@typed
def wanted(frame, code):
    """Whether an input needs an adjoint."""
    if code == 0:
        return False
    if frame.need == 0:
        return True
    if code < 0:
        return u1(frame.leaf_need)[-code - 1] & 1 != 0
    index = find(frame, code)
    return index >= frame.low and u1(frame.need)[index] != 0  # below the lowest there are no marks


@typed
def data(frame, header):
    """The address of an array's first element."""
    return i8(header + frame.array_data)[0] if header != 0 else 0


@typed
def stride(header, frame, dimension, shift):
    """A stride of a kept matrix in elements; a vector counts as a matrix of one row or column.

    An element takes `1 << shift` bytes.
    """
    if i4(header + frame.array_strides - 16)[0] == 1:
        dimension = 0
    return i8(i8(header + frame.array_strides)[0])[dimension] >> shift


@typed
def matrix_at(at, shape_at, strides_at, ndim, index):
    """The address of one matrix of a batch that begins at an address, in whatever order it lies."""
    lengths, steps = i8(shape_at), i8(strides_at)
    for d in range(ndim - 3, -1, -1):
        at += index % lengths[d] * steps[d]
        index //= lengths[d]
    return at


@helper
def none_full(words, bits, s0, s1, rows, cols):
    """Whether no element of a matrix has all bits of its exponent set, as infinities and NaN do."""
    found = 0
    for i in range(rows):
        if s1 == 1:
            for j in range(cols):
                found |= 1 if words[i * s0 + j] & bits == bits else 0
        else:
            for j in range(cols):
                found |= 1 if words[i * s0 + j * s1] & bits == bits else 0
    return found == 0


@typed
def finite(address, s0, s1, rows, cols):
    """Whether a matrix holds neither an infinity nor a NaN."""
    return none_full(i8(address), EXPONENT, s0, s1, rows, cols)


@typed
def finite_f4(address, s0, s1, rows, cols):
    """`finite`, of float32."""
    return none_full(i4(address), EXPONENT_F4, s0, s1, rows, cols)


@typed
def count_of(frame, header):
    """How many elements an array has."""
    count = 1
    for d in range(i4(header + frame.array_strides - 16)[0]):
        count *= i8(i8(header + frame.array_strides - 8)[0])[d]
    return count


@typed
def copy_element(source, to, itemsize):
    """Copy one element."""
    if itemsize == 1:
        u1(to)[0] = u1(source)[0]
    elif itemsize == 4:
        i4(to)[0] = i4(source)[0]
    else:
        i8(to)[0] = i8(source)[0]
        if itemsize == 16:
            i8(to)[1] = i8(source)[1]


@typed
def copy_in_c_order(at, ndim, shape_at, strides_at, first, count, itemsize, to):
    """Write elements of an array from the first-th on, in C order, one after the other."""
    lengths, steps = i8(shape_at), i8(strides_at)
    inner, pace, done = 1, 0, 0
    if ndim:
        inner, pace = lengths[ndim - 1], steps[ndim - 1]
    while done < count:
        source, rest = at, first + done
        n = min(inner - rest % inner, count - done)
        for d in range(ndim - 1, -1, -1):
            source += rest % lengths[d] * steps[d]
            rest //= lengths[d]
        for k in range(n):
            copy_element(source + k * pace, to + (done + k) * itemsize, itemsize)
        done += n


@typed
def in_c_order(frame, header, itemsize):
    """A buffer with the elements of an array that lies in another order."""
    place, count = header + frame.array_strides, count_of(frame, header)
    room = take(frame, count * itemsize)
    copy_in_c_order(
        data(frame, header), i4(place - 16)[0], i8(place - 8)[0], i8(place)[0], 0, count, itemsize,
        room,
    )  # fmt: skip
    return room


@typed
def all_finite(address, s0, s1, rows, cols):
    """`finite`, along the memory whichever way the matrix lies."""
    if s0 == 1 and s1 != 1:
        return finite(address, s1, s0, cols, rows)
    return finite(address, s0, s1, rows, cols)


@typed
def has_nan(at, count, itemsize):
    """Whether a number is NaN."""
    found, single, double = 0, f4(at), f8(at)
    if itemsize == 4:
        for i in range(count):
            found |= 1 if single[i] != single[i] else 0
    else:
        for i in range(count):
            found |= 1 if double[i] != double[i] else 0
    return found
