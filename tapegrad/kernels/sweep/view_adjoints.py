"""Adjoints of views and concatenations: elements that move and are added up.

`record` is a row of the table of strides (see `tapegrad.tape.shape_table.Strides`).
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import f4, f8, i8


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
def repeats(record):
    """Whether a view shows an element again and again."""
    found = False
    for d in range(record[2]):
        found |= record[4 + 2 * d] == 0 and record[3 + 2 * d] > 1
    return found


@typed
def gather(record, g, out, fresh, is_f4):
    """A part's adjoint is seen in that of the whole, at its row in the table of strides."""
    source, target, source_f4, target_f4 = f8(g), f8(out), f4(g), f4(out)
    inner, step = row_length(record), row_pace(record)
    for r in range(row_count(record)):
        at, to = row_start(record, r), r * inner
        if is_f4:
            for i in range(inner):
                single = source_f4[at + i * step]
                target_f4[to + i] = single if fresh else target_f4[to + i] + single
        else:
            for i in range(inner):
                value = source[at + i * step]
                target[to + i] = value if fresh else target[to + i] + value


@typed
def scatter(record, g, out, fresh, is_f4):
    """The transpose of a view: each element's adjoint goes to where the element is seen.

    `record` is the view's row in the table of strides.
    """
    if fresh:
        clear(out, record[0] * (4 if is_f4 else 8))
    source, target, source_f4, target_f4 = f8(g), f8(out), f4(g), f4(out)
    inner, step = row_length(record), row_pace(record)
    for r in range(row_count(record)):
        at, first = row_start(record, r), r * inner
        if is_f4:
            for i in range(inner):
                target_f4[at + i * step] += source_f4[first + i]
        else:
            for i in range(inner):
                target[at + i * step] += source[first + i]
