"""Connectionist temporal classification: the probability of a sequence over all its alignments.

`x` are log-probabilities (time, batch, classes), `labels` the sequences (batch, length), padded
with anything. States are the labels with a blank before, between and after them; an alignment stays
in a state, moves on by one, or by two from a label to a different one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.core import NotDifferentiable, NotImplementedYet, Op, custom
from tapegrad.ops.elementwise import strong
from tapegrad.ops.shape import reshape

NEVER = -np.inf  # the logarithm of no probability
LENGTHS = NotDifferentiable("labels and lengths are whole numbers")


class States(NamedTuple):
    """The states of every sequence."""

    classes: np.ndarray  # (batch, states): the class of each
    logs: np.ndarray  # (time, batch, states): its log-probability
    skips: np.ndarray  # (batch, states): 0 where it follows the one before the last, else -inf


def _states(x: Any, labels: Any, lengths: Any, blank: int) -> States:
    n, size = labels.shape
    classes = np.full((n, 2 * size + 1), blank)
    classes[:, 1::2] = np.where(np.arange(size) < lengths[:, None], labels, blank)
    logs = np.take_along_axis(x, classes[None], 2).astype(np.float64)
    skips = np.full(classes.shape, NEVER)
    skips[:, 3::2][classes[:, 3::2] != classes[:, 1:-2:2]] = 0.0
    return States(classes, logs, skips)


def _forward(states: States) -> np.ndarray:
    """The log-probability of the beginnings of alignments that are in a state at a time."""
    _, logs, skips = states
    found = np.full(logs.shape, NEVER)
    found[0, :, :2] = logs[0, :, :2]
    for t in range(1, len(logs)):
        last, now = found[t - 1], found[t]
        now[:] = last
        np.logaddexp(now[:, 1:], last[:, :-1], out=now[:, 1:])
        np.logaddexp(now[:, 2:], last[:, :-2] + skips[:, 2:], out=now[:, 2:])
        now += logs[t]
    return found


def _backward(states: States, times: Any, lengths: Any) -> np.ndarray:
    """That of the rests of alignments after a time at which they are in a state."""
    _, logs, skips = states
    found = np.full(logs.shape, NEVER)
    places = np.arange(logs.shape[2])
    ends = (places == 2 * lengths[:, None]) | (places == 2 * lengths[:, None] - 1)
    for t in reversed(range(len(logs))):
        now = found[t]
        if t + 1 < len(logs):
            following = found[t + 1] + logs[t + 1]
            now[:] = following
            np.logaddexp(now[:, :-1], following[:, 1:], out=now[:, :-1])
            np.logaddexp(now[:, :-2], following[:, 2:] + skips[:, 2:], out=now[:, :-2])
        last = times == t + 1
        now[last] = np.where(ends[last], 0.0, NEVER)
    return found


def _total(begun: np.ndarray, times: Any, lengths: Any) -> np.ndarray:
    """The log-probability of each sequence."""
    if not len(begun):
        return np.where(lengths == 0, 0.0, NEVER)
    rows = np.arange(len(times))
    ends = begun[times - 1, rows]
    last = ends[rows, 2 * lengths]
    label = np.where(lengths > 0, ends[rows, np.maximum(2 * lengths - 1, 0)], NEVER)
    nothing = np.where(lengths == 0, 0.0, NEVER)
    return np.where(times > 0, np.logaddexp(last, label), nothing)


def _ctc(x: Any, labels: Any, times: Any, lengths: Any, *, blank: int, zero_infinity: bool) -> Any:
    with np.errstate(invalid="ignore"):
        losses = -_total(_forward(_states(x, labels, lengths, blank)), times, lengths)
    if zero_infinity:
        losses[losses == np.inf] = 0.0
    return losses.astype(x.dtype)


def _ctc_slope(
    x: Any, labels: Any, times: Any, lengths: Any, *, blank: int, zero_infinity: bool
) -> Any:
    """Minus the probability, given the sequence, that an alignment is in a class at a time."""
    states = _states(x, labels, lengths, blank)
    steps, n, classes = x.shape
    with np.errstate(invalid="ignore"):
        begun = _forward(states)
        total = _total(begun, times, lengths)
        shares = np.exp(begun + _backward(states, times, lengths) - total[:, None])
    never = total == NEVER
    during = np.arange(steps)[:, None] < times
    shares[~during] = 0.0
    shares[during & never] = 0.0 if zero_infinity else np.nan
    places = np.arange(steps * n).reshape(steps, n, 1) * classes + states.classes
    found = np.bincount(places.ravel(), shares.ravel(), steps * n * classes)
    return -found.reshape(x.shape).astype(x.dtype)


# fmt: off
ctc: Op = custom(
    "ctc", _ctc, grad_name="CtcLoss", ordered=True,
    x=lambda g, x, x_spec, labels, times, lengths, blank, zero_infinity: strong(
        reshape(g, shape=(1, x_spec.shape[1], 1)),
        ctc_slope(x, labels, times, lengths, blank=blank, zero_infinity=zero_infinity)),
    labels=LENGTHS, times=LENGTHS, lengths=LENGTHS,
)
ctc_slope: Op = custom(
    "ctc_slope", _ctc_slope, grad_name="CtcLossBackward", ordered=True,
    x=NotImplementedYet("`ctc_loss` has no second derivative, as in PyTorch"),
    labels=LENGTHS, times=LENGTHS, lengths=LENGTHS,
)
# fmt: on
