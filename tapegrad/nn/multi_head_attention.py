"""Attention in several heads: projections around `scaled_dot_product_attention`."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import where
from tapegrad.functions.axis import softmax
from tapegrad.functions.creation import zeros
from tapegrad.functions.joining import cat, chunk
from tapegrad.functions.products import matmul
from tapegrad.functions.reductions import mean
from tapegrad.functions.shapes import permute, reshape, squeeze, unsqueeze
from tapegrad.functions.tiling import pad, repeat
from tapegrad.nn.dropout import dropout
from tapegrad.nn.linear import linear, scaled_dot_product_attention
from tapegrad.tensor import Tensor

NAME = "multi_head_attention_forward"


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
    bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
    out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attention in several heads, and its weights, or None without `need_weights`.

    Queries, keys and values are (length, batch, width), or (length, width), and are projected by
    the thirds of `in_proj_weight`, or each by a weight of its own. Masks of booleans say which keys
    are *not* looked at, others are added to the products: `attn_mask` of (queries, keys), with a
    leading dimension of batch times heads if they differ, `key_padding_mask` of (batch, keys).
    `bias_k`, `bias_v` and `add_zero_attn` append a key; `static_k` and `static_v` stand in place of
    the projected ones. With `is_causal` the mask is known to be causal.

    >>> import tapegrad as tg
    >>> x, one = tg.tensor([[1.0, 0.0], [0.0, 1.0]]), tg.eye(2)
    >>> attend = tg.nn.functional.multi_head_attention_forward
    >>> weights = tg.cat((one, one, one))
    >>> attend(x, x, x, 2, 2, weights, None, None, None, False, 0.0, one, None)[1]
    tensor([[0.6155, 0.3845],
            [0.3845, 0.6155]])
    """
    q, k, v = (as_input(x, NAME) for x in (query, key, value))
    batched, padding = q._a.ndim == 3, key_padding_mask
    _check_operands(q, k, v, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if not batched:
        q, k, v = (unsqueeze(x, 1) for x in (q, k, v))
        padding = None if padding is None else unsqueeze(padding, 0)
    length, batch, width = q._a.shape
    if is_causal and attn_mask is None:
        raise RuntimeError(f"`{NAME}`: `is_causal` says what `attn_mask` is, which is needed, too")
    causal = is_causal and padding is None and not need_weights
    sizes = batch, num_heads, length, k._a.shape[0]
    mask = None if attn_mask is None or causal else _by_heads(_added(attn_mask, q), sizes)
    weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    if not use_separate_proj_weight:
        weights = _thirds(in_proj_weight)
    _check(all(w is not None for w in weights), "a projection has no weight")
    biases = _thirds(in_proj_bias)
    q, k, v = (linear(x, w, b) for x, w, b in zip((q, k, v), weights, biases, strict=True))
    _check((bias_k is None) == (bias_v is None), "`bias_k` goes with `bias_v`")
    if bias_k is not None and bias_v is not None:
        _check(static_k is None and static_v is None, "a static key takes no bias")
        k, v = (cat((x, repeat(b, 1, batch, 1))) for x, b in ((k, bias_k), (v, bias_v)))
    q, k, v = (
        _split(x, batch, num_heads, width, static)
        for x, static in ((q, None), (k, static_k), (v, static_v))
    )
    if add_zero_attn:
        none = zeros(batch, num_heads, 1, width // num_heads, dtype=k.dtype)
        k, v = cat((k, none), 2), cat((v, none), 2)
    appended = (0, (bias_k is not None) + bool(add_zero_attn))
    mask = None if mask is None else pad(mask, appended)
    if padding is not None:
        hidden = _hidden(pad(_added(padding, q), appended), batch, k._a.shape[2])
        mask = hidden if mask is None else mask + hidden
    dropped = dropout_p if training else 0.0
    if need_weights:
        seen = _weights(q / math.sqrt(width // num_heads or 1), k, mask, dropped)
        found = matmul(seen, v)
        seen = mean(seen, 1) if average_attn_weights else seen
    else:
        seen, found = None, scaled_dot_product_attention(q, k, v, mask, dropped, causal)
    joined = reshape(permute(found, (2, 0, 1, 3)), (length, batch, width))
    out = linear(joined, out_proj_weight, out_proj_bias)
    if batched:
        return out, seen
    return squeeze(out, 1), None if seen is None else squeeze(seen, 0)


def _thirds(joined: Tensor | None) -> tuple[Any, ...]:
    """What belongs to queries, keys and values."""
    return (None,) * 3 if joined is None else chunk(as_input(joined, NAME), 3)


def _hidden(mask: Tensor, batch: int, keys: int) -> Tensor:
    """A mask of (batch, keys) as one of four dimensions."""
    _check(mask._a.shape == (batch, keys), "`key_padding_mask` is (batch, keys)")
    return reshape(mask, (batch, 1, 1, keys))


def _weights(q: Tensor, k: Tensor, mask: Tensor | None, dropped: float) -> Tensor:
    scores = matmul(q, k.mT)
    seen = softmax(scores if mask is None else scores + mask, -1)
    return dropout(seen, dropped) if dropped else seen


def _check(holds: bool, text: str) -> None:
    """Refuse operands that do not go together."""
    if not holds:
        raise AssertionError(f"`{NAME}`: {text}")


def _check_operands(
    q: Tensor, k: Tensor, v: Tensor, width: int, heads: int, separate: bool
) -> None:
    shapes = q._a.shape, k._a.shape, v._a.shape
    given = f"got the shapes {shapes[0]}, {shapes[1]} and {shapes[2]}"
    ranks = {len(shape) for shape in shapes}
    _check(ranks in ({2}, {3}), f"operands have three dimensions, or all of them two, {given}")
    _check(shapes[0][-1] == width, f"the width is {width}, {given}")
    _check(width % heads == 0, f"{heads} heads do not divide a width of {width}")
    if separate:
        _check(shapes[1][:-1] == shapes[2][:-1], f"there is a value for each key, {given}")
    else:
        _check(shapes[1] == shapes[2], f"keys and values have one shape, {given}")


def _added(mask: Any, q: Tensor) -> Tensor:
    """A mask as what is added to the products."""
    m = as_input(mask, NAME)
    _check(m._a.dtype.kind in "bf", f"a mask is of booleans or floats, got {m.dtype}")
    return where(m, -math.inf, 0.0).to(q.dtype) if m._a.dtype.kind == "b" else m.to(q.dtype)


def _by_heads(mask: Tensor, sizes: tuple[int, int, int, int]) -> Tensor:
    """A mask of (queries, keys), or of all batches and heads, as one of four dimensions."""
    batch, heads, *each = sizes
    if mask._a.shape == (*each,):
        return reshape(mask, (1, 1, *each))
    if mask._a.shape != (batch * heads, *each):
        raise RuntimeError(
            f"`{NAME}`: `attn_mask` has the shape {(*each,)} or {(batch * heads, *each)}, got "
            f"{mask._a.shape}"
        )
    return reshape(mask, sizes)


def _split(x: Tensor, batch: int, heads: int, width: int, static: Tensor | None) -> Tensor:
    """What was projected, as (batch, heads, length, width of a head); or what stands for it."""
    each = width // heads
    if static is None:
        return permute(reshape(x, (x._a.shape[0], batch, heads, each)), (1, 2, 0, 3))
    y = as_input(static, NAME)
    want = (batch * heads, *y._a.shape[1:2], each)
    _check(y._a.shape == want, f"a static key has the shape {want}, got {y._a.shape}")
    return reshape(y, (batch, heads, -1, each))
