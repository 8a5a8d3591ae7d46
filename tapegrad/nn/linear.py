"""Linear and bilinear maps, attention, and rows of a table by their numbers."""

from __future__ import annotations

import math

import numpy as np

from tapegrad.autograd.grad_mode import no_grad
from tapegrad.base.abstract_array import everything
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import where
from tapegrad.functions.axis import softmax
from tapegrad.functions.contractions import einsum
from tapegrad.functions.creation import arange
from tapegrad.functions.elementwise import eq
from tapegrad.functions.indexing import index_select
from tapegrad.functions.norms import vector_norm
from tapegrad.functions.products import matmul
from tapegrad.functions.reductions import all as every
from tapegrad.functions.shapes import reshape, unsqueeze
from tapegrad.functions.tiling import repeat_interleave
from tapegrad.nn.dropout import dropout
from tapegrad.tensor import Tensor, wrap


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``.

    >>> import tapegrad as tg
    >>> tg.nn.functional.linear(tg.ones(2), tg.ones(3, 2))
    tensor([2., 2., 2.])
    """
    w = as_input(weight, "linear")
    if w._a.ndim > 2:
        raise RuntimeError(f"`linear`: the weight is a matrix, got the shape {w._a.shape}")
    out: Tensor = matmul(input, w.mT if w._a.ndim == 2 else w)
    if bias is None:
        return out
    total = out + bias
    if total._a.shape != out._a.shape:
        raise RuntimeError(
            f"`linear`: a bias of the shape {as_input(bias, 'linear')._a.shape} does not fit the "
            f"result {out._a.shape}"
        )
    return total


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """For each matrix A of `weight`, ``input1 @ A @ input2``, and a bias.

    >>> import tapegrad as tg
    >>> tg.nn.functional.bilinear(tg.ones(2), tg.ones(3), tg.ones(1, 2, 3))
    tensor([6.])
    """
    a, b, w = (as_input(x, "bilinear") for x in (input1, input2, weight))
    if w._a.ndim != 3 or a._a.shape[:-1] != b._a.shape[:-1] or (
        (a._a.shape[-1:], b._a.shape[-1:]) != (w._a.shape[1:2], w._a.shape[2:])
    ):  # fmt: skip
        raise RuntimeError(
            "`bilinear` takes (*, m), (*, n) and a weight (k, m, n), got the shapes "
            f"{a._a.shape}, {b._a.shape} and {w._a.shape}"
        )
    out = einsum("...i,oij,...j->...o", a, w, b)
    return out if bias is None else out + bias


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """The mean of values, weighted by the softmax of the products of queries and keys.

    A mask says what each query looks at, or is added to the products; `is_causal` lets each look
    at those keys that are no later than it. What looks at nothing gets zeros. With `enable_gqa`
    several heads of queries share one of keys and values.

    >>> import tapegrad as tg
    >>> x = tg.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> tg.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)[0]
    tensor([1., 0.])
    """
    name = "scaled_dot_product_attention"
    q, k, v = (as_input(x, name) for x in (query, key, value))
    if min(q._a.ndim, k._a.ndim, v._a.ndim) < 2:
        raise RuntimeError(
            f"`{name}` takes two dimensions at least, got the shapes {q._a.shape}, {k._a.shape} "
            f"and {v._a.shape}"
        )
    if not q._a.dtype == k._a.dtype == v._a.dtype:
        raise RuntimeError(
            f"`{name}` takes operands of one type, got {q.dtype}, {k.dtype} and {v.dtype}"
        )
    if enable_gqa:
        k, v = _shared(name, q, k), _shared(name, q, v)
    factor = 1.0 / math.sqrt(q._a.shape[-1] or 1) if scale is None else scale
    scores = matmul(q * factor, k.mT)
    mask = attn_mask
    if is_causal:
        causal = wrap(np.tril(np.ones(scores._a.shape[-2:], bool)))
        mask = causal if mask is None else _both(as_input(mask, name), causal, q)
    if mask is not None:
        m = as_input(mask, name)
        if m._a.dtype.kind == "b":
            scores = where(m, scores, -math.inf)
        elif m._a.dtype.kind == "f":
            scores = scores + m.to(q.dtype)
        else:
            raise RuntimeError(f"`{name}`: a mask is of booleans or floats, got {m.dtype}")
        nothing = every(eq(scores, -math.inf), -1, True)
        weights = softmax(where(nothing, 0.0, scores), -1)
        weights = where(nothing, 0.0, weights)
    else:
        weights = softmax(scores, -1)
    return matmul(dropout(weights, dropout_p) if dropout_p else weights, v)


def _shared(name: str, q: Tensor, x: Tensor) -> Tensor:
    """Keys or values, repeated for as many heads as there are of queries."""
    if min(q._a.ndim, x._a.ndim) < 3:
        raise RuntimeError(
            f"`{name}`: with `enable_gqa` heads are the dimension -3, got the shapes "
            f"{q._a.shape} and {x._a.shape}"
        )
    heads, shared = q._a.shape[-3], x._a.shape[-3]
    if not shared or heads % shared:
        raise RuntimeError(f"`{name}`: {heads} heads of queries cannot share {shared} of keys")
    return repeat_interleave(x, heads // shared, -3)


def _both(mask: Tensor, causal: Tensor, q: Tensor) -> Tensor:
    """A mask for what a mask and causality let through."""
    if mask._a.dtype.kind == "b":
        return mask & causal
    return where(causal, mask.to(q.dtype), -math.inf)


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of a table by their numbers; the row `padding_idx` gets no gradient.

    With `max_norm` rows that are longer are shortened in the table itself. Gradients are never
    `sparse` here.

    >>> import tapegrad as tg
    >>> tg.nn.functional.embedding(tg.tensor([1, 1]), tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [3., 4.]])
    """
    index, table = as_input(input, "embedding"), as_input(weight, "embedding")
    if table._a.ndim != 2:
        raise RuntimeError(f"`embedding`: the table is a matrix, got the shape {table._a.shape}")
    if index._a.dtype.type not in (np.int64, np.int32):
        raise RuntimeError(f"`embedding` takes numbers of type int64 or int32, got {index.dtype}")
    count = table._a.shape[0]
    if padding_idx is not None and not -count <= padding_idx < count:
        raise AssertionError(
            f"`embedding`: padding_idx is the number of one of {count} rows, got {padding_idx}"
        )
    flat = reshape(index, (-1,))
    if max_norm is not None:
        _shorten(table, flat, max_norm, norm_type)
    rows = index_select(table, 0, flat)
    if scale_grad_by_freq:
        numbers = everything(flat._a)
        share = 1.0 / np.bincount(numbers, minlength=count)[numbers].astype(table._a.dtype)
        rows = _gradient_scaled(rows, wrap(share[:, None]))
    if padding_idx is not None:
        rows = where(unsqueeze(eq(flat, padding_idx % count), 1), rows.detach(), rows)
    return reshape(rows, (*index._a.shape, table._a.shape[1]))


