"""Losses, distances, linear maps and normalization of `nn.functional`: see `nn_cases`."""

# ruff: noqa: E501
# fmt: off
from __future__ import annotations

from typing import Any

from tests.peers.torch_cases import case, mask, positive

# -- losses ----------------------------------------------------------------------------------------

B = (3, 5)
for reduction in ("mean", "sum", "none"):
    for name in "mse_loss l1_loss smooth_l1_loss huber_loss hinge_embedding_loss poisson_nll_loss kl_div".split():
        exec(f"case(lambda t, a, b, r=reduction: t.nn.functional.{name}(a, b, reduction=r), B, B, integers=False, smooth={name == 'mse_loss'})")
    case(lambda t, a, b, r=reduction: t.nn.functional.binary_cross_entropy(t.sigmoid(a), t.sigmoid(b), reduction=r), B, B, integers=False)
    case(lambda t, a, b, r=reduction: t.nn.functional.binary_cross_entropy_with_logits(a, t.sigmoid(b), reduction=r), B, B, integers=False)
    case(lambda t, a, b, c, r=reduction: t.nn.functional.margin_ranking_loss(a, b, t.sign(c.detach()), 0.3, reduction=r), B, B, B, integers=False)
    case(lambda t, a, b, c, r=reduction: t.nn.functional.triplet_margin_loss(a, b, c, reduction=r), B, B, B, integers=False)
    case(lambda t, a, b, c, r=reduction: t.nn.functional.triplet_margin_with_distance_loss(a, b, c, swap=True, reduction=r), B, B, B, integers=False)
    case(lambda t, a, b, c, r=reduction: t.nn.functional.gaussian_nll_loss(a, b, c, full=True, reduction=r), B, B, positive(*B), integers=False)
    case(lambda t, a, b, r=reduction: t.nn.functional.cosine_embedding_loss(a, b, t.tensor([1.0, -1.0, 1.0]), 0.1, reduction=r), B, B, integers=False)
    case(lambda t, a, w, r=reduction: t.nn.functional.nll_loss(a, t.tensor([4, 0, 2]), w.detach(), reduction=r), B, positive(5), integers=False)
    case(lambda t, a, r=reduction: t.nn.functional.nll_loss(a, t.tensor([4, -100, 2]), reduction=r), B, integers=False)
    case(lambda t, a, r=reduction: t.nn.functional.nll_loss(a, t.tensor([[1, 0, 1, 2], [0, 2, 2, 1]]), ignore_index=1, reduction=r), (2, 3, 4), integers=False)
    case(lambda t, a, w, r=reduction: t.nn.functional.cross_entropy(a, t.tensor([4, -100, 2]), w.detach(), reduction=r, label_smoothing=0.3), B, positive(5), integers=False)
    case(lambda t, a, b, r=reduction: t.nn.functional.cross_entropy(a, t.softmax(b, 1), reduction=r), B, B, integers=False)
    case(lambda t, a, b, w, r=reduction: t.nn.functional.cross_entropy(a, t.softmax(b, 1), w.detach(), reduction=r, label_smoothing=0.2), (2, 3, 4), (2, 3, 4), positive(3), integers=False)
    case(lambda t, a, r=reduction: t.nn.functional.multi_margin_loss(a, t.tensor([4, 0, 2]), reduction=r), B, integers=False, smooth=False)
    case(lambda t, a, w, r=reduction: t.nn.functional.multi_margin_loss(a, t.tensor([4, 0, 2]), 2, 0.5, w.detach(), reduction=r), B, positive(5), integers=False, smooth=False)
    case(lambda t, a, r=reduction: t.nn.functional.multilabel_margin_loss(a, t.tensor([[3, 0, -1, 1, 2], [1, -1, 0, 0, 0], [-1, 0, 0, 0, 0]]), reduction=r), B, integers=False, smooth=False)
    case(lambda t, a, b, w, r=reduction: t.nn.functional.multilabel_soft_margin_loss(a, t.sigmoid(b), w, reduction=r), B, B, positive(5), integers=False)
case(lambda t, a, b: t.nn.functional.mse_loss(a, b[:1], weight=t.ones(3, 5)), B, B, integers=False)
for reduction in ("mean", "sum", "none"):
    case(lambda t, a, b, w, r=reduction: (t.nn.functional.mse_loss(a, b, weight=w, reduction=r), t.nn.functional.l1_loss(a, b, weight=w, reduction=r), t.nn.functional.huber_loss(a, b, r, 0.5, w)), B, B, positive(*B), integers=False)
