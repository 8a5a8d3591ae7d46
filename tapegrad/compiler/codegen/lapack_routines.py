"""Write factorizations of matrices by LAPACK: eigenvectors, singular vectors, triangular factors.

The results of one lie side by side, as in the rows of `ops.factorizations` and `ops.lu`.  LAPACK's
matrices are stored by columns: so are those that are given, and they are overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tapegrad.compiler.codegen.small_matmul import KEPT
from tapegrad.compiler.llvm.function_builder import FunctionBuilder, Routine

BLOCK = 64  # columns that LAPACK reflects at once
# How a routine gets an operand: matrices by columns, or by rows; right-hand sides by columns, of as
# many rows as the solution needs; vectors, of real numbers; or where the result will be.
COLUMNS, ROWS, RIGHT, VECTOR, RESULT = "columns", "rows", "right", "vector", "result"


class Work:
    """The work space of a routine, which each matrix of a batch uses anew."""

    def __init__(self, t: FunctionBuilder, base: str) -> None:
        self.t, self.base, self.size = t, base, 0

    def take(self, count: int) -> str:
        """The address of so many elements."""
        self.size += count
        return self.t.at(self.base, self.size - count)

    def sized(self, count: int, parts: int = 1) -> tuple[str, str]:
        """The address of so many numbers, and a pointer to their count, as LAPACK asks for both."""
        return self.take(count * parts), self.t.number(count)


class Job(NamedTuple):
    """One matrix of a batch, with what else is given: addresses, shapes, and the result's."""

    t: FunctionBuilder
    given: Sequence[str]
    shapes: Sequence[tuple[int, ...]]
    out: str
    work: Work

    def run(self, name: str, *args: str) -> None:
        """Call a routine whose last argument is its status; another one than 0 fails."""
        self.t.check(self.tried(name, *args))

    def tried(self, name: str, *args: str) -> str:
        """The same; returns the address of the status."""
        info = self.t.number(0)
        self.t.call(name, *args, info)
        return info

    def take(self, count: int) -> str:
        """Work space for so many numbers."""
        return self.work.take(count * self.t.parts)

    def at(self, base: str, index: int) -> str:
        """The address of a number."""
        return self.t.at(base, index * self.t.parts)


class Scheme(NamedTuple):
    """What writes an operation, and how it gets the operands; `double`: in double precision."""

    write: Callable[..., None]
    operands: tuple[str, ...] = (COLUMNS,)
    double: bool = False


class Factorization(NamedTuple):
    """A routine over operands, work space and the result, and the size of the work space."""

    routine: Routine
    work: int


@lru_cache(KEPT)
def factorization(
    scheme: Scheme, params: tuple[tuple[str, Any], ...], count: int, parts: int,
    shapes: tuple[tuple[int, ...], ...], sizes: tuple[int, ...], dtypes: tuple[Any, Any],
) -> Factorization:  # fmt: skip
    """The operation on a batch of matrices of some shapes.

    Sizes are those of what is given for each matrix, and of its result; the types are that of
    elements, and that of the result.
    """
    t = FunctionBuilder(dtypes[0], parts)
    given = len(sizes) - 1
    work = Work(t, f"%a{given}")
    with t.loop(count) as i:
        addresses = [t.at(f"%a{k}", t.mad(i, size, 0)) for k, size in enumerate(sizes[:-1])]
        kind = "i32" if dtypes[1].kind == "i" else ""
        out = t.at(f"%a{given + 1}", t.mad(i, sizes[-1], 0), kind)
        scheme.write(Job(t, addresses, shapes, out, work), **dict(params))
    return Factorization(t.routine(["noalias"] * (given + 2)), max(work.size, 1))


def store_rows(
    job: Job, source: str, to: str, m: int, n: int, stride: int, checked: bool = False
) -> None:
    """Store an m x n matrix by rows, which lie some numbers apart; `checked`: NaN in it fails."""
    t = job.t
    with t.loop(m) as i, t.loop(n) as j:
        found = t.get(t.number_at(source, t.mad(j, m, i)))
        for x in found if checked else ():
            t.fail(t.emit(f"fcmp uno {t.kind} {x}, {x}"))
        t.put(found, t.number_at(to, t.mad(i, stride, j)))


def store_triangle(
    job: Job, source: str, to: str, m: int, n: int, stride: int, lower: bool = False
) -> None:
    """The same of the first n columns and rows of a matrix of m rows, with zeros beside it."""
    t = job.t
    zero = t.constant(0.0)
    with t.loop(n) as i, t.loop(n) as j:
        beside = t.emit(f"icmp {'sgt' if lower else 'slt'} i64 {j}, {i}")
        found = t.get(t.number_at(source, t.mad(j, m, i)))
        t.put([t.choose(beside, zero, x) for x in found], t.number_at(to, t.mad(i, stride, j)))


