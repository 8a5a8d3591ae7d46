"""Random numbers of distributions whose parameters are Tensors, in which they are differentiable.

They are quantiles of uniform numbers, so that the derivative is that of the quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.base.dtypes import get_default_dtype
from tapegrad.functions.random import drawn, uniform
from tapegrad.tensor import Tensor


def probabilities(parameters: Sequence[Any], size: Any, random_state: Any, name: str) -> Any:
    """Uniform numbers inside (0, 1), one for each sample; under a map, for each example's."""
    tensors = [p for p in parameters if isinstance(p, Tensor)]
    shape = np.broadcast_shapes(*[tuple(np.shape(p)) for p in parameters])
    if size is not None:
        wanted = tuple(size) if np.iterable(size) else (int(size),)
        pairs = zip(reversed(shape), reversed(wanted), strict=False)
        if len(shape) > len(wanted) or not all(n in (1, m) for n, m in pairs):
            raise ValueError(
                f"`scipy.stats.{name}.rvs`: the size {wanted} does not hold samples of parameters "
                f"of the shape {shape}"
            )
        shape = wanted
    real = [t.dtype.numpy for t in tensors if t.dtype.is_floating_point]
    kind = np.result_type(*real) if real else get_default_dtype().numpy
    draw = uniform(kind)
    if random_state is not None:
        of = (
            random_state if hasattr(random_state, "random") else np.random.RandomState(random_state)
        )
        draw = lambda _, shape: of.random(shape)
    numbers = drawn(draw, shape, kind)
    return np.clip(numbers, np.finfo(kind).eps / 4, 1 - np.finfo(kind).epsneg)
