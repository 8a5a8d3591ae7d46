"""Write solutions of linear systems by LAPACK, where there may be none, and exchanges of rows."""

from __future__ import annotations

import numpy as np

from tapegrad.compiler.codegen.lapack_routines import (
    BLOCK,
    COLUMNS,
    RESULT,
    RIGHT,
    ROWS,
    VECTOR,
    Job,
    Scheme,
    singular_vectors,
    store_rows,
    store_triangle,
    symmetric_factors,
)
from tapegrad.ops.least_squares import WITH_VALUES, work_lengths

# -- pseudoinverses and least squares --------------------------------------------------------------


def _pinv(job: Job, *, atol: float, rtol: float, hermitian: bool = False) -> None:
    t, ((m, n),) = job.t, job.shapes
    k = min(m, n)
    if hermitian:
        _mirror(job)
    u, values, vh = job.take(m * k), job.work.take(k), job.take(k * n)
    singular_vectors(job, u, values, vh)
    largest = t.two("fmul", t.load(values), t.constant(rtol))
    more = t.emit(f"fcmp ogt {t.kind} {largest}, {t.constant(atol)}")
    least = t.choose(more, largest, t.constant(atol))
    with t.loop(k) as j:
        value = t.load(t.at(values, j))
        kept = t.emit(f"fcmp ogt {t.kind} {value}, {least}")
        inverse = t.two("fdiv", t.constant(1.0), value)
        inverse = t.choose(kept, inverse, t.constant(0.0))
        column = t.number_at(u, t.mad(j, m, 0))
        with t.loop(m * t.parts) as i:
            at = t.at(column, i)
            t.store(t.two("fmul", t.load(at), inverse), at)
    # To BLAS the result is transposed; it is the conjugate of that.
    product(job, (m, n, k), u, vh, job.out)
    t.conjugate(job.out, m * n)


def _mirror(job: Job) -> None:
    """Make a matrix symmetric, of which the lower triangle is read."""
    t, n = job.t, job.shapes[0][0]
    (matrix,) = job.given
    with t.loop(n) as j:
        with t.loop(n, t.emit(f"add i64 {j}, 1")) as i:
            found = t.get(t.number_at(matrix, t.mad(j, n, i)))
            other = [found[0], *(t.emit(f"fneg {t.kind} {x}") for x in found[1:])]
            t.put(other, t.number_at(matrix, t.mad(i, n, j)))
        real = t.load(t.number_at(matrix, t.mad(j, n + 1, 0)))
        t.put([real, t.constant(0.0)][: t.parts], t.number_at(matrix, t.mad(j, n + 1, 0)))


def product(
    job: Job, sizes: tuple[int, int, int], a: str, b: str, out: str, given: str = "NN"
) -> None:
    """The product of an m x k and a k x n matrix by BLAS, all by columns.

    A letter for each says how it is given: N as it is, C by its adjoint.
    """
    t = job.t
    m, n, k = (t.number(size) for size in sizes)
    first = a, k if given[0] == "C" else m
    second = b, n if given[1] == "C" else k
    letters = [t.letter(x) for x in given]
    t.call("gemm", *letters, m, n, k, t.factor(1.0), *first, *second, t.factor(0.0), out, m)