def store_column(job: Job, column: int, stride: int, count: int, values: str, kind: str) -> None:
    """Store real numbers as a column of the result."""
    t = job.t
    with t.loop(count) as k:
        x = t.load(t.at(values, k, kind), kind)
        x = t.emit(f"sitofp i32 {x} to {t.kind}") if kind == "i32" else x
        t.put([x, t.constant(0.0)][: t.parts], t.number_at(job.out, t.mad(k, stride, column)))


def _eigh(job: Job, *, upper: bool) -> None:
    t, work, (matrix,), ((n, _),) = job.t, job.work, job.given, job.shapes
    order, values = t.number(n), work.take(n)
    if t.parts == 1:
        name, room = "syevd", [*work.sized(1 + 6 * n + 2 * n * n)]
    else:
        name, room = "heevd", [*work.sized(2 * n + n * n, 2), *work.sized(1 + 5 * n + 2 * n * n)]
    job.run(
        name, t.letter("V"), t.letter("U" if upper else "L"), order, matrix, order, values, *room,
        *work.sized(3 + 5 * n),
    )  # fmt: skip
    store_rows(job, matrix, job.out, n, n, n + 1, True)
    store_column(job, n, n + 1, n, values, t.kind)


def _orthogonal(job: Job, matrix: str, m: int, n: int, scales: str, room: Sequence[str]) -> None:
    """The first n columns of the orthogonal matrix that reflections make, which lie in a matrix."""
    t = job.t
    rows, columns, reflections = (t.number(x) for x in (m, n, min(job.shapes[0])))
    name = "orgqr" if t.parts == 1 else "ungqr"
    job.run(name, rows, columns, reflections, matrix, rows, scales, *room)


def _reflected(job: Job, matrix: str, columns: int) -> tuple[str, Sequence[str]]:
    """Take a matrix apart by reflections: the address of their scales, and room for more."""
    t, (m, n) = job.t, job.shapes[0]
    scales, room = job.take(min(m, n)), job.work.sized(BLOCK * columns, t.parts)
    job.run("geqrf", t.number(m), t.number(n), matrix, t.number(m), scales, *room)
    return scales, room


def _qr(job: Job) -> None:
    (matrix,), ((m, n),) = job.given, job.shapes
    scales, room = _reflected(job, matrix, n)
    store_triangle(job, matrix, job.at(job.out, m * n), m, n, n)
    _orthogonal(job, matrix, m, n, scales, room)
    store_rows(job, matrix, job.out, m, n, n, True)


def _geqrf(job: Job) -> None:
    t, (matrix,), ((m, n),) = job.t, job.given, job.shapes
    scales, _ = _reflected(job, matrix, n)
    store_rows(job, matrix, job.out, m, n, n + 1)
    with t.loop(m) as i:
        t.put([t.constant(0.0)] * t.parts, t.number_at(job.out, t.mad(i, n + 1, n)))
    with t.loop(min(m, n)) as i:
        t.put(t.get(t.number_at(scales, i)), t.number_at(job.out, t.mad(i, n + 1, n)))


def _completed(job: Job) -> None:
    t, (matrix,), ((m, n),) = job.t, job.given, job.shapes
    store_rows(job, matrix, job.out, m, n, m)
    square = job.take(m * m)
    with t.loop(m * n) as k:
        t.put(t.get(t.number_at(matrix, k)), t.number_at(square, k))
    scales, room = _reflected(job, square, m)
    _orthogonal(job, square, m, m, scales, room)
    store_rows(job, job.at(square, m * n), job.at(job.out, n), m, m - n, m)


def singular_vectors(job: Job, u: str, values: str, vh: str) -> None:
    """The singular values, and the vectors on both sides, by columns; NaN fails."""
    t, work, matrix, (m, n) = job.t, job.work, job.given[0], job.shapes[0]
    k, longer = min(m, n), max(m, n)
    rows, inner = t.number(m), t.number(k)
    if t.parts == 1:
        room = [*work.sized(5 * k * k + 10 * k + BLOCK * (m + n))]
    else:
        room = [
            *work.sized(2 * k * k + 4 * k + BLOCK * (m + n), 2),
            work.take(max(5 * k * k + 5 * k, 2 * longer * k + 2 * k * k + k)),
        ]
    job.run(
        "gesdd", t.letter("S"), rows, t.number(n), matrix, rows, values, u, rows, vh, inner, *room,
        work.take(8 * k),
    )  # fmt: skip
    with t.loop(k) as i:
        value = t.load(t.at(values, i))
        t.fail(t.emit(f"fcmp uno {t.kind} {value}, {value}"))