case(lambda t, a, b: (t.nn.functional.mse_loss(a, b, False), t.nn.functional.l1_loss(a, b, None, False), t.nn.functional.mse_loss(a, b, True, True)), B, B, integers=False)
case(lambda t, a, b: (t.nn.functional.smooth_l1_loss(a, b, beta=0.25), t.nn.functional.smooth_l1_loss(a, b, beta=0.0), t.nn.functional.huber_loss(a, b, delta=0.25)), B, B, integers=False, smooth=False)
case(lambda t, a, b, w: t.nn.functional.binary_cross_entropy(t.sigmoid(a), t.sigmoid(b).detach(), w.detach()), B, B, positive(5), integers=False)
case(lambda t, a: t.nn.functional.binary_cross_entropy(a.clamp(0, 1), (a > 0).to(a.dtype), reduction="none"), B, integers=False, smooth=False)
case(lambda t, a, b, w: t.nn.functional.binary_cross_entropy_with_logits(a, t.sigmoid(b), w.detach(), pos_weight=w.detach()), B, B, positive(5), integers=False)
case(lambda t, a, b: (t.nn.functional.kl_div(a, t.softmax(b, 1), reduction="batchmean"), t.nn.functional.kl_div(a, b, reduction="sum", log_target=True)), B, B, integers=False, smooth=False)
case(lambda t, a, b: t.nn.functional.kl_div(a, t.clamp(b, min=0).detach(), reduction="none"), B, B, integers=False, smooth=False)
case(lambda t, a, b: t.nn.functional.poisson_nll_loss(a, 2 * b, log_input=False, full=True), positive(*B), positive(*B), integers=False, smooth=False)
case(lambda t, a, b: t.nn.functional.gaussian_nll_loss(a, b, 0.5), B, B, integers=False)
case(lambda t, a, b, v: (t.nn.functional.gaussian_nll_loss(a, b, v), t.nn.functional.gaussian_nll_loss(a, b, v[:, None], eps=1.0)), B, B, positive(3), integers=False)
case(lambda t, a, b: t.nn.functional.cosine_embedding_loss(a, b, t.tensor(-1.0)), (5,), (5,), integers=False)
case(lambda t, a: (t.nn.functional.nll_loss(a, t.tensor(2)), t.nn.functional.cross_entropy(a, t.tensor(1)), t.nn.functional.cross_entropy(a.detach(), t.tensor([1])), t.nn.functional.multi_margin_loss(a, t.tensor(1), reduction="none")), (5,), integers=False, smooth=False)
case(lambda t, a: t.nn.functional.cross_entropy(a, t.softmax(a.detach(), 0)), (5,), integers=False)
case(lambda t, a: (t.nn.functional.nll_loss(a[:0], t.zeros(0, dtype=t.int64)), t.nn.functional.nll_loss(a, t.tensor([-100] * 3))), B, integers=False)
case(lambda t, a: t.nn.functional.nll_loss(a, t.tensor([4, 0, 2], dtype=t.uint8)), B, integers=False)
case(lambda t, a: t.nn.functional.multilabel_margin_loss(a, t.tensor([3, 0, -1, 1, 2]), reduction="none"), (5,), integers=False, smooth=False)
case(lambda t, a, b: t.nn.functional.soft_margin_loss(a, t.sign(b[:1]).detach()), B, B, integers=False)
case(lambda t, a, b, c: t.nn.functional.triplet_margin_loss(a, b, c, 0.5, 1, swap=True), (5,), (5,), (5,), integers=False)
case(lambda t, a, b: t.nn.functional.mse_loss(a, b.float()), B, B, integers=False, smooth=False)

# -- distances, linear maps, normalization ---------------------------------------------------------

