"""Losses of classes: from their logarithms of probabilities, their scores, or margins of these."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import sub as minus
from tapegrad.functions.arithmetic import where
from tapegrad.functions.axis import log_softmax
from tapegrad.functions.creation import arange
from tapegrad.functions.elementwise import eq, ge, gt, logical_and, logical_not, ne, neg, relu
from tapegrad.functions.indexing import gather, index_select, scatter_add
from tapegrad.functions.reductions import mean, sum
from tapegrad.functions.scans import cumprod
from tapegrad.functions.shapes import reshape, unsqueeze
from tapegrad.nn.activations import logsigmoid
from tapegrad.nn.reduction import chosen, reduced
from tapegrad.tensor import Tensor


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-probabilities, along dimension 1 or the only one, of the classes in `target`.

    A `weight` for each class makes the mean a weighted one; targets that are `ignore_index` do not
    count.

    >>> import tapegrad as tg
    >>> tg.nn.functional.nll_loss(tg.tensor([[-1.0, -2.0]]), tg.tensor([1]))
    tensor(2.)
    """
    how = chosen(reduction, "nll_loss", size_average, reduce)
    return _of_classes("nll_loss", input, target, weight, ignore_index, how)


def _classes(name: str, x: Tensor, target: Any) -> tuple[Tensor, int]:
    """The classes as they fit the input, and the dimension that they choose from."""
    t = as_input(target, name)
    if not x._a.ndim:
        raise ValueError(f"`{name}` takes one dimension at least, got a number")
    if t._a.dtype.type not in (np.int64, np.uint8):
        raise RuntimeError(f"`{name}` takes classes of type int64 or uint8, got {t.dtype}")
    dim = min(1, x._a.ndim - 1)
    if x._a.ndim == 1 and t._a.shape == (1,):
        t = reshape(t, ())
    want = x._a.shape[:dim] + x._a.shape[dim + 1 :]
    if t._a.shape != want:
        batches = t._a.ndim != len(want) or t._a.shape[:1] != want[:1]
        problem = ValueError if batches else RuntimeError
        raise problem(
            f"`{name}` takes classes in the shape of the input without its dimension of classes, "
            f"got {t._a.shape} for {x._a.shape}"
        )
    return t, dim


