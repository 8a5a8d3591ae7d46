"""Write factorizations of matrices by LAPACK: eigenvectors, singular vectors, orthogonal factors.

The results of one lie side by side, as in the rows of `ops.factorizations`.  LAPACK's matrices are
stored by columns: those at `%a0` are, and are overwritten; the work space at `%a1` serves each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.codegen.small_matmul import KEPT
from tapegrad.compiler.llvm.function_builder import FunctionBuilder, Routine

BLOCK = 64  # columns that LAPACK reflects at once
Writer = Callable[..., int]


class Factorization(NamedTuple):
    """A routine over matrices, work space and the result, and the size of the work space."""

    routine: Routine
    work: int


def writer(name: str) -> Writer | None:
    """What writes the factorization of one matrix, and tells the size of its work space."""
    known: dict[str, Writer] = {"eigh": _eigh, "qr": _qr, "svd": _svd}
    return known.get(name)


@lru_cache(KEPT)
def factorization(
    write: Writer, params: tuple[tuple[str, Any], ...], count: int, m: int, n: int, size: int
) -> Factorization:
    """The factorization of a batch of m x n matrices of float64, into so many elements each."""
    t = FunctionBuilder(np.dtype(np.float64))
    with t.loop(count) as i:
        matrix, out = t.at("%a0", t.mad(i, m * n, 0)), t.at("%a2", t.mad(i, size, 0))
        work = write(t, matrix, out, m, n, **dict(params))
    return Factorization(t.routine(["noalias"] * 3), work)


def _eigh(t: FunctionBuilder, matrix: str, out: str, _: int, n: int, upper: bool) -> int:
    floats, integers = 1 + 6 * n + 2 * n * n, 3 + 5 * n
    info, order = t.number(0), t.number(n)
    t.call(
        "syevd", t.letter("V"), t.letter("U" if upper else "L"), order, matrix, order, "%a1",
        t.at("%a1", n), t.number(floats), t.at("%a1", n + floats), t.number(integers), info,
    )  # fmt: skip
    t.check(info)
    _transpose(t, matrix, out, n, n, n + 1)
    with t.loop(n) as k:
        t.store(t.load(t.at("%a1", k)), t.at(out, t.mad(k, n + 1, n)))
    return n + floats + integers


def _qr(t: FunctionBuilder, matrix: str, out: str, m: int, n: int) -> int:
    info, rows, columns, size = t.number(0), t.number(m), t.number(n), t.number(BLOCK * n)
    scales, work = "%a1", t.at("%a1", n)
    t.call("geqrf", rows, columns, matrix, rows, scales, work, size, info)
    t.check(info)
    below = t.at(out, m * n)
    with t.loop(n) as i, t.loop(n) as j:
        lower = t.emit(f"icmp slt i64 {j}, {i}")
        found = t.load(t.at(matrix, t.mad(j, m, i)))
        t.store(t.choose(lower, t.constant(0.0), found), t.at(below, t.mad(i, n, j)))
    t.call("orgqr", rows, columns, columns, matrix, rows, scales, work, size, info)
    t.check(info)
    _transpose(t, matrix, out, m, n, n)
    return n + BLOCK * n


def _svd(t: FunctionBuilder, matrix: str, out: str, m: int, n: int) -> int:
    k = min(m, n)
    floats = 5 * k * k + 10 * k + BLOCK * (m + n)
    info, rows, inner = t.number(0), t.number(m), t.number(k)
    values, right = t.at(out, m * k), t.at(out, (m + 1) * k)  # V lies there by rows already
    t.call(
        "gesdd", t.letter("S"), rows, t.number(n), matrix, rows, values, "%a1", rows, right, inner,
        t.at("%a1", m * k), t.number(floats), t.at("%a1", m * k + floats), info,
    )  # fmt: skip
    t.check(info)
    _transpose(t, "%a1", out, m, k, k)
    return m * k + floats + 8 * k


def _transpose(t: FunctionBuilder, source: str, to: str, m: int, n: int, stride: int) -> None:
    """Store an m x n matrix by rows, which lie some elements apart; NaN in it fails."""
    with t.loop(m) as i, t.loop(n) as j:
        found = t.load(t.at(source, t.mad(j, m, i)))
        t.fail(t.emit(f"fcmp uno {t.kind} {found}, {found}"))
        t.store(found, t.at(to, t.mad(i, stride, j)))
