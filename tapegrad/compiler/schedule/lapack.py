"""Schedule linear algebra: small matrices unrolled (`small_factor`), others by LAPACK.

There is one LLVM function for each kind and size, which does a whole batch.  It returns 0, or 1
where it fails: then the operation's own forward is called, which raises as it does eagerly, or
finds a result by another method.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tapegrad.compiler.codegen import small_factor
from tapegrad.compiler.codegen.lapack_routines import Writer, factorization, writer
from tapegrad.compiler.ir.buffers import Buffer, Place, follow, whole
from tapegrad.compiler.ir.graph import Node
from tapegrad.compiler.llvm.function_builder import FunctionBuilder
from tapegrad.compiler.schedule.step_ir import Copy, RoutineCall, Step
from tapegrad.ops import shape as s

Room = Callable[[np.dtype[Any], int], Buffer]


def _factored(t: FunctionBuilder, node: Node, n: int, columns: int, count: int) -> FunctionBuilder:
    """LU of the column-major matrices at %a0; then what each operation computes from it at %a1."""
    info, pivots = t.number(0), t.room(f"[{n} x i32]")
    size, right = t.number(n), t.number(columns)
    with t.loop(count) as i:
        matrix = t.at("%a0", t.mad(i, n * n, 0))
        if node.name in ("det", "slogdet"):
            t.call("getrf", size, size, matrix, size, pivots, info)
            _determinant(t, node.name, i, matrix, pivots, n, t.load(info, "i32"))
        else:
            out = t.at("%a1", t.mad(i, n * columns, 0))
            t.call("gesv", size, right, matrix, size, pivots, out, size, info)
            t.check(info)
            if node.name == "cofactor":
                sign, size_of = _logarithm(t, matrix, pivots, n)
                det = t.emit(f"fmul {t.kind} {t.load(sign)}, {t.math('exp', t.load(size_of))}")
                with t.loop(n * n) as k:
                    at = t.at(out, k)
                    t.store(t.emit(f"fmul {t.kind} {t.load(at)}, {det}"), at)
    return t


def _logarithm(t: FunctionBuilder, matrix: str, pivots: str, n: int) -> tuple[str, str]:
    """Sign and log-magnitude of a determinant, as NumPy computes them; returns their addresses."""
    zero, one, minus = (t.constant(x) for x in (0.0, 1.0, -1.0))
    sign, total = t.room(t.kind), t.room(t.kind)
    t.store(one, sign)
    t.store(zero, total)
    with t.loop(n) as k:
        element = t.load(t.at(matrix, t.mad(k, n + 1, 0)))
        pivot = t.load(t.at(pivots, k, "i32"), "i32")
        there = t.emit(f"trunc i64 {t.emit(f'add i64 {k}, 1')} to i32")
        swapped = t.emit(f"icmp ne i32 {pivot}, {there}")
        negative = t.emit(f"fcmp olt {t.kind} {element}, {zero}")
        flips = t.emit(f"xor i1 {swapped}, {negative}")
        factor = t.emit(f"select i1 {flips}, {t.kind} {minus}, {t.kind} {one}")
        t.store(t.emit(f"fmul {t.kind} {t.load(sign)}, {factor}"), sign)
        part = t.math("log", t.math("fabs", element))
        t.store(t.emit(f"fadd {t.kind} {t.load(total)}, {part}"), total)
    return sign, total


def _determinant(
    t: FunctionBuilder, name: str, i: str, matrix: str, pivots: str, n: int, info: str
) -> None:
    sign_at, total_at = _logarithm(t, matrix, pivots, n)
    singular = t.emit(f"icmp sgt i32 {info}, 0")
    zero, low = t.constant(0.0), t.constant(-np.inf)
    sign = t.emit(f"select i1 {singular}, {t.kind} {zero}, {t.kind} {t.load(sign_at)}")
    total = t.emit(f"select i1 {singular}, {t.kind} {low}, {t.kind} {t.load(total_at)}")
    if name == "det":
        t.store(t.emit(f"fmul {t.kind} {sign}, {t.math('exp', total)}"), t.at("%a1", i))
    else:
        t.store(sign, t.at("%a1", t.mad(i, 2, 0)))
        t.store(total, t.at("%a1", t.mad(i, 2, 1)))


def _rooted(t: FunctionBuilder, n: int, count: int) -> FunctionBuilder:
    """Cholesky in place, row-major: to LAPACK that is the transpose, so the upper factor."""
    info, size, upper = t.number(0), t.number(n), t.letter("U")
    with t.loop(count) as i:
        matrix = t.at("%a0", t.mad(i, n * n, 0))
        t.call("potrf", upper, size, matrix, size, info)
        t.check(info)
        with t.loop(n) as row:
            diagonal = t.load(t.at(matrix, t.mad(row, n + 1, 0)))
            t.fail(t.emit(f"fcmp uno {t.kind} {diagonal}, {diagonal}"))
            with t.loop(n, t.emit(f"add i64 {row}, 1")) as column:
                t.store(t.constant(0.0), t.at(matrix, t.mad(row, n, column)))
    return t


def _substituted(
    t: FunctionBuilder, params: dict[str, Any], n: int, columns: int, count: int
) -> FunctionBuilder:
    """Triangular solves in place, row-major: to BLAS all is transposed, and on the other side."""
    letters = ["R", "L" if params["upper"] else "U", "N", "U" if params["unit"] else "N"]
    flags = [t.letter(x) for x in letters]
    size, right, one = t.number(n), t.number(columns), t.room(t.kind, t.constant(1.0))
    with t.loop(count) as i:
        matrix, out = t.at("%a0", t.mad(i, n * n, 0)), t.at("%a1", t.mad(i, n * columns, 0))
        t.call("trsm", *flags, right, size, one, matrix, size, out, right)
    if params["strong"]:  # NaN may come of zero divided by zero
        with t.loop(count * n * columns) as k:
            x = t.load(t.at("%a1", k))
            off = t.emit(f"fsub {t.kind} {x}, {x}")
            t.fail(t.emit(f"fcmp uno {t.kind} {off}, {off}"))
    return t


def _by_columns(buffer: Buffer, batch: tuple[int, ...], n: int, columns: int) -> Place:
    """A window over column-major matrices."""
    full = whole(buffer, (*batch, columns, n))
    return full._replace(shape=(*batch, n, columns), strides=(*full.strides[:-2], 1, n))


def steps(node: Node, operands: list[Place], room: Room) -> tuple[list[Step], Place]:
    """The steps of an operation, and the place of its result."""
    if write := writer(node.name):
        return _factorized(write, node, operands, room)
    if small_factor.fits(operands[0].shape[-1], operands[-1].shape[-1]):
        return _small(node, operands, room)
    return _by_lapack(node, operands, room)


def _small(node: Node, operands: list[Place], room: Room) -> tuple[list[Step], Place]:
    """One step: the function reads the operands in place."""
    out = seen = whole(room(node.dtype, node.size), node.shape)
    if node.name in ("det", "slogdet"):  # one number, or two, is a column
        numbers = 1 if node.name == "det" else 2
        seen = whole(out.buffer, (*operands[0].shape[:-2], numbers, 1))
    batched = [p.broadcast((*seen.shape[:-2], *p.shape[-2:])) for p in operands]
    routine = small_factor.routine(node.name, node.params, batched, seen)
    return [RoutineCall(node, operands, out, [*batched, seen], routine)], out


def _factorized(
    write: Writer, node: Node, operands: list[Place], room: Room
) -> tuple[list[Step], Place]:
    """A factorization of a copy of the matrices by columns; in double precision, as by NumPy."""
    (*batch, m, n), double = operands[0].shape, np.dtype(np.float64)
    count = prod(batch)
    params = tuple(node.params.items())
    routine, size = factorization(write, params, count, m, n, node.size // count)
    matrix = _by_columns(room(double, count * m * n), tuple(batch), m, n)
    work, found = whole(room(double, size), (size,)), whole(room(double, node.size), node.shape)
    call = RoutineCall(node, operands, found, [matrix, work, found], routine)
    steps: list[Step] = [Copy(operands[0], matrix), call]
    if node.dtype == double:
        return steps, found
    out = whole(room(node.dtype, node.size), node.shape)
    return [*steps, Copy(found, out)], out


def _by_lapack(node: Node, operands: list[Place], room: Room) -> tuple[list[Step], Place]:
    """Copy matrices to scratch, where LAPACK works on them in place."""
    dtype, name = node.dtype, node.name
    n = operands[0].shape[-1]
    text = FunctionBuilder(dtype)
    if name in ("det", "slogdet"):
        batch = operands[0].shape[:-2]
        count = prod(batch)
        matrix = _by_columns(room(dtype, count * n * n), batch, n, n)
        out = whole(room(dtype, node.size), node.shape)
        _factored(text, node, n, 0, count)
        given = [matrix, out]
        before: list[Step] = [Copy(operands[0], matrix)]
    elif name == "cholesky":
        out = whole(room(dtype, node.size), node.shape)
        _rooted(text, n, node.size // (n * n))
        given, before = [out], [Copy(operands[0], out)]
    else:
        batch, columns = node.shape[:-2], node.shape[-1]
        count = prod(batch)
        if name == "solve_triangular":
            out = whole(room(dtype, node.size), node.shape)
            matrix = whole(room(dtype, count * n * n), (*batch, n, n))
            _substituted(text, node.params, n, columns, count)
        else:
            out = _by_columns(room(dtype, node.size), batch, n, columns)
            matrix = _by_columns(room(dtype, count * n * n), batch, n, n)
            _factored(text, node, n, columns, count)
        given = [matrix, out]
        before = [Copy(operands[0].broadcast(matrix.shape), matrix)]
        if len(operands) == 2:
            before.append(Copy(operands[1].broadcast(out.shape), out))
        else:
            rank = len(out.shape)
            lines = follow(out, ((s.diagonal, {"offset": 0, "dim1": rank - 2, "dim2": rank - 1}),))
            assert lines is not None
            before += [Copy(0.0, out), Copy(1.0, lines)]
    if name in ("logdet_slope", "cofactor"):  # the transpose of the inverse
        out = whole(out.buffer, node.shape)
        given[1] = out
    return [*before, RoutineCall(node, operands, out, given, text.routine([""] * len(given)))], out
