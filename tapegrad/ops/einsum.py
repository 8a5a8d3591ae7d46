"""Sums over products of elements that are chosen by letters.

`einsum` takes its equation in a normal form, which `tapegrad.functions.contractions` brings about:
`terms` has one text of letters per operand and `out` those of the result; no letter stands twice in
a text, sizes of one letter agree, and a letter of an operand stands in `out` or in another operand.
The derivative in an operand exchanges its letters with those of the result, and keeps this form.

Operands are contracted in pairs, in the order that NumPy's search finds; a pair becomes a matrix
product if a letter is summed over, else a product of elements.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.ops.core import Op, custom


@lru_cache(512)
def _path(terms: tuple[str, ...], out: str, shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Which operands to contract one after the other; each result goes to the end of the list."""
    if len(terms) < 3:
        return (tuple(range(len(terms))),)
    like = [np.broadcast_to(0.0, shape) for shape in shapes]
    return tuple(np.einsum_path(f"{','.join(terms)}->{out}", *like, optimize="greedy")[0][1:])


def _contract(xs: Any, terms: Any, out: str) -> Any:
    parts = list(zip(xs, terms, strict=True))
    for chosen in _path(terms, out, tuple(x.shape for x in xs)):
        taken = [parts.pop(i) for i in sorted(chosen, reverse=True)]
        while len(taken) > 1:
            (a, ta), (b, tb) = taken.pop(), taken.pop()
            later = {*out}.union(*[t for _, t in parts], *[t for _, t in taken])
            taken.append(_pair(a, ta, b, tb, later))
        parts.append(taken[0])
    ((x, term),) = parts
    return np.ascontiguousarray(_aligned(x, term, out)).reshape(
        [x.shape[term.index(i)] for i in out]
    )


def _pair(a: Any, ta: str, b: Any, tb: str, later: set[str]) -> tuple[Any, str]:
    """The product of two operands, summed over the letters that nobody needs any more."""
    inner = [i for i in ta if i in tb and i not in later]
    batch = [i for i in ta if i in tb and i in later]
    left, right = [i for i in ta if i not in tb], [i for i in tb if i not in ta]
    if not inner:
        whole = "".join(batch + left + right)
        return _aligned(a, ta, whole) * _aligned(b, tb, whole), whole
    size = dict(zip(ta + tb, a.shape + b.shape, strict=True))
    n, m, k = (int(np.prod([size[i] for i in letters])) for letters in (left, right, inner))
    shape = [size[i] for i in batch]
    am = _aligned(a, ta, batch + left + inner).reshape(*shape, n, k)
    bm = _aligned(b, tb, batch + inner + right).reshape(*shape, k, m)
    found = np.matmul(am, bm).reshape(shape + [size[i] for i in left + right])
    return found, "".join(batch + left + right)


def _aligned(x: Any, term: str, whole: Any) -> Any:
    """An operand with its dimensions in the order of `whole`, of size 1 where it has no letter."""
    order = [term.index(i) for i in whole if i in term]
    missing = tuple(k for k, i in enumerate(whole) if i not in term)
    return np.expand_dims(x.transpose(order), missing)


def _einsum(*xs: Any, terms: Any, out: str) -> Any:
    return _contract(xs, terms, out)


def _strong_einsum(*xs: Any, terms: Any, out: str) -> Any:
    """The same, in which a factor that is exactly zero gives zero, even against infinity."""
    with np.errstate(all="ignore"):
        found = _contract(xs, terms, out)
        if not np.isnan(np.add.reduce(found, axis=None)):
            return found
        whole = out + "".join(sorted({*"".join(terms)} - {*out}))
        parts = [_aligned(x, term, whole) for x, term in zip(xs, terms, strict=True)]
        each, zero = parts[0], parts[0] == 0
        for x in parts[1:]:
            each, zero = each * x, zero | (x == 0)
        each = np.where(zero, each.dtype.type(0), each)
        return np.add.reduce(each, axis=tuple(range(len(out), len(whole))))


def _each(g: Any, k: int, others: Any, terms: Any, out: str) -> Any:
    xs, letters = list(others), list(terms)
    xs[k], letters[k] = g, out
    return contraction(*xs, terms=tuple(letters), out=terms[k])


einsum = custom("einsum", _einsum, variadic=True, each=_each)
# What derivatives use: an adjoint that is exactly zero contributes exactly zero.
contraction: Op = custom(
    "contraction", _strong_einsum, variadic=True, each=_each, grad_name="Einsum"
)