case(lambda t, a, b: (t.nn.functional.cosine_similarity(a, b), t.nn.functional.cosine_similarity(a, b[0], dim=-1), t.nn.functional.cosine_similarity(a, b, 0, 0.5)), B, B, integers=False)
case(lambda t, a: t.nn.functional.cosine_similarity(a * 0, a), B, integers=False, smooth=False)
case(lambda t, a, b: (t.nn.functional.pairwise_distance(a, b), t.nn.functional.pairwise_distance(a, b[0], 1.0, keepdim=True), t.nn.functional.pairwise_distance(a, b, 3.0, 0.1)), B, B, integers=False)
case(lambda t, a: (t.nn.functional.pdist(a), t.nn.functional.pdist(a, 1.0)), B, integers=False, smooth=False)
case(lambda t, a: (t.nn.functional.normalize(a), t.nn.functional.normalize(a, 1.0, 0), t.nn.functional.normalize(a, dim=-1, eps=100.0)), B, integers=False)
case(lambda t, a, w, b: (t.nn.functional.linear(a, w, b), t.nn.functional.linear(a, w[0]), t.nn.functional.linear(a, w, b[:1])), (2, 3, 5), (4, 5), (4,), integers=False)
case(lambda t, a, b, w, c: (t.nn.functional.bilinear(a, b, w, c), t.nn.functional.bilinear(a[0], b[0], w)), (2, 5), (2, 4), (3, 5, 4), (3,), integers=False)
case(lambda t, w: (t.nn.functional.embedding(t.tensor([[1, 1], [0, 2]]), w), t.nn.functional.embedding(t.tensor([2, 1, 2]), w, 2), t.nn.functional.embedding(t.tensor([2, 0], dtype=t.int32), w, -1)), (3, 4), integers=False)
case(lambda t, w: t.nn.functional.embedding(t.tensor([2, 1, 2]), w, scale_grad_by_freq=True), (3, 4), integers=False, smooth=False)
case(lambda t, w: t.nn.functional.embedding(t.tensor([2, 1, 2]), w * 1.0, max_norm=0.7), (3, 4), integers=False, smooth=False)
BAG = lambda t, w, *places, **options: t.nn.functional.embedding_bag(t.tensor([0, 2, 2, 1, 0]), w, t.tensor([*places]), **options)
for mode in ("sum", "mean", "max"):
    case(lambda t, w, m=mode: (BAG(t, w, 0, 2, 2, mode=m), BAG(t, w, 0, 3, 5, mode=m, include_last_offset=True)), (3, 4), integers=False, smooth=mode != "max")
    case(lambda t, w, m=mode: (BAG(t, w, 0, 1, 3, mode=m, padding_idx=2), t.nn.functional.embedding_bag(t.tensor([[1, 2], [0, 0]]), w, mode=m)), (3, 4), integers=False, smooth=mode != "max")
case(lambda t, w, s: BAG(t, w, 0, 2, mode="sum", per_sample_weights=s), (3, 4), (5,), integers=False, smooth=False)
# PyTorch divides by the count of another row unless all rows occur equally often.
case(lambda t, w: t.nn.functional.embedding_bag(t.tensor([0, 2, 2, 0]), w, t.tensor([0, 3]), mode="sum", scale_grad_by_freq=True), (3, 4), integers=False, smooth=False)
H = (2, 3, 4, 5)
case(lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v), H, H, (2, 3, 4, 2), integers=False)
case(lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3), (4, 5), (3, 5), (3, 2), integers=False)
case(lambda t, q, k, v, m: t.nn.functional.scaled_dot_product_attention(q, k, v, m), (4, 5), (3, 5), (3, 2), mask(4, 3), integers=False)
case(lambda t, q, k, m: t.nn.functional.scaled_dot_product_attention(q, k, k, m), (4, 5), (3, 5), (4, 3), integers=False)
case(lambda t, q, k: t.nn.functional.scaled_dot_product_attention(q, k, k, t.tensor([[False] * 3] * 4)), (4, 5), (3, 5), integers=False)
case(lambda t, q, k: t.nn.functional.scaled_dot_product_attention(q, k, k, enable_gqa=True), (1, 6, 2, 4), (1, 2, 3, 4), integers=False, smooth=False)  # PyTorch has no second derivative



def attended(attend, q, k, v, w, o, bias=None, bias_k=None, bias_v=None, zero=False, c=None, **options):
    """Attention in three heads."""
    return attend(q, k, v, 6, 3, w, bias, bias_k, bias_v, zero, 0.0, o, c, **options)


def hidden(t, *rows):
    """A mask of which keys are not looked at."""
    return t.tensor([[bool(int(one)) for one in row] for row in rows])


