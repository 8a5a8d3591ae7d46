"""Sums of products over dimensions of several Tensors: einsum and what can be said by it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.functions.arguments import alike, as_input, one_dim
from tapegrad.functions.arithmetic import sub
from tapegrad.functions.diagonals import diagonal
from tapegrad.functions.elementwise import mul
from tapegrad.functions.indexing import getitem
from tapegrad.functions.method_decorators import axis_method, method
from tapegrad.functions.products import matmul, outer
from tapegrad.functions.reductions import sum as sum_
from tapegrad.functions.shapes import expand, permute, reshape, squeeze
from tapegrad.functions.tiling import roll
from tapegrad.ops import shape as s
from tapegrad.ops.einsum import contracted
from tapegrad.ops.einsum import einsum as _einsum
from tapegrad.tensor import F4, F8, Tensor

_Order = list[int] | None
ELLIPSIS = "..."
_SMALL_LETTERS = "abcdefghijklmnopqrstuvwxyz"  # the module `string` takes a millisecond
_LETTERS = _SMALL_LETTERS + _SMALL_LETTERS.upper()
_BY_NUMBER = _SMALL_LETTERS.upper() + _SMALL_LETTERS  # of sublists, in PyTorch's order


def einsum(*args: Any) -> Tensor:
    """Multiply elements that letters choose, and sum over the letters that the result lacks.

    The equation has the letters of each operand's dimensions, and after ``->`` those of the result
    (without it: the letters that stand once, in alphabetical order).  A letter that an operand has
    twice means its diagonal; ``...`` stands for dimensions that broadcast.  As in PyTorch the
    equation may also be given as lists of numbers: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    >>> import tapegrad as tg
    >>> a, b = tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([5.0, 6.0])
    >>> tg.einsum("ij,j->i", a, b)
    tensor([17., 39.])
    >>> tg.einsum("ii", a)
    tensor(5.)
    """
    if len(args) < 2:
        raise ValueError(
            "`einsum` takes an equation and at least one operand: `einsum('ij,j->i', a, b)`"
        )
    equation, given = (args[0], args[1:]) if isinstance(args[0], str) else _from_lists(args)
    several = len(given) == 1 and isinstance(given[0], (list, tuple))
    given = tuple(given[0]) if several else given
    operands = [as_input(x, "einsum") for x in given]
    if len(given) > 1:
        operands = alike(*given)
    if any(x._a.dtype != operands[0]._a.dtype for x in operands):
        raise RuntimeError(
            f"`einsum`: expected operands of one dtype, got {[str(x.dtype) for x in operands]}: "
            "convert them with `.to`"
        )
    given_terms, out, sizes = _parse(equation, tuple([x._a.shape for x in operands]))
    terms = list(given_terms)
    if sizes is not None:
        for k, (x, term) in enumerate(zip(operands, terms, strict=True)):
            operands[k], terms[k] = _spread_out(x, term, sizes)
        for k, (x, term) in enumerate(zip(operands, terms, strict=True)):
            elsewhere = {*out}.union(*terms[:k], *terms[k + 1 :])
            alone = tuple(d for d, i in enumerate(term) if i not in elsewhere)
            if alone:
                operands[k] = sum_(x, alone)
                terms[k] = "".join(i for i in term if i in elsewhere)
    if len(operands) > 1 and all(type(x) is Tensor and x._a.dtype in (F8, F4) for x in operands):
        product = _matrix_product(*terms, out) if len(operands) == 2 else None
        if product is not None:
            k, orders = product
            factors = zip((operands[k], operands[1 - k]), orders, strict=True)
            return matmul(*[permute(x, order) if order else x for x, order in factors])
        if len(out) == 2 == len(terms) and {*terms} == {*out}:
            return outer(*[operands[terms.index(i)] for i in out])
        if all(x._s != -1 for x in operands):
            return contracted(operands, tuple(terms), out, mul, matmul)  # type: ignore[no-any-return]
    if len(operands) > 1:
        return run(_einsum, tuple(operands), {"terms": tuple(terms), "out": out})
    if not out and given_terms[0]:
        return operands[0]  # a sum: for NumPy a number, of which there are no views
    return permute(operands[0], [terms[0].index(i) for i in out])


@lru_cache(1024)
def _matrix_product(a: str, b: str, out: str) -> tuple[int, tuple[_Order, _Order]] | None:
    """Which operand is the left factor of a matrix product, and the orders of its dimensions.

    Products of small matrices run in compiled code, forward and in the sweep; other programs than
    eager ones choose how they compute a contraction themselves.
    """
    for k, (left, right) in enumerate(((a, b), (b, a))):
        batch = [i for i in out if i in left and i in right]
        inner = [i for i in left if i in right and i not in out]
        rows, cols = ([i for i in out if i in own and i not in batch] for own in (left, right))
        whole = "".join([*batch, *rows, *cols]) == out and len(rows) <= 1 and len(cols) <= 1
        if whole and len(inner) == 1 and (not batch or (rows and cols)):
            wanted = ("".join([*batch, *rows, *inner]), "".join([*batch, *inner, *cols]))
            if sorted(wanted[0]) == sorted(left) and sorted(wanted[1]) == sorted(right):
                return k, (_order(left, wanted[0]), _order(right, wanted[1]))
    return None


def _order(term: str, wanted: str) -> _Order:
    """How the dimensions of an operand are ordered as they are wanted; None: they are."""
    return None if term == wanted else [term.index(i) for i in wanted]


def _spread_out(x: Tensor, term: str, sizes: dict[str, int]) -> tuple[Tensor, str]:
    """An operand without letters that stand twice, or that broadcast."""
    for i in dict.fromkeys(term):
        while term.count(i) > 1:
            first = term.index(i)
            second = term.index(i, first + 1)
            x = diagonal(x, 0, first, second)
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + i
    small = tuple(k for k, i in enumerate(term) if x._a.shape[k] != sizes[i])
    if small:
        x = squeeze(x, small)
        term = "".join(i for k, i in enumerate(term) if k not in small)
    return x, term


def _from_lists(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation of ``einsum(a, [0, 1], b, [1, 2], [0, 2])``, and its operands."""
    lists = [*args[1::2], *args[-1:]] if len(args) % 2 else [*args[1::2]]
    texts = []
    for numbers in lists:
        if not isinstance(numbers, (list, tuple)):
            raise TypeError(
                "`einsum` takes an equation before its operands, or a list of numbers after each, "
                f"got {type(numbers).__name__}"
            )
        letters = []
        for n in numbers:
            if n is not Ellipsis and not (isinstance(n, int) and 0 <= n < len(_BY_NUMBER)):
                raise RuntimeError(
                    f"`einsum`: a list has numbers from 0 to {len(_BY_NUMBER) - 1} and `...`, "
                    f"got {n!r}"
                )
            letters.append(ELLIPSIS if n is Ellipsis else _BY_NUMBER[n])
        texts.append("".join(letters))
    n = len(args) // 2
    equation = ",".join(texts[:n]) + ("->" + texts[n] if len(args) % 2 else "")
    return equation, args[: 2 * n : 2]