def _lstsq(job: Job, *, rcond: float, driver: str) -> None:
    t, (a, b), ((m, n), (_, k)) = job.t, job.given, job.shapes
    inner, longer = min(m, n), max(m, n)
    rows, columns, right, stride = (t.number(x) for x in (m, n, k, longer))
    least, rank, values = t.room(t.kind, t.constant(rcond)), t.number(inner), job.work.take(inner)
    dtype = np.dtype(f"{'fc'[t.parts - 1]}{(8 - 4 * t.single) * t.parts}")
    lengths = work_lengths(driver, dtype, m, n, k)
    work = job.work.sized(lengths[0], t.parts)
    system = [rows, columns, right, a, rows, b, stride]
    if driver == "gels":
        job.run(driver, t.letter("N"), *system, *work)
    elif driver == "gelsy":
        pivots = t.room(f"[{n} x i32]")
        with t.loop(n) as j:
            t.store("0", t.at(pivots, j, "i32"), "i32")
        more = [job.work.take(2 * n)] if t.parts == 2 else []
        job.run(driver, *system, pivots, least, rank, *work, *more)
    else:
        more = [job.work.take(5 * inner)] if t.parts == 2 else []
        if driver == "gelsd":  # room for real numbers, if those are complex, and for integers
            more = [job.work.take(length) for length in lengths[1:]]
        job.run(driver, *system, values, least, rank, *work, *more)
    with t.loop(n) as i, t.loop(k) as j:
        found = t.get(t.number_at(b, t.mad(j, longer, i)))
        t.put(found, t.number_at(job.out, t.mad(i, k, j)))
    below = job.at(job.out, n * k)
    count = 1 + inner * (driver in WITH_VALUES)
    with t.loop(count * k * t.parts) as i:
        t.store(t.constant(0.0), t.at(below, i))
    t.store(t.emit(f"sitofp i32 {t.load(rank, 'i32')} to {t.kind}"), below)
    with t.loop(count - 1) as i:
        t.store(t.load(t.at(values, i)), t.number_at(below, t.mad(i, k, k)))


# -- matrices in banded form -----------------------------------------------------------------------


def _banded_solve(job: Job, *, below: int, above: int) -> None:
    t, (ab, b), ((bands, n), (_, k)) = job.t, job.given, job.shapes
    order, right = t.number(n), t.number(k)
    if below == above == 1 and n > 1:
        up, diagonal, down = (job.at(ab, place) for place in (1, n, 2 * n))
        job.run("gtsv", order, right, down, diagonal, up, b, order)
    else:
        height = below + bands
        room, sizes = job.take(height * n), (t.number(x) for x in (below, above))
        with t.loop(bands) as row, t.loop(n) as j:
            element = t.get(t.number_at(ab, t.mad(row, n, j)))
            t.put(element, t.number_at(room, t.mad(j, height, t.emit(f"add i64 {row}, {below}"))))
        pivots = t.room(f"[{n} x i32]")
        job.run("gbsv", order, *sizes, right, room, t.number(height), pivots, b, order)
    store_rows(job, b, job.out, n, k, k)


# -- equations in matrices -------------------------------------------------------------------------


def _schur(job: Job, matrix: str, n: int) -> str:
    """Make a matrix triangular, in its place; the address of the unitary matrix beside it."""
    t, order = job.t, job.t.number(n)
    with t.loop(n * n * t.parts) as k:
        t.fail(t.infinite(t.load(t.at(matrix, k))))
    values, vectors = job.work.take(2 * n), job.take(n * n)
    found = [values] if t.parts == 2 else [values, t.at(values, n)]
    room = [*job.work.sized((BLOCK + 4) * n, t.parts)]
    room += [job.work.take(n)] if t.parts == 2 else []
    none = t.number(0)
    job.run(
        "gees", t.letter("V"), t.letter("N"), "null", order, matrix, order, none, *found, vectors,
        order, *room, none,
    )  # fmt: skip
    return vectors


def _sylvester(job: Job) -> None:
    t, (a, b, q), ((m, _), (n, _), _) = job.t, job.given, job.shapes
    u, v, half, scale = _schur(job, a, m), _schur(job, b, n), job.take(m * n), t.room(t.kind)
    product(job, (m, n, m), u, q, half, "CN")
    product(job, (m, n, n), half, v, q)
    rows, columns, info = t.number(m), t.number(n), t.number(0)
    plain = [t.letter("N"), t.letter("N"), t.number(1)]
    # Another status than 0 says that eigenvalues were moved by a rounding error.
    t.call("trsyl", *plain, rows, columns, a, rows, b, columns, q, rows, scale, info)
    product(job, (m, n, m), u, q, half)
    product(job, (m, n, n), half, v, q, "NC")
    factor = t.load(scale)
    with t.loop(m) as i, t.loop(n) as j:
        found = [t.two("fmul", x, factor) for x in t.get(t.number_at(q, t.mad(j, m, i)))]
        t.put(found, t.number_at(job.out, t.mad(i, n, j)))


