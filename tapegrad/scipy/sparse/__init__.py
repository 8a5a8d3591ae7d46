"""Sparse matrices: SciPy's times Tensors, and some whose stored elements are a Tensor.

``A @ t`` and ``t @ A`` are Tensors for every sparse matrix of SciPy's; `linalg.spsolve` solves.

>>> import numpy as np, tapegrad as tg
>>> t = tg.tensor([2.0, 4.0], requires_grad=True)
>>> A = tg.scipy.sparse.csr_array((t, [0, 1], [0, 1, 2]))
>>> (A @ np.array([1.0, 10.0])).sum().backward(); t.grad
tensor([ 1., 10.])
"""

from typing import Any as _Any

import numpy as _np

from tapegrad.functions.sparse import SparseTensor
from tapegrad.functions.sparse import assembled as _assembled
from tapegrad.functions.sparse import built as _built
from tapegrad.scipy.either import among as _among
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.sparse import linalg

__all__ = ["SparseTensor", "csc_array", "csr_array", "linalg"]


def csr_array(arg1: _Any, shape: tuple[int, int] | None = None, **kwargs: _Any) -> _Any:
    """A matrix of the elements `data`, row by row: ``csr_array((data, indices, indptr))``.

    `indices` says the column of each, and `indptr` where each row begins. In ``csr_array((data,
    (rows, columns)))`` elements of the same place are added up. If `data` is a Tensor, products and
    solutions are differentiated in it; of all else SciPy makes its own.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csr_array((tg.tensor([5.0, 7.0]), [1, 0], [0, 1, 2]))
    >>> A.toarray()
    tensor([[0., 5.],
            [7., 0.]])
    """
    return _made("csr_array", arg1, shape, kwargs)


def csc_array(arg1: _Any, shape: tuple[int, int] | None = None, **kwargs: _Any) -> _Any:
    """A matrix of the elements `data`, column by column: `csr_array` transposed.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csc_array((tg.tensor([5.0, 7.0]), [0, 0], [0, 1, 2]))
    >>> A.toarray()
    tensor([[5., 7.]])
    """
    return _made("csc_array", arg1, shape, kwargs)


def _made(name: str, given: _Any, shape: _Any, kwargs: dict[str, _Any]) -> _Any:
    if not _among(given):
        return _theirs("scipy.sparse", name)(given, shape=shape, **kwargs)
    by_column, called = name == "csc_array", f"scipy.sparse.{name}"
    if not kwargs and isinstance(given, tuple) and len(given) == 3:
        return _built(*given, shape, by_column, called)
    if not kwargs and isinstance(given, tuple) and len(given) == 2 and not _among(given[1]):
        data, places = given
        held = _theirs("scipy.sparse", "coo_array")((_np.zeros(data.shape), places), shape=shape)
        return _assembled(data, held.coords, held.shape, by_column, called)
    raise TypeError(
        f"`{called}` of a Tensor takes (data, indices, indptr) or (data, (rows, columns)), and a "
        "shape: where the elements stand is fixed"
    )


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.sparse", name)
