"""The compiled sweep: reachability, then the tape in reverse.

One function over one frame of integers; `frame.task` says what to do.  The function touches plain
memory only: the records, the adjoint table, and, read-only, the kept values' array headers.  It
never creates or destroys a Python object, and it gives control back (with the cursor in the frame)
at every record that needs Python.
"""

from tapegrad.kernels.flags import typed
from tapegrad.kernels.memory import address, call8, f4, f8, i8, u1
from tapegrad.kernels.sweep.arena import (
    add_f4,
    cell_of,
    data,
    give_back,
    saved,
    take,
    wanted,
    widened,
)
from tapegrad.kernels.sweep.elementwise_adjoints import (
    elementwise,
    input_size,
    kernel_at,
    pattern,
    readable,
    size_of_operand,
    size_of_result,
)
from tapegrad.kernels.sweep.matmul_adjoints import factor
from tapegrad.kernels.sweep.reachability import (
    find,
    input_at,
    input_count,
    locate,
    outdated,
    prepare,
    propagate,
    release,
)
from tapegrad.kernels.sweep.sweep_abi import (
    DONE,
    FIELD,
    FIELD_MASK,
    FREE_LISTS,
    KIND_AXIS,
    KIND_CALL,
    KIND_JOIN,
    KIND_MATMUL,
    KIND_MEAN,
    KIND_PICK,
    KIND_SOLVE,
    KIND_SUM,
    KIND_TRIANGLE,
    KIND_VIEW,
    NEED_CAPTURE,
    NEED_INSIDE,
    ONE_LEAF,
    PROPAGATE,
    RESUME,
    ROOM,
    SINGLE,
    SMALL,
    WANTS_BLAS,
    WANTS_CHECK,
    WANTS_KERNEL,
    WANTS_PYTHON,
    WANTS_ROOM,
    WANTS_RULE,
    SweepFrame,
)
from tapegrad.kernels.sweep.view_adjoints import clear, gather, repeats, scatter
from tapegrad.tape.record_format import (
    AUX,
    CODE_MASK,
    DTYPE_SHIFT,
    FIELDS,
    GENERAL,
    HOOKED,
    MIXED,
    PACKED,
    ROW,
    SCALAR,
    SHAPE,
    WORD,
)

HANDS_BACK = GENERAL | HOOKED
NEEDS_MORE = HOOKED | PACKED | (2 << DTYPE_SHIFT)  # than to call the rule of a function
UNIT = 0x3FF0000000000000  # the bits of 1.0


@typed
def at_places(frame, record, index, kind, k, n, g, out):
    """Call the kernel that knows chosen places."""
    kernel = i8(frame.kernels)[kernel_at(record[WORD] & ~SINGLE, 0, 0)]
    return call8(kernel, address(frame), index, kind, record[AUX], k, n, g, out)