# -- solutions that a matrix may not have ----------------------------------------------------------


def _solve_ex(job: Job) -> None:
    (a, b), ((n, _), (_, k)) = job.given, job.shapes
    _solved_or_nan(job, a, b, n, k)


def _inv_ex(job: Job) -> None:
    t, ((n, _),) = job.t, job.shapes
    one = job.take(n * n)
    with t.loop(n * n * t.parts) as i:
        t.store(t.constant(0.0), t.at(one, i))
    with t.loop(n) as i:
        t.store(t.constant(1.0), t.number_at(one, t.mad(i, n + 1, 0)))
    _solved_or_nan(job, job.given[0], one, n, n)


def _solved_or_nan(job: Job, a: str, b: str, n: int, columns: int) -> None:
    t, order = job.t, job.t.number(n)
    info = job.tried("gesv", order, t.number(columns), a, order, t.room(f"[{n} x i32]"), b, order)
    singular = t.emit(f"icmp ne i32 {t.load(info, 'i32')}, 0")
    with t.loop(n) as i, t.loop(columns) as j:
        found = t.get(t.number_at(b, t.mad(j, n, i)))
        nothing = [t.constant(x) for x in (np.nan, 0.0)]
        found = [t.choose(singular, x, y) for x, y in zip(nothing, found, strict=False)]
        t.put(found, t.number_at(job.out, t.mad(i, columns, j)))


def _rooted(job: Job) -> str:
    t, order, (matrix,) = job.t, job.t.number(job.shapes[0][0]), job.given
    return job.tried("potrf", t.letter("L"), order, matrix, order)


def _cholesky_ex(job: Job) -> None:
    n = job.shapes[0][0]
    _rooted(job)
    store_triangle(job, job.given[0], job.out, n, n, n, lower=True)


def _store_code(job: Job, info: str) -> None:
    job.t.store(job.t.load(info, "i32"), job.out, "i32")


def _cholesky_code(job: Job) -> None:
    _store_code(job, _rooted(job))


def _pivot_code(job: Job) -> None:
    t, (matrix,), ((m, n),) = job.t, job.given, job.shapes
    pivots = t.room(f"[{min(m, n)} x i32]")
    _store_code(job, job.tried("getrf", t.number(m), t.number(n), matrix, t.number(m), pivots))


def _block_code(job: Job, *, hermitian: bool) -> None:
    _store_code(job, symmetric_factors(job, hermitian)[0])


# -- exchanges of rows -----------------------------------------------------------------------------


def _swap_rows(job: Job, *, inverse: bool) -> None:
    t, ((m, n), (count,)) = job.t, job.shapes
    (pivots,) = job.given
    with t.loop(count) as step:
        here = t.emit(f"sub i64 {count - 1}, {step}") if inverse else step
        there = t.emit(f"fptosi {t.kind} {t.load(t.at(pivots, here))} to i64")
        there = t.emit(f"sub i64 {there}, 1")
        t.fail(t.emit(f"icmp uge i64 {there}, {m}"))  # also what is negative
        with t.loop(n * t.parts) as j:
            a, b = (t.at(job.out, t.mad(row, n * t.parts, j)) for row in (here, there))
            first, second = t.load(a), t.load(b)
            t.store(first, b)
            t.store(second, a)