def _svd(job: Job) -> None:
    t, ((m, n),) = job.t, job.shapes
    k = min(m, n)
    u, values = job.take(m * k), job.work.take(k)
    right = job.at(job.out, (m + 1) * k)  # conjugated V lies there by rows already
    singular_vectors(job, u, values, right)
    t.conjugate(right, n * k)
    store_rows(job, u, job.out, m, k, k, True)
    row = job.at(job.out, m * k)
    with t.loop(k) as i:
        part = [t.load(t.at(values, i)), t.constant(0.0)][: t.parts]
        t.put(part, t.number_at(row, i))


def _eig(job: Job) -> None:
    t, (matrix,), ((n, _),) = job.t, job.given, job.shapes
    with t.loop(n * n * t.parts) as k:
        t.fail(t.infinite(t.load(t.at(matrix, k))))
    order, none, vectors = t.number(n), t.number(1), job.take(n * n)
    values = job.work.take(2 * n)  # both parts of each, or all real parts before all others
    found = [values] if t.parts == 2 else [values, t.at(values, n)]
    room = [*job.work.sized((BLOCK + 4) * n, t.parts)]
    room += [job.work.take(2 * n)] if t.parts == 2 else []
    job.run(
        "geev", t.letter("N"), t.letter("V"), order, matrix, order, *found, values, none, vectors,
        order, *room,
    )  # fmt: skip
    if t.parts == 1:
        _store_conjugates(job, vectors, *found)
        return
    store_rows(job, vectors, job.out, n, n, n + 1)
    with t.loop(n) as k:
        t.put(t.get(t.number_at(values, k)), t.number_at(job.out, t.mad(k, n + 1, n)))


def _store_conjugates(job: Job, vectors: str, re: str, im: str) -> None:
    """Store eigenvalues and eigenvectors of a real matrix.

    Of a conjugate pair of vectors LAPACK gives the real part in the first column, that of a
    positive imaginary part of the value, and the imaginary part in the second.
    """
    t, n = job.t, job.shapes[0][0]
    zero = t.constant(0.0)
    with t.loop(n) as j:
        value = [t.load(t.at(x, j)) for x in (re, im)]
        first, second = (
            t.emit(f"fcmp {test} {t.kind} {value[1]}, {zero}") for test in ("ogt", "olt")
        )
        shift, back = (t.emit(f"zext i1 {x} to i64") for x in (first, second))
        columns = t.emit(f"sub i64 {j}, {back}"), t.emit(f"add i64 {j}, {shift}")
        for k, x in enumerate(value):
            t.store(x, t.at(job.out, t.mad(t.mad(j, n + 1, n), 2, k)))
        with t.loop(n) as i:
            a, b = (t.load(t.at(vectors, t.mad(column, n, i))) for column in columns)
            b = t.choose(second, t.emit(f"fneg {t.kind} {b}"), t.choose(first, b, zero))
            for k, x in enumerate((a, b)):
                t.store(x, t.at(job.out, t.mad(t.mad(i, n + 1, j), 2, k)))


def _lu(job: Job, *, check: bool) -> None:
    t, (matrix,), ((m, n),) = job.t, job.given, job.shapes
    pivots = t.room(f"[{min(m, n)} x i32]")
    info = job.tried("getrf", t.number(m), t.number(n), matrix, t.number(m), pivots)
    if check:
        t.check(info)
    store_rows(job, matrix, job.out, m, n, n + 1)
    with t.loop(m) as i:
        t.put([t.constant(0.0)] * t.parts, t.number_at(job.out, t.mad(i, n + 1, n)))
    store_column(job, n, n + 1, min(m, n), pivots, "i32")


def _ldl(job: Job, *, check: bool, hermitian: bool) -> None:
    t, (matrix,), ((n, _),) = job.t, job.given, job.shapes
    info, pivots = symmetric_factors(job, hermitian)
    if check:
        t.check(info)
    store_triangle(job, matrix, job.out, n, n, n + 1, lower=True)
    store_column(job, n, n + 1, n, pivots, "i32")


def symmetric_factors(job: Job, hermitian: bool) -> tuple[str, str]:
    """Factor a symmetric matrix, of which the lower triangle is read; the status and the pivots."""
    t, n = job.t, job.shapes[0][0]
    order, pivots = t.number(n), t.room(f"[{n} x i32]")
    name = "hetrf" if hermitian and t.parts == 2 else "sytrf"
    room = job.work.sized(n, t.parts)
    return job.tried(name, t.letter("L"), order, job.given[0], order, pivots, *room), pivots


def scheme(name: str) -> Scheme | None:
    """How an operation of that name is written; None: by others."""
    known = {
        "eigh": Scheme(_eigh, double=True),
        "qr": Scheme(_qr, double=True),
        "svd": Scheme(_svd, double=True),
        "eig": Scheme(_eig, double=True),
        "geqrf": Scheme(_geqrf, double=True),
        "completed": Scheme(_completed, double=True),
        "lu": Scheme(_lu),
        "ldl": Scheme(_ldl),
    }
    return known.get(name)
