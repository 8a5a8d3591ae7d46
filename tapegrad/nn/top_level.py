"""What PyTorch shows at top level with other arguments than in `nn.functional`.

A reduction is the number 0, 1 or 2 there, for "none", "mean" and "sum"; arguments that only other
devices read are taken and left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.functions.tiling import pad as padded
from tapegrad.nn import alignment_loss, linear, losses, normalization, pooling
from tapegrad.nn import dropout as dropping
from tapegrad.nn.reduction import numbered
from tapegrad.tensor import Tensor

# -- dropout ---------------------------------------------------------------------------------------


def _chance(p: float) -> float:
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"`dropout`: p is a probability from 0 to 1, got {p}")
    return p


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Each element set to zero with the probability p, the others divided by 1 - p.

    >>> import tapegrad as tg
    >>> tg.dropout(tg.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """
    return dropping.dropout(input, _chance(p), train)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`dropout` in place."""
    return dropping.dropout(input, _chance(p), train, inplace=True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`dropout` of whole channels.

    >>> import tapegrad as tg
    >>> tg.feature_dropout(tg.ones(1, 2, 3), 1.0, True).sum()
    tensor(0.)
    """
    return dropping.feature_dropout(input, _chance(p), train)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_dropout` in place."""
    return dropping.feature_dropout(input, _chance(p), train, inplace=True)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`dropout` to the lowest value of `selu`, scaled and moved so that mean and variance stay.

    >>> import tapegrad as tg
    >>> tg.alpha_dropout(tg.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """
    return dropping.alpha_dropout(input, _chance(p), train)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` in place."""
    return dropping.alpha_dropout(input, _chance(p), train, inplace=True)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` of whole channels.

    >>> import tapegrad as tg
    >>> tg.feature_alpha_dropout(tg.ones(1, 2, 2), 0.5, False).sum()
    tensor(4.)
    """
    return dropping.feature_alpha_dropout(input, _chance(p), train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_alpha_dropout` in place."""
    return dropping.feature_alpha_dropout(input, _chance(p), train, inplace=True)


# -- layers ----------------------------------------------------------------------------------------


def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int]) -> tuple[Tensor, Tensor]:
    """The largest element of each of so many windows that cover signals, and where it stands.

    >>> import tapegrad as tg
    >>> tg.adaptive_max_pool1d(tg.tensor([[1.0, 3.0, 2.0, 0.0, 5.0]]), 2)
    (tensor([[3., 5.]]), tensor([[1, 4]]))
    """
    found: Any = pooling.adaptive_max_pool1d(input, output_size, return_indices=True)
    return found  # type: ignore[no-any-return]


def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """Each channel normalized over the batch in training, else by running means and variances.

    >>> import tapegrad as tg
    >>> x = tg.tensor([[1.0], [3.0]])
    >>> tg.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    return normalization.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )


def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
    cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """Each channel of each example normalized.

    >>> import tapegrad as tg
    >>> x = tg.tensor([[[1.0, 3.0]]])
    >>> tg.instance_norm(x, None, None, None, None, True, 0.1, 0.0, False)
    tensor([[[-1.,  1.]]])
    """
    return normalization.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of a table by their numbers; the row `padding_idx`, if there is one, has no gradient.

    >>> import tapegrad as tg
    >>> tg.embedding(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([1, 0]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    row = padding_idx if 0 <= padding_idx < len(weight) else None
    return linear.embedding(indices, weight, row, None, 2.0, scale_grad_by_freq, sparse)


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """One number before and after the last dimensions, or elements less where it is negative.

    >>> import tapegrad as tg
    >>> tg.constant_pad_nd(tg.ones(2), (1, 0), 5.0)
    tensor([5., 1., 1.])
    """
    return padded(input, pad, "constant", value)


# -- losses ----------------------------------------------------------------------------------------


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:  # fmt: skip
    """`binary_cross_entropy` of what `sigmoid` makes of the input, computed directly.

    >>> import tapegrad as tg
    >>> tg.binary_cross_entropy_with_logits(tg.zeros(2), tg.tensor([0.0, 1.0]))
    tensor(0.6931)
    """
    how = numbered(reduction, "binary_cross_entropy_with_logits")
    return losses.binary_cross_entropy_with_logits(
        input, target, weight, reduction=how, pos_weight=pos_weight
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """How far the angles between vectors are from 0 or, where the target is -1, from a margin.

    >>> import tapegrad as tg
    >>> tg.cosine_embedding_loss(tg.ones(1, 2), tg.ones(1, 2), tg.tensor([-1]))
    tensor(1.0000)
    """
    how = numbered(reduction, "cosine_embedding_loss")
    return losses.cosine_embedding_loss(input1, input2, target, margin, reduction=how)


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int], blank: int = 0, reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the log-probability of sequences, over all alignments with what is longer.

    >>> import tapegrad as tg
    >>> x = tg.zeros(3, 1, 2).log_softmax(2)
    >>> tg.ctc_loss(x, tg.tensor([[1]]), (3,), (1,))
    tensor(0.2877)
    """
    how = numbered(reduction, "ctc_loss")
    return alignment_loss.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity
    )


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    """The input where the target is 1, and what it lacks of a margin where that is -1.

    >>> import tapegrad as tg
    >>> tg.hinge_embedding_loss(tg.tensor([0.5, 0.25]), tg.tensor([1.0, -1.0]), reduction=0)
    tensor([0.5000, 0.7500])
    """
    how = numbered(reduction, "hinge_embedding_loss")
    return losses.hinge_embedding_loss(input, target, margin, reduction=how)


def kl_div(
    input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False
) -> Tensor:
    """The divergence of Kullback and Leibler of target and input, which holds logarithms.

    >>> import tapegrad as tg
    >>> tg.kl_div(tg.tensor([0.0, 0.0]), tg.tensor([1.0, 1.0]), reduction=2)
    tensor(0.)
    """
    return losses.kl_div(
        input, target, reduction=numbered(reduction, "kl_div"), log_target=log_target
    )


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """What the first input lacks to be above the second, or below where the target is -1.

    >>> import tapegrad as tg
    >>> tg.margin_ranking_loss(tg.zeros(1), tg.ones(1), tg.tensor([1.0]))
    tensor(1.)
    """
    how = numbered(reduction, "margin_ranking_loss")
    return losses.margin_ranking_loss(input1, input2, target, margin, reduction=how)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """Minus the log-likelihood of counts that have Poisson's distribution.

    >>> import tapegrad as tg
    >>> tg.poisson_nll_loss(tg.zeros(1), tg.ones(1), True, False, 1e-8, 1)
    tensor(1.)
    """
    how = numbered(reduction, "poisson_nll_loss")
    return losses.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=how)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, reduction: int = 1,
) -> Tensor:  # fmt: skip
    """What the distance of an example like the anchor lacks to be smaller than another one's.

    >>> import tapegrad as tg
    >>> tg.triplet_margin_loss(tg.zeros(1, 2), tg.zeros(1, 2), tg.zeros(1, 2))
    tensor(1.)
    """
    how = numbered(reduction, "triplet_margin_loss")
    return losses.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=how
    )
