"""Borders of elements that come again: what stands before and behind some dimensions.

A border is made of runs (first, step, count): elements from one on, forwards, backwards, or one
again and again.  All of them stand in the middle, from where they are copied, and where their
adjoints are added, without another pass over the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from tapegrad.ops.core import Op, linear
from tapegrad.ops.elementwise import add
from tapegrad.ops.index import at
from tapegrad.ops.reduce import sum as sum_
from tapegrad.ops.shape import cat, clone, embed, expand, flip, getitem

Run = tuple[int, int, int]
# Of a dimension: the runs before the middle, where that begins and how long it is, the runs behind
# it, and how long the dimension is without a border.
Border = tuple[tuple[Run, ...], tuple[int, int], tuple[Run, ...], int]


def runs_of(places: np.ndarray) -> tuple[Run, ...]:
    """The runs that some places are.

    >>> import numpy as np
    >>> from tapegrad.ops.borders import runs_of
    >>> runs_of(np.array([2, 1, 3, 3, 3]))
    ((2, -1, 2), (3, 0, 3))
    """
    found: list[Run] = []
    for k in places.tolist():
        first, step, count = found[-1] if found else (k, 0, 0)
        if count == 1 and abs(k - first) < 2:
            found[-1] = first, k - first, 2
        elif count > 1 and k == first + step * count:
            found[-1] = first, step, count + 1
        else:
            found.append((k, 1, 1))
    return tuple(found)


def border_of(places: np.ndarray, before: int, size: int, low: int, high: int) -> Border | None:
    """The border by which places of a dimension are read, so many before the middle.

    None: it reads elements that are not in the middle, between `low` and `high`.

    >>> import numpy as np
    >>> from tapegrad.ops.borders import border_of
    >>> border_of(np.array([1, 0, 1, 2, 2]), 1, 3, 0, 3)
    (((1, 1, 1),), (0, 3), ((2, 1, 1),), 3)
    """
    outside = np.concatenate([places[:before], places[before + high - low :]])
    if outside.size and not low <= outside.min() <= outside.max() < high:
        return None
    runs = runs_of(outside[:before]), runs_of(outside[before:])
    return runs[0], (low, high - low), runs[1], size


def _elements(run: Run) -> slice:
    """The elements of a run; one that is repeated stands there once."""
    first, step, count = run
    stop = first + step * count if step else first + 1
    return slice(first, None if stop < 0 else stop, step or 1)


def _pieces(border: Border) -> Iterator[tuple[Run, slice]]:
    """The runs, by places in the middle, and where they stand in the result."""
    before, (low, count), after, _ = border
    end = 0
    for first, step, length in chain(before, [(low, 1, count)], after):
        yield (first - low, step, length), slice(end, end + length)
        end += length


def _sizes(border: Border) -> tuple[slice, int]:
    """Where the middle stands in the result, and how long that is."""
    before, (_, count), after, _ = border
    start = sum(length for *_, length in before)
    return slice(start, start + count), start + count + sum(length for *_, length in after)


def _source(border: Border) -> slice:
    _, (low, count), _, _ = border
    return slice(low, low + count)


def _border(x: Any, *, dims: tuple[int, ...], borders: tuple[Border, ...]) -> Any:
    shape = list(x.shape)
    for d, border in zip(dims, borders, strict=True):
        shape[d] = _sizes(border)[1]
    out = np.empty(shape, x.dtype)
    _fill(out, x, [*zip(dims, borders, strict=True)])
    return out


def _fill(out: np.ndarray, x: np.ndarray, left: list[tuple[int, Border]]) -> None:
    if not left:
        out[...] = x
        return
    (d, border), *rest = left
    place, _ = _sizes(border)
    middle = out[at(d, place)]
    _fill(middle, x[at(d, _source(border))], rest)
    for run, where in _pieces(border):
        if where != place:
            out[at(d, where)] = middle[at(d, _elements(run))]


def _fold_border(g: Any, *, dims: tuple[int, ...], borders: tuple[Border, ...]) -> Any:
    found = _folded(g, [*zip(dims, borders, strict=True)])
    shape, index = list(found.shape), [slice(None)] * found.ndim
    for d, border in zip(dims, borders, strict=True):
        shape[d], index[d] = border[3], _source(border)
    if shape == list(found.shape):
        return found
    out = np.zeros(shape, g.dtype)
    out[tuple(index)] = found
    return out


def _folded(g: np.ndarray, left: list[tuple[int, Border]]) -> np.ndarray:
    """The adjoint of the middle, to which those of the runs are added."""
    if not left:
        return np.array(g)
    (d, border), *rest = left
    place, _ = _sizes(border)
    found = _folded(g[at(d, place)], rest)
    for run, where in _pieces(border):
        if where != place:
            part = _folded(g[at(d, where)], rest)
            found[at(d, _elements(run))] += part if run[1] else part.sum(d, keepdims=True)
    return found


def _border_form(x: Any, *, dims: tuple[int, ...], borders: tuple[Border, ...]) -> Any:
    for d, border in zip(dims, borders, strict=True):
        middle = getitem(x, index=at(d, _source(border)))
        pieces = [_part(middle, d, run) for run, _ in _pieces(border) if run[2]]
        x = cat(*pieces, dim=d) if len(pieces) > 1 else middle
    return clone(x)


def _part(x: Any, d: int, run: Run) -> Any:
    first, step, count = run
    if step < 0:
        return flip(_part(x, d, (first - count + 1, 1, count)), dims=(d,))
    found = getitem(x, index=at(d, _elements(run)))
    return found if step else expand(found, shape=(*x.shape[:d], count, *x.shape[d + 1 :]))


def _fold_form(g: Any, *, dims: tuple[int, ...], borders: tuple[Border, ...]) -> Any:
    for d, border in reversed([*zip(dims, borders, strict=True)]):
        place, _ = _sizes(border)
        shape = (*g.shape[:d], border[3], *g.shape[d + 1 :])
        low = border[1][0]
        found = embed(getitem(g, index=at(d, place)), shape=shape, index=at(d, _source(border)))
        for (first, step, count), where in _pieces(border):
            if where == place:
                continue
            part = getitem(g, index=at(d, where))
            if not step:
                part, count = sum_(part, dim=(d,), keepdim=True), 1
            elif step < 0:
                part, first = flip(part, dims=(d,)), first - count + 1
            there = slice(low + first, low + first + count)
            found = add(found, embed(part, shape=shape, index=at(d, there)))
        g = found
    return clone(g)


# fmt: off
border: Op = linear(
    "border", _border, decomposition=_border_form, kinds="fib",
    x=lambda g, dims, borders: fold_border(g, dims=dims, borders=borders),
)
fold_border: Op = linear(
    "fold_border", _fold_border, decomposition=_fold_form, kinds="fib",
    x=lambda g, dims, borders: border(g, dims=dims, borders=borders),
)
# fmt: on
