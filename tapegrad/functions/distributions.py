"""Random numbers of distributions whose parameters are Tensors.

What is drawn has no history: no derivative goes back to the parameters.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tapegrad.base.dtypes import get_default_dtype
from tapegrad.functions.arguments import as_input
from tapegrad.functions.compositions import broadcast_tensors
from tapegrad.functions.creation import shape_of
from tapegrad.functions.method_decorators import method
from tapegrad.functions.random import (
    Generator,
    check_continuous,
    drawn,
    drawn_for,
    standard_normal,
    uniform,
)
from tapegrad.tensor import Tensor

LARGEST_RATE = 9.2e18  # of which the numbers fit into 64 bits


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers with given means and standard deviations, one for each pair of these.

    >>> import tapegrad as tg
    >>> tg.normal(tg.zeros(3), 0.1).shape, tg.normal(0.0, 1.0, (2, 2)).shape
    (tapegrad.Size([3]), tapegrad.Size([2, 2]))
    """
    mean, std = (t.detach() if isinstance(t, Tensor) else t for t in (mean, std))
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if not tensors and size is None:
        raise TypeError("`normal` of two numbers needs the argument `size`")
    known = type(std) is Tensor  # under a transform nobody can look
    if bool((std._a < 0).any()) if known else not isinstance(std, Tensor) and std < 0:
        raise RuntimeError("`normal`: the standard deviation must not be negative")
    if not tensors:
        shape = shape_of((), size)
    elif size is not None:
        raise TypeError("`normal` takes `size` with numbers only: Tensors have shapes of their own")
    else:
        shape = broadcast_tensors(*tensors)[0]._a.shape
        dtype = tensors[0].dtype if dtype is None else dtype
    kind = (get_default_dtype() if dtype is None else dtype).numpy
    check_continuous(kind, "normal")
    standard = drawn(standard_normal(kind), shape, kind, device, generator, operands=tensors)
    shifted: Tensor = (standard * std + mean).to(standard.dtype)
    return shifted.requires_grad_() if requires_grad else shifted