Q, K, W, O = (3, 2, 6), (4, 2, 6), (18, 6), (6, 6)
case(lambda t, q, k, v, w, b, o, c: attended(t.nn.functional.multi_head_attention_forward, q, k, v, w, o, b, c=c), Q, K, K, W, (18,), O, (6,), integers=False)
case(lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q, q, q, w, o, average_attn_weights=False), Q, W, O, integers=False)
case(lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q[:, 0], q[:, 1], q[:, 1], w, o, average_attn_weights=False, key_padding_mask=hidden(t, "001")[0]), Q, W, O, integers=False)
case(lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q, q, q, w, o, need_weights=False, attn_mask=hidden(t, "011", "001", "000"), is_causal=True)[0], Q, W, O, integers=False, smooth=False)  # PyTorch has no second derivative
case(lambda t, q, k, w, o, m: attended(t.nn.functional.multi_head_attention_forward, q, k, k, w, o, attn_mask=m, key_padding_mask=hidden(t, "0100", "0010")), Q, K, W, O, (3, 4), integers=False)
case(lambda t, q, k, w, o, m: attended(t.nn.functional.multi_head_attention_forward, q, k, k, w, o, need_weights=False, attn_mask=m, key_padding_mask=hidden(t, "0100", "0010"))[0], Q, K, W, O, (6, 3, 4), integers=False)
case(lambda t, q, k, w, o, b, d: attended(t.nn.functional.multi_head_attention_forward, q, k, k, w, o, None, b, d, True, attn_mask=hidden(t, "0100", "0010", "1111")), Q, K, W, O, (1, 1, 6), (1, 1, 6), integers=False)
case(lambda t, q, k, w, o, s, r: attended(t.nn.functional.multi_head_attention_forward, q, k, k, w, o, zero=True, static_k=s, static_v=r), Q, K, W, O, (6, 5, 2), (6, 5, 2), integers=False)
case(lambda t, q, k, v, a, b, c, o, d: attended(t.nn.functional.multi_head_attention_forward, q, k, v, None, o, d, use_separate_proj_weight=True, q_proj_weight=a, k_proj_weight=b, v_proj_weight=c), Q, (4, 2, 5), (4, 2, 3), (6, 6), (6, 5), (6, 3), O, (18,), integers=False)
C = (3, 4, 5)
case(lambda t, a, w, b: t.nn.functional.layer_norm(a, (5,), w, b, 0.001), C, (5,), (5,), integers=False)
case(lambda t, a: (t.nn.functional.layer_norm(a, (4, 5)), t.nn.functional.layer_norm(a[:0], [5])), C, integers=False)
case(lambda t, a, w: (t.nn.functional.rms_norm(a, (5,), w), t.nn.functional.rms_norm(a, (4, 5), eps=0.1)), C, (5,), integers=False)
case(lambda t, a, w, b: (t.nn.functional.group_norm(a, 2, w, b), t.nn.functional.group_norm(a[:, :, 0], 1)), C, (4,), (4,), integers=False)
case(lambda t, a, w, b: (t.nn.functional.batch_norm(a, None, None, w, b, True), t.nn.functional.batch_norm(a[0], None, None, training=True, eps=0.1)), C, (4,), (4,), integers=False)
case(lambda t, a, m, v, w, b: (t.nn.functional.batch_norm(a, m.detach(), v.detach(), w, b), t.nn.functional.batch_norm(a, m.detach(), v.detach())), C, (4,), positive(4), (4,), (4,), integers=False)


def _with_running(t, a, m, v, norm):
    m, v = m.detach() * 1, v.detach() * 1
    return norm(a, m, v), m, v


case(lambda t, a, m, v: _with_running(t, a, m, v, lambda *x: t.nn.functional.batch_norm(*x, training=True, momentum=0.3)), C, (4,), positive(4), integers=False)
case(lambda t, a, m, v: _with_running(t, a, m, v, lambda *x: t.nn.functional.instance_norm(*x)), C, (4,), positive(4), integers=False)
case(lambda t, a, m, v: _with_running(t, a, m, v, lambda *x: t.nn.functional.instance_norm(*x, use_input_stats=False)), C, (4,), positive(4), integers=False)
case(lambda t, a, w, b: t.nn.functional.instance_norm(a, weight=w, bias=b), C, (4,), (4,), integers=False)
case(lambda t, a: (t.nn.functional.local_response_norm(a, 3, 0.5), t.nn.functional.local_response_norm(a[:, :, :, None], 2, 0.5, 0.5, 2.0)), C, integers=False)

# -- sequences -------------------------------------------------------------------------------------
# PyTorch's derivative is that by the logits of which `log_softmax` makes the log-probabilities.


def _ctc(t, a, *given, **options):
    return t.nn.functional.ctc_loss(t.log_softmax(a, -1), *given, **options)