def _of_classes(
    name: str, input: Any, target: Any, weight: Any, ignore_index: int, how: str,
    smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """`nll_loss`, mixed with the mean over all classes by a part `smoothing`."""
    x = as_input(input, name)
    t, dim = _classes(name, x, target)
    count = x._a.shape[dim]
    w = None if weight is None else _class_weight(name, weight, x, count)
    sure, t, kept = _kept(name, t, count, ignore_index)
    if not count:
        return reduced(sum(x, dim), how)
    gathered = neg(gather(x, dim, unsqueeze(t, dim)).squeeze(dim))
    factors = None if w is None else reshape(index_select(w, 0, t.reshape(-1)), t._a.shape)
    losses = gathered if factors is None else gathered * factors
    if smoothing:
        spread = x if w is None else x * reshape(w, (-1, *[1] * (x._a.ndim - dim - 1)))
        losses = losses * (1 - smoothing) - sum(spread, dim) * (smoothing / count)
    if not sure:
        losses = where(kept, losses, 0.0)
        factors = kept.to(x.dtype) if factors is None else where(kept, factors, 0.0)
    if how == "mean" and factors is not None:
        total = sum(factors)
        if sure:
            return sum(losses) / total
        none = eq(total, 0)  # NaN, whose derivative is 0
        return where(none, math.nan, sum(losses) / where(none, 1.0, total))
    return reduced(losses, how)


def _class_weight(name: str, weight: Any, x: Tensor, count: int) -> Tensor:
    w = as_input(weight, name)
    if w._a.shape != (count,):
        raise RuntimeError(
            f"`{name}`: the weight has one number for each of {count} classes, got the shape "
            f"{w._a.shape}"
        )
    if w._a.dtype != x._a.dtype:
        raise RuntimeError(f"`{name}`: the weight is of {w.dtype}, the input of {x.dtype}")
    return w


def _kept(name: str, t: Tensor, count: int, ignore_index: int) -> tuple[bool, Tensor, Tensor]:
    """Whether all targets count, targets that are classes everywhere, and which of them count."""
    if not isinstance(t._a, AbstractArray) and t._a.size:
        low, high = _extremes(t._a)
        if 0 <= low <= high < count and not low <= ignore_index <= high:
            return True, t if t._a.dtype.type is np.int64 else t.long(), t
    kept = ne(t, ignore_index)
    sure = False
    if not isinstance(t._a, AbstractArray):
        sure = bool(kept._a.all())
        found = t._a if sure else t._a[kept._a]
        if found.size and not 0 <= found.min() <= found.max() < count:
            raise IndexError(f"`{name}`: a class is a number from 0 to {count - 1}")
    if t._a.dtype.type is not np.int64:
        t = t.long()
    return sure, (t if sure else where(kept, t, 0)), kept


def _extremes(a: np.ndarray) -> tuple[int, int]:
    """The least and the greatest integer; of a few, Python finds both sooner than NumPy one."""
    if a.size > 64:
        return int(a.min()), int(a.max())
    numbers = a.ravel().tolist()
    return min(numbers), max(numbers)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """The cross entropy of the softmax of the input and classes, or probabilities of classes.

    A `weight` for each class makes the mean a weighted one; targets that are `ignore_index` do not
    count. `label_smoothing` is the part of the probability that goes to all classes alike.

    >>> import tapegrad as tg
    >>> tg.nn.functional.cross_entropy(tg.zeros(1, 4), tg.tensor([2]))
    tensor(1.3863)
    """
    name = "cross_entropy"
    how = chosen(reduction, name, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"`{name}`: label_smoothing is from 0 to 1, got {label_smoothing}")
    x, t = as_input(input, name), as_input(target, name)
    probabilities = t._a.shape == x._a.shape
    if probabilities and t._a.dtype.kind != "f":
        raise RuntimeError(f"`{name}`: probabilities of classes are floats, got {t.dtype}")
    dim = min(1, x._a.ndim - 1)
    if probabilities and ignore_index >= 0:
        raise RuntimeError(f"`{name}`: ignore_index is for classes, not for their probabilities")
    if t._a.dtype.kind == "f" and not probabilities:
        problem = ValueError if t._a.ndim != x._a.ndim or len(t._a) != len(x._a) else RuntimeError
        raise problem(
            f"`{name}`: probabilities have the shape of the input, got {t._a.shape} for "
            f"{x._a.shape}"
        )
    logs = log_softmax(x, dim)
    if not probabilities:
        return _of_classes(name, logs, t, weight, ignore_index, how, label_smoothing)
    count = x._a.shape[dim]
    if label_smoothing:
        t = t * (1 - label_smoothing) + label_smoothing / count
    terms = logs * t
    if weight is not None:
        w = _class_weight(name, weight, x, count)
        terms = terms * reshape(w, (-1, *[1] * (x._a.ndim - dim - 1)))
    return reduced(neg(sum(terms, dim)), how)


# -- margins of scores -----------------------------------------------------------------------------


def _rows(name: str, input: Any) -> tuple[Tensor, bool]:
    """Scores as a batch of rows, and whether they were one."""
    x = as_input(input, name)
    if x._a.ndim not in (1, 2) or not x._a.shape[-1]:
        raise RuntimeError(
            f"`{name}` takes a row of scores or a batch of rows, got the shape {x._a.shape}"
        )
    return (x, True) if x._a.ndim == 2 else (unsqueeze(x, 0), False)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """What the score of the right class lacks to be above all others by a margin, to the power p.

    >>> import tapegrad as tg
    >>> tg.nn.functional.multi_margin_loss(tg.tensor([[1.0, 0.5, 3.0]]), tg.tensor([0]))
    tensor(1.1667)
    """
    name = "multi_margin_loss"
    how = chosen(reduction, name, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"`{name}`: p is 1 or 2, got {p}")
    x, batched = _rows(name, input)
    n, count = x._a.shape
    t = reshape(as_input(target, name), (-1,))
    if t._a.shape != (n,):
        raise RuntimeError(f"`{name}` takes one class for each of {n} rows, got {t._a.shape}")
    _check_range(name, t, 0, count)
    lacking = relu(x - gather(x, 1, unsqueeze(t, 1)) + margin)
    if p == 2:
        lacking = lacking * lacking
    if weight is not None:
        if weight._a.ndim != 1:
            raise ValueError(f"`{name}`: the weight is a vector, got the shape {weight._a.shape}")
        w = index_select(_class_weight(name, weight, x, count), 0, t)
        lacking = lacking * unsqueeze(w, 1)
    others = ne(arange(count), unsqueeze(t, 1))
    losses = sum(where(others, lacking, 0.0), 1) / count
    if how == "none" and not batched and not as_input(target, name)._a.ndim:
        return reshape(losses, ())
    return reduced(losses, how)


def _check_range(name: str, t: Tensor, low: int, count: int) -> None:
    found = t._a
    if isinstance(found, AbstractArray) or not found.size:
        return
    if not low <= found.min() <= found.max() < count:
        raise RuntimeError(f"`{name}`: a class is a number from {low} to {count - 1}")


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """What the scores of right classes lack to be above those of all others by 1.

    The right classes of a row stand at the beginning of the row of targets, up to the first -1.

    >>> import tapegrad as tg
    >>> F = tg.nn.functional
    >>> F.multilabel_margin_loss(tg.tensor([0.5, 1.0, 0.0]), tg.tensor([1, -1, -1]))
    tensor(0.1667)
    """
    name = "multilabel_margin_loss"
    how = chosen(reduction, name, size_average, reduce)
    x, batched = _rows(name, input)
    t = as_input(target, name)
    if t._a.shape != as_input(input, name)._a.shape:
        raise RuntimeError(
            f"`{name}` takes targets in the shape of the input, got {t._a.shape} for "
            f"{as_input(input, name)._a.shape}"
        )
    _check_range(name, t, -1, x._a.shape[1])
    t = t if batched else unsqueeze(t, 0)
    given = cumprod(ge(t, 0).long(), 1)
    classes = where(gt(given, 0), t, 0)
    right = gt(scatter_add(given * 0, 1, classes, given), 0)
    lacking = relu(unsqueeze(x, 1) - unsqueeze(gather(x, 1, classes), 2) + 1.0)
    pairs = logical_and(unsqueeze(gt(given, 0), 2), unsqueeze(logical_not(right), 1))
    losses = sum(where(pairs, lacking, 0.0), (1, 2)) / x._a.shape[1]
    return reduced(losses if batched or how != "none" else reshape(losses, ()), how)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over classes, each right or wrong by itself, of `binary_cross_entropy_with_logits`.

    >>> import tapegrad as tg
    >>> F = tg.nn.functional
    >>> F.multilabel_soft_margin_loss(tg.zeros(1, 3), tg.tensor([[1.0, 0.0, 1.0]]))
    tensor(0.6931)
    """
    how = chosen(reduction, "multilabel_soft_margin_loss", size_average, reduce)
    x, t = (as_input(part, "multilabel_soft_margin_loss") for part in (input, target))
    losses = neg(t * logsigmoid(x) + minus(1, t) * logsigmoid(neg(x)))
    return reduced(mean(losses if weight is None else losses * weight, -1), how)
