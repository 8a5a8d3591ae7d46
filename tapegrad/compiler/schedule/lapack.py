"""Schedule linear algebra: small matrices unrolled (`small_factor`), others by LAPACK.

There is one LLVM function for each kind and size, which does a whole batch.  It returns 0, or 1
where it fails: then the operation's own forward is called, which raises as it does eagerly, or
finds a result by another method.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.codegen import (
    lapack_routines,
    lapack_solves,
    matrix_exponential,
    small_factor,
)
from tapegrad.compiler.codegen.lapack_routines import (
    COLUMNS,
    RESULT,
    RIGHT,
    VECTOR,
    Scheme,
    factorization,
)
from tapegrad.compiler.ir.buffers import Buffer, Place, follow, whole
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.llvm.function_builder import FunctionBuilder
from tapegrad.compiler.passes.complex_pairs import OnPairs
from tapegrad.compiler.schedule.step_ir import Copy, RoutineCall, Step
from tapegrad.ops import shape as s
from tapegrad.ops.core import Op
from tapegrad.tape.shape_table import Shape

Room = Callable[[np.dtype[Any], int], Buffer]


class _Matrices(NamedTuple):
    """What an operation is of: its name, and of how many parts the numbers of operands are.

    Of complex numbers the operation is on arrays of parts (`passes.complex_pairs`): the last
    dimension is that of the parts.
    """

    name: str
    each: tuple[int, ...]

    @property
    def parts(self) -> int:
        """Of how many parts the numbers of the first operand are."""
        return self.each[0]

    def split(self, place: Place) -> tuple[Shape, int, int]:
        """The batch, the rows and the columns of matrices."""
        *batch, m, n = place.shape[:-1] if self.parts == 2 else place.shape
        return tuple(batch), m, n

    def shape(self, batch: Shape, m: int, n: int) -> Shape:
        """The shape of such matrices."""
        return (*batch, m, n, 2) if self.parts == 2 else (*batch, m, n)


def _matrices(node: Node) -> _Matrices:
    op = node.op
    if isinstance(op, OnPairs):
        return _Matrices(op.whole.name, tuple([1 + pair for pair in op.pairs[:-1]]))
    return _Matrices(node.name, (1,) * len(node.args))


def _scheme(name: str) -> Scheme | None:
    """What writes an operation on copies of its operands; None: others do."""
    return (
        lapack_routines.scheme(name) or lapack_solves.scheme(name)
        or matrix_exponential.scheme(name)
    )  # fmt: skip


def serves(node: Node, operands: list[Node]) -> bool:
    """Whether there is code for an operation of linear algebra on such operands."""
    numbers = {x.dtype for x in (*operands, node) if x.dtype.kind != "i"}  # not pivots nor codes
    scheme = _scheme(_matrices(node).name)
    given = scheme.operands if scheme else (COLUMNS,) * len(operands)
    if not all(x.size or how == RIGHT for x, how in zip(operands, given, strict=True)):
        return False
    if len(numbers) > 1 or operands[0].dtype.kind != "f":
        return False
    # A tolerance of its own for each matrix is left to Python.
    return not any(isinstance(node.params.get(key), tuple) for key in ("atol", "rtol"))


def _factored(t: FunctionBuilder, name: str, n: int, columns: int, count: int) -> None:
    """LU of the column-major matrices at %a0; then what each operation computes from it at %a1."""
    info, pivots = t.number(0), t.room(f"[{n} x i32]")
    size, right = t.number(n), t.number(columns)
    with t.loop(count) as i:
        matrix = t.at("%a0", t.mad(i, n * n * t.parts, 0))
        if name in ("det", "slogdet"):
            t.call("getrf", size, size, matrix, size, pivots, info)
            _determinant(t, name, i, matrix, pivots, n, t.load(info, "i32"))
            return
        out = t.at("%a1", t.mad(i, n * columns * t.parts, 0))
        t.call("gesv", size, right, matrix, size, pivots, out, size, info)
        t.check(info)
        if name == "cofactor":
            sign, size_of = _logarithm(t, matrix, pivots, n)
            det = _exponential(t, sign, t.load(size_of))
            with t.loop(n * n) as k:
                t.put(t.times(t.get(t.number_at(out, k)), det), t.number_at(out, k))
        elif name == "logdet_slope":
            t.conjugate(out, n * n)


def _logarithm(t: FunctionBuilder, matrix: str, pivots: str, n: int) -> tuple[list[str], str]:
    """Sign and log-magnitude of a determinant, as NumPy computes them; returns their addresses.

    The sign of a complex number is its phase.
    """
    sign, total = t.room(f"[{t.parts} x {t.kind}]"), t.room(t.kind)
    t.put([t.constant(x) for x in (1.0, 0.0)[: t.parts]], sign)
    t.store(t.constant(0.0), total)
    with t.loop(n) as k:
        element = t.get(t.number_at(matrix, t.mad(k, n + 1, 0)))
        size = t.size(element)
        pivot = t.load(t.at(pivots, k, "i32"), "i32")
        there = t.emit(f"trunc i64 {t.emit(f'add i64 {k}, 1')} to i32")
        swapped = t.emit(f"icmp ne i32 {pivot}, {there}")
        negated = [t.emit(f"fneg {t.kind} {x}") for x in t.get(sign)]
        before = [t.choose(swapped, a, b) for a, b in zip(negated, t.get(sign), strict=True)]
        phase = [t.two("fdiv", x, size) for x in element]
        t.put(t.times(before, phase), sign)
        t.store(t.two("fadd", t.load(total), t.math("log", size)), total)
    return t.get(sign), total


def _exponential(t: FunctionBuilder, sign: list[str], total: str) -> list[str]:
    size = t.math("exp", total)
    return [t.two("fmul", x, size) for x in sign]


def _determinant(
    t: FunctionBuilder, name: str, i: str, matrix: str, pivots: str, n: int, info: str
) -> None:
    signs, total_at = _logarithm(t, matrix, pivots, n)
    singular = t.emit(f"icmp sgt i32 {info}, 0")
    zero, low = t.constant(0.0), t.constant(-np.inf)
    sign = [t.choose(singular, zero, x) for x in signs]
    total = t.choose(singular, low, t.load(total_at))
    if name == "det":
        t.put(_exponential(t, sign, total), t.number_at("%a1", i))
    else:
        t.put(sign, t.number_at("%a1", t.mad(i, 2, 0)))
        t.put([total, zero][: t.parts], t.number_at("%a1", t.mad(i, 2, 1)))


def _rooted(t: FunctionBuilder, n: int, count: int) -> None:
    """Cholesky in place, row-major: to LAPACK that is the transpose, so the upper factor."""
    info, size, upper = t.number(0), t.number(n), t.letter("U")
    with t.loop(count) as i:
        matrix = t.at("%a0", t.mad(i, n * n * t.parts, 0))
        t.call("potrf", upper, size, matrix, size, info)
        t.check(info)
        with t.loop(n) as row:
            diagonal = t.load(t.number_at(matrix, t.mad(row, n + 1, 0)))
            t.fail(t.emit(f"fcmp uno {t.kind} {diagonal}, {diagonal}"))
            with t.loop(n, t.emit(f"add i64 {row}, 1")) as column:
                t.put([t.constant(0.0)] * t.parts, t.number_at(matrix, t.mad(row, n, column)))


def _substituted(
    t: FunctionBuilder, params: dict[str, Any], n: int, columns: int, count: int
) -> None:
    """Triangular solves in place, row-major: to BLAS all is transposed, and on the other side."""
    letters = ["R", "L" if params["upper"] else "U", "N", "U" if params["unit"] else "N"]
    flags = [t.letter(x) for x in letters]
    size, right, one = t.number(n), t.number(columns), t.factor(1.0)
    with t.loop(count) as i:
        matrix = t.at("%a0", t.mad(i, n * n * t.parts, 0))
        out = t.at("%a1", t.mad(i, n * columns * t.parts, 0))
        t.call("trsm", *flags, right, size, one, matrix, size, out, right)
    if params["strong"]:  # NaN may come of zero divided by zero
        with t.loop(count * n * columns * t.parts) as k:
            t.fail(t.infinite(t.load(t.at("%a1", k))))


def _by_columns(buffer: Buffer, batch: Shape, n: int, columns: int, parts: int = 1) -> Place:
    """A window over column-major matrices, of numbers of one part or of two."""
    full = whole(buffer, (*batch, columns, n, parts))
    *outer, across, down, unit = full.strides
    shape, strides = (*batch, n, columns), (*outer, down, across)
    if parts == 1:
        return full._replace(shape=shape, strides=strides)
    return full._replace(shape=(*shape, parts), strides=(*strides, unit))


def steps(node: Node, operands: list[Place], room: Room) -> tuple[list[Step], Place]:
    """The steps of an operation, and the place of its result."""
    of = _matrices(node)
    if scheme := _scheme(of.name):
        return _factorized(of, scheme, node, operands, room)
    if of.parts == 1 and small_factor.fits(operands[0].shape[-1], operands[-1].shape[-1]):
        return _small(node, operands, room)
    return _by_lapack(of, node, operands, room)


def _small(node: Node, operands: list[Place], room: Room) -> tuple[list[Step], Place]:
    """One step: the function reads the operands in place."""
    out = seen = whole(room(node.dtype, node.size), node.shape)
    if node.name in ("det", "slogdet"):  # one number, or two, is a column
        numbers = 1 if node.name == "det" else 2
        seen = whole(out.buffer, (*operands[0].shape[:-2], numbers, 1))
    batched = [p.broadcast((*seen.shape[:-2], *p.shape[-2:])) for p in operands]
    routine = small_factor.routine(node.name, node.params, batched, seen)
    return [RoutineCall(node, operands, out, [*batched, seen], routine)], out


class _Operand(NamedTuple):
    """An operand: how the routine gets it, and its shape: of the batch, of a matrix, of numbers."""

    place: Place
    how: str
    batch: Shape
    core: Shape
    pair: Shape


def _operand(place: Place, how: str, parts: int) -> _Operand:
    if how == VECTOR and parts == 2:  # pivots are real, whatever type they come in
        found = follow(place, [(s.getitem, {"index": (..., 0)})])
        assert found is not None
        place, parts = found, 1
    last = len(place.shape) + 1 - parts
    first = last - (1 if how == VECTOR else 2)
    *rows, columns = place.shape[first:last]
    # No right-hand side counts as one of zeros, as eagerly.
    return _Operand(place, how, place.shape[:first], (*rows, max(columns, 1)), place.shape[last:])


def _scratch(x: _Operand, batch: Shape, longest: int, memory: Callable[[int], Buffer]) -> Place:
    """Where a routine gets an operand, in memory of its own."""
    count = prod(batch)
    if x.how not in (COLUMNS, RIGHT):
        shape = (*batch, *x.core, *x.pair)
        return whole(memory(prod(shape)), shape)
    rows, (m, n), parts = longest if x.how == RIGHT else x.core[0], x.core, 1 + len(x.pair)
    found = _by_columns(memory(count * rows * n * parts), batch, rows, n, parts)
    return found._replace(shape=(*batch, m, n, *x.pair))


def _factorized(
    of: _Matrices, scheme: Scheme, node: Node, operands: list[Place], room: Room
) -> tuple[list[Step], Place]:
    """An operation on copies of its operands; in double precision, where NumPy's is."""
    kind = np.dtype(np.float64) if scheme.double else operands[0].buffer.dtype
    out = whole(room(node.dtype if node.dtype.kind == "i" else kind, node.size), node.shape)
    known = [_operand(*x) for x in zip(operands, scheme.operands, of.each, strict=True)]
    batch = np.broadcast_shapes(*(x.batch for x in known))
    count, longest = prod(batch), max(known[0].core)
    before: list[Step] = []
    given = []
    for x in known:
        window = out
        if x.how != RESULT:
            window = _scratch(x, batch, longest, lambda size: room(kind, size))
            given.append(window)
        source = 0.0 if 0 in x.place.shape else x.place.broadcast(window.shape)
        before.append(Copy(source, window))
    routine, size = factorization(
        scheme, tuple(node.params.items()), count, of.parts, tuple([x.core for x in known]),
        tuple([place.buffer.size // count for place in (*given, out)]), (kind, out.buffer.dtype),
    )  # fmt: skip
    given += [whole(room(kind, size), (size,)), out]
    steps = [*before, RoutineCall(node, operands, out, given, routine)]
    if node.dtype == out.buffer.dtype:
        return steps, out
    single = whole(room(node.dtype, node.size), node.shape)
    return [*steps, Copy(out, single)], single


def _by_lapack(
    of: _Matrices, node: Node, operands: list[Place], room: Room
) -> tuple[list[Step], Place]:
    """Copy matrices to scratch, where LAPACK works on them in place."""
    dtype, name = node.dtype, of.name
    batch, n, _ = of.split(operands[0])
    text = FunctionBuilder(dtype, of.parts)
    out = whole(room(dtype, node.size), node.shape)
    if name in ("det", "slogdet"):
        count = prod(batch)
        matrix = _by_columns(room(dtype, count * n * n * of.parts), batch, n, n, of.parts)
        _factored(text, name, n, 0, count)
        given = [matrix, out]
        before: list[Step] = [Copy(operands[0], matrix)]
    elif name == "cholesky":
        _rooted(text, n, prod(batch))
        given, before = [out], [Copy(operands[0], out)]
    else:
        batch, _, columns = of.split(out)
        count = prod(batch)
        memory = room(dtype, count * n * n * of.parts)
        if name == "solve_triangular":
            matrix = whole(memory, of.shape(batch, n, n))
            _substituted(text, node.params, n, columns, count)
        else:
            out = _by_columns(out.buffer, batch, n, columns, of.parts)
            matrix = _by_columns(memory, batch, n, n, of.parts)
            _factored(text, name, n, columns, count)
        given = [matrix, out]
        before = [Copy(operands[0].broadcast(matrix.shape), matrix)]
        if len(operands) == 2:
            before.append(Copy(operands[1].broadcast(out.shape), out))
        else:
            before += [Copy(0.0, out), Copy(1.0, _diagonal(of, out, len(batch)))]
    if name in ("logdet_slope", "cofactor"):  # the transpose of the inverse
        out = whole(out.buffer, node.shape)
        given[1] = out
    return [*before, RoutineCall(node, operands, out, given, text.routine([""] * len(given)))], out


def _diagonal(of: _Matrices, place: Place, first: int) -> Place:
    """The real parts of the diagonals of matrices, whose rows are the dimension `first`."""
    chain: list[tuple[Op, dict[str, Any]]] = [
        (s.diagonal, {"offset": 0, "dim1": first, "dim2": first + 1})
    ]
    if of.parts == 2:
        chain.insert(0, (s.getitem, {"index": (..., 0)}))
    found = follow(place, chain)
    assert found is not None
    return found
