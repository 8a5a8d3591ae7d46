"""Convolution along some dimensions, with the arguments of `autograd.scipy.signal.convolve`.

>>> import numpy as np
>>> from tapegrad import grad
>>> from tapegrad.scipy.convolution import convolve
>>> grad(lambda a: np.sum(convolve(a, np.array([1.0, 2.0]))))(np.ones(3))
array([3., 3., 3.])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.functions.contractions import tensordot
from tapegrad.functions.shapes import flip, permute
from tapegrad.functions.sliding_products import slid, slides
from tapegrad.nn.functional import pad
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import value_back
from tapegrad.transforms.primitives import float_tensor

MODES = ("full", "same", "valid")


def convolve(A: Any, B: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full") -> Any:
    """The convolution of two arrays along the dimensions `axes` (those of `A`, those of `B`).

    Along `dot_axes` products are added up, and along the others all are formed: the result has the
    other dimensions of `A`, those of `B`, and the convolved ones.

    >>> import numpy as np
    >>> from tapegrad.scipy.convolution import convolve
    >>> convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]), mode="valid")
    array([3., 5.])
    """
    if mode not in MODES:
        raise ValueError(f"`convolve`: the mode is one of {', '.join(MODES)}, got {mode!r}")
    tensors = isinstance(A, Tensor) or isinstance(B, Tensor)
    a, b = float_tensor(A), float_tensor(B)
    if axes is None:
        axes = (range(a.ndim), range(a.ndim))
    pairs = list(zip(*axes, strict=True))
    smaller = [a._a.shape[i] < b._a.shape[j] for i, j in pairs]
    if mode == "valid" and any(smaller):
        if any(a._a.shape[i] > b._a.shape[j] for i, j in pairs):
            raise ValueError(
                "`convolve` with mode 'valid': one array must be at least as long as the other "
                f"along all convolved dimensions, got the shapes {a._a.shape} and {b._a.shape}"
            )
        found = _convolved(b, a, axes[::-1], dot_axes[::-1], mode)
        counts = [
            x._a.ndim - len(c) - len(d) for x, c, d in zip((b, a), axes[::-1], dot_axes[::-1])
        ]
        first, both = counts[0], sum(counts)
        found = permute(found, (*range(first, both), *range(first), *range(both, found.ndim)))
    else:
        found = _convolved(a, b, axes, dot_axes, mode)
    return found if tensors else value_back(found, tensors=False)


def _convolved(
    a: Tensor, b: Tensor, axes: Sequence[Any], dot_axes: Sequence[Any], mode: str
) -> Tensor:
    """Products of the windows of one array with another one, which is flipped."""
    ndim = a.ndim
    ours, theirs = [[k % x.ndim for k in ks] for x, ks in zip((a, b), axes, strict=True)]
    for i, j in zip(ours, theirs):
        size = b._a.shape[j]
        low = {"full": size - 1, "same": size // 2, "valid": 0}[mode]
        high = {"full": size - 1, "same": (size - 1) // 2, "valid": 0}[mode]
        a = pad(a, [0, 0] * (ndim - 1 - i) + [low, high])
    if ours == theirs == [*range(ndim)] and slides(a, b):
        return slid(a, flip(b, theirs))
    for i, j in zip(ours, theirs):
        a = a.unfold(i, b._a.shape[j], 1)
    windows = [*range(ndim, a.ndim), *[k % ndim for k in dot_axes[0]]]
    found = tensordot(a, flip(b, theirs), (windows, [*theirs, *[k % b.ndim for k in dot_axes[1]]]))
    left = [k for k in range(ndim) if k not in windows]
    kept = [left.index(k) for k in left if k not in ours]
    rest = range(len(left), found.ndim)
    return permute(found, (*kept, *rest, *[left.index(k) for k in ours]))


__all__ = ["convolve"]