@lru_cache(1024)
def _parse(
    equation: str, shapes: tuple[Any, ...]
) -> tuple[tuple[str, ...], str, dict[str, int] | None]:
    """One letter for each dimension of the operands and of the result, and the letters' sizes;
    None for these if the operands have the normal form of the row already.
    """
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    given = left.split(",")
    if len(given) != len(shapes):
        raise RuntimeError(
            f"`einsum`: the equation {equation!r} has {len(given)} operands, got {len(shapes)}"
        )
    for text in (*given, right):
        strange = set(text.replace(ELLIPSIS, "", 1)) - {*_LETTERS}
        if strange:
            raise RuntimeError(
                f"`einsum`: {min(strange)!r} in the equation {equation!r} is not understood: "
                "dimensions have letters, and '...' at most once for each operand"
            )
    spare = [i for i in _LETTERS if i not in equation]
    extra = [len(shape) - len(text.replace(ELLIPSIS, "")) for text, shape in zip(given, shapes)]
    dots = max((n for n, text in zip(extra, given) if ELLIPSIS in text), default=0)
    if dots > len(spare):
        raise RuntimeError(f"`einsum`: more than {len(_LETTERS)} dimensions: join some")
    names = "".join(spare[:dots]) if dots > 0 else ""
    terms: list[str] = []
    sizes: dict[str, int] = {}
    for k, (text, shape, more) in enumerate(zip(given, shapes, extra, strict=True)):
        if more < 0 or (more and ELLIPSIS not in text):
            raise RuntimeError(
                f"`einsum`: {text!r} in the equation {equation!r} does not fit operand {k} of "
                f"shape {shape}: it takes one letter for each dimension, or '...' for several"
            )
        term = text.replace(ELLIPSIS, names[len(names) - more :])
        own: dict[str, int] = {}
        for i, n in zip(term, shape, strict=True):
            if own.setdefault(i, n) != n:
                raise RuntimeError(
                    f"`einsum`: operand {k} of shape {shape} has no diagonal {text!r}: the sizes "
                    "of one letter must agree"
                )
            if sizes.setdefault(i, n) != n:
                if 1 not in (n, sizes[i]):
                    raise RuntimeError(
                        f"`einsum`: the dimension {i!r} of operand {k} has size {n}, in an operand "
                        f"before it {sizes[i]}: sizes of one letter must be equal or 1"
                    )
                sizes[i] = n if sizes[i] == 1 else sizes[i]
        terms.append(term)
    if arrow:
        out = right.replace(ELLIPSIS, names)
        _check_result(equation, out, sizes)
    else:
        letters = "".join(given).replace(ELLIPSIS, "")
        out = names + "".join(sorted(i for i in {*letters} if letters.count(i) == 1))
    return tuple(terms), out, None if _is_normal(terms, out, shapes, sizes) else sizes