T, TARGETS = (6, 3, 4), ([1, 2, 1], [3, 3, 9], [2, 1, 3])
for _how in ("none", "mean", "sum"):
    case(lambda t, a, h=_how: _ctc(t, a, t.tensor(TARGETS), (6, 5, 4), (3, 2, 0), reduction=h), T, integers=False, smooth=False)
    case(lambda t, a, h=_how: _ctc(t, a, t.tensor(TARGETS), (6, 2, 0), (3, 2, 3), reduction=h, zero_infinity=True), T, integers=False, smooth=False)
    case(lambda t, a, h=_how: _ctc(t, a[:, 0], t.tensor([1, 2]), t.tensor([5]), t.tensor([2]), reduction=h), T, integers=False, smooth=False)
case(lambda t, a: _ctc(t, a, t.tensor([1, 2, 1, 3, 0]), t.tensor([6, 5, 6]), t.tensor([3, 2, 0]), 2), T, integers=False, smooth=False)
case(lambda t, a: _ctc(t, a, t.tensor([[1, 2, 1], [2, 2, 9], [2, 1, 0]], dtype=t.int32), t.tensor([6, 2, 6], dtype=t.int32), t.tensor([1, 2, 3], dtype=t.int32), 3, "none"), T, integers=False, smooth=False)
case(lambda t, a: _ctc(t, a, t.tensor(TARGETS), (0, 1, 0), (0, 0, 1), 0, "none"), T, integers=False, smooth=False)
case(lambda t, a: t.ctc_loss(t.log_softmax(a, 2), t.tensor(TARGETS), (6, 5, 4), (3, 2, 0), 0, 2), T, integers=False, smooth=False)
case(lambda t, a: _ctc(t, a, t.zeros(0, dtype=t.int64), (6, 5, 4), (0, 0, 0)), T, integers=False, smooth=False)

