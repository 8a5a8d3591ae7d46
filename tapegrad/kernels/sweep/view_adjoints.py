"""Adjoints of views and concatenations: elements that move and are added up.

`record` is a row of the table of strides (see `tapegrad.tape.shape_table.Strides`).
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import f8, i8


@typed
def clear(address, nbytes):
    """Write zeros."""
    words = i8(address)
    for i in range((nbytes + 7) >> 3):
        words[i] = 0


@typed
def row_start(record, r):
    """Where in an array the r-th row (along the last dimension) of a view begins."""
    at, rest = record[1], r
    for d in range(record[2] - 2, -1, -1):
        at += (rest % record[3 + 2 * d]) * record[4 + 2 * d]
        rest //= record[3 + 2 * d]
    return at


@typed
def row_count(record):
    """How many rows a view has."""
    rows = 1
    for d in range(record[2] - 1):
        rows *= record[3 + 2 * d]
    return rows


@typed
def row_length(record):
    """How many elements a row of a view has."""
    return record[1 + 2 * record[2]] if record[2] else 1


@typed
def row_pace(record):
    """How far the elements of a row are apart."""
    return record[2 + 2 * record[2]] if record[2] else 0


@typed
def gather(record, g, out, fresh):
    """A part's adjoint is seen in that of the whole, at its row in the table of strides."""
    source, target = f8(g), f8(out)
    inner, step = row_length(record), row_pace(record)
    for r in range(row_count(record)):
        at = row_start(record, r)
        for i in range(inner):
            value = source[at + i * step]
            j = r * inner + i
            target[j] = value if fresh else target[j] + value


@typed
def scatter(record, g, out, fresh):
    """The transpose of a view: each element's adjoint goes to where the element is seen.

    `record` is the view's row in the table of strides.
    """
    if fresh:
        clear(out, record[0] * 8)
    source, target = f8(g), f8(out)
    inner, step = row_length(record), row_pace(record)
    for r in range(row_count(record)):
        at = row_start(record, r)
        for i in range(inner):
            target[at + i * step] += source[r * inner + i]