def _is_normal(terms: list[str], out: str, shapes: Any, sizes: dict[str, int]) -> bool:
    return all(
        len({*term}) == len(term)
        and {*term} <= {*out}.union(*terms[:k], *terms[k + 1 :])
        and [sizes[i] for i in term] == [*shape]
        for k, (term, shape) in enumerate(zip(terms, shapes, strict=True))
    )


def _check_result(equation: str, out: str, sizes: dict[str, int]) -> None:
    for i in out:
        if i not in sizes:
            raise RuntimeError(
                f"`einsum`: {i!r} after '->' in {equation!r} stands in no operand: the result has "
                "letters of the operands only"
            )
        if out.count(i) > 1:
            raise RuntimeError(
                f"`einsum`: {i!r} stands twice after '->' in {equation!r}: use `diag_embed` to "
                "write into a diagonal"
            )


def tensordot(a: Any, b: Any, dims: Any = 2) -> Tensor:
    """Multiply and sum over several dimensions.

    `dims` is how many: the last ones of `a` and the first ones of `b`; or two lists of dimensions.

    >>> import tapegrad as tg
    >>> tg.tensordot(tg.ones(2, 3), tg.ones(3, 2), dims=1)
    tensor([[3., 3.],
            [3., 3.]])
    """
    x, y = as_input(a, "tensordot"), as_input(b, "tensordot")
    if x._a.dtype != y._a.dtype:
        x, y = alike(a, b)
    left, right = dims_of_both(x._a.shape, y._a.shape, dims)
    sx, sy = x._a.shape, y._a.shape
    for i, j in zip(left, right, strict=True):
        if sx[i] != sy[j] and 1 not in (sx[i], sy[j]):
            raise RuntimeError(
                f"`tensordot`: dimension {i} of the shape {sx} and dimension {j} of {sy} are "
                "summed over together, their sizes must agree"
            )
    # A dimension of size 1 goes with any other, as in PyTorch.
    stretched = {i: sy[j] for i, j in zip(left, right, strict=True) if sx[i] == 1 != sy[j]}
    if stretched:
        x = expand(x, [stretched.get(i, n) for i, n in enumerate(sx)])
    stretched = {j: sx[i] for i, j in zip(left, right, strict=True) if sy[j] == 1 != sx[i]}
    if stretched:
        y = expand(y, [stretched.get(j, n) for j, n in enumerate(sy)])
    letters = "".join(map(chr, range(len(sx) + len(sy))))
    own, others = letters[: len(sx)], letters[len(sx) :]
    shared = {j: own[i] for i, j in zip(left, right, strict=True)}
    terms = own, "".join(shared.get(j, letter) for j, letter in enumerate(others))
    out = "".join(i for term in terms for i in term if i not in shared.values())
    return contracted((x, y), terms, out, mul, matmul)  # type: ignore[no-any-return]


