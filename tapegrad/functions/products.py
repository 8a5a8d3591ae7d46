"""Products of vectors and matrices."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.dispatch.op_functions import as_operand
from tapegrad.dispatch.op_functions import matmul as _function_of
from tapegrad.functions.arguments import alike, as_input
from tapegrad.functions.elementwise import mul
from tapegrad.functions.method_decorators import method
from tapegrad.functions.reductions import sum as sum_
from tapegrad.functions.shapes import matrix_transpose, reshape, unsqueeze
from tapegrad.ops.linalg import matmul as _matmul
from tapegrad.tape.debts import DROP_FLOOR
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor

ARRAYS = (Tensor, np.ndarray)


def _multiply(a: Any, b: Any, name: str, ranks: tuple[int, int] | None) -> Tensor:
    if ranks is not None and type(a) is Tensor and type(b) is Tensor:
        p, q = a._a, b._a
        if (p.ndim, q.ndim) == ranks and p.dtype is q.dtype and _fit(p.shape, q.shape):
            return _matmul.entry_point(a, b)  # type: ignore[no-any-return]
    if not isinstance(a, ARRAYS) or not isinstance(b, ARRAYS):
        from tapegrad.functions.sparse import is_sparse, sparse_product

        if is_sparse(a) or is_sparse(b):
            product: Tensor = sparse_product(a, b)  # or sparse, of two sparse ones
            return product
        if numpys():  # lists are arrays
            a, b = as_operand(a), as_operand(b)
    x, y = as_input(a, name), as_input(b, name)
    if ranks is not None and (x._a.ndim, y._a.ndim) != ranks:
        raise _ranks(name, ranks, x, y)
    if not x._a.ndim or not y._a.ndim:
        raise RuntimeError(f"`{name}`: both operands need at least one dimension; use `*`")
    if x._a.dtype != y._a.dtype:
        x, y = alike(a, b)
    if x._a.dtype != y._a.dtype:
        raise RuntimeError(
            f"`{name}`: expected operands of one dtype, got {x.dtype} and {y.dtype}: "
            "convert one with `.to`"
        )
    if x._a.shape[-1] != y._a.shape[-2 if y._a.ndim > 1 else 0]:
        raise RuntimeError(
            f"`{name}`: shapes {x._a.shape} and {y._a.shape} cannot be multiplied: the inner "
            f"dimensions {x._a.shape[-1]} and {y._a.shape[-2 if y._a.ndim > 1 else 0]} differ"
        )
    if ranks == (3, 3) and x._a.shape[0] != y._a.shape[0]:
        raise RuntimeError(
            f"`{name}` takes two batches of as many matrices, got the shapes {x._a.shape} and "
            f"{y._a.shape}; `matmul` broadcasts them"
        )
    try:
        return run(_matmul, (x, y), {})
    except ValueError:
        raise RuntimeError(
            f"`{name}`: the batch dimensions of {x._a.shape} and {y._a.shape} do not broadcast"
        ) from None


def _fit(p: tuple[int, ...], q: tuple[int, ...]) -> bool:
    """Whether two operands can be multiplied, as many matrices of the one as of the other."""
    return p[::2] == q[:2] if len(q) == 3 else p[-1] == q[0]


def _ranks(name: str, ranks: tuple[int, int], x: Tensor, y: Tensor) -> RuntimeError:
    return RuntimeError(
        f"`{name}` takes Tensors of {ranks[0]} and {ranks[1]} dimensions, got the shapes "
        f"{x._a.shape} and {y._a.shape}"
    )


matmul = _function_of(_matmul, lambda input, other: _multiply(input, other, "matmul", None))
matmul.__name__ = matmul.__qualname__ = "matmul"
matmul.__module__ = __name__
matmul.__doc__ = """The matrix product, batched over leading dimensions.

    A vector counts as a row on the left and as a column on the right.

    >>> import tapegrad as tg
    >>> tg.matmul(tg.eye(2), tg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
method(matmul)


@method
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices.

    >>> import tapegrad as tg
    >>> tg.mm(tg.eye(2), tg.eye(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _multiply(input, mat2, "mm", (2, 2))


@method
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector.

    >>> import tapegrad as tg
    >>> tg.mv(tg.eye(2), tg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return _multiply(input, vec, "mv", (2, 1))


@method
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The inner product of two vectors.

    >>> import tapegrad as tg
    >>> tg.dot(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]))
    tensor(11.)
    """
    return _multiply(input, tensor, "dot", (1, 1))


@method
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices.

    >>> import tapegrad as tg
    >>> tg.bmm(tg.ones(1, 1, 2), tg.ones(1, 2, 1))
    tensor([[[2.]]])
    """
    return _multiply(input, mat2, "bmm", (3, 3))


@method
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of an element of one vector with an element of the other.

    >>> import tapegrad as tg
    >>> tg.outer(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 10.0]))
    tensor([[ 1., 10.],
            [ 2., 20.]])
    """
    x, y = as_input(input, "outer"), as_input(vec2, "outer")
    if x._a.ndim != 1 or y._a.ndim != 1:
        raise RuntimeError(
            f"`outer` takes two vectors, got the shapes {x._a.shape} and {y._a.shape}"
        )
    tape = current.tape
    if tape.debt > DROP_FLOOR:  # a product that was dropped, which the view's record would cover
        tape.drop_tail()
    return mul(unsqueeze(x, 1), y)


@method
def ger(input: Tensor, vec2: Tensor) -> Tensor:
    """`outer`.

    >>> import tapegrad as tg
    >>> tg.ger(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 10.0]))
    tensor([[ 1., 10.],
            [ 2., 20.]])
    """
    return outer(input, vec2)


@method
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two vectors, the first one conjugated if it is complex.

    >>> import tapegrad as tg
    >>> tg.vdot(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]))
    tensor(11.)
    """
    x = as_input(input, "vdot")
    return _multiply(x.conj() if x._a.dtype.kind == "c" else x, other, "vdot", (1, 1))


@method
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The products of all vectors in the last dimension of the one with those of the other.

    A number multiplies all elements.

    >>> import tapegrad as tg
    >>> tg.inner(tg.ones(2, 3), tg.ones(4, 3)).shape
    tapegrad.Size([2, 4])
    """
    x, y = as_input(input, "inner"), as_input(other, "inner")
    if not x._a.ndim or not y._a.ndim:
        return mul(x, y)
    if x._a.shape[-1] != y._a.shape[-1]:
        raise RuntimeError(
            f"`inner`: the last dimensions of the shapes {x._a.shape} and {y._a.shape} must be of "
            "one size"
        )
    n = x._a.shape[-1]
    first, last = x._a.shape[:-1], y._a.shape[:-1]
    left, right = reshape(x, (prod(first), n)), reshape(y, (prod(last), n))
    return reshape(_multiply(left, matrix_transpose(right), "inner", (2, 2)), (*first, *last))


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The inner products of vectors in a dimension; the others broadcast.

    >>> import tapegrad as tg
    >>> tg.linalg.vecdot(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    a, b = as_input(x, "linalg.vecdot"), as_input(y, "linalg.vecdot")
    for t in (a, b):
        if t._a.dtype.kind not in "fc":
            raise RuntimeError(
                f"`linalg.vecdot` takes floating-point Tensors, got {t.dtype}: convert with `.to`"
            )
    return sum_(mul(a.conj() if a._a.dtype.kind == "c" else a, b), dim)
