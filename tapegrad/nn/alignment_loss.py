"""Connectionist temporal classification: the loss of sequences whose alignment is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.dispatch.dispatch import run
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import clamp
from tapegrad.functions.creation import tensor
from tapegrad.functions.indexing import getitem
from tapegrad.functions.reductions import mean, sum
from tapegrad.functions.shapes import reshape, unsqueeze
from tapegrad.nn.reduction import chosen
from tapegrad.ops.alignments import ctc
from tapegrad.tensor import Tensor, wrap

NAME = "ctc_loss"
Lengths = Tensor | Sequence[int]


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Lengths, target_lengths: Lengths,
    blank: int = 0, reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the log-probability of sequences, over all alignments with what is longer.

    Each element of a longer sequence is a class of the shorter one, in its order and as often as
    one likes, or the `blank`, which stands between equal classes.

    Parameters
    ----------
    log_probs : logarithms of the probabilities of classes, (time, batch, classes), or without the
        batch: what `log_softmax` gives.
    targets : the sequences, padded to (batch, length), or one after the other in a vector.
    input_lengths, target_lengths : how much of each counts.
    reduction : "mean" divides each loss by the length of its target, then takes the mean.
    zero_infinity : targets that are too long have the loss 0, in place of infinity.

    >>> import tapegrad as tg
    >>> x = tg.zeros(3, 1, 2).log_softmax(2)
    >>> tg.nn.functional.ctc_loss(x, tg.tensor([[1]]), (3,), (1,))
    tensor(0.2877)
    """
    how = chosen(reduction, NAME, None, None)
    x = as_input(log_probs, NAME)
    if x._a.ndim not in (2, 3) or not x._a.size:
        raise RuntimeError(
            f"`{NAME}` takes log-probabilities (time, batch, classes) or (time, classes), with "
            f"elements, got the shape {x._a.shape}"
        )
    if x._a.dtype.type not in (np.float32, np.float64):
        raise NotImplementedError(f"`{NAME}` takes float32 or float64, got {x.dtype}")
    batched = x._a.ndim == 3
    x = x if batched else unsqueeze(x, 1)
    steps, n, classes = x._a.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"`{NAME}`: the blank is a class from 0 to {classes - 1}, got {blank}")
    times = _lengths("input_lengths", input_lengths, n, steps)
    lengths = _lengths("target_lengths", target_lengths, n, None)
    labels = _labels(targets, lengths, n, classes)
    params = {"blank": int(blank), "zero_infinity": bool(zero_infinity)}
    losses = run(ctc, (x, labels, times, lengths), params)
    if how == "mean":
        return mean(losses / clamp(lengths, min=1).to(x.dtype))
    if how == "sum":
        return sum(losses)
    return losses if batched else reshape(losses, ())


def _lengths(which: str, given: Any, n: int, most: int | None) -> Tensor:
    """How long sequences are, one number for each example."""
    t = given if isinstance(given, Tensor) else tensor([*given])
    if not isinstance(given, Tensor) and not t._a.size:
        t = t.long()
    if t._a.dtype.kind not in "iu":
        raise RuntimeError(f"`{NAME}`: {which} are integers, got {t.dtype}")
    t = reshape(t, (1,)) if not t._a.ndim else t
    if t._a.shape != (n,):
        raise RuntimeError(
            f"`{NAME}`: {which} has one number for each of {n} examples, got the shape {t._a.shape}"
        )
    if not isinstance(t._a, AbstractArray):
        low, high = int(t._a.min()), int(t._a.max())
        if low < 0 or (most is not None and high > most):
            above = "" if most is None else f" and at most {most}, the size of `log_probs`"
            raise RuntimeError(f"`{NAME}`: {which} are not negative{above}, got {low} to {high}")
    return t.long()


def _labels(targets: Any, lengths: Tensor, n: int, classes: int) -> Tensor:
    """The targets as (batch, length)."""
    t = as_input(targets, NAME)
    if t._a.ndim not in (1, 2):
        raise RuntimeError(
            f"`{NAME}`: targets are (batch, length), or one after the other in a vector, got the "
            f"shape {t._a.shape}"
        )
    t = t.long()
    if isinstance(lengths._a, AbstractArray):
        if t._a.ndim == 1 and n == 1:
            return unsqueeze(t, 0)
        if t._a.ndim == 1:
            raise RuntimeError(
                f"`{NAME}`: targets in one vector need lengths that are known before the program "
                "runs: pad them to (batch, length)"
            )
        return t
    longest = int(lengths._a.max())
    if t._a.ndim == 1:
        if t._a.shape != (int(lengths._a.sum()),):
            raise RuntimeError(
                f"`{NAME}`: targets in one vector are as many as target_lengths add up to, "
                f"{int(lengths._a.sum())}, got {t._a.shape[0]}"
            )
        starts = np.cumsum(lengths._a) - lengths._a
        places = starts[:, None] + np.arange(longest)
        if not t._a.shape[0]:
            return wrap(np.zeros((n, 0), np.int64))
        t = getitem(t, (np.minimum(places, t._a.shape[0] - 1),))
    elif t._a.shape[0] != n or t._a.shape[1] < longest:
        raise RuntimeError(
            f"`{NAME}`: targets of shape {t._a.shape} for {n} examples with up to {longest} labels"
        )
    if not isinstance(t._a, AbstractArray):
        known = t._a[np.arange(t._a.shape[1]) < lengths._a[:, None]]
        if known.size and not 0 <= known.min() <= known.max() < classes:
            raise RuntimeError(f"`{NAME}`: a target is a class from 0 to {classes - 1}")
    return t