@method
def bernoulli(
    input: Tensor, p: Tensor | float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """0 or 1, with the probabilities of the input, or `p`.

    >>> import tapegrad as tg
    >>> tg.bernoulli(tg.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    x = as_input(input, "bernoulli")
    return chances(x, x if p is None else p, generator, "bernoulli")


def chances(like: Tensor, p: Any, generator: Any, name: str) -> Tensor:
    """0 or 1 for each element of a Tensor, with one probability or a Tensor of them."""
    p = p.detach() if isinstance(p, Tensor) else p
    if isinstance(p, Tensor) and p._a.dtype.kind != "f":
        raise NotImplementedError(
            f"`{name}`: probabilities are floating-point numbers, got {p.dtype}: convert them with "
            "`.to(tapegrad.float64)`"
        )
    if type(p) is Tensor or not isinstance(p, Tensor):  # under a transform nobody can look
        values = np.asarray(p._a if isinstance(p, Tensor) else p)
        if not bool(((values >= 0) & (values <= 1)).all()):
            raise RuntimeError(f"`{name}`: probabilities must lie between 0 and 1")
    shape = like._a.shape
    given = p._a.shape if isinstance(p, Tensor) else ()
    if np.broadcast_shapes(given, shape) != shape:
        raise RuntimeError(f"`{name}`: probabilities of shape {given} do not fit the shape {shape}")
    numbers = drawn(uniform(np.dtype(float)), shape, float, None, generator, operands=(p,))
    found: Tensor = (numbers < p).to(like.dtype)
    return found


@method
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Places that are drawn with the weights of the input, which is a vector, or one for each row.

    The weights need not add up to 1. Without `replacement` no place is drawn twice.

    >>> import tapegrad as tg
    >>> tg.multinomial(tg.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    x = as_input(input, "multinomial")
    count, places = operator.index(num_samples), x._a.shape[-1] if x._a.ndim else 0
    if x._a.dtype.kind != "f":
        raise RuntimeError(
            f"`multinomial`: weights are floating-point numbers, got {x.dtype}: convert them with "
            "`.to(tapegrad.float64)`"
        )
    if x._a.ndim not in (1, 2):
        raise RuntimeError(f"`multinomial` takes a vector or a matrix, got the shape {x._a.shape}")
    if count <= 0:
        raise RuntimeError(f"`multinomial` draws at least one place, got num_samples={count}")
    if not places or (count > places and not replacement):
        raise RuntimeError(
            f"`multinomial`: {count} places of {places} cannot be drawn without replacement"
        )
    draw = _with_replacement if replacement and count > 1 else _one_after_the_other
    return drawn_for(
        lambda source, weights: draw(source, _checked(weights), count),
        (x,), (*x._a.shape[:-1], count), np.int64, generator,
    )  # fmt: skip


def _checked(weights: np.ndarray) -> np.ndarray:
    checked = weights.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore"):
        if not bool(((checked >= 0) & (checked < np.inf)).all()):
            raise RuntimeError("`multinomial`: weights must be finite and not negative")
    if not bool(checked.any(axis=-1).all()):
        raise RuntimeError("`multinomial`: some weight must be greater than 0")
    return checked


def _one_after_the_other(
    source: np.random.Generator, weights: np.ndarray, count: int
) -> np.ndarray:
    """The places whose clocks, of exponential time over the weight, ring first, in that order."""
    with np.errstate(divide="ignore"):
        times = source.standard_exponential(weights.shape) / weights
    if count == 1:
        return np.asarray(times.argmin(axis=-1, keepdims=True))
    first = np.argpartition(times, count - 1, axis=-1)[..., :count]
    order = np.argsort(np.take_along_axis(times, first, -1), axis=-1)
    return np.take_along_axis(first, order, -1)


def _with_replacement(source: np.random.Generator, weights: np.ndarray, count: int) -> np.ndarray:
    """Where uniform numbers fall among the sums of the weights."""
    sums = np.cumsum(weights / weights.max(axis=-1, keepdims=True), axis=-1)
    rows = sums.reshape(-1, sums.shape[-1])
    found = np.empty((len(rows), count), np.int64)
    for row, to, at in zip(rows, found, source.random(found.shape), strict=True):
        last = np.searchsorted(row, row[-1])  # behind it all weights are 0
        np.minimum(np.searchsorted(row, at * row[-1], "right"), last, out=to)
    return found.reshape(*sums.shape[:-1], count)


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of Poisson's distribution, with the rates of the input.

    >>> import tapegrad as tg
    >>> tg.poisson(tg.tensor([0.0, 4.0])).shape
    tapegrad.Size([2])
    """
    x = as_input(input, "poisson")
    if x._a.dtype.kind != "f":
        raise NotImplementedError(f"`poisson`: rates are floating-point numbers, got {x.dtype}")

    def draw(source: np.random.Generator, rates: np.ndarray) -> Any:
        if not bool(((rates >= 0) & (rates <= LARGEST_RATE)).all()):
            raise RuntimeError("`poisson`: rates must be finite and not negative")
        return source.poisson(rates)

    return drawn_for(draw, (x,), x._a.shape, x.dtype, generator)


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each with the probability `prob`.

    >>> import tapegrad as tg
    >>> tg.binomial(tg.tensor([10.0, 10.0]), tg.tensor([0.0, 1.0]))
    tensor([ 0., 10.])
    """
    trials, p = as_input(count, "binomial"), as_input(prob, "binomial")
    for name, t in (("count", trials), ("prob", p)):
        if t._a.dtype.kind != "f":
            raise ValueError(f"`binomial`: `{name}` is of floating-point numbers, got {t.dtype}")
    if trials.dtype != p.dtype:
        raise RuntimeError(
            f"`binomial` takes two Tensors of one dtype, got {trials.dtype}, {p.dtype}"
        )
    trials, p = broadcast_tensors(trials, p)

    def draw(source: np.random.Generator, trials: np.ndarray, p: np.ndarray) -> Any:
        # As PyTorch has it: less than no trials are none, a probability beyond 1 is 1, and a part
        # of a trial counts among those that succeed where these are more than half.
        bad = np.isnan(p) | ~(trials < LARGEST_RATE)
        n = np.where(bad, 0, np.maximum(trials, 0)).astype(np.float64)
        found = source.binomial(n.astype(np.int64), np.where(bad, 0, np.clip(p, 0, 1)))
        return np.where(bad, np.nan, found + np.where(p > 0.5, n - np.floor(n), 0))

    return drawn_for(draw, (trials, p), trials._a.shape, trials.dtype, generator)