@typed
def spread(record, g, out, fresh, n, mean):
    """The transpose of a sum: each result's adjoint goes to every element it was made from."""
    word = record[WORD]
    total = record[AUX]
    how = (word >> 16) & 3
    row = total if how == SCALAR else n if how == ROW else total // n if n else 0
    scale = 1.0
    if mean and total:
        scale = n / total
    if (word >> DTYPE_SHIFT) & 3:
        source, target = f4(g), f4(out)
        for i in range(total):
            value = source[i % row if how == ROW else i // row] * scale
            target[i] = value if fresh else target[i] + value
    else:
        source8, target8 = f8(g), f8(out)
        if how == ROW:
            for r in range(total // row if row else 0):
                for i in range(row):
                    value = source8[i] * scale
                    target8[r * row + i] = value if fresh else target8[r * row + i] + value
        else:
            for r in range(total // row if row else 0):
                value = source8[r] * scale
                for i in range(row):
                    target8[r * row + i] = value if fresh else target8[r * row + i] + value


@typed
def value_address(frame, index, k):
    """Where the k-th kept value of a record begins, or 0."""
    header = saved(frame, index, k)
    if header == frame.nothing:
        return 0
    return data(frame, header)


@typed
def axis_adjoint(frame, record, index, n, g, out, fresh, is_f4):
    """Call the kernel once for all rows, and add to the adjoint if there is one already."""
    aux = record[AUX]
    size, each, inner = (
        aux & FIELD_MASK, (aux >> FIELD) & FIELD_MASK, (aux >> 2 * FIELD) & FIELD_MASK
    )  # fmt: skip
    kernel = i8(frame.kernels)[kernel_at(record[WORD] & ~SINGLE, 0, 0)]
    x, y = value_address(frame, index, 0), value_address(frame, index, 1)
    if is_f4 and x:
        x = widened(frame, x, 1, size, 0, 1)
    if is_f4 and y:
        y = widened(frame, y, 1, n, 0, 1)
    into = out if fresh else take(frame, size * 8)
    call8(kernel, each, inner, size // (each * inner), g, x, y, into, aux >> 3 * FIELD)
    if is_f4 and x:
        give_back(frame, x, size * 8)
    if is_f4 and y:
        give_back(frame, y, n * 8)
    if not fresh:
        source, target = f8(into), f8(out)
        for i in range(size):
            target[i] += source[i]
        give_back(frame, into, size * 8)


@typed
def moved(frame, record, kind, k, g, out, fresh, is_f4):
    """Add an adjoint whose elements only move; False: in float32 many would be added up."""
    views, aux = i8(frame.views), record[AUX]
    if kind == KIND_JOIN:
        gather(i8(frame.views + 8 * views[aux + k]), g, out, fresh, is_f4)
        return True
    view = i8(frame.views + 8 * aux)
    if is_f4 and repeats(view):
        return False
    scatter(view, g, out, fresh, is_f4)
    return True


@typed
def add_adjoint(frame, record, index, kind, k, g, n, size, out, fresh, is_f4):
    """Add a contribution that is not elementwise, in float64.

    `is_f4`: the saved values are float32.
    """
    if kind == KIND_VIEW:
        scatter(i8(frame.views + 8 * record[AUX]), g, out, fresh, False)
    elif kind == KIND_MATMUL:
        factor(frame, record, index, k, g, out, fresh, is_f4, 0)
    elif kind == KIND_AXIS:
        axis_adjoint(frame, record, index, n, g, out, fresh, is_f4)
    else:
        if fresh:
            clear(out, size * 8)
        at_places(frame, record, index, kind, k, n, g, out)


@typed
def contribute(frame, record, index, kind, k, g, n):
    """Add the contribution of one record to the adjoint of its k-th input."""
    word = record[WORD]
    size, itemsize = (
        input_size(frame, kind, word, n, record[AUX], k),
        size_of_operand(word, kind, k),
    )
    cell = i8(cell_of(frame, input_at(frame, record, k)))
    fresh = cell[0] == 0
    if fresh:
        cell[0] = take(frame, size * itemsize)
    out = cell[0] & ~1
    if kind < KIND_SUM:
        elementwise(frame, record, index, k, g, n, out, fresh)
    elif word & MIXED:
        kernel = i8(frame.kernels)[kernel_at(word, 0, 0)]
        nbytes = size * itemsize if fresh else 0
        call8(kernel, address(frame), index, kind, k, g, out, nbytes, n)
    elif kind == KIND_SUM or kind == KIND_MEAN:
        spread(record, g, out, fresh, n, kind == KIND_MEAN)
    else:
        is_f4 = itemsize == 4
        if kind == KIND_MATMUL and factor(frame, record, index, k, g, out, fresh, is_f4, 1):
            return
        moves = kind == KIND_VIEW or kind == KIND_JOIN
        if moves and moved(frame, record, kind, k, g, out, fresh, is_f4):
            return
        source, target = g, out
        if is_f4:
            source, target = widened(frame, g, 1, n, 0, 1), take(frame, size * 8)
        add_adjoint(frame, record, index, kind, k, source, n, size, target, fresh or is_f4, is_f4)
        if is_f4:
            give_back(frame, source, n * 8)
            add_f4(frame, target, size, out, fresh)


@typed
def handed_back(frame, word, index, kind, n):
    """What a record needs that the sweep leaves: a small call of a user's rule, or more.

    What is added up after the rule needs as much room as any record.
    """
    if kind != KIND_CALL or word & NEEDS_MORE or n > SMALL:
        return WANTS_PYTHON
    if frame.need and u1(frame.need)[index] != NEED_INSIDE:
        return WANTS_PYTHON
    return WANTS_ROOM if frame.arena_end - frame.arena_at < ROOM else WANTS_RULE


@typed
def obstacle(frame, record, index, kind, n):
    """Why the compiled sweep cannot go on with this record by itself: a status, or DONE."""
    word = record[WORD]
    most = SMALL >> 1 if word & MIXED else SMALL
    if word & HANDS_BACK or n > most:
        return handed_back(frame, word, index, kind, n)
    if frame.need and u1(frame.need)[index] & NEED_CAPTURE:
        return WANTS_PYTHON
    if not readable(frame, index, kind):
        return WANTS_PYTHON
    # Of each of four values there may be a copy, whose room is rounded up.
    copies = 8 * n * size_of_result(word) if frame.unordered else 0
    if frame.arena_end - frame.arena_at < ROOM + copies:
        return WANTS_ROOM
    if kind == KIND_MATMUL and frame.gemm == 0 and not word & MIXED:
        return WANTS_BLAS
    if KIND_PICK <= kind <= KIND_TRIANGLE:
        at = kernel_at(word & ~SINGLE, 0, 0)
        if i8(frame.kernels)[at] == 0:
            frame.detail = at
            return WANTS_KERNEL
        if not at_places(frame, record, index, kind, -1, n, 0, 0):
            return WANTS_PYTHON
    if kind >= KIND_SOLVE:
        at = kernel_at(word, 0, 0)
        if i8(frame.kernels)[at] == 0:
            frame.detail = at
            return WANTS_KERNEL
    for k in range(input_count(record)):
        code = input_at(frame, record, k)
        if not wanted(frame, code):
            continue
        if input_size(frame, kind, word, n, record[AUX], k) > SMALL:
            return WANTS_PYTHON
        if kind < KIND_SUM or kind == KIND_AXIS or word & MIXED:
            at = kernel_at(word, k, pattern(word))
            if kind == KIND_AXIS:
                at = kernel_at(word & ~SINGLE, k, 0)
            elif kind >= KIND_SUM:
                at = kernel_at(word, 0, 0)
            if i8(frame.kernels)[at] == 0:
                frame.detail = at
                return WANTS_KERNEL
    return DONE


@typed
def sweep(frame):
    """Downwards: hand each adjoint on to the inputs of its record."""
    adjoints = i8(frame.adjoints)
    for index in range(frame.cursor, frame.low - 1, -1):
        cell = adjoints[index]
        if cell == 0:
            continue
        record = i8(frame.records + index * FIELDS * 8)
        n = i8(frame.sizes)[record[SHAPE]]
        kind = i8(frame.kinds)[record[WORD] & CODE_MASK]
        status = obstacle(frame, record, index, kind, n)
        if status != DONE:
            frame.cursor = index
            return status
        itemsize = size_of_result(record[WORD])
        if kind >= KIND_SOLVE:
            kernel = i8(frame.kernels)[kernel_at(record[WORD], 0, 0)]
            if not call8(kernel, address(frame), index, kind, cell & ~1, itemsize, 0, 0, 0):
                frame.cursor = index
                return WANTS_PYTHON
        else:
            for k in range(input_count(record)):
                if wanted(frame, input_at(frame, record, k)):
                    contribute(frame, record, index, kind, k, cell & ~1, n)
        if cell & 1 == 0:
            give_back(frame, cell, n * itemsize)
        adjoints[index] = 0
    return DONE


@typed
def begin(frame):
    """Clear the adjoints and the arena, and put the seeds in their places."""
    leaves, adjoints = i8(frame.leaf_adjoints), i8(frame.adjoints)
    for slot in range(frame.leaves):
        leaves[slot] = 0
    for index in range(frame.low, frame.cursor + 1):
        adjoints[index] = 0
    free = i8(frame.free)
    for level in range(FREE_LISTS):
        free[level] = 0
    frame.arena_at = frame.arena
    seeds = i8(frame.seeds)
    for i in range(frame.seed_count):
        adjoints[seeds[2 * i]] = seeds[2 * i + 1] | 1
    return DONE


@typed
def aim(frame):
    """A sweep from a root whose adjoint is 1 to one leaf, which nothing below the lowest reads."""
    frame.cursor = find(frame, frame.root)
    frame.one[0] = UNIT
    frame.seed[0], frame.seed[1] = frame.cursor, address(frame.one)
    frame.seeds, frame.seed_count = address(frame.seed), 1
    frame.targets, frame.target_count = address(frame.leaf), 1
    frame.strict, frame.bottom, frame.changed, frame.retain = 0, 1, 0, 0


@typed
def deliver(frame):
    """Copy the adjoint of the one leaf into an array of zeros, if anything has reached it."""
    cell = i8(cell_of(frame, frame.leaf[0]))[0]
    if cell == 0:
        return
    found, into = f8(cell), f8(data(frame, frame.into))
    for i in range(frame.count):
        into[i] = found[i]


def compiled_sweep(frame_at):
    """Do what the frame asks for; returns a status."""
    frame = SweepFrame(frame_at)
    task = frame.task
    # Both move when Python code has lengthened the lists.
    frame.keep, frame.input_lists = i8(frame.keep_at)[0], i8(frame.input_lists_at)[0]
    if task == PROPAGATE:
        return propagate(frame)
    if task != RESUME:
        if task == ONE_LEAF:
            aim(frame)
        locate(frame)
        status = prepare(frame)
        if status != DONE:
            return status
        begin(frame)
        frame.top = frame.cursor
        frame.task = RESUME
        if outdated(frame):
            return WANTS_CHECK
    status = sweep(frame)
    if status == DONE and task == ONE_LEAF:
        deliver(frame)
    if status != DONE or frame.retain:
        return status
    frame.cursor = frame.top
    return release(frame)
