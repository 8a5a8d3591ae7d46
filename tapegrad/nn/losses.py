"""Losses: how far numbers are from those that were wanted.

Those of classes are in `classification`; distances between vectors in `distances`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tapegrad.base.abstract_array import everything
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.op_functions import binary
from tapegrad.functions.arguments import as_input, ordered, same_and_large
from tapegrad.functions.arithmetic import clamp, where
from tapegrad.functions.arithmetic import sub as minus
from tapegrad.functions.elementwise import abs as magnitude
from tapegrad.functions.elementwise import eq, exp, le, log, minimum, ne, square, xlogy
from tapegrad.functions.reductions import sum
from tapegrad.functions.shapes import unsqueeze
from tapegrad.nn.distances import pairwise_distance
from tapegrad.nn.reduction import chosen, reduced, warn_of_sizes
from tapegrad.ops import elementwise as e
from tapegrad.ops import losses as rows
from tapegrad.ops import reduce as r
from tapegrad.tensor import Tensor

_squared_difference = binary(e.squared_difference)
_smooth_l1, _bce, _bce_logits = binary(rows.smooth_l1), binary(rows.bce), binary(rows.bce_logits)


def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The mean of the squared differences; `reduction` may be "sum" or "none" too.

    With a `weight` for each the mean is divided by the sum of these.

    >>> import tapegrad as tg
    >>> tg.nn.functional.mse_loss(tg.tensor([1.0, 3.0]), tg.tensor([1.0, 1.0]))
    tensor(2.)
    """
    how = chosen(reduction, "mse_loss", size_average, reduce)
    warn_of_sizes("mse_loss", input, target)
    if type(input) is not Tensor or type(target) is not Tensor or input._a.dtype.kind != "f":
        squares = square(ordered(minus(input, target), "mse_loss"))
    elif how != "none" and weight is None and same_and_large(input, target):
        return run(r.mse_loss, (input, target), {"mean": how == "mean"})
    else:
        squares = _squared_difference(input, target)
    return reduced(squares, how) if weight is None else _weighted("mse_loss", squares, weight, how)


