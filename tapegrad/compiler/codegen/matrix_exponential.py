"""Write the exponential of a matrix: the Padé approximant of degree 13, scaled and squared.

The matrix is balanced first: the derivative is part of the exponential of a matrix of blocks, in
which an adjoint, of any size, stands beside an operand.  How often it is halved follows Al-Mohy and
Higham (2009): by the norms of its powers, which may be far smaller than the powers of its norm, as
long as rounding allows it.
"""

from __future__ import annotations

import math

from tapegrad.compiler.codegen.lapack_routines import ROWS, Job, Scheme
from tapegrad.compiler.codegen.lapack_solves import product

DEGREE = 13
LARGEST = 4.25  # the norm up to which the approximant is as exact as numbers are
# Of the numerator; the denominator has them with alternating signs.
COEFFICIENTS = [
    float(math.factorial(2 * DEGREE - k) // (math.factorial(k) * math.factorial(DEGREE - k)))
    for k in range(DEGREE + 1)
]
# The first term of the approximant's error is the power 27 of the matrix over this.
ERROR = math.comb(2 * DEGREE, DEGREE) * float(math.factorial(2 * DEGREE + 1))


def _matrix_exp(job: Job) -> None:
    # By rows a matrix is to BLAS its transpose, and so is the result.
    t, (a,), ((n, _),) = job.t, job.given, job.shapes
    size, order, balance = n * n * t.parts, t.number(n), job.work.take(n)
    _norm(job, a)  # fails where there is no number, of which `gebal` would print a complaint
    job.run("gebal", t.letter("S"), order, a, order, t.number(0), t.number(0), balance)
    a2, a4, a6, odd, even, other = (job.take(n * n) for _ in range(6))

    def times(x: str, y: str, out: str) -> None:
        product(job, (n, n, n), x, y, out)

    times(a, a, a2)
    times(a2, a2, a4)
    times(a2, a4, a6)
    halvings = _halved(job, [a, a2, a4, a6])
    with t.loop(size) as k:
        powers = [t.load(t.at(x, k)) for x in (a2, a4, a6)]
        for first, to in ((9, odd), (8, even)):
            t.store(_sum(job, powers, first), t.at(to, k))
    times(a6, odd, other)
    times(a6, even, job.out)
    with t.loop(size) as k:
        powers = [t.load(t.at(x, k)) for x in (a2, a4, a6)]
        for first, to in ((3, other), (2, job.out)):
            t.store(t.two("fadd", t.load(t.at(to, k)), _sum(job, powers, first)), t.at(to, k))
    with t.loop(n) as k:
        for first, to in ((1, other), (0, job.out)):
            at = t.number_at(to, t.mad(k, n + 1, 0))
            t.store(t.two("fadd", t.load(at), t.constant(COEFFICIENTS[first])), at)
    times(a, other, odd)
    with t.loop(size) as k:
        x, y = t.load(t.at(job.out, k)), t.load(t.at(odd, k))
        t.store(t.two("fsub", x, y), t.at(even, k))
        t.store(t.two("fadd", x, y), t.at(job.out, k))
    job.run("gesv", order, order, even, order, t.room(f"[{n} x i32]"), job.out, order)
    with t.loop(halvings):
        times(job.out, job.out, odd)
        with t.loop(size) as k:
            t.store(t.load(t.at(odd, k)), t.at(job.out, k))
    with t.loop(n) as j, t.loop(n) as i:
        ratio = t.two("fdiv", t.load(t.at(balance, i)), t.load(t.at(balance, j)))
        at = t.number_at(job.out, t.mad(j, n, i))
        t.put([t.two("fmul", x, ratio) for x in t.get(at)], at)


def _sum(job: Job, powers: list[str], first: int) -> str:
    """A sum of even powers, with each second coefficient."""
    t = job.t
    found = t.two("fmul", powers[0], t.constant(COEFFICIENTS[first]))
    for k, x in enumerate(powers[1:], 1):
        found = t.fused(x, t.constant(COEFFICIENTS[first + 2 * k]), found)
    return found


def _norm(job: Job, matrix: str) -> str:
    """The largest sum of absolute values (of complex numbers those of both parts) in a row."""
    t, n = job.t, job.shapes[0][0]
    largest, total = t.room(t.kind), t.room(t.kind)
    t.store(t.constant(0.0), largest)
    with t.loop(n) as i:
        t.store(t.constant(0.0), total)
        row = t.at(matrix, t.mad(i, n * t.parts, 0))
        with t.loop(n * t.parts) as j:
            size = t.math("fabs", t.load(t.at(row, j)))
            t.store(t.two("fadd", t.load(total), size), total)
        sums, best = t.load(total), t.load(largest)
        less = t.emit(f"fcmp ult {t.kind} {sums}, {best}")  # NaN is not
        t.store(t.choose(less, best, sums), largest)
    found = t.load(largest)
    t.fail(t.infinite(found))
    return found


def _halved(job: Job, powers: list[str]) -> str:
    """Halve a matrix as often as it has to be, with its powers; returns how often."""
    t, n = job.t, job.shapes[0][0]
    a, _, a4, a6 = powers
    fourth, sixth = (
        t.two("fmul", t.math("log2", _norm(job, x)), t.constant(root))
        for x, root in ((a4, 1 / 4), (a6, 1 / 6))
    )
    larger = t.choose(t.emit(f"fcmp ogt {t.kind} {fourth}, {sixth}"), fourth, sixth)
    count = t.room("i64")
    t.store(_whole(job, t.two("fsub", larger, t.constant(math.log2(LARGEST)))), count, "i64")
    scaled = t.two("fmul", _norm(job, a), _half(job, t.load(count, "i64")))
    with t.where(t.emit(f"fcmp ogt {t.kind} {scaled}, {t.constant(LARGEST)}")):
        more = _rounding(job, a, _half(job, t.load(count, "i64")), scaled)
        t.store(t.emit(f"add i64 {t.load(count, 'i64')}, {more}"), count, "i64")
    factor = _half(job, t.load(count, "i64"))
    square = t.two("fmul", factor, factor)
    fourth = t.two("fmul", square, square)
    factors = [factor, square, fourth, t.two("fmul", fourth, square)]
    with t.loop(n * n * t.parts) as k:
        for power, by in zip(powers, factors, strict=True):
            t.store(t.two("fmul", t.load(t.at(power, k)), by), t.at(power, k))
    return t.load(count, "i64")


def _whole(job: Job, x: str) -> str:
    """The next whole number from a number on; 0 for negative ones."""
    t, zero = job.t, job.t.constant(0.0)
    x = t.choose(t.emit(f"fcmp ogt {t.kind} {x}, {zero}"), x, zero)
    return t.emit(f"fptosi {t.kind} {t.math('ceil', x)} to i64")


def _half(job: Job, count: str) -> str:
    """A half to the power of a whole number, by its bits."""
    bits = job.t.emit(f"shl i64 {job.t.emit(f'sub i64 1023, {count}')}, 52")
    return job.t.emit(f"bitcast i64 {bits} to double")


def _rounding(job: Job, a: str, scale: str, norm: str) -> str:
    """How often to halve more, lest the error be that of the absolute values' powers."""
    t, n = job.t, job.shapes[0][0]
    vector, following = job.work.take(n), job.work.take(n)
    with t.loop(n) as i:
        t.store(t.constant(1.0), t.at(vector, i))
    largest = t.room(t.kind)
    with t.loop(2 * DEGREE + 1):
        t.store(t.constant(0.0), largest)
        with t.loop(n) as i:
            total = t.room(t.kind)
            t.store(t.constant(0.0), total)
            with t.loop(n) as j:
                number = t.number_at(a, t.mad(i, n, j))
                for k in range(t.parts):
                    size = t.two("fmul", t.math("fabs", t.load(t.at(number, k))), scale)
                    t.store(t.fused(size, t.load(t.at(vector, j)), t.load(total)), total)
            t.store(t.load(total), t.at(following, i))
            more = t.emit(f"fcmp ogt {t.kind} {t.load(total)}, {t.load(largest)}")
            t.store(t.choose(more, t.load(total), t.load(largest)), largest)
        with t.loop(n) as i:
            t.store(t.load(t.at(following, i)), t.at(vector, i))
    t.fail(t.infinite(t.load(largest)))
    error = t.two("fdiv", t.two("fdiv", t.load(largest), norm), t.constant(ERROR * 2.0**-53))
    bits = t.two("fmul", t.math("log2", error), t.constant(1 / (2 * DEGREE)))
    return _whole(job, bits)


def scheme(name: str) -> Scheme | None:
    """How an operation of that name is written; None: by others."""
    return Scheme(_matrix_exp, (ROWS,), double=True) if name == "matrix_exp" else None
