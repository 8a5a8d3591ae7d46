"""The names of `autograd.test_util`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.transforms import checking


def check_grads(
    f: Callable[..., Any], modes: Sequence[str] = ("fwd", "rev"), order: int = 2
) -> Callable[..., None]:
    """Compare the derivatives of `f` with differences: ``check_grads(f)(*args)``.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.test_util import check_grads
    >>> check_grads(np.sin)(0.5)
    """
    return lambda *args: checking.check_grads(f, args, order, modes)


__all__ = ["check_grads"]