def _gradient_scaled(x: Tensor, factor: Tensor) -> Tensor:
    """The same values with gradients times a factor."""
    part = x * factor
    return part + (x - part).detach()


def _shorten(table: Tensor, flat: Tensor, most: float, p: float) -> None:
    with no_grad():
        numbers = wrap(np.unique(everything(flat._a)))
        rows = index_select(table, 0, numbers)
        lengths = vector_norm(rows, p, 1, True)
        table[numbers] = where(lengths > most, rows * (most / (lengths + 1e-7)), rows)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each class, a vector that is one there and zero elsewhere, along a new last dimension.

    Without `num_classes` there are as many as the greatest class says.

    >>> import tapegrad as tg
    >>> tg.nn.functional.one_hot(tg.tensor([2, 0]), 3)
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if tensor._a.dtype.type is not np.int64:
        raise RuntimeError(f"`one_hot` takes classes of type int64, got {tensor.dtype}")
    classes = everything(tensor._a)
    if num_classes < 0 and classes.size:
        num_classes = int(classes.max()) + 1
    if num_classes < 1 or (classes.size and not 0 <= classes.min() <= classes.max() < num_classes):
        raise RuntimeError(
            f"`one_hot`: the classes must be numbers from 0 to {max(num_classes, 1) - 1}, as "
            f"num_classes={num_classes} says"
        )
    return (tensor.unsqueeze(-1) == arange(num_classes)).long()
