"""Functions with derivatives of the user's own, and `stop_gradient`, `checkpoint`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.function import Function
from tapegrad.autograd.grad_mode import no_grad
from tapegrad.lift.core import Lifted, highest, level, on_tape, pull
from tapegrad.lift.dual import Dual, dual, split
from tapegrad.tape import current
from tapegrad.tensor import Tensor, wrap
from tapegrad.transforms.arguments import name_of
from tapegrad.transforms.pytree import flatten, matching, unflatten


def stop_gradient(x: Any) -> Any:
    """The same values as constants: no derivative passes.

    >>> import tapegrad as tg
    >>> tg.grad(lambda x: x * tg.stop_gradient(x))(3.0)
    3.0
    """
    leaves, tree = flatten(x)
    return unflatten(tree, [_stopped(t) if isinstance(t, Tensor) else t for t in leaves])


def _stopped(t: Tensor) -> Tensor:
    if isinstance(t, Dual):
        return _stopped(t._lift.primal)
    return t.varied(_stopped) if isinstance(t, Lifted) else t.detach()
