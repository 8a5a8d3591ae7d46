"""Elements that occur, once each, and whether elements do.

Which ones these are depends on the values; each that is found keeps its gradient, of several equal
ones the first.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from tapegrad.base.abstract_array import AbstractArray, known
from tapegrad.dispatch.dispatch import run
from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions.arguments import Operand, as_input, one_dim
from tapegrad.functions.method_decorators import method
from tapegrad.functions.shapes import reshape, unsqueeze
from tapegrad.ops.index import select_rows
from tapegrad.tensor import Tensor, tensor_of, wrap


def _rows(input: Tensor, dim: int | None, name: str) -> tuple[Tensor, int, bool]:
    """What is compared along one dimension: elements, or slices; and whether there are any."""
    x = as_input(input, name)
    if dim is None:
        return reshape(x, (x._a.size,)), 0, x._a.size > 0
    if not x._a.ndim:
        raise IndexError(f"`{name}`: a 0-d Tensor has no dimension {dim}")
    d = one_dim(dim, x._a.ndim, name)
    if not x._a.size and x._a.shape[d]:
        raise RuntimeError(
            f"`{name}`: slices without elements cannot be told apart, got the shape {x._a.shape} "
            f"and dim={dim}"
        )
    return x, d, x._a.size > 0


def _parts(x: Tensor, d: int, first: np.ndarray, more: list[np.ndarray], wanted: list[bool]) -> Any:
    """The elements or slices at some places, and what else was asked for."""
    found = [run(select_rows, (x, wrap(first.astype(np.int64, copy=False))), {"dim": d})]
    found += [wrap(part) for part, want in zip(more, wanted, strict=True) if want]
    return found[0] if len(found) == 1 else tuple(found)


def _begins(rows: np.ndarray) -> np.ndarray:
    """Where a row is another one than that before it."""
    new = np.ones(len(rows), bool)
    if rows.size:
        other = rows[1:] != rows[:-1]
        new[1:] = other if rows.ndim == 1 else other.any(1)
    return np.flatnonzero(new)


def _span(a: np.ndarray) -> int:
    return int(a.max()) - int(a.min())


def _tabulated(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `np.unique` finds of integers that are near to each other, without sorting them."""
    shifted = a.astype(np.int64) - int(a.min())
    table = np.bincount(shifted)
    occurs = table > 0
    inverse = (np.cumsum(occurs) - 1)[shifted]
    counts = table[occurs]
    first = np.empty(counts.size, np.int64)
    first[inverse[::-1]] = np.arange(a.size)[::-1]  # the last that is written is the first
    return first, inverse, counts


@overload
def unique(input: Tensor, sorted: bool = True, *, dim: int | None = None) -> Tensor: ...
@overload
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Tensor, ...]: ...  # fmt: skip
@method
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """The elements that occur, or slices, in order; where each of all stands there; how often each.

    They are sorted in any case. The gradient of an element that occurs several times goes to the
    first.

    >>> import tapegrad as tg
    >>> tg.unique(tg.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    x, d, some = _rows(input, dim, "unique")
    find: Any = np.unique  # its stubs want to know the flags
    if dim is None and type(x) is Tensor and not (x.requires_grad or return_inverse):
        ordered = np.sort(x._a)
        first = _begins(ordered)
        return _parts(
            wrap(ordered), 0, first, [np.diff(first, append=ordered.size)], [return_counts]
        )
    if dim is None and some and x._a.dtype.kind in "iu" and _span(x._a) <= 4 * x._a.size:
        first, *more = _tabulated(x._a)
    elif some or dim is None:
        axis = None if dim is None else d
        _, first, *more = find(x._a, True, True, True, axis=axis, equal_nan=False)
    else:
        first, *more = (np.zeros(0, np.int64) for _ in range(3))
    more[0] = more[0].reshape(as_input(input, "unique")._a.shape if dim is None else -1)
    return _parts(x, d, first, more, [return_inverse, return_counts])


@overload
def unique_consecutive(input: Tensor, *, dim: int | None = None) -> Tensor: ...
@overload
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Tensor, ...]: ...  # fmt: skip
@method
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Of equal elements that stand side by side, or slices, the first; and how often each.

    >>> import tapegrad as tg
    >>> tg.unique_consecutive(tg.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    x, d, some = _rows(input, dim, "unique_consecutive")
    known(x._a, "unique_consecutive")
    n = x._a.shape[d]
    rows = np.moveaxis(x._a, d, 0).reshape(n, -1 if some else 0)
    first = _begins(rows if x._a.ndim > 1 else x._a)
    counts = np.diff(first, append=n)
    inverse = np.repeat(np.arange(first.size), counts)
    shape = as_input(input, "unique_consecutive")._a.shape if dim is None else (n,)
    return _parts(x, d, first, [inverse.reshape(shape), counts], [return_inverse, return_counts])


def isin(
    elements: Operand, test_elements: Operand, *, assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:  # fmt: skip
    """Whether each element is among others.

    >>> import tapegrad as tg
    >>> tg.isin(tg.tensor([1, 2, 3]), tg.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    if not any(isinstance(x, (Tensor, np.ndarray)) for x in (elements, test_elements)):
        raise TypeError("`isin` takes a Tensor, as its elements or those that it looks among")
    x, among = tensor_of(elements, "isin"), tensor_of(test_elements, "isin")
    if isinstance(x._a, AbstractArray) or isinstance(among._a, AbstractArray):
        x, among = x.detach(), among.detach()
        found = r.any(ew.eq(unsqueeze(x, -1), reshape(among, (among._a.size,))), -1)
        return ew.logical_not(found) if invert else found
    return wrap(np.asarray(np.isin(x._a, among._a, assume_unique, invert)))