def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The mean of the absolute differences; `reduction` may be "sum" or "none" too.

    >>> import tapegrad as tg
    >>> tg.nn.functional.l1_loss(tg.tensor([1.0, 3.0]), tg.tensor([1.0, 1.0]))
    tensor(1.)
    """
    how = chosen(reduction, "l1_loss", size_average, reduce)
    warn_of_sizes("l1_loss", input, target)
    sizes = magnitude(minus(input, target))
    return reduced(sizes, how) if weight is None else _weighted("l1_loss", sizes, weight, how)


def _weighted(name: str, losses: Tensor, weight: Tensor, how: str) -> Tensor:
    """Losses times weights; their mean is divided by the sum of the weights."""
    if weight.shape != losses.shape:
        raise ValueError(
            f"`{name}`: the weight has the shape {weight._a.shape}, the input {losses._a.shape}: "
            "they must agree"
        )
    weighted = losses * weight
    return sum(weighted) / sum(weight) if how == "mean" else reduced(weighted, how)


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """`l1_loss`, in which differences below `beta` are squared, and divided by ``2 * beta``.

    >>> import tapegrad as tg
    >>> tg.nn.functional.smooth_l1_loss(tg.tensor([0.5, 3.0]), tg.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    how = chosen(reduction, "smooth_l1_loss", size_average, reduce)
    if beta < 0:
        raise RuntimeError(f"`smooth_l1_loss`: beta must not be negative, got {beta}")
    warn_of_sizes("smooth_l1_loss", input, target)
    difference = minus(input, target)
    return reduced(_smooth_l1(difference, beta) if beta else magnitude(difference), how)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Half the square of differences up to `delta`, and the tangent to that beyond.

    >>> import tapegrad as tg
    >>> tg.nn.functional.huber_loss(tg.tensor([0.5, 3.0]), tg.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    chosen(reduction, "huber_loss", None, None)
    if delta <= 0:
        raise RuntimeError(f"`huber_loss`: delta must be positive, got {delta}")
    warn_of_sizes("huber_loss", input, target)
    losses = _smooth_l1(minus(input, target), delta)
    losses = losses if delta == 1 else losses * delta
    if weight is None:
        return reduced(losses, reduction)
    if weight.shape != input.shape:
        raise ValueError(
            f"`huber_loss`: the weight has the shape {weight._a.shape}, the input "
            f"{input._a.shape}: they must agree"
        )
    return reduced(losses * weight, reduction)


# -- probabilities ---------------------------------------------------------------------------------


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The cross entropy of probabilities in `target` and in the input.

    Logarithms are at least -100, so that no loss is infinite.

    >>> import tapegrad as tg
    >>> tg.nn.functional.binary_cross_entropy(tg.tensor([0.5, 1.0]), tg.tensor([1.0, 1.0]))
    tensor(0.3466)
    """
    name = "binary_cross_entropy"
    how = chosen(reduction, name, size_average, reduce)
    x, t = as_input(input, name), as_input(target, name)
    _check_sizes(name, x, t)
    if t._a.dtype != x._a.dtype:
        raise RuntimeError(f"`{name}`: the target is of {t.dtype}, the input of {x.dtype}")
    for part in (x, t):
        if type(part) is Tensor and part._a.size and not (
            part._a.min() >= 0 and part._a.max() <= 1
        ):  # fmt: skip
            raise RuntimeError(f"`{name}` takes probabilities from 0 to 1")
    losses = _bce(x, t)
    return reduced(losses if weight is None else losses * weight, how)


def _check_sizes(name: str, input: Tensor, target: Tensor) -> None:
    if input._a.shape != target._a.shape:
        raise ValueError(
            f"`{name}`: the target has the shape {target._a.shape}, the input "
            f"{input._a.shape}: they must agree"
        )


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The cross entropy of targets from 0 to 1 and the sigmoid of the input, computed without it.

    >>> import tapegrad as tg
    >>> F = tg.nn.functional
    >>> F.binary_cross_entropy_with_logits(tg.tensor([0.0, 1000.0]), tg.tensor([1.0, 1.0]))
    tensor(0.3466)
    """
    name = "binary_cross_entropy_with_logits"
    how = chosen(reduction, name, size_average, reduce)
    _check_sizes(name, input, target)
    if pos_weight is None:
        losses = _bce_logits(input, target)
    else:
        # -t log s(x) - (1 - t) log s(-x), where -log s(x) = log(1 + exp(-x))
        below = e.softplus.entry_point(-input)
        losses = (1 - target) * input + below * (1 + (pos_weight - 1) * target)
    return reduced(losses if weight is None else losses * weight, how)


def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    """The divergence of probabilities in `target` from those whose logarithms the input has.

    The reduction "batchmean" divides the sum by the length of the first dimension, as the
    definition has it. With `log_target` the target has logarithms, too.

    >>> import tapegrad as tg
    >>> tg.nn.functional.kl_div(tg.tensor([-1.0]), tg.tensor([1.0]), reduction="batchmean")
    tensor(1.)
    """
    whole = reduction == "batchmean" and size_average is None and reduce is None
    how = chosen("sum" if whole else reduction, "kl_div", size_average, reduce)
    x, t = as_input(input, "kl_div"), as_input(target, "kl_div")
    losses = exp(t) * (t - x) if log_target else xlogy(t, t) - t * x
    found = reduced(losses, how)
    return found / x._a.shape[0] if whole and x._a.ndim else found


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
    size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-likelihood of counts, of whose rates the input has the logarithms.

    What does not depend on the input is left out, unless `full` asks for it, by Stirling's formula.

    >>> import tapegrad as tg
    >>> tg.nn.functional.poisson_nll_loss(tg.tensor([0.0]), tg.tensor([2.0]))
    tensor(1.)
    """
    how = chosen(reduction, "poisson_nll_loss", size_average, reduce)
    losses = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        many = where(le(target, 1), 2.0, target)  # so that no logarithm is of zero
        rest = many * log(many) - many + 0.5 * log(2 * math.pi * many)
        losses = losses + where(le(target, 1), 0.0, rest)
    return reduced(losses, how)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-likelihood of normal numbers with the mean `input` and the variance `var`.

    The variance is one number, one for each element, or one for each row; at least `eps`.

    >>> import tapegrad as tg
    >>> tg.nn.functional.gaussian_nll_loss(tg.tensor([0.0]), tg.tensor([2.0]), tg.ones(1))
    tensor(2.)
    """
    x = as_input(input, "gaussian_nll_loss")
    v = x.detach() * 0 + var if isinstance(var, float) else as_input(var, "gaussian_nll_loss")
    negative = var < 0 if isinstance(var, float) else everything(v._a).min(initial=0) < 0
    if negative:
        raise ValueError("`gaussian_nll_loss`: a variance is not negative")
    have, want = v._a.shape, x._a.shape
    if have != want:
        if have == want[:-1]:
            v = unsqueeze(v, -1)
        elif len(have) != len(want) or _differing(have, want) != 1:
            raise ValueError(
                f"`gaussian_nll_loss`: the variances have the shape {have}, the input {want}: "
                "there must be one for each element or for each row"
            )
    chosen(reduction, "gaussian_nll_loss", None, None)
    v = v + clamp(eps - v, min=0.0).detach()
    losses = 0.5 * (log(v) + square(x - target) / v)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def _differing(have: tuple[int, ...], want: tuple[int, ...]) -> float:
    """The sum of the lengths that are not those of another shape."""
    return math.fsum(m for m, n in zip(have, want, strict=True) if m != n)


# -- margins ---------------------------------------------------------------------------------------


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Distances of pairs that belong together (1), what others (-1) lack of a margin.

    >>> import tapegrad as tg
    >>> tg.nn.functional.hinge_embedding_loss(tg.tensor([0.5, 0.75]), tg.tensor([1.0, -1.0]))
    tensor(0.3750)
    """
    how = chosen(reduction, "hinge_embedding_loss", size_average, reduce)
    lacking = clamp(margin - input, min=0.0)
    losses = where(ne(target, 1), lacking, 0.0) + where(ne(target, -1), input, 0.0)
    return reduced(losses, how)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """What `input1` lacks to be above `input2` (target 1), or below (-1), by a margin.

    >>> import tapegrad as tg
    >>> F = tg.nn.functional
    >>> F.margin_ranking_loss(tg.tensor([1.0]), tg.tensor([3.0]), tg.tensor([1.0]))
    tensor(2.)
    """
    how = chosen(reduction, "margin_ranking_loss", size_average, reduce)
    _check_ranks("margin_ranking_loss", input1, input2, target)
    return reduced(clamp(margin - target * (input1 - input2), min=0.0), how)


def _check_ranks(name: str, *operands: Tensor) -> None:
    if len({x._a.ndim for x in operands}) > 1:
        raise RuntimeError(
            f"`{name}` takes Tensors of as many dimensions, got the shapes "
            + ", ".join(str(x._a.shape) for x in operands)
        )


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``log(1 + exp(-target * input))``, for targets that are 1 or -1.

    >>> import tapegrad as tg
    >>> tg.nn.functional.soft_margin_loss(tg.tensor([0.0]), tg.tensor([1.0]))
    tensor(0.6931)
    """
    how = chosen(reduction, "soft_margin_loss", size_average, reduce)
    return reduced(e.softplus.entry_point(-target * input), how)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """What a negative example lacks to be further from the anchor than a positive one, by a margin.

    With `swap` the negative's distance from the positive counts where it is the smaller one.

    >>> import tapegrad as tg
    >>> a = tg.zeros(1, 2)
    >>> tg.nn.functional.triplet_margin_loss(a, a, a + 0.5)
    tensor(0.2929)
    """
    how = chosen(reduction, "triplet_margin_loss", size_average, reduce)

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return _triplet("triplet_margin_loss", anchor, positive, negative, distance, margin, swap, how)


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """`triplet_margin_loss` with a distance of one's own.

    >>> import tapegrad as tg
    >>> a, F = tg.zeros(1, 2), tg.nn.functional
    >>> F.triplet_margin_with_distance_loss(
    ...     a, a, a + 0.25, distance_function=lambda x, y: (x - y).abs().sum(-1)
    ... )
    tensor(0.5000)
    """
    name = "triplet_margin_with_distance_loss"
    chosen(reduction, name, None, None)
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet(name, anchor, positive, negative, distance, margin, swap, reduction)


def _triplet(
    name: str, anchor: Tensor, positive: Tensor, negative: Tensor,
    distance: Callable[..., Tensor], margin: float, swap: bool, how: str,
) -> Tensor:  # fmt: skip
    if margin <= 0:
        raise ValueError(f"`{name}`: the margin must be positive, got {margin}")
    _check_ranks(name, anchor, positive, negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(clamp(margin + near - far, min=0.0), how)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """What vectors that belong together (1) lack of the cosine 1, others (-1) have above a margin.

    >>> import tapegrad as tg
    >>> F = tg.nn.functional
    >>> F.cosine_embedding_loss(tg.ones(2), tg.tensor([1.0, 0.0]), tg.tensor(1.0))
    tensor(0.2929)
    """
    name = "cosine_embedding_loss"
    how = chosen(reduction, name, size_average, reduce)
    a, b, t = (as_input(x, name) for x in (input1, input2, target))
    if t._a.ndim > 1 or (a._a.ndim, b._a.ndim) != (t._a.ndim + 1,) * 2:
        raise RuntimeError(
            f"`{name}` takes two vectors and a number, or two matrices and a vector, got the "
            f"shapes {a._a.shape}, {b._a.shape} and {t._a.shape}"
        )
    lengths = (sum(square(a), -1) + 1e-12) * (sum(square(b), -1) + 1e-12)
    cosine = sum(a * b, -1) / e.sqrt.entry_point(lengths)
    losses = where(eq(t, 1), 1 - cosine, 0.0)
    return reduced(losses + where(eq(t, -1), clamp(cosine - margin, min=0.0), 0.0), how)
