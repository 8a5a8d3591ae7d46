"""Sums, means and maxima of bags of rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.abstract_array import everything
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import where
from tapegrad.functions.creation import zeros
from tapegrad.functions.elementwise import ne
from tapegrad.functions.indexing import index_add, index_select
from tapegrad.functions.reductions import max
from tapegrad.functions.shapes import reshape, unsqueeze
from tapegrad.nn.linear import embedding
from tapegrad.tensor import Tensor, wrap


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
    sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The sum, the mean or the maximum of the rows of a table that a bag of numbers names.

    Bags are the rows of a matrix, or the parts of a vector that begin at `offsets`. Numbers that
    are `padding_idx` do not count; a bag without numbers gives zeros.

    >>> import tapegrad as tg
    >>> table = tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> tg.nn.functional.embedding_bag(tg.tensor([0, 2, 1]), table, tg.tensor([0, 2]), mode="sum")
    tensor([[6., 8.],
            [3., 4.]])
    """
    index, table = as_input(input, "embedding_bag"), as_input(weight, "embedding_bag")
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"`embedding_bag`: mode is 'sum', 'mean' or 'max', got {mode!r}")
    if scale_grad_by_freq and mode == "max":
        raise ValueError("`embedding_bag`: gradients of maxima are not scaled by frequency")
    edges = _edges(index, offsets, include_last_offset)
    factors = _factors(index, per_sample_weights, mode)
    flat = reshape(index, (-1,))[: int(edges[-1])]
    factors = factors if factors is None else factors[: int(edges[-1])]
    rows = embedding(flat, table, None, max_norm, norm_type, scale_grad_by_freq)
    count = table._a.shape[0]
    counted = None
    if padding_idx is not None:
        if not -count <= padding_idx < count:
            raise RuntimeError(
                f"`embedding_bag`: padding_idx is the number of one of {count} rows, got "
                f"{padding_idx}"
            )
        counted = everything(ne(flat, padding_idx % count)._a)
    size = len(edges) - 1
    bags = np.repeat(np.arange(size), np.diff(edges))
    if mode == "max":
        return _largest(rows, bags, size, counted)
    if counted is not None:
        rows = rows * wrap(counted[:, None].astype(table._a.dtype))
    if factors is not None:
        rows = rows * unsqueeze(factors, 1)
    whole = zeros(size, table._a.shape[1], dtype=table.dtype)
    total = index_add(whole, 0, wrap(bags), rows)
    if mode == "sum":
        return total
    sizes = np.bincount(bags, counted, size)
    return total / wrap(np.maximum(sizes, 1).astype(table._a.dtype)[:, None])


def _edges(index: Tensor, offsets: Any, include_last: bool) -> np.ndarray:
    """Where each bag begins in the flat order, and where the last one ends."""
    shape = index._a.shape
    if len(shape) == 2:
        if offsets is not None:
            raise ValueError("`embedding_bag`: the rows of a matrix are bags: leave out `offsets`")
        rows: np.ndarray = np.arange(shape[0] + 1) * shape[1]
        return rows
    if len(shape) != 1:
        raise ValueError(f"`embedding_bag` takes a vector or a matrix, got the shape {shape}")
    if not isinstance(offsets, Tensor) or offsets._a.ndim != 1:
        raise ValueError("`embedding_bag` of a vector needs `offsets`, a vector")
    edges: np.ndarray = everything(offsets._a)
    if include_last and not edges.size:
        raise RuntimeError("`embedding_bag`: include_last_offset needs one offset at least")
    if not include_last:
        edges = np.append(edges, shape[0])
    if edges[-1] > shape[0] or (len(edges) > 1 and edges[0]) or np.any(np.diff(edges) < 0):
        raise RuntimeError(
            f"`embedding_bag`: offsets ascend from 0 to {shape[0]}, the length of the input, got "
            f"{edges.tolist()}"
        )
    return edges


def _factors(index: Tensor, given: Any, mode: str) -> Tensor | None:
    if given is None:
        return None
    if mode != "sum":
        raise NotImplementedError(f"`embedding_bag`: weights are for mode='sum', got {mode!r}")
    factors = as_input(given, "embedding_bag")
    if factors._a.shape != index._a.shape:
        raise ValueError(
            f"`embedding_bag`: weights have the shape of the input, got {factors._a.shape} for "
            f"{index._a.shape}"
        )
    return reshape(factors, (-1,))


def _largest(rows: Tensor, bags: np.ndarray, size: int, counted: np.ndarray | None) -> Tensor:
    """The maxima of bags of rows, each from the first row that has it."""
    n, width = rows._a.shape
    keep = np.arange(n) if counted is None else np.flatnonzero(counted)
    counts = np.bincount(bags[keep], minlength=size)
    longest = counts.max(initial=0)
    if not longest:
        return index_add(zeros(size, width, dtype=rows.dtype), 0, wrap(bags[:0]), rows[:0])
    # Bags of one length: shorter ones repeat their first row.
    within = np.arange(longest) * (np.arange(longest) < counts[:, None])
    first = np.minimum(np.cumsum(counts) - counts, len(keep) - 1)
    places = keep[first[:, None] + within]
    chosen = reshape(index_select(rows, 0, wrap(places.ravel())), (size, int(longest), width))
    best = max(chosen, 1).values
    return best if counts.all() else where(wrap(counts[:, None] > 0), best, 0.0)
