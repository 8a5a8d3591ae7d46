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
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.core import ANALYTIC, Op, custom
from tapegrad.ops.elementwise import exact, mul
from tapegrad.ops.linalg import matmul, product
from tapegrad.ops.shape import permute, reshape, unsqueeze


@lru_cache(512)
def _path(terms: tuple[str, ...], out: str, shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Which operands to contract one after the other; each result goes to the end of the list."""
    if len(terms) < 3:
        return (tuple(range(len(terms))),)
    like = [np.broadcast_to(0.0, shape) for shape in shapes]
    return tuple(np.einsum_path(f"{','.join(terms)}->{out}", *like, optimize="greedy")[0][1:])


def contracted(xs: Any, terms: Any, out: str, times: Any, matrix_product: Any) -> Any:
    """The contraction in pairs, over operations: products of elements, and of matrices."""
    parts = list(zip(xs, terms, strict=True))
    for chosen in _path(terms, out, tuple([x.shape for x in xs])):
        taken = [parts.pop(i) for i in sorted(chosen, reverse=True)]
        while len(taken) > 1:
            (a, ta), (b, tb) = taken.pop(), taken.pop()
            later = "".join([out, *[t for _, t in parts], *[t for _, t in taken]])
            taken.append(_pair(a, b, *_plan(ta, tb, later), times, matrix_product))
        parts.append(taken[0])
    ((x, term),) = parts
    return x if term == out else _aligned(x, term, out)


def _contract(xs: Any, terms: Any, out: str) -> Any:
    return np.asarray(contracted(xs, terms, out, np.multiply, np.matmul), order="C")


class Product(NamedTuple):
    """How two operands become matrices: the order of their dimensions, and how many of a kind."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    batch: int
    inner: int


class Pointwise(NamedTuple):
    """How two operands are brought side by side: order of dimensions, and new ones of size 1."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    left_new: tuple[int, ...]
    right_new: tuple[int, ...]


@lru_cache(1024)
def _plan(ta: str, tb: str, later: str) -> tuple[Product | Pointwise, str]:
    """How to multiply two operands and sum over the letters that nobody needs any more."""
    inner = [i for i in ta if i in tb and i not in later]
    batch = [i for i in ta if i in tb and i in later]
    left, right = [i for i in ta if i not in tb], [i for i in tb if i not in ta]
    whole = "".join(batch + left + right)
    if inner:
        order_a = tuple(ta.index(i) for i in batch + left + inner)
        order_b = tuple(tb.index(i) for i in batch + inner + right)
        return Product(order_a, order_b, len(batch), len(inner)), whole
    (order_a, new_a), (order_b, new_b) = _order(ta, whole), _order(tb, whole)
    return Pointwise(order_a, order_b, new_a, new_b), whole


def _pair(
    a: Any, b: Any, plan: Product | Pointwise, whole: str, times: Any, matrix_product: Any
) -> tuple[Any, str]:
    a, b = _ordered(a, plan.left), _ordered(b, plan.right)
    if isinstance(plan, Pointwise):
        return times(_spread(a, plan.left_new), _spread(b, plan.right_new)), whole
    shared, split = plan.batch, len(a.shape) - plan.inner
    batch, left, inner = a.shape[:shared], a.shape[shared:split], a.shape[split:]
    right, k = b.shape[shared + plan.inner :], prod(inner)
    found = matrix_product(
        _shaped(a, (*batch, prod(left), k)), _shaped(b, (*batch, k, prod(right)))
    )
    return _shaped(found, batch + left + right), whole


def _order(term: str, whole: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The order of an operand's dimensions in `whole`, and where there it has none."""
    order = tuple(term.index(i) for i in whole if i in term)
    return order, tuple(d for d, i in enumerate(whole) if i not in term)


def _aligned(x: Any, term: str, whole: str) -> Any:
    """An operand with its dimensions in the order of `whole`, of size 1 where it has no letter."""
    order, new = _order(term, whole)
    return _spread(_ordered(x, order), new)


def _ordered(x: Any, order: tuple[int, ...]) -> Any:
    return x if order == tuple(range(len(order))) else permute(x, dims=order)


def _spread(x: Any, new: tuple[int, ...]) -> Any:
    return unsqueeze(x, dims=new) if new else x


def _shaped(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.shape == shape else reshape(x, shape=shape)


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


einsum = custom(
    "einsum",
    _einsum,
    complex=ANALYTIC,
    variadic=True,
    multilinear=True,
    each=_each,
    decomposition=lambda *xs, terms, out: contracted(xs, terms, out, mul, matmul),
)
# What derivatives use: an adjoint that is exactly zero contributes exactly zero.
contraction: Op = custom(
    "contraction",
    _strong_einsum,
    complex=ANALYTIC,
    variadic=True,
    multilinear=True,
    each=_each,
    grad_name="Einsum",
    decomposition=lambda *xs, terms, out: contracted(xs, terms, out, exact, product),
)
