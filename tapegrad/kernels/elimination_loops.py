"""Batches of small systems of equations, around `codegen.elimination_codegen`."""

from numba import float64 as T

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import call8
from tapegrad.kernels.memory import f8 as pointer
from tapegrad.kernels.memory import i8 as words

SIZE = 8  # bytes
zero, one = T(0.0), T(1.0)


@typed
def gather(from_at, item, count, lanes, rows, cols, to_at, width):
    """Load matrices, one of each into an element of vectors; unit matrices in place of none."""
    source, to = pointer(from_at), pointer(to_at)
    for j in range(lanes):
        if from_at != 0 and j < count:
            at = (item + j) * rows * cols
            for r in range(rows):
                for c in range(cols):
                    to[(r * width + c) * lanes + j] = source[at + r * cols + c]
        else:
            for r in range(rows):
                for c in range(cols):
                    to[(r * width + c) * lanes + j] = one if r == c else zero
    return 0


def systems(kernel, lanes, arrays_at, room_at, n, cols, first, last):
    """Solve systems; or of no columns the determinants.  1 where a pivot is zero or no number.

    The words at the address are those of the matrices, of the right sides, or 0 for the unit
    matrix, and of the results.  The room is for as many systems as a vector has elements, two
    vectors, and one more, as the first one is aligned.
    """
    arrays = words(arrays_at)
    a_at, b_at, to = arrays[0], arrays[1], pointer(arrays[2])
    vector, width, found = lanes * SIZE, n + cols, 0
    room_at = (room_at + vector - 1) // vector * vector
    right_at = room_at + n * vector
    sizes_at = room_at + n * width * vector
    room, sizes = pointer(room_at), pointer(sizes_at)
    for item in range(first, last, lanes):
        count = min(last - item, lanes)
        gather(a_at, item, count, lanes, n, n, room_at, width)
        gather(b_at, item, count, lanes, n, cols, right_at, width)
        call8(kernel, room_at, n, width, sizes_at, sizes_at + vector, 0, 0, 0)
        for j in range(count):
            if not sizes[lanes + j] < one:
                found = 1
            if cols == 0:
                to[item + j] = sizes[j]
            for r in range(n):
                for c in range(cols):
                    at = (r * width + n + c) * lanes + j
                    to[((item + j) * n + r) * cols + c] = room[at]
    return found