def dims_of_both(sx: Any, sy: Any, dims: Any) -> tuple[list[int], list[int]]:
    """The dimensions of both operands of `tensordot` that it sums over."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, (int, np.integer)):
        if not 0 <= dims <= min(len(sx), len(sy)):
            raise RuntimeError(
                f"`tensordot`: dims={dims} of the shapes {sx} and {sy}: it is a number from 0 to "
                f"{min(len(sx), len(sy))}, or two lists of dimensions"
            )
        n = int(dims)
        return list(range(len(sx) - n, len(sx))), list(range(n))
    left, right = (
        [one_dim(d, len(shape), "tensordot") for d in ([part] if isinstance(part, int) else part)]
        for part, shape in zip(dims, (sx, sy), strict=True)
    )
    if len(left) != len(right) or len({*left}) != len(left) or len({*right}) != len(right):
        raise RuntimeError(
            f"`tensordot`: dims={dims} must name as many dimensions of the one operand as of the "
            "other, each once"
        )
    return left, right


@method
def kron(input: Tensor, other: Tensor | np.ndarray) -> Tensor:
    """Kronecker's product: each element of the one, times all of the other.

    >>> import tapegrad as tg
    >>> tg.kron(tg.tensor([1.0, 10.0]), tg.tensor([1.0, 2.0]))
    tensor([ 1.,  2., 10., 20.])
    """
    x, y = as_input(input, "kron"), as_input(other, "kron")
    n = max(x._a.ndim, y._a.ndim)
    sx = (1,) * (n - x._a.ndim) + x._a.shape
    sy = (1,) * (n - y._a.ndim) + y._a.shape
    all_ = slice(None)
    left = getitem(x, (*(None,) * (2 * (n - x._a.ndim)), *(all_, None) * x._a.ndim))
    right = getitem(y, (*(None,) * (2 * (n - y._a.ndim)), *(None, all_) * y._a.ndim))
    return reshape(mul(left, right), tuple(j * k for j, k in zip(sx, sy, strict=True)))


@method
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix.

    >>> import tapegrad as tg
    >>> tg.trace(tg.eye(3))
    tensor(3.)
    """
    x = as_input(input, "trace")
    if x._a.ndim != 2:
        raise RuntimeError(
            f"`trace` takes a matrix, got the shape {x._a.shape}; for a batch use "
            "`diagonal(dim1=-2, dim2=-1).sum(-1)`"
        )
    return sum_(diagonal(x))


@method
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dimension on the diagonal of two new ones; zeros elsewhere.

    >>> import tapegrad as tg
    >>> tg.diag_embed(tg.tensor([[1, 2]]))
    tensor([[[1, 0],
             [0, 2]]])
    """
    x = as_input(input, "diag_embed")
    ndim = x._a.ndim + 1
    a, b = one_dim(dim1, ndim, "diag_embed"), one_dim(dim2, ndim, "diag_embed")
    if a == b:
        raise RuntimeError(f"`diag_embed` needs two different dimensions, got {dim1} and {dim2}")
    n = x._a.shape[-1] + abs(offset)
    shape = list(x._a.shape[:-1])
    for d in sorted((a, b)):
        shape.insert(d, n)
    params = {"shape": tuple(shape), "offset": offset, "dim1": a, "dim2": b}
    return run(s.diagonal_embed, (x,), params)


@axis_method
def cross(input: Tensor, other: Tensor | np.ndarray, dim: int | None = None) -> Tensor:
    """The product of vectors in space; `dim` is the dimension of their three components.

    Without it that is the first dimension of size 3, as in PyTorch.

    >>> import tapegrad as tg
    >>> tg.cross(tg.tensor([1.0, 0.0, 0.0]), tg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    x, y = as_input(input, "cross"), as_input(other, "cross")
    if dim is None:
        three = [d for d, n in enumerate(x._a.shape) if n == 3]
        if not three:
            raise RuntimeError(f"`cross`: the shape {x._a.shape} has no dimension of size 3")
        dim = three[0]
    return crossed(x, y, dim)


def crossed(x: Tensor, y: Tensor, dim: int) -> Tensor:
    """`cross` along a given dimension."""
    if x._a.ndim != y._a.ndim:
        raise RuntimeError(
            f"`cross`: both operands need the same number of dimensions, got the shapes "
            f"{x._a.shape} and {y._a.shape}"
        )
    d = one_dim(dim, x._a.ndim, "cross")
    if not x._a.ndim or x._a.shape[d] != 3 or y._a.shape[d] != 3:
        raise RuntimeError(
            f"`cross`: dimension {dim} must have size 3 in both operands, got the shapes "
            f"{x._a.shape} and {y._a.shape}"
        )
    x1, x2, y1, y2 = [roll(z, shift, d) for z in (x, y) for shift in (-1, 1)]
    return sub(mul(x1, y2), mul(x2, y1))