CTC = lambda t, a, *given, **options: _ctc(t, a.expand(6, 3, 4), *given, **options)
REFUSED: dict[str, Any] = {
    "ctc_loss of longer inputs": (lambda t, a: CTC(t, a, t.tensor(TARGETS), (7, 5, 4), (3, 2, 0)), (T,)),
    "ctc_loss of negative lengths": (lambda t, a: CTC(t, a, t.tensor(TARGETS), (6, -1, 4), (3, 2, 0)), (T,)),
    "ctc_loss of longer targets": (lambda t, a: CTC(t, a, t.tensor(TARGETS), (6, 5, 4), (3, 4, 0)), (T,)),
    "ctc_loss of targets of negative length": (lambda t, a: CTC(t, a, t.tensor(TARGETS), (6, 5, 4), (3, -2, 0)), (T,)),
    "ctc_loss of few lengths": (lambda t, a: CTC(t, a, t.tensor(TARGETS), (6, 5), (3, 2, 0)), (T,)),
    "ctc_loss of few lengths of targets": (lambda t, a: CTC(t, a, t.tensor(TARGETS), (6, 5, 4), (3, 2)), (T,)),
    "ctc_loss of lengths that are fractions": (lambda t, a: CTC(t, a, t.tensor(TARGETS), t.ones(3), t.ones(3)), (T,)),
    "ctc_loss of few targets": (lambda t, a: CTC(t, a, t.tensor(TARGETS[:2]), (6, 5, 4), (3, 2, 0)), (T,)),
    "ctc_loss of too many targets in a vector": (lambda t, a: CTC(t, a, t.tensor([1, 2, 3, 1]), (6, 5, 4), (1, 2, 0)), (T,)),
    "ctc_loss of targets of three dimensions": (lambda t, a: CTC(t, a, t.tensor([TARGETS]), (6, 5, 4), (3, 2, 0)), (T,)),
    "ctc_loss with a blank that is no class": (lambda t, a: CTC(t, a, t.tensor(TARGETS), (6, 5, 4), (3, 2, 0), 4), (T,)),
    "ctc_loss with a negative blank": (lambda t, a: CTC(t, a, t.tensor(TARGETS), (6, 5, 4), (3, 2, 0), -1), (T,)),
    "ctc_loss with an unknown reduction": (lambda t, a: CTC(t, a, t.tensor(TARGETS), (6, 5, 4), (3, 2, 0), reduction="x"), (T,)),
    "ctc_loss of a vector": (lambda t, a: t.nn.functional.ctc_loss(a[0, 0], t.tensor([1]), (1,), (1,)), (T,)),
    "ctc_loss of integers": (lambda t, a: t.nn.functional.ctc_loss(a.long(), t.tensor(TARGETS), (6, 5, 4), (3, 2, 0)), (T,)),
    "ctc_loss of nothing": (lambda t, a: t.nn.functional.ctc_loss(a[:0], t.tensor(TARGETS), (0, 0, 0), (3, 2, 0)), (T,)),
    "the second derivative of ctc_loss": (lambda t, a: t.autograd.grad(t.autograd.grad(CTC(t, a, t.tensor(TARGETS), (6, 5, 4), (3, 2, 0)), a, create_graph=True)[0].square().sum(), a), (T,)),
    "nll_loss of a class too high": (lambda t, a: t.nn.functional.nll_loss(a, t.tensor([0, 5, 2])), (B,)),
    "nll_loss of floats": (lambda t, a: t.nn.functional.nll_loss(a, t.ones(3)), (B,)),
    "nll_loss of int32": (lambda t, a: t.nn.functional.nll_loss(a, t.ones(3, dtype=t.int32)), (B,)),
    "nll_loss of fewer classes": (lambda t, a: t.nn.functional.nll_loss(a, t.tensor([0, 1])), (B,)),
    "nll_loss of other places": (lambda t, a: t.nn.functional.nll_loss(a[None], t.zeros(1, 4, dtype=t.int64)), (B,)),
    "nll_loss of a number": (lambda t, a: t.nn.functional.nll_loss(a[0, 0], t.tensor(0)), (B,)),
    "nll_loss with few weights": (lambda t, a: t.nn.functional.nll_loss(a, t.tensor([0, 1, 2]), t.ones(3)), (B,)),
    "nll_loss with an unknown reduction": (lambda t, a: t.nn.functional.nll_loss(a, t.tensor([0, 1, 2]), reduction="x"), (B,)),
    "cross_entropy smoothed too much": (lambda t, a: t.nn.functional.cross_entropy(a, t.tensor([0, 1, 2]), label_smoothing=1.5), (B,)),
    "cross_entropy of integers as probabilities": (lambda t, a: t.nn.functional.cross_entropy(a, t.ones(3, 5, dtype=t.int64)), (B,)),
    "cross_entropy of probabilities without one": (lambda t, a: t.nn.functional.cross_entropy(a, a, ignore_index=2), (B,)),
    "cross_entropy of fewer probabilities": (lambda t, a: t.nn.functional.cross_entropy(a, a[:2]), (B,)),
    "binary_cross_entropy above 1": (lambda t, a: t.nn.functional.binary_cross_entropy(a * 2, a), (B,)),
    "binary_cross_entropy with targets above 1": (lambda t, a: t.nn.functional.binary_cross_entropy(a, a * 2), (B,)),
    "binary_cross_entropy of another shape": (lambda t, a: t.nn.functional.binary_cross_entropy(a, a[:2]), (B,)),
    "binary_cross_entropy of two types": (lambda t, a: t.nn.functional.binary_cross_entropy(a, a.float()), (B,)),
    "kl_div with an unknown reduction": (lambda t, a: t.nn.functional.kl_div(a, a, reduction="x"), (B,)),
    "gaussian_nll_loss of negative variances": (lambda t, a: t.nn.functional.gaussian_nll_loss(a, a, -a), (B,)),
    "gaussian_nll_loss of other variances": (lambda t, a: t.nn.functional.gaussian_nll_loss(a, a, a[:2, 0]), (B,)),
    "margin_ranking_loss of different ranks": (lambda t, a: t.nn.functional.margin_ranking_loss(a, a[0], a), (B,)),
    "multi_margin_loss to the power 3": (lambda t, a: t.nn.functional.multi_margin_loss(a, t.tensor([0, 1, 2]), 3), (B,)),
    "multi_margin_loss of a class too high": (lambda t, a: t.nn.functional.multi_margin_loss(a, t.tensor([0, 1, 5])), (B,)),
    "multi_margin_loss with few weights": (lambda t, a: t.nn.functional.multi_margin_loss(a, t.tensor([0, 1, 2]), weight=a[0, :2]), (B,)),
    "multi_margin_loss of fewer classes": (lambda t, a: t.nn.functional.multi_margin_loss(a, t.tensor([0, 1])), (B,)),
    "multilabel_margin_loss of another shape": (lambda t, a: t.nn.functional.multilabel_margin_loss(a[0], t.tensor([0, 1])), (B,)),
    "multilabel_margin_loss of a class too high": (lambda t, a: t.nn.functional.multilabel_margin_loss(a[0], t.tensor([0, 7, 0, 0, 0])), (B,)),
    "triplet_margin_loss without margin": (lambda t, a: t.nn.functional.triplet_margin_loss(a, a, a, 0.0), (B,)),
    "triplet_margin_loss of different ranks": (lambda t, a: t.nn.functional.triplet_margin_loss(a, a[0], a), (B,)),
    "cosine_embedding_loss of three matrices": (lambda t, a: t.nn.functional.cosine_embedding_loss(a, a, a), (B,)),
    "cosine_embedding_loss of matrices and a number": (lambda t, a: t.nn.functional.cosine_embedding_loss(a, a, a[0, 0]), (B,)),
    "smooth_l1_loss with a negative beta": (lambda t, a: t.nn.functional.smooth_l1_loss(a, a, beta=-1.0), (B,)),
    "huber_loss without delta": (lambda t, a: t.nn.functional.huber_loss(a, a, delta=0.0), (B,)),
    "mse_loss with other weights": (lambda t, a: t.nn.functional.mse_loss(a, a, weight=a[0]), (B,)),
    "mse_loss of other shapes": (lambda t, a: t.nn.functional.mse_loss(a, a[:2]), (B,)),
    "cosine_similarity of integers": (lambda t, a: t.nn.functional.cosine_similarity(a.long(), a.long()), (B,)),
    "cosine_similarity of other shapes": (lambda t, a: t.nn.functional.cosine_similarity(a, a[:, :2]), (B,)),
    "layer_norm over an int": (lambda t, a: t.nn.functional.layer_norm(a, 5), (B,)),
    "layer_norm over another shape": (lambda t, a: t.nn.functional.layer_norm(a, (4,)), (B,)),
    "layer_norm over nothing": (lambda t, a: t.nn.functional.layer_norm(a, ()), (B,)),
    "layer_norm with another weight": (lambda t, a: t.nn.functional.layer_norm(a, (5,), a[0, :4]), (B,)),
    "layer_norm of two types": (lambda t, a: t.nn.functional.layer_norm(a, (5,), a[0].float()), (B,)),
    "batch_norm of one number per channel": (lambda t, a: t.nn.functional.batch_norm(a[:1], None, None, training=True), (B,)),
    "batch_norm without running numbers": (lambda t, a: t.nn.functional.batch_norm(a, None, None), (B,)),
    "batch_norm with few running numbers": (lambda t, a: t.nn.functional.batch_norm(a, a[0, :4], a[0, :4]), (B,)),
    "batch_norm with a running mean alone": (lambda t, a: t.nn.functional.batch_norm(a, a[0].detach(), None, training=True), (B,)),
    "batch_norm of a vector": (lambda t, a: t.nn.functional.batch_norm(a[0], None, None, training=True), (B,)),
    "batch_norm without eps": (lambda t, a: t.nn.functional.batch_norm(a, None, None, training=True, eps=0.0), (B,)),
    "batch_norm with few weights": (lambda t, a: t.nn.functional.batch_norm(a, None, None, a[0, :2], training=True), (B,)),
    "group_norm in groups that do not fit": (lambda t, a: t.nn.functional.group_norm(a, 3), (B,)),
    "group_norm of a vector": (lambda t, a: t.nn.functional.group_norm(a[0], 1), (B,)),
    "group_norm of one number in each group": (lambda t, a: t.nn.functional.group_norm(a[:1], 5), (B,)),
    "group_norm with few weights": (lambda t, a: t.nn.functional.group_norm(a, 1, a[0, :2]), (B,)),
    "instance_norm of one number": (lambda t, a: t.nn.functional.instance_norm(a), (B,)),
    "instance_norm without numbers": (lambda t, a: t.nn.functional.instance_norm(a[None], use_input_stats=False), (B,)),
    "rms_norm over another shape": (lambda t, a: t.nn.functional.rms_norm(a, (4,)), (B,)),
    "local_response_norm of a matrix": (lambda t, a: t.nn.functional.local_response_norm(a, 2), (B,)),
    "embedding of a number too high": (lambda t, a: t.nn.functional.embedding(t.tensor([3]), a), (B,)),
    "embedding of a negative number": (lambda t, a: t.nn.functional.embedding(t.tensor([-1]), a), (B,)),
    "embedding of floats": (lambda t, a: t.nn.functional.embedding(a, a), (B,)),
    "embedding in a vector": (lambda t, a: t.nn.functional.embedding(t.tensor([1]), a[0]), (B,)),
    "embedding padded beyond the table": (lambda t, a: t.nn.functional.embedding(t.tensor([1]), a, 3), (B,)),
    "embedding_bag that begins late": (lambda t, a: BAG(t, a, 1, 2), (B,)),
    "embedding_bag that begins beyond the end": (lambda t, a: BAG(t, a, 0, 6), (B,)),
    "embedding_bag without offsets": (lambda t, a: t.nn.functional.embedding_bag(t.tensor([1]), a), (B,)),
    "embedding_bag of rows with offsets": (lambda t, a: t.nn.functional.embedding_bag(t.tensor([[1]]), a, t.tensor([0])), (B,)),
    "embedding_bag of a number": (lambda t, a: t.nn.functional.embedding_bag(t.tensor(1), a), (B,)),
    "embedding_bag in another mode": (lambda t, a: BAG(t, a, 0, mode="median"), (B,)),
    "embedding_bag of weighted means": (lambda t, a: BAG(t, a, 0, per_sample_weights=a[0]), (B,)),
    "embedding_bag with few weights": (lambda t, a: BAG(t, a, 0, mode="sum", per_sample_weights=a[0, :2]), (B,)),
    "embedding_bag padded beyond the table": (lambda t, a: BAG(t, a, 0, padding_idx=3), (B,)),
    "embedding_bag of floats": (lambda t, a: t.nn.functional.embedding_bag(a[0], a, t.tensor([0])), (B,)),
    "embedding_bag of scaled maxima": (lambda t, a: BAG(t, a, 0, mode="max", scale_grad_by_freq=True), (B,)),
    "linear that does not fit": (lambda t, a: t.nn.functional.linear(a, a[:, :4]), (B,)),
    "linear with a large bias": (lambda t, a: t.nn.functional.linear(a, a, a[0]), (B,)),
    "linear of two types": (lambda t, a: t.nn.functional.linear(a, a.float()), (B,)),
    "linear by three dimensions": (lambda t, a: t.nn.functional.linear(a, a[None]), (B,)),
    "bilinear that does not fit": (lambda t, a: t.nn.functional.bilinear(a, a, a[None]), (B,)),
    "bilinear of other batches": (lambda t, a: t.nn.functional.bilinear(a, a[:2], a[:, None, :] * a[0, :, None]), (B,)),
    "attention of vectors": (lambda t, a: t.nn.functional.scaled_dot_product_attention(a[0], a[0], a[0]), (B,)),
    "attention of two types": (lambda t, a: t.nn.functional.scaled_dot_product_attention(a, a, a.float()), (B,)),
    "heads that do not divide the width": (lambda t, q, w, o: t.nn.functional.multi_head_attention_forward(q, q, q, 6, 4, w, None, None, None, False, 0.0, o, None), (Q, W, O)),
    "heads of another width": (lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q[..., :3], q, q, w, o), (Q, W, O)),
    "heads in four dimensions": (lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q[None], q[None], q[None], w, o), (Q, W, O)),
    "heads with fewer values than keys": (lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q, q, q[:2], w, o), (Q, W, O)),
    "heads without a projection": (lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q, q, q, None, o), (Q, W, O)),
    "heads with a bias of keys alone": (lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q, q, q, w, o, None, q[:1, :1]), (Q, W, O)),
    "heads with a small mask": (lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q, q, q, w, o, attn_mask=hidden(t, "01", "00")), (Q, W, O)),
    "heads with a mask of whole numbers": (lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q, q, q, w, o, attn_mask=t.tensor([[1] * 3] * 3)), (Q, W, O)),
    "heads that pad too little": (lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q, q, q, w, o, key_padding_mask=hidden(t, "01", "00")), (Q, W, O)),
    "heads said to be causal": (lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q, q, q, w, o, is_causal=True), (Q, W, O)),
    "heads of a static key of another width": (lambda t, q, w, o: attended(t.nn.functional.multi_head_attention_forward, q, q, q, w, o, static_k=q), (Q, W, O)),
    "attention with a mask of integers": (lambda t, a: t.nn.functional.scaled_dot_product_attention(a, a, a, a[:, :3].long()), (B,)),
}