def _ldl_solve(job: Job, *, hermitian: bool) -> None:
    t, (b, matrix, pivots), ((n, k), _, _) = job.t, job.given, job.shapes
    exchanges = t.room(f"[{n} x i32]")
    with t.loop(n) as i:
        x = t.load(t.at(pivots, i))
        size = t.math("fabs", x)
        for test, limit in (("ult", 1.0), ("ugt", float(n))):  # no exchanges of a factorization
            t.fail(t.emit(f"fcmp {test} {t.kind} {size}, {t.constant(limit)}"))
        t.store(t.emit(f"fptosi {t.kind} {x} to i32"), t.at(exchanges, i, "i32"), "i32")
    order = t.number(n)
    name = "hetrs" if hermitian and t.parts == 2 else "sytrs"
    job.run(name, t.letter("L"), order, t.number(k), matrix, order, exchanges, b, order)
    store_rows(job, b, job.out, n, k, k)


# -- checks of adjoints, which are handed on -------------------------------------------------------


def _same_phase(job: Job, *, of: str) -> None:
    t, (v,), ((m, n), _) = job.t, job.given, job.shapes
    if t.parts == 1:
        return  # real numbers have no phases
    limit = _rounding(job, n)
    with t.loop(n) as j:
        total = t.room(t.kind)
        t.store(t.constant(0.0), total)
        with t.loop(m) as i:
            index = t.mad(i, n, j)
            (a, b), (c, d) = (t.get(t.number_at(base, index)) for base in (v, job.out))
            slope = t.two("fsub", t.two("fmul", a, d), t.two("fmul", b, c))
            t.store(t.two("fadd", t.load(total), slope), total)
        t.fail(t.emit(f"fcmp ogt {t.kind} {t.math('fabs', t.load(total))}, {limit}"))


def _any_basis(job: Job) -> None:
    t, (v,), ((m, n), _) = job.t, job.given, job.shapes
    limit = _rounding(job, m)
    turned = job.take(n * n)
    product(job, (n, n, m), job.out, v, turned, "NC")
    with t.loop(n) as i, t.loop(n) as j:
        a, b = (t.get(t.number_at(turned, t.mad(p, n, q))) for p, q in ((i, j), (j, i)))
        names = ("fsub", "fadd")  # of what is real, and of what is not
        skew = [t.two(name, x, y) for name, x, y in zip(names, a, b, strict=False)]
        t.fail(t.emit(f"fcmp ogt {t.kind} {t.size(skew)}, {limit}"))


def _rounding(job: Job, extent: int) -> str:
    """What the rows take for rounding errors, by the largest element of the result."""
    t, (m, n) = job.t, job.shapes[0]
    largest = t.room(t.kind)
    t.store(t.constant(0.0), largest)
    with t.loop(m * n) as k:
        size, known = t.size(t.get(t.number_at(job.out, k))), t.load(largest)
        t.store(t.choose(t.emit(f"fcmp ogt {t.kind} {size}, {known}"), size, known), largest)
    unit = float(np.finfo(np.float32 if t.single else np.float64).eps)
    return t.two("fmul", t.load(largest), t.constant(1e3 * extent * unit))


def scheme(name: str) -> Scheme | None:
    """How an operation of that name is written; None: by others."""
    known = {
        "pinv": Scheme(_pinv),
        "lstsq": Scheme(_lstsq, (COLUMNS, RIGHT)),
        "banded_solve": Scheme(_banded_solve, (ROWS, COLUMNS)),
        "sylvester": Scheme(_sylvester, (COLUMNS, COLUMNS, COLUMNS)),
        "solve_ex": Scheme(_solve_ex, (COLUMNS, COLUMNS), double=True),
        "inv_ex": Scheme(_inv_ex, double=True),
        "cholesky_ex": Scheme(_cholesky_ex),
        "cholesky_code": Scheme(_cholesky_code),
        "pivot_code": Scheme(_pivot_code),
        "block_code": Scheme(_block_code),
        "swap_rows": Scheme(_swap_rows, (RESULT, VECTOR)),
        "ldl_solve": Scheme(_ldl_solve, (COLUMNS, COLUMNS, VECTOR)),
        "same_phase": Scheme(_same_phase, (RESULT, ROWS)),
        "any_basis": Scheme(_any_basis, (RESULT, ROWS)),
    }
    return known.get(name)
